//! Background work for runs in the explorer: starts and follows runs, and updates the library.

use super::event_sources::Wake;
use super::failure::Failure;
use super::file_list::list_files;
use super::live::{self, Ask, Told};
use super::runs::headless::LOOK;
use super::runs::preflight::{format_check, preflight_checks};
use super::runs::start::{self, Started};
use super::runs::supervisor::EXEC;
use super::runs::tail::{Follow, Update};
use super::runs::{files, list, promises, tail};
use crate::app::messages::{News, Start, StepNews};
use crate::app::{Effect, Msg};
use crate::import::Cancel;
use crate::launch::doctor::State;
use crate::launch::profiler::report_patterns;
use crate::launch::runs::{gpu_utilization, process, steps};
use crate::library::{Library, LibraryError, NewRun, Run, store};
use crate::report::runs::outcome_facts;
use crossbeam_channel::Sender;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

/// Maximum number of log lines shown in the library.
const PRINTED: usize = 60;

/// Starts and follows runs for the explorer.
pub struct Recorder {
    send: Sender<Wake>,
    nsys: Option<PathBuf>,
    held: Option<Box<Started>>,
    followed: Option<i64>,
    /// Cancels the thread that follows the run.
    enough: Cancel,
    /// Cancels the current step.
    step: Cancel,
    stepping: Option<JoinHandle<()>>,
    /// Requests to the thread that follows the traces.
    asks: Option<Sender<Ask>>,
    detached: bool,
}

impl Recorder {
    /// Creates an idle recorder.
    pub fn new(send: Sender<Wake>, nsys: Option<PathBuf>) -> Self {
        Self {
            send,
            nsys,
            held: None,
            followed: None,
            enough: Cancel::default(),
            step: Cancel::default(),
            stepping: None,
            asks: None,
            detached: false,
        }
    }

    /// Cancels the current step and returns its thread.
    pub fn end_step(&mut self) -> Option<JoinHandle<()>> {
        self.step.cancel();
        self.stepping.take()
    }

    /// Takes ownership of a run.
    pub fn hold_run(&mut self, started: Box<Started>) {
        self.detached = false;
        if let Some(before) = self.held.replace(started) {
            before.release_supervisor();
        }
    }

    /// Releases a run that has ended.
    pub fn release_run(&mut self, id: i64) {
        if let Some(held) = self.held.take_if(|h| h.run.id == id) {
            held.release_supervisor();
        }
    }

    /// Stops following runs when the explorer exits; returns a final message.
    pub fn last_word(&mut self) -> Option<String> {
        self.enough.cancel();
        let held = self.held.as_mut()?;
        if held.has_exited() {
            return None;
        }
        let id = held.run.id;
        Some(if self.detached {
            format!("run {id} continues in the background; `warpscope attach {id}` shows it")
        } else {
            format!("run {id} is being stopped; `warpscope runs show {id}` shows how it ended")
        })
    }

    fn spawn_work(&self, work: impl FnOnce() -> Msg + Send + 'static) {
        let send = self.send.clone();
        std::thread::spawn(move || {
            // The receiver is gone if the program is exiting.
            let _ = send.send(Wake::Message(work()));
        });
    }

    /// Modifies the library and reloads it.
    fn change_library(&self, change: impl FnOnce(&Library) -> Result<(), Failure> + Send + 'static) {
        self.spawn_work(move || {
            let done = || -> Result<_, Failure> {
                let library = Library::open()?;
                change(&library)?;
                Ok(library.runs()?)
            };
            match done() {
                Ok(runs) => Msg::Library(Ok((runs, store::now_ms()))),
                Err(e) => Msg::Trouble(e.text),
            }
        });
    }

    /// Executes effects that concern runs.
    pub fn perform_effect(&mut self, effect: Effect) {
        match effect {
            Effect::Preflight(start) => {
                let nsys = self.nsys.clone();
                self.spawn_work(move || {
                    let folder = start.directory.as_deref().filter(|_| !start.own);
                    let found = preflight_checks(&start.tool, &start.argv, folder, nsys.as_deref());
                    Msg::Preflight(found.iter().map(|c| (format_check(c), c.state == State::Blocks)).collect())
                });
            }
            Effect::Start(start) => {
                let (send, nsys) = (self.send.clone(), self.nsys.clone());
                std::thread::spawn(move || {
                    let wake = match begin_run(&start, nsys.as_deref()) {
                        Ok(started) => Wake::Held(Box::new(started)),
                        Err(e) => Wake::Message(Msg::Started(Err(e.text))),
                    };
                    let _ = send.send(wake);
                });
            }
            Effect::Follow(id) => self.follow_run(id),
            Effect::FollowTraces(output) => {
                self.enough.cancel();
                self.enough = Cancel::default();
                self.follow_traces(None, move || Some(output));
                self.watch_gpus(None);
            }
            Effect::Gate(open) => self.send_request(Ask::Gate(open)),
            Effect::Measure(kernel) => self.send_request(Ask::Measure(kernel)),
            Effect::Snapshot { whole } => self.send_request(Ask::Snapshot { whole }),
            Effect::StopRun => match (&mut self.held, self.followed) {
                (Some(held), Some(id)) if held.run.id == id && !self.detached => held.request_stop(),
                (_, Some(id)) => self.spawn_work(move || match stop_run(id) {
                    Ok(()) => Msg::Copied(Ok(format!("run {id} was asked to stop"))),
                    Err(e) => Msg::Trouble(e.text),
                }),
                _ => {}
            },
            Effect::DetachRun => {
                if let Some(held) = &mut self.held {
                    held.detach();
                    self.detached = true;
                }
            }
            Effect::Step { run, argv, directory } => {
                self.step.cancel();
                self.step = Cancel::default();
                let (send, cancel) = (self.send.clone(), self.step.clone());
                self.stepping = Some(std::thread::spawn(move || {
                    // The receiver is gone if the program is exiting.
                    let tell = |news| drop(send.send(Wake::Message(Msg::Step(run, news))));
                    let hear = |line: &str| tell(StepNews::Line(line.to_owned()));
                    let done = match exec_command() {
                        Ok(words) => steps::run_step(&words, &argv, &directory, hear, || cancel.is_cancelled()),
                        Err(e) => Err(e.to_string()),
                    };
                    tell(StepNews::Ended(done));
                }));
            }
            Effect::EndStep => self.step.cancel(),
            Effect::Stepped { run, done, left_out } => {
                let send = self.send.clone();
                std::thread::spawn(move || {
                    if let Err(e) = Library::open().and_then(|l| l.set_steps_done(run, done, left_out)) {
                        let _ = send.send(Wake::Message(Msg::Trouble(e.to_string())));
                    }
                });
            }
            Effect::Library => self.spawn_work(|| {
                let runs = || Library::open()?.runs();
                Msg::Library(runs().map(|r| (r, store::now_ms())).map_err(|e: LibraryError| e.to_string()))
            }),
            Effect::Files { folders, shown } => self.spawn_work(move || match list_files(&folders, shown) {
                Ok(found) => Msg::Files(Box::new(found)),
                Err(text) if shown => Msg::Trouble(text),
                // The current folder may be gone or unreadable; nobody asked for it.
                Err(_) => Msg::Files(Box::default()),
            }),
            Effect::Printed(id) => self.spawn_work(move || {
                let lines = || Ok::<_, LibraryError>(tail::last_lines(&Library::open()?.run_folder(id), PRINTED));
                // A run without a log has no output.
                let kept = || {
                    let library = Library::open().ok()?;
                    let (promised, came) = promises::load_promises(&library, &library.run(id).ok()?).ok()?;
                    Some(outcome_facts(&promised, &came))
                };
                Msg::Printed(id, lines().unwrap_or_default(), kept().unwrap_or_default())
            }),
            Effect::Forget(id) => self.change_library(move |library| list::remove_quietly(library, id)),
            Effect::Note(id, text) => self.change_library(move |library| Ok(library.set_note(id, &text)?)),
            Effect::Tags(id, tags) => self.change_library(move |library| {
                let before = library.run(id)?.tags;
                before.iter().filter(|t| !tags.contains(t)).try_for_each(|t| library.set_tag(id, t, false))?;
                tags.iter().try_for_each(|t| library.set_tag(id, t, true))?;
                Ok(())
            }),
            _ => {}
        }
    }

    fn send_request(&self, ask: Ask) {
        // Sending fails if the thread has ended, in which case nothing is being followed.
        let _ = self.asks.as_ref().map(|asks| asks.send(ask));
    }

    /// Monitors GPU utilization.
    fn watch_gpus(&self, id: Option<i64>) {
        let (tell, done) = (self.send.clone(), self.enough.clone());
        std::thread::spawn(move || {
            let say = |gpu| drop(tell.send(Wake::Message(Msg::Gpu(id, gpu))));
            gpu_utilization::sample_utilization(|gpu| say(Some(gpu)), || done.is_cancelled());
            say(None);
        });
    }

    /// Follows the traces that are written to a path, if any.
    fn follow_traces(&mut self, id: Option<i64>, output: impl FnOnce() -> Option<PathBuf> + Send + 'static) {
        let (asks, asked) = crossbeam_channel::unbounded();
        self.asks = Some(asks);
        let (send, enough) = (self.send.clone(), self.enough.clone());
        std::thread::spawn(move || {
            let Some(output) = output() else { return };
            let tell = |told| {
                let msg = match told {
                    Told::Live(live) => Msg::Live(id, live),
                    Told::Said(Ok(text)) => Msg::Copied(Ok(text)),
                    Told::Said(Err(text)) => Msg::Trouble(text),
                    Told::Saved(outcome) => Msg::Snapshot(outcome),
                };
                send.send(Wake::Message(msg)).is_ok()
            };
            live::follow_traces(&output, &asked, tell, &enough);
        });
    }

    fn follow_run(&mut self, id: i64) {
        self.enough.cancel();
        self.enough = Cancel::default();
        self.followed = Some(id);
        let (send, enough) = (self.send.clone(), self.enough.clone());
        self.watch_gpus(Some(id));
        self.follow_traces(Some(id), move || live::trace_prefix(&Library::open().ok()?.run(id).ok()?));
        std::thread::spawn(move || {
            let mut follow = match Library::open() {
                Ok(library) => Follow::new(library, id),
                Err(e) => {
                    let _ = send.send(Wake::Message(Msg::Trouble(e.to_string())));
                    return;
                }
            };
            let mut last = None;
            while !enough.is_cancelled() {
                let Update { news, run, ended } = match follow.poll_update() {
                    Ok(update) => update,
                    Err(e) => {
                        let _ = send.send(Wake::Message(Msg::Trouble(e.text)));
                        return;
                    }
                };
                let now_ms = store::now_ms();
                // The clock on the screen has a resolution of one second.
                let now = (
                    news.open.clone(),
                    run.state,
                    run.stage.clone(),
                    run.detached,
                    run.tool_version.clone(),
                    run.duration_ms(now_ms) / 1000,
                );
                if ended || !news.lines.is_empty() || last.as_ref() != Some(&now) {
                    last = Some(now);
                    let news = News { lines: news.lines, open: news.open, run: Box::new(run), ended, now_ms };
                    if send.send(Wake::Message(Msg::Run(Box::new(news)))).is_err() {
                        return;
                    }
                }
                if ended {
                    enough.cancel();
                    return;
                }
                std::thread::park_timeout(LOOK);
            }
        });
    }
}

/// Returns the command of this program's own exec step.
fn exec_command() -> std::io::Result<[OsString; 3]> {
    Ok([std::env::current_exe()?.into_os_string(), EXEC.into(), std::process::id().to_string().into()])
}

/// Asks the process that owns a run to stop it.
fn stop_run(id: i64) -> Result<(), Failure> {
    let run = Library::open()?.run(id)?;
    let Some((pid, started)) = run.holder.filter(|_| run.state.is_live()) else {
        return Err(Failure::wrong(format!("run {id} is not in progress")));
    };
    Ok(process::ask_to_stop(pid, started)?)
}

/// Starts the requested run, which ends with the explorer; the run of the original report becomes its parent.
fn begin_run(start: &Start, nsys: Option<&Path>) -> Result<Started, Failure> {
    let mut library = Library::open()?;
    let parent = start.from.as_ref().and_then(|from| find_parent(&library.runs().ok()?, from));
    start::start_run(&mut library, false, |_, folder| complete_run(start, folder, nsys).map(|new| NewRun { parent, ..new }))
}

/// Returns the run to which a report belongs.
fn find_parent(runs: &[Run], report: &Path) -> Option<i64> {
    let real = |p: &Path| std::fs::canonicalize(p).unwrap_or_else(|_| p.to_owned());
    let wanted = real(report);
    runs.iter().find(|r| r.reports.iter().any(|x| real(&x.path) == wanted)).map(|r| r.id)
}

fn complete_run(start: &Start, folder: &Path, nsys: Option<&Path>) -> Result<NewRun, LibraryError> {
    let mut argv = start.argv.clone();
    files::find_tool(&mut argv, nsys);
    let notes = files::drop_unsupported(&mut argv, start.program.len(), &start.tool, false)?;
    let directory = match &start.directory {
        Some(there) if there.is_dir() => there.clone(),
        Some(there) => {
            return Err(LibraryError::Refused(format!("the folder {} does not exist: set the field `directory` first", there.display())));
        }
        None => std::env::current_dir().map_err(|source| LibraryError::File { path: ".".to_owned(), source })?,
    };
    let own = folder.join(&start.tool);
    let output = if start.own { files::redirect_report(&mut argv, start.program.len(), &start.tool, &own) } else { None };
    let output = match output {
        Some(output) => {
            std::fs::create_dir_all(&own).map_err(|source| LibraryError::File { path: own.display().to_string(), source })?;
            output
        }
        None => directory.join(&start.named).display().to_string(),
    };
    let selects: Vec<_> = start
        .selects
        .iter()
        .map(|s| serde_json::json!({ "kernel": s.kernel, "nth": s.nth, "grid": s.grid, "block": s.block, "launch": s.launch.map(|l| l.0) }))
        .collect();
    Ok(NewRun {
        tool: start.tool.clone(),
        recipe: start.recipe.clone(),
        program: start.program.clone(),
        env: start.env.clone(),
        patterns: report_patterns(&start.tool, &output),
        argv,
        notes: notes.join("\n"),
        directory,
        selects: (!selects.is_empty()).then(|| serde_json::Value::from(selects).to_string()),
        ..NewRun::default()
    })
}
