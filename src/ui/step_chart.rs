//! Durations of the judged steps in order, as columns: in each, the time in which a GPU worked, and above it the idle time
//! in the colour of its main cause.

use super::panel::{Panel, draw_lines, split_top};
use super::text::{align_left, align_right};
use super::{Role, Theme};
use crate::analysis::labels::display_width;
use crate::analysis::triage::{Step, TimeCategory, Triage};
use crate::model::{Nanos, units};
use crate::report::triage::step_noun;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

/// Minimum height of the panel with its borders.
pub const LEAST: u16 = 7;
/// Minimum number of steps for a useful chart.
const LEAST_STEPS: usize = 4;
/// Maximum height of the columns, and that of columns which are all about as high.
const MOST_ROWS: usize = 24;
const EVEN_ROWS: usize = 6;
/// Ratio of the longest step to the median one up to which all columns are about as high.
const EVEN: f64 = 1.2;
/// Blocks by their height in eighths.
const LEVELS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// A column: length of a step, and idle time in it, ns, with its main cause.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Column {
    length: i64,
    idle: i64,
    cause: Option<TimeCategory>,
}

pub fn is_useful(triage: &Triage) -> bool {
    triage.steps.len() >= LEAST_STEPS && triage.step_idle.len() == triage.steps.len()
}

/// One column or more for each step, or the longest of several steps in a column.
fn columns_of(steps: &[Step], idle: &[(i64, Option<TimeCategory>)], columns: usize) -> Vec<Column> {
    let n = steps.len().min(idle.len());
    let of_column = |x: usize| {
        let from = x * n / columns;
        let to = ((x + 1) * n / columns).max(from + 1).min(n);
        let longest = (from..to).max_by_key(|&i| steps[i].length())?;
        let (length, (ns, cause)) = (steps[longest].length(), idle[longest]);
        Some(Column { length, idle: ns.clamp(0, length), cause })
    };
    (0..columns).filter_map(of_column).collect()
}

/// A cell of a column: the heights in eighths, from the cell's lower edge, of the busy time and of the whole step.
fn cell((busy, total): (usize, usize), column: Column, theme: &Theme) -> Span<'static> {
    let busy_style = theme.style(Role::Part(TimeCategory::Kernels));
    let idle = theme.style(Role::Part(column.cause.unwrap_or(TimeCategory::Other)));
    let Some(colour) = idle.fg.filter(|_| busy_style.fg.is_some()) else {
        // Without colours, a shade stands for idle time.
        return Span::styled(
            match (busy, total) {
                (4.., _) => "█",
                (_, 4..) => "░",
                _ => " ",
            },
            busy_style,
        );
    };
    match (busy, total) {
        (0, _) => Span::styled(LEVELS[total], Style::default().fg(colour)),
        (1..8, 8) => Span::styled(LEVELS[busy], busy_style.bg(colour)),
        // A cell has two colours, one of which is the background above the step.
        _ if busy * 2 >= total => Span::styled(LEVELS[busy], busy_style),
        _ => Span::styled(LEVELS[total], Style::default().fg(colour)),
    }
}

/// Draws the panel over the upper part of the area that it needs, and removes that part.
/// Its title is followed by `of`, which names the run where the panels around it are about a part of it.
pub fn draw(frame: &mut Frame<'_>, area: &mut Rect, triage: &Triage, of: &str, theme: &Theme) {
    let Some(stats) = triage.step_stats() else { return };
    let even = stats.max as f64 <= stats.median as f64 * EVEN;
    let rows = usize::from(area.height.saturating_sub(3)).min(if even { EVEN_ROWS } else { MOST_ROWS });
    let place = split_top(area, u16::try_from(rows + 3).unwrap_or(area.height));
    let (dim, noun) = (theme.style(Role::Dim), step_noun(triage));
    let title = vec![
        Span::styled(format!("{}{of}", if noun == "step" { "Steps" } else { "Repetitions" }), theme.style(Role::Title)),
        Span::styled(format!("  {}, median {}", units::format_grouped(stats.count), Nanos(stats.median)), dim),
    ];
    let note = vec![Span::styled("busy below, idle above", dim)];
    let inner = Panel::new(title).note(note).draw(frame, place, true, theme);
    let most = triage.steps.iter().map(Step::length).max().unwrap_or(1).max(1);
    let label = Nanos(most).to_string();
    let labels = display_width(&label) + 1;
    let columns = columns_of(&triage.steps, &triage.step_idle, usize::from(inner.width).saturating_sub(labels));
    let height = |ns: i64| (ns as f64 / most as f64 * (rows * 8) as f64).round() as usize;
    let mut lines: Vec<Line<'static>> = Vec::new();
    for row in 0..rows {
        let below = (rows - 1 - row) * 8;
        let inside = |ns: i64| height(ns).saturating_sub(below).min(8);
        let side = if row == 0 { label.as_str() } else { "" };
        let mut spans = vec![Span::styled(format!("{} ", align_right(side, labels - 1)), dim)];
        spans.extend(columns.iter().map(|c| cell((inside(c.length - c.idle), inside(c.length)), *c, theme)));
        lines.push(Line::from(spans));
    }
    let number = |step: Option<&Step>| step.map_or_else(String::new, |s| format!("{noun} {}", s.number));
    let (first, last) = (number(triage.steps.first()), number(triage.steps.last()));
    let gap = columns.len().saturating_sub(display_width(&last));
    lines.push(Line::styled(format!("{}{}{last}", " ".repeat(labels), align_left(&first, gap)), theme.style(Role::Faint)));
    draw_lines(frame, inner, lines);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ColorMode;
    use crate::ui::theme::Library;

    #[test]
    fn each_column_shows_its_longest_step() {
        let step = |number: u32, length: i64| Step { start: 0, end: length, number };
        let steps = [step(0, 4), step(1, 2), step(2, 9), step(3, 1)];
        let idle = [(1, None), (2, None), (12, Some(TimeCategory::Launching)), (0, None)];
        let lengths = |columns: usize| columns_of(&steps, &idle, columns).iter().map(|c| (c.length, c.idle)).collect::<Vec<_>>();
        assert_eq!(lengths(8), [(4, 1), (4, 1), (2, 2), (2, 2), (9, 9), (9, 9), (1, 0), (1, 0)]);
        assert_eq!(lengths(2), [(4, 1), (9, 9)]);
        assert!(lengths(0).is_empty() && columns_of(&[], &[], 3).is_empty());
    }

    #[test]
    fn idle_time_stands_on_busy_time() {
        let library = Library::new(Vec::new());
        let column = Column { length: 16, idle: 8, cause: Some(TimeCategory::Launching) };
        let theme = library.theme("dark", ColorMode::True).unwrap();
        let colour = |part| theme.style(Role::Part(part)).fg;
        let busy_colour = theme.style(Role::Part(TimeCategory::Kernels)).fg;
        let at = |busy, total| cell((busy, total), column, &theme);
        assert_eq!((at(8, 8).content.as_ref(), at(8, 8).style.fg), ("█", busy_colour));
        let border = at(3, 8);
        assert_eq!((border.content.as_ref(), border.style.fg, border.style.bg), ("▃", busy_colour, colour(TimeCategory::Launching)));
        assert_eq!((at(0, 5).content.as_ref(), at(0, 5).style.fg), ("▅", colour(TimeCategory::Launching)));
        let mono = library.theme("mono", ColorMode::None).unwrap();
        let text: String = [(8, 8), (0, 8), (0, 0)].map(|c| cell(c, column, &mono).content.into_owned()).concat();
        assert_eq!(text, "█░ ");
    }
}
