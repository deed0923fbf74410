//! Dispatches of a run that are not in its report, found by gaps in their numbers.

use super::rows::Rows;
use crate::model::coverage::{Stretch, Unrecorded, Work};
use crate::model::units::format_count;
use crate::model::{Coverage, Note, NoteKind, Profile, Severity};
use std::collections::BTreeMap;

/// Missing dispatches of one process that ran between recorded ones.
struct Hole {
    pid: u32,
    recorded: u64,
    lost: u64,
    /// End of the dispatch before the first of them, and start of the one after the last, ns.
    first: i64,
    last: i64,
}

/// Missing dispatches of a report.
pub struct MissingDispatches {
    /// All of them, including those before the first recorded one.
    total: u64,
    holes: Vec<Hole>,
}

impl MissingDispatches {
    /// Finds gaps in the sorted dispatch numbers, which start at 1 in each process. A report of dispatches that were
    /// chosen for their counters has none.
    pub fn from_rows(rows: &Rows) -> Self {
        let mut total = rows.durations.as_ref().map_or(0, |d| d.missing);
        if rows.chosen || rows.legacy {
            return Self { total, holes: Vec::new() };
        }
        let mut holes: BTreeMap<u32, Hole> = BTreeMap::new();
        // Number and end of the last dispatch of a process; dispatches are sorted by process and number.
        let mut last: Option<(u32, u64, i64)> = None;
        for d in rows.dispatches.iter().filter(|d| d.id > 0) {
            let before = last.filter(|l| l.0 == d.process);
            let lost = d.id.saturating_sub(before.map_or(0, |b| b.1).saturating_add(1));
            total = total.saturating_add(lost);
            let pid = rows.processes.get(d.process as usize).map_or(0, |p| p.pid);
            let hole = holes.entry(d.process).or_insert(Hole { pid, recorded: 0, lost: 0, first: i64::MAX, last: i64::MIN });
            hole.recorded += 1;
            // Work that ran before the first recorded dispatch does not lie in the recorded time.
            if let Some((.., end)) = before.filter(|_| lost > 0) {
                hole.lost += lost;
                hole.first = hole.first.min(end);
                hole.last = hole.last.max(d.start);
            }
            last = Some((d.process, d.id, d.end));
        }
        Self { total, holes: holes.into_values().collect() }
    }

    /// Adds a note, and what is missing within the recorded time.
    pub fn add_to(self, profile: &mut Profile) {
        if self.total == 0 {
            return;
        }
        let (is, ids) = if self.total == 1 { ("is", "its dispatch id is") } else { ("are", "their dispatch ids are") };
        let count = format_count(usize::try_from(self.total).unwrap_or(usize::MAX), "kernel launch");
        let text = format!("{count} of the run {is} not in this report: {ids} missing.");
        profile.notes.push(Note::new(Severity::Warning, NoteKind::Lost, text));
        // If most launches have their calls, the calls say more exactly which have no record.
        let launches = &profile.launches;
        let called = (0..launches.len()).filter(|&row| launches.call(row).is_some()).count();
        if called * 2 <= launches.len() {
            add_holes(&mut profile.coverage, self.holes);
        }
    }
}

fn add_holes(coverage: &mut Coverage, holes: Vec<Hole>) {
    if holes.iter().all(|h| h.lost == 0) {
        return;
    }
    coverage.started[Work::Kernels as usize] = holes.iter().map(|h| h.recorded + h.lost).sum();
    coverage.unrecorded.extend(holes.into_iter().filter(|h| h.lost > 0).map(|h| Unrecorded {
        pid: h.pid,
        work: Work::Kernels,
        name: "dispatch".into(),
        calls: h.recorded + h.lost,
        lost: h.lost,
        threads: Vec::new(),
        other_threads: false,
        stretch: Stretch::Parts,
        first: h.first,
        last: h.last,
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::rocm::rows::{Dispatch, Process};
    use crate::model::Source;

    fn rows(ids: &[u64]) -> Rows {
        let dispatches = ids.iter().map(|&id| {
            let start = id.cast_signed() * 100;
            Dispatch { id, start, end: start + 10, ..Dispatch::default() }
        });
        Rows { processes: vec![Process { pid: 7, ..Process::default() }], dispatches: dispatches.collect(), ..Rows::default() }
    }

    #[test]
    fn only_dispatches_between_recorded_ones_leave_time_unknown() {
        let coverage = |ids: &[u64]| {
            let mut profile = Profile::new(Source::default());
            MissingDispatches::from_rows(&rows(ids)).add_to(&mut profile);
            let lost = profile.coverage.unrecorded.first().map(|u| (u.pid, u.lost, u.calls, u.first, u.last));
            (profile.notes.len(), lost)
        };
        assert_eq!(coverage(&[1, 2, 3]), (0, None));
        // The recording began later.
        assert_eq!(coverage(&[5, 6, 7]), (1, None));
        assert_eq!(coverage(&[5, 6, 10, 12]), (1, Some((7, 4, 8, 610, 1200))));
    }
}
