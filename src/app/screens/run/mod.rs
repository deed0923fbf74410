//! The watched run: profiler output, progress, and the steps that the user performs during the run. The session owns
//! the state ([`Watched`]), because a run continues while other screens are on top.

mod steps;

use crate::app::actions::{ActionId, KeyScope};
use crate::app::msg::Effect;
use crate::app::overlay::{CopyWhat, Item, Page, PickAction, PickList, RunChoice};
use crate::app::run_state::Watched;
use crate::app::screen::{Navigate, Response, Screen, ScreenContext};
use crate::launch::runs::Stage;
use crate::report::runs::run_facts;
use crate::rerun::shell;

#[derive(Clone, Debug, Default)]
pub struct RunScreen;

/// Message shown while the run has no number yet.
const STARTING: &str = "the run is starting; try again in a moment";

/// Sends the next signal for stopping the run.
fn stop_now(watched: &Watched, key: &str) -> Response {
    Response::effect(Effect::StopRun).and_say(watched.stop_message(key), false)
}

/// Asks the user before stopping a run.
fn ask_before_stop(guided: bool) -> Response {
    let items = vec![
        Item::new("keep going", "", 'b', PickAction::Run(RunChoice::Nothing)),
        Item::new("stop it", "program and profiler, which then writes its report", 's', PickAction::Run(RunChoice::Stop)),
    ];
    // A guided run may be a server that needs minutes to start again.
    let title = if guided { "stop the run? some steps are not done yet" } else { "stop the run?" };
    Response::open_overlay(PickList::by_letter(title, items, None))
}

/// Stops the run, with a stronger signal each time.
fn stop_run(cx: &ScreenContext<'_>, ask: bool) -> Response {
    let Some(watched) = &cx.running.watched else { return Navigate::Back.into() };
    if watched.doing.is_some() {
        return Response::effect(Effect::EndStep).and_say("ending the step; the run continues", false);
    }
    if watched.ended {
        return Response::say("the run has ended");
    }
    if watched.outside.is_some() {
        return Response::say("warpscope did not start this program: stop it where it was started");
    }
    if watched.run.is_none() {
        return Response::say(STARTING);
    }
    // A stop in progress escalates without confirmation.
    if ask && watched.stop_stage() == Stage::Running {
        ask_before_stop(watched.next_step().is_some_and(|s| !s.argv.is_empty()))
    } else {
        stop_now(watched, &cx.session.key_label(ActionId::StopRun))
    }
}

/// Detaches the run from this program.
fn detach_run(cx: &mut ScreenContext<'_>) -> Response {
    let Some(watched) = cx.running.watched.as_mut().filter(|s| s.is_live()) else {
        return Response::error_message("no run is in progress");
    };
    if !watched.mine {
        return Response::say("the run is already detached");
    }
    let Some(id) = watched.run.as_ref().map(|r| r.id) else { return Response::say(STARTING) };
    watched.mine = false;
    let text = format!("detached: the run continues after warpscope exits or the ssh session ends; `warpscope attach {id}` shows it again");
    Response::effect(Effect::DetachRun).and_say(text, false)
}

/// Handles actions on a program that is being traced.
fn act_on_traced(id: ActionId, watched: &mut Watched) -> Response {
    if watched.ended {
        return Response::say("the run has ended");
    }
    let Some(live) = &watched.traced.live else {
        let tool = watched.run.as_ref().map_or("", |r| r.tool.as_str());
        return Response::say(if matches!(tool, "" | "trace") {
            "nothing has been recorded yet: no process has used CUDA"
        } else {
            "this works for runs of the built-in tracer: `warpscope run --tool trace`"
        });
    };
    match id {
        ActionId::Pause => {
            watched.traced.paused = !watched.traced.paused;
            Response::say(if watched.traced.paused { "paused; the program keeps running" } else { "going on" })
        }
        ActionId::Output if watched.outside.is_some() => Response::say("its output is in its own terminal"),
        ActionId::Output => {
            watched.traced.printing = !watched.traced.printing;
            Response::none()
        }
        ActionId::Gate => match live.is_recording() {
            Some(open) => Response::effect(Effect::Gate(!open)),
            None => Response::say("every process has ended"),
        },
        ActionId::Measure => match watched.traced.selected_kernel() {
            Some(kernel) => Response::effect(Effect::Measure(kernel.name.to_string())),
            None => Response::say("no kernel was launched yet"),
        },
        _ => Response::effect(Effect::Snapshot { whole: false }).and_say("saving the last 30 s …", false),
    }
}

/// Opens the traces of a program that another process started and that has ended.
fn open_outside(watched: &Watched) -> Response {
    match &watched.outside {
        Some(_) if watched.ended => Response::effect(Effect::Snapshot { whole: true }),
        _ => Response::none(),
    }
}

impl Screen for RunScreen {
    fn place(&self) -> KeyScope {
        KeyScope::Run
    }

    fn act(&mut self, id: ActionId, cx: &mut ScreenContext<'_>) -> Option<Response> {
        let stop_key = cx.session.key_label(ActionId::StopRun);
        Some(match id {
            ActionId::Open => open_outside(cx.running.watched.as_ref()?),
            ActionId::Back => self.back(cx),
            ActionId::StopRun => stop_run(cx, true),
            ActionId::Pause | ActionId::Gate | ActionId::Measure | ActionId::Snapshot | ActionId::Output => {
                return Some(act_on_traced(id, cx.running.watched.as_mut()?));
            }
            ActionId::Detach => detach_run(cx),
            ActionId::Step => {
                let watched = cx.running.watched.as_mut()?;
                match steps::do_next_step(watched, &stop_key) {
                    Some(answer) => answer,
                    // After the last step, stop the run.
                    None => stop_run(cx, false),
                }
            }
            ActionId::SkipStep => steps::skip_step(cx.running.watched.as_mut()?, &stop_key),
            ActionId::RunFacts => {
                let watched = cx.running.watched.as_ref()?;
                let Some(run) = watched.run.as_deref() else { return Some(Response::say(STARTING)) };
                Response::open_overlay(Page::RunFacts(run_facts(run, &shell::command_line(&run.argv), watched.now_ms).into()))
            }
            ActionId::Copy => {
                let text = cx.running.watched.as_ref()?.command.clone();
                Response::effect(Effect::Copy(text, "command".to_owned()))
            }
            _ => return None,
        })
    }

    fn scroll(&mut self, by: isize, cx: &mut ScreenContext<'_>) -> Response {
        if let Some(watched) = &mut cx.running.watched {
            if watched.live_view().is_some() {
                watched.move_selection(by);
                return Response::none();
            }
            watched.back = watched.back.saturating_add_signed(by.saturating_neg()).min(watched.lines.len());
        }
        Response::none()
    }

    fn press(&mut self, _: usize, _: &mut ScreenContext<'_>) -> Response {
        Response::none()
    }

    fn copy(&self, _: CopyWhat, cx: &ScreenContext<'_>) -> Option<(String, String)> {
        Some((cx.running.watched.as_ref()?.command.clone(), "command".to_owned()))
    }
}
