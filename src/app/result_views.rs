//! What the screens about a result need beside it: marked kernels, another result to compare with, copies, and the way back to the launch.

use super::pick::{Choice, CopyWhat, Item, Pick};
use super::result::{Asked, ResultScreen, View};
use super::{App, Effect, Overlay, Status};
use crate::analysis::metric;
use crate::analysis::rows::{Row, plain};
use crate::model::text::clean;
use crate::model::{Metrics, config};
use crate::report::table::no_formula;
use std::sync::Arc;

/// Results of the active screen's report whose kernels are marked in the table.
#[must_use]
pub fn marked(app: &App) -> Vec<usize> {
    let Some(screen) = app.report().and_then(|r| r.result.as_ref()) else { return Vec::new() };
    let Some(report) = app.reports.get(screen.report) else { return Vec::new() };
    let (Some(profile), Some(grouping)) = (&report.profile, &report.kernels.grouping) else { return Vec::new() };
    if report.kernels.marked.is_empty() {
        return Vec::new();
    }
    let paths = report.paths.as_deref();
    let is_marked = |at: usize| {
        grouping.row_of(profile, paths, at).and_then(|r| grouping.rows.get(r)).is_some_and(|r| report.kernels.marked.contains(&r.name))
    };
    (0..profile.launches.len()).filter(|&at| is_marked(at)).collect()
}

/// `3 copy_coalesced 2112×256`.
fn named(metrics: &Metrics, result: usize) -> String {
    let Some(r) = metrics.results.get(result) else { return String::new() };
    let dims = |d: Option<[u32; 3]>| d.map(config::dim3).unwrap_or_default();
    format!("{result}  {}  {} × {}", clean(r.kernel.function()), dims(r.grid), dims(r.block))
}

/// A list of results to compare with: of this report and of all others in the session.
pub fn ask_other(app: &mut App) -> Vec<Effect> {
    let Some(screen) = app.report().and_then(|r| r.result.as_ref()) else { return Vec::new() };
    let own = screen.metrics.results.get(screen.result).map(|r| r.kernel.clone());
    let mut items: Vec<(bool, Item)> = Vec::new();
    for (at, report) in app.reports.iter().enumerate() {
        let Some(metrics) = report.profile.as_ref().and_then(|p| p.metrics.as_ref()) else { continue };
        for (result, r) in metrics.results.iter().enumerate().take(MOST_LISTED) {
            if at == screen.report && result == screen.result {
                continue;
            }
            let file = report.file.file_name().map(|f| f.to_string_lossy().into_owned()).unwrap_or_default();
            let duration = metrics.duration(r).map_or_else(String::new, |d| format!("{d}, "));
            let same = own.as_ref() == Some(&r.kernel);
            let hint = format!("{duration}{}", clean(&file));
            items.push((!same, Item { label: named(metrics, result), hint, letter: None, choice: Choice::Other(at, result) }));
        }
    }
    if items.is_empty() {
        let text = "there is no other result: open a second report beside this one".to_owned();
        app.status = Some(Status { text, error: false });
        return Vec::new();
    }
    // The same kernel before others: that is what one changes and measures again.
    items.sort_by_key(|i| i.0);
    app.overlay = Some(Overlay::Pick(Pick::by_typing("compare with", items.into_iter().map(|i| i.1).collect())));
    Vec::new()
}

/// Results of one report that are offered.
const MOST_LISTED: usize = 2_000;

/// Compares with a result.
pub fn compare(app: &mut App, report: usize, result: usize) -> Vec<Effect> {
    let metrics = app.reports.get(report).and_then(|r| r.profile.as_ref()).and_then(|p| p.metrics.clone());
    let index = app.active;
    if let (Some(metrics), Some(screen)) = (metrics, app.reports.get_mut(index).and_then(|r| r.result.as_mut())) {
        screen.compared = Arc::new(crate::analysis::compare::rows(&screen.metrics, screen.result, &metrics, result, ""));
        screen.other = Some((report, metrics, result));
        screen.view = View::Compare;
        screen.compare_selected = 0;
    }
    Vec::new()
}

/// Opens what the selected row leads to: a fold, a section that a rule names, or what there is to know about a metric.
pub fn enter(app: &mut App) -> Vec<Effect> {
    let index = app.active;
    let pins = app.pins.clone();
    let Some(screen) = app.reports.get_mut(index).and_then(|r| r.result.as_mut()) else { return Vec::new() };
    match screen.view {
        View::Metrics => match screen.rows.get(screen.selected).cloned() {
            Some(Row::Fold { key, .. }) => {
                if !screen.open.remove(&key) {
                    screen.open.insert(key);
                }
                screen.arrange(&pins);
            }
            Some(Row::Hint(hint)) => screen.show_hint(hint),
            Some(Row::Rule(..) | Row::Metric(_) | Row::Bar { .. } | Row::Cells { .. } | Row::Section { .. }) => {
                app.overlay = Some(Overlay::Explain(0));
            }
            _ => {}
        },
        View::Hints => return super::hints::enter(app),
        View::Compare => app.overlay = Some(Overlay::Explain(0)),
        View::Roofline => {
            // Another kernel's point leads to its metrics.
            let at = screen.plot.as_ref().and_then(|p| p.points.get(screen.plot_selected)).filter(|p| !p.own).map(|p| p.result);
            if let Some(at) = at {
                let by = isize::try_from(at).unwrap_or(0) - isize::try_from(screen.result).unwrap_or(0);
                return super::result::step(app, by);
            }
            app.overlay = Some(Overlay::Explain(0));
        }
        View::Source => {
            jump_between(screen);
        }
    }
    Vec::new()
}

/// From a line to its hottest instruction and back.
fn jump_between(screen: &mut ResultScreen) {
    let Some(listing) = screen.listing.clone() else { return };
    if screen.instructions {
        let line = listing.instructions.get(screen.code_selected).and_then(|i| i.line);
        if let Some(at) = line.and_then(|l| listing.lines.iter().position(|x| (x.file, x.line) == l)) {
            (screen.instructions, screen.code_selected) = (false, at);
        }
    } else if let Some(line) = listing.lines.get(screen.code_selected) {
        let own = |i: &&crate::analysis::code::Instruction| i.line == Some((line.file, line.line));
        let hottest = listing.instructions.iter().filter(own).max_by(|a, b| a.counts.samples.total_cmp(&b.counts.samples));
        if let Some(at) = hottest.and_then(|h| listing.instructions.iter().position(|i| i.address == h.address)) {
            (screen.instructions, screen.code_selected) = (true, at);
        }
    }
}

/// Lines or instructions; by samples or by place.
pub fn source_mode(app: &mut App, other_list: bool) -> Vec<Effect> {
    let index = app.active;
    if let Some(screen) = app.reports.get_mut(index).and_then(|r| r.result.as_mut()) {
        if other_list {
            screen.instructions = !screen.instructions;
        } else {
            screen.in_order = !screen.in_order;
            screen.list_code();
        }
        screen.code_selected = 0;
    }
    Vec::new()
}

/// What can be copied from these screens.
#[must_use]
pub fn copies(view: View) -> Pick {
    let mut rows = vec![
        (CopyWhat::MetricValue, 'v', "value", "the exact number in its base unit"),
        (CopyWhat::MetricName, 'n', "name", "as --metrics takes it"),
        (CopyWhat::Row, 'r', "row", "name, value and unit as CSV"),
        (CopyWhat::Section, 's', "section", "all rows of this section as CSV"),
        (CopyWhat::Name(crate::model::NameForm::Function), 'f', "kernel's function name", "what ncu --kernel-name takes"),
    ];
    if view == View::Hints {
        rows = vec![
            (CopyWhat::Row, 'h', "hint", "id and headline, or the selected number"),
            (CopyWhat::Command, 'c', "command", "the ncu command that confirms the selected hint"),
            (CopyWhat::Section, 's', "all hints", "id, gain and headline of each as CSV"),
            (CopyWhat::MetricName, 'n', "metric", "name of the selected number's metric"),
            (CopyWhat::Name(crate::model::NameForm::Function), 'f', "kernel's function name", "what ncu --kernel-name takes"),
        ];
    }
    let items: Vec<Item> = rows
        .into_iter()
        .map(|(what, letter, label, hint)| Item {
            label: label.to_owned(),
            hint: hint.to_owned(),
            letter: Some(letter),
            choice: Choice::Copy(what),
        })
        .collect();
    Pick::by_letter("copy", items, None)
}

/// A field of a CSV row.
fn field(text: &str) -> String {
    let text = &*no_formula(text);
    let text = &*clean(text);
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

/// The text to copy, and what it is.
#[must_use]
pub fn copied(screen: &ResultScreen, what: CopyWhat) -> Option<(String, String)> {
    let result = screen.metrics.results.get(screen.result)?;
    let lookup = metric::Lookup::new(&screen.metrics, result);
    if let CopyWhat::Name(form) = what {
        return Some((result.kernel.name(form).to_owned(), format!("{} name", form.word())));
    }
    let line = |name: &str| {
        let value = lookup.value(name).map(ToString::to_string).unwrap_or_default();
        format!("{},{},{}", field(name), field(&value), field(lookup.unit(name)))
    };
    let head = "metric,value,unit\n";
    if let View::Compare = screen.view {
        let rows: Vec<&crate::analysis::compare::Row> = match what {
            CopyWhat::Section => screen.compared.iter().collect(),
            _ => screen.compared.get(screen.compare_selected).into_iter().collect(),
        };
        let name = rows.first()?.name.to_string();
        return Some(match what {
            CopyWhat::MetricName => (name, "metric's name".to_owned()),
            CopyWhat::MetricValue => (lookup.value(&name).map(ToString::to_string)?, "value".to_owned()),
            _ => {
                let lines = rows.iter().map(|r| format!("{},{},{}\n", field(&r.name), field(&r.first), field(&r.second)));
                (format!("metric,first,second\n{}", lines.collect::<String>()), format!("{} rows", rows.len()))
            }
        });
    }
    if let View::Source = screen.view {
        return copied_code(screen, what);
    }
    if let View::Hints = screen.view {
        return copied_hint(screen, what);
    }
    let row = screen.rows.get(screen.selected)?;
    if let Row::Hint(i) = row
        && what != CopyWhat::Section
    {
        return Some((screen.subject.hints.get(*i)?.headline.clone(), "hint".to_owned()));
    }
    if let Row::Rule(r, m) = row
        && what != CopyWhat::Section
    {
        let details = screen.details.get()?;
        let message = details.rules.get(*r)?.messages.get(*m)?;
        return Some((plain(&message.text), "rule's text".to_owned()));
    }
    match what {
        CopyWhat::Section => {
            let at = screen.selected;
            let is_head = |i: &usize| matches!(screen.rows.get(*i), Some(Row::Section { .. }));
            let from = (0..=at).rev().find(is_head).unwrap_or(0);
            let to = (at + 1..screen.rows.len()).find(is_head).unwrap_or(screen.rows.len());
            let names: Vec<&Arc<str>> = screen
                .rows
                .get(from..to)?
                .iter()
                .flat_map(|r| match r {
                    Row::Cells { metrics, head: false, .. } => metrics.iter().collect(),
                    other => other.metric().into_iter().collect::<Vec<_>>(),
                })
                .collect();
            let mut text = head.to_owned();
            for name in &names {
                text.push_str(&line(name));
                text.push('\n');
            }
            Some((text, format!("{} rows", names.len())))
        }
        _ => {
            let name = row.metric()?.clone();
            Some(match what {
                CopyWhat::MetricName => (name.to_string(), "metric's name".to_owned()),
                CopyWhat::MetricValue => (lookup.value(&name).map(ToString::to_string)?, "value".to_owned()),
                _ => (format!("{head}{}\n", line(&name)), "row".to_owned()),
            })
        }
    }
}

/// The selected number, the hint's headline, or all headlines.
fn copied_hint(screen: &ResultScreen, what: CopyWhat) -> Option<(String, String)> {
    use super::hints::Line;
    let hints = &screen.subject.hints;
    if what == CopyWhat::Section {
        let lines = hints.iter().map(|h| format!("{},{:.1},{}\n", h.id.id(), h.percent(), field(&h.headline)));
        return Some((format!("id,gain_percent,headline\n{}", lines.collect::<String>()), format!("{} hints", hints.len())));
    }
    if let Some(Line::Evidence(i, e)) = screen.hint_lines.get(screen.hint_selected) {
        let e = hints.get(*i)?.evidence.get(*e)?;
        return Some(match what {
            CopyWhat::MetricName if !e.metric.is_empty() => (e.metric.clone(), "metric's name".to_owned()),
            CopyWhat::MetricValue => (e.value.to_string(), "value".to_owned()),
            _ => (format!("{},{},{}\n", field(&e.label), e.value, e.unit), "row".to_owned()),
        });
    }
    let hint = hints.get(screen.hint()?)?;
    Some((format!("{}: {}", hint.id.id(), hint.headline), "hint".to_owned()))
}

fn copied_code(screen: &ResultScreen, what: CopyWhat) -> Option<(String, String)> {
    let listing = screen.listing.as_ref()?;
    let executed = |c: &crate::analysis::code::Counts| c.executed.map(|n| n.to_string()).unwrap_or_default();
    let one = |at: usize| {
        if screen.instructions {
            listing.instructions.get(at).map(|i| {
                format!("{:#x},{},{},{}\n", i.address, i.counts.samples, executed(&i.counts), field(i.text.as_deref().unwrap_or_default()))
            })
        } else {
            listing.lines.get(at).map(|l| {
                format!(
                    "{}:{},{},{},{}\n",
                    field(&l.name),
                    l.line,
                    l.counts.samples,
                    executed(&l.counts),
                    field(l.text.as_deref().unwrap_or_default())
                )
            })
        }
    };
    let head = "place,samples,executed,text\n";
    if what == CopyWhat::Section {
        let n = screen.code_rows();
        return Some((format!("{head}{}", (0..n).filter_map(one).collect::<String>()), format!("{n} rows")));
    }
    Some((format!("{head}{}", one(screen.code_selected)?), "row".to_owned()))
}

/// From a result to the launch that it is of, in the timeline that was opened beside it.
pub fn to_launch(app: &mut App) -> Vec<Effect> {
    let index = app.active;
    let Some(report) = app.report() else { return Vec::new() };
    // Here by way of a launch: it is behind this screen.
    if let Some(screen) = report.result.as_ref().filter(|s| s.report != index) {
        return match report.launch_of(screen.report, screen.result) {
            Some(pair) => go_to(app, index, pair),
            None => {
                let text = "this result is of no launch of the timeline".to_owned();
                app.status = Some(Status { text, error: false });
                Vec::new()
            }
        };
    }
    let result = match &report.result {
        Some(screen) => Some(screen.result),
        None => report.launches.as_ref().and_then(super::LaunchesScreen::launch).map(|l| l as usize),
    };
    let Some(result) = result else { return super::result::open(app) };
    let found = app.reports.iter().enumerate().find_map(|(at, r)| Some((at, r.launch_of(index, result)?)));
    let Some((timeline, pair)) = found else {
        let text = "no timeline of this session has this launch: open the nsys report beside this one".to_owned();
        app.status = Some(Status { text, error: false });
        return Vec::new();
    };
    go_to(app, timeline, pair)
}

/// Selects the launch of a pair in its timeline.
fn go_to(app: &mut App, timeline: usize, pair: crate::rerun::join::Pair) -> Vec<Effect> {
    app.active = timeline;
    let Some(report) = app.reports.get_mut(timeline) else { return Vec::new() };
    report.result = None;
    report.rerun = None;
    let (Some(grouping), Some(profile)) = (report.kernels.grouping.clone(), report.profile.clone()) else { return Vec::new() };
    let Some(row) = grouping.row_of(&profile, report.paths.as_deref(), pair.launch as usize) else { return Vec::new() };
    let name = grouping.rows.get(row).map(|r| r.name.clone()).unwrap_or_default();
    report.kernels.select(&name);
    let effects = report.open_launches(timeline, grouping, row);
    if let Some(screen) = &mut report.launches {
        screen.wanted = Some(pair.launch);
    }
    app.status = Some(Status { text: pair.sure.why(), error: false });
    effects
}

/// Takes the code of a result.
pub fn take_code(screen: &mut ResultScreen, outcome: Result<Arc<crate::model::Code>, String>) {
    screen.code = match outcome {
        Ok(code) => Asked::Is(code),
        Err(text) => Asked::Failed(text),
    };
    // Where no line is known the instructions are all there is.
    screen.list_code();
    if screen.listing.as_ref().is_some_and(|l| l.lines.is_empty()) {
        screen.instructions = true;
    }
}
