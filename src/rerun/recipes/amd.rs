//! AMD GPUs: rocprofv3, which wants `--` before the program. Options are those of its documentation for `ROCm` 6.2 to 7;
//! nothing was run on AMD hardware.

use super::pattern::Pattern;
use super::prepared::{Place, Prepared, Wanted, part, program};
use crate::rerun::{Part, PartId, shell};
use std::fmt::Write as _;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Job {
    /// Kernels and copies, with times.
    Kernels,
    /// Also the runtime's calls, for Perfetto.
    System,
    Counters,
    /// Instructions of one compute unit in time.
    Threads,
    /// All of these one after another, from a job file.
    File,
}

/// Counters that CDNA and RDNA have, in one pass.
const COUNTERS: [&str; 2] = ["SQ_WAVES", "FETCH_SIZE"];
/// Bytes of the buffer of each shader engine.
const BUFFER: &str = "0x6000000";

impl Job {
    /// Whether it takes a kernel and launches of it: rocprofv3 filters counters and thread traces only.
    pub(super) fn filters(self) -> bool {
        matches!(self, Self::Counters | Self::Threads | Self::File)
    }
}

/// rocprofv3's filters: a regular expression on the kernel's name as it prints it, and numbers of launches of each kernel, from 1.
fn filters(wanted: &Wanted) -> (Option<String>, Option<String>) {
    let regex = wanted.kernel.as_ref().map(|k| format!("^{}", shell::regex(k)));
    let first = wanted.skip.unwrap_or(0).saturating_add(1);
    let last = first.saturating_add(wanted.count.unwrap_or(1) - 1);
    let range = if first == last { format!("[{first}]") } else { format!("[{first}-{last}]") };
    (regex, Some(range))
}

fn filter_parts(wanted: &Wanted) -> Vec<Part> {
    let (regex, range) = filters(wanted);
    let mut out = Vec::new();
    if let Some(regex) = regex {
        let why = "Only kernels whose name, as rocprofv3 prints it, starts with this.";
        out.push(part(PartId::Name, &["--kernel-include-regex", &regex], why));
    }
    if let Some(range) = range {
        let why = "Which launches of each kernel, from 1; each kernel is counted separately, in each process.";
        out.push(part(PartId::Which, &["--kernel-iteration-range", &range], why));
    }
    out
}

/// A YAML scalar in single quotes, where only the quote itself means something.
fn scalar(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// The job file: one job a run of the program.
fn job_file(folder: &str, stem: &str, wanted: &Wanted) -> String {
    let (regex, range) = filters(wanted);
    let mut filter = String::new();
    if let Some(regex) = regex {
        let _ = writeln!(filter, "    kernel_include_regex: {}", scalar(&regex));
    }
    if let Some(range) = range {
        let _ = writeln!(filter, "    kernel_iteration_range: {}", scalar(&range));
    }
    let folder_line = |name: &str| {
        format!("    output_directory: {}\n", scalar(&if name.is_empty() { folder.to_owned() } else { format!("{folder}/{name}") }))
    };
    let name = scalar(stem);
    let here = folder_line("");
    let att = folder_line(&format!("{stem}.att"));
    let counters = COUNTERS.join(", ");
    format!(
        "# rocprofv3 runs the program once for each job.\njobs:\n  - kernel_trace: true\n    memory_copy_trace: true\n{here}    output_file: {name}\n    output_format: [csv, json]\n  \
         - pmc: [{counters}]\n{filter}{here}    output_file: {name}\n    output_format: [csv]\n  \
         - advanced_thread_trace: true\n    att_target_cu: 1\n    att_shader_engine_mask: '0x1'\n    att_simd_select: '0xF'\n    att_buffer_size: '{BUFFER}'\n{filter}{att}"
    )
}

pub(super) fn prepare(job: Job, wanted: &Wanted, place: &Place<'_>) -> Result<Prepared, String> {
    let stem = place.stem;
    if place.output.contains('%') {
        return Err(format!("{:?}: rocprofv3 expands text between percent signs and has no way to escape one", place.output));
    }
    let folder = place.folder.unwrap_or(".");
    let mut prepared = Prepared::default();
    let mut parts = vec![part(PartId::Tool, &["rocprofv3"], "AMD's profiler.")];
    let collect = |parts: &mut Vec<Part>, words: &[&str], why: &str| parts.push(part(PartId::Collect, words, why));
    let csv = |name: &str| Pattern::exact(format!("{stem}_{name}.csv"));
    match job {
        Job::Kernels => {
            collect(&mut parts, &["--kernel-trace", "--memory-copy-trace"], "Kernels and memory copies, with start and end times.");
            collect(&mut parts, &["--output-format", "csv", "json"], "Tables, and one file with everything.");
            prepared.reports =
                vec![csv("kernel_trace"), csv("memory_copy_trace"), csv("agent_info"), Pattern::exact(format!("{stem}_results.json"))];
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
            prepared.reports = vec![csv("counter_collection"), csv("agent_info")];
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
                Pattern::between(format!("{stem}.att/stats_"), ".csv"),
                Pattern::between(format!("{stem}.att/"), ".att"),
                Pattern::between(format!("{stem}.att/"), ".out"),
            ];
        }
        Job::File => {
            let file = format!("{stem}.jobs.yaml");
            collect(&mut parts, &["--input", &place.beside(&file)], "The job file, which is written first: trace, counters, thread trace.");
            prepared.files = vec![(file, job_file(folder, stem, wanted))];
            prepared.reports = vec![
                // Of several jobs each gets a folder of its own; its number is that of the run.
                Pattern::between(format!("{stem}_"), ".csv"),
                Pattern::exact(format!("{stem}_results.json")),
                Pattern::between(format!("pass_1/{stem}_"), ".csv"),
                Pattern::exact(format!("pass_1/{stem}_results.json")),
                Pattern::between(format!("pass_2/{stem}_"), ".csv"),
                Pattern::between(format!("{stem}.att/stats_"), ".csv"),
                Pattern::between(format!("{stem}.att/pass_3/stats_"), ".csv"),
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
    parts.push(program(&wanted.program));
    prepared.parts = parts;
    Ok(prepared)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_file_holds_three_jobs_and_quotes_names() {
        let wanted = Wanted { kernel: Some("it's<(int)1>".into()), skip: Some(3), count: Some(2), ..Wanted::default() };
        let text = job_file("out", "r", &wanted);
        let want = "# rocprofv3 runs the program once for each job.
jobs:
  - kernel_trace: true
    memory_copy_trace: true
    output_directory: 'out'
    output_file: 'r'
    output_format: [csv, json]
  - pmc: [SQ_WAVES, FETCH_SIZE]
    kernel_include_regex: '^it''s<\\(int\\)1>'
    kernel_iteration_range: '[4-5]'
    output_directory: 'out'
    output_file: 'r'
    output_format: [csv]
  - advanced_thread_trace: true
    att_target_cu: 1
    att_shader_engine_mask: '0x1'
    att_simd_select: '0xF'
    att_buffer_size: '0x6000000'
    kernel_include_regex: '^it''s<\\(int\\)1>'
    kernel_iteration_range: '[4-5]'
    output_directory: 'out/r.att'
";
        assert_eq!(text, want);
    }
}
