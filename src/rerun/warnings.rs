//! Checks for re-runs that may select a different launch, or fail. Each check is a function and a row in [`CHECKS`],
//! and returns `None` if there is no such risk.

use super::capture_range;
use super::facts::Facts;
use super::launch_skip::calls_without_kernel;
use super::options::OpenedBy;
use super::options::Replay;
use super::processes::Scope;
use super::program;
use super::ranges;
use super::warning::{Warning, warning};
use crate::analysis::Family;
use crate::model::kernel::truncated_prefix;
use crate::model::units::format_count;
use crate::model::{CallKind, LaunchConfig, LaunchOrder, NameForm, NoteKind, Profile, Severity};
use std::collections::BTreeSet;

type Check = fn(&Facts<'_>) -> Option<Warning>;

/// All checks, most important first.
pub static CHECKS: &[(&str, Check)] = &[
    ("unsupported-gpu", unsupported_gpu),
    ("hidden-launches", hidden_launches),
    ("chosen-launches", super::ncu_report_selection::check_chosen_launches),
    ("processes", check_processes),
    ("numbered-range", numbered_range),
    ("lost-events", lost_events),
    ("launches-without-kernel", launches_without_kernel),
    ("shortened-name", shortened_name),
    ("names-missing", names_missing),
    ("threads", check_threads),
    ("device-order", device_order),
    ("graph-branches", graph_branches),
    ("waits-for-others", waits_for_others),
    ("cooperative", check_cooperative),
    ("autotuning", check_autotuning),
    ("serving", check_serving),
    ("whole-graphs", whole_graphs),
    ("rebuilt-symbol", rebuilt_symbol),
    ("program-unknown", program_unknown),
];

pub fn run_checks(facts: &Facts<'_>) -> Vec<Warning> {
    CHECKS.iter().filter_map(|(_, check)| check(facts)).collect()
}

/// Oldest compute capability that ncu profiles, and oldest one that ncu since 2025.3 profiles: release notes of Nsight
/// Compute 2020.1 and 2025.3.
const NCU_OLDEST: (u32, u32) = (7, 0);
const NEW_NCU_OLDEST: (u32, u32) = (7, 5);

fn unsupported_gpu(f: &Facts<'_>) -> Option<Warning> {
    let capability = |&row: &usize| super::facts::launch_device(f.profile, row)?.compute_capability;
    let oldest = f.rows.iter().filter_map(capability).min()?;
    let of = format!("compute capability {}.{}", oldest.0, oldest.1);
    if oldest < NCU_OLDEST {
        let text = format!("ncu will not profile this launch: it supports GPUs since Volta, and this one has {of}.");
        let fix = "nvprof measures it, or run the program on a newer GPU";
        return Some(warning("unsupported-gpu", Severity::Error, text).with_fix(fix).mark_inexact());
    }
    (oldest < NEW_NCU_OLDEST).then(|| {
        let text = format!("This GPU has {of}: ncu since 2025.3 no longer profiles it.");
        warning("unsupported-gpu", Severity::Info, text).with_fix("use ncu 2025.2 or older")
    })
}

/// The capture started late, and no ncu filter starts at the same point.
fn hidden_launches(f: &Facts<'_>) -> Option<Warning> {
    if !f.gate.late {
        return None;
    }
    let id = "hidden-launches";
    let Some((range, _)) = f.gate.range else {
        return Some(
            warning(
                id,
                Severity::Error,
                "No exact count is possible: the capture began after the program started, and the report does not say how many launches came before. \
                 The command counts from the program's start and will select an earlier launch of this kernel.",
            )
            .with_fix("if an NVTX range or cudaProfilerStart opened the capture, say so; otherwise put an NVTX range around the launch and record again")
            .mark_inexact(),
        );
    };
    let name = f.profile.ranges.label(range.name);
    let once = f.around.iter().any(|e| e.range == range && e.of == 1);
    Some(if once {
        warning(
            id,
            Severity::Warning,
            format!("The capture began after the program started: the count holds if the NVTX range {name:?} was not entered before that."),
        )
        .with_fix("check the name of the range in the program, or record again from its start")
        .mark_inexact()
    } else {
        warning(
            id,
            Severity::Error,
            format!(
                "No exact count is possible: the capture began after the program started, and the NVTX range {name:?} may have been entered before. \
                 The command selects the launch at this position in the earlier ranges of that name."
            ),
        )
        .with_fix("give each step's range a name of its own, or record again from the program's start")
        .mark_inexact()
    })
}

fn check_processes(f: &Facts<'_>) -> Option<Warning> {
    let id = "processes";
    match f.scope {
        Scope::One | Scope::ByName(_) => None,
        Scope::AtOnce { processes: 1, .. } if f.as_range => None,
        Scope::InTurn(n) => Some(warning(
            id,
            Severity::Warning,
            format!(
                "ncu has one global counter, which spans {n} processes here: the count holds as long as they run one after another, as in this report."
            ),
        )),
        Scope::AtOnce { processes, rank, because } => {
            let text = if *processes == 1 {
                format!(
                    "The program exchanges data with other ranks, which are not in this report: its launcher must start all of them, and only rank {rank} is profiled."
                )
            } else {
                format!(
                    "{processes} processes launch this kernel at the same time, so a shared count would be a race: only rank {rank} is profiled."
                )
            };
            Some(match because {
                Some(because) => warning(id, Severity::Warning, format!("{text} The rank is a guess: {because}."))
                    .with_fix("check the rank, and correct it if it is wrong")
                    .mark_inexact(),
                None => warning(id, Severity::Info, text),
            })
        }
    }
}

/// The number at the end of the file name may be the number of a range.
fn numbered_range(f: &Facts<'_>) -> Option<Warning> {
    let n = capture_range::range_of_file(f.profile).filter(|&n| n > 1 && f.options.opened_by.is_none())?;
    let api = f.gate.api.is_some();
    let range = matches!(capture_range::opened_by(f.profile, f.options), OpenedBy::Range(_));
    (api || range).then(|| {
        let text = format!(
            "The file's name ends in {n}: if it is number {n} of a capture with --capture-range-end=repeat, the range that opened it was not the first, and the count begins too early."
        );
        let fix = if api {
            format!("say which it is: --opened-by profiler:{n}, or --opened-by profiler if the number is a rank's")
        } else {
            "if it is, record without repeat".to_owned()
        };
        warning("numbered-range", Severity::Warning, text).with_fix(fix).mark_inexact()
    })
}

/// The profiler reported lost events. nsys' usual message about a capture that ends before the program does is not
/// counted here: the importer classifies it differently.
fn lost_events(f: &Facts<'_>) -> Option<Warning> {
    let lost = |n: &&crate::model::Note| {
        n.kind == NoteKind::Lost
            && n.severity >= Severity::Warning
            // Lost ranges matter only if launches are counted inside ranges.
            && (f.gate.range.is_some() || !n.text.contains("NVTX events"))
    };
    let note = f.profile.notes.iter().find(lost)?;
    Some(
        warning(
            "lost-events",
            Severity::Warning,
            format!("The count is a lower bound: events were lost ({}).", note.text.trim_end_matches('.')),
        )
        .with_fix("compare grid and block of the result with what is expected here")
        .mark_inexact(),
    )
}

fn launches_without_kernel(f: &Facts<'_>) -> Option<Warning> {
    let last = f.rows.last()?;
    let n = calls_without_kernel(f.profile, &f.counted_processes(), f.profile.launches.order_key(*last).0);
    (n > 0).then(|| {
        warning(
            "launches-without-kernel",
            Severity::Warning,
            format!(
                "{} before this one without a kernel in the report: the count may be too low by that many.",
                format_count(n, "launch call")
            ),
        )
        .with_fix("compare grid and block of the result with what is expected here")
        .mark_inexact()
    })
}

/// Maximum number of candidates to list.
const MOST_NAMED: usize = 4;

/// The tool truncated the name, so other names may have the same prefix.
fn shortened_name(f: &Facts<'_>) -> Option<Warning> {
    let name = super::launch_skip::compared_name(f.kernel, f.base)?;
    let prefix = truncated_prefix(name).filter(|_| !f.as_range && !f.options.whole_graph)?;
    let of = |s: &&crate::model::Shortened| f.profile.kernels.get(s.kernel.0 as usize) == Some(f.kernel);
    let listed = f.profile.shortened.iter().find(of).map_or(&[][..], |s| &s.candidates);
    let shown: Vec<&str> = listed.iter().take(MOST_NAMED).map(|c| &**c).collect();
    let more = listed.len().saturating_sub(MOST_NAMED);
    let candidates = match (shown.len(), more) {
        (0, _) => String::new(),
        (_, 0) => format!(" Whole names in the report that begin so: {}.", shown.join(", ")),
        _ => format!(" Whole names in the report that begin so: {} and {more} more.", shown.join(", ")),
    };
    let text =
        format!("nsys shortened the name of this kernel, which begins with {prefix:?}: all kernels that begin so are counted.{candidates}");
    let fix = "compare grid and block of the result with what is expected here, or name the kernel by its whole name";
    Some(warning("shortened-name", Severity::Warning, text).with_fix(fix).mark_inexact())
}

/// Some kernels have no name in the compared form: ncu sees their names, but the report does not contain them.
fn names_missing(f: &Facts<'_>) -> Option<Warning> {
    let named = super::launch_skip::compared_name(f.kernel, f.base).is_some();
    let n = f.profile.kernels.iter().filter(|k| super::launch_skip::compared_name(k, f.base).is_none()).count();
    (named && n > 0 && !f.as_range && !f.options.whole_graph).then(|| {
        let text = format!("{n} kernels have no {} name in the report: their launches may be counted, too.", f.base.as_str());
        warning("names-missing", Severity::Warning, text)
            .with_fix("compare grid and block of the result with what is expected here")
            .mark_inexact()
    })
}

fn check_threads(f: &Facts<'_>) -> Option<Warning> {
    let threads = f.count.threads;
    if threads.count < 2 || f.as_range {
        return None;
    }
    let n = threads.count;
    Some(if threads.race {
        warning(
            "threads",
            Severity::Warning,
            format!(
                "{n} threads launch at the same time or alternate rapidly: their order, and with it the count, may differ from run to run."
            ),
        )
        .with_fix("count inside an NVTX range that only one thread enters, or compare grid and block after the run")
        .mark_inexact()
    } else {
        warning("threads", Severity::Info, format!("{n} threads took turns launching: the count holds if they do so again."))
    })
}

fn device_order(f: &Facts<'_>) -> Option<Warning> {
    // Stream ids are unique only within a context.
    let mine = |p: &&crate::model::LaunchSite| p.pid.unwrap_or_default() == f.pid;
    let streams: BTreeSet<_> = f.profile.places.iter().filter(mine).map(|p| (p.ordinal, p.context, p.stream)).collect();
    let all = matches!(f.profile.order, LaunchOrder::Device) || f.profile.metrics.is_some();
    if f.count.uncalled == 0 || (all && streams.len() < 2) {
        return None;
    }
    Some(
        warning(
            "device-order",
            Severity::Warning,
            if all {
                "The report has no API calls: launches are counted by their start on the device, which may differ from the order on the host where several streams run.".to_owned()
            } else {
                format!("{} of the counted launches have no API call in the report; their place in the order is a guess.", f.count.uncalled)
            },
        )
        .with_fix("compare grid and block of the result with what is expected here")
        .mark_inexact(),
    )
}

fn config_of(profile: &Profile, row: usize) -> Option<&LaunchConfig> {
    profile.launches.config(row).and_then(|c| profile.configs.get(c.0 as usize))
}

/// Nodes of one graph launch that have the same name ran concurrently: ncu serializes them in its own order.
fn graph_branches(f: &Facts<'_>) -> Option<Warning> {
    if f.options.whole_graph || f.as_range {
        return None;
    }
    f.rows.iter().any(|&row| beside_its_like(f, row)).then(|| {
        warning(
            "graph-branches",
            Severity::Warning,
            "The graph has branches that run this kernel in parallel; ncu serializes them and may take them in a different order.",
        )
        .with_fix("compare grid and block after the run, or profile the whole graph")
        .mark_inexact()
    })
}

fn beside_its_like(f: &Facts<'_>, row: usize) -> bool {
    let launches = &f.profile.launches;
    if launches.graph_node(row).is_none() {
        return false;
    }
    let call = launches.order_key(row).0;
    let name = super::launch_skip::compared_name(f.kernel, f.base);
    let same = |r: usize| {
        launches.graph_node(r).is_some()
            && f.profile.kernels.get(launches.kernel(r).0 as usize).is_some_and(|k| super::launch_skip::compared_name(k, f.base) == name)
    };
    let before = (0..row).rev().take_while(|&r| launches.order_key(r).0 == call);
    let after = (row + 1..launches.len()).take_while(|&r| launches.order_key(r).0 == call);
    let beside = |r: usize| launches.start(r) < launches.end(row) && launches.start(row) < launches.end(r);
    before.chain(after).any(|r| same(r) && beside(r))
}

fn waits_for_others(f: &Facts<'_>) -> Option<Warning> {
    let why = ranges::waits_for_others(f.profile, f.kernel)?;
    Some(if f.as_range {
        warning(
            "waits-for-others",
            Severity::Warning,
            format!("The kernel cannot be replayed alone: {why}. The command measures the range around it, with everything that runs in it."),
        )
        .with_fix("all ranks must be rerun for every pass: if a launcher (torchrun, mpirun) starts them, put ncu and its options before the launcher's own command")
    } else {
        warning("waits-for-others", Severity::Error, format!("The kernel will hang under ncu: {why}."))
            .with_fix("choose the replay mode app-range")
    })
}

fn check_cooperative(f: &Facts<'_>) -> Option<Warning> {
    (!f.as_range
        && f.options.replay.unwrap_or_default() == Replay::Kernel
        && f.rows.iter().any(|&r| ranges::may_wait_for_gpus(f.profile, config_of(f.profile, r))))
    .then(|| {
        warning(
            "cooperative",
            Severity::Warning,
            "The launch is cooperative and several GPUs are in use: if its blocks wait for another GPU, it hangs under ncu.",
        )
        .with_fix("if it hangs, choose the replay mode app-range")
    })
}

/// Minimum number of block shapes of a Triton kernel before the selected launch that indicates autotuning.
const TUNED_SHAPES: usize = 3;

fn check_autotuning(f: &Facts<'_>) -> Option<Warning> {
    let cached = |text: String| {
        warning("autotuning", Severity::Warning, text)
            .with_fix("run the program once to fill the cache, record it again, and pick the launch there")
            .mark_inexact()
    };
    if f.count.variants > 1 {
        return Some(cached(format!(
            "Code that was compiled in {} ways ran in bursts before this launch, as when a compiler tunes a kernel: with a warm cache those launches \
             are not repeated.",
            f.count.variants
        )));
    }
    let triton = Family::guess(f.kernel.function(), f.kernel.demangled()) == Family::Triton || f.kernel.function().starts_with("triton_");
    (triton && f.count.shapes >= TUNED_SHAPES).then(|| {
        cached(format!(
            "The kernel ran with {} block shapes before this launch, as Triton does when autotuning: with a warm cache those launches are not repeated.",
            f.count.shapes
        ))
    })
}

/// Servers: the order of their launches depends on when requests arrive.
const SERVERS: [&str; 6] = ["vllm", "sglang", "trtllm-serve", "tritonserver", "text-generation-launcher", "lmdeploy"];

/// Returns the program, or the script or module that a Python interpreter runs: `vllm serve`, `python -u -m
/// sglang.launch_server`.
fn what_runs(argv: &[String]) -> Option<&str> {
    let base = |word: &'_ str| word.rfind('/').map_or(0, |at| at + 1);
    let first = argv.first()?;
    let name = &first[base(first)..];
    if !name.starts_with("python") {
        return Some(name);
    }
    let mut words = argv.iter().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "-m" => return words.next().map(String::as_str),
            "-X" | "-W" => {
                words.next();
            }
            w if w.starts_with('-') => {}
            w => return Some(&w[base(w)..]),
        }
    }
    None
}

fn check_serving(f: &Facts<'_>) -> Option<Warning> {
    let base = what_runs(&f.program.argv)?;
    let module = base.split('.').next().unwrap_or(base);
    let server = SERVERS.iter().find(|s| **s == base || **s == module)?;
    Some(
        warning(
            "serving",
            Severity::Warning,
            format!("{server} batches requests as they arrive, and everything is slower under ncu: the batches, and with them the launches, will differ."),
        )
        .with_fix("profile a fixed offline batch, or count inside an NVTX range")
        .mark_inexact(),
    )
}

fn whole_graphs(f: &Facts<'_>) -> Option<Warning> {
    (f.whole_graphs && !f.options.whole_graph && !f.as_range).then(|| {
        warning(
            "whole-graphs",
            Severity::Info,
            "CUDA graphs were traced as a whole: kernels inside them are not in the report, so ncu is told to profile whole graphs and does not count those kernels either.",
        )
        .with_fix("to reach a kernel inside a graph, record with `nsys profile --cuda-graph-trace=node`")
    })
}

/// Symbols with internal linkage contain a hash of their source file.
fn rebuilt_symbol(f: &Facts<'_>) -> Option<Warning> {
    let symbol = f.kernel.mangled.as_deref().filter(|_| f.base == NameForm::Mangled)?;
    (symbol.contains("_GLOBAL__N__") || symbol.contains("_INTERNAL_")).then(|| {
        warning(
            "rebuilt-symbol",
            Severity::Info,
            "The symbol contains a hash that changes when the program is rebuilt: the command works for this build only.",
        )
    })
}

fn program_unknown(f: &Facts<'_>) -> Option<Warning> {
    (f.program.from == program::From::Nowhere).then(|| {
        warning("program-unknown", Severity::Warning, "The report does not say which program ran.")
            .with_fix("give the program and its arguments")
    })
}

/// The user wants to measure a range, but the report has no range around the launch.
pub fn no_range() -> Warning {
    warning(
        "no-range",
        Severity::Error,
        "This launch has no enclosing range, and ncu measures ranges here: with the program unchanged, nothing is profiled.",
    )
    .with_fix("call cudaProfilerStart and cudaProfilerStop around the step that matters, or put an NVTX range around it and record again")
}

/// Returns warnings for selecting a graph that was traced as a whole.
pub fn of_graph(profile: &Profile, pid: u32, late: bool, from: program::From) -> Vec<Warning> {
    let mut out = Vec::new();
    if late {
        let text = "No exact count is possible: the capture began after the program started, and the report does not say how many graph launches came before.";
        out.push(warning("hidden-launches", Severity::Error, text).with_fix("record again from the program's start").mark_inexact());
    }
    let pid_of = |place: u32| profile.places.get(place as usize).and_then(|p| p.pid).unwrap_or_default();
    let named = |r: usize| profile.kernels.get(profile.launches.kernel(r).0 as usize).is_some_and(|k| k.function() == "graph");
    let other_kernels = || (0..profile.launches.len()).any(|r| named(r) && profile.launches.place(r).is_some_and(|p| pid_of(p.0) != pid));
    if profile.graphs.iter().any(|g| pid_of(g.place) != pid) || other_kernels() {
        let text = "Other processes launch graphs, too, and ncu counts across all of them.";
        out.push(warning("processes", Severity::Warning, text).with_fix("profile one process alone").mark_inexact());
    }
    if let Some(note) = profile.notes.iter().find(|n| n.kind == NoteKind::Lost && n.severity >= Severity::Warning) {
        let text = format!("The count is a lower bound: events were lost ({}).", note.text.trim_end_matches('.'));
        out.push(warning("lost-events", Severity::Warning, text).mark_inexact());
    }
    if profile.graphs.iter().any(|g| pid_of(g.place) == pid && g.call.is_none()) {
        let text = "Calls that launched graphs are not in the report; graphs are counted by their start on the device.";
        out.push(warning("device-order", Severity::Warning, text).mark_inexact());
    }
    let calls = &profile.calls;
    let of_graphs = (0..calls.len()).filter(|&i| calls.kind(i) == CallKind::GraphLaunch);
    let threads: BTreeSet<u32> = of_graphs.map(|i| calls.thread_of(i)).filter(|t| t.0 == pid).map(|t| t.1).collect();
    if threads.len() > 1 {
        let text = format!("{} threads launch graphs: their order, and with it the count, may differ from run to run.", threads.len());
        out.push(warning("threads", Severity::Warning, text).mark_inexact());
    }
    if from == program::From::Nowhere {
        out.push(
            warning("program-unknown", Severity::Warning, "The report does not say which program ran.")
                .with_fix("give the program and its arguments"),
        );
    }
    out
}
