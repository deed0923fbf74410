//! Timeline of the run: visible window, cursor and rows

pub mod inspect;
mod navigate;

pub use navigate::MAP;

use crate::analysis::timeline::{Event, Gap, Matches, Timeline, link};
use crate::analysis::triage::Triage;
use crate::app::actions::{ActionId, KeyScope};
use crate::app::clipboard;
use crate::app::jobs::{JobRequest, JobResult};
use crate::app::msg::{Effect, Pointer};
use crate::app::overlay::{CopyWhat, FilterInput};
use crate::app::screen::{At, Navigate, Response, Screen, ScreenContext, ScreenEvent, Selection, move_selection};
use crate::app::session::{Report, Session};
use crate::app::timeline_view::{Arrangement, LineKey, RowRef, SavedView, Viewport, rows};
use crate::report::timeline::{Shown, describe, print_page};
use inspect::{CursorContent, Look};
use std::sync::Arc;

/// Result of a search.
#[derive(Clone, Debug)]
pub struct Search {
    pub text: String,
    pub matches: Arc<Matches>,
    /// Number of timeline parts searched.
    parts: usize,
}

/// Triage of the window between the mark and the cursor.
#[derive(Clone, Debug)]
pub struct Judged {
    pub window: (i64, i64),
    /// Triage of the window; `None` while it is computed, `Some(None)` if nothing ran in the window.
    pub triage: Option<Option<Arc<Triage>>>,
}

#[derive(Clone, Debug)]
pub struct TimelineScreen {
    /// Visible window and cursor; `None` until the timeline has data.
    pub place: Option<Viewport>,
    pub arrangement: Arrangement,
    pub lines: Vec<RowRef>,
    /// Index of the selected line.
    pub selected: usize,
    /// Mark from which time spans are measured, ns.
    pub mark: Option<i64>,
    pub judged: Option<Judged>,
    pub finder: FilterInput,
    pub search: Option<Search>,
    /// Places to go back to, and places to go forward to.
    earlier: Vec<(Viewport, Option<LineKey>)>,
    later: Vec<(Viewport, Option<LineKey>)>,
    /// Place to show once its data is loaded.
    wanted: Option<At>,
    /// True if the window shows exactly `wanted`, without a margin.
    exact: bool,
    /// First event in a chain of followed links.
    origin: Option<Event>,
    /// Start of the idle time that the "longest gap" key last went to, ns; pressing the key there again goes to the
    /// next longest.
    longest_gap: Option<i64>,
    /// Column at which the user grabbed the timeline.
    grabbed: Option<usize>,
    serial: u64,
}

/// Maximum number of launches and calls for analyzing a window without a mark; the analysis takes less than half a
/// second.
const MOST_JUDGED: usize = 1_000_000;
/// Maximum number of remembered places.
const MOST_PLACES: usize = 100;

/// Width of the row labels for a terminal width, in columns.
pub fn label_columns(width: u16) -> u16 {
    match width {
        0..=99 => 17,
        100..=159 => 24,
        _ => 30,
    }
}

/// Width of the lanes, in columns: what the row labels and borders leave, but at least 8.
pub fn lane_columns(size: (u16, u16)) -> usize {
    usize::from(size.0.saturating_sub(label_columns(size.0) + 2).max(8))
}

impl TimelineScreen {
    pub fn new(at: Option<At>, serial: u64) -> Self {
        Self {
            place: None,
            arrangement: Arrangement::default(),
            lines: Vec::new(),
            selected: 0,
            mark: None,
            judged: None,
            finder: FilterInput::default(),
            search: None,
            earlier: Vec::new(),
            later: Vec::new(),
            wanted: at,
            exact: false,
            origin: None,
            longest_gap: None,
            grabbed: None,
            serial,
        }
    }

    /// Creates a screen that shows exactly the window `at`.
    pub fn new_exact(at: Option<At>, serial: u64) -> Self {
        Self { exact: true, ..Self::new(at, serial) }
    }

    pub fn current_line(&self) -> Option<RowRef> {
        self.lines.get(self.selected).copied()
    }

    fn current_key(&self, timeline: &Timeline) -> Option<LineKey> {
        rows::line_key(timeline, self.current_line()?)
    }

    fn select_key(&mut self, timeline: &Timeline, key: Option<LineKey>) {
        let group = |key: &LineKey| match key {
            LineKey::Group(g) => *g,
            LineKey::Row(row, _) => row.group,
        };
        let at = |key: LineKey| self.lines.iter().position(|&l| rows::line_key(timeline, l) == Some(key));
        // If the row is folded, select its group.
        let found = key.and_then(|k| at(k).or_else(|| at(LineKey::Group(group(&k)))));
        self.selected = found.unwrap_or(self.selected).min(self.lines.len().saturating_sub(1));
    }

    /// Rebuilds the lines; keeps the selected line.
    fn rebuild_lines(&mut self, timeline: &Timeline, key: Option<LineKey>) {
        self.lines = self.arrangement.visible_lines(timeline);
        self.select_key(timeline, key);
    }

    fn look<'a>(cx: &'a ScreenContext<'_>) -> Option<Look<'a>> {
        Look::from_report(cx.report()?)
    }

    /// The event at the cursor.
    pub fn event_at_cursor(&self, look: &Look<'_>, columns: usize) -> Option<Event> {
        let place = self.place?;
        look.event_at(self.current_line()?, place.cursor, place.window(columns)).map(|e| e.1)
    }

    /// Handles new parts of the timeline: lists their rows and goes to the wanted place.
    fn handle_new_parts(&mut self, cx: &ScreenContext<'_>) -> Response {
        let Some(report) = cx.report() else { return Response::none() };
        let timeline = Arc::clone(&report.lanes);
        if timeline.groups.is_empty() {
            return Response::none();
        }
        let key = self.current_key(&timeline);
        self.rebuild_lines(&timeline, key);
        let columns = lane_columns(cx.session.size);
        if self.place.is_none() {
            self.place = Some(report.kept.as_ref().map_or_else(|| Viewport::whole_span(timeline.span), |k| k.place));
        } else if let Some(place) =
            self.place.as_mut().filter(|_| self.earlier.is_empty() && report.kept.is_none() && self.wanted.is_none())
        {
            // The user has not moved yet: show all data loaded so far.
            *place = if place.cursor == place.start { Viewport::whole_span(timeline.span) } else { *place };
        }
        if let Some(at) = self.wanted
            && self.go_to(&at, cx, columns)
        {
            self.wanted = None;
        }
        let again = self.search.as_ref().is_some_and(|s| s.parts != timeline.parts.len());
        if again { self.request_matches(cx) } else { Response::none() }
    }

    /// Remembers the current place before a jump.
    fn push_history(&mut self, timeline: &Timeline) {
        if let Some(place) = self.place {
            self.earlier.push((place, self.current_key(timeline)));
            if self.earlier.len() > MOST_PLACES {
                self.earlier.remove(0);
            }
            self.later.clear();
        }
    }

    /// Requests the matching events.
    fn request_matches(&self, cx: &ScreenContext<'_>) -> Response {
        let (Some(report), false) = (cx.report(), self.finder.is_empty()) else { return Response::none() };
        let ask = JobRequest::Matches { screen: self.serial, timeline: Arc::clone(&report.lanes), text: self.finder.text().to_owned() };
        report.request_work(cx.report, ask).into()
    }

    /// The window between the mark and the cursor.
    pub fn marked_window(&self) -> Option<(i64, i64)> {
        let (mark, cursor) = (self.mark?, self.place?.cursor);
        (mark != cursor).then(|| (mark.min(cursor), mark.max(cursor)))
    }

    /// Requests triage of the marked window once the cursor rests. Without a mark, requests triage of the visible
    /// window if that is fast.
    fn request_triage(&mut self, cx: &ScreenContext<'_>) -> Response {
        let few = |r: &Report| r.profile.as_ref().is_some_and(|p| p.launches.len() + p.calls.len() <= MOST_JUDGED);
        let view = self.place.filter(|_| cx.report().is_some_and(few)).map(|p| (p.start, p.end));
        let in_use = |w| cx.report().map_or(Some(w), |r| r.part_in_use(w));
        let Some(window) = self.marked_window().or(view).and_then(in_use) else {
            self.judged = None;
            return Response::none();
        };
        if self.judged.as_ref().is_some_and(|j| j.window == window) {
            return Response::none();
        }
        self.judged = Some(Judged { window, triage: None });
        let Some(report) = cx.report() else { return Response::none() };
        let effects = report.request_work(cx.report, JobRequest::Judge { screen: self.serial, window });
        let rest = |effect| if let Effect::Work(work) = effect { Effect::Rest(work) } else { effect };
        effects.into_iter().map(rest).collect::<Vec<_>>().into()
    }

    /// Narrows all screens to the marked window, or otherwise to the visible one; if that window is already set, shows
    /// the whole run again.
    fn toggle_time_filter(&self, cx: &ScreenContext<'_>) -> Response {
        let (Some(report), Some(place)) = (cx.report(), self.place) else { return Response::none() };
        match (self.marked_window(), report.window) {
            (Some(marked), shown) if shown != Some(marked) => Navigate::Window(Some(marked)).into(),
            (_, Some(_)) => Navigate::Window(None).into(),
            (_, None)
                if (place.start, place.end) == {
                    let all = Viewport::whole_span(report.lanes.span);
                    (all.start, all.end)
                } =>
            {
                let (mark, zoom) = (cx.session.key_label(ActionId::SetMark), cx.session.key_label(ActionId::ZoomIn));
                Response::say(format!("the whole run is in view: zoom in ({zoom}) or mark a window ({mark})"))
            }
            (_, None) => Navigate::Window(Some((place.start, place.end))).into(),
        }
    }

    /// Idle time at the cursor.
    fn gap_at_cursor(&self, look: &Look<'_>, columns: usize) -> Option<Gap> {
        let place = self.place?;
        match look.content_at(self.current_line()?, place.cursor, place.window(columns)) {
            CursorContent::Idle(gap, _) => Some(gap),
            _ => None,
        }
    }

    /// First launch after the idle time at the cursor.
    pub fn launch_after_gap(&self, look: &Look<'_>, columns: usize) -> Option<u32> {
        let gap = self.gap_at_cursor(look, columns)?;
        let device = rows::find_device(look.timeline, self.current_line())?;
        link::next_kernel(look.timeline, &look.events, device, gap.end)
    }

    /// First operation after the idle time at the cursor.
    pub(super) fn operation_after_gap(&self, look: &Look<'_>, columns: usize) -> Option<Event> {
        let gap = self.gap_at_cursor(look, columns)?;
        let device = rows::find_device(look.timeline, self.current_line())?;
        link::next_operation(look.timeline, &look.events, device, gap.end)
    }

    /// Opens the event at the cursor.
    fn open_event(&mut self, cx: &ScreenContext<'_>) -> Response {
        let Some(look) = Self::look(cx) else { return Response::none() };
        let Some(line) = self.current_line() else { return Response::none() };
        match self.event_at_cursor(&look, lane_columns(cx.session.size)) {
            Some(Event::Launch(launch) | Event::LaunchCall(launch)) => Navigate::Launch(launch).into(),
            Some(Event::Range(row)) => {
                let label = look.profile.ranges.label(look.profile.ranges.get(row as usize).name);
                Navigate::RangesAt(label).into()
            }
            Some(_) => Response::say("there is no more about this than what is shown here"),
            None if self.gap_at_cursor(&look, lane_columns(cx.session.size)).is_some() => {
                match self.launch_after_gap(&look, lane_columns(cx.session.size)) {
                    Some(launch) => Navigate::Launch(launch).into(),
                    None => self.move_in_time(ActionId::ZoomTo, cx).unwrap_or_default(),
                }
            }
            None if matches!(line, RowRef::Group(_)) => self.toggle_fold(cx),
            None => Response::say("nothing is here"),
        }
    }

    fn toggle_fold(&mut self, cx: &ScreenContext<'_>) -> Response {
        let (Some(report), Some(line)) = (cx.report(), self.current_line()) else { return Response::none() };
        let timeline = Arc::clone(&report.lanes);
        let key = self.current_key(&timeline);
        self.arrangement.toggle_fold(&timeline, line);
        self.rebuild_lines(&timeline, key);
        Response::none()
    }

    /// Applies a change to the arrangement of the rows; the selection stays on the same row.
    fn change_rows(&mut self, cx: &ScreenContext<'_>, change: impl FnOnce(&mut Arrangement, &Timeline, RowRef)) -> Response {
        let (Some(report), Some(line)) = (cx.report(), self.current_line()) else { return Response::none() };
        let timeline = Arc::clone(&report.lanes);
        let key = self.current_key(&timeline);
        change(&mut self.arrangement, &timeline, line);
        self.rebuild_lines(&timeline, key);
        Response::none()
    }

    fn show_rows(&mut self, cx: &ScreenContext<'_>) -> Response {
        let Some(report) = cx.report() else { return Response::none() };
        if self.arrangement.hidden_count() == 0 {
            return Response::say("no row is hidden");
        }
        let timeline = Arc::clone(&report.lanes);
        let key = self.current_key(&timeline);
        self.arrangement.show_all();
        self.rebuild_lines(&timeline, key);
        Response::none()
    }

    fn hide_row(&mut self, cx: &ScreenContext<'_>) -> Response {
        let hidden = self.arrangement.hidden_count();
        let _ = self.change_rows(cx, Arrangement::hide_line);
        let back = cx.session.key_label(ActionId::ShowRows);
        if self.arrangement.hidden_count() > hidden {
            Response::say(format!("hidden; {back} shows all rows again"))
        } else {
            Response::none()
        }
    }

    fn copy_text(&self, what: CopyWhat, report: &Report, columns: usize) -> Option<(String, String)> {
        let look = Look::from_report(report)?;
        let place = self.place?;
        let window = place.window(columns);
        let event = self.event_at_cursor(&look, columns);
        Some(match what {
            CopyWhat::Name(_) => (describe::full_name(&look.events, event?), "name".to_owned()),
            CopyWhat::Row => {
                let facts = describe::event_facts(look.timeline, &look.events, event?, window.column_width());
                let lines: Vec<String> = facts.iter().map(|(label, value)| format!("{label}: {value}")).collect();
                (format!("{}\n{}\n", describe::full_name(&look.events, event?), lines.join("\n")), "details".to_owned())
            }
            CopyWhat::Command => {
                let (from, to) = self.marked_window().unwrap_or((place.start, place.end));
                let file = crate::rerun::shell::quote(&report.file.to_string_lossy());
                (format!("warpscope timeline {file} --from {from}ns --to {to}ns"), "command".to_owned())
            }
            _ => {
                let mut out = Vec::new();
                let shown = Shown { timeline: look.timeline, gaps: look.gaps, kinds: &[] };
                print_page(&mut out, look.profile, &shown, window).ok()?;
                (String::from_utf8(out).ok()?, "window as text".to_owned())
            }
        })
    }
}

impl Screen for TimelineScreen {
    fn place(&self) -> KeyScope {
        KeyScope::Timeline
    }

    fn opened(&mut self, cx: &mut ScreenContext<'_>) -> Response {
        let at = cx.report;
        let Some(report) = cx.report_mut() else { return Response::none() };
        if report.is_reading() {
            return Response::none();
        }
        let effects = report.want_lanes(at);
        if let Some(kept) = &report.kept {
            (self.arrangement, self.mark) = (kept.arrangement.clone(), kept.mark);
        }
        let mut answer = self.handle_new_parts(cx);
        answer.effects.extend(effects);
        answer
    }

    fn selection(&self, session: &Session, report: usize) -> Selection {
        let Some(own) = session.reports.get(report) else { return Selection::default() };
        let Some(look) = Look::from_report(own) else { return Selection::default() };
        let event = self.event_at_cursor(&look, lane_columns(session.size));
        // For a call, use the kernel that it launched; for idle time, the one that ends it.
        let launch = match event.map(|e| link::started_operation(look.profile, e).unwrap_or(e)) {
            Some(Event::Launch(launch)) => Some(launch),
            Some(_) => None,
            None => self.launch_after_gap(&look, lane_columns(session.size)),
        };
        let Some(launch) = launch else { return Selection::default() };
        let result = own.find_pair(launch).map(|(other, pair)| (other, pair.result, Some(pair.sure)));
        Selection { group: own.group_of_launch(launch), launch: Some(launch), result, ..Selection::default() }
    }

    fn act(&mut self, id: ActionId, cx: &mut ScreenContext<'_>) -> Option<Response> {
        let answer = match id {
            ActionId::Open => self.open_event(cx),
            ActionId::Back => self.back(cx),
            ActionId::Fold => self.toggle_fold(cx),
            ActionId::HideRow => self.hide_row(cx),
            ActionId::ShowRows => self.show_rows(cx),
            ActionId::PinRow => self.change_rows(cx, Arrangement::toggle_pin),
            ActionId::RowUp => self.change_rows(cx, |a, t, l| a.move_line(t, l, true)),
            ActionId::RowDown => self.change_rows(cx, |a, t, l| a.move_line(t, l, false)),
            ActionId::FindEvent => {
                self.finder.typing = true;
                Response::none()
            }
            ActionId::SetMark => self.set_mark(cx),
            ActionId::MarkPhase => self.mark_phase(cx),
            ActionId::Narrow => self.toggle_time_filter(cx),
            ActionId::Copy => Response::open_overlay(clipboard::timeline_menu()),
            _ => self.move_in_time(id, cx)?,
        };
        let more = self.request_triage(cx);
        Some(Response { effects: answer.effects.into_iter().chain(more.effects).collect(), ..answer })
    }

    fn scroll(&mut self, by: isize, _cx: &mut ScreenContext<'_>) -> Response {
        self.selected = move_selection(self.selected, by, self.lines.len());
        Response::none()
    }

    fn press(&mut self, row: usize, cx: &mut ScreenContext<'_>) -> Response {
        if self.selected == row {
            return self.toggle_fold(cx);
        }
        self.selected = move_selection(row, 0, self.lines.len());
        Response::none()
    }

    fn point(&mut self, pointer: Pointer, cx: &mut ScreenContext<'_>) -> Response {
        let answer = self.handle_pointer(pointer, cx);
        let more = self.request_triage(cx);
        Response { effects: answer.effects.into_iter().chain(more.effects).collect(), ..answer }
    }

    fn finder(&mut self) -> Option<&mut FilterInput> {
        Some(&mut self.finder)
    }

    fn found(&mut self, _first: bool, cx: &mut ScreenContext<'_>) -> Response {
        if self.finder.is_empty() {
            self.search = None;
            return Response::none();
        }
        self.request_matches(cx)
    }

    fn take(&mut self, news: ScreenEvent<'_>, cx: &mut ScreenContext<'_>) -> Response {
        match news {
            ScreenEvent::Done(JobResult::Timeline(_)) => {
                let answer = self.handle_new_parts(cx);
                let more = self.request_triage(cx);
                Response { effects: answer.effects.into_iter().chain(more.effects).collect(), ..answer }
            }
            ScreenEvent::Done(JobResult::Matches(screen, text, parts, matches)) if *screen == self.serial && text == self.finder.text() => {
                let first = self.search.as_ref().is_none_or(|s| s.text != *text);
                self.search = Some(Search { text: text.clone(), matches: Arc::clone(matches), parts: *parts });
                if first && matches.total == 0 {
                    return Response::error_message(format!("no event's name contains \"{text}\""));
                }
                // Go to the first match at or after the cursor.
                if first { self.seek_match(cx) } else { Response::none() }
            }
            ScreenEvent::Done(JobResult::Judged(screen, window, triage)) if *screen == self.serial => {
                if let Some(judged) = self.judged.as_mut().filter(|j| j.window == *window) {
                    judged.triage = Some(triage.clone());
                }
                Response::none()
            }
            ScreenEvent::Loaded if self.lines.is_empty() => self.opened(cx),
            _ => Response::none(),
        }
    }

    fn copy(&self, what: CopyWhat, cx: &ScreenContext<'_>) -> Option<(String, String)> {
        self.copy_text(what, cx.report()?, lane_columns(cx.session.size))
    }

    fn escape(&mut self, cx: &mut ScreenContext<'_>) -> Response {
        if self.mark.take().is_some() {
            self.judged = None;
            return Response::none();
        }
        self.back(cx)
    }

    fn back(&mut self, cx: &mut ScreenContext<'_>) -> Response {
        if self.finder.clear() {
            self.search = None;
            return Response::none();
        }
        if let (Some(place), Some(report)) = (self.place, cx.report_mut()) {
            report.kept = Some(Box::new(SavedView { place, arrangement: self.arrangement.clone(), mark: self.mark }));
        }
        Navigate::Back.into()
    }
}
