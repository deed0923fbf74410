//! Checks combinations of options in a job, and of jobs in a file.

use super::JobProblem;
use super::filter::{Filter, Numbers, Spelled, find_value, parse_ranges};
use super::options::{OptionKind, find_option};
use super::read::{Job, Key, Value};
use super::regex::{Engines, engine_differences, way_back};
use crate::model::Severity::{self, Error, Info, Warning};

/// Derived counters that `ROCm` 7.0's `counter_defs.yaml` does not define for CDNA 3 (gfx942, gfx950).
const GONE: [&str; 4] = ["Wavefronts", "L2CacheHit", "MemUnitBusy", "VALUInsts"];

fn option_line(job: &Job, name: &str) -> Option<usize> {
    job.keys.iter().find(|k| k.name == name).and_then(|k| k.line).or(job.line)
}

fn value_texts(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::List(list)) => list.iter().map(Value::to_text).collect(),
        Some(other) => vec![other.to_text()],
        None => Vec::new(),
    }
}

/// Describes the data that a job collects.
pub(super) fn collected_data(job: &Job) -> Vec<String> {
    let mut out = Vec::new();
    let traces: Vec<String> = job
        .keys
        .iter()
        .filter(|k| find_option(&k.name).is_some_and(|o| o.0 == OptionKind::Trace) && k.name.ends_with("_trace") && k.value.is_true())
        .map(|k| k.name.trim_end_matches("_trace").replace('_', " "))
        .collect();
    if !traces.is_empty() {
        out.push(format!("a trace ({})", traces.join(", ")));
    }
    let counters = value_texts(find_value(job, "pmc"));
    if !counters.is_empty() {
        out.push(format!("counters ({})", counters.join(", ")));
    }
    if let Some(Value::List(groups)) = find_value(job, "pmc_groups") {
        out.push(format!("{} groups of counters in turn over the selected launches", groups.len()));
    }
    if find_value(job, "advanced_thread_trace").is_some() {
        out.push("a thread trace".to_owned());
    }
    if find_value(job, "pc_sampling_beta_enabled").is_some() {
        out.push("PC samples".to_owned());
    }
    if find_value(job, "spm").is_some() {
        out.push("counters over time (SPM)".to_owned());
    }
    out
}

/// Checks a name pattern: with both regular expression engines, and against the form of names that the job selects.
fn check_pattern(job: &Job, name: &str, spelled: Spelled) -> Vec<JobProblem> {
    let Some(Value::Text(text)) = find_value(job, name) else { return Vec::new() };
    let at = option_line(job, name);
    let mut out = Vec::new();
    let errors = Engines::new(text).errors().map(|e| e.map(str::to_owned));
    match errors {
        [Some(old), Some(_)] => out.push(JobProblem::new(
            Error,
            "bad-pattern",
            at,
            format!("`{name}` is no regular expression ({old}): the program ends when its first code object is loaded"),
        )),
        [Some(old), None] => out.push(JobProblem::new(
            Error,
            "bad-pattern",
            at,
            format!("`{name}` is no regular expression up to ROCm 7.0 ({old}): the program ends when its first code object is loaded"),
        )),
        [None, Some(new)] => out.push(JobProblem::new(
            Error,
            "bad-pattern",
            at,
            format!("`{name}` is no regular expression from ROCm 7.1 on ({new}): the program ends when its first code object is loaded"),
        )),
        [None, None] => {}
    }
    for difference in engine_differences(text) {
        out.push(
            JobProblem::new(Error, "other-engine", at, format!("`{name}`: {difference}"))
                .with_fix("use only escaped letters, `.*`, classes like [a-z], `^` and `$`, and `|` outside of groups"),
        );
    }
    if let Some(group) = way_back(text) {
        let text = format!(
            "`{name}`: from ROCm 7.1 on nothing after the group `{group}` makes it try another way to match, so names may be missed"
        );
        out.push(JobProblem::new(Warning, "no-way-back", at, text).with_fix("write the alternatives whole, with `|` outside of groups"));
    }
    let parameters = text.contains("\\(") || text.contains('<');
    match spelled {
        Spelled::Truncated if parameters => out.push(
            JobProblem::new(
                Error,
                "spelling",
                at,
                format!(
                    "`{name}` asks for template arguments or parameters, and with truncate_kernels names have none: it matches nothing"
                ),
            )
            .with_fix("leave them out of the pattern, or truncate_kernels out of the job"),
        ),
        Spelled::Mangled if parameters => out.push(JobProblem::new(
            Error,
            "spelling",
            at,
            format!("`{name}` asks for a demangled name, and with mangled_kernels it is searched in `_Z….kd`: it matches nothing"),
        )),
        _ => {}
    }
    let bare = text.strip_prefix(".*").unwrap_or(text);
    if name == "kernel_include_regex" && !text.contains('^') && !bare.trim_end_matches(".*").is_empty() {
        let text = format!("`{name}` is searched in the name: without `^` and `$` longer names that contain it are taken, too");
        out.push(JobProblem::new(Info, "searched", at, text));
    }
    out
}

/// Checks the launch numbers.
fn check_numbers(job: &Job) -> Vec<JobProblem> {
    let Some(value) = find_value(job, "kernel_iteration_range") else { return Vec::new() };
    let at = option_line(job, "kernel_iteration_range");
    let list = value_texts(Some(value));
    let written = parse_ranges(&list.iter().map(String::as_str).collect::<Vec<_>>());
    let mut out = Vec::new();
    if !written.wrong.is_empty() {
        let text = format!(
            "`{}` is no number and no range like 3-4: the program ends as soon as rocprofv3's library is loaded",
            written.wrong.join("`, `")
        );
        out.push(JobProblem::new(Error, "bad-range", at, text));
    } else if written.ranges.is_empty() {
        let text = if written.zero {
            "launches are counted from 1, so 0 selects nothing"
        } else {
            "these ranges have no number in them: nothing is selected"
        };
        out.push(JobProblem::new(Error, "nothing-selected", at, format!("{text}; rocprofv3 ends without an error and without results")));
    } else if written.zero {
        out.push(JobProblem::new(Warning, "from-one", at, "launches are counted from 1: 0 selects nothing"));
    }
    if written.long {
        out.push(JobProblem::new(
            Warning,
            "long-range",
            at,
            "rocprofv3 keeps every number of a range in memory: a range of more than ten million takes gigabytes",
        ));
    }
    if written.nested && written.wrong.is_empty() {
        let text = format!("brackets inside brackets mean nothing: these are {}", Numbers::These(written.ranges).describe());
        out.push(JobProblem::new(Info, "nested", at, text));
    }
    out
}

/// A job whose options are checked, and the problems found so far.
struct JobCheck<'a> {
    job: &'a Job,
    filter: Option<&'a Filter>,
    problems: Vec<JobProblem>,
}

/// Checks combinations of a job's options. `several` is true if the file has other jobs.
pub(super) fn of_job(job: &Job, filter: Option<&Filter>, several: bool) -> Vec<JobProblem> {
    let mut check = JobCheck { job, filter, problems: Vec::new() };
    check.check_neighbors(several);
    check.check_filters();
    check.check_counters();
    check.check_sampling();
    check.check_regions();
    check.check_replay();
    check.check_results();
    let mut out = check.problems;
    if let Some(filter) = filter {
        out.extend(check_pattern(job, "kernel_include_regex", filter.spelled));
        out.extend(check_pattern(job, "kernel_exclude_regex", filter.spelled));
        out.extend(check_numbers(job));
    }
    out
}

impl JobCheck<'_> {
    fn has(&self, name: &str) -> bool {
        find_value(self.job, name).is_some()
    }

    fn add(&mut self, severity: Severity, id: &'static str, name: &str, text: &str) {
        self.problems.push(JobProblem::new(severity, id, option_line(self.job, name), text));
    }

    fn has_counters(&self) -> bool {
        self.has("pmc") || self.has("pmc_groups")
    }

    fn has_thread_trace(&self) -> bool {
        self.has("advanced_thread_trace")
    }

    fn is_traced(&self) -> bool {
        collected_data(self.job).iter().any(|c| c.starts_with("a trace"))
    }

    /// Checks the job together with the other jobs of its file.
    fn check_neighbors(&mut self, several: bool) {
        if several && !self.has("pmc") {
            self.add(
                Error,
                "job-dropped",
                "",
                "from ROCm 7.2.4 on, only jobs with `pmc` run where a file has several jobs: this one is left out without a word",
            );
        }
        if !several && self.has("pmc") {
            self.add(Info, "pass-folder", "pmc", "the results are in a folder pass_1 of the output directory");
        }
    }

    /// Checks that the filters on kernels apply.
    fn check_filters(&mut self) {
        let att = self.has_thread_trace();
        let (counters, traced) = (self.has_counters(), self.is_traced());
        let filters = ["kernel_include_regex", "kernel_exclude_regex", "kernel_iteration_range"];
        if let Some(name) = filters.iter().find(|n| self.has(n) && self.filter.is_none()) {
            self.add(
                Warning,
                "filter-unused",
                name,
                "filters on kernels touch counters and thread traces only: this job collects neither, and its trace has everything",
            );
        } else if self.filter.is_some() && traced && filters.iter().any(|n| self.has(n)) {
            self.add(
                Info,
                "trace-unfiltered",
                "",
                "the trace of this job has everything: filters touch its counters and thread trace only",
            );
        }
        if att && counters && !self.has("kernel_iteration_range") {
            self.add(
                Warning,
                "first-only",
                "pmc",
                "beside a thread trace without a range, counters too are collected of the first launch of each kernel only",
            );
        } else if att && !self.has("kernel_iteration_range") {
            self.add(
                Info,
                "first-only",
                "advanced_thread_trace",
                "without a range, a thread trace is made of the first launch of each kernel only",
            );
        }
        if att && !self.has("kernel_include_regex") {
            self.add(
                Warning,
                "all-kernels",
                "advanced_thread_trace",
                "a thread trace of every kernel of the program: each fills buffers of hundreds of megabytes",
            );
        }
    }

    /// Checks counters together with other options, since collecting counters serializes the kernels.
    fn check_counters(&mut self) {
        let (counters, traced) = (self.has_counters(), self.is_traced());
        if counters && traced {
            self.add(
                Warning,
                "serialized",
                "pmc",
                "while counters are collected, kernels run one at a time, selected or not: times of this job's trace are not those of the program, and kernels that wait for each other (RCCL) may hang",
            );
        } else if counters {
            self.add(
                Info,
                "serialized",
                "pmc",
                "while counters are collected, kernels run one at a time, selected or not; kernels that wait for each other (RCCL) may hang",
            );
        }
        if self.has("pmc") && self.has("pmc_groups") {
            self.add(Error, "two-ways", "pmc_groups", "`pmc` and `pmc_groups` in one job: rocprofv3 refuses them");
        }
        if self.has("pmc") && ["att_perfcounters", "att_perfcounter_ctrl", "att_activity"].iter().any(|n| self.has(n)) {
            self.add(
                Error,
                "two-ways",
                "pmc",
                "`pmc` beside counters of the thread trace (att_perfcounters, att_activity): rocprofv3 refuses them",
            );
        }
        if self.has("pmc_groups") {
            self.add(
                Info,
                "groups-rotate",
                "pmc_groups",
                "the groups take turns over the selected launches of a GPU: launches beside each other have different counters",
            );
        }
    }

    /// Checks the options of thread traces and of PC sampling.
    fn check_sampling(&mut self) {
        let att = self.has_thread_trace();
        if !att && self.job.keys.iter().any(|k| k.name.starts_with("att_")) {
            self.add(Warning, "att-unused", "", "options `att_…` do nothing without advanced_thread_trace: true");
        }
        let sampling = ["pc_sampling_unit", "pc_sampling_method", "pc_sampling_interval"];
        let set = sampling.iter().filter(|n| self.has(n)).count();
        if (1..3).contains(&set) {
            self.add(Error, "pc-sampling", "", "PC sampling needs pc_sampling_unit, pc_sampling_method and pc_sampling_interval together");
        }
        if set > 0 && !self.has("pc_sampling_beta_enabled") {
            self.add(Error, "pc-sampling", "", "PC sampling needs pc_sampling_beta_enabled: true");
        }
    }

    /// Checks `selected_regions`: conflicts with other options, and its effect on launch numbers.
    fn check_regions(&mut self) {
        if self.has("selected_regions") && (self.has("collection_period") || self.has("att_consecutive_kernels")) {
            self.add(
                Error,
                "two-ways",
                "selected_regions",
                "`selected_regions` cannot be combined with collection_period or att_consecutive_kernels",
            );
        }
        if self.has("selected_regions") {
            let numbered = self.has("kernel_iteration_range");
            let counts = "; launches are counted from the program's start, outside of the regions too (ROCm/rocm-systems#7299 changes that to the region's begin)";
            let text = format!(
                "`selected_regions`: only launches between roctxProfilerResume and roctxProfilerPause are collected{}",
                if numbered { counts } else { "" }
            );
            self.add(if numbered { Warning } else { Info }, "regions", "selected_regions", &text);
        }
    }

    /// Checks kernel replay, which requires counters and excludes PC sampling and SPM.
    fn check_replay(&mut self) {
        if find_value(self.job, "replay_mode").is_some_and(|v| v.to_text() == "kernel") {
            let others = [("pc_sampling_beta_enabled", "PC sampling"), ("spm", "SPM")];
            for (name, what) in others {
                if self.has(name) {
                    self.add(Error, "two-ways", "replay_mode", &format!("`replay_mode` beside {what}: rocprofv3 refuses them"));
                }
            }
            if !self.has("pmc") && !self.has("pmc_groups") {
                self.add(Error, "replay", "replay_mode", "`replay_mode` needs counters: pmc or pmc_groups");
            }
            if !self.has("kernel_replay_beta_enabled") {
                self.add(
                    Warning,
                    "replay",
                    "replay_mode",
                    "`replay_mode` needs kernel_replay_beta_enabled: true, here or on the command line",
                );
            }
        }
    }

    /// Checks what the job collects, and where the results go.
    fn check_results(&mut self) {
        if collected_data(self.job).is_empty() && !self.has("list_avail") && !self.has("list_metrics") {
            self.add(Warning, "collects-nothing", "", "this job collects nothing: no trace, no counters, no thread trace");
        }
        let gone: Vec<String> = value_texts(find_value(self.job, "pmc")).into_iter().filter(|c| GONE.contains(&c.as_str())).collect();
        if !gone.is_empty() {
            let text = format!("{} do not exist on MI300 and MI350 (gfx942, gfx950): rocprofv3 warns and leaves them out", gone.join(", "));
            self.add(Warning, "counter-gone", "pmc", &text);
        }
        let named: Vec<String> =
            ["output_file", "output_directory"].iter().filter_map(|n| find_value(self.job, n)).map(Value::to_text).collect();
        if self.has("output_file") && named.iter().all(|n| !n.contains('%') && !n.contains('{')) {
            self.add(
                Info,
                "one-process",
                "output_file",
                "several processes (or ranks) overwrite each other's files of this name; `%pid%` or `%rank%` in it keeps them apart",
            );
        }
    }
}

/// Checks the file as a whole.
pub(super) fn of_file(name: &str, jobs: &[Job], beside: &[Key]) -> Vec<JobProblem> {
    let mut out = Vec::new();
    // `rocprofv3.py` reads only `data["jobs"]`, in all releases up to 7.2.
    for key in beside {
        let text = format!("`{}` is outside `jobs`: rocprofv3 reads only the list `jobs` and silently ignores it", key.name);
        out.push(match find_option(&key.name) {
            Some(_) => JobProblem::new(Error, "beside-jobs", key.line, text).with_fix("put it into each job that it is meant for"),
            None => JobProblem::new(Info, "beside-jobs", key.line, text),
        });
    }
    if jobs.is_empty() {
        out.push(JobProblem::new(Error, "no-jobs", None, "there is no job in it"));
    }
    if matches!(name.rsplit_once('.'), Some((_, "txt" | "text"))) {
        let text = "text files are out of date since ROCm 7.2.4; of their lines rocprofv3 reads `pmc:` only, no filters";
        out.push(JobProblem::new(Warning, "text-file", None, text).with_fix("write the jobs as YAML"));
    }
    let with = jobs.iter().filter(|j| find_value(j, "pmc").is_some()).count();
    if jobs.len() > 1 && with < jobs.len() {
        let text = format!(
            "{with} of {} jobs have counters: up to ROCm 7.2.3 the program runs once for each job, from 7.2.4 on only for {}",
            jobs.len(),
            match with {
                0 => "none".to_owned(),
                1 => "the one with `pmc`".to_owned(),
                _ => format!("the {with} with `pmc`"),
            }
        );
        out.push(
            JobProblem::new(Error, "jobs-dropped", None, text)
                .with_fix("put each job without counters in a file of its own, and run rocprofv3 for each file"),
        );
    } else if jobs.len() > 1 {
        let text = format!("the program runs {} times, once for each job; results are in pass_1 to pass_{}", jobs.len(), jobs.len());
        out.push(JobProblem::new(Info, "runs", None, text));
    }
    out
}
