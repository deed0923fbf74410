//! Launches chosen for live measurement: by the tracer's own counting, its command selects exactly these launches, and
//! the screens lead to that command.

use super::rerun::{based, one, profile};
use super::rerun_screen::{command, open};
use super::support::{read, root};
use std::io::Write;
use std::process::{Command, Stdio};
use warpscope::app::actions::KeyScope;
use warpscope::model::{LaunchId, NameForm, Profile, RangeKind};
use warpscope::rerun::{self, Options, Profiler, RangeName, Target, Within, nvtx};

fn in_place(options: Options) -> Options {
    Options { profiler: Profiler::InPlace, ..options }
}

/// Returns the launches that a tracer command measures by number: launches of a function or symbol counted per process,
/// without graphs; with a range, only those inside it.
pub fn measured(argv: &[String], profile: &Profile) -> Vec<usize> {
    assert_eq!(argv[..2], ["warpscope", "trace"]);
    let value = |option: &str| argv.iter().position(|w| w == option).map(|at| argv[at + 1].clone());
    let range = value("--only-range").map(|named| {
        let label = |id: u32| {
            let (domain, text) = &profile.ranges.names[id as usize];
            domain.as_ref().map_or_else(|| text.to_string(), |d| format!("{text}@{d}"))
        };
        (0..u32::try_from(profile.ranges.names.len()).unwrap()).find(|id| label(*id) == named).unwrap()
    });
    let nth: Option<u32> = value("--only-nth").map(|n| n.parse().unwrap());
    let inside = |row: &usize| {
        range.is_none_or(|name| {
            let around = nvtx::enclosing_ranges(profile, *row);
            around.iter().any(|e| e.range.name == name && nth.is_none_or(|n| e.instance + 1 == n))
        })
    };
    let pid = |row: usize| profile.launches.place(row).and_then(|p| profile.places[p.0 as usize].pid);
    let mut out = Vec::new();
    for (at, _) in argv.iter().enumerate().filter(|(_, w)| matches!(w.as_str(), "--measure" | "--stalls")) {
        let (name, number) = argv[at + 1].rsplit_once('#').unwrap();
        let of = |r: &usize| {
            let kernel = &profile.kernels[profile.launches.kernel(*r).0 as usize];
            kernel.function() == name || kernel.mangled() == name
        };
        let mut counts = std::collections::HashMap::new();
        for row in (0..profile.launches.len()).filter(|&r| profile.launches.graph_node(r).is_none()).filter(of).filter(inside) {
            let n = counts.entry(pid(row)).or_insert(0);
            *n += 1;
            if *n == number.parse::<usize>().unwrap() {
                out.push(row);
            }
        }
    }
    out
}

#[test]
fn every_launch_is_measured_by_its_own_number() {
    let mut commands = 0;
    for fixture in ["single", "threads"] {
        let profile = profile(fixture);
        for launch in 0..profile.launches.len() {
            for base in [NameForm::Function, NameForm::Mangled] {
                let rerun = one(&profile, launch, &in_place(based(base)));
                assert_eq!(measured(&rerun.argv(), &profile), [launch], "{fixture}: {}", rerun.shell_line());
                assert!(rerun.is_exact() && rerun.selects[0].launch.unwrap().0 as usize == launch, "{:?}", rerun.warnings);
                commands += 1;
            }
        }
    }
    assert!(commands > 300, "{commands}");
}

#[test]
fn launches_are_counted_in_a_range_where_that_is_wanted() {
    let profile = profile("single");
    let mut commands = 0;
    for launch in 0..profile.launches.len() {
        for e in nvtx::enclosing_ranges(&profile, launch) {
            for nth in [None, e.filter_number()] {
                let options = in_place(Options { within: Within::Range(e.range, nth), ..Options::default() });
                let rerun = one(&profile, launch, &options);
                assert_eq!(measured(&rerun.argv(), &profile), [launch], "{}", rerun.shell_line());
                assert_eq!(rerun.argv().contains(&"--only-nth".to_owned()), nth.is_some());
                commands += 1;
            }
        }
    }
    assert!(commands > 20, "{commands}");
    let other = RangeName { name: 0, kind: RangeKind::PushPop };
    let has = |l: usize| nvtx::enclosing_ranges(&profile, l).iter().any(|e| e.range.name == other.name);
    let outside = (0..profile.launches.len()).find(|&l| !has(l)).unwrap();
    let target = Target::Launches(vec![LaunchId(u32::try_from(outside).unwrap())]);
    assert!(rerun::plan(&profile, &target, &in_place(Options { within: Within::Range(other, None), ..Options::default() })).is_err());
}

#[test]
fn several_launches_are_one_command() {
    let profile = profile("single");
    let rows = [3_u32, 7, 8, 20];
    let target = Target::Launches(rows.map(LaunchId).to_vec());
    let plan = rerun::plan(&profile, &target, &in_place(Options::default())).unwrap();
    let [rerun] = &plan.commands[..] else { panic!("{} commands", plan.commands.len()) };
    let mut got = measured(&rerun.argv(), &profile);
    got.sort_unstable();
    assert_eq!(got, rows.map(|r| r as usize));
    assert_eq!(rerun.selects.iter().map(|s| s.launch.unwrap().0).collect::<Vec<_>>(), rows);
    assert!(rerun.report_path().ends_with(".PID.wstrace") && rerun.is_runnable());
}

#[test]
fn what_the_tracer_cannot_measure_is_refused_with_the_reason() {
    let profile = profile("graph_node");
    let node = (0..profile.launches.len()).find(|&r| profile.launches.graph_node(r).is_some()).unwrap();
    let plan = |profile: &Profile, row: usize| {
        let target = Target::Launches(vec![LaunchId(u32::try_from(row).unwrap())]);
        rerun::plan(profile, &target, &in_place(Options::default()))
    };
    assert!(plan(&profile, node).unwrap_err().contains("is made by a CUDA graph"));
    let whole = super::rerun::profile("graph_whole");
    assert!(rerun::plan(&whole, &Target::Graph(0), &in_place(Options::default())).unwrap_err().contains("no CUDA graphs"));
    // Each of several processes has a launch with that number, and the command says so.
    let procs = super::rerun::profile("procs");
    let rerun = plan(&procs, 5).unwrap().commands.remove(0);
    assert!(!rerun.is_exact() || !rerun.argv().contains(&"--ranks".to_owned()), "{}", rerun.shell_line());
    assert!(measured(&rerun.argv(), &procs).contains(&5), "{}", rerun.shell_line());
}

#[test]
fn the_profiler_is_a_field_of_the_screen() {
    let mut explorer = open("single", (120, 40), "enter r");
    assert!(command(&mut explorer).starts_with("ncu "));
    explorer.press("home enter t");
    let screen = explorer.screen();
    assert!(screen.contains("the built-in tracer") && !screen.contains("locked to base"), "{screen}");
    let text = command(&mut explorer);
    assert!(text.starts_with("warpscope trace --measure 'scale#1' --output scale-2 "), "{text}");
    insta::assert_snapshot!(explorer.screen());
    explorer.press("u");
    assert!(command(&mut explorer).starts_with("ncu "));
}

#[test]
fn a_key_measures_the_selected_launch() {
    // The program asks for confirmation before it runs a command from a report.
    let mut explorer = open("single", (120, 40), "enter M");
    assert_eq!(explorer.app.current_scope(), KeyScope::Rerun);
    assert!(explorer.screen().contains("run the program that this report names?"), "{}", explorer.screen());
    explorer.press("esc");
    assert!(command(&mut explorer).contains("warpscope trace --measure "));
}

/// A run of the built-in tracer started on the screen; its trace is from the CUPTI mock.
#[test]
fn what_was_measured_joins_the_launch_that_it_was_asked_for() {
    use super::run_screens::run;
    use super::tracer::measured as mock;
    use warpscope::app::{Effect, Msg};
    use warpscope::library::{Report, State};
    let words = ["rate=500", "seconds=1", "kinds=4"];
    let ((before, _), (after, found), (without, _)) =
        (mock("survey 0\n", &words, &[]), mock("survey 0\nlaunch 5 foo\n", &words, &[]), mock("survey 0\nlaunch 5000 foo\n", &words, &[]));
    assert!(found.measured.is_some());
    for (of, says) in [(&after, "verified: foo with grid 1×2 and block 64"), (&without, "launch 5001 of foo was not reached")] {
        let mut explorer = super::support::Explorer::open(&[before.files()[0].clone()], (120, 40));
        explorer.press("K / f o o enter enter home j j j j j M");
        assert!(explorer.screen().contains("run the program that this report names?"), "{}", explorer.screen());
        explorer.press("r");
        let Some(Effect::Preflight(start)) = explorer.asked.last().cloned() else { panic!("{:?}", explorer.asked) };
        assert_eq!(
            (start.tool.as_str(), &start.argv[..4]),
            ("trace", &["warpscope", "trace", "--measure", "foo#6"].map(str::to_owned)[..])
        );
        explorer.send(Msg::Preflight(vec![]));
        explorer.send(Msg::Started(Ok(Box::new(run(8, State::Running)))));
        let mut ended = run(8, State::Done);
        ended.reports = vec![Report { path: of.files()[0].clone(), bytes: 5, owned: true }];
        explorer.send(super::run_screens::news(&ended, &[], ""));
        let screen = explorer.screen();
        assert!(screen.contains(says), "{screen}");
        if says.starts_with("verified") {
            assert_eq!(explorer.app.session.active, 0);
            assert!(screen.contains("◆ this launch"), "{screen}");
        }
    }
}

/// All fixtures that open as a timeline.
fn every_profile() -> Vec<Profile> {
    let folders = ["demo", "nsys", "probe", "trace", "triage"].map(|f| root().join("fixtures").join(f));
    let files = folders.iter().flat_map(|f| std::fs::read_dir(f).unwrap().map(|e| e.unwrap().path()));
    files.filter(|f| f.is_file()).filter_map(|f| read(&f).ok()).collect()
}

/// For every kernel in the fixtures, the tracer must find the function's name in the symbol.
#[test]
fn functions_are_found_in_symbols_as_names_are_cut() {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("symbols.c"), folder.path().join("symbols"));
    let text = "typedef unsigned long u64; typedef unsigned u32;\n#include <stdio.h>\n#include <string.h>\n#include \"symbol.c\"\n\
        int main(void) { static char line[65536]; u64 n; while (fgets(line, sizeof line, stdin)) { line[strcspn(line, \"\\n\")] = 0; \
        const char* f = function_of(line, &n); printf(\"%d %.*s\\n\", is_symbol(line, line), (int)n, f); } }\n";
    std::fs::write(&source, text).unwrap();
    let object = root().join("src/launch/tracer/object");
    let mut built = Command::new("cc");
    built.args(["-O1", "-Wall", "-Wextra", "-Werror", "-I"]).arg(object).arg("-o").args([&program, &source]);
    assert!(built.status().unwrap().success());
    let mut kernels: Vec<(String, String)> = Vec::new();
    for fixture in every_profile() {
        for k in &fixture.kernels {
            if let (Some(mangled), Some(_)) = (&k.mangled, &k.demangled) {
                kernels.push((mangled.to_string(), k.function().to_owned()));
            }
        }
    }
    kernels.sort();
    kernels.dedup();
    kernels.push(("_ZN7cutlass6KernelINS_4gemmELi3ELb1ELNS0_4EnumE2EE3runEPf".into(), "run".into()));
    kernels.push(("_Z13foobar_3foo_xPf".into(), "foobar_3foo_x".into()));
    kernels.push(("_ZN12_GLOBAL__N_15innerIXadL_ZNS_3addEffEEEEvPT_".into(), "inner".into()));
    kernels.push(("_ZN2at4implIN3c108BFloat16ELi4ESt5arrayIPcLm2EEE5applyB5cxx11EvT1_".into(), "apply".into()));
    kernels.push(("_ZZ4mainENKUlvE_clEv".into(), "_ZZ4mainENKUlvE_clEv".into()));
    kernels.push(("plain_c".into(), "plain_c".into()));
    for broken in ["_Z", "_ZN", "_Z9999999999foo", "_ZN3fooI", "_ZN3foo", "_Z3", "_ZNS", "_ZN3fooIL", "_ZNT"] {
        kernels.push((broken.into(), broken.into()));
    }
    let mut child = Command::new(&program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let all: String = kernels.iter().flat_map(|k| [k.0.as_str(), "\n"]).collect();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(all.as_bytes()).unwrap());
    let out = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let out = String::from_utf8(out.stdout).unwrap();
    let mut odd = Vec::new();
    for ((symbol, function), line) in kernels.iter().zip(out.lines()) {
        let found = line.strip_prefix("1 ").unwrap();
        // A symbol that does not contain the name can only be selected by the whole symbol.
        if found != function && found != symbol {
            odd.push(format!("{symbol}: {found}, not {function}"));
        }
        if found == symbol && function != symbol && !symbol.contains("ZZ") {
            odd.push(format!("{symbol}: not found, {function}"));
        }
    }
    assert!(kernels.len() > 120 && out.lines().count() == kernels.len(), "{}", kernels.len());
    assert!(odd.is_empty(), "{} of {}: {odd:#?}", odd.len(), kernels.len());
}
