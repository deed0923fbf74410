//! Timeline of the run: visible window, cursor, and listed rows

pub mod look;
mod walk;

pub use walk::MAP;

use crate::analysis::timeline::{Event, Matches, Timeline, link};
use crate::analysis::triage::Triage;
use crate::app::actions::{ActionId, Where};
use crate::app::copies;
use crate::app::msg::{Effect, Pointer};
use crate::app::over::{CopyWhat, Finder};
use crate::app::screen::{Answer, At, Cx, Go, News, Screen, Selection, shift};
use crate::app::session::{Report, Session};
use crate::app::sight::{Arrangement, Kept, Line, LineKey, Place, lines};
use crate::app::work::{Ask, Done};
use crate::report::timeline::{Shown, describe, page};
use look::{Found, Look};
use std::sync::Arc;

/// Result of a search.
#[derive(Clone, Debug)]
pub struct Search {
    pub text: String,
    pub matches: Arc<Matches>,
    /// Number of timeline parts that were searched.
    parts: usize,
}

/// Triage of the window between the mark and the cursor.
#[derive(Clone, Debug)]
pub struct Judged {
    pub window: (i64, i64),
    /// `None` while it is computed, `Some(None)` if nothing ran in the window.
    pub triage: Option<Option<Arc<Triage>>>,
}

#[derive(Clone, Debug)]
pub struct TimelineScreen {
    /// `None` until the timeline has data.
    pub place: Option<Place>,
    pub arrangement: Arrangement,
    pub lines: Vec<Line>,
    /// Index of the selected line.
    pub selected: usize,
    /// Start of the measured span, ns.
    pub mark: Option<i64>,
    pub judged: Option<Judged>,
    pub finder: Finder,
    pub search: Option<Search>,
    /// Places left before, and places to go forward to.
    earlier: Vec<(Place, Option<LineKey>)>,
    later: Vec<(Place, Option<LineKey>)>,
    /// Place to go to once it is loaded.
    wanted: Option<At>,
    /// True if `wanted` is shown without its surroundings.
    exact: bool,
    /// Event at which following began.
    origin: Option<Event>,
    /// Column at which the pointer grabbed the timeline.
    grabbed: Option<usize>,
    serial: u64,
}

/// Maximum number of launches and calls for which a window is analysed without a mark: this takes less than half a
/// second.
const MOST_JUDGED: usize = 1_000_000;
/// Maximum number of remembered places.
const MOST_PLACES: usize = 100;

/// Width of the row labels for a terminal width, in columns.
#[must_use]
pub fn label_columns(width: u16) -> u16 {
    match width {
        0..=99 => 17,
        100..=159 => 24,
        _ => 30,
    }
}

/// Width of the lanes, in columns.
#[must_use]
pub fn columns(size: (u16, u16)) -> usize {
    usize::from(size.0.saturating_sub(label_columns(size.0) + 2).max(8))
}

impl TimelineScreen {
    #[must_use]
    pub fn new(at: Option<At>, serial: u64) -> Self {
        Self {
            place: None,
            arrangement: Arrangement::default(),
            lines: Vec::new(),
            selected: 0,
            mark: None,
            judged: None,
            finder: Finder::default(),
            search: None,
            earlier: Vec::new(),
            later: Vec::new(),
            wanted: at,
            exact: false,
            origin: None,
            grabbed: None,
            serial,
        }
    }

    /// Creates a screen that shows exactly the window.
    #[must_use]
    pub fn exactly(at: Option<At>, serial: u64) -> Self {
        Self { exact: true, ..Self::new(at, serial) }
    }

    #[must_use]
    pub fn current(&self) -> Option<Line> {
        self.lines.get(self.selected).copied()
    }

    fn key(&self, timeline: &Timeline) -> Option<LineKey> {
        lines::key(timeline, self.current()?)
    }

    fn select(&mut self, timeline: &Timeline, key: Option<LineKey>) {
        let group = |key: &LineKey| match key {
            LineKey::Group(g) => *g,
            LineKey::Row(row, _) => row.group,
        };
        let at = |key: LineKey| self.lines.iter().position(|&l| lines::key(timeline, l) == Some(key));
        // A folded row falls back to its group.
        let found = key.and_then(|k| at(k).or_else(|| at(LineKey::Group(group(&k)))));
        self.selected = found.unwrap_or(self.selected).min(self.lines.len().saturating_sub(1));
    }

    /// Rebuilds the lines; keeps the selected one.
    fn arrange(&mut self, timeline: &Timeline, key: Option<LineKey>) {
        self.lines = self.arrangement.lines(timeline);
        self.select(timeline, key);
    }

    fn look<'a>(cx: &'a Cx<'_>) -> Option<Look<'a>> {
        Look::of(cx.report()?)
    }

    /// The event at the cursor.
    #[must_use]
    pub fn event(&self, look: &Look<'_>, columns: usize) -> Option<Event> {
        let place = self.place?;
        look.event(self.current()?, place.cursor, place.window(columns)).map(|e| e.1)
    }

    /// Handles new parts of the timeline: lists their rows, and goes to the wanted place.
    fn arrived(&mut self, cx: &Cx<'_>) -> Answer {
        let Some(report) = cx.report() else { return Answer::none() };
        let timeline = Arc::clone(&report.lanes);
        if timeline.groups.is_empty() {
            return Answer::none();
        }
        let key = self.key(&timeline);
        self.arrange(&timeline, key);
        let columns = columns(cx.session.size);
        if self.place.is_none() {
            self.place = Some(report.kept.as_ref().map_or_else(|| Place::whole(timeline.span), |k| k.place));
        } else if let Some(place) =
            self.place.as_mut().filter(|_| self.earlier.is_empty() && report.kept.is_none() && self.wanted.is_none())
        {
            // The user has not moved yet: show everything that is loaded.
            *place = if place.cursor == place.start { Place::whole(timeline.span) } else { *place };
        }
        if let Some(at) = self.wanted
            && self.go_to(&at, cx, columns)
        {
            self.wanted = None;
        }
        let again = self.search.as_ref().is_some_and(|s| s.parts != timeline.parts.len());
        if again { self.find(cx) } else { Answer::none() }
    }

    /// Remembers the current place before a jump.
    fn leave(&mut self, timeline: &Timeline) {
        if let Some(place) = self.place {
            self.earlier.push((place, self.key(timeline)));
            if self.earlier.len() > MOST_PLACES {
                self.earlier.remove(0);
            }
            self.later.clear();
        }
    }

    /// Requests the matching events.
    fn find(&self, cx: &Cx<'_>) -> Answer {
        let (Some(report), false) = (cx.report(), self.finder.is_empty()) else { return Answer::none() };
        let ask = Ask::Matches { screen: self.serial, timeline: Arc::clone(&report.lanes), text: self.finder.text().to_owned() };
        report.ask(cx.report, ask).into()
    }

    /// The window between the mark and the cursor.
    #[must_use]
    pub fn marked(&self) -> Option<(i64, i64)> {
        let (mark, cursor) = (self.mark?, self.place?.cursor);
        (mark != cursor).then(|| (mark.min(cursor), mark.max(cursor)))
    }

    /// Requests triage of the marked window once the cursor rests; without a mark, of the visible window if that is
    /// fast.
    fn judge(&mut self, cx: &Cx<'_>) -> Answer {
        let few = |r: &Report| r.profile.as_ref().is_some_and(|p| p.launches.len() + p.calls.len() <= MOST_JUDGED);
        let view = self.place.filter(|_| cx.report().is_some_and(few)).map(|p| (p.start, p.end));
        let Some(window) = self.marked().or(view) else {
            self.judged = None;
            return Answer::none();
        };
        if self.judged.as_ref().is_some_and(|j| j.window == window) {
            return Answer::none();
        }
        self.judged = Some(Judged { window, triage: None });
        let Some(report) = cx.report() else { return Answer::none() };
        let effects = report.ask(cx.report, Ask::Judge { screen: self.serial, window });
        let rest = |effect| if let Effect::Work(work) = effect { Effect::Rest(work) } else { effect };
        effects.into_iter().map(rest).collect::<Vec<_>>().into()
    }

    /// Narrows all screens to the marked window, else to the visible one; if they are narrowed to it already, widens
    /// them.
    fn narrow(&self, cx: &Cx<'_>) -> Answer {
        let (Some(report), Some(place)) = (cx.report(), self.place) else { return Answer::none() };
        match (self.marked(), report.window) {
            (Some(marked), shown) if shown != Some(marked) => Go::Window(Some(marked)).into(),
            (_, Some(_)) => Go::Window(None).into(),
            (_, None)
                if (place.start, place.end) == {
                    let all = Place::whole(report.lanes.span);
                    (all.start, all.end)
                } =>
            {
                let (mark, zoom) = (cx.session.key(ActionId::SetMark), cx.session.key(ActionId::ZoomIn));
                Answer::say(format!("the whole run is in view: zoom in ({zoom}) or mark a window ({mark})"))
            }
            (_, None) => Go::Window(Some((place.start, place.end))).into(),
        }
    }

    /// Opens the event at the cursor.
    fn open(&mut self, cx: &Cx<'_>) -> Answer {
        let Some(look) = Self::look(cx) else { return Answer::none() };
        let Some(line) = self.current() else { return Answer::none() };
        match self.event(&look, columns(cx.session.size)) {
            Some(Event::Launch(launch) | Event::LaunchCall(launch)) => Go::Launch(launch).into(),
            Some(Event::Range(row)) => {
                let label = look.profile.ranges.label(look.profile.ranges.get(row as usize).name);
                Go::Ranges(Some(label)).into()
            }
            Some(_) => Answer::say("there is no more about this than what is shown here"),
            None if matches!(
                look.found(line, self.place.map_or(0, |p| p.cursor), self.place.unwrap_or_default().window(columns(cx.session.size))),
                Found::Idle(..)
            ) =>
            {
                self.walk(ActionId::ZoomTo, cx).unwrap_or_default()
            }
            None if matches!(line, Line::Group(_)) => self.fold(cx),
            None => Answer::say("nothing is here"),
        }
    }

    fn fold(&mut self, cx: &Cx<'_>) -> Answer {
        let (Some(report), Some(line)) = (cx.report(), self.current()) else { return Answer::none() };
        let timeline = Arc::clone(&report.lanes);
        let key = self.key(&timeline);
        self.arrangement.fold(&timeline, line);
        self.arrange(&timeline, key);
        Answer::none()
    }

    /// Changes the set of listed rows.
    fn rows(&mut self, cx: &Cx<'_>, change: impl FnOnce(&mut Arrangement, &Timeline, Line)) -> Answer {
        let (Some(report), Some(line)) = (cx.report(), self.current()) else { return Answer::none() };
        let timeline = Arc::clone(&report.lanes);
        let key = self.key(&timeline);
        change(&mut self.arrangement, &timeline, line);
        self.arrange(&timeline, key);
        Answer::none()
    }

    fn show_rows(&mut self, cx: &Cx<'_>) -> Answer {
        let Some(report) = cx.report() else { return Answer::none() };
        let timeline = Arc::clone(&report.lanes);
        let key = self.key(&timeline);
        self.arrangement.show_all();
        self.arrange(&timeline, key);
        Answer::none()
    }

    fn hide(&mut self, cx: &Cx<'_>) -> Answer {
        let hidden = self.arrangement.hidden();
        let _ = self.rows(cx, Arrangement::hide);
        let back = cx.session.key(ActionId::ShowRows);
        if self.arrangement.hidden() > hidden { Answer::say(format!("hidden; {back} shows all rows again")) } else { Answer::none() }
    }

    fn copied(&self, what: CopyWhat, report: &Report, columns: usize) -> Option<(String, String)> {
        let look = Look::of(report)?;
        let place = self.place?;
        let window = place.window(columns);
        let event = self.event(&look, columns);
        Some(match what {
            CopyWhat::Name(_) => (describe::name(&look.events, event?), "name".to_owned()),
            CopyWhat::Row => {
                let facts = describe::facts(look.timeline, &look.events, event?, window.step());
                let lines: Vec<String> = facts.iter().map(|(label, value)| format!("{label}: {value}")).collect();
                (format!("{}\n{}\n", describe::name(&look.events, event?), lines.join("\n")), "details".to_owned())
            }
            CopyWhat::Command => {
                let (from, to) = self.marked().unwrap_or((place.start, place.end));
                let file = crate::rerun::shell::quote(&report.file.to_string_lossy());
                (format!("warpscope timeline {file} --from {from}ns --to {to}ns"), "command".to_owned())
            }
            _ => {
                let mut out = Vec::new();
                let shown = Shown { timeline: look.timeline, gaps: look.gaps, kinds: &[] };
                page(&mut out, look.profile, &shown, window).ok()?;
                (String::from_utf8(out).ok()?, "window as text".to_owned())
            }
        })
    }
}

impl Screen for TimelineScreen {
    fn place(&self) -> Where {
        Where::Timeline
    }

    fn opened(&mut self, cx: &mut Cx<'_>) -> Answer {
        let at = cx.report;
        let Some(report) = cx.report_mut() else { return Answer::none() };
        if report.reading() {
            return Answer::none();
        }
        let effects = report.want_lanes(at);
        if let Some(kept) = &report.kept {
            (self.arrangement, self.mark) = (kept.arrangement.clone(), kept.mark);
        }
        let mut answer = self.arrived(cx);
        answer.effects.extend(effects);
        answer
    }

    fn selection(&self, session: &Session, report: usize) -> Selection {
        let Some(own) = session.reports.get(report) else { return Selection::default() };
        let (Some(look), Some(grouping)) = (Look::of(own), &own.groups.grouping) else { return Selection::default() };
        let event = self.event(&look, columns(session.size));
        // A call stands for the kernel that it launched.
        let Some(Event::Launch(launch)) = event.and_then(|e| link::started(look.profile, e).or(event)) else {
            return Selection::default();
        };
        let row = grouping.row_of(look.profile, own.paths.as_deref(), launch as usize);
        let result = own.pair(launch).map(|(other, pair)| (other, pair.result, Some(pair.sure)));
        Selection { group: row.map(|r| (Arc::clone(grouping), r)), launch: Some(launch), result, ..Selection::default() }
    }

    fn act(&mut self, id: ActionId, cx: &mut Cx<'_>) -> Option<Answer> {
        let answer = match id {
            ActionId::Open => self.open(cx),
            ActionId::Back => self.back(cx),
            ActionId::Fold => self.fold(cx),
            ActionId::HideRow => self.hide(cx),
            ActionId::ShowRows => self.show_rows(cx),
            ActionId::PinRow => self.rows(cx, Arrangement::pin),
            ActionId::RowUp => self.rows(cx, |a, t, l| a.shift(t, l, true)),
            ActionId::RowDown => self.rows(cx, |a, t, l| a.shift(t, l, false)),
            ActionId::FindEvent => {
                self.finder.typing = true;
                Answer::none()
            }
            ActionId::SetMark => self.set_mark(cx),
            ActionId::Narrow => self.narrow(cx),
            ActionId::Copy => Answer::over(copies::of_timeline()),
            _ => self.walk(id, cx)?,
        };
        let more = self.judge(cx);
        Some(Answer { effects: answer.effects.into_iter().chain(more.effects).collect(), ..answer })
    }

    fn scroll(&mut self, by: isize, _cx: &mut Cx<'_>) -> Answer {
        self.selected = shift(self.selected, by, self.lines.len());
        Answer::none()
    }

    fn press(&mut self, row: usize, cx: &mut Cx<'_>) -> Answer {
        if self.selected == row {
            return self.fold(cx);
        }
        self.selected = shift(row, 0, self.lines.len());
        Answer::none()
    }

    fn point(&mut self, pointer: Pointer, cx: &mut Cx<'_>) -> Answer {
        let answer = self.pointed(pointer, cx);
        let more = self.judge(cx);
        Answer { effects: answer.effects.into_iter().chain(more.effects).collect(), ..answer }
    }

    fn finder(&mut self) -> Option<&mut Finder> {
        Some(&mut self.finder)
    }

    fn found(&mut self, _first: bool, cx: &mut Cx<'_>) -> Answer {
        if self.finder.is_empty() {
            self.search = None;
            return Answer::none();
        }
        self.find(cx)
    }

    fn take(&mut self, news: News<'_>, cx: &mut Cx<'_>) -> Answer {
        match news {
            News::Done(Done::Timeline(_)) => {
                let answer = self.arrived(cx);
                let more = self.judge(cx);
                Answer { effects: answer.effects.into_iter().chain(more.effects).collect(), ..answer }
            }
            News::Done(Done::Matches(screen, text, parts, matches)) if *screen == self.serial && text == self.finder.text() => {
                let first = self.search.as_ref().is_none_or(|s| s.text != *text);
                self.search = Some(Search { text: text.clone(), matches: Arc::clone(matches), parts: *parts });
                // Go to the first match from the cursor on.
                if first { self.seek(cx) } else { Answer::none() }
            }
            News::Done(Done::Judged(screen, window, triage)) if *screen == self.serial => {
                if let Some(judged) = self.judged.as_mut().filter(|j| j.window == *window) {
                    judged.triage = Some(triage.clone());
                }
                Answer::none()
            }
            News::Loaded if self.lines.is_empty() => self.opened(cx),
            _ => Answer::none(),
        }
    }

    fn copy(&self, what: CopyWhat, cx: &Cx<'_>) -> Option<(String, String)> {
        self.copied(what, cx.report()?, columns(cx.session.size))
    }

    fn escape(&mut self, cx: &mut Cx<'_>) -> Answer {
        if self.mark.take().is_some() {
            self.judged = None;
            return Answer::none();
        }
        self.back(cx)
    }

    fn back(&mut self, cx: &mut Cx<'_>) -> Answer {
        if self.finder.clear() {
            self.search = None;
            return Answer::none();
        }
        if let (Some(place), Some(report)) = (self.place, cx.report_mut()) {
            report.kept = Some(Box::new(Kept { place, arrangement: self.arrangement.clone(), mark: self.mark }));
        }
        Go::Back.into()
    }
}
