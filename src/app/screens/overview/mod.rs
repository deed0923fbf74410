//! Overview of the run: findings about its limits, and the longest-running kernels

use crate::analysis::Family;
use crate::analysis::readable::readable_name;
use crate::analysis::timeline::Event;
use crate::analysis::triage::{Finding, Place, PlaceKind, Triage, Verdict};
use crate::app::actions::{ActionId, KeyScope};
use crate::app::clipboard::TO_PASTE;
use crate::app::msg::Effect;
use crate::app::overlay::{CopyWhat, Page};
use crate::app::screen::{At, Navigate, Response, ResultView, Screen, ScreenContext, Selection, move_selection};
use crate::app::session::lead::Lead;
use crate::app::session::{Report, Session};
use crate::model::{Kernel, MemOpKind, Profile};
use crate::report;
use crate::report::document::Renderer;
use std::sync::Arc;

/// Number of operations around the start of a place among which its copy is looked for.
const NEAR: usize = 64;
/// Share of a place from which a finding is about all of it.
const WHOLE: f64 = 0.9;
/// Maximum number of listed kernels.
pub const KERNELS: usize = 40;

#[derive(Clone, Debug, Default)]
pub struct OverviewScreen {
    /// Index of the selected row: findings first, then kernels.
    pub selected: usize,
}

pub enum OverviewRow<'a> {
    /// The cause that limits the run more than its own findings; the first row, if there is one.
    Lead(Lead<'a>),
    Finding(&'a Finding),
    /// Kernel, by its index in [`Triage::kernels`].
    Kernel(usize),
}

/// Triage of a report, if it has been computed and anything ran on a device.
pub fn available_triage(report: &Report) -> Option<&Arc<Triage>> {
    report.triage.as_ref()?.as_ref()
}

fn row_count(session: &Session, report: usize, triage: &Triage) -> usize {
    usize::from(session.lead(report).is_some()) + triage.findings.len() + triage.kernels.len().min(KERNELS)
}

/// Row of a report's overview.
pub fn row_at<'a>(session: &'a Session, report: usize, triage: &'a Triage, mut at: usize) -> Option<OverviewRow<'a>> {
    if let Some(lead) = session.lead(report) {
        match at.checked_sub(1) {
            Some(own) => at = own,
            None => return Some(OverviewRow::Lead(lead)),
        }
    }
    if let Some(finding) = triage.findings.get(at) {
        return Some(OverviewRow::Finding(finding));
    }
    let kernel = at - triage.findings.len();
    (kernel < triage.kernels.len().min(KERNELS)).then_some(OverviewRow::Kernel(kernel))
}

/// The longest occurrence of a finding, ns. One that spans half of the window or more is a last resort, unless the
/// finding is about all of it, as about a single delay.
pub fn longest_occurrence(finding: &Finding, window: (i64, i64)) -> Option<(i64, i64)> {
    let whole = |p: &Place| p.ns.is_some_and(|ns| ns as f64 >= (p.end - p.start) as f64 * WHOLE);
    let short = |p: &&Place| p.end > p.start && ((p.end - p.start) * 2 < window.1 - window.0 || whole(p));
    let longest = finding.places.iter().filter(short).find(|p| p.kind == PlaceKind::Window);
    let place = longest.or_else(|| finding.places.iter().find(short)).or_else(|| finding.places.iter().find(|p| p.end > p.start));
    place.map(|p| (p.start, p.end))
}

/// Position of the collective that a finding names, with its step in view.
fn exposed_collective(profile: &Profile, triage: &Triage, finding: &Finding, (start, end): (i64, i64)) -> Option<At> {
    if !matches!(finding.id, Verdict::CommBound | Verdict::CommExposed) {
        return None;
    }
    let launches = &profile.launches;
    // Launches need not be in order of time.
    let row = (0..launches.len()).find(|&row| launches.start(row) == start && launches.end(row) == end)?;
    let step = triage.steps.iter().find(|s| s.start <= start && start < s.end);
    let (start, end) = step.map_or((start, end), |s| (s.start.min(start), s.end.max(end)));
    Some(At { start, end, event: Some(Event::Launch(u32::try_from(row).ok()?)) })
}

/// Position of the copy that a finding names: the one with the largest part in the place.
fn named_copy(profile: &Profile, finding: &Finding, (start, end): (i64, i64)) -> Option<At> {
    if !matches!(finding.id, Verdict::SmallCopies | Verdict::PageableCopies | Verdict::CopyBound) {
        return None;
    }
    let memops = &profile.memops;
    let first = memops.count_before(start);
    let rows = first.saturating_sub(NEAR)..memops.len().min(first + NEAR);
    let near = rows.filter_map(|row| memops.get(row).map(|m| (row, (m.start.0, m.start.0 + m.duration.0, m.kind))));
    let copies = near.filter(|(_, m)| matches!(m.2, MemOpKind::Copy { .. }) && m.0 < end && start < m.1);
    let (row, _) = copies.max_by_key(|(row, m)| (m.1.min(end) - m.0.max(start), std::cmp::Reverse(*row)))?;
    Some(At { start, end, event: Some(Event::Mem(u32::try_from(row).ok()?)) })
}

/// The selected finding, if it is about the time between kernels: no kernel explains it or has to be profiled again.
pub fn finding_between_kernels<'a>(session: &Session, report: usize, triage: &'a Triage, at: usize) -> Option<&'a Finding> {
    let at = at.checked_sub(usize::from(session.lead(report).is_some()))?;
    let finding = triage.findings.get(at)?;
    let names_kernel = || finding.places.iter().any(|p| p.kind == PlaceKind::Kernel);
    (!finding.id.is_of_kernels() && !names_kernel()).then_some(finding)
}

/// Returns true if a finding is shown on the timeline; findings about kernels are shown in the kernel table.
pub fn opens_timeline(report: &Report, finding: &Finding) -> bool {
    !finding.id.is_of_kernels() && report.profile.as_ref().is_some_and(|p| p.launches.has_start_times())
}

impl OverviewScreen {
    /// Opens the selected row: a finding on the timeline at its longest occurrence, or a kernel.
    fn open_selected(&self, cx: &ScreenContext<'_>) -> Response {
        let Some(report) = cx.report() else { return Response::none() };
        let Some(triage) = available_triage(report) else { return Navigate::Kernels(None).into() };
        let name_of = |kernel: u32| {
            let profile = report.profile.as_ref()?;
            profile.kernels.get(kernel as usize).map(|k| readable_name(k).into_owned())
        };
        match row_at(cx.session, cx.report, triage, self.selected) {
            Some(OverviewRow::Lead(Lead::Straggler(_))) => Navigate::Ranks.into(),
            Some(OverviewRow::Lead(Lead::Kernel(lead))) => Navigate::Kernels(Some(lead.kernel)).into(),
            Some(OverviewRow::Kernel(at)) => Navigate::Kernels(triage.kernels.get(at).and_then(|k| name_of(k.0))).into(),
            Some(OverviewRow::Finding(finding)) => {
                if opens_timeline(report, finding) {
                    return Navigate::Timeline.into();
                }
                let kernel = finding.places.iter().find(|p| p.kind == PlaceKind::Kernel);
                Navigate::Kernels(kernel.map(|p| p.name.clone())).into()
            }
            None => Navigate::Kernels(None).into(),
        }
    }

    fn copy_text(what: CopyWhat, report: &Report) -> Option<(String, String)> {
        let triage = available_triage(report)?;
        let profile = report.profile.as_ref()?;
        let mut out = Vec::new();
        let said = match what {
            CopyWhat::Table => {
                report::triage::print_csv(&mut out, &[(profile, triage)], None, TO_PASTE).ok()?;
                "findings as CSV"
            }
            _ => {
                report::triage::document(&[(profile, triage)], None).write(&mut out, Renderer::Text, Some(110)).ok()?;
                "overview as text"
            }
        };
        Some((String::from_utf8(out).ok()?, said.to_owned()))
    }
}

impl Screen for OverviewScreen {
    fn place(&self) -> KeyScope {
        KeyScope::Overview
    }

    fn refusal(&self, report: &Report) -> Option<&'static str> {
        report.no_timeline_reason()
    }

    fn selection(&self, session: &Session, index: usize) -> Selection {
        let Some(report) = session.reports.get(index) else { return Selection::default() };
        let (Some(triage), Some(profile), Some(grouping)) = (available_triage(report), &report.profile, &report.groups.grouping) else {
            return Selection::default();
        };
        let at = match row_at(session, index, triage, self.selected) {
            Some(OverviewRow::Kernel(at)) => at,
            Some(OverviewRow::Lead(Lead::Kernel(lead))) => {
                let found = grouping.rows.iter().position(|r| r.name == lead.kernel);
                let result = found.and_then(|r| report.best_result(r));
                return Selection { group: found.map(|r| (Arc::clone(grouping), r)), result, ..Selection::default() };
            }
            Some(OverviewRow::Finding(finding)) => {
                let place = longest_occurrence(finding, triage.window);
                let place = place.map(|place| {
                    let named = exposed_collective(profile, triage, finding, place).or_else(|| named_copy(profile, finding, place));
                    named.unwrap_or(At { start: place.0, end: place.1, event: None })
                });
                let whole = At { start: triage.window.0, end: triage.window.1, event: None };
                // Re-runs use the kernel named by the finding, or otherwise the first kernel.
                let named = finding.places.iter().find(|p| p.kind == PlaceKind::Kernel).map(|p| p.name.as_str().into());
                // A collective cannot be profiled alone.
                let computes = |k: &&Kernel| Family::guess(k.function(), k.demangled()) != Family::Nccl;
                let first = || triage.kernels.iter().filter_map(|k| profile.kernels.get(k.0 as usize)).find(computes).map(readable_name);
                let name = named.or_else(first);
                let found = grouping.rows.iter().position(|r| name.as_ref().is_some_and(|n| r.name == *n));
                let result = found.and_then(|r| report.best_result(r));
                let group = found.map(|r| (Arc::clone(grouping), r));
                return Selection { group, result, at: place.or(Some(whole)), ..Selection::default() };
            }
            Some(OverviewRow::Lead(Lead::Straggler(_))) | None => return Selection::default(),
        };
        let name = triage.kernels.get(at).and_then(|k| profile.kernels.get(k.0 as usize)).map(readable_name);
        let found = grouping.rows.iter().position(|r| name.as_ref().is_some_and(|n| r.name == *n));
        let result = found.and_then(|r| report.best_result(r));
        Selection { group: found.map(|r| (Arc::clone(grouping), r)), result, ..Selection::default() }
    }

    fn act(&mut self, id: ActionId, cx: &mut ScreenContext<'_>) -> Option<Response> {
        Some(match id {
            ActionId::Open => self.open_selected(cx),
            ActionId::Back => self.back(cx),
            ActionId::Details => {
                let triage = available_triage(cx.report()?)?;
                match row_at(cx.session, cx.report, triage, self.selected)? {
                    OverviewRow::Lead(Lead::Straggler(s)) => {
                        Response::open_overlay(Page::Finding(Arc::new(s.finding.clone()), triage.origin(), triage.base))
                    }
                    OverviewRow::Finding(finding) => {
                        Response::open_overlay(Page::Finding(Arc::new(finding.clone()), triage.origin(), triage.base))
                    }
                    OverviewRow::Lead(Lead::Kernel(_)) => Navigate::Result(ResultView::Hints).into(),
                    OverviewRow::Kernel(_) => self.open_selected(cx),
                }
            }
            ActionId::Hints | ActionId::Rerun => {
                let triage = available_triage(cx.report()?)?;
                if let Some(OverviewRow::Lead(Lead::Straggler(s))) = row_at(cx.session, cx.report, triage, self.selected) {
                    let page = Response::open_overlay(Page::Finding(Arc::new(s.finding.clone()), triage.origin(), triage.base));
                    let ranks = cx.session.key_label(ActionId::Ranks);
                    return Some(match id {
                        ActionId::Hints => page,
                        _ => page.and_say(format!("no re-run of a kernel explains this; {ranks} shows the ranks"), false),
                    });
                }
                let finding = finding_between_kernels(cx.session, cx.report, triage, self.selected)?;
                let key = |id| cx.session.key_label(id);
                let page = Response::open_overlay(Page::Finding(Arc::new(finding.clone()), triage.origin(), triage.base));
                if id == ActionId::Hints {
                    page
                } else if finding.confirm.is_some() {
                    page.and_say(
                        format!("no re-run of a kernel explains this; {} copies the recording that does", key(ActionId::Copy)),
                        false,
                    )
                } else {
                    page.and_say(format!("no re-run of a kernel explains this; {} lists the kernels", key(ActionId::Kernels)), false)
                }
            }
            ActionId::Copy => match cx.report().and_then(|r| Self::copy_text(CopyWhat::Row, r)) {
                Some((text, said)) => Response::effect(Effect::Copy(text, said)),
                None => Response::error_message("nothing is known yet"),
            },
            _ => return None,
        })
    }

    fn scroll(&mut self, by: isize, cx: &mut ScreenContext<'_>) -> Response {
        let rows = cx.report().and_then(available_triage).map_or(0, |t| row_count(cx.session, cx.report, t));
        self.selected = move_selection(self.selected, by, rows);
        Response::none()
    }

    fn press(&mut self, row: usize, cx: &mut ScreenContext<'_>) -> Response {
        if self.selected == row {
            return self.open_selected(cx);
        }
        self.selected = row;
        self.scroll(0, cx)
    }

    fn copy(&self, what: CopyWhat, cx: &ScreenContext<'_>) -> Option<(String, String)> {
        Self::copy_text(what, cx.report()?)
    }
}
