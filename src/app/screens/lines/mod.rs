//! Tree of the program's calls, by device idle time during each call

use crate::analysis::call_tree::{CallNode, CallTree};
use crate::app::actions::{ActionId, KeyScope};
use crate::app::clipboard::{self, TO_PASTE};
use crate::app::jobs::JobResult;
use crate::app::msg::Effect;
use crate::app::overlay::{CopyWhat, FilterInput};
use crate::app::screen::{At, Navigate, Response, Screen, ScreenContext, ScreenEvent, Selection, move_selection};
use crate::app::screens::overview::available_triage;
use crate::app::session::{Report, Session};
use crate::report::Format;
use crate::report::host_lines::{HostLines, thread_label};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Minimum share of its caller's time for a call to be unfolded initially, so that the dominant path is open.
const MAIN: f64 = 0.5;

/// Share of the time from which a call is unfolded initially if there is room for it.
const LEAST_UNFOLDED: f64 = 0.01;
/// Part of the screen's height that the unfolded calls may fill initially.
const UNFOLDED_ROWS: (u16, u16) = (3, 5);

/// Lines of a source file, or why they are not shown.
pub type SourceLines = Result<Arc<[String]>, String>;

#[derive(Clone, Debug, Default)]
pub struct LinesScreen {
    pub tree: Arc<CallTree>,
    /// Nodes whose calls are listed.
    unfolded: HashSet<u32>,
    /// Listed nodes, in order.
    pub shown: Vec<u32>,
    /// Number of listed callers of each listed node.
    pub depths: Vec<u32>,
    /// Index of the selected row in `shown`.
    pub selected: usize,
    pub finder: FilterInput,
    /// Source files by path; `None` while a file is being read.
    sources: HashMap<Arc<str>, Option<SourceLines>>,
}

/// If a function's only call accounts for at least this percentage of its time, the function is just a launcher or a
/// loop around that call.
const LAUNCHER: i64 = 99;

/// The only call of a function that does nothing else of note. Launchers and loops are such functions: listing them
/// would fill the screen with rows of the same time.
fn only_call(tree: &CallTree, id: u32) -> Option<u32> {
    let node = tree.nodes.get(id as usize)?;
    let [only] = node.children.as_slice() else { return None };
    (node.parent.is_some() && tree.nodes.get(*only as usize)?.ns.saturating_mul(100) >= node.ns.saturating_mul(LAUNCHER)).then_some(*only)
}

fn unfolded_rows((_, rows): (u16, u16)) -> usize {
    usize::from(rows * UNFOLDED_ROWS.0 / UNFOLDED_ROWS.1)
}

impl LinesScreen {
    /// Source file of the selected function, once it has been read.
    pub fn source(&self) -> Option<&SourceLines> {
        self.sources.get(self.selected_node()?.frame.file.as_ref()?)?.as_ref()
    }

    /// Requests the source of the selected function.
    fn request_source(&mut self, cx: &ScreenContext<'_>) -> Response {
        let file = self.selected_node().filter(|n| n.frame.python).and_then(|n| n.frame.file.clone());
        match file {
            Some(file) if !self.sources.contains_key(&file) => {
                self.sources.insert(Arc::clone(&file), None);
                Response::effect(Effect::SourceText { report: cx.report, file })
            }
            _ => Response::none(),
        }
    }

    pub fn selected_node(&self) -> Option<&CallNode> {
        self.tree.nodes.get(*self.shown.get(self.selected)? as usize)
    }

    pub fn is_unfolded(&self, node: u32) -> bool {
        self.unfolded.contains(&node)
    }

    /// Takes the tree of calls, unfolded as far as `rows` have room.
    fn take_triage(&mut self, report: &Report, rows: usize) {
        let Some((triage, profile)) = available_triage(report).zip(report.profile.as_ref()) else {
            *self = Self { finder: std::mem::take(&mut self.finder), sources: std::mem::take(&mut self.sources), ..Self::default() };
            return;
        };
        let tree = CallTree::from_time(&triage.host_time, |thread| thread_label(profile, thread));
        let node = |id: u32| tree.nodes.get(id as usize);
        let is_main = |n: &CallNode| n.ns > 0 && n.parent.and_then(node).is_none_or(|p| n.ns as f64 >= MAIN * p.ns as f64);
        // Parents precede their children in `nodes`, so below a folded node all nodes stay folded.
        let mut unfolded = HashSet::new();
        for (id, n) in (0..).zip(&tree.nodes) {
            if is_main(n) && n.parent.is_none_or(|p| unfolded.contains(&p)) {
                unfolded.insert(id);
            }
        }
        self.unfolded = unfolded;
        self.tree = Arc::new(tree);
        self.rebuild_rows();
        while self.shown.len() < rows && self.unfold_longest() {
            self.rebuild_rows();
        }
        // Initially select the innermost call of the dominant path.
        self.selected = self.main_row();
    }

    /// Unfolds the listed call with the most time among those that are folded; false if there is none worth it.
    fn unfold_longest(&mut self) -> bool {
        let least = (self.tree.known as f64 * LEAST_UNFOLDED) as i64;
        let folded = self.shown.iter().filter_map(|&id| Some((id, self.tree.nodes.get(id as usize)?)));
        let folded = folded.filter(|(id, n)| !n.children.is_empty() && n.ns > least && !self.unfolded.contains(id));
        let Some((id, _)) = folded.max_by_key(|(_, n)| n.ns) else { return false };
        self.unfolded.insert(id)
    }

    /// Row of the innermost call that accounts for most of the time.
    fn main_row(&self) -> usize {
        let all = self.tree.known as f64;
        let is_main = |&(_, &id): &(usize, &u32)| self.tree.nodes.get(id as usize).is_some_and(|n| n.ns as f64 > MAIN * all);
        self.shown.iter().enumerate().rfind(is_main).map_or(0, |(row, _)| row)
    }

    /// Lists the unfolded calls in order; with a filter, lists all calls whose function or file matches.
    fn rebuild_rows(&mut self) {
        let selected = self.shown.get(self.selected).copied();
        let pattern = self.finder.text().to_lowercase();
        let words: Vec<&str> = pattern.split_whitespace().collect();
        let tree = &self.tree;
        self.depths.clear();
        self.shown = if words.is_empty() {
            let mut out = Vec::new();
            let mut open: Vec<(u32, u32)> = tree.roots.iter().rev().map(|&id| (id, 0)).collect();
            while let Some((mut id, depth)) = open.pop() {
                while let Some(only) = only_call(tree, id) {
                    id = only;
                }
                out.push(id);
                self.depths.push(depth);
                if self.unfolded.contains(&id) {
                    open.extend(tree.nodes.get(id as usize).iter().flat_map(|n| n.children.iter().rev()).map(|&c| (c, depth + 1)));
                }
            }
            out
        } else {
            let matches = |n: &CallNode| {
                let name = n.label().to_lowercase();
                words.iter().all(|w| name.contains(w))
            };
            let mut found: Vec<u32> = (0..).zip(&tree.nodes).filter(|(_, n)| matches(n)).map(|(id, _)| id).collect();
            found.sort_by_key(|&id| std::cmp::Reverse(tree.nodes.get(id as usize).map_or(0, |n| n.ns)));
            found
        };
        self.selected = selected.and_then(|s| self.shown.iter().position(|&n| n == s)).unwrap_or(0);
    }

    fn toggle_fold(&mut self) -> Response {
        let Some(&id) = self.shown.get(self.selected) else { return Response::none() };
        if self.tree.nodes.get(id as usize).is_none_or(|n| n.children.is_empty()) {
            return Response::say("no call below this one was sampled");
        }
        if !self.unfolded.remove(&id) {
            self.unfolded.insert(id);
        }
        self.rebuild_rows();
        Response::none()
    }

    fn fold_all(&mut self) -> Response {
        let inner: HashSet<u32> = (0..).zip(&self.tree.nodes).filter(|(_, n)| !n.children.is_empty()).map(|(i, _)| i).collect();
        // If everything is already unfolded, fold everything.
        self.unfolded = if inner.is_subset(&self.unfolded) { HashSet::new() } else { inner };
        self.rebuild_rows();
        Response::none()
    }

    fn copy_text(&self, what: CopyWhat, report: &Report) -> Option<(String, String)> {
        let node = self.selected_node()?;
        let of = |text: String, said: &str| Some((text, said.to_owned()));
        match what {
            CopyWhat::Name(_) => of(node.label(), "function"),
            CopyWhat::Row => of(format!("{}\t{} ns", node.label(), node.ns), "row"),
            _ => {
                let (profile, triage) = (report.profile.as_ref()?, available_triage(report)?);
                let mut out = Vec::new();
                HostLines::of_functions(profile, triage).print_rows(&mut out, Format::Csv, TO_PASTE).ok()?;
                of(String::from_utf8(out).ok()?, "lines as CSV")
            }
        }
    }
}

impl Screen for LinesScreen {
    fn place(&self) -> KeyScope {
        KeyScope::Lines
    }

    fn refusal(&self, report: &Report) -> Option<&'static str> {
        report.no_timeline_reason()
    }

    fn opened(&mut self, cx: &mut ScreenContext<'_>) -> Response {
        let rows = unfolded_rows(cx.session.size);
        if let Some(report) = cx.report() {
            self.take_triage(report, rows);
        }
        self.request_source(cx)
    }

    fn take(&mut self, news: ScreenEvent<'_>, cx: &mut ScreenContext<'_>) -> Response {
        match news {
            ScreenEvent::Done(JobResult::Triage(_)) => {
                let rows = unfolded_rows(cx.session.size);
                if let Some(report) = cx.report() {
                    self.take_triage(report, rows);
                }
                self.request_source(cx)
            }
            ScreenEvent::SourceText { file, outcome } => {
                self.sources.insert(Arc::clone(file), Some(outcome.clone()));
                Response::none()
            }
            _ => Response::none(),
        }
    }

    fn selection(&self, _session: &Session, _report: usize) -> Selection {
        let at = self.selected_node().map(|n| At { start: n.longest.0, end: n.longest.1, event: None });
        Selection { at, ..Selection::default() }
    }

    fn act(&mut self, id: ActionId, cx: &mut ScreenContext<'_>) -> Option<Response> {
        Some(match id {
            ActionId::Open if self.selected_node().is_some() => Navigate::Timeline.into(),
            ActionId::Back => self.back(cx),
            ActionId::Fold => self.toggle_fold(),
            ActionId::FoldAll => self.fold_all(),
            ActionId::Filter => {
                self.finder.typing = true;
                Response::none()
            }
            ActionId::Copy => Response::open_overlay(clipboard::lines_menu()),
            _ => return None,
        })
    }

    fn scroll(&mut self, by: isize, cx: &mut ScreenContext<'_>) -> Response {
        self.selected = move_selection(self.selected, by, self.shown.len());
        self.request_source(cx)
    }

    fn press(&mut self, row: usize, cx: &mut ScreenContext<'_>) -> Response {
        if self.selected == row {
            return self.toggle_fold();
        }
        self.selected = move_selection(row, 0, self.shown.len());
        self.request_source(cx)
    }

    fn finder(&mut self) -> Option<&mut FilterInput> {
        Some(&mut self.finder)
    }

    fn found(&mut self, first: bool, cx: &mut ScreenContext<'_>) -> Response {
        self.rebuild_rows();
        if first {
            self.selected = 0;
        }
        self.request_source(cx)
    }

    fn back(&mut self, cx: &mut ScreenContext<'_>) -> Response {
        if self.finder.clear() {
            return self.found(false, cx);
        }
        Navigate::Back.into()
    }

    fn copy(&self, what: CopyWhat, cx: &ScreenContext<'_>) -> Option<(String, String)> {
        self.copy_text(what, cx.report()?)
    }
}
