//! Lists of sort orders and of kernels to choose from

use crate::analysis::range_tree::KernelTime;
use crate::analysis::readable::readable_name;
use crate::app::overlay::{Item, PickAction, PickList};
use crate::model::{Nanos, Profile, units};

/// Maximum number of listed kernels.
const MOST: usize = 500;

/// Kernels launched inside a range.
pub fn kernels(profile: &Profile, inside: &[KernelTime]) -> PickList {
    let total: i64 = inside.iter().map(|k| k.1).sum();
    let items = inside.iter().take(MOST).filter_map(|(kernel, ns, n)| {
        let name = readable_name(profile.kernels.get(kernel.0 as usize)?).into_owned();
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
