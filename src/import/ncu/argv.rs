//! ncu's own command line: which program it ran, and whether it was told to leave launches out.
//!
//! A report keeps it as one line: words joined by blanks, nothing quoted.

/// Options without a value.
const FLAGS: [&str; 22] = [
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
    "--print-summary-none",
    "--mps",
    "--range-replay-options-none",
    "--suppress-unsupported",
    "--forward-signals",
];

/// Options with a value.
const VALUED: [&str; 62] = [
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
];

/// Options with which ncu leaves launches out.
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

/// Whether ncu was told to leave launches out; `None` when its command line is not in the report.
#[must_use]
pub fn chooses(argv: &[String]) -> Option<bool> {
    let words = argv.get(1..).filter(|_| !argv.is_empty())?;
    let option = |word: &String| {
        let name = word.split('=').next().unwrap_or(word);
        // `-c5` is an option with its value.
        let short = !word.starts_with("--") && CHOOSING.iter().any(|c| c.len() == 2 && word.starts_with(c));
        CHOOSING.contains(&name) || short
    };
    // What the program's own arguments look like is not known: one that looks like a filter only makes us more careful.
    Some(words.iter().any(option))
}

/// The program and its arguments: what comes after the options; `None` when an option is not known.
#[must_use]
pub fn program(argv: &[String]) -> Option<Vec<String>> {
    let mut words = argv.get(1..)?.iter();
    loop {
        let rest = words.as_slice();
        let word = words.next()?;
        if !word.starts_with('-') {
            return Some(rest.to_vec());
        }
        if word.starts_with("--") && word.contains('=') || FLAGS.contains(&word.as_str()) {
            continue;
        }
        if VALUED.contains(&word.as_str()) {
            words.next()?;
        } else if word.len() > 2 && VALUED.iter().any(|v| v.len() == 2 && word.starts_with(v)) {
            // `-c5`
        } else {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn filters_are_told_from_other_options() {
        assert_eq!(chooses(&[]), None);
        for (line, want) in [
            ("ncu --set full -o report ./app", false),
            ("ncu --kernel-name-base demangled -f ./app", false),
            ("ncu -k regex:x ./app", true),
            ("ncu --launch-count=3 ./app", true),
            ("ncu -c3 ./app", true),
        ] {
            assert_eq!(chooses(&argv(line)), Some(want), "{line}");
        }
    }

    #[test]
    fn the_program_comes_after_the_options() {
        for (line, want) in [
            ("ncu --clock-control none -f --set basic --nvtx --nvtx-include a/ -c3 -o x python3 llm.py -k 2", Some("python3 llm.py -k 2")),
            ("ncu --set=full ./app", Some("./app")),
            ("ncu --no-such-option x ./app", None),
            ("ncu -f", None),
            ("ncu", None),
        ] {
            assert_eq!(program(&argv(line)).map(|p| p.join(" ")).as_deref(), want, "{line}");
        }
    }
}
