//! Copy menus and formats of copied text

use super::overlay::{CopyWhat, Item, PickAction, PickList};
use crate::model::NameForm;
use crate::model::text::escape_unsafe;

/// Table width for copied text: unlimited, but text is escaped as for a terminal.
pub const TO_PASTE: Option<usize> = Some(usize::MAX);
/// Maximum number of table rows to copy: terminal clipboards are not made for more.
pub const MOST_COPIED: usize = 10_000;

/// Builds a copy menu.
pub fn copy_menu(rows: &[(CopyWhat, char, &str, &str)]) -> PickList {
    let items = rows.iter().map(|&(what, letter, label, hint)| Item::new(label, hint, letter, PickAction::Copy(what)));
    PickList::by_letter("copy", items.collect(), None)
}

/// Copy menu for a table of kernels or launches.
pub fn table_menu() -> PickList {
    copy_menu(&[
        (CopyWhat::Name(NameForm::Function), 'f', "function name", "as ncu --kernel-name expects it"),
        (CopyWhat::Name(NameForm::Demangled), 'd', "demangled name", ""),
        (CopyWhat::Name(NameForm::Mangled), 'm', "mangled name", ""),
        (CopyWhat::Row, 'r', "row", "the selected row as CSV, with a header"),
        (CopyWhat::Table, 't', "table", "all listed rows as CSV"),
    ])
}

/// Copy menu for a list of ranges.
pub fn ranges_menu() -> PickList {
    copy_menu(&[
        (CopyWhat::Name(NameForm::Function), 'n', "name", "of the range"),
        (CopyWhat::Row, 'r', "row", "the selected row as CSV, with a header"),
        (CopyWhat::Table, 't', "table", "all listed rows as CSV"),
    ])
}

/// Copy menu for the source lines of the program.
pub fn lines_menu() -> PickList {
    copy_menu(&[
        (CopyWhat::Name(NameForm::Function), 'n', "function", "with its file and line"),
        (CopyWhat::Row, 'r', "row", "the selected row"),
        (CopyWhat::Table, 't', "table", "all functions as CSV"),
    ])
}

/// Copy menu for a timeline.
pub fn timeline_menu() -> PickList {
    copy_menu(&[
        (CopyWhat::Name(NameForm::Demangled), 'n', "name", "of the event at the cursor"),
        (CopyWhat::Row, 'd', "details", "of the event at the cursor"),
        (CopyWhat::Table, 'w', "window", "as text, as it is shown"),
        (CopyWhat::Command, 'c', "command", "that prints this window, or the one between mark and cursor"),
    ])
}

/// Removes control characters from text for the clipboard, because a terminal would execute them on paste. Only rows
/// and multi-line commands keep their line breaks.
pub fn sanitize_copy(what: CopyWhat, text: &str) -> String {
    let one = matches!(what, CopyWhat::Name(_) | CopyWhat::MetricName | CopyWhat::MetricValue);
    if one { escape_unsafe(text).into_owned() } else { text.split('\n').map(escape_unsafe).collect::<Vec<_>>().join("\n") }
}

/// Status message after copying a number of rows.
pub fn copied_label(what: CopyWhat, rows: usize) -> String {
    if what == CopyWhat::Row { "row".to_owned() } else { crate::model::units::format_count(rows, "row") }
}
