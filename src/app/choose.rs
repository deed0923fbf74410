//! The lists to choose from, and what choosing does.

use super::actions::{ACTIONS, ActionId};
use super::launches::{JumpTo, LaunchSort};
use super::pick::{Choice, CopyWhat, Facet, Item, Pick};
use super::work::Counted;
use super::{App, Effect, Overlay, RerunScreen, Status};
use crate::analysis::{GroupBy, Paths, SortBy};
use crate::model::text::clean;
use crate::model::{NameForm, units};
use crate::report;
use crate::rerun::{script, shell};
use tui_input::Input;

fn item(label: impl Into<String>, hint: impl Into<String>, letter: impl Into<Option<char>>, choice: Choice) -> Item {
    Item { label: label.into(), hint: hint.into(), letter: letter.into(), choice }
}

/// All actions that work on this screen.
#[must_use]
pub fn palette(app: &App) -> Pick {
    let here = app.here();
    let items = ACTIONS.iter().filter(|a| a.on.works(here) && a.id != ActionId::Palette).map(|a| {
        let keys = app.settings.keymap.keys(a.id).iter().map(crate::config::keys::Key::label).collect::<Vec<_>>().join(" ");
        let hint = if keys.is_empty() { a.help.to_owned() } else { format!("{} · {keys}", a.help) };
        item(a.name, hint, None, Choice::Action(a.id))
    });
    Pick::by_typing("actions", items.collect())
}

/// The eight groupings.
#[must_use]
pub fn groupings(current: GroupBy) -> Pick {
    let rows = [
        (GroupBy::Name, 'n', "function name: overloads and instantiations together"),
        (GroupBy::Demangled, 'd', "full C++ name, as nsys stats does"),
        (GroupBy::Mangled, 'm', "linker symbol"),
        (GroupBy::Config, 'c', "grid, block, shared memory and registers"),
        (GroupBy::Stream, 's', "stream of a context"),
        (GroupBy::Device, 'g', "GPU"),
        (GroupBy::Process, 'p', "process"),
        (GroupBy::Nvtx, 'r', "path of NVTX ranges or operators around the launch"),
    ];
    Pick::by_letter(
        "group by",
        rows.map(|(by, letter, hint)| item(by.word(), hint, letter, Choice::Group(by))).into(),
        Some(&Choice::Group(current)),
    )
}

/// Orders of groups.
#[must_use]
pub fn orders(current: SortBy) -> Pick {
    let rows = [
        (SortBy::Total, 't', "summed duration"),
        (SortBy::Count, 'c', "number of launches"),
        (SortBy::Avg, 'a', "mean duration"),
        (SortBy::Median, 'm', "median duration (p50)"),
        (SortBy::P99, '9', "99th percentile"),
        (SortBy::Min, 'i', "shortest launch"),
        (SortBy::Max, 'x', "longest launch"),
        (SortBy::Spread, 's', "standard deviation over mean"),
        (SortBy::Name, 'n', "name"),
    ];
    Pick::by_letter(
        "sort by",
        rows.map(|(by, letter, hint)| item(by.word(), hint, letter, Choice::Sort(by))).into(),
        Some(&Choice::Sort(current)),
    )
}

/// Orders of launches.
#[must_use]
pub fn launch_orders(current: LaunchSort) -> Pick {
    let rows = [
        (LaunchSort::Launch, 'l', "launch order on the host: what a re-run counts"),
        (LaunchSort::Start, 's', "start on the device"),
        (LaunchSort::Duration, 'd', "duration"),
        (LaunchSort::Grid, 'g', "blocks in the grid"),
        (LaunchSort::Stream, 't', "stream"),
    ];
    Pick::by_letter(
        "sort by",
        rows.map(|(by, letter, hint)| item(by.word(), hint, letter, Choice::LaunchSort(by))).into(),
        Some(&Choice::LaunchSort(current)),
    )
}

/// Themes, shown as the selection moves.
#[must_use]
pub fn themes(app: &App) -> Pick {
    let current = Choice::Theme(app.settings.theme.clone());
    let items = app.settings.themes.iter().map(|t| item(t, "", None, Choice::Theme(t.clone()))).collect();
    let mut pick = Pick::by_letter("theme", items, Some(&current));
    pick.before = Some(current);
    pick
}

/// What to copy.
#[must_use]
pub fn copies() -> Pick {
    let rows = [
        (CopyWhat::Name(NameForm::Function), 'f', "function name", "what ncu --kernel-name takes"),
        (CopyWhat::Name(NameForm::Demangled), 'd', "demangled name", ""),
        (CopyWhat::Name(NameForm::Mangled), 'm', "mangled name", ""),
        (CopyWhat::Row, 'r', "row", "the selected row as CSV, with a header"),
        (CopyWhat::Table, 't', "table", "all listed rows as CSV"),
    ];
    Pick::by_letter("copy", rows.map(|(what, letter, label, hint)| item(label, hint, letter, Choice::Copy(what))).into(), None)
}

/// What to copy on the re-run screen.
#[must_use]
pub fn command_copies() -> Pick {
    let rows = [
        (CopyWhat::Command, 'c', "command", "on one line"),
        (CopyWhat::CommandLines, 'l', "command over several lines", "joined by backslashes"),
        (CopyWhat::CommandThere, 'd', "command with its directory", "cd there first"),
        (CopyWhat::Script, 's', "script", "with what it selects, and warnings"),
        (CopyWhat::Json, 'j', "JSON", "as `warpscope rerun --format json`"),
    ];
    Pick::by_letter("copy", rows.map(|(what, letter, label, hint)| item(label, hint, letter, Choice::Copy(what))).into(), None)
}

/// Where to go in the launches.
#[must_use]
pub fn jumps() -> Pick {
    let rows = [
        (Choice::Jump(JumpTo::Slowest), 's', "slowest", "longest duration"),
        (Choice::Jump(JumpTo::Median), 'm', "median", "nearest to the median duration"),
        (Choice::Jump(JumpTo::Fastest), 'a', "fastest", "shortest duration"),
        (Choice::Jump(JumpTo::First), 'f', "first", "first in launch order"),
        (Choice::Jump(JumpTo::Profiled), 'p', "profiled", "the next one that ncu has profiled"),
        (Choice::AskNth, 'n', "nth …", "by its number among launches of its function"),
    ];
    Pick::by_letter("jump to", rows.map(|(choice, letter, label, hint)| item(label, hint, letter, choice)).into(), None)
}

/// Which facet to pick a value of.
#[must_use]
pub fn facets(app: &App) -> Option<Pick> {
    let screen = app.report()?.launches.as_ref()?;
    let choices = &screen.list.as_ref()?.choices;
    let says = |set: bool, n: usize| {
        if set { format!("{n} values, one picked") } else { format!("{n} value{}", if n == 1 { "" } else { "s" }) }
    };
    let f = &screen.facets;
    let rows = [
        (Facet::Stream, 's', "stream", says(f.stream.is_some(), choices.streams.len())),
        (Facet::Device, 'd', "device", says(f.device.is_some(), choices.devices.len())),
        (Facet::Process, 'p', "process", says(f.pid.is_some(), choices.pids.len())),
        (Facet::Path, 'r', "NVTX range", says(f.path.is_some(), choices.paths.len())),
    ];
    Some(Pick::by_letter(
        "only launches of one",
        rows.map(|(facet, letter, label, hint)| item(label, hint, letter, Choice::Facet(facet))).into(),
        None,
    ))
}

/// Values of a facet.
#[must_use]
pub fn facet_values(app: &App, facet: Facet) -> Option<Pick> {
    let report = app.report()?;
    let profile = report.profile.as_ref()?;
    let choices = &report.launches.as_ref()?.list.as_ref()?.choices;
    let (title, values): (_, &Counted<Option<u32>>) = match facet {
        Facet::Stream => ("stream", &choices.streams),
        Facet::Device => ("device", &choices.devices),
        Facet::Process => ("process", &choices.pids),
        Facet::Path => ("NVTX range", &choices.paths),
    };
    let name = |value: Option<u32>| match (facet, value) {
        (Facet::Path, None) => "(no range)".to_owned(),
        (_, None) => "(unknown)".to_owned(),
        (Facet::Stream, Some(v)) => format!("stream {v}"),
        (Facet::Device, Some(v)) => {
            profile.devices.get(v as usize).map_or_else(|| format!("device {v}"), |d| format!("GPU {} {}", d.id, d.short_name()))
        }
        (Facet::Process, Some(v)) => format!("pid {v}"),
        (Facet::Path, Some(v)) => report.paths.as_ref().map_or_else(String::new, |p| p.label(profile, v)),
    };
    let launches = |n: u64| format!("{} launches", units::grouped(i64::try_from(n).unwrap_or(i64::MAX)));
    let mut items = vec![item("all", "", None, Choice::FacetValue(facet, None))];
    items.extend(values.iter().map(|&(v, n)| item(clean(&name(v)), launches(n), None, Choice::FacetValue(facet, Some(v)))));
    Some(Pick::by_typing(title, items))
}

/// Does what was chosen.
pub fn choose(app: &mut App, choice: Choice) -> Vec<Effect> {
    app.overlay = None;
    let index = app.active;
    match choice {
        Choice::Action(id) => return super::update::act(app, id),
        Choice::Theme(name) => app.settings.theme = name,
        Choice::Copy(what) => return copy(app, what),
        Choice::AskNth => app.overlay = Some(Overlay::Number(Input::default())),
        Choice::Facet(facet) => app.overlay = facet_values(app, facet).map(Overlay::Pick),
        Choice::Group(by) => {
            return app.reports.get_mut(index).map(|r| r.group(index, by)).unwrap_or_default();
        }
        Choice::Sort(by) => {
            if let Some(report) = app.reports.get_mut(index) {
                if report.kernels.sort != by {
                    report.kernels.sort_by(by);
                }
                return report.want_detail(index);
            }
        }
        Choice::LaunchSort(by) => return sort_launches(app, by, false),
        Choice::Jump(to) => jump(app, to),
        Choice::Request(request) => return super::rerun::change(app, *request),
        Choice::Run(what) => return super::run_ask::choose(app, what),
        Choice::Forget(id) => return vec![Effect::Forget(id)],
        Choice::Before(before) => return super::diff::open_on(app, before, index),
        Choice::Other(report, result) => return super::result_views::compare(app, report, result),
        Choice::Line(what) => app.overlay = Some(Overlay::Line(what, Input::new(super::rerun_fields::line_text(app, what)))),
        Choice::FacetValue(facet, value) => {
            if let Some(report) = app.reports.get_mut(index)
                && let Some(screen) = &mut report.launches
            {
                match facet {
                    Facet::Stream => screen.facets.stream = value,
                    Facet::Device => screen.facets.device = value,
                    Facet::Process => screen.facets.pid = value,
                    Facet::Path => screen.facets.path = value,
                }
                return report.want_launches(index);
            }
        }
    }
    Vec::new()
}

/// Goes to a launch, and says so when there is none.
pub fn jump(app: &mut App, to: JumpTo) {
    let index = app.active;
    let Some(report) = app.reports.get_mut(index) else { return };
    let all = report.profile.as_ref().is_some_and(|p| p.metrics.is_some());
    let joins = std::mem::take(&mut report.joins);
    let went = report.launches.as_mut().is_none_or(|screen| match to {
        JumpTo::Profiled => screen.jump_where(|l| all || joins.iter().any(|(_, j)| j.of_launch(l).is_some())),
        other => screen.jump(other),
    });
    report.joins = joins;
    if !went {
        let text = match to {
            JumpTo::Profiled => "ncu has profiled none of these; r gives the command that does".to_owned(),
            JumpTo::Nth(n) => format!("no launch number {n} is listed here"),
            _ => "no launches are listed".to_owned(),
        };
        app.status = Some(Status { text, error: true });
    }
}

/// Orders launches; `turn` turns the order round instead.
pub fn sort_launches(app: &mut App, by: LaunchSort, turn: bool) -> Vec<Effect> {
    let index = app.active;
    let Some(report) = app.reports.get_mut(index) else {
        return Vec::new();
    };
    let Some(screen) = &mut report.launches else {
        return Vec::new();
    };
    if turn {
        screen.ascending = !screen.ascending;
        screen.to_first = true;
    } else if screen.sort != by {
        screen.sort = by;
        screen.ascending = by.ascends();
        screen.to_first = true;
    }
    report.want_launches(index)
}

/// Copies something of the selected row or the whole table.
fn copy(app: &mut App, what: CopyWhat) -> Vec<Effect> {
    if super::rerun::not_ready(app) {
        return Vec::new();
    }
    match copied(app, what) {
        Some((text, said)) => {
            // Whatever is pasted next obeys it as a terminal would; only rows and lines of a command have line ends.
            let one = matches!(what, CopyWhat::Name(_) | CopyWhat::MetricName | CopyWhat::MetricValue);
            let lines = text.split('\n').map(clean).collect::<Vec<_>>();
            let text = if one { clean(&text).into_owned() } else { lines.join("\n") };
            vec![Effect::Copy(text, said)]
        }
        None => {
            app.status = Some(Status { text: "nothing is selected".to_owned(), error: true });
            Vec::new()
        }
    }
}

fn copied(app: &App, what: CopyWhat) -> Option<(String, String)> {
    match app.screen() {
        super::Screen::Run => return Some((app.run.as_ref()?.command.clone(), "command".to_owned())),
        super::Screen::Library => return Some((shell::line(&app.library.as_ref()?.run()?.argv), "command".to_owned())),
        super::Screen::Diff => {
            let diff = app.diff.as_ref()?.diff.as_ref()?;
            let rows: Vec<_> = diff.rows.iter().take(MOST_COPIED).collect();
            let mut out = Vec::new();
            report::diff::print(&mut out, diff, &rows, report::Format::Csv, TO_PASTE).ok()?;
            return Some((String::from_utf8(out).ok()?, format!("{} rows", rows.len())));
        }
        _ => {}
    }
    let report = app.report()?;
    let profile = report.profile.as_ref()?;
    let kernels = &report.kernels;
    if let Some(screen) = &report.rerun {
        return copied_command(screen, report, what);
    }
    if let Some(screen) = &report.result {
        if what == CopyWhat::Command {
            return super::hints::confirming(app.active, report, screen);
        }
        return super::result_views::copied(screen, what);
    }
    if let CopyWhat::Name(form) = what {
        let kernel = match &report.launches {
            Some(screen) => Some(profile.launches.kernel(screen.launch()? as usize)),
            None => kernels.grouping.as_ref()?.rows.get(kernels.row()?)?.kernel,
        };
        let name = match kernel.and_then(|k| profile.kernels.get(k.0 as usize)) {
            Some(kernel) => kernel.name(form).to_owned(),
            None => kernels.grouping.as_ref()?.rows.get(kernels.row()?)?.name.clone(),
        };
        return Some((name, format!("{} name", form.word())));
    }
    let mut out = Vec::new();
    let rows = match &report.launches {
        Some(screen) => {
            let list = screen.list.as_ref()?;
            let none = Paths::default();
            let paths = report.paths.as_deref().unwrap_or(&none);
            let picked: Vec<(u32, u32)> = match what {
                CopyWhat::Row => list.rows.get(screen.selected).copied().into_iter().collect(),
                _ => list.rows.iter().take(MOST_COPIED).copied().collect(),
            };
            let rows = picked.iter().map(|&(row, nth)| report::launches::one(profile, paths, row as usize, u64::from(nth)));
            report::launches::print(&mut out, rows, report::Format::Csv, TO_PASTE).ok()?;
            picked.len()
        }
        None => {
            let grouping = kernels.grouping.as_ref()?;
            let picked: Vec<u32> = match what {
                CopyWhat::Row => vec![u32::try_from(kernels.row()?).ok()?],
                _ if !kernels.marked.is_empty() => {
                    kernels.shown.iter().copied().filter(|&r| kernels.marked.contains(&grouping.rows[r as usize].name)).collect()
                }
                _ => kernels.shown.iter().copied().take(MOST_COPIED).collect(),
            };
            report::top::table(profile, grouping, &picked).print(&mut out, report::Format::Csv, TO_PASTE).ok()?;
            picked.len()
        }
    };
    let said = if what == CopyWhat::Row { "row".to_owned() } else { format!("{rows} rows") };
    Some((String::from_utf8(out).ok()?, said))
}

fn copied_command(screen: &RerunScreen, report: &super::Report, what: CopyWhat) -> Option<(String, String)> {
    let (plan, rerun) = (screen.plan()?, screen.rerun()?);
    let wrapper = rerun.wrapper.clone();
    let said = if wrapper.is_some() { "wrapper script" } else { "command" };
    let there = |text: String| match &rerun.directory {
        Some(directory) => format!("cd -- {} && {text}", shell::quote(directory)),
        None => text,
    };
    Some(match what {
        CopyWhat::CommandLines => (wrapper.unwrap_or_else(|| rerun.shell_lines()), said.to_owned()),
        CopyWhat::CommandThere => (wrapper.unwrap_or_else(|| there(rerun.shell())), said.to_owned()),
        CopyWhat::Script => (script::script(plan, &report.file.display().to_string()), "script".to_owned()),
        CopyWhat::Json => {
            let mut out = Vec::new();
            report::rerun::json(&mut out, plan).ok()?;
            (String::from_utf8(out).ok()?, "JSON".to_owned())
        }
        _ => (wrapper.unwrap_or_else(|| rerun.shell()), said.to_owned()),
    })
}

/// As wide as need be, and for a terminal.
const TO_PASTE: Option<usize> = Some(usize::MAX);
/// Rows of a table that are copied at most: a terminal's clipboard is no place for more.
const MOST_COPIED: usize = 10_000;
