//! Re-runs of one plan, one after the other: each begins when the one before it has ended well.

use super::run::{Origin, Start};
use super::{App, Effect};
use crate::library::{Run, State};
use std::collections::VecDeque;

/// What is still to be run.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    waiting: VecDeque<(Start, Option<Origin>)>,
    /// How many there were in all.
    total: usize,
    /// The run of it that is under way.
    current: Option<i64>,
    /// That some were not begun, until it is said.
    given_up: Option<String>,
}

impl Queue {
    /// Of these, the first of which is about to start.
    #[must_use]
    pub fn after_first(all: usize, rest: Vec<(Start, Option<Origin>)>) -> Self {
        Self { waiting: rest.into(), total: all, ..Self::default() }
    }

    /// This run of it has begun.
    pub fn began(&mut self, run: i64) {
        self.current = Some(run);
    }

    /// Which of how many runs now, when there are several.
    #[must_use]
    pub fn at(&self) -> Option<(usize, usize)> {
        (self.total > 1).then(|| (self.total - self.waiting.len(), self.total))
    }

    /// What is to be said when the last result is here: its own message must not hide it.
    pub fn given_up(&mut self) -> Option<String> {
        self.given_up.take()
    }
}

/// A run of the queue has ended: begins the next, or gives up the rest and says so.
pub fn go_on(app: &mut App, run: &Run) -> Vec<Effect> {
    // Other runs may end as well, and what was asked about and declined was never begun.
    let Some((at, total)) = app.queue.at().filter(|_| app.queue.current == Some(run.id)) else { return Vec::new() };
    app.queue.current = None;
    if run.state == State::Done
        && let Some(next) = app.queue.waiting.pop_front()
    {
        app.starting = Some(next);
        return super::run::start(app);
    }
    let left = std::mem::take(&mut app.queue).waiting.len();
    if left > 0 {
        let were = if left == 1 { "was" } else { "were" };
        let text = format!("run {} ({at} of {total}): {}; the other {left} {were} not begun", run.id, run.state.word());
        app.queue.given_up = Some(text.clone());
        app.status = Some(super::Status { text, error: true });
    }
    Vec::new()
}
