//! Time filter of a report: contents of each screen, and windows that add up to the whole.

use super::support::{Explorer, demo_files, packed, read, root, run};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use warpscope::analysis::overview::Overview;
use warpscope::analysis::range_tree::RangeTree;
use warpscope::analysis::{GroupBy, Grouping, Paths};
use warpscope::app::{KeyScope, TimelineScreen};
use warpscope::model::{Cancel, Profile};

fn triage(name: &str) -> PathBuf {
    root().join("fixtures/triage").join(name)
}

fn runs() -> Vec<(&'static str, Profile)> {
    let files = [
        ("llm", packed("llm")),
        ("threads", packed("threads")),
        ("graph_node", packed("graph_node")),
        ("ddp_rank0", packed("ddp_rank0")),
        ("two_causes", triage("two_causes.sqlite.zst")),
        ("flops", triage("flops.pt.trace.json.gz")),
    ];
    files.into_iter().map(|(name, file)| (name, read(&file).unwrap_or_else(|e| panic!("{name}: {e}")))).collect()
}

/// Times between the first and the last launch at which a run is split in two.
fn cuts(profile: &Profile) -> Vec<i64> {
    let starts = || (0..profile.launches.len()).map(|row| profile.launches.start(row));
    let (first, last) = (starts().min().unwrap(), starts().max().unwrap());
    (1..8).map(|part| first + (last - first) / 8 * part).collect()
}

/// By path: launches, copies, collectives; host time, own time, idle time; floating-point operations in thousands.
type Sums = BTreeMap<Vec<String>, [i64; 7]>;

fn add(tree: &RangeTree, sums: &mut Sums) {
    for (id, node) in (0..).zip(&tree.nodes) {
        let path: Vec<String> =
            tree.path_from_root(id).into_iter().map(|n| format!("{} {}", tree.nodes[n as usize].name, node.backward)).collect();
        let counts = [node.kernels, node.copies, node.collectives].map(|n| i64::try_from(n).unwrap());
        let own = [counts[0], counts[1], counts[2], node.wall, node.own, node.idle, (node.flops / 1e3) as i64];
        let sum = sums.entry(path).or_default();
        for (sum, value) in sum.iter_mut().zip(own) {
            *sum += value;
        }
    }
}

#[test]
fn two_windows_of_a_tree_add_up_to_the_whole() {
    for (name, profile) in runs() {
        let of = |window| RangeTree::from_window(&profile, window, &Cancel::default()).unwrap();
        let mut whole = Sums::new();
        add(&of(None), &mut whole);
        for cut in cuts(&profile) {
            let (before, after) = (of(Some((i64::MIN, cut))), of(Some((cut, i64::MAX))));
            let mut parts = Sums::new();
            add(&before, &mut parts);
            add(&after, &mut parts);
            assert_eq!(parts.len(), whole.len(), "{name} at {cut}");
            for (path, sum) in &parts {
                let all = whole[path];
                assert_eq!(sum[..6], all[..6], "{name} at {cut}: {path:?}");
                assert!((sum[6] - all[6]).abs() <= 2, "{name} at {cut}: {path:?}: {} {}", sum[6], all[6]);
            }
            let outside = before.outside.1 + after.outside.1;
            assert_eq!(outside, of(None).outside.1, "{name}");
            let launches = |tree: &RangeTree| tree.of_launch.iter().filter(|&&n| (n as usize) < tree.nodes.len()).count();
            assert_eq!(launches(&before) + launches(&after), launches(&of(None)), "{name}");
        }
    }
}

#[test]
fn groups_of_a_window_are_of_the_launches_that_began_in_it() {
    for (name, profile) in runs() {
        let paths = Paths::from_profile(&profile);
        for by in GroupBy::ALL {
            let whole = Grouping::from_profile(&profile, by, Some(&paths));
            if whole.unavailable.is_some() {
                continue;
            }
            for pair in cuts(&profile).windows(2) {
                let window = (pair[0], pair[1]);
                let grouping = Grouping::from_window(&profile, by, Some(&paths), Some(window));
                let mut counts: BTreeMap<String, (u64, i64)> = BTreeMap::new();
                for launch in 0..profile.launches.len() {
                    let inside = (window.0..window.1).contains(&profile.launches.start(launch));
                    let row = grouping.row_of(&profile, Some(&paths), launch);
                    let name_of = |g: &Grouping, row: Option<usize>| row.map(|r| g.rows[r].name.clone());
                    let expected = name_of(&whole, whole.row_of(&profile, Some(&paths), launch)).filter(|_| inside);
                    assert_eq!(name_of(&grouping, row), expected, "{name} by {}", by.cli_name());
                    if let Some(group) = expected {
                        let sum = counts.entry(group).or_default();
                        *sum = (sum.0 + 1, sum.1 + profile.launches.duration(launch));
                    }
                }
                let found: BTreeMap<String, (u64, i64)> =
                    grouping.rows.iter().map(|r| (r.name.clone(), (r.stats.count, r.stats.total))).collect();
                assert_eq!(found, counts, "{name} by {}", by.cli_name());
                assert_eq!(grouping.launches, counts.values().map(|c| c.0).sum::<u64>());
            }
        }
    }
}

#[test]
fn busy_shares_of_windows_add_up() {
    for (name, profile) in runs() {
        let whole = Overview::from_profile(&profile);
        let (begin, end) = whole.span.unwrap();
        for cut in cuts(&profile) {
            let parts = [(begin, cut), (cut, end)].map(|w| (w.1 - w.0, Overview::from_window(&profile, Some(w))));
            // With several devices, one of them may be idle in a part, so that the mean covers different devices.
            if parts.iter().any(|p| p.1.devices_used != whole.devices_used) {
                continue;
            }
            let ns = |percent: Option<f64>, length: i64| percent.unwrap() / 100.0 * length as f64;
            let sum: f64 = parts.iter().map(|(length, o)| ns(o.busy_percent, *length)).sum();
            let all = ns(whole.busy_percent, end - begin);
            assert!((sum - all).abs() < 2.0 + all * 1e-9, "{name}: {sum} {all}");
        }
    }
}

fn explorer() -> Explorer {
    let mut e = Explorer::open(&[triage("two_causes.sqlite.zst")], (120, 40));
    e.press("T 0");
    e
}

fn here(e: &Explorer) -> KeyScope {
    e.app.top_entry().unwrap().open.screen().place()
}

#[test]
fn a_marked_window_narrows_all_screens_and_is_taken_back() {
    let mut e = explorer();
    let whole = e.app.session.reports[0].groups.grouping.clone().unwrap();
    let judged = e.app.session.reports[0].triage.clone().flatten().unwrap();
    e.press(
        "g right right right right right right b right right right right right right right right right right right right right right B",
    );
    let report = &e.app.session.reports[0];
    let window = report.window.unwrap();
    assert_eq!(Some(window), e.app.report_screen::<TimelineScreen>(0).unwrap().marked_window());
    let grouping = report.groups.grouping.clone().unwrap();
    assert_eq!(grouping.window, Some(window));
    assert!(grouping.launches > 0 && grouping.launches < whole.launches);
    let triage = report.triage.clone().flatten().unwrap();
    assert_eq!((triage.window.0 >= window.0, triage.window.1 <= window.1), (true, true));
    // The overview map keeps the steps of the whole run.
    assert!(Arc::ptr_eq(report.whole_triage().unwrap(), &judged));
    insta::assert_snapshot!("narrow_timeline", e.screen());
    e.press("K");
    assert_eq!(here(&e), KeyScope::Kernels);
    insta::assert_snapshot!("narrow_kernels", e.screen());
    let launches = |e: &Explorer| e.app.session.reports[0].groups.grouping.as_ref().unwrap().launches;
    e.press("enter");
    let text = e.screen();
    assert!(text.contains("whole run)"), "{text}");
    e.press("esc O");
    insta::assert_snapshot!("narrow_overview", e.screen());
    e.press("V");
    insta::assert_snapshot!("narrow_ranges", e.screen());
    // After regrouping with the filter on, the whole run is regrouped as well.
    e.press("K g s");
    assert_eq!(launches(&e), grouping.launches);
    e.press("B");
    assert_eq!((e.app.session.reports[0].window, launches(&e)), (None, whole.launches));
    assert_eq!(e.app.session.reports[0].groups.grouping.as_ref().unwrap().by, GroupBy::Stream);
    assert!(Arc::ptr_eq(e.app.session.reports[0].triage.as_ref().unwrap().as_ref().unwrap(), &judged));
}

/// One key switches the base of all figures; the verdict does not change.
#[test]
fn the_base_of_a_screen_is_the_steady_state_or_the_whole_run() {
    let mut e = Explorer::open(&[root().join("fixtures/triage/item_loop.sqlite.zst")], (120, 40));
    e.press("K");
    let launches = |e: &Explorer| e.app.session.reports[0].groups.grouping.as_ref().unwrap().launches;
    let judged = e.app.session.reports[0].triage.clone().flatten().unwrap();
    assert!(e.screen().contains("whole run (B steady state)"), "{}", e.screen());
    assert_eq!(launches(&e), 900);
    e.press("B");
    assert!(e.screen().contains("steady state (B whole run)"), "{}", e.screen());
    assert_eq!((launches(&e), e.app.session.reports[0].window), (870, Some(judged.window)));
    assert!(Arc::ptr_eq(&judged, &e.app.session.reports[0].triage.clone().flatten().unwrap()));
    e.press("B");
    assert_eq!((launches(&e), e.app.session.reports[0].window), (900, None));
    // Without a warm-up there is only one base.
    let mut e = Explorer::open(&[root().join("fixtures/triage/gemm_healthy.sqlite.zst")], (120, 40));
    e.press("K B");
    assert_eq!(e.app.session.reports[0].window, None);
    assert!(e.screen().contains("the whole run is shown and judged"), "{}", e.screen());
}

/// ncu measured launches of the warm-up, but its results for those kernels apply to the steady state, too.
#[test]
fn diagnoses_of_kernels_stay_when_the_base_changes() {
    let mut e = Explorer::open(&demo_files(), (120, 40));
    e.press("K");
    let marked = e.screen().matches('◆').count();
    assert!(e.screen().matches("launch-overhead").count() > 3 && marked > 3, "{}", e.screen());
    e.press("B");
    assert!(e.screen().contains("steady state (B whole run)"), "{}", e.screen());
    assert!(e.screen().matches("launch-overhead").count() > 3, "{}", e.screen());
    assert_eq!(e.screen().matches('◆').count(), marked, "{}", e.screen());
}

#[test]
fn escape_on_the_table_widens_and_a_launch_outside_is_said_to_be() {
    let mut e = explorer();
    e.press("g right right right right b right right B esc");
    assert!(e.app.session.reports[0].window.is_some());
    // A launch far outside the window, shown in the timeline.
    e.press("G ,");
    e.press("enter");
    assert!(e.app.status.as_ref().is_some_and(|s| s.text.contains("not in the window")), "{:?}", e.app.status);
    e.press("K esc");
    assert_eq!(e.app.session.reports[0].window, None);
    e.press("esc");
    assert_eq!(here(&e), KeyScope::Overview);
    // Without a selection the key explains how to choose a window.
    e.press("B");
    assert!(e.app.status.as_ref().is_some_and(|s| s.text.contains("mark a window")));
    e.press("T 0 B");
    assert!(e.app.status.as_ref().is_some_and(|s| s.text.contains("whole run is in view")), "{:?}", e.app.status);
    e.press("+ + + B");
    assert!(e.app.session.reports[0].window.is_some(), "what is in view");
}

#[test]
fn ranges_of_a_window_on_stdout() {
    let file = triage("two_causes.sqlite.zst").display().to_string();
    let sums = |args: &[&str]| -> (u64, u64) {
        let mut all = vec!["ranges", &file, "--format", "json"];
        all.extend(args);
        let (code, out, err) = run(&all);
        assert_eq!(code, 0, "{err}");
        let json: serde_json::Value = serde_json::from_str(&out).unwrap();
        let rows = json["rows"].as_array().unwrap();
        let root = rows.iter().filter(|r| r["depth"] == 0);
        root.fold((0, 0), |(k, w), r| (k + r["kernels"].as_u64().unwrap(), w + r["wall_ns"].as_u64().unwrap()))
    };
    let profile = read(&triage("two_causes.sqlite.zst")).unwrap();
    let cut = format!("{}ns", cuts(&profile)[3]);
    let (whole, before, after) = (sums(&[]), sums(&["--to", &cut]), sums(&["--from", &cut]));
    assert_eq!((before.0 + after.0, before.1 + after.1), whole);
    let (code, _, err) = run(&["ranges", &file, "--from", "900000s"]);
    assert_eq!((code, err.contains("no range is open")), (2, true), "{err}");
}
