//! What the reader should know about a report before trusting it: the tool's own warnings and our guesses.

/// How much a note matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    Info,
    /// May change what the numbers mean.
    Warning,
    /// Something is missing or failed.
    Error,
}

impl Severity {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// What a note is about; stable words that tests and scripts can rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NoteKind {
    /// The profiler's own warning or error.
    Tool,
    /// Why the report holds no kernels, or fewer than expected.
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
    /// The importer had to guess, or the format cannot tell.
    Guess,
}

impl NoteKind {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
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

/// One remark on a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// How much it matters.
    pub severity: Severity,
    /// What it is about.
    pub kind: NoteKind,
    /// One or two sentences.
    pub text: String,
    /// What to do about it: usually one flag.
    pub fix: Option<String>,
}

impl Note {
    /// A note without a fix.
    #[must_use]
    pub fn new(severity: Severity, kind: NoteKind, text: impl Into<String>) -> Self {
        Self { severity, kind, text: text.into(), fix: None }
    }

    /// The remark and what to do about it, in one sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        match &self.fix {
            Some(fix) => format!("{}; {fix}", self.text.trim_end_matches('.')),
            None => self.text.clone(),
        }
    }

    /// The same note with what to do about it.
    #[must_use]
    pub fn with_fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}
