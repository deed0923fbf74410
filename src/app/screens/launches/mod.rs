//! Launches of one group

mod lists;

use crate::analysis::launch_list::{Facets, JumpTo, LaunchList, ListKey};
use crate::analysis::table::Sort;
use crate::analysis::table::launches::{self, LAUNCH, LaunchRow};
use crate::analysis::{GroupBy, Grouping};
use crate::app::actions::{ActionId, KeyScope};
use crate::app::clipboard::{self, MOST_COPIED, TO_PASTE};
use crate::app::jobs::{JobRequest, JobResult};
use crate::app::overlay::{CopyWhat, Facet, OverlayKind, PickAction, PickList};
use crate::app::screen::{Navigate, Response, ResultView, Screen, ScreenContext, ScreenEvent, Selection, move_selection};
use crate::app::session::Session;
use crate::report;
use std::sync::Arc;
use tui_input::Input;

#[derive(Clone, Debug)]
pub struct LaunchesScreen {
    /// Grouping that contains the group.
    pub grouping: Arc<Grouping>,
    /// Row of the group in `grouping`.
    pub row: usize,
    pub facets: Facets,
    pub sort: Sort,
    /// True if the smallest value comes first.
    pub ascending: bool,
    /// The launches, once computed.
    pub list: Option<Arc<LaunchList>>,
    /// Index of the selected launch in the list.
    pub selected: usize,
    /// Launch to select in the first list.
    pub wanted: Option<u32>,
    /// Launch that was selected when the list was requested.
    stood: Option<u32>,
    /// Id of this screen.
    serial: u64,
    /// Parameters of `list`.
    list_key: ListKey,
}

impl LaunchesScreen {
    /// Creates the screen of one group, in launch order.
    pub fn new(grouping: Arc<Grouping>, row: usize, serial: u64) -> Self {
        Self {
            grouping,
            row,
            facets: Facets::default(),
            sort: LAUNCH,
            ascending: true,
            list: None,
            selected: 0,
            wanted: None,
            stood: None,
            serial,
            list_key: ListKey::default(),
        }
    }

    /// Number of launches listed.
    pub fn len(&self) -> usize {
        self.list.as_ref().map_or(0, |l| l.rows.len())
    }

    /// Returns true if no launches are listed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn selected_launch(&self) -> Option<u32> {
        self.list.as_ref()?.rows.get(self.selected).map(|r| r.0)
    }

    /// Parameters of the list to show.
    pub fn wanted_key(&self) -> ListKey {
        ListKey { serial: self.serial, facets: self.facets.clone(), sort: Some(self.sort), ascending: self.ascending }
    }

    /// Returns true if `list` is not up to date.
    pub fn is_pending(&self) -> bool {
        self.list_key != self.wanted_key()
    }

    pub fn group_name(&self) -> &str {
        self.grouping.rows.get(self.row).map_or("", |r| &r.name)
    }

    pub fn grouped_by(&self) -> GroupBy {
        self.grouping.by
    }

    /// Requests the list with this launch selected.
    fn request_list(&mut self, cx: &ScreenContext<'_>, keep: Option<u32>) -> Response {
        self.stood = self.selected_launch();
        let (grouping, before) = (self.grouping.clone(), self.list.clone());
        let ask = JobRequest::Launches { grouping, row: self.row, key: self.wanted_key(), before, keep };
        cx.report().map(|r| r.request_work(cx.report, ask)).unwrap_or_default().into()
    }

    /// Sorts by another key and selects the first launch; with `turn`, choosing the same key again reverses the order.
    fn change_order(&mut self, by: Sort, turn: bool, cx: &ScreenContext<'_>) -> Response {
        if self.sort != by {
            (self.sort, self.ascending) = (by, by.ascending);
        } else if turn {
            self.ascending = !self.ascending;
        } else {
            return Response::none();
        }
        self.request_list(cx, None)
    }

    /// Requests a jump to a launch; the search runs in the background, because there may be millions of launches.
    fn request_jump(&self, to: JumpTo, cx: &ScreenContext<'_>) -> Response {
        let (Some(report), Some(list)) = (cx.report(), &self.list) else { return Response::error_message("no launches are listed") };
        let own = report.profile.as_ref().is_some_and(|p| p.metrics.is_some());
        let joins = (!own).then(|| report.joins.iter().map(|(_, j)| Arc::clone(j)).collect());
        let ask = JobRequest::Jump { screen: self.serial, list: Arc::clone(list), to, from: self.selected, joins };
        report.request_work(cx.report, ask).into()
    }

    fn apply_jump(&mut self, to: JumpTo, at: Option<usize>, cx: &ScreenContext<'_>) -> Response {
        match (at, to) {
            (Some(at), _) => {
                self.selected = at;
                Response::none()
            }
            (None, JumpTo::Profiled) => {
                let outside = self.selected_launch().and_then(|l| cx.report()?.measured_outside(l));
                let (rerun, whole) = (cx.session.key_label(ActionId::Rerun), cx.session.key_label(ActionId::Narrow));
                Response::error_message(match outside {
                    Some(launch) => format!(
                        "launch {} was measured, outside of the shown time: {whole} shows the whole run",
                        crate::model::units::format_grouped(i64::from(launch))
                    ),
                    None => format!("none of these was profiled with ncu; {rerun} shows the command that does"),
                })
            }
            (None, JumpTo::Nth(n)) => Response::error_message(format!("launch number {n} is not in this list")),
            _ => Response::error_message("no launches are listed"),
        }
    }

    fn selected_result(&self, session: &Session, report: usize) -> Option<crate::app::session::measured_group::Best> {
        let (launch, own) = (self.selected_launch()?, session.reports.get(report)?);
        if own.profile.as_ref()?.metrics.is_some() {
            return Some((report, launch as usize, None));
        }
        own.find_pair(launch).map(|(other, pair)| (other, pair.result, Some(pair.sure)))
    }
}

impl Screen for LaunchesScreen {
    fn place(&self) -> KeyScope {
        KeyScope::Launches
    }

    fn opened(&mut self, cx: &mut ScreenContext<'_>) -> Response {
        self.request_list(cx, self.wanted)
    }

    fn selection(&self, session: &Session, report: usize) -> Selection {
        let group = Some((self.grouping.clone(), self.row));
        Selection { group, launch: self.selected_launch(), result: self.selected_result(session, report), ..Selection::default() }
    }

    fn act(&mut self, id: ActionId, cx: &mut ScreenContext<'_>) -> Option<Response> {
        Some(match id {
            // Opens the launch's metrics, or explains how to get them.
            ActionId::Open => Navigate::Result(ResultView::Metrics).into(),
            ActionId::Back => self.back(cx),
            ActionId::Jump => Response::open_overlay(lists::jump_targets()),
            ActionId::Facet => Response::open_overlay(lists::facets(&self.facets, self.list.as_ref()?)),
            ActionId::Sort => Response::open_overlay(PickList::sort_orders(&launches::columns(), self.sort)),
            ActionId::Reverse => self.change_order(self.sort, true, cx),
            ActionId::Copy => Response::open_overlay(clipboard::table_menu()),
            _ => return None,
        })
    }

    fn scroll(&mut self, by: isize, _cx: &mut ScreenContext<'_>) -> Response {
        self.selected = move_selection(self.selected, by, self.len());
        Response::none()
    }

    fn press(&mut self, row: usize, _cx: &mut ScreenContext<'_>) -> Response {
        self.selected = move_selection(row, 0, self.len());
        Response::none()
    }

    fn head(&mut self, sort: Sort, cx: &mut ScreenContext<'_>) -> Response {
        self.change_order(sort, true, cx)
    }

    fn choose(&mut self, choice: PickAction, cx: &mut ScreenContext<'_>) -> Response {
        match choice {
            PickAction::Sort(by) => self.change_order(by, false, cx),
            PickAction::Jump(to) => self.request_jump(to, cx),
            PickAction::AskNth => Response::open_overlay(OverlayKind::Number(Input::default())),
            PickAction::Facet(facet) => {
                let pick = self.list.as_ref().zip(cx.report()).and_then(|(list, report)| lists::facet_values(facet, list, report));
                pick.map(Response::open_overlay).unwrap_or_default()
            }
            PickAction::FacetValue(facet, value) => {
                match facet {
                    Facet::Stream => self.facets.stream = value,
                    Facet::Device => self.facets.device = value,
                    Facet::Process => self.facets.pid = value,
                    Facet::Path => self.facets.path = value,
                }
                self.request_list(cx, self.selected_launch())
            }
            _ => Response::none(),
        }
    }

    fn take(&mut self, news: ScreenEvent<'_>, cx: &mut ScreenContext<'_>) -> Response {
        match news {
            ScreenEvent::Done(JobResult::Launches(key, list, at)) if *key == self.wanted_key() => {
                // If the user has moved the selection since the request, keep it.
                let moved = self.selected_launch().filter(|_| self.selected_launch() != self.stood).and_then(|l| list.row_of_launch(l));
                (self.list_key, self.selected) = (key.clone(), moved.unwrap_or(*at));
                self.list = Some(Arc::clone(list));
                Response::none()
            }
            // Paths are now available, so launches can be filtered by range.
            ScreenEvent::Done(JobResult::Paths(_)) => self.request_list(cx, self.selected_launch().or(self.wanted)),
            ScreenEvent::Done(JobResult::Jumped(serial, list, to, at)) if *serial == self.serial => {
                // The list may have been rebuilt since the request, in another order or with ranges.
                let same = self.list.as_ref().is_some_and(|l| Arc::ptr_eq(l, list));
                if same { self.apply_jump(*to, *at, cx) } else { self.request_jump(*to, cx) }
            }
            _ => Response::none(),
        }
    }

    fn copy(&self, what: CopyWhat, cx: &ScreenContext<'_>) -> Option<(String, String)> {
        let report = cx.report()?;
        let profile = report.profile.as_ref()?;
        if let CopyWhat::Name(form) = what {
            let kernel = profile.kernels.get(profile.launches.kernel(self.selected_launch()? as usize).0 as usize)?;
            return Some((kernel.name(form).to_owned(), format!("{} name", form.as_str())));
        }
        let list = self.list.as_ref()?;
        let picked: Vec<(u32, u32)> = match what {
            CopyWhat::Row => list.rows.get(self.selected).copied().into_iter().collect(),
            _ => list.rows.iter().take(MOST_COPIED).copied().collect(),
        };
        let rows = picked.iter().map(|&(row, nth)| LaunchRow::new(profile, report.paths.as_deref(), row, nth));
        let mut out = Vec::new();
        report::launches::print_rows(&mut out, rows, report::Format::Csv, TO_PASTE).ok()?;
        Some((String::from_utf8(out).ok()?, clipboard::copied_label(what, picked.len())))
    }

    fn back(&mut self, cx: &mut ScreenContext<'_>) -> Response {
        if self.facets.has_conditions() {
            self.facets = Facets::default();
            return self.request_list(cx, self.selected_launch());
        }
        Navigate::Back.into()
    }
}
