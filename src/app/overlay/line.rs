//! Text inputs over a screen

/// Purpose of a text input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineOf {
    Output,
    /// The program and its arguments, in shell syntax.
    Program,
    Directory,
    /// Sections, separated by spaces.
    Sections,
    /// Rank of the process.
    Rank,
    /// Index of a graph launch.
    Graph,
    /// Path to save the script to.
    Save,
    /// Path to save the screen to.
    View,
    /// Path of the result to compare.
    Verify,
    /// Tags of this run of the library.
    Tags(i64),
    /// Note of this run of the library.
    Note(i64),
}

impl LineOf {
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
