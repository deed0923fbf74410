//! Collectives of all ranks on the common clock: one row per rank with a bar for each collective. For the selected
//! collective, vertical lines mark the times at which all ranks have entered and left it.

use super::panel::{Panel, draw_lines, draw_panel, fits_borders, split_top};
use super::table::{self, Head, Rows};
use super::text::{align_left, align_right};
use super::view::View;
use super::{Role, Theme};
use crate::analysis::labels::cut_end;
use crate::analysis::ranks::{Bar, Moment, Together};
use crate::analysis::triage::TimeCategory;
use crate::app::jobs::Ranks;
use crate::app::screens::ranks::Collectives;
use crate::app::{ActionId, App, RanksScreen};
use crate::model::{Bytes, Nanos, units};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// Widths of a rank's number and of a time.
const NUMBER: usize = 6;
const TIME: usize = 9;
/// Number of rows of the panel below the chart.
const BELOW: u16 = 5;
/// Minimum number of rows to list the longest waits.
const LONGEST: u16 = 6;
/// Glyphs for waiting, transfer, guide line and blank; the second set is ASCII.
const GLYPHS: [char; 4] = ['░', '█', '│', ' '];
const PLAIN: [char; 4] = ['.', '#', '|', ' '];

fn format_ns(n: i64) -> String {
    Nanos(n).to_string()
}

/// Maps times to columns; `None` for times outside the range.
struct Scale {
    from: i64,
    to: i64,
    columns: usize,
}

impl Scale {
    fn column_at(&self, time: i64) -> Option<usize> {
        (time >= self.from && time < self.to).then(|| {
            let part = (time - self.from) as f64 / (self.to - self.from).max(1) as f64;
            ((part * self.columns as f64) as usize).min(self.columns.saturating_sub(1))
        })
    }

    /// First and last column of an interval, clipped to the range of the scale.
    fn column_span(&self, start: i64, end: i64) -> Option<(usize, usize)> {
        if end < self.from || start >= self.to {
            return None;
        }
        Some((self.column_at(start.max(self.from))?, self.column_at(end.min(self.to - 1))?))
    }
}

/// Index of a cell's glyph, and true if the cell belongs to the selected collective.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Cell {
    kind: usize,
    own: bool,
}

const EMPTY: Cell = Cell { kind: 3, own: false };

/// Cells of a rank's row: in each collective, the rank waits until all ranks have entered it, and then transfers.
fn rank_cells(bars: &[Bar], moments: &[Moment], selected: usize, scale: &Scale) -> Vec<Cell> {
    let mut cells = vec![EMPTY; scale.columns];
    for bar in bars {
        let Some(m) = moments.get(bar.moment) else { continue };
        let own = bar.moment == selected;
        let ready = m.ready.clamp(bar.start, bar.end);
        let mut paint = |start: i64, end: i64, kind: usize| {
            if let Some((a, b)) = scale.column_span(start, end) {
                cells[a..=b].fill(Cell { kind, own });
            }
        };
        if ready > bar.start {
            paint(bar.start, ready - 1, 0);
        }
        paint(ready, bar.end.max(ready), 1);
    }
    // Draw guide lines only over blank cells.
    if let Some(m) = moments.get(selected) {
        for column in [scale.column_at(m.ready), scale.column_at(m.end)].into_iter().flatten() {
            if cells[column].kind == 3 {
                cells[column] = Cell { kind: 2, own: true };
            }
        }
    }
    cells
}

fn cell_spans(cells: &[Cell], ascii: bool, theme: &Theme) -> Vec<Span<'static>> {
    let glyphs = if ascii { PLAIN } else { GLYPHS };
    let style = |c: Cell| match (c.kind, c.own) {
        (0, true) => theme.style(Role::Part(TimeCategory::Waiting)),
        (1, true) => theme.style(Role::Part(TimeCategory::Collectives)),
        (2, _) => theme.style(Role::Dim),
        (_, false) => theme.style(Role::Faint),
        _ => theme.style(Role::Text),
    };
    cells.chunk_by(|a, b| a == b).map(|run| Span::styled(glyphs[run[0].kind].to_string().repeat(run.len()), style(run[0]))).collect()
}

pub fn draw(frame: &mut Frame<'_>, area: Rect, (screen, ranks, of): (&RanksScreen, &Ranks, &Collectives), view: &mut View, theme: &Theme) {
    let framed = fits_borders(area);
    let mut rest = area;
    let rows = u16::try_from(ranks.job.ranks.len()).unwrap_or(u16::MAX).saturating_add(if framed { 4 } else { 2 });
    let room = area.height.saturating_sub(if framed { BELOW } else { 4 });
    let main = split_top(&mut rest, rows.min(room).max(5));
    let (from, to) = of.visible_span();
    let count = units::format_grouped(of.aligned.list.len());
    let main = if framed {
        let title = vec![
            Span::styled("Collectives", theme.style(Role::Title)),
            Span::styled(
                format!("  {} of {count} on the common clock, {} shown", of.selected + 1, format_ns(to - from)),
                theme.style(Role::Dim),
            ),
        ];
        Panel::new(title).note(glyph_legend(view.ascii, theme)).focused().draw(frame, main, true, theme)
    } else {
        Rect { x: main.x + 1, width: main.width.saturating_sub(2), ..main }
    };
    draw_list(frame, main, (screen, ranks, of), view, theme);
    draw_selected(frame, &mut rest, ranks, of, framed, theme);
    if framed && rest.height >= LONGEST {
        draw_longest_waits(frame, rest, ranks, of, theme);
    }
}

/// Draws the collectives with the longest waits, each with the rank that arrived last.
fn draw_longest_waits(frame: &mut Frame<'_>, area: Rect, ranks: &Ranks, of: &Collectives, theme: &Theme) {
    let rows = usize::from(area.height.saturating_sub(3));
    let all = of.aligned.longest_waits(rows);
    let place = Rect { height: u16::try_from(all.len() + 3).unwrap_or(u16::MAX).min(area.height), ..area };
    let inner = draw_panel(frame, place, vec![Span::styled("Longest waits", theme.style(Role::Title))], true, theme);
    let columns = usize::from(inner.width);
    let start = of.aligned.list.first().map_or(0, |m| m.first);
    let head = format!(
        "{} {} {} {} {} {}",
        align_right("number", 8),
        align_right("after", 10),
        align_right("wait", 10),
        align_right("transfer", 10),
        align_right("last", 8),
        "  collective"
    );
    let mut out = vec![Line::styled(cut_end(&head, columns), theme.style(Role::Head))];
    for i in all {
        let m = &of.aligned.list[i];
        let Some(together) = ranks.job.matches.list.get(m.at) else { continue };
        let bytes = if together.bytes > 0 { format!(", {}", Bytes(together.bytes)) } else { String::new() };
        let text = format!(
            "{} {} {} {} {}   {} of {}{bytes}",
            align_right(&(i + 1).to_string(), 8),
            align_right(&format_ns(m.first - start), 10),
            align_right(&format_ns(m.wait_time()), 10),
            align_right(&format_ns(m.end - m.ready), 10),
            align_right(&format!("rank {}", last_rank(ranks, together)), 8),
            together.kind,
            units::format_count(together.arrivals.len(), "rank")
        );
        out.push(Line::styled(cut_end(&text, columns), theme.style(if i == of.selected { Role::Title } else { Role::Text })));
    }
    draw_lines(frame, inner, out);
}

/// Number of the rank that arrived last on the common clock.
fn last_rank(ranks: &Ranks, together: &Together) -> u32 {
    let start = |a: &&crate::analysis::ranks::Arrival| ranks.job.find_member(a.rank).map_or(a.start, |r| r.clock.common_time(a.start));
    together.arrivals.iter().max_by_key(start).map_or(0, |a| ranks.job.rank_number(a.rank))
}

/// Legend of the glyphs.
fn glyph_legend(ascii: bool, theme: &Theme) -> Vec<Span<'static>> {
    let g = if ascii { PLAIN } else { GLYPHS };
    vec![
        Span::styled(format!("{} ", g[0]), theme.style(Role::Part(TimeCategory::Waiting))),
        Span::styled("waits  ", theme.style(Role::Dim)),
        Span::styled(format!("{} ", g[1]), theme.style(Role::Part(TimeCategory::Collectives))),
        Span::styled("all arrived  ", theme.style(Role::Dim)),
    ]
}

fn draw_list(frame: &mut Frame<'_>, area: Rect, (screen, ranks, of): (&RanksScreen, &Ranks, &Collectives), view: &mut View, theme: &Theme) {
    let columns = usize::from(area.width);
    let chart = columns.saturating_sub(NUMBER + 2 * (TIME + 1) + 2);
    let (from, to) = of.visible_span();
    let scale = Scale { from, to, columns: chart };
    let heads = Rect { height: 1.min(area.height), ..area };
    let body = Rect { y: area.y + heads.height, height: area.height.saturating_sub(heads.height), ..area };
    let mut axis: Vec<char> = " ".repeat(chart).chars().collect();
    if let Some(column) = of.selected_moment().and_then(|m| scale.column_at(m.ready)) {
        axis[column] = if view.ascii { 'v' } else { '▼' };
    }
    let axis: String = axis.into_iter().collect();
    let head = format!("{}{}  {} {}", align_left("  rank", NUMBER), axis, align_right("arrives", TIME), align_right("waits", TIME));
    table::draw_heads(frame, heads, vec![Head::label_only(cut_end(&head, columns))], view, theme);
    let ascii = view.ascii;
    let rows = Rows { list: "ranks", count: ranks.job.ranks.len(), selected: screen.selected };
    table::draw_rows(frame, body, rows, view, theme, |at, _| {
        let Some(member) = ranks.job.ranks.get(at) else { return Vec::new() };
        let bars = of.aligned.rank_bars(&ranks.job, at, from, to);
        let straggler = ranks.job.stragglers.iter().any(|s| s.rank == member.rank);
        let name = if straggler { Role::Warn } else { Role::Text };
        let mut out =
            vec![Span::styled(align_left(&format!("{} {:>3}", if straggler { "›" } else { " " }, member.rank), NUMBER), theme.style(name))];
        out.extend(cell_spans(&rank_cells(&bars, &of.aligned.list, of.selected, &scale), ascii, theme));
        let own = bars.iter().find(|b| b.moment == of.selected).zip(of.selected_moment());
        let (comes, waits) = own.map_or_else(Default::default, |(bar, m)| {
            let comes = if bar.start == m.first { "first".to_owned() } else { format!("+{}", format_ns(bar.start - m.first)) };
            (comes, if bar.start == m.ready { "last".to_owned() } else { format_ns(m.ready - bar.start) })
        });
        let last = waits == "last";
        out.push(Span::styled(format!("  {} ", align_right(&comes, TIME)), theme.style(Role::Dim)));
        out.push(Span::styled(align_right(&waits, TIME), theme.style(if last { Role::Warn } else { Role::Text })));
        out
    });
}

/// Describes the selected collective.
fn describe_collective(ranks: &Ranks, of: &Collectives) -> Option<[String; 3]> {
    let m = of.selected_moment()?;
    let together = ranks.job.matches.list.get(m.at)?;
    let group = ranks.job.matches.groups.get(together.group as usize)?;
    let bytes = if together.bytes > 0 { format!(", {}", Bytes(together.bytes)) } else { String::new() };
    let name = if group.name.is_empty() { String::new() } else { format!(", group {}", group.name) };
    let missing = group.size.saturating_sub(together.arrivals.len());
    let missing = if missing > 0 { format!(" ({} not recorded)", units::format_count(missing, "rank")) } else { String::new() };
    let what = format!("{} of {}{missing}{bytes}{name}", together.kind, units::format_count(together.arrivals.len(), "rank"));
    let last = last_rank(ranks, together);
    let worst = ranks.job.ranks.iter().filter(|r| r.clock.by > 0).map(|r| r.clock.uncertainty).max().unwrap_or(0);
    let who = if m.wait_time() <= worst {
        format!("all come within {}, which is no more than the clocks are sure of (±{})", format_ns(m.wait_time()), format_ns(worst))
    } else {
        format!("rank {last} arrives last, {} after the first; clocks are aligned to ±{}", format_ns(m.wait_time()), format_ns(worst))
    };
    Some([
        what,
        who,
        format!(
            "{} from the first arrival to the last departure, {} of it after all ranks arrived",
            format_ns(m.length()),
            format_ns(m.end - m.ready)
        ),
    ])
}

fn draw_selected(frame: &mut Frame<'_>, rest: &mut Rect, ranks: &Ranks, of: &Collectives, framed: bool, theme: &Theme) {
    if rest.height < 2 {
        return;
    }
    let area = split_top(rest, rest.height.min(BELOW));
    let inner = if framed {
        draw_panel(frame, area, vec![Span::styled("The selected collective", theme.style(Role::Title))], true, theme)
    } else {
        Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area }
    };
    let columns = usize::from(inner.width);
    let Some([what, who, how]) = describe_collective(ranks, of) else { return };
    let line = |text: String, role: Role| Line::styled(cut_end(&crate::model::text::escape_unsafe(&text), columns), theme.style(role));
    draw_lines(frame, inner, vec![line(what, Role::Title), line(who, Role::Text), line(how, Role::Text)]);
}

/// Suggested next step.
pub fn next(app: &App, screen: &RanksScreen, of: &Collectives) -> String {
    let key = |id| app.session.key_link(id);
    let rank = screen.selected_member().map_or(0, |m| m.rank);
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
        rank_cells(&bars, &moments, 0, &Scale { from: 0, to: 100, columns: 10 }).iter().map(|c| PLAIN[c.kind]).collect()
    }

    /// A waiting rank, the last rank, and a rank of another group: vertical lines mark the times at which all had
    /// arrived and at which they left.
    #[test]
    fn bars_and_lines() {
        assert_eq!(drawn(&[(0, 60, 0), (70, 90, 1)]), "....###.##");
        assert_eq!(drawn(&[(40, 60, 0)]), "    ###   ");
        assert_eq!(drawn(&[]), "    | |   ");
        // A bar narrower than a column, and a bar outside the range.
        assert_eq!(drawn(&[(39, 41, 0), (-50, -10, 1)]), "   .# |   ");
    }
}
