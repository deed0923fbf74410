//! The hottest source lines, or instructions, with their stall reasons and counters.

use super::super::table::{self, Rows};
use super::super::text::{bar, left, right, wrap};
use super::super::view::View;
use super::super::{Role, Theme};
use crate::analysis::code::{Counts, Listing};
use crate::analysis::labels::{cut_end, cut_middle};
use crate::analysis::metric::count;
use crate::app::ResultScreen;
use crate::app::screens::result::Asked;
use crate::model::text::clean;
use crate::model::units;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span, Text};

pub fn draw(frame: &mut Frame<'_>, area: Rect, screen: &ResultScreen, view: &mut View, theme: &Theme) {
    let columns = usize::from(area.width);
    let say = |frame: &mut Frame<'_>, text: &str, role: Role| {
        let lines = wrap(&clean(text), columns).into_iter().map(|l| Line::styled(l, theme.style(role)));
        frame.render_widget(Text::from(lines.collect::<Vec<_>>()), area);
    };
    match (&screen.source.code, &screen.source.listing) {
        (Asked::Failed(why), _) => return say(frame, why, Role::Bad),
        (Asked::Waiting, _) | (_, None) => return say(frame, "reading the code …", Role::Dim),
        _ => {}
    }
    let Some(listing) = &screen.source.listing else { return };
    let notes: Vec<Line<'static>> =
        listing.remarks.iter().flat_map(|r| wrap(&clean(r), columns)).take(3).map(|l| Line::styled(l, theme.style(Role::Dim))).collect();
    let n = u16::try_from(notes.len()).unwrap_or(0);
    let below = if area.height > 14 && screen.source.rows() > 0 { 3 } else { 0 };
    let [head, titles, rows, detail, foot] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(3),
        Constraint::Length(below),
        Constraint::Length(n),
    ])
    .areas(area);
    let what = if screen.source.instructions { "instructions" } else { "source lines" };
    let order = if screen.source.in_order { "in order" } else { "hottest first" };
    let line = vec![
        Span::styled(
            format!("{} {}", screen.source.rows(), if screen.source.rows() == 1 { what.trim_end_matches('s') } else { what }),
            theme.style(Role::Text),
        ),
        Span::styled(format!(", {order}   "), theme.style(Role::Dim)),
        Span::styled(format!("{} samples", count(listing.samples)), theme.style(Role::Dim)),
    ];
    frame.render_widget(Line::from(line), head);
    let layout = layout(columns);
    let title = format!(
        "{}{}{}{}  {}",
        right("samples", 8 + layout.bar + 1),
        right(if layout.stall > 0 { "top stall" } else { "" }, layout.stall),
        right("executed", 12),
        if layout.excess { right("excess", 10) } else { String::new() },
        if screen.source.instructions { "offset    instruction" } else { "line" }
    );
    frame.render_widget(Line::styled(cut_end(&title, columns), theme.style(Role::Head)), titles);
    list(frame, rows, screen, listing, &layout, view, theme);
    if below > 0 {
        frame.render_widget(Text::from(selected(screen, listing, columns, theme)), detail);
    }
    frame.render_widget(Text::from(notes), foot);
}

struct Columns {
    bar: usize,
    stall: usize,
    excess: bool,
}

fn layout(columns: usize) -> Columns {
    Columns { bar: if columns >= 100 { 12 } else { 5 }, stall: if columns >= 90 { 26 } else { 19 }, excess: columns >= 110 }
}

fn list(frame: &mut Frame<'_>, area: Rect, screen: &ResultScreen, listing: &Listing, layout: &Columns, view: &mut View, theme: &Theme) {
    let columns = usize::from(area.width);
    let most = if screen.source.instructions {
        listing.instructions.iter().map(|i| i.counts.samples).fold(0.0, f64::max)
    } else {
        listing.lines.iter().map(|l| l.counts.samples).fold(0.0, f64::max)
    };
    let of = Rows { list: "source", count: screen.source.rows(), selected: screen.source.selected };
    table::rows(frame, area, of, view, theme, |at, _| {
        let (counts, place, text): (&Counts, String, String) = if screen.source.instructions {
            let Some(i) = listing.instructions.get(at) else { return Vec::new() };
            let offset = i.place.as_ref().map_or_else(|| format!("{:#x}", i.address), |(_, o)| format!("+{o:04x}"));
            (&i.counts, offset, i.text.as_deref().unwrap_or("").to_owned())
        } else {
            let Some(l) = listing.lines.get(at) else { return Vec::new() };
            (&l.counts, format!("{}:{}", cut_middle(&clean(&l.name), 22), l.line), l.text.clone().unwrap_or_default())
        };
        let share = if listing.samples > 0.0 { counts.samples / listing.samples * 100.0 } else { 0.0 };
        let hot = if share >= 10.0 { Role::Peak } else { Role::Bar };
        let mut spans = vec![Span::styled(format!("{} ", right(&format!("{share:.1}%"), 7)), theme.style(Role::Title))];
        spans.extend(bar(if most > 0.0 { counts.samples / most } else { 0.0 }, layout.bar, theme.style(hot), theme));
        let stall =
            counts.top_stall().filter(|s| s.1 > 0.0).map_or_else(String::new, |(r, p)| format!("{} {p:.0}%", clean(r).replace('_', " ")));
        spans.push(Span::styled(right(&stall, layout.stall + 1), theme.style(Role::Dim)));
        spans.push(Span::styled(right(&counts.executed.map_or_else(String::new, count), 12), theme.style(Role::Text)));
        if layout.excess {
            let excess = counts.excess_l2.unwrap_or(0.0) + counts.excess_shared.unwrap_or(0.0);
            let text = if excess > 0.0 { count(excess) } else { String::new() };
            spans.push(Span::styled(right(&text, 10), theme.style(Role::Warn)));
        }
        let used = 8 + layout.bar + layout.stall + 1 + 12 + if layout.excess { 10 } else { 0 } + 2;
        let width = if screen.source.instructions { 9 } else { 16 };
        spans.push(Span::styled(format!("  {} ", left(&place, width)), theme.style(Role::Dim)));
        let text = clean(text.trim_end()).replace("^I", "  ");
        let text = if screen.source.instructions { text } else { text.trim_start().to_owned() };
        spans.push(Span::styled(cut_end(&text, columns.saturating_sub(used + width + 1)), theme.style(Role::Text)));
        spans
    });
}

/// The selected row's stalls and counters.
fn selected(screen: &ResultScreen, listing: &Listing, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let (counts, place) = if screen.source.instructions {
        let Some(i) = listing.instructions.get(screen.source.selected) else { return Vec::new() };
        let function = i.place.as_ref().map_or_else(String::new, |(f, o)| format!("{} +{o:#x}", clean(f)));
        let line = i.line.and_then(|l| listing.lines.iter().find(|x| (x.file, x.line) == l));
        let from =
            line.map_or_else(String::new, |l| format!("  from {}:{}  {}", l.name, l.line, l.text.as_deref().unwrap_or_default().trim()));
        (&i.counts, format!("{function}{from}"))
    } else {
        let Some(l) = listing.lines.get(screen.source.selected) else { return Vec::new() };
        (&l.counts, format!("{}:{}, {}", l.name, l.line, units::count(l.instructions, "instruction")))
    };
    let stalls: Vec<String> = counts.stalls.iter().take(6).map(|(r, n)| format!("{} {}", clean(r).replace('_', " "), count(*n))).collect();
    let lanes = counts.executed.filter(|e| *e > 0.0).zip(counts.threads);
    let lanes = lanes.map_or_else(String::new, |(warps, threads)| format!(", {:.1} of 32 threads active", threads / warps));
    let mut more = match counts.executed {
        Some(n) => vec![format!("executed {} times by warps{lanes}", count(n))],
        None => vec!["executions were not collected".to_owned()],
    };
    if let Some(n) = counts.excess_l2.filter(|n| *n > 0.0) {
        more.push(format!("{} excess L2 sectors", count(n)));
    }
    if let Some(n) = counts.excess_shared.filter(|n| *n > 0.0) {
        more.push(format!("{} excess shared-memory wavefronts", count(n)));
    }
    vec![
        Line::styled(cut_end(&clean(&place), columns), theme.style(Role::Text)),
        Line::styled(
            cut_end(&format!("stalls: {}", if stalls.is_empty() { "none sampled".to_owned() } else { stalls.join(", ") }), columns),
            theme.style(Role::Next),
        ),
        Line::styled(cut_end(&more.join("; "), columns), theme.style(Role::Dim)),
    ]
}
