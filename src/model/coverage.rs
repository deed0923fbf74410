//! Completeness of the recording: calls whose GPU work has no record in the report, and damaged records. Determined
//! when a report is read; the wording is defined here, so that all analyses describe losses in the same way.

use super::units::{format_count, format_grouped};
use super::{Nanos, Note, NoteKind, Severity, Vendor};
use std::sync::Arc;

/// GPU work that a call starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Work {
    Kernels,
    Graphs,
    Copies,
}

impl Work {
    pub const ALL: [Self; 3] = [Self::Kernels, Self::Graphs, Self::Copies];

    /// Stable name, for scripts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kernels => "kernels",
            Self::Graphs => "graphs",
            Self::Copies => "copies",
        }
    }

    /// Noun for a single call that starts this work.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Kernels => "kernel launch",
            Self::Graphs => "graph launch",
            Self::Copies => "copy call",
        }
    }
}

/// The part of a process's run in which calls have no GPU records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stretch {
    All,
    /// Only the end of the run.
    End,
    /// Several parts of the run.
    Parts,
}

impl Stretch {
    /// Stable name, for scripts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::End => "end",
            Self::Parts => "parts",
        }
    }
}

/// Calls of one process that start one kind of work, some of which have no GPU record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unrecorded {
    pub pid: u32,
    pub work: Work,
    /// Function that made most of the lost calls.
    pub name: Arc<str>,
    /// Number of calls that should have a GPU record.
    pub calls: u64,
    /// Number of calls without a GPU record.
    pub lost: u64,
    /// Threads that made the lost calls.
    pub threads: Vec<u32>,
    /// True if other threads of the process do have records.
    pub other_threads: bool,
    pub stretch: Stretch,
    /// Start of the first and of the last lost call, ns.
    pub first: i64,
    pub last: i64,
}

/// Missing and damaged records of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// True if host calls were read; otherwise, work without a record cannot be detected.
    pub calls: bool,
    /// Lost calls, by process and kind of work.
    pub unrecorded: Vec<Unrecorded>,
    /// Number of calls that start each kind of work, indexed like [`Work::ALL`]; counted only if some calls have no
    /// record.
    pub started: [u64; Work::ALL.len()],
    /// Number of kernels whose times are missing, negative or outside the run. These count as launches without a
    /// duration.
    pub untimed: u64,
    /// Number of memcpys and memsets whose times are missing, negative or outside the run. These are dropped.
    pub untimed_copies: u64,
    /// Number of kernels that overlapped a later kernel on the same stream and were truncated at its start.
    pub overrun: u64,
    /// Number of memcpys and memsets that were truncated for the same reason.
    pub overrun_copies: u64,
    /// Total time removed by truncation, ns.
    pub overrun_ns: i64,
}

/// Minimum share of calls without a record to be reported. Smaller shares are due to launches that failed or were
/// still running when the recording stopped.
const SAID: f64 = 0.01;
/// Share of missing records above which the recorded work is no longer representative of the run.
const HOLLOW: f64 = 0.05;
/// Maximum number of processes listed by name.
const MOST_NAMED: usize = 4;

impl Coverage {
    /// Number of lost calls that start this kind of work, and the total number of such calls.
    pub fn lost_calls(&self, work: Work) -> (u64, u64) {
        (self.unrecorded.iter().filter(|u| u.work == work).map(|u| u.lost).sum(), self.started[work as usize])
    }

    /// Share of lost calls for this kind of work, 0 to 1.
    pub fn lost_share(&self, work: Work) -> f64 {
        let (lost, calls) = self.lost_calls(work);
        lost as f64 / calls.max(1) as f64
    }

    fn reported_work(&self) -> impl Iterator<Item = Work> + '_ {
        // Copies may legitimately have no record (host to host, or zero bytes): only kernels and graphs prove a loss.
        [Work::Graphs, Work::Kernels].into_iter().filter(|&w| self.lost_calls(w).0 > 0 && self.lost_share(w) >= SAID)
    }

    /// Returns true if so many records are missing that idle time, limits and shares cannot be determined.
    pub fn is_inconclusive(&self) -> bool {
        self.reported_work().any(|w| self.lost_share(w) >= HOLLOW)
    }

    /// Describes the missing records in one sentence; `None` if their share is below the threshold.
    pub fn describe_losses(&self) -> Option<String> {
        let parts: Vec<String> = self.reported_work().map(|w| self.describe_work(w)).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    fn describe_work(&self, work: Work) -> String {
        let (lost, calls) = self.lost_calls(work);
        let of: Vec<&Unrecorded> = self.unrecorded.iter().filter(|u| u.work == work).collect();
        let have = if lost == 1 { "has" } else { "have" };
        let name = of.iter().max_by_key(|u| u.lost).map_or("", |u| &u.name);
        let what = match work {
            Work::Graphs => {
                format!("{} of {} ({name}) {have} no kernels in the report", format_grouped(lost), format_count(calls, work.noun()))
            }
            _ => format!("{} of {} {have} no record of a kernel", format_grouped(lost), format_count(calls, work.noun())),
        };
        format!("{what}{}", describe_spread(&of, lost, calls))
    }

    /// Advice on recording the missing work with the tool that created the report.
    pub fn recording_advice(&self, tool: &str, maker: Vendor) -> String {
        let graphs = self.reported_work().next() == Some(Work::Graphs);
        let processes = self.unrecorded.iter().any(|u| u.work != Work::Copies && u.stretch == Stretch::All)
            && self.unrecorded.iter().filter(|u| u.work != Work::Copies).map(|u| u.calls).sum::<u64>()
                < self.started[Work::Kernels as usize] + self.started[Work::Graphs as usize];
        let end = self.unrecorded.iter().filter(|u| u.work != Work::Copies).all(|u| u.stretch == Stretch::End);
        match (tool, maker) {
            (_, Vendor::Amd) if graphs => {
                "ROCm up to 7.2.1 drops the kernels under hipGraphLaunch: record with ROCm 7.2.2 or newer, or run without graphs"
            }
            (_, Vendor::Amd) => {
                "record all kernels of the run, without a filter, and not with ROCm 7.0.1, which is known to leave out whole streams"
            }
            ("nsys", _) if processes => {
                "record with `nsys profile --trace-fork-before-exec=true --cuda-graph-trace=node …` (vLLM and other programs start their workers by fork), and let every process exit normally"
            }
            ("nsys", _) if graphs => "record with `nsys profile --cuda-graph-trace=node …`",
            ("nsys", _) if end => "let every process exit normally, or call cudaProfilerStop before it exits; or record a shorter part",
            ("nsys", _) => {
                "record a shorter part, with an nsys that is at least as new as the driver (`nvidia-smi` shows its CUDA version), and let every process exit normally"
            }
            ("trace", _) => "record a shorter part",
            ("torch", Vendor::Nvidia) if end => "call torch.cuda.synchronize() before the profiler stops, and record fewer steps",
            ("torch", Vendor::Nvidia) => {
                "look for CUPTI errors in the program's output, record fewer steps, and let no other profiler use CUPTI at the same time"
            }
            _ => "record a shorter part, or with a newer version of the tool",
        }
        .to_owned()
    }

    /// Notes about missing and damaged records. `advice` says how to have the missing ones.
    pub fn notes(&self, advice: &str) -> Vec<Note> {
        let mut out = Vec::new();
        if let Some(sentence) = self.describe_losses() {
            let hollow = self.is_inconclusive();
            let hides = if hollow { ": what the GPU did then is not known, so idle time, limits and shares cannot be told" } else { "" };
            let severity = if hollow { Severity::Error } else { Severity::Warning };
            out.push(Note::new(severity, NoteKind::Lost, format!("{sentence}{hides}.")).with_fix(advice));
        }
        if self.untimed > 0 {
            let text = format!(
                "{} without valid times (missing, before their launch or outside the run): left out of all statistics of time.",
                format_count(self.untimed, "kernel")
            );
            out.push(Note::new(Severity::Warning, NoteKind::Damaged, text));
        }
        if self.untimed_copies > 0 {
            let text = format!("{} without valid times were left out.", format_copies(self.untimed_copies));
            out.push(Note::new(Severity::Warning, NoteKind::Damaged, text));
        }
        if self.overrun + self.overrun_copies > 0 {
            let (is, its) = if self.overrun + self.overrun_copies == 1 { ("is", "it was") } else { ("are", "they were") };
            let text = format!(
                "{} {is} recorded as running over later kernels of the same stream, which cannot be: {its} cut where the next one starts, by {} in all.",
                match (self.overrun, self.overrun_copies) {
                    (kernels, 0) => format_count(kernels, "kernel"),
                    (0, copies) => format_copies(copies),
                    (kernels, copies) => format!("{} and {}", format_count(kernels, "kernel"), format_copies(copies)),
                },
                Nanos(self.overrun_ns)
            );
            out.push(Note::new(Severity::Warning, NoteKind::Damaged, text));
        }
        out
    }
}

fn format_copies(n: u64) -> String {
    if n == 1 { "1 copy or set".to_owned() } else { format!("{} copies and sets", format_grouped(n)) }
}

/// Describes, as a suffix, the processes, thread or part of the run to which the lost calls belong.
fn describe_spread(of: &[&Unrecorded], lost: u64, calls: u64) -> String {
    if lost == calls && of.len() < 2 {
        return String::new();
    }
    if of.iter().all(|u| u.stretch == Stretch::All) {
        let named: Vec<String> = of.iter().take(MOST_NAMED).map(|u| u.pid.to_string()).collect();
        let more = if of.len() > MOST_NAMED { ", …" } else { "" };
        return format!(": all of {} ({}{more})", format_count(of.len(), "process"), named.join(", "));
    }
    let [one] = of else { return format!(", in {} processes", of.len()) };
    if one.stretch == Stretch::End {
        return format!(": all from {} on, to the end", Nanos(one.first));
    }
    match &one.threads[..] {
        [thread] if one.other_threads => format!(": those of thread {thread}"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(pid: u32, work: Work, lost: u64, calls: u64, stretch: Stretch) -> Unrecorded {
        Unrecorded {
            pid,
            work,
            name: "hipGraphLaunch".into(),
            calls,
            lost,
            threads: vec![pid],
            other_threads: false,
            stretch,
            first: 5_000_000,
            last: 9_000_000,
        }
    }

    fn ledger(unrecorded: Vec<Unrecorded>, started: [u64; 3]) -> Coverage {
        Coverage { calls: true, unrecorded, started, ..Coverage::default() }
    }

    #[test]
    fn one_wording_for_what_has_no_record() {
        for (coverage, sentence, hollow) in [
            (ledger(vec![], [0; 3]), None, false),
            (ledger(vec![row(1, Work::Kernels, 1, 2000, Stretch::Parts)], [2000, 0, 0]), None, false),
            (
                ledger(vec![row(1, Work::Kernels, 40, 2000, Stretch::End)], [2000, 0, 0]),
                Some("40 of 2,000 kernel launches have no record of a kernel: all from 5.00 ms on, to the end"),
                false,
            ),
            (
                ledger((2..=8).map(|pid| row(pid, Work::Kernels, 100, 100, Stretch::All)).collect(), [800, 0, 0]),
                Some("700 of 800 kernel launches have no record of a kernel: all of 7 processes (2, 3, 4, 5, …)"),
                true,
            ),
            (
                ledger(vec![row(1, Work::Graphs, 20, 20, Stretch::All)], [60, 20, 0]),
                Some("20 of 20 graph launches (hipGraphLaunch) have no kernels in the report"),
                true,
            ),
            (ledger(vec![row(1, Work::Copies, 20, 20, Stretch::All)], [0, 0, 20]), None, false),
        ] {
            assert_eq!(coverage.describe_losses().as_deref(), sentence);
            assert_eq!(coverage.is_inconclusive(), hollow, "{sentence:?}");
            assert_eq!(coverage.notes("").len(), usize::from(sentence.is_some()));
        }
    }

    #[test]
    fn the_remedy_is_the_tools() {
        let graphs = ledger(vec![row(1, Work::Graphs, 20, 20, Stretch::All)], [60, 20, 0]);
        let some = ledger(vec![row(1, Work::Kernels, 100, 100, Stretch::All)], [800, 0, 0]);
        let end = ledger(vec![row(1, Work::Kernels, 100, 800, Stretch::End)], [800, 0, 0]);
        for (coverage, tool, maker, says) in [
            (&graphs, "torch", Vendor::Amd, "7.2.2"),
            (&some, "torch", Vendor::Amd, "7.0.1"),
            (&some, "nsys", Vendor::Nvidia, "--trace-fork-before-exec=true"),
            (&graphs, "nsys", Vendor::Nvidia, "--cuda-graph-trace=node"),
            (&end, "nsys", Vendor::Nvidia, "cudaProfilerStop"),
            (&end, "torch", Vendor::Nvidia, "synchronize"),
        ] {
            assert!(coverage.recording_advice(tool, maker).contains(says), "{tool} {says}");
        }
    }
}
