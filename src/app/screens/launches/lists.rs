//! Lists of sort orders, jump targets and filter values of launches

use crate::analysis::kernel_group_detail::Counted;
use crate::analysis::launch_list::{Facets, JumpTo, LaunchList};
use crate::app::overlay::{Facet, Item, PickAction, PickList};
use crate::app::session::Report;
use crate::model::text::escape_unsafe;
use crate::model::units::{format_count, format_grouped};

/// Jump targets in the launch list.
pub fn jump_targets() -> PickList {
    let rows = [
        (PickAction::Jump(JumpTo::Slowest), 's', "slowest", "longest duration"),
        (PickAction::Jump(JumpTo::Median), 'm', "median", "closest to the median duration"),
        (PickAction::Jump(JumpTo::Fastest), 'a', "fastest", "shortest duration"),
        (PickAction::Jump(JumpTo::First), 'f', "first", "first in launch order"),
        (PickAction::Jump(JumpTo::Profiled), 'p', "profiled", "the next launch profiled with ncu"),
        (PickAction::AskNth, 'n', "nth …", "by its number among the launches of its function, from 0"),
    ];
    PickList::by_letter("jump to", rows.map(|(choice, letter, label, hint)| Item::new(label, hint, letter, choice)).into(), None)
}

/// Properties to filter launches by.
pub fn facets(f: &Facets, list: &LaunchList) -> PickList {
    let choices = &list.choices;
    let says = |set: bool, n: usize| if set { format!("{}, one selected", format_count(n, "value")) } else { format_count(n, "value") };
    let rows = [
        (Facet::Stream, 's', "stream", says(f.stream.is_some(), choices.streams.len())),
        (Facet::Device, 'd', "device", says(f.device.is_some(), choices.devices.len())),
        (Facet::Process, 'p', "process", says(f.pid.is_some(), choices.pids.len())),
        (Facet::Path, 'r', "NVTX range", says(f.path.is_some(), choices.paths.len())),
    ];
    PickList::by_letter(
        "filter launches by",
        rows.map(|(facet, letter, label, hint)| Item::new(label, hint, letter, PickAction::Facet(facet))).into(),
        None,
    )
}

/// Values of a facet to choose from.
pub fn facet_values(facet: Facet, list: &LaunchList, report: &Report) -> Option<PickList> {
    let profile = report.profile.as_ref()?;
    let choices = &list.choices;
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
        (Facet::Path, Some(v)) => report.paths.as_ref().map_or_else(String::new, |p| p.path_label(profile, v)),
    };
    let launches = |n: u64| match n {
        1 => "1 launch".to_owned(),
        n => format!("{} launches", format_grouped(n)),
    };
    let mut items = vec![Item::new("all", "", None, PickAction::FacetValue(facet, None))];
    items
        .extend(values.iter().map(|&(v, n)| Item::new(escape_unsafe(&name(v)), launches(n), None, PickAction::FacetValue(facet, Some(v)))));
    Some(PickList::by_typing(title, items))
}
