//! Screens for runs, drawn without a terminal: a live run, the library, comparison of two reports.

use super::support::{Explorer, demo_files, packed, root};
use insta::assert_snapshot;
use std::path::PathBuf;
use warpscope::analysis::hint_outcome::Promise;
use warpscope::analysis::hints::{Diagnosis, Gain};
use warpscope::app::messages::{News, StepNews};
use warpscope::app::{self, Effect, KeyScope, Msg, Watched};
use warpscope::launch::runs::ExitProblem;
use warpscope::library::{GuidedStep, Report, Run, State};
use warpscope::report::runs::{Came, Promised, outcome_facts};

pub fn run(id: i64, state: State) -> Run {
    Run {
        id,
        started_ms: 1_763_640_000_000 + id * 3_600_000,
        ended_ms: (!state.is_live()).then_some(1_763_640_000_000 + id * 3_600_000 + 83_000),
        last_seen_ms: None,
        state,
        stage: "running".to_owned(),
        detached: false,
        tool: "nsys".to_owned(),
        tool_version: Some("2025.3.2".to_owned()),
        recipe: Some("exact".to_owned()),
        argv: ["nsys", "profile", "--trace=cuda,nvtx", "--output", "/data/runs/1/nsys/report", "python3", "train.py", "--steps", "20"]
            .map(str::to_owned)
            .into(),
        program: ["python3", "train.py", "--steps", "20"].map(str::to_owned).into(),
        env: Vec::new(),
        directory: PathBuf::from("/home/ann/model"),
        patterns: Vec::new(),
        support: Vec::new(),
        host: Some("node7".to_owned()),
        machine: None,
        git_commit: Some("0123456789abcdef0123456789abcdef01234567".to_owned()),
        git_dirty: Some(true),
        env_names: Vec::new(),
        env_values: vec![("CUDA_VISIBLE_DEVICES".to_owned(), "0".to_owned())],
        devices: Some("1 × NVIDIA H200".to_owned()),
        driver: Some("580.95.05".to_owned()),
        clocks_start: Some("1980".to_owned()),
        clocks_end: Some("1830".to_owned()),
        holder: None,
        profiler: None,
        exit_code: Some(0),
        exit_signal: None,
        findings: Vec::new(),
        parent: None,
        selects: None,
        notes: String::new(),
        steps: Vec::new(),
        step: 0,
        tags: Vec::new(),
        reports: Vec::new(),
        gone: Vec::new(),
    }
}

pub fn news(run: &Run, lines: &[&str], open: &str) -> Msg {
    let lines = lines.iter().map(|l| Some((*l).to_owned())).collect();
    let now_ms = run.started_ms + 42_000;
    Msg::Run(Box::new(News { lines, open: open.to_owned(), ended: !run.state.is_live(), run: Box::new(run.clone()), now_ms }))
}

/// An explorer that watches a run which has just started.
fn watching(size: (u16, u16)) -> (Explorer, Run) {
    let mut explorer = Explorer::open(&[], size);
    let run = run(7, State::Running);
    explorer.app.running.watched =
        Some(Watched::new("nsys profile --trace=cuda,nvtx --output /data/runs/7/nsys/report python3 train.py".into(), None, true));
    app::show_watched_run(&mut explorer.app);
    explorer.send(Msg::Started(Ok(Box::new(run.clone()))));
    (explorer, run)
}

#[test]
fn a_run_is_watched_to_its_end() {
    let (mut explorer, mut run) = watching((80, 24));
    assert_eq!(explorer.app.current_scope(), KeyScope::Run);
    assert!(explorer.screen().contains("no output yet"));
    explorer.send(news(&run, &["epoch 1 loss 2.31", "epoch 2 loss 1.97"], "epoch 3"));
    assert_snapshot!("run_80x24", explorer.screen());
    explorer.send(news(
        &run,
        &["Generating '/tmp/nsys-report-1.qdstrm'", "[1/1] [==18%       ] r.nsys-rep", "[1/1] [====43%     ] r.nsys-rep"],
        "",
    ));
    let screen = explorer.screen();
    assert!(screen.contains("writing the report") && screen.contains("43%") && !screen.contains("18%"), "a bar is one line: {screen}");
    explorer.app.session.size = (120, 40);
    assert_snapshot!("run_120x40", explorer.screen());
    // The run ended without a report: the screen stays and says why.
    run.state = State::Failed;
    run.findings = vec![ExitProblem { what: "the disk is full".into(), fix: "free space, or put reports elsewhere: -o PATH".into() }];
    explorer.send(news(&run, &["No space left on device"], ""));
    explorer.app.session.size = (80, 24);
    assert_snapshot!("run_failed", explorer.screen());
    explorer.press("esc");
    assert_eq!(explorer.app.current_scope(), KeyScope::Library, "home is the library");
}

#[test]
fn x_stops_esc_leaves_d_detaches_and_q_asks() {
    let (mut explorer, mut run) = watching((100, 24));
    explorer.send(news(&run, &["working"], ""));
    explorer.press("X");
    assert!(explorer.screen().contains("stop the run?") && !matches!(explorer.asked.last(), Some(Effect::StopRun)));
    explorer.press("s");
    assert!(matches!(explorer.asked.last(), Some(Effect::StopRun)));
    run.stage = "interrupted".into();
    explorer.send(news(&run, &[], ""));
    assert!(explorer.screen().contains("stopping (INT)"));
    explorer.press("X");
    assert!(explorer.screen().contains("TERM"));
    explorer.press("q");
    assert!(explorer.screen().contains("detach it and quit"));
    explorer.press("b");
    assert!(!explorer.quit);
    // With an overlay open Ctrl-C still asks first, and quits only after the answer.
    explorer.press("? ctrl-c");
    assert!(!explorer.quit && explorer.screen().contains("detach it and quit"));
    let before = explorer.asked.len();
    explorer.press("s");
    assert!(explorer.quit && explorer.asked.len() == before, "the stop that is under way is not pressed on: {:?}", explorer.asked);
    explorer.quit = false;
    explorer.press("esc");
    assert_eq!(explorer.app.current_scope(), KeyScope::Library);
    explorer.press("W");
    assert_eq!(explorer.app.current_scope(), KeyScope::Run);
    explorer.press("d");
    assert!(matches!(explorer.asked.last(), Some(Effect::DetachRun)));
    // Nothing can be lost any more: the program quits without asking.
    explorer.press("q");
    assert!(explorer.quit);
}

#[test]
fn a_run_that_left_a_report_opens_it_with_what_went_wrong() {
    let (mut explorer, mut run) = watching((100, 24));
    run.state = State::Stopped;
    run.findings = vec![ExitProblem { what: "the run was stopped; what was recorded until then is kept".into(), fix: String::new() }];
    run.reports =
        vec![Report { path: packed("llm"), bytes: 5, owned: false }, Report { path: root().join("Cargo.toml"), bytes: 5, owned: false }];
    explorer.send(news(&run, &[], ""));
    assert_eq!((explorer.app.current_scope(), explorer.app.session.reports.len()), (KeyScope::Kernels, 1));
    let screen = explorer.screen();
    assert!(screen.contains("CatArrayBatchedCopy") && screen.contains("what was recorded until then is kept"), "{screen}");
}

#[test]
fn a_launch_is_run_again_joined_verified_and_explained() {
    let mut explorer = Explorer::open(&demo_files()[..1], (120, 40));
    let kernel = "nvjet_sm90_tst_192x128_64x5_1x2_h_bz_coopB_TNT";
    explorer.press("/");
    explorer.type_text("192x128");
    explorer.press("enter");
    assert!(explorer.screen().contains("192x128"), "{}", explorer.screen());
    explorer.press("R");
    // A report may come from another person: its program is shown once before it is run.
    assert!(explorer.screen().contains("run the program that this report names?") && explorer.asked.is_empty());
    explorer.press("b");
    explorer.press("R");
    explorer.press("r");
    assert!(matches!(explorer.asked.last(), Some(Effect::Preflight(start)) if start.tool == "ncu"), "{:?}", explorer.asked);
    // A preflight problem opens a question, and Esc starts nothing.
    explorer.send(Msg::Preflight(vec![("Nsight Compute: not on PATH → install it".into(), true)]));
    let screen = explorer.screen();
    assert!(screen.contains("this run will probably fail") && screen.contains("not on PATH"), "{screen}");
    explorer.press("b");
    assert!(!explorer.asked.iter().any(|e| matches!(e, Effect::Start(_))));
    explorer.press("R");
    explorer.send(Msg::Preflight(vec![]));
    let Some(Effect::Start(start)) = explorer.asked.last().cloned() else { panic!("{:?}", explorer.asked) };
    assert_eq!((start.tool.as_str(), start.own, start.selects.len()), ("ncu", true, 1));
    assert!(start.argv.contains(&kernel.to_owned()));
    let mut ended = run(8, State::Done);
    ended.reports = vec![Report { path: demo_files()[2].clone(), bytes: 5, owned: true }];
    explorer.send(Msg::Started(Ok(Box::new(run(8, State::Running)))));
    assert_eq!(explorer.app.current_scope(), KeyScope::Run);
    explorer.send(news(&ended, &["==PROF== Report: r.ncu-rep"], ""));
    // Back on the timeline, then on the hints of the result with the outcome of the comparison.
    assert_eq!(explorer.app.session.active, 0);
    let screen = explorer.screen();
    assert!(screen.contains("gemm 192x128 TNT") && screen.contains("shared-bandwidth-bound"), "{screen}");
    assert!(screen.contains("differs: 4 results instead of 1"), "{screen}");
    explorer.press("esc esc");
    assert_eq!(explorer.app.current_scope(), KeyScope::Kernels);
}

fn library(size: (u16, u16)) -> Explorer {
    let mut explorer = Explorer::open(&[], size);
    app::open_library(&mut explorer.app);
    let mut failed = run(3, State::Failed);
    failed.findings = vec![ExitProblem {
        what: "another tool holds the GPU's performance counters".into(),
        fix: "pause DCGM with `dcgmi profile --pause`".into(),
    }];
    let mut done = run(2, State::Done);
    done.tags = vec!["baseline".into()];
    done.reports = vec![Report { path: packed("llm"), bytes: 452_830, owned: true }];
    let mut ncu = run(4, State::Done);
    (ncu.tool, ncu.recipe, ncu.parent) = ("ncu".into(), Some("re-run".into()), Some(2));
    ncu.program = vec![
        "./a-program-with-a-rather-long-name".into(),
        "--and".into(),
        "many".into(),
        "--options".into(),
        "that".into(),
        "do".into(),
        "not".into(),
        "fit".into(),
    ];
    ncu.reports = vec![Report { path: packed("zoo"), bytes: 1_452_830, owned: true }];
    let runs = vec![run(5, State::Running), ncu, failed, done, run(1, State::Lost)];
    explorer.send(Msg::Library(Ok((runs, 1_763_640_000_000 + 6 * 3_600_000))));
    explorer
}

#[test]
fn the_library_at_three_sizes_and_empty() {
    // Local times depend on the machine's time zone.
    insta::with_settings!({filters => vec![(r"\d{4}-\d\d-\d\d \d\d:\d\d", "YYYY-MM-DD hh:mm")]}, {
        for (name, size) in [("library_80x24", (80, 24)), ("library_120x40", (120, 40)), ("library_200x50", (200, 50))] {
            assert_snapshot!(name, library(size).screen());
        }
    });
    let mut empty = Explorer::open(&[], (80, 24));
    app::open_library(&mut empty.app);
    assert!(empty.screen().contains("reading the library"));
    empty.send(Msg::Library(Ok((Vec::new(), 0))));
    assert_snapshot!("library_empty", empty.screen());
    empty.send(Msg::Library(Err("the run library /x/runs.db: file is not a database".into())));
    assert!(empty.screen().contains("not a database"));
}

#[test]
fn the_library_says_what_came_of_a_promise() {
    let promise = |at_most: f64, expected| Promise {
        id: Diagnosis::BankConflicts,
        gain: Gain { at_most, expected: Some(expected), ..Gain::default() },
        size: None,
        remains: false,
    };
    let came = |kernel: &str, before_ns, after_ns| Came {
        run: 2,
        kernel: kernel.to_owned(),
        before_ns,
        after_ns,
        promise: promise(0.6, (0.4, 0.6)),
    };
    let promised = |kernel: &str, ns| Promised {
        kernel: kernel.to_owned(),
        way: "ncu".to_owned(),
        ns,
        launches: 1,
        promise: promise(0.3, (0.1, 0.3)),
    };
    let all = outcome_facts(
        &[promised("small", 10.0), promised("large", 90_000.0)],
        &[came("same", 100.0, 101.0), came("transpose", 100_000.0, 43_000.0)],
    );
    // The largest gain comes first.
    let heads: Vec<_> = all.iter().map(|(title, text)| (*title, text.split(':').next().unwrap())).collect();
    assert_eq!(heads, [("outcome", "transpose"), ("outcome", "same"), ("promise", "large"), ("promise", "small")]);
    let mut explorer = library((120, 40));
    explorer.press("down");
    explorer.send(Msg::Printed(4, vec!["==PROF== Disconnected".into()], all));
    insta::with_settings!({filters => vec![(r"\d{4}-\d\d-\d\d \d\d:\d\d", "YYYY-MM-DD hh:mm"), (r"report       \S+/fixtures/nsys/zoo\.sqlite\.zst .*│", "report       (a file)│")]}, {
        assert_snapshot!("library_outcome", explorer.screen());
    });
    explorer.press("i");
    assert!(explorer.screen().contains("predicted 40–60%, measured 57%"), "{}", explorer.screen());
    // Outcomes of other runs are not shown.
    explorer.press("esc up");
    assert!(!explorer.screen().contains("predicted"), "{}", explorer.screen());
}

#[test]
fn runs_are_found_opened_compared_tagged_and_deleted() {
    let mut explorer = library((120, 40));
    explorer.press("/");
    explorer.type_text("failed counters");
    assert!(explorer.screen().contains("0 of 5 runs"), "what it printed is not searched: {}", explorer.screen());
    explorer.press("esc / f a i l e d enter");
    assert!(explorer.screen().contains("1 of 5 runs"));
    explorer.press("i");
    assert!(explorer.screen().contains("about this run") && explorer.screen().contains("dcgmi profile --pause"));
    explorer.press("esc esc down down down #");
    explorer.type_text(" slow");
    explorer.press("enter");
    assert!(matches!(explorer.asked.last(), Some(Effect::Tags(2, tags)) if *tags == ["baseline", "slow"]), "{:?}", explorer.asked.last());
    explorer.press("X");
    assert!(explorer.screen().contains("delete run 2"));
    explorer.press("esc");
    assert!(!explorer.asked.iter().any(|e| matches!(e, Effect::Forget(_))));
    explorer.press("X d");
    assert!(matches!(explorer.asked.last(), Some(Effect::Forget(2))));
    explorer.press("r");
    assert!(matches!(explorer.asked.last(), Some(Effect::Preflight(_))));
    // Before: run 2. After: run 4.
    explorer.press("c up up c");
    assert_eq!(explorer.app.current_scope(), KeyScope::Diff);
    let screen = explorer.screen();
    assert!(screen.contains("kernel time") && screen.contains("new") && screen.contains("gone"), "{screen}");
}

#[test]
fn what_changed_at_three_sizes() {
    let before = packed("zoo_2023");
    for (name, size) in [("diff_80x24", (80, 24)), ("diff_120x40", (120, 40)), ("diff_200x50", (200, 50))] {
        let mut explorer = Explorer::open(&[before.clone(), packed("zoo")], size);
        explorer.press("D");
        assert_snapshot!(name, explorer.screen());
        explorer.press("tab");
        assert!(explorer.screen().contains("kernel time"));
        explorer.press("down enter");
        assert_eq!(explorer.app.current_scope(), KeyScope::Launches);
        // The launches lead back to the changes, once.
        explorer.press("esc");
        assert_eq!(explorer.app.current_scope(), KeyScope::Diff);
        explorer.press("esc esc");
        assert_ne!(explorer.app.current_scope(), KeyScope::Diff);
    }
    // Results of the kernel are compared if both reports have them.
    let [zoo, full] = ["demo/zoo", "hints/zoo_full"].map(|f| root().join(format!("fixtures/{f}.ncu-rep.zst")));
    let mut results = Explorer::open(&[zoo, full], (120, 40));
    results.press("D");
    let leads = |e: &mut Explorer| e.screen().lines().any(|l| l.starts_with(" next: ") && l.contains("side by side"));
    for _ in 0..20 {
        if !leads(&mut results) {
            results.press("down");
        }
    }
    results.press("enter");
    assert_eq!(results.app.current_scope(), KeyScope::Compare, "{}", results.screen());
    results.press("esc");
    assert_eq!(results.app.current_scope(), KeyScope::Diff);
    // The next report comes to the front, instead of changing unseen behind the overlay.
    let mut two = Explorer::open(&[before.clone(), packed("zoo")], (120, 40));
    for over in ["D", "L"] {
        two.press(over);
        assert_ne!(two.app.current_scope(), KeyScope::Kernels);
        let active = two.app.session.active;
        two.press("]");
        assert_eq!((two.app.current_scope(), two.app.session.active), (KeyScope::Kernels, 1 - active));
    }
    // The change of the step is the result. A column without values is left out, and so is the number of significant
    // changes, because nothing was tested.
    let steps = ["tiny_ops", "graph_tiny"].map(|f| root().join(format!("fixtures/triage/{f}.sqlite.zst")));
    for size in [(80, 24), (120, 40)] {
        let mut steps = Explorer::open(&steps, size);
        steps.press("D");
        let screen = steps.screen();
        assert!(screen.contains("8.6× faster") && !screen.contains("by more than chance"), "{screen}");
        let head = screen.lines().find(|l| l.contains("kernel  ") && l.contains("in %")).unwrap_or_default();
        assert!(!head.contains("median") && head.contains("before") == head.contains("after"), "{screen}");
    }
    let mut one = Explorer::open(&[before], (80, 24));
    one.press("D");
    assert!(one.screen().contains("only one report is open"));
}

#[test]
fn a_guided_run_shows_its_steps_and_does_them_one_by_one() {
    let (mut explorer, mut run) = watching((80, 24));
    let step = |role: &str, what: &str, argv: &[&str]| GuidedStep {
        role: role.to_owned(),
        what: what.to_owned(),
        argv: argv.iter().map(|w| (*w).to_owned()).collect(),
        why: "It loads the model first.".to_owned(),
        left_out: false,
    };
    let long = r#"{"max_tokens":16,"model":"meta-llama/Llama-3.1-8B-Instruct","prompt":"San Francisco is a city that"}"#;
    run.steps = vec![
        step("wait", "Wait until the server answers.", &["curl", "--retry", "1800", "http://localhost:8000/health"]),
        step("warm-up", "Warm it up.", &["curl", "--request", "POST", "http://localhost:8000/v1/completions", "--data", long]),
        step("stop", "End the server.", &[]),
    ];
    explorer.send(news(&run, &["loading weights"], ""));
    assert_snapshot!("steps_80x24", explorer.screen());
    explorer.press(".");
    assert!(matches!(explorer.asked.last(), Some(Effect::Step { run: 7, argv, .. }) if argv.last().unwrap().ends_with("/health")));
    explorer.press(".");
    assert!(explorer.screen().contains("the step is in progress"));
    explorer.press("X");
    assert!(matches!(explorer.asked.last(), Some(Effect::EndStep)), "the key ends the step, not the run");
    explorer.send(Msg::Step(7, StepNews::Ended(Err("curl ended with exit code 7: no server\u{1b}[31m".into()))));
    assert!(explorer.screen().contains("wait: curl ended with exit code 7"));
    explorer.press(".");
    explorer.send(Msg::Step(7, StepNews::Line("ok".into())));
    explorer.send(Msg::Step(7, StepNews::Ended(Ok(()))));
    assert!(matches!(explorer.asked.last(), Some(Effect::Stepped { run: 7, done: 1, left_out: false })));
    explorer.app.session.size = (120, 40);
    assert_snapshot!("steps_120x40", explorer.screen());
    // Steps done by another program count as well; the last step stops any run.
    run.step = 2;
    explorer.send(news(&run, &[], ""));
    explorer.press(".");
    assert!(matches!(explorer.asked.last(), Some(Effect::StopRun)));
    explorer.press(">");
    assert!(explorer.screen().contains("all steps are done"));
    explorer.press(".");
    assert!(explorer.screen().contains("all steps are done"));
}

#[test]
fn a_chain_of_runs_is_walked_back() {
    let mut explorer = Explorer::open(&[], (100, 24));
    app::open_library(&mut explorer.app);
    let mut runs: Vec<Run> = (1..=4).rev().map(|id| run(id, State::Done)).collect();
    (runs[0].parent, runs[1].parent) = (Some(3), Some(1));
    explorer.send(Msg::Library(Ok((runs, 1_763_640_000_000))));
    let at = |e: &Explorer| e.app.library_screen().unwrap().selected_run().unwrap().id;
    assert_eq!(at(&explorer), 4);
    explorer.press("<");
    assert_eq!(at(&explorer), 3);
    assert!(explorer.screen().contains("run 4 is a re-run of run 3"));
    explorer.press("<");
    assert_eq!(at(&explorer), 1);
    explorer.press("<");
    assert!(explorer.screen().contains("run 1 is the original; its re-runs: 3"));
    explorer.press("up <");
    assert_eq!(at(&explorer), 2);
    assert!(explorer.screen().contains("run 2 is not a re-run and has no re-runs"));
}

#[test]
fn what_is_being_started_is_neither_stopped_nor_detached_yet() {
    let mut explorer = Explorer::open(&[], (100, 24));
    explorer.app.running.watched = Some(Watched::new("nsys profile true".into(), None, true));
    app::show_watched_run(&mut explorer.app);
    for key in ["X", "d"] {
        explorer.press(key);
        assert!(explorer.asked.is_empty() && explorer.screen().contains("the run is starting"), "{key}");
    }
    explorer.press("q");
    assert!(explorer.screen().contains("stop it and quit") && !explorer.screen().contains("detach it"));
}

#[test]
fn several_commands_run_one_after_the_other() {
    let mut explorer = Explorer::open(&[super::support::packed("single")], (120, 40));
    explorer.app.session.reports[0].trusted = true;
    explorer.press("space j space j space r");
    assert_eq!(explorer.app.rerun_screen(0).unwrap().plan().unwrap().commands.len(), 3);
    explorer.press("R");
    assert!(matches!(explorer.asked.last(), Some(Effect::Preflight(_))));
    explorer.send(Msg::Preflight(Vec::new()));
    let result = super::support::root().join("fixtures/ncu/one.ncu-rep.zst");
    let ended = |id, state| {
        let reports = vec![Report { path: result.clone(), bytes: 1, owned: true }];
        Run { tool: "ncu".into(), reports, ..run(id, state) }
    };
    let started = |explorer: &Explorer| match explorer.asked.last() {
        Some(Effect::Start(start)) => start.argv.clone(),
        other => panic!("{other:?}"),
    };
    let first = started(&explorer);
    explorer.send(Msg::Started(Ok(Box::new(run(11, State::Running)))));
    explorer.send(news(&run(11, State::Running), &["==PROF== Profiling"], ""));
    assert!(explorer.screen().contains("1 of 3"), "{}", explorer.screen());
    explorer.send(news(&ended(11, State::Done), &[], ""));
    let second = started(&explorer);
    assert_ne!(first, second);
    explorer.send(Msg::Started(Ok(Box::new(run(12, State::Running)))));
    explorer.send(news(&run(12, State::Running), &[], ""));
    assert!(explorer.screen().contains("2 of 3"));
    // A failed run ends the sequence, and the remaining steps are reported.
    let before = explorer.asked.len();
    explorer.send(news(&ended(12, State::Failed), &[], ""));
    assert_eq!(explorer.asked.len(), before);
    assert!(explorer.app.status.as_ref().unwrap().text.contains("run 12 (2 of 3): failed; the remaining 1 was not started"));
}

#[test]
fn a_step_that_was_left_out_does_not_look_like_one_that_was_done() {
    let (mut explorer, mut run) = watching((80, 24));
    let step =
        |role: &str| GuidedStep { role: role.into(), what: String::new(), argv: vec!["true".into()], why: String::new(), left_out: false };
    run.steps = vec![step("wait"), step("warm-up"), step("open")];
    explorer.send(news(&run, &[], ""));
    explorer.press(">");
    assert!(matches!(explorer.asked.last(), Some(Effect::Stepped { run: 7, done: 1, left_out: true })));
    explorer.press(".");
    explorer.send(Msg::Step(7, StepNews::Ended(Ok(()))));
    let screen = explorer.screen();
    assert!(screen.contains("– wait") && screen.contains("✓ warm-up"), "{screen}");
}

/// A list belongs to the screen it was opened on, whatever appears before it is answered.
#[test]
fn an_answer_lands_on_the_report_that_was_asked_about() {
    use warpscope::analysis::GroupBy;
    let mut explorer = Explorer::open(&[packed("zoo")], (100, 30));
    explorer.app.running.watched = Some(Watched::new("nsys profile python3 train.py".into(), None, true));
    explorer.send(Msg::Started(Ok(Box::new(run(7, State::Running)))));
    explorer.press("g");
    let mut ended = run(7, State::Done);
    ended.reports = vec![Report { path: packed("llm"), bytes: 5, owned: true }];
    explorer.send(news(&ended, &[], ""));
    assert_eq!(explorer.app.session.reports.len(), 2);
    explorer.press("c");
    let by = |e: &Explorer, report: usize| e.app.session.reports[report].groups.by;
    assert_eq!((by(&explorer, 0), by(&explorer, 1)), (GroupBy::Config, GroupBy::Kernel));
    // The new report did not come to the front under the list either.
    assert_eq!(explorer.app.session.active, 0);
    // The same for text input: tags belong to the run that was selected when the input was opened.
    let mut explorer = library((100, 24));
    explorer.press("down down #");
    let later = vec![run(9, State::Done), run(5, State::Done), run(3, State::Failed)];
    explorer.send(Msg::Library(Ok((later, 1_763_640_000_000))));
    explorer.type_text("mine");
    explorer.press("enter");
    assert!(matches!(explorer.asked.last(), Some(Effect::Tags(3, tags)) if *tags == ["mine"]), "{:?}", explorer.asked.last());
    // If the screen was closed meanwhile, nothing is changed, and a message says so.
    let mut explorer = Explorer::open(&[packed("zoo"), packed("llm")], (100, 30));
    explorer.press("enter s");
    explorer.app.close_all_of(0);
    explorer.press("d");
    assert!(explorer.screen().contains("closed; nothing was changed"), "{}", explorer.screen());
}

#[test]
fn checks_neither_interrupt_nor_replace_each_other() {
    let mut explorer = library((120, 40));
    explorer.press("r");
    assert!(matches!(explorer.asked.last(), Some(Effect::Preflight(_))));
    let asked = explorer.asked.len();
    explorer.press("r");
    assert_eq!(explorer.asked.len(), asked);
    assert!(explorer.screen().contains("still in progress"), "{}", explorer.screen());
    // Typing continues: an `r` in the text does not confirm the run.
    explorer.press("#");
    explorer.send(Msg::Preflight(vec![("nsys: not on PATH".into(), true)]));
    assert!(!explorer.screen().contains("this run will probably fail"), "{}", explorer.screen());
    explorer.type_text(" r");
    explorer.press("esc");
    assert!(explorer.screen().contains("this run will probably fail"), "{}", explorer.screen());
    assert!(!explorer.asked.iter().any(|e| matches!(e, Effect::Start(_))));
    // Esc leaves no pending state: another run can be checked.
    explorer.press("esc r");
    assert!(matches!(explorer.asked.last(), Some(Effect::Preflight(_))) && explorer.asked.len() > asked);
}
