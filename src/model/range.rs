//! NVTX ranges as columns: a report may hold millions.

use std::sync::Arc;

/// What is shown for a range whose text is not in the report.
pub const UNNAMED: &str = "(unnamed range)";

/// How a range was made, which decides whose launches it encloses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RangeKind {
    /// Push/pop: belongs to one thread and nests.
    PushPop,
    /// Start/end: belongs to the process and may overlap others.
    StartEnd,
    /// A framework's own: an operator or `record_function` of PyTorch. Belongs to one thread and nests; no NVTX, so ncu does not see it.
    Annotation,
}

/// One range, as the columns give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Start, ns.
    pub start: i64,
    /// End, ns; `i64::MAX` for a range that was still open when the capture ended.
    pub end: i64,
    /// Index into [`Ranges::names`].
    pub name: u32,
    /// Index into [`Ranges::threads`].
    pub thread: u32,
    /// How it was made.
    pub kind: RangeKind,
}

/// All ranges of a report, in file order.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    /// Distinct (domain, text) pairs. The default domain is `None`.
    pub names: Vec<(Option<Arc<str>>, Arc<str>)>,
    /// Distinct (process id, thread id) pairs.
    pub threads: Vec<(u32, u32)>,
    /// The ranges.
    pub ranges: Vec<Range>,
}

impl Ranges {
    /// Whether they are a framework's operators, no NVTX.
    #[must_use]
    pub fn annotations(&self) -> bool {
        self.ranges.first().is_some_and(|r| r.kind == RangeKind::Annotation)
    }

    /// What they are, for people.
    #[must_use]
    pub fn noun(&self) -> &'static str {
        if self.annotations() { "operators" } else { "NVTX ranges" }
    }

    /// What a person reads: `domain:text`, or just the text in the default domain.
    #[must_use]
    pub fn label(&self, name: u32) -> String {
        match self.names.get(name as usize) {
            Some((Some(domain), text)) => format!("{domain}:{text}"),
            Some((None, text)) => text.to_string(),
            None => String::new(),
        }
    }
}
