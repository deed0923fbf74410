//! Parses a profiler's command line, as stored in its report, into options and the profiled program.
//!
//! Nsight Compute stores one line: words separated by spaces, without quotes. An argument that contains a space
//! becomes two words, so the result is trusted only if the program matches the process name in the report.

/// Options that take no value.
const FLAGS: [&str; 19] = [
    "-f",
    "--force-overwrite",
    "--nvtx",
    "--csv",
    "--quiet",
    "--verbose",
    "--page-details",
    "--disable-profiler-start-stop",
    "--disable-extra-suffixes",
    "--null-stdin",
    "--call-stack",
    "--native-include",
    "--open-in-ui",
    "--list-sections",
    "--pm-sampling-double-buffering",
    "--warp-sampling-double-buffering",
    "--lockstep-kernel-launch",
    "--suppress-unsupported",
    "--forward-signals",
];

/// Options that take a value.
const VALUED: [&str; 82] = [
    "-o",
    "--export",
    "--set",
    "--section",
    "--section-folder",
    "--section-folder-recursive",
    "--rule",
    "--apply-rules",
    "--metrics",
    "--import-source",
    "--source-folders",
    "--import-sass",
    "--clock-control",
    "--cache-control",
    "--replay-mode",
    "--app-replay-buffer",
    "--app-replay-match",
    "--app-replay-mode",
    "--range-replay-options",
    "--range-filter",
    "--graph-profiling",
    "--target-processes",
    "--target-processes-filter",
    "--support-32bit",
    "--kill",
    "--mode",
    "-p",
    "--port",
    "--max-connections",
    "--hostname",
    "--config-file",
    "--config-file-path",
    "--check-exit-code",
    "--injection-path-32",
    "--injection-path-64",
    "--preload-library",
    "--nvtx-include",
    "--nvtx-exclude",
    "--nvtx-push-pop-scope",
    "--devices",
    "--filter-mode",
    "-k",
    "--kernel-name",
    "--kernel-name-base",
    "--kernel-id",
    "--rename-kernels",
    "--rename-kernels-path",
    "--rename-kernels-export",
    "-c",
    "--launch-count",
    "-s",
    "--launch-skip",
    "--launch-skip-before-match",
    "--profile-from-start",
    "--pm-sampling-interval",
    "--pm-sampling-buffer-size",
    "--pm-sampling-max-passes",
    "--warp-sampling-interval",
    "--sampling-interval",
    "--log-file",
    "--print-summary",
    "--print-units",
    "--mps",
    "--call-stack-type",
    "--section-folder-restore",
    "--print-details",
    "--page",
    "--print-metric-name",
    "--print-metric-instances",
    "--print-kernel-base",
    "--print-nvtx-rename",
    "--print-fp",
    "--nvtx-rename",
    "--pipeline-boost-state",
    "--warp-sampling-max-passes",
    "--warp-sampling-buffer-size",
    "--communicator",
    "--communicator-shmem-num-peers",
    "--communicator-tcp-num-peers",
    "--lockstep-kernel-launch-timeout",
    "--kernel-regex",
    "--kernel-regex-base",
];

/// Options with which ncu profiles only some of the launches.
const CHOOSING: [&str; 16] = [
    "-k",
    "--kernel-name",
    "--kernel-id",
    "--kernel-regex",
    "-s",
    "--launch-skip",
    "--launch-skip-before-match",
    "-c",
    "--launch-count",
    "--nvtx-include",
    "--nvtx-exclude",
    "--range-filter",
    "--devices",
    "--profile-from-start",
    "--filter-mode",
    "--replay-mode",
];

/// A command line split into options with their values, and the program with its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// Full names of the options, in order, with their values.
    pub options: Vec<(&'static str, Option<String>)>,
    /// The program and its arguments.
    pub program: Vec<String>,
}

/// Resolves an option to its full name, and true if it takes a value. Accepts exact names and unambiguous prefixes.
fn resolve_option(word: &str) -> Option<(&'static str, bool)> {
    let all = || FLAGS.iter().map(|f| (*f, false)).chain(VALUED.iter().map(|v| (*v, true)));
    if let Some(found) = all().find(|(name, _)| *name == word) {
        return Some(found);
    }
    let mut begins = all().filter(|(name, _)| word.len() > 3 && word.starts_with("--") && name.starts_with(word));
    let found = begins.next()?;
    begins.next().is_none().then_some(found)
}

/// Parses a command line; `None` if an option is unknown or the program is missing.
pub fn parse_command_line(argv: &[String]) -> Option<CommandLine> {
    let mut out = CommandLine::default();
    let mut words = argv.get(1..)?.iter();
    loop {
        let rest = words.as_slice();
        let word = words.next()?;
        if !word.starts_with('-') {
            out.program = rest.to_vec();
            return Some(out);
        }
        if let Some((name, value)) = word.split_once('=').filter(|_| word.starts_with("--")) {
            out.options.push((resolve_option(name)?.0, Some(value.to_owned())));
        } else if let Some((name, valued)) = resolve_option(word) {
            let value = if valued { Some(words.next()?.clone()) } else { None };
            out.options.push((name, value));
        } else {
            // A short option with its value attached, such as `-c5`.
            let short = VALUED.iter().find(|v| v.len() == 2 && word.starts_with(**v) && !word.starts_with("--"))?;
            out.options.push((short, Some(word[2..].to_owned())));
        }
    }
}

impl CommandLine {
    /// Returns true if the options restrict which launches are profiled.
    pub fn filters_launches(&self) -> bool {
        self.options.iter().any(|(name, _)| CHOOSING.contains(name))
    }
}

/// Returns true if `program` names the executable of a process: `python3` matches `/usr/bin/python3.12`.
pub fn same_program(program: &str, process: &str) -> bool {
    let base = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let (program, process) = (base(program), base(process));
    !program.is_empty() && (process.starts_with(&program) || program.starts_with(&process) && !process.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn options_are_known_by_name_prefix_and_short_form() {
        for (line, chooses, program) in [
            ("ncu --set full -o report ./app", Some(false), "./app"),
            ("ncu --kernel-name-base demangled -f ./app -k other", Some(false), "./app -k other"),
            ("ncu -o app -k regex:x ./app", Some(true), "./app"),
            ("ncu --launch-count=3 ./app", Some(true), "./app"),
            ("ncu -c3 ./app", Some(true), "./app"),
            ("ncu --launch-c 3 ./app", Some(true), "./app"),
            ("ncu --mps client ./app", Some(false), "./app"),
            ("ncu --no-such-option x ./app", None, ""),
            // Ambiguous: the prefix of two options.
            ("ncu --launch 3 ./app", None, ""),
            ("ncu -f", None, ""),
            ("ncu", None, ""),
        ] {
            let parsed = parse_command_line(&argv(line));
            assert_eq!(parsed.as_ref().map(CommandLine::filters_launches), chooses, "{line}");
            assert_eq!(parsed.map(|p| p.program.join(" ")).unwrap_or_default(), program, "{line}");
        }
        let parsed = parse_command_line(&argv("ncu -s5 --launch-c=2 ./app")).unwrap();
        assert_eq!(parsed.options, [("-s", Some("5".to_owned())), ("--launch-count", Some("2".to_owned()))]);
    }

    #[test]
    fn programs_and_processes() {
        assert!(same_program("python3", "/usr/bin/python3.12") && same_program("./zoo", "/tmp/zoo"));
        assert!(!same_program("foo", "python3.12") && !same_program("", "x") && !same_program("x", ""));
    }
}
