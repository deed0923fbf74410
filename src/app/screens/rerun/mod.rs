//! Command that profiles launches again: selected launches, options, and the resulting commands

mod choices;
mod commands;
pub mod fields;
mod state;

pub use state::RerunScreen;

use crate::app::actions::{ActionId, KeyScope};
use crate::app::jobs::{JobRequest, JobResult};
use crate::app::msg::Effect;
use crate::app::overlay::{CopyWhat, LineOf, OverlayKind, PickAction};
use crate::app::screen::{Navigate, Response, Screen, ScreenContext, ScreenEvent, Selection, move_selection};
use crate::app::session::Session;
use crate::rerun::{Choose, Collect, Picked, Plan, ProfiledResult, Request, Selects, Verdict, shell, verify};
use choices::Edit;
use fields::{FIELDS, Field};
use std::sync::Arc;
use tui_input::Input;

/// Minimum width of a terminal that shows the fields next to the command and its warnings.
pub const WIDE: u16 = 118;

#[derive(Clone, Copy, Debug)]
pub enum RerunRow {
    /// Index of a warning.
    Warning(usize),
    /// Index of an alternative command.
    Alternative(usize),
    Field(&'static Field),
}

impl RerunScreen {
    /// Rows in order: warnings, unless they are shown in full anyway; better commands, fields, other commands.
    pub fn rows(&self) -> Vec<RerunRow> {
        let warnings = self.warning_rows();
        let others = |better: bool| {
            self.alternatives().iter().enumerate().filter(move |(_, a)| a.better == better).map(|(i, _)| RerunRow::Alternative(i))
        };
        let mut rows: Vec<RerunRow> = (0..warnings).map(RerunRow::Warning).collect();
        rows.extend(others(true));
        rows.extend(FIELDS.iter().filter(|f| (f.applies)(self)).map(RerunRow::Field));
        rows.extend(others(false));
        rows
    }

    fn warning_rows(&self) -> usize {
        self.current_rerun().filter(|_| self.columns < WIDE).map_or(0, |r| r.warnings.len())
    }

    /// Takes over the terminal's width, with the same row selected.
    fn set_columns(&mut self, columns: u16) {
        let before = self.warning_rows();
        self.columns = columns;
        self.selected = (self.selected + self.warning_rows()).saturating_sub(before);
    }

    pub fn selected_row(&self) -> Option<RerunRow> {
        self.rows().get(self.selected).copied()
    }

    /// Selects the field with this title, or otherwise the first field.
    fn select_field(&mut self, title: Option<&str>) {
        let rows = self.rows();
        let is = |row: &RerunRow, title: Option<&str>| matches!(row, RerunRow::Field(f) if title.is_none_or(|t| t == f.title));
        let at = rows.iter().position(|r| title.is_some() && is(r, title)).or_else(|| rows.iter().position(|r| is(r, None)));
        self.selected = at.unwrap_or(0);
    }

    /// Adopts a plan if it answers the latest request.
    fn take_plan(&mut self, serial: u64, request: &Request, picked: &Arc<Picked>, plan: &Result<Arc<Plan>, String>) {
        if serial != self.serial || *request != self.request {
            return;
        }
        // The rows depend on the command: keep the same field selected.
        let title = match self.selected_row() {
            Some(RerunRow::Field(field)) if self.plan.is_some() => Some(field.title),
            _ => None,
        };
        self.planned = Some(request.clone());
        self.picked = Some(Arc::clone(picked));
        self.plan = Some(plan.clone());
        self.command = self.command.min(self.plan().map_or(0, |p| p.commands.len().saturating_sub(1)));
        // Without a command, it is usually the profiler that cannot measure the launch.
        let first = if self.has_no_command() { "profiler" } else { "launches" };
        self.select_field(title.or(Some(first)));
    }

    fn request_plan(&self, cx: &ScreenContext<'_>) -> Vec<Effect> {
        let (grouping, rows, request) = (self.grouping.clone(), self.groups.clone(), self.request.clone());
        let ask = JobRequest::Rerun { grouping, rows, request, screen: self.serial };
        cx.report().map(|r| r.request_work(cx.report, ask)).unwrap_or_default()
    }

    /// Replaces the request and asks for a new plan; undo restores the old request.
    fn set_request(&mut self, request: Request, cx: &ScreenContext<'_>) -> Response {
        self.change_request(request);
        self.request_plan(cx).into()
    }

    /// Opens the choices of the selected field, or adopts the selected alternative.
    fn edit_selected(&mut self, cx: &ScreenContext<'_>) -> Response {
        match self.selected_row() {
            Some(RerunRow::Alternative(i)) => {
                let Some(other) = self.alternatives().get(i) else { return Response::none() };
                if other.options == self.request.options {
                    // A command of another tool has no fields to edit: copy it.
                    return Response::effect(Effect::Copy(shell::command_line(&other.argv), "command".to_owned()));
                }
                let request = Request { options: other.options.clone(), ..self.request.clone() };
                self.set_request(request, cx)
            }
            Some(RerunRow::Field(field)) => {
                let Some(profile) = cx.report().and_then(|r| r.profile.as_deref()) else { return Response::none() };
                match (field.edit)(self, profile) {
                    Edit::Nothing(why) => Response::say(why),
                    Edit::Ask(request) => self.set_request(*request, cx),
                    Edit::Over(what) => Response::open_overlay(*what),
                }
            }
            Some(RerunRow::Warning(_)) => Response::say("this line is a warning: there is nothing to edit"),
            None => Response::none(),
        }
    }

    /// Shows the next command, if there are several.
    fn next_command(&mut self) -> Response {
        let n = self.plan().map_or(0, |p| p.commands.len());
        if n < 2 {
            return Response::say("there is only one command");
        }
        let title = match self.selected_row() {
            Some(RerunRow::Field(field)) => Some(field.title),
            _ => None,
        };
        self.command = (self.command + 1) % n;
        self.verdict = None;
        self.select_field(title);
        Response::none()
    }

    /// Tells the user whether a result belongs to the selected launches.
    fn apply_verification(&mut self, selects: &[Selects], found: &Result<Vec<ProfiledResult>, String>) -> Response {
        let (text, good) = match found {
            Ok(found) => {
                let verdict = verify(selects, found);
                let said = (verdict.sentence(), matches!(verdict, Verdict::Verified(_)));
                if self.current_rerun().is_some_and(|r| r.selects == selects) {
                    self.verdict = Some(said.clone());
                }
                said
            }
            Err(text) => (text.clone(), false),
        };
        Response::none().and_say(text, !good)
    }
}

impl Screen for RerunScreen {
    fn place(&self) -> KeyScope {
        KeyScope::Rerun
    }

    fn opened(&mut self, cx: &mut ScreenContext<'_>) -> Response {
        self.columns = cx.session.size.0;
        self.request_plan(cx).into()
    }

    fn selection(&self, _: &Session, _: usize) -> Selection {
        let group = self.groups.first().map(|&row| (self.grouping.clone(), row));
        let launch = self.picked.as_ref().and_then(|p| p.launches.first()).map(|l| l.0);
        Selection { group, launch, ..Selection::default() }
    }

    fn act(&mut self, id: ActionId, cx: &mut ScreenContext<'_>) -> Option<Response> {
        Some(match id {
            ActionId::Open => self.edit_selected(cx),
            ActionId::Back => self.back(cx),
            ActionId::RunHere => self.run_commands(cx),
            ActionId::Save => self.ask_save(),
            ActionId::Verify => self.ask_verify(),
            ActionId::NextCommand => self.next_command(),
            ActionId::Copy => Response::open_overlay(commands::copy_menu()),
            ActionId::Undo if self.undo_change() => Response::from(self.request_plan(cx)).and_say("the last change was undone", false),
            ActionId::Undo => Response::say("nothing to undo"),
            _ => return None,
        })
    }

    fn scroll(&mut self, by: isize, _: &mut ScreenContext<'_>) -> Response {
        self.selected = move_selection(self.selected, by, self.rows().len());
        Response::none()
    }

    fn press(&mut self, row: usize, cx: &mut ScreenContext<'_>) -> Response {
        if self.selected == row {
            return self.edit_selected(cx);
        }
        self.selected = move_selection(row, 0, self.rows().len());
        Response::none()
    }

    fn choose(&mut self, choice: PickAction, cx: &mut ScreenContext<'_>) -> Response {
        match choice {
            PickAction::Request(request) => self.set_request(*request, cx),
            PickAction::Line(what) => Response::open_overlay(OverlayKind::Line(what, Input::new(fields::line_text(self, what)))),
            _ => Response::none(),
        }
    }

    fn line(&mut self, what: LineOf, text: &str, cx: &mut ScreenContext<'_>) -> Response {
        let text = text.trim();
        let mut request = self.request.clone();
        let o = &mut request.options;
        let given = (!text.is_empty()).then(|| text.to_owned());
        match what {
            LineOf::Output => o.output = given.map(|t| t.strip_suffix(".ncu-rep").map_or(t.clone(), str::to_owned)),
            LineOf::Directory => o.directory = given,
            LineOf::Program => match shlex::split(text) {
                Some(words) => o.program = (!words.is_empty()).then_some(words),
                None => return Response::error_message("a quote is not closed; nothing changed"),
            },
            LineOf::Sections => {
                let ids: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
                if ids.is_empty() {
                    return Response::error_message("no section given; nothing changed");
                }
                o.collect = Collect::Sections(ids);
            }
            LineOf::Rank => match (text.is_empty(), text.parse()) {
                (true, _) => o.rank = None,
                (_, Ok(rank)) => o.rank = Some(rank),
                _ => return Response::error_message("a rank is a number from 0 up; nothing changed"),
            },
            LineOf::Graph => match text.parse() {
                Ok(n) => request.choose = Choose::Graph(n),
                Err(_) => return Response::error_message("a graph launch is a number from 0 up; nothing changed"),
            },
            LineOf::Save => return self.save_script(text, cx.report()),
            LineOf::Verify => return self.verify_result(text, cx.report),
            LineOf::Tags(_) | LineOf::Note(_) | LineOf::View => return Response::none(),
        }
        self.set_request(request, cx)
    }

    fn take(&mut self, news: ScreenEvent<'_>, _: &mut ScreenContext<'_>) -> Response {
        match news {
            ScreenEvent::Resized(columns) => {
                self.set_columns(columns);
                Response::none()
            }
            ScreenEvent::Done(JobResult::Rerun(serial, request, picked, plan)) => {
                self.take_plan(*serial, request, picked, plan);
                if self.run_when_ready && !self.is_pending() {
                    self.run_when_ready = false;
                    return Navigate::RunHere.into();
                }
                Response::none()
            }
            ScreenEvent::Verified { selects, found } => self.apply_verification(selects, found),
            _ => Response::none(),
        }
    }

    fn copy(&self, what: CopyWhat, cx: &ScreenContext<'_>) -> Option<(String, String)> {
        self.copy_text(cx.report()?, what)
    }
}
