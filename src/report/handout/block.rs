//! What a report to hand on consists of. Texts are plain: whoever writes them escapes them.

/// A picture: SVG whose texts are escaped, and what it shows in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Picture {
    pub svg: String,
    pub words: String,
}

/// A table; the first columns that are `right` hold numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Titles, and whether the column stands to the right.
    pub head: Vec<(&'static str, bool)>,
    pub rows: Vec<Vec<String>>,
}

/// Something that is wrong, or right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    pub id: String,
    pub headline: String,
    /// `critical, certain, up to 40 %`.
    pub how: String,
    /// Whether it is worth a change.
    pub wrong: bool,
    pub evidence: Vec<String>,
    pub places: Vec<String>,
    pub actions: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// 1 is the report's own.
    Heading(u8, String),
    Text(String),
    Picture(Picture),
    Table(Table),
    List(Vec<String>),
    /// The words of a command.
    Command(Vec<String>),
    Found(Found),
}

/// A report to hand on.
#[derive(Clone, Debug, Default)]
pub struct Handout {
    pub title: String,
    pub blocks: Vec<Block>,
}
