//! Recordings of a folder that were made one after the other, which are read as one.

use super::rows::Rows;
use crate::model::units::format_count;
use crate::model::{Note, NoteKind, Severity};
use std::collections::BTreeMap;

/// Returns a note if processes of the report ran one after the other: they may be different recordings of a program, such
/// as a trace and passes over its counters, whose times add up to those of no run.
pub fn note_on_sequential_runs(rows: &Rows) -> Option<Note> {
    // First start and last end of the dispatches of each process.
    let mut spans: BTreeMap<u32, (i64, i64)> = BTreeMap::new();
    for d in rows.dispatches.iter().filter(|d| d.start > 0) {
        let span = spans.entry(d.process).or_insert((i64::MAX, i64::MIN));
        *span = (span.0.min(d.start), span.1.max(d.end));
    }
    let mut spans: Vec<(i64, i64)> = spans.into_values().collect();
    spans.sort_unstable();
    let (mut runs, mut until) = (0, i64::MIN);
    for (start, end) in spans {
        runs += usize::from(start > until);
        until = until.max(end);
    }
    (runs > 1).then(|| {
        let text = format!(
            "{} that were made one after the other are read as one: their counts and times add up.",
            format_count(runs, "recording")
        );
        Note::new(Severity::Warning, NoteKind::Guess, text).with_fix("open the files of one process to see one run")
    })
}

#[cfg(test)]
mod tests {
    use super::super::rows::Dispatch;
    use super::*;

    #[test]
    fn runs_that_do_not_overlap_are_counted() {
        let said = |spans: &[(u32, i64, i64)]| {
            let dispatches = spans.iter().map(|&(process, start, end)| Dispatch { process, start, end, ..Dispatch::default() }).collect();
            note_on_sequential_runs(&Rows { dispatches, ..Rows::default() }).map(|n| n.text)
        };
        assert_eq!(said(&[(0, 10, 20), (0, 90, 99)]), None);
        assert_eq!(said(&[(0, 10, 90), (1, 20, 95), (1, 96, 99)]), None, "two ranks of a job");
        let two = said(&[(0, 10, 20), (1, 30, 40), (1, 50, 60)]).unwrap();
        assert!(two.starts_with("2 recordings that were made one after the other"), "{two}");
        assert!(said(&[(2, 70, 80), (0, 10, 20), (1, 30, 40)]).unwrap().starts_with("3 recordings"));
        assert_eq!(said(&[(0, 10, 20), (1, 0, 0)]), None, "counters without times");
    }
}
