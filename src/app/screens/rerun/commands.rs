//! Actions on the command: copy, save, compare with a result, run

use super::state::RerunScreen;
use crate::app::actions::ActionId;
use crate::app::clipboard;
use crate::app::messages::{Origin, Start};
use crate::app::msg::Effect;
use crate::app::overlay::{CopyWhat, Item, LineOf, OverlayKind, PickAction, PickList, RunChoice};
use crate::app::screen::{Navigate, Response, ScreenContext};
use crate::app::session::Report;
use crate::model::text::escape_unsafe;
use crate::report;
use crate::rerun::program::PLACEHOLDER;
use crate::rerun::{PartId, Rerun, script, shell};
use std::path::PathBuf;
use tui_input::Input;

/// Error while the shown command does not match the latest request.
const PENDING: &str = "still rebuilding the command; try again";

pub fn copy_menu() -> PickList {
    clipboard::copy_menu(&[
        (CopyWhat::Command, 'c', "command", "on one line"),
        (CopyWhat::CommandLines, 'l', "command over several lines", "with backslash continuations"),
        (CopyWhat::CommandThere, 'd', "command with its directory", "cd there first"),
        (CopyWhat::Script, 's', "script", "with the selected launches and warnings"),
        (CopyWhat::Json, 'j', "JSON", "as `warpscope rerun --format json`"),
    ])
}

fn program_words(c: &Rerun) -> Vec<String> {
    c.parts.iter().filter(|p| p.id == PartId::Program).flat_map(|p| p.words.iter().cloned()).collect()
}

impl RerunScreen {
    /// Returns an error response while the shown command does not match the latest request.
    pub(super) fn not_ready(&self) -> Option<Response> {
        self.is_pending().then(|| Response::error_message(PENDING))
    }

    pub(super) fn copy_text(&self, report: &Report, what: CopyWhat) -> Option<(String, String)> {
        let (plan, rerun) = (self.plan()?, self.current_rerun()?);
        let wrapper = rerun.wrapper.clone();
        let said = if wrapper.is_some() { "wrapper script" } else { "command" };
        let there = |text: String| match &rerun.directory {
            Some(directory) => format!("cd -- {} && {text}", shell::quote(directory)),
            None => text,
        };
        Some(match what {
            CopyWhat::CommandLines => (wrapper.unwrap_or_else(|| rerun.shell_lines()), said.to_owned()),
            CopyWhat::CommandThere => (wrapper.unwrap_or_else(|| there(rerun.shell_line())), said.to_owned()),
            CopyWhat::Script => (script::shell_script(plan, &report.file.display().to_string()), "script".to_owned()),
            CopyWhat::Json => {
                let mut out = Vec::new();
                report::rerun::write_json(&mut out, report.profile.as_deref()?, plan).ok()?;
                (String::from_utf8(out).ok()?, "JSON".to_owned())
            }
            _ => (wrapper.unwrap_or_else(|| rerun.shell_line()), said.to_owned()),
        })
    }

    /// Asks the user for the path of the script.
    pub(super) fn ask_save(&self) -> Response {
        if let Some(wait) = self.not_ready() {
            return wait;
        }
        let Some(plan) = self.plan() else { return Response::error_message("there is no command to save") };
        let stem = plan.folder.clone().or_else(|| plan.commands.first().map(|c| c.output.clone())).unwrap_or_default();
        let stem = stem.rsplit('/').find(|s| !s.is_empty()).unwrap_or("rerun");
        Response::open_overlay(OverlayKind::Line(LineOf::Save, Input::new(format!("./{stem}.sh"))))
    }

    pub(super) fn save_script(&self, path: &str, report: Option<&Report>) -> Response {
        if let Some(wait) = self.not_ready() {
            return wait;
        }
        if path.is_empty() {
            return Response::error_message("no file name given; nothing saved");
        }
        let (Some(report), Some(plan)) = (report, self.plan()) else { return Response::none() };
        let text = script::shell_script(plan, &report.file.display().to_string());
        Response::effect(Effect::Save(PathBuf::from(path), text))
    }

    /// Asks the user for the result to compare with.
    pub(super) fn ask_verify(&self) -> Response {
        if let Some(wait) = self.not_ready() {
            return wait;
        }
        let Some(rerun) = self.current_rerun().filter(|r| !r.selects.is_empty()) else {
            return Response::error_message("no individual launch is selected, so there is nothing to compare");
        };
        // A relative path is relative to the working directory of the program.
        let file = rerun.report_path();
        let path = match &rerun.directory {
            Some(directory) => PathBuf::from(directory).join(&file).display().to_string(),
            None => file,
        };
        Response::open_overlay(OverlayKind::Line(LineOf::Verify, Input::new(path)))
    }

    pub(super) fn verify_result(&self, path: &str, report: usize) -> Response {
        if path.is_empty() {
            return Response::none();
        }
        let selects = self.current_rerun().map(|r| r.selects.clone()).unwrap_or_default();
        Response::effect(Effect::Verify { report, path: PathBuf::from(path), selects })
    }

    /// Profiles the launches on this machine.
    pub(super) fn run_commands(&self, cx: &ScreenContext<'_>) -> Response {
        if let Some(wait) = self.not_ready() {
            return wait;
        }
        if cx.running.is_live() {
            return Response::error_message("a run is in progress; wait for it or stop it first");
        }
        let Some(report) = cx.report() else { return Response::none() };
        let own_program = self.request.options.program.is_some();
        if report.built_in && !own_program {
            return Response::say(
                "the demo was recorded on another machine, and its program is not available here: record your own with `warpscope run -- PROGRAM`",
            );
        }
        let Some(plan) = self.plan().filter(|p| !p.commands.is_empty()) else {
            return Response::error_message(
                "there is no command, for the reason above; a field can be changed: ⏎ on it, such as another profiler",
            );
        };
        if plan.commands.iter().any(|c| c.wrapper.is_some()) {
            let save = cx.session.key_label(ActionId::Save);
            return Response::error_message(format!("a launcher must start this script instead of the program: {save} saves it"));
        }
        let unknown = |c: &Rerun| program_words(c).is_empty() || c.argv().iter().any(|w| w == PLACEHOLDER);
        if plan.commands.iter().any(unknown) {
            return Response::error_message("the report does not say which program ran: set the field `program` first");
        }
        if !report.trusted && !own_program {
            return ask_trust(cx.report, &plan.commands.first().map(program_words).unwrap_or_default());
        }
        let one = |c: &Rerun| {
            let start = Start {
                argv: c.argv(),
                program: program_words(c),
                tool: c.tool.to_owned(),
                recipe: Some("re-run".to_owned()),
                directory: c.directory.as_ref().map(PathBuf::from),
                // A report name chosen by the user is not moved to the run's folder.
                own: self.request.options.output.is_none(),
                env: Vec::new(),
                named: c.output.clone(),
                from: Some(report.file.clone()),
                selects: c.selects.clone(),
            };
            (start, Some(Origin { report: cx.report, selects: c.selects.clone() }))
        };
        Navigate::Record(plan.commands.iter().map(one).collect()).into()
    }
}

/// Asks the user to confirm the program, once per report, because the report that names it may come from someone else.
fn ask_trust(report: usize, program: &[String]) -> Response {
    let items = vec![
        Item::new("back", "do not run it", 'b', PickAction::Run(RunChoice::Nothing)),
        Item::new("run it", escape_unsafe(&shell::command_line(program)), 'r', PickAction::Run(RunChoice::Trust(report))),
    ];
    Response::open_overlay(PickList::by_letter("run the program that this report names?", items, None))
}
