//! Collectives of all ranks on the common clock: a row per rank, a bar for its part in each collective, and
//! lines through all rows where all ranks had entered the selected collective, and where they left it.

use super::panel::{Panel, bordered, lines, panel, take};
use super::table::{self, Head, Rows};
use super::text::{left, right};
use super::view::View;
use super::{Role, Theme};
use crate::analysis::labels::cut_end;
use crate::analysis::ranks::{Bar, Moment, Together};
use crate::analysis::triage::Part;
use crate::app::screens::ranks::Collectives;
use crate::app::work::Ranks;
use crate::app::{ActionId, App, RanksScreen};
use crate::model::{Bytes, Nanos, units};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// Widths of a rank's number and of a time.
const NUMBER: usize = 6;
const TIME: usize = 9;
/// Rows of the panel below.
const BELOW: u16 = 5;
/// Minimum rows to list the longest waits.
const LONGEST: u16 = 6;
/// Waiting, transfer, guide line, blank; the second set is for ASCII.
const GLYPHS: [char; 4] = ['░', '█', '│', ' '];
const PLAIN: [char; 4] = ['.', '#', '|', ' '];

fn ns(n: i64) -> String {
    Nanos(n).to_string()
}

/// Maps times to columns; `None` for times outside the range.
struct Scale {
    from: i64,
    to: i64,
    columns: usize,
}

impl Scale {
    fn column(&self, time: i64) -> Option<usize> {
        (time >= self.from && time < self.to).then(|| {
            let part = (time - self.from) as f64 / (self.to - self.from).max(1) as f64;
            ((part * self.columns as f64) as usize).min(self.columns.saturating_sub(1))
        })
    }

    /// First and last column of an interval, clipped to the range.
    fn columns(&self, start: i64, end: i64) -> Option<(usize, usize)> {
        if end < self.from || start >= self.to {
            return None;
        }
        Some((self.column(start.max(self.from))?, self.column(end.min(self.to - 1))?))
    }
}

/// Glyph of a cell, and true if it belongs to the selected collective.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Cell {
    kind: usize,
    own: bool,
}

const EMPTY: Cell = Cell { kind: 3, own: false };

/// Cells of a rank's row.
fn row(bars: &[Bar], moments: &[Moment], selected: usize, scale: &Scale) -> Vec<Cell> {
    let mut cells = vec![EMPTY; scale.columns];
    for bar in bars {
        let Some(m) = moments.get(bar.moment) else { continue };
        let own = bar.moment == selected;
        let ready = m.ready.clamp(bar.start, bar.end);
        let mut paint = |start: i64, end: i64, kind: usize| {
            if let Some((a, b)) = scale.columns(start, end) {
                cells[a..=b].fill(Cell { kind, own });
            }
        };
        if ready > bar.start {
            paint(bar.start, ready - 1, 0);
        }
        paint(ready, bar.end.max(ready), 1);
    }
    // Guide lines, drawn only over blank cells.
    if let Some(m) = moments.get(selected) {
        for column in [scale.column(m.ready), scale.column(m.end)].into_iter().flatten() {
            if cells[column].kind == 3 {
                cells[column] = Cell { kind: 2, own: true };
            }
        }
    }
    cells
}

fn spans(cells: &[Cell], ascii: bool, theme: &Theme) -> Vec<Span<'static>> {
    let glyphs = if ascii { PLAIN } else { GLYPHS };
    let style = |c: Cell| match (c.kind, c.own) {
        (0, true) => theme.style(Role::Part(Part::Waiting)),
        (1, true) => theme.style(Role::Part(Part::Collectives)),
        (2, _) => theme.style(Role::Dim),
        (_, false) => theme.style(Role::Faint),
        _ => theme.style(Role::Text),
    };
    cells.chunk_by(|a, b| a == b).map(|run| Span::styled(glyphs[run[0].kind].to_string().repeat(run.len()), style(run[0]))).collect()
}

pub fn draw(frame: &mut Frame<'_>, area: Rect, (screen, ranks, of): (&RanksScreen, &Ranks, &Collectives), view: &mut View, theme: &Theme) {
    let framed = bordered(area);
    let mut rest = area;
    let rows = u16::try_from(ranks.job.ranks.len()).unwrap_or(u16::MAX).saturating_add(if framed { 4 } else { 2 });
    let room = area.height.saturating_sub(if framed { BELOW } else { 4 });
    let main = take(&mut rest, rows.min(room).max(5));
    let (from, to) = of.shown();
    let count = units::grouped(i64::try_from(of.aligned.list.len()).unwrap_or(i64::MAX));
    let main = if framed {
        let title = vec![
            Span::styled("Collectives", theme.style(Role::Title)),
            Span::styled(format!("  {} of {count} on the common clock, {} shown", of.selected + 1, ns(to - from)), theme.style(Role::Dim)),
        ];
        Panel::new(title).note(key(view.ascii, theme)).focused().draw(frame, main, true, theme)
    } else {
        Rect { x: main.x + 1, width: main.width.saturating_sub(2), ..main }
    };
    list(frame, main, (screen, ranks, of), view, theme);
    about(frame, &mut rest, ranks, of, framed, theme);
    if framed && rest.height >= LONGEST {
        longest(frame, rest, ranks, of, theme);
    }
}

/// Draws the collectives with the longest waits.
fn longest(frame: &mut Frame<'_>, area: Rect, ranks: &Ranks, of: &Collectives, theme: &Theme) {
    let rows = usize::from(area.height.saturating_sub(3));
    let all = of.aligned.longest(rows);
    let place = Rect { height: u16::try_from(all.len() + 3).unwrap_or(u16::MAX).min(area.height), ..area };
    let inner = panel(frame, place, vec![Span::styled("Longest waits", theme.style(Role::Title))], true, theme);
    let columns = usize::from(inner.width);
    let start = of.aligned.list.first().map_or(0, |m| m.first);
    let head = format!(
        "{} {} {} {} {} {}",
        right("number", 8),
        right("after", 10),
        right("wait", 10),
        right("transfer", 10),
        right("last", 8),
        "  collective"
    );
    let mut out = vec![Line::styled(cut_end(&head, columns), theme.style(Role::Head))];
    for i in all {
        let m = &of.aligned.list[i];
        let Some(together) = ranks.job.matches.list.get(m.at) else { continue };
        let bytes = if together.bytes > 0 { format!(", {}", Bytes(together.bytes)) } else { String::new() };
        let text = format!(
            "{} {} {} {} {}   {} of {}{bytes}",
            right(&(i + 1).to_string(), 8),
            right(&ns(m.first - start), 10),
            right(&ns(m.wait()), 10),
            right(&ns(m.end - m.ready), 10),
            right(&format!("rank {}", last(ranks, together)), 8),
            together.kind,
            units::count(together.arrivals.len(), "rank")
        );
        out.push(Line::styled(cut_end(&text, columns), theme.style(if i == of.selected { Role::Title } else { Role::Text })));
    }
    lines(frame, inner, out);
}

/// Rank that arrived last.
fn last(ranks: &Ranks, together: &Together) -> u32 {
    let start = |a: &&crate::analysis::ranks::Arrival| ranks.job.member(a.rank).map_or(a.start, |r| r.clock.common(a.start));
    together.arrivals.iter().max_by_key(start).map_or(0, |a| ranks.job.number(a.rank))
}

/// Legend of the glyphs.
fn key(ascii: bool, theme: &Theme) -> Vec<Span<'static>> {
    let g = if ascii { PLAIN } else { GLYPHS };
    vec![
        Span::styled(format!("{} ", g[0]), theme.style(Role::Part(Part::Waiting))),
        Span::styled("waits  ", theme.style(Role::Dim)),
        Span::styled(format!("{} ", g[1]), theme.style(Role::Part(Part::Collectives))),
        Span::styled("all are there  ", theme.style(Role::Dim)),
    ]
}

fn list(frame: &mut Frame<'_>, area: Rect, (screen, ranks, of): (&RanksScreen, &Ranks, &Collectives), view: &mut View, theme: &Theme) {
    let columns = usize::from(area.width);
    let chart = columns.saturating_sub(NUMBER + 2 * (TIME + 1) + 2);
    let (from, to) = of.shown();
    let scale = Scale { from, to, columns: chart };
    let heads = Rect { height: 1.min(area.height), ..area };
    let body = Rect { y: area.y + heads.height, height: area.height.saturating_sub(heads.height), ..area };
    let mut axis: Vec<char> = " ".repeat(chart).chars().collect();
    if let Some(column) = of.moment().and_then(|m| scale.column(m.ready)) {
        axis[column] = if view.ascii { 'v' } else { '▼' };
    }
    let axis: String = axis.into_iter().collect();
    let head = format!("{}{}  {} {}", left("  rank", NUMBER), axis, right("comes", TIME), right("waits", TIME));
    table::heads(frame, heads, vec![Head::plain(cut_end(&head, columns))], view, theme);
    let ascii = view.ascii;
    let rows = Rows { list: "ranks", count: ranks.job.ranks.len(), selected: screen.selected };
    table::rows(frame, body, rows, view, theme, |at, _| {
        let Some(member) = ranks.job.ranks.get(at) else { return Vec::new() };
        let bars = of.aligned.bars(&ranks.job, at, from, to);
        let straggler = ranks.job.stragglers.iter().any(|s| s.rank == member.rank);
        let name = if straggler { Role::Warn } else { Role::Text };
        let mut out =
            vec![Span::styled(left(&format!("{} {:>3}", if straggler { "›" } else { " " }, member.rank), NUMBER), theme.style(name))];
        out.extend(spans(&row(&bars, &of.aligned.list, of.selected, &scale), ascii, theme));
        let own = bars.iter().find(|b| b.moment == of.selected).zip(of.moment());
        let (comes, waits) = own.map_or_else(Default::default, |(bar, m)| {
            let comes = if bar.start == m.first { "first".to_owned() } else { format!("+{}", ns(bar.start - m.first)) };
            (comes, if bar.start == m.ready { "last".to_owned() } else { ns(m.ready - bar.start) })
        });
        let last = waits == "last";
        out.push(Span::styled(format!("  {} ", right(&comes, TIME)), theme.style(Role::Dim)));
        out.push(Span::styled(right(&waits, TIME), theme.style(if last { Role::Warn } else { Role::Text })));
        out
    });
}

/// Describes the selected collective.
fn words(ranks: &Ranks, of: &Collectives) -> Option<[String; 3]> {
    let m = of.moment()?;
    let together = ranks.job.matches.list.get(m.at)?;
    let group = ranks.job.matches.groups.get(together.group as usize)?;
    let bytes = if together.bytes > 0 { format!(", {}", Bytes(together.bytes)) } else { String::new() };
    let name = if group.name.is_empty() { String::new() } else { format!(", group {}", group.name) };
    let missing = group.size.saturating_sub(together.arrivals.len());
    let missing = if missing > 0 { format!(" ({} not recorded)", units::count(missing, "rank")) } else { String::new() };
    let what = format!("{} of {}{missing}{bytes}{name}", together.kind, units::count(together.arrivals.len(), "rank"));
    let last = last(ranks, together);
    let worst = ranks.job.ranks.iter().filter(|r| r.clock.by > 0).map(|r| r.clock.uncertainty).max().unwrap_or(0);
    let who = if m.wait() <= worst {
        format!("all come within {}, which is no more than the clocks are sure of (±{})", ns(m.wait()), ns(worst))
    } else {
        format!("rank {last} comes last, {} after the first; clocks are aligned to ±{}", ns(m.wait()), ns(worst))
    };
    Some([
        what,
        who,
        format!("{} from the first to come to the last to leave, {} of it once all are there", ns(m.length()), ns(m.end - m.ready)),
    ])
}

fn about(frame: &mut Frame<'_>, rest: &mut Rect, ranks: &Ranks, of: &Collectives, framed: bool, theme: &Theme) {
    if rest.height < 2 {
        return;
    }
    let area = take(rest, rest.height.min(BELOW));
    let inner = if framed {
        panel(frame, area, vec![Span::styled("The selected collective", theme.style(Role::Title))], true, theme)
    } else {
        Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area }
    };
    let columns = usize::from(inner.width);
    let Some([what, who, how]) = words(ranks, of) else { return };
    let line = |text: String, role: Role| Line::styled(cut_end(&crate::model::text::clean(&text), columns), theme.style(role));
    lines(frame, inner, vec![line(what, Role::Title), line(who, Role::Text), line(how, Role::Text)]);
}

/// Suggested next step.
#[must_use]
pub fn next(app: &App, screen: &RanksScreen, of: &Collectives) -> String {
    let key = |id| app.session.link(id);
    let rank = screen.member().map_or(0, |m| m.rank);
    format!(
        "{} and {} go from one collective to the next, {} to the one with the longest wait; {} opens rank {rank} there in its timeline; {} is back to the steps",
        key(ActionId::StepLeft),
        key(ActionId::StepRight),
        key(ActionId::WorstStep),
        key(ActionId::Open),
        key(ActionId::RankCollectives)
    ) + if of.aligned.list.is_empty() { "; there are none" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(bars: &[(i64, i64, usize)]) -> String {
        let moments =
            [Moment { at: 0, first: 0, ready: 40, end: 60, judged: true }, Moment { at: 1, first: 70, ready: 80, end: 90, judged: true }];
        let bars: Vec<Bar> = bars.iter().map(|&(start, end, moment)| Bar { start, end, moment }).collect();
        row(&bars, &moments, 0, &Scale { from: 0, to: 100, columns: 10 }).iter().map(|c| PLAIN[c.kind]).collect()
    }

    /// A rank that waits, one that arrives last, and one of another group: lines where all had arrived, and
    /// where they left.
    #[test]
    fn bars_and_lines() {
        assert_eq!(drawn(&[(0, 60, 0), (70, 90, 1)]), "....###.##");
        assert_eq!(drawn(&[(40, 60, 0)]), "    ###   ");
        assert_eq!(drawn(&[]), "    | |   ");
        // Shorter than a column, and outside the range.
        assert_eq!(drawn(&[(39, 41, 0), (-50, -10, 1)]), "   .# |   ");
    }
}
