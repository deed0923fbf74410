//! Re-run commands against a model of ncu's selection and the programs' own launch logs.

use super::ncu_model::{Event, Open, select};
use super::support::{packed, read, root};
use std::sync::Arc;
use warpscope::model::{LaunchId, NameForm, Profile};
use warpscope::rerun::{self, Base, Options, Rerun, Target};

/// Function, demangled and mangled name of each kernel of `launches.cu`, by the program's name for it.
const NAMES: [(&str, [&str; 3]); 9] = [
    ("ops::scale<float,4>", ["scale", "void ops::scale<float, (int)4>(T1 *)", "_ZN3ops5scaleIfLi4EEEvPT_"]),
    ("ops::scale<double,8>", ["scale", "void ops::scale<double, (int)8>(T1 *)", "_ZN3ops5scaleIdLi8EEEvPT_"]),
    ("ops::detail::scale", ["scale", "ops::detail::scale(float *)", "_ZN3ops6detail5scaleEPf"]),
    ("saxpy(float*)", ["saxpy", "saxpy(float *)", "_Z5saxpyPf"]),
    ("saxpy(double*)", ["saxpy", "saxpy(double *)", "_Z5saxpyPd"]),
    ("saxpy_v2", ["saxpy_v2", "saxpy_v2(float *)", "_Z8saxpy_v2Pf"]),
    ("c_kernel", ["c_kernel", "c_kernel", "c_kernel"]),
    (
        "apply<lambda>",
        [
            "apply",
            "void apply<launch(int, int, float *, CUstream_st *)::[lambda(float *, int) (instance 1)]>(T1, float *)",
            "_Z5applyIZN42_INTERNAL_a5863007_11_launches_cu_1c9959ad6launchEiiPfP11CUstream_stEUlS1_iE_EvT_S1_",
        ],
    ),
    ("apply<Add>", ["apply", "void apply<Add>(T1, float *)", "_Z5applyI3AddEvT_Pf"]),
];

/// Launches of a mode of `launches.cu`, from the file that it printed.
pub fn truth(name: &str) -> Vec<Event> {
    let text = std::fs::read_to_string(root().join(format!("fixtures/nsys/truth_{name}.txt"))).unwrap();
    let named = |kernel: &str| NAMES.iter().find(|n| n.0 == kernel).unwrap_or_else(|| panic!("{kernel}")).1;
    let event = |pid: u32, grid: &str, kernel: &str| {
        let [function, demangled, mangled] = named(kernel).map(str::to_owned);
        Event { pid, function, demangled, mangled, grid: grid.parse().unwrap(), ..Event::default() }
    };
    let nodes: Vec<(&str, &str)> = text.lines().filter_map(|l| l.strip_prefix("GRAPH,")).map(|l| l.split_once(',').unwrap()).collect();
    let (mut out, mut graphs_done) = (Vec::new(), nodes.is_empty());
    let mut begun: std::collections::BTreeMap<(u32, String), u32> = std::collections::BTreeMap::new();
    for line in text.lines() {
        let pid = out.last().map_or(0, |e: &Event| e.pid);
        if line.starts_with("GRAPH,") && !graphs_done {
            for replay in 0..4 {
                out.extend(nodes.iter().map(|(grid, kernel)| Event { graph: Some(replay), ..event(pid, grid, kernel) }));
            }
            graphs_done = true;
        }
        if let Some(rest) = line.strip_prefix("TRUTH,") {
            let f: Vec<&str> = rest.splitn(4, ',').collect();
            let (pid, index): (u32, u32) = (f[0].parse().unwrap(), f[1].parse().unwrap());
            let mut e = event(pid, f[2], f[3]);
            // The program pushes step0, step1 … every 50 launches, and `inner` from the 10th to the 20th of them.
            let (step, inner) = (format!("step{}", index / 50), "inner".to_owned());
            for (text, from) in [(&step, 0), (&inner, 10)] {
                *begun.entry((pid, text.clone())).or_default() += u32::from(index % 50 == from);
            }
            e.stack.push(Open { domain: None, instance: begun[&(pid, step.clone())], text: step });
            if (10..=20).contains(&(index % 50)) {
                e.stack.push(Open { domain: None, instance: begun[&(pid, inner.clone())], text: inner });
            }
            out.push(e);
        }
    }
    out
}

pub fn profile(fixture: &str) -> Profile {
    read(&packed(fixture)).unwrap_or_else(|e| panic!("{e}"))
}

pub fn one(profile: &Profile, launch: usize, options: &Options) -> Rerun {
    let target = Target::Launches(vec![LaunchId(u32::try_from(launch).unwrap())]);
    let mut plan = rerun::plan(profile, &target, options).unwrap_or_else(|e| panic!("launch {launch}: {e}"));
    assert_eq!(plan.commands.len(), 1);
    plan.commands.remove(0)
}

pub fn based(base: NameForm) -> Options {
    Options { base: Base(base), ..Options::default() }
}

const BASES: [NameForm; 3] = [NameForm::Function, NameForm::Demangled, NameForm::Mangled];

#[test]
fn every_launch_of_every_mode_is_selected_exactly_by_every_name_form() {
    let (mut commands, mut in_place) = (0, 0);
    for (fixture, name) in [("single", "single"), ("threads", "threads"), ("procs", "procs"), ("graph_node", "graph")] {
        let (profile, events) = (profile(fixture), truth(name));
        assert_eq!(profile.launches.len(), events.len(), "{fixture}");
        for launch in 0..events.len() {
            for base in BASES {
                let rerun = one(&profile, launch, &based(base));
                let got = select(&rerun.argv(), &events).unwrap_or_else(|e| panic!("{fixture} {launch}: {e}: {}", rerun.shell_line()));
                assert_eq!(got, [vec![launch]], "{fixture} launch {launch}: {}", rerun.shell_line());
                assert_eq!(rerun.selects[0].grid.unwrap()[0], events[launch].grid);
                commands += 1;
                for other in rerun.alternatives.iter().filter(|a| !a.options.whole_graph) {
                    if other.argv[0] == "warpscope" {
                        assert_eq!(super::in_place::measured(&other.argv, &profile), [launch], "{:?}", other.argv);
                        in_place += 1;
                        continue;
                    }
                    let got = select(&other.argv, &events).unwrap();
                    assert_eq!(got, [vec![launch]], "{fixture} launch {launch}: {:?}", other.argv);
                    commands += 1;
                }
            }
        }
    }
    assert!(commands > 1503 && in_place > 500, "{commands} {in_place}");
}

#[test]
fn whoever_asks_for_stalls_is_offered_samples_in_place() {
    let profile = profile("single");
    for (question, option) in [("stalls", "--stalls"), ("source", "--stalls"), ("memory", "--measure")] {
        let rerun = one(&profile, 0, &Options { collect: rerun::Collect::Question(question), ..Options::default() });
        let words: Vec<&str> = rerun.alternatives.iter().filter(|a| a.argv[0] == "warpscope").map(|a| a.argv[2].as_str()).collect();
        assert_eq!(words, [option], "{question}");
    }
}

#[test]
fn the_graph_of_a_node_is_the_replay_that_it_ran_in() {
    let (profile, events) = (profile("graph_node"), truth("graph"));
    let nodes: Vec<usize> = (0..events.len()).filter(|&i| events[i].graph.is_some()).collect();
    assert_eq!(nodes.len(), 20);
    for node in nodes {
        let rerun = one(&profile, node, &Options { whole_graph: true, ..Options::default() });
        let got = select(&rerun.argv(), &events).unwrap();
        let replay: Vec<usize> =
            (0..events.len()).filter(|&i| events[i].graph.is_some() && events[i].graph == events[node].graph).collect();
        assert_eq!(got, [replay], "{}", rerun.shell_line());
        assert_eq!(rerun.selects[0].kernel, "graph");
    }
    let refused = rerun::plan(&profile, &Target::Launches(vec![LaunchId(3)]), &Options { whole_graph: true, ..Options::default() });
    assert!(refused.unwrap_err().contains("does not come from a CUDA graph"));
}

#[test]
fn a_capture_of_whole_graphs_selects_graphs_and_the_kernels_outside() {
    let (profile, events) = (profile("graph_whole"), truth("graph"));
    // The report does not contain the nodes.
    let outside: Vec<usize> = (0..events.len()).filter(|&i| events[i].graph.is_none()).collect();
    assert_eq!(profile.launches.len(), outside.len());
    for (launch, &at) in outside.iter().enumerate() {
        for base in BASES {
            let rerun = one(&profile, launch, &based(base));
            assert_eq!(select(&rerun.argv(), &events).unwrap(), [vec![at]], "launch {launch}: {}", rerun.shell_line());
            assert!(rerun.warnings.iter().any(|w| w.id == "whole-graphs"));
        }
    }
    for graph in 0..4 {
        let plan = rerun::plan(&profile, &Target::Graph(graph), &Options::default()).unwrap();
        let replay: Vec<usize> = (0..events.len()).filter(|&i| events[i].graph == Some(graph)).collect();
        assert_eq!(select(&plan.commands[0].argv(), &events).unwrap(), [replay]);
    }
    assert!(rerun::plan(&profile, &Target::Graph(4), &Options::default()).unwrap_err().contains("0 to 3"));
}

/// Several launches, picked in any way: the results are the picked launches, with one command or several.
#[test]
fn several_launches_are_selected_together() {
    let (profile, events) = (Arc::new(profile("single")), truth("single"));
    let of = |function: &str| -> Vec<LaunchId> {
        (0u32..).zip(&events).filter(|(_, e)| e.function == function).map(|(i, _)| LaunchId(i)).collect()
    };
    let saxpy = of("saxpy");
    let check = |launches: Vec<LaunchId>, base: NameForm, commands: usize, word: &str| {
        let plan = rerun::plan(&profile, &Target::Launches(launches.clone()), &based(base)).unwrap();
        assert_eq!(plan.commands.len(), commands, "{launches:?}");
        let mut got: Vec<usize> = Vec::new();
        for command in &plan.commands {
            let one: Vec<usize> = select(&command.argv(), &events).unwrap_or_else(|e| panic!("{e}: {}", command.shell_line())).concat();
            // The results of one command come in the promised order.
            assert_eq!(one, command.selects.iter().map(|s| s.launch.unwrap().0 as usize).collect::<Vec<_>>(), "{}", command.shell_line());
            assert!(command.shell_line().contains(word), "{}", command.shell_line());
            got.extend(one);
        }
        got.sort_unstable();
        let mut want: Vec<usize> = launches.iter().map(|l| l.0 as usize).collect();
        want.sort_unstable();
        assert_eq!(got, want);
    };
    use warpscope::rerun::select_launches;
    for base in BASES {
        // Overloads share one function name, and have two symbols.
        let commands = if base == NameForm::Function { 1 } else { 2 };
        check(vec![saxpy[0], saxpy[7], saxpy[30]], base, commands, "--launch-count ");
        let c_kernel = of("c_kernel");
        check(select_launches::slowest(&profile, &c_kernel, 3), base, 1, "--launch-count 3");
        let mut both = select_launches::slowest(&profile, &c_kernel, 1);
        both.extend(select_launches::median(&profile, &c_kernel));
        check(both, base, 1, "--launch-count 2");
        check(vec![c_kernel[2], c_kernel[11], c_kernel[12]], base, 1, "'::c_kernel:3|12|13' --launch-count 3");
        check(c_kernel[3..7].to_vec(), base, 1, "--launch-count 4");
    }
    let adjacent = saxpy[4..8].to_vec();
    check(adjacent, NameForm::Function, 1, "--launch-skip 4 --launch-count 4");
    // The second launch of each of three kernels takes one command; different launches take three.
    let second: Vec<LaunchId> = ["saxpy", "scale", "c_kernel"].iter().map(|f| of(f)[1]).collect();
    check(second, NameForm::Function, 1, "'::regex:^(c_kernel|saxpy|scale)$:2'");
    check(vec![saxpy[1], of("scale")[5], of("c_kernel")[2]], NameForm::Function, 3, "--launch-skip");
    // Two kernels, several launches of each: one command per kernel.
    check(vec![saxpy[1], saxpy[5], of("scale")[5], of("scale")[9], of("scale")[20]], NameForm::Function, 2, "--kernel-id");
    // A name with colons must be escaped in `--kernel-id`.
    let scale: Vec<LaunchId> = (0u32..).zip(&events).filter(|(_, e)| e.demangled == NAMES[0].1[1]).map(|(i, _)| LaunchId(i)).collect();
    check(vec![scale[0], scale[2], scale[9]], NameForm::Demangled, 1, r"ops\x3a\x3ascale<float, \(int\)4>");
    // ncu numbers the launches of each process separately, so each picked launch has its own command.
    let procs = self::profile("procs");
    let events = truth("procs");
    let picked: Vec<LaunchId> = (0u32..).zip(&events).filter(|(_, e)| e.function == "saxpy").map(|(i, _)| LaunchId(i)).step_by(5).collect();
    let plan = rerun::plan(&procs, &Target::Launches(picked.clone()), &Options::default()).unwrap();
    assert_eq!(plan.commands.len(), picked.len());
    let got: Vec<usize> = plan.commands.iter().flat_map(|c| select(&c.argv(), &events).unwrap().concat()).collect();
    assert_eq!(got, picked.iter().map(|l| l.0 as usize).collect::<Vec<_>>());
    assert!(!plan.commands.iter().any(|c| c.shell_line().contains("--kernel-id")));
}

#[test]
fn all_launches_of_a_kernel_in_a_range_are_one_command() {
    use warpscope::rerun::{Within, nvtx, select_launches};
    let (profile, events) = (profile("single"), truth("single"));
    for (label, instance) in [("step1", None), ("step3", None), ("inner", None), ("inner", Some(2)), ("inner", Some(4))] {
        let range = nvtx::ranges_by_label(&profile, label)[0];
        let inside = |e: &Event| e.stack.iter().any(|r| r.text == label && instance.is_none_or(|n| n == r.instance));
        let saxpy: Vec<LaunchId> =
            (0u32..).zip(&events).filter(|(_, e)| e.function == "saxpy" && inside(e)).map(|(i, _)| LaunchId(i)).collect();
        assert!(!saxpy.is_empty());
        if instance.is_none() {
            let all: Vec<LaunchId> = (0u32..).zip(&events).filter(|(_, e)| e.function == "saxpy").map(|(i, _)| LaunchId(i)).collect();
            assert_eq!(select_launches::inside(&profile, &all, range, None), saxpy);
        }
        let options = Options { within: Within::Range(range, instance), ..Options::default() };
        let plan = rerun::plan(&profile, &Target::Launches(saxpy.clone()), &options).unwrap();
        assert_eq!(plan.commands.len(), 1);
        let got = select(&plan.commands[0].argv(), &events).unwrap().concat();
        assert_eq!(got, saxpy.iter().map(|l| l.0 as usize).collect::<Vec<_>>(), "{}", plan.commands[0].shell_line());
    }
}

#[test]
fn what_cannot_be_is_refused_in_a_sentence() {
    let profile = profile("single");
    let plan =
        |launches: &[u32]| rerun::plan(&profile, &Target::Launches(launches.iter().copied().map(LaunchId).collect()), &Options::default());
    assert_eq!(plan(&[200]).unwrap_err(), "there is no launch 200: launches are numbered 0 to 199");
    assert_eq!(plan(&[]).unwrap_err(), "no launch is selected");
    let sums = read(&root().join("fixtures/stats/single_cuda_gpu_kern_sum.csv")).unwrap();
    let refused = rerun::plan(&sums, &Target::Launches(vec![LaunchId(0)]), &Options::default()).unwrap_err();
    assert!(refused.contains("per-kernel totals only"), "{refused}");
}

/// The re-run of a report whose ncu command skipped launches counts in the same way as that command.
#[test]
fn a_result_is_profiled_again_by_its_report_s_own_selection() {
    let profile = super::support::read(&super::support::root().join("fixtures/demo/llm_decode.ncu-rep.zst")).unwrap();
    let rerun = one(&profile, 3, &Options::default());
    assert_eq!(
        rerun.shell_line(),
        "ncu --config-file off --nvtx --nvtx-include 'LLM\\@decode_all/' --launch-skip 23 --launch-count 1 --set detailed --clock-control none --export nvjet_sm90_tst_8x64_64x16_2x1_v_bz_TNN-3 python3 src/llm.py plain 2"
    );
    assert!(rerun.is_exact() && rerun.is_runnable(), "{:?}", rerun.warnings);
    // The timeline's command for this result's launch selects the same launch in another way.
    let timeline = super::support::read(&super::support::packed("llm")).unwrap();
    let join = warpscope::rerun::match_results::join_results(&timeline, profile.metrics.as_ref().unwrap());
    let launch = join.of_result(3).unwrap().launch as usize;
    assert_eq!(one(&timeline, launch, &Options::default()).selects[0].kernel, rerun.selects[0].kernel);
}
