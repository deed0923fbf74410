//! State of the re-run screen: launches, options, and the resulting commands

use crate::analysis::Grouping;
use crate::rerun::{Alternative, Choose, Options, Picked, Plan, Request, Rerun};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct RerunScreen {
    /// Grouping that contains `groups`.
    pub grouping: Arc<Grouping>,
    pub groups: Vec<usize>,
    /// Choice of launches with which the screen was opened.
    pub origin: Choose,
    /// Current request.
    pub request: Request,
    /// Earlier requests, for undo.
    pub(super) before: Vec<Request>,
    /// The commands, or the reason why there are none.
    pub plan: Option<Result<Arc<Plan>, String>>,
    /// Launches selected for the plan, and the context of the first launch.
    pub picked: Option<Arc<Picked>>,
    /// Request from which `plan` was made.
    pub(super) planned: Option<Request>,
    /// Index of the displayed command.
    pub command: usize,
    pub selected: usize,
    /// Width of the terminal.
    pub(super) columns: u16,
    /// True if the command is to run as soon as it is ready.
    pub run_when_ready: bool,
    /// Outcome of the last comparison; true if all results matched the selected launches.
    pub verdict: Option<(String, bool)>,
    /// Id of this screen.
    pub(super) serial: u64,
}

/// Maximum number of requests kept for undo.
const MOST_UNDO: usize = 100;

impl RerunScreen {
    /// Returns true if no command can profile the launches with these options.
    pub fn has_no_command(&self) -> bool {
        matches!(self.plan, Some(Err(_)))
    }

    /// Returns true if there is a change to undo.
    pub fn has_changes(&self) -> bool {
        !self.before.is_empty()
    }

    /// Creates a screen for launches of some groups.
    pub fn new(grouping: Arc<Grouping>, groups: Vec<usize>, choose: Choose, serial: u64) -> Self {
        Self {
            grouping,
            groups,
            origin: choose.clone(),
            request: Request { choose, options: Options::default() },
            before: Vec::new(),
            plan: None,
            picked: None,
            planned: None,
            command: 0,
            selected: 0,
            columns: 0,
            run_when_ready: false,
            verdict: None,
            serial,
        }
    }

    pub fn plan(&self) -> Option<&Plan> {
        self.plan.as_ref()?.as_ref().ok().map(|p| &**p)
    }

    /// The displayed command.
    pub fn current_rerun(&self) -> Option<&Rerun> {
        self.plan()?.commands.get(self.command)
    }

    /// Returns true while the plan does not match the current request.
    pub fn is_pending(&self) -> bool {
        self.planned.as_ref() != Some(&self.request)
    }

    /// Alternative commands.
    pub fn alternatives(&self) -> &[Alternative] {
        self.current_rerun().map_or(&[], |r| &r.alternatives)
    }

    /// Changes the request; undo restores the previous one.
    pub(super) fn change_request(&mut self, request: Request) {
        if request == self.request {
            return;
        }
        self.before.push(std::mem::replace(&mut self.request, request));
        if self.before.len() > MOST_UNDO {
            self.before.remove(0);
        }
        self.verdict = None;
    }

    /// Restores the previous request; returns false if there is none.
    pub(super) fn undo_change(&mut self) -> bool {
        self.verdict = None;
        self.before.pop().map(|r| self.request = r).is_some()
    }
}
