//! Explains how a run ended, based on the profilers' messages, exit codes and reports, and gives advice.

use super::program_errors::{explain_program_error, find_program_error};
use std::path::PathBuf;

/// A problem or a note, and its fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExitProblem {
    /// Description, one sentence.
    pub what: String,
    /// Advice; empty if there is nothing to do.
    pub fix: String,
}

fn finding(what: impl Into<String>, fix: impl Into<String>) -> ExitProblem {
    ExitProblem { what: what.into(), fix: fix.into() }
}

/// A message of a profiler (or of the system) with its meaning and fix. A line matches if it contains all `words`.
struct Message {
    words: &'static [&'static str],
    what: &'static str,
    fix: &'static str,
}

const fn message(words: &'static [&'static str], what: &'static str, fix: &'static str) -> Message {
    Message { words, what, fix }
}

/// More specific messages come first. The texts are those of ncu 2024.1.1 and 2025.3.1, nsys 2023.4.4 and 2025.3; those
/// about busy counters and about the backup in system memory are quoted from NVIDIA's forum.
static MESSAGES: &[Message] = &[
    message(
        &["ERR_NVGPUCTRPERM"],
        "this user has no permission to access the GPU performance counters",
        "run it as root (sudo -E env PATH=\"$PATH\" …), or have an administrator set `options nvidia NVreg_RestrictProfilingToAdminUsers=0` and reload the driver; in a container --cap-add=SYS_ADMIN; `warpscope doctor` shows which is missing",
    ),
    message(
        &["driver resource was unavailable"],
        "another tool is using the GPU performance counters",
        "pause DCGM with `dcgmi profile --pause` (afterwards --resume), or wait for the other ncu, or nsys with GPU metrics, to end",
    ),
    message(
        &["ailed to open/create lock file"],
        "ncu cannot write its lock file",
        "set TMPDIR to a folder of your own: on a shared machine another user's lock file may block yours",
    ),
    message(
        &["No space left on device"],
        "the disk is full",
        "free space, or put reports and temporary files elsewhere: -o PATH, and TMPDIR for what nsys collects before it writes the report",
    ),
    message(
        &["failed to connect to the CUDA driver"],
        "the program found no CUDA driver",
        "run this on the GPU machine; in a container start it with --gpus all; remove any stub libcuda.so from LD_LIBRARY_PATH",
    ),
    message(
        &["Cuda driver is not compatible with Nsight Compute"],
        "this ncu is too new for the driver",
        "use the ncu of the driver's CUDA release (nvidia-smi shows it), or update the driver",
    ),
    message(
        &["Failed to access the following metrics", "MIG"],
        "these metrics are not available on a MIG instance",
        "drop the sections that need them, or profile on a whole GPU",
    ),
    message(
        &["Failed to find metric"],
        "ncu does not support a metric on this GPU, and terminated the program",
        "`ncu --query-metrics` lists the names; recipes and re-runs of warpscope ask for sections instead",
    ),
    message(&["Option '--section", "did not match any section"], "this ncu has no such section", "`ncu --list-sections` lists them"),
    message(
        &["already exists. Use '-f'"],
        "the report already exists, and ncu does not overwrite it",
        "choose another name with -o, or remove it",
    ),
    message(
        &["Failed to create '", "File exists"],
        "the report already existed: nsys wrote it to the temporary folder instead",
        "choose another name with -o",
    ),
    message(
        &["Failed to create '"],
        "nsys could not write the report where it should be, and wrote it to the temporary folder instead",
        "check that the folder exists and is writable",
    ),
    message(
        &["does not exist or is not an executable"],
        "the program was not found",
        "check its path; `command -v PROGRAM` shows what the shell would run",
    ),
    message(
        &["Executable not found in current directory"],
        "the program was not found",
        "check its path; `command -v PROGRAM` shows what the shell would run",
    ),
    message(
        &["unrecognised option"],
        "this profiler does not support an option of the recipe",
        "it may be older than the recipe needs: `warpscope doctor` shows its version, `warpscope recipes` the options",
    ),
    message(
        &["unrecognized option"],
        "this profiler does not support an option of the recipe",
        "it may be older than the recipe needs: `warpscope doctor` shows its version, `warpscope recipes` the options",
    ),
    message(
        &["Illegal --trace argument"],
        "this nsys cannot trace one of the kinds asked for",
        "`nsys profile --help` lists what it can trace",
    ),
    message(
        &["Failed to read environment variable", "%q"],
        "the report's name needs a variable that is not set",
        "put the profiler between the launcher and the program, where the rank variable is set: recipe `rank`",
    ),
    message(&["No metrics to collect found in sections"], "ncu knows no section of that set", "`ncu --list-sets` lists the sets"),
    message(
        &["CUPTI_ERROR_MULTIPLE_SUBSCRIBERS"],
        "two profilers are using CUPTI at the same time",
        "take torch.profiler out of the program while nsys or ncu runs, or trace with torch alone: recipe `torch`",
    ),
    message(
        &["error while loading shared libraries"],
        "a library is missing",
        "install it, or add its folder to LD_LIBRARY_PATH; the nsys importer needs libdw1 and libelf1 (Debian and Ubuntu)",
    ),
    message(
        &["CUDA out of memory"],
        "the program ran out of GPU memory",
        "ncu needs room to save what a kernel writes: reduce the batch size, or use application replay (--replay-mode application)",
    ),
    message(
        &["Backing up device memory in system memory"],
        "the GPU's memory is too full to save what a kernel writes, so replay is slow",
        "reduce the batch size, or use --replay-mode application",
    ),
    message(
        &["No kernels were profiled"],
        "the program ran, but no kernel was profiled",
        "the filter matches no launch: check kernel name, skip and range, and that the program took the same path as before",
    ),
    message(
        &["No kernels were selected to profile"],
        "the program ran, but no kernel was profiled",
        "the filter matches no launch: check kernel name, skip and range, and that the program took the same path as before",
    ),
];

/// ncu's messages when no launch passed its filters.
const NOTHING: [&str; 2] = ["No kernels were profiled", "No kernels were selected to profile"];

/// Message that the tracer prints when a program ends without a recording (`empty_trace.c`).
const NOTHING_RECORDED: &str = "warpscope: nothing was recorded";
/// End of that message if the tracer does not know the reason.
const NO_REASON: &str = "`warpscope help trace` what keeps it out of a program";

/// Maximum number of lines kept for the explanation.
const MOST_LINES: usize = 40;

/// Collects the lines of a run that an explanation needs.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    /// Messages seen, by their index in the table, each with its line.
    seen: Vec<(usize, String)>,
    /// Other errors of the profiler, verbatim.
    errors: Vec<String>,
    /// First message of the program about CUDA, by its index in the table.
    no_cuda: Option<usize>,
    /// The tracer's own reason for an empty recording.
    nothing: Option<String>,
    /// The next lines contain the names of reports.
    names: bool,
    /// Reports that the profiler claims to have written.
    pub generated: Vec<PathBuf>,
}

impl Watch {
    /// Parses a complete output line.
    pub fn observe_line(&mut self, line: &str) {
        let text = line.trim();
        if text == "Generated:" {
            self.names = true;
            return;
        }
        if self.names {
            self.names = line.starts_with([' ', '\t']) && text.starts_with('/');
            if self.names {
                self.add_report(text);
                return;
            }
        }
        if let Some(path) = text.strip_prefix("==PROF== Report: ") {
            self.add_report(path);
            return;
        }
        if let Some(said) = text.strip_prefix(NOTHING_RECORDED).filter(|said| !said.ends_with(NO_REASON)) {
            let said = said.trim_start_matches(" so far").trim_start_matches(": ");
            self.nothing = self.nothing.take().or_else(|| Some(said.to_owned()));
        }
        self.no_cuda = self.no_cuda.or_else(|| find_program_error(text));
        let known = MESSAGES.iter().position(|m| m.words.iter().all(|w| text.contains(w)));
        if let Some(known) = known {
            if self.seen.iter().all(|s| s.0 != known) {
                self.seen.push((known, text.to_owned()));
            }
        } else if text.starts_with("==ERROR==") && self.errors.len() < MOST_LINES {
            self.errors.push(text.trim_start_matches("==ERROR==").trim().to_owned());
        }
    }

    /// Adds the name of a report. The program's own output may look similar: only names of reports count, up to a
    /// limit.
    fn add_report(&mut self, path: &str) {
        let path = PathBuf::from(path);
        let kind = path.extension().is_some_and(|e| ["nsys-rep", "ncu-rep", "qdrep", "sqlite"].iter().any(|k| e == *k));
        let plain = path.is_absolute() && path.components().all(|c| !matches!(c, std::path::Component::ParentDir));
        if kind && plain && self.generated.len() < MOST_LINES && !self.generated.contains(&path) {
            self.generated.push(path);
        }
    }

    /// Returns true if a message with these words was seen.
    fn has_seen(&self, words: &str) -> bool {
        self.seen.iter().any(|(i, _)| MESSAGES.get(*i).is_some_and(|m| m.words[0] == words))
    }
}

/// Exit code of the script that traces with PyTorch when torch is missing.
const NO_TORCH: i32 = 97;

/// Exit status of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    /// Exit code, unless the run was ended by a signal.
    pub code: Option<i32>,
    /// Signal that ended the run.
    pub signal: Option<i32>,
    /// A stop was requested.
    pub stopped: bool,
}

/// Explains how a run ended, starting with the cause; empty if there was no problem. `tool` is the profiler's name.
pub fn explain_exit(tool: &str, exit: Exit, watch: &Watch, reports: usize) -> Vec<ExitProblem> {
    let mut seen = watch.seen.clone();
    seen.sort_by_key(|s| s.0);
    // If something else failed, an empty profile is only a consequence.
    let follows = |m: &Message| NOTHING.contains(&m.words[0]);
    let messages: Vec<&Message> = seen.iter().filter_map(|(i, _)| MESSAGES.get(*i)).collect();
    let causes = messages.iter().any(|m| !follows(m));
    let mut out: Vec<ExitProblem> = messages.iter().filter(|m| !causes || !follows(m)).map(|m| finding(m.what, m.fix)).collect();
    if out.is_empty() {
        // Omit ncu's message about the program's exit code: the code below explains exit codes for all profilers.
        let own = |e: &&String| !e.starts_with("The application returned an error code");
        out.extend(watch.errors.iter().filter(own).take(3).map(|e| finding(format!("{tool} says: {e}"), "")));
    }
    let tool_failed = !out.is_empty() && reports == 0;
    // The tracer runs inside the program's process.
    let subject = if tool == "trace" { "the program" } else { tool };
    match (exit.signal, exit.code) {
        _ if exit.stopped => {
            let kept = if reports > 0 { "what was recorded until then is kept" } else { "no report was written" };
            out.push(finding(format!("the run was stopped; {kept}"), ""));
        }
        (Some(9), _) => out.push(finding(
            format!("{subject} was killed (signal 9)"),
            "most often the OOM killer or a limit of the batch system: `dmesg` and the job's log say which",
        )),
        (Some(signal), _) => out.push(finding(format!("{subject} was terminated by signal {signal}"), "")),
        (None, Some(127)) if reports == 0 => {
            out.push(finding(
                "the program was not found (exit code 127)",
                "check its path; `command -v PROGRAM` shows what the shell would run",
            ));
        }
        (None, Some(9)) if tool == "ncu" => {
            out.push(finding(
                "ncu terminated the program because metric collection failed (exit code 9)",
                "the log's last ==ERROR== says what failed",
            ));
        }
        (None, Some(NO_TORCH)) if tool == "torch" => {
            out.push(finding(
                "this Python has no torch",
                "give the path of the Python from the environment that the program usually runs in",
            ));
        }
        // Shells and nsys report that a program ended by signal N as 128 + N; the highest signal is 64.
        (None, Some(code)) if (129..=192).contains(&code) && !tool_failed => {
            out.push(finding(format!("the program was terminated by signal {} (exit code {code})", code - 128), program_fix(reports)));
        }
        (None, Some(code)) if code != 0 && !tool_failed => {
            out.push(finding(format!("the program exited with code {code}"), program_fix(reports)));
        }
        _ => {}
    }
    let gated = NOTHING.iter().any(|n| watch.has_seen(n));
    let program_said = watch.no_cuda.and_then(explain_program_error).filter(|_| reports == 0);
    if let Some((what, fix)) = program_said {
        out.insert(0, finding(what, fix));
    } else if reports == 0
        && tool == "trace"
        && !tool_failed
        && !exit.stopped
        && let Some(said) = &watch.nothing
    {
        out.push(match said.split_once("could hear; ") {
            Some((_, fix)) => finding("no process of the program used CUDA, so there is no trace", fix),
            None => {
                let (what, fix) = said.split_once("; ").unwrap_or((said, ""));
                finding(format!("nothing was recorded: {what}"), fix)
            }
        });
    } else if reports == 0 && tool == "trace" && !tool_failed && !exit.stopped {
        out.push(finding(
            "no process of the program used CUDA, so there is no trace",
            "is it the right program, and does CUDA find the GPU (`warpscope doctor`)? Programs of AMD GPUs are recorded with --tool rocprofv3, processes that a service starts (docker, kubectl) inside of it",
        ));
    }
    if reports == 0 && out.is_empty() && !gated {
        out.push(finding(
            format!("{tool} exited without an error but left no report"),
            "if the recording waits for a range or for cudaProfilerStart, it never happened: check the range's name, and that the program gets there",
        ));
    }
    out
}

fn program_fix(reports: usize) -> &'static str {
    if reports > 0 {
        "the report was written anyway; the last lines of the log say why the program failed"
    } else {
        "the last lines of the log say why"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(lines: &[&str]) -> Watch {
        let mut watch = Watch::default();
        for line in lines {
            watch.observe_line(line);
        }
        watch
    }

    fn code(code: i32) -> Exit {
        Exit { code: Some(code), ..Exit::default() }
    }

    #[test]
    fn reports_are_where_the_profiler_says() {
        let w = watch(&[
            "Generating '/tmp/x.qdstrm'",
            "Generated:",
            "    /tmp/a b.nsys-rep",
            "\t/tmp/c.sqlite",
            "Generated: nothing",
            "    /not/this",
        ]);
        assert_eq!(w.generated, [PathBuf::from("/tmp/a b.nsys-rep"), PathBuf::from("/tmp/c.sqlite")]);
        assert_eq!(watch(&["==PROF== Report: /x/r.ncu-rep"]).generated, [PathBuf::from("/x/r.ncu-rep")]);
    }

    #[test]
    fn each_end_has_its_reason() {
        let first =
            |tool: &str, exit, lines: &[&str], reports| explain_exit(tool, exit, &watch(lines), reports).first().map(|f| f.what.clone());
        assert_eq!(first("nsys", code(0), &[], 1), None);
        let permission = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the target device 0.";
        assert_eq!(first("ncu", code(1), &[permission], 0).unwrap(), "this user has no permission to access the GPU performance counters");
        assert_eq!(
            first("ncu", code(0), &["==WARNING== No kernels were profiled."], 0).unwrap(),
            "the program ran, but no kernel was profiled"
        );
        assert_eq!(first("nsys", code(0), &["Generated:"], 0).unwrap(), "nsys exited without an error but left no report");
        assert_eq!(first("nsys", code(3), &[], 1).unwrap(), "the program exited with code 3");
        assert_eq!(first("nsys", code(139), &[], 1).unwrap(), "the program was terminated by signal 11 (exit code 139)");
        assert_eq!(first("ncu", code(1), &["==ERROR== something new"], 0).unwrap(), "ncu says: something new");
        let stopped = Exit { code: Some(130), stopped: true, ..Exit::default() };
        assert_eq!(first("nsys", stopped, &[], 1).unwrap(), "the run was stopped; what was recorded until then is kept");
        assert_eq!(first("nsys", Exit { signal: Some(9), ..Exit::default() }, &[], 0).unwrap(), "nsys was killed (signal 9)");
        assert_eq!(first("trace", code(0), &[], 0).unwrap(), "no process of the program used CUDA, so there is no trace");
        assert_eq!(first("trace", Exit { signal: Some(9), ..Exit::default() }, &[], 1).unwrap(), "the program was killed (signal 9)");
        // The cause precedes the symptom, and each message appears only once.
        let both = explain_exit("ncu", code(1), &watch(&["==WARNING== No kernels were profiled.", permission, permission]), 0);
        assert_eq!(both.len(), 1);
        assert!(both[0].what.contains("counters") && !both[0].fix.is_empty());
    }

    #[test]
    fn messages_are_told_apart_by_their_words() {
        for (i, m) in MESSAGES.iter().enumerate() {
            let line = m.words.join(" … ");
            let first = MESSAGES.iter().position(|other| other.words.iter().all(|w| line.contains(w)));
            assert_eq!(first, Some(i), "{line}");
            assert!(!m.what.is_empty() && !m.fix.is_empty());
        }
    }
}
