//! State of the explorer: the session, one stack of screens per report, and overlays

use super::actions::KeyScope;
use super::msg::Effect;
use super::overlay::Overlay;
use super::run_state::Running;
use super::screen::{Screen, ScreenContext, Selection, Status};
use super::screens::{
    DiffScreen, KernelsScreen, Kind, LaunchesScreen, LibraryScreen, MemoryScreen, Open, OverviewScreen, RanksScreen, RerunScreen,
    ResultScreen,
};
use super::session::report::Stage;
use super::session::{Report, Session, Settings};
use std::path::PathBuf;

/// Minimum terminal size; on a smaller terminal, a single line asks for a larger one.
pub const SMALLEST: (u16, u16) = (60, 16);

/// Open screen with its id, which is never reused.
#[derive(Clone, Debug)]
pub struct Entry {
    pub id: u64,
    pub open: Open,
}

#[derive(Clone, Debug)]
pub struct App {
    pub session: Session,
    pub running: Running,
    /// Screens of each report: the kernel table and the screens opened from it.
    stacks: Vec<Vec<Entry>>,
    /// Screens without a report, on top of those of the reports.
    common: Vec<Entry>,
    /// Closed screens, to be freed later: freeing the launches of one may take longer than a frame.
    closed: Vec<Entry>,
    /// Overlay on top of the screens.
    pub over: Option<Overlay>,
    /// Last message for the user.
    pub status: Option<Status>,
    /// Id of the most recently opened screen.
    last: u64,
    /// State of the ranks screen while it is closed.
    ranks: Option<RanksScreen>,
    /// Screen that leads back to the ranks, and the report that was shown below them.
    ranks_behind: Option<(u64, usize)>,
    /// Comparison from which a kernel of a report was opened.
    changes: Option<(u64, DiffScreen)>,
}

impl App {
    /// Creates a session of unread reports; the effects read the reports.
    pub fn new(files: Vec<PathBuf>, settings: Settings, size: (u16, u16)) -> (Self, Vec<Effect>) {
        let pins = settings.pins.iter().map(|p| p.as_str().into()).collect();
        // Digests are only used by the ranks screen.
        let digests = !files.is_empty() && files.iter().all(|f| f.extension().is_some_and(|e| e == "wsd"));
        let reports: Vec<Report> = files.into_iter().map(|f| Report::new(f, &settings)).collect();
        let effects = (0..reports.len()).map(Effect::Load).collect();
        let address = settings.address.clone();
        let session = Session { reports, active: 0, address, settings, pins, size, details: true, ..Session::default() };
        let mut app = Self {
            session,
            running: Running::default(),
            stacks: Vec::new(),
            common: Vec::new(),
            closed: Vec::new(),
            over: None,
            status: None,
            last: 0,
            ranks: None,
            ranks_behind: None,
            changes: None,
        };
        app.ensure_root_screens();
        if digests {
            app.push_common(RanksScreen::default());
        }
        (app, effects)
    }

    /// Takes the screens closed since the last call, to free them outside of the event loop.
    pub fn take_closed(&mut self) -> Vec<Entry> {
        std::mem::take(&mut self.closed)
    }

    /// Opens the kernel table for each report that has none.
    pub fn ensure_root_screens(&mut self) {
        while self.stacks.len() < self.session.reports.len() {
            let kernels = KernelsScreen::new(self.session.settings.sort);
            let id = self.next_id();
            self.stacks.push(vec![Entry { id, open: kernels.into() }]);
        }
    }

    fn next_id(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.common.iter().chain(self.stacks.iter().flatten())
    }

    /// Top screen.
    pub fn top_entry(&self) -> Option<&Entry> {
        self.common.last().or_else(|| self.stacks.get(self.session.active)?.last())
    }

    /// Returns true if the top screen belongs to a report.
    pub fn on_report(&self) -> bool {
        self.common.is_empty()
    }

    /// Returns the screen with this id, on any stack.
    pub fn entry(&self, id: u64) -> Option<&Entry> {
        self.entries().find(|e| e.id == id)
    }

    /// Index of a screen's report; the active report if the screen has none.
    pub fn report_of(&self, id: u64) -> usize {
        self.stacks.iter().position(|s| s.iter().any(|e| e.id == id)).unwrap_or(self.session.active)
    }

    /// Id of the first screen of a type, on a report's stack or among those without a report.
    pub fn find_screen<K: Kind>(&self, report: Option<usize>) -> Option<u64> {
        let stack = report.map_or(Some(&self.common), |r| self.stacks.get(r))?;
        stack.iter().find(|e| K::of(&e.open).is_some()).map(|e| e.id)
    }

    /// Id of the first screen with a scope on a report's stack.
    pub fn find_on_report(&self, report: usize, screen: KeyScope) -> Option<u64> {
        self.stacks.get(report)?.iter().find(|e| e.open.screen().place() == screen).map(|e| e.id)
    }

    /// First screen of a type on a report's stack.
    pub fn report_screen<K: Kind>(&self, report: usize) -> Option<&K> {
        self.stacks.get(report)?.iter().find_map(|e| K::of(&e.open))
    }

    pub fn kernels_screen(&self, report: usize) -> Option<&KernelsScreen> {
        self.report_screen(report)
    }

    pub fn kernels_screen_mut(&mut self, report: usize) -> Option<&mut KernelsScreen> {
        self.stacks.get_mut(report)?.iter_mut().find_map(|e| KernelsScreen::of_mut(&mut e.open))
    }

    pub fn launches_screen(&self, report: usize) -> Option<&LaunchesScreen> {
        self.report_screen(report)
    }

    pub fn result_screen(&self, report: usize) -> Option<&ResultScreen> {
        self.report_screen(report)
    }

    pub fn rerun_screen(&self, report: usize) -> Option<&RerunScreen> {
        self.report_screen(report)
    }

    pub fn library_screen(&self) -> Option<&LibraryScreen> {
        self.common.iter().find_map(|e| Kind::of(&e.open))
    }

    pub fn diff_screen(&self) -> Option<&DiffScreen> {
        self.common.iter().find_map(|e| Kind::of(&e.open))
    }

    /// The active report.
    pub fn report(&self) -> Option<&Report> {
        self.session.report()
    }

    /// Returns true if the screen belongs to a report that could not be opened.
    pub fn shows_failure(&self) -> bool {
        self.on_report() && self.report().is_some_and(|r| matches!(r.stage, Stage::Failed(_)) && r.profile.is_none())
    }

    /// Reason why the only report could not be opened, unless the user canceled it.
    pub fn only_failure(&self) -> Option<&str> {
        match self.session.reports.as_slice() {
            [Report { stage: Stage::Failed(why), profile: None, .. }] if self.shows_failure() && !why.ends_with("cancelled") => Some(why),
            _ => None,
        }
    }

    /// Scope in which actions are currently looked up.
    pub fn current_scope(&self) -> KeyScope {
        self.top_entry().map_or(KeyScope::Everywhere, |e| e.open.screen().place())
    }

    /// Selection of a screen.
    pub fn selection(&self, id: u64) -> Selection {
        self.entry(id).map(|e| e.open.screen().selection(&self.session, self.report_of(id))).unwrap_or_default()
    }

    /// Selection of the top screen.
    pub fn top_selection(&self) -> Selection {
        self.top_entry().map(|e| self.selection(e.id)).unwrap_or_default()
    }

    /// Calls a closure with a screen; returns `None` if the screen is closed.
    pub fn with_screen<R>(&mut self, id: u64, ask: impl FnOnce(&mut dyn Screen, &mut ScreenContext<'_>) -> R) -> Option<R> {
        let report = self.report_of(id);
        let entry = self.common.iter_mut().chain(self.stacks.iter_mut().flatten()).find(|e| e.id == id)?;
        let mut cx = ScreenContext { session: &mut self.session, running: &mut self.running, report, screen: id };
        Some(ask(entry.open.screen_mut(), &mut cx))
    }

    /// Ids of a report's screens and of the screens without a report.
    pub fn screen_ids_of(&self, report: usize) -> Vec<u64> {
        self.stacks.get(report).into_iter().flatten().chain(&self.common).map(|e| e.id).collect()
    }

    /// Ids of all screens.
    pub fn all_screen_ids(&self) -> Vec<u64> {
        self.entries().map(|e| e.id).collect()
    }

    /// Opens a screen on a report's stack; `make` receives its id.
    pub fn push<S: Into<Open>>(&mut self, report: usize, make: impl FnOnce(u64) -> S) -> u64 {
        let id = self.next_id();
        let open = make(id).into();
        if let Some(stack) = self.stacks.get_mut(report) {
            stack.push(Entry { id, open });
        }
        id
    }

    /// Creates a screen about a whole report, without opening it.
    pub fn make_on_report(&mut self, screen: KeyScope) -> Option<Entry> {
        let id = self.next_id();
        Some(Entry { id, open: Open::on_report(screen, id)? })
    }

    /// Opens a screen that has already been created.
    pub fn push_made(&mut self, report: usize, entry: Entry) -> u64 {
        let id = entry.id;
        if let Some(stack) = self.stacks.get_mut(report) {
            stack.push(entry);
        }
        id
    }

    /// Returns the screen with this id for modification.
    pub fn open_mut(&mut self, id: u64) -> Option<&mut Open> {
        self.common.iter_mut().chain(self.stacks.iter_mut().flatten()).find(|e| e.id == id).map(|e| &mut e.open)
    }

    /// Opens a screen without a report.
    pub fn push_common(&mut self, screen: impl Into<Open>) -> u64 {
        let id = self.next_id();
        self.common.push(Entry { id, open: screen.into() });
        id
    }

    /// Closes a screen and the screens opened from it; the kernel table stays open.
    pub fn close_screen(&mut self, id: u64) {
        if let Some(at) = self.common.iter().position(|e| e.id == id) {
            self.closed.extend(self.common.drain(at..));
        }
        for stack in &mut self.stacks {
            if let Some(at) = stack.iter().position(|e| e.id == id) {
                self.closed.extend(stack.drain(at.max(1)..));
            }
        }
    }

    /// Returns true for the screen with which a report opens, directly above its kernel table: the overview, or the
    /// memory of a report that contains nothing else.
    pub fn is_home(&self, id: u64) -> bool {
        let only_memory = self.session.reports.get(self.report_of(id)).is_some_and(Report::is_memory_only);
        let opens = |open: &Open| OverviewScreen::of(open).is_some() || (only_memory && MemoryScreen::of(open).is_some());
        self.stacks.iter().any(|stack| stack.get(1).is_some_and(|e| e.id == id && opens(&e.open)))
    }

    /// Closes the screens opened from a screen.
    pub fn close_above(&mut self, id: u64) {
        for stack in &mut self.stacks {
            if let Some(at) = stack.iter().position(|e| e.id == id) {
                self.closed.extend(stack.drain(at + 1..));
            }
        }
    }

    /// Id of a report's kernel table.
    pub fn kernels_id(&self, report: usize) -> u64 {
        self.stacks.get(report).and_then(|s| s.first()).map_or(0, |e| e.id)
    }

    /// Number of a report's open screens.
    pub fn stack_depth(&self, report: usize) -> usize {
        self.stacks.get(report).map_or(0, Vec::len)
    }

    /// Closes all screens without a report, except those of a type.
    pub fn close_common_but<K: Kind>(&mut self) {
        self.common.retain(|e| K::of(&e.open).is_some());
    }

    /// Closes all screens without a report.
    pub fn close_common(&mut self) {
        // Keep the state of the ranks screen while it is closed.
        self.ranks = self.common.iter().find_map(|e| RanksScreen::of(&e.open)).cloned().or_else(|| self.ranks.take());
        self.common.clear();
    }

    /// Remembers the comparison to which a screen leads back.
    pub fn set_changes_behind(&mut self, screen: u64, changes: Option<DiffScreen>) {
        self.changes = changes.map(|c| (screen, c));
    }

    /// Takes the comparison to which a screen leads back.
    pub fn take_changes_behind(&mut self, screen: u64) -> Option<DiffScreen> {
        let changes = self.changes.take_if(|c| c.0 == screen)?.1;
        self.session.changes_behind = None;
        Some(changes)
    }

    /// Remembers that a screen leads back to the ranks, and the report that was shown below them.
    pub fn set_ranks_behind(&mut self, screen: u64, report: usize) {
        self.ranks_behind = Some((screen, report));
    }

    /// Takes the report below the ranks to which a screen leads back.
    pub fn take_ranks_behind(&mut self, screen: u64) -> Option<usize> {
        Some(self.ranks_behind.take_if(|r| r.0 == screen)?.1)
    }

    /// Takes the stored state of the ranks screen.
    pub fn kept_ranks(&mut self) -> RanksScreen {
        self.ranks.take().unwrap_or_default()
    }

    /// Closes all screens of a report except its kernel table.
    pub fn close_all_of(&mut self, report: usize) {
        if let Some(stack) = self.stacks.get_mut(report) {
            self.closed.extend(stack.drain(1..));
        }
    }

    /// Closes a report's screens about results and re-runs.
    pub fn close_results_of(&mut self, report: usize) {
        if let Some(stack) = self.stacks.get_mut(report) {
            stack.retain(|e| !matches!(e.open, Open::Result(_) | Open::Rerun(_)));
        }
    }
}
