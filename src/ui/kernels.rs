//! Table of kernels or other groups of launches.

use super::panel::{Panel, draw_lines, draw_notice, split_top};
use super::screens::{Place, ScreenView};
use super::table::{self, Head, Rows};
use super::text::{align_left, align_right, bar, fit_parts, highlight_chars, part, sparkline};
use super::view::View;
use super::widgets::{family_swatch, filter_part, hint_badge};
use super::{Role, Theme};
use crate::analysis::fuzzy::Fuzzy;
use crate::analysis::hints::FirstHint;
use crate::analysis::stats::BINS;
use crate::analysis::table::kernels::{self, KernelRow, NAME, TOTAL};
use crate::analysis::table::{Column, Outputs, Sort, columns_of};
use crate::analysis::{Family, GroupBy, GroupRow, labels};
use crate::app::overlay::FilterInput;
use crate::app::session::lead::Lead;
use crate::app::{ActionId, App, KernelsScreen, Report};
use crate::import::Preview;
use crate::model::{Nanos, units};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

/// Priority of the histogram among the columns.
const HISTOGRAM_PRIORITY: u8 = 4;
const HISTOGRAM_WIDTH: usize = BINS;
const NUMBER: usize = 4;
/// Width of the mark and the kernel family's swatch.
const MARKS: usize = 2;
const SHARE_TEXT: usize = 6;
const WHOLE_SHARE_TEXT: usize = 4;
/// Minimum number of rows for the table if there are panels below it.
const LEAST_TABLE: u16 = 12;
const GAP: usize = 1;

/// Visible columns, and the widths of the number, name and bar.
struct Layout<'p> {
    /// Width of the row number; 0 if there is none.
    number: usize,
    name: usize,
    /// Width of the bar; 0 if there is none, in which case shares are whole percentages.
    bar: usize,
    shown: Vec<Column<KernelRow<'p>>>,
    histogram: bool,
    /// Width of the first hint on each kernel; 0 if there are no hints.
    diagnosis: usize,
}

/// Width of the first hint: glyph and longest id.
const DIAGNOSIS: usize = 25;
/// Width of the first hint in a narrow table, and in a narrow table that also shows count and average.
const NARROW_DIAGNOSIS: usize = 22;
const SHORT_DIAGNOSIS: usize = 20;
/// Width of the name in a narrow table with count and average.
const SHORT_NAME: usize = 20;
/// Table widths at which count and average of the launches replace row number and bar.
const COMPACT: std::ops::Range<usize> = 72..100;

impl Layout<'_> {
    /// Width of the share and the bar in front of it.
    fn share_width(&self) -> usize {
        if self.bar == 0 { WHOLE_SHARE_TEXT } else { self.bar + 1 + SHARE_TEXT }
    }

    fn share_text(&self, percent: f64) -> String {
        if self.bar > 0 {
            align_right(&units::format_percent(percent), SHARE_TEXT + 1)
        } else {
            let whole = units::format_whole_percent(percent);
            // There is no room for a decimal place.
            align_right(if whole.len() > WHOLE_SHARE_TEXT { ">99%" } else { &whole }, WHOLE_SHARE_TEXT)
        }
    }
}

/// Widths of the largest number of launches and of the longest name.
#[derive(Clone, Copy)]
struct Widths {
    counts: usize,
    names: usize,
}

/// Layout of a narrow table with diagnoses: total, count and average of the launches say more about a kernel than its
/// rank and a bar.
fn fit_compact<'p>(by: GroupBy, width: usize, Widths { counts, names }: Widths) -> Layout<'p> {
    let mut columns = columns_of(kernels::columns(by), Outputs::SCREEN);
    columns.iter_mut().filter(|c| c.id == "count").for_each(|c| c.width = counts.max(c.title.len()));
    let mut left = width.saturating_sub(MARKS + GAP + SHORT_NAME + GAP + WHOLE_SHARE_TEXT + SHORT_DIAGNOSIS + GAP);
    let first: Vec<_> = columns.into_iter().filter(|c| c.priority <= 2).collect();
    let shown = table::fit_columns(first, left, GAP);
    left -= table::total_width(&shown, GAP);
    // Short names leave room for whole diagnoses; otherwise, both share the room.
    let room = SHORT_NAME + left + SHORT_DIAGNOSIS;
    let most = DIAGNOSIS.min(SHORT_DIAGNOSIS + left / 2).max(DIAGNOSIS.min(room.saturating_sub(names)));
    let diagnosis = most.max(SHORT_DIAGNOSIS);
    Layout { number: 0, name: room - diagnosis, bar: 0, shown, histogram: false, diagnosis }
}

/// Fits the columns; `diagnosed` is set for a table with diagnoses.
fn fit_layout<'p>(by: GroupBy, width: usize, diagnosed: Option<Widths>) -> Layout<'p> {
    if let Some(widths) = diagnosed.filter(|_| COMPACT.contains(&width)) {
        return fit_compact(by, width, widths);
    }
    let diagnosed = diagnosed.is_some();
    // Reserve a readable width for the name before adding less important columns.
    let name_least = match width {
        // A diagnosis is more useful than the end of a long name.
        0..=77 if diagnosed => 22,
        0..=99 => 26,
        _ => 34,
    };
    let bar = if width < 100 { 5 } else { 9 };
    let mut left = width.saturating_sub(NUMBER + MARKS + GAP + name_least + GAP + bar + 1 + SHARE_TEXT);
    // The diagnosis matters more than any statistic except the total.
    let diagnosis = if !diagnosed {
        0
    } else if left >= DIAGNOSIS + 2 * GAP + 8 {
        DIAGNOSIS
    } else if left >= NARROW_DIAGNOSIS + GAP + 9 {
        NARROW_DIAGNOSIS
    } else {
        0
    };
    if diagnosis > 0 {
        left = left.saturating_sub(diagnosis + GAP);
    }
    // The most important columns that fit, and the histogram if it is one of them.
    let columns = columns_of(kernels::columns(by), Outputs::SCREEN);
    let (first, last): (Vec<_>, Vec<_>) = columns.iter().copied().partition(|c| c.priority <= HISTOGRAM_PRIORITY);
    let room = left.checked_sub(table::total_width(&first, GAP) + HISTOGRAM_WIDTH + 2 * GAP);
    let histogram = room.is_some();
    let last = table::fit_columns(last, room.unwrap_or(0), GAP);
    let first = table::fit_columns(first, left, GAP);
    let is_shown = |c: &Column<KernelRow<'p>>| first.iter().chain(&last).any(|s| s.id == c.id);
    let shown: Vec<_> = columns.into_iter().filter(is_shown).collect();
    left -= table::total_width(&shown, GAP) + if histogram { HISTOGRAM_WIDTH + 2 * GAP } else { 0 };
    Layout { number: NUMBER, name: name_least + left, bar, shown, histogram, diagnosis }
}

impl ScreenView for KernelsScreen {
    fn draw(&self, frame: &mut Frame<'_>, at: Place, app: &App, view: &mut View, theme: &Theme) {
        draw(frame, at.area, at.bordered, app, self, view, theme);
    }

    fn next_step(&self, app: &App) -> Option<String> {
        next(app, self)
    }

    fn filter(&self) -> Option<&FilterInput> {
        Some(&self.finder)
    }

    fn rows_beside_details(&self) -> Option<usize> {
        Some(self.shown.len())
    }
}

/// Kernel table: an action for the selected row, then the limit of the run.
fn next(app: &App, screen: &KernelsScreen) -> Option<String> {
    let report = app.report()?;
    // An empty table shows a message of its own.
    let grouping = report.groups.grouping.as_ref().filter(|g| !g.rows.is_empty());
    let run = grouping.and(report.next.as_deref()).map(|next| app.session.settings.keymap.spell_links(next));
    // The same cause comes first here and on the overview.
    let run = match app.session.lead(app.session.active) {
        Some(Lead::Straggler(s)) => {
            Some(format!("{} shows what limits the run: rank {} makes the others wait", app.session.key_link(ActionId::Ranks), s.rank))
        }
        Some(Lead::Kernel(lead)) => Some(format!(
            "{} shows what limits the run: {} in {}",
            app.session.key_link(ActionId::Overview),
            lead.hint.id.id(),
            labels::cut_middle(&crate::model::text::escape_unsafe(&lead.kernel), 32)
        )),
        None => run,
    };
    let kernel = grouping.is_some_and(|g| g.by.is_kernel());
    let own = screen.selected_row().filter(|_| kernel && !report.is_reading()).and_then(|row| {
        let key = |id| app.session.key_link(id);
        // For a kernel without measurements, the advice for the run is enough.
        report.diagnosed.get(&row).map(|hint| format!("{} shows what limits this kernel: {}", key(ActionId::Hints), hint.id.id()))
    });
    match (own, run) {
        (Some(own), Some(run)) if report.is_timeline() => Some(format!("{own}; {run}")),
        (own, run) => own.or(run),
    }
}

/// Draws the table; its title contains the filter, grouping and order.
fn draw(frame: &mut Frame<'_>, area: Rect, bordered: bool, app: &App, screen: &KernelsScreen, view: &mut View, theme: &Theme) {
    let Some(report) = app.report() else { return };
    let mut title = control_line(report, screen, theme, usize::from(area.width.saturating_sub(6))).spans;
    if bordered {
        let word = if report.groups.by.is_kernel() { "Kernels" } else { "Groups" };
        title.splice(0..0, [Span::styled(word, theme.style(Role::Title)), Span::raw("  ")]);
    }
    // A short table leaves room below it. Ignore the filter here, so that the layout does not jump while the user
    // types.
    let all = report.groups.grouping.as_ref().map_or(usize::MAX, |g| g.rows.len());
    let wanted = u16::try_from(all.saturating_add(3)).unwrap_or(u16::MAX).max(LEAST_TABLE);
    let mut rest = area;
    let area = if bordered && all > 0 && wanted < area.height { split_top(&mut rest, wanted) } else { split_top(&mut rest, area.height) };
    super::kernel_summary::draw(frame, rest, app, report, view.ascii, theme);
    let inner = Panel::new(title).with_focus(app.session.reading.is_none()).draw(frame, area, bordered, theme);
    // Groups of several kernels have no diagnosis of their own: the diagnosis of a single launch would be misleading.
    let grouping = report.groups.grouping.as_ref().filter(|g| g.by.is_kernel() && !report.diagnosed.is_empty());
    let diagnosed = grouping.map(|g| {
        let most = g.rows.iter().map(|r| r.stats.count).max().unwrap_or(0);
        let names = g.rows.iter().map(|r| labels::display_width(&r.name)).max().unwrap_or(0);
        Widths { counts: units::format_grouped(most).len(), names }
    });
    let layout = fit_layout(report.groups.by, inner.width.into(), diagnosed);
    let rows = Rect { y: inner.y + 1, height: inner.height.saturating_sub(1), ..inner };
    draw_heads(frame, Rect { height: 1, ..inner }, (report, screen), &layout, view, theme);
    // Without a panel beside it, a short table leaves room for what is known of the selected row.
    let below = u16::try_from(all.saturating_add(1)).unwrap_or(u16::MAX);
    if let Some(row) = screen.selected_row().filter(|_| !bordered && below < rows.height) {
        let place = Rect { y: rows.y + below, height: rows.height - below, ..rows };
        draw_lines(frame, place, super::preview::lines(app, report, row, usize::from(place.width), theme));
    }
    match (&report.groups.grouping, &report.preview) {
        (Some(_), _) => rows_of(frame, rows, (report, screen), &app.session.key_label(ActionId::Back), &layout, view, theme),
        (None, Some(preview)) => draw_preview_rows(frame, rows, (preview, view.ascii), &layout, theme),
        (None, None) => {
            let text = if report.is_reading() { "reading …" } else { "nothing to show" };
            frame.render_widget(Line::styled(text, theme.style(Role::Dim)), Rect { height: rows.height.min(1), ..rows });
        }
    }
}

/// Filter, grouping, order and number of rows, in one line.
fn control_line(report: &Report, screen: &KernelsScreen, theme: &Theme, columns: usize) -> Line<'static> {
    let groups = &report.groups;
    let (dim, text) = (theme.style(Role::Dim), theme.style(Role::Text));
    let mut parts: Vec<_> = filter_part(&screen.finder, theme).into_iter().collect();
    let mut group = vec![Span::styled("group ", dim), Span::styled(groups.by.cli_name(), text)];
    if groups.is_pending() {
        group.push(Span::styled(" …", theme.style(Role::Warn)));
    }
    parts.push(part(0, group));
    let arrow = if screen.ascending { "▲" } else { "▼" };
    parts.push(part(0, vec![Span::styled("sort ", dim), Span::styled(format!("{} {arrow}", screen.sort.word), text)]));
    if let Some(grouping) = &groups.grouping {
        let of = if screen.shown.len() == grouping.rows.len() {
            units::format_grouped(screen.shown.len())
        } else {
            format!("{} of {}", units::format_grouped(screen.shown.len()), units::format_grouped(grouping.rows.len()))
        };
        parts.push(part(2, vec![Span::styled(format!("{of} {}", units::plural_noun(grouping.rows.len(), "row")), dim)]));
        if !groups.marked.is_empty() {
            let (count, share) = groups.marked_sum;
            parts.push(part(1, vec![Span::styled(format!("● {count} marked, {}", units::format_percent(share)), theme.style(Role::Mark))]));
        }
        if let Some(why) = grouping.unavailable {
            parts.push(part(0, vec![Span::styled(format!("cannot group by {}: {why}", grouping.by.cli_name()), theme.style(Role::Warn))]));
        }
    }
    fit_parts(parts, &Span::raw("   "), columns)
}

fn draw_heads(
    frame: &mut Frame<'_>,
    area: Rect,
    (report, screen): (&Report, &KernelsScreen),
    layout: &Layout<'_>,
    view: &mut View,
    theme: &Theme,
) {
    let groups = &report.groups;
    let noun = match groups.grouping.as_ref().map_or(groups.by, |g| g.by) {
        GroupBy::Nvtx if report.profile.as_ref().is_some_and(|p| p.ranges.has_annotations()) => "operator",
        by => by.group_noun(),
    };
    let by = |text: String, sort: Sort| Head { text, sort: Some(sort), sorted: sort == screen.sort };
    let gap = || Head::label_only(" ".repeat(GAP));
    let mut all = vec![
        Head::label_only(format!("{} ", align_right(if layout.number > 0 { "#" } else { "" }, layout.number))),
        gap(),
        Head::label_only(" "),
        by(align_left(noun, layout.name), NAME),
        gap(),
    ];
    all.push(by(align_right(if layout.bar > 0 { "share" } else { "%" }, layout.share_width()), TOTAL));
    all.extend(layout.shown.iter().map(|c| Head::of_column(c, align_right(c.title, c.width + GAP), screen.sort)));
    if layout.histogram {
        all.push(Head::label_only(format!("  {}", align_left("durations", HISTOGRAM_WIDTH))));
    }
    if layout.diagnosis > 0 {
        all.push(Head::label_only(format!(" {}", align_left("  diagnosis", layout.diagnosis))));
    }
    table::draw_heads(frame, area, all, view, theme);
}

fn rows_of<'p>(
    frame: &mut Frame<'_>,
    area: Rect,
    (report, screen): (&'p Report, &KernelsScreen),
    back: &str,
    layout: &Layout<'p>,
    view: &mut View,
    theme: &Theme,
) {
    let Some(grouping) = &report.groups.grouping else { return };
    if screen.shown.is_empty() {
        draw_empty(frame, area, (report, screen), back, theme);
        return;
    }
    // The grouping's rows are sorted by total, regardless of the order of the table.
    let longest = grouping.rows.first().map_or(0.0, |r| r.share_percent);
    let fuzzy = (!screen.finder.text().trim().is_empty()).then(|| Fuzzy::new(screen.finder.text()));
    let rows = Rows { list: "kernels", count: screen.shown.len(), selected: screen.selected };
    table::draw_rows(frame, area, rows, view, theme, |at, view| {
        let Some((row, group)) = screen.shown.get(at).and_then(|&r| Some((r as usize, grouping.rows.get(r as usize)?))) else {
            return Vec::new();
        };
        let name = view.fit_name(&report.groups.labels, layout.name, row);
        let profiled = match report.profiled.get(&row) {
            Some(true) => "◆",
            Some(false) => "◇",
            None => " ",
        };
        let marked = report.groups.marked.contains(&group.name);
        let verdict = report.diagnosed.get(&row);
        row_spans(
            group,
            &Shown { name: &name, ascii: view.ascii, at, longest, sort: screen.sort, marked, fuzzy: fuzzy.as_ref(), profiled, verdict },
            layout,
            theme,
        )
    });
}

fn number_text(number: usize, layout: &Layout<'_>) -> String {
    if layout.number > 0 { align_right(&number.to_string(), layout.number) } else { String::new() }
}

/// Display options of a row.
struct Shown<'a> {
    name: &'a str,
    ascii: bool,
    at: usize,
    longest: f64,
    sort: Sort,
    marked: bool,
    fuzzy: Option<&'a Fuzzy>,
    /// Mark of a kernel with ncu results, one column wide.
    profiled: &'static str,
    /// First hint on the kernel's longest result.
    verdict: Option<&'a FirstHint>,
}

fn row_spans<'p>(row: &'p GroupRow, shown: &Shown<'_>, layout: &Layout<'p>, theme: &Theme) -> Vec<Span<'static>> {
    let text = theme.style(Role::Text);
    let mut spans = vec![
        Span::styled(number_text(shown.at + 1, layout), theme.style(Role::Faint)),
        if shown.marked { Span::styled("●", theme.style(Role::Mark)) } else { Span::styled(shown.profiled, theme.style(Role::Key)) },
        Span::raw(" ".repeat(GAP)),
        family_swatch(row.kernel.is_some().then_some(row.family), shown.ascii, theme),
    ];
    let at = shown.fuzzy.and_then(|f| f.match_positions(shown.name)).map(|p| p.1).unwrap_or_default();
    spans.extend(highlight_chars(&align_left(shown.name, layout.name), &at, text, theme.style(Role::Match)));
    spans.push(Span::raw(" ".repeat(GAP)));
    let share = if shown.longest > 0.0 { row.share_percent / shown.longest } else { 0.0 };
    if layout.bar > 0 {
        use crate::analysis::triage::TimeCategory;
        let part = if row.family == Family::Nccl { TimeCategory::Collectives } else { TimeCategory::Kernels };
        spans.extend(bar(share, layout.bar, theme.style(Role::Part(part)), theme));
    }
    spans.push(Span::styled(layout.share_text(row.share_percent), theme.style(Role::Title)));
    let cells =
        KernelRow { rank: shown.at + 1, group: row, by: GroupBy::Kernel, demangled: None, curve: None, estimate: None, diagnosis: None };
    for column in &layout.shown {
        let style: Style = if column.sort == Some(shown.sort) { theme.style(Role::Title) } else { text };
        spans.push(Span::styled(align_right(&column.shown(&cells), column.width + GAP), style));
    }
    if layout.histogram {
        let drawn = row.stats.histogram.map(|h| sparkline(&h)).unwrap_or_default();
        spans.push(Span::styled(format!("  {}", align_left(&drawn, HISTOGRAM_WIDTH)), theme.style(Role::Bar)));
    }
    if let Some(v) = shown.verdict.filter(|_| layout.diagnosis > 0) {
        spans.push(Span::raw(" "));
        spans.extend(hint_badge(v.id, v.severity, layout.diagnosis, theme));
    }
    spans
}

/// Draws a message instead of rows.
fn draw_empty(frame: &mut Frame<'_>, area: Rect, (report, screen): (&Report, &KernelsScreen), back: &str, theme: &Theme) {
    use crate::model::NoteKind;
    let columns = usize::from(area.width).clamp(20, 96);
    let note = report.profile.as_ref().and_then(|p| p.notes.iter().find(|n| n.kind == NoteKind::Empty));
    let mut lines: Vec<Line<'static>> = Vec::new();
    if !screen.finder.text().is_empty() {
        lines.push(Line::styled(
            format!("No name matches “{}”.", crate::model::text::escape_unsafe(screen.finder.text())),
            theme.style(Role::Warn),
        ));
        lines.push(Line::styled(format!("{back} clears the filter"), theme.style(Role::Dim)));
    } else if let Some(note) = note {
        lines.push(Line::styled("No kernels in this report.", theme.style(Role::Bad)));
        lines.push(Line::default());
        lines.extend(
            super::text::wrap_text(&crate::model::text::escape_unsafe(&note.text), columns)
                .into_iter()
                .map(|l| Line::styled(l, theme.style(Role::Text))),
        );
        if let Some(fix) = &note.fix {
            lines.push(Line::default());
            lines.extend(
                super::text::wrap_text(&crate::model::text::escape_unsafe(fix), columns)
                    .into_iter()
                    .map(|l| Line::styled(l, theme.style(Role::Next))),
            );
        }
    } else if report.is_reading() {
        lines.push(Line::styled("reading …", theme.style(Role::Dim)));
    }
    draw_notice(frame, area, lines);
}

/// Draws the table while the report is being read, with the names, totals and counts read so far.
fn draw_preview_rows(frame: &mut Frame<'_>, area: Rect, (preview, ascii): (&Preview, bool), layout: &Layout<'_>, theme: &Theme) {
    let total: i64 = preview.rows.iter().map(|r| r.2).fold(0, i64::saturating_add);
    let longest = preview.rows.first().map_or(1, |r| r.2).max(1);
    for (line, (name, count, ns)) in (0..area.height).zip(&preview.rows) {
        let family = family_swatch(Some(Family::guess(name, name)), ascii, theme);
        let name = labels::cut_middle(&crate::model::text::escape_unsafe(name), layout.name);
        let mut spans = vec![
            Span::styled(number_text(usize::from(line) + 1, layout), theme.style(Role::Faint)),
            Span::raw("  "),
            family,
            Span::styled(align_left(&name, layout.name), theme.style(Role::Text)),
            Span::raw(" "),
        ];
        if layout.bar > 0 {
            let style = theme.style(Role::Part(crate::analysis::triage::TimeCategory::Kernels));
            spans.extend(bar(*ns as f64 / longest as f64, layout.bar, style, theme));
        }
        let percent = if total > 0 { *ns as f64 / total as f64 * 100.0 } else { 0.0 };
        spans.push(Span::styled(layout.share_text(percent), theme.style(Role::Title)));
        for column in &layout.shown {
            let text = match column.id {
                "total_ns" => Nanos(*ns).to_string(),
                "count" => units::format_grouped(*count),
                _ => continue,
            };
            spans.push(Span::styled(align_right(&text, column.width + GAP), theme.style(Role::Dim)));
        }
        frame.render_widget(Line::from(spans), Rect { y: area.y + line, height: 1, ..area });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_come_in_by_importance_and_never_overflow() {
        let mut before = 0;
        for width in 58..240 {
            let l = fit_layout(GroupBy::Kernel, width, None);
            let used = NUMBER
                + MARKS
                + GAP
                + l.name
                + GAP
                + l.bar
                + 1
                + SHARE_TEXT
                + table::total_width(&l.shown, GAP)
                + if l.histogram { HISTOGRAM_WIDTH + 2 * GAP } else { 0 };
            assert_eq!(used, width, "{width}");
            assert!(l.shown.len() >= before || width == 100, "{width}");
            before = l.shown.len();
        }
        for width in COMPACT {
            let l = fit_layout(GroupBy::Kernel, width, Some(Widths { counts: 6, names: 90 }));
            let ids: &[&str] = if width < 74 { &["total_ns", "count"] } else { &["total_ns", "count", "avg_ns"] };
            assert_eq!(l.shown.iter().map(|c| c.id).collect::<Vec<_>>(), ids, "{width}");
            let used = MARKS + GAP + l.name + GAP + l.share_width() + table::total_width(&l.shown, GAP) + l.diagnosis + GAP;
            assert_eq!(used, width);
            let short = fit_layout(GroupBy::Kernel, width, Some(Widths { counts: 1, names: 12 }));
            assert!(short.diagnosis == DIAGNOSIS && short.name >= 12, "{width}");
        }
        let ids = |width| fit_layout(GroupBy::Kernel, width, None).shown.iter().map(|c| c.id).collect::<Vec<_>>();
        assert_eq!(ids(78), ["total_ns", "count", "avg_ns"]);
        assert_eq!(ids(198).len(), columns_of(kernels::columns(GroupBy::Kernel), Outputs::SCREEN).len());
    }
}
