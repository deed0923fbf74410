//! Launches chosen for measurement by the tracer: by name or expression, grid, block and
//! NVTX range; and the metrics chosen for them.

use super::tracer::measured;
use warpscope::model::Profile;
use warpscope::model::metrics::MEASURED_LAUNCHES;

const WORDS: [&str; 3] = ["rate=1000", "seconds=2", "kinds=3000"];

/// Ids of the measured launches, and of the launches in the mock's log that match the plan.
fn chosen(plan: &str, words: &[&str], means: impl Fn(&[String]) -> bool) -> (Vec<String>, Vec<String>) {
    let (run, profile) = measured(plan, words, &[]);
    let found = profile.measured.as_deref().and_then(|m| m.metrics.clone()).unwrap_or_else(|| panic!("{plan}: {:?}", profile.notes));
    assert_eq!(found.results.len(), 1, "{plan}");
    assert!(found.value(&found.results[0], MEASURED_LAUNCHES).is_some());
    let ids = |what: &str| run.said(what).into_iter();
    (ids("measured").map(|w| w[0].clone()).collect(), ids("kernel").filter(|w| means(w)).map(|w| w[0].clone()).collect())
}

fn notes(plan: &str, words: &[&str]) -> String {
    let (_, profile): (_, Profile) = measured(plan, words, &[]);
    assert!(profile.measured.is_none(), "{plan}");
    profile.notes.iter().map(|n| n.text.as_str()).collect::<Vec<_>>().join(" | ")
}

/// The mock's grid is 1 + ordinal / 1000 by 2.
fn ordinal(words: &[String]) -> u32 {
    words[2].parse().unwrap()
}

#[test]
fn of_a_grid_and_a_block() {
    let foo = |w: &[String]| w[1] == "_Z3fooPf";
    let (got, all) = chosen("grid 2 2 1\nblock 64 1 1\nlaunch 3 foo\n", &WORDS, |w| foo(w) && ordinal(w) / 1000 == 1);
    assert!(got == [all[3].clone()] && all.len() > 100, "{got:?}");
    let says = notes("block 128 1 1\nlaunch 3 foo\n", &WORDS);
    assert!(says.contains("launch 4 of foo was not reached: only 0 were seen"), "{says}");
}

#[test]
fn by_an_expression() {
    let (got, all) =
        chosen("launch 7 regex:^(foo|ba.)$\n", &["rate=500", "seconds=1", "kinds=4"], |w| w[1] == "_Z3fooPf" || w[1].starts_with("_Z3ba"));
    assert_eq!(got, [all[7].clone()]);
    let says = notes("launch 3 regex:(\n", &WORDS);
    assert!(says.contains("an expression for kernels could not be read"), "{says}");
    // A name does not match as part of another.
    let says = notes("launch 3 fo\n", &WORDS);
    assert!(says.contains("launch 4 of fo was not reached: only 0 were seen"), "{says}");
}

#[test]
fn inside_ranges() {
    // One launch per millisecond: the fourth of every ten is in a pushed range, the seventh to ninth in a started one.
    let words = ["rate=1000", "seconds=2", "kinds=4", "nvtx=1", "bursts=1"];
    let loops = |of: fn(usize) -> bool| {
        move |all: Vec<String>| -> Vec<String> { all.into_iter().enumerate().filter(|(i, _)| of(i % 10)).map(|(_, id)| id).collect() }
    };
    let any = |_: &[String]| true;
    let (got, all) = chosen("range 0 :burst\nlaunch 5 regex:.\n", &words, any);
    // Three launches come before the loop.
    let pushed = loops(|i| i == 3)(all[3..].to_vec());
    assert_eq!(got, [pushed[5].clone()]);
    let (got, all) = chosen("range 0 :batch\nlaunch 4 regex:.\n", &words, any);
    let started = loops(|i| (6..9).contains(&i))(all[3..].to_vec());
    assert_eq!(got, [started[4].clone()]);
    // Only the third instance of the range; a launch it does not contain is not reached.
    let (got, all) = chosen("range 3 :burst\nlaunch 0 regex:.\n", &words, any);
    assert_eq!(got, [loops(|i| i == 3)(all[3..].to_vec())[2].clone()]);
    let says = notes("range 3 :burst\nlaunch 1 regex:.\n", &words);
    assert!(says.contains("launch 2 of regex:. was not reached: only 1 were seen"), "{says}");
    let says = notes("range 0 other:burst\nlaunch 0 regex:.\n", &words);
    assert!(says.contains("the requested NVTX range was never entered"), "{says}");
    let says = notes("range 5000 :burst\nlaunch 0 regex:.\n", &words);
    assert!(says.contains("was entered only 200 times"), "{says}");
}
