//! Programs that are hard to measure, with the CUPTI mock: destroyed contexts, thousands
//! of shapes, a launch that does not return.

use super::tracer::{built_command, measured, plan_file};
use std::collections::BTreeSet;
use std::process::Stdio;
use warpscope::import::wstrace::Follow;

/// Ordinals of the kernels that the mock measured.
fn ordinals(run: &super::tracer::Run) -> BTreeSet<u32> {
    run.said("measured").iter().map(|w| w[2].parse().unwrap()).collect()
}

#[test]
fn a_program_that_makes_another_context_is_measured_there() {
    let (run, profile) = measured("survey 1000\nshare 100\n", &["rate=1000", "seconds=6", "kinds=2", "resets=1"], &[]);
    assert_eq!(profile.launches.len(), run.said("kernel").len());
    let contexts: BTreeSet<String> = run.said("measured").iter().map(|w| w[3].clone()).collect();
    assert_eq!(contexts, ["3".to_owned(), "4".to_owned()].into(), "{:?}", profile.notes);
    // A launch chosen by number is counted across all contexts.
    let (run, profile) = measured("survey 0\nlaunch 900 foo\n", &["rate=1000", "seconds=4", "kinds=4", "resets=3"], &[]);
    let mine: Vec<String> = run.said("kernel").iter().filter(|w| w[1] == "_Z3fooPf").map(|w| w[0].clone()).collect();
    assert_eq!(run.said("measured").iter().map(|w| w[0].clone()).collect::<Vec<_>>(), [mine[900].clone()], "{:?}", profile.notes);
}

/// Short-lived contexts: the ticker may be preparing a measurement in a context that is being destroyed.
#[test]
fn contexts_that_go_at_once_do_no_harm() {
    let (run, profile) = measured("survey 1000\nshare 100\n", &["rate=1000", "seconds=5", "kinds=2", "resets=200"], &[]);
    assert_eq!(profile.launches.len(), run.said("kernel").len());
    assert!(profile.notes.iter().all(|n| !n.text.contains("CUPTI_ERROR")), "{:?}", profile.notes);
    // A launch chosen by number is found in any context.
    let (run, profile) = measured("survey 0\nlaunch 900 foo\n", &["rate=1000", "seconds=4", "kinds=4", "resets=200"], &[]);
    let mine: Vec<String> = run.said("kernel").iter().filter(|w| w[1] == "_Z3fooPf").map(|w| w[0].clone()).collect();
    assert_eq!(run.said("measured").iter().map(|w| w[0].clone()).collect::<Vec<_>>(), [mine[900].clone()], "{:?}", profile.notes);
}

#[test]
fn kernels_that_come_after_thousands_of_others_are_measured() {
    let (run, _) = measured("survey 1000\nshare 90\n", &["launches=3000", "from=4000", "rate=1000", "seconds=9", "kinds=3"], &[]);
    assert!(ordinals(&run).is_superset(&[4000, 4001, 4002].into()), "{:?}", ordinals(&run));
    // Kernels that run from the start are measured, too, while thousands of others come and go.
    let (run, _) =
        measured("survey 1000\nshare 90\n", &["launches=3000", "rate=1000", "seconds=9", "kinds=3"], &[("MOCK_KERNEL_NS", "20000")]);
    assert!(ordinals(&run).is_superset(&[0, 1, 2].into()), "{:?}", ordinals(&run));
}

#[test]
fn a_measured_launch_that_does_not_return_is_said_while_it_lasts() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan_file(folder.path(), "survey 0\nlaunch 5 foo\n");
    let env = [("WARPSCOPE_TRACE_MEASURE", plan.as_str()), ("MOCK_LONG", "7000")];
    let mut child = built_command(folder.path(), &["rate=500", "seconds=2", "kinds=4"], &env).stdout(Stdio::null()).spawn().unwrap();
    let mut follow = Follow::new(&folder.path().join("report"));
    let mut seen = None;
    while seen.is_none() && child.try_wait().unwrap().is_none() {
        seen = follow.poll_files().unwrap().recorders.iter().find_map(|r| r.measuring.clone());
        std::thread::yield_now();
    }
    child.wait().unwrap();
    let seen = seen.expect("said while it lasts");
    assert_eq!((&*seen.kernel, seen.passes), ("foo", Some(2)));
    assert!((3000..9000).contains(&seen.ms), "{}", seen.ms);
    // After the launch has returned, the message disappears.
    assert!(follow.poll_files().unwrap().recorders.iter().all(|r| r.measuring.is_none() && r.measured >= 1));
}
