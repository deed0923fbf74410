//! Sort orders of tables, which their columns declare.

/// Sort order of a table by one of its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sort {
    /// Word on the command line and in the explorer.
    pub word: &'static str,
    /// Key in the explorer's menu.
    pub key: char,
    /// The smallest value comes first, unless reversed.
    pub ascending: bool,
}

impl Sort {
    /// The largest value comes first.
    pub const fn descending(word: &'static str, key: char) -> Self {
        Self { word, key, ascending: false }
    }

    /// The smallest value comes first.
    pub const fn ascending(word: &'static str, key: char) -> Self {
        Self { word, key, ascending: true }
    }
}
