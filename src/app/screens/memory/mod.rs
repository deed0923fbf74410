//! GPU memory: use over time, owners and problems

use crate::analysis::memory::{DeviceUsage, HeldMemory};
use crate::app::actions::{ActionId, KeyScope};
use crate::app::clipboard::TO_PASTE;
use crate::app::jobs::{Beside, Curve, JobRequest, JobResult, MemoryView};
use crate::app::msg::Effect;
use crate::app::overlay::CopyWhat;
use crate::app::screen::{At, Navigate, Response, Screen, ScreenContext, ScreenEvent, move_selection};
use crate::app::session::Report;
use crate::model::api_call::NONE;
use crate::report::PageFormat;
use crate::report::memory::{self, Memory, Wanted, When};
use std::sync::Arc;

#[derive(Clone, Debug, Default)]
pub struct MemoryScreen {
    /// Id of this screen.
    pub serial: u64,
    /// Analysis: `None` until it is computed, `Some(None)` if the report has no memory data.
    pub view: Option<Option<Arc<MemoryView>>>,
    /// Index of the displayed device.
    pub device: usize,
    /// Time of the cursor, ns; `None` for the peak.
    pub cursor: Option<i64>,
    /// Device and curve of the visible time window; `None` shows the whole time span.
    pub zoom: Option<(usize, Arc<Curve>)>,
    /// Last requested time window, ns.
    wanted: Option<(i64, i64)>,
    /// Owners of memory at the cursor: device, event and rows.
    pub rows: Option<(usize, Option<u32>, Arc<[HeldMemory]>)>,
    pub selected: usize,
    /// True if the segments are shown instead of the table, on a terminal too small for both.
    pub segments: bool,
    /// Index of the report to compare with, and its memory once it is computed.
    pub beside: Option<(usize, Option<Arc<Beside>>)>,
    /// Difference between each row and that report, in bytes, and the bytes that only that report holds.
    pub changes: Option<(Vec<i64>, u64)>,
    /// Generation of the report for which the analysis was requested.
    asked: Option<u64>,
}

/// Minimum length of the visible time window, ns.
const SHORTEST: i64 = 1_000;
/// Number of columns around the curve: borders, margins and the scale.
pub const BESIDE: u16 = 14;

impl MemoryScreen {
    pub fn new(serial: u64) -> Self {
        Self { serial, ..Self::default() }
    }

    pub fn memory_view(&self) -> Option<&Arc<MemoryView>> {
        self.view.as_ref()?.as_ref()
    }

    pub fn device_usage(&self) -> Option<&DeviceUsage> {
        self.memory_view()?.usage.devices.get(self.device)
    }

    pub fn whole_curve(&self) -> Option<&Curve> {
        self.memory_view()?.curves.get(self.device)
    }

    /// Curve to draw: the device's zoomed curve, or otherwise the whole one.
    pub fn visible_curve(&self) -> Option<&Curve> {
        self.zoom.as_ref().filter(|z| z.0 == self.device).map(|z| &*z.1).or_else(|| self.whole_curve())
    }

    /// Requests the curve of a time window; shows the whole curve if the window covers it.
    fn zoom_to(&mut self, (from, to): (i64, i64), cx: &ScreenContext<'_>) -> Response {
        let (Some(report), Some(view), Some(whole)) = (cx.report(), self.memory_view().cloned(), self.whole_curve().map(|c| c.span)) else {
            return Response::none();
        };
        let length = (to - from).clamp(SHORTEST.min(whole.1 - whole.0), whole.1 - whole.0);
        if length >= whole.1 - whole.0 {
            (self.zoom, self.wanted) = (None, None);
            return Response::none();
        }
        let from = from.clamp(whole.0, whole.1 - length);
        let window = (from, from + length);
        self.wanted = Some(window);
        report.request_work(cx.report, JobRequest::MemoryWindow { screen: self.serial, view, device: self.device, window }).into()
    }

    /// Scales the visible time window by a factor around the cursor.
    fn zoom_by(&mut self, factor: f64, cx: &ScreenContext<'_>) -> Response {
        let (Some((from, to)), (_, Some(now))) = (self.visible_curve().map(|c| c.span), self.cursor_position()) else {
            return Response::none();
        };
        let now = now.clamp(from, to);
        let part = |length: i64| (length as f64 * factor) as i64;
        self.zoom_to((now.saturating_sub(part(now - from)), now.saturating_add(part(to - now))), cx)
    }

    /// Last event before the cursor, and the cursor's time, ns.
    pub fn cursor_position(&self) -> (Option<u32>, Option<i64>) {
        let when = self.cursor.map_or(When::Peak, When::At);
        self.device_usage().map_or((None, None), |d| when.resolve_event(d))
    }

    /// Bytes allocated at the cursor.
    pub fn allocated_bytes(&self) -> u64 {
        let Some(d) = self.device_usage() else { return 0 };
        self.cursor_position().0.map_or(d.ledger.before, |at| d.ledger.bytes.get(at as usize).copied().unwrap_or_default())
    }

    /// Rows at the cursor; empty until they are computed.
    pub fn owner_rows(&self) -> &[HeldMemory] {
        match &self.rows {
            Some((device, _, rows)) if *device == self.device => rows,
            _ => &[],
        }
    }

    fn request_view(&mut self, cx: &ScreenContext<'_>) -> Response {
        let Some(report) = cx.report().filter(|r| !r.is_reading() && self.asked != Some(r.generation)) else { return Response::none() };
        self.asked = Some(report.generation);
        report.request_work(cx.report, JobRequest::Memory { screen: self.serial }).into()
    }

    fn want_rows(&self, cx: &ScreenContext<'_>) -> Response {
        let (Some(report), Some(view)) = (cx.report(), self.memory_view()) else { return Response::none() };
        let at = self.cursor_position().0;
        if self.rows.as_ref().is_some_and(|r| (r.0, r.1) == (self.device, at)) {
            return Response::none();
        }
        report.request_work(cx.report, JobRequest::Held { screen: self.serial, view: Arc::clone(view), device: self.device, at }).into()
    }

    /// Compares with the next report that has memory data; after the last one, ends the comparison.
    fn compare_next(&mut self, cx: &ScreenContext<'_>) -> Response {
        let (reports, own) = (&cx.session.reports, cx.report);
        let has = |i: &usize| *i != own && reports[*i].profile.as_ref().is_some_and(|p| !p.memory.is_empty());
        let from = self.beside.as_ref().map_or(0, |b| b.0 + 1);
        self.changes = None;
        let Some(next) = (from..reports.len()).find(has) else {
            let none = self.beside.take().is_none();
            return if none {
                Response::error_message("no other report that is open has memory: name two, before and after")
            } else {
                Response::none()
            };
        };
        let (Some(report), Some(before)) = (cx.report(), reports[next].profile.clone()) else { return Response::none() };
        self.beside = Some((next, None));
        report.request_work(cx.report, JobRequest::Beside { screen: self.serial, name: before.file_name(), before }).into()
    }

    /// Computes the differences from the other report: from its end if the cursor is at the end, otherwise from its
    /// peak.
    fn compute_changes(&mut self, cx: &ScreenContext<'_>) {
        self.changes = None;
        let (Some(profile), Some(view), Some((_, Some(beside)))) =
            (cx.report().and_then(|r| r.profile.clone()), self.memory_view().cloned(), self.beside.clone())
        else {
            return;
        };
        let of = Memory { profile: &profile, usage: &view.usage };
        let mut there = if self.at_end() { beside.end.0.clone() } else { beside.peak.0.clone() };
        let one = |row: &HeldMemory| {
            let before = there.remove(&(memory::site_name(&of, row), row.category.display_name())).unwrap_or(0);
            i64::try_from(row.bytes).unwrap_or(i64::MAX).saturating_sub(i64::try_from(before).unwrap_or(i64::MAX))
        };
        let changes: Vec<i64> = self.owner_rows().iter().map(one).collect();
        self.changes = Some((changes, there.values().sum()));
    }

    /// Returns true if the cursor is at the end.
    pub fn at_end(&self) -> bool {
        self.cursor.is_some() && self.cursor == self.whole_curve().map(|c| c.span.1)
    }

    /// Moves the cursor by a number of columns of the visible curve, scrolling the curve if necessary.
    fn step_cursor(&mut self, by: i64, cx: &ScreenContext<'_>) -> Response {
        let (Some(whole), Some(shown), (_, Some(now))) =
            (self.whole_curve().map(|c| c.span), self.visible_curve().map(|c| c.span), self.cursor_position())
        else {
            return Response::none();
        };
        let columns = i64::from(cx.session.size.0.saturating_sub(BESIDE)).max(1);
        let (begin, end) = shown;
        let column = ((end - begin) / columns).max(1);
        let at = now.saturating_add(column.saturating_mul(by)).clamp(whole.0, whole.1);
        self.cursor = Some(at);
        self.cursor_moved(cx)
    }

    /// Requests rows and curve after the cursor has moved.
    fn cursor_moved(&mut self, cx: &ScreenContext<'_>) -> Response {
        let mut answer = self.want_rows(cx);
        answer.effects.extend(self.follow_cursor(cx).effects);
        answer
    }

    /// Scrolls the visible time window to the cursor if the cursor is outside it.
    fn follow_cursor(&mut self, cx: &ScreenContext<'_>) -> Response {
        let (Some((begin, end)), (_, Some(now))) = (self.visible_curve().map(|c| c.span), self.cursor_position()) else {
            return Response::none();
        };
        if self.zoom.is_none() || (begin..=end).contains(&now) {
            return Response::none();
        }
        let half = (end - begin) / 2;
        self.zoom_to((now.saturating_sub(half), now.saturating_sub(half).saturating_add(end - begin)), cx)
    }

    fn copy_text(&self, what: CopyWhat, cx: &ScreenContext<'_>) -> Option<(String, String)> {
        let (view, profile) = (self.memory_view()?, cx.report()?.profile.clone()?);
        let of = Memory { profile: &profile, usage: &view.usage };
        if what == CopyWhat::Row {
            let row = self.owner_rows().get(self.selected)?;
            let frames = memory::stack_frames(&of, row.stack).map(crate::analysis::memory::sites::frame_name);
            let text: Vec<String> = std::iter::once(memory::site_name(&of, row)).chain(frames).collect();
            return Some((text.join("\n"), "the stack".to_owned()));
        }
        let mut out = Vec::new();
        let wanted = Wanted { when: self.cursor.map_or(When::Peak, When::At), top: None };
        memory::print_memory(&mut out, &of, wanted, None, PageFormat::Csv, TO_PASTE).ok()?;
        Some((String::from_utf8(out).ok()?, "memory as CSV".to_owned()))
    }
}

impl Screen for MemoryScreen {
    fn place(&self) -> KeyScope {
        KeyScope::Memory
    }

    fn refusal(&self, report: &Report) -> Option<&'static str> {
        (report.profile.is_some() && !report.is_reading() && !report.has_memory())
            .then_some("nothing is recorded of memory in this report; `warpscope help memory` says how to record it")
    }

    fn opened(&mut self, cx: &mut ScreenContext<'_>) -> Response {
        self.request_view(cx)
    }

    fn act(&mut self, id: ActionId, cx: &mut ScreenContext<'_>) -> Option<Response> {
        Some(match id {
            ActionId::MemoryLeft => self.step_cursor(-1, cx),
            ActionId::MemoryRight => self.step_cursor(1, cx),
            ActionId::MemoryPeak => {
                self.cursor = None;
                self.cursor_moved(cx)
            }
            ActionId::MemoryEnd => {
                self.cursor = self.whole_curve().map(|c| c.span.1);
                self.cursor_moved(cx)
            }
            ActionId::MemoryIn => self.zoom_by(0.5, cx),
            ActionId::MemoryOut => self.zoom_by(2.0, cx),
            ActionId::MemoryAll => {
                (self.zoom, self.wanted) = (None, None);
                Response::none()
            }
            ActionId::MemoryBeside => self.compare_next(cx),
            ActionId::MemorySegments => {
                self.segments = !self.segments;
                Response::none()
            }
            ActionId::MemoryDevice => {
                let devices = self.memory_view().map_or(0, |v| v.usage.devices.len());
                if devices < 2 {
                    return Some(Response::say("the report is of one device"));
                }
                self.device = (self.device + 1) % devices;
                (self.cursor, self.selected, self.zoom, self.wanted) = (None, 0, None, None);
                self.want_rows(cx)
            }
            ActionId::Open => {
                let Some(at) = self.cursor_position().1 else { return Some(Response::none()) };
                // Without work of a GPU, the timeline would be empty: the places to look at are the end and the peak.
                if cx.report().is_none_or(|r| !r.has_device_work()) {
                    let end = self.whole_curve().map(|c| c.span.1);
                    self.cursor = end.filter(|_| self.cursor != end);
                    return Some(self.cursor_moved(cx));
                }
                let half = self.whole_curve().map_or(0, |c| (c.span.1 - c.span.0) / 40).max(1);
                Navigate::TimelineOf {
                    report: cx.report,
                    at: At { start: at.saturating_sub(half), end: at.saturating_add(half), event: None },
                }
                .into()
            }
            ActionId::Copy => match self.copy_text(CopyWhat::Row, cx) {
                Some((text, said)) => Response::effect(Effect::Copy(text, said)),
                None => Response::error_message("nothing is known yet"),
            },
            _ => return None,
        })
    }

    fn scroll(&mut self, by: isize, _: &mut ScreenContext<'_>) -> Response {
        self.selected = move_selection(self.selected, by, self.owner_rows().len());
        Response::none()
    }

    fn press(&mut self, row: usize, cx: &mut ScreenContext<'_>) -> Response {
        self.selected = row;
        self.scroll(0, cx)
    }

    fn take(&mut self, news: ScreenEvent<'_>, cx: &mut ScreenContext<'_>) -> Response {
        match news {
            ScreenEvent::Done(JobResult::Memory(screen, view)) if *screen == self.serial => {
                self.device = view.as_ref().map_or(0, |v| v.main());
                self.view = Some(view.clone());
                self.want_rows(cx)
            }
            ScreenEvent::Done(JobResult::Held(screen, device, at, rows)) if *screen == self.serial => {
                if (*device, *at) == (self.device, self.cursor_position().0) {
                    let first = self.rows.is_none();
                    self.rows = Some((*device, *at, Arc::clone(rows)));
                    // Initially select the cause of the first finding.
                    let named = self.device_usage().and_then(|d| d.findings.first()?.details.sites.iter().find(|s| s.0 != NONE));
                    let named = named.filter(|_| first).and_then(|site| rows.iter().position(|r| r.site == site.0));
                    self.selected = move_selection(named.unwrap_or(self.selected), 0, rows.len());
                    self.compute_changes(cx);
                }
                Response::none()
            }
            ScreenEvent::Done(JobResult::MemoryWindow(screen, device, curve))
                if *screen == self.serial && self.wanted == Some(curve.span) =>
            {
                self.zoom = Some((*device, Arc::clone(curve)));
                Response::none()
            }
            ScreenEvent::Done(JobResult::Beside(screen, beside)) if *screen == self.serial => {
                if let Some((_, known)) = &mut self.beside {
                    known.clone_from(beside);
                }
                self.compute_changes(cx);
                if beside.is_some() { Response::none() } else { Response::error_message("that report says nothing of memory") }
            }
            ScreenEvent::Loaded => self.request_view(cx),
            _ => Response::none(),
        }
    }

    fn copy(&self, what: CopyWhat, cx: &ScreenContext<'_>) -> Option<(String, String)> {
        self.copy_text(what, cx)
    }
}
