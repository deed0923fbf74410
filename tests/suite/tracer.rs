//! The tracer's shared object, driven by a CUPTI mock that needs no GPU and logs its
//! records; the importer must find exactly those.

use std::collections::{BTreeMap, HashSet};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use warpscope::analysis::triage::{Cause, Scope, triage_profile};
use warpscope::import::wstrace::{WarpscopeTrace, read_modules};
use warpscope::import::{Importer, Job, Wants, input_if, open_profile};
use warpscope::launch::tracer::OBJECT;
use warpscope::model::{Cancel, LaunchOrder, NoteKind, Profile, RangeKind};

pub fn cc(arguments: &[&str], folder: &Path) {
    let done = Command::new("cc").args(["-O1", "-w"]).args(arguments).current_dir(folder).output().expect("a C compiler");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// Builds the mocks and the shared object once; returns their folder.
pub fn built() -> &'static Path {
    static BUILT: OnceLock<tempfile::TempDir> = OnceLock::new();
    BUILT
        .get_or_init(|| {
            let folder = tempfile::tempdir().unwrap();
            let mock = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mock");
            let source = |name: &str| mock.join(name).display().to_string();
            let shared = ["-fPIC", "-shared", "-o"];
            let at = folder.path();
            cc(&[&shared[..], &["libcupti.so.13", &source("cupti.c"), "-Wl,-soname,libcupti.so.13", "-lpthread"]].concat(), at);
            cc(&[&shared[..], &["libcuda.so.1", &source("cuda.c"), "./libcupti.so.13", "-Wl,-soname,libcuda.so.1"]].concat(), at);
            std::fs::write(at.join("nothing.c"), "").unwrap();
            cc(&[&shared[..], &["libnvperf_host.so", "nothing.c"]].concat(), at);
            let libraries = ["-Wl,--no-as-needed", "./libcuda.so.1", "./libcupti.so.13", "-Wl,-rpath,$ORIGIN", "-lpthread", "-ldl"];
            cc(&[&["-o", "program", &source("program.c")], &libraries[..]].concat(), at);
            cc(&[&["-o", "strange", &source("strange.c")], &libraries[..]].concat(), at);
            cc(&[&["-o", "registers", &source("registers.c")], &libraries[..]].concat(), at);
            cc(&[&["-o", "signals", &source("signals.c")], &libraries[..]].concat(), at);
            cc(&[&["-o", "delicate", &source("delicate.c")], &libraries[..]].concat(), at);
            cc(&[&["-o", "client", &source("client.c")], &libraries[..]].concat(), at);
            cc(&[&["-rdynamic", "-o", "false_python", &source("false_python.c")], &libraries[..]].concat(), at);
            cc(&["-o", "bare", &source("bare.c"), "-ldl"], at);
            cc(&["-o", "sandbox", &source("sandbox.c")], at);
            std::fs::write(at.join("tracer.so"), OBJECT).unwrap();
            folder
        })
        .path()
}

/// A traced run of the mock program.
pub struct Run {
    pub folder: tempfile::TempDir,
    code: Option<i32>,
    truth: String,
}

/// Returns the functions that the tracer finds in symbols built from these arguments
/// (`tests/mock/functions.c`), on a small stack.
pub fn functions_of(words: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let object = format!("-I{}", root.join("src/launch/tracer/object").display());
    cc(&["-o", "functions", &object, &root.join("tests/mock/functions.c").display().to_string(), "-ldl", "-lpthread"], folder.path());
    let limited = ["-c", "ulimit -s 256; exec \"$0\" \"$@\"", &folder.path().join("functions").display().to_string()];
    let done = Command::new("sh").args(limited).args(words).output().unwrap();
    assert!(done.status.success(), "{:?}", done.status);
    String::from_utf8(done.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Command for the program with rare behaviour (`tests/mock/strange.c`), with the object also
/// preloaded; killed after minutes if it hangs.
pub fn strange_command(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command.args(["-s", "KILL", "180"]).arg(built().join("strange")).args(words);
    in_folder(&mut command, folder);
    command.env_remove("MOCK_TRUTH").env("LD_PRELOAD", built().join("tracer.so"));
    command
}

/// Command for the mock program, to be run in a folder.
pub fn built_command(folder: &Path, words: &[&str], env: &[(&str, &str)]) -> Command {
    let mut command = Command::new(built().join("program"));
    in_folder(command.args(words), folder);
    command.envs(env.iter().copied());
    command
}

pub fn in_folder(command: &mut Command, folder: &Path) {
    let object = built().join("tracer.so");
    command
        .current_dir(folder)
        .env("CUDA_INJECTION64_PATH", &object)
        .env("NVTX_INJECTION64_PATH", &object)
        .env("WARPSCOPE_TRACE_OUT", folder.join("report"))
        .env("MOCK_TRUTH", folder.join("truth"));
}

fn traced(words: &[&str], env: &[(&str, &str)]) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let code = built_command(folder.path(), words, env).output().unwrap().status.code();
    let truth = std::fs::read_to_string(folder.path().join("truth")).unwrap_or_default();
    Run { folder, code, truth }
}

impl Run {
    pub fn files(&self) -> Vec<PathBuf> {
        let mut all: Vec<PathBuf> = std::fs::read_dir(self.folder.path()).unwrap().map(|e| e.unwrap().path()).collect();
        all.retain(|p| p.extension().is_some_and(|e| e == "wstrace"));
        all.sort();
        all
    }

    fn profile(&self) -> Profile {
        let files = self.files();
        assert_eq!(files.len(), 1, "{files:?}");
        read(&files[0])
    }

    /// Fields of the log lines of one kind.
    pub fn said(&self, kind: &str) -> Vec<Vec<String>> {
        let lines = self.truth.lines().map(|l| l.split(' ').map(str::to_owned).collect::<Vec<_>>());
        lines.filter(|w| w[0] == kind).map(|w| w[1..].to_vec()).collect()
    }
}

pub fn read(file: &Path) -> Profile {
    open_profile(file, &Job::new(Wants::ALL, &|_| {})).unwrap()
}

fn zero(profile: &Profile) -> i64 {
    profile.clock.epoch_ns.unwrap()
}

/// One launch: name, grid x, dynamic shared memory, registers, stream, start and duration,
/// node, thread, whether it is cooperative.
type Launch = (String, u32, u64, u32, u32, i64, i64, u64, u32, bool);

fn launches(profile: &Profile) -> Vec<Launch> {
    let l = &profile.launches;
    (0..l.len())
        .map(|i| {
            let c = &profile.configs[l.config(i).unwrap().0 as usize];
            let p = &profile.places[l.place(i).unwrap().0 as usize];
            (
                profile.kernels[l.kernel(i).0 as usize].mangled().to_owned(),
                c.grid.unwrap()[0],
                c.dynamic_shared.unwrap().0,
                c.registers.unwrap(),
                p.stream.unwrap(),
                l.start(i) + zero(profile),
                l.duration(i),
                l.graph_node(i).unwrap_or(0),
                p.thread.unwrap_or(0),
                c.cooperative,
            )
        })
        .collect()
}

/// Launches that the mock logged, in the order of correlation ids. `threads` tells whether thread ids are expected.
fn sent(run: &Run, threads: bool) -> Vec<Launch> {
    let mut all: Vec<(u32, i64, Launch)> = run
        .said("kernel")
        .iter()
        .map(|w| {
            let n = |i: usize| w[i].parse::<u64>().unwrap();
            let ordinal = u32::try_from(n(2)).unwrap();
            let thread = if threads { n(7) as u32 } else { 0 };
            let launch = (
                w[1].clone(),
                1 + ordinal / 1000,
                u64::from(ordinal % 1000),
                32 + ordinal % 5,
                n(3) as u32,
                n(4) as i64,
                n(5) as i64,
                n(6),
                thread,
                ordinal % 10 == 9,
            );
            (n(0) as u32, launch.5, launch)
        })
        .collect();
    let first = all.first().map_or(0, |l| l.0);
    all.sort_by_key(|(id, start, _)| (id.wrapping_sub(first).wrapping_add(1 << 20), *start));
    all.into_iter().map(|(_, _, l)| l).collect()
}

/// Asserts that both lists are equal; prints only the first difference.
fn same(found: &[Launch], sent: &[Launch], what: &str) {
    let first = found.iter().zip(sent).position(|(a, b)| a != b);
    assert_eq!(first.map(|i| (i, &found[i], &sent[i])), None, "{what}");
    assert_eq!(found.len(), sent.len(), "{what}");
}

/// CUPTI versions whose records differ, or that report launch calls differently.
const VERSIONS: [u32; 14] = [12, 13, 15, 17, 18, 20, 21, 23, 24, 26, 28, 130_001, 130_301, 130_500];

#[test]
fn every_version_gives_what_was_sent() {
    for version in VERSIONS {
        let run = traced(&["launches=3000", "graphs=2", "copies=3"], &[("MOCK_VERSION", &version.to_string())]);
        assert_eq!(run.code, Some(5), "the exit code is the program's");
        let profile = run.profile();
        same(&launches(&profile), &sent(&run, true), &format!("version {version}"));
        assert_eq!(profile.order, LaunchOrder::Host);
        let with_call = (0..profile.launches.len()).filter(|&i| profile.launches.call(i).is_some()).count();
        assert_eq!(with_call, 3040, "version {version}");
        let copies: Vec<u64> = profile.memops.iter().map(|m| m.bytes.unwrap().0).collect();
        assert_eq!(copies, [12288, 12289, 8192, 8193, 4096, 4097]);
        assert!(profile.memops.iter().all(|m| m.call.is_some()), "version {version}");
        let notes: Vec<_> = profile.notes.iter().map(|n| &n.text).collect();
        assert!(notes.is_empty(), "version {version}: {notes:?}");
        assert_eq!(profile.source.version.as_deref(), Some(format!("CUPTI {version}").as_str()));
    }
}

#[test]
fn calls_are_those_that_were_made() {
    let run = traced(&["launches=500", "copies=3"], &[]);
    let profile = run.profile();
    let total: BTreeMap<&str, u64> = profile.calls.names.iter().map(|n| (&*n.name, n.count)).collect();
    assert_eq!(
        total,
        [("cuLaunchKernel", 500), ("cuMemcpyHtoDAsync", 3), ("cuMemsetD8Async", 3), ("cuStreamSynchronize", 3)].into_iter().collect()
    );
    let told: BTreeMap<u32, (i64, i64)> =
        run.said("call").iter().map(|w| (w[0].parse().unwrap(), (w[2].parse().unwrap(), w[3].parse().unwrap()))).collect();
    for row in 0..profile.calls.len() {
        let (start, duration) = told[&profile.calls.correlation[row]];
        assert_eq!((profile.calls.start[row] + zero(&profile), profile.calls.duration[row]), (start, duration));
    }
    let gpu = &profile.devices[1];
    assert_eq!((gpu.name.as_deref(), gpu.sm_count, gpu.max_warps_per_sm), (Some("NVIDIA Mock 1"), Some(132), Some(64)));
    assert_eq!(gpu.memory_bandwidth, Some(2_619_000 * 2000 * 640));
}

/// Number of calls by name.
fn counts(profile: &Profile) -> BTreeMap<&str, u64> {
    profile.calls.names.iter().map(|n| (&*n.name, n.count)).collect()
}

#[test]
fn allocations_do_not_hide_the_calls_that_make_them() {
    for version in ["13", "24", "130001"] {
        let run = traced(&["launches=100", "allocations=5"], &[("MOCK_VERSION", version), ("WARPSCOPE_TRACE_OPTIONS", "memory")]);
        let profile = run.profile();
        assert_eq!(
            counts(&profile),
            [("cuLaunchKernel", 100), ("cuMemAlloc", 5), ("cuMemFree", 5)].into_iter().collect(),
            "version {version}"
        );
        let told: Vec<(i64, i64)> = run
            .said("memory")
            .iter()
            .map(|w| (w[3].parse().unwrap(), w[2].parse::<i64>().unwrap() * if w[1] == "2" { -1 } else { 1 }))
            .collect();
        let found: Vec<_> = profile.memory.events.iter().map(|e| (e.time + zero(&profile), e.bytes)).collect();
        assert_eq!((found.len(), &found), (10, &told), "version {version}");
        assert!(profile.memory.events.iter().all(|e| e.device.is_some()));
    }
    let run = traced(&["launches=100", "allocations=5"], &[]);
    let profile = run.profile();
    assert_eq!(counts(&profile), [("cuLaunchKernel", 100), ("cuMemAlloc", 5), ("cuMemFree", 5)].into_iter().collect());
    assert!(profile.memory.events.is_empty());
}

#[test]
fn all_calls_are_also_those_that_the_runtime_makes() {
    for version in ["20", "24", "130001"] {
        let run = traced(
            &["launches=100", "copies=2", "allocations=5", "other=7"],
            &[("MOCK_VERSION", version), ("WARPSCOPE_TRACE_OPTIONS", "api=all")],
        );
        let profile = run.profile();
        let expected = [
            ("cuLaunchKernel", 100),
            ("cuMemAlloc", 5),
            ("cuMemFree", 5),
            ("cuMemcpyHtoDAsync", 2),
            ("cuMemsetD8Async", 2),
            ("cuNothingOfInterest", 7),
            ("cuStreamSynchronize", 2),
        ];
        assert_eq!(counts(&profile), expected.into_iter().collect(), "version {version}");
        let with_call = (0..profile.launches.len()).filter(|&i| profile.launches.call(i).is_some()).count();
        assert_eq!(with_call, 100, "version {version}");
    }
}

#[test]
fn threads_that_race_lose_nothing_and_ids_may_wrap() {
    let run = traced(&["launches=8000", "threads=8"], &[("MOCK_CORRELATION", "4294964000")]);
    let profile = run.profile();
    same(&launches(&profile), &sent(&run, true), "ids wrap");
    assert_eq!(profile.launches.len(), 8000);
    // Before 12.3 buffers do not belong to threads, but calls do.
    let run = traced(&["launches=800", "threads=4"], &[("MOCK_VERSION", "18")]);
    same(&launches(&run.profile()), &sent(&run, true), "callbacks");
    let run = traced(&["launches=800", "threads=4"], &[("MOCK_VERSION", "18"), ("WARPSCOPE_TRACE_OPTIONS", "lean")]);
    same(&launches(&run.profile()), &sent(&run, false), "shared buffers");
    let run = traced(&["launches=800", "threads=4", "copies=3"], &[("WARPSCOPE_TRACE_OPTIONS", "lean")]);
    same(&launches(&run.profile()), &sent(&run, true), "buffers name their threads");
    // CUPTI records the copies, because it would keep the nodes of graphs otherwise.
    assert_eq!((run.said("copy").len(), run.profile().memops.len()), (3, 0));
}

#[test]
fn a_program_may_leave_as_it_likes() {
    let preload = built().join("tracer.so").display().to_string();
    let whole = |profile: &Profile| profile.notes.iter().all(|n| n.kind != NoteKind::Lost);
    let run = traced(&["launches=300", "exit=_exit"], &[("LD_PRELOAD", &preload)]);
    assert_eq!((run.code, run.profile().launches.len(), whole(&run.profile())), (Some(3), 300, true));
    let run = traced(&["launches=300", "exit=kill"], &[]);
    assert_eq!((run.code, whole(&run.profile())), (None, false), "killed, and it says so");
    let run = traced(&["launches=40", "exit=exec"], &[("LD_PRELOAD", &preload)]);
    let mut sizes: Vec<usize> = run.files().iter().map(|f| read(f).launches.len()).collect();
    sizes.sort_unstable();
    assert_eq!((run.code, sizes), (Some(5), vec![10, 40]), "a process that is another program then has another file");
}

#[test]
fn children_have_files_of_their_own_or_none() {
    for words in [["launches=200", "fork=early"], ["launches=200", "fork=early nvtx=1"]] {
        let words: Vec<&str> = words.iter().flat_map(|w| w.split(' ')).collect();
        let run = traced(&words, &[]);
        let sizes: Vec<usize> = run.files().iter().map(|f| read(f).launches.len()).collect();
        let each = if words.len() > 2 { 203 } else { 200 };
        assert_eq!(sizes, [each, each], "{words:?}");
    }
    let run = traced(&["launches=200", "fork=late"], &[]);
    assert_eq!(run.profile().launches.len(), 200, "a child of fork after CUDA writes nothing");
}

#[test]
fn the_processes_of_a_run_are_one_report() {
    let run = traced(&["launches=200", "fork=early", "nvtx=1"], &[]);
    let folder = read(run.folder.path());
    let pids: Vec<u32> = folder.processes.iter().map(|p| p.pid).collect();
    assert_eq!((folder.launches.len(), pids.len(), folder.devices.len(), folder.kernels.len()), (406, 2, 2, 5));
    assert_eq!((folder.ranges.len(), folder.ranges.names.len()), (14, 5));
    // Launches are in the order of their calls, and those of each process keep their own order.
    let calls: Vec<i64> = (0..406).map(|i| folder.launches.call(i).unwrap().0).collect();
    assert!(calls.is_sorted());
    for pid in pids {
        let of = |p: &Profile| {
            let mine = |i: &usize| p.places[p.launches.place(*i).unwrap().0 as usize].pid == Some(pid);
            (0..p.launches.len()).filter(mine).map(|i| p.launches.start(i) + zero(p)).collect::<Vec<_>>()
        };
        let own = run.files().into_iter().find(|f| f.to_string_lossy().contains(&format!(".{pid}."))).unwrap();
        assert_eq!(of(&folder), of(&read(&own)));
    }
    // Traces that are joined into one file give the same.
    let whole = run.folder.path().join("whole.wstrace");
    warpscope::launch::tracer::join_traces(&run.files(), &whole).unwrap();
    let whole = read(&whole);
    assert_eq!((launches(&whole), whole.ranges.len()), (launches(&folder), 14));
}

#[test]
fn ranges_are_those_of_nvtx() {
    let run = traced(&["launches=0", "nvtx=1"], &[]);
    let profile = run.profile();
    let ranges: Vec<_> = profile.ranges.iter().map(|r| (profile.ranges.label(r.name), r.kind)).collect();
    let pushed = |name: &str| (name.to_owned(), RangeKind::PushPop);
    assert_eq!(
        ranges,
        [
            pushed("step 0"),
            pushed("a domain:registered"),
            pushed("step 1"),
            pushed("a domain:registered"),
            pushed("step 2"),
            pushed("a domain:registered"),
            ("from thread to thread".to_owned(), RangeKind::StartEnd)
        ]
    );
    assert_eq!((profile.ranges.color(1), profile.ranges.category(1).map(|c| &**c)), (Some(0xff00_ff00), Some("input")));
    assert!(profile.threads.iter().any(|t| t.name.as_deref() == Some("the main one")));
    assert_eq!(profile.ranges.payloads[&1], warpscope::model::range::Payload::Integer(-7));
    let step = profile.ranges.get(2);
    let call = profile.launches.call(1).unwrap();
    assert!(step.start <= call.0 && call.0 + call.1 <= step.end, "{step:?} {call:?}");
}

#[test]
fn a_gate_lets_through_what_was_launched_inside() {
    let names = |run: &Run| run.profile().launches.len();
    let run = traced(&["launches=100", "gate=1"], &[("WARPSCOPE_TRACE_GATE", "profiler")]);
    assert_eq!(names(&run), 100, "between cudaProfilerStart and cudaProfilerStop");
    assert!((0..100).all(|i| run.profile().launches.call(i).is_some()), "each with its call");
    assert_eq!(run.profile().capture.gate, Some(warpscope::model::CaptureRange::ProfilerApi));
    // `gate=2` looks the functions up in the library, as Numba does.
    let preload = built().join("tracer.so").display().to_string();
    let run = traced(&["launches=100", "gate=2"], &[("WARPSCOPE_TRACE_GATE", "profiler"), ("LD_PRELOAD", &preload)]);
    assert_eq!(names(&run), 100, "between cudaProfilerStart and cudaProfilerStop, as found in the library");
    let run = traced(&["launches=100", "nvtx=1"], &[("WARPSCOPE_TRACE_GATE", "nvtx::step 1")]);
    assert_eq!(launches(&run.profile()).iter().map(|l| l.2).collect::<Vec<_>>(), [1], "the launch inside that range");
    let run = traced(&["launches=100", "nvtx=1"], &[("WARPSCOPE_TRACE_GATE", "nvtx:a domain:registered")]);
    assert_eq!(names(&run), 3, "each such range");
    let run = traced(&["launches=100", "nvtx=1"], &[("WARPSCOPE_TRACE_GATE", "nvtx#2:a domain:registered")]);
    assert_eq!(launches(&run.profile()).iter().map(|l| l.2).collect::<Vec<_>>(), [1], "the second");
    for (gate, first) in [("launch:bar", 1), ("launch:_Z3fooPf", 0), ("launch:plain_name", 2), ("launches:40", 40)] {
        let run = traced(&["launches=100"], &[("WARPSCOPE_TRACE_GATE", gate)]);
        let numbers: Vec<u64> = launches(&run.profile()).iter().map(|l| l.2).collect();
        assert_eq!(numbers, (first..100).collect::<Vec<_>>(), "{gate}");
    }
    let run = traced(&["launches=100"], &[("WARPSCOPE_TRACE_GATE", "launch:ba")]);
    assert_eq!(names(&run), 0, "a part of a name is none");
    let run = traced(&["launches=100"], &[("WARPSCOPE_TRACE_GATE", "closed")]);
    assert_eq!(names(&run), 0);
}

/// Sends a word to a traced program once it accepts connections; returns its answer.
pub fn told(folder: &Path, pid: u32, word: &str) -> String {
    let (path, since) = (folder.join(format!("report.{pid}.sock")), Instant::now());
    let mut socket = loop {
        match std::os::unix::net::UnixStream::connect(&path) {
            Ok(socket) => break socket,
            Err(e) => assert!(since.elapsed() < Duration::from_secs(60), "{}: {e}", path.display()),
        }
        std::thread::yield_now();
    };
    socket.write_all(word.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

/// A program with a closed capture range that waits for input.
fn waiting(folder: &Path) -> std::process::Child {
    let mut command = built_command(folder, &["launches=50", "wait=1"], &[("WARPSCOPE_TRACE_GATE", "closed")]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_running_program_is_opened_closed_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = waiting(folder.path());
    let (mut to, mut from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut word = |n: usize| {
        let mut bytes = vec![0; n];
        from.read_exact(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    assert_eq!(word(6), "ready\n");
    let say = |what: &str| told(folder.path(), child.id(), what);
    assert_eq!((say("state\n").as_str(), say("open").as_str(), say("nonsense").as_str()), ("closed\n", "open\n", "unknown\n"));
    to.write_all(b"x").unwrap();
    assert_eq!(word(5), "more\n");
    assert_eq!(say("flush"), "flushed\n");
    let file = folder.path().join(format!("report.{}.wstrace", child.id()));
    let growing = read(&file);
    assert_eq!(launches(&growing).iter().map(|l| l.2).collect::<Vec<_>>(), [0, 1, 2, 3, 4], "read while the program runs");
    assert!(growing.notes.iter().any(|n| n.text.contains("still running")));
    assert_eq!(say("close"), "closed\n");
    to.write_all(b"x").unwrap();
    child.wait().unwrap();
    assert_eq!(read(&file).launches.len(), 5);
    assert!(!folder.path().join(format!("report.{}.sock", child.id())).exists());
}

/// A CUPTI subscription has a cost even while nothing is recorded. With a closed capture range it is therefore not made
/// before the range first opens, even if counters may be requested.
#[test]
fn a_closed_gate_subscribes_when_it_opens() {
    let folder = tempfile::tempdir().unwrap();
    let env = [("WARPSCOPE_TRACE_GATE", "closed"), ("WARPSCOPE_TRACE_MEASURE", &plan_file(folder.path(), ""))];
    let mut child = built_command(folder.path(), &["rate=20000", "seconds=60", "beside=3", "waits=0"], &env).spawn().unwrap();
    let say = |what: &str| told(folder.path(), child.id(), what);
    let file = folder.path().join(format!("report.{}.wstrace", child.id()));
    let subscribed =
        || std::fs::read_to_string(folder.path().join("truth")).map_or(0, |t| t.lines().filter(|l| *l == "subscribed").count());
    assert_eq!((say("state").as_str(), say("flush").as_str(), subscribed()), ("closed\n", "flushed\n", 0));
    let mut seen = 0;
    for _ in 0..4 {
        assert_eq!((say("open").as_str(), subscribed()), ("open\n", 1));
        // Wait until records have arrived.
        while say("flush") != "flushed\n" || read(&file).launches.len() == seen {}
        assert_eq!(say("close"), "closed\n");
        // CUPTI keeps recording for a moment.
        while say("flush") != "flushed\n" || read(&file).notes.iter().any(|n| n.text.contains("has no end")) {}
        seen = read(&file).launches.len();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let profile = read(&file);
    let with_call = (0..profile.launches.len()).filter(|&i| profile.launches.call(i).is_some()).count();
    // Each of four threads may be inside a call when the capture range opens or closes, in which case the beginning or
    // the end of the call is not recorded.
    assert!(profile.launches.len() - with_call <= 2 * 4 * 4, "{with_call} of {}", profile.launches.len());
    let calls: HashSet<_> = (0..profile.launches.len()).filter_map(|i| profile.launches.call(i)).collect();
    assert_eq!(calls.len(), with_call, "each launch has its own call");
    assert!(!profile.notes.iter().any(|n| n.text.contains("has no end")), "what is killed while its gate is closed has lost nothing");
    // The report says why CUPTI is unavailable, and the program continues.
    let refused = tempfile::tempdir().unwrap();
    let env = [("WARPSCOPE_TRACE_GATE", "nvtx::step 1"), ("MOCK_SUBSCRIBE", "39")];
    let done = built_command(refused.path(), &["launches=10", "nvtx=1"], &env).output().unwrap();
    assert_eq!(done.status.code(), Some(5));
    let run = Run { folder: refused, code: Some(5), truth: String::new() };
    let notes = run.profile().notes;
    assert!(notes.iter().any(|n| n.text.contains("another profiler")), "{:?}", notes.iter().map(|n| &n.text).collect::<Vec<_>>());
}

/// A program that was not started by `run` can be opened, closed and saved by any of its names.
#[test]
fn a_traced_program_has_several_names() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = waiting(folder.path());
    let mut ready = [0; 6];
    child.stdout.as_mut().unwrap().read_exact(&mut ready).unwrap();
    let (pid, library) = (child.id().to_string(), folder.path().join("data").display().to_string());
    let attach = |name: &str, words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warpscope"));
        let done = command.current_dir(&folder).env("XDG_DATA_HOME", &library).args(["attach", name]).args(words).output().unwrap();
        (done.status.code(), String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned())
    };
    for name in ["report", ".", &format!("report.{pid}.wstrace"), &pid] {
        assert_eq!(attach(name, &["--open"]), (Some(0), format!("process {pid}: open\n")), "{name}");
        assert_eq!(attach(name, &["--close"]), (Some(0), format!("process {pid}: closed\n")), "{name}");
    }
    let (code, said) = attach("report", &["--snapshot", "-o", "saved.wstrace"]);
    assert_eq!((code, said.trim()), (Some(0), "saved.wstrace"));
    assert!(attach("report", &[]).1.contains("`warpscope watch report`"));
    assert_eq!(attach("report", &["--stop"]).0, Some(2));
    for (name, why) in [("nothing", "no process of"), ("4000000000", "no run")] {
        let (code, said) = attach(name, &["--open"]);
        assert!(code != Some(0) && said.contains(why), "{name}: {said}");
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A process that renames itself, or that only its parent can start, is re-run with the user's original command.
#[test]
fn what_is_run_again_is_what_the_user_started() {
    let argv = |words: &[&str], env: &[(&str, &str)]| traced(words, env).profile().capture.argv;
    let launched = ("WARPSCOPE_TRACE_COMMAND", "vllm\x1fserve\x1fa model");
    let program = built().join("program").display().to_string();
    assert_eq!(argv(&["launches=1"], &[launched]), [program.clone(), "launches=1".to_owned()], "its own words, where they can be run");
    assert_eq!(argv(&["launches=1", "--multiprocessing-fork"], &[launched]), ["vllm", "serve", "a model"]);
    // The program overwrites its argv before it uses CUDA. The object is preloaded first, and then only loaded later.
    let object = built().join("tracer.so").display().to_string();
    let early = argv(&["launches=1", "rename=1"], &[launched, ("LD_PRELOAD", &object)]);
    assert_eq!(early, [program, "launches=1".to_owned(), "rename=1".to_owned()]);
    assert_eq!(argv(&["launches=1", "rename=1"], &[launched]), ["vllm", "serve", "a model"]);
    assert!(argv(&["launches=1", "rename=1"], &[]).is_empty(), "rather no command than one that cannot be run");
}

/// CUPTI mixes up the times of two graph replays if only one is recorded: the start in the first replay
/// after recording resumes, and the end in the last one before it stops, unless that was already delivered.
/// Those launches have no times, all others do.
#[test]
fn graphs_beside_a_gate_have_no_times_of_two_replays() {
    for (env, timed) in [(&[][..], 80), (&[("MOCK_LATE", "1")][..], 20)] {
        let run = traced(&["windows=3"], &[&[("WARPSCOPE_TRACE_GATE", "profiler")], env].concat());
        let profile = run.profile();
        let all = &profile.launches;
        assert_eq!((all.len(), (0..all.len()).filter(|&i| all.has_duration(i)).count()), (120, timed));
        assert!((0..all.len()).all(|i| all.duration(i) < 10_000));
        let said = format!("{} kernels without valid times", 120 - timed);
        assert!(profile.notes.iter().any(|n| n.text.starts_with(&said)), "{:?}", profile.notes);
    }
}

fn processes(pid: u32, folder: &Path) -> Vec<String> {
    let mut all: Vec<String> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    all.retain(|n| n.ends_with(".wstrace"));
    all.iter_mut().for_each(|n| *n = n.replace(&pid.to_string(), "PID"));
    all.sort();
    all
}

/// Rows go to rotated files, of which only the last are kept. The end of the run is complete, even if the program was
/// killed.
#[test]
fn only_the_last_seconds_are_kept() {
    for end in ["exit=exit", "exit=kill"] {
        let folder = tempfile::tempdir().unwrap();
        let words = ["nvtx=1", "rate=5000", "seconds=1", end];
        let mut child = built_command(folder.path(), &words, &[("WARPSCOPE_TRACE_KEEP_MS", "150")]).stdout(Stdio::null()).spawn().unwrap();
        child.wait().unwrap();
        let there = processes(child.id(), folder.path());
        assert!(there.len() <= 3 && there.last().unwrap() == "report.PID.wstrace", "{there:?}");
        let said = std::fs::read_to_string(folder.path().join("truth")).unwrap();
        let truth = Run { code: None, truth: said[..=said.rfind('\n').unwrap()].to_owned(), folder };
        let whole = open_profile(truth.folder.path(), &Job::new(Wants::ALL, &|_| {})).unwrap();
        let killed = end == "exit=kill";
        let (found, sent) = (launches(&whole), sent(&truth, true));
        // No launch is missing between the first one that was kept and the last. The log of a killed program is
        // truncated somewhere.
        let first = sent.iter().position(|l| l.5 == found[0].5).unwrap();
        let n = found.len().min(sent.len() - first);
        same(&found[..n], &sent[first..first + n], end);
        assert!(first > 500 && n > 200, "{first} {n}");
        assert!(killed || (n == found.len() && first + n == sent.len()));
        let notes: Vec<&str> = whole.notes.iter().map(|n| &*n.text).collect();
        assert!(notes.iter().any(|n| n.contains("Only the end of the run was kept")), "{notes:?}");
        assert!(!notes.iter().any(|n| n.contains("damaged")), "{notes:?}");
        // Opening one of its files opens all of them; without the process's first file, a note says that it is missing,
        // but the trace does not count as damaged.
        let parts = truth.files();
        for file in &parts {
            assert_eq!(launches(&read(file)), found, "{}", file.display());
        }
        let alone = tempfile::tempdir().unwrap();
        let part = parts.iter().find(|p| p.file_name().unwrap().to_string_lossy().matches('.').count() == 3).unwrap();
        std::fs::copy(part, alone.path().join(part.file_name().unwrap())).unwrap();
        let lonely = read(&alone.path().join(part.file_name().unwrap()));
        let said: Vec<&str> = lonely.notes.iter().map(|n| &*n.text).collect();
        assert!(said.iter().any(|n| n.contains("which is not beside it")) && !said.iter().any(|n| n.contains("damaged")), "{said:?}");
        // `watch` detects the end, even without a final message.
        let mut watch = Command::new(env!("CARGO_BIN_EXE_warpscope"));
        watch.arg("watch").arg(truth.folder.path().join("report")).args(["--plain", "--seconds", "20"]).stdin(Stdio::null());
        let said = String::from_utf8(watch.output().unwrap().stdout).unwrap();
        assert!(said.lines().last().unwrap().contains("every process has ended"), "{said}");
        // Joined into one file, in any order, the parts give the same launches.
        let mut parts = truth.files();
        parts.reverse();
        let joined = truth.folder.path().join("joined.wstrace");
        warpscope::launch::tracer::join_traces(&parts, &joined).unwrap();
        assert_eq!(launches(&read(&joined)), found);
    }
}

/// A thread that sleeps between launches is waiting, one that computes is working: CPU time distinguishes them.
#[test]
fn waiting_and_computing_are_told_apart() {
    let share = |run: &Run| {
        let profile = run.profile();
        assert!(!profile.states.is_empty());
        let found = triage_profile(&profile, &Scope::default(), &Cancel::default()).unwrap();
        let of = |wanted| found.devices[0].causes.iter().find(|c| c.0 == wanted).map_or(0, |c| c.1) as f64;
        of(Cause::Compute) / (of(Cause::Compute) + of(Cause::Wait))
    };
    let asleep = share(&traced(&["rate=2000", "seconds=1"], &[]));
    assert!(asleep < 0.2, "{asleep}");
    // If other programs keep the CPUs busy, a computing thread also waits for
    // one: then the two cannot be distinguished.
    let judged = (0..5).any(|_| {
        let folder = tempfile::tempdir().unwrap();
        let begun = std::time::Instant::now();
        let output = built_command(folder.path(), &["rate=2000", "seconds=1", "spin=1"], &[]).output().unwrap();
        let wall = begun.elapsed().as_millis() as f64;
        let computed: f64 = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap();
        let run = Run { code: output.status.code(), truth: String::new(), folder };
        let (spinning, starved) = (share(&run), computed < wall * 0.8);
        assert!(starved || spinning > 0.5, "{spinning} computing, {computed} ms of {wall} ms on a processor");
        !starved
    });
    if !judged {
        eprintln!("not judged: the processors are busy with other programs");
    }
    let lean = traced(&["rate=2000", "seconds=1"], &[("WARPSCOPE_TRACE_OPTIONS", "lean")]);
    assert!(lean.profile().states.is_empty());
    // A capture range open for a fraction of a second is sampled as well.
    let brief = traced(&["launches=10", "gate=1", "open=200"], &[("WARPSCOPE_TRACE_GATE", "profiler")]);
    assert!(!brief.profile().states.is_empty());
}

/// `watch` prints one line per second until the program ends.
#[test]
fn a_program_is_watched_from_outside() {
    let folder = tempfile::tempdir().unwrap();
    let env = [("MOCK_KERNEL_NS", "250000")];
    let mut child = built_command(folder.path(), &["rate=2000", "seconds=6"], &env).stdout(Stdio::null()).spawn().unwrap();
    let watch = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warpscope"));
        command.arg("watch").arg(folder.path().join("report")).args(words).stdin(Stdio::null());
        command.output().unwrap()
    };
    let json = watch(&["--format", "json"]);
    child.wait().unwrap();
    let lines: Vec<serde_json::Value> = String::from_utf8(json.stdout).unwrap().lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let last = lines.last().unwrap();
    assert_eq!((last["launches"].as_u64(), &last["recorders"][0]["ended"]), (Some(12_000), &serde_json::Value::Bool(true)));
    // 2,000 launches of 250 µs per second keep one stream busy for half of the time.
    let middle = lines.iter().rfind(|l| l["recording"] == true && l["seconds"].as_u64() >= Some(2)).expect("it ran for seconds");
    let busy = middle["busy"].as_f64().unwrap();
    assert!((0.05..=0.55).contains(&busy), "{busy}");
    assert!(lines.iter().any(|l| l["verdict"]["id"].is_string()), "judged while it ran");
    let text = watch(&["--plain"]);
    assert!(String::from_utf8(text.stdout).unwrap().contains("every process has ended"));
    let none = Command::new(env!("CARGO_BIN_EXE_warpscope")).arg("watch").arg(folder.path().join("no/such")).output().unwrap();
    assert!(!none.status.success() && String::from_utf8(none.stderr).unwrap().contains("does not exist"));
}

/// End to end: a program is run with the tracer, which is the default if a libcupti is
/// found, and its processes become one report.
#[test]
fn a_run_with_nothing_installed_ends_in_a_report() {
    let home = tempfile::tempdir().unwrap();
    let program = built().join("program").display().to_string();
    let warpscope = |words: &[&str], env: &[(&str, &str)]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_warpscope"));
        command
            .args(words)
            .env_clear()
            .env("HOME", home.path())
            .env("PATH", "/usr/bin:/bin")
            .env("LANG", "C.UTF-8")
            .envs(env.iter().copied());
        let done = command.current_dir(home.path()).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (done.status.code(), text(&done.stdout), text(&done.stderr))
    };
    // A toolkit's libcupti makes the tracer the default tool; the program uses its own libcupti.
    let toolkit = home.path().join("cuda/lib64");
    std::fs::create_dir_all(&toolkit).unwrap();
    std::fs::write(toolkit.join("libcupti.so.13"), "").unwrap();
    let cuda = home.path().join("cuda").display().to_string();
    let words = ["run", "--plain", "--force", "--tag", "t", "--", &program, "launches=300", "fork=early", "nvtx=1"];
    let (code, out, err) = warpscope(&words, &[("CUDA_HOME", &cuda)]);
    let report = Path::new(out.lines().last().unwrap_or_else(|| panic!("{err}"))).to_owned();
    assert_eq!((code, report.file_name().unwrap().to_str()), (Some(1), Some("report.wstrace")), "{out}{err}");
    assert!(err.contains("the program exited with code 5"), "{err}");
    assert_eq!(read(&report).launches.len(), 606);
    let beside: Vec<_> = std::fs::read_dir(report.parent().unwrap()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(beside, ["report.wstrace"], "the parts are gone");
    let (_, top, _) = warpscope(&["top", out.trim()], &[]);
    assert!(top.contains("plain_name"), "{top}");
    let (code, _, err) = warpscope(&["attach", "1", "--open"], &[]);
    assert!(code == Some(4) && err.contains("has ended"), "{code:?} {err}");
    let (code, _, err) = warpscope(&["run", "--plain", "--force", "--tool", "trace", "--", "true"], &[]);
    assert!(code == Some(1) && err.contains("no process of the program used CUDA"), "{code:?} {err}");
    // `warpscope trace` execs the program.
    let (code, _, err) = warpscope(&["trace", "-o", "own", &program, "launches=10"], &[]);
    assert_eq!(code, Some(5), "{err}");
    assert!(std::fs::read_dir(home.path()).unwrap().any(|e| e.unwrap().file_name().to_string_lossy().starts_with("own.")));
}

#[test]
fn what_cannot_be_recorded_is_said() {
    let said = |env: &[(&str, &str)]| {
        let run = traced(&["launches=10"], env);
        assert_eq!(run.code, Some(5));
        run.profile().notes[0].text.clone()
    };
    assert!(said(&[("MOCK_SUBSCRIBE", "39")]).contains("another profiler"));
    assert!(said(&[("MOCK_SUBSCRIBE", "15")]).contains("cannot connect to the CUDA driver"));
    // The system limits the file size, but the program continues.
    let folder = tempfile::tempdir().unwrap();
    let object = built().join("tracer.so");
    let done = Command::new("sh")
        .args(["-c", "ulimit -f 64; exec \"$0\" launches=20000", &built().join("program").display().to_string()])
        .env("CUDA_INJECTION64_PATH", &object)
        .env("WARPSCOPE_TRACE_OUT", folder.path().join("report"))
        .status()
        .unwrap();
    let file = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    let profile = read(&file);
    let notes: Vec<_> = profile.notes.iter().map(|n| n.text.as_str()).collect();
    assert!(profile.launches.len() > 200, "{}", profile.launches.len());
    assert!(notes.iter().any(|n| n.starts_with("Recording stopped before the program ended")), "{notes:?} {done:?}");
    assert_eq!(done.code(), Some(5));
}

/// The object must load in any program: it requires no symbol versions and no other library.
#[test]
fn the_object_asks_for_no_version_of_the_c_library() {
    use object::read::elf::{FileHeader, SectionHeader};
    let header = object::elf::FileHeader64::<object::Endianness>::parse(OBJECT).unwrap();
    let endian = header.endian().unwrap();
    let sections = header.sections(endian, OBJECT).unwrap();
    assert!(sections.iter().all(|s| s.sh_type(endian) != object::elf::SHT_GNU_VERNEED), "versions are asked for");
    let names: Vec<_> = sections.iter().filter_map(|s| sections.section_name(endian, s).ok()).collect();
    assert!(names.contains(&&b".dynsym"[..]), "{names:?}");
    assert!(OBJECT.len() < 192_000, "{} bytes", OBJECT.len());
}

/// Metric groups in the format of `groups.txt`, for the mock: one with a metric that
/// no chip has, one that needs a second pass.
const GROUPS: &str = "chip GH100
group cause gpu__time_duration.sum a__ordinal.sum
group memory b__ordinal.sum c__unknown.sum
group pipes d__inst_executed.sum e__inst_executed.sum f__inst_executed.sum
chip *
as GH100
";

/// Writes a file with a plan and the mock's groups.
pub fn plan_file(folder: &Path, plan: &str) -> String {
    let file = folder.join("plan");
    std::fs::write(&file, format!("{plan}{GROUPS}")).unwrap();
    file.display().to_string()
}

/// Runs the mock program with counters measured according to the plan.
pub fn measured(plan: &str, words: &[&str], env: &[(&str, &str)]) -> (Run, Profile) {
    let folder = tempfile::tempdir().unwrap();
    let file = plan_file(folder.path(), plan);
    let run = traced(words, &[&[("WARPSCOPE_TRACE_MEASURE", file.as_str())], env].concat());
    let profile = run.profile();
    (run, profile)
}

#[test]
fn a_survey_measures_what_takes_the_time() {
    let (run, profile) = measured("survey 1000\nshare 100\n", &["rate=2000", "seconds=7", "kinds=3"], &[]);
    assert!(launches(&profile).iter().all(|l| l.0 != "WaitNs"), "CUPTI's own kernel is not the program's");
    assert_eq!(profile.launches.len(), run.said("kernel").len());
    let found = profile.measured.as_deref().expect("counters");
    let metrics = found.metrics.as_deref().unwrap();
    assert_eq!(metrics.results.len(), 3, "{:?}", metrics.results.iter().map(|r| r.kernel.mangled().to_owned()).collect::<Vec<_>>());
    let truth: BTreeMap<String, u32> = run.said("measured").iter().map(|w| (w[0].clone(), w[2].parse().unwrap())).collect();
    for result in &metrics.results {
        let number = |name: &str| metrics.number(result, name);
        // The mock's dynamic shared memory is the ordinal, and so are its counters.
        let ordinal = number("launch__shared_mem_per_block_dynamic").unwrap();
        for name in ["a__ordinal.sum", "b__ordinal.sum", "d__inst_executed.sum", "f__inst_executed.sum"] {
            assert_eq!(number(name), Some(ordinal), "{name}");
        }
        assert_eq!((number("c__unknown.sum"), number("gpu__time_duration.sum")), (None, Some(1000.0)));
        let list = metrics.value(result, warpscope::model::metrics::MEASURED_LAUNCHES).map(ToString::to_string).unwrap();
        // One pass for the cause metrics, two for everything, each on another launch.
        assert!(list.split(' ').count() >= 3, "{list}");
    }
    // And the first set once more, seconds later.
    let counts = run.said("measured").iter().fold(BTreeMap::<String, usize>::new(), |mut all, w| {
        *all.entry(w[1].clone()).or_default() += 1;
        all
    });
    assert!(counts.len() == 3 && counts.values().all(|n| *n >= 4), "{counts:?}");
    assert!(truth.len() >= 3 * 3 && profile.overhead.iter().any(|o| &*o.name == "measuring counters"));
    let joined = warpscope::rerun::match_results::join_results(&profile, metrics);
    assert!(joined.pairs.len() == 3 && joined.pairs.iter().all(|p| p.sure == warpscope::rerun::match_results::Sure::Measured));
}

#[test]
fn one_launch_by_its_number() {
    let (run, profile) = measured("survey 0\nlaunch 5 foo\n", &["rate=500", "seconds=1", "kinds=4"], &[]);
    let metrics = profile.measured.as_deref().and_then(|m| m.metrics.clone()).expect("counters");
    let [result] = &metrics.results[..] else { panic!("{} results", metrics.results.len()) };
    assert_eq!(result.kernel.mangled(), "_Z3fooPf");
    assert_eq!(metrics.value(result, warpscope::model::metrics::MEASURED_LAUNCHES).unwrap().to_string(), "6");
    let mine: Vec<u32> = run.said("kernel").iter().filter(|w| w[1] == "_Z3fooPf").map(|w| w[0].parse().unwrap()).collect();
    assert_eq!(run.said("measured").iter().map(|w| w[0].parse::<u32>().unwrap()).collect::<Vec<_>>(), [mine[5]]);
}

/// In a large job only a sample of ranks is recorded; the others run untraced.
#[test]
fn only_chosen_ranks_are_recorded() {
    let cases = [
        ("0-0,8-15", Some(("RANK", "9")), 1),
        ("0-0,8-15", Some(("RANK", "0")), 1),
        ("0-0,8-15", Some(("RANK", "1")), 0),
        ("0-0,8-15", Some(("SLURM_PROCID", "16")), 0),
        ("0-0,8-15", Some(("OMPI_COMM_WORLD_RANK", "15")), 1),
        ("0-0,8-15", None, 1),
        ("", Some(("RANK", "3")), 1),
    ];
    for (list, rank, files) in cases {
        let mut env = vec![("WARPSCOPE_TRACE_RANKS", list)];
        env.extend(rank);
        let run = traced(&["launches=20"], &env);
        assert_eq!((run.code, run.files().len()), (Some(5), files), "{list} {rank:?}");
    }
}

#[test]
fn what_keeps_counters_from_being_measured_is_said() {
    let cases = [
        ("MOCK_PROFILER", "35", "no permission to access GPU performance counters"),
        ("MOCK_PROFILER", "26", "holds the GPU's counters"),
        ("RANK", "1", "only rank 0 is measured"),
    ];
    for (variable, value, says) in cases {
        let (_, profile) = measured("survey 1000\nshare 100\n", &["rate=1000", "seconds=3", "kinds=2"], &[(variable, value)]);
        assert!(profile.measured.is_none());
        assert!(profile.notes.iter().any(|n| n.text.contains(says)), "{says}: {:?}", profile.notes);
    }
    // Requested launches that never happen, and a run that is too short for its survey.
    let cases = [
        ("launch 5000 foo\n", "launch 5001 of foo was not reached: only 1000 were seen"),
        ("next baz\n", "baz was not launched again"),
        ("survey 30\n", "only in a run of over 30.0 s"),
    ];
    for (plan, says) in cases {
        let (_, profile) = measured(plan, &["rate=1000", "seconds=2", "kinds=2"], &[]);
        assert!(profile.measured.is_none(), "{plan}: {:?} {:?}", profile.measured, profile.notes);
        assert!(profile.notes.iter().any(|n| n.text.contains(says)), "{says}: {:?}", profile.notes);
    }
    let (_, profile) = measured("survey 1000\n", &["launches=20"], &[]);
    // On a busy machine the kernels may have been chosen by then.
    let says = ["ended before anything could be measured", "which fits the budget only in a run of over"];
    assert!(profile.notes.iter().any(|n| says.iter().any(|s| n.text.contains(s))), "{:?}", profile.notes);
    // Sixty passes, some of which may run before the program ends (on a busy machine perhaps none).
    let metrics: String = (0..120).map(|i| format!(" m{i}__inst_executed.sum")).collect();
    let plan = format!("survey 1000\nshare 100\nchip GH100\ngroup cause gpu__time_duration.sum{metrics}\n");
    let ended = || {
        let (_, profile) = measured(&plan, &["rate=20", "seconds=3", "kinds=3"], &[]);
        assert!(profile.measured.is_none());
        profile.notes.iter().any(|n| n.text.contains("passes needed for the first metrics"))
    };
    assert!((0..5).any(|_| ended()));
    // A survey on another chip uses the groups of `*`.
    let (_, profile) = measured("next bar\n", &["rate=1000", "seconds=2", "kinds=2"], &[("MOCK_CHIP", "ZZ999")]);
    let found = profile.measured.as_deref().map(|m| m.kernels.iter().map(|k| k.mangled().to_owned()).collect::<Vec<_>>());
    assert!(found.as_ref().is_some_and(|k| k.iter().any(|k| k.starts_with("_Z3bar"))), "{found:?}");
}

#[test]
fn a_kernel_is_asked_for_while_the_program_runs() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan_file(folder.path(), "survey 0\n");
    let words = ["rate=1000", "seconds=6", "kinds=2"];
    let code = folder.path().join("code");
    std::fs::write(&code, "code that is loaded before anybody asks").unwrap();
    let env = [("WARPSCOPE_TRACE_MEASURE", plan.as_str()), ("MOCK_CUBIN", code.to_str().unwrap())];
    let mut child = built_command(folder.path(), &words, &env).stdout(Stdio::null()).spawn().unwrap();
    let path = folder.path().join(format!("report.{}.sock", child.id()));
    let mut socket = loop {
        match std::os::unix::net::UnixStream::connect(&path) {
            Ok(socket) => break socket,
            Err(_) if child.try_wait().unwrap().is_none() => std::thread::yield_now(),
            Err(e) => panic!("{e}"),
        }
    };
    let file = folder.path().join(format!("report.{}.wstrace", child.id()));
    let values = |profile: &Profile| profile.overhead.iter().filter(|o| &*o.name == "measuring counters").count();
    // A repeated request measures again.
    let mut before = 0;
    for _ in 0..2 {
        socket.write_all(b"measure bar").unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "measuring\n");
        while child.try_wait().unwrap().is_none() {
            let now = open_profile(&file, &Job::new(Wants::ALL, &|_| {})).map_or(0, |p| values(&p));
            if now >= before + 3 {
                before = now;
                break;
            }
        }
        if let Ok(again) = std::os::unix::net::UnixStream::connect(&path) {
            socket = again;
        }
    }
    child.wait().unwrap();
    let profile = read(&file);
    assert!(values(&profile) >= 6, "{} windows", values(&profile));
    let metrics = profile.measured.as_deref().and_then(|m| m.metrics.clone()).expect("counters");
    let bar = metrics.results.iter().find(|r| r.kernel.mangled().starts_with("_Z3bar")).expect("bar");
    // The kernel's ordinal, from the cause metrics and from the full set.
    assert_eq!((metrics.number(bar, "a__ordinal.sum"), metrics.number(bar, "f__inst_executed.sum")), (Some(1.0), Some(1.0)));
    // The launch was sampled afterwards, and the code of its module is present.
    let sources = bar.sampled.as_deref().map(|s| s.details.sources.clone()).expect("samples");
    let input = input_if(&file, &Job::new(Wants::ALL, &|_| {}), &|i| WarpscopeTrace.knows(i)).unwrap();
    let found = read_modules(&input, &sources).unwrap();
    assert_eq!(found.into_values().collect::<Vec<_>>(), [b"code that is loaded before anybody asks"]);
}
