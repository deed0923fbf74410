//! Everything: the session, a stack of screens for each report, and what lies on top.

use super::actions::Where;
use super::msg::Effect;
use super::over::Over;
use super::running::Running;
use super::screen::{Cx, Screen, Selection, Status};
use super::screens::{DiffScreen, KernelsScreen, Kind, LaunchesScreen, LibraryScreen, Open, RanksScreen, RerunScreen, ResultScreen};
use super::session::{Report, Session, Settings};
use std::path::PathBuf;

/// Size below which one line asks for a larger terminal.
pub const SMALLEST: (u16, u16) = (60, 16);

/// An open screen and its number, which no other screen has or had.
#[derive(Clone, Debug)]
pub struct Entry {
    pub id: u64,
    pub open: Open,
}

#[derive(Clone, Debug)]
pub struct App {
    pub session: Session,
    pub running: Running,
    /// Of each report its screens: the table of kernels, and what was opened from there.
    stacks: Vec<Vec<Entry>>,
    /// Screens of no report, over those of the reports.
    common: Vec<Entry>,
    /// Screens that were closed: to free the launches that one holds can take longer than a frame.
    closed: Vec<Entry>,
    /// What lies over the screen.
    pub over: Option<Over>,
    /// The last thing to tell.
    pub status: Option<Status>,
    /// Number of the last screen that was opened.
    last: u64,
    /// The screen of the ranks, while another is looked at.
    ranks: Option<RanksScreen>,
}

impl App {
    /// A session over reports that are not read yet; the effects read them.
    #[must_use]
    pub fn new(files: Vec<PathBuf>, settings: Settings, size: (u16, u16)) -> (Self, Vec<Effect>) {
        let pins = settings.pins.iter().map(|p| p.as_str().into()).collect();
        // Of digests there is one thing to look at.
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
        };
        app.furnish();
        if digests {
            app.push_common(RanksScreen::default());
        }
        (app, effects)
    }

    /// Screens that were closed since this was asked, to be freed where nobody waits.
    pub fn take_closed(&mut self) -> Vec<Entry> {
        std::mem::take(&mut self.closed)
    }

    /// Gives each report that has none its table of kernels.
    pub fn furnish(&mut self) {
        while self.stacks.len() < self.session.reports.len() {
            let kernels = KernelsScreen::new(self.session.settings.sort);
            let id = self.number();
            self.stacks.push(vec![Entry { id, open: kernels.into() }]);
        }
    }

    fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.common.iter().chain(self.stacks.iter().flatten())
    }

    /// The screen that is on.
    #[must_use]
    pub fn top(&self) -> Option<&Entry> {
        self.common.last().or_else(|| self.stacks.get(self.session.active)?.last())
    }

    /// Whether the screen that is on belongs to a report.
    #[must_use]
    pub fn on_report(&self) -> bool {
        self.common.is_empty()
    }

    /// A screen by its number, on whichever stack it is.
    #[must_use]
    pub fn entry(&self, id: u64) -> Option<&Entry> {
        self.entries().find(|e| e.id == id)
    }

    /// Index of the report that a screen belongs to; of a screen of no report the one that is shown.
    #[must_use]
    pub fn report_of(&self, id: u64) -> usize {
        self.stacks.iter().position(|s| s.iter().any(|e| e.id == id)).unwrap_or(self.session.active)
    }

    /// The number of the first screen of a kind: of a report, or of no report.
    #[must_use]
    pub fn find<K: Kind>(&self, report: Option<usize>) -> Option<u64> {
        let stack = report.map_or(Some(&self.common), |r| self.stacks.get(r))?;
        stack.iter().find(|e| K::of(&e.open).is_some()).map(|e| e.id)
    }

    /// The first screen of a kind of a report.
    #[must_use]
    pub fn of<K: Kind>(&self, report: usize) -> Option<&K> {
        self.stacks.get(report)?.iter().find_map(|e| K::of(&e.open))
    }

    #[must_use]
    pub fn kernels(&self, report: usize) -> Option<&KernelsScreen> {
        self.of(report)
    }

    pub fn kernels_mut(&mut self, report: usize) -> Option<&mut KernelsScreen> {
        self.stacks.get_mut(report)?.iter_mut().find_map(|e| KernelsScreen::of_mut(&mut e.open))
    }

    #[must_use]
    pub fn launches(&self, report: usize) -> Option<&LaunchesScreen> {
        self.of(report)
    }

    #[must_use]
    pub fn result(&self, report: usize) -> Option<&ResultScreen> {
        self.of(report)
    }

    #[must_use]
    pub fn rerun(&self, report: usize) -> Option<&RerunScreen> {
        self.of(report)
    }

    #[must_use]
    pub fn library(&self) -> Option<&LibraryScreen> {
        self.common.iter().find_map(|e| Kind::of(&e.open))
    }

    #[must_use]
    pub fn diff(&self) -> Option<&DiffScreen> {
        self.common.iter().find_map(|e| Kind::of(&e.open))
    }

    /// The report that is shown.
    #[must_use]
    pub fn report(&self) -> Option<&Report> {
        self.session.report()
    }

    /// Where actions are looked up now.
    #[must_use]
    pub fn here(&self) -> Where {
        self.top().map_or(Where::Everywhere, |e| e.open.screen().place())
    }

    /// What is selected on a screen.
    #[must_use]
    pub fn selection(&self, id: u64) -> Selection {
        self.entry(id).map(|e| e.open.screen().selection(&self.session, self.report_of(id))).unwrap_or_default()
    }

    /// What is selected on the screen that is on.
    #[must_use]
    pub fn selected(&self) -> Selection {
        self.top().map(|e| self.selection(e.id)).unwrap_or_default()
    }

    /// Lets a screen do something; `None` when it is not open any more.
    pub fn ask<R>(&mut self, id: u64, ask: impl FnOnce(&mut dyn Screen, &mut Cx<'_>) -> R) -> Option<R> {
        let report = self.report_of(id);
        let entry = self.common.iter_mut().chain(self.stacks.iter_mut().flatten()).find(|e| e.id == id)?;
        let mut cx = Cx { session: &mut self.session, running: &mut self.running, report, screen: id };
        Some(ask(entry.open.screen_mut(), &mut cx))
    }

    /// Numbers of a report's screens and of those of no report.
    #[must_use]
    pub fn audience(&self, report: usize) -> Vec<u64> {
        self.stacks.get(report).into_iter().flatten().chain(&self.common).map(|e| e.id).collect()
    }

    /// Numbers of all screens.
    #[must_use]
    pub fn everybody(&self) -> Vec<u64> {
        self.entries().map(|e| e.id).collect()
    }

    /// Opens a screen on a report's stack; `make` is given its number.
    pub fn push<S: Into<Open>>(&mut self, report: usize, make: impl FnOnce(u64) -> S) -> u64 {
        let id = self.number();
        let open = make(id).into();
        if let Some(stack) = self.stacks.get_mut(report) {
            stack.push(Entry { id, open });
        }
        id
    }

    /// Opens a screen of no report.
    pub fn push_common(&mut self, screen: impl Into<Open>) -> u64 {
        let id = self.number();
        self.common.push(Entry { id, open: screen.into() });
        id
    }

    /// Closes a screen and what was opened from it. The table of kernels stays.
    pub fn close(&mut self, id: u64) {
        if let Some(at) = self.common.iter().position(|e| e.id == id) {
            self.closed.extend(self.common.drain(at..));
        }
        for stack in &mut self.stacks {
            if let Some(at) = stack.iter().position(|e| e.id == id) {
                self.closed.extend(stack.drain(at.max(1)..));
            }
        }
    }

    /// Closes what was opened from a screen.
    pub fn close_above(&mut self, id: u64) {
        for stack in &mut self.stacks {
            if let Some(at) = stack.iter().position(|e| e.id == id) {
                self.closed.extend(stack.drain(at + 1..));
            }
        }
    }

    /// The number of a report's table of kernels.
    #[must_use]
    pub fn table(&self, report: usize) -> u64 {
        self.stacks.get(report).and_then(|s| s.first()).map_or(0, |e| e.id)
    }

    /// How many screens of a report are open.
    #[must_use]
    pub fn depth(&self, report: usize) -> usize {
        self.stacks.get(report).map_or(0, Vec::len)
    }

    /// Closes all screens of no report but those of a kind.
    pub fn close_common_but<K: Kind>(&mut self) {
        self.common.retain(|e| K::of(&e.open).is_some());
    }

    /// Closes all screens of no report.
    pub fn close_common(&mut self) {
        // One comes back to the ranks where one left them.
        self.ranks = self.common.iter().find_map(|e| RanksScreen::of(&e.open)).cloned().or_else(|| self.ranks.take());
        self.common.clear();
    }

    /// The screen of the ranks as it was left.
    pub fn kept_ranks(&mut self) -> RanksScreen {
        self.ranks.take().unwrap_or_default()
    }

    /// Back to a report's table of kernels.
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
