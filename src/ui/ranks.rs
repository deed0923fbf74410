//! Ranks screen: a row per rank with its time breakdown, the time it waits and is waited for, and a chart of
//! these by step.

use super::panel::{Panel, bordered, take};
use super::parts::stack::{Share, legend, stacked};
use super::table::{self, Head, Rows};
use super::text::{fit_parts, left, part, right, wrap};
use super::view::View;
use super::{Role, Theme};
use crate::analysis::labels::{cut_end, cut_middle};
use crate::analysis::ranks::{Job, Member};
use crate::analysis::triage::Part;
use crate::app::work::Ranks;
use crate::app::{ActionId, App, RanksScreen};
use crate::model::digest::Digest;
use crate::model::text::clean;
use crate::model::{Bytes, Nanos, units};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

/// Widths of a rank's number with its mark, of its host, and of a time.
const NUMBER: usize = 6;
const HOST: usize = 12;
const TIME: usize = 9;
/// Width of the bar: minimum, and divisor of the screen's width.
const BAR: (usize, usize) = (16, 5);
/// Minimum width of the steps; with less room they are omitted.
const STEPS: usize = 12;
/// Maximum width of a step.
const CELL: usize = 4;
/// Rows of the panels below.
const BELOW: u16 = 15;
/// Shades of a share from none to full; the second set is for ASCII.
const SHADES: [&str; 5] = [" ", "░", "▒", "▓", "█"];
const PLAIN: [&str; 5] = [" ", ".", ":", "+", "#"];

fn ns(n: i64) -> String {
    Nanos(n).to_string()
}

/// The two header lines.
#[must_use]
pub fn head(app: &App, screen: &RanksScreen, theme: &Theme, columns: usize) -> [Line<'static>; 2] {
    let dim = |text: String| vec![Span::styled(text, theme.style(Role::Dim))];
    let strong = |text: String| vec![Span::styled(text, theme.style(Role::Title))];
    let mut first = vec![part(0, vec![Span::styled("warpscope", theme.style(Role::Brand))])];
    let mut second = Vec::new();
    if let Some(ranks) = &screen.ranks {
        let mut hosts: Vec<&str> = ranks.digests.iter().filter_map(|d| d.host.as_deref()).collect();
        hosts.sort_unstable();
        hosts.dedup();
        first.push(part(0, strong(units::count(ranks.job.ranks.len(), "rank"))));
        if !hosts.is_empty() {
            first.push(part(2, dim(format!("on {}", units::count(hosts.len(), "host")))));
        }
        first.push(part(1, dim(format!("{} matched", units::count(ranks.job.matched(), "collective")))));
        let worst = ranks.job.ranks.iter().filter(|m| m.clock.by > 0).map(|m| m.clock.uncertainty).max();
        if let Some(worst) = worst {
            first.push(part(3, dim(format!("clocks aligned to {}", ns(worst)))));
        }
        let (text, role) = verdict(&ranks.job);
        second.push(part(0, vec![Span::styled(cut_end(&text, columns), theme.style(role))]));
    } else {
        first.push(part(0, dim(units::count(app.session.reports.len(), "report"))));
    }
    [fit_parts(first, &Span::styled(" · ", theme.style(Role::Faint)), columns), fit_parts(second, &Span::raw("   "), columns)]
}

fn verdict(job: &Job) -> (String, Role) {
    match job.findings.first() {
        Some(f) => (f.headline.clone(), Role::Warn),
        None => (job.nothing_found(), if job.matches.list.is_empty() || job.unsure { Role::Dim } else { Role::Good }),
    }
}

/// Time breakdown of a rank.
fn shares(digest: &Digest, member: &Member, theme: &Theme) -> Vec<Share> {
    let of = |ns: i64| ns as f64 / member.judged.max(1) as f64;
    Part::ALL
        .into_iter()
        .filter_map(|part| {
            let share = of(digest.parts.get(part as usize).copied().unwrap_or(0));
            (share > 0.0).then(|| Share { name: part.short().to_owned(), share, style: theme.style(Role::Part(part)) })
        })
        .collect()
}

pub fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, screen: &RanksScreen, view: &mut View, theme: &Theme) {
    let inner = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    let Some(ranks) = &screen.ranks else {
        let reading = app.session.reports.iter().any(|r| r.reading() || (r.timeline() && r.triage.is_none()));
        let text =
            if reading { "reading the reports of all ranks …" } else { "no report of this session is of a run: there are no ranks" };
        frame.render_widget(Line::styled(text, theme.style(Role::Dim)), inner);
        return;
    };
    if let Some(collectives) = &screen.collectives {
        super::ranks_collectives::draw(frame, area, (screen, ranks, collectives), view, theme);
        return;
    }
    let framed = bordered(area);
    let mut rest = area;
    let rows = u16::try_from(ranks.job.ranks.len()).unwrap_or(u16::MAX).saturating_add(if framed { 3 } else { 1 });
    let room = area.height.saturating_sub(if framed { BELOW } else { 8 });
    let main = take(&mut rest, if rows < room { rows.max(5) } else { room.max(5) });
    let main = if framed {
        let title = vec![Span::styled("Ranks", theme.style(Role::Title)), Span::styled(step_words(screen, ranks), theme.style(Role::Dim))];
        Panel::new(title).focused().draw(frame, main, true, theme)
    } else {
        Rect { x: main.x + 1, width: main.width.saturating_sub(2), ..main }
    };
    list(frame, main, screen, ranks, view, theme);
    below(frame, rest, screen, ranks, framed, theme);
}

fn step_words(screen: &RanksScreen, ranks: &Ranks) -> String {
    match screen.step.and_then(|s| ranks.steps.get(s)) {
        Some((number, _)) => format!("  step {number} of {}", units::count(ranks.steps.len(), "step")),
        None if ranks.steps.is_empty() => "  no steps were found".to_owned(),
        None => format!("  {}: shade is what a rank is waited for in a step", units::count(ranks.steps.len(), "step")),
    }
}

/// Steps shown in a column.
fn bucket(column: usize, columns: usize, steps: usize) -> std::ops::Range<usize> {
    if steps <= columns {
        column..(column + 1).min(steps)
    } else {
        column * steps / columns..((column + 1) * steps / columns).max(column * steps / columns + 1)
    }
}

fn list(frame: &mut Frame<'_>, area: Rect, screen: &RanksScreen, ranks: &Ranks, view: &mut View, theme: &Theme) {
    let columns = usize::from(area.width);
    let [heads, rows] = Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).areas(area);
    let several = ranks.digests.iter().any(|d| d.host != ranks.digests[0].host) && columns >= 100;
    let host = if several { HOST } else { 0 };
    let bar = (columns / BAR.1).clamp(BAR.0, 40);
    let fixed = NUMBER + host + bar + 2 + 3 * (TIME + 1) + 2;
    let room = columns.saturating_sub(fixed);
    let heat = if room >= STEPS && !ranks.steps.is_empty() { room } else { 0 };
    let shown = heat.min(ranks.steps.len().max(1));
    // With few steps, cells are wide.
    let cell = (heat / shown.max(1)).clamp(1, CELL);
    let at = screen.step.and_then(|s| (0..shown).find(|&c| bucket(c, shown, ranks.steps.len()).contains(&s)));
    let mut title = format!("{}{}{}  ", left("  rank", NUMBER), left("host", host), left("", bar));
    for word in ["step", "waits", "waited for"] {
        let wide = if word == "waited for" { TIME + 1 } else { TIME };
        title.push_str(&right(word, wide));
        title.push(' ');
    }
    title.push(' ');
    let words = "waited for, by step";
    match at {
        Some(at) => title.extend([&" ".repeat(at * cell), "▼"]),
        None => title.push_str(&cut_end(words, heat)),
    }
    table::heads(frame, heads, vec![Head::plain(title)], view, theme);
    // Shades compare ranks with the worst step of all.
    let late = |row: usize, c: usize| {
        let cells = bucket(c, shown, ranks.steps.len());
        let n = cells.len().max(1) as f64;
        ranks
            .steps
            .get(cells)
            .into_iter()
            .flatten()
            .filter_map(|s| s.1.get(row).copied().flatten())
            .map(|c| c.late.max(0) as f64)
            .sum::<f64>()
            / n
    };
    let most = (0..ranks.job.ranks.len()).flat_map(|r| (0..shown).map(move |c| (r, c))).map(|(r, c)| late(r, c)).fold(0.0, f64::max);
    let usual = ranks.job.ranks.iter().filter_map(|m| m.step).max().unwrap_or(0) as f64;
    // Delays that are small relative to a step (2 %) get light shades.
    let scale = most.max(usual * 0.02).max(1.0);
    let ascii = view.ascii;
    let of = Rows { list: "ranks", count: ranks.job.ranks.len(), selected: screen.selected };
    table::rows(frame, rows, of, view, theme, |row, _| {
        let Some(member) = ranks.job.ranks.get(row) else { return Vec::new() };
        let digest = &ranks.digests[member.digest];
        let straggler = ranks.job.stragglers.iter().any(|s| s.rank == member.rank);
        let name = if straggler { Role::Warn } else { Role::Text };
        let mut spans = vec![
            Span::styled(left(&format!("{} {:>3}", if straggler { "›" } else { " " }, member.rank), NUMBER), theme.style(name)),
            Span::styled(
                left(&cut_end(&clean(digest.host.as_deref().unwrap_or("")), host.saturating_sub(1)), host),
                theme.style(Role::Dim),
            ),
        ];
        let line = stacked(&shares(digest, member, theme), bar);
        let wide: usize = line.width();
        spans.extend(line.spans);
        spans.push(Span::raw(" ".repeat(bar.saturating_sub(wide) + 2)));
        let step = member.step.map_or_else(String::new, ns);
        spans.push(Span::styled(format!("{} ", right(&step, TIME)), theme.style(Role::Text)));
        spans.push(Span::styled(format!("{} ", right(&ns(member.waited), TIME)), theme.style(Role::Dim)));
        spans.push(Span::styled(format!("{}  ", right(&ns(member.late), TIME + 1)), theme.style(name)));
        if heat > 0 {
            for c in 0..shown {
                let share = late(row, c) / scale;
                let shade = if share < 0.05 { 0 } else { ((share * 4.0).ceil() as usize).clamp(1, 4) };
                let glyph = if ascii { PLAIN[shade] } else { SHADES[shade] };
                let glyph = if shade == 0 && at == Some(c) { if ascii { "|" } else { "│" } } else { glyph };
                let text = if glyph == "│" || glyph == "|" { left(glyph, cell) } else { glyph.repeat(cell) };
                spans.push(Span::styled(text, theme.style(if shade == 0 { Role::Faint } else { Role::Part(Part::Waiting) })));
            }
        }
        spans
    });
}

/// Draws the findings, the selected rank, and the collectives.
fn below(frame: &mut Frame<'_>, area: Rect, screen: &RanksScreen, ranks: &Ranks, framed: bool, theme: &Theme) {
    if area.height < 3 {
        return;
    }
    if !framed {
        let inner = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
        let mut lines = legend_of(screen, ranks, usize::from(inner.width), theme);
        lines.extend(selected(screen, ranks, usize::from(inner.width), theme));
        super::panel::lines(frame, inner, lines);
        return;
    }
    let mut rest = area;
    let [side, main] = Layout::horizontal([Constraint::Percentage(50), Constraint::Percentage(50)]).areas(rest);
    rest = main;
    let title = screen.member().map_or_else(String::new, |m| format!("Rank {}", m.rank));
    let at = super::panel::panel(frame, side, vec![Span::styled(title, theme.style(Role::Title))], true, theme);
    let mut lines = legend_of(screen, ranks, usize::from(at.width), theme);
    lines.extend(selected(screen, ranks, usize::from(at.width), theme));
    super::panel::lines(frame, at, lines);
    let at = super::panel::panel(frame, rest, vec![Span::styled("Between ranks", theme.style(Role::Title))], true, theme);
    super::panel::lines(frame, at, together(ranks, usize::from(at.width), theme));
}

fn legend_of(screen: &RanksScreen, ranks: &Ranks, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let Some(member) = screen.member() else { return Vec::new() };
    legend(&shares(&ranks.digests[member.digest], member, theme), columns, 2, theme.style(Role::Dim), theme)
}

/// Maximum number of rank pairs listed.
const PAIRS: usize = 5;
/// Width of a key.
const KEY: usize = 12;

/// Key and value, wrapped to at most three lines.
fn pair(key: &str, value: &str, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let line = |(at, text): (usize, String)| {
        let key = if at == 0 { key } else { "" };
        Line::from(vec![Span::styled(left(key, KEY), theme.style(Role::Dim)), Span::styled(text, theme.style(Role::Text))])
    };
    wrap(&clean(value), columns.saturating_sub(KEY)).into_iter().take(3).enumerate().map(line).collect()
}

fn selected(screen: &RanksScreen, ranks: &Ranks, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let Some(member) = screen.member() else { return Vec::new() };
    let digest = &ranks.digests[member.digest];
    let mut out = Vec::new();
    let mut put = |key: &str, value: &str| out.extend(pair(key, value, columns, theme));
    if let (Some(step), Some(cell)) = (screen.step, screen.cell()) {
        let parts = format!("kernels {}, collectives alone {}, idle {}", ns(cell.compute), ns(cell.exposed), ns(cell.idle));
        put(&format!("step {}", ranks.steps[step].0), &format!("{}: {parts}", ns(cell.length)));
        put("waited for", &format!("{} in this step", ns(cell.late)));
    }
    let of = u32::try_from(member.digest).unwrap_or(u32::MAX);
    let worst = ranks.job.waits.pairs.iter().filter(|((waiter, _), ns)| *waiter == of && **ns > 0).max_by_key(|w| *w.1);
    if let Some((&(_, other), &time)) = worst {
        put("waits", &format!("{} for rank {}, {} in all", ns(time), ranks.job.number(other), ns(member.waited)));
    }
    if let Some(finding) = digest.findings.first() {
        put("alone", &format!("{}: {}", finding.id, finding.headline));
    }
    let gpu = [digest.host.clone(), digest.device.map(|d| format!("GPU {d}")), digest.device_name.clone()];
    let gpu: Vec<String> = gpu.into_iter().flatten().collect();
    if !gpu.is_empty() {
        put("ran on", &gpu.join(", "));
    }
    if member.clock.by > 0 {
        let clock = member.clock;
        let off = if clock.offset < 0 { format!("{} behind", ns(-clock.offset)) } else { format!("{} ahead of", ns(clock.offset)) };
        put("clock", &format!("{off} the common one, ±{}; drift {:+.2} ppm", ns(clock.uncertainty), clock.drift * 1e6));
    }
    let name = digest.file.rsplit('/').next().unwrap_or(&digest.file);
    put("report", &cut_middle(&clean(name), columns.saturating_sub(KEY)));
    out
}

fn together(ranks: &Ranks, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let job = &ranks.job;
    let mut out = Vec::new();
    let (text, role) = verdict(job);
    out.extend(wrap(&clean(&text), columns).into_iter().map(|l| Line::styled(l, theme.style(role))));
    for action in job.findings.first().iter().flat_map(|f| f.actions.iter().take(1)) {
        out.extend(wrap(action, columns).into_iter().map(|l| Line::styled(l, theme.style(Role::Text))));
    }
    if !job.links.is_empty() {
        out.push(Line::default());
        let title = format!("{}{}{}{}{}", left("collective", 14), right("ranks", 6), right("count", 7), right("time", 9), right("bus", 10))
            + if job.links.iter().any(|l| l.bus.is_some() && l.peak.is_some()) { "  link" } else { "" };
        out.push(Line::styled(cut_end(&title, columns), theme.style(Role::Dim)));
    }
    for link in job.links.iter().take(5) {
        let bus = link.bus.map_or_else(String::new, |b| format!("{:.0} GB/s", b / 1e9));
        let share =
            link.bus.zip(link.peak).map_or_else(String::new, |(b, (peak, _))| format!("{:>6}", format!("{:.0}%", b / peak * 100.0)));
        let size = link.bytes.map_or_else(String::new, |b| format!("  {} each", Bytes(b)));
        let count = units::grouped(i64::try_from(link.count).unwrap_or(i64::MAX));
        let text = format!(
            "{}{}{}{}{}{share}{size}",
            left(link.kind, 16),
            right(&link.size.to_string(), 6),
            right(&count, 8),
            right(&ns(link.time), 10),
            right(&bus, 12)
        );
        out.push(Line::styled(cut_end(&text, columns), theme.style(Role::Text)));
    }
    let mut pairs: Vec<((u32, u32), i64)> = job.waits.pairs.iter().map(|(&p, &ns)| (p, ns)).filter(|p| p.1 > 0).collect();
    pairs.sort_by_key(|p| (std::cmp::Reverse(p.1), p.0));
    if !pairs.is_empty() {
        out.push(Line::default());
    }
    for ((waiter, other), time) in pairs.into_iter().take(PAIRS) {
        let text = format!("rank {} waits {} for rank {}", job.number(waiter), ns(time), job.number(other));
        out.push(Line::styled(cut_end(&text, columns), theme.style(Role::Text)));
    }
    let remarks = job.told.words().into_iter().map(str::to_owned).chain(job.remarks.iter().cloned());
    for remark in remarks {
        out.extend(wrap(&clean(&remark), columns).into_iter().map(|l| Line::styled(l, theme.style(Role::Dim))));
    }
    out
}

/// Suggested next step.
#[must_use]
pub fn next(app: &App, screen: &RanksScreen) -> Option<String> {
    let ranks = screen.ranks.as_ref()?;
    let key = |id| app.session.link(id);
    let member = screen.member()?;
    if ranks.job.ranks.len() < 2 {
        return Some("only one rank is open: name the reports of the others, too".to_owned());
    }
    if let Some(collectives) = &screen.collectives {
        return Some(super::ranks_collectives::next(app, screen, collectives));
    }
    Some(match screen.step {
        Some(step) => format!("{} opens rank {} at step {} in its timeline", key(ActionId::Open), member.rank, ranks.steps[step].0),
        None if ranks.steps.is_empty() => format!("{} opens rank {} in its timeline", key(ActionId::Open), member.rank),
        None => format!(
            "{} goes to the step with the most waiting, {} and {} through the steps; {} shows the collectives; {} opens rank {} in its timeline",
            key(ActionId::WorstStep),
            key(ActionId::StepLeft),
            key(ActionId::StepRight),
            key(ActionId::RankCollectives),
            key(ActionId::Open),
            member.rank
        ),
    })
}
