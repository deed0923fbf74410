//! Screens for ncu results, drawn from real reports without a terminal: metrics, roofline, comparison, code; and
//! navigation from a launch in the timeline to its result and back.

use super::support::{Explorer, demo_files, root};
use insta::assert_snapshot;
use std::path::PathBuf;
use warpscope::analysis::compare::Change;
use warpscope::app::{KeyScope, Mouse, Msg};
use warpscope::rerun::match_results::Sure;

fn ncu(name: &str) -> PathBuf {
    root().join(format!("fixtures/ncu/{name}.ncu-rep.zst"))
}

/// Code without line numbers: the key that switches to lines says why there are none, on every layout.
#[test]
fn code_without_lines_has_no_list_of_lines() {
    for size in [(80, 24), (120, 40), (200, 50)] {
        let mut explorer = Explorer::open(&[root().join("fixtures/demo/llm_gemm.ncu-rep.zst")], size);
        explorer.press("e");
        let before = explorer.screen();
        assert!(!before.contains("lines/SASS"), "{before}");
        for key in ["tab", "enter"] {
            explorer.press(key);
            assert!(explorer.screen().contains("-lineinfo"), "{key}: {}", explorer.screen());
        }
    }
}

#[test]
fn a_report_of_ncu_alone_is_a_session() {
    assert_snapshot!("ncu_kernels", Explorer::open(&[ncu("three")], (100, 24)).screen());
    // A kernel with one result opens it directly.
    let mut explorer = Explorer::open(&[ncu("full")], (80, 24));
    explorer.press("enter");
    assert!(matches!(explorer.app.current_scope(), KeyScope::Metrics));
}

#[test]
fn metrics_at_three_sizes() {
    for (name, size) in [("metrics_80x24", (80, 24)), ("metrics_120x40", (120, 40)), ("metrics_200x50", (200, 50))] {
        let mut explorer = Explorer::open(&[ncu("full")], size);
        explorer.press("p");
        assert_snapshot!(name, explorer.screen());
    }
}

#[test]
fn every_section_is_reached_and_drawn() {
    let mut explorer = Explorer::open(&[ncu("full")], (120, 40));
    explorer.press("p");
    let mut seen = Vec::new();
    for _ in 0..30 {
        seen.push(explorer.screen());
        explorer.press("tab");
    }
    explorer.press("home");
    for _ in 0..60 {
        explorer.press("pgdn");
        seen.push(explorer.screen());
    }
    let all = seen.join("\n");
    for text in [
        "Memory Workload Analysis Chart",
        "L1/TEX",
        "busiest",
        "Stall Long Scoreboard",
        "Executed Instruction Mix",
        "this launch:",
        "Other metrics",
    ] {
        assert!(all.contains(text), "{text}");
    }
    assert_snapshot!("metrics_memory", seen.iter().find(|s| s.contains("busiest")).unwrap());
    assert_snapshot!("metrics_stalls", seen.iter().find(|s| s.contains("Stall Long Scoreboard")).unwrap());
    assert_snapshot!("metrics_occupancy", seen.iter().find(|s| s.contains("this launch:")).unwrap());
    explorer.press("shift-tab shift-tab");
    explorer.press("home");
    assert!(explorer.screen().contains("Compute (SM) Throughput"));
}

#[test]
fn a_breakdown_opens_and_closes_and_a_metric_is_explained() {
    let mut explorer = Explorer::open(&[ncu("full")], (110, 60));
    explorer.press("p");
    let fold = |e: &Explorer| {
        use warpscope::analysis::metrics_rows::MetricsRow;
        e.app.result_screen(0).unwrap().sections.rows.iter().position(|r| matches!(r, MetricsRow::Fold { .. })).unwrap()
    };
    let at = fold(&explorer);
    explorer.send(Msg::Mouse(Mouse::Row(at)));
    explorer.press("enter");
    assert!(explorer.screen().contains("SM: inst executed"), "{}", explorer.screen());
    explorer.press("enter");
    assert!(!explorer.screen().contains("SM: inst executed"));
    explorer.press("home tab down enter");
    assert_snapshot!("metrics_explained", explorer.screen());
}

#[test]
fn metrics_are_found_pinned_and_copied() {
    let mut explorer = Explorer::open(&[ncu("full")], (100, 24));
    explorer.press("p /");
    explorer.type_text("hit rate");
    explorer.press("enter");
    assert_snapshot!("metrics_found", explorer.screen());
    explorer.press("m");
    let pinned = explorer.app.session.pins[0].clone();
    assert!(pinned.contains("hit_rate"), "{pinned}");
    explorer.press("y v y n y r");
    assert_eq!(explorer.copied[1], *pinned);
    assert!(explorer.copied[0].parse::<f64>().is_ok(), "{}", explorer.copied[0]);
    assert!(explorer.copied[2].starts_with("metric,value,unit\n") && explorer.copied[2].lines().count() == 2, "{}", explorer.copied[2]);
    explorer.press("esc");
    assert!(explorer.screen().contains("Pinned"));
    explorer.press("home y s");
    assert_eq!(explorer.copied[3].lines().count(), 2, "the pinned section: {}", explorer.copied[3]);
    explorer.press("/");
    explorer.type_text("no such metric");
    assert!(explorer.screen().contains("no metric matches"));
}

#[test]
fn the_roofline() {
    let mut explorer = Explorer::open(&[ncu("full")], (120, 40));
    explorer.press("p o");
    assert_snapshot!("roofline_missing", explorer.screen());
    let mut explorer = Explorer::open(&demo_files()[1..], (100, 30));
    explorer.press("p o");
    assert_snapshot!("roofline_100x30", explorer.screen());
    explorer.press("o");
    assert!(explorer.screen().contains("Compute (SM) Throughput") || explorer.screen().contains("Speed"), "back to the metrics");
}

#[test]
fn two_results_side_by_side() {
    let mut explorer = Explorer::open(&demo_files()[1..], (110, 30));
    explorer.press("p c");
    assert!(explorer.screen().contains("compare with"));
    explorer.press("enter");
    assert_snapshot!("compare", explorer.screen());
    let screen = explorer.app.result_screen(0).unwrap();
    assert!(screen.compare.rows.iter().any(|r| r.change != Change::Same));
    explorer.press("enter");
    assert!(explorer.screen().contains("about this"));
}

#[test]
fn lines_and_instructions() {
    let mut explorer = Explorer::open(&[ncu("source")], (120, 30));
    explorer.press("p e");
    assert_snapshot!("source_lines", explorer.screen());
    // The listing is in file order, starting at the hottest line; lines without code are listed as well.
    let source = explorer.app.result_screen(0).unwrap().source.clone();
    let listing = source.listing.clone().unwrap();
    assert!(listing.lines.windows(2).all(|w| (w[0].file, w[0].line) < (w[1].file, w[1].line)));
    assert!(listing.lines.iter().any(|l| l.instructions == 0 && l.text.is_some()));
    let most = listing.lines.iter().map(|l| l.counts.samples).fold(0.0, f64::max);
    assert!(most > 0.0 && listing.lines[source.selected].counts.samples >= most);
    explorer.press("enter");
    assert_snapshot!("source_instructions", explorer.screen());
    let listing = explorer.app.result_screen(0).unwrap().source.listing.clone().unwrap();
    // Every instruction of the kernel has a line in its own source.
    assert!(listing.instructions.len() > 50 && listing.instructions.iter().all(|i| i.line.is_some()));
    assert!(listing.lines.iter().any(|l| l.name == "zoo.cu" && l.text.is_some()));
    let sum: f64 = listing.lines.iter().map(|l| l.counts.samples).sum();
    assert!((sum - listing.samples).abs() < 0.5 && sum > 100.0, "every sample is at a line");
    assert!(listing.instructions.windows(2).all(|w| w[0].address < w[1].address));
    explorer.press("s");
    let sorted = explorer.app.result_screen(0).unwrap().source.clone();
    let listing = sorted.listing.clone().unwrap();
    assert!(listing.instructions.windows(2).all(|w| w[0].counts.samples >= w[1].counts.samples) && sorted.selected == 0);
    assert!(listing.lines.iter().all(|l| l.instructions > 0));
}

#[test]
fn a_timeline_and_its_results_are_one_key_apart() {
    let mut explorer = Explorer::open(&demo_files(), (120, 40));
    assert_snapshot!("joined_kernels", explorer.screen());
    let joins = explorer.app.session.reports[0].joins.clone();
    assert_eq!(joins.len(), 3);
    for (_, join) in &joins {
        assert!(join.pairs.iter().all(|p| p.sure == Sure::Command), "{:?}", join.pairs);
    }
    // The small kernels belong to another program.
    assert_eq!((joins[0].1.pairs.len(), joins[1].1.pairs.len(), joins[2].1.pairs.len()), (30, 4, 0));
    explorer.press("enter J s");
    // The launch that the result belongs to, and its metrics.
    let launch = joins[0]
        .1
        .pairs
        .iter()
        .find(|p| explorer.app.launches_screen(0).unwrap().list.as_ref().unwrap().rows.iter().any(|r| r.0 == p.launch))
        .unwrap()
        .launch;
    let at = explorer.app.launches_screen(0).unwrap().list.as_ref().unwrap().rows.iter().position(|r| r.0 == launch).unwrap();
    explorer.send(Msg::Mouse(Mouse::Row(at)));
    assert_snapshot!("joined_launches", explorer.screen());
    explorer.press("enter");
    let text = explorer.screen();
    assert!(text.contains("this launch") && text.contains("ncu's durations differ from the timeline's"), "{text}");
    explorer.press("P");
    assert!(matches!(explorer.app.current_scope(), KeyScope::Launches));
    // From the result's own report to the launch in the timeline.
    explorer.press("esc ]");
    explorer.press("p P");
    assert_eq!((explorer.app.session.active, explorer.app.current_scope()), (0, KeyScope::Launches));
}

#[test]
fn results_from_a_csv_have_metrics_but_no_code() {
    let mut explorer = Explorer::open(&[root().join("fixtures/ncu/three_raw.csv")], (100, 24));
    explorer.press("p");
    assert!(matches!(explorer.app.current_scope(), KeyScope::Metrics), "{}", explorer.screen());
    explorer.press("e");
    assert!(explorer.screen().contains("has no code"), "{}", explorer.screen());
}

/// A newcomer's path without a GPU or a file: kernels, metrics, roofline, code, and the command that profiles it again.
#[test]
fn the_demo_leads_from_kernels_to_a_roofline_code_and_a_command() {
    let mut explorer = Explorer::open(&super::support::demo_files(), (120, 40));
    explorer.press("] ] ]");
    assert!(explorer.screen().contains("matmul_naive"), "{}", explorer.screen());
    explorer.press("p");
    assert!(explorer.screen().contains("GPU Speed Of Light Throughput"), "{}", explorer.screen());
    explorer.press("o");
    let plot = explorer.app.result_screen(explorer.app.session.active).unwrap().roofline.plot.clone().unwrap();
    assert!(plot.points.iter().any(|p| p.own && p.work == "FP32" && p.achieved > 1e12), "{:?}", plot.points);
    assert_snapshot!("demo_roofline", explorer.screen());
    explorer.press("e");
    assert!(explorer.screen().contains("zoo.cu:23"), "{}", explorer.screen());
    explorer.press("r");
    assert!(explorer.screen().contains("--launch-skip 6 --launch-count 1"), "{}", explorer.screen());
}

/// A details page has labels instead of metric names: it is shown with its own sections, duration and figures.
#[test]
fn a_details_page_is_shown_by_its_sections() {
    let mut explorer = Explorer::open(&[root().join("fixtures/ncu/one_details.csv")], (100, 30));
    explorer.press("p");
    assert_snapshot!("metrics_of_a_details_page", explorer.screen());
}

#[test]
fn a_range_is_a_result_with_sections_rules_and_its_range() {
    let mut explorer = Explorer::open(&[ncu("range")], (100, 30));
    explorer.press("p");
    assert_snapshot!("metrics_range", explorer.screen());
    let details = explorer.app.result_screen(0).unwrap().details.get().unwrap().clone();
    assert_eq!(details.nvtx, ["step1"]);
    // ncu 2025 stores rules for ranges as well, in a separate field.
    assert!(details.rules.iter().any(|r| r.id == "LaunchConfiguration"), "{:?}", details.rules.len());
}
