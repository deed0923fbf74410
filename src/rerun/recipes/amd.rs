//! Recipes for AMD GPUs with rocprofv3, which requires `--` before the program. The options follow its documentation
//! for `ROCm` 6.2 to 7; nothing was run on AMD hardware.

use super::pattern::Pattern;
use super::prepared::{Accepts, Place, Prepared, Wanted, part, program_part};
use super::recipe::{CommandBuilder, Recipe};
use crate::model::text::is_unsafe_to_show;
use crate::rerun::{CommandPart, PartId, shell};
use std::fmt::Write as _;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Job {
    /// Kernels and copies, with their times.
    Kernels,
    /// Kernels, copies and the runtime's API calls, for Perfetto.
    System,
    Counters,
    /// Thread trace: instructions of one compute unit over time.
    Threads,
    /// Trace, counters and thread trace, each from a job file.
    File,
}

/// Counters that both CDNA and RDNA have and that fit into one pass.
const COUNTERS: [&str; 2] = ["SQ_WAVES", "FETCH_SIZE"];
/// Buffer size per shader engine, bytes.
const BUFFER: &str = "0x6000000";

/// Returns rocprofv3's filters: a regular expression for the printed kernel name, and launch numbers per kernel,
/// 1-based.
fn kernel_filters(wanted: &Wanted) -> (Option<String>, Option<String>) {
    let regex = wanted.kernel.as_ref().map(|k| format!("^{}$", shell::escape_regex(k)));
    let first = wanted.skip.unwrap_or(0).saturating_add(1);
    let last = first.saturating_add(wanted.count.unwrap_or(1) - 1);
    let range = if first == last { format!("[{first}]") } else { format!("[{first}-{last}]") };
    (regex, Some(range))
}

fn filter_parts(wanted: &Wanted) -> Vec<CommandPart> {
    let (regex, range) = kernel_filters(wanted);
    let mut out = Vec::new();
    if let Some(regex) = regex {
        let why = "Only kernels of this name, as rocprofv3 prints it.";
        out.push(part(PartId::Name, &["--kernel-include-regex", &regex], why));
    }
    if let Some(range) = range {
        let why =
            "Which launches of each kernel, from 1; each kernel symbol of each code object and GPU is counted separately, in each process.";
        out.push(part(PartId::Which, &["--kernel-iteration-range", &range], why));
    }
    out
}

/// Formats a YAML scalar in single quotes, where only the quote itself is special. Strings with line breaks (which
/// would be folded into blanks) or control characters (not allowed in YAML) are escaped in double quotes instead.
fn quote_yaml(text: &str) -> String {
    if !text.contains(|c| is_unsafe_to_show(c) || matches!(c, '\u{fffe}' | '\u{ffff}')) {
        return format!("'{}'", text.replace('\'', "''"));
    }
    let letter = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        ' '..='~' => c.to_string(),
        c => format!("\\U{:08x}", u32::from(c)),
    };
    format!("\"{}\"", text.chars().map(letter).collect::<String>())
}

/// Returns one job file each for trace, counters and thread trace. They are separate files because `ROCm` 7.2.4 and
/// later drop jobs without counters if the file has others, and because kernels are serialized while counters are
/// collected, which would distort a trace.
fn job_files(folder: &str, stem: &str, wanted: &Wanted) -> [(String, String); 3] {
    let (regex, range) = kernel_filters(wanted);
    let mut filter = String::new();
    if let Some(regex) = regex {
        let _ = writeln!(filter, "    kernel_include_regex: {}", quote_yaml(&regex));
    }
    if let Some(range) = range {
        let _ = writeln!(filter, "    kernel_iteration_range: {}", quote_yaml(&range));
    }
    let place = |folder: &str| format!("    output_directory: {}\n", quote_yaml(folder));
    let here = format!("{}    output_file: {}\n", place(folder), quote_yaml(stem));
    let att = place(&format!("{folder}/{stem}.att"));
    let counters = COUNTERS.join(", ");
    [
        (
            format!("{stem}.trace.yaml"),
            format!(
                "jobs:\n  - kernel_trace: true\n    memory_copy_trace: true\n    hip_trace: true\n    marker_trace: true\n{here}    output_format: [json]\n"
            ),
        ),
        (format!("{stem}.counters.yaml"), format!("jobs:\n  - pmc: [{counters}]\n{filter}{here}    output_format: [csv]\n")),
        (
            format!("{stem}.att.yaml"),
            format!(
                "jobs:\n  - advanced_thread_trace: true\n    att_target_cu: 1\n    att_shader_engine_mask: '0x1'\n    att_simd_select: '0xF'\n    att_buffer_size: '{BUFFER}'\n{filter}{att}"
            ),
        ),
    ]
}

impl CommandBuilder for Job {
    fn prepare(&self, _id: &str, wanted: &Wanted, place: &Place<'_>) -> Result<Prepared, String> {
        prepare(*self, wanted, place)
    }

    /// rocprofv3 filters only counters and thread traces by kernels and launch numbers.
    fn accepts(&self) -> &'static [Accepts] {
        match self {
            Self::Counters | Self::Threads | Self::File => &[Accepts::Launches, Accepts::Kernel],
            Self::Kernels | Self::System => &[],
        }
    }
}

fn prepare(job: Job, wanted: &Wanted, place: &Place<'_>) -> Result<Prepared, String> {
    let stem = place.stem;
    if place.output.contains('%') {
        return Err(format!("{:?}: rocprofv3 expands text between percent signs and has no way to escape one", place.output));
    }
    let folder = place.folder.unwrap_or(".");
    let mut prepared = Prepared::default();
    let mut parts = vec![part(PartId::Tool, &["rocprofv3"], "AMD's profiler.")];
    let collect = |parts: &mut Vec<CommandPart>, words: &[&str], why: &str| parts.push(part(PartId::Collect, words, why));
    let csv = |name: &str| Pattern::exact(format!("{stem}_{name}.csv"));
    match job {
        Job::Kernels => {
            collect(
                &mut parts,
                &["--kernel-trace", "--memory-copy-trace", "--hip-trace", "--marker-trace"],
                "Kernels and memory copies, the HIP calls that start them, and roctx ranges, with start and end times.",
            );
            collect(&mut parts, &["--output-format", "json"], "One file with everything.");
            prepared.reports = vec![Pattern::exact(format!("{stem}_results.json"))];
        }
        Job::System => {
            collect(&mut parts, &["--sys-trace"], "Kernels, memory copies, HIP and HSA calls, markers.");
            collect(&mut parts, &["--output-format", "pftrace"], "For ui.perfetto.dev.");
            prepared.reports = vec![Pattern::exact(format!("{stem}_results.pftrace"))];
        }
        Job::Counters => {
            let words: Vec<&str> = ["--pmc"].into_iter().chain(COUNTERS).collect();
            collect(
                &mut parts,
                &words,
                "Waves, and kilobytes read from memory; one list is one pass. `rocprofv3-avail list --pmc` has all counters.",
            );
            parts.extend(filter_parts(wanted));
            collect(&mut parts, &["--output-format", "csv"], "A table.");
            prepared.reports = vec![csv("counter_collection")];
        }
        Job::Threads => {
            collect(
                &mut parts,
                &[
                    "--att",
                    "--att-target-cu",
                    "1",
                    "--att-shader-engine-mask",
                    "0x1",
                    "--att-simd-select",
                    "0xF",
                    "--att-buffer-size",
                    BUFFER,
                ],
                "Every instruction of the waves on one compute unit; --att-simd-select is a mask on CDNA and a number from 0 to 3 on RDNA. The decoder, librocprof-trace-decoder.so, must be in ROCm's lib or in ROCPROF_ATT_LIBRARY_PATH.",
            );
            parts.extend(filter_parts(wanted));
            prepared.reports = vec![
                Pattern::with_wildcard(format!("{stem}.att/stats_"), ".csv"),
                Pattern::with_wildcard(format!("{stem}.att/"), ".att"),
                Pattern::with_wildcard(format!("{stem}.att/"), ".out"),
            ];
        }
        Job::File => {
            let files = job_files(folder, stem, wanted);
            collect(&mut parts, &["--input", &place.sibling_path(&files[0].0)], "The job file of the trace, which is written first.");
            let program = shell::command_line(&wanted.program);
            let run = |file: &str| format!("rocprofv3 --input {} -- {program}", shell::quote(&place.sibling_path(file)));
            prepared.notes.push(format!("counters, in a run of their own: {}", run(&files[1].0)));
            prepared.notes.push(format!("a thread trace (ROCm 7 and its decoder), likewise: {}", run(&files[2].0)));
            prepared.files = files.into();
            prepared.reports = vec![
                // Some releases write each job's files into a separate folder.
                Pattern::exact(format!("{stem}_results.json")),
                Pattern::exact(format!("pass_1/{stem}_results.json")),
            ];
        }
    }
    let output = |words: &[&str], why: String| part(PartId::Output, words, why);
    match job {
        Job::File => {}
        Job::Threads => parts.push(output(
            &["--output-directory", &format!("{folder}/{stem}.att")],
            format!("The folder of the trace: {}.att.", place.output),
        )),
        _ => parts.push(output(&["--output-directory", folder, "--output-file", stem], format!("Files are named {}_… .", place.output))),
    }
    parts.push(part(PartId::Tool, &["--"], "Ends rocprofv3's own options."));
    parts.push(program_part(&wanted.program));
    prepared.parts = parts;
    Ok(prepared)
}

pub(super) const RECIPES: &[Recipe<'static>] = &[
    Recipe::built_in(
        "rocprof",
        "rocprofv3",
        &Job::Kernels,
        [
            "kernels, copies, HIP calls and roctx ranges of an AMD GPU",
            "the first report of a ROCm program",
            "low: about 1 KB of JSON per kernel with its call",
        ],
    ),
    Recipe::built_in(
        "rocprof-system",
        "rocprofv3",
        &Job::System,
        ["timeline of a ROCm program for Perfetto", "the GPU waits for the host", "higher: every HIP and HSA call"],
    ),
    Recipe::built_in(
        "rocprof-counters",
        "rocprofv3",
        &Job::Counters,
        [
            "hardware counters of an AMD GPU, per launch",
            "waves and memory traffic of a kernel; edit the list for others",
            "kernels are serialized; counters that do not fit in one pass need another run",
        ],
    ),
    Recipe::built_in(
        "rocprof-att",
        "rocprofv3",
        &Job::Threads,
        [
            "thread trace: every instruction of one compute unit of an AMD GPU",
            "the full analysis of one kernel: name it; without a name it is the first launch of each",
            "100 MB of buffer per shader engine, and large files; needs the trace decoder and ROCm 7",
        ],
    ),
    Recipe::built_in(
        "rocprof-jobs",
        "rocprofv3",
        &Job::File,
        [
            "trace of a ROCm program by a job file; files for counters and a thread trace are written beside it",
            "a deterministic program; edit the YAML for more",
            "the program runs once for each file",
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_say_what_they_are_made_of() {
        for (text, want) in [
            ("a: b", "'a: b'"),
            ("it's", "'it''s'"),
            ("x\n  y", r#""x\U0000000a  y""#),
            ("\u{1b}[31m\"\\", r#""\U0000001b[31m\"\\""#),
            ("k<é>", "'k<é>'"),
            ("é\u{2028}", r#""\U000000e9\U00002028""#),
        ] {
            assert_eq!(quote_yaml(text), want, "{text:?}");
        }
    }

    #[test]
    fn each_job_has_a_file_of_its_own_and_names_are_quoted() {
        let wanted = Wanted { kernel: Some("it's<(int)1>".into()), skip: Some(3), count: Some(2), ..Wanted::default() };
        let [trace, counters, att] = job_files("out", "r", &wanted);
        assert!(trace.0 == "r.trace.yaml" && !trace.1.contains("kernel_include_regex"), "traces are not filtered: {}", trace.1);
        let want = "jobs:
  - pmc: [SQ_WAVES, FETCH_SIZE]
    kernel_include_regex: '^it''s<\\(int\\)1>$'
    kernel_iteration_range: '[4-5]'
    output_directory: 'out'
    output_file: 'r'
    output_format: [csv]
";
        assert_eq!((counters.0.as_str(), counters.1.as_str()), ("r.counters.yaml", want));
        assert!(
            att.1.ends_with(
                "    kernel_include_regex: '^it''s<\\(int\\)1>$'\n    kernel_iteration_range: '[4-5]'\n    output_directory: 'out/r.att'\n"
            ),
            "{}",
            att.1
        );
    }
}
