//! Notes about a report: nsys's own warnings, and reasons for missing kernels.

use super::calls::RUNTIME;
use super::target::Target;
use crate::import::ImportError;
use crate::import::sqlite::db::Db;
use crate::model::{CallKind, CaptureRange, GraphMode, LaunchOrder, Note, NoteKind, Profile, Severity, units};
use rustc_hash::FxHashMap;

/// nsys's diagnostics: warnings and errors become notes; other messages contain information about what started the
/// capture.
#[derive(Debug, Default)]
pub struct Diagnostics {
    /// Warnings and errors; identical messages are combined into one note with a count.
    pub notes: Vec<Note>,
    /// Text of each message.
    texts: Vec<String>,
    /// True if a process had already been instrumented when the capture began.
    late: bool,
}

/// Messages of an nsys that could not trace CUDA.
const FAILED: [&str; 4] =
    [NEEDS_ROOT, "CUDA injection initialization failed", "Cannot initialize CUDA event collection", "CUDA profiling stopped unexpectedly"];
const NEEDS_ROOT: &str = "CUDA trace requires target process to be launched as root";

impl Diagnostics {
    /// Reads the table `DIAGNOSTIC_EVENT`.
    pub fn read(db: &Db, epoch: Option<i64>) -> Result<Self, ImportError> {
        let mut out = Self::default();
        let mut counted: Vec<(Severity, String, u64)> = Vec::new();
        let mut known: FxHashMap<(bool, String), usize> = FxHashMap::default();
        for row in db.read_rows("DIAGNOSTIC_EVENT", &["severity", "text", "timestamp"])? {
            let [severity, Some(text), timestamp] = &row[..] else {
                continue;
            };
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            // Time 0 is the start of the capture. With nsys 2025.3, times before a capture that was started by
            // cudaProfilerStart, an NVTX range or a delay are negative. Absolute times are compared with the start of
            // the session.
            let time = timestamp.as_deref().and_then(|t| t.parse::<i64>().ok());
            let before = time.is_some_and(|t| t < 0 || epoch.is_some_and(|e| t > e / 2 && t < e));
            out.late |= before && text.contains("CUDA injection initialized");
            out.texts.push(text.clone());
            // In nsys, ENUM_DIAGNOSTIC_SEVERITY_LEVEL is 1 info, 2 warning, 3 error, 4 verbose.
            let severity = match severity.as_deref() {
                Some("2") => Severity::Warning,
                Some("3") => Severity::Error,
                _ => continue,
            };
            let next = counted.len();
            let at = *known.entry((severity == Severity::Error, text.clone())).or_insert(next);
            match counted.get_mut(at) {
                Some((.., n)) => *n += 1,
                None => counted.push((severity, text, 1)),
            }
        }
        for (severity, text, n) in counted {
            let lost = ["Not all", "dropped", "lost", "buffer"].iter().any(|w| text.contains(w));
            let times = if n > 1 { format!(" (×{n})") } else { String::new() };
            let note = Note::new(severity, if lost { NoteKind::Lost } else { NoteKind::Tool }, format!("nsys: {text}{times}"));
            out.notes.push(if lost {
                note.with_fix("counts from this report are lower bounds; record a shorter span, or fewer event types")
            } else {
                note
            });
        }
        // Exports of old recordings have the messages only among their strings.
        if !db.has_table("DIAGNOSTIC_EVENT") {
            for row in db.read_rows("StringIds", &["value"])? {
                out.texts.extend(row.into_iter().flatten().filter(|t| FAILED.iter().any(|f| t.contains(f))));
            }
        }
        Ok(out)
    }

    fn has_text(&self, words: &str) -> bool {
        self.texts.iter().any(|t| t.contains(words))
    }

    /// Returns what started the capture, if nsys recorded it.
    pub fn capture_gate(&self) -> Option<CaptureRange> {
        // Accept "Profiling started due to cudaProfilerStart API …", but not "The cudaProfilerStart API was ignored …".
        let opens = |t: &&String| (t.contains("cudaProfilerStart") || t.contains("cuProfilerStart")) && !t.contains("ignored");
        if self.texts.iter().any(|t| opens(&t)) {
            return Some(CaptureRange::ProfilerApi);
        }
        if self.has_text("using NVTX trigger") {
            return Some(CaptureRange::Nvtx);
        }
        (self.late || self.has_text("Profiling started due to")).then_some(CaptureRange::Late)
    }
}

/// Adds notes about the whole report, most important first.
pub fn add_notes(profile: &mut Profile, db: &Db, target: &Target, diagnostics: Diagnostics) {
    let mut notes = Vec::new();
    if profile.launches.is_empty() {
        notes.push(why_empty(profile, db, target, &diagnostics));
    } else if !profile.graphs.is_empty() {
        notes.push(whole_graphs(profile, Severity::Warning));
    }
    match &profile.capture.gate {
        Some(CaptureRange::ProfilerApi) => notes.push(
            Note::new(
                Severity::Info,
                NoteKind::Gate,
                "The capture was opened by cudaProfilerStart: earlier launches are not in the report.",
            )
            .with_fix("launch numbers are valid for a re-run with `ncu --profile-from-start off`"),
        ),
        Some(CaptureRange::Nvtx) => notes.push(
            Note::new(Severity::Info, NoteKind::Gate, "The capture was opened by an NVTX range: earlier launches are not in the report.")
                .with_fix("launch numbers are valid for a re-run with `ncu --nvtx --nvtx-include RANGE`"),
        ),
        Some(CaptureRange::Delay(delay)) => {
            notes.push(Note::new(
                Severity::Info,
                NoteKind::Gate,
                format!("The capture began {delay} after the start of the program: launches before that are not in the report."),
            ));
        }
        Some(CaptureRange::Late) => notes.push(
            Note::new(
                Severity::Info,
                NoteKind::Gate,
                "The capture began after the program had started: earlier launches are not in the report.",
            )
            .with_fix("launch numbers count from the beginning of the capture (a delay, a hotkey or `nsys start`)"),
        ),
        None => {}
    }
    match profile.order {
        LaunchOrder::Partly(missing) => notes.push(Note::new(
            Severity::Info,
            NoteKind::Order,
            format!(
                "{} launches have no API call in the report; they are ordered by their start on the device.",
                units::format_grouped(missing)
            ),
        )),
        LaunchOrder::Device if !profile.launches.is_empty() => {
            notes.push(Note::new(
                Severity::Info,
                NoteKind::Order,
                "The report has no API calls for its launches; they are ordered by their start on the device.",
            ));
        }
        _ => {}
    }
    if !profile.shortened.is_empty() {
        let text = format!(
            "nsys shortened the names of {}: only their beginnings are known, and a re-run may select another kernel that begins so.",
            units::format_count(profile.shortened.len(), "kernel")
        );
        notes.push(Note::new(Severity::Warning, NoteKind::Guess, text).with_fix("record with nsys 2021.4 or newer"));
    }
    notes.append(&mut profile.notes);
    let gated = profile.capture.gate.is_some();
    notes.extend(diagnostics.notes.into_iter().map(|n| {
        if gated && ends_early(&n) {
            Note { severity: Severity::Info, kind: NoteKind::Tool, fix: Some(ENDS_EARLY.to_owned()), ..n }
        } else {
            n
        }
    }));
    // The sort is stable, so notes of the same severity stay in the order above.
    notes.sort_by_key(|n| std::cmp::Reverse(n.severity));
    profile.notes = notes;
}

/// Advice for nsys's message about a capture that ended before the program did.
const ENDS_EARLY: &str = "nsys says so of each capture that ends before the program: what came later is missing, nothing within it";

/// Returns true for nsys's message about a capture that ended before the program did.
fn ends_early(note: &Note) -> bool {
    note.text.starts_with("nsys: Not all ") && note.text.trim_end_matches('.').ends_with(" events might have been collected")
}

fn whole_graphs(profile: &Profile, severity: Severity) -> Note {
    let n = profile.graphs.len();
    Note::new(
        severity,
        NoteKind::Graphs,
        format!(
            "{n} CUDA graph launch{} traced as a whole: the kernels inside are not in the report.",
            if n == 1 { " was" } else { "es were" }
        ),
    )
    .with_fix("record again with `nsys profile --cuda-graph-trace=node …`")
}

/// Advice for a capture with calls but without records of a GPU.
const NEWER_NSYS: &str =
    "record with an nsys that is at least as new as the driver (`nvidia-smi` shows its CUDA version), and let the program exit normally";

/// Returns the most likely reason why a report has no kernels, and a fix.
fn why_empty(profile: &Profile, db: &Db, target: &Target, diagnostics: &Diagnostics) -> Note {
    let note = |text: String, fix: &str| Note::new(Severity::Error, NoteKind::Empty, text).with_fix(fix);
    if target.exporter.is_none() && db.table_count() <= 4 && db.has_table("StringIds") {
        return note(
            format!(
                "The export is incomplete ({} tables): an older nsys could not read the newer report and left this behind.",
                db.table_count()
            ),
            "export the .nsys-rep again with the nsys version that recorded it, or a newer one",
        );
    }
    if !profile.graphs.is_empty() {
        return whole_graphs(profile, Severity::Error);
    }
    let cuda_off = target.capture_option("COLLECT_CUDA_TRACE") == Some("false")
        || (!target.event_types.is_empty() && !target.event_types.iter().any(|t| t == "Cuda"));
    if cuda_off {
        return note("CUDA was not traced in this capture.".to_owned(), "record again with `nsys profile --trace=cuda,nvtx …`");
    }
    if diagnostics.has_text("dropped") {
        return note("No kernels: nsys dropped events.".to_owned(), "record a shorter span with `--duration` or a capture range");
    }
    if diagnostics.has_text(NEEDS_ROOT) {
        return note(
            "CUDA was not traced: here nsys can only trace a program that runs as root.".to_owned(),
            "record again with `sudo nsys profile …`",
        );
    }
    if let Some(text) = diagnostics.texts.iter().find(|t| FAILED.iter().any(|f| t.contains(f))) {
        return note(
            format!("CUDA was not traced: nsys could not start it (“{}”).", text.trim_end_matches('.')),
            "check the driver and this nsys with `nsys status -e` and `warpscope doctor`; an nsys that is at least as new as the driver may do",
        );
    }
    let launched =
        profile.calls.names.iter().filter(|n| matches!(n.kind, CallKind::Launch | CallKind::GraphLaunch)).map(|t| t.count).sum::<u64>();
    if launched > 0
        && target.capture.graphs == Some(GraphMode::Graph)
        && profile.calls.names.iter().any(|n| n.kind == CallKind::GraphLaunch)
    {
        return note(
            "CUDA graphs were launched and traced as a whole: the kernels inside are not in the report.".to_owned(),
            "record again with `nsys profile --cuda-graph-trace=node …`",
        );
    }
    if launched > 0 {
        return note(
            format!(
                "The program launched {launched} kernels, but nsys got no GPU records: its CUPTI is older than the driver's CUDA, or the platform (WSL2, some containers) hides them."
            ),
            NEWER_NSYS,
        );
    }
    let copied = profile.calls.names.iter().filter(|n| matches!(n.kind, CallKind::Copy | CallKind::Set)).map(|t| t.count).sum::<u64>();
    if copied > 0 && profile.memops.is_empty() {
        let times = units::format_count(copied, "time");
        return note(
            format!(
                "The program copied or set memory {times}, but nsys got no GPU records: its CUPTI is older than the driver's CUDA, or the platform (WSL2, some containers) hides them."
            ),
            NEWER_NSYS,
        );
    }
    let late = target.options.get("START_TRIGGER").is_some_and(|t| t != "Immediate") || profile.capture.gate.is_some();
    if late {
        return note(
            "The capture did not begin with the program, and no kernel was launched while it was open.".to_owned(),
            "check what opens it (`--capture-range`, `--delay`): cudaProfilerStart must be called, or the NVTX range must be pushed with a registered string (else NSYS_NVTX_PROFILER_REGISTER_ONLY=0)",
        );
    }
    if db.has_table(RUNTIME) && diagnostics.has_text("Not all CUDA events") {
        return note(
            "The program called CUDA, but what it launched was lost: it was stopped early, or a process exited without running its exit handlers (_exit, SIGKILL).".to_owned(),
            "let every process exit normally, forked children too, or call cudaProfilerStop before they exit",
        );
    }
    if db.has_table(RUNTIME) {
        let text = match profile.memops.len() {
            0 => "The program called CUDA but launched no kernel while it was recorded.".to_owned(),
            n => format!("The program launched no kernel while it was recorded, only {} memcpys and memsets.", units::format_grouped(n)),
        };
        return note(text, "record a longer part of it, or the part that computes");
    }
    let forked = target.options.get("TRACE_AFTER_FORK_BEFORE_EXEC").map(String::as_str) == Some("false");
    if diagnostics.has_text("CUDA profiling might have not been started correctly") || diagnostics.has_text("No CUDA events collected") {
        let text = "nsys was attached to the program but saw no CUDA in it: it used none, or a child that was forked without exec did.";
        return note(
            text.to_owned(),
            if forked {
                "record again with `nsys profile --trace-fork-before-exec=true …`"
            } else {
                "check that the program uses the GPU"
            },
        );
    }
    note(
        "No work of a GPU was recorded in this capture.".to_owned(),
        if forked {
            "if that is unexpected: `--trace-fork-before-exec=true` follows children that fork without exec (Python multiprocessing)"
        } else {
            "check that the command in the capture is the one that computes"
        },
    )
}
