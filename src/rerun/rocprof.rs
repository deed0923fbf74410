//! AMD GPUs: the rocprofv3 command that collects counters or a thread trace of exactly the selected launches. The
//! rules come from rocprofv3's sources (`ROCm` 6.2 to 7.14) and its unit tests; no re-run was tested on an AMD GPU.
//!
//! rocprofv3 counts launches per kernel symbol, code object and GPU, from 1, in the order of `dispatch_id`, across all
//! threads of a process. Its name filter searches the kernel name in the form that the options select for output. The
//! regular expression engine changed in `ROCm` 7.1, so only an escaped literal between `^` and `$` has the same meaning
//! in all releases.

use super::program::{self, Program};
use super::warning::{Warning, warning};
use super::{
    Alternative, Collect, CommandPart, Cost, OpenedBy, Options, PartId, Rerun, Selects, capture_range, ncu_builder, parts, ranges, shell,
};
use crate::model::units::format_count;
use crate::model::{Kernel, LaunchId, LaunchOrder, NameForm, Nanos, NoteKind, Profile, Severity};
use std::collections::BTreeSet;

/// Counters for one run on CDNA GPUs (MI200, MI300, MI350): utilization of the vector, matrix and scalar units, and
/// waves. One GRBM counter and eight SQ counters fit into one pass.
const CDNA: [&str; 9] = [
    "GRBM_GUI_ACTIVE",
    "SQ_WAVES",
    "SQ_BUSY_CU_CYCLES",
    "SQ_ACTIVE_INST_VALU",
    "SQ_VALU_MFMA_BUSY_CYCLES",
    "SQ_ACTIVE_INST_SCA",
    "SQ_THREAD_CYCLES_VALU",
    "SQ_WAVE_CYCLES",
    "SQ_INSTS",
];
/// Counters that are available on all GPUs.
const ANY: [&str; 2] = ["GRBM_GUI_ACTIVE", "SQ_WAVES"];
/// Memory reads; writes need a separate run.
const MEMORY: [&str; 2] = ["GRBM_GUI_ACTIVE", "FETCH_SIZE"];
const WRITES: [&str; 2] = ["GRBM_GUI_ACTIVE", "WRITE_SIZE"];
/// Architectures that support [`CDNA`].
const CDNA_ARCHITECTURES: [&str; 3] = ["gfx90a", "gfx942", "gfx950"];

/// Form of the kernel names in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spelling {
    Demangled,
    /// `--mangled-kernels`: the symbol, with `.kd`.
    Mangled,
}

impl Spelling {
    fn from_kernel(kernel: &Kernel) -> Self {
        if kernel.demangled.as_deref().is_some_and(|d| d.starts_with("_Z")) { Self::Mangled } else { Self::Demangled }
    }

    /// Returns the regular expression that matches exactly this name.
    fn name_regex(self, kernel: &Kernel) -> String {
        let name = shell::escape_regex(kernel.demangled());
        match self {
            Self::Demangled => format!("^{name}$"),
            Self::Mangled => format!("^{name}\\.kd$"),
        }
    }
}

/// Formats launch numbers for rocprofv3: single numbers and ranges.
fn format_iterations(numbers: &[u64]) -> String {
    let mut pieces: Vec<String> = Vec::new();
    for run in numbers.chunk_by(|a, b| *b == a + 1) {
        match run {
            [one] => pieces.push(one.to_string()),
            [first, .., last] => pieces.push(format!("{first}-{last}")),
            [] => {}
        }
    }
    format!("[{}]", pieces.join(","))
}

/// Launches of one symbol.
struct Group<'a> {
    profile: &'a Profile,
    rows: Vec<usize>,
    kernel: Kernel,
    /// Launch numbers of this symbol, 1-based.
    numbers: Vec<u64>,
}

impl<'a> Group<'a> {
    fn new(profile: &'a Profile, rows: Vec<usize>) -> Self {
        let launches = &profile.launches;
        let id = rows.first().map(|&r| launches.kernel(r));
        let kernel = id.and_then(|k| profile.kernels.get(k.0 as usize)).cloned().unwrap_or_default();
        let on = rows.first().and_then(|&r| counted_on(profile, r));
        let (mut numbers, mut before, mut wanted) = (Vec::new(), 0, rows.iter().peekable());
        for row in 0..rows.last().map_or(0, |&r| r + 1) {
            if Some(launches.kernel(row)) != id || counted_on(profile, row) != on {
                continue;
            }
            before += 1;
            if wanted.next_if_eq(&&row).is_some() {
                numbers.push(before);
            }
        }
        Self { profile, rows, kernel, numbers }
    }

    fn first_row(&self) -> usize {
        self.rows.first().copied().unwrap_or(0)
    }

    fn device(&self) -> Option<&crate::model::Device> {
        let place = self.profile.launches.place(self.first_row()).and_then(|p| self.profile.places.get(p.0 as usize))?;
        self.profile.device_of(place)
    }

    /// Returns the counters to collect: those named in the options, memory reads, or those that the architecture
    /// supports.
    fn counters(&self, collect: &Collect) -> Vec<String> {
        let cdna = self.device().and_then(|d| d.arch.as_deref()).is_some_and(|a| CDNA_ARCHITECTURES.contains(&a));
        let fixed: &[&str] = match collect {
            Collect::Sections(names) => return names.clone(),
            Collect::Question(word) if word.contains("memory") => &MEMORY,
            _ if cdna => &CDNA,
            _ => &ANY,
        };
        fixed.iter().map(|c| (*c).to_owned()).collect()
    }

    fn selection_parts(&self) -> Vec<CommandPart> {
        let spelling = Spelling::from_kernel(&self.kernel);
        let mut name = Vec::new();
        if spelling == Spelling::Mangled {
            name.push("--mangled-kernels".to_owned());
        }
        name.extend(["--kernel-include-regex".to_owned(), spelling.name_regex(&self.kernel)]);
        let part = |id, words: Vec<String>, why: &str| CommandPart { id, words, why: why.to_owned() };
        vec![
            part(PartId::Name, name, "The whole name as rocprofv3 prints it, with all characters that mean something escaped."),
            part(
                PartId::Which,
                vec!["--kernel-iteration-range".to_owned(), format_iterations(&self.numbers)],
                "Which launches of it, from 1; each symbol of each code object and GPU is counted separately, in each process.",
            ),
        ]
    }

    fn command_parts(&self, collecting: CommandPart, output: &str, program: &Program) -> Vec<CommandPart> {
        let (folder, stem) = output.rsplit_once('/').map_or((".", output), |(f, s)| (if f.is_empty() { "/" } else { f }, s));
        let words = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        let mut out = vec![CommandPart { id: PartId::Tool, words: words(&["rocprofv3"]), why: "AMD's profiler.".to_owned() }, collecting];
        out.extend(self.selection_parts());
        out.push(CommandPart {
            id: PartId::Output,
            words: words(&["--output-directory", folder, "--output-file", stem, "--output-format", "csv"]),
            why: format!("The results: {output}_counter_collection.csv and files beside it."),
        });
        let mut program = parts::program(program);
        program.words.insert(0, "--".to_owned());
        out.push(program);
        out
    }

    fn selected_launches(&self) -> Vec<Selects> {
        let launches = &self.profile.launches;
        let config = |row: usize| launches.config(row).and_then(|c| self.profile.configs.get(c.0 as usize));
        let one = |(&row, &number): (&usize, &u64)| {
            let of = config(row);
            let alike = (0..launches.len())
                .filter(|&r| r != row && launches.kernel(r) == launches.kernel(row) && launches.config(r) == launches.config(row))
                .count();
            Selects {
                kernel: self.kernel.function().to_owned(),
                demangled: self.kernel.demangled.as_deref().map(str::to_owned),
                mangled: self.kernel.mangled.as_deref().map(str::to_owned),
                launch: u32::try_from(row).ok().map(LaunchId),
                nth: number - 1,
                skipped: 0,
                grid: of.and_then(|c| c.grid),
                block: of.and_then(|c| c.block),
                duration: Nanos(launches.duration(row)),
                alike: alike as u64,
            }
        };
        self.rows.iter().zip(&self.numbers).map(one).collect()
    }

    fn collect_warnings(&self, program: &Program, options: &Options) -> Vec<Warning> {
        let profile = self.profile;
        let mut out = Vec::new();
        if capture_range::opened_by(profile, options) != OpenedBy::Start {
            let text = "No exact count is possible: the capture began after the program started, and rocprofv3 counts the launches \
                        before it, too. The command will select an earlier launch of this kernel.";
            let fix = "record the program from its start with rocprofv3, and pick the launch there";
            out.push(warning("hidden-launches", Severity::Error, text).with_fix(fix).mark_inexact());
        }
        if self.kernel.mangled.is_none() && !self.kernel.demangled().contains('(') && !self.kernel.demangled().starts_with("__amd_") {
            let text = "The name has no parameters, and the report does not say whether it was recorded with --truncate-kernels: a C++ kernel of this name would not be matched.";
            out.push(warning("names-cut", Severity::Warning, text).with_fix("add --truncate-kernels if it was").mark_inexact());
        }
        let usual = Options::default();
        let ncu_only = [
            ("the form of the name", options.base != usual.base),
            ("clocks", options.clock != usual.clock),
            ("caches", options.cache != usual.cache),
            ("replay", options.replay != usual.replay),
            ("sources", options.import_source),
            ("ending the program", options.kill),
            ("whole graphs", options.whole_graph),
            ("counting inside a range", options.within != usual.within),
        ];
        let ignored: Vec<&str> = ncu_only.iter().filter(|(_, set)| *set).map(|(name, _)| *name).collect();
        if !ignored.is_empty() {
            let text = format!("rocprofv3 has no such option, so this was not done: {}.", ignored.join(", "));
            out.push(warning("ignored", Severity::Warning, text));
        }
        match profile.order {
            LaunchOrder::Host => {}
            LaunchOrder::Chosen => out.push(
                warning(
                    "chosen-launches",
                    Severity::Error,
                    "This report has only the launches that were profiled: how many came before each is not known.",
                )
                .with_fix("record a kernel trace (`rocprofv3 --kernel-trace`) and choose the launch there")
                .mark_inexact(),
            ),
            _ => out.push(
                warning(
                    "device-order",
                    Severity::Warning,
                    "The report has no dispatch ids, so launches are counted by their start on the GPU.",
                )
                .mark_inexact(),
            ),
        }
        if !has_ids(profile) {
            let text = "The report does not tell kernel symbols apart: launches are counted by their name on this GPU, and rocprofv3 counts each symbol of that name by itself.";
            out.push(warning("kernel-ids", Severity::Warning, text).with_fix("record with rocprofv3 for an exact count").mark_inexact());
        }
        let lost = profile.notes.iter().find(|n| n.kind == NoteKind::Lost || n.kind == NoteKind::Damaged);
        out.extend(lost.map(|n| warning("lost-events", Severity::Error, format!("Launches may be missing: {}", n.text)).mark_inexact()));
        // Code objects that are loaded repeatedly or on several GPUs are counted separately.
        let named = |k: &Kernel| k.demangled() == self.kernel.demangled();
        let pid = profile.launch_pid(self.first_row());
        let own: BTreeSet<u32> =
            (0..profile.launches.len()).filter(|&r| profile.launch_pid(r) == pid).map(|r| profile.launches.kernel(r).0).collect();
        let same = own.iter().filter(|&&k| profile.kernels.get(k as usize).is_some_and(named)).count();
        if same > 1 {
            let of = self.selected_launches().first().map_or_else(String::new, |s| {
                let dims = |d: Option<[u32; 3]>| d.map_or_else(|| "?".to_owned(), crate::model::config::format_dim3);
                format!("grid {} and workgroup {}", dims(s.grid), dims(s.block))
            });
            let gpu = self.device().map_or_else(String::new, |d| format!("GPU {}, ", d.id));
            out.push(
                warning(
                    "same-name",
                    Severity::Warning,
                    format!("{same} kernels of this name were loaded (on several GPUs or from several code objects), and each has its own count: up to {same} results come, and one of them is the wanted one."),
                )
                .with_fix(format!("keep the result on {gpu}with {of}")),
            );
        }
        let pids: BTreeSet<u32> = profile.processes.iter().map(|p| p.pid).collect();
        if pids.len() > 1 {
            out.push(
                warning(
                    "processes",
                    Severity::Warning,
                    format!(
                        "{} are in this report, and each counts for itself: every one that launches this kernel so often gives a result.",
                        format_count(pids.len(), "process")
                    ),
                )
                .with_fix("start the one process under rocprofv3 for a single result")
                .mark_inexact(),
            );
        }
        let thread = |row: usize| profile.launches.place(row).and_then(|p| profile.places.get(p.0 as usize)).and_then(|p| p.thread);
        let id = profile.launches.kernel(self.first_row());
        let threads: BTreeSet<u32> = (0..profile.launches.len()).filter(|&r| profile.launches.kernel(r) == id).filter_map(thread).collect();
        if threads.len() > 1 {
            let text = format!("{} launch this kernel: their order may be another in the next run.", format_count(threads.len(), "thread"));
            out.push(warning("threads", Severity::Warning, text).mark_inexact());
        }
        if ranges::waits_for_others(profile, &self.kernel).is_some() {
            let text = "This kernel exchanges data with other GPUs. rocprofv3 runs one kernel at a time while it collects counters: kernels that wait for each other may hang.";
            out.push(warning("waits-for-others", Severity::Warning, text));
        } else if profile.kernels.iter().any(|k| ranges::waits_for_others(profile, k).is_some()) {
            let text = "The program runs kernels that wait for other GPUs. While rocprofv3 collects counters it runs one kernel at a time, also those that are not selected: it may hang.";
            out.push(warning("waits-for-others", Severity::Warning, text));
        }
        if !matches!(options.collect, Collect::Sections(_)) && self.device().is_none_or(|d| d.arch.is_none()) {
            let text =
                "The report does not say which GPU this is, so only counters that all AMD GPUs have are collected: too few for hints.";
            let fix = "name those of your GPU (`rocprofv3 --list-avail`); on MI200 and newer: --section GRBM_GUI_ACTIVE --section SQ_ACTIVE_INST_VALU --section SQ_VALU_MFMA_BUSY_CYCLES --section SQ_WAVE_CYCLES --section SQ_WAIT_ANY";
            out.push(warning("gpu-unknown", Severity::Warning, text).with_fix(fix));
        }
        if program.from == program::From::Nowhere {
            out.push(
                warning("program-unknown", Severity::Warning, "The report does not say which program ran.").with_fix("name it after `--`"),
            );
        }
        out.push(warning(
            "untried",
            Severity::Info,
            "Needs ROCm 6.3 or newer. These rules were read from rocprofv3's sources and tests; no re-run was tried on an AMD GPU.",
        ));
        out
    }

    /// Returns the `rocprof-compute profile` command for the same launches. `rocprof-compute` searches for the names
    /// (joined with `|`) in the demangled name, and passes `--dispatch A:B` to rocprofv3 as the range `[A+1-B]`
    /// (`profiler_rocprof_v3.py`) or `[A-B]` (`profiler_rocprofiler_sdk.py` of 2026): `n-1:n` includes the `n`th launch
    /// in both cases.
    fn rocprof_compute_argv(&self, stem: &str, program: &Program) -> Option<Vec<String>> {
        if Spelling::from_kernel(&self.kernel) == Spelling::Mangled {
            return None;
        }
        let mut argv = ["rocprof-compute", "profile", "--name", stem, "--kernel"].map(str::to_owned).to_vec();
        argv.extend([Spelling::Demangled.name_regex(&self.kernel), "--dispatch".to_owned()]);
        argv.extend(self.numbers.chunk_by(|a, b| *b == a + 1).filter_map(|run| Some(format!("{}:{}", run.first()? - 1, run.last()?))));
        argv.push("--".to_owned());
        argv.extend(parts::program(program).words);
        Some(argv)
    }

    fn build_rerun(&self, options: &Options, named: Option<&str>) -> Rerun {
        let program = program::resolve_program(self.profile, options);
        let several = self.profile.processes.len() > 1;
        let mut output = named
            .map_or_else(|| options.output.clone().unwrap_or_else(|| ncu_builder::report_stem(self.profile, &self.rows)), str::to_owned);
        if several && !output.contains("%pid%") {
            // Each process writes its own files.
            output.push_str("-%pid%");
        }
        let pmc = |names: &[String]| {
            let mut words = vec!["--pmc".to_owned()];
            words.extend_from_slice(names);
            let why = "Counters of one run of the program; too many for the hardware end it.";
            CommandPart { id: PartId::Collect, words, why: why.to_owned() }
        };
        let counters = self.command_parts(pmc(&self.counters(&options.collect)), &output, &program);
        let why = "Every instruction of the waves on one compute unit, with what they waited for.";
        let att =
            CommandPart { id: PartId::Collect, words: ["--att", "--att-target-cu", "1"].map(str::to_owned).to_vec(), why: why.to_owned() };
        let mut traced = self.command_parts(att, &format!("{output}-att"), &program);
        // A thread trace has an output format of its own.
        for part in &mut traced {
            if let Some(at) = part.words.iter().position(|w| w == "--output-format") {
                part.words.drain(at..at + 2);
                part.why = format!("The results: folders ui_output_… beside {output}-att_results.db.");
            }
        }
        let words = |parts: &[CommandPart]| parts.iter().flat_map(|p| p.words.clone()).collect::<Vec<String>>();
        let (thread_trace, wants_trace) = (words(&traced), matches!(options.collect, Collect::Question("source" | "stalls")));
        let counted = words(&counters);
        let writes = matches!(options.collect, Collect::Question("memory"))
            .then(|| words(&self.command_parts(pmc(&WRITES.map(str::to_owned)), &format!("{output}-writes"), &program)));
        let parts = if wants_trace { traced } else { counters };
        let stem = output.rsplit('/').next().unwrap_or(&output);
        let deep = self.rocprof_compute_argv(stem, &program);
        let alternative = |why: &str, argv| Alternative { why: why.to_owned(), argv, options: options.clone(), better: false };
        Rerun {
            tool: "rocprofv3",
            directory: program.directory.clone(),
            selects: self.selected_launches(),
            base: NameForm::Demangled,
            warnings: self.collect_warnings(&program, options),
            alternatives: [
                writes.map(|argv| alternative("what was written to memory: it does not fit into the same run", argv)),
                wants_trace.then(|| alternative("counters: how busy the units are, on every GPU and release", counted)),
                (!wants_trace).then(|| alternative(
                    "a thread trace: every instruction of the waves on one compute unit, with what they waited for (ROCm 7.0 or newer, and AMD's trace decoder)",
                    thread_trace,
                )),
                deep.map(|argv| alternative(&format!("all counters and measured roofs, in 13 to 20 runs of the program: open the folder workloads/{stem} afterwards. --dispatch counts launches of each kernel, from 0 in most releases and from 1 in the newest: the launch before the wanted one may come with it"), argv)),
            ]
            .into_iter()
            .flatten()
            .collect(),
            cost: Cost { passes: Some(1), runs: 1, ..Cost::default() },
            parts,
            output,
            wrapper: None,
        }
    }
}

/// Returns the commands for launches on AMD GPUs, and a folder if there are several commands; `rows` must be sorted.
pub fn build_commands(profile: &Profile, rows: &[usize], options: &Options) -> (Vec<Rerun>, Option<String>) {
    // Group by symbol, or by GPU if symbols are unknown.
    let mut groups: Vec<(_, Vec<usize>)> = Vec::new();
    for &row in rows {
        let key = (profile.launches.kernel(row), counted_on(profile, row));
        match groups.iter_mut().find(|g| g.0 == key) {
            Some(group) => group.1.push(row),
            None => groups.push((key, vec![row])),
        }
    }
    let groups: Vec<Group<'_>> = groups.into_iter().map(|(_, rows)| Group::new(profile, rows)).collect();
    if let [one] = &groups[..] {
        return (vec![one.build_rerun(options, None)], None);
    }
    let folder = options.output.clone().unwrap_or_else(|| "warpscope-rerun".to_owned());
    let named = |g: &Group<'_>| format!("{}/{}", folder.trim_end_matches('/'), ncu_builder::report_stem(profile, &g.rows));
    (groups.iter().map(|g| g.build_rerun(options, Some(&named(g)))).collect(), Some(folder))
}

/// Returns true if the report distinguishes kernel symbols in the same way as rocprofv3's count.
fn has_ids(profile: &Profile) -> bool {
    profile.source.tool == "rocprofv3"
}

/// Returns the GPU whose launches count if only names are known: each GPU has its own symbols.
fn counted_on(profile: &Profile, row: usize) -> Option<u32> {
    let place = profile.launches.place(row).and_then(|p| profile.places.get(p.0 as usize));
    place.and_then(|p| p.device).filter(|_| !has_ids(profile))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For launches 3, 4 and 7, each is inside its range under both interpretations of `--dispatch`.
    #[test]
    fn launches_of_rocprof_compute() {
        let kernel = Kernel { demangled: Some("k(int)".into()), ..Kernel::default() };
        let profile = Profile::new(crate::model::Source::default());
        let group = Group { profile: &profile, rows: vec![0], kernel, numbers: vec![3, 4, 7] };
        let program = program::resolve_program(&profile, &Options::default());
        let argv = group.rocprof_compute_argv("it", &program).unwrap();
        assert_eq!(argv[..10], ["rocprof-compute", "profile", "--name", "it", "--kernel", r"^k\(int\)$", "--dispatch", "2:4", "6:7", "--"]);
    }

    #[test]
    fn numbers_as_rocprofv3_reads_them() {
        assert_eq!(format_iterations(&[5]), "[5]");
        assert_eq!(format_iterations(&[1, 2, 3, 7, 9, 10]), "[1-3,7,9-10]");
    }

    #[test]
    fn names_are_escaped_whole() {
        let kernel = |name: &str| Kernel { demangled: Some(name.into()), ..Kernel::default() };
        let of = |name: &str| Spelling::from_kernel(&kernel(name)).name_regex(&kernel(name));
        assert_eq!(of("void k<float>(float*, int)"), r"^void k<float>\(float\*, int\)$");
        assert_eq!(of("_Z1kPf"), r"^_Z1kPf\.kd$");
    }
}
