//! Lists of orders and of kernels to choose from.

use crate::analysis::range_tree::KernelTime;
use crate::app::overlay::{Item, PickAction, PickList, RangeSort};
use crate::model::{Nanos, Profile, units};

/// Maximum number of listed kernels.
const MOST: usize = 500;

pub fn orders(current: RangeSort) -> PickList {
    let rows = [
        (RangeSort::Busy, "GPU busy", 'g', "time in which the GPU worked (kernels, memcpys, memsets) on what was launched inside"),
        (RangeSort::Idle, "GPU idle", 'i', "time on the host in which no GPU worked"),
        (RangeSort::Wall, "host", 'h', "time on the host"),
        (RangeSort::Own, "self", 'f', "time on the host outside of inner ranges"),
        (RangeSort::Count, "count", 'c', "number of ranges"),
        (RangeSort::Start, "start", 't', "when the first one began"),
        (RangeSort::Name, "name", 'n', "name"),
    ];
    let items = rows.map(|(by, word, letter, hint)| Item::new(word, hint, letter, PickAction::RangeSort(by)));
    PickList::by_letter("sort by", items.into(), Some(&PickAction::RangeSort(current)))
}

/// Kernels launched inside a range.
pub fn kernels(profile: &Profile, inside: &[KernelTime]) -> PickList {
    let total: i64 = inside.iter().map(|k| k.1).sum();
    let items = inside.iter().take(MOST).filter_map(|(kernel, ns, n)| {
        let name = profile.kernels.get(kernel.0 as usize)?.function().to_owned();
        let percent = units::format_percent(*ns as f64 / total.max(1) as f64 * 100.0);
        Some(Item::new(
            name.clone(),
            format!("{percent} · {} · {}", Nanos(*ns), units::format_count(*n, "launch")),
            None,
            PickAction::Kernel(name),
        ))
    });
    PickList::by_typing("kernels launched inside", items.collect())
}
