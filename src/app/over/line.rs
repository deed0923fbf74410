//! Lines of text that the user types over a screen, and what they are for.

/// A line of text to type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineOf {
    Output,
    /// The program and its arguments, as a shell would read them.
    Program,
    Directory,
    /// Sections, parted by blanks.
    Sections,
    /// Rank of the process.
    Rank,
    /// Index of a graph.
    Graph,
    /// Where to save the script.
    Save,
    /// Where to save the screen.
    View,
    /// The result to compare.
    Verify,
    /// Tags of this run of the library.
    Tags(i64),
    /// A note about this run.
    Note(i64),
}

impl LineOf {
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Output => "report to write, without its ending",
            Self::Program => "program and arguments, as in a shell",
            Self::Directory => "working directory of the program",
            Self::Sections => "identifiers of sections, or names of AMD's counters, separated by spaces",
            Self::Rank => "rank of the process, from 0",
            Self::Graph => "number of the graph launch, from 0",
            Self::Save => "save the script as",
            Self::View => "save this screen as (.svg, .html or .txt)",
            Self::Verify => "result to compare: .ncu-rep, or CSV of ncu or rocprofv3",
            Self::Tags(_) => "tags, separated by spaces",
            Self::Note(_) => "note",
        }
    }
}
