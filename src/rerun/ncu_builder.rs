//! The intermediate state from which an ncu command is built, and the parts of that command.

use super::capture_range::{self, Gate};
use super::facts::Facts;
use super::launch_skip::{self, Count, Unit};
use super::nvtx::{self, Enclosing};
use super::options::{Options, Replay};
use super::processes::{self, Scope};
use super::program::{self, Program};
use super::warning::Warning;
use super::warnings;
use super::{CommandPart, Cost, PartId, Rerun, Selects, collect, parts, ranges, shell};
use crate::model::kernel::truncated_prefix;
use crate::model::{Kernel, LaunchId, NameForm, Nanos, Profile, units};

fn kernel_of(profile: &Profile, row: usize) -> Kernel {
    profile.kernels.get(profile.launches.kernel(row).0 as usize).cloned().unwrap_or_default()
}

/// Returns a report name for these launches.
pub fn report_stem(profile: &Profile, rows: &[usize]) -> String {
    let Some(&first) = rows.first() else {
        return "kernel".to_owned();
    };
    let name = shell::file_stem(kernel_of(profile, first).function());
    match rows.len() {
        1 => format!("{name}-{first}"),
        n => format!("{name}-{first}-and-{}-more", n - 1),
    }
}

/// Facts required to build a command.
pub(super) struct Draft<'a> {
    pub(super) profile: &'a Profile,
    pub(super) options: &'a Options,
    pub(super) rows: &'a [usize],
    pub(super) kernel: Kernel,
    pub(super) pid: u32,
    pub(super) base: NameForm,
    /// The name to compare; `None` if the report does not have the kernel's name in any form.
    pub(super) name: Option<String>,
    pub(super) gate: Gate,
    pub(super) around: Vec<Enclosing>,
    pub(super) count: Count,
    pub(super) scope: Scope,
    /// Launches that ncu counts before each selected launch.
    pub(super) skips: Vec<u64>,
    program: Program,
    whole_graphs: bool,
    /// Measures the range around the launch instead of the launch itself.
    pub(super) as_range: bool,
}

/// Returns the name form to compare: the requested one if the report has it, otherwise the first available.
fn base_of(kernel: &Kernel, wanted: NameForm) -> (NameForm, Option<String>) {
    let forms = || [wanted, NameForm::Function, NameForm::Mangled, NameForm::Demangled].into_iter();
    let given = |whole: bool| {
        forms().find_map(|base| {
            launch_skip::compared_name(kernel, base).filter(|n| !whole || truncated_prefix(n).is_none()).map(|n| (base, Some(n.to_owned())))
        })
    };
    // A truncated name is better than none.
    given(true).or_else(|| given(false)).unwrap_or((wanted, None))
}

impl<'a> Draft<'a> {
    pub(super) fn new(profile: &'a Profile, rows: &'a [usize], options: &'a Options) -> Result<Self, String> {
        let first = *rows.first().ok_or("no launch is selected")?;
        let kernel = kernel_of(profile, first);
        let pid = profile.launch_pid(first);
        let (base, name) =
            if options.whole_graph { (NameForm::Function, Some("graph".to_owned())) } else { base_of(&kernel, options.base.0) };
        // Overloads share a function name but have different symbols; a command compares only one name.
        if rows
            .iter()
            .any(|&row| launch_skip::compared_name(&kernel_of(profile, row), base).map(str::to_owned) != name && !options.whole_graph)
        {
            return Err(format!("these launches do not share one {} name", base.as_str()));
        }
        let around = nvtx::enclosing_ranges(profile, first);
        let gate = Gate::resolve(profile, options, &around)?;
        if options.whole_graph && profile.launches.graph_node(first).is_none() {
            return Err(format!("launch {first} does not come from a CUDA graph"));
        }
        let opened = capture_range::opened_by(profile, options);
        let whole_graphs = options.whole_graph || !profile.graphs.is_empty();
        if whole_graphs && !options.whole_graph && name.as_deref().is_none_or(|n| n == "graph") {
            return Err("CUDA graphs were traced as a whole, and ncu calls them all graph: this kernel cannot be told apart from them; record with `nsys profile --cuda-graph-trace=node`".to_owned());
        }
        let mut population = gate.population(profile, opened, pid);
        population.without_nodes = whole_graphs && !options.whole_graph;
        for &row in rows {
            if profile.launches.call(row).is_none() && population.only_called {
                return Err(format!(
                    "launch {row} was made before the capture opened (its API call is not in the report), so a run with the same capture range does not reach it; choose a later launch"
                ));
            }
            if population.is_stopped(profile, row) {
                return Err(format!(
                    "launch {row} comes after cudaProfilerStop, where ncu stops with the capture range of this report; choose an earlier launch, or say that the capture was opened by the start of the program if nothing ran before it"
                ));
            }
            if !population.contains_launch(profile, row) {
                return Err(format!("launch {row} is outside the range in which the others are counted"));
            }
        }
        let unit = if options.whole_graph { Unit::whole_graphs(profile) } else { Unit::with_name(profile, base, name.as_deref()) };
        let count = launch_skip::count_candidates(profile, &population, &unit, rows);
        let scope = processes::resolve_scope(profile, &count, pid, options.rank);
        let skips = if matches!(scope, Scope::InTurn(_)) { count.in_all.clone() } else { count.in_process.clone() };
        let as_range = match options.replay {
            Some(replay) => replay == Replay::AppRange,
            None => !options.whole_graph && ranges::waits_for_others(profile, &kernel).is_some(),
        };
        let program = program::resolve_program(profile, options);
        Ok(Self { profile, options, rows, kernel, pid, base, name, gate, around, count, scope, skips, program, whole_graphs, as_range })
    }

    pub(super) fn are_adjacent(&self) -> bool {
        self.skips.windows(2).all(|w| w[1] == w[0] + 1)
    }

    /// Returns true if scattered launches can be selected by number: `--kernel-id` counts per process and name.
    pub(super) fn by_number(&self) -> bool {
        self.name.is_some() && !matches!(self.scope, Scope::InTurn(_))
    }

    fn name_part(&self) -> CommandPart {
        let mut words = Vec::new();
        if self.base != NameForm::Function {
            words.extend(["--kernel-name-base".to_owned(), self.base.as_str().to_owned()]);
        }
        let why = match &self.name {
            None => "The report has no name for this kernel, so all kernels are counted.".to_owned(),
            Some(name) => {
                words.extend(["--kernel-name".to_owned(), exact_name(name)]);
                match (self.base, self.count.kernels) {
                    _ if truncated_prefix(name).is_some() => {
                        "The tool cut this name: every kernel that begins like it is counted.".to_owned()
                    }
                    _ if self.options.whole_graph => "ncu calls every CUDA graph launch graph.".to_owned(),
                    (NameForm::Function, n) if n > 1 => {
                        format!(
                            "The function name, without namespaces, template arguments and parameters: {n} kernels in this report share it, and all are counted."
                        )
                    }
                    (NameForm::Function, _) => {
                        "The function name, without namespaces, template arguments and parameters; the whole name must match.".to_owned()
                    }
                    (NameForm::Demangled, _) => "The full name as nvcc spells it; the whole name must match.".to_owned(),
                    (NameForm::Mangled, _) => "The linker symbol: no other kernel shares it.".to_owned(),
                }
            }
        };
        CommandPart { id: PartId::Name, words, why }
    }

    /// Returns `--launch-skip` and `--launch-count`, or `--kernel-id` for launches that are not adjacent.
    fn selection_parts(&self) -> Vec<CommandPart> {
        let (Some(&skip), n) = (self.skips.first(), self.skips.len()) else {
            return Vec::new();
        };
        let what = if self.options.whole_graph { "graph launches" } else { "launches of this name" };
        let place = match (&self.gate, &self.scope) {
            (Gate { range: Some(_), .. } | Gate { api: Some(_), .. }, _) => " within the filters",
            (_, Scope::InTurn(_)) => " across all processes",
            _ => "",
        };
        if self.are_adjacent() {
            let skipped = units::format_grouped(skip);
            let skips = match skip {
                1 => format!("one of the {what}"),
                _ => format!("{skipped} {what}"),
            };
            let row = if n == 1 { "" } else { " in a row" };
            let why = if skip == 0 && n == 1 {
                format!("Profiles the first of the {what}{place}, in host call order.")
            } else if skip == 0 {
                format!("Profiles the first {n} {what}{place}, in host call order.")
            } else {
                format!("Skips {skips}{place}, in host call order, then profiles {n}{row}.")
            };
            let words = ["--launch-skip".to_owned(), skip.to_string(), "--launch-count".to_owned(), n.to_string()].to_vec();
            return vec![self.name_part(), CommandPart { id: PartId::Which, words, why }];
        }
        let numbers = self.skips.iter().map(|r| (r + 1).to_string()).collect::<Vec<_>>().join("|");
        let mut name = self.name_part();
        name.words.truncate(name.words.len().saturating_sub(2));
        let id = format!("::{}:{numbers}", id_name(self.name.as_deref().unwrap_or_default()));
        let words = ["--kernel-id".to_owned(), id, "--launch-count".to_owned(), n.to_string()].to_vec();
        let why = format!("Any context and stream; then the name, and the numbers of the {n} {what} to profile{place}, counted from 1.");
        vec![name, CommandPart { id: PartId::Which, words, why }]
    }

    fn build_parts(&self) -> Vec<CommandPart> {
        let o = self.options;
        let mut parts = vec![parts::tool()];
        if self.as_range {
            parts.extend(self.range_parts());
        } else {
            parts.extend(self.scope.to_part());
            parts.extend(self.gate.to_part(self.profile));
            if self.whole_graphs {
                let why = if o.whole_graph {
                    "Each CUDA graph launch is profiled as a whole."
                } else {
                    "Each CUDA graph launch counts as one, under the name graph; the kernels inside are not counted, as in the capture."
                };
                parts.push(CommandPart {
                    id: PartId::Graphs,
                    words: ["--graph-profiling", "graph"].map(str::to_owned).to_vec(),
                    why: why.to_owned(),
                });
            }
            parts.extend(self.selection_parts());
        }
        parts.extend(parts::settings(self.profile, o, self.as_range));
        let output = self.output_path();
        parts.push(parts::output(&output, o.overwrite));
        if let Scope::AtOnce { rank, .. } = self.scope
            && !self.as_range
            && let Some(launched) = processes::launcher_parts(&parts, rank, &self.program.argv)
        {
            return launched;
        }
        parts.push(parts::program(&self.program));
        parts
    }

    /// Parts for measuring the range around a kernel that cannot be replayed alone.
    fn range_parts(&self) -> Vec<CommandPart> {
        let mut parts = vec![CommandPart {
            id: PartId::Processes,
            words: ["--target-processes", "all"].map(str::to_owned).to_vec(),
            why: "All processes run under ncu, so a kernel that waits for another rank finds it running.".to_owned(),
        }];
        // `cudaProfilerStart` and `cudaProfilerStop` may delimit the range, so do not ignore them.
        let mut gate = Gate { ignore_api: false, ..self.gate.clone() };
        if gate.range.is_none() && gate.api.is_none() {
            let usable = self.around.iter().find(|e| nvtx::filter_expression(self.profile, e.range).is_some());
            gate.range = usable.map(|e| (e.range, e.filter_number().filter(|_| !gate.late)));
        }
        match (gate.range, gate.to_part(self.profile)) {
            (None, Some(mut part)) if gate.api == Some(1) => {
                part.words = ["--range-filter", ":1:"].map(str::to_owned).to_vec();
                part.why = String::from("The range runs from the first cudaProfilerStart to cudaProfilerStop, as in the capture.");
                parts.push(part);
            }
            (_, Some(mut part)) => {
                part.why = format!("{} They are the range that is measured.", part.why);
                parts.push(part);
            }
            (_, None) => {}
        }
        parts
    }

    fn output_path(&self) -> String {
        let own = || match self.skips.first() {
            Some(rank) if self.options.whole_graph => format!("graph-{rank}"),
            _ => report_stem(self.profile, self.rows),
        };
        self.options.output.clone().unwrap_or_else(own)
    }

    pub(super) fn selected_launches(&self) -> Vec<Selects> {
        let unit = Unit::with_name(self.profile, NameForm::Function, launch_skip::compared_name(&self.kernel, NameForm::Function));
        let plain = self.gate == Gate::default() && self.base == NameForm::Function && !self.whole_graphs && !self.options.whole_graph;
        let nth = if plain {
            self.count.in_process.clone()
        } else {
            launch_skip::count_candidates(self.profile, &launch_skip::Population::default(), &unit, self.rows).in_process
        };
        self.rows.iter().zip(nth).map(|(&row, nth)| select_launch(self.profile, row, nth)).collect()
    }

    pub(super) fn collect_warnings(&self) -> Vec<Warning> {
        let mut all = warnings::run_checks(&Facts {
            profile: self.profile,
            options: self.options,
            rows: self.rows,
            kernel: &self.kernel,
            pid: self.pid,
            base: self.base,
            gate: &self.gate,
            scope: &self.scope,
            count: &self.count,
            around: &self.around,
            program: &self.program,
            whole_graphs: self.whole_graphs,
            as_range: self.as_range,
        });
        if self.as_range && !self.range_parts().iter().any(|p| p.id == PartId::Gate) {
            all.push(warnings::no_range());
        }
        all
    }

    pub(super) fn estimate_cost(&self) -> Cost {
        let figure = self.options.collect.cost_per_result();
        let n = self.rows.len().max(1) as f64;
        let runs = match (self.options.replay, self.as_range, figure) {
            (Some(Replay::Application), _, Some((f, _))) | (_, true, Some((f, _))) => f.passes.max(1),
            _ => 1,
        };
        let skipped = self.skips.last().map_or(0, |r| r.saturating_sub(self.skips.len() as u64 - 1));
        let counting =
            collect::START_SECONDS + self.count.others as f64 * collect::OTHER_SECONDS + skipped as f64 * collect::SKIPPED_SECONDS;
        let kernel: f64 = self.rows.iter().map(|&r| self.profile.launches.duration(r) as f64 / 1e9).sum();
        Cost {
            passes: figure.map(|(f, _)| f.passes),
            at_most: figure.is_some_and(|(_, at_most)| at_most),
            seconds: figure.map(|(f, _)| counting * f64::from(runs) + f.seconds * n + kernel * f64::from(f.passes)),
            bytes: figure.map(|(f, _)| collect::BASE_BYTES + f.bytes * self.rows.len().max(1) as u64),
            runs,
        }
    }

    pub(super) fn build_rerun(&self) -> Rerun {
        let parts = self.build_parts();
        let lone = matches!(self.scope, Scope::AtOnce { .. }) && !self.as_range;
        let known_launcher = parts.iter().any(|p| p.id == PartId::Processes && p.words.first().is_some_and(|w| w == "sh"));
        let wrapper = match self.scope {
            Scope::AtOnce { rank, .. } if lone && !known_launcher => Some(processes::wrapper_script(&parts, rank)),
            _ => None,
        };
        let selects = if self.as_range { Vec::new() } else { self.selected_launches() };
        let selects = if self.options.whole_graph {
            self.rows.iter().zip(&self.skips).map(|(&row, &rank)| select_graph(self.profile, row, rank)).collect()
        } else {
            selects
        };
        Rerun {
            tool: "ncu",
            parts,
            directory: self.program.directory.clone(),
            selects,
            base: self.base,
            warnings: self.collect_warnings(),
            alternatives: Vec::new(),
            cost: self.estimate_cost(),
            output: self.output_path(),
            wrapper,
        }
    }
}

/// Returns the value for `--kernel-name`; a name that would be parsed as a regular expression is turned into an escaped
/// one.
fn exact_name(name: &str) -> String {
    if let Some(prefix) = truncated_prefix(name) {
        return format!("regex:^{}", shell::escape_regex(prefix));
    }
    if name.starts_with("regex:") || name.starts_with('-') { format!("regex:^{}$", shell::escape_regex(name)) } else { name.to_owned() }
}

/// Returns a name for `--kernel-id`, where a colon is not allowed.
fn id_name(name: &str) -> String {
    if let Some(prefix) = truncated_prefix(name) {
        return format!("regex:^{}", shell::escape_regex(prefix).replace(':', r"\x3a"));
    }
    if name.contains(':') { format!("regex:^{}$", shell::escape_regex(name).replace(':', r"\x3a")) } else { name.to_owned() }
}

/// Returns the graph launch of a node, from the start of its first node to the end of its last.
fn select_graph(profile: &Profile, row: usize, rank: u64) -> Selects {
    let launches = &profile.launches;
    let call = launches.order_key(row).0;
    let mine = |r: &usize| launches.graph_node(*r).is_some() && launches.order_key(*r).0 == call;
    let first = (0..=row).rev().take_while(mine).last().unwrap_or(row);
    let nodes = (first..launches.len()).take_while(mine);
    let (from, to) = nodes.fold((i64::MAX, i64::MIN), |(from, to), r| (from.min(launches.start(r)), to.max(launches.end(r))));
    Selects {
        kernel: "graph".to_owned(),
        demangled: None,
        mangled: None,
        launch: u32::try_from(first).ok().map(LaunchId),
        nth: rank,
        skipped: 0,
        grid: None,
        block: None,
        duration: Nanos(to.saturating_sub(from)),
        alike: 0,
    }
}

fn select_launch(profile: &Profile, row: usize, nth: u64) -> Selects {
    let kernel = kernel_of(profile, row);
    let config = profile.launches.config(row).and_then(|c| profile.configs.get(c.0 as usize));
    Selects {
        kernel: kernel.function().to_owned(),
        demangled: kernel.demangled.as_deref().map(str::to_owned),
        mangled: kernel.mangled.as_deref().map(str::to_owned),
        launch: u32::try_from(row).ok().map(LaunchId),
        nth,
        skipped: 0,
        grid: config.and_then(|c| c.grid),
        block: config.and_then(|c| c.block),
        duration: Nanos(profile.launches.duration(row)),
        alike: count_alike(profile, row),
    }
}

/// Counts other launches of the same function with the same grid and block, which a comparison cannot distinguish.
fn count_alike(profile: &Profile, row: usize) -> u64 {
    let shape = |r: usize| profile.launches.config(r).and_then(|c| profile.configs.get(c.0 as usize)).map(|c| (c.grid, c.block));
    let wanted = shape(row);
    let same_config: Vec<bool> = profile.configs.iter().map(|c| Some((c.grid, c.block)) == wanted).collect();
    let function = profile.kernels.get(profile.launches.kernel(row).0 as usize).map(Kernel::function);
    let same_kernel: Vec<bool> = profile.kernels.iter().map(|k| Some(k.function()) == function).collect();
    let (kernels, configs, _) = profile.launches.group_keys();
    let same = kernels
        .iter()
        .zip(configs)
        .filter(|(k, c)| same_kernel.get(**k as usize) == Some(&true) && same_config.get(**c as usize) == Some(&true));
    (same.count() as u64).saturating_sub(1)
}
