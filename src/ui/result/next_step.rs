//! The `next:` line of the screens about a result.

use crate::analysis::compare::Change;
use crate::analysis::roofline;
use crate::app::screens::result::Asked;
use crate::app::screens::result::hints::Line;
use crate::app::{ActionId, App, ResultScreen, ResultView};
use crate::model::units;
use crate::report::hints::{format_threshold, format_value};

/// Result screens: the reason why this launch was matched, and the available actions.
pub fn next(app: &App, screen: &ResultScreen) -> String {
    let key = |id| app.session.key_link(id);
    let joined = screen.sure.filter(|_| screen.view == ResultView::Metrics).map(|s| {
        let tool = if screen.subject.is_amd() { "rocprof-compute's" } else { "ncu's" };
        format!("{}. {tool} durations differ from the timeline's. ", s.describe())
    });
    let here = match screen.view {
        ResultView::Metrics => {
            let result = screen.metrics.results.get(screen.result);
            if let Some(hint) = screen.subject.hints.first() {
                return format!("{}{} shows why and what to change: {}", joined.unwrap_or_default(), key(ActionId::Hints), hint.headline);
            }
            if let Some(collect) = screen.subject.sections_to_collect() {
                let sections = collect.sections.join(", ");
                return format!(
                    "{}not enough was collected to name a cause: {} and {} collect {sections}",
                    joined.unwrap_or_default(),
                    key(ActionId::Hints),
                    key(ActionId::Rerun)
                );
            }
            let mut text = format!(
                "{}{}: next section, {}: search {} metrics, {}: explain a row",
                if screen.subject.is_amd() { "" } else { "nothing stands out; " },
                key(ActionId::NextSection),
                key(ActionId::FindMetric),
                result.map_or(0, |r| r.values.len()),
                key(ActionId::Open)
            );
            // Do not offer empty screens.
            if result.is_some_and(|r| roofline::place_result(&screen.metrics, r).work.iter().any(|w| w.achieved.is_some_and(|a| a > 0.0))) {
                text = format!("{text}, {}: roofline", key(ActionId::Roofline));
            }
            if screen.details.get().is_some_and(|d| !d.sources.is_empty()) {
                text = format!("{text}, {}: hottest code", key(ActionId::Source));
            }
            text
        }
        ResultView::Hints => of_hints(app, screen),
        ResultView::Roofline => {
            match screen.roofline.plot.as_ref().and_then(|p| p.points.get(screen.roofline.selected).map(|at| (p, at))) {
                Some((plot, p)) if p.own => of_point(plot, p, screen, (&key(ActionId::Open), &key(ActionId::Hints))),
                Some((_, p)) => format!("{} opens the metrics of {}", key(ActionId::Open), p.kernel),
                None if screen.roofline.plot.as_ref().is_some_and(|p| !p.placed.missing.is_empty()) => {
                    format!("{} profiles the launch again: in the field collect, choose set roofline", key(ActionId::Rerun))
                }
                None => format!("no result of this report has a point here; {} leads back", key(ActionId::Back)),
            }
        }
        ResultView::Compare => {
            let count = |c: Change| screen.compare.rows.iter().filter(|r| r.change == c).count();
            let open = key(ActionId::Open);
            if screen.compare.rows.iter().any(|r| r.p.is_some()) {
                let (better, worse) = (count(Change::Better), count(Change::Worse));
                format!(
                    "by more than chance, {better} metrics are better in the other result and {worse} worse; {open} explains the selected one"
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
                format!("{rerun} collects it: choose the section SourceCounters; {hints} shows what is known without it")
            }
        }
        ResultView::Source => format!(
            "{}: between a line and its hottest instruction, {}: lines or instructions, {}: by samples or in code order",
            key(ActionId::Open),
            key(ActionId::Instructions),
            key(ActionId::CodeOrder)
        ),
    };
    format!("{}{here}", joined.unwrap_or_default())
}

/// Hints screen: advice for the selected hint.
fn of_hints(app: &App, screen: &ResultScreen) -> String {
    let key = |id| app.session.key_link(id);
    let rerun = key(ActionId::Rerun);
    let Some(hint) = screen.hints.selected_hint().or(Some(0)).and_then(|i| screen.subject.hints.get(i)) else {
        return format!("{rerun} collects what is missing; open the result alongside this report");
    };
    // Repeat the threshold and metric of the selected value here: a narrow screen has no room for them in the list.
    if let Some(Line::Evidence(i, e)) = screen.hints.lines.get(screen.hints.selected)
        && let Some(e) = screen.subject.hints.get(*i).and_then(|h| h.evidence.get(*e))
    {
        let than = e.threshold.map_or_else(String::new, |t| format!(", {}: {}", format_threshold(e).unwrap_or_default(), t.source));
        let open = key(ActionId::Open);
        let place = if e.metric.is_empty() {
            "computed from several metrics, or from the launch".to_owned()
        } else {
            format!("{open} goes to {}", e.metric)
        };
        return format!("{} = {}{than}; {place}", e.name, format_value(e));
    }
    let action = hint.actions.first().map_or("", |a| a);
    let after = if app.session.reports.len() > 1 {
        format!("then {} compares", key(ActionId::Compare))
    } else {
        "then profile it again and open both reports".to_owned()
    };
    if hint.confirm.sections == ["SourceCounters"] && screen.has_code() {
        format!("{action}; {} shows the lines; {after}", key(ActionId::Source))
    } else if hint.confirm.sections.is_empty() {
        format!("{action}; {after}")
    } else if screen.subject.is_decided() {
        format!("{action}; {rerun} collects what confirms it; {after}")
    } else {
        format!("{rerun} collects {}; so far, {}: {action}", hint.confirm.why, hint.id.id())
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
    // The chart's two roofs do not cover all units, but the diagnosis does, and the two must agree.
    let more = if share(nearest) < UNDER_ALL {
        match screen.subject.hints.first() {
            Some(hint) => format!("no roof of this chart is the limit; {}: {}", hint.id.id(), hint.headline),
            None => "far below every roof: latency or another unit is the limit, see the warp states".to_owned(),
        }
    } else if roof(nearest) == roof(p) {
        format!("{open} shows how it is computed")
    } else {
        // The roof is a bandwidth, whereas the diagnosis may be about another limit of the same unit, such as its data
        // stage.
        let limit = screen
            .subject
            .hints
            .first()
            .map_or_else(String::new, |hint| format!("; {hints} shows why {}: {}", hint.id.id(), hint.headline));
        format!("nearest in bandwidth is {}: {}{limit}", roof(nearest), units::format_whole_percent(share(nearest)))
    };
    format!("{} of what {} allows at this intensity; {more}", units::format_whole_percent(share(p)), roof(p))
}
