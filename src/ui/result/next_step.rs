//! The `next:` line of the screens about a result.

use crate::analysis::compare::Change;
use crate::analysis::roofline;
use crate::app::screens::result::Asked;
use crate::app::screens::result::hints::Line;
use crate::app::{ActionId, App, ResultScreen, ResultView};
use crate::model::units;
use crate::report::hints::{format_threshold, format_value};
use crate::rerun::match_results::Sure;

/// Result screens: the reason why this launch was matched, and the available actions.
pub fn next(app: &App, screen: &ResultScreen) -> String {
    let key = |id| app.session.key_link(id);
    let joined = screen.sure.filter(|_| screen.view == ResultView::Metrics).map(|s| {
        let tool = if screen.subject.is_amd() { "rocprof-compute's" } else { "ncu's" };
        // Results of this run have the durations of the timeline.
        let differ = if s == Sure::Measured { String::new() } else { format!("; {tool} durations differ from the timeline's") };
        format!(". {}{differ}", s.describe())
    });
    let here = match screen.view {
        ResultView::Metrics => {
            let result = screen.metrics.results.get(screen.result);
            if let Some(hint) = screen.subject.hints.first() {
                return format!("{} shows why and what to change: {}{}", key(ActionId::Hints), hint.id.id(), joined.unwrap_or_default());
            }
            if let Some(collect) = screen.subject.sections_to_collect() {
                let sections = collect.sections.join(", ");
                return format!(
                    "{} and {} collect {sections}: what was collected is not enough to name a cause{}",
                    key(ActionId::Hints),
                    key(ActionId::Rerun),
                    joined.unwrap_or_default()
                );
            }
            let mut text = format!(
                "{} goes to the next section, {} searches {} metrics, {} explains a row",
                key(ActionId::NextSection),
                key(ActionId::FindMetric),
                result.map_or(0, |r| r.values.len()),
                key(ActionId::Open)
            );
            // Do not offer empty screens.
            if result.is_some_and(|r| roofline::place_result(&screen.metrics, r).work.iter().any(|w| w.achieved.is_some_and(|a| a > 0.0))) {
                text = format!("{text}, {} shows the roofline", key(ActionId::Roofline));
            }
            if screen.details.get().is_some_and(|d| !d.sources.is_empty()) {
                text = format!("{text}, {} the hottest code", key(ActionId::Source));
            }
            text
        }
        ResultView::Hints => of_hints(app, screen),
        ResultView::Roofline => {
            match screen.roofline.plot.as_ref().and_then(|p| p.points.get(screen.roofline.selected).map(|at| (p, at))) {
                Some((plot, p)) if p.own => of_point(plot, p, screen, (&key(ActionId::Open), &key(ActionId::Hints))),
                Some((plot, _)) if !plot.points.iter().any(|p| p.own) => {
                    format!("{} shows what limits this kernel; the points are other results", key(ActionId::Hints))
                }
                Some((_, p)) => format!("{} opens the metrics of {}", key(ActionId::Open), p.kernel),
                None if screen.roofline.plot.as_ref().is_some_and(|p| super::roofline::no_work(p)) => {
                    format!("{} shows what limits this kernel: a roofline is for floating-point work", key(ActionId::Hints))
                }
                None if screen.subject.is_amd() => {
                    format!(
                        "{} shows the commands: rocprof-compute, among the alternatives, collects what a roofline needs",
                        key(ActionId::Rerun)
                    )
                }
                None if screen.roofline.plot.as_ref().is_some_and(|p| !p.placed.missing.is_empty()) => {
                    format!("{} profiles the launch again with the set roofline", key(ActionId::Rerun))
                }
                None => format!("{} leads back: no result of this report has a point here", key(ActionId::Back)),
            }
        }
        ResultView::Compare => {
            let count = |c: Change| screen.compare.rows.iter().filter(|r| r.change == c).count();
            let open = key(ActionId::Open);
            if screen.compare.rows.iter().any(|r| r.p.is_some()) {
                let (better, worse) = (count(Change::Better), count(Change::Worse));
                format!(
                    "{open} explains the selected metric; by more than chance, {better} are better in the other result and {worse} worse"
                )
            } else {
                let rerun = key(ActionId::Rerun);
                format!("{rerun} profiles more launches: from five of each on, significance can be tested; {open} explains a metric")
            }
        }
        ResultView::Source if matches!(screen.source.code, Asked::Waiting) => "reading the code …".to_owned(),
        ResultView::Source if screen.source.row_count() == 0 => {
            let (rerun, hints) = (key(ActionId::Rerun), key(ActionId::Hints));
            if screen.subject.is_amd() {
                format!("{hints} shows what is known without the code")
            } else {
                format!("{rerun} collects it (section SourceCounters, with the sources); {hints} shows what is known without it")
            }
        }
        ResultView::Source if !screen.source.has_lines() => {
            format!("{} sorts by {} or in code order; {}", key(ActionId::CodeOrder), screen.source.unit(), screen.no_lines())
        }
        ResultView::Source => format!(
            "{} goes between a line and its hottest instruction, {} between lines and instructions, {} sorts by {} or in code order",
            key(ActionId::Open),
            key(ActionId::Instructions),
            key(ActionId::CodeOrder),
            screen.source.unit()
        ),
    };
    format!("{here}{}", joined.unwrap_or_default())
}

/// Hints screen: advice for the selected hint.
fn of_hints(app: &App, screen: &ResultScreen) -> String {
    let key = |id| app.session.key_link(id);
    let rerun = key(ActionId::Rerun);
    let Some(hint) = screen.hints.selected_hint().or(Some(0)).and_then(|i| screen.subject.hints.get(i)) else {
        if screen.subject.failed {
            return format!("{rerun} profiles it again; first check that the launch succeeds without ncu");
        }
        return format!("{rerun} collects what is missing; then open the result beside this report");
    };
    // Repeat the threshold and metric of the selected value here: a narrow screen has no room for them in the list.
    if let Some(Line::Evidence(i, e)) = screen.hints.lines.get(screen.hints.selected)
        && let Some(e) = screen.subject.hints.get(*i).and_then(|h| h.evidence.get(*e))
    {
        let than = e.threshold.map_or_else(String::new, |t| format!(", {}: {}", format_threshold(e).unwrap_or_default(), t.source));
        let value = format!("{} = {}{than}", e.name, format_value(e));
        return if e.metric.is_empty() {
            format!("{} goes back to the hints; {value}, computed from several metrics, or from the launch", key(ActionId::Back))
        } else {
            format!("{} goes to {}; {value}", key(ActionId::Open), e.metric)
        };
    }
    // The remedy itself is on the screen.
    let after = if app.session.reports.len() > 1 {
        format!("after the change, {} compares", key(ActionId::Compare))
    } else {
        "after the change, profile it again and open both reports".to_owned()
    };
    if hint.confirm.sections == ["SourceCounters"] && screen.has_code() {
        format!("{} shows the lines; {after}", key(ActionId::Source))
    } else if hint.confirm.trace {
        format!("{rerun} takes {}", hint.confirm.why)
    } else if hint.confirm.sections.is_empty() {
        format!("{rerun} profiles it again after the change; then open both reports to compare them")
    } else if screen.subject.is_decided() {
        format!("{rerun} collects what confirms it; {after}")
    } else {
        format!("{rerun} collects {}; so far, it is {}", hint.confirm.why, hint.id.id())
    }
}

/// If a kernel is below this percentage of every roof, no roof limits it: NVIDIA's speed-of-light rule calls such a
/// kernel latency-bound.
const UNDER_ALL: f64 = 60.0;

/// Distance between a point and its roof, and the nearest roof for the same work.
fn of_point(plot: &roofline::Plot, p: &roofline::Point, screen: &ResultScreen, (open, hints): (&str, &str)) -> String {
    let share = |p: &roofline::Point| p.achieved / p.attainable * 100.0;
    let roof = |p: &roofline::Point| if p.memory_bound { plot.placed.level_name(p.level) } else { "the compute peak" };
    let nearest = plot.points.iter().filter(|o| o.own && o.work == p.work).max_by(|a, b| share(a).total_cmp(&share(b))).unwrap_or(p);
    // The chart's two roofs do not cover all units, but the diagnosis does, and the two must agree. A roof is a
    // bandwidth, whereas the diagnosis may be about another limit of the same unit, such as its data stage.
    let reached = format!("{} of what {} allows at this intensity", units::format_whole_percent(share(p)), roof(p));
    let diagnosis = screen.subject.hints.first().map(|hint| hint.id.id());
    let limit = diagnosis.map_or_else(|| format!("{open} shows how it is computed"), |id| format!("{hints} shows why it is {id}"));
    if share(nearest) < UNDER_ALL {
        format!("{limit}; {reached}: no roof of this chart is the limit")
    } else if roof(nearest) == roof(p) {
        format!("{limit}; {reached}")
    } else {
        format!("{limit}; {reached}, nearest in bandwidth is {}: {}", roof(nearest), units::format_whole_percent(share(nearest)))
    }
}
