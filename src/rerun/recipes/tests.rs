//! Invariants of all recipes, and the commands of some.

use super::*;
use crate::rerun::collect::Figure;
use crate::rerun::program::PLACEHOLDER;

fn argv(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn wanted(program: &str) -> Wanted {
    Wanted { program: argv(program), output: "out".into(), ..Wanted::default() }
}

fn line(id: &str, wanted: &Wanted) -> String {
    built_in_recipe(id).unwrap().argv(wanted).unwrap().join(" ")
}

/// Command of the server that a recipe is for.
fn server_line(id: &str) -> Option<&'static str> {
    let servers = [("vllm", "vllm serve m"), ("sglang", "python3 -m sglang.launch_server --model-path m")];
    servers.into_iter().find(|(server, _)| id.starts_with(server)).map(|(_, line)| line)
}

fn program_for(recipe: &Recipe<'_>) -> &'static str {
    server_line(recipe.id).unwrap_or("python3 a.py")
}

#[test]
fn every_recipe_is_whole() {
    let mut seen = std::collections::BTreeSet::new();
    for recipe in built_in_recipes() {
        assert!(seen.insert(recipe.id), "{} twice", recipe.id);
        assert!(!recipe.about.is_empty() && !recipe.when.is_empty() && !recipe.cost.is_empty());
        let rocprof = recipe.tool == "rocprofv3";
        let output = if rocprof { "a b/out_100" } else { "a b/out_100%" };
        let range = recipe.needs_range.then(|| "step".to_owned());
        let program = argv(program_for(recipe));
        let w = Wanted { program: program.clone(), output: output.into(), range, ..Wanted::default() };
        let prepared = recipe.prepare(&w).unwrap();
        let argv = prepared.argv();
        let at = argv.iter().position(|w| *w == program[program.len() - 1]).unwrap_or_else(|| panic!("{argv:?}"));
        assert!(argv[..at].contains(&program[0]), "{argv:?}");
        assert_eq!(argv.contains(&"--".to_owned()), rocprof, "{argv:?}");
        assert!(!argv.iter().any(|w| w.contains("{RANGE}") || w.contains("{OUTPUT}")), "{argv:?}");
        assert!(!prepared.reports.is_empty() && prepared.reports.iter().all(|r| r.head.contains("out_100")), "{}", recipe.id);
        let percent = argv.iter().find(|w| w.starts_with("a b/out_100")).map(|w| w.contains("%%"));
        assert_eq!(percent.unwrap_or_default(), matches!(recipe.tool, "nsys" | "ncu"), "{argv:?}");
        assert!(prepared.parts.iter().all(|p| !p.why.is_empty() && !p.words.is_empty()), "{}", recipe.id);
        assert_eq!(prepared.by_hand.is_some(), recipe.id == "rank", "{}", recipe.id);
        assert_eq!(recipe.argv(&Wanted { range: None, ..w.clone() }).is_err(), recipe.needs_range);
        let open = recipe.prepare(&Wanted { program: Vec::new(), ..w.clone() }).unwrap();
        assert!(open.argv().contains(&PLACEHOLDER.to_owned()) && open.by_hand.is_some(), "{}", recipe.id);
        for bad in ["", "a/", ".."] {
            assert!(recipe.prepare(&Wanted { output: bad.into(), ..w.clone() }).unwrap_err().contains("is not a report name"));
        }
    }
}

/// The costs in the descriptions match the tables.
#[test]
fn costs_of_counters_are_those_that_were_measured() {
    let rounded = |f: Figure| (f.passes, (f.seconds * 10.0).round() / 10.0);
    for recipe in built_in_recipes() {
        let Some(collect) = recipe.builder.collect() else { continue };
        let (passes, seconds) = rounded(collect.cost_per_result().unwrap().0);
        assert!(recipe.cost.contains(&format!("{passes} passes, about {seconds} s")), "{}: {passes} passes, {seconds} s", recipe.id);
    }
}

#[test]
fn the_tracer_measures_what_is_asked_for() {
    let measured = Wanted { measure: vec!["gemm#5".into(), "softmax".into()], ..wanted("./app") };
    assert_eq!(line("trace", &measured), "warpscope trace --measure gemm#5 --measure softmax --output ./out ./app");
    assert_eq!(line("trace-survey", &wanted("./app")), "warpscope trace --survey --output ./out ./app");
    let survey = Wanted { survey: Some(25), ..wanted("./app") };
    assert_eq!(line("trace-survey", &survey), "warpscope trace --survey=2.5 --output ./out ./app");
}

#[test]
fn ncu_takes_chosen_launches_and_is_bounded_without() {
    let chosen = Wanted { kernel: Some("saxpy".into()), skip: Some(5), count: Some(2), ..wanted("./app 1") };
    assert_eq!(
        line("ncu-sol", &chosen),
        "ncu --config-file off --kernel-name saxpy --launch-skip 5 --launch-count 2 --section SpeedOfLight --section LaunchStats --section Occupancy --export out ./app 1"
    );
    assert_eq!(
        line("ncu-full", &wanted("./app")),
        "ncu --config-file off --launch-count 3 --set full --import-source yes --export out ./app"
    );
    let stacks = Wanted { stacks: Some("off".into()), stack_rate: Some(50), ..wanted("./app") };
    assert!(line("trace", &stacks).contains("--stacks off --stack-rate 50 "));
    assert!(line("ncu-stalls", &Wanted { kernel: Some("f".into()), ..wanted("./app") }).contains("--kernel-name f --launch-count 1 "));
    assert!(line("scan", &wanted("./app")).contains("--launch-count 2000 --metrics gpu__time_duration.sum --clock-control none"));
    let ranged = Wanted { range: Some("step@LLM".into()), ..wanted("./app") };
    assert!(line("ncu-memory", &ranged).starts_with("ncu --config-file off --nvtx --nvtx-include LLM@step/ --launch-count 5"));
    assert!(built_in_recipe("ncu-sol").unwrap().argv(&Wanted { count: Some(0), ..wanted("./app") }).is_err());
}

#[test]
fn wishes_that_a_recipe_would_ignore_are_refused() {
    let refused = |id: &str, w: &Wanted| built_in_recipe(id).unwrap().argv(w).unwrap_err();
    assert_eq!(refused("exact", &Wanted { range: Some("a".into()), ..wanted("./app") }), "recipe exact takes no NVTX range");
    assert!(refused("exact", &Wanted { kernel: Some("a".into()), ..wanted("./app") }).contains("takes no kernel"));
    assert!(refused("torch", &Wanted { skip: Some(1), ..wanted("python a.py") }).contains("takes no number of launches"));
    assert!(refused("exact", &Wanted { ranks: true, ..wanted("./app") }).contains("no launcher in `./app`"));
    assert!(refused("torch", &wanted("vllm serve m")).contains("vllm is not"));
    assert!(refused("vllm", &wanted("python3 a.py")).contains("records a server"));
    assert!(refused("vllm", &wanted("vllm serve m --profiler-config={}")).contains("remove it"));
}

#[test]
fn the_profiler_goes_between_launcher_and_program() {
    let nsys = "nsys profile --trace=cuda,nvtx --sample=none --cpuctxsw=none --cuda-graph-trace=node --output";
    assert_eq!(
        line("rank", &wanted("torchrun --nproc_per_node=2 train.py --lr 1")),
        format!("torchrun --nproc_per_node=2 --no-python {nsys} out.%q{{RANK}} python3 train.py --lr 1")
    );
    assert_eq!(
        line("rank", &wanted("mpirun -np 4 -x A=b ./app 1")),
        format!("mpirun -np 4 -x A=b {nsys} out.%q{{OMPI_COMM_WORLD_RANK}} ./app 1")
    );
    assert_eq!(line("rank", &wanted("mpiexec -ppn 4 ./app")), format!("mpiexec -ppn 4 {nsys} out.%q{{PMI_RANK}} ./app"));
    assert_eq!(line("rank", &wanted("srun -n 4 ./app")), format!("srun -n 4 {nsys} out.%q{{SLURM_PROCID}} ./app"));
    let prepared = built_in_recipe("rank").unwrap().prepare(&wanted("srun -n 4 ./app")).unwrap();
    assert!(prepared.reports[0].to_string() == "out.*.nsys-rep" && prepared.by_hand.is_none());
    let unknown = built_in_recipe("rank").unwrap().prepare(&wanted("mpirun --mystery 3 ./app")).unwrap_err();
    assert!(
        unknown.contains("at `--mystery`") && unknown.contains(&format!("mpirun OPTIONS {nsys} 'out.%q{{RANK}}' PROGRAM")),
        "{unknown}"
    );
    // All timeline recipes write one report per rank on request.
    let each = Wanted { ranks: true, ..wanted("srun -n 2 ./app") };
    assert!(line("gpu-metrics", &each).starts_with("srun -n 2 nsys profile "));
    // Around torchrun, one report contains all ranks of the machine; around srun, the report would contain none.
    assert_eq!(built_in_recipe("exact").unwrap().prepare(&wanted("torchrun --standalone t.py")).unwrap().notes.len(), 1);
    assert!(built_in_recipe("exact").unwrap().prepare(&wanted("srun -n 2 ./app")).unwrap_err().contains("--ranks"));
    // Counting is racy with several ranks, unless each rank counts separately.
    let sol = line("ncu-sol", &wanted("mpirun -np 2 ./app"));
    assert!(sol.starts_with("mpirun -np 2 ncu --config-file off --kernel-name regex:^(?!nccl) --launch-count 20 "), "{sol}");
    assert!(sol.ends_with("--export out.%q{OMPI_COMM_WORLD_RANK} ./app"), "{sol}");
}

/// All recipes pass Hydra overrides to the program unchanged; a multirun causes a warning.
#[test]
fn overrides_pass_through_untouched() {
    let overrides = [
        "a.b=c",
        "+x=1",
        "++y.z=[1, 2]",
        "~w",
        "k='v w'",
        "s=$HOME",
        "t=${oc.env:USER}",
        "hydra.run.dir=out/%Y",
        "n=a\\,b",
        "p=100%",
        "--",
        "",
    ];
    for recipe in built_in_recipes() {
        let program = argv(server_line(recipe.id).unwrap_or("python3 -m pkg.train"));
        let program: Vec<String> = program.into_iter().chain(overrides.map(str::to_owned)).collect();
        let range = recipe.needs_range.then(|| "step".to_owned());
        let prepared = recipe.prepare(&Wanted { program, output: "out".into(), range, ..Wanted::default() }).unwrap();
        let argv = prepared.argv();
        assert!(argv.windows(overrides.len()).any(|w| w == overrides), "{}: {argv:?}", recipe.id);
        assert!(!prepared.notes.iter().any(|n| n.contains("Hydra")), "{}: python's own -m", recipe.id);
    }
    for (text, is) in [
        ("python3 train.py -m a=1,2", true),
        ("python3 -u train.py --multirun +a=1", true),
        ("python3 -m pkg.train -m a=1,2", true),
        ("python3 -m pkg.train a=1,2", false),
        ("python3 train.py -m model.bin", false),
        ("torchrun -m pkg.train a=1", false),
    ] {
        let notes = built_in_recipe("light").unwrap().prepare(&wanted(text)).unwrap().notes;
        assert_eq!(notes.iter().any(|n| n.contains("Hydra multirun")), is, "{text}");
    }
}

#[test]
fn torch_puts_a_script_between_python_and_the_program() {
    let w = Wanted { output: "runs/a".into(), seconds: Some(5), ..wanted("/v/bin/python -u train.py --lr 1") };
    let prepared = built_in_recipe("torch").unwrap().prepare(&w).unwrap();
    assert_eq!(prepared.argv().join(" "), "/v/bin/python -u runs/a.torch.py --seconds 5 --trace runs/a.pt.trace.json.gz train.py --lr 1");
    assert_eq!((prepared.files[0].0.as_str(), prepared.files[0].1.as_str()), ("a.torch.py", torch::WRAPPER));
    assert_eq!(prepared.reports, [Pattern::exact("a.pt.trace.json.gz")]);
    assert!(torch::WRAPPER.contains(&format!("NO_TORCH = {NO_TORCH}\n")));
    // Python must never parse the script's name as an option.
    assert!(line("torch", &Wanted { output: "-c".into(), ..wanted("python a.py") }).starts_with("python ./-c.torch.py --seconds 60 "));
    let each = built_in_recipe("torch").unwrap().prepare(&wanted("torchrun --standalone -m pkg.train a=1")).unwrap();
    assert_eq!(
        each.argv().join(" "),
        "torchrun --standalone --no-python python3 ./out.torch.py --seconds 60 --trace ./out.{rank}.pt.trace.json.gz -m pkg.train a=1"
    );
    assert_eq!(each.reports[0].to_string(), "out.*.pt.trace.json.gz");
}

#[test]
fn rocprofv3_counts_launches_of_each_kernel_from_one() {
    assert_eq!(
        line("rocprof", &Wanted { output: "d/r".into(), ..wanted("./app 1") }),
        "rocprofv3 --kernel-trace --memory-copy-trace --hip-trace --marker-trace --output-format json --output-directory d --output-file r -- ./app 1"
    );
    let chosen = Wanted { kernel: Some("void f<int>(int)".into()), skip: Some(2), count: Some(3), ..wanted("./app") };
    let counters = built_in_recipe("rocprof-counters").unwrap().argv(&chosen).unwrap();
    let filter = ["--kernel-include-regex", r"^void f<int>\(int\)$", "--kernel-iteration-range", "[3-5]"];
    assert!(counters.windows(4).any(|w| w == filter), "{counters:?}");
    assert!(line("rocprof-att", &wanted("./app")).contains("--kernel-iteration-range [1] --output-directory ./out.att -- ./app"));
    assert!(built_in_recipe("rocprof").unwrap().argv(&chosen).is_err(), "traces are not filtered");
    assert!(built_in_recipe("rocprof").unwrap().argv(&Wanted { output: "r%".into(), ..wanted("./app") }).is_err());
    let jobs = built_in_recipe("rocprof-jobs").unwrap().prepare(&wanted("./app")).unwrap();
    assert_eq!(jobs.argv().join(" "), "rocprofv3 --input ./out.trace.yaml -- ./app");
    assert!(jobs.files.len() == 3 && jobs.notes[0].contains("rocprofv3 --input ./out.counters.yaml -- ./app"));
}

#[test]
fn servers_come_with_steps_that_can_be_typed() {
    let w = Wanted { directory: Some("/data".into()), ..wanted("vllm serve org/m --port 9001") };
    let nsys = built_in_recipe("vllm").unwrap().prepare(&w).unwrap();
    let argv = nsys.argv();
    assert_eq!(argv[argv.len() - 2..], ["--profiler-config", r#"{"profiler":"cuda"}"#]);
    assert!(argv.contains(&"--capture-range-end=repeat".to_owned()));
    assert!(nsys.env.contains(&("VLLM_WORKER_MULTIPROC_METHOD".to_owned(), "spawn".to_owned())));
    let roles: Vec<&str> = nsys.steps.iter().map(|s| s.role.word()).collect();
    assert_eq!(roles, ["start", "wait", "warm-up", "open", "load", "close", "stop"]);
    for step in &nsys.steps {
        let typed = !matches!(step.role, Role::Start | Role::Stop);
        assert_eq!(step.argv.first().map(String::as_str), typed.then_some("curl"), "{step:?}");
        assert!(step.argv.iter().all(|w| !w.starts_with("http") || w.starts_with("http://localhost:9001/")), "{step:?}");
    }
    assert_eq!(nsys.steps[3].argv.last().unwrap(), "http://localhost:9001/start_profile");
    assert!(nsys.steps[2].argv.last().unwrap().contains(r#""model":"org/m""#));
    let torch = built_in_recipe("vllm-torch").unwrap().prepare(&w).unwrap();
    assert_eq!(torch.argv().last().unwrap(), r#"{"profiler":"torch","torch_profiler_dir":"/data/out.vllm"}"#);
    assert_eq!(torch.reports[0].to_string(), "out.vllm/*.pt.trace.json.gz");
    let old = built_in_recipe("vllm-torch-old").unwrap().prepare(&wanted("vllm serve m")).unwrap();
    assert!(old.env.contains(&("VLLM_TORCH_PROFILER_DIR".to_owned(), "./out.vllm".to_owned())) && old.notes[0].contains("absolute"));
    let w = Wanted { directory: Some("/data".into()), ..wanted("python -m sglang.launch_server --model-path m") };
    for (id, body, report) in [
        ("sglang", r#"{"activities":["CUDA_PROFILER"]}"#, "out.nsys-rep"),
        ("sglang-torch", r#"{"activities":["CPU","GPU"],"output_dir":"/data/out.sglang"}"#, "out.sglang/*.trace.json.gz"),
    ] {
        let sglang = built_in_recipe(id).unwrap().prepare(&w).unwrap();
        let open = &sglang.steps[3];
        assert_eq!((open.role, open.argv.last().map(String::as_str)), (Role::Open, Some(body)));
        assert!(open.argv.contains(&"http://localhost:30000/start_profile".to_owned()), "{open:?}");
        assert_eq!(sglang.reports[0].to_string(), report);
    }
    assert!(built_in_recipe("sglang").unwrap().prepare(&wanted("python train.py")).is_err());
    let w = Wanted { skip: Some(10), count: Some(5), ..wanted("trtllm-serve m") };
    let trt = built_in_recipe("trtllm").unwrap().prepare(&w).unwrap();
    assert!(trt.env.contains(&("TLLM_PROFILE_START_STOP".to_owned(), "10-15".to_owned())));
    assert!(trt.env.contains(&("TLLM_LLMAPI_ENABLE_NVTX".to_owned(), "1".to_owned())) && trt.steps.len() == 4);
    assert!(!trt.env.iter().any(|(n, _)| n == "TLLM_TORCH_PROFILE_TRACE"), "Kineto cannot run under nsys");
    assert!(built_in_recipe("trtllm").unwrap().prepare(&wanted("trtllm-bench throughput")).unwrap().steps.is_empty());
}
