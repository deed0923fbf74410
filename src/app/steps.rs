//! Steps of a guided run: what a person does beside it, one after the other, here or in another terminal.

use super::run::RunScreen;
use super::{App, Effect, Status};
use crate::launch::runs::Stage;
use crate::library::Step;
use crate::model::text::clean;

/// What is new of a step that is being done.
#[derive(Clone, Debug)]
pub enum StepNews {
    /// It printed a line.
    Line(String),
    /// It ended; the error is a sentence.
    Ended(Result<(), String>),
}

impl RunScreen {
    /// The steps of the run, and which is next.
    #[must_use]
    pub fn steps(&self) -> (&[Step], usize) {
        self.run.as_ref().map_or((&[], 0), |r| (&r.steps, self.step.max(r.step)))
    }

    /// The next step.
    #[must_use]
    pub fn next_step(&self) -> Option<&Step> {
        let (steps, next) = self.steps();
        steps.get(next).filter(|_| self.live())
    }
}

fn say(app: &mut App, text: impl Into<String>, error: bool) -> Vec<Effect> {
    app.status = Some(Status { text: text.into(), error });
    Vec::new()
}

/// Does the next step.
pub fn go(app: &mut App) -> Vec<Effect> {
    let Some(screen) = &mut app.run else { return Vec::new() };
    if screen.doing.is_some() {
        return say(app, "the step is under way; esc ends it", false);
    }
    let Some(step) = screen.next_step().cloned() else {
        let text = if screen.steps().0.is_empty() { "this run has no steps: it goes by itself" } else { "all steps are done" };
        return say(app, text, false);
    };
    let Some(run) = &screen.run else { return Vec::new() };
    let (id, directory) = (run.id, run.directory.clone());
    if step.argv.is_empty() {
        // Only Esc goes further than the first word.
        if screen.stage() == Stage::Running {
            return super::run::stop(app);
        }
        return say(app, "it is being stopped; esc goes a step further", false);
    }
    screen.doing = Some(screen.now_ms);
    vec![Effect::Step { run: id, argv: step.argv, directory }]
}

/// Leaves the next step out: it was done elsewhere, or is not wanted.
pub fn skip(app: &mut App) -> Vec<Effect> {
    let Some(screen) = &mut app.run else { return Vec::new() };
    if screen.doing.is_some() {
        return say(app, "the step is under way; esc ends it", false);
    }
    let Some(step) = screen.next_step() else { return say(app, "there is no step to leave out", false) };
    let text = format!("left out: {}", step.role);
    let effects = advance(screen, true);
    say(app, text, false);
    effects
}

fn advance(screen: &mut RunScreen, left_out: bool) -> Vec<Effect> {
    let (steps, next) = screen.steps();
    screen.step = (next + 1).min(steps.len());
    let Some(run) = &mut screen.run else { return Vec::new() };
    if let Some(step) = run.steps.get_mut(next) {
        step.left_out = left_out;
    }
    vec![Effect::Stepped { run: run.id, done: screen.step, left_out }]
}

/// Ends the step that is under way; false when none is.
pub fn end(app: &mut App) -> Option<Vec<Effect>> {
    app.run.as_ref()?.doing?;
    say(app, "ending the step; the run goes on", false);
    Some(vec![Effect::EndStep])
}

/// Takes what is new of the step.
pub fn news(app: &mut App, run: i64, news: &StepNews) -> Vec<Effect> {
    let Some(screen) = app.run.as_mut().filter(|s| s.run.as_ref().is_some_and(|r| r.id == run)) else { return Vec::new() };
    let role = screen.next_step().map(|s| s.role.clone()).unwrap_or_default();
    match news {
        StepNews::Line(line) => {
            screen.print(Some(format!("warpscope: {role}: {}", clean(line))));
            Vec::new()
        }
        StepNews::Ended(Ok(())) => {
            screen.doing = None;
            let effects = advance(screen, false);
            let then = screen.next_step().map_or_else(String::new, |s| format!("; then: {}", s.role));
            say(app, format!("{role}: done{then}"), false);
            effects
        }
        StepNews::Ended(Err(why)) => {
            screen.doing = None;
            say(app, format!("{role}: {}", clean(why)), true)
        }
    }
}
