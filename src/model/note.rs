//! Notes on the reliability of a report: warnings from the tool, and guesses made by the importer.

/// Importance of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    Info,
    /// The numbers may be misleading.
    Warning,
    /// Data is missing, or something failed.
    Error,
}

impl Severity {
    /// Stable name for scripts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Subject of a note. Names are stable, for use in tests and scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NoteKind {
    /// A warning or error from the profiler itself.
    Tool,
    /// Reason why the report contains no kernels, or fewer than expected.
    Empty,
    /// Kernels inside CUDA graphs are not listed individually.
    Graphs,
    /// The capture was gated, so earlier launches are not in the report.
    Gate,
    Lost,
    /// Other files of the same recording are missing.
    Part,
    /// The launch order is approximate.
    Order,
    /// Part of the file is damaged or was skipped.
    Damaged,
    /// The importer had to guess, because the format lacks the information.
    Guess,
}

impl NoteKind {
    /// Stable name for scripts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Empty => "empty",
            Self::Graphs => "graphs",
            Self::Gate => "gate",
            Self::Lost => "lost",
            Self::Part => "part",
            Self::Order => "order",
            Self::Damaged => "damaged",
            Self::Guess => "guess",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub severity: Severity,
    pub kind: NoteKind,
    /// One or two sentences.
    pub text: String,
    /// Advice, usually a single command-line flag.
    pub fix: Option<String>,
}

impl Note {
    /// Creates a note without advice.
    pub fn new(severity: Severity, kind: NoteKind, text: impl Into<String>) -> Self {
        Self { severity, kind, text: text.into(), fix: None }
    }

    /// Text and advice as one sentence.
    pub fn to_sentence(&self) -> String {
        match &self.fix {
            Some(fix) => format!("{}; {fix}", self.text.trim_end_matches('.')),
            None => self.text.clone(),
        }
    }

    /// Adds advice to the note.
    pub fn with_fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}
