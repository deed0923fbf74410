//! Tree of ranges, with folding, sorting and a filter

mod lists;

use crate::analysis::name_pattern::name_pattern;
use crate::analysis::range_tree::{CopyTime, Node, RangeTree, WorkInside};
use crate::analysis::table::Sort;
use crate::analysis::table::ranges::{self, GPU_BUSY, GPU_IDLE};
use crate::analysis::timeline::Event;
use crate::app::actions::{ActionId, KeyScope};
use crate::app::clipboard::{self, MOST_COPIED, TO_PASTE};
use crate::app::jobs::{JobRequest, JobResult, Typical};
use crate::app::overlay::{CopyWhat, FilterInput, PickAction, PickList};
use crate::app::screen::{At, Navigate, Response, Screen, ScreenContext, ScreenEvent, Selection, move_selection};
use crate::app::session::{Report, Session};
use crate::model::Profile;
use crate::report;
use std::collections::HashSet;
use std::sync::Arc;

/// Number of levels that are unfolded initially.
const UNFOLDED: u32 = 1;

#[derive(Clone, Debug)]
pub struct RangesScreen {
    /// Tree that `shown` refers to.
    pub tree: Option<Arc<RangeTree>>,
    /// Nodes whose children are listed.
    unfolded: HashSet<u32>,
    /// Listed nodes, in order.
    pub shown: Vec<u32>,
    /// Index of the selected row in `shown`.
    pub selected: usize,
    pub sort: Sort,
    /// True if the smallest value comes first.
    pub ascending: bool,
    pub finder: FilterInput,
    /// Range to select once the tree is computed.
    wanted: Option<String>,
    /// Work launched inside a node.
    pub inside: Option<(u32, Arc<WorkInside>)>,
    /// Representative launch of these kernels: the launch with the median duration among those of the first kernel.
    typical: Option<Typical>,
    /// Id of this screen.
    serial: u64,
}

impl RangesScreen {
    /// Selects a range by name as soon as the tree is available.
    pub fn go_to_range(&mut self, name: String) {
        self.wanted = Some(name);
    }

    pub fn new(serial: u64) -> Self {
        Self {
            tree: None,
            unfolded: HashSet::new(),
            shown: Vec::new(),
            selected: 0,
            sort: GPU_BUSY,
            ascending: false,
            finder: FilterInput::default(),
            wanted: None,
            inside: None,
            typical: None,
            serial,
        }
    }

    /// The selected node.
    pub fn selected_node(&self) -> Option<(u32, &Node)> {
        let id = *self.shown.get(self.selected)?;
        Some((id, self.tree.as_ref()?.nodes.get(id as usize)?))
    }

    pub fn is_unfolded(&self, node: u32) -> bool {
        self.unfolded.contains(&node)
    }

    fn take_tree(&mut self, tree: Arc<RangeTree>) {
        self.unfolded = (0..).zip(&tree.nodes).filter(|(_, n)| n.depth < UNFOLDED).map(|(i, _)| i).collect();
        if let Some(name) = self.wanted.take() {
            let alike = name_pattern(&name);
            let found =
                (0..).zip(&tree.nodes).filter(|(_, n)| n.name == name || name_pattern(&n.name) == alike).max_by_key(|(_, n)| n.wall);
            if let Some((id, _)) = found {
                self.unfolded.extend(tree.path_from_root(id));
                self.tree = Some(tree);
                self.rebuild_rows();
                self.selected = self.shown.iter().position(|&n| n == id).unwrap_or(0);
                return;
            }
        }
        self.tree = Some(tree);
        self.rebuild_rows();
    }

    /// Lists the unfolded nodes in order; with a filter, lists all nodes whose names match.
    fn rebuild_rows(&mut self) {
        let Some(tree) = self.tree.clone() else { return };
        let selected = self.shown.get(self.selected).copied();
        let pattern = self.finder.text().to_lowercase();
        let ordered = |ids: &[u32]| {
            let mut ids = ids.to_vec();
            ranges::sort_nodes(&tree, self.sort, &mut ids, self.ascending);
            ids
        };
        let shown = if pattern.trim().is_empty() {
            let mut out = Vec::new();
            let mut stack: Vec<u32> = ordered(&tree.roots).into_iter().rev().collect();
            while let Some(id) = stack.pop() {
                out.push(id);
                if self.unfolded.contains(&id) {
                    stack.extend(ordered(&tree.nodes[id as usize].children).into_iter().rev());
                }
            }
            out
        } else {
            let words: Vec<&str> = pattern.split_whitespace().collect();
            let all: Vec<u32> = (0..)
                .zip(&tree.nodes)
                .filter(|(_, n)| {
                    let name = n.name.to_lowercase();
                    words.iter().all(|w| name.contains(w))
                })
                .map(|(i, _)| i)
                .collect();
            ordered(&all)
        };
        self.shown = shown;
        self.selected = selected.and_then(|s| self.shown.iter().position(|&n| n == s)).unwrap_or(0);
    }

    fn toggle_fold(&mut self) -> Response {
        let Some((id, node)) = self.selected_node() else { return Response::none() };
        if node.children.is_empty() {
            return Response::say("nothing is inside this range");
        }
        if !self.unfolded.remove(&id) {
            self.unfolded.insert(id);
        }
        self.rebuild_rows();
        Response::none()
    }

    fn fold_all(&mut self) -> Response {
        let Some(tree) = self.tree.clone() else { return Response::none() };
        // If everything is already unfolded, fold everything.
        let inner: HashSet<u32> = (0..).zip(&tree.nodes).filter(|(_, n)| !n.children.is_empty()).map(|(i, _)| i).collect();
        self.unfolded = if inner.is_subset(&self.unfolded) { HashSet::new() } else { inner };
        self.rebuild_rows();
        Response::none()
    }

    /// Requests the work inside the selected range.
    fn request_work(&self, cx: &ScreenContext<'_>) -> Response {
        let (Some((node, _)), Some(tree), Some(report)) = (self.selected_node(), self.tree.clone(), cx.report()) else {
            return Response::none();
        };
        if self.inside.as_ref().is_some_and(|i| i.0 == node) {
            return Response::none();
        }
        report.request_work(cx.report, JobRequest::Inside { screen: self.serial, tree, node }).into()
    }

    /// Copies inside the selected range, longest first, if they are known and no kernel is.
    pub fn only_copies(&self) -> Option<&[CopyTime]> {
        let id = self.selected_node()?.0;
        let work = self.inside.as_ref().filter(|i| i.0 == id).map(|i| &i.1)?;
        (work.kernels.is_empty() && !work.copies.is_empty()).then_some(&work.copies)
    }

    /// Opens the list of the work inside the selected range.
    fn open_work(&self, cx: &ScreenContext<'_>) -> Response {
        let Some((id, _)) = self.selected_node() else { return Response::none() };
        let (Some((of, work)), Some(profile)) = (&self.inside, cx.report().and_then(|r| r.profile.as_ref())) else {
            return self.request_work(cx);
        };
        if *of != id {
            return self.request_work(cx);
        }
        match (&work.kernels[..], &work.copies[..]) {
            ([], []) => Response::say("nothing was launched inside this range"),
            ([], [copy]) => show_copy(cx, copy.longest),
            _ => Response::open_overlay(lists::work(profile, work)),
        }
    }

    fn copy_text(&self, what: CopyWhat, profile: &Profile) -> Option<(String, String)> {
        let tree = self.tree.as_ref()?;
        let rows: Vec<u32> = match what {
            CopyWhat::Row => vec![self.selected_node()?.0],
            CopyWhat::Name(_) => return Some((self.selected_node()?.1.name.clone(), "range".to_owned())),
            _ => self.shown.iter().copied().take(MOST_COPIED).collect(),
        };
        let mut out = Vec::new();
        report::ranges::print_rows(&mut out, profile, tree, &rows, report::Format::Csv, TO_PASTE).ok()?;
        Some((String::from_utf8(out).ok()?, clipboard::copied_label(what, rows.len())))
    }
}

/// Goes to a copy on the timeline.
fn show_copy(cx: &ScreenContext<'_>, row: u32) -> Response {
    let Some(op) = cx.report().and_then(|r| r.profile.as_ref()).and_then(|p| p.memops.get(row as usize)) else {
        return Response::none();
    };
    let at = At { start: op.start.0, end: op.start.0.saturating_add(op.duration.0), event: Some(Event::Mem(row)) };
    Navigate::TimelineOf { report: cx.report, at }.into()
}

/// Returns the first instance of a node's range. With a time filter, it may begin before the window.
fn first_of(profile: &Profile, node: &Node, window: Option<(i64, i64)>) -> Option<At> {
    let ranges = &profile.ranges;
    let named = |row: usize| name_pattern(&ranges.label(ranges.get(row).name)) == name_pattern(&node.name);
    let cut = window.is_some_and(|w| w.0 == node.first);
    let first = |row: usize| {
        let range = ranges.get(row);
        range.start == node.first || cut && range.start < node.first && range.end > node.first
    };
    let row = (0..ranges.len()).find(|&row| first(row) && named(row))?;
    let range = ranges.get(row);
    Some(At { start: range.start, end: range.end.min(node.last).max(range.start), event: Some(Event::Range(u32::try_from(row).ok()?)) })
}

impl Screen for RangesScreen {
    fn place(&self) -> KeyScope {
        KeyScope::Ranges
    }

    fn refusal(&self, report: &Report) -> Option<&'static str> {
        report.no_timeline_reason()
    }

    fn opened(&mut self, cx: &mut ScreenContext<'_>) -> Response {
        let Some(report) = cx.report() else { return Response::none() };
        // If the host lets the GPU idle, sort by idle time at first, so that the ranges in which it does are on top.
        let host =
            |t: &Arc<crate::analysis::triage::Triage>| t.verdict().is_some_and(|f| f.id.idle_causes().iter().any(|c| c.is_of_host()));
        if self.tree.is_none() && self.sort == GPU_BUSY && report.whole_triage().is_some_and(host) {
            self.sort = GPU_IDLE;
        }
        match report.tree.clone() {
            Some(tree) => {
                self.take_tree(tree);
                self.request_work(cx)
            }
            None if report.is_reading() => Response::none(),
            None => report.request_work(cx.report, JobRequest::Tree).into(),
        }
    }

    fn selection(&self, session: &Session, report: usize) -> Selection {
        let (Some((id, node)), Some(report)) = (self.selected_node(), session.reports.get(report)) else { return Selection::default() };
        let (Some(grouping), Some(profile)) = (&report.groups.grouping, &report.profile) else { return Selection::default() };
        let first = self.inside.as_ref().filter(|i| i.0 == id).and_then(|i| i.1.kernels.first());
        let typical = self.typical.filter(|_| first.is_some());
        let (launch, inside) = (typical.map(|t| t.0), typical.and_then(|t| t.1));
        let row = launch.and_then(|l| grouping.row_of(profile, report.paths.as_deref(), l as usize));
        Selection {
            group: row.map(|r| (Arc::clone(grouping), r)),
            launch,
            inside,
            at: first_of(profile, node, report.window),
            ..Selection::default()
        }
    }

    fn act(&mut self, id: ActionId, cx: &mut ScreenContext<'_>) -> Option<Response> {
        Some(match id {
            ActionId::Open => self.open_work(cx),
            ActionId::Back => self.back(cx),
            ActionId::Fold => self.toggle_fold(),
            ActionId::FoldAll => self.fold_all(),
            ActionId::Filter => {
                self.finder.typing = true;
                Response::none()
            }
            ActionId::Sort => Response::open_overlay(PickList::sort_orders(&ranges::columns(true), self.sort)),
            ActionId::Reverse => {
                self.ascending = !self.ascending;
                self.rebuild_rows();
                Response::none()
            }
            ActionId::Copy => Response::open_overlay(clipboard::ranges_menu()),
            _ => return None,
        })
    }

    fn scroll(&mut self, by: isize, cx: &mut ScreenContext<'_>) -> Response {
        self.selected = move_selection(self.selected, by, self.shown.len());
        self.request_work(cx)
    }

    fn press(&mut self, row: usize, cx: &mut ScreenContext<'_>) -> Response {
        if self.selected == row {
            return self.toggle_fold();
        }
        self.selected = move_selection(row, 0, self.shown.len());
        self.request_work(cx)
    }

    fn head(&mut self, sort: Sort, cx: &mut ScreenContext<'_>) -> Response {
        self.ascending = if sort == self.sort { !self.ascending } else { sort.ascending };
        self.sort = sort;
        self.rebuild_rows();
        self.request_work(cx)
    }

    fn finder(&mut self) -> Option<&mut FilterInput> {
        Some(&mut self.finder)
    }

    fn found(&mut self, first: bool, cx: &mut ScreenContext<'_>) -> Response {
        self.rebuild_rows();
        if first {
            self.selected = 0;
        }
        self.request_work(cx)
    }

    fn choose(&mut self, choice: PickAction, cx: &mut ScreenContext<'_>) -> Response {
        match choice {
            PickAction::Sort(by) => self.head(by, cx),
            PickAction::Kernel(name) => Navigate::Kernel { report: cx.report, name }.into(),
            PickAction::Copies(row) => show_copy(cx, row),
            _ => Response::none(),
        }
    }

    fn take(&mut self, news: ScreenEvent<'_>, cx: &mut ScreenContext<'_>) -> Response {
        match news {
            ScreenEvent::Done(JobResult::Tree(tree)) => {
                self.take_tree(Arc::clone(tree));
                self.request_work(cx)
            }
            ScreenEvent::Done(JobResult::Inside(screen, node, work, typical)) if *screen == self.serial => {
                (self.inside, self.typical) = (Some((*node, Arc::clone(work))), *typical);
                Response::none()
            }
            ScreenEvent::Loaded if self.tree.is_none() => self.opened(cx),
            ScreenEvent::Window => {
                // Select the same range in the new tree.
                self.wanted = self.selected_node().map(|n| n.1.name.clone());
                (self.tree, self.inside, self.typical) = (None, None, None);
                self.shown.clear();
                self.opened(cx)
            }
            _ => Response::none(),
        }
    }

    fn copy(&self, what: CopyWhat, cx: &ScreenContext<'_>) -> Option<(String, String)> {
        self.copy_text(what, cx.report()?.profile.as_ref()?)
    }

    fn back(&mut self, cx: &mut ScreenContext<'_>) -> Response {
        if self.finder.clear() {
            return self.found(false, cx);
        }
        Navigate::Back.into()
    }
}
