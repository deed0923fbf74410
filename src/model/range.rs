//! Ranges that a program or framework marked, as columns: a report may hold millions.

use super::collective::NcclCall;

pub use super::host_call::NONE;
use std::collections::BTreeMap;
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

/// Who marked a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RangeOrigin {
    #[default]
    Nvtx,
    /// An operator of a framework.
    Operator,
    /// A range that the program named through its framework (`record_function`, a profiler's step).
    Annotation,
    /// A function of Python.
    Python,
    Roctx,
    /// What a wave did, in a thread trace: of the GPU, not of the program.
    Wave,
    /// An instruction that a wave executed.
    Instruction,
}

impl RangeOrigin {
    /// Whether it is of the GPU: it encloses nothing that the program did.
    #[must_use]
    pub fn hardware(self) -> bool {
        matches!(self, Self::Wave | Self::Instruction)
    }
}

/// A value that a program attached to a range.
#[derive(Clone, Debug, PartialEq)]
pub enum Payload {
    Integer(i64),
    Unsigned(u64),
    Real(f64),
    Json(Arc<str>),
    /// Of NCCL's own ranges.
    Nccl(NcclCall),
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
    pub origin: RangeOrigin,
}

/// What PyTorch says of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operator {
    /// What it shares with the calls that it made; [`NONE`] where the trace does not say.
    pub external: u32,
    /// Joins a backward operator to its forward one; [`NONE`] where there is none.
    pub sequence: u32,
    /// Shapes and types of its inputs, as the trace has them: index into [`Ranges::texts`], [`NONE`] without.
    pub shapes: u32,
}

/// All ranges of a report, in file order. 26 bytes each; of NVTX with colours and categories 32, of operators 38.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    /// Distinct (domain, text) pairs. The default domain is `None`.
    pub names: Vec<(Option<Arc<str>>, Arc<str>)>,
    /// Distinct (process id, thread id) pairs.
    pub threads: Vec<(u32, u32)>,
    start: Vec<i64>,
    end: Vec<i64>,
    name: Vec<u32>,
    thread: Vec<u32>,
    kind: Vec<RangeKind>,
    origin: Vec<RangeOrigin>,
    /// ARGB; empty while none has one.
    color: Vec<u32>,
    /// Index into `categories` and 1; empty while none has one.
    category: Vec<u16>,
    /// Distinct categories, as their numbers or names.
    pub categories: Vec<Arc<str>>,
    /// Of the few ranges that have one.
    pub payloads: BTreeMap<u32, Payload>,
    /// Empty where ranges are no operators, else one for each.
    operators: Vec<Operator>,
    /// Texts that operators share.
    pub texts: Vec<Arc<str>>,
}

impl Ranges {
    #[must_use]
    pub fn len(&self) -> usize {
        self.start.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
    }

    pub fn reserve(&mut self, more: usize) {
        self.start.reserve(more);
        self.end.reserve(more);
        self.name.reserve(more);
        self.thread.reserve(more);
        self.kind.reserve(more);
        self.origin.reserve(more);
    }

    pub fn push(&mut self, range: Range) {
        self.start.push(range.start);
        self.end.push(range.end);
        self.name.push(range.name);
        self.thread.push(range.thread);
        self.kind.push(range.kind);
        self.origin.push(range.origin);
        // Columns that have begun go on.
        if !self.color.is_empty() {
            self.color.push(0);
        }
        if !self.category.is_empty() {
            self.category.push(0);
        }
    }

    /// Takes a time from all starts and ends; ranges that were never closed stay open.
    pub fn move_origin(&mut self, origin: i64) {
        let times = self.start.iter_mut().chain(self.end.iter_mut().filter(|e| **e < i64::MAX));
        times.for_each(|t| *t = t.saturating_sub(origin));
    }

    /// Colours the range that was added last, as ARGB.
    pub fn set_color(&mut self, color: u32) {
        self.color.resize(self.len(), 0);
        if let Some(last) = self.color.last_mut() {
            *last = color;
        }
    }

    /// Gives the range that was added last a category: an index into `categories`.
    pub fn set_category(&mut self, category: u16) {
        self.category.resize(self.len(), 0);
        if let Some(last) = self.category.last_mut() {
            *last = category.saturating_add(1);
        }
    }

    /// Says what the range that was added last was as an operator; ranges before it that were none say nothing.
    pub fn set_operator(&mut self, operator: Operator) {
        let none = Operator { external: NONE, sequence: NONE, shapes: NONE };
        self.operators.resize(self.len().saturating_sub(1), none);
        self.operators.push(operator);
    }

    /// The range in that row; one of no length where there is none.
    #[must_use]
    pub fn get(&self, row: usize) -> Range {
        let at = |column: &[u32]| column.get(row).copied().unwrap_or(NONE);
        Range {
            start: self.start.get(row).copied().unwrap_or_default(),
            end: self.end.get(row).copied().unwrap_or_default(),
            name: at(&self.name),
            thread: at(&self.thread),
            kind: self.kind.get(row).copied().unwrap_or(RangeKind::PushPop),
            origin: self.origin.get(row).copied().unwrap_or_default(),
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = Range> + Clone + '_ {
        (0..self.len()).map(|row| self.get(row))
    }

    /// ARGB, where the program gave one.
    #[must_use]
    pub fn color(&self, row: usize) -> Option<u32> {
        self.color.get(row).copied().filter(|&c| c != 0)
    }

    /// Whether they are what waves did, in a thread trace: all are then.
    #[must_use]
    pub fn hardware(&self) -> bool {
        !self.is_empty() && self.get(0).origin.hardware()
    }

    #[must_use]
    pub fn category(&self, row: usize) -> Option<&Arc<str>> {
        self.categories.get(usize::from(self.category.get(row)?.checked_sub(1)?))
    }

    #[must_use]
    pub fn operator(&self, row: usize) -> Option<Operator> {
        self.operators.get(row).copied()
    }

    /// Shapes and types of an operator's inputs.
    #[must_use]
    pub fn shapes(&self, row: usize) -> Option<&Arc<str>> {
        self.texts.get(self.operator(row)?.shapes as usize)
    }

    /// Whether they are a framework's operators, no NVTX.
    #[must_use]
    pub fn annotations(&self) -> bool {
        self.kind.first() == Some(&RangeKind::Annotation)
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

    /// Bytes that the columns take for each range.
    #[must_use]
    pub fn bytes_per_range(&self) -> usize {
        let plain = 8 + 8 + 4 + 4 + 1 + 1;
        let extra = |there: bool, bytes: usize| if there { bytes } else { 0 };
        plain
            + extra(!self.color.is_empty(), 4)
            + extra(!self.category.is_empty(), 2)
            + extra(!self.operators.is_empty(), size_of::<Operator>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: i64) -> Range {
        Range { start, end: start + 5, name: 0, thread: 0, kind: RangeKind::PushPop, origin: RangeOrigin::Nvtx }
    }

    #[test]
    fn what_few_ranges_have_costs_the_others_nothing() {
        let mut ranges = Ranges { names: vec![(None, "a".into())], categories: vec!["io".into()], ..Ranges::default() };
        ranges.push(range(1));
        assert_eq!(ranges.bytes_per_range(), 26);
        ranges.push(range(2));
        ranges.set_color(0xff00_ff00);
        ranges.push(range(3));
        ranges.set_category(0);
        let colors: Vec<_> = (0..3).map(|i| ranges.color(i)).collect();
        assert_eq!(colors, [None, Some(0xff00_ff00), None]);
        assert_eq!((ranges.category(1), ranges.category(2).map(|c| &**c)), (None, Some("io")));
        assert_eq!(ranges.iter().collect::<Vec<_>>(), [range(1), range(2), range(3)]);
        assert!(ranges.bytes_per_range() <= 40);
        let mut operators = Ranges { texts: vec!["[[2, 3]]".into()], ..Ranges::default() };
        operators.push(range(1));
        operators.push(range(2));
        operators.set_operator(Operator { external: 4, sequence: NONE, shapes: 0 });
        assert_eq!((operators.shapes(0), operators.shapes(1).map(|s| &**s)), (None, Some("[[2, 3]]")));
        assert!(operators.bytes_per_range() <= 40, "{}", operators.bytes_per_range());
    }
}
