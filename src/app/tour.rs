//! Guided tour of the screens on any open timeline; each step ends when the user has followed its instruction

use super::actions::{ACTIONS, ActionId, KeyScope};
use super::state::App;

/// A step: its screen, and its text, in which action names in braces are replaced with keys.
struct Step {
    at: KeyScope,
    text: &'static str,
}

const STEPS: [Step; 5] = [
    Step {
        at: KeyScope::Overview,
        text: "what limits the run stands first, with what it costs and what to do; below, every nanosecond of the GPU has its place. \
               Press {timeline} to see it in time",
    },
    Step {
        at: KeyScope::Timeline,
        text: "streams, calls and ranges; idle time has the colour of its cause. {zoom-in} and {zoom-out} zoom, {next-gap} goes to the next idle time. \
               Press {kernels} for the kernels",
    },
    Step {
        at: KeyScope::Kernels,
        text: "kernels by time; ◆ marks those that ncu has measured, the panel shows the selected one. Press {hints} to see what limits it",
    },
    Step {
        at: KeyScope::Hints,
        text: "how busy each unit was, what warps waited for, what could be saved and how. Press {rerun} for the command that measures it again",
    },
    Step {
        at: KeyScope::Rerun,
        text: "this command profiles exactly this launch; {copy} copies it, {run-here} runs it. The tour ends here: {back} leads back, {help} lists all keys",
    },
];

/// Starts or ends the tour; returns the action that opens the tour's first screen, if that screen is not on top.
pub fn toggle(app: &mut App) -> Option<ActionId> {
    if app.session.tour.take().is_some() {
        return None;
    }
    app.session.tour = Some(0);
    (app.current_scope() != STEPS[0].at).then_some(ActionId::Overview)
}

/// Follows the user: opening the screen of a later step begins that step; leaving the last screen ends the tour.
pub fn update_step(app: &mut App) {
    let Some(at) = app.session.tour else { return };
    // The initial screen opens only once the report has been evaluated. Until then, the kernel table is on top, but the
    // user has not chosen it.
    if !app.session.report().is_some_and(|r| r.greeted) {
        return;
    }
    let here = app.current_scope();
    // After a shortcut, such as ⏎ on a finding, continue with the new screen's step.
    if let Some((next, _)) = STEPS.iter().enumerate().skip(at + 1).find(|(_, step)| step.at == here) {
        app.session.tour = Some(next);
    } else if at + 1 == STEPS.len() && here != STEPS[at].at {
        app.session.tour = None;
    }
}

/// Current text of the tour; on a screen outside the step, the way back.
pub fn current_text(app: &App) -> Option<String> {
    let at = app.session.tour?;
    let step = STEPS.get(at)?;
    let head = format!("tour {} of {}: ", at + 1, STEPS.len());
    if app.current_scope() != step.at {
        let text = match step.at {
            KeyScope::Overview => format!("{} goes to the overview", app.session.key_link(ActionId::Overview)),
            KeyScope::Timeline => format!("{} goes to the timeline", app.session.key_link(ActionId::Timeline)),
            _ => format!("{} leads back to the {}", app.session.key_link(ActionId::Back), step.at.as_str()),
        };
        return Some(format!("{head}{text}"));
    }
    let spelled =
        ACTIONS.iter().fold(step.text.to_owned(), |text, a| text.replace(&format!("{{{}}}", a.name), &app.session.key_link(a.id)));
    Some(format!("{head}{spelled}"))
}
