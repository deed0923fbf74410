//! Notes on the reliability of a report: the tool's warnings, and guesses by the importer.

/// Importance of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    Info,
    /// The numbers may be misleading.
    Warning,
    /// Something is missing or failed.
    Error,
}

impl Severity {
    /// Stable name, for scripts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Subject of a note; stable names for tests and scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NoteKind {
    /// The profiler's own warning or error.
    Tool,
    /// Reason why the report contains no kernels, or fewer than expected.
    Empty,
    /// Kernels inside CUDA graphs are not listed one by one.
    Graphs,
    /// The capture was gated: earlier launches are not in the report.
    Gate,
    Lost,
    /// The launch order is approximate.
    Order,
    /// Part of the file is damaged or was skipped.
    Damaged,
    /// The importer guessed, because the format does not contain the information.
    Guess,
}

impl NoteKind {
    /// Stable name, for scripts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Empty => "empty",
            Self::Graphs => "graphs",
            Self::Gate => "gate",
            Self::Lost => "lost",
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
    /// Advice, usually one command-line flag.
    pub fix: Option<String>,
}

impl Note {
    /// Creates a note without advice.
    pub fn new(severity: Severity, kind: NoteKind, text: impl Into<String>) -> Self {
        Self { severity, kind, text: text.into(), fix: None }
    }

    /// Text and advice in one sentence.
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
