//! Run library: recorded runs and their actions. Home screen if no report is open

use crate::app::actions::{ActionId, KeyScope};
use crate::app::messages::Start;
use crate::app::msg::Effect;
use crate::app::overlay::{CopyWhat, FilterInput, Item, LineOf, OverlayKind, Page, PickAction, PickList, RunChoice};
use crate::app::screen::{Navigate, Response, Screen, ScreenContext, ScreenEvent, move_selection};
use crate::launch::runs::options;
use crate::library::Run;
use crate::report::runs::run_facts;
use crate::rerun::shell;
use std::path::PathBuf;
use tui_input::Input;

#[derive(Clone, Debug, Default)]
pub struct LibraryScreen {
    /// All runs, newest first; `None` until they are loaded.
    pub runs: Option<Vec<Run>>,
    /// Reports in the current folder: their number, and name and age of the newest; `None` until they are known or if
    /// there are none.
    pub files: Option<(usize, String, String)>,
    /// Error of the last attempt to read the runs.
    pub trouble: Option<String>,
    /// Indices of the runs that match the filter.
    pub shown: Vec<usize>,
    pub finder: FilterInput,
    /// Index of the selected run in `shown`.
    pub selected: usize,
    /// Run marked as the baseline of a comparison.
    pub marked: Option<i64>,
    /// Current time, milliseconds since 1970.
    pub now_ms: i64,
    /// Last output of a run: the run's number and the lines; `None` while they are being read.
    pub printed: Option<(i64, Option<Vec<String>>)>,
    /// Predicted and measured gains of the hints on a run's kernels: the run's number, titles and descriptions.
    pub kept: Option<(i64, Vec<(&'static str, String)>)>,
}

/// Error message if no run is selected.
const NO_RUN: &str = "no run is selected";

impl LibraryScreen {
    pub fn selected_run(&self) -> Option<&Run> {
        self.runs.as_ref()?.get(*self.shown.get(self.selected)?)
    }

    /// Predicted and measured gains of the hints on the run's kernels; empty if they are not loaded.
    pub fn outcomes_of(&self, run: &Run) -> &[(&'static str, String)] {
        self.kept.as_ref().filter(|k| k.0 == run.id).map_or(&[], |k| &k.1)
    }

    /// Lists the runs that match the filter.
    fn apply_filter(&mut self) {
        let words = self.finder.text();
        let runs = self.runs.as_deref().unwrap_or_default();
        self.shown = runs.iter().enumerate().filter(|(_, r)| r.matches_words(words)).map(|(i, _)| i).collect();
        self.selected = move_selection(self.selected, 0, self.shown.len());
    }

    /// Requests the tail of the selected run's log; the log of a live run is read again on every selection.
    fn request_log(&mut self) -> Response {
        let Some((id, live)) = self.selected_run().map(|r| (r.id, r.state.is_live())) else { return Response::none() };
        if self.printed.as_ref().is_some_and(|p| p.0 == id) && !live {
            return Response::none();
        }
        if self.printed.as_ref().is_none_or(|p| p.0 != id) {
            self.printed = Some((id, None));
        }
        Response::effect(Effect::Printed(id))
    }

    fn take_runs(&mut self, outcome: &Result<(Vec<Run>, i64), String>) {
        let (runs, now) = match outcome {
            Ok(read) => read,
            Err(text) => {
                self.trouble = Some(text.clone());
                return;
            }
        };
        let before = self.selected_run().map(|r| r.id);
        (self.runs, self.trouble, self.now_ms) = (Some(runs.clone()), None, *now);
        self.apply_filter();
        // New runs are added at the top: keep the selected run.
        let id = |i: usize| runs.get(i).map(|r| r.id);
        self.selected = self.shown.iter().position(|&i| id(i) == before).unwrap_or(self.selected);
    }

    /// Shows the output of the selected run; follows it if it is live.
    fn show_log(&self, cx: &ScreenContext<'_>) -> Response {
        let Some(run) = self.selected_run() else { return Response::error_message(NO_RUN) };
        if cx.running.has_attached_run() {
            let watched = cx.running.watched.as_ref().and_then(|r| r.run.as_ref()).map(|r| r.id);
            if watched == Some(run.id) {
                return Navigate::Watch.into();
            }
            return Response::error_message("a run of this session is in progress; wait for it or stop it first");
        }
        Navigate::Follow(Box::new(run.clone())).into()
    }

    /// Opens the reports of the selected run, or its output if it has none.
    fn open_selected(&self, cx: &ScreenContext<'_>) -> Response {
        // An empty library offers the reports of the folder, or else the demo.
        if self.runs.as_ref().is_some_and(Vec::is_empty) && cx.session.reports.is_empty() {
            return match self.files {
                Some(_) => Response::effect(Effect::Files { folders: vec![PathBuf::from(".")], shown: true }),
                None => Navigate::Demo.into(),
            };
        }
        let Some(run) = self.selected_run() else { return Response::error_message(NO_RUN) };
        let files: Vec<PathBuf> =
            run.openable_reports(crate::import::open::is_openable).map(|r| &r.path).filter(|p| !run.gone.contains(p)).cloned().collect();
        if run.state.is_live() {
            return self.show_log(cx);
        }
        if files.is_empty() {
            let gone = if run.reports.is_empty() { "the run left no report" } else { "its reports no longer exist" };
            return self.show_log(cx).and_say(format!("{gone}; showing its output"), false);
        }
        Navigate::Reports(files).into()
    }

    /// Runs the selected run's command again.
    fn run_again(&self, cx: &ScreenContext<'_>) -> Response {
        let Some(run) = self.selected_run() else { return Response::error_message(NO_RUN) };
        if cx.running.is_live() {
            return Response::error_message("a run is in progress; wait for it or stop it first");
        }
        // The command names the report; a new run writes its report to its own folder.
        if options::report_name_index(&run.argv, run.program.len(), &run.tool).is_none() {
            return Response::error_message("cannot tell where this command writes its report; start it again with `warpscope run`");
        }
        if let Some(gone) = run.support.iter().find(|p| run.gone.contains(p)) {
            let text = format!("{} no longer exists, but the command needs it; start it again with `warpscope run`", gone.display());
            return Response::error_message(text);
        }
        let start = Start {
            argv: run.argv.clone(),
            program: run.program.clone(),
            tool: run.tool.clone(),
            recipe: run.recipe.clone(),
            directory: Some(run.directory.clone()),
            own: true,
            env: run.env.clone(),
            named: String::new(),
            from: run.reports.first().map(|r| r.path.clone()),
            selects: Vec::new(),
        };
        Navigate::Record(vec![(start, None)]).into()
    }

    /// Marks the selected run, or compares it with the marked one.
    fn compare_runs(&mut self) -> Response {
        let Some(run) = self.selected_run().cloned() else { return Response::error_message(NO_RUN) };
        match self.marked {
            Some(id) if id != run.id => {
                let file = |r: &Run| r.openable_reports(crate::import::open::is_openable).next().map(|r| r.path.clone());
                let other = self.runs.iter().flatten().find(|r| r.id == id).and_then(file);
                let (Some(before), Some(after)) = (other, file(&run)) else {
                    return Response::error_message("one of the two runs left no report");
                };
                self.marked = None;
                Navigate::ChangesOf { before, after }.into()
            }
            Some(_) => {
                self.marked = None;
                Response::say("unmarked")
            }
            None => {
                self.marked = Some(run.id);
                Response::say(format!("run {} is the baseline; select the run to compare with it and press the same key", run.id))
            }
        }
    }

    /// Goes to the original of a selected re-run; for an original, tells the user about its re-runs.
    fn go_to_origin(&mut self) -> Response {
        let Some((id, parent)) = self.selected_run().map(|r| (r.id, r.parent)) else { return Response::error_message(NO_RUN) };
        let runs = self.runs.as_deref().unwrap_or_default();
        let Some(parent) = parent else {
            let mut again: Vec<String> = runs.iter().filter(|r| r.parent == Some(id)).map(|r| r.id.to_string()).collect();
            again.reverse();
            return Response::say(if again.is_empty() {
                format!("run {id} is not a re-run and has no re-runs")
            } else {
                format!("run {id} is the original; its re-runs: {}", again.join(", "))
            });
        };
        let Some(index) = runs.iter().position(|r| r.id == parent) else {
            return Response::error_message(format!("run {parent} is no longer in the library"));
        };
        if !self.shown.contains(&index) {
            self.finder.clear();
            self.apply_filter();
        }
        self.selected = self.shown.iter().position(|&i| i == index).unwrap_or(self.selected);
        Response::say(format!("run {id} is a re-run of run {parent}"))
    }

    /// Asks the user to confirm that a run should be deleted.
    fn ask_delete(&self) -> Response {
        let Some(run) = self.selected_run() else { return Response::error_message(NO_RUN) };
        if run.state.is_live() {
            return Response::error_message("the run is in progress: stop it first");
        }
        let items = vec![
            Item::new("keep it", "", 'b', PickAction::Run(RunChoice::Nothing)),
            Item::new(
                format!("delete run {}", run.id),
                "its library entry and the reports in its folder; this cannot be undone",
                'd',
                PickAction::Forget(run.id),
            ),
        ];
        Response::open_overlay(PickList::by_letter("delete", items, None))
    }
}

impl Screen for LibraryScreen {
    fn place(&self) -> KeyScope {
        KeyScope::Library
    }

    fn opened(&mut self, _: &mut ScreenContext<'_>) -> Response {
        let files = Effect::Files { folders: vec![PathBuf::from(".")], shown: false };
        vec![Effect::Library, files].into()
    }

    fn act(&mut self, id: ActionId, cx: &mut ScreenContext<'_>) -> Option<Response> {
        let line = |what: fn(i64) -> LineOf, text: fn(&Run) -> String| match self.selected_run() {
            Some(run) => Response::open_overlay(OverlayKind::Line(what(run.id), Input::new(text(run)))),
            None => Response::error_message(NO_RUN),
        };
        Some(match id {
            ActionId::Open => self.open_selected(cx),
            ActionId::Back => self.back(cx),
            ActionId::FindRun => {
                self.finder.typing = true;
                Response::none()
            }
            ActionId::RunLog => self.show_log(cx),
            ActionId::RunAgain => self.run_again(cx),
            ActionId::RunCompare => self.compare_runs(),
            ActionId::RunOrigin => self.go_to_origin(),
            ActionId::RunTags => line(LineOf::Tags, |r| r.tags.join(" ")),
            ActionId::RunNote => line(LineOf::Note, |r| r.notes.clone()),
            ActionId::RunDelete => self.ask_delete(),
            ActionId::RunFacts => match self.selected_run() {
                Some(run) => {
                    let mut all = run_facts(run, &shell::command_line(&run.argv), self.now_ms);
                    all.extend(self.outcomes_of(run).iter().cloned());
                    Response::open_overlay(Page::RunFacts(all.into()))
                }
                None => Response::error_message(NO_RUN),
            },
            ActionId::Copy => match self.selected_run() {
                Some(run) => Response::effect(Effect::Copy(shell::command_line(&run.argv), "command".to_owned())),
                None => Response::error_message(NO_RUN),
            },
            _ => return None,
        })
    }

    fn scroll(&mut self, by: isize, _: &mut ScreenContext<'_>) -> Response {
        self.selected = move_selection(self.selected, by, self.shown.len());
        self.request_log()
    }

    fn press(&mut self, row: usize, cx: &mut ScreenContext<'_>) -> Response {
        if self.selected == row {
            return self.open_selected(cx);
        }
        self.selected = move_selection(row, 0, self.shown.len());
        self.request_log()
    }

    fn finder(&mut self) -> Option<&mut FilterInput> {
        Some(&mut self.finder)
    }

    fn found(&mut self, first: bool, _: &mut ScreenContext<'_>) -> Response {
        if first {
            self.selected = 0;
        }
        self.apply_filter();
        self.request_log()
    }

    fn choose(&mut self, choice: PickAction, _: &mut ScreenContext<'_>) -> Response {
        match choice {
            PickAction::Forget(id) => Response::effect(Effect::Forget(id)),
            _ => Response::none(),
        }
    }

    fn line(&mut self, what: LineOf, text: &str, _: &mut ScreenContext<'_>) -> Response {
        match what {
            LineOf::Note(id) => Response::effect(Effect::Note(id, text.trim().to_owned())),
            LineOf::Tags(id) => Response::effect(Effect::Tags(id, text.split_whitespace().map(str::to_owned).collect())),
            _ => Response::none(),
        }
    }

    fn take(&mut self, news: ScreenEvent<'_>, _: &mut ScreenContext<'_>) -> Response {
        match news {
            ScreenEvent::Library(outcome) => {
                self.take_runs(outcome);
                return self.request_log();
            }
            ScreenEvent::Files(found) => {
                let newest = found.reports.first();
                self.files = newest.map(|newest| (found.reports.len(), newest.path.display().to_string(), found.age_of(newest)));
            }
            // Ignore the output of a run that is no longer selected.
            ScreenEvent::Printed(id, lines, kept) if self.selected_run().is_some_and(|r| r.id == id) => {
                self.printed = Some((id, Some(lines.to_vec())));
                self.kept = Some((id, kept.to_vec()));
            }
            _ => {}
        }
        Response::none()
    }

    fn copy(&self, _: CopyWhat, _: &ScreenContext<'_>) -> Option<(String, String)> {
        Some((shell::command_line(&self.selected_run()?.argv), "command".to_owned()))
    }

    /// Clears the filter. If there is none, returns to the reports, if any.
    fn back(&mut self, cx: &mut ScreenContext<'_>) -> Response {
        if self.finder.clear() {
            self.apply_filter();
            return Response::none();
        }
        if cx.session.reports.is_empty() {
            return Response::say(format!("{} quits", cx.session.key_label(ActionId::Quit)));
        }
        Navigate::Back.into()
    }
}
