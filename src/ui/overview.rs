//! What limits the run: the verdict, where the time went, findings, and the kernels with the most time.

use super::text::{bar, left, right, wrap};
use super::view::View;
use super::{Role, Theme};
use crate::analysis::labels::{cut_end, cut_middle, width};
use crate::analysis::triage::{Device, Finding, Part, PlaceKind, Severity, Triage};
use crate::app::screens::overview::{self, KERNELS};
use crate::app::{ActionId, App, Mouse, OverviewScreen, Report};
use crate::model::text::clean;
use crate::model::{Nanos, units};
use crate::report::triage as say;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, BorderType};

/// Rows from which panels have borders.
const BORDERED: u16 = 28;
/// Columns from which the selected finding stands beside the list.
const BESIDE: u16 = 110;
/// Devices that are drawn one by one.
const DEVICES: usize = 4;

/// The glyph and the role of a severity.
fn mark(severity: Severity) -> (&'static str, Role) {
    match severity {
        Severity::Healthy => ("✓", Role::Good),
        Severity::Low => ("·", Role::Dim),
        Severity::Medium => ("△", Role::Warn),
        Severity::High => ("▲", Role::Bad),
    }
}

/// A panel: with a border and a title, or, where room is short, with a heading. Gives its inside.
fn panel(frame: &mut Frame<'_>, area: Rect, title: Vec<Span<'static>>, bordered: bool, theme: &Theme) -> Rect {
    if bordered {
        let mut spans = vec![Span::raw(" ")];
        spans.extend(title);
        spans.push(Span::raw(" "));
        let block = Block::bordered().border_type(BorderType::Rounded).border_style(theme.style(Role::Border)).title(Line::from(spans));
        let inner = block.inner(area);
        frame.render_widget(block, area);
        return Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
    }
    let inner = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    frame.render_widget(Line::from(title), Rect { height: 1.min(inner.height), ..inner });
    Rect { y: inner.y + 1, height: inner.height.saturating_sub(1), ..inner }
}

/// Takes rows from the top of an area.
fn take(area: &mut Rect, rows: u16) -> Rect {
    let rows = rows.min(area.height);
    let out = Rect { height: rows, ..*area };
    area.y += rows;
    area.height -= rows;
    out
}

fn lines(frame: &mut Frame<'_>, area: Rect, lines: Vec<Line<'static>>) {
    frame.render_widget(Text::from(lines), area);
}

/// Columns that a kernel's name has at least.
const NAME: usize = 20;

/// Draws the screen.
pub fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, screen: &OverviewScreen, view: &mut View, theme: &Theme) {
    let Some(report) = app.report() else { return };
    let Some(triage) = overview::known(report) else {
        waiting(frame, area, app, report, theme);
        return;
    };
    let bordered = area.height >= BORDERED;
    let edge = if bordered { 2 } else { 1 };
    let mut rest = area;
    let columns = usize::from(area.width.saturating_sub(4));
    verdict(frame, &mut rest, triage, columns, bordered, theme);
    let time = time_lines(triage, columns, rest.height, view.ascii, theme);
    let height = u16::try_from(time.len()).unwrap_or(0) + edge;
    let title = vec![
        Span::styled("Where the time went", theme.style(Role::Title)),
        Span::styled(format!("  {}", say::judged_line(triage)), theme.style(Role::Dim)),
    ];
    let inner = panel(frame, take(&mut rest, height), title, bordered, theme);
    lines(frame, inner, time);
    let findings = u16::try_from(triage.findings.len()).unwrap_or(u16::MAX);
    let kernels = u16::try_from(triage.kernels.len().min(KERNELS)).unwrap_or(0).min(3);
    let beside = area.width >= BESIDE && bordered;
    let (mut list, detail) = if beside {
        let width = (area.width * 9 / 20).max(52);
        (Rect { width, ..rest }, Some(Rect { x: rest.x + width, width: rest.width - width, ..rest }))
    } else {
        (rest, None)
    };
    // Kernels keep their place at the bottom; findings give way.
    let kernel_rows = if kernels > 0 { kernels + edge } else { 0 };
    let room = list.height.saturating_sub(kernel_rows).max(edge + 1);
    // Beside the details the list has room for what was not recorded.
    let remarks = if bordered { missing_lines(triage, usize::from(list.width.saturating_sub(6)), theme) } else { Vec::new() };
    let remark_rows = u16::try_from(remarks.len()).unwrap_or(0);
    let wanted = (findings + edge + remark_rows).min(room);
    let title = vec![Span::styled("Findings", theme.style(Role::Title))];
    let inner = panel(frame, take(&mut list, wanted), title, bordered, theme);
    let shown = inner.height.saturating_sub(remark_rows).max(1);
    finding_rows(frame, Rect { height: shown.min(inner.height), ..inner }, triage, screen.selected, view, theme);
    lines(frame, Rect { y: inner.y + shown, height: inner.height.saturating_sub(shown), ..inner }, remarks);
    if kernels > 0 && list.height > edge {
        let title = vec![Span::styled("Kernels", theme.style(Role::Title)), families(triage, usize::from(list.width), theme)];
        // Beside the details they have what is left of the column; without borders no more than three.
        let all = u16::try_from(triage.kernels.len().min(KERNELS)).unwrap_or(0) + edge;
        let wanted = if beside {
            list.height
        } else if bordered || list.height > all + 8 {
            kernel_rows
        } else {
            all
        };
        let inner = panel(frame, take(&mut list, wanted), title, bordered, theme);
        kernel_lines(frame, inner, report, triage, screen.selected, view, theme);
    }
    let selected = triage.findings.get(screen.selected);
    let below = (!beside && list.height > 6).then_some(list);
    if let (Some(area), Some(finding)) = (detail.or(below), selected.or_else(|| triage.findings.first())) {
        let (glyph, role) = mark(finding.severity);
        let title = vec![Span::styled(format!("{glyph} {}", finding.id.id()), theme.style(role))];
        let inner = panel(frame, area, title, bordered, theme);
        let text = details(finding, triage.window.0, usize::from(inner.width), theme);
        lines(frame, inner, text);
    }
}

/// What is said before anything is known.
fn waiting(frame: &mut Frame<'_>, area: Rect, app: &App, report: &Report, theme: &Theme) {
    let table = app.session.key(ActionId::Kernels);
    let text = match (&report.triage, report.reading()) {
        (Some(None), _) => format!("Nothing ran on a GPU in this report, or it has no times. {table} goes to the table of kernels."),
        (_, true) => format!("The report is being read; {table} goes to the table of kernels, which is there already."),
        _ => "Working out what limits the run …".to_owned(),
    };
    let columns = usize::from(area.width.saturating_sub(8)).clamp(20, 90);
    let text: Vec<Line<'_>> = wrap(&text, columns).into_iter().map(|l| Line::styled(l, theme.style(Role::Dim))).collect();
    let area =
        Rect { x: area.x + 4, y: area.y + area.height / 3, width: area.width.saturating_sub(8), height: area.height - area.height / 3 };
    frame.render_widget(Text::from(text), area);
}

fn verdict(frame: &mut Frame<'_>, rest: &mut Rect, triage: &Triage, columns: usize, bordered: bool, theme: &Theme) {
    let Some(finding) = triage.verdict() else { return };
    let (glyph, role) = mark(finding.severity);
    let healthy = finding.severity == Severity::Healthy || finding.stake == 0.0;
    let gain = if healthy { String::new() } else { format!("  up to {:.0}% of the window", finding.percent()) };
    let sure = format!("  {}", finding.sure.word());
    let title = vec![
        Span::styled(format!("{glyph} {}", finding.id.id()), theme.style(role)),
        Span::styled(gain, theme.style(Role::Title)),
        Span::styled(sure, theme.style(Role::Dim)),
    ];
    let text: Vec<Line<'static>> =
        wrap(&clean(&finding.headline), columns).into_iter().take(3).map(|l| Line::styled(l, theme.style(Role::Text))).collect();
    let height = u16::try_from(text.len()).unwrap_or(1) + if bordered { 2 } else { 1 };
    let inner = panel(frame, take(rest, height), title, bordered, theme);
    lines(frame, inner, text);
}

/// Bars of the devices with their legend, and the run as a strip.
fn time_lines(triage: &Triage, columns: usize, room: u16, ascii: bool, theme: &Theme) -> Vec<Line<'static>> {
    let several = triage.devices.len() > 1;
    let length = triage.length().max(1) as f64;
    let mut out = Vec::new();
    let numbers: std::collections::BTreeSet<Option<u32>> = triage.devices.iter().map(|d| d.number).collect();
    let shared = numbers.len() < triage.devices.len();
    let label = match (shared, several) {
        (true, _) => 15,
        (false, true) => 8,
        _ => 0,
    };
    for device in triage.devices.iter().take(if room < 16 { 1 } else { DEVICES }) {
        let mut spans = Vec::new();
        if several {
            spans.push(Span::styled(left(&device_name(device, shared), label), theme.style(Role::Dim)));
        }
        let shares: Vec<(Part, f64)> = device.parts.iter().map(|(p, ns)| (*p, *ns as f64 / length)).collect();
        spans.extend(stacked(&shares, columns.saturating_sub(label), theme));
        out.push(Line::from(spans));
    }
    if triage.devices.len() > DEVICES {
        let more = triage.devices.len() - DEVICES;
        out.push(Line::styled(format!("… and {} more", units::count(more, "device")), theme.style(Role::Dim)));
    }
    out.extend(legend(triage, columns, ascii, theme));
    if room >= 14 {
        out.extend(strip(triage, columns, ascii, theme));
    }
    out
}

fn device_name(device: &Device, shared: bool) -> String {
    match (device.number, device.pid) {
        (Some(n), Some(pid)) if shared => format!("GPU {n} {pid}"),
        (Some(n), _) => format!("GPU {n}"),
        (None, Some(pid)) => format!("process {pid}"),
        _ => "GPU".to_owned(),
    }
}

/// One bar of parts: each as wide as its share, with its name in it where there is room.
fn stacked(shares: &[(Part, f64)], columns: usize, theme: &Theme) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    let (mut done, mut sum) = (0, 0.0);
    let there: Vec<&(Part, f64)> = shares.iter().filter(|s| s.1 > 0.0005).collect();
    for (at, (part, share)) in there.iter().enumerate() {
        sum += share;
        let end = if at + 1 == there.len() { columns } else { (sum * columns as f64).round() as usize };
        let wide = end.saturating_sub(done);
        if wide == 0 {
            continue;
        }
        done = end;
        let percent = format!("{:.0}%", share * 100.0);
        let text = [format!(" {} {percent} ", part.short()), format!(" {percent} ")].into_iter().find(|t| width(t) <= wide);
        let style = theme.style(Role::Part(*part));
        spans.extend(filled(text.unwrap_or_default(), wide, style, at));
    }
    spans
}

/// A text on a ground of a colour; without colours grounds alternate.
fn filled(text: String, columns: usize, style: Style, at: usize) -> Vec<Span<'static>> {
    let blank = columns - width(&text).min(columns);
    let plain = style.fg.is_none();
    if plain && at % 2 == 1 {
        // Not reversed like its neighbours: drawn as a shade.
        return vec![Span::styled(text, style), Span::styled("░".repeat(blank), style)];
    }
    vec![Span::styled(format!("{text}{}", " ".repeat(blank)), style.add_modifier(Modifier::REVERSED))]
}

const LEGEND: usize = 38;

/// Every part that there is, with its time and share over all devices.
fn legend(triage: &Triage, columns: usize, ascii: bool, theme: &Theme) -> Vec<Line<'static>> {
    let devices = triage.devices.len().max(1) as f64;
    let there: Vec<(Part, f64, f64)> = Part::ALL
        .into_iter()
        .map(|p| (p, triage.devices.iter().map(|d| d.parts[p as usize].1).sum::<i64>() as f64 / devices, triage.percent(p)))
        .filter(|p| p.1 > 0.0)
        .collect();
    let across = (columns / LEGEND).clamp(1, 5).min(there.len().max(1));
    let down = there.len().div_ceil(across);
    let wide = columns / across;
    (0..down)
        .map(|row| {
            let cell = |(part, ns, percent): &(Part, f64, f64)| {
                let style = theme.style(Role::Part(*part));
                let name = if part.idle() { format!("idle: {}", part.short()) } else { part.short().to_owned() };
                vec![
                    Span::styled(format!("{} ", glyph(*part, "■", ascii, theme)), style),
                    Span::styled(left(&name, wide.saturating_sub(2 + 9 + 6 + 2).min(22)), theme.style(Role::Text)),
                    Span::styled(right(&units::human_percent(*percent), 6), theme.style(Role::Title)),
                    Span::styled(right(&Nanos::human(*ns), 9), theme.style(Role::Dim)),
                ]
            };
            let mut spans = Vec::new();
            for entry in there.iter().skip(row).step_by(down) {
                let mut cell = cell(entry);
                let used: usize = cell.iter().map(|s| width(&s.content)).sum();
                cell.push(Span::raw(" ".repeat(wide.saturating_sub(used))));
                spans.extend(cell);
            }
            Line::from(spans)
        })
        .collect()
}

/// What stands for a part: a block of its colour, or, where there are no colours or no blocks, its letter.
fn glyph(part: Part, block: &'static str, ascii: bool, theme: &Theme) -> &'static str {
    if ascii || theme.style(Role::Part(part)).fg.is_none() { part.letter() } else { block }
}

/// How busy the devices were over the window; steps as ticks below it.
fn strip(triage: &Triage, columns: usize, ascii: bool, theme: &Theme) -> Vec<Line<'static>> {
    const LEVELS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
    const LABEL: usize = 6;
    let wide = columns.saturating_sub(LABEL).max(1);
    let slices = &triage.strip;
    if slices.is_empty() {
        return Vec::new();
    }
    let mean = |from: usize, to: usize| {
        let part = &slices[from.min(slices.len() - 1)..to.clamp(from + 1, slices.len()).max(from.min(slices.len() - 1) + 1)];
        part.iter().sum::<f32>() / part.len() as f32
    };
    let text: String = (0..wide)
        .map(|x| {
            let share = mean(x * slices.len() / wide, (x + 1) * slices.len() / wide);
            LEVELS[if share > 0.0 { ((share * 8.0).round() as usize).clamp(1, 8) } else { 0 }]
        })
        .collect();
    let mut out = vec![Line::from(vec![
        Span::styled(left("busy", LABEL), theme.style(Role::Dim)),
        Span::styled(text, theme.style(Role::Part(Part::Kernels))),
    ])];
    if triage.why.iter().any(Option::is_some) {
        // Of each column the cause of most of its slices.
        let cause = |x: usize| {
            let (from, to) = (x * slices.len() / wide, ((x + 1) * slices.len() / wide).max(x * slices.len() / wide + 1));
            let part = &triage.why[from.min(triage.why.len() - 1)..to.min(triage.why.len()).max(from.min(triage.why.len() - 1) + 1)];
            part.iter().flatten().max_by_key(|p| part.iter().flatten().filter(|q| q == p).count()).copied()
        };
        let mut spans = vec![Span::styled(left("idle", LABEL), theme.style(Role::Dim))];
        spans.extend((0..wide).map(|x| match cause(x) {
            Some(part) => Span::styled(glyph(part, "▀", ascii, theme), theme.style(Role::Part(part))),
            None => Span::raw(" "),
        }));
        out.push(Line::from(spans));
    }
    // More steps than every third column are no ticks.
    if !triage.steps.is_empty() && triage.steps.len() * 3 <= wide {
        let length = triage.length().max(1) as f64;
        let mut ticks = vec![' '; wide];
        for step in &triage.steps {
            let at = ((step.start - triage.window.0) as f64 / length * wide as f64) as usize;
            ticks[at.min(wide - 1)] = '╵';
        }
        out.push(Line::from(vec![
            Span::styled(left("steps", LABEL), theme.style(Role::Dim)),
            Span::styled(ticks.into_iter().collect::<String>(), theme.style(Role::Faint)),
        ]));
    }
    out
}

fn select(frame: &mut Frame<'_>, rect: Rect, at: usize, selected: usize, view: &mut View, theme: &Theme) {
    view.hits.push((rect, Mouse::Row(at)));
    if at == selected {
        frame.buffer_mut().set_style(rect, theme.style(Role::Selected));
    }
}

fn finding_rows(frame: &mut Frame<'_>, area: Rect, triage: &Triage, selected: usize, view: &mut View, theme: &Theme) {
    if triage.findings.is_empty() {
        frame.render_widget(Line::styled("nothing stands out", theme.style(Role::Dim)), area);
        return;
    }
    let top = view.scrolled("overview", selected.min(triage.findings.len() - 1), triage.findings.len(), area.height.into());
    for (y, (at, f)) in (0..area.height).zip(triage.findings.iter().enumerate().skip(top)) {
        let (glyph, role) = mark(f.severity);
        let room = usize::from(area.width).saturating_sub(3 + 2 + 19 + 5 + 2);
        let spans = vec![
            Span::styled(format!("{} ", right(&(at + 1).to_string(), 2)), theme.style(Role::Faint)),
            Span::styled(format!("{glyph} "), theme.style(role)),
            Span::styled(left(f.id.id(), 19), theme.style(role)),
            Span::styled(right(&format!("{:.0}%", f.percent()), 4), theme.style(Role::Title)),
            Span::styled(format!("  {}", cut_end(&clean(&f.headline), room)), theme.style(Role::Text)),
        ];
        let rect = Rect { y: area.y + y, height: 1, ..area };
        frame.render_widget(Line::from(spans), rect);
        select(frame, rect, at, selected, view, theme);
    }
}

/// What was not recorded and would have told more.
fn missing_lines(triage: &Triage, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut out = Vec::new();
    for text in &triage.missing {
        out.push(Line::default());
        out.extend(wrap(&clean(text), columns).into_iter().map(|l| Line::styled(l, theme.style(Role::Dim))));
    }
    out
}

/// Shares of kernel time by family.
fn families(triage: &Triage, columns: usize, theme: &Theme) -> Span<'static> {
    let total: i64 = triage.families.iter().map(|f| f.1).sum();
    let shown: Vec<String> = triage
        .families
        .iter()
        .take(4)
        .map(|(family, ns)| format!("{} {:.0}%", family.word(), *ns as f64 / total.max(1) as f64 * 100.0))
        .collect();
    let text = if shown.is_empty() { String::new() } else { format!("  by name: {}", shown.join(" · ")) };
    Span::styled(cut_end(&text, columns.saturating_sub(14)), theme.style(Role::Dim))
}

fn kernel_lines(frame: &mut Frame<'_>, area: Rect, report: &Report, triage: &Triage, selected: usize, view: &mut View, theme: &Theme) {
    let Some(profile) = &report.profile else { return };
    let total: i64 = triage.kernels.iter().map(|k| k.1).sum();
    let most = triage.kernels.first().map_or(1, |k| k.1).max(1);
    let wide = usize::from(area.width);
    let shown = triage.kernels.len().min(KERNELS);
    let at = selected.saturating_sub(triage.findings.len()).min(shown.saturating_sub(1));
    let top = view.scrolled("overview kernels", at, shown, area.height.into());
    // The first hint of each kernel's longest result, where ncu measured one.
    let hint = |function: &str| {
        let row = report.groups.grouping.as_ref()?.rows.iter().position(|r| r.name == function)?;
        report.diagnosed.get(&row).map(|h| h.id.id())
    };
    let function = |kernel: u32| profile.kernels.get(kernel as usize);
    let listed = || triage.kernels.iter().take(KERNELS).filter_map(|k| Some((k, function(k.0)?)));
    let hinted = listed().filter_map(|(_, k)| hint(k.function())).map(width).max().map_or(0, |w| w + 2);
    // What matters less goes first where a name has no room.
    let room = wide.saturating_sub(3 + 9 + 5);
    let columns = [(9, 9, hinted), (0, 9, hinted), (0, 0, hinted), (0, 0, 0)];
    let (counts, times, hints) = columns.into_iter().find(|c| room >= NAME + c.0 + c.1 + c.2).unwrap_or_default();
    let name = room.saturating_sub(counts + times + hints);
    for (y, (at, ((_, ns, count), k))) in (0..area.height).zip(listed().enumerate().skip(top)) {
        let style = theme.family(crate::analysis::Family::guess(k.function(), k.demangled()));
        let percent = format!("{:.0}%", *ns as f64 / total.max(1) as f64 * 100.0);
        let number = format!("×{}", units::grouped(i64::try_from(*count).unwrap_or(i64::MAX)));
        let mut spans = vec![
            Span::raw("  "),
            Span::styled(left(&cut_middle(&clean(k.function()), name), name), theme.style(Role::Text)),
            Span::raw(" "),
        ];
        spans.extend(bar(*ns as f64 / most as f64, 8, style, theme));
        spans.push(Span::styled(right(&percent, 6), theme.style(Role::Title)));
        spans.push(Span::styled(right(&Nanos(*ns).to_string(), times), theme.style(Role::Text)));
        spans.push(Span::styled(right(&number, counts), theme.style(Role::Dim)));
        let hint = hint(k.function()).map_or_else(String::new, |h| format!("  {h}"));
        spans.push(Span::styled(left(&hint, hints), theme.style(Role::Text)));
        let rect = Rect { y: area.y + y, height: 1, ..area };
        frame.render_widget(Line::from(spans), rect);
        select(frame, rect, triage.findings.len() + at, selected, view, theme);
    }
}

/// All about a finding: its numbers, places, remedies, and what would confirm it.
#[must_use]
pub fn details(f: &Finding, begin: i64, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut out: Vec<Line<'static>> = Vec::new();
    let (text, dim) = (theme.style(Role::Text), theme.style(Role::Dim));
    let put = |out: &mut Vec<Line<'static>>, first: &str, style: Style, what: &str| {
        let indent = width(first);
        for (i, line) in wrap(&clean(what), columns.saturating_sub(indent).max(20)).into_iter().enumerate() {
            let lead = if i == 0 { first.to_owned() } else { " ".repeat(indent) };
            out.push(Line::from(vec![Span::styled(lead, dim), Span::styled(line, style)]));
        }
    };
    let head = |out: &mut Vec<Line<'static>>, word: &'static str| {
        if !out.is_empty() {
            out.push(Line::default());
        }
        out.push(Line::styled(word, theme.style(Role::Head)));
    };
    put(&mut out, "", text, &f.headline);
    if !f.bound.is_empty() {
        put(&mut out, "at most: ", dim, &f.bound);
    }
    head(&mut out, "What to do");
    for (n, action) in (1..).zip(&f.actions) {
        put(&mut out, &format!("{n} "), text, action);
    }
    if !f.evidence.is_empty() {
        head(&mut out, "Evidence");
        for e in &f.evidence {
            let than = e.threshold.map_or_else(String::new, |(op, v)| format!("  ({op} {})", say::value(v, e.unit)));
            let value = say::value(e.value, e.unit);
            let name = columns.saturating_sub(12 + width(&than)).min(58);
            out.push(Line::from(vec![
                Span::styled(left(&cut_end(&clean(&e.name), name), name), dim),
                Span::styled(right(&value, 11), theme.style(Role::Title)),
                Span::styled(than, dim),
            ]));
        }
    }
    if !f.places.is_empty() {
        head(&mut out, "Where");
        for p in &f.places {
            put(&mut out, "", text, &say::place(p, begin));
        }
    }
    if !f.effects.is_empty() {
        head(&mut out, "It brings about");
        for (id, headline) in &f.effects {
            put(&mut out, "", text, &format!("{}: {headline}", id.id()));
        }
    }
    if let Some(c) = &f.confirm {
        head(&mut out, "To confirm");
        put(&mut out, "", dim, &c.why);
        put(&mut out, "  ", text, &crate::rerun::shell::line(&c.argv));
    }
    out
}

/// What to do next.
#[must_use]
pub fn next(app: &App, screen: &OverviewScreen) -> Option<String> {
    let triage = overview::known(app.report()?)?;
    let key = |id| app.session.key(id);
    let (open, details) = (key(ActionId::Open), key(ActionId::Details));
    Some(match overview::row(triage, screen.selected)? {
        overview::Row::Finding(f) => {
            let action = f.actions.first().map_or("", |a| a.trim_end_matches('.'));
            let place = f.places.iter().find(|p| matches!(p.kind, PlaceKind::Range | PlaceKind::Operator | PlaceKind::Kernel));
            let to = place.map_or_else(|| "the kernels".to_owned(), |p| cut_middle(&clean(&p.name), 32));
            format!("{open} goes to {to}, {details} shows the evidence. {action}")
        }
        overview::Row::Kernel(_) => format!("{open} goes to this kernel in the table"),
    })
}
