//! What the re-run screen knows: which launches, with which options, and the commands that came out.

use crate::analysis::Grouping;
use crate::rerun::{Alternative, Choose, Options, Picked, Plan, Request, Rerun};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct RerunScreen {
    /// The grouping that the launches are from.
    pub grouping: Arc<Grouping>,
    pub groups: Vec<usize>,
    /// Which launches the screen was opened for.
    pub origin: Choose,
    /// What is wanted now.
    pub request: Request,
    /// What was wanted before, for undo.
    pub(super) before: Vec<Request>,
    /// The commands, or why there are none.
    pub plan: Option<Result<Arc<Plan>, String>>,
    /// What the plan was made from, and what is around its first launch.
    pub picked: Option<Arc<Picked>>,
    /// The request that `plan` answers.
    pub(super) planned: Option<Request>,
    /// Which of several commands is shown.
    pub command: usize,
    pub selected: usize,
    /// Whether it is to be run as soon as it is there.
    pub run_when_ready: bool,
    /// What the last comparison said, and whether all was as selected.
    pub verdict: Option<(String, bool)>,
    /// Number of this screen.
    pub(super) serial: u64,
}

/// Requests that undo goes back over.
const MOST_UNDO: usize = 100;

impl RerunScreen {
    /// A screen for launches of some groups.
    #[must_use]
    pub fn new(grouping: Arc<Grouping>, groups: Vec<usize>, choose: Choose, serial: u64) -> Self {
        Self {
            grouping,
            groups,
            origin: choose.clone(),
            request: Request { choose, options: Options::first_look() },
            before: Vec::new(),
            plan: None,
            picked: None,
            planned: None,
            command: 0,
            selected: 0,
            run_when_ready: false,
            verdict: None,
            serial,
        }
    }

    /// The plan, when there is one.
    #[must_use]
    pub fn plan(&self) -> Option<&Plan> {
        self.plan.as_ref()?.as_ref().ok().map(|p| &**p)
    }

    /// The command that is shown.
    #[must_use]
    pub fn rerun(&self) -> Option<&Rerun> {
        self.plan()?.commands.get(self.command)
    }

    /// Whether the plan is not yet what it should be.
    #[must_use]
    pub fn pending(&self) -> bool {
        self.planned.as_ref() != Some(&self.request)
    }

    /// Other commands that are offered.
    #[must_use]
    pub fn alternatives(&self) -> &[Alternative] {
        self.rerun().map_or(&[], |r| &r.alternatives)
    }

    /// Another request; the one before can be gone back to.
    pub(super) fn change(&mut self, request: Request) {
        if request == self.request {
            return;
        }
        self.before.push(std::mem::replace(&mut self.request, request));
        if self.before.len() > MOST_UNDO {
            self.before.remove(0);
        }
        self.verdict = None;
    }

    /// Goes back to what was asked before; false when there is nothing.
    pub(super) fn undo(&mut self) -> bool {
        self.verdict = None;
        self.before.pop().map(|r| self.request = r).is_some()
    }
}
