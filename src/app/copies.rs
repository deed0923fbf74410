//! What can be copied from tables, and the form that it is copied in.

use super::over::{Choice, CopyWhat, Item, Pick};
use crate::model::NameForm;
use crate::model::text::clean;

/// As wide as need be, and for a terminal.
pub const TO_PASTE: Option<usize> = Some(usize::MAX);
/// Rows of a table that are copied at most: a terminal's clipboard is no place for more.
pub const MOST_COPIED: usize = 10_000;

/// A list of things to copy.
#[must_use]
pub fn pick(rows: &[(CopyWhat, char, &str, &str)]) -> Pick {
    let items = rows.iter().map(|&(what, letter, label, hint)| Item::new(label, hint, letter, Choice::Copy(what)));
    Pick::by_letter("copy", items.collect(), None)
}

/// What can be copied from a table of kernels or launches.
#[must_use]
pub fn of_table() -> Pick {
    pick(&[
        (CopyWhat::Name(NameForm::Function), 'f', "function name", "as ncu --kernel-name expects it"),
        (CopyWhat::Name(NameForm::Demangled), 'd', "demangled name", ""),
        (CopyWhat::Name(NameForm::Mangled), 'm', "mangled name", ""),
        (CopyWhat::Row, 'r', "row", "the selected row as CSV, with a header"),
        (CopyWhat::Table, 't', "table", "all listed rows as CSV"),
    ])
}

/// What can be copied from a list of ranges.
#[must_use]
pub fn of_ranges() -> Pick {
    pick(&[
        (CopyWhat::Name(NameForm::Function), 'n', "name", "of the range"),
        (CopyWhat::Row, 'r', "row", "the selected row as CSV, with a header"),
        (CopyWhat::Table, 't', "table", "all listed rows as CSV"),
    ])
}

/// What can be copied from a timeline.
#[must_use]
pub fn of_timeline() -> Pick {
    pick(&[
        (CopyWhat::Name(NameForm::Demangled), 'n', "name", "of the event at the cursor"),
        (CopyWhat::Row, 'd', "details", "of the event at the cursor"),
        (CopyWhat::Table, 'w', "window", "as text, as it is shown"),
        (CopyWhat::Command, 'c', "command", "that prints this window, or the one between mark and cursor"),
    ])
}

/// The text as it goes to the clipboard: whatever is pasted next obeys it as a terminal would; only rows and lines of a command have line ends.
#[must_use]
pub fn safe(what: CopyWhat, text: &str) -> String {
    let one = matches!(what, CopyWhat::Name(_) | CopyWhat::MetricName | CopyWhat::MetricValue);
    if one { clean(text).into_owned() } else { text.split('\n').map(clean).collect::<Vec<_>>().join("\n") }
}

/// What was copied of so many rows.
#[must_use]
pub fn said(what: CopyWhat, rows: usize) -> String {
    if what == CopyWhat::Row { "row".to_owned() } else { crate::model::units::count(rows, "row") }
}
