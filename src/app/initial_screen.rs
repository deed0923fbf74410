//! Initial screen of a report

use super::msg::Effect;
use super::navigation::{open_screen, show_result};
use super::screen::ResultView;
use super::screens::{MemoryScreen, OverviewScreen};
use super::state::App;
use crate::config::First;

/// Minimum terminal height for the overview.
const LEAST_ROWS: u16 = 20;

/// Opens the initial screen of a report that has just been read, unless that screen is the kernel table or the user has
/// already started to work with the report.
pub fn show_initial_screen(app: &mut App, report: usize) -> Vec<Effect> {
    if let Some(effects) = show_only_result(app, report) {
        return effects;
    }
    let overview = (app.session.settings.first == First::Overview || app.session.tour.is_some()) && app.session.size.1 >= LEAST_ROWS;
    let Some(r) = app.session.reports.get_mut(report).filter(|r| !r.greeted && r.is_timeline() && (r.has_device_work() || r.has_memory()))
    else {
        return Vec::new();
    };
    r.greeted = true;
    let memory = !r.has_device_work();
    let idle = app.kernels_screen(report).is_some_and(|k| k.selected == 0 && k.finder.is_empty() && !k.finder.typing);
    if !(overview || memory) || !idle || app.stack_depth(report) != 1 || app.over.as_ref().is_some_and(|o| o.report == report) {
        return Vec::new();
    }
    let id = if memory { app.push(report, MemoryScreen::new) } else { app.push(report, |_| OverviewScreen::default()) };
    open_screen(app, id)
}

/// Opens the hints for the only result of the only report: a table of one row says less.
fn show_only_result(app: &mut App, report: usize) -> Option<Vec<Effect>> {
    if app.session.settings.first != First::Overview || app.session.reports.len() != 1 {
        return None;
    }
    let untouched = app.kernels_screen(report).is_some_and(|k| k.finder.is_empty() && !k.finder.typing) && app.stack_depth(report) == 1;
    let r = app.session.reports.get_mut(report).filter(|r| !r.greeted && !r.is_reading() && !r.is_timeline())?;
    let results = r.profile.as_ref()?.metrics.as_ref()?.results.len();
    if results != 1 || !untouched || app.over.is_some() {
        return None;
    }
    r.greeted = true;
    Some(show_result(app, report, (report, 0, None), ResultView::Hints, ResultView::Hints))
}
