//! Changes between two reports, kernel by kernel

use crate::analysis::GroupBy;
use crate::analysis::diff::{Diff, DiffRow, Side};
use crate::app::actions::{ActionId, KeyScope};
use crate::app::clipboard::{MOST_COPIED, TO_PASTE};
use crate::app::jobs::{JobRequest, JobResult, Work};
use crate::app::msg::Effect;
use crate::app::overlay::{CopyWhat, Item, PickAction, PickList};
use crate::app::screen::{Navigate, Response, Screen, ScreenContext, ScreenEvent, move_selection};
use crate::app::session::measured_group::Best;
use crate::app::session::{Report, Session};
use crate::model::units::format_count;
use crate::report;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct DiffScreen {
    /// Index of the report before the change.
    pub before: usize,
    /// Index of the report after the change.
    pub after: usize,
    /// Comparison; `None` until it is computed.
    pub diff: Option<Arc<Diff>>,
    /// Index of the selected row.
    pub selected: usize,
    /// Generations of both reports for which the comparison was requested.
    asked: Option<(u64, u64)>,
}

impl DiffScreen {
    pub fn new(before: usize, after: usize) -> Self {
        Self { before, after, diff: None, selected: 0, asked: None }
    }

    /// Compares two reports in session order, as `diff` compares files in argument order. Tells the user if they were
    /// recorded in the opposite order.
    pub fn in_order(session: &Session, a: usize, b: usize) -> Response {
        let (before, after) = (a.min(b), a.max(b));
        let began = |i: usize| session.reports.get(i).and_then(Report::clock_start);
        let reversed = began(before).zip(began(after)).is_some_and(|(x, y)| x > y);
        let response = Response::from(Navigate::Changes { before, after });
        if session.are_ranks(before, after) {
            let ranks = session.key_label(ActionId::Ranks);
            response.and_say(format!("these are two ranks of one job, neither of which is before the other: {ranks} compares them"), false)
        } else if reversed {
            let swap = session.key_label(ActionId::Swap);
            response.and_say(format!("the second report was recorded before the first: {swap} swaps them"), false)
        } else {
            response
        }
    }

    /// Lets the user choose a report to compare with, if there are several others.
    pub fn ask_baseline(session: &Session) -> Response {
        let active = session.active_run();
        let others = session.baselines();
        match others[..] {
            [] => {
                let key = |id| session.key_label(id);
                let (open, library) = (key(ActionId::OpenFile), key(ActionId::Library));
                let results = session.metrics(active).map_or(0, |m| m.results.len());
                if results > 1 {
                    let (result, compare) = (key(ActionId::Metrics), key(ActionId::Compare));
                    return Response::say(format!(
                        "only one report is open: {open} opens a second one; {result} opens a result, and {compare} there compares it with another"
                    ));
                }
                Response::say(format!("only one report is open: {open} opens a second one, {library} an earlier run"))
            }
            [other] => Self::in_order(session, other, active),
            _ => {
                let item = |i: usize| {
                    let file = &session.reports[i].file;
                    let name = file.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
                    let path = file.display().to_string();
                    let hint = if path == name { String::new() } else { path };
                    Item::new(name, hint, None, PickAction::Changes(i, active))
                };
                Response::open_overlay(PickList::by_typing("compare with this baseline", others.into_iter().map(item).collect()))
            }
        }
    }

    /// Requests the comparison once both reports have been read.
    fn request_diff(&mut self, session: &Session) -> Vec<Effect> {
        if self.diff.is_some() {
            return Vec::new();
        }
        let ready = |i: usize| session.reports.get(i).filter(|r| !r.is_reading()).and_then(|r| Some((r.generation, r.profile.clone()?)));
        let (Some((older, before)), Some((generation, profile))) = (ready(self.before), ready(self.after)) else { return Vec::new() };
        // Reading another report must not repeat the request.
        if self.asked.replace((older, generation)) == Some((older, generation)) {
            return Vec::new();
        }
        let judged = [self.before, self.after].map(|i| session.reports.get(i).and_then(Report::whole_triage).cloned());
        let ask = JobRequest::Diff { before, by: GroupBy::Kernel, pair: (self.before, self.after), judged };
        vec![Effect::Work(Box::new(Work::on_whole(self.after, generation, profile, ask)))]
    }

    fn row_count(&self) -> usize {
        self.diff.as_ref().map_or(0, |d| d.rows.len())
    }

    fn selected_row(&self) -> Option<&DiffRow> {
        self.diff.as_ref()?.rows.get(self.selected)
    }

    /// Results of the selected kernel in `before` and `after`, if each report has one of its own.
    pub fn selected_results(&self, session: &Session) -> Option<(Best, Best)> {
        let row = self.selected_row()?;
        let of = |report: usize, side: &Option<Side>| {
            let (report, name) = (session.reports.get(report)?, &side.as_ref()?.name);
            let grouping = report.groups.grouping.as_ref().filter(|g| g.by.is_kernel())?;
            report.best_result(grouping.rows.iter().position(|r| r.name == *name)?)
        };
        let (after, before) = (of(self.after, &row.after)?, of(self.before, &row.before)?);
        // A result can belong to launches of two timelines.
        ((after.0, after.1) != (before.0, before.1)).then_some((before, after))
    }

    /// Opens both results of the selected kernel, in the order of the comparison. Without them, opens the kernel in the
    /// report `after`, or in `before` if it no longer exists.
    fn open_kernel(&self, session: &Session) -> Response {
        let Some(row) = self.selected_row() else { return Response::none() };
        let beside = self.selected_results(session);
        let (report, side) = match (&row.before, &row.after) {
            (Some(side), _) if beside.is_some() => (self.before, side),
            (_, Some(side)) => (self.after, side),
            (Some(side), None) => (self.before, side),
            _ => return Response::none(),
        };
        Navigate::Changed { report, name: side.name.clone(), beside }.into()
    }

    fn copy_text(&self) -> Option<(String, String)> {
        let diff = self.diff.as_ref()?;
        let rows: Vec<_> = diff.rows.iter().take(MOST_COPIED).collect();
        let mut out = Vec::new();
        report::diff::print_csv(&mut out, &rows, TO_PASTE).ok()?;
        Some((String::from_utf8(out).ok()?, format_count(rows.len(), "row")))
    }
}

impl Screen for DiffScreen {
    fn place(&self) -> KeyScope {
        KeyScope::Diff
    }

    fn opened(&mut self, cx: &mut ScreenContext<'_>) -> Response {
        self.request_diff(cx.session).into()
    }

    fn act(&mut self, id: ActionId, cx: &mut ScreenContext<'_>) -> Option<Response> {
        Some(match id {
            ActionId::Open => self.open_kernel(cx.session),
            ActionId::Back => self.back(cx),
            ActionId::Swap => Navigate::Changes { before: self.after, after: self.before }.into(),
            ActionId::Copy => match self.copy_text() {
                Some((text, said)) => Response::effect(Effect::Copy(text, said)),
                None => Response::error_message("nothing is selected"),
            },
            _ => return None,
        })
    }

    fn scroll(&mut self, by: isize, _: &mut ScreenContext<'_>) -> Response {
        self.selected = move_selection(self.selected, by, self.row_count());
        Response::none()
    }

    fn press(&mut self, row: usize, cx: &mut ScreenContext<'_>) -> Response {
        if self.selected == row {
            return self.open_kernel(cx.session);
        }
        self.selected = move_selection(row, 0, self.row_count());
        Response::none()
    }

    fn take(&mut self, news: ScreenEvent<'_>, cx: &mut ScreenContext<'_>) -> Response {
        match news {
            ScreenEvent::Done(JobResult::Diff(pair, diff)) if *pair == (self.before, self.after) => self.diff = Some(Arc::clone(diff)),
            ScreenEvent::Loaded => return self.request_diff(cx.session).into(),
            _ => {}
        }
        Response::none()
    }

    fn copy(&self, _: CopyWhat, _: &ScreenContext<'_>) -> Option<(String, String)> {
        self.copy_text()
    }
}
