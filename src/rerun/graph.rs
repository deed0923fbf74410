//! Command for a CUDA graph in a capture that traced graphs as a whole: only the entire graph can be selected.

use super::capture_range::{self, Gate};
use super::options::{OpenedBy, Options, Replay, Within};
use super::{CommandPart, Cost, PartId, Rerun, Selects, collect, parts, program, warnings};
use crate::model::{GraphLaunch, NameForm, Profile};

/// Returns the command for one graph launch in such a capture.
pub fn graph_command(profile: &Profile, index: usize, options: &Options) -> Result<Rerun, String> {
    let Some(graph) = profile.graphs.get(index) else {
        return Err(match profile.graphs.len() {
            0 => "this report has no CUDA graphs traced as a whole".to_owned(),
            n => format!("there is no graph launch {index}: they are numbered 0 to {}", n - 1),
        });
    };
    let pid = |place: u32| profile.places.get(place as usize).and_then(|p| p.pid).unwrap_or_default();
    let mine = pid(graph.place);
    let key = |g: &GraphLaunch| (g.call.unwrap_or(g.start.0), g.start.0);
    let graphs_before = profile.graphs.iter().filter(|g| pid(g.place) == mine && key(g) < key(graph)).count() as u64;
    // Kernels named `graph` are counted together with graphs.
    let marked: Vec<bool> = profile.kernels.iter().map(|k| k.function() == "graph").collect();
    let kernels_before = (0..profile.launches.len())
        .filter(|&r| {
            marked.get(profile.launches.kernel(r).0 as usize) == Some(&true)
                && profile.launch_pid(r) == mine
                && profile.launches.order_key(r) < key(graph)
        })
        .count() as u64;
    let skip = graphs_before + kernels_before;
    let opened = capture_range::opened_by(profile, options);
    if matches!(opened, OpenedBy::Range(_)) {
        return Err("an NVTX range opened this capture, and a graph traced as a whole has no record of the thread that launched it; record from the start of the program".to_owned());
    }
    if options.within != Within::Everything {
        return Err("a graph traced as a whole has no record of the thread that launched it, so it cannot be counted inside an NVTX range"
            .to_owned());
    }
    let ignore_api = !matches!(opened, OpenedBy::ProfilerApi(_)) && capture_range::profiler_calls(profile).iter().any(|c| !c.2);
    let gate = Gate {
        ignore_api,
        api: if let OpenedBy::ProfilerApi(n) = opened { Some(n.max(1)) } else { None },
        late: opened == OpenedBy::Late,
        ..Gate::default()
    };
    let program = program::resolve_program(profile, options);
    let mut parts = vec![parts::tool()];
    parts.extend(gate.to_part(profile));
    parts.push(CommandPart {
        id: PartId::Graphs,
        words: ["--graph-profiling", "graph"].map(str::to_owned).to_vec(),
        why: "Each CUDA graph launch is profiled as a whole.".to_owned(),
    });
    parts.push(CommandPart {
        id: PartId::Name,
        words: ["--kernel-name", "graph"].map(str::to_owned).to_vec(),
        why: "ncu calls every CUDA graph launch graph.".to_owned(),
    });
    parts.push(CommandPart {
        id: PartId::Which,
        words: ["--launch-skip".to_owned(), skip.to_string(), "--launch-count".to_owned(), "1".to_owned()].to_vec(),
        why: format!(
            "{} before, in host call order; then one is profiled.",
            if skip == 1 { "One graph launch comes".to_owned() } else { format!("{skip} graph launches come") }
        ),
    });
    parts.extend(parts::settings(profile, options, false));
    let output = options.output.clone().unwrap_or_else(|| format!("graph-{index}"));
    parts.push(parts::output(&output, options.overwrite));
    parts.push(parts::program(&program));
    let figure = options.collect.cost_per_result();
    let runs = if options.replay == Some(Replay::Application) { figure.map_or(1, |(f, _)| f.passes.max(1)) } else { 1 };
    Ok(Rerun {
        tool: "ncu",
        parts,
        directory: program.directory.clone(),
        selects: vec![Selects {
            kernel: "graph".to_owned(),
            demangled: None,
            mangled: None,
            launch: None,
            nth: skip,
            skipped: 0,
            grid: None,
            block: None,
            duration: graph.duration,
            alike: 0,
        }],
        base: NameForm::Function,
        warnings: warnings::of_graph(profile, mine, gate.late, program.from),
        alternatives: Vec::new(),
        cost: Cost {
            passes: figure.map(|(f, _)| f.passes),
            at_most: figure.is_some_and(|(_, a)| a),
            seconds: figure.map(|(f, _)| collect::START_SECONDS * f64::from(runs) + f.seconds),
            bytes: figure.map(|(f, _)| collect::BASE_BYTES + f.bytes),
            runs,
        },
        output,
        wrapper: None,
    })
}
