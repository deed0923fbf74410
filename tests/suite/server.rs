//! An LLM inference server: vLLM 0.26 on an H100, recorded by the tracer (see `fixtures/README.md`).

use super::support::{Explorer, read, root, run, scratch};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use warpscope::analysis::Overview;
use warpscope::analysis::readable::readable_name;
use warpscope::analysis::triage::{self, Phase, Scope, StepSource, Triage};
use warpscope::model::{Cancel, Profile};

fn open(name: &str) -> Profile {
    read(&root().join(format!("fixtures/trace/{name}.wstrace.zst"))).unwrap()
}

fn judge(profile: &Profile) -> Triage {
    triage::triage_profile(profile, &Scope::default(), &Cancel::default()).unwrap()
}

/// With 64 concurrent requests some steps decode from a graph and some contain prefill: only the
/// wait for the token occurs in every step.
#[test]
fn steps_are_told_apart_by_the_wait_for_a_token() {
    let profile = open("server_steady");
    let found = judge(&profile);
    assert_eq!(found.found, Some(StepSource::Waits("cuEventSynchronize".to_owned())));
    // One step per host wait, except waits before the first recorded kernels.
    let waits = profile.calls.names.iter().find(|n| &*n.name == "cuEventSynchronize").unwrap().count;
    assert!(found.steps.len() > 100 && found.steps.len() as u64 <= waits, "{} of {waits}", found.steps.len());
    let kinds: Vec<_> = found.kinds.iter().map(|k| (k.launched.graphs, k.launched.graph_kernels, k.launched.single_kernels)).collect();
    assert_eq!(kinds, [(1, 193, 19), (1, 193, 18)], "{:?}", found.kinds);
    for kind in &found.kinds {
        let (part, share) = kind.idle.unwrap();
        assert!(part.id() == "idle: launching" && kind.busy + share < 1.0 && kind.busy > 0.4, "{kind:?}");
    }
}

#[test]
fn start_up_ends_with_the_last_graph_that_is_captured() {
    let profile = open("server_start");
    let found = judge(&profile);
    let phases: Vec<(Phase, f64)> = found.left_out.iter().map(|l| (l.phase, (l.end - l.start) as f64 / 1e9)).collect();
    let [(Phase::StartUp, start), (Phase::WarmUp, warm_up), ..] = phases[..] else { panic!("{phases:?}") };
    assert!((start - 8.0).abs() < 0.1 && (warm_up - 3.0).abs() < 0.1, "{phases:?}");
    assert_eq!(found.left_out[0].what, "start-up: until 918 graphs are captured");
    let file = root().join("fixtures/trace/server_start.wstrace.zst").display().to_string();
    let phase = |word: &str| -> (i32, Value) {
        let (code, out, _) = run(&["triage", &file, "--phase", word, "--format", "json"]);
        (code, serde_json::from_str(&out).unwrap_or_default())
    };
    let (code, start_up) = phase("start-up");
    assert_eq!((code, &start_up["findings"][0]["id"]), (0, &Value::from("compilation")), "{start_up}");
    assert_eq!(start_up["window"]["end_ns"].as_i64(), Some(found.left_out[0].end));
    let (_, steady) = phase("steady");
    assert_eq!(steady["window"]["start_ns"].as_i64(), Some(found.window.0));
    assert_eq!(steady["window"]["left_out"][0]["phase"], "start-up");
    // Launches of a phase begin in it; `--launch-skip` still counts from the start of the program.
    let (_, top, _) = run(&["top", &file, "--format", "json", "--limit", "1"]);
    let kernel = serde_json::from_str::<Value>(&top).unwrap()["rows"][0]["name"].as_str().unwrap().to_owned();
    let slowest = |phase: &str| {
        let (code, out, err) = run(&["rerun", &file, "--kernel", &kernel, "--slowest", "--phase", phase, "--format", "json"]);
        assert_eq!(code, 0, "{err}");
        let plan: Value = serde_json::from_str(&out).unwrap();
        let argv: Vec<&str> = plan["argv"].as_array().unwrap().iter().map(|w| w.as_str().unwrap()).collect();
        let skip = argv.windows(2).find(|w| w[0] == "--launch-skip").unwrap()[1];
        let launch = plan["selects"]["launch"].as_u64().unwrap();
        let own = profile.launches.kernel(usize::try_from(launch).unwrap());
        let function = profile.kernels[own.0 as usize].function();
        let earlier = (0..usize::try_from(launch).unwrap()).filter(|&l| {
            let kernel = profile.launches.kernel(l);
            profile.kernels[kernel.0 as usize].function() == function
        });
        assert_eq!(skip, earlier.count().to_string(), "{phase}");
        profile.launches.start(usize::try_from(launch).unwrap())
    };
    assert!((found.window.0..found.window.1).contains(&slowest("steady")));
    assert!((found.left_out[0].start..found.left_out[0].end).contains(&slowest("start-up")));
    let (code, _, err) = run(&["triage", &root().join("fixtures/trace/llm.wstrace.zst").display().to_string(), "--phase", "ending"]);
    assert!(code == 2 && err.contains("no ending was found"), "{code} {err}");
}

/// The engine renames its process (`VLLM::EngineCore ''`), and its kernels have generic names such as `device_kernel`.
#[test]
fn programs_and_kernels_have_names_that_say_something() {
    let profile = open("server_steady");
    let names: Vec<String> = profile.kernels.iter().map(|k| readable_name(k).into_owned()).collect();
    assert!(names.iter().any(|n| n.starts_with("FlashAttnFwdSm90")), "{names:?}");
    assert!(!names.iter().any(|n| n == "device_kernel"), "{names:?}");
    let file = root().join("fixtures/trace/server_steady.wstrace.zst").display().to_string();
    for args in [&["rerun", &file, "--kernel", "FlashAttn", "--launch", "3"][..], &["triage", &file, "--format", "md"], &["top", &file]] {
        let (_, out, _) = run(args);
        assert!(!out.contains("''"), "{args:?}: {out}");
    }
}

#[test]
fn a_part_of_a_rotating_trace_says_what_is_missing_beside_it() {
    let file = root().join("fixtures/trace/server_last.3523.2.wstrace.zst").display().to_string();
    let (code, _, err) = run(&["top", &file]);
    assert!(code == 0 && err.contains("which is not beside it") && !err.contains("damaged"), "{code} {err}");
    // Without names, a count of launches selects nothing; and what is not known is not 0.
    let (code, out, err) = run(&["rerun", &file, "--slowest"]);
    assert!(code != 0 && out.is_empty() && err.contains("the report has no names of these kernels"), "{code} {out} {err}");
    let profile = read(Path::new(&file)).unwrap();
    assert!(profile.configs.iter().all(|c| c.grid.is_none() && c.registers.is_none()), "{:?}", profile.configs);
    let (_, out, _) = run(&["triage", &file, "--format", "json"]);
    assert!(!out.contains("Record a shorter part"), "{out}");
}

/// Unpacks a trace as `NAME.7.wstrace` and writes samples of its server next to it: seconds since the trace began,
/// running and waiting requests, generated tokens.
fn with_samples(name: &str, samples: &[(f64, u32, u32, u32)]) -> PathBuf {
    let fixture = root().join("fixtures/trace/server_start.wstrace.zst");
    let zero = read(&fixture).unwrap().clock.epoch_ns.unwrap();
    let file = scratch().join(format!("{name}.7.wstrace"));
    std::fs::write(&file, zstd::stream::decode_all(std::fs::File::open(&fixture).unwrap()).unwrap()).unwrap();
    let mut text = String::from("time_ns,requests_running,requests_waiting,generated_tokens\n");
    for (at, running, waiting, tokens) in samples {
        let _ = std::fmt::Write::write_fmt(&mut text, format_args!("{},{running},{waiting},{tokens}\n", zero + (at * 1e9) as i64));
    }
    std::fs::write(scratch().join(format!("{name}.metrics.csv")), text).unwrap();
    file
}

#[test]
fn a_server_without_requests_is_not_slow() {
    // The tested pause is between the capture of the graphs and the first step, from 8.8 to 11.8 s.
    let seconds = |running: u32| (0..13).map(|s| (f64::from(s), running, 0, 0)).collect::<Vec<_>>();
    let first = |file: &Path| -> Value {
        let (_, out, err) = run(&["triage", file.to_str().unwrap(), "--phase", "warm-up", "--format", "json"]);
        serde_json::from_str::<Value>(&out).unwrap_or_else(|e| panic!("{e}: {err}"))["findings"].clone()
    };
    let idle = with_samples("idle", &seconds(0));
    let findings = first(&idle);
    let headline = findings[0]["headline"].as_str().unwrap();
    assert_eq!((&findings[0]["id"], &findings[0]["severity"]), (&Value::from("no-requests"), &Value::from("healthy")), "{headline}");
    assert!(headline.starts_with("the server has no requests for "), "{headline}");
    let ids = |of: &Value| of.as_array().unwrap().iter().map(|f| f["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    let busy = with_samples("busy", &seconds(1));
    let of_busy = first(&busy);
    assert!(
        ids(&of_busy)[..2] == ["input-wait", "host-compute"] && !ids(&of_busy).contains(&"no-requests".to_owned()),
        "{:?}",
        ids(&of_busy)
    );
    // Pauses that are too short to lie between requests still count as the host's.
    let host = |of: &Value| of.as_array().unwrap().iter().find(|f| f["id"] == "host-compute").map(|f| f["share_percent"].as_f64().unwrap());
    assert!(!ids(&findings).contains(&"input-wait".to_owned()), "{:?}", ids(&findings));
    assert!(host(&findings).unwrap() < host(&of_busy).unwrap() / 2.0, "{:?} of {:?}", host(&findings), host(&of_busy));
    // The samples are also tracks of the timeline.
    let profile = read(&busy).unwrap();
    assert_eq!(profile.counters.iter().map(|t| &*t.name).collect::<Vec<_>>(), ["requests running", "requests waiting", "tokens generated"]);
    assert_eq!((profile.server.len(), profile.counters[0].times[3]), (13, 3_000_000_000));
}

/// Answers each request with vLLM's page of metrics, until the test ends.
fn serve_metrics() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 2048]);
            let page = "vllm:num_requests_running{engine=\"0\"} 3.0\nvllm:num_requests_waiting{engine=\"0\"} 1.0\n";
            let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}", page.len());
        }
    });
    port
}

#[test]
fn metrics_are_sampled_beside_the_program_until_it_ends() {
    let port = serve_metrics();
    let output = scratch().join("sampled");
    let mut traced = Command::new(assert_cmd::cargo::cargo_bin!("warpscope"))
        .args(["trace", &format!("--metrics=http://127.0.0.1:{port}/metrics"), "-o"])
        .arg(&output)
        .args(["sh", "-c", "read line"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let samples = || warpscope::import::server_metrics::read_samples(&output);
    let until = Instant::now() + Duration::from_secs(60);
    while samples().len() < 2 {
        assert!(Instant::now() < until, "no samples");
        std::thread::park_timeout(Duration::from_millis(50));
    }
    let found = samples();
    assert_eq!((found[0].requests_running, found[0].requests_waiting, found[0].kv_cache_used), (Some(3.0), Some(1.0), None));
    assert!(found[1].time - found[0].time >= 500_000_000, "{found:?}");
    let pid = traced.id();
    // The sampling process ends soon after the program.
    let sampling = || {
        let word = format!("__sample-metrics\0{pid}\0");
        std::fs::read_dir("/proc").unwrap().flatten().any(|p| {
            let words = std::fs::read(p.path().join("cmdline")).unwrap_or_default();
            let words = String::from_utf8_lossy(&words).into_owned();
            words.contains(&word)
        })
    };
    assert!(sampling());
    traced.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert!(traced.wait_with_output().unwrap().status.success());
    while sampling() {
        assert!(Instant::now() < until, "it goes on");
        std::thread::park_timeout(Duration::from_millis(50));
    }
    // A link or a pipe with the file's name is left alone, and the program runs.
    let folder = tempfile::tempdir_in(scratch()).unwrap();
    let other = folder.path().join("victim");
    std::fs::write(&other, "kept").unwrap();
    std::os::unix::fs::symlink(&other, folder.path().join("link.metrics.csv")).unwrap();
    nix::unistd::mkfifo(&folder.path().join("pipe.metrics.csv"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    for name in ["link", "pipe"] {
        let output = folder.path().join(name).display().to_string();
        let (code, out, err) = run(&["trace", "--metrics", "-o", &output, "echo", "runs"]);
        assert!(code == 0 && out == "runs\n" && err.contains("metrics are not sampled"), "{name}: {code} {out} {err}");
    }
    assert_eq!(std::fs::read_to_string(&other).unwrap(), "kept");
    // Samples of another run are kept if nothing is started.
    let old = folder.path().join("old.metrics.csv");
    std::fs::write(&old, "time_ns\n").unwrap();
    run(&["trace", "--metrics", "-o", &folder.path().join("old").display().to_string(), "/no/such/program"]);
    assert_eq!(std::fs::read_to_string(&old).unwrap(), "time_ns\n");
    let (code, _, err) = run(&["trace", "--metrics=https://x/metrics", "-o", "x", "true"]);
    assert!(code == 2 && err.contains("http://127.0.0.1:8000/metrics"), "{err}");
}

/// The page of vLLM 0.26 after 136 requests of 128 tokens each.
#[test]
fn a_page_of_vllm_is_read() {
    let text = std::fs::read_to_string(root().join("fixtures/trace/vllm_metrics.txt")).unwrap();
    let sample = warpscope::import::server_metrics::parse_prometheus(&text, 1).unwrap();
    assert_eq!((sample.requests_running, sample.requests_waiting, sample.kv_cache_used), (Some(0.0), Some(0.0), Some(0.0)));
    assert_eq!((sample.generated_tokens, sample.is_without_requests()), (Some(136.0 * 128.0), true));
    let mean = |h: Option<warpscope::model::Histogram>| h.map(|h| (h.count, (h.sum / h.count * 1e5).round() / 1e5));
    assert_eq!(mean(sample.first_token), Some((136.0, 0.09495)));
    assert_eq!(mean(sample.per_token), Some((136.0 * 127.0, 0.00287)));
}

#[test]
fn a_phase_is_marked_judged_and_narrowed_to_in_the_timeline() {
    let file = scratch().join("phases.wstrace");
    let packed = std::fs::File::open(root().join("fixtures/trace/server_start.wstrace.zst")).unwrap();
    std::fs::write(&file, zstd::stream::decode_all(packed).unwrap()).unwrap();
    let mut explorer = Explorer::open(&[file], (120, 40));
    explorer.press("O T 0 g");
    // The map names the phases.
    assert!(explorer.screen().contains("start-up") && explorer.screen().contains("warm-up"), "{}", explorer.screen());
    let mut said = Vec::new();
    for _ in 0..5 {
        explorer.press("v");
        let screen = explorer.screen();
        let line = screen.lines().find(|l| l.contains(": B narrows")).unwrap_or_default();
        said.push(line.split(": B narrows").next().unwrap_or_default().trim_start_matches(|c: char| !c.is_ascii_alphabetic()).to_owned());
    }
    assert_eq!(said, ["start-up, 8.00 s", "warm-up, 3.01 s", "steady, 1.34 s", "ending, 2.44 ms", "start-up, 8.00 s"]);
    assert!(explorer.screen().contains("compilation"), "{}", explorer.screen());
    explorer.press("B O");
    assert!(explorer.screen().contains("Where the time went  window: 8.00 s of 12.4 s"), "{}", explorer.screen());
}

/// Impossible values in a file of samples, which another program may have written, are left out.
#[test]
fn metrics_that_cannot_be_are_left_out() {
    let file = with_samples("hostile", &[(1.0, 0, 0, 0), (2.0, 0, 0, 0)]);
    let samples = scratch().join("hostile.metrics.csv");
    let whole = std::fs::read_to_string(&samples).unwrap();
    let odd = format!("{whole}{},0,0,0\n{},1e308,NaN,-1\n{},0,0,0\n", i64::MIN, i64::MAX, i64::MAX - 1);
    std::fs::write(&samples, odd + &"9".repeat(100_000)).unwrap();
    let profile = read(&file).unwrap();
    assert_eq!(profile.server.len(), 2);
    let (code, _, err) = run(&["triage", file.to_str().unwrap()]);
    assert_eq!(code, 0, "{err}");
    std::fs::write(&samples, "time_ns,requests_running\n").unwrap();
    let notes: Vec<String> = read(&file).unwrap().notes.iter().map(|n| n.text.clone()).collect();
    assert!(notes.iter().any(|n| n.contains("no page of a vLLM or SGLang server answered")), "{notes:?}");
}

/// The run had about 15,600 steps of 225 kernels, copies and memsets each (`fixtures/README.md`), of which 1.3% was
/// recorded.
#[test]
fn moments_of_a_server_say_what_the_whole_run_had() {
    let file = root().join("fixtures/trace/server_moments.wstrace.zst").display().to_string();
    let (code, out, err) = run(&["triage", &file, "--format", "json"]);
    assert_eq!(code, 0, "{err}");
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    let whole = &json["whole_run"];
    let of = |what: &str, key: &str| whole[what][key].as_f64().unwrap();
    assert_eq!(whole["moments"], 43);
    assert!(of("launches", "low") < 3.4e6 && 3.4e6 < of("launches", "high"), "{whole}");
    assert!(of("kernel_ns", "low") < of("kernel_ns", "value") && of("kernel_ns", "value") < of("kernel_ns", "high"), "{whole}");
    // Decode steps of 64 requests; too few were seen for the slow ones.
    let median = &whole["steps"][0];
    assert_eq!((whole["steps"].as_array().unwrap().len(), &median["percent"]), (1, &50.into()));
    assert!(median["length_ns"]["low"].as_f64().unwrap() > 2.5e6 && median["length_ns"]["high"].as_f64().unwrap() < 4.5e6, "{median}");
    // The run was mostly idle because there were no requests; the page gives the recorded share.
    let (_, text, _) = run(&["triage", &file, "--format", "md"]);
    assert!(text.contains("the recording is a sample: 43 moments of 101 ms, 1.31% of 332 s"), "{text}");
    // The GPU was busy for this share of the recorded moments, not of the run.
    let busy = Overview::from_profile(&read(Path::new(&file)).unwrap()).busy_percent.unwrap();
    assert!((3.0..7.0).contains(&busy), "{busy}");
    let (_, _, notes) = run(&["top", &file]);
    assert!(notes.contains("`--format json` has both for each row (`whole_run`)"), "{notes}");
}
