//! Command with which the built-in tracer measures the selected launches while the program runs: `warpscope trace
//! --measure NAME#N`. Only these launches are replayed, and the command also records a timeline.
//!
//! The tracer counts launches of a function or symbol per process, from 1, in the order of their calls. Kernels
//! launched by a CUDA graph do not count, since they have no separate calls.

use super::facts::launch_device;
use super::launch_skip::{self, Unit};
use super::ncu_builder::Draft;
use super::ncu_report_selection::has_all_launches;
use super::processes::Scope;
use super::warning::{Warning, warning};
use super::{Collect, CommandPart, Cost, OpenedBy, Options, PartId, RangeName, Rerun, capture_range, ncu_builder, parts, ranges};
use crate::model::{Kernel, NameForm, Profile, RangeOrigin, Severity};

/// Maximum number of launches per request, which the tracer's injection library limits.
const MOST: usize = 128;

/// Describes the metrics that are measured to answer a question.
pub fn describe_metrics(collect: &Collect) -> &'static str {
    match tracer_questions(collect) {
        _ if is_stall_sampling(collect) => "stall reasons of each instruction",
        None => "all counters, and stall reasons",
        Some("roofline") => "counters of the rooflines",
        Some("roofline,cause") => "counters that hints need most",
        Some("cause,memory,accesses") => "counters of caches, memory and accesses",
        Some(_) => "counters of pipes and operations",
    }
}

/// Returns true if warp stalls are sampled instead of counters being read.
fn is_stall_sampling(collect: &Collect) -> bool {
    matches!(collect, Collect::Question("source" | "stalls"))
}

/// Returns the tracer's names of the questions; `None` for all.
fn tracer_questions(collect: &Collect) -> Option<&'static str> {
    match collect {
        Collect::Question("bound") => Some("roofline,cause"),
        Collect::Question("memory") => Some("cause,memory,accesses"),
        Collect::Question("compute") => Some("cause,pipes,operations"),
        Collect::Question("occupancy") => Some("roofline"),
        _ => None,
    }
}

/// Oldest compute capability that CUPTI's Range Profiling API supports, according to its documentation.
const OLDEST: (u32, u32) = (7, 5);

/// Explains in a sentence for the user why a launch cannot be measured in place.
fn refusal_reason(profile: &Profile, row: usize) -> Option<String> {
    let launches = &profile.launches;
    let config = launches.config(row).and_then(|c| profile.configs.get(c.0 as usize));
    let kernel = profile.kernels.get(launches.kernel(row).0 as usize);
    let capability = launch_device(profile, row).and_then(|d| d.compute_capability);
    if let Some((major, minor)) = capability.filter(|c| *c < OLDEST) {
        return Some(format!(
            "launch {row} ran on a GPU of compute capability {major}.{minor}, and CUPTI measures launches in place since Turing (7.5)"
        ));
    }
    if launches.graph_node(row).is_some() {
        return Some(format!(
            "launch {row} is made by a CUDA graph, and the tracer measures only kernels that are launched by themselves: use ncu"
        ));
    }
    if config.is_some_and(|c| c.cooperative) {
        return Some(format!("launch {row} is cooperative, which the tracer does not measure: use ncu"));
    }
    kernel.and_then(|k| ranges::waits_for_others(profile, k)).map(|why| format!("launch {row} is not measured in place: {why}"))
}

/// Returns the name to pass to the tracer: the function name, unless the symbol was requested or the function name is
/// not a plain identifier.
fn name_of(kernel: &Kernel, options: &Options) -> Result<(NameForm, String), String> {
    let plain = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '$') && !name.is_empty();
    let function = launch_skip::compared_name(kernel, NameForm::Function).filter(|n| plain(n));
    let mangled = launch_skip::compared_name(kernel, NameForm::Mangled);
    let order = if options.base.0 == NameForm::Mangled { [mangled, function] } else { [function, mangled] };
    let name = order.into_iter().flatten().next();
    let name = name.ok_or("the report has neither the function's name nor the symbol of this kernel, which the tracer needs: use ncu")?;
    Ok((if Some(name) == mangled && Some(name) != function { NameForm::Mangled } else { NameForm::Function }, name.to_owned()))
}

/// Formats a range for `--only-range`.
fn range_word(profile: &Profile, range: RangeName) -> Option<String> {
    let (domain, text) = profile.ranges.names.get(range.name as usize)?;
    let text = text.replace('@', "\\@");
    match domain.as_deref() {
        Some(domain) if domain.contains([':', '@']) => None,
        Some(domain) => Some(format!("{text}@{domain}")),
        None => Some(text),
    }
}

/// Returns one command for all these launches.
pub fn build_command(profile: &Profile, rows: &[usize], options: &Options) -> Result<Rerun, String> {
    if rows.is_empty() {
        return Err("no launch is selected".to_owned());
    }
    if rows.len() > MOST {
        return Err(format!("{} launches are selected; the tracer measures at most {MOST} by their numbers", rows.len()));
    }
    if let Some(why) = rows.iter().find_map(|&r| refusal_reason(profile, r)) {
        return Err(why);
    }
    let stalls = is_stall_sampling(&options.collect);
    let mut asked: Vec<CommandPart> = Vec::new();
    let (mut selects, mut warnings, mut base) = (Vec::new(), Vec::<Warning>::new(), NameForm::Function);
    for &row in rows {
        let kernel = profile.kernels.get(profile.launches.kernel(row).0 as usize).cloned().unwrap_or_default();
        let (form, name) = name_of(&kernel, options)?;
        base = form;
        let own = Options { base: super::Base(form), whole_graph: false, replay: None, ..options.clone() };
        let draft = Draft::new(profile, std::slice::from_ref(&row), &own)?;
        let opened = capture_range::opened_by(profile, options);
        let late = draft.gate.api.is_some() || draft.gate.late || opened == OpenedBy::Late;
        if late && draft.gate.range.is_none() {
            let marked = profile.ranges.iter().any(|r| matches!(r.origin, RangeOrigin::Nvtx));
            let or = if marked { "count inside an NVTX range (field `scope`), or " } else { "" };
            return Err(format!(
                "the capture did not begin with the program, so the tracer cannot count to this launch: {or}use ncu (field `profiler`)"
            ));
        }
        let mut population = draft.gate.population(profile, opened, draft.pid);
        population.without_nodes = true;
        // The tracer ignores `cudaProfilerStop`.
        population.stops.clear();
        population.first_window = false;
        let unit = Unit::with_name(profile, form, Some(&name));
        let number = launch_skip::count_candidates(profile, &population, &unit, &[row]).in_process.first().copied().unwrap_or_default() + 1;
        if asked.is_empty() {
            asked.extend(common_parts(profile, &draft)?);
            if late {
                let text = "the capture began after the program started, and the NVTX range may have been entered before: if so, an earlier launch is measured";
                warnings.push(Warning { inexact: true, ..warning("count", Severity::Warning, text) });
            }
            if let Scope::AtOnce { processes: 1, because, .. } = draft.scope {
                let text = "the program exchanges data with other ranks, which are not in this report: it does not start alone";
                let told = warning("processes", Severity::Warning, text)
                    .with_fix("give the launcher's whole command (torchrun, mpirun) as the program");
                // A rank that was guessed may be another one.
                warnings.push(Warning { inexact: because.is_some(), ..told });
            } else if let Scope::InTurn(n) | Scope::AtOnce { processes: n, because: Some(_), .. } = draft.scope {
                let text = format!("{n} processes launch this kernel, and each that is recorded measures its own launch of that number");
                warnings.push(Warning { inexact: true, ..warning("processes", Severity::Warning, text) });
            }
        }
        let what = if stalls {
            "Stall reasons of this launch are sampled at each of its instructions"
        } else {
            "CUPTI replays this launch for each pass, and restores its memory"
        };
        let why = format!(
            "{what}; launches of this {} are counted from 1 in each process.",
            if form == NameForm::Mangled { "symbol" } else { "function" }
        );
        let option = if stalls { "--stalls" } else { "--measure" };
        asked.push(CommandPart { id: PartId::Which, words: vec![option.to_owned(), format!("{name}#{number}")], why });
        selects.extend(draft.selected_launches());
    }
    let why = "The built-in tracer: the program runs as it is, and CUPTI (12.6 or newer) reads the counters of chosen launches.";
    let mut all = vec![CommandPart { id: PartId::Tool, words: ["warpscope", "trace"].map(str::to_owned).to_vec(), why: why.to_owned() }];
    all.append(&mut asked);
    if let Some(list) = tracer_questions(&options.collect).filter(|_| !stalls) {
        let why = format!("What is measured: {}.", describe_metrics(&options.collect));
        all.push(CommandPart { id: PartId::Collect, words: vec!["--questions".to_owned(), list.to_owned()], why });
    }
    let output = options.output.clone().unwrap_or_else(|| ncu_builder::report_stem(profile, rows));
    let why = format!("The traces: {output}.PID.wstrace, one for each process that uses CUDA, with the results in them.");
    all.push(CommandPart { id: PartId::Output, words: vec!["--output".to_owned(), output.clone()], why });
    let program = super::program::resolve_program(profile, options);
    let directory = program.directory.clone();
    all.push(parts::program(&program));
    if profile.capture.gate.is_none() && !profile.launches.has_start_times() && !has_all_launches(profile) {
        let text =
            "the launches of this report are results of a profiler, which may have left others out: the number may be wrong".to_owned();
        warnings.push(Warning { inexact: true, ..warning("count", Severity::Warning, text) });
    }
    Ok(Rerun {
        tool: "trace",
        parts: all,
        directory,
        selects,
        base,
        warnings,
        alternatives: Vec::new(),
        cost: Cost { runs: 1, ..Cost::default() },
        output,
        wrapper: None,
    })
}

/// Options that select processes and restrict the launches in them.
fn common_parts(profile: &Profile, draft: &Draft<'_>) -> Result<Vec<CommandPart>, String> {
    let mut out = Vec::new();
    if let Scope::AtOnce { rank, .. } = draft.scope {
        let why = format!("Only rank {rank} is recorded, by the variables of its launcher.");
        out.push(CommandPart { id: PartId::Processes, words: vec!["--ranks".to_owned(), rank.to_string()], why });
    }
    if let Some((range, nth)) = draft.gate.range {
        let label = profile.ranges.label(range.name);
        let word = range_word(profile, range)
            .ok_or_else(|| format!("the domain of the NVTX range {label:?} has a colon or an @ in its name: count in another range"))?;
        let mut words = vec!["--only-range".to_owned(), word];
        let which = nth.map_or_else(|| "ranges of this name".to_owned(), |n| format!("this NVTX range, number {n}"));
        words.extend(nth.into_iter().flat_map(|n| ["--only-nth".to_owned(), n.to_string()]));
        out.push(CommandPart { id: PartId::Gate, words, why: format!("Only launches inside {which} are counted.") });
    }
    Ok(out)
}
