//! Lists of groupings and sort orders

use crate::analysis::GroupBy;
use crate::app::actions::ActionId;
use crate::app::overlay::{Item, PickAction, PickList};

/// Groupings; `lines` is true if the report records the source lines at which graphs were captured.
pub fn groupings(current: GroupBy, lines: bool) -> PickList {
    let rows = [
        (GroupBy::Kernel, 'k', "function, and the operation that it is instantiated for"),
        (GroupBy::Name, 'n', "function name: overloads and instantiations together"),
        (GroupBy::Demangled, 'd', "full C++ name, as nsys stats does"),
        (GroupBy::Mangled, 'm', "linker symbol"),
        (GroupBy::Config, 'c', "grid, block, shared memory and registers"),
        (GroupBy::Stream, 's', "stream of a context"),
        (GroupBy::Device, 'u', "GPU"),
        (GroupBy::Process, 'p', "process"),
        (GroupBy::Nvtx, 'r', "path of NVTX ranges or operators around the launch"),
        (GroupBy::Line, 'l', "line of the program at which a graph's kernel was captured"),
    ];
    let rows = rows.into_iter().filter(|r| lines || r.0 != GroupBy::Line);
    let mut items: Vec<Item> = rows.map(|(by, letter, hint)| Item::new(by.cli_name(), hint, letter, PickAction::Group(by))).collect();
    // Users of vi and less press `g` twice.
    items.push(Item::new("first row", "keep this grouping", 'g', PickAction::Action(ActionId::First)));
    PickList::by_letter("group by", items, Some(&PickAction::Group(current)))
}
