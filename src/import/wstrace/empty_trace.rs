//! Explains why a trace has no kernels, and suggests a fix. The explanation is derived from what the tracer recorded
//! about itself; if that is consistent with two reasons, it names both.

use super::key_values::Facts;
use super::rows::{Call, Rows};
use crate::launch::tracer::{NEW_CUPTI, OTHER_CUPTI, Refusal, explain_cuda_error, explain_cupti_error, explain_launch_error, is_profiler};
use crate::model::Nanos;
use crate::model::units::{format_count, format_grouped};
use rustc_hash::FxHashMap;

/// Why a process has no kernels in its trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absence {
    /// Priority: if several processes have no kernels, the reason with the lowest rank is reported.
    pub rank: u8,
    /// The reason, as a clause.
    pub why: String,
    /// Command or action that fixes the problem.
    pub fix: String,
}

fn absence(rank: u8, why: impl Into<String>, fix: impl Into<String>) -> Absence {
    Absence { rank, why: why.into(), fix: fix.into() }
}

/// Describes the Linux error number of a failed write.
pub fn why_stopped(error: u32) -> String {
    match error {
        28 => "the disk was full".to_owned(),
        122 => "the disk quota was used up".to_owned(),
        27 => "the file had reached the size that the system allows".to_owned(),
        5 => "the disk failed".to_owned(),
        other => format!("the file could not be written (error {other})"),
    }
}

/// Suggests a fix for a failed write, given its Linux error number.
fn mend_stopped(error: u32) -> &'static str {
    match error {
        27 => "raise the limit (`ulimit -f unlimited`), or record less: `--lean`, `--keep-last SECONDS`",
        _ => "free space, or name another place with `-o`",
    }
}

/// Reason why CUPTI was not available to a process, and what to do.
pub fn why_refused(end: &Facts) -> Option<(String, String)> {
    let said = end.get("not_recorded")?;
    let explained = end.number::<u32>("refusal").and_then(explain_cupti_error);
    Some(match (explained, end.get("unusable")) {
        (Some(refusal), _) => {
            let named = end.get("libcupti").filter(|_| refusal.fix == OTHER_CUPTI).map_or_else(String::new, |path| format!("; {path}"));
            (format!("{} ({}{named})", refusal.why, refusal.name), refusal.fix.to_owned())
        }
        (None, Some("missing" | "unloadable")) => (said.to_owned(), NEW_CUPTI.to_owned()),
        _ if said.contains("another thread") => {
            (said.to_owned(), "record it again; `--delay SECONDS` begins after its threads have started".to_owned())
        }
        // Older tracers recorded only a message, without an error number.
        _ if said.contains("another profiler") => {
            (said.to_owned(), explain_cupti_error(39).map_or("", |refusal: &Refusal| refusal.fix).to_owned())
        }
        _ => (said.to_owned(), OTHER_CUPTI.to_owned()),
    })
}

/// Calls of a process that launch kernels or load their code.
#[derive(Default)]
struct Launching {
    launches: u64,
    failed: u64,
    /// Name and result of the first call that failed.
    first: Option<(String, u32)>,
    built_graphs: bool,
    launched_graphs: bool,
}

impl Launching {
    fn of_process(rows: &Rows) -> Self {
        let mut out = Self::default();
        let mut names: FxHashMap<u32, &[u8]> = FxHashMap::default();
        let wanted = [&b"cuLaunch"[..], b"cuGraph", b"cuModuleLoad", b"cuLibraryLoad", b"cuLink"];
        for (number, text) in rows.strings.iter().filter(|(_, text)| wanted.iter().any(|begins| text.starts_with(begins))) {
            names.insert(*number, text);
        }
        let mut failed: Option<(bool, &Call, &[u8])> = None;
        for call in &rows.calls {
            let Some(name) = names.get(&call.name) else { continue };
            let is = |begins: &[u8]| name.starts_with(begins);
            let launches = is(b"cuLaunch") && !is(b"cuLaunchHostFunc") || is(b"cuGraphLaunch");
            out.built_graphs |= is(b"cuGraphInstantiate");
            out.launched_graphs |= is(b"cuGraphLaunch");
            out.launches += u64::from(launches);
            let fails = call.returned != 0 && (launches || !is(b"cuGraph") && !is(b"cuLaunch"));
            out.failed += u64::from(fails && launches);
            // A failed launch is more informative than a failed load, even if the load failed earlier.
            if fails && failed.is_none_or(|(by_load, first, _)| (!launches, call.start) < (by_load, first.start)) {
                failed = Some((!launches, call, name));
            }
        }
        out.first = failed.map(|(_, call, name)| (String::from_utf8_lossy(name).into_owned(), call.returned));
        out
    }

    /// Describes the failure if no launch succeeded.
    fn to_absence(&self) -> Option<Absence> {
        let (name, code) = self.first.as_ref().filter(|_| self.launches == self.failed)?;
        let what = match self.failed {
            // The failed load may be harmless, because frameworks also try to load code that they do not need.
            0 => format!("it launched no kernel, and {name} failed"),
            1 => "its only launch failed".to_owned(),
            n => format!("all of its {} failed, the first", format_count(n, "launch")),
        };
        let explained = explain_launch_error(*code);
        let with = explained.map_or_else(|| format!("with CUDA error {code}"), |r| format!("with {}: {}", r.name, r.why));
        let fix = explained.map_or("the program's own output, or `compute-sanitizer PROGRAM`, says why", |r| r.fix);
        Some(absence(6, format!("{what} {with}"), fix))
    }
}

impl Absence {
    /// Like [`Self::of_process`], for a file of which a part is lost: all other reasons are guesses.
    pub fn of_lost_part(rows: &Rows, why: &str) -> Option<Self> {
        let is_empty = rows.kernels.is_empty() && rows.graphs.is_empty();
        is_empty.then(|| absence(0, why, "copy the file again"))
    }

    /// Returns the reason why a process has no kernels; `None` if it has some. `cut` is true if the end of the trace is
    /// missing or incomplete; `unfinished` is true if CUPTI was still busy at the end.
    pub fn of_process(rows: &Rows, facts: &Facts, cut: bool, unfinished: bool) -> Option<Self> {
        if !rows.kernels.is_empty() || !rows.graphs.is_empty() {
            return None;
        }
        let last = rows.end.as_ref().or(rows.state.as_ref());
        let number = |key: &str| last.and_then(|f| f.number::<u64>(key)).unwrap_or(0);
        let code = |key: &str| last.and_then(|f| f.number::<u32>(key)).filter(|&code| code != 0);
        if let Some(error) = rows.stopped {
            return Some(absence(0, format!("recording stopped before the first one: {}", why_stopped(error)), mend_stopped(error)));
        }
        if let Some(code) = code("cuda_error") {
            return Some(match explain_cuda_error(code) {
                Some(refusal) => absence(1, refusal.to_clause(), refusal.fix),
                None => {
                    absence(1, format!("CUDA could not be initialized (cuInit: error {code})"), "`warpscope doctor` asks the driver itself")
                }
            });
        }
        if let Some(tool) = facts.get("executable").filter(|path| is_profiler(path)) {
            let name = tool.rsplit('/').next().unwrap_or(tool);
            return Some(absence(
                15,
                format!("it is {name}, which loads its own tool into the program, in place of the tracer"),
                format!("open the report of {name}, or record the program without {name}"),
            ));
        }
        let kept_ms = facts.number::<u64>("kept_ms").filter(|&ms| ms > 0);
        if let Some(ms) = kept_ms.filter(|_| rows.continuing > 0) {
            let why = format!(
                "none ran in the seconds that were kept, at least the last {}",
                Nanos(i64::try_from(ms).unwrap_or(0).saturating_mul(1_000_000))
            );
            return Some(absence(2, why, "save a snapshot while it works (`warpscope attach --snapshot`), or keep more (`--keep-last`)"));
        }
        if kept_ms.is_some() && (number("kernels") > 0 || last.is_none_or(|f| f.get("kernels").is_none())) {
            let why = "its kernels are in the files beside this one (NAME.PID.NUMBER.wstrace)";
            return Some(absence(2, why, "open their folder: `warpscope FOLDER`"));
        }
        if facts.get("cupti").is_none() && facts.get("graphs").is_none() {
            return Some(absence(
                20,
                "it did not use CUDA",
                "record the process that does; `warpscope doctor` says whether CUDA works here",
            ));
        }
        // Older tracers did not count how often recording was opened; for them, check for the `cupti` fact instead.
        let never = last.and_then(|f| f.number::<u64>("openings")).map_or(facts.get("cupti").is_none(), |n| n == 0);
        if let Some(gate) = facts.get("gate").filter(|_| never) {
            let (why, fix) = why_never_opened(gate, last);
            return Some(absence(3, why, fix));
        }
        if let Some(code) = code("kernel_error") {
            let refusal = explain_cupti_error(code);
            let why = refusal.map_or_else(|| format!("error {code}"), Refusal::to_clause);
            return Some(absence(4, format!("CUPTI refused to record kernels: {why}"), refusal.map_or(OTHER_CUPTI, |r| r.fix)));
        }
        if number("dropped") + number("refused") > 0 {
            let why = format!("CUPTI had no room for {}", format_count(number("dropped").max(number("refused")), "record"));
            return Some(absence(5, why, "free memory of the host, or record less: `--lean`, `--seconds SECONDS`"));
        }
        let launching = Launching::of_process(rows);
        if let Some(failed) = launching.to_absence() {
            return Some(failed);
        }
        if number("kernels") > 0 {
            let why = format!("{} of it were recorded, but cannot be read from this file", format_count(number("kernels"), "kernel"));
            return Some(absence(7, why, "copy the whole file again"));
        }
        if cut && !unfinished {
            let why = "until the trace breaks off, it launched none: it was killed, perhaps for lack of memory, or is still running";
            return Some(absence(8, why, "`dmesg` and the job's log say who killed a process"));
        }
        if launching.launches > 0 {
            let why = format!("CUPTI delivered no record of its {}", format_count(launching.launches, "launch"));
            return Some(if unfinished {
                absence(
                    9,
                    format!("{why}: the process ended while CUPTI was busy"),
                    "let it exit normally: not by _exit, or in a signal handler",
                )
            } else {
                absence(9, why, format!("`warpscope doctor` says whether CUPTI works here; else {OTHER_CUPTI}"))
            });
        }
        if let Some(gate) = facts.get("gate") {
            let (why, fix) = why_open_in_vain(gate, number("openings"), last);
            return Some(absence(10, why, fix));
        }
        if number("memops") > 0 || !rows.memops.is_empty() {
            let count = number("memops").max(rows.memops.len() as u64);
            let only = if count == 1 { "a memcpy or memset".to_owned() } else { format!("{} memcpys and memsets", format_grouped(count)) };
            let why = format!("it launched no kernel while it was recorded, only {only}");
            return Some(absence(11, why, "record the part that computes, or a longer one"));
        }
        if launching.built_graphs && !launching.launched_graphs {
            let why = "it launched no kernel while it was recorded: CUDA graphs were instantiated, and none was launched";
            return Some(absence(12, why, "record until the program launches one (cudaGraphLaunch)"));
        }
        let forks = number("forks");
        if forks > 0 {
            let why = format!(
                "it launched no kernel while it was recorded, unless a child of fork did ({}), which cannot use its parent's CUDA and is not recorded",
                format_count(forks, "fork")
            );
            let fix = "start children with spawn, such as with `multiprocessing.set_start_method(\"spawn\")`";
            return Some(absence(13, why, fix));
        }
        let why = "it launched no kernel while it was recorded";
        Some(absence(14, why, "record the part that computes: with other arguments, or for longer"))
    }
}

/// Explains why a recording has no kernels although it was opened, and suggests a fix. `gate` is the capture range in
/// the form passed to the tracer.
fn why_open_in_vain(gate: &str, openings: u64, last: Option<&Facts>) -> (String, &'static str) {
    let open = format!("no kernel was launched while its recording was open ({})", format_count(openings, "time"));
    match gate.split([':', '#']).next().unwrap_or(gate) {
        "profiler" => (
            "no kernel was launched between cudaProfilerStart and cudaProfilerStop".to_owned(),
            "call cudaProfilerStart before the first launch that is to be recorded, or record without `--profiler-api`",
        ),
        "nvtx" => {
            let entered = last.and_then(|f| f.number::<u64>("range_entered")).unwrap_or(openings);
            let (_, name) = split_range(gate);
            (
                format!("no kernel was launched inside the range `{name}`, which was entered {}", format_count(entered, "time")),
                "record without `--range`, and `warpscope ranges` shows the ranges that launch kernels",
            )
        }
        // If only a time limit was set, the gate has no name.
        "for" | "" => (open, "record longer with `--seconds`, or later with `--delay`"),
        "after-ms" => (open, "name another `--delay`, or a longer `--seconds`"),
        "overhead" => (open, "record the program as a whole, without `--overhead`"),
        "closed" => (open, "open it while the program launches kernels: `warpscope attach NAME --open`"),
        _ => (open, "record longer with `--seconds`, or without it"),
    }
}

/// Returns the number (empty if there is none) and the name of the range in an NVTX gate, which has the form
/// `nvtx:DOMAIN:NAME` or `nvtx#NTH:DOMAIN:NAME`.
fn split_range(gate: &str) -> (&str, &str) {
    let rest = gate.split_once([':', '#']).map_or("", |(_, rest)| rest);
    let (nth, place) = if gate.starts_with("nvtx#") { rest.split_once(':').unwrap_or((rest, "")) } else { ("", rest) };
    (nth, place.split_once(':').map_or(place, |(_, name)| name))
}

/// Explains why a recording was never opened, and suggests a fix. `gate` is the capture range in the form passed to the
/// tracer.
fn why_never_opened(gate: &str, last: Option<&Facts>) -> (String, &'static str) {
    let number = |key: &str| last.and_then(|f| f.number::<u64>(key)).unwrap_or(0);
    let (kind, rest) = gate.split_once([':', '#']).unwrap_or((gate, ""));
    match kind {
        "profiler" => (
            "cudaProfilerStart was never called, or in a program that loads PyTorch by a library that is linked statically with the CUDA \
             runtime, whose calls are not heard"
                .to_owned(),
            "call it where the recording is to begin, or record without `--profiler-api`",
        ),
        "nvtx" => {
            let (nth, name) = split_range(gate);
            match (number("range_entered"), number("ranges")) {
                (0, 0) => (
                    "the program marked no NVTX range".to_owned(),
                    "mark one, as with torch.cuda.nvtx.range_push, or use `--delay`, `--after-launches` or `--kernel`",
                ),
                (0, others) => (
                    format!("the range `{name}` was never entered, only {} of other names", format_count(others, "range")),
                    "record without `--range`, and `warpscope ranges` shows their names",
                ),
                (entered, _) => (
                    format!("the range `{name}` was entered {}, and `--nth {nth}` was asked for", format_count(entered, "time")),
                    "name a smaller number, or leave `--nth` out",
                ),
            }
        }
        "launch" => (
            format!("the kernel `{rest}` was never launched, among {}", format_count(number("launches_heard"), "launch")),
            "record without `--kernel`, and `warpscope top` shows the names",
        ),
        "launches" => (
            format!("the program made {}, and the recording was to begin after {rest}", format_count(number("launches_heard"), "launch")),
            "name a smaller number with `--after-launches`",
        ),
        "after-ms" => (
            format!("the program ended before {} had passed", Nanos::format_ns(rest.parse::<f64>().unwrap_or(0.0) * 1e6)),
            "name a shorter `--delay`",
        ),
        "overhead" => ("the program ended before its first moment".to_owned(), "record short programs as a whole, without `--overhead`"),
        _ => ("its recording was never opened".to_owned(), "open it with `warpscope attach NAME --open` while the program runs"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::wstrace::varint::Cursor;

    fn facts(all: &[(&str, &str)]) -> Facts {
        let text = |t: &str| [&[u8::try_from(t.len()).unwrap()], t.as_bytes()].concat();
        let bytes: Vec<u8> = all.iter().flat_map(|(key, value)| [text(key), text(value)].concat()).collect();
        Facts::read(&mut Cursor::new(&bytes)).unwrap()
    }

    /// The seconds that a rotated trace kept may be idle, or be in other files.
    #[test]
    fn idle_seconds_at_the_end_are_told_from_missing_files() {
        let facts = facts(&[("pid", "7"), ("kept_ms", "25000"), ("cupti", "0")]);
        let rows = |continuing| Rows { continuing, ..Rows::default() };
        let why = |rows: &Rows| Absence::of_process(rows, &facts, false, false).unwrap().why;
        assert_eq!(why(&rows(2)), "none ran in the seconds that were kept, at least the last 25.0 s");
        assert!(why(&rows(0)).contains("in the files beside this one"));
    }
}
