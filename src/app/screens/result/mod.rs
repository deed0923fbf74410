//! Screens about one result: metrics by section, hints, roofline, comparison, and code

mod copy;
pub mod hints;
mod lazy_details;
mod metrics;
mod source;
mod state;

pub use lazy_details::Asked;
pub use state::ResultScreen;

use self::source::Heat;
use crate::analysis::compare;
use crate::analysis::hints::{Hint, PLUS, Severity, Subject};
use crate::analysis::metrics_rows::MetricsRow;
use crate::analysis::readable::readable_name;
use crate::analysis::roofline::Plot;
use crate::analysis::worth::Worth;
use crate::app::actions::{ActionId, KeyScope};
use crate::app::msg::Effect;
use crate::app::overlay::{CopyWhat, FilterInput, Item, Page, PickAction, PickList};
use crate::app::screen::{Navigate, Response, ResultView as View, Screen, ScreenContext, ScreenEvent, Selection, move_selection};
use crate::app::session::Session;
use crate::model::text::escape_unsafe;
use crate::model::{Metrics, ResultMetrics, config};
use crate::rerun::confirm;
use hints::Line;
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum number of listed results per report.
const MOST_LISTED: usize = 2_000;

/// Label of a result, such as `3 copy_coalesced 2112×256`.
fn result_label(metrics: &Metrics, result: usize) -> String {
    let Some(r) = metrics.results.get(result) else { return String::new() };
    let dims = |d: Option<[u32; 3]>| d.map(config::format_dim3).unwrap_or_default();
    let digits = metrics.results.len().to_string().len();
    format!("{result:>digits$}  {}  {} × {}", escape_unsafe(&readable_name(&r.kernel)), dims(r.grid), dims(r.block))
}

/// Results of a report whose kernels the user marked in the table.
fn marked_results(session: &Session, report: usize) -> Vec<usize> {
    let Some(report) = session.reports.get(report) else { return Vec::new() };
    let (Some(profile), Some(grouping)) = (&report.profile, &report.groups.grouping) else { return Vec::new() };
    let results = profile.metrics.as_ref().map_or(0, |m| m.results.len()).min(profile.launches.len());
    if report.groups.marked.is_empty() {
        return Vec::new();
    }
    let name = |at: usize| grouping.row_of(profile, report.paths.as_deref(), at).and_then(|r| grouping.rows.get(r)).map(|r| &r.name);
    (0..results).filter(|&at| name(at).is_some_and(|n| report.groups.marked.contains(n))).collect()
}

impl ResultScreen {
    /// Launch that the result belongs to, in the report of this screen.
    fn matched_launch(&self, session: &Session, report: usize) -> Option<u32> {
        if self.report == report {
            return u32::try_from(self.result).ok();
        }
        session.reports.get(report)?.launch_of(self.report, self.result).map(|p| p.launch)
    }

    /// Effect of a hint on the run of `report`, in which this result's launch is.
    pub fn worth_in_run(&self, session: &Session, report: usize, hint: &Hint) -> Option<Worth> {
        let launch = self.matched_launch(session, report)?;
        let run = session.reports.get(report).filter(|r| r.is_timeline())?;
        let launches = &run.profile.as_ref()?.launches;
        let kernel = ((launch as usize) < launches.len()).then(|| launches.kernel(launch as usize).0)?;
        run.hint_worth(kernel, hint.id, (hint.severity > Severity::Healthy).then(|| hint.gain_range()))
    }

    /// Plots this result and the others on the roofline.
    fn update_plot(&mut self, cx: &ScreenContext<'_>) {
        self.roofline.plot = Some(Arc::new(Plot::from_result(&self.metrics, self.result, &marked_results(cx.session, self.report))));
        self.roofline.selected = 0;
    }

    /// Prepares the data of the current view.
    fn prepare_view(&mut self, cx: &ScreenContext<'_>) -> Response {
        match self.view {
            View::Metrics => {}
            View::Hints => {
                self.rebuild_hints();
                self.update_plot(cx);
            }
            View::Roofline => self.update_plot(cx),
            View::Compare => match &self.compare.other {
                Some((_, other, result)) => {
                    self.compare.rows = Arc::new(compare::compare_metrics(&self.metrics, self.result, other, *result, ""));
                    self.compare.subject = Arc::new(Subject::of_metrics(other, *result).unwrap_or_default());
                    let (own, others) = compare::comparable_results(&self.metrics, self.result, other, *result);
                    self.compare.launches = (own.len(), others.len());
                    self.compare.selected = move_selection(self.compare.selected, 0, self.compare.rows.len());
                }
                None => {
                    self.view = View::Metrics;
                    return self.ask_other(cx.session);
                }
            },
            View::Source => {
                let hint = self.hints.selected_hint().or(Some(0)).and_then(|i| self.subject.hints.get(i));
                self.source.show_heat(Heat::of_diagnosis(hint.map(|h| h.id)));
                if matches!(self.source.code, Asked::No | Asked::Failed(_)) {
                    self.source.code = Asked::Waiting;
                    return Response::effect(Effect::Code { report: cx.report, from: self.report, result: self.result });
                }
            }
        }
        Response::none()
    }

    /// Switches to a view, or goes back from it if it is already the current view.
    fn toggle_view(&mut self, view: View, cx: &ScreenContext<'_>) -> Response {
        if !self.has_view(view) {
            return Response::say(match view {
                View::Roofline => "a thread trace has no rates: rooflines are drawn of counters, as of a workload of rocprof-compute",
                _ => "of AMD's counters there are hints, values and rooflines; code is in thread traces",
            });
        }
        if self.view == view && self.opened == view {
            return Navigate::Back.into();
        }
        self.view = if self.view == view { self.opened } else { view };
        self.prepare_view(cx)
    }

    /// Switches to the next or previous result of the same report.
    fn step_result(&mut self, by: isize, cx: &ScreenContext<'_>) -> Response {
        let n = self.metrics.results.len();
        if n < 2 {
            return Response::say("this is the only result in its report");
        }
        let mut next = (self.result + n).saturating_add_signed(by) % n;
        // Comparing a result with itself is pointless: skip it.
        let beside = matches!(&self.compare.other, Some((report, _, other)) if *report == self.report && *other == next);
        if n > 2 && self.view == View::Compare && beside {
            next = (next + n).saturating_add_signed(by.signum()) % n;
        }
        let mut new = Self::new(self.report, Arc::clone(&self.metrics), next);
        // For a result opened from a timeline: certainty that the new result belongs to its launch.
        new.sure = cx.report().filter(|_| self.report != cx.report).and_then(|r| r.launch_of(self.report, next)).map(|p| p.sure);
        (new.view, new.opened) = (self.view, self.opened);
        (new.sections.finder, new.sections.open) = (self.sections.finder.clone(), std::mem::take(&mut self.sections.open));
        (new.source.instructions, new.source.in_order) = (self.source.instructions, self.source.in_order);
        new.compare.other = self.compare.other.take().map(|other| new.matching_result(other));
        new.rebuild_sections(&cx.session.pins);
        // Keep the selected row, so that the user can compare the results.
        new.sections.select_near(self.sections.selected);
        *self = new;
        let mut answer = self.prepare_view(cx);
        answer.effects.insert(0, self.request_details(cx.report));
        answer
    }

    /// Requests the details of the result.
    fn request_details(&self, report: usize) -> Effect {
        Effect::Details { report, from: self.report, result: self.result }
    }

    /// Finds the matching result in the compared report: the same launch of the same kernel.
    fn matching_result(&self, (report, metrics, other): (usize, Arc<Metrics>, usize)) -> (usize, Arc<Metrics>, usize) {
        // This key survives a rebuild of the program, whereas mangled symbols may contain a hash.
        let key = |r: &ResultMetrics| (r.kernel.function().to_owned(), r.grid, r.block);
        let own = self.metrics.results.get(self.result).map(key);
        let nth = self.metrics.results.iter().take(self.result).filter(|r| Some(key(r)) == own).count();
        let found = metrics.results.iter().enumerate().filter(|(_, r)| Some(key(r)) == own).nth(nth).map(|(i, _)| i);
        let at = found.filter(|_| report != self.report).unwrap_or(other);
        (report, metrics, at)
    }

    /// Lists results to compare with, from this report and all other reports of the session.
    fn ask_other(&self, session: &Session) -> Response {
        let Some(own) = self.metrics.results.get(self.result) else { return Response::none() };
        let mut items: Vec<(u32, Item)> = Vec::new();
        let mut known = HashMap::new();
        for (at, report) in session.reports.iter().enumerate() {
            let Some(metrics) = session.metrics(at) else { continue };
            let file = report.file.file_name().map(|f| f.to_string_lossy().into_owned()).unwrap_or_default();
            for (result, r) in metrics.results.iter().enumerate().take(MOST_LISTED) {
                if (at, result) == (self.report, self.result) || r.failed {
                    continue;
                }
                let duration = metrics.duration(r).map_or_else(String::new, |d| format!("{d}, "));
                let hint = format!("{duration}{}", escape_unsafe(&file));
                // Distances are cached per kernel configuration: a report has many launches of few kernels.
                let near = (r.kernel.function(), r.grid, r.block, at == self.report);
                let far = *known.entry(near).or_insert_with(|| compare::result_distance(own, r, at == self.report));
                items.push((far, Item::new(result_label(metrics, result), hint, None, PickAction::Other(at, result))));
            }
        }
        if items.is_empty() {
            return Response::say("there is no other result: open a second report alongside this one");
        }
        // Similar results come first: typically the same kernel after a change.
        items.sort_by_key(|i| i.0);
        Response::open_overlay(PickList::by_typing("compare with", items.into_iter().map(|i| i.1).collect()))
    }

    /// Opens the selected row: toggles a fold, shows a hint, or explains a metric or rule.
    fn open_row(&mut self, cx: &ScreenContext<'_>) -> Response {
        match self.view {
            View::Metrics => match self.sections.selected_row().cloned() {
                Some(MetricsRow::Fold { key, .. }) => {
                    self.sections.toggle_fold(key);
                    self.rebuild_sections(&cx.session.pins);
                }
                Some(MetricsRow::Hint(hint)) => {
                    self.view = View::Hints;
                    self.hints.show_hint(hint, &self.subject, self.details.get().map(|d| &**d));
                }
                Some(
                    MetricsRow::Rule(..)
                    | MetricsRow::Metric(_)
                    | MetricsRow::Bar { .. }
                    | MetricsRow::Cells { .. }
                    | MetricsRow::Section { .. },
                ) => {
                    return Response::open_overlay(Page::Explain);
                }
                _ => {}
            },
            View::Hints => return self.open_line(cx),
            View::Compare => return Response::open_overlay(Page::Explain),
            View::Roofline => {
                // Opening a point of another kernel opens the result of that kernel.
                let plot = self.roofline.plot.as_ref();
                let other = plot.and_then(|p| p.points.get(self.roofline.selected)).filter(|p| !p.own).map(|p| p.result);
                let Some(other) = other else { return Response::open_overlay(Page::Explain) };
                let by = isize::try_from(other).unwrap_or(0) - isize::try_from(self.result).unwrap_or(0);
                return self.step_result(by, cx);
            }
            View::Source if !self.source.has_lines() => return Response::say(self.no_lines()),
            View::Source => self.source.jump_to_counterpart(),
        }
        Response::none()
    }

    /// Says how to get source lines for a kernel without.
    pub fn no_lines(&self) -> &'static str {
        if self.subject.is_amd() {
            "the code has no line numbers: build it with -g, and take the trace again"
        } else {
            "the code has no line numbers: build it with -lineinfo, and profile it again"
        }
    }

    /// Acts on the selected line of the hints: expands or collapses a hint, or goes to the metric, NVIDIA's rule, or
    /// the command that confirms the hint.
    fn open_line(&mut self, cx: &ScreenContext<'_>) -> Response {
        match self.hints.lines.get(self.hints.selected).cloned() {
            Some(Line::Hint(i, _)) => {
                self.hints.toggle_hint(i);
                self.rebuild_hints();
            }
            Some(Line::Evidence(i, e)) => {
                let metric = self.subject.hints.get(i).and_then(|h| h.evidence.get(e)).map(|e| e.metric.clone());
                let Some(name) = metric.filter(|m| !m.is_empty()) else {
                    return Response::say("computed from the metrics listed around it");
                };
                self.view = View::Metrics;
                let (of, sections) = self.sections_of(&cx.session.pins);
                // A sum leads to the first metric of it.
                sections.go_to(name.split(PLUS).next().unwrap_or(&name), &of);
            }
            Some(Line::Confirm(_)) => return Navigate::Rerun { run: false, in_place: false }.into(),
            Some(Line::Theirs(r, m)) => {
                self.view = View::Metrics;
                self.sections.finder.clear();
                self.rebuild_sections(&cx.session.pins);
                match self.sections.rows.iter().position(|row| *row == MetricsRow::Rule(r, m)) {
                    Some(at) => self.sections.selected = at,
                    None => return Response::open_overlay(Page::Explain),
                }
            }
            _ => {}
        }
        Response::none()
    }

    /// Pins or unpins the selected metric for the whole session.
    fn toggle_pin(&mut self, cx: &mut ScreenContext<'_>) -> Response {
        let Some(name) = self.sections.selected_metric().cloned() else { return Response::error_message("no metric is selected") };
        let pins = &mut cx.session.pins;
        let said = if pins.contains(&name) {
            pins.retain(|p| *p != name);
            format!("unpinned {name}")
        } else {
            let said = format!("pinned {name} to the top of every result");
            pins.push(name);
            said
        };
        self.rebuild_sections(&cx.session.pins);
        Response::say(said)
    }

    /// Returns the command that confirms the selected hint, and its description.
    fn confirm_command(&self, cx: &ScreenContext<'_>) -> Option<(String, String)> {
        let launch = self.matched_launch(cx.session, cx.report)?;
        let command = confirm::confirm_command(cx.report()?.profile.as_deref()?, launch, &self.selected_confirm()?).ok()?;
        let shell = command.shell_line();
        (!shell.is_empty()).then(|| (shell, "command".to_owned()))
    }
}

impl Screen for ResultScreen {
    fn place(&self) -> KeyScope {
        match self.view {
            View::Metrics => KeyScope::Metrics,
            View::Hints => KeyScope::Hints,
            View::Roofline => KeyScope::Roofline,
            View::Compare => KeyScope::Compare,
            View::Source => KeyScope::Source,
        }
    }

    fn opened(&mut self, cx: &mut ScreenContext<'_>) -> Response {
        self.rebuild_sections(&cx.session.pins);
        let mut answer = self.prepare_view(cx);
        answer.effects.insert(0, self.request_details(cx.report));
        answer
    }

    fn selection(&self, session: &Session, report: usize) -> Selection {
        let launch = self.matched_launch(session, report);
        let group = session.reports.get(report).zip(launch).and_then(|(r, launch)| r.group_of_launch(launch));
        Selection {
            group,
            launch,
            result: Some((self.report, self.result, self.sure)),
            collect: Some(self.rerun_options()),
            ..Selection::default()
        }
    }

    fn act(&mut self, id: ActionId, cx: &mut ScreenContext<'_>) -> Option<Response> {
        Some(match id {
            ActionId::Open => self.open_row(cx),
            ActionId::Back => self.back(cx),
            ActionId::Metrics => self.toggle_view(View::Metrics, cx),
            ActionId::Hints => self.toggle_view(View::Hints, cx),
            ActionId::Roofline => self.toggle_view(View::Roofline, cx),
            ActionId::Compare => self.toggle_view(View::Compare, cx),
            ActionId::Source => self.toggle_view(View::Source, cx),
            ActionId::CompareWith => self.ask_other(cx.session),
            ActionId::NextResult => self.step_result(1, cx),
            ActionId::PreviousResult => self.step_result(-1, cx),
            ActionId::Pin => self.toggle_pin(cx),
            ActionId::FindMetric => {
                self.sections.finder.typing = true;
                Response::none()
            }
            ActionId::NextSection | ActionId::PreviousSection => {
                self.sections.go_to_section(id == ActionId::NextSection);
                Response::none()
            }
            ActionId::Instructions if !self.source.has_lines() => Response::say(self.no_lines()),
            ActionId::Instructions => {
                self.source.instructions = !self.source.instructions;
                self.source.selected = self.source.hottest_row();
                Response::none()
            }
            ActionId::CodeOrder => {
                self.source.in_order = !self.source.in_order;
                self.source.heat = Heat::Samples;
                self.source.rebuild_listing(&self.metrics, self.result, self.details.get().map(|d| &**d));
                self.source.selected = self.source.hottest_row();
                Response::none()
            }
            ActionId::Copy => Response::open_overlay(copy::copy_menu(self.view)),
            _ => return None,
        })
    }

    fn scroll(&mut self, by: isize, _: &mut ScreenContext<'_>) -> Response {
        match self.view {
            View::Metrics => self.sections.scroll_by(by),
            View::Hints => self.hints.scroll_by(by),
            View::Roofline => {
                self.roofline.selected =
                    move_selection(self.roofline.selected, by, self.roofline.plot.as_ref().map_or(0, |p| p.points.len()));
            }
            View::Compare => self.compare.selected = move_selection(self.compare.selected, by, self.compare.rows.len()),
            View::Source => self.source.selected = move_selection(self.source.selected, by, self.source.row_count()),
        }
        Response::none()
    }

    fn press(&mut self, row: usize, cx: &mut ScreenContext<'_>) -> Response {
        let at = match self.view {
            View::Metrics if !self.sections.rows.get(row).is_some_and(MetricsRow::is_selectable) => return Response::none(),
            View::Metrics => &mut self.sections.selected,
            View::Hints if !self.hints.lines.get(row).is_some_and(Line::is_selectable) => return Response::none(),
            View::Hints => &mut self.hints.selected,
            View::Roofline => &mut self.roofline.selected,
            View::Compare => &mut self.compare.selected,
            View::Source => &mut self.source.selected,
        };
        if std::mem::replace(at, row) == row { self.open_row(cx) } else { Response::none() }
    }

    fn finder(&mut self) -> Option<&mut FilterInput> {
        (self.view == View::Metrics).then_some(&mut self.sections.finder)
    }

    fn found(&mut self, first: bool, cx: &mut ScreenContext<'_>) -> Response {
        self.rebuild_sections(&cx.session.pins);
        if first {
            self.sections.selected = 0;
        }
        Response::none()
    }

    fn choose(&mut self, choice: PickAction, cx: &mut ScreenContext<'_>) -> Response {
        let PickAction::Other(report, result) = choice else { return Response::none() };
        let Some(metrics) = cx.session.metrics(report) else { return Response::none() };
        self.compare.other = Some((report, Arc::clone(metrics), result));
        (self.view, self.compare.selected) = (View::Compare, 0);
        self.prepare_view(cx)
    }

    fn take(&mut self, news: ScreenEvent<'_>, cx: &mut ScreenContext<'_>) -> Response {
        match news {
            ScreenEvent::Details { from, result, outcome } if (from, result) == (self.report, self.result) => {
                self.details = Asked::from_outcome(outcome);
                let first = self.sections.rows.is_empty() || self.sections.selected == 0;
                self.rebuild_sections(&cx.session.pins);
                if first {
                    self.sections.select_near(0);
                }
                self.rebuild_hints();
                self.source.rebuild_listing(&self.metrics, self.result, self.details.get().map(|d| &**d));
            }
            ScreenEvent::Code { from, result, outcome } if (from, result) == (self.report, self.result) => {
                self.source.set_code(outcome, &self.metrics, self.result, self.details.get().map(|d| &**d));
            }
            ScreenEvent::Pins => self.rebuild_sections(&cx.session.pins),
            _ => {}
        }
        Response::none()
    }

    fn copy(&self, what: CopyWhat, cx: &ScreenContext<'_>) -> Option<(String, String)> {
        if what == CopyWhat::Command { self.confirm_command(cx) } else { copy::copy_text(self, what) }
    }

    /// Clears the filter, returns to the initial view, or leaves the screen.
    fn back(&mut self, cx: &mut ScreenContext<'_>) -> Response {
        if self.view == View::Metrics && self.sections.finder.clear() {
            return self.found(false, cx);
        }
        if self.view == self.opened {
            return Navigate::Back.into();
        }
        self.view = self.opened;
        Response::none()
    }
}
