//! Ranks screen: one row per rank with its time breakdown, its waiting time, the time that others wait for it, and a
//! chart of both by step.

use super::panel::{Panel, draw_message, fits_borders, split_top};
use super::ranks_steps;
use super::screens::{Place, ScreenView};
use super::table::{self, Head, Rows};
use super::text::{align_left, align_right, fit_parts, part, wrap_text};
use super::view::View;
use super::widgets::finding_glyph;
use super::widgets::stacked_bar::{Share, share_legend, stacked_bar};
use super::{Role, Theme};
use crate::analysis::labels::{cut_end, cut_middle, display_width};
use crate::analysis::ranks::{Job, Member};
use crate::analysis::triage::{TimeCategory, Verdict};
use crate::app::jobs::Ranks;
use crate::app::{ActionId, App, RanksScreen};
use crate::model::digest::Digest;
use crate::model::text::escape_unsafe;
use crate::model::{Bytes, Nanos, units};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

/// Widths of a rank's number with its mark, of a host name, and of a time.
const NUMBER: usize = 6;
const HOST: usize = 12;
const TIME: usize = 9;
/// Width of the bar: minimum, and divisor of the screen's width.
const BAR: (usize, usize) = (16, 5);
/// Minimum width of the chart by step, which is omitted if there is less room.
const STEPS: usize = 12;
/// Maximum width of a step.
const CELL: usize = 4;
/// Number of rows of the panels below the table.
const BELOW: u16 = 15;
/// Shades for a share, from none to full; the second set is ASCII.
const SHADES: [&str; 5] = [" ", "░", "▒", "▓", "█"];
const PLAIN: [&str; 5] = [" ", ".", ":", "+", "#"];

fn format_ns(n: i64) -> String {
    Nanos(n).to_string()
}

impl ScreenView for RanksScreen {
    fn draw(&self, frame: &mut Frame<'_>, at: Place, app: &App, view: &mut View, theme: &Theme) {
        draw(frame, at.area, app, self, view, theme);
    }

    fn next_step(&self, app: &App) -> Option<String> {
        next(app, self)
    }

    fn header(&self, app: &App, theme: &Theme, columns: usize) -> Option<[Line<'static>; 2]> {
        Some(header_lines(app, self, theme, columns))
    }
}

/// The two header lines.
fn header_lines(app: &App, screen: &RanksScreen, theme: &Theme, columns: usize) -> [Line<'static>; 2] {
    let dim = |text: String| vec![Span::styled(text, theme.style(Role::Dim))];
    let strong = |text: String| vec![Span::styled(text, theme.style(Role::Title))];
    let mut first = vec![part(0, vec![Span::styled("warpscope", theme.style(Role::Brand))])];
    let mut second = Vec::new();
    if let Some(ranks) = &screen.ranks {
        let mut hosts: Vec<&str> = ranks.digests.iter().filter_map(|d| d.host.as_deref()).collect();
        hosts.sort_unstable();
        hosts.dedup();
        first.push(part(0, strong(ranks.job.size_text())));
        if !hosts.is_empty() {
            first.push(part(2, dim(format!("on {}", units::format_count(hosts.len(), "host")))));
        }
        first.push(part(1, dim(format!("{} matched", units::format_count(ranks.job.matched_count(), "collective")))));
        let worst = ranks.job.ranks.iter().filter(|m| m.clock.by > 0).map(|m| m.clock.uncertainty).max();
        if let Some(worst) = worst {
            first.push(part(3, dim(format!("clocks aligned to {}", format_ns(worst)))));
        }
        let (text, role) = job_verdict(&ranks.job);
        second.push(part(0, vec![Span::styled(cut_end(&text, columns), theme.style(role))]));
    } else {
        first.push(part(0, dim(units::format_count(app.session.reports.len(), "report"))));
    }
    [fit_parts(first, &Span::styled(" · ", theme.style(Role::Faint)), columns), fit_parts(second, &Span::raw("   "), columns)]
}

fn job_verdict(job: &Job) -> (String, Role) {
    match job.findings.first() {
        // The details are below; one line has room for who, how much and why.
        Some(f) if f.id == Verdict::Straggler && !job.stragglers.is_empty() => {
            let why = f.headline.split_once(": ").map_or("", |(_, why)| why);
            let why = why.split(", ").next().unwrap_or_default().trim_end_matches(" than the others");
            (
                format!("rank {} delays the others, up to {:.0}% of the judged time: {why}", job.stragglers[0].rank, f.gain_percent()),
                finding_glyph(f).1,
            )
        }
        Some(f) => (f.headline.clone(), finding_glyph(f).1),
        None => (job.nothing_found(), if job.unknown_because().is_some() { Role::Dim } else { Role::Good }),
    }
}

/// Time breakdown of a rank.
fn time_shares(digest: &Digest, member: &Member, theme: &Theme) -> Vec<Share> {
    let of = |ns: i64| ns as f64 / member.judged.max(1) as f64;
    TimeCategory::ALL
        .into_iter()
        .filter_map(|part| {
            let share = of(digest.parts.get(part as usize).copied().unwrap_or(0));
            (share > 0.0).then(|| Share::of_category(part, part.short_label().to_owned(), share, theme))
        })
        .collect()
}

fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, screen: &RanksScreen, view: &mut View, theme: &Theme) {
    let Some(ranks) = &screen.ranks else {
        let reading = app.session.reports.iter().any(|r| r.is_reading() || (r.is_timeline() && r.triage.is_none()));
        let text = if reading {
            "reading the reports of all ranks …".to_owned()
        } else {
            format!(
                "There are no ranks to compare. No report of this session has the times of a run; `warpscope rank0.sqlite rank1.sqlite` opens those of several ranks. {} goes back.",
                app.session.key_label(ActionId::Back)
            )
        };
        draw_message(frame, area, &text, theme);
        return;
    };
    if let Some(collectives) = &screen.collectives {
        super::ranks_collectives::draw(frame, area, (screen, ranks, collectives), view, theme);
        return;
    }
    let framed = fits_borders(area);
    let mut rest = area;
    let rows = u16::try_from(ranks.job.ranks.len()).unwrap_or(u16::MAX).saturating_add(if framed { 3 } else { 1 });
    let room = area.height.saturating_sub(if framed { BELOW } else { 8 });
    let main = split_top(&mut rest, if rows < room { rows.max(5) } else { room.max(5) });
    let main = if framed {
        let title = vec![Span::styled("Ranks", theme.style(Role::Title)), Span::styled(step_words(screen, ranks), theme.style(Role::Dim))];
        Panel::new(title).focused().draw(frame, main, true, theme)
    } else {
        Rect { x: main.x + 1, width: main.width.saturating_sub(2), ..main }
    };
    draw_list(frame, main, screen, ranks, view, theme);
    draw_below(frame, rest, app, (screen, ranks), framed, theme);
}

fn step_words(screen: &RanksScreen, ranks: &Ranks) -> String {
    match screen.step.and_then(|s| ranks.steps.get(s)) {
        Some((number, _)) => format!("  step {number} of {}", units::format_count(ranks.steps.len(), "step")),
        None if ranks.steps.is_empty() => "  no steps were found".to_owned(),
        None => format!("  {}; the denser, the longer the others wait for the rank", units::format_count(ranks.steps.len(), "step")),
    }
}

/// Steps that a column of the chart covers: one if there are enough columns, otherwise several.
fn step_bucket(column: usize, columns: usize, steps: usize) -> std::ops::Range<usize> {
    if steps <= columns {
        column..(column + 1).min(steps)
    } else {
        column * steps / columns..((column + 1) * steps / columns).max(column * steps / columns + 1)
    }
}

fn draw_list(frame: &mut Frame<'_>, area: Rect, screen: &RanksScreen, ranks: &Ranks, view: &mut View, theme: &Theme) {
    let columns = usize::from(area.width);
    let [heads, rows] = Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).areas(area);
    let several = ranks.digests.iter().any(|d| d.host != ranks.digests[0].host) && columns >= 100;
    let host = if several { HOST } else { 0 };
    let bar = (columns / BAR.1).clamp(BAR.0, 40);
    let fixed = NUMBER + host + bar + 2 + 3 * (TIME + 1) + 2;
    let room = columns.saturating_sub(fixed);
    let heat = if room >= STEPS && !ranks.steps.is_empty() { room } else { 0 };
    let shown = heat.min(ranks.steps.len().max(1));
    // If there are only a few steps, the cells are wide.
    let cell = (heat / shown.max(1)).clamp(1, CELL);
    let at = screen.step.and_then(|s| (0..shown).find(|&c| step_bucket(c, shown, ranks.steps.len()).contains(&s)));
    let mut title = format!("{}{}{}  ", align_left("  rank", NUMBER), align_left("host", host), align_left("", bar));
    for word in ["step", "waiting", "delaying"] {
        let wide = if word == "delaying" { TIME + 1 } else { TIME };
        title.push_str(&align_right(word, wide));
        title.push(' ');
    }
    title.push(' ');
    // The shades are relative to the worst step of all ranks.
    let late = |row: usize, c: usize| {
        let cells = step_bucket(c, shown, ranks.steps.len());
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
    // The scale covers at least a tenth of a step, so that smaller delays get light shades.
    let scale = most.max(usual * 0.1).max(1.0);
    let ascii = view.ascii;
    match at {
        Some(at) => title.extend([&" ".repeat(at * cell), "▼"]),
        None => {
            let full = if ascii { PLAIN[4] } else { SHADES[4] };
            let words = [format!("delays others, by step ({full} {})", format_ns(scale as i64)), "delays others, by step".to_owned()];
            let fitting = words.iter().find(|w| display_width(w) <= heat).unwrap_or(&words[1]);
            title.push_str(&cut_end(fitting, heat));
        }
    }
    table::draw_heads(frame, heads, vec![Head::label_only(title)], view, theme);
    let of = Rows { list: "ranks", count: ranks.job.ranks.len(), selected: screen.selected };
    table::draw_rows(frame, rows, of, view, theme, |row, _| {
        let Some(member) = ranks.job.ranks.get(row) else { return Vec::new() };
        let digest = &ranks.digests[member.digest];
        let straggler = ranks.job.stragglers.iter().any(|s| s.rank == member.rank);
        let name = if straggler { Role::Warn } else { Role::Text };
        let mut spans = vec![
            Span::styled(align_left(&format!("{} {:>3}", if straggler { "›" } else { " " }, member.rank), NUMBER), theme.style(name)),
            Span::styled(
                align_left(&cut_end(&escape_unsafe(digest.host.as_deref().unwrap_or("")), host.saturating_sub(1)), host),
                theme.style(Role::Dim),
            ),
        ];
        let line = stacked_bar(&time_shares(digest, member, theme), bar);
        let wide: usize = line.width();
        spans.extend(line.spans);
        spans.push(Span::raw(" ".repeat(bar.saturating_sub(wide) + 2)));
        let step = member.step.map_or_else(String::new, format_ns);
        spans.push(Span::styled(format!("{} ", align_right(&step, TIME)), theme.style(Role::Text)));
        spans.push(Span::styled(format!("{} ", align_right(&format_ns(member.waited), TIME)), theme.style(Role::Dim)));
        spans.push(Span::styled(format!("{}  ", align_right(&format_ns(member.late), TIME + 1)), theme.style(name)));
        if heat > 0 {
            for c in 0..shown {
                let share = late(row, c) / scale;
                let shade = if share < 0.05 { 0 } else { ((share * 4.0).ceil() as usize).clamp(1, 4) };
                let glyph = if ascii { PLAIN[shade] } else { SHADES[shade] };
                let glyph = if shade == 0 && at == Some(c) { if ascii { "|" } else { "│" } } else { glyph };
                let text = if glyph == "│" || glyph == "|" { align_left(glyph, cell) } else { glyph.repeat(cell) };
                spans.push(Span::styled(text, theme.style(if shade == 0 { Role::Faint } else { Role::Part(TimeCategory::Waiting) })));
            }
        }
        spans
    });
}

/// Draws the findings, the selected rank, and the collectives.
fn draw_below(frame: &mut Frame<'_>, area: Rect, app: &App, (screen, ranks): (&RanksScreen, &Ranks), framed: bool, theme: &Theme) {
    if area.height < 3 {
        return;
    }
    if !framed {
        let inner = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
        let mut lines = legend_of(screen, ranks, usize::from(inner.width), theme);
        let (times, facts) = selected_lines(screen, ranks, usize::from(inner.width), theme);
        lines.extend(times);
        let (mut between, table) = job_lines(ranks, usize::from(inner.width), theme);
        // The advice comes before the facts about the rank's GPU, and a table needs its first row.
        let room = usize::from(inner.height);
        let least = if ranks.job.links.is_empty() { 1 } else { 3 };
        if lines.len() + 1 + between.len() + least <= room {
            between.extend(table);
        }
        let (before, after) = if lines.len() + facts.len() + 1 + between.len() <= room { (facts, Vec::new()) } else { (Vec::new(), facts) };
        lines.extend(before);
        if lines.len() + 2 < room {
            lines.push(Line::default());
            lines.extend(between);
        }
        lines.extend(after);
        super::panel::draw_lines(frame, inner, lines);
        return;
    }
    let halves = Layout::horizontal([Constraint::Percentage(50), Constraint::Percentage(50)]);
    let width = usize::from(halves.split(area)[0].width.saturating_sub(4));
    let mut own = legend_of(screen, ranks, width, theme);
    let (times, facts) = selected_lines(screen, ranks, width, theme);
    own.extend(times.into_iter().chain(facts));
    let (mut between, table) = job_lines(ranks, width, theme);
    between.extend(table);
    let mut rest = area;
    let tall = u16::try_from(own.len().max(between.len()) + 2).unwrap_or(u16::MAX);
    let room = tall.saturating_add(ranks_steps::LEAST) <= area.height;
    let [side, main] = halves.areas(split_top(&mut rest, if room { tall } else { area.height }));
    let title = screen.selected_member().map_or_else(String::new, |m| format!("Rank {}", m.rank));
    let at = super::panel::draw_panel(frame, side, vec![Span::styled(title, theme.style(Role::Title))], true, theme);
    super::panel::draw_lines(frame, at, own);
    let at = super::panel::draw_panel(frame, main, vec![Span::styled("Between ranks", theme.style(Role::Title))], true, theme);
    super::panel::draw_lines(frame, at, between);
    if room {
        ranks_steps::draw(frame, rest, app, screen, ranks, theme);
    }
}

fn legend_of(screen: &RanksScreen, ranks: &Ranks, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let Some(member) = screen.selected_member() else { return Vec::new() };
    share_legend(&time_shares(&ranks.digests[member.digest], member, theme), columns, 2, theme.style(Role::Dim), theme)
}

/// Maximum number of rank pairs listed.
const PAIRS: usize = 5;
/// Width of a key.
const KEY: usize = 12;

/// Maximum number of lines of a value.
const MOST: usize = 3;

/// A key and its value, wrapped into several lines; only the first line has the key.
fn pair_lines(key: &str, value: &str, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let line = |(at, text): (usize, String)| {
        let key = if at == 0 { key } else { "" };
        Line::from(vec![Span::styled(align_left(key, KEY), theme.style(Role::Dim)), Span::styled(text, theme.style(Role::Text))])
    };
    let columns = columns.saturating_sub(KEY);
    let mut lines = wrap_text(&escape_unsafe(value), columns);
    if lines.len() > MOST {
        let rest = lines.split_off(MOST - 1).join(" ");
        lines.push(cut_end(&rest, columns));
    }
    lines.into_iter().enumerate().map(line).collect()
}

/// Times of the selected rank, and facts about where it ran.
fn selected_lines(screen: &RanksScreen, ranks: &Ranks, columns: usize, theme: &Theme) -> (Vec<Line<'static>>, Vec<Line<'static>>) {
    let Some(member) = screen.selected_member() else { return (Vec::new(), Vec::new()) };
    let digest = &ranks.digests[member.digest];
    let mut out = Vec::new();
    let mut put = |key: &str, value: &str| out.extend(pair_lines(key, value, columns, theme));
    if let (Some(step), Some(cell)) = (screen.step, screen.selected_cell()) {
        let parts =
            format!("kernels {}, collectives alone {}, idle {}", format_ns(cell.compute), format_ns(cell.exposed), format_ns(cell.idle));
        put(&format!("step {}", ranks.steps[step].0), &format!("{}: {parts}", format_ns(cell.length)));
        put("delaying", &format!("{} in this step", format_ns(cell.late)));
    }
    let of = u32::try_from(member.digest).unwrap_or(u32::MAX);
    let worst = ranks.job.waits.pairs.iter().filter(|((waiter, _), ns)| *waiter == of && **ns > 0).max_by_key(|w| *w.1);
    if let Some((&(_, other), &time)) = worst {
        put("waits", &format!("{} for rank {}, {} in all", format_ns(time), ranks.job.rank_number(other), format_ns(member.waited)));
    }
    if let Some(finding) = digest.findings.first() {
        put("alone", &format!("{}: {}", finding.id, finding.headline));
    }
    let mut facts = Vec::new();
    let mut put = |key: &str, value: &str| facts.extend(pair_lines(key, value, columns, theme));
    let gpu = [digest.host.clone(), digest.device.map(|d| format!("GPU {d}")), digest.device_name.clone()];
    let mut gpu: Vec<String> = gpu.into_iter().flatten().collect();
    // A device without a known name is called by its number.
    gpu.dedup();
    if !gpu.is_empty() {
        put("ran on", &gpu.join(", "));
    }
    if member.clock.by > 0 {
        let clock = member.clock;
        let off =
            if clock.offset < 0 { format!("{} behind", format_ns(-clock.offset)) } else { format!("{} ahead of", format_ns(clock.offset)) };
        put("clock", &format!("{off} the common one, ±{}; drift {:+.2} ppm", format_ns(clock.uncertainty), clock.drift * 1e6));
    }
    let name = digest.file.rsplit('/').next().unwrap_or(&digest.file);
    put("report", &cut_middle(&escape_unsafe(name), columns.saturating_sub(KEY)));
    (out, facts)
}

/// Lines about the ranks together: the first finding with its remedy, and the tables of collectives and waits.
fn job_lines(ranks: &Ranks, columns: usize, theme: &Theme) -> (Vec<Line<'static>>, Vec<Line<'static>>) {
    let job = &ranks.job;
    let (mut advice, mut out) = (Vec::new(), Vec::new());
    let (short, role) = job_verdict(job);
    let text = job.findings.first().map_or(short, |f| f.headline.clone());
    advice.extend(wrap_text(&escape_unsafe(&text), columns).into_iter().map(|l| Line::styled(l, theme.style(role))));
    for action in job.findings.first().iter().flat_map(|f| f.actions.iter().take(1)) {
        advice.extend(wrap_text(action, columns).into_iter().map(|l| Line::styled(l, theme.style(Role::Text))));
    }
    let bus_columns = if job.links.iter().any(|l| l.bus.is_some()) { 12 } else { 0 };
    if !job.links.is_empty() {
        out.push(Line::default());
        let title = format!(
            "{}{}{}{}{}",
            align_left("collective", 16),
            align_right("ranks", 6),
            align_right("count", 8),
            align_right("last rank", 10),
            align_right(if bus_columns > 0 { "bus" } else { "" }, bus_columns)
        ) + if job.links.iter().any(|l| l.bus.is_some() && l.peak.is_some()) { "  link" } else { "" };
        out.push(Line::styled(cut_end(&title, columns), theme.style(Role::Dim)));
    }
    for link in job.links.iter().take(5) {
        let bus = link.bus.map_or_else(String::new, |b| format!("{:.0} GB/s", b / 1e9));
        let share = link
            .bus
            .zip(link.peak)
            .map_or_else(String::new, |(b, (peak, _))| format!("{:>6}", units::format_whole_percent(b / peak * 100.0)));
        let size = link.bytes.map_or_else(String::new, |b| format!("  {}{}", if link.uniform { "each " } else { "mostly " }, Bytes(b)));
        let count = units::format_grouped(link.count);
        let text = format!(
            "{}{}{}{}{}{share}",
            align_left(link.kind, 16),
            align_right(&link.size.to_string(), 6),
            align_right(&count, 8),
            align_right(&format_ns(link.time), 10),
            align_right(&bus, bus_columns)
        );
        let size = if display_width(&text) + display_width(&size) <= columns { size } else { String::new() };
        out.push(Line::styled(cut_end(&format!("{text}{size}"), columns), theme.style(Role::Text)));
    }
    let mut pairs: Vec<((u32, u32), i64)> = job.waits.pairs.iter().map(|(&p, &ns)| (p, ns)).filter(|p| p.1 > 0).collect();
    pairs.sort_by_key(|p| (std::cmp::Reverse(p.1), p.0));
    if !pairs.is_empty() {
        out.push(Line::default());
    }
    for ((waiter, other), time) in pairs.into_iter().take(PAIRS) {
        let text = format!("rank {} waits {} for rank {}", job.rank_number(waiter), format_ns(time), job.rank_number(other));
        out.push(Line::styled(cut_end(&text, columns), theme.style(Role::Text)));
    }
    let remarks = job.told.source_remark().into_iter().map(str::to_owned).chain(job.remarks.iter().cloned());
    for remark in remarks {
        out.extend(wrap_text(&escape_unsafe(&remark), columns).into_iter().map(|l| Line::styled(l, theme.style(Role::Dim))));
    }
    (advice, out)
}

/// Suggested next step.
fn next(app: &App, screen: &RanksScreen) -> Option<String> {
    let ranks = screen.ranks.as_ref()?;
    let key = |id| app.session.key_link(id);
    let member = screen.selected_member()?;
    if ranks.job.ranks.len() < 2 {
        return Some(format!("{} opens the reports of the other ranks: only one rank is open", key(ActionId::OpenFile)));
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
