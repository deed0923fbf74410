//! Notes about what is missing from a trace, and why.

use super::blocks::Damage;
use super::build::Section;
use super::empty_trace::{Absence, why_refused, why_stopped};
use crate::model::units::{format_count, format_grouped, format_percent};
use crate::model::{Activity, CaptureRange, GraphMode, Nanos, Note, NoteKind, Profile, Severity};

/// Parts missing from a trace.
#[derive(Clone, Copy, Debug, Default)]
pub struct Missing {
    pub damage: Damage,
    /// Number of missing blocks, based on gaps in the sequence numbers.
    pub blocks: u64,
    /// True if the first file of a process is missing.
    pub first: bool,
}

impl Missing {
    fn is_damaged(&self) -> bool {
        self.blocks > 0 || self.damage.passed > 0
    }
}

/// Completeness of the end of a trace, from best to worst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    /// The end is complete, or recording was off so that nothing was lost.
    #[default]
    There,
    /// The process exited before CUPTI had delivered all records.
    Unfinished,
    /// The end is incomplete: up to a tenth of a second is missing, or up to a second with older tracers, which wrote
    /// only once per second.
    Missing,
    MissingASecond,
}

/// Problems that the tracer itself reported.
#[derive(Debug, Default)]
pub struct Said {
    missing: Missing,
    damaged: u64,
    end: End,
    /// Reason why a process was not recorded, and what to do.
    refused: Option<(String, String)>,
    /// Reason why there are no kernels, if there are none.
    absence: Option<Absence>,
    /// OS error number of the failed write that ended the trace.
    stopped: Option<u32>,
    dropped: u64,
    refused_buffers: u64,
    invalid: u64,
    /// Number of NVTX events from signal handlers, and of rows, that the tracer itself dropped.
    interrupted: u64,
    unwritten: u64,
    /// Reason why requested counters were not measured.
    not_measured: Option<String>,
    /// Reason why stall reasons were not sampled, or why sampling stopped.
    not_sampled: Option<String>,
    /// Reason why no Python stacks were sampled although Python was running, and true if native ones were.
    no_stacks: Option<(String, bool)>,
    /// Reason why running threads have no native stacks.
    no_native_stacks: Option<String>,
    /// Number of records also received by another profiler in the program, and of records that this profiler had no
    /// room for.
    shared: u64,
    not_shared: u64,
    /// Length of the recording in ms, if only the most recent part was kept.
    kept: Option<u64>,
}

impl Said {
    fn is_damaged(&self) -> bool {
        self.damaged > 0 || self.missing.is_damaged()
    }

    pub fn from_sections(sections: &[Section], missing: Missing) -> Self {
        let mut out = Self { missing, end: if sections.is_empty() { End::Missing } else { End::There }, ..Self::default() };
        for Section { rows, facts } in sections {
            let last = rows.end.as_ref().or(rows.state.as_ref());
            let number = |key| last.and_then(|f| f.number(key)).unwrap_or(0);
            out.damaged += rows.damaged;
            // A snapshot is always complete.
            let shut = rows.state.as_ref().is_some_and(|f| f.get("settled") == Some("1"));
            let end = if rows.end.is_some() || facts.get("snapshot").is_some() || shut {
                if number("unfinished") > 0 { End::Unfinished } else { End::There }
            } else if rows.state.as_ref().is_some_and(|f| f.get("attached").is_some()) {
                End::Missing
            } else {
                End::MissingASecond
            };
            out.end = out.end.max(end);
            let absence = if missing.damage.torn > 0 {
                Absence::of_lost_part(rows, "the file is cut off before the first one")
            } else if (rows.damaged > 0 || missing.is_damaged()) && number("kernels") == 0 {
                Absence::of_lost_part(rows, "the damaged part of the file may have held them")
            } else {
                Absence::of_process(rows, facts, end != End::There, end == End::Unfinished)
            };
            out.absence = out.absence.take().into_iter().chain(absence).min_by_key(|a| a.rank);
            out.refused = out.refused.take().or_else(|| why_refused(rows.end.as_ref()?));
            out.stopped = out.stopped.or(rows.stopped);
            out.dropped += number("dropped");
            out.refused_buffers += number("refused");
            out.invalid += number("invalid");
            out.shared += number("shared");
            out.not_shared += number("not_shared");
            out.interrupted += number("interrupted");
            out.unwritten += number("unwritten");
            let not_measured = last.and_then(|f| f.get("not_measured")).map(str::to_owned);
            out.not_measured = out.not_measured.take().or(not_measured);
            let not_sampled = last.and_then(|f| f.get("not_sampled")).map(str::to_owned);
            out.not_sampled = out.not_sampled.take().or(not_sampled);
            let no_stacks = last.and_then(|f| f.get("no_python_stacks")).map(|why| (why.to_owned(), number("native") > 0));
            out.no_stacks = out.no_stacks.take().or(no_stacks);
            let no_native_stacks = last.and_then(|f| f.get("no_native_stacks")).map(str::to_owned);
            out.no_native_stacks = out.no_native_stacks.take().or(no_native_stacks);
            out.kept = facts.number("kept_ms").filter(|&ms| ms > 0).max(out.kept);
        }
        out
    }
}

/// Share of the records whose loss changes no figure by more than the variation between runs.
const FEW_LOST: f64 = 0.01;

/// Severity of the loss of some records, and its share in words if it is small.
fn severity_of_loss(lost: u64, recorded: usize) -> (Severity, String) {
    let share = lost as f64 / (lost as f64 + recorded as f64).max(1.0);
    if share < FEW_LOST {
        (Severity::Info, format!(" ({} of all)", format_percent(share * 100.0)))
    } else {
        (Severity::Error, String::new())
    }
}

pub fn build_notes(profile: &Profile, said: &Said) -> Vec<Note> {
    let mut out = Vec::new();
    let recorded = profile.launches.len() + profile.memops.len() + profile.graphs.len();
    if let Some((why, fix)) = &said.refused {
        out.push(Note::new(Severity::Error, NoteKind::Empty, format!("One process was not recorded: {why}.")).with_fix(fix));
    } else if let Some(Absence { why, fix, .. }) =
        said.absence.as_ref().filter(|_| profile.launches.is_empty() && profile.graphs.is_empty())
    {
        let text = format!("There are no kernels of this process: {why}.");
        out.push(Note::new(Severity::Warning, NoteKind::Empty, text).with_fix(fix));
    }
    let mut note = |severity, kind, text: String| out.push(Note::new(severity, kind, text));
    if let Some(error) = said.stopped {
        let text = format!("Recording stopped before the program ended: {}. Everything after that is missing.", why_stopped(error));
        note(Severity::Error, NoteKind::Lost, text);
    } else if said.end >= End::Missing && said.missing.damage.torn == 0 && !said.is_damaged() {
        let lost = if said.end == End::Missing { "tenth of a second" } else { "second" };
        let text = format!("The trace has no end: the program is still running, or it was killed and up to its last {lost} is lost.");
        note(Severity::Info, NoteKind::Lost, text);
    } else if said.end == End::Unfinished {
        let text = "The process ended while CUPTI was still busy, as after exit() in a signal handler: records that CUPTI had not \
                    handed out yet, usually those of the last second, are missing.";
        note(Severity::Warning, NoteKind::Lost, text.to_owned());
    }
    if said.missing.first {
        let text = "This is a part of a trace of which only the last seconds were kept. Names and launch configurations are in the file that the \
                    process began with (NAME.PID.wstrace), which is not beside it: copy it to the same folder. Here, kernels have no names.";
        note(Severity::Error, NoteKind::Part, text.to_owned());
    } else if said.missing.damage.torn > 0 {
        let text = "The file ends in the middle of a block: it was cut off, or its program was killed while it wrote the block. What would follow \
                    is missing: copy the file again.";
        note(Severity::Error, NoteKind::Damaged, text.to_owned());
    } else if said.is_damaged() {
        // A damaged block's number counts as missing, unless the block is the last one.
        let blocks = match said.damaged.max(said.missing.blocks) {
            0 => "some bytes".to_owned(),
            n => format_count(n as usize, "block"),
        };
        let text = format!("Part of the file is damaged: {blocks} could not be read, and the records in there are missing.");
        note(Severity::Error, NoteKind::Damaged, text);
    }
    if said.dropped + said.refused_buffers > 0 {
        let refused = if said.refused_buffers > 0 {
            format!(" (no more memory was given for buffers {} times)", said.refused_buffers)
        } else {
            String::new()
        };
        let dropped = usize::try_from(said.dropped).unwrap_or(usize::MAX);
        let (severity, share) = severity_of_loss(said.dropped, recorded);
        let severity = if said.refused_buffers > 0 { Severity::Error } else { severity };
        let text = format!("CUPTI had no room for {}{share}{refused}: counts are lower bounds.", format_count(dropped, "record"));
        note(severity, NoteKind::Lost, text);
    }
    if said.unwritten > 0 {
        let (severity, share) = severity_of_loss(said.unwritten, recorded);
        let records = format_count(said.unwritten, "record");
        let text = format!("The tracer left out {records}{share}: a thread ended, or was held up, while writing.");
        note(severity, NoteKind::Lost, text);
    }
    if said.interrupted > 0 {
        let text = format!(
            "{} from signal handlers could not be recorded: each interrupted the tracer on its own thread.",
            format_count(said.interrupted, "NVTX event")
        );
        note(Severity::Info, NoteKind::Lost, text);
    }
    if said.invalid > 0 {
        let text =
            format!("CUPTI gave no valid times for {}.", format_count(usize::try_from(said.invalid).unwrap_or(usize::MAX), "record"));
        note(Severity::Warning, NoteKind::Damaged, text);
    }
    if said.shared + said.not_shared > 0 {
        let lost =
            if said.not_shared > 0 { format!(", and had no room for {} more", format_grouped(said.not_shared)) } else { String::new() };
        let text = format!(
            "A profiler in the program (torch.profiler, for example) recorded, too: it received {}{lost}. Times include what it costs.",
            format_count(said.shared, "record"),
        );
        out.push(Note::new(Severity::Info, NoteKind::Tool, text));
    }
    for sample in &profile.run_samples {
        let text = format!(
            "The recording is a sample: {} of this process, at random times. Shares are those of these moments; `warpscope top` estimates the totals of each kernel.",
            format_count(sample.moments.len(), "short moment"),
        );
        out.push(Note::new(Severity::Info, NoteKind::Tool, text));
        if let Some(why) = &sample.stopped {
            let text = format!(
                "Nothing was recorded after the last of these moments, and launches are slower since: CUPTI cannot be left ({why})."
            );
            out.push(Note::new(Severity::Warning, NoteKind::Tool, text));
        }
    }
    if let Some(why) = &said.not_measured {
        let what = if profile.measured.is_some() { "Not all that was asked for was measured" } else { "Nothing was measured" };
        let fix = "`warpscope doctor` says what counters and stall reasons need";
        out.push(Note::new(Severity::Warning, NoteKind::Tool, format!("{what}: {why}.")).with_fix(fix));
    }
    if let Some(why) = &said.not_sampled {
        let fix = "`warpscope doctor` says what counters and stall reasons need";
        out.push(
            Note::new(Severity::Warning, NoteKind::Tool, format!("Stall reasons were not sampled, or sampling stopped early: {why}."))
                .with_fix(fix),
        );
    }
    if let Some((why, native)) = &said.no_stacks {
        let rest =
            if *native { "Native stacks were, which have the interpreter's functions." } else { "Lines of the program are not known." };
        out.push(Note::new(Severity::Info, NoteKind::Tool, format!("Python stacks were not sampled: {why}. {rest}")));
    }
    let runs_unknown = || profile.samples.samples.iter().any(|s| s.activity == Activity::Running && s.stack.is_none());
    if let Some(why) = said.no_native_stacks.as_ref().filter(|_| runs_unknown()) {
        let text = format!("Native stacks are only those of threads that wait, not of those that compute: {why}.");
        out.push(Note::new(Severity::Info, NoteKind::Tool, text).with_fix("`warpscope doctor` says what allows it"));
    }
    if profile.capture.graphs == Some(GraphMode::Graph) && !profile.graphs.is_empty() {
        let text = "CUDA graphs were recorded as a whole: the kernels inside are not listed.";
        out.push(Note::new(Severity::Warning, NoteKind::Graphs, text).with_fix("record without `--graphs whole` to see them"));
    }
    if let Some(ms) = said.kept {
        let text = format!(
            "Only the end of the run was kept, the last {} or a little more: earlier launches are not in it.",
            Nanos::format_ns(ms as f64 * 1e6)
        );
        out.push(Note::new(Severity::Info, NoteKind::Gate, text));
    } else if let Some(gate) = &profile.capture.gate {
        let (what, fix) = match gate {
            CaptureRange::ProfilerApi => {
                ("by cudaProfilerStart", Some("launch numbers are valid for a re-run with `ncu --profile-from-start off`"))
            }
            CaptureRange::Nvtx => {
                ("by an NVTX range", Some("launch numbers are valid for a re-run with `ncu --nvtx --nvtx-include RANGE`"))
            }
            _ => ("after the program had begun", None),
        };
        let gate = Note::new(Severity::Info, NoteKind::Gate, format!("The recording was opened {what}: earlier launches are not in it."));
        out.push(match fix {
            Some(fix) => gate.with_fix(fix),
            None => gate,
        });
    }
    out
}
