//! The explorer: takes over the terminal, runs the event loop, and executes the effects that the state requests.
//! Files are read and analyzed on other threads.

use super::debounce::Resting;
use super::event_sources::{Wake, start_listening};
use super::failure::{Failure, UNREADABLE};
use super::global_args::{GlobalArgs, Opening};
use super::mouse::to_mouse_action;
use super::recorder::Recorder;
use super::runs::start::Started;
use super::settings::{env_variable, resolve_settings};
use super::status_timeout::Message;
use super::tty;
use super::workers::Workers;
use super::{demo, details, file_list, print, save};
use crate::app::{self, App, Effect, Msg, Watched, update};
use crate::config::{self, ColorMode, Config};
use crate::import::{self, Cancel, ImportError, Input, Job, Progress, Wants, ncu, source_file};
use crate::library::Run;
use crate::model::{Metrics, Note, Severity};
use crate::rerun::{ProfiledResult, Selects, shell};
use crate::ui::terminal::{Screen, restore, restore_on_panic};
use crate::ui::{Theme, View, clipboard, theme};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use crossterm::event::{Event, KeyEventKind};
use std::collections::HashMap;
use std::io::IsTerminal;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time for a canceled reader to stop its child process before the program exits anyway.
const LAST_WAIT: Duration = Duration::from_secs(6);

/// Source of a report.
#[derive(Clone)]
enum From {
    File(PathBuf),
    BuiltIn(&'static str, &'static [u8]),
}

/// `warpscope FILE…`: opens the explorer with these reports.
pub fn explore_files(files: &[PathBuf], args: &GlobalArgs, config: &Config) -> Result<(), Failure> {
    if let Some(file) = files.iter().find(|f| std::fs::symlink_metadata(f).is_err()) {
        return Err(Failure::no_such_file(file));
    }
    // `.` has a name, too.
    let named = |file: &PathBuf| if file.file_name().is_none() { file.canonicalize().ok() } else { None };
    if let [folder] = files
        && file_list::has_choice(folder)
    {
        return run_explorer(Vec::new(), args, &args.opening, config, Begin::Folder(folder.clone()));
    }
    let sources = files.iter().map(|file| From::File(named(file).unwrap_or_else(|| file.clone()))).collect();
    run_explorer(sources, args, &args.opening, config, Begin::Reports)
}

/// `warpscope demo`: opens the explorer with the built-in captures.
pub fn built_in(args: &GlobalArgs, opening: &Opening, tour: bool, config: &Config) -> Result<(), Failure> {
    let sources =
        demo::DEMO.iter().map(|(name, packed)| Ok(From::BuiltIn(name, demo::unpack_capture(packed)?))).collect::<Result<_, Failure>>()?;
    run_explorer(sources, args, opening, config, if tour { Begin::Tour } else { Begin::Reports })
}

/// Initial state of the explorer, apart from reports.
enum Begin {
    Reports,
    Run(Box<Started>),
    Attach(Box<Run>),
    Watch(PathBuf),
    Home,
    /// A folder of reports, of which the user chooses one.
    Folder(PathBuf),
    Tour,
}

fn run_explorer(sources: Vec<From>, args: &GlobalArgs, opening: &Opening, config: &Config, begin: Begin) -> Result<(), Failure> {
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        return Err(Failure::wrong("the explorer needs a terminal; for scripts use `warpscope top` or `warpscope launches`"));
    }
    let library = theme::Library::new(config::load_themes(config::config_folder().as_deref()));
    let mode = args.color.or(config.color).unwrap_or_else(|| ColorMode::detect_from_env(env_variable));
    let ascii = args.ascii.or(config.ascii).unwrap_or_else(|| !config::utf8_locale(env_variable));
    let mut settings = resolve_settings(args, opening, config, &library, mode)?;
    settings.keymap = settings.keymap.with_ascii_labels(ascii);
    let size = crossterm::terminal::size()?;
    let names = sources.iter().map(|s| match s {
        From::File(path) => path.clone(),
        From::BuiltIn(name, _) => PathBuf::from(name),
    });
    let (mut app, mut effects) = App::new(names.collect(), settings, size);
    for (report, source) in app.session.reports.iter_mut().zip(&sources) {
        report.built_in = matches!(source, From::BuiltIn(..));
    }
    let (send, wakes) = unbounded();
    let nsys = args.nsys.clone().or_else(|| config.nsys.clone());
    let mut recorder = Recorder::new(send.clone(), nsys.clone());
    let from_files = matches!(begin, Begin::Reports);
    match begin {
        Begin::Reports => {}
        Begin::Run(started) => {
            let run = Box::new(started.run.clone());
            effects.push(Effect::Follow(run.id));
            app.running.watched = Some(Watched::new(shell::command_line(&run.argv), Some(run), true));
            app::show_watched_run(&mut app);
            recorder.hold_run(started);
        }
        Begin::Attach(run) => {
            effects.push(Effect::Follow(run.id));
            app.running.watched = Some(Watched::new(shell::command_line(&run.argv), Some(run), false));
            app::show_watched_run(&mut app);
        }
        Begin::Watch(output) => {
            effects.push(Effect::FollowTraces(output.clone()));
            app.running.watched = Some(Watched::from_traces(output));
            app::show_watched_run(&mut app);
        }
        Begin::Home | Begin::Folder(_) => {
            app.session.machine = super::machine::machine_facts(nsys.as_deref());
            effects.extend(app::open_library(&mut app));
            if let Begin::Folder(folder) = begin {
                effects.push(Effect::Files { folders: vec![folder], shown: true });
            }
        }
        Begin::Tour => app.session.tour = Some(0),
    }
    start_listening(&send)?;
    restore_on_panic();
    tty::start_guard();
    let screen = Screen::take_over(size)?;
    let mut explorer = Explorer {
        cancels: sources.iter().map(|_| Cancel::default()).collect(),
        code: HashMap::new(),
        readers: Vec::new(),
        workers: Workers::new(&send),
        theme: library.theme(&app.session.settings.theme, mode).map_err(Failure::wrong)?,
        themed: app.session.settings.theme.clone(),
        view: View::new(ascii),
        nsys,
        recorder,
        resting: Resting::default(),
        message: Message::default(),
        app,
        screen,
        sources,
        send,
        library,
        mode,
        from_files,
    };
    explorer.run_to_end(&wakes, effects)
}

struct Explorer {
    app: App,
    screen: Screen,
    view: View,
    sources: Vec<From>,
    cancels: Vec<Cancel>,
    /// Handles for canceling running code readers, by report.
    code: HashMap<usize, Cancel>,
    readers: Vec<std::thread::JoinHandle<()>>,
    workers: Workers,
    send: Sender<Wake>,
    library: theme::Library,
    mode: ColorMode,
    /// True if the explorer was started to view files.
    from_files: bool,
    theme: Theme,
    themed: String,
    nsys: Option<PathBuf>,
    recorder: Recorder,
    /// Debounced analysis for each report.
    resting: Resting,
    message: Message,
}

impl Explorer {
    fn run_to_end(&mut self, wakes: &Receiver<Wake>, effects: Vec<Effect>) -> Result<(), Failure> {
        let outcome = self.until_the_end(wakes, effects);
        // Clean up regardless of the outcome.
        self.stop_readers();
        if let Some(said) = self.recorder.last_word() {
            print::error(&said);
        }
        match outcome? {
            // Exit with 128 + signal, as shells do, without a message.
            Some(signal) => Err(Failure {
                text: String::new(),
                code: 128_u8.saturating_add(u8::try_from(signal).unwrap_or(0)),
                reason: crate::cli::reason::Reason::Failed,
            }),
            None => Ok(()),
        }
    }

    /// Draws a frame. A draw error means that the terminal is gone.
    fn draw_frame(&mut self) -> Result<(), Failure> {
        self.screen.draw(&self.app, &mut self.view, &self.theme).map_err(|e| Failure::hung_up(&e))?;
        self.app.session.most_scroll = self.view.most_scroll;
        Ok(())
    }

    /// Runs the event loop; returns the signal that ended it.
    fn until_the_end(&mut self, wakes: &Receiver<Wake>, effects: Vec<Effect>) -> Result<Option<i32>, Failure> {
        self.draw_frame()?;
        let mut quit = self.perform_effects(effects)?;
        let mut ended_by = None;
        while !quit {
            let first = match self.resting.wait_for_wake(wakes, self.message.expires_at()) {
                Ok(first) => first,
                Err(RecvTimeoutError::Timeout) => {
                    let due = self.resting.take_due(Instant::now()).map(Effect::Work);
                    self.perform_effects(due.into_iter().collect())?;
                    if self.message.clear_expired(&mut self.app) {
                        self.draw_frame()?;
                    }
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            };
            // Process all pending events before drawing one frame.
            let mut dirty = false;
            for wake in std::iter::once(first).chain(wakes.try_iter()) {
                match wake {
                    Wake::Message(msg) => {
                        dirty = true;
                        quit |= self.update_state(msg)?;
                    }
                    Wake::Terminal(event) => {
                        if let Some(msg) = self.to_message(&event) {
                            dirty = true;
                            quit |= self.update_state(msg)?;
                        }
                    }
                    Wake::Held(started) => {
                        let run = Box::new(started.run.clone());
                        self.recorder.hold_run(started);
                        quit |= self.perform_effects(vec![Effect::Follow(run.id)])?;
                        quit |= self.update_state(Msg::Started(Ok(run)))?;
                        dirty = true;
                    }
                    Wake::Signal(signal) => {
                        ended_by = Some(signal);
                        quit |= self.update_state(Msg::Terminate)?;
                    }
                    Wake::Stop => self.suspend()?,
                    Wake::Continue => self.resume()?,
                    Wake::Gone => {
                        ended_by = ended_by.or(Some(signal_hook::consts::SIGHUP));
                        quit = true;
                    }
                }
                if quit {
                    break;
                }
            }
            if let Some(text) = self.app.only_failure().filter(|_| self.from_files && !quit) {
                return Err(Failure { text: text.to_owned(), code: UNREADABLE, reason: crate::cli::reason::Reason::Refused });
            }
            if dirty && !quit {
                self.apply_theme();
                self.message.sync_status(&self.app);
                self.draw_frame()?;
            }
        }
        Ok(ended_by)
    }

    /// Waits for readers that run a child process, so that no child is left running.
    fn stop_readers(&mut self) {
        self.cancels.iter().chain(self.code.values()).for_each(Cancel::cancel);
        self.readers.extend(self.recorder.end_step());
        // Restore the terminal first, so that the shell's prompt appears without delay.
        restore();
        let until = Instant::now() + LAST_WAIT;
        while self.readers.iter().any(|r| !r.is_finished()) && Instant::now() < until {
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    fn update_state(&mut self, msg: Msg) -> Result<bool, Failure> {
        if let Msg::Run(news) = &msg
            && news.ended
        {
            self.recorder.release_run(news.run.id);
        }
        let effects = update(&mut self.app, msg);
        let closed = self.app.take_closed();
        if !closed.is_empty() {
            // Drop on another thread: freeing a list of ten million launches took 10 ms (measured).
            let _ = std::thread::Builder::new().spawn(move || drop(closed));
        }
        self.perform_effects(effects)
    }

    fn to_message(&self, event: &Event) -> Option<Msg> {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => Some(Msg::Key(*key)),
            Event::Paste(text) => Some(Msg::Paste(text.clone())),
            Event::Resize(w, h) => Some(Msg::Resize(*w, *h)),
            Event::Mouse(mouse) => to_mouse_action(*mouse, self.view.hit_test(mouse.column, mouse.row)).map(Msg::Mouse),
            _ => None,
        }
    }

    /// Loads another report.
    fn add_report(&mut self, source: From) {
        self.sources.push(source);
        self.cancels.push(Cancel::default());
        self.load_report(self.sources.len() - 1);
    }

    /// Executes the effects that the state requests; returns true to quit.
    fn perform_effects(&mut self, effects: Vec<Effect>) -> Result<bool, Failure> {
        for effect in effects {
            match effect {
                Effect::Load(i) => self.load_report(i),
                Effect::Part(of) => {
                    if let Some(source) = self.sources.get(of).cloned() {
                        self.sources.push(source);
                        self.cancels.push(Cancel::default());
                    }
                }
                Effect::Cancel(i) => {
                    if let Some(cancel) = self.cancels.get(i) {
                        cancel.cancel();
                    }
                }
                Effect::Work(work) => {
                    self.resting.drop_superseded(&work);
                    self.workers.enqueue_work(work);
                }
                Effect::Rest(work) => self.resting.push_work(work),
                Effect::Copy(text, what) => {
                    let said = self.copy_text(&text, &what);
                    update(&mut self.app, Msg::Copied(said));
                }
                Effect::Save(path, text) => {
                    let said = save::save_script(&path, &text);
                    update(&mut self.app, Msg::Copied(said));
                }
                Effect::SaveView(path) => {
                    let said = save::save_view(&path, (&self.app, &mut self.view, &self.theme));
                    update(&mut self.app, Msg::Copied(said));
                }
                Effect::Verify { report, path, selects } => self.verify_result(report, path, selects),
                Effect::Details { report, from, result } => self.read_more(from, Cancel::default(), move |open, metrics, _| Msg::Details {
                    report,
                    from,
                    result,
                    outcome: details::read_details(open, metrics, result),
                }),
                Effect::Code { report, from, result } => {
                    // A request for another result's code cancels the disassembler that is running for this report.
                    let cancel = Cancel::default();
                    if let Some(older) = self.code.insert(report, cancel.clone()) {
                        older.cancel();
                    }
                    self.read_more(from, cancel, move |open, metrics, cancel| Msg::Code {
                        report,
                        from,
                        result,
                        outcome: details::read_code(open, metrics, result, &ncu::source::find_disassemblers(), cancel),
                    });
                }
                Effect::SourceText { report, file } => {
                    let Some(profile) = self.app.session.reports.get(report).and_then(|r| r.profile.clone()) else { continue };
                    let send = self.send.clone();
                    self.readers.retain(|r| !r.is_finished());
                    self.readers.push(std::thread::spawn(move || {
                        let folders = source_file::source_folders(&profile.source.file, profile.capture.directory.as_deref());
                        let text = source_file::read_source(&file, &folders);
                        let outcome = text.map(|t| t.lines().map(str::to_owned).collect()).ok_or_else(|| "not shown".to_owned());
                        // The receiver is gone if the program is exiting.
                        let _ = send.send(Wake::Message(Msg::SourceText { report, file, outcome }));
                    }));
                }
                Effect::Demo => {
                    self.app.close_common();
                    for (name, packed) in demo::DEMO {
                        self.app.session.add_built_in(name);
                        self.app.ensure_root_screens();
                        self.add_report(From::BuiltIn(name, demo::unpack_capture(packed)?));
                    }
                }
                Effect::Open(files) => files.into_iter().for_each(|file| self.add_report(From::File(file))),
                Effect::Redraw => self.screen.reset(self.app.session.size).map_err(|e| Failure::hung_up(&e))?,
                Effect::Suspend => self.suspend()?,
                Effect::Quit => return Ok(true),
                // The recorder performs the remaining effects, all of which concern runs.
                effect => self.recorder.perform_effect(effect),
            }
        }
        Ok(false)
    }

    fn load_report(&mut self, index: usize) {
        let (Some(source), Some(cancel)) = (self.sources.get(index).cloned(), self.cancels.get(index).cloned()) else {
            return;
        };
        let (send, nsys) = (self.send.clone(), self.nsys.clone());
        self.readers.push(std::thread::spawn(move || {
            let last = Mutex::new(("", 0));
            let tell = |progress: Progress| {
                if let Progress::Stage { name, done, total } = progress {
                    // A progress bar cannot show steps smaller than one percent.
                    let now = (name, done.saturating_mul(100).checked_div(total).unwrap_or(0));
                    let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
                    if *last == now {
                        return;
                    }
                    *last = now;
                }
                // The receiver is gone if the program is exiting.
                let _ = send.send(Wake::Message(Msg::Progress(index, progress)));
            };
            let job = Job { cancel, staged: true, nsys, ..Job::new(Wants::EXPLORER, &tell) };
            let read = || match &source {
                From::File(path) => import::open_profile(path, &job),
                From::BuiltIn(name, bytes) => import::read_profile(&Input::built_in(name, bytes), &job),
            };
            let outcome = match catch_unwind(AssertUnwindSafe(read)) {
                Ok(outcome) => outcome.map(Arc::new).map_err(|e| e.to_string()),
                Err(_) => {
                    Err("warpscope failed while reading this report; please report it as a bug, with the file if you can share it"
                        .to_owned())
                }
            };
            let _ = send.send(Wake::Message(Msg::Loaded(index, outcome)));
        }));
    }

    /// Reads a profiler's result on another thread, because the result may be large.
    fn verify_result(&self, report: usize, path: PathBuf, selects: Vec<Selects>) {
        let send = self.send.clone();
        std::thread::spawn(move || {
            let read = || import::open::read_results(&path, &Job::new(Wants::ALL, &|_| {}));
            let found = match catch_unwind(AssertUnwindSafe(read)) {
                Ok(Ok(m)) if m.notes.iter().any(|n| n.severity == Severity::Error) && m.results.len() < selects.len() => {
                    Err(m.notes.iter().map(Note::to_sentence).collect::<Vec<_>>().join(" "))
                }
                Ok(found) => found.map(|m| ProfiledResult::all_results(&m)).map_err(|e| e.to_string()),
                Err(_) => Err("warpscope failed while reading this result; please report it as a bug".to_owned()),
            };
            // The receiver is gone if the program is exiting.
            let _ = send.send(Wake::Message(Msg::Verified { report, selects, found }));
        });
    }

    /// Reads details of a report on another thread.
    fn read_more(
        &mut self,
        from: usize,
        cancel: Cancel,
        read: impl FnOnce(&dyn Fn() -> Result<Input, ImportError>, &Metrics, &Cancel) -> Msg + Send + 'static,
    ) {
        let metrics = self.app.session.reports.get(from).and_then(|r| r.profile.as_ref()).and_then(|p| p.metrics.clone());
        let (Some(metrics), Some(source)) = (metrics, self.sources.get(from).cloned()) else { return };
        let send = self.send.clone();
        self.readers.retain(|r| !r.is_finished());
        self.readers.push(std::thread::spawn(move || {
            let open = || match &source {
                From::File(path) => import::open::open_input(path, &details::quiet_job()),
                From::BuiltIn(name, bytes) => Ok(Input::built_in(name, bytes)),
            };
            // The receiver is gone if the program is exiting.
            let _ = send.send(Wake::Message(read(&open, &metrics, &cancel)));
        }));
    }

    fn copy_text(&mut self, text: &str, what: &str) -> Result<String, String> {
        let term = env_variable("TERM").unwrap_or_default();
        match clipboard::plan_copy(text, &term, clipboard::detect_multiplexer(env_variable)) {
            clipboard::Plan::Send(bytes) => match self.screen.write_bytes(&bytes) {
                Ok(()) => Ok(format!("copied the {what} ({} bytes)", text.len())),
                Err(e) => Err(format!("could not copy: {e}")),
            },
            clipboard::Plan::Save(why) => match save::save_text(text, &import::cache::default_folder()) {
                Ok(path) => Ok(format!("{why}: saved the {what} to {}", path.display())),
                Err(e) => Err(format!("{why}, and saving failed: {e}")),
            },
        }
    }

    fn suspend(&mut self) -> Result<(), Failure> {
        self.screen.suspend()?;
        self.resume()
    }

    /// Continues after the process was stopped; the shell has used the terminal in the meantime.
    fn resume(&mut self) -> Result<(), Failure> {
        self.screen.resume_terminal().map_err(|e| Failure::hung_up(&e))?;
        let size = crossterm::terminal::size().map_err(|e| Failure::hung_up(&e))?;
        self.app.session.size = size;
        self.screen.reset(size).map_err(|e| Failure::hung_up(&e))?;
        self.draw_frame()
    }

    /// Loads the theme named in the settings.
    fn apply_theme(&mut self) {
        if self.themed == self.app.session.settings.theme {
            return;
        }
        self.themed.clone_from(&self.app.session.settings.theme);
        match self.library.theme(&self.themed, self.mode) {
            Ok(theme) => self.theme = theme,
            Err(text) => self.app.status = Some(crate::app::Status { text, error: true }),
        }
    }
}

/// Opens the explorer with the reports of a run.
pub fn explore_reports(args: &GlobalArgs, config: &Config, files: Vec<PathBuf>) -> Result<(), Failure> {
    run_explorer(files.into_iter().map(From::File).collect(), args, &args.opening, config, Begin::Reports)
}

/// `warpscope run`: opens the explorer with a run that has just started.
pub fn explore_run(args: &GlobalArgs, config: &Config, started: Started) -> Result<(), Failure> {
    run_explorer(Vec::new(), args, &args.opening, config, Begin::Run(Box::new(started)))
}

/// `warpscope attach`: opens the explorer with a run of the library.
pub fn explore_attached(args: &GlobalArgs, config: &Config, run: Run) -> Result<(), Failure> {
    run_explorer(Vec::new(), args, &args.opening, config, Begin::Attach(Box::new(run)))
}

/// `warpscope watch PATH`: opens the explorer with traces written by another process.
pub fn explore_traces(args: &GlobalArgs, config: &Config, output: PathBuf) -> Result<(), Failure> {
    run_explorer(Vec::new(), args, &args.opening, config, Begin::Watch(output))
}

/// `warpscope` without a report: opens the library.
pub fn explore_library(args: &GlobalArgs, config: &Config) -> Result<(), Failure> {
    run_explorer(Vec::new(), args, &args.opening, config, Begin::Home)
}
