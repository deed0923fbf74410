//! Launches before and after a given launch, in launch order.

use super::panel::Panel;
use super::text::{align_left, align_right};
use super::{Role, Theme};
use crate::analysis::labels::cut_middle;
use crate::analysis::table::launches::{self, LaunchRow};
use crate::analysis::table::{Outputs, columns_of};
use crate::app::Report;
use crate::model::text::escape_unsafe;
use crate::ui::table;
use crate::ui::widgets::{highlight_row, kernel_label};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// Minimum number of rows of the panel.
pub const LEAST: u16 = 7;
/// Minimum width of a kernel name.
const NAME: usize = 24;
/// Minimum width of the ranges around a launch.
const PATH: usize = 16;

pub fn draw(frame: &mut Frame<'_>, area: Rect, report: &Report, launch: usize, ascii: bool, theme: &Theme) {
    let Some(profile) = report.profile.as_deref().filter(|p| launch < p.launches.len()) else { return };
    let inner = Panel::new(vec![Span::styled("Launches around it", theme.style(Role::Title))]).draw(frame, area, true, theme);
    let applies = |id: &str| match id {
        "start_ns" => profile.launches.has_start_times(),
        "device" => profile.devices.len() > 1,
        "launch" | "duration_ns" | "grid" | "block" | "stream" => true,
        _ => false,
    };
    let columns = columns_of(launches::columns(), Outputs::SCREEN).into_iter().filter(|c| applies(c.id)).collect();
    let columns = table::fit_columns(columns, usize::from(inner.width).saturating_sub(NAME + 1), 1);
    let left = usize::from(inner.width).saturating_sub(table::total_width(&columns, 1) + 1);
    let has_paths = report.paths.as_ref().is_some_and(|p| !p.of_launch.is_empty());
    let path = if has_paths && left >= NAME + PATH + 20 { (left - NAME) / 2 } else { 0 };
    let name = left.saturating_sub(if path > 0 { path + 1 } else { 0 });
    let mut head: Vec<String> = columns.iter().map(|c| format!("{} ", align_right(c.title, c.width))).collect();
    head.push(format!(" {}", align_left("kernel", name)));
    if path > 0 {
        head.push(format!(" {}", profile.ranges.noun()));
    }
    frame.render_widget(Line::styled(head.concat(), theme.style(Role::Head)), Rect { height: inner.height.min(1), ..inner });
    let rows = usize::from(inner.height.saturating_sub(1));
    let first = launch.saturating_sub(rows / 2).min(profile.launches.len().saturating_sub(rows));
    for (line, at) in (1..).zip(first..(first + rows).min(profile.launches.len())) {
        let Ok(number) = u32::try_from(at) else { break };
        let row = LaunchRow::new(profile, report.paths.as_deref(), number, 0);
        let mut spans: Vec<Span<'static>> = columns
            .iter()
            .map(|c| {
                let role = if matches!(c.id, "launch" | "start_ns") { Role::Dim } else { Role::Text };
                Span::styled(format!("{} ", align_right(&c.shown_on_screen(&row), c.width)), theme.style(role))
            })
            .collect();
        spans.push(Span::raw(" "));
        spans.extend(kernel_label(row.kernel(), name, ascii, theme));
        if path > 0 {
            let inside = report.paths.as_ref().and_then(|p| Some(p.path_label(profile, p.launch_path(at)?))).unwrap_or_default();
            spans.push(Span::styled(format!(" {}", cut_middle(&escape_unsafe(&inside), path - 1)), theme.style(Role::Dim)));
        }
        let rect = Rect { y: inner.y + line, height: 1, ..inner };
        frame.render_widget(Line::from(spans), rect);
        if at == launch {
            highlight_row(frame.buffer_mut(), rect, theme);
        }
    }
}
