//! The profilers that a run can start, one row each, with everything in which they differ.

use std::time::Duration;

/// Install folder of a tool: the newest version comes first, unless the unversioned path is preferred.
#[derive(Clone, Copy, Debug)]
pub struct Install {
    /// Folder that contains the versioned folders.
    pub base: &'static str,
    /// Prefix of the versioned folders' names.
    pub prefix: &'static str,
    /// Path of the executable inside a versioned folder.
    pub inside: &'static str,
    /// Path of the executable without a version.
    pub unversioned: &'static str,
    /// The unversioned path is a link to the version in use.
    pub unversioned_first: bool,
}

/// A profiler, and how it differs from the others.
pub struct Profiler {
    /// Name in recipes and in the library of runs; for external tools, also the name of the executable.
    pub name: &'static str,
    /// A separate program with its own version, rather than a part of this program or of the profiled one.
    pub external: bool,
    /// `doctor` checks that are relevant before a run.
    pub checks: &'static [&'static str],
    /// Options that name the report.
    pub output: &'static [&'static str],
    /// The output option may be followed by the program's own words: it belongs to a script between interpreter and
    /// program.
    pub script: bool,
    /// Arguments that print the supported options; empty if options are not checked.
    pub help: &'static [&'static str],
    /// Maximum silence after INT before the profiler is terminated.
    pub silence: Duration,
    /// Install folder that is not on PATH; nsys has several (see `locate_tools`).
    pub install: Option<Install>,
    /// Patterns for the files that it writes for an output name, whose macros (`%q{RANK}`, `%p`) may expand to
    /// anything.
    pub reports: fn(&str) -> Vec<String>,
}

const DISK: &[&str] = &["gpus", "disk"];

pub static PROFILERS: &[Profiler] = &[
    Profiler {
        name: "trace",
        external: false,
        checks: &["gpus", "cupti", "disk"],
        output: &["--output", "-o"],
        script: false,
        help: &[],
        silence: SILENT_LIMIT,
        install: None,
        reports: |output| vec![format!("{output}.wstrace"), format!("{output}.*.wstrace")],
    },
    Profiler {
        name: "nsys",
        external: true,
        checks: &["gpus", "nsys", "nsys-importer", "cpu-samples", "tmp", "disk"],
        output: &["--output", "-o"],
        script: false,
        help: &["profile", "--help"],
        silence: REPORTING_LIMIT,
        install: None,
        // The reports of repeated ranges are numbered.
        reports: |output| nvidia_reports(output, "nsys-rep", true),
    },
    Profiler {
        name: "ncu",
        external: true,
        checks: &[
            "gpus",
            "ncu",
            "ncu-chip",
            "counters",
            "container",
            "mig",
            "mps",
            "counter-holders",
            "other-processes",
            "ncu-lock",
            "tmp",
            "disk",
        ],
        output: &["--export", "-o"],
        script: false,
        help: &["--help"],
        silence: REPORTING_LIMIT,
        install: Some(Install {
            base: "/opt/nvidia/nsight-compute",
            prefix: "",
            inside: "ncu",
            unversioned: "/usr/local/cuda/bin/ncu",
            unversioned_first: false,
        }),
        reports: |output| nvidia_reports(output, "ncu-rep", false),
    },
    Profiler {
        name: "torch",
        external: false,
        checks: DISK,
        output: &["--trace"],
        script: true,
        help: &[],
        silence: SILENT_LIMIT,
        install: None,
        // One file per rank.
        reports: |output| vec![output.replace("{rank}", "*")],
    },
    Profiler {
        name: "rocprofv3",
        external: true,
        checks: &["gpus", "rocprofv3", "disk"],
        output: &[],
        script: false,
        help: &[],
        silence: SILENT_LIMIT,
        install: Some(Install {
            base: "/opt",
            prefix: "rocm-",
            inside: "bin/rocprofv3",
            // /opt/rocm is an optional link to the version in use.
            unversioned: "/opt/rocm/bin/rocprofv3",
            unversioned_first: true,
        }),
        reports: |output| {
            let plain = ["%pid%", "%rank%", "%hostname%"].iter().fold(output.to_owned(), |o, word| o.replace(word, "*"));
            vec![format!("{}*", plain.trim_end_matches('*'))]
        },
    },
];

/// Silence limit for nsys and ncu, which report their progress.
const REPORTING_LIMIT: Duration = Duration::from_secs(20);
/// PyTorch writes a trace in one silent call that takes 2.4 to 3.5 s per traced second (H200, torch 2.11, busy
/// programs), and rocprofv3 is also silent.
const SILENT_LIMIT: Duration = Duration::from_mins(10);

/// Returns a profiler by its name.
pub fn find_profiler(name: &str) -> Option<&'static Profiler> {
    PROFILERS.iter().find(|p| p.name == name)
}

/// Maximum silence of a profiler after INT.
pub fn silence_limit(name: &str) -> Duration {
    find_profiler(name).map_or(SILENT_LIMIT, |p| p.silence)
}

/// Returns patterns for the files that a profiler writes.
pub fn report_patterns(name: &str, output: &str) -> Vec<String> {
    find_profiler(name).map_or_else(|| vec![format!("{output}*")], |p| (p.reports)(output))
}

/// Patterns for the reports of nsys and ncu, in whose names `%` starts a macro.
fn nvidia_reports(output: &str, suffix: &str, numbered: bool) -> Vec<String> {
    let (folder, name) = output.rsplit_once('/').map_or(("", output), |(f, n)| (f, n));
    let name = name.strip_suffix(&format!(".{suffix}")).unwrap_or(name);
    // Anything may appear between the first and the last macro.
    let (mut head, mut tail, mut open) = (String::new(), String::new(), false);
    let mut rest = name;
    while let Some(at) = rest.find('%') {
        tail.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        rest = if let Some(after) = after.strip_prefix('%') {
            tail.push('%');
            after
        } else {
            if !open {
                head = std::mem::take(&mut tail);
            }
            tail.clear();
            open = true;
            after.strip_prefix("q{").and_then(|a| a.split_once('}')).map_or_else(|| after.get(1..).unwrap_or_default(), |(_, a)| a)
        };
    }
    tail.push_str(rest);
    let plain = if open { format!("{head}*{tail}") } else { tail };
    let whole = if folder.is_empty() { plain } else { format!("{folder}/{plain}") };
    let mut out = vec![format!("{whole}.{suffix}")];
    if numbered && !open {
        out.push(format!("{whole}.*.{suffix}"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn macros_in_names_match_anything() {
        assert_eq!(report_patterns("ncu", "/r/gemm-5"), ["/r/gemm-5.ncu-rep"]);
        assert_eq!(report_patterns("nsys", "/r/report"), ["/r/report.nsys-rep", "/r/report.*.nsys-rep"]);
        assert_eq!(report_patterns("nsys", "/r/r.%q{RANK}"), ["/r/r.*.nsys-rep"]);
        assert_eq!(report_patterns("nsys", "/r/r.%h.x.%p-%%"), ["/r/r.*-%.nsys-rep"], "any text between two macros");
        assert_eq!(report_patterns("ncu", "a%%b%p"), ["a%b*.ncu-rep"]);
        assert_eq!(report_patterns("rocprofv3", "/r/k-%pid%"), ["/r/k-*"]);
        assert_eq!(report_patterns("other", "/r/k"), ["/r/k*"]);
    }
}
