//! Details of the selected group: full name, launch configuration, limiting factor, and ranges.

use super::panel::Panel;
use super::text::wrap_text;
use super::view::View;
use super::widgets::key_value_lines;
use super::{Role, Theme};
use crate::analysis::kernel_group_detail::{Counted, Detail};
use crate::analysis::triage::copy_class::CopyClass;
use crate::analysis::triage::device_ops::blit_class;
use crate::analysis::{Family, Occupancy};
use crate::app::screen::Selection;
use crate::app::screens::Kind;
use crate::app::{ActionId, App, LaunchesScreen, OverlayKind, Page, Report};
use crate::model::terms::Terms;
use crate::model::text::escape_unsafe;
use crate::model::{Device, Kernel, KernelId, Nanos, Profile, Vendor, units};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders};

/// Maximum number of configurations and ranges listed; the rest are only counted.
const LISTED: usize = 6;

/// Draws the pane, either to the right of the table with charts, or below it in two columns.
pub fn draw(frame: &mut Frame<'_>, area: Rect, (below, bordered): (bool, bool), app: &App, view: &mut View, theme: &Theme) {
    let (Some(report), Some(screen)) = (app.report(), app.top_entry().map(|e| e.id)) else { return };
    let whole = pane_title(app, report, screen).map(|t| escape_unsafe(&t).into_owned()).unwrap_or_default();
    let name = crate::analysis::labels::cut_middle(&whole, usize::from(area.width.saturating_sub(6)));
    let uncut = name == whole;
    let reading = app.session.reading;
    let inner = if bordered {
        // The panel's border is drawn later, when the number of lines is known.
        Rect { x: area.x + 2, y: area.y + 1, width: area.width.saturating_sub(4), height: area.height.saturating_sub(2) }
    } else {
        let border = theme.style(if reading.is_some() { Role::Key } else { Role::Border });
        let block = Block::new().borders(if below { Borders::TOP } else { Borders::LEFT }).border_style(border);
        let inner = block.inner(area);
        frame.render_widget(block, area);
        Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner }
    };
    let columns = usize::from(inner.width);
    let half = if below { columns / 2 - 1 } else { columns };
    let mut all = Vec::new();
    if app.entry(screen).is_some_and(|e| LaunchesScreen::of(&e.open).is_none())
        && let Some(row) = shown_row(app, report, screen)
    {
        all = super::preview::lines(app, report, row, half, theme);
    } else if let Some(launch) = app.selection(screen).launch {
        all = super::preview::of_launch(app, report, launch, half, theme);
    }
    let mut rest = lines(app, report, screen, half, theme);
    // The title already shows the full name.
    if (bordered || !below) && uncut && rest.first().is_some_and(|l| l.to_string() == whole) {
        rest.remove(0);
    }
    if !all.is_empty() && !rest.is_empty() {
        all.push(Line::default());
    }
    all.extend(rest);
    if all.is_empty() {
        all.push(Line::styled("nothing is selected", theme.style(Role::Dim)));
    } else if !bordered && !below {
        all.splice(0..0, [Line::styled(name.clone(), theme.style(Role::Title)), Line::default()]);
    }
    let height = usize::from(inner.height);
    let room = if below { height * 2 } else { height };
    view.most_scroll = all.len().saturating_sub(room);
    let from = reading.unwrap_or(0).min(view.most_scroll);
    if bordered {
        let more = view.most_scroll - from;
        let note = match (more, reading) {
            (0, _) => Vec::new(),
            (_, Some(_)) => vec![Span::styled(format!("{more} more lines"), theme.style(Role::Dim))],
            (_, None) => {
                let key = Span::styled(app.session.key_label(ActionId::Focus), theme.style(Role::Key));
                vec![key, Span::styled(format!(" {more} more lines"), theme.style(Role::Dim))]
            }
        };
        let title = vec![Span::styled(name.clone(), theme.style(Role::Title))];
        Panel::new(title).note(note).with_focus(reading.is_some()).draw(frame, area, true, theme);
    }
    let all = all.into_iter().skip(from);
    if !below {
        super::panel::draw_lines(frame, inner, all.take(height).collect());
        return;
    }
    for (i, line) in all.take(height * 2).enumerate() {
        let x = if i < height { inner.x } else { inner.x + inner.width / 2 + 1 };
        let y = inner.y + u16::try_from(i % height).unwrap_or(0);
        frame.render_widget(line, Rect { x, y, width: u16::try_from(half).unwrap_or(inner.width), height: 1 });
    }
}

/// Row shown in the pane. While the cursor moves, the pane keeps the row and name from where the cursor last rested.
fn shown_row(app: &App, report: &Report, screen: u64) -> Option<usize> {
    let (grouping, selected) = app.selection(screen).group?;
    Some(report.detail.as_ref().filter(|(by, ..)| *by == grouping.by).map_or(selected, |d| d.1))
}

fn pane_title(app: &App, report: &Report, screen: u64) -> Option<String> {
    let selection = app.selection(screen);
    if let Some(launch) = selection.launch {
        return Some(format!("launch {}", units::format_grouped(i64::from(launch))));
    }
    let row = shown_row(app, report, screen)?;
    report.groups.labels.get(row).cloned()
}

/// Kernel selected on a screen.
fn selected_kernel(report: &Report, selection: &Selection) -> Option<KernelId> {
    if let Some(launch) = selection.launch {
        return Some(report.profile.as_ref()?.launches.kernel(launch as usize));
    }
    let (grouping, row) = selection.group.as_ref()?;
    grouping.rows.get(*row)?.kernel
}

/// The three names of the kernel selected on a screen, one per line.
pub fn name_lines(app: &App, report: &Report, screen: u64, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut out = Vec::new();
    let selection = app.selection(screen);
    let found = selected_kernel(report, &selection).and_then(|k| report.profile.as_ref()?.kernels.get(k.0 as usize).cloned());
    let Some(Kernel { function, demangled, mangled, spelled }) = found else {
        let name = selection.group.and_then(|(g, row)| g.rows.get(row).map(|r| r.name.clone())).unwrap_or_default();
        return wrap_text(&escape_unsafe(&name), columns).into_iter().map(|l| Line::styled(l, theme.style(Role::Text))).collect();
    };
    let foreign = spelled.map(|name| ("demangled, as c++filt spells it", Some(name)));
    for (word, name) in [("function", function), foreign.unwrap_or(("demangled", demangled)), ("mangled", mangled)] {
        out.push(Line::styled(word, theme.style(Role::Head)));
        match name {
            Some(name) => {
                out.extend(wrap_text(&escape_unsafe(&name), columns).into_iter().map(|l| Line::styled(l, theme.style(Role::Text))));
            }
            None => out.push(Line::styled("not in the report", theme.style(Role::Faint))),
        }
        out.push(Line::default());
    }
    out.push(Line::styled(format!("{} copies one of them", app.session.key_label(ActionId::Copy)), theme.style(Role::Dim)));
    out
}

/// Detail lines for the selection on a screen.
pub fn lines(app: &App, report: &Report, screen: u64, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let Some(profile) = report.profile.as_deref() else { return Vec::new() };
    let mut out = Lines { out: Vec::new(), columns, theme };
    let launches = app.entry(screen).and_then(|e| LaunchesScreen::of(&e.open));
    let selection = app.selection(screen);
    let Some((grouping, selected)) = &selection.group else { return Vec::new() };
    // While the cursor moves, the pane keeps the row on which the cursor last rested; the overlay shows the selected
    // row.
    let on_top = app.over.as_ref().is_some_and(|o| matches!(o.what, OverlayKind::Page(Page::Details, _)));
    let rested = report.detail.as_ref().filter(|(by, ..)| *by == grouping.by && launches.is_none() && !on_top).map(|d| d.1);
    let row = rested.unwrap_or(*selected);
    let Some(group) = grouping.rows.get(row) else {
        return Vec::new();
    };
    let of_launch = launches.and_then(|_| selected_kernel(report, &selection));
    let name = of_launch.or(group.kernel).and_then(|k| profile.kernels.get(k.0 as usize)).map_or(group.name.as_str(), Kernel::demangled);
    out.push_wrapped(&escape_unsafe(name), Role::Title, 5);
    if group.kernel.is_some() {
        let function = of_launch.or(group.kernel).and_then(|k| profile.kernels.get(k.0 as usize)).map_or("", Kernel::function);
        let guess = if let Some(class) = blit_class(function) {
            // The table lists it as a kernel, but the overview counts it as a copy, by its purpose.
            let what = if class == CopyClass::Set { "sets memory" } else { "copies" };
            format!("HIP's own kernel that {what}: a copy on the overview")
        } else if group.family == Family::Other {
            "not recognized from the name".to_owned()
        } else {
            format!("{}, judging by its name", group.family.vendor_name(profile.is_amd()))
        };
        out.push_plain_pair("family", &guess);
        if group.kernels > 1 && launches.is_none() {
            out.push_text(&format!("{} kernels share this function name; this one takes the most time", group.kernels), Role::Dim);
        }
    }
    if let Some(launch) = launches.and_then(LaunchesScreen::selected_launch) {
        one_launch(&mut out, report, profile, launch as usize);
        return out.out;
    }
    match report.detail.as_ref().filter(|(by, r, _)| *by == grouping.by && *r == row) {
        Some((_, _, detail)) => group_lines(&mut out, report, profile, detail, group.stats.count),
        None if profile.launches.is_empty() => {}
        None => out.push_text("…", Role::Faint),
    }
    out.out
}

/// Builder of lines with a given width.
struct Lines<'a> {
    out: Vec<Line<'static>>,
    columns: usize,
    theme: &'a Theme,
}

/// Width of the label column.
const WORD: usize = 10;

impl Lines<'_> {
    fn push_wrapped(&mut self, text: &str, role: Role, most: usize) {
        let mut lines = wrap_text(text, self.columns);
        if lines.len() > most {
            lines.truncate(most);
            if let Some(last) = lines.last_mut() {
                *last = crate::analysis::labels::cut_end(&format!("{last} …"), self.columns);
            }
        }
        self.out.extend(lines.into_iter().map(|l| Line::styled(l, self.theme.style(role))));
    }

    fn push_text(&mut self, text: &str, role: Role) {
        self.push_wrapped(text, role, 3);
    }

    fn push_heading(&mut self, text: &str) {
        self.out.push(Line::default());
        self.out.push(Line::styled(text.to_owned(), self.theme.style(Role::Head)));
    }

    fn push_pair(&mut self, word: &str, value: &str, style: ratatui::style::Style) {
        self.out.extend(key_value_lines([(word, value)], (WORD, self.columns), self.theme.style(Role::Dim), style));
    }

    fn push_plain_pair(&mut self, word: &str, value: &str) {
        self.push_pair(word, value, self.theme.style(Role::Text));
    }

    /// Adds a value and the number of launches that have it. A value of several parts is wrapped between them.
    fn push_counted(&mut self, value: &str, n: u64) {
        let n = units::format_grouped(n);
        let room = self.columns.saturating_sub(n.len() + 2);
        let mut lines: Vec<String> = Vec::new();
        for part in value.split(" · ") {
            match lines.last_mut().map(|line| (format!("{line} · {part}"), line)) {
                Some((both, line)) if crate::analysis::labels::display_width(&both) <= room => *line = both,
                _ => lines.push(if lines.is_empty() { part.to_owned() } else { format!("  {part}") }),
            }
        }
        for (at, line) in lines.into_iter().enumerate() {
            let text = super::text::align_left(&crate::analysis::labels::cut_middle(&line, room), room);
            let mut spans = vec![Span::styled(text, self.theme.style(Role::Text))];
            spans.extend((at == 0).then(|| Span::styled(format!("  {n}"), self.theme.style(Role::Dim))));
            self.out.push(Line::from(spans));
        }
    }

    fn push_rest_count(&mut self, n: usize) {
        if n > LISTED {
            self.out.push(Line::styled(format!("and {} more", n - LISTED), self.theme.style(Role::Faint)));
        }
    }
}

fn occupancy_lines(out: &mut Lines<'_>, occupancy: &Occupancy) {
    let limit = occupancy.limited_by().map_or_else(String::new, |l| format!(", limited by {l}"));
    // Do not mark low occupancy as a problem; only a diagnosis can tell, since fast GEMM and attention kernels often
    // run at low occupancy.
    out.push_plain_pair("occupancy", &format!("{:.0}% theoretical{limit}", occupancy.percent));
    let (blocks, warps) = (occupancy.blocks_per_sm, occupancy.warps_per_sm);
    let words = occupancy.maker.vendor_terms();
    out.push_plain_pair(
        "",
        &format!("{}, {} per {}", units::format_count(blocks, words.block), units::format_count(warps, words.warp), occupancy.unit),
    );
    if let Some(waves) = occupancy.waves {
        let style = out.theme.style(if waves < 1.0 { Role::Warn } else { Role::Text });
        let number = if waves < 0.005 { "<0.01".to_owned() } else { format!("{waves:.2}") };
        if occupancy.maker == Vendor::Amd {
            // On AMD, a wave is a wavefront.
            let tail = if waves < 1.0 { " (it does not fill the GPU)" } else { "" };
            out.push_pair("grid", &format!("{number} × what all CUs hold at once{tail}"), style);
        } else {
            let tail = if waves < 1.0 { " (the grid does not fill the GPU)" } else { "" };
            out.push_pair("waves", &format!("{number}{tail}"), style);
        }
    }
}

fn group_lines(out: &mut Lines<'_>, report: &Report, profile: &Profile, detail: &Detail, count: u64) {
    let (dim_n, launches) = (LISTED, &profile.launches);
    if let Some((_, _, Some(occupancy))) = detail.configs.first() {
        if detail.configs.len() > 1 {
            out.push_text("most frequent configuration:", Role::Dim);
        }
        occupancy_lines(out, occupancy);
    }
    if !detail.configs.is_empty() {
        let n = detail.configs.len();
        out.push_heading(&if n == 1 { "configuration".to_owned() } else { format!("{n} configurations") });
        for (config, launches, occupancy) in detail.configs.iter().take(dim_n) {
            let label = profile.configs.get(*config as usize).map(|c| c.label_for(profile.is_amd())).unwrap_or_default();
            let occupancy = occupancy.as_ref().filter(|_| n > 1).map_or_else(String::new, |o| format!(" · {:.0}% occ", o.percent));
            out.push_counted(&format!("{label}{occupancy}"), *launches);
        }
        out.push_rest_count(n);
    }
    let list = |values: &Counted<Option<u32>>, name: &dyn Fn(u32) -> String| -> String {
        let mut names: Vec<String> = values.iter().take(dim_n).map(|(v, _)| v.map_or_else(|| "unknown".to_owned(), name)).collect();
        if values.len() > dim_n {
            names.push(format!("and {} more", values.len() - dim_n));
        }
        names.join(", ")
    };
    if !detail.streams.is_empty() || !detail.devices.is_empty() {
        out.push_heading("where");
    }
    if !detail.streams.is_empty() {
        let streams: Counted<Option<u32>> = detail.streams.iter().map(|((s, _), n)| (*s, *n)).collect();
        out.push_plain_pair("streams", &list(&streams, &|s| s.to_string()));
    }
    if !detail.devices.is_empty() {
        out.push_plain_pair(
            "devices",
            &list(&detail.devices, &|d| {
                let named = |d: &Device| d.name.as_ref().map(|_| format!("{} {}", d.id, escape_unsafe(&d.short_name())));
                profile.devices.get(d as usize).map_or_else(|| d.to_string(), |d| named(d).unwrap_or_else(|| d.id.to_string()))
            }),
        );
    }
    if detail.pids.len() > 1 {
        out.push_plain_pair("processes", &list(&detail.pids, &|p| p.to_string()));
    }
    if detail.from_graphs > 0 {
        out.push_plain_pair(
            "graphs",
            &format!(
                "{} of {} launches are nodes of {}",
                units::format_grouped(detail.from_graphs),
                units::format_grouped(count),
                Terms::of(profile.is_amd()).graphs
            ),
        );
    }
    // ncu reports do not contain launch times.
    let timed = profile.metrics.is_none();
    let at = |row: usize| {
        let launch = format!("launch {}", units::format_grouped(row));
        if timed { format!("{launch} at {:.6} s", launches.start(row) as f64 / 1e9) } else { launch }
    };
    if let Some(first) = detail.first {
        out.push_plain_pair("first", &at(first.0 as usize));
    }
    if let Some(slowest) = detail.slowest {
        out.push_plain_pair("slowest", &format!("{}, {}", Nanos(launches.duration(slowest.0 as usize)), at(slowest.0 as usize)));
    }
    if let (Some(paths), false) = (&report.paths, detail.paths.is_empty()) {
        out.push_heading(profile.ranges.noun());
        for (path, n) in detail.paths.iter().take(dim_n) {
            let name = path.map_or_else(|| "(no range)".to_owned(), |p| paths.path_label(profile, p));
            out.push_counted(&escape_unsafe(&name), *n);
        }
        out.push_rest_count(detail.paths.len());
    }
}

fn one_launch(out: &mut Lines<'_>, report: &Report, profile: &Profile, row: usize) {
    let launches = &profile.launches;
    out.push_heading(&format!("launch {}", units::format_grouped(row)));
    if profile.metrics.is_none() && profile.has_time(row) {
        out.push_plain_pair("start", &format!("{:.9} s", launches.start(row) as f64 / 1e9));
    }
    let duration = if profile.has_time(row) {
        format!("{} ({} ns)", Nanos(launches.duration(row)), units::format_grouped(launches.duration(row)))
    } else {
        "not known: the report has no valid times for it".to_owned()
    };
    out.push_plain_pair("duration", &duration);
    match launches.call(row) {
        Some((call, cost)) => {
            let queued = launches.start(row).saturating_sub(call.saturating_add(cost)).max(0);
            out.push_plain_pair("call", &format!("{} on the host, then {} queued", Nanos(cost), Nanos(queued)));
        }
        None => out.push_plain_pair("call", "not in the report"),
    }
    let config = launches.config(row).and_then(|c| profile.configs.get(c.0 as usize));
    let place = launches.place(row).and_then(|p| profile.places.get(p.0 as usize));
    if let Some(config) = config {
        let dims = |d: Option<[u32; 3]>| d.map_or_else(|| "?".to_owned(), crate::model::config::format_dim3);
        let amd = profile.is_amd();
        let (block, thread) = if amd { ("workgroup", "work-item") } else { ("block", "thread") };
        out.push_plain_pair("grid", &format!("{} {block}s of {} {thread}s", dims(config.grid), dims(config.block)));
        if let Some(cluster) = config.cluster.filter(|c| *c != [1, 1, 1]) {
            out.push_plain_pair("cluster", &format!("{} blocks", dims(Some(cluster))));
        }
        if config.cooperative {
            out.push_plain_pair("launch", "cooperative: all blocks are co-resident");
        }
        if let Some(registers) = config.registers {
            out.push_plain_pair("registers", &format!("{registers} per {thread}"));
        }
        if let Some(shared) = config.shared_memory() {
            let split = |b: Option<crate::model::Bytes>| b.map_or_else(|| "?".to_owned(), |b| b.to_string());
            out.push_plain_pair(
                if amd { "LDS" } else { "shared" },
                &format!("{shared} per {block} ({} static, {} dynamic)", split(config.static_shared), split(config.dynamic_shared)),
            );
        }
        if let Some(local) = config.local_per_thread.filter(|b| b.0 > 0) {
            out.push_plain_pair("local", &format!("{local} per thread"));
        }
        if let Some(occupancy) = place.and_then(|p| profile.device_of(p)).and_then(|d| Occupancy::from_config(config, d)) {
            occupancy_lines(out, &occupancy);
        }
    }
    if let Some(place) = place {
        // AMD's reports have no contexts, and not all have the GPU's name.
        let number = |word: &str, n: Option<u32>| n.map(|n| format!("{word} {n}"));
        let named = |d: &Device| d.name.as_ref().map(|_| format!("GPU {} {}", d.id, escape_unsafe(&d.short_name())));
        let device = profile.device_of(place).map(|d| named(d).unwrap_or_else(|| format!("GPU {}", d.id)));
        let ran = [number("stream", place.stream), number("context", place.context), device.or_else(|| number("GPU", place.ordinal))];
        let called = [number("pid", place.pid), number("thread", place.thread)];
        for (word, parts) in [("where", &ran[..]), ("process", &called)] {
            let known: Vec<&str> = parts.iter().filter_map(Option::as_deref).collect();
            if !known.is_empty() {
                out.push_plain_pair(word, &known.join(", "));
            }
        }
    }
    if let Some(node) = launches.graph_node(row) {
        out.push_plain_pair("graph", &format!("node {node}"));
    }
    if let (Some(paths), Some(path)) = (&report.paths, report.paths.as_ref().and_then(|p| p.launch_path(row))) {
        out.push_plain_pair(
            if profile.ranges.has_annotations() { "inside" } else { "NVTX" },
            &escape_unsafe(&paths.path_label(profile, path)),
        );
    }
}
