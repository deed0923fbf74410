//! Lists of the work inside a range to choose from

use crate::analysis::range_tree::WorkInside;
use crate::analysis::readable::readable_name;
use crate::app::overlay::{Item, PickAction, PickList};
use crate::model::{Bytes, Nanos, Profile, units};

/// Maximum number of listed kernels.
const MOST: usize = 500;

/// Kernels and copies launched inside a range, longest first.
pub fn work(profile: &Profile, inside: &WorkInside) -> PickList {
    let total: i64 = inside.kernels.iter().map(|k| k.1).chain(inside.copies.iter().map(|c| c.ns)).fold(0, i64::saturating_add);
    let percent = |ns: i64| units::format_percent(ns as f64 / total.max(1) as f64 * 100.0);
    let kernels = inside.kernels.iter().take(MOST).filter_map(|(kernel, ns, n)| {
        let name = readable_name(profile.kernels.get(kernel.0 as usize)?).into_owned();
        let hint = format!("{} · {} · {}", percent(*ns), Nanos(*ns), units::format_count(*n, "launch"));
        Some((*ns, Item::new(name.clone(), hint, None, PickAction::Kernel(name))))
    });
    let copies = inside.copies.iter().map(|copies| {
        let bytes = copies.bytes.map(|b| format!(" · {}", Bytes(b))).unwrap_or_default();
        let hint = format!("{} · {} · {}{bytes}", percent(copies.ns), Nanos(copies.ns), units::format_count(copies.count, "operation"));
        (copies.ns, Item::new(copies.label(), hint, None, PickAction::Copies(copies.longest)))
    });
    let mut items: Vec<(i64, Item)> = kernels.chain(copies).collect();
    items.sort_by_key(|(ns, _)| std::cmp::Reverse(*ns));
    PickList::by_typing("launched inside this range", items.into_iter().map(|(_, item)| item).collect())
}
