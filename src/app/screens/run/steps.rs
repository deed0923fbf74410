//! Steps of a guided run, which the user performs one after another, here or in another terminal

use crate::app::msg::Effect;
use crate::app::run_state::Watched;
use crate::app::screen::Response;
use crate::launch::runs::Stage;

/// Message shown while a step is in progress; `stop` is the key that ends it.
fn under_way(stop: &str) -> Response {
    Response::say(format!("the step is in progress; {stop} ends it"))
}

/// Performs the next step; returns `None` if the next step is to stop the run.
pub fn do_next_step(watched: &mut Watched, stop: &str) -> Option<Response> {
    if watched.doing.is_some() {
        return Some(under_way(stop));
    }
    let Some(step) = watched.next_step().cloned() else {
        let text = if watched.steps().0.is_empty() { "this run has no steps to do" } else { "all steps are done" };
        return Some(Response::say(text));
    };
    let Some(run) = &watched.run else { return Some(Response::none()) };
    let (id, directory) = (run.id, run.directory.clone());
    if step.argv.is_empty() {
        // Only the stop key escalates a stop in progress.
        let running = watched.stop_stage() == Stage::Running;
        return (!running).then(|| Response::say("the run is being stopped; esc escalates"));
    }
    watched.doing = Some(watched.now_ms);
    Some(Response::effect(Effect::Step { run: id, argv: step.argv, directory }))
}

/// Skips the next step, because the user did it elsewhere or does not want it.
pub fn skip_step(watched: &mut Watched, stop: &str) -> Response {
    if watched.doing.is_some() {
        return under_way(stop);
    }
    let Some(step) = watched.next_step() else { return Response::say("there is no step to skip") };
    let text = format!("skipped: {}", step.role);
    Response::from(watched.advance_step(true)).and_say(text, false)
}
