//! Stacks of native code, sampled by the tracer in loops whose expensive function is known (`tests/mock/native.c`), in
//! common build variants, and in programs that try to mislead the unwinder.

use super::tracer::{built, cc, in_folder, read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use warpscope::analysis::Paths;
use warpscope::analysis::triage::{Cause, Scope, Verdict, triage_profile};
use warpscope::model::{Activity, Cancel, NoteKind, Profile};

fn mock(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mock").join(name).display().to_string()
}

/// Builds one of the mock programs with these flags.
fn build(folder: &Path, source: &str, flags: &[&str]) -> PathBuf {
    let program = folder.join("program");
    let place = built().display();
    let libraries = [format!("{place}/libcuda.so.1"), format!("{place}/libcupti.so.13"), format!("-Wl,-rpath,{place}")];
    let mut all = vec!["-o", "program", source];
    all.extend(flags);
    all.push("-Wl,--no-as-needed");
    all.extend(libraries.iter().map(String::as_str));
    cc(&[&all[..], &["-lpthread", "-ldl"]].concat(), folder);
    program
}

/// Runs a program in a folder; returns the path of its trace.
fn trace(program: &Path, folder: &Path, words: &[&str], env: &[(&str, &str)]) -> PathBuf {
    let mut command = Command::new(program);
    in_folder(command.args(words), folder);
    command.env_remove("MOCK_TRUTH").envs(env.iter().copied());
    let done = command.stdout(Stdio::null()).status().unwrap();
    assert_eq!(done.code(), Some(5), "{words:?}: {done:?}");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.retain(|p| p.extension().is_some_and(|e| e == "wstrace"));
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}

fn run(program: &Path, words: &[&str], options: &str) -> Profile {
    let folder = tempfile::tempdir().unwrap();
    read(&trace(program, folder.path(), words, &[("WARPSCOPE_TRACE_OPTIONS", options)]))
}

/// Functions on the stack of each sample, innermost first, and the thread's activity.
fn stacks(profile: &Profile) -> Vec<(Vec<String>, Activity)> {
    let samples = &profile.samples;
    let functions = |stack| samples.frames_of(stack).map(|f| f.function.to_string()).collect();
    samples.samples.iter().map(|s| (functions(s.stack), s.activity)).collect()
}

/// Share of the samples for which the predicate holds; its arguments are the functions on the stack, innermost first,
/// and the activity.
fn share(profile: &Profile, is: impl Fn(&[String], Activity) -> bool) -> f64 {
    let all = stacks(profile);
    // A busy machine takes few samples of a short run.
    assert!(!all.is_empty());
    all.iter().filter(|(functions, activity)| is(functions, *activity)).count() as f64 / all.len() as f64
}

/// Function in which each loop spends its time, and what its thread does there.
const KINDS: [(&str, &str, Activity); 7] = [
    ("compute", "compute_batch", Activity::Running),
    ("read", "read_batch", Activity::Read),
    ("sort", "sort_batch", Activity::Running),
    ("lock", "lock_batch", Activity::Lock),
    ("pages", "touch_pages", Activity::Running),
    ("queue", "take_batch", Activity::Lock),
    ("sleep", "sleep_between", Activity::Sleep),
];

/// Returns true if the outer frames are those of the program's loop, down to this function.
fn is_of_loop(functions: &[String], name: &str) -> bool {
    let at = functions.iter().position(|f| f == name);
    at.is_some_and(|at| functions[at + 1..].starts_with(&["prepare_step", "run_step", "main"].map(str::to_owned)))
}

#[test]
fn every_build_shows_the_function_that_the_gpu_waits_for() {
    let flavours: [&[&str]; 5] = [
        &["-O0"],
        &["-O2", "-fno-omit-frame-pointer"],
        &["-O2", "-fomit-frame-pointer"],
        &["-O2", "-g", "-no-pie", "-fomit-frame-pointer"],
        &["-O3", "-march=x86-64-v2", "-Wl,--build-id=none", "-fno-plt"],
    ];
    let folders: Vec<tempfile::TempDir> = flavours.iter().map(|_| tempfile::tempdir().unwrap()).collect();
    for (flags, folder) in flavours.iter().zip(&folders) {
        let flags: Vec<&str> = flags.iter().copied().filter(|f| !cfg!(target_arch = "aarch64") || !f.starts_with("-march")).collect();
        let program = build(folder.path(), &mock("native.c"), &flags);
        // One computing loop runs beside one waiting loop, because other tests need the processors, too.
        for kinds in KINDS.chunks(2) {
            std::thread::scope(|scope| {
                for (kind, function, activity) in kinds {
                    let (program, flags) = (&program, &flags);
                    scope.spawn(move || {
                        let record = || run(program, &[kind, "1"], "frames=native,stacks=10000");
                        // If the user may not sample the kernel, there are no stacks of a thread inside the kernel.
                        let hidden = *kind == "pages" && !may_sample_kernel();
                        let outside = |profile: &Profile| if hidden { share(profile, |f, _| !f.is_empty()) } else { 1.0 };
                        let found_in = |profile: &Profile| share(profile, |f, _| is_of_loop(f, function)) / outside(profile);
                        // The loops are real processes, whose samples differ on a machine that has no free processor.
                        let mut profile = record();
                        for _ in 0..3 {
                            if found_in(&profile) < 0.95 {
                                profile = record();
                            }
                        }
                        let seen = outside(&profile) * profile.samples.samples.len() as f64;
                        if hidden && seen < FEW_SEEN {
                            eprintln!("{flags:?} {kind}: all but {seen:.0} samples were taken in the kernel");
                            return;
                        }
                        let found = found_in(&profile);
                        if *activity == Activity::Running && notes(&profile).iter().any(|n| n.starts_with(NO_RUNNING)) {
                            eprintln!("{flags:?} {kind}: this machine does not let threads that run be sampled");
                            return;
                        }
                        eprintln!("{flags:?} {kind}: {found:.3} of {}", profile.samples.samples.len());
                        assert!(found >= 0.95, "{flags:?} {kind}: {found}: {:?}", stacks(&profile));
                        // On a busy machine, a thread that was woken waits for a processor.
                        let same = share(&profile, |_, a| a == *activity || a == Activity::Running);
                        assert!(same >= 0.8, "{flags:?} {kind}: {same}");
                    });
                }
            });
        }
    }
}

/// Number of samples outside of the kernel below which a share of them says nothing.
const FEW_SEEN: f64 = 20.0;

/// Beginning of the note that only waiting threads have stacks.
const NO_RUNNING: &str = "Native stacks are only those of threads that wait";

/// Tests whether `perf_event_open` reports samples in the kernel to this user.
fn may_sample_kernel() -> bool {
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok().and_then(|t| t.trim().parse::<i32>().ok());
    nix::unistd::geteuid().is_root() || paranoid.is_some_and(|level| level < 2)
}

fn notes(profile: &Profile) -> Vec<&str> {
    profile.notes.iter().map(|n| &*n.text).collect()
}

#[test]
fn programs_without_an_interpreter_have_native_stacks_unless_told_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let program = build(folder.path(), &mock("native.c"), &["-O1", "-g", "-gz"]);
    let profile = run(&program, &["read", "2"], "stacks=10000");
    assert!(share(&profile, |f, _| is_of_loop(f, "read_batch")) >= 0.95);
    let triage = triage_profile(&profile, &Scope::default(), &Cancel::default()).unwrap();
    let first = triage.verdict().unwrap();
    assert!(first.id == Verdict::InputWait && first.headline.contains("read_batch"), "{}", first.headline);
    let line = triage.host_time.lines(&[]).remove(0);
    let source = std::fs::read_to_string(mock("native.c")).unwrap();
    let number = line.frame.line.unwrap() as usize;
    assert!(source.lines().nth(number - 1).unwrap().contains("read(ends[0]"), "{}", line.label());
    assert_eq!(triage.host_time.main_activity(&[Cause::Wait]), Some(Activity::Read));
    for options in ["frames=python,stacks=10000", "stacks=0"] {
        assert!(stacks(&run(&program, &["read", "0.3"], options)).iter().all(|s| s.0.is_empty()), "{options}");
    }
}

#[test]
fn functions_of_a_missing_program_are_told_apart_by_their_addresses() {
    let profile = super::support::read(&super::support::root().join("fixtures/trace/native_sort.wstrace.zst")).unwrap();
    let triage = triage_profile(&profile, &Scope::default(), &Cancel::default()).unwrap();
    let lines = triage.host_time.lines(&[]);
    // The two functions that take the time, `sort_batch` and `compare_items`, have a numeric suffix each.
    let main: i64 = lines.iter().take(2).map(|l| l.ns).sum();
    assert!(main * 100 >= lines.iter().map(|l| l.ns).sum::<i64>() * 99, "{:?}", lines.iter().map(|l| l.label()).collect::<Vec<_>>());
    assert!(lines.iter().take(2).all(|l| l.frame.function.starts_with("program+0x")));
}

#[test]
fn threads_that_run_python_have_its_stacks_unless_native_ones_are_asked_for() {
    let is_there = Command::new("python3").args(["-c", "import ctypes"]).stderr(Stdio::null()).status().is_ok_and(|s| s.success());
    if !is_there {
        return;
    }
    let traced = |options: &str| {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("python3");
        in_folder(command.args([mock("loop.py").as_str(), "compute", "1"]), folder.path());
        command.env("MOCK_FOLDER", built()).env("WARPSCOPE_TRACE_CUPTI", built().join("libcupti.so.13"));
        command.env_remove("MOCK_TRUTH").env("WARPSCOPE_TRACE_OPTIONS", options);
        assert!(command.stdout(Stdio::null()).status().unwrap().success());
        let mut files = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().path());
        read(&files.find(|p| p.extension().is_some_and(|e| e == "wstrace")).unwrap())
    };
    for options in ["frames=auto,stacks=10000", "frames=both,stacks=10000"] {
        let profile = traced(options);
        assert!(share(&profile, |f, _| f.iter().any(|f| f == "collate")) >= 0.9, "{options}: {:?}", stacks(&profile));
    }
    let native = traced("frames=native,stacks=10000");
    assert_eq!(share(&native, |f, _| f.iter().any(|f| f == "collate")), 0.0);
    assert!(native.samples.frames.iter().all(|f| !f.python && f.module.is_some() || &*f.function == "(more frames)"));
}

#[test]
fn kernels_of_replays_are_attributed_to_the_function_that_captured_them() {
    let folder = tempfile::tempdir().unwrap();
    for flags in [&["-O0"][..], &["-O2", "-g"]] {
        let profile = run(&build(folder.path(), &mock("native.c"), flags), &["graph", "0.3"], "stacks=10000");
        let paths = Paths::from_profile(&profile);
        let function = |row: usize| paths.lines.names[paths.lines.of_launch[row] as usize].split(' ').next().unwrap();
        assert!(profile.launches.len() >= 40);
        for row in 0..profile.launches.len() {
            assert_eq!(function(row), ["attention", "mlp"][row % 2], "{flags:?} {row}");
        }
    }
}

#[test]
fn where_the_kernel_samples_no_threads_those_that_wait_have_stacks() {
    let folder = tempfile::tempdir().unwrap();
    let program = build(folder.path(), &mock("native.c"), &["-O2"]);
    let refused = |kind: &str, error: &str| {
        let own = tempfile::tempdir().unwrap();
        read(&trace(&program, own.path(), &[kind, "0.5"], &[("MOCK_NO_PERF", error), ("WARPSCOPE_TRACE_OPTIONS", "stacks=5000")]))
    };
    for (error, why) in [("1", "does not let this user"), ("13", "does not let this user"), ("38", "no perf_event_open")] {
        let computing = refused("compute", error);
        assert!(share(&computing, |f, a| f.is_empty() && a == Activity::Running) >= 0.9, "{:?}", stacks(&computing));
        assert!(notes(&computing).iter().any(|n| n.contains(why)), "{:?}", notes(&computing));
        let waiting = refused("sleep", error);
        assert!(share(&waiting, |f, _| is_of_loop(f, "sleep_between")) >= 0.9, "{:?}", stacks(&waiting));
    }
}

#[test]
fn hostile_stacks_harm_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let shared = ["-fPIC", "-shared", "-o", "hostile_library.so"];
    cc(&[&shared[..], &[&mock("hostile_library.c")]].concat(), folder.path());
    let library = folder.path().join("hostile_library.so").display().to_string();
    for (flags, options) in [(&["-O1"], "frames=native,stacks=1000"), (&["-O0"], "frames=both,stacks=2000")] {
        let program = build(folder.path(), &mock("hostile_native.c"), flags);
        let own = tempfile::tempdir().unwrap();
        let env = [("HOSTILE_LIBRARY", library.as_str()), ("WARPSCOPE_TRACE_OPTIONS", options)];
        let profile = read(&trace(&program, own.path(), &["3"], &env));
        assert!(profile.launches.len() > 20, "{}", profile.launches.len());
        assert!(profile.notes.iter().all(|n| n.kind != NoteKind::Damaged), "{:?}", profile.notes);
        let all = stacks(&profile);
        assert!(all.iter().all(|s| s.0.len() <= 1024));
        // Waits on the thread's own stack are read, whatever the stack contained before.
        for (function, caller) in [("large_frame", "main"), ("variable", "main")] {
            let waits: Vec<_> = all.iter().filter(|(f, a)| *a == Activity::Sleep && f.iter().any(|f| f == function)).collect();
            let whole = waits.iter().filter(|(f, _)| f.windows(2).any(|pair| pair == [function, caller])).count();
            assert!(whole * 20 >= waits.len() * 19, "{function}: {whole} of {}", waits.len());
        }
        // A handler's stack leads to the code that it interrupted.
        let handled: Vec<_> = all.iter().filter(|(f, _)| f.iter().any(|f| f == "handled")).collect();
        let lost: Vec<_> = handled.iter().filter(|(f, _)| f.last().is_none_or(|f| f != "_start")).collect();
        assert!(lost.len() * 20 <= handled.len(), "{} of {}: {lost:?}", lost.len(), handled.len());
    }
}

#[test]
fn modules_that_are_no_longer_the_same_are_not_named_and_damaged_ones_harm_nothing() {
    for flags in [&["-O2", "-g"][..], &["-O2", "-s"], &["-O2", "-g", "-Wl,--build-id=none"]] {
        let folder = tempfile::tempdir().unwrap();
        let program = build(folder.path(), &mock("native.c"), flags);
        let own = tempfile::tempdir().unwrap();
        let file = trace(&program, own.path(), &["sleep", "0.5"], &[("WARPSCOPE_TRACE_OPTIONS", "stacks=5000")]);
        let named = |name: &str| share(&read(&file), |f, _| f.iter().any(|f| f == name));
        let bytes = std::fs::read(&program).unwrap();
        let about = std::fs::metadata(&program).unwrap();
        // Without symbols, a function is identified by its start address.
        let expected = if flags.contains(&"-s") { 0.0 } else { 1.0 };
        assert!((named("sleep_between") - expected).abs() < 0.1, "{flags:?}");
        let numbered = |profile: &Profile| stacks(profile).iter().filter(|s| s.0.iter().any(|f| f.starts_with("program+0x"))).count();
        assert!((numbered(&read(&file)) > 0) == flags.contains(&"-s"), "{flags:?}");
        let mut seed = 88_172_645_463_325_252_u64;
        for _ in 0..15 {
            let mut damaged = bytes.clone();
            for _ in 0..20 {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                let at = seed as usize % damaged.len();
                // Corrupt the headers most often, since they have the largest effect.
                let at = if seed >> 60 < 4 { at % 1024 } else { at };
                damaged[at] = (seed >> 32) as u8;
            }
            std::fs::write(&program, &damaged).unwrap();
            std::fs::File::options().write(true).open(&program).unwrap().set_modified(about.modified().unwrap()).unwrap();
            read(&file);
        }
        // Another program at the same path.
        std::fs::write(&program, &bytes[..bytes.len() - 1]).unwrap();
        let other = read(&file);
        if flags.iter().any(|f| f.contains("build-id")) {
            assert_eq!(share(&other, |f, _| f.iter().any(|f| f == "sleep_between")), 0.0);
        }
        std::fs::remove_file(&program).unwrap();
        assert_eq!(named("sleep_between"), 0.0);
        // A pipe with that name is not opened.
        nix::unistd::mkfifo(&program, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(numbered(&read(&file)) > 0);
    }
}
