//! Source screen: the hottest lines or instructions, with their stall reasons and counters.

use super::super::panel::{Panel, draw_notice, split_top};
use super::super::table::{self, Rows};
use super::super::text::{align_left, align_right, bar, wrap_text};
use super::super::view::View;
use super::super::widgets::stacked_bar::{Share, share_legend, stacked_bar};
use super::super::{Role, Theme};
use crate::analysis::Family;
use crate::analysis::code::{Counts, Instruction, Line as SourceLine, Listing};
use crate::analysis::labels::{cut_end, cut_middle, display_width};
use crate::analysis::metric::format_count;
use crate::app::ResultScreen;
use crate::app::screens::result::Asked;
use crate::model::text::escape_unsafe;
use crate::model::units;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span, Text};

pub fn draw(frame: &mut Frame<'_>, area: Rect, screen: &ResultScreen, view: &mut View, theme: &Theme) {
    let columns = usize::from(area.width);
    let say = |frame: &mut Frame<'_>, text: &str, role: Role| {
        let lines = wrap_text(&escape_unsafe(text), columns).into_iter().map(|l| Line::styled(l, theme.style(role)));
        frame.render_widget(Text::from(lines.collect::<Vec<_>>()), area);
    };
    match (&screen.source.code, &screen.source.listing) {
        (Asked::Failed(why), _) => return say(frame, why, Role::Bad),
        (Asked::Waiting, _) | (_, None) => return say(frame, "reading the code …", Role::Dim),
        _ => {}
    }
    let Some(listing) = &screen.source.listing else { return };
    if listing.lines.is_empty() && listing.instructions.is_empty() {
        draw_missing(frame, area, screen, listing, theme);
        return;
    }
    let notes: Vec<Line<'static>> = listing
        .remarks
        .iter()
        .flat_map(|r| wrap_text(&escape_unsafe(r), columns))
        .take(3)
        .map(|l| Line::styled(l, theme.style(Role::Dim)))
        .collect();
    let n = u16::try_from(notes.len()).unwrap_or(0);
    let [mut main, foot] = Layout::vertical([Constraint::Min(3), Constraint::Length(n)]).areas(area);
    frame.render_widget(Text::from(notes), foot);
    let bordered = area.height >= BORDERED && area.width >= 100;
    let order = if screen.source.in_order { "in order" } else { "hottest first" };
    // Do not count context lines.
    let known =
        if screen.source.instructions { listing.instructions.len() } else { listing.lines.iter().filter(|l| l.instructions > 0).count() };
    // The rows name the file only if there are several.
    let file = (!screen.source.instructions).then(|| listing.lines.first()).flatten().filter(|_| !has_several_files(listing));
    let file = file.map_or_else(String::new, |l| format!(" of {}", escape_unsafe(&l.name)));
    let what = if screen.source.instructions {
        units::format_count(known, "instruction")
    } else {
        format!("{} with instructions", units::format_count(known, "source line"))
    };
    let title = vec![
        Span::styled(format!("{what}{file}"), theme.style(Role::Title)),
        Span::styled(format!(", {order}   {} {}", format_count(listing.samples), listing.unit), theme.style(Role::Dim)),
    ];
    if bordered {
        // Draw details of the selected row next to the list on a wide terminal, otherwise below it.
        let split = if area.width >= BESIDE {
            let [a, b] = Layout::horizontal([Constraint::Min(90), Constraint::Length(area.width * 2 / 5)]).areas(main);
            let [stalls, sass] = Layout::vertical([Constraint::Length(WAITS), Constraint::Min(3)]).areas(b);
            sass_of(frame, sass, screen, listing, theme);
            (a, stalls)
        } else {
            let [mut a, b] = Layout::vertical([Constraint::Min(6), Constraint::Length(WAITS)]).areas(main);
            // A short list leaves room for the line's instructions.
            let wanted = u16::try_from(screen.source.row_count() + 3).unwrap_or(u16::MAX);
            if !screen.source.instructions && wanted + SASS <= a.height {
                let list = split_top(&mut a, wanted);
                sass_of(frame, a, screen, listing, theme);
                a = list;
            }
            (a, b)
        };
        draw_stalls(frame, split.1, screen, listing, theme);
        main = Panel::new(title.clone()).focused().draw(frame, split.0, true, theme);
    }
    let below = if !bordered && area.height > 14 && screen.source.row_count() > 0 { 3 } else { 0 };
    let [head, titles, rows, detail] =
        Layout::vertical([Constraint::Length(u16::from(!bordered)), Constraint::Length(1), Constraint::Min(1), Constraint::Length(below)])
            .areas(main);
    frame.render_widget(Line::from(title), head);
    let columns = usize::from(main.width);
    let layout = fit_layout(columns, screen, listing);
    let title = format!(
        "{}{}{}{}  {}",
        align_right(listing.unit, 8 + layout.bar + usize::from(layout.stall > 0)),
        align_right(if layout.stall > 0 { "top stall" } else { "" }, layout.stall),
        align_right(if layout.executed > 0 { "executed" } else { "" }, layout.executed),
        if layout.excess { align_right("excess", 12) } else { String::new() },
        if screen.source.instructions {
            "offset    instruction".to_owned()
        } else {
            format!("{} source", if layout.files { align_left("line", layout.place) } else { align_right("line", layout.place) })
        }
    );
    frame.render_widget(Line::styled(cut_end(&title, columns), theme.style(Role::Head)), titles);
    draw_list(frame, rows, screen, listing, &layout, view, theme);
    if below > 0 {
        frame.render_widget(Text::from(selected_lines(screen, listing, columns, theme)), detail);
    }
}

/// Explains which data the result lacks, and the command that collects it.
fn draw_missing(frame: &mut Frame<'_>, area: Rect, screen: &ResultScreen, listing: &Listing, theme: &Theme) {
    let columns = usize::from(area.width.saturating_sub(6)).clamp(20, 90);
    let command = if screen.subject.is_amd() {
        "Record a thread trace, which has every instruction: rocprofv3 --att -- PROGRAM."
    } else {
        "Profile the launch again with its code: ncu --section SourceCounters --import-source yes. Source lines need a program built with -lineinfo."
    };
    let mut out = vec![Line::styled("No code was collected for this launch.", theme.style(Role::Title)), Line::default()];
    let said = listing.remarks.iter().map(|r| (escape_unsafe(r).into_owned(), Role::Dim)).chain([(command.to_owned(), Role::Text)]);
    for (text, role) in said {
        out.extend(wrap_text(&text, columns).into_iter().map(|l| Line::styled(l, theme.style(role))));
    }
    draw_notice(frame, area, out);
}

/// Minimum number of rows of a body for panels to have borders.
const BORDERED: u16 = 24;
/// Minimum width to show the selected line's instructions next to the list.
const BESIDE: u16 = 150;
/// Number of rows of the panel with the stalls of the selected row.
const WAITS: u16 = 10;
/// Minimum number of rows of the panel with the selected line's instructions.
const SASS: u16 = 6;
/// Colors of the most frequent stall reasons, which get a part of the bar of their own. They differ in every theme, and
/// none of them stands for a severity.
const REASONS: [Role; 4] = [Role::Peak, Role::Bar, Role::Family(Family::Attention), Role::Family(Family::Nccl)];
/// Colour of all other stall reasons.
const OTHER: Role = Role::BarEmpty;

/// Counters of the selected row.
fn selected_counts<'a>(screen: &ResultScreen, listing: &'a Listing) -> Option<&'a Counts> {
    if screen.source.instructions {
        listing.instructions.get(screen.source.selected).map(|i| &i.counts)
    } else {
        listing.lines.get(screen.source.selected).map(|l| &l.counts)
    }
}

/// Draws the stall reasons of the selected row as a bar, plus the row's counters.
fn draw_stalls(frame: &mut Frame<'_>, area: Rect, screen: &ResultScreen, listing: &Listing, theme: &Theme) {
    let inner = Panel::new(vec![Span::styled("Selected", theme.style(Role::Title))]).draw(frame, area, true, theme);
    let columns = usize::from(inner.width);
    let mut text = selected_lines(screen, listing, columns, theme);
    // The list truncates long lines, so show the selected one in full, as far as there is room.
    let code = if screen.source.instructions { None } else { listing.lines.get(screen.source.selected).and_then(|l| l.text.as_deref()) };
    let code = code.map(|code| wrap_text(&escape_unsafe(code.trim()), columns)).unwrap_or_default();
    let total: f64 = selected_counts(screen, listing).map_or(0.0, |c| c.stalls.iter().map(|s| s.1).sum());
    if let Some(counts) = selected_counts(screen, listing).filter(|_| total > 0.0) {
        let mut shares: Vec<Share> = Vec::new();
        for (role, (reason, n)) in REASONS.into_iter().zip(&counts.stalls) {
            shares.push(Share { name: escape_unsafe(reason).replace('_', " "), share: n / total, style: theme.style(role), letter: None });
        }
        let rest = 1.0 - shares.iter().map(|s| s.share).sum::<f64>();
        if rest > 0.005 {
            shares.push(Share { name: "other".to_owned(), share: rest, style: theme.style(OTHER), letter: None });
        }
        // Replace the line of stalls with a bar and its legend; a row with counters has that line.
        text.remove(1);
        let mut picture = vec![stacked_bar(&shares, columns)];
        picture.extend(share_legend(&shares, columns, 3, theme.style(Role::Text), theme));
        text.splice(1..1, picture);
    }
    let room = usize::from(inner.height).saturating_sub(text.len());
    let at = text.len().min(1);
    text.splice(at..at, code.into_iter().take(room).map(|l| Line::styled(l, theme.style(Role::Title))));
    frame.render_widget(Text::from(text), inner);
}

/// Draws the instructions of the selected line in program order, with their share of the samples.
fn sass_of(frame: &mut Frame<'_>, area: Rect, screen: &ResultScreen, listing: &Listing, theme: &Theme) {
    let line = if screen.source.instructions {
        listing.instructions.get(screen.source.selected).and_then(|i| i.line)
    } else {
        listing.lines.get(screen.source.selected).map(|l| (l.file, l.line))
    };
    let mut own: Vec<&Instruction> = listing.instructions.iter().filter(|i| i.line == line && line.is_some()).collect();
    own.sort_by_key(|i| i.address);
    let isa = if screen.subject.is_amd() { "ISA" } else { "SASS" };
    let title = match own.len() {
        0 => isa.to_owned(),
        n => format!("{isa} of line {}, {}", line.map_or(0, |l| l.1), units::format_count(n, "instruction")),
    };
    let inner = Panel::new(vec![Span::styled(title, theme.style(Role::Title))]).draw(frame, area, true, theme);
    if own.is_empty() {
        frame.render_widget(Line::styled("no line is known for these instructions", theme.style(Role::Dim)), inner);
        return;
    }
    let most = own.iter().map(|i| i.counts.samples).fold(0.0, f64::max);
    let hottest = own.iter().position(|i| i.counts.samples >= most && most > 0.0).unwrap_or(0);
    let height = usize::from(inner.height);
    // Keep the hottest instruction in view.
    let top = hottest.saturating_sub(height / 2).min(own.len().saturating_sub(height));
    let room = usize::from(inner.width).saturating_sub(8 + 9 + 8);
    let rows = own.iter().skip(top).take(height).map(|i| {
        let share = if listing.samples > 0.0 { i.counts.samples / listing.samples * 100.0 } else { 0.0 };
        let offset = i.place.as_ref().map_or_else(|| format!("{:#x}", i.address), |(_, o)| format!("+{o:04x}"));
        let mut spans = bar(if most > 0.0 { i.counts.samples / most } else { 0.0 }, 8, theme.style(Role::Bar), theme);
        let figure = if share > 0.0 { format!("{share:.1}%") } else { String::new() };
        spans.push(Span::styled(align_right(&figure, 7), theme.style(Role::Title)));
        spans.push(Span::styled(format!("  {}", align_left(&offset, 8)), theme.style(Role::Dim)));
        let text = i.text.as_deref().unwrap_or("");
        spans.push(Span::styled(cut_end(&escape_unsafe(text.trim()), room), theme.style(Role::Text)));
        Line::from(spans)
    });
    frame.render_widget(Text::from(rows.collect::<Vec<_>>()), inner);
}

struct Columns {
    bar: usize,
    /// Width of the stalls; 0 if they are omitted.
    stall: usize,
    /// Width of the execution counts.
    executed: usize,
    excess: bool,
    /// Width of file and line, or of the offset.
    place: usize,
    /// Set if the lines are of several files.
    files: bool,
}

/// Minimum width to show counters next to code in program order; the panel of the selected line also contains them.
const ROOMY: usize = 140;

fn fit_layout(columns: usize, screen: &ResultScreen, listing: &Listing) -> Columns {
    let bar = if columns >= 100 { 12 } else { 5 };
    let files = !screen.source.instructions && has_several_files(listing);
    let most = if columns >= ROOMY { WIDE_PLACE } else { PLACE };
    let place = if screen.source.instructions {
        9
    } else if files {
        listing.lines.iter().map(|l| display_width(&place_text(l, most))).max().unwrap_or(0).max(5)
    } else {
        5
    };
    if screen.source.in_order && !screen.source.instructions && columns < ROOMY {
        return Columns { bar, stall: 0, executed: 0, excess: false, place, files };
    }
    // Omit a column if no row has a value for it.
    let some = |has: fn(&Counts) -> bool| {
        if screen.source.instructions {
            listing.instructions.iter().any(|i| has(&i.counts))
        } else {
            listing.lines.iter().any(|l| has(&l.counts))
        }
    };
    let stall = if columns >= 90 { 26 } else { 19 };
    Columns {
        bar,
        stall: if some(|c| c.top_stall().is_some_and(|s| s.1 > 0.0)) { stall } else { 0 },
        executed: if some(|c| c.executed.is_some()) { 12 } else { 0 },
        excess: columns >= 110 && some(|c| c.excess_l2.unwrap_or(0.0) + c.excess_shared.unwrap_or(0.0) > 0.0),
        place,
        files,
    }
}

fn has_several_files(listing: &Listing) -> bool {
    listing.lines.windows(2).any(|l| l[0].file != l[1].file)
}

/// Maximum width of file and line.
const PLACE: usize = 16;
/// The same in a wide list.
const WIDE_PLACE: usize = 28;

/// File and line; a long file name is shortened, the line number never.
fn place_text(line: &SourceLine, most: usize) -> String {
    let number = format!(":{}", line.line);
    format!("{}{number}", cut_middle(&escape_unsafe(&line.name), most.saturating_sub(number.len())))
}

fn draw_list(
    frame: &mut Frame<'_>,
    area: Rect,
    screen: &ResultScreen,
    listing: &Listing,
    layout: &Columns,
    view: &mut View,
    theme: &Theme,
) {
    let columns = usize::from(area.width);
    let most = if screen.source.instructions {
        listing.instructions.iter().map(|i| i.counts.samples).fold(0.0, f64::max)
    } else {
        listing.lines.iter().map(|l| l.counts.samples).fold(0.0, f64::max)
    };
    let of = Rows { list: "source", count: screen.source.row_count(), selected: screen.source.selected };
    table::draw_rows(frame, area, of, view, theme, |at, _| {
        let (counts, place, text): (&Counts, String, String) = if screen.source.instructions {
            let Some(i) = listing.instructions.get(at) else { return Vec::new() };
            let offset = i.place.as_ref().map_or_else(|| format!("{:#x}", i.address), |(_, o)| format!("+{o:04x}"));
            (&i.counts, offset, i.text.as_deref().unwrap_or("").to_owned())
        } else {
            let Some(l) = listing.lines.get(at) else { return Vec::new() };
            let place = if layout.files { place_text(l, layout.place) } else { align_right(&l.line.to_string(), layout.place) };
            (&l.counts, place, l.text.clone().unwrap_or_default())
        };
        let share = if listing.samples > 0.0 { counts.samples / listing.samples * 100.0 } else { 0.0 };
        let reads = !screen.source.instructions && listing.lines.get(at).is_some_and(|l| l.instructions == 0);
        let figure = if reads { String::new() } else { format!("{share:.1}%") };
        let hot = if share >= 10.0 { Role::Peak } else { Role::Bar };
        let mut spans = vec![Span::styled(format!("{} ", align_right(&figure, 7)), theme.style(Role::Title))];
        spans.extend(bar(if most > 0.0 { counts.samples / most } else { 0.0 }, layout.bar, theme.style(hot), theme));
        let stall = counts
            .top_stall()
            .filter(|s| s.1 > 0.0)
            .map_or_else(String::new, |(r, p)| format!("{} {p:.0}%", escape_unsafe(r).replace('_', " ")));
        if layout.stall > 0 {
            spans.push(Span::styled(align_right(&stall, layout.stall + 1), theme.style(Role::Dim)));
        }
        let executed = counts.executed.filter(|_| layout.executed > 0).map_or_else(String::new, format_count);
        spans.push(Span::styled(align_right(&executed, layout.executed), theme.style(Role::Text)));
        if layout.excess {
            let excess = counts.excess_l2.unwrap_or(0.0) + counts.excess_shared.unwrap_or(0.0);
            let text = if excess > 0.0 { format_count(excess) } else { String::new() };
            spans.push(Span::styled(align_right(&text, 12), theme.style(Role::Warn)));
        }
        let stall = if layout.stall > 0 { layout.stall + 1 } else { 0 };
        let used = 8 + layout.bar + stall + layout.executed + if layout.excess { 12 } else { 0 } + 2;
        let width = layout.place;
        spans.push(Span::styled(format!("  {} ", align_left(&place, width)), theme.style(Role::Dim)));
        let text = escape_unsafe(text.trim_end()).replace("^I", "  ");
        let text = if screen.source.instructions || screen.source.in_order { text } else { text.trim_start().to_owned() };
        let role = if reads { Role::Dim } else { Role::Text };
        spans.push(Span::styled(cut_end(&text, columns.saturating_sub(used + width + 1)), theme.style(role)));
        spans
    });
}

/// Stalls and counters of the selected row.
fn selected_lines(screen: &ResultScreen, listing: &Listing, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let (counts, place) = if screen.source.instructions {
        let Some(i) = listing.instructions.get(screen.source.selected) else { return Vec::new() };
        let function = i.place.as_ref().map_or_else(String::new, |(f, o)| format!("{} +{o:#x}", escape_unsafe(f)));
        let line = i.line.and_then(|l| listing.lines.iter().find(|x| (x.file, x.line) == l));
        let from =
            line.map_or_else(String::new, |l| format!("  from {}:{}  {}", l.name, l.line, l.text.as_deref().unwrap_or_default().trim()));
        (&i.counts, format!("{function}{from}"))
    } else {
        let Some(l) = listing.lines.get(screen.source.selected) else { return Vec::new() };
        (&l.counts, format!("{}:{}, {}", l.name, l.line, units::format_count(l.instructions, "instruction")))
    };
    let stalls: Vec<String> =
        counts.stalls.iter().take(6).map(|(r, n)| format!("{} {}", escape_unsafe(r).replace('_', " "), format_count(*n))).collect();
    let lanes = counts.executed.filter(|e| *e > 0.0).zip(counts.threads);
    let lanes = lanes.map_or_else(String::new, |(warps, threads)| format!(", {:.1} of 32 threads active", threads / warps));
    let mut more = match counts.executed {
        Some(n) => vec![format!("executed {} times by {}{lanes}", format_count(n), screen.subject.maker.vendor_terms().warps)],
        None => vec!["executions were not collected".to_owned()],
    };
    if let Some(n) = counts.excess_l2.filter(|n| *n > 0.0) {
        more.push(format!("{} excess L2 sectors", format_count(n)));
    }
    if let Some(n) = counts.excess_shared.filter(|n| *n > 0.0) {
        more.push(format!("{} excess shared-memory wavefronts", format_count(n)));
    }
    vec![
        Line::styled(cut_end(&escape_unsafe(&place), columns), theme.style(Role::Text)),
        Line::styled(
            cut_end(&format!("stalls: {}", if stalls.is_empty() { "none sampled".to_owned() } else { stalls.join(", ") }), columns),
            theme.style(Role::Next),
        ),
        Line::styled(cut_end(&more.join("; "), columns), theme.style(Role::Dim)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ColorMode;
    use crate::ui::theme::Library;

    #[test]
    fn stall_reasons_and_the_rest_of_them_differ_in_colour() {
        let library = Library::new(Vec::new());
        for name in library.names().iter().filter(|n| *n != "mono") {
            for mode in [ColorMode::True, ColorMode::Sixteen] {
                // On such a terminal, this theme is the default.
                if mode == ColorMode::Sixteen && name != "sixteen" {
                    continue;
                }
                let theme = library.theme(name, mode).unwrap();
                let mut styles: Vec<_> = REASONS.into_iter().chain([OTHER]).map(|r| theme.style(r).fg).collect();
                let all = styles.len();
                styles.sort_by_key(|s| format!("{s:?}"));
                styles.dedup();
                assert_eq!(styles.len(), all, "{name} {mode:?}: {styles:?}");
            }
        }
    }
}
