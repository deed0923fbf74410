//! Verdicts on runs that are easily misjudged: one slow call, one step, growing work, ranges that cover almost no time.

use super::support::{read_as, scratch};
use serde_json::{Value, json};
use std::path::PathBuf;
use warpscope::analysis::range_tree::RangeTree;
use warpscope::analysis::triage::{Scope, Severity, StepSource, Sure, Triage, Verdict, range_windows, triage_profile};
use warpscope::import::Wants;
use warpscope::model::{Cancel, Profile};

/// A run as `torch.profiler` writes it, with one thread and one stream. Times in µs.
struct Run {
    events: Vec<Value>,
    /// Time at which the host and the device have finished their work so far.
    host: f64,
    device: f64,
    next: u32,
    sms: u32,
}

impl Run {
    fn new() -> Self {
        Self { events: Vec::new(), host: 1000.0, device: 0.0, next: 1, sms: 132 }
    }

    fn event(&mut self, cat: &str, name: &str, (tid, ts, dur): (u32, f64, f64), args: Value) -> &mut Self {
        let pid = if cat == "kernel" { 0 } else { 100 };
        self.events.push(json!({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}));
        self
    }

    /// A host call of this duration that starts no work.
    fn call(&mut self, name: &str, dur: f64) -> &mut Self {
        let (at, id) = (self.host, self.next);
        self.next += 1;
        self.host += dur;
        self.event("cuda_runtime", name, (100, at, dur), json!({"correlation": id}))
    }

    /// A launch with these durations of call and kernel, and this grid size.
    fn launch(&mut self, kernel: &str, cost: f64, dur: f64, blocks: u32) -> &mut Self {
        let id = self.next;
        self.call("cudaLaunchKernel", cost);
        let start = self.device.max(self.host + 2.0);
        self.device = start + dur;
        let args = json!({"device": 0, "context": 1, "stream": 7, "correlation": id, "grid": [blocks, 1, 1], "block": [256, 1, 1],
            "registers per thread": 32, "shared memory": 0});
        self.event("kernel", kernel, (7, start, dur), args)
    }

    /// The host waits for the device.
    fn sync(&mut self) -> &mut Self {
        let dur = (self.device - self.host).max(0.0) + 5.0;
        self.call("cudaDeviceSynchronize", dur)
    }

    /// The host does unrecorded work.
    fn pause(&mut self, dur: f64) -> &mut Self {
        self.host += dur;
        self
    }

    /// A range around host work.
    fn range(&mut self, cat: &str, name: &str, inside: impl FnOnce(&mut Self)) -> &mut Self {
        let start = self.host;
        inside(self);
        let dur = self.host - start;
        self.event(cat, name, (100, start, dur), json!({}))
    }

    fn read(&self) -> Profile {
        let device = json!({"id": 0, "name": "NVIDIA H100 80GB HBM3", "computeMajor": 9, "computeMinor": 0, "numSms": self.sms,
            "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048, "warpSize": 32});
        let trace = json!({"schemaVersion": 1, "displayTimeUnit": "ms", "deviceProperties": [device], "traceEvents": self.events});
        let file = tempfile::Builder::new().suffix(".pt.trace.json").tempfile_in(scratch()).unwrap();
        let path: PathBuf = file.into_temp_path().keep().unwrap();
        std::fs::write(&path, trace.to_string()).unwrap();
        read_as(&path, Wants::TRIAGE).unwrap()
    }

    fn judged(&self) -> Triage {
        triage_profile(&self.read(), &Scope::default(), &Cancel::default()).unwrap()
    }
}

fn first(t: &Triage) -> &'static str {
    t.findings.first().map_or("", |f| f.id.id())
}

fn has(t: &Triage, id: Verdict) -> bool {
    t.findings.iter().any(|f| f.id == id)
}

/// A single slow call at the start or in the middle of a run, whatever the call, is not taken for a rate; a repeated
/// one is.
#[test]
fn one_slow_call_is_no_rate() {
    let run = |slow: &dyn Fn(&mut Run, u32)| {
        let mut run = Run::new();
        for i in 0..200 {
            slow(&mut run, i);
            run.launch("work", 5.0, 40.0, 500);
        }
        run.sync();
        run.judged()
    };
    let at = [2_u32, 100, 190];
    for when in at {
        let launch = run(&|r, i| {
            if i == when {
                r.launch("usual", 16_000.0, 10.0, 500);
            }
        });
        assert!(!has(&launch, Verdict::LaunchBound), "{when}: {:?}", launch.findings.first());
        let alloc = run(&|r, i| {
            r.call("cudaMalloc", if i == when { 16_000.0 } else { 1.0 });
        });
        assert!(!has(&alloc, Verdict::Allocation), "{when}: {:?}", alloc.findings.first());
        let named = alloc.findings.iter().any(|f| f.headline.contains("cudaMalloc"))
            || alloc.left_out.iter().any(|l| l.what.contains("cudaMalloc"));
        assert!(named, "{when}: {:?}", alloc.findings.first());
    }
    let often = run(&|r, i| {
        if i % 4 == 0 {
            r.call("cudaMalloc", 300.0);
        }
    });
    assert_eq!(first(&often), "allocation");
    let slow = run(&|r, _| {
        r.launch("usual", 90.0, 3.0, 500);
    });
    assert_eq!(first(&slow), "launch-bound");
    assert_eq!(slow.findings[0].sure, Sure::Certain);
    // Idle time is told apart by what the host does: in the call, or in the program's own code between calls.
    let between = |t: &Triage| {
        let first = t.findings.first().filter(|f| f.id == Verdict::LaunchBound).unwrap();
        let number = |part: &str| first.evidence.iter().find(|e| e.name.contains(part)).unwrap().value;
        number("between calls") / number("idle while launching")
    };
    assert!(between(&slow) < 0.2 && slow.findings[0].headline.contains("most of it in the calls"), "{:?}", slow.findings[0]);
    let apart = run(&|r, _| {
        r.pause(90.0);
        r.launch("usual", 5.0, 3.0, 500);
    });
    assert!(between(&apart) > 0.6 && apart.findings[0].headline.contains("most of it between the calls"), "{:?}", apart.findings[0]);
}

/// The first launch of a kernel is slow because it loads the code. It is ignored at the start of a run, and not taken
/// for a launch rate in the middle.
#[test]
fn first_launches_are_warm_up() {
    let mut run = Run::new();
    run.launch("fill", 5.0, 10.0, 500).launch("work", 15_900.0, 40.0, 500);
    for _ in 0..200 {
        run.launch("work", 5.0, 40.0, 500);
    }
    let t = run.sync().judged();
    assert_eq!(first(&t), "gpu-bound");
    assert!(t.left_out.iter().any(|l| l.what.contains("first launch of work")), "{:?}", t.left_out);
    assert!(t.findings[0].headline.contains("judged") && t.outside.is_some_and(|o| o.judged < 0.5 && o.idle > 0.9), "{:?}", t.findings[0]);
    assert!(t.findings[0].sure > Sure::Certain, "most of the run is not judged, and was idle");

    let mut run = Run::new();
    for i in 0..200 {
        run.launch("work", 5.0, 40.0, 500);
        if i == 150 {
            run.sync().launch("late", 15_900.0, 40.0, 500);
        }
    }
    let t = run.judged();
    assert_eq!(first(&t), "compilation");
    assert!(t.findings[0].headline.contains("the first launch of late"), "{}", t.findings[0].headline);
    assert_eq!(t.findings[0].sure, Sure::Likely);
}

/// A range explicitly named as a step is a step, even if it occurs once; it begins on the
/// host, and layers inside it are not steps.
#[test]
fn one_step_that_was_written_is_a_step() {
    for (name, found) in [("ProfilerStep#6", true), ("step 3", true), ("iter 17", true), ("epoch 1", false), ("forward", false)] {
        let mut run = Run::new();
        run.launch("before", 5.0, 5.0, 500);
        run.range("user_annotation", name, |r| {
            r.range("python_function", "load.py(1): preprocess", |r| {
                r.pause(20_000.0);
            });
            for _ in 0..12 {
                for kernel in ["norm", "attention", "linear", "gelu"] {
                    r.launch(kernel, 5.0, 200.0, 500);
                }
            }
            r.sync();
        });
        let profile = run.read();
        let t = triage_profile(&profile, &Scope::default(), &Cancel::default()).unwrap();
        assert_eq!(matches!(t.found, Some(StepSource::Ranges(_))), found, "{name}: {:?}", t.found);
        if found {
            assert_eq!(first(&t), "host-compute", "{name}: {:?}", t.findings.first());
            assert!(t.findings[0].headline.contains("preprocess"), "{}", t.findings[0].headline);
            assert_eq!(t.steps.len(), 1);
        }
        let windows = range_windows(&profile, name);
        assert_eq!(windows.len(), 1);
        assert!(windows[0].1 - windows[0].0 > 29_000_000, "the host's range, {windows:?}");
    }
}

/// Repetitions inside one operator or module call are not steps; those inside the program's own functions may be.
#[test]
fn layers_of_one_pass_are_no_steps() {
    for (cat, name, steps) in [
        ("python_function", "nn.Module: Encoder_0", false),
        ("cpu_op", "aten::lstm", false),
        ("python_function", "train.py(7): loop", true),
        ("user_annotation", "all of it", true),
    ] {
        let mut run = Run::new();
        run.range(cat, name, |r| {
            for _ in 0..12 {
                for kernel in ["norm", "attention", "linear", "gelu"] {
                    r.launch(kernel, 5.0, 200.0, 500);
                }
            }
        });
        let t = run.judged();
        assert_eq!(matches!(t.found, Some(StepSource::Period(_))), steps, "{name}: {:?}", t.found);
    }
}

/// A range is named as the place of idle time only if it covers enough of it.
#[test]
fn idle_time_belongs_to_places_by_how_much_they_cover() {
    for (inside, named) in [(40.0, false), (900.0, false), (1200.0, true), (1900.0, true)] {
        let mut run = Run::new();
        for i in 0..30 {
            run.range("user_annotation", &format!("step {i}"), |r| {
                r.launch("work", 5.0, 500.0, 500).sync();
                r.pause(1000.0 - inside / 2.0);
                r.range("cpu_op", "aten::relu", |r| {
                    r.pause(inside);
                });
                r.pause(1000.0 - inside / 2.0);
            });
        }
        let t = run.judged();
        let head = &t.findings[0];
        assert_eq!(head.id, Verdict::HostCompute, "{inside}");
        assert_eq!(head.headline.contains("aten::relu"), named, "{inside}: {}", head.headline);
        if let Some(place) = head.places.iter().find(|p| p.name == "aten::relu") {
            let ns = place.ns.unwrap() as f64 / 1000.0;
            assert!((ns / (inside * 30.0) - 1.0).abs() < 0.1, "{inside}: {ns}");
        }
    }
    // Without any enclosing range, and with several that share the idle time.
    let spread = |name: &dyn Fn(u32) -> String| {
        let mut run = Run::new();
        for i in 0..30 {
            run.launch("work", 5.0, 500.0, 500).sync();
            run.range("cpu_op", &name(i % 3), |r| {
                r.pause(2000.0);
            });
        }
        run.judged().findings[0].headline.clone()
    };
    assert!(spread(&|i| format!("aten::op_{}", ["a", "b", "c"][i as usize])).contains("spread over 3 places"));
    assert!(spread(&|_| "aten::op".to_owned()).contains("aten::op"));
}

/// MPI and NCCL functions that block on other ranks count as waiting; those that only start a transfer do not.
#[test]
fn functions_of_mpi_wait_and_those_that_only_start_do_not() {
    for (name, waits) in [
        ("MPI_Recv", true),
        ("MPI_Waitall", true),
        ("MPI_Allreduce", true),
        ("ncclCommInitRank", true),
        ("MPI_Isend", false),
        ("ncclAllReduce", false),
    ] {
        let mut run = Run::new();
        for i in 0..30 {
            run.range("user_annotation", &format!("step {i}"), |r| {
                r.launch("work", 5.0, 500.0, 500).sync();
                r.range("user_annotation", name, |r| {
                    r.pause(2000.0);
                });
            });
        }
        let t = run.judged();
        assert_eq!(first(&t), if waits { "input-wait" } else { "host-compute" }, "{name}");
        assert!(!waits || t.findings[0].actions.iter().any(|a| a.contains("ranks")), "{name}");
    }
}

/// Steps that run other kernels are different work; the same kernels taking longer are a stall.
#[test]
fn other_work_is_no_stall() {
    let run = |slow: &dyn Fn(&mut Run)| {
        let mut run = Run::new();
        for i in 0..80 {
            run.range("user_annotation", &format!("step {i}"), |r| {
                if i % 8 == 5 {
                    slow(r);
                } else {
                    for _ in 0..10 {
                        r.launch("decode", 5.0, 150.0, 264).launch("sample", 5.0, 50.0, 132);
                    }
                }
                r.sync();
            });
        }
        run.judged()
    };
    let usual = |r: &mut Run, ns: f64| {
        for _ in 0..10 {
            r.launch("decode", 5.0, ns, 264).launch("sample", 5.0, 50.0, 132);
        }
    };
    let prefill = run(&|r| {
        for _ in 0..20 {
            r.launch("prefill", 5.0, 900.0, 2000);
        }
    });
    assert!(!has(&prefill, Verdict::PeriodicStall), "{:?}", prefill.findings.first());
    let kinds: Vec<usize> = prefill.kinds.iter().map(|k| k.count).collect();
    assert_eq!(kinds, [10, 70], "{:?}", prefill.kinds);
    let larger = run(&|r| {
        for _ in 0..10 {
            r.launch("decode", 5.0, 900.0, 2000).launch("sample", 5.0, 50.0, 132);
        }
    });
    assert!(!has(&larger, Verdict::PeriodicStall), "{:?}", larger.findings.first());
    let longer = run(&|r| usual(r, 900.0));
    assert_eq!(first(&longer), "periodic-stall");
    let host = run(&|r| {
        usual(r, 150.0);
        r.sync().pause(9000.0);
    });
    assert_eq!(first(&host), "periodic-stall");
}

/// Clock throttling explains a slowdown of up to about three times, but not growing work.
#[test]
fn no_clock_falls_by_more_than_a_factor_of_three() {
    let run = |length: &dyn Fn(u32) -> f64| {
        let mut run = Run::new();
        for i in 0..400 {
            run.launch("work", 5.0, length(i), 1024);
        }
        run.judged()
    };
    type Course<'a> = &'a dyn Fn(u32) -> f64;
    let throttled: [(&str, Course<'_>, bool); 5] = [
        ("slower by and by", &|i| 100.0 + f64::from(i) * 0.15, true),
        (
            "half the clock",
            &|i| {
                if i < 100 {
                    100.0
                } else if i < 200 {
                    150.0
                } else {
                    200.0
                }
            },
            true,
        ),
        ("sizes double", &|i| 20.0 * f64::from(1_u32 << (i / 40)), false),
        ("sizes grow to the tenfold", &|i| 100.0 + f64::from(i) * 2.3, false),
        ("as it was", &|_| 100.0, false),
    ];
    for (what, length, expected) in throttled {
        let t = run(length);
        assert_eq!(has(&t, Verdict::Throttled), expected, "{what}: {:?}", t.findings.first());
        assert!(expected || first(&t) == "gpu-bound", "{what}");
    }
}

/// Kernels that fill the window but use few SMs are not healthy; concurrent kernels add up.
#[test]
fn kernels_that_fill_few_sms_are_not_healthy() {
    let run = |blocks: u32, sms: u32, dur: f64| {
        let mut run = Run { sms, ..Run::new() };
        for _ in 0..200 {
            run.launch("work", 2.0, dur, blocks);
        }
        run.judged()
    };
    for (blocks, sms, healthy) in
        [(1, 132, false), (4, 108, false), (40, 132, false), (60, 132, false), (70, 132, true), (132, 132, true), (5000, 132, true)]
    {
        let t = run(blocks, sms, 1000.0);
        assert_eq!(first(&t), "gpu-bound", "{blocks}");
        let found = &t.findings[0];
        assert_eq!(found.severity == Severity::Healthy, healthy, "{blocks}: {}", found.headline);
        assert!(healthy || found.headline.contains(&format!("{blocks} of {sms} SMs")), "{}", found.headline);
    }
    // The finding needs the number of SMs.
    assert_eq!(run(1, 0, 1000.0).findings[0].severity, Severity::Healthy);
    // Eight streams with 17 blocks each fill the GPU together.
    let mut run = Run::new();
    for _ in 0..50 {
        let ids: Vec<u32> = (run.next..run.next + 8).collect();
        for _ in &ids {
            run.call("cudaLaunchKernel", 2.0);
        }
        let start = run.device.max(run.host) + 1.0;
        for (stream, id) in (7_u32..).zip(ids) {
            let args = json!({"device": 0, "context": 1, "stream": stream, "correlation": id, "grid": [17, 1, 1], "block": [256, 1, 1]});
            run.event("kernel", "side", (stream, start, 1000.0), args);
        }
        run.device = start + 1000.0;
    }
    assert_eq!(run.judged().findings[0].severity, Severity::Healthy);
}

/// Idle time is attributed to process-wide (start/end) ranges as well.
#[test]
fn ranges_of_processes_have_their_idle_time() {
    use super::support::edited_profile;
    let of = |sql: &str| {
        let profile = edited_profile("llm", sql);
        let tree = RangeTree::from_profile(&profile, &Cancel::default()).unwrap();
        let sum = |name: &str| tree.nodes.iter().filter(|n| n.name == name).map(|n| n.idle).sum::<i64>();
        (sum("decode#"), sum("LLM@prefill"))
    };
    let pushed = of("");
    assert!(pushed.0 > 0 && pushed.1 > 0, "{pushed:?}");
    assert_eq!(of("UPDATE NVTX_EVENTS SET eventType = 60 WHERE eventType = 59"), pushed);
}
