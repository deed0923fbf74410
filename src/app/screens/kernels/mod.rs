//! Table of kernels: groups of launches, filtered and sorted

mod lists;

use crate::analysis::fuzzy::Fuzzy;
use crate::analysis::table::{Sort, kernels};
use crate::analysis::{GroupBy, Grouping, kernel_groups};
use crate::app::actions::{ActionId, KeyScope};
use crate::app::clipboard::{self, MOST_COPIED, TO_PASTE};
use crate::app::jobs::JobResult;
use crate::app::msg::Effect;
use crate::app::overlay::{CopyWhat, FilterInput, PickAction, PickList};
use crate::app::screen::{Navigate, Response, ResultView, Screen, ScreenContext, ScreenEvent, Selection, move_selection};
use crate::app::screens::overview::available_triage;
use crate::app::session::{Groups, Report, Session};
use crate::report;
use std::sync::Arc;

/// Limit on total name length × pattern length, above which the filter only matches words literally: fuzzy matching
/// takes about 5 ns per pair of letters, and a key press must take effect within 16 ms.
const MOST_FUZZY: usize = 2_000_000;
/// Maximum length of a filter, in characters.
const LONGEST_FILTER: usize = 100;

#[derive(Clone, Debug)]
pub struct KernelsScreen {
    /// Grouping that `shown` refers to.
    of: Option<Arc<Grouping>>,
    pub sort: Sort,
    /// True if the smallest value comes first.
    pub ascending: bool,
    pub finder: FilterInput,
    /// Listed rows of the grouping, in order.
    pub shown: Vec<u32>,
    /// Index of the selected row in `shown`.
    pub selected: usize,
    /// Names of all groups in lower case, for the filter; built on first use.
    lower: Option<Vec<String>>,
}

fn is_same_grouping(a: Option<&Arc<Grouping>>, b: Option<&Arc<Grouping>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        (a, b) => a.is_none() && b.is_none(),
    }
}

/// Text that the filter searches: the row's name, and its kernel's exact name and family.
fn search_text(row: &kernel_groups::GroupRow) -> String {
    let exact = row.exact.as_deref().unwrap_or_default();
    // RCCL's kernels can be found by both names.
    let [family, other] = if row.kernel.is_some() { [false, true].map(|amd| row.family.vendor_name(amd)) } else { ["", ""] };
    format!("{} {exact} {family} {other}", row.name).to_lowercase()
}

impl KernelsScreen {
    pub fn new(sort: Sort) -> Self {
        Self { of: None, sort, ascending: sort.ascending, finder: FilterInput::default(), shown: Vec::new(), selected: 0, lower: None }
    }

    /// Index of the selected row in the grouping, which is independent of filter and order.
    pub fn selected_row(&self) -> Option<usize> {
        self.shown.get(self.selected).map(|&r| r as usize)
    }

    /// Selects a group by name; returns false if it is not listed.
    pub fn select_by_name(&mut self, name: &str) -> bool {
        let Some(grouping) = &self.of else { return false };
        // A row can have a readable name that contains its function, such as `gelu (vectorized_elementwise_kernel)`:
        // match both forms.
        let of =
            |function: &str, name: &str| name.strip_suffix(')').and_then(|n| n.strip_suffix(function)).is_some_and(|n| n.ends_with(" ("));
        let at = |is: &dyn Fn(&str) -> bool| self.shown.iter().position(|&r| is(&grouping.rows[r as usize].name));
        let found = at(&|row| row == name).or_else(|| at(&|row| of(name, row) || of(row, name)));
        self.selected = found.unwrap_or(self.selected);
        found.is_some()
    }

    /// Name of the selected group.
    pub fn selected_name(&self) -> Option<&str> {
        self.of.as_ref()?.rows.get(self.selected_row()?).map(|r| r.name.as_str())
    }

    /// Filters and sorts again, keeping the selected group if it is still listed.
    pub fn rebuild_rows(&mut self, groups: &Groups) {
        let selected = self.selected_name().map(str::to_owned);
        if !is_same_grouping(self.of.as_ref(), groups.grouping.as_ref()) {
            self.of.clone_from(&groups.grouping);
            self.lower = None;
        }
        let Some(grouping) = &self.of else { return };
        let pattern: String = self.finder.text().chars().take(LONGEST_FILTER).collect();
        let all = (0..u32::try_from(grouping.rows.len()).unwrap_or(u32::MAX)).collect::<Vec<_>>();
        let fuzzy_cost = groups.labels.iter().map(String::len).sum::<usize>().saturating_mul(pattern.len());
        let listed = if pattern.trim().is_empty() {
            all
        } else {
            let fuzzy = Fuzzy::new(&pattern);
            let lower = self.lower.get_or_insert_with(|| grouping.rows.iter().map(search_text).collect());
            let words: Vec<String> = pattern.split_whitespace().map(str::to_lowercase).collect();
            let passes = |&row: &u32| {
                let label = groups.labels.get(row as usize).map_or("", String::as_str);
                // The full name must contain the words literally: nearly every long name would match fuzzily.
                (fuzzy_cost <= MOST_FUZZY && fuzzy.matches(label)) || {
                    let name = lower.get(row as usize).map_or("", String::as_str);
                    words.iter().all(|w| name.contains(w))
                }
            };
            all.into_iter().filter(passes).collect()
        };
        self.shown = kernels::sort_groups(&grouping.rows, &listed, self.sort, self.ascending);
        let found = selected.and_then(|name| self.shown.iter().position(|&r| grouping.rows[r as usize].name == name));
        self.selected = found.unwrap_or(0).min(self.shown.len().saturating_sub(1));
    }

    /// Sorts by another key; choosing the same key again reverses the order.
    fn sort_by(&mut self, sort: Sort, groups: &Groups) {
        if self.sort == sort {
            self.ascending = !self.ascending;
        } else {
            self.sort = sort;
            self.ascending = sort.ascending;
        }
        self.rebuild_rows(groups);
    }

    /// Requests the details of the new selection.
    fn request_details(&self, cx: &mut ScreenContext<'_>) -> Response {
        let (at, row) = (cx.report, self.selected_row());
        cx.report_mut().map(|r| r.want_detail(at, row)).unwrap_or_default().into()
    }

    fn change_order(&mut self, sort: Sort, cx: &mut ScreenContext<'_>) -> Response {
        let Some(report) = cx.report() else { return Response::none() };
        self.sort_by(sort, &report.groups);
        self.request_details(cx)
    }

    /// Opens the selected group.
    fn open_selected(&self, cx: &ScreenContext<'_>) -> Response {
        let Some(report) = cx.report() else { return Response::none() };
        let (Some(grouping), Some(row), Some(profile)) = (self.of.clone(), self.selected_row(), &report.profile) else {
            return Response::none();
        };
        // A list of a single result is not useful.
        if profile.metrics.is_some() && grouping.rows.get(row).is_some_and(|g| g.stats.count == 1) {
            return Navigate::Result(ResultView::Metrics).into();
        }
        if profile.launches.is_empty() {
            return Response::error_message("this report has per-kernel totals only");
        }
        if report.is_reading() {
            return Response::say("the launches are still being read");
        }
        Navigate::Launches { grouping, row }.into()
    }

    fn copy_rows(&self, what: CopyWhat, report: &Report) -> Option<(String, String)> {
        let (profile, grouping) = (report.profile.as_ref()?, self.of.as_ref()?);
        let marked = &report.groups.marked;
        let picked: Vec<u32> = match what {
            CopyWhat::Row => vec![u32::try_from(self.selected_row()?).ok()?],
            _ if !marked.is_empty() => self.shown.iter().copied().filter(|&r| marked.contains(&grouping.rows[r as usize].name)).collect(),
            _ => self.shown.iter().copied().take(MOST_COPIED).collect(),
        };
        let mut out = Vec::new();
        // The screen shows diagnoses of kernels only.
        let known = report.diagnosed.iter().filter(|_| grouping.by.is_kernel());
        let diagnoses = known.filter_map(|(&row, hint)| Some((u32::try_from(row).ok()?, hint.id))).collect();
        let beyond = report::top::Beyond { diagnoses, ..report::top::Beyond::default() };
        report::top::print_rows(&mut out, profile, grouping, &picked, report::Format::Csv, TO_PASTE, &beyond).ok()?;
        Some((String::from_utf8(out).ok()?, clipboard::copied_label(what, picked.len())))
    }
}

impl Screen for KernelsScreen {
    fn place(&self) -> KeyScope {
        KeyScope::Kernels
    }

    fn selection(&self, session: &Session, report: usize) -> Selection {
        let Some(row) = self.selected_row() else { return Selection::default() };
        let result = session.reports.get(report).and_then(|r| r.best_result(row));
        Selection { group: self.of.clone().map(|g| (g, row)), result, ..Selection::default() }
    }

    fn act(&mut self, id: ActionId, cx: &mut ScreenContext<'_>) -> Option<Response> {
        Some(match id {
            ActionId::Open => self.open_selected(cx),
            ActionId::Back => self.back(cx),
            ActionId::Filter => {
                self.finder.typing = true;
                Response::none()
            }
            ActionId::Group => {
                let report = cx.report()?;
                let lines = report.profile.as_ref().is_some_and(|p| p.graph_nodes.have_stacks());
                Response::open_overlay(lists::groupings(report.groups.by, lines))
            }
            ActionId::Sort => Response::open_overlay(PickList::sort_orders(&kernels::columns(GroupBy::Kernel), self.sort)),
            ActionId::Reverse => self.change_order(self.sort, cx),
            ActionId::Mark => {
                let name = self.selected_name()?.to_owned();
                cx.report_mut()?.groups.toggle_mark(name);
                self.selected = move_selection(self.selected, 1, self.shown.len());
                self.request_details(cx)
            }
            ActionId::Unmark => {
                cx.report_mut()?.groups.clear_marks();
                Response::none()
            }
            ActionId::Copy => Response::open_overlay(clipboard::table_menu()),
            _ => return None,
        })
    }

    fn scroll(&mut self, by: isize, cx: &mut ScreenContext<'_>) -> Response {
        self.selected = move_selection(self.selected, by, self.shown.len());
        self.request_details(cx)
    }

    fn press(&mut self, row: usize, cx: &mut ScreenContext<'_>) -> Response {
        if self.selected == row {
            return self.open_selected(cx);
        }
        self.selected = move_selection(row, 0, self.shown.len());
        self.request_details(cx)
    }

    fn head(&mut self, sort: Sort, cx: &mut ScreenContext<'_>) -> Response {
        self.change_order(sort, cx)
    }

    fn finder(&mut self) -> Option<&mut FilterInput> {
        Some(&mut self.finder)
    }

    fn found(&mut self, first: bool, cx: &mut ScreenContext<'_>) -> Response {
        let Some(report) = cx.report() else { return Response::none() };
        self.rebuild_rows(&report.groups);
        if first {
            self.selected = 0;
        }
        self.request_details(cx)
    }

    fn choose(&mut self, choice: PickAction, cx: &mut ScreenContext<'_>) -> Response {
        match choice {
            PickAction::Group(by) => {
                let at = cx.report;
                cx.report_mut().map(|r| r.set_grouping(at, by)).unwrap_or_default().into()
            }
            PickAction::Sort(by) if by == self.sort => self.request_details(cx),
            PickAction::Sort(by) => self.change_order(by, cx),
            _ => Response::none(),
        }
    }

    fn take(&mut self, news: ScreenEvent<'_>, cx: &mut ScreenContext<'_>) -> Response {
        match news {
            ScreenEvent::Done(JobResult::Group(_)) | ScreenEvent::Window => {
                let Some(report) = cx.report() else { return Response::none() };
                self.rebuild_rows(&report.groups);
            }
            ScreenEvent::Done(JobResult::Paths(_)) => {}
            // The form of names affects the row list only if there is a filter.
            ScreenEvent::Names if !self.finder.is_empty() => {
                let Some(report) = cx.report() else { return Response::none() };
                self.rebuild_rows(&report.groups);
                return Response::none();
            }
            _ => return Response::none(),
        }
        let (at, row) = (cx.report, self.selected_row());
        cx.report_mut().map(|r| r.want_detail_now(at, row)).unwrap_or_default().into()
    }

    fn copy(&self, what: CopyWhat, cx: &ScreenContext<'_>) -> Option<(String, String)> {
        let report = cx.report()?;
        let CopyWhat::Name(form) = what else { return self.copy_rows(what, report) };
        let row = self.of.as_ref()?.rows.get(self.selected_row()?)?;
        let kernel = row.kernel.and_then(|k| report.profile.as_ref()?.kernels.get(k.0 as usize));
        Some((kernel.map_or(row.name.as_str(), |k| k.name(form)).to_owned(), format!("{} name", form.as_str())))
    }

    /// Clears the filter, returns the focus from the details, or clears the time filter. Otherwise, goes to the
    /// overview, or explains how to quit if there is none.
    fn back(&mut self, cx: &mut ScreenContext<'_>) -> Response {
        if self.finder.clear() {
            return self.found(false, cx);
        }
        if cx.report().is_some_and(Report::is_reading) {
            return Response::effect(Effect::Cancel(cx.report));
        }
        if cx.session.changes_behind == Some(cx.report) {
            return Navigate::Back.into();
        }
        if cx.report().is_some_and(|r| r.chosen_window().is_some()) {
            return Navigate::Window(None).into();
        }
        if cx.report().is_some_and(|r| r.is_timeline() && available_triage(r).is_some()) {
            return Navigate::Toggle(KeyScope::Overview).into();
        }
        Response::say(format!("{} quits", cx.session.key_label(ActionId::Quit)))
    }
}
