//! Rules: the host launches too slowly, builds graphs, or loads code.

use crate::analysis::host_frames::frame_label;
use crate::analysis::readable::readable_name;
use crate::analysis::triage::finding::{Finding, Sure};
use crate::analysis::triage::host_lines::LineTime;
use crate::analysis::triage::places;
use crate::analysis::triage::run_context::RunContext;
use crate::analysis::triage::text::format_ns;
use crate::analysis::triage::time_category::Cause;
use crate::analysis::triage::verdict::Verdict;
use crate::model::units::format_share;
use crate::model::{CallKind, units};

/// Maximum time from the end of the call to the start of the kernel if the kernel was not queued, ns: the launch
/// latency.
const AT_ONCE_NS: i64 = 10_000;

/// Maximum idle time per launch for the host to be doing nothing but launching, ns: a launch takes 2 to 10 µs in the
/// driver, and up to 30 through PyTorch's operators.
const SURE_BELOW_NS: f64 = 30_000.0;

/// Minimum number of launches for more than a possible finding; with fewer, a single slow call can distort the rate.
const FEW: u64 = 50;
/// Share of the idle time from which it is called most of it.
const MOST: f64 = 0.6;
/// Share of the idle time before loads below which the time inside module calls is stated.
const IN_CALLS: f64 = 0.5;

/// Minimum host time in launches of graphs, as a share of the idle time, to be named.
const GRAPHS_TAKE: f64 = 0.1;

/// The GPU is idle while the host launches kernels one by one.
pub fn launch_bound(case: &RunContext<'_>) -> Option<Finding> {
    let base = case.base;
    let (api, prefix) = (case.terms.gpu.api, case.terms.prefix);
    // Exclude outlier gaps: one slow call is not representative of the others.
    let late = case.late_after_waits();
    let idle = case.recurring_idle(Cause::Launch) + late;
    let share = case.share(idle);
    if case.kernels.count == 0 && case.kernels.in_graphs.0 == 0 {
        return None;
    }
    let (gaps, longest) = case.spreads.gap_stats(Cause::Launch);
    let longest = case.pieces_again(Cause::Launch).first().map_or(longest, |p| p.end - p.start);
    let k = &case.kernels;
    let launched = k.launches.max(1) as f64;
    let rate = launched / case.length() as f64 * 1e9;
    // The idle time is a mean of the GPUs, so the rate is, too.
    let devices = case.devices.len().max(1);
    let whose = if devices > 1 { "for each GPU, the host" } else { "the host" };
    let at_once = k.began_within(AT_ONCE_NS);
    let graphs = k.in_graphs.0 > 0;
    let each = idle as f64 / launched;
    let spots = places::locate_idle(case, &[Cause::Launch]);
    let at = if spots.lines { spots.main_place_text().trim_end_matches(',').to_owned() } else { String::new() };
    let launcher = case.host_time.main_launcher();
    let between = case.between_launches();
    let part = match between as f64 / (idle - late).max(1) as f64 {
        _ if idle == late => "",
        p if p >= MOST => ", most of it between the calls",
        p if p <= 1.0 - MOST => ", most of it in the calls and on the way to the GPU",
        _ => ", half of it between the calls",
    };
    // A graph with many nodes takes the host long to launch, and its first node waits for all of it.
    let (alone, with_nodes) = (case.calls_of(CallKind::GraphLaunch), k.graph_calls);
    let graph_launches = (alone.0 + with_nodes.0, alone.1.saturating_add(with_nodes.1));
    let graphs_take = Some(graph_launches).filter(|g| g.0 > 0 && g.1 as f64 >= GRAPHS_TAKE * idle as f64 * devices as f64);
    let finding = Finding::new(
        Verdict::LaunchBound,
        share,
        format!(
            "the host cannot launch as fast as the GPU works{at}: idle for {} of {base} while {whose} makes {} launch calls per second, {} of idle time for each{part}{}",
            format_share(share),
            units::format_grouped((rate / devices as f64).round() as i64),
            format_ns(each),
            launcher.map_or_else(String::new, |line| name_launcher(case, line))
        ),
    )
    .with_gain_basis(if graphs_take.is_some() {
        "the idle time in which the launching thread was in launch calls or between close ones; what the launches of graphs take themselves remains, unless they are made earlier"
    } else {
        "the idle time in which the launching thread was in launch calls or between close ones; with graphs or fewer kernels, it drops to nearly zero"
    })
    .with_number("idle while launching, without outliers and copies", idle as f64, "ns")
    .with_number("of it between calls, in the program's own code", (idle > late).then_some(between as f64), "ns")
    .with_number("of it after waits, beyond the time for which the GPU was busy", (late > 0).then_some(late as f64), "ns")
    .with_number("times that the GPU ran out of work", gaps as f64, "")
    .with_number("the longest of them", longest as f64, "ns")
    .with_number("launch calls a second", rate, "1/s")
    .with_number("median duration of a launch call", k.median_cost().map(|n| n as f64), "ns")
    .with_number("the host's time in launches of graphs", graphs_take.map(|g| g.1 as f64), "ns")
    .with_number("mean duration of a launch of a graph", graphs_take.map(|g| g.1 as f64 / g.0 as f64), "ns")
    .with_number("median duration of a kernel", k.median_duration().map(|n| n as f64), "ns")
    .with_judged_number("kernels that began within 10 µs of their call", at_once.map(|a| a * 100.0), "%", ("≥", 50.0))
    .with_number("launch calls in a step", case.per_step(k.launches), "")
    .with_number("launches from the line that launches most", launcher.and_then(|l| l.launching.launches()).map(|n| n as f64), "")
    .with_number("the host's time in its function", launcher.and_then(|l| l.launching.host_ns()).map(|ns| ns as f64), "ns")
    .with_places(spots.places);
    let finding = if graphs {
        let earlier = format!(
            "Launch the {api} graph before its input is waited for, or upload it ahead ({prefix}GraphUpload); launches of fewer nodes take less."
        );
        let finding = if graphs_take.is_some() { finding.with_actions(&[&earlier]) } else { finding };
        finding.with_actions(&[
            &format!("Capture more of the step in the {api} graph: each launch outside of it has host code before it."),
            "Fuse what is left outside, or launch it from another thread.",
        ])
    } else {
        finding.with_actions(&[
            &format!("Capture the step in a {api} graph ({prefix}StreamBeginCapture; in PyTorch: torch.cuda.graph, torch.compile(mode=\"reduce-overhead\"))."),
            "Fuse small operators: a larger kernel in place of several (in PyTorch: torch.compile, fused=True for optimizers; in JAX: jax.jit).",
            "Give each launch more work: a larger batch, several steps or requests at once.",
        ])
    };
    // If most kernels had been queued before they ran, launching was not the limit.
    Some(if k.launches < FEW {
        finding.with_confidence(Sure::Possible)
    } else if at_once.is_some_and(|a| a < 0.3) || each > SURE_BELOW_NS || late * 2 > idle {
        // The host may be doing something else between launches.
        finding.with_confidence(Sure::Likely)
    } else {
        finding
    })
}

/// Suffix for the headline, with the function that launches most, its number of launches, and its host time.
fn name_launcher(case: &RunContext<'_>, line: &LineTime) -> String {
    let all = case.host_time.all_launching().launches();
    let (Some(launches), Some(all)) = (line.launching.launches(), all) else { return String::new() };
    let about = if case.host_time.exact { "" } else { "about " };
    let host = line.launching.host_ns().map_or_else(String::new, |ns| format!(", in {} of the host's time", format_ns(ns as f64)));
    format!(
        "; {} launches most: {about}{} of {} launches{host}",
        frame_label(&line.frame),
        units::format_grouped(launches),
        units::format_grouped(all),
    )
}

/// Graphs are captured or instantiated while the GPU has nothing to do.
pub fn graph_recapture(case: &RunContext<'_>) -> Option<Finding> {
    let base = case.base;
    let (api, prefix) = (case.terms.gpu.api, case.terms.prefix);
    let share = case.share(case.recurring_idle(Cause::Graph));
    let (calls, host) = case.calls_of(CallKind::Graph);
    if calls == 0 {
        return None;
    }
    let named = |part: &str| -> u64 {
        let names = &case.profile.calls.names;
        (0..names.len()).filter(|&n| names[n].name.contains(part)).map(|n| names[n].count).sum()
    };
    // For a chosen window, such as start-up, the totals of the report do not apply.
    let within = |part: &str| -> u64 {
        let calls = &case.profile.calls;
        let is = |row: &usize| calls.call_name(*row).is_some_and(|n| n.name.contains(part));
        (0..calls.len()).filter(|row| (case.window.0..case.window.1).contains(&calls.start[*row])).filter(is).count() as u64
    };
    let (instantiated, launched) =
        if case.chosen { (within("GraphInstantiate"), 0) } else { (named("GraphInstantiate"), named("GraphLaunch")) };
    // Creating a graph once is normal.
    if instantiated < 2 && named("BeginCapture") < 2 {
        return None;
    }
    // If no graph has been launched yet, the capture may only cover start-up.
    let sure = if launched == 0 { Sure::Possible } else { Sure::Certain };
    Some(
        Finding::new(
            Verdict::GraphRecapture,
            share,
            if case.chosen {
                format!(
                    "{api} graphs are made: {} instantiated; the GPU is idle for {} of {base} meanwhile",
                    units::format_count(instantiated, "graph"),
                    format_share(share)
                )
            } else {
                format!(
                    "{api} graphs are created again and again: {} instantiated for {}; the GPU is idle for {} of {base} meanwhile",
                    units::format_count(instantiated, "graph"),
                    units::format_count(launched, "launch"),
                    format_share(share)
                )
            },
        )
        .with_gain_basis("the idle time in which graphs were captured, built or instantiated")
        .with_number("idle while graphs were made", case.recurring_idle(Cause::Graph) as f64, "ns")
        .with_number("the host's time in graph calls", host as f64, "ns")
        .with_number("graph calls in a step", case.per_step(calls), "")
        .with_number("instantiations in the report", instantiated as f64, "")
        .with_places(places::locate_places(case, &[Cause::Graph]))
        .with_actions(&[
            "Capture once for each shape and replay: keep graphs by shape, pad to a few sizes.",
            &format!("Change an instantiated graph in place ({prefix}GraphExecUpdate, {prefix}GraphExecKernelNodeSetParams), and write inputs into the buffers that it was captured with."),
        ])
        .with_confidence(sure),
    )
}

/// Maximum number of loads for which nothing shows that code is compiled again and again.
const FIRST_LOADS: u64 = 2;

/// Code is compiled or loaded while the GPU is idle.
pub fn code_compilation(case: &RunContext<'_>) -> Option<Finding> {
    let base = case.base;
    let idle = case.recurring_idle(Cause::Compile);
    let share = case.share(idle);
    let (modules, host) = case.calls_of(CallKind::Module);
    let lazy = case.host.loads.iter().filter(|l| l.0 >= case.window.0 && l.0 < case.window.1).count() as u64;
    let first = case.loaded.len() as u64;
    let loads = modules.max(lazy).max(first);
    if loads == 0 {
        return None;
    }
    let (gaps, longest) = case.spreads.gap_stats(Cause::Compile);
    // A load that occurs once among many steps is a single delay, which has its own finding.
    let single = case.single.iter().any(|s| s.cause == Cause::Compile);
    let slowest = case.loaded.iter().max_by_key(|l| l.1).filter(|l| !single && l.1 * 2 > idle);
    let headline = match slowest.and_then(|l| case.profile.kernels.get(l.0 as usize)) {
        Some(kernel) => format!(
            "the first launch of {} loads its code: the GPU is idle for {} meanwhile, {} of {base}",
            readable_name(kernel),
            format_ns(longest as f64),
            format_share(share)
        ),
        None => format!(
            "JIT compilation or module loading stalls the GPU: idle for {} of {base} before {}{}",
            format_share(share),
            units::format_count(loads, "load"),
            // The rest is assumed, which a single long gap does not bear out.
            if host > 0 && (host as f64) < IN_CALLS * idle as f64 && longest * 2 > idle {
                format!("; only {} of that is inside module calls", format_ns(host as f64))
            } else {
                String::new()
            }
        ),
    };
    let finding = Finding::new(Verdict::Compilation, share, headline)
        .with_gain_basis("the idle time before code was loaded; with code that is compiled ahead of time and kept, there is none")
        .with_number("idle before code was loaded", idle as f64, "ns")
        .with_number("modules loaded", (modules > 0).then_some(modules as f64), "")
        .with_number("kernels loaded at their first launch", Some(lazy.max(first)).filter(|&n| n > 0).map(|n| n as f64), "")
        .with_number("times that the GPU waited", (gaps > 0).then_some(gaps as f64), "")
        .with_number("the host's time in module calls", (host > 0).then_some(host as f64), "ns")
        .with_number("loads in a step", case.per_step(loads), "")
        .with_places(places::locate_places(case, &[Cause::Compile]));
    let warm_up = format!(
        "Warm up every shape before the steady state, and keep the compile cache between runs (TRITON_CACHE_DIR, TORCHINDUCTOR_CACHE_DIR, {}).",
        case.terms.compile_cache
    );
    let finding = if loads <= FIRST_LOADS {
        // One or two loads are first uses: nothing shows that shapes change.
        finding.with_actions(&[case.terms.compile_ahead, &warm_up])
    } else {
        finding.with_actions(&[
            "Keep shapes and constants the same from step to step: mark what changes as dynamic (torch.compile(dynamic=True), fewer tl.constexpr, jax.jit without static arguments).",
            &warm_up,
            case.terms.compile_ahead,
        ])
    };
    // Time before a load is assumed to be compilation, which is not recorded itself.
    Some(finding.with_confidence(Sure::Likely))
}
