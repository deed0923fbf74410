//! Ranges marked by a program or a framework, stored in columns because a report may contain millions of them.

use super::collective::NcclCall;

pub use super::api_call::NONE;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Label of a range whose name is not in the report.
pub const UNNAMED: &str = "(unnamed range)";

/// Mechanism that created a range; determines which launches the range encloses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RangeKind {
    /// Push/pop range: belongs to one thread and can be nested.
    PushPop,
    /// Start/end range: belongs to the process and may overlap other ranges.
    StartEnd,
    /// Range of a framework: a PyTorch operator or `record_function`. Belongs to one thread and can be nested.
    /// Invisible to ncu, because it is not NVTX.
    Annotation,
}

/// Source of a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RangeOrigin {
    #[default]
    Nvtx,
    /// An operator of a framework.
    Operator,
    /// A range that the program named through its framework (`record_function`, or a step of the profiler).
    Annotation,
    Python,
    Roctx,
    /// Activity of a wave on the GPU, from a thread trace.
    Wave,
    /// An instruction executed by a wave.
    Instruction,
}

impl RangeOrigin {
    /// Returns true for activity on the GPU, which does not enclose host activity.
    pub fn is_hardware(self) -> bool {
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
    /// Payload of a range that NCCL itself creates.
    Nccl(NcclCall),
}

/// One range, as a row of [`Ranges`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// Nanoseconds since the session began.
    pub start: i64,
    /// End, ns; `i64::MAX` for a range that was still open when the capture ended.
    pub end: i64,
    /// Index into [`Ranges::names`].
    pub name: u32,
    /// Index into [`Ranges::threads`].
    pub thread: u32,
    pub kind: RangeKind,
    pub origin: RangeOrigin,
}

/// Operator attributes recorded by PyTorch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operator {
    /// External id, shared with the calls made by the operator; [`NONE`] if not in the trace.
    pub external: u32,
    /// Sequence number shared by a forward operator and its backward operator; [`NONE`] if not in the trace.
    pub sequence: u32,
    /// Shapes and types of the inputs: index into [`Ranges::texts`], or [`NONE`].
    pub shapes: u32,
}

/// All ranges of a report, in file order. A range takes 26 bytes; 32 for NVTX with colors and categories, 38 for
/// operators.
#[derive(Clone, Debug, Default)]
pub struct Ranges {
    /// Distinct (domain, name) pairs. The default domain is `None`.
    pub names: Vec<(Option<Arc<str>>, Arc<str>)>,
    /// Distinct (process id, thread id) pairs.
    pub threads: Vec<(u32, u32)>,
    start: Vec<i64>,
    end: Vec<i64>,
    name: Vec<u32>,
    thread: Vec<u32>,
    kind: Vec<RangeKind>,
    origin: Vec<RangeOrigin>,
    /// ARGB; empty if no range has a color.
    color: Vec<u32>,
    /// Index into `categories`, plus 1; empty if no range has a category.
    category: Vec<u16>,
    /// Distinct categories, each a name or number.
    pub categories: Vec<Arc<str>>,
    /// Payloads by row; only a few ranges have one.
    pub payloads: BTreeMap<u32, Payload>,
    /// One entry per range, up to the last operator; empty if no range is an operator.
    operators: Vec<Operator>,
    /// Strings shared by operators.
    pub texts: Vec<Arc<str>>,
}

impl Ranges {
    pub fn len(&self) -> usize {
        self.start.len()
    }

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
        // Optional columns are either empty or have an entry for every range.
        if !self.color.is_empty() {
            self.color.push(0);
        }
        if !self.category.is_empty() {
            self.category.push(0);
        }
    }

    /// Subtracts `origin` from all starts and ends; ranges that were never closed stay open.
    pub fn move_origin(&mut self, origin: i64) {
        let times = self.start.iter_mut().chain(self.end.iter_mut().filter(|e| **e < i64::MAX));
        times.for_each(|t| *t = t.saturating_sub(origin));
    }

    /// Sets the color of the last range, as ARGB.
    pub fn set_color(&mut self, color: u32) {
        self.color.resize(self.len(), 0);
        if let Some(last) = self.color.last_mut() {
            *last = color;
        }
    }

    /// Sets the category of the last range, as an index into `categories`.
    pub fn set_category(&mut self, category: u16) {
        self.category.resize(self.len(), 0);
        if let Some(last) = self.category.last_mut() {
            *last = category.saturating_add(1);
        }
    }

    /// Sets the operator of the last range; earlier ranges without an operator get an empty entry.
    pub fn set_operator(&mut self, operator: Operator) {
        let none = Operator { external: NONE, sequence: NONE, shapes: NONE };
        self.operators.resize(self.len().saturating_sub(1), none);
        self.operators.push(operator);
    }

    /// Returns the range at a row, or an empty range if there is no such row.
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

    /// Color as ARGB, if the program set one.
    pub fn color(&self, row: usize) -> Option<u32> {
        self.color.get(row).copied().filter(|&c| c != 0)
    }

    /// Returns true if the ranges are from a thread trace, where all of them are waves or instructions.
    pub fn is_hardware(&self) -> bool {
        !self.is_empty() && self.get(0).origin.is_hardware()
    }

    pub fn category(&self, row: usize) -> Option<&Arc<str>> {
        self.categories.get(usize::from(self.category.get(row)?.checked_sub(1)?))
    }

    pub fn operator(&self, row: usize) -> Option<Operator> {
        self.operators.get(row).copied()
    }

    /// Shapes and types of an operator's inputs.
    pub fn operator_shapes(&self, row: usize) -> Option<&Arc<str>> {
        self.texts.get(self.operator(row)?.shapes as usize)
    }

    /// Returns true if the ranges come from a framework rather than from NVTX, judging by the first one.
    pub fn has_annotations(&self) -> bool {
        self.kind.first() == Some(&RangeKind::Annotation)
    }

    /// Plural noun for these ranges, for display.
    pub fn noun(&self) -> &'static str {
        if self.has_annotations() { "operators" } else { "NVTX ranges" }
    }

    /// Name for display: `domain:name`, or just the name for the default domain.
    pub fn label(&self, name: u32) -> String {
        match self.names.get(name as usize) {
            Some((Some(domain), text)) => format!("{domain}:{text}"),
            Some((None, text)) => text.to_string(),
            None => String::new(),
        }
    }

    /// Memory that the columns use per range, bytes.
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
        assert_eq!((operators.operator_shapes(0), operators.operator_shapes(1).map(|s| &**s)), (None, Some("[[2, 3]]")));
        assert!(operators.bytes_per_range() <= 40, "{}", operators.bytes_per_range());
    }
}
