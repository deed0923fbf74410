//! Stacks of native code, sampled by the tracer in loops whose guilty function is known (`tests/mock/native.c`), as
//! compilers build them, and in programs that do what they can to mislead it.

use super::tracer::{built, cc, in_folder, read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use warpscope::analysis::triage::{Cause, Scope, Verdict, triage_profile};
use warpscope::model::{Activity, Cancel, NoteKind, Profile};

fn mock(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mock").join(name).display().to_string()
}

/// Builds a program of the mocks with these flags.
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

/// Runs a program in a folder; returns its trace.
fn run(program: &Path, folder: &Path, words: &[&str], options: &str) -> Profile {
    let mut command = Command::new(program);
    in_folder(command.args(words), folder);
    command.env_remove("MOCK_TRUTH").env("WARPSCOPE_TRACE_OPTIONS", options);
    let done = command.stdout(Stdio::null()).status().unwrap();
    assert_eq!(done.code(), Some(5), "{words:?}: {done:?}");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.retain(|p| p.extension().is_some_and(|e| e == "wstrace"));
    assert_eq!(files.len(), 1, "{files:?}");
    let profile = read(&files[0]);
    std::fs::remove_file(&files[0]).unwrap();
    profile
}

/// Functions on the stack of each sample, innermost first, and what the thread did.
fn stacks(profile: &Profile) -> Vec<(Vec<String>, Activity)> {
    let samples = &profile.samples;
    let functions = |stack| samples.frames_of(stack).map(|f| f.function.to_string()).collect();
    samples.samples.iter().map(|s| (functions(s.stack), s.activity)).collect()
}

/// Share of the samples for which this holds of the functions on the stack, innermost first, and the activity.
fn share(profile: &Profile, is: impl Fn(&[String], Activity) -> bool) -> f64 {
    let all = stacks(profile);
    assert!(all.len() >= 10, "{} samples", all.len());
    all.iter().filter(|(functions, activity)| is(functions, *activity)).count() as f64 / all.len() as f64
}

/// Function in which each loop spends its time, and what its thread does there.
const KINDS: [(&str, &str, Activity); 7] = [
    ("compute", "compute_batch", Activity::Running),
    ("sort", "sort_batch", Activity::Running),
    ("pages", "touch_pages", Activity::Running),
    ("read", "read_batch", Activity::Read),
    ("lock", "lock_batch", Activity::Lock),
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
        for kinds in KINDS.chunks(2) {
            std::thread::scope(|scope| {
                for (kind, function, activity) in kinds {
                    let (program, flags) = (&program, &flags);
                    scope.spawn(move || {
                        let own = tempfile::tempdir().unwrap();
                        let profile = run(program, own.path(), &[kind, "1"], "frames=native,stacks=10000");
                        let found = share(&profile, |f, _| is_of_loop(f, function));
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
