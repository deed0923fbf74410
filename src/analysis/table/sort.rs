//! Sort orders of tables, declared by their columns.

/// Order of a table by one of its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sort {
    /// Word used on the command line and in the explorer.
    pub word: &'static str,
    /// Key in the explorer's menu.
    pub key: char,
    /// True if the smallest value comes first, unless reversed.
    pub ascending: bool,
}

impl Sort {
    /// Creates an order in which the largest value comes first.
    pub const fn descending(word: &'static str, key: char) -> Self {
        Self { word, key, ascending: false }
    }

    /// Creates an order in which the smallest value comes first.
    pub const fn ascending(word: &'static str, key: char) -> Self {
        Self { word, key, ascending: true }
    }
}
