//! Options that the installed profiler supports, according to its own `--help`: new versions add and remove options.

use super::super::run_query;
use crate::launch::profiler::find_profiler;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Time that a profiler has to print its help.
const PATIENCE: Duration = Duration::from_secs(10);
/// If fewer options than this are found, the help was not parsed correctly.
const FEWEST: usize = 20;
/// Options without which a command would record something else, or nothing: if the profiler does not support one of
/// them, the command is not run.
const NEEDED: [&str; 30] = [
    "--capture-range",
    "--capture-range-end",
    "--nvtx-capture",
    "--trace",
    "--output",
    "--export",
    "--kernel-name",
    "--kernel-name-base",
    "--kernel-id",
    "--launch-skip",
    "--launch-count",
    "--nvtx",
    "--nvtx-include",
    "--range-filter",
    "--replay-mode",
    "--graph-profiling",
    "--profile-from-start",
    "--disable-profiler-start-stop",
    "--set",
    "--section",
    "--metrics",
    "--target-processes-filter",
    "--devices",
    "--filter-mode",
    "--nvtx-exclude",
    "--nvtx-push-pop-scope",
    "--gpu-metrics-device",
    "--cuda-memory-usage",
    "--python-backtrace",
    "--python-sampling",
];

/// Index of the report's name in a command (possibly a launcher, then the profiler and its options, then `program`
/// words of the program). Only the profiler's own options count, because options of the launcher and the program may
/// look the same.
pub fn report_name_index(argv: &[String], program: usize, tool: &str) -> Option<usize> {
    let profiler = find_profiler(tool).filter(|p| !p.output.is_empty())?;
    // The options of a script between the interpreter and the program come first.
    let end = if profiler.script { argv.len() } else { argv.len().saturating_sub(program) };
    let is_tool = |w: &String| match tool {
        "torch" => w.ends_with(".torch.py"),
        // `warpscope trace`: this program, whatever its file name.
        "trace" => w == "trace",
        _ => Path::new(w).file_name().is_some_and(|n| n == tool),
    };
    let begin = argv.iter().take(end).position(is_tool)? + 1;
    let option = argv.get(begin..end)?.iter().position(|w| profiler.output.contains(&w.as_str()))? + begin;
    (option + 1 < argv.len()).then_some(option + 1)
}

/// Result of adapting a command's options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fitted {
    /// Options that were removed.
    pub dropped: Vec<String>,
    /// Required options that the profiler does not support.
    pub missing: Vec<String>,
}

/// Options in a profiler's help; `None` if the profiler does not answer, or not as expected.
pub fn known_options(tool: &Path, kind: &str) -> Option<BTreeSet<String>> {
    let arguments = find_profiler(kind).map(|p| p.help).filter(|a| !a.is_empty())?;
    let until = Instant::now() + PATIENCE;
    let mut out = BTreeSet::new();
    let hear = |line: &str| out.extend(options_in_line(line).map(str::to_owned));
    let ended = run_query(Command::new(tool).args(arguments), hear, || Instant::now() > until).ok()?;
    (!ended.cancelled && out.len() >= FEWEST).then_some(out)
}

/// Long options mentioned in a line.
fn options_in_line(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("--").filter_map(move |(at, _)| {
        let before = line[..at].chars().next_back();
        let rest = &line[at..];
        let len = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(rest.len());
        let fresh = before.is_none_or(|c| !c.is_alphanumeric() && c != '-');
        (fresh && len > 3 && rest.as_bytes()[2].is_ascii_lowercase()).then(|| rest[..len].trim_end_matches('-'))
    })
}

/// Removes the options that the profiler does not support from a command, which consists of the profiler, its options,
/// and the program with its arguments (the last `program` words).
pub fn drop_unknown_options(argv: &mut Vec<String>, program: usize, known: &BTreeSet<String>) -> Fitted {
    let mut out = Fitted::default();
    let mut end = argv.len().saturating_sub(program);
    let mut at = 1;
    while at < end {
        let word = argv[at].clone();
        let (name, attached) = word.split_once('=').map_or((word.as_str(), false), |(n, _)| (n, true));
        // Both profilers accept abbreviated options, but `--capture-range` does not abbreviate `--capture-range-end`.
        let is = |k: &String| k.strip_prefix(name).is_some_and(|rest| !rest.starts_with('-'));
        if !name.starts_with("--") || name.len() < 3 || known.iter().any(is) {
            at += 1;
            continue;
        }
        if NEEDED.contains(&name) {
            out.missing.push(name.to_owned());
            at += 1;
            continue;
        }
        let value = usize::from(!attached && at + 1 < end && !argv[at + 1].starts_with('-'));
        argv.drain(at..=at + value);
        end -= 1 + value;
        out.dropped.push(name.to_owned());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reports_name_is_the_profilers_own_word() {
        let at = |tool: &str, program: usize, line: &str| {
            let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
            report_name_index(&argv, program, tool).map(|i| argv[i].clone())
        };
        assert_eq!(at("ncu", 4, "ncu --export r python eval.py --output results").as_deref(), Some("r"));
        assert_eq!(at("ncu", 1, "srun --export ALL /opt/ncu --set basic --export r app").as_deref(), Some("r"));
        assert_eq!(at("nsys", 3, "nsys profile -o r app --output x").as_deref(), Some("r"));
        assert_eq!(at("nsys", 3, "nsys profile app --output x"), None);
        assert_eq!(at("torch", 2, "python3 /d/r.torch.py --seconds 60 --trace t train.py").as_deref(), Some("t"));
        assert_eq!(at("trace", 3, "/x/warpscope trace --lean --output r app -o x").as_deref(), Some("r"));
        assert_eq!(at("rocprofv3", 1, "rocprofv3 --output-file r -- app"), None);
    }

    #[test]
    fn help_names_options() {
        let line = "  -k [ --kernel-name ] arg (=x)   Use --kernel-name-base=function, not --x--y; see ---- and a--b.";
        assert_eq!(options_in_line(line).collect::<Vec<_>>(), ["--kernel-name", "--kernel-name-base", "--x--y"]);
    }

    #[test]
    fn unknown_settings_go_and_unknown_selections_stay() {
        let known = ["--trace", "--sample"].map(str::to_owned).into();
        let mut argv: Vec<String> =
            ["nsys", "profile", "--trace=cuda", "--new", "5", "--newer=1", "--kernel-id", "::f:1", "app", "--other"]
                .map(str::to_owned)
                .into();
        let fitted = drop_unknown_options(&mut argv, 2, &known);
        assert_eq!(fitted, Fitted { dropped: vec!["--new".into(), "--newer".into()], missing: vec!["--kernel-id".into()] });
        assert_eq!(argv, ["nsys", "profile", "--trace=cuda", "--kernel-id", "::f:1", "app", "--other"]);
    }
}
