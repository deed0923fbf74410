//! Shared test helpers: fixtures, edited copies of them, and an explorer without a terminal.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use rusqlite::Connection;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::SystemTime;
use tempfile::TempDir;
use warpscope::app::{App, Effect, Msg, Settings, jobs, update};
use warpscope::cli::details;
use warpscope::config::ColorMode;
use warpscope::import::{self, Cancel, ImportError, Input, Job, Wants, ncu};
use warpscope::model::{Metrics, Profile};
use warpscope::ui::theme::Library;
use warpscope::ui::{View, draw};

pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Path of a compressed fixture, as a user would give it.
pub fn packed(name: &str) -> PathBuf {
    let folder = if name == "llm" { "demo" } else { "nsys" };
    root().join("fixtures").join(folder).join(format!("{name}.sqlite.zst"))
}

/// Captures of the demo.
pub fn demo_files() -> Vec<PathBuf> {
    let folder = root().join("fixtures/demo");
    ["llm.sqlite.zst", "llm_decode.ncu-rep.zst", "llm_gemm.ncu-rep.zst", "zoo.ncu-rep.zst"].map(|f| folder.join(f)).to_vec()
}

/// Restores the default handling of SIGINT, SIGHUP and similar signals for child processes: `nohup cargo test &` makes
/// them inherit ignored signals, whereas exec resets signals that have a handler.
pub fn usual_signals() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:")).and_then(|m| u64::from_str_radix(m.trim(), 16).ok()).unwrap_or(0);
        for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM].into_iter().filter(|s| mask >> (s - 1) & 1 == 1) {
            signal_hook::flag::register(signal, Arc::default()).unwrap();
        }
    });
}

/// Folder of this test run, for unpacked files and caches.
pub fn scratch() -> &'static Path {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    usual_signals();
    FOLDER.get_or_init(|| tempfile::tempdir().unwrap()).path()
}

/// Unpacks a private copy of a fixture.
pub fn unpacked(name: &str) -> PathBuf {
    let file = tempfile::Builder::new().prefix(&format!("{name}-")).suffix(".sqlite").tempfile_in(scratch()).unwrap();
    let path = file.into_temp_path().keep().unwrap();
    let bytes = zstd::stream::decode_all(std::fs::File::open(packed(name)).unwrap()).unwrap();
    std::fs::write(&path, bytes).unwrap();
    path
}

/// Copies a fixture and changes it by SQL.
pub fn edited(name: &str, sql: &str) -> PathBuf {
    let path = unpacked(name);
    let db = Connection::open(&path).unwrap();
    db.execute_batch(sql).unwrap_or_else(|e| panic!("{e}: {sql}"));
    path
}

pub fn read(path: &Path) -> Result<Profile, ImportError> {
    read_as(path, Wants::ALL)
}

pub fn read_as(path: &Path, wants: Wants) -> Result<Profile, ImportError> {
    import::open_profile(path, &Job { cache: scratch().join("cache"), ..Job::new(wants, &|_| {}) })
}

/// Reads an edited fixture.
pub fn edited_profile(name: &str, sql: &str) -> Profile {
    read(&edited(name, sql)).unwrap_or_else(|e| panic!("{e}"))
}

/// Runs the program in a clean environment; returns exit code, stdout and stderr.
pub fn run(args: &[&str]) -> (i32, String, String) {
    let mut command = assert_cmd::Command::cargo_bin("warpscope").unwrap();
    command.env_clear().env("HOME", scratch()).env("PATH", "/usr/bin:/bin").env("LANG", "C.UTF-8").current_dir(root());
    let out = command.timeout(std::time::Duration::from_secs(60)).args(args).output().unwrap();
    (out.status.code().unwrap(), String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap())
}

/// Reads a capture of the probe, changed by SQL.
pub fn probe(mode: &str, sql: &str) -> Profile {
    let path = tempfile::Builder::new().suffix(".sqlite").tempfile_in(scratch()).unwrap().into_temp_path().keep().unwrap();
    let packed = root().join(format!("fixtures/probe/{mode}.sqlite.zst"));
    std::fs::write(&path, zstd::stream::decode_all(std::fs::File::open(packed).unwrap()).unwrap()).unwrap();
    Connection::open(&path).unwrap().execute_batch(sql).unwrap_or_else(|e| panic!("{e}: {sql}"));
    read(&path).unwrap_or_else(|e| panic!("{e}"))
}

/// Reads a report; unmodified fixtures are read only once.
fn read_once(path: &Path) -> Result<Arc<Profile>, String> {
    static KNOWN: Mutex<BTreeMap<PathBuf, Arc<Profile>>> = Mutex::new(BTreeMap::new());
    let fixture = path.starts_with(root().join("fixtures"));
    if let Some(known) = KNOWN.lock().unwrap().get(path).filter(|_| fixture) {
        return Ok(Arc::clone(known));
    }
    let profile = Arc::new(read(path).map_err(|e| e.to_string())?);
    if fixture {
        KNOWN.lock().unwrap().insert(path.to_owned(), Arc::clone(&profile));
    }
    Ok(profile)
}

/// An explorer whose requests are all executed at once, in order.
pub struct Explorer {
    pub app: App,
    pub view: View,
    pub copied: Vec<String>,
    pub saved: Vec<(PathBuf, String)>,
    pub quit: bool,
    /// Effects requested for runs; none is executed.
    pub asked: Vec<Effect>,
}

impl Explorer {
    /// Opened once by each test for the same files and size, since what is computed on opening takes the longest.
    pub fn open(files: &[PathBuf], size: (u16, u16)) -> Self {
        type Opened = Vec<(Vec<(PathBuf, Option<SystemTime>)>, (u16, u16), Explorer)>;
        thread_local!(static OPENED: RefCell<Opened> = const { RefCell::new(Vec::new()) });
        let modified = |file: &PathBuf| std::fs::metadata(file).and_then(|m| m.modified()).ok();
        let files: Vec<_> = files.iter().map(|file| (file.clone(), modified(file))).collect();
        let copy = |from: &Self| Self { copied: from.copied.clone(), saved: from.saved.clone(), asked: from.asked.clone(), ..from.fork() };
        OPENED.with_borrow_mut(|opened| {
            if let Some(known) = opened.iter().find(|o| o.0 == files && o.1 == size) {
                return copy(&known.2);
            }
            let paths: Vec<PathBuf> = files.iter().map(|f| f.0.clone()).collect();
            let new = Self::open_with(&paths, size, Settings::default());
            let first = copy(&new);
            opened.truncate(3);
            opened.insert(0, (files, size, new));
            first
        })
    }

    pub fn open_with(files: &[PathBuf], size: (u16, u16), settings: Settings) -> Self {
        Self::begin_with(files, size, settings, |_| {})
    }

    /// Changes the state with `begin` before anything is read, as `warpscope demo --tour` does.
    pub fn begin_with(files: &[PathBuf], size: (u16, u16), settings: Settings, begin: impl FnOnce(&mut App)) -> Self {
        let settings = Settings { themes: Library::new(Vec::new()).names(), ..settings };
        let (mut app, effects) = App::new(files.to_vec(), settings, size);
        begin(&mut app);
        let mut explorer = Self { app, view: View::default(), copied: Vec::new(), saved: Vec::new(), quit: false, asked: Vec::new() };
        explorer.perform(effects);
        explorer
    }

    /// A copy in the same state, scrolled to the top.
    pub fn fork(&self) -> Self {
        Self { app: self.app.clone(), view: View::default(), copied: Vec::new(), saved: Vec::new(), quit: false, asked: Vec::new() }
    }

    pub fn send(&mut self, msg: Msg) {
        let effects = update(&mut self.app, msg);
        self.perform(effects);
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Load(i) => {
                    let outcome = read_once(&self.app.session.reports[i].file);
                    self.send(Msg::Loaded(i, outcome));
                }
                Effect::Work(work) | Effect::Rest(work) => {
                    let done = jobs::perform_work(&work, &Cancel::default()).unwrap();
                    self.send(Msg::Done { report: work.report, generation: work.generation, window: work.window, done });
                }
                Effect::Copy(text, what) => {
                    self.copied.push(text);
                    self.send(Msg::Copied(Ok(format!("copied the {what}"))));
                }
                Effect::Save(path, text) => {
                    self.saved.push((path.clone(), text));
                    self.send(Msg::Copied(Ok(format!("saved {}", path.display()))));
                }
                Effect::SaveView(path) => self.send(Msg::Copied(Ok(format!("saved {}", path.display())))),
                Effect::Verify { report, path, selects } => {
                    let job = Job { cache: scratch().join("cache"), ..Job::new(Wants::ALL, &|_| {}) };
                    let found = ncu::read_metrics(&path, &job, None);
                    let found = found.map(|m| m.results.iter().map(Into::into).collect()).map_err(|e| e.to_string());
                    self.send(Msg::Verified { report, selects, found });
                }
                Effect::Details { report, from, result } => {
                    let (metrics, open) = self.metrics(from);
                    let outcome = details::read_details(open, &metrics, result);
                    self.send(Msg::Details { report, from, result, outcome });
                }
                Effect::Code { report, from, result } => {
                    let (metrics, open) = self.metrics(from);
                    // No disassembler is used, since not every machine has one.
                    let outcome = details::read_code(open, &metrics, result, &[], &Cancel::default());
                    self.send(Msg::Code { report, from, result, outcome });
                }
                // The sources of the profiled programs are not on the machine that runs the tests.
                Effect::SourceText { report, file } => {
                    self.send(Msg::SourceText { report, file, outcome: Err("not on this machine".to_owned()) });
                }
                // Nothing to do: this explorer finds the file of a report by its path.
                Effect::Part(_) => {}
                Effect::Demo => {
                    self.app.close_common();
                    for file in demo_files() {
                        self.app.session.add_built_in(&file.to_string_lossy());
                        self.app.ensure_root_screens();
                        self.perform(vec![Effect::Load(self.app.session.reports.len() - 1)]);
                    }
                }
                Effect::Open(files) => {
                    let first = self.app.session.reports.len() - files.len();
                    self.perform((first..self.app.session.reports.len()).map(Effect::Load).collect());
                }
                Effect::Preflight(_)
                | Effect::Start(_)
                | Effect::Follow(_)
                | Effect::FollowTraces(_)
                | Effect::Gate(_)
                | Effect::Measure(_)
                | Effect::Snapshot { .. }
                | Effect::StopRun
                | Effect::DetachRun
                | Effect::Step { .. }
                | Effect::EndStep
                | Effect::Stepped { .. }
                | Effect::Library
                | Effect::Files { .. }
                | Effect::Printed(_)
                | Effect::Forget(_)
                | Effect::Tags(..)
                | Effect::Note(..) => self.asked.push(effect),
                Effect::Quit => self.quit = true,
                Effect::Cancel(_) | Effect::Redraw | Effect::Suspend => {}
            }
        }
    }

    fn metrics(&self, report: usize) -> (Arc<Metrics>, impl FnOnce() -> Result<Input, ImportError> + use<>) {
        let report = &self.app.session.reports[report];
        let file = report.file.clone();
        let open = move || import::open::open_input(&file, &Job { cache: scratch().join("cache"), ..Job::new(Wants::ALL, &|_| {}) });
        (report.profile.as_ref().unwrap().metrics.clone().unwrap(), open)
    }

    /// Presses keys by name, separated by spaces.
    pub fn press(&mut self, keys: &str) {
        for key in keys.split(' ') {
            self.send(Msg::Key(key_event(key)));
        }
    }

    pub fn type_text(&mut self, text: &str) {
        self.send(Msg::Paste(text.to_owned()));
    }

    /// Returns the screen as text.
    pub fn screen(&mut self) -> String {
        let buffer = self.buffer("dark", ColorMode::True);
        let (w, content) = (usize::from(buffer.area.width), buffer.content);
        content
            .chunks(w)
            .map(|row| row.iter().map(ratatui::buffer::Cell::symbol).collect::<String>().trim_end().to_owned())
            .collect::<Vec<_>>()
            .join("\n")
    }

    pub fn buffer(&mut self, theme: &str, mode: ColorMode) -> ratatui::buffer::Buffer {
        let theme = Library::new(Vec::new()).theme(theme, mode).unwrap();
        let mut terminal = Terminal::new(TestBackend::new(self.app.session.size.0, self.app.session.size.1)).unwrap();
        terminal.draw(|frame| draw(frame, &self.app, &mut self.view, &theme)).unwrap();
        self.app.session.most_scroll = self.view.most_scroll;
        terminal.backend().buffer().clone()
    }
}

/// Returns a key event by its name in the configuration.
pub fn key_event(name: &str) -> crossterm::event::KeyEvent {
    use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
    let (modifiers, rest) = match (name.strip_prefix("ctrl-"), name.strip_prefix("shift-")) {
        (Some(rest), _) => (KeyModifiers::CONTROL, rest),
        (_, Some(rest)) => (KeyModifiers::SHIFT, rest),
        _ => (KeyModifiers::NONE, name),
    };
    let code = match rest {
        "enter" => KeyCode::Enter,
        "esc" => KeyCode::Esc,
        "up" => KeyCode::Up,
        "down" => KeyCode::Down,
        "left" => KeyCode::Left,
        "right" => KeyCode::Right,
        "pgdn" => KeyCode::PageDown,
        "pgup" => KeyCode::PageUp,
        "home" => KeyCode::Home,
        "end" => KeyCode::End,
        "space" => KeyCode::Char(' '),
        "bs" => KeyCode::Backspace,
        "tab" => KeyCode::Tab,
        c => KeyCode::Char(c.chars().next().unwrap()),
    };
    KeyEvent::new(code, modifiers)
}
