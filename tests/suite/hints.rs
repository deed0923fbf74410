//! Hints for kernels with known causes, for public reports of many GPUs, and for reports with few metrics; and
//! the screens and the command that show them.

use super::support::{Explorer, demo_files, packed, read, root};
use insta::assert_snapshot;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use warpscope::analysis::hints::diagnosed_kernel::{Subject, diagnose_all};
use warpscope::analysis::hints::{DIAGNOSES, Depth, Diagnosis, Facts, Severity, Sure, diagnose};
use warpscope::analysis::metrics_rows::MetricsRow;
use warpscope::app::{KeyScope, Msg, ResultView};

fn fixture(name: &str) -> PathBuf {
    root().join(format!("fixtures/hints/{name}.ncu-rep.zst"))
}

/// Labels by kernel: the accepted hint ids, and whether the kernel is healthy.
pub fn labels(name: &str) -> BTreeMap<String, (Vec<String>, bool)> {
    let text = std::fs::read_to_string(root().join(format!("fixtures/hints/{name}_labels.toml"))).unwrap();
    let mut out = BTreeMap::new();
    for line in text.lines().filter(|l| !l.starts_with('#') && l.contains("accept")) {
        let (kernel, rest) = line.split_once('=').unwrap();
        let list = rest.split('[').nth(1).unwrap().split(']').next().unwrap();
        let ids = list.split(',').map(|i| i.trim().trim_matches('"').to_owned()).collect();
        out.insert(kernel.trim().to_owned(), (ids, line.contains("healthy = true")));
    }
    out
}

/// Number of correct first hints, number of kernels, and the details as text.
fn score(report: &str, set: &str) -> (usize, usize, String) {
    let subjects = diagnose_all(&read(&fixture(report)).unwrap());
    let labels = labels(set);
    let (mut right, mut text) = (0, String::new());
    for s in &subjects {
        let (accept, healthy) = &labels[s.kernel.function()];
        let first = s.hints.first().map_or("nothing", |h| h.id.id());
        if accept.iter().any(|a| a == first) {
            right += 1;
        } else {
            text += &format!("{report}: {} is said to be {first}, not {accept:?}\n", s.kernel.function());
        }
        let praised = s.hints.iter().any(|h| h.severity == Severity::Healthy);
        assert!(*healthy || !praised, "{report}: {} is not healthy", s.kernel.function());
    }
    (right, subjects.len(), text)
}

#[test]
fn the_first_hint_names_the_cause() {
    for (report, set, least, of) in [
        ("zoo_full", "zoo", 19, 19),
        ("zoo_detailed", "zoo", 19, 19),
        ("causes_full", "causes", 32, 33),
        ("causes_detailed", "causes", 32, 33),
        ("third_full", "third", 33, 36),
        ("third_detailed", "third", 32, 36),
    ] {
        let (right, all, wrong) = score(report, set);
        println!("{report}: {right} of {all}\n{wrong}");
        assert!(right >= least && all == of, "{report}: {right} of {all}\n{wrong}");
    }
}

/// The metrics of the set `basic` cannot tell many causes apart. Hints then name the limiting unit or nothing, never
/// call a kernel healthy for lack of metrics, and each says which metrics would decide.
#[test]
fn little_is_said_of_what_was_not_collected() {
    let subjects = diagnose_all(&read(&fixture("causes_basic")).unwrap());
    let (right, _, _) = score("causes_basic", "causes");
    println!("causes_basic: {right} of {}", subjects.len());
    assert!(right >= 12);
    let needs =
        ["uncoalesced-global", "shared-bank-conflicts", "barrier-stalls", "warp-divergence", "instruction-cache", "register-spilling"];
    for s in &subjects {
        assert_eq!(s.depth, Depth::Basic);
        for h in &s.hints {
            assert!(!needs.contains(&h.id.id()), "{}: {} from the set basic", s.kernel.function(), h.id.id());
            let more = h.confirm.sections.iter().any(|s| ["WarpStateStats", "SourceCounters"].contains(s));
            let again = h.confirm.sections.iter().any(|s| ["LaunchStats", "Occupancy"].contains(s));
            assert!(h.confirm.sections.is_empty() || more && !again, "{:?}", h.confirm);
        }
    }
}

/// Removing metrics never makes a hint more confident, never turns a kernel healthy, and
/// never leaves evidence from a removed metric.
#[test]
fn nothing_is_said_of_absent_numbers() {
    let profile = read(&fixture("causes_full")).unwrap();
    let metrics = profile.metrics.as_ref().unwrap();
    let groups = [
        "smsp__pcsamp",
        "smsp__average",
        "smsp__",
        "l1tex__",
        "lts__",
        "dram__",
        "gpu__dram",
        "gpu__",
        "sm__",
        "memory_",
        "derived__",
        "launch__",
    ];
    let single = metrics.names.iter().map(|n| n.to_string());
    let cuts: Vec<(bool, String)> = groups.iter().map(|g| (true, (*g).to_owned())).chain(single.map(|n| (false, n))).collect();
    for result in 0..metrics.results.len() {
        let whole = diagnose(&Facts::of_result(metrics, result));
        let mut cut = (**metrics).clone();
        cut.results = vec![metrics.results[result].clone()];
        for (group, name) in cuts.iter().filter(|(group, _)| *group || result % 4 == 0) {
            let gone = |n: &str| if *group { n.starts_with(name.as_str()) } else { n == name };
            cut.results[0].values.clone_from(&metrics.results[result].values);
            cut.results[0].values.retain(|(n, _)| !gone(&metrics.names[*n as usize]));
            for h in diagnose(&Facts::of_result(&cut, 0)) {
                let what = format!("{} without {name}: {}", metrics.results[result].kernel.function(), h.headline);
                assert!(h.evidence.iter().all(|e| !gone(&e.metric)), "{what}");
                assert!(h.stake.is_finite() && (0.0..=1.0).contains(&h.stake) && !h.headline.is_empty(), "{what}");
                assert!(!h.headline.contains("NaN") && !h.headline.contains("inf"), "{what}");
                let before = whole.iter().find(|w| w.id == h.id);
                assert!(before.is_none_or(|w| h.sure >= w.sure), "{what}: surer than before");
                let praised = whole.iter().any(|w| w.severity == Severity::Healthy);
                assert!(h.severity != Severity::Healthy || praised, "{what}: praised");
            }
        }
    }
    assert!(diagnose(&Facts::default()).is_empty(), "nothing is known");
}

/// Values that a counter cannot have are ignored.
#[test]
fn nonsense_is_not_believed() {
    use warpscope::model::Value;
    let profile = read(&fixture("causes_full")).unwrap();
    let metrics = profile.metrics.as_ref().unwrap();
    for nonsense in [f64::NAN, f64::INFINITY, -5.0, 1e308, 1e19] {
        for result in (0..metrics.results.len()).step_by(5) {
            let mut m = (**metrics).clone();
            m.results = vec![m.results[result].clone()];
            for (_, v) in &mut m.results[0].values {
                *v = Value::Float(nonsense);
            }
            let hints = Subject::of_metrics(&m, 0).unwrap().hints;
            assert!(hints.iter().all(|h| h.evidence.iter().all(|e| e.metric.is_empty())), "{nonsense}: {hints:?}");
        }
    }
}

/// Zero, NaN and absent are distinct.
#[test]
fn zero_is_not_absent() {
    use warpscope::model::Value;
    let profile = read(&fixture("zoo_full")).unwrap();
    let metrics = profile.metrics.as_ref().unwrap();
    let at = metrics.results.iter().position(|r| r.kernel.function() == "spill_regs").unwrap();
    let of = |value: Option<Value>| {
        let mut m = (**metrics).clone();
        let name = m.names.iter().position(|n| &**n == "derived__local_spilling_requests").unwrap() as u32;
        m.results[at].values.retain(|(n, _)| *n != name);
        m.results[at].values.extend(value.map(|v| (name, v)));
        diagnose(&Facts::of_result(&m, at)).first().map(|h| h.id)
    };
    assert_eq!(of(Some(Value::Integer(0))), Some(Diagnosis::LocalMemory), "no spills among the accesses");
    // Spilling instructions are evidence too.
    assert_eq!(of(Some(Value::Float(f64::NAN))), Some(Diagnosis::Spilling));
    assert_eq!(of(None), Some(Diagnosis::Spilling));
}

/// Metric names that exist on one chip only are found on that chip. On Volta the tools collect fewer metrics, but
/// enough to name the limiting unit.
#[test]
fn names_of_each_chip() {
    use warpscope::model::{Metrics, Value};
    let profile = read(&fixture("zoo_full")).unwrap();
    let template = profile.metrics.as_ref().unwrap().results[0].clone();
    let of = |cc: (u64, u64), values: &[(&str, f64)]| {
        let mut result = template.clone();
        result.compute_capability = Some(cc);
        result.values = values.iter().enumerate().map(|(i, (_, v))| (i as u32, Value::Float(*v))).collect();
        let names = values.iter().map(|(n, _)| Arc::from(*n)).collect();
        let metrics = Metrics { names, units: vec![Arc::from("%"); values.len()], results: vec![result], ..Metrics::default() };
        Facts::of_result(&metrics, 0)
    };
    let hmma = "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active";
    let subpipe = "sm__pipe_tensor_subpipe_hmma_cycles_active.avg.pct_of_peak_sustained_active";
    for (cc, name, id) in [
        ((7, 0), hmma, "tensor_hmma"),
        ((7, 5), hmma, "tensor_hmma"),
        ((8, 0), hmma, "tensor_hmma"),
        ((8, 6), "sm__inst_executed_pipe_fma_type_fp16.avg.pct_of_peak_sustained_active", "pipe_fp16"),
        ((8, 9), hmma, "tensor_hmma"),
        ((9, 0), "sm__pipe_tensor_op_hmma_type_hmma_hgmma_qgmma_cycles_active.avg.pct_of_peak_sustained_active", "tensor_hmma"),
        ((10, 0), "sm__pipe_tc_cycles_active.avg.pct_of_peak_sustained_elapsed", "tensor_active"),
        ((10, 3), subpipe, "tensor_hmma"),
        ((12, 0), "dram__bytes_op_read.sum", "dram_bytes_read"),
        // An unknown future chip may have any of the names.
        ((13, 0), subpipe, "tensor_hmma"),
    ] {
        assert_eq!(of(cc, &[(name, 70.0)]).get(id), Some(70.0), "{cc:?} {name}");
    }
    let dram = "dram__throughput.avg.pct_of_peak_sustained_elapsed";
    let hints = diagnose(&of((7, 0), &[(dram, 91.0), ("gpu__time_duration.sum", 1e6)]));
    assert_eq!(hints[0].id, Diagnosis::DramBandwidth);
    assert_ne!(hints[0].severity, Severity::Healthy, "whether the traffic is useful is not known");
}

/// A kernel's name adds advice but never decides a diagnosis.
#[test]
fn names_of_kernels_only_add_advice() {
    let profile = read(&fixture("zoo_full")).unwrap();
    let mut metrics = (**profile.metrics.as_ref().unwrap()).clone();
    metrics.results[0].kernel.function = Some(Arc::from("k"));
    metrics.results[0].kernel.demangled = None;
    let plain = Subject::of_metrics(&metrics, 0).unwrap();
    for name in ["vectorized_elementwise_kernel", "ncclDevKernel_AllReduce", "nvjet_gemm", "flash_fwd_kernel", "layer_norm"] {
        metrics.results[0].kernel.function = Some(Arc::from(name));
        let named = Subject::of_metrics(&metrics, 0).unwrap();
        let ids = |s: &Subject| s.hints.iter().map(|h| (h.id, h.severity, h.sure)).collect::<Vec<_>>();
        assert_eq!(ids(&plain), ids(&named), "{name}");
        let more = named.hints[0].actions.len() > plain.hints[0].actions.len();
        assert_eq!(more, name.contains("elementwise") || name.contains("norm"), "{name}");
    }
}

#[test]
fn a_timeline_tells_what_the_launch_alone_can() {
    let profile = read(&packed("zoo")).unwrap();
    let subjects = diagnose_all(&profile);
    let first = |name: &str| {
        let s = subjects.iter().find(|s| s.kernel.function() == name).unwrap();
        (s.depth, s.hints.first().map(|h| h.id.id()))
    };
    assert_eq!(first("tiny"), (Depth::Timeline, Some("launch-overhead")));
    assert_eq!(first("tail_wave"), (Depth::Timeline, Some("tail-effect")));
    assert_eq!(first("copy_coalesced"), (Depth::Timeline, None), "nothing is known of its memory");
    let allowed = ["launch-overhead", "grid-too-small", "tail-effect"];
    for s in &subjects {
        for h in &s.hints {
            // The occupancy limit is known, but not whether it costs time.
            let limit = h.id.id().starts_with("occupancy-") && h.severity == Severity::Low && h.sure == Sure::Possible;
            assert!(allowed.contains(&h.id.id()) || limit, "{}: {h:?}", s.kernel.function());
        }
    }
}

/// For every result of the public reports: no panic, only known ids, shares between 0
/// and 1, no evidence absent from the report.
#[test]
fn public_reports_of_many_gpus() {
    let Some(folder) = std::env::var_os("WARPSCOPE_CORPUS") else {
        println!("not run: WARPSCOPE_CORPUS is not set");
        return;
    };
    let mut results = 0;
    for entry in std::fs::read_dir(PathBuf::from(folder).join("samples/ncu")).unwrap() {
        let Ok(profile) = read(&entry.unwrap().path()) else { continue };
        let Some(metrics) = profile.metrics.clone() else { continue };
        for s in diagnose_all(&profile) {
            results += 1;
            let own = &metrics.results[s.result.unwrap()];
            for h in &s.hints {
                assert!(DIAGNOSES.iter().any(|d| d.diagnosis == h.id) && (0.0..=1.0).contains(&h.stake));
                for e in h.evidence.iter().filter(|e| e.metric.contains("__")) {
                    assert!(metrics.value(own, &e.metric).is_some(), "{}: {} is not in the report", h.id.id(), e.metric);
                    assert!(e.value.is_finite());
                }
            }
        }
    }
    println!("{results} results of public reports");
    // Expected hints checked by hand against the metrics and NVIDIA's rules: V100, T4, A10G, RTX 4090.
    let folder = PathBuf::from(std::env::var_os("WARPSCOPE_CORPUS").unwrap()).join("samples/ncu");
    for (file, result, id) in [
        ("NCAR+GPU_workshop__10_HandsOnNsight__ncu__MW_DivToMult", 2, "dram-bandwidth-bound"),
        ("armleth+cuda-mlp-inference__report_v4_8_per_thread", 0, "uncoalesced-global"),
        ("armleth+cuda-mlp-inference__report_v6_1d_1_per_thread", 0, "dram-bandwidth-bound"),
        ("AveryClapp+ESMM-Research__profile.be34af6", 0, "l1-bandwidth-bound"),
        ("AveryClapp+ESMM-Research__profile.263b23d", 3, "compute-bound"),
        ("Lashi0812+CudaProgramming__profiling__profiles__readWriteOffset_ca.9edb668", 0, "dram-bandwidth-bound"),
        ("Lashi0812+CudaProgramming__profiling__profiles__simpleDivergence", 0, "launch-overhead"),
    ] {
        let subjects = diagnose_all(&read(&folder.join(format!("{file}.ncu-rep"))).unwrap());
        assert_eq!(subjects[result].hints[0].id.id(), id, "{file}: {result}");
    }
    assert!(results > 40);
}

fn run(args: &[&str]) -> (String, String, i32) {
    let out = Command::new(env!("CARGO_BIN_EXE_warpscope")).args(args).output().unwrap();
    let text = |b: &[u8]| String::from_utf8(b.to_vec()).unwrap();
    (text(&out.stdout), text(&out.stderr), out.status.code().unwrap())
}

#[test]
fn hints_on_stdout() {
    let file = fixture("zoo_full").display().to_string();
    let (out, _, rc) = run(&["hints", &file, "--format", "json"]);
    assert_eq!(rc, 0);
    let json: Json = serde_json::from_str(&out).unwrap();
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 19);
    let spill = rows.iter().find(|r| r["kernel"] == "spill_regs").unwrap();
    let hint = &spill["hints"][0];
    assert_eq!(hint["id"], "register-spilling");
    assert!(hint["gain_percent"].as_f64().unwrap() > 30.0 && hint["severity"] == "high" && hint["confidence"] == "certain");
    let argv: Vec<&str> = hint["confirm"]["argv"].as_array().unwrap().iter().map(|a| a.as_str().unwrap()).collect();
    assert!(argv.contains(&"--section") && argv.contains(&"SourceCounters") && argv.contains(&"spill_regs"), "{argv:?}");
    for e in hint["evidence"].as_array().unwrap() {
        assert!(e["value"].is_number() && e["label"].is_string() && e.get("threshold").is_some());
    }
    let (table, _, _) = run(&["hints", &file, "--format", "table", "--kernel", "transpose_conflict"]);
    assert!(table.contains("shared-bank-conflicts") && table.lines().count() <= 4, "{table}");
    let (csv, _, _) = run(&["hints", &file, "--launch", "3"]);
    assert!(csv.starts_with("result,launch,kernel,rank,id,severity,confidence,gain_percent,headline,gain_least_percent\n"), "{csv}");
    let (explained, _, _) = run(&["hints", &file, "--kernel", "copy_strided", "--explain"]);
    for text in
        ["uncoalesced-global", "consequence: memory-latency", "do:", "confirm:", "--section SourceCounters", "NVIDIA's", "throughput:"]
    {
        assert!(explained.contains(text), "{text}\n{explained}");
    }
    let (_, err, rc) = run(&["hints", &file, "--launch", "99"]);
    assert!(rc == 2 && err.contains("there is no launch 99"), "{err}");
    let (csv, _, rc) = run(&["hints", &packed("zoo").display().to_string(), "--kernel", "tiny"]);
    assert!(rc == 0 && csv.contains("launch-overhead"), "{csv}");
    let stats = root().join("fixtures/stats/zoo_cuda_gpu_kern_sum.csv").display().to_string();
    let (_, err, rc) = run(&["hints", &stats]);
    assert!(rc == 2 && err.contains("per-kernel totals only"), "{err}");
}

fn at(kernel: &str, size: (u16, u16)) -> Explorer {
    let mut explorer = Explorer::open(&[fixture("zoo_detailed")], size);
    explorer.press("/");
    explorer.type_text(kernel);
    explorer.press("enter a");
    assert_eq!(explorer.app.current_scope(), KeyScope::Hints);
    explorer
}

#[test]
fn the_hints_screen_at_three_sizes() {
    for (name, size) in [("hints_80x24", (80, 24)), ("hints_120x40", (120, 40)), ("hints_200x50", (200, 50))] {
        assert_snapshot!(name, at("copy_strided", size).screen());
    }
    assert_snapshot!("hints_healthy", at("fma_peak", (100, 30)).screen());
    let mut explorer = Explorer::open(&[fixture("zoo_detailed")], (200, 50));
    explorer.press("p");
    assert_snapshot!("hints_beside_metrics", explorer.screen());
}

#[test]
fn lines_of_the_hints_screen_lead_on() {
    let mut explorer = at("copy_strided", (110, 40));
    let line = |e: &Explorer| {
        let s = e.app.result_screen(0).unwrap();
        s.hints.lines[s.hints.selected].clone()
    };
    use warpscope::app::screens::result::hints::Line;
    assert_eq!(line(&explorer), Line::Hint(0, true));
    explorer.press("enter");
    assert_eq!(line(&explorer), Line::Hint(0, false));
    explorer.press("enter down down");
    assert!(matches!(line(&explorer), Line::Evidence(0, _)), "{:?}", line(&explorer));
    // Enter on a value opens its row in the metrics.
    explorer.press("enter");
    assert_eq!(explorer.app.current_scope(), KeyScope::Metrics);
    let screen = explorer.app.result_screen(0).unwrap();
    assert!(screen.sections.rows[screen.sections.selected].metric().is_some());
    // Escape goes back one screen at a time.
    explorer.press("esc");
    assert_eq!(explorer.app.current_scope(), KeyScope::Hints);
    explorer.press("esc");
    assert_eq!(explorer.app.current_scope(), KeyScope::Kernels);
    // The first rows of the metrics are hints, which link back.
    explorer.press("p home down");
    let screen = explorer.app.result_screen(0).unwrap();
    assert!(
        matches!(screen.sections.rows[screen.sections.selected], MetricsRow::Hint(0)),
        "{:?}",
        screen.sections.rows[screen.sections.selected]
    );
    explorer.press("enter y h");
    assert!(explorer.copied.last().unwrap().starts_with("uncoalesced-global: "), "{:?}", explorer.copied);
    explorer.press("y c");
    let command = explorer.copied.last().unwrap();
    assert!(
        command.starts_with("ncu ") && command.contains("--kernel-name copy_strided") && command.contains("SourceCounters"),
        "{command}"
    );
    // The re-run collects the metrics that confirm the hint.
    explorer.press("r");
    assert_eq!(explorer.app.current_scope(), KeyScope::Rerun);
    assert!(explorer.screen().contains("SourceCounters"), "{}", explorer.screen());
    explorer.press("esc");
    assert_eq!(explorer.app.current_scope(), KeyScope::Hints);
    explorer.press("a");
    assert_eq!(explorer.app.current_scope(), KeyScope::Metrics);
    explorer.send(Msg::Resize(60, 16));
    explorer.press("a");
    assert!(explorer.screen().contains("uncoalesced-global"));
}

/// Without metrics, hints from the launch configuration are shown over the table.
#[test]
fn a_timeline_has_hints_in_the_explorer() {
    let mut explorer = Explorer::open(&[packed("zoo")], (100, 30));
    explorer.press("/");
    explorer.type_text("tail_wave");
    explorer.press("enter a");
    let screen = explorer.screen();
    assert!(screen.contains("hints from the launch alone") && screen.contains("tail-effect"), "{screen}");
    explorer.press("esc enter a");
    assert!(explorer.screen().contains("hints from the launch alone"));
}

#[test]
fn nvidia_s_rules_stand_below_ours_and_lead_to_their_text() {
    use warpscope::app::screens::result::hints::Line;
    let mut explorer = Explorer::open(&[root().join("fixtures/ncu/full.ncu-rep.zst")], (110, 40));
    explorer.press("p a end");
    let screen = explorer.app.result_screen(0).unwrap();
    let Line::Theirs(rule, message) = screen.hints.lines[screen.hints.selected] else { panic!("{:?}", screen.hints.lines) };
    assert!(explorer.screen().contains("NVIDIA's rules, by estimated speedup"));
    explorer.press("enter");
    let screen = explorer.app.result_screen(0).unwrap();
    assert_eq!((screen.view, &screen.sections.rows[screen.sections.selected]), (ResultView::Metrics, &MetricsRow::Rule(rule, message)));
}

#[test]
fn every_kernel_with_metrics_has_its_diagnosis_in_the_table() {
    assert_snapshot!("kernels_diagnosed", Explorer::open(&[fixture("zoo_detailed")], (80, 30)).screen());
    // The same for a timeline with joined results.
    let mut explorer = Explorer::open(&demo_files(), (120, 40));
    assert!(explorer.screen().contains("diagnosis"), "{}", explorer.screen());
    let report = &explorer.app.session.reports[0];
    assert!(!report.diagnosed.is_empty() && report.diagnosed.len() <= report.profiled.len());
}

#[test]
fn the_checklist_ticks_what_is_there() {
    let mut explorer = Explorer::open(&demo_files(), (100, 40));
    explorer.press("x");
    assert_snapshot!("checklist", explorer.screen());
    explorer.press("esc");
    let mut alone = Explorer::open(&[fixture("zoo_full")], (100, 40));
    alone.press("x");
    let screen = alone.screen();
    assert!(screen.contains("○ timeline collected") && screen.contains("✓ hot kernels analyzed"), "{screen}");
}

/// FP32 operations are counted by thread: with few active lanes, they still fill the pipe.
#[test]
fn few_active_lanes_are_no_integer_work() {
    let subjects = diagnose_all(&read(&fixture("causes_full")).unwrap());
    let of = |kernel: &str| subjects.iter().find(|s| s.kernel.function() == kernel).unwrap();
    for kernel in ["one_lane_in_eight", "four_ways"] {
        let said = of(kernel).hints.iter().flat_map(|h| std::iter::once(h.id).chain(h.effects.iter().map(|e| e.0)));
        assert!(said.clone().all(|id| id != Diagnosis::Alu) && said.clone().any(|id| id == Diagnosis::Compute), "{kernel}");
    }
    assert_eq!(of("divide").hints[0].id, Diagnosis::Alu);
}

#[test]
fn a_launch_that_failed_is_not_judged() {
    assert!(Subject::default().hints.is_empty());
    let profile = read(&fixture("zoo_full")).unwrap();
    let mut metrics = (**profile.metrics.as_ref().unwrap()).clone();
    metrics.results[0].failed = true;
    let s = Subject::of_metrics(&metrics, 0).unwrap();
    assert!(s.failed && s.hints.is_empty());
}

/// A table with diagnoses on the screen is copied with them.
#[test]
fn copied_kernels_have_their_diagnoses() {
    let mut explorer = Explorer::open(&demo_files(), (120, 40));
    explorer.press("K home y t");
    let table = explorer.copied.last().unwrap();
    let (head, first) = (table.lines().next().unwrap(), table.lines().nth(1).unwrap());
    assert!(head.ends_with(",diagnosis") && first.ends_with(",workload-imbalance"), "{head}\n{first}");
    // Groups of several kernels have no diagnosis, neither on the screen nor in the copied table.
    explorer.press("g s y t");
    let table = explorer.copied.last().unwrap();
    assert!(!table.lines().next().unwrap().contains("diagnosis"), "{table}");
}

/// A code screen without any code says what is missing and how to collect it, and offers no keys that do nothing.
#[test]
fn a_result_without_code_says_how_to_collect_it() {
    let mut explorer = Explorer::open(&demo_files(), (120, 40));
    explorer.press("K home e");
    let screen = explorer.screen();
    assert!(screen.contains("No code was collected for this launch.") && screen.contains("ncu --section SourceCounters"), "{screen}");
    assert!(screen.contains("r collects it") && !screen.contains("line/SASS") && !screen.contains("s order"), "{screen}");
    // Nor does the screen of host lines, which this capture did not record, offer keys that do nothing.
    explorer.press("esc esc C");
    let screen = explorer.screen();
    assert!(screen.contains("has no stacks of the threads") && screen.contains("next: O shows what limits the run"), "{screen}");
    assert!(!screen.contains("space fold") && !screen.contains("/ filter"), "{screen}");
}
