//! Comparison of two runs: what changed, was added, removed or renamed, and whether the change is significant.

use super::support::{Explorer, edited_profile, packed, read, root, run};
use serde_json::Value as Json;
use warpscope::analysis::GroupBy;
use warpscope::analysis::diff::{Fate, diff_profiles};
use warpscope::analysis::workload_match::Work;

#[test]
fn a_run_beside_itself_is_the_same() {
    let profile = read(&packed("zoo")).unwrap();
    // Without stacks there are no lines.
    for by in GroupBy::ALL.into_iter().filter(|by| *by != GroupBy::Line) {
        let d = diff_profiles(&profile, &profile, by);
        assert!(d.rows.iter().all(|r| r.fate == Fate::Both && r.total_change() == 0 && !r.is_significant()), "{}", by.cli_name());
        assert_eq!((d.total_change_percent(), d.launches.0, d.caveats.len()), (Some(0.0), d.launches.1, 0));
    }
}

/// A changed launch configuration is named, in the words of the report's vendor.
#[test]
fn changes_of_the_launch_configuration_are_named() {
    let before = read(&packed("zoo")).unwrap();
    let id = "(SELECT id FROM StringIds WHERE value = 'matmul_naive')";
    let changed = format!(
        "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET gridX = gridX / 2, blockX = blockX * 2, registersPerThread = registersPerThread + 8 \
         WHERE shortName = {id};"
    );
    let after = edited_profile("zoo", &changed);
    let d = diff_profiles(&before, &after, GroupBy::Name);
    let text = |name: &str| d.rows.iter().find(|r| r.name() == name).unwrap().config_text();
    assert_eq!(text("matmul_naive").as_deref(), Some("grid 128×128 to 64×128, block 16×16 to 32×16, registers 32 to 40"));
    assert_eq!(d.rows.iter().filter(|r| !r.config_changes.is_empty()).count(), 1);
    let rows: Vec<_> = d.rows.iter().collect();
    let mut out = Vec::new();
    warpscope::report::document::write_text(&mut out, &warpscope::report::diff::document(&d, &rows, None), None).unwrap();
    assert!(String::from_utf8(out).unwrap().contains("matmul_naive: grid 128×128 to 64×128"), "in the text");
}

/// One kernel 10% slower at every launch, one renamed, one removed.
#[test]
fn changes_are_found_and_weighed() {
    let before = read(&packed("zoo")).unwrap();
    let id = |name: &str| format!("(SELECT id FROM StringIds WHERE value = '{name}')");
    let slower = format!(
        "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = end + (end - start) / 10 WHERE shortName = {}; \
         DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE shortName = {}; \
         UPDATE StringIds SET value = replace(value, 'spill_regs', 'spill_regs_v2') WHERE value LIKE '%spill_regs%';",
        id("tiny"),
        id("sfu_heavy")
    );
    let after = edited_profile("zoo", &slower);
    let d = diff_profiles(&before, &after, GroupBy::Name);
    let row = |name: &str| d.rows.iter().find(|r| r.name() == name).unwrap_or_else(|| panic!("{name}"));
    let tiny = row("tiny");
    assert!(tiny.is_significant() && tiny.p.unwrap() < 1e-9 && (9.0..11.0).contains(&tiny.each_percent().unwrap()), "{tiny:?}");
    assert_eq!((row("sfu_heavy").fate, row("spill_regs_v2").fate), (Fate::Gone, Fate::Renamed));
    assert_eq!(row("spill_regs_v2").before.as_ref().unwrap().name, "spill_regs");
    // Three launches are too few for a significant change.
    assert!(row("fma_peak").p.is_none() && !row("fma_peak").is_significant());
    let deltas: Vec<u64> = d.rows.iter().map(|r| r.total_change().unsigned_abs()).collect();
    assert!(deltas.is_sorted_by(|a, b| a >= b), "the largest change first");
}

#[test]
fn on_the_command_line() {
    let (a, b) = (packed("zoo").display().to_string(), packed("zoo_2023").display().to_string());
    let (rc, out, _) = run(&["diff", &a, &b, "--format", "json"]);
    assert_eq!(rc, 0);
    let json: Json = serde_json::from_str(&out).unwrap();
    assert_eq!(json["rows"].as_array().unwrap().len(), 20);
    for field in ["name", "fate", "before", "after", "delta_ns", "delta_percent", "median_percent", "p", "significant"] {
        assert!(json["rows"][0].get(field).is_some(), "{field}");
    }
    let before: i64 = json["rows"].as_array().unwrap().iter().map(|r| r["before"]["total_ns"].as_i64().unwrap()).sum();
    assert_eq!(json["total_before_ns"].as_i64().unwrap(), before);
    let (rc, table, _) = run(&["diff", &a, &b, "--format", "table", "--limit", "3"]);
    // The run first, then its kernels.
    let parts: Vec<&str> = table.split("\n\n").collect();
    assert!(rc == 0 && parts[0].starts_with("median step: ") && parts[1].starts_with("kernel time "), "{table}");
    assert_eq!(parts[2].lines().count(), 4, "{table}");
    assert!(!table.contains("-0.0 %"), "{table}");
    // Exit codes for scripts: 1 for a regression above the limit, 2 for wrong usage.
    assert_eq!(run(&["diff", &a, &b, "--fail-above", "5%"]).0, 0);
    let (rc, _, err) = run(&["diff", &b, &a, "--fail-above", "0.1"]);
    assert!(rc == 1 && err.contains("the time of a step grew by"), "{err}");
    // Kernels that are faster do not hide steps that take longer.
    let triage = |name: &str| root().join("fixtures/triage").join(name).display().to_string();
    let (healthy, late) = (triage("balanced_rank0.sqlite.zst"), triage("late_host_rank0.sqlite.zst"));
    let (rc, _, err) = run(&["diff", &healthy, &late, "--fail-above", "5"]);
    assert!(rc == 1 && err.contains("the time of a step grew by"), "{err}");
    // The kernels of this pair take no longer: only the time of a step fails it.
    assert_eq!(run(&["diff", &healthy, &late, "--fail-above", "5", "--gate", "step"]).0, 1);
    assert_eq!(run(&["diff", &healthy, &late, "--fail-above", "5", "--gate", "kernels"]).0, 0);
    assert_eq!(run(&["diff", &a, &b, "--gate", "step"]).0, 2, "a gate needs its limit");
    assert_eq!(run(&["diff", &a, &b, "--fail-above", "much"]).0, 2);
    assert_eq!(run(&["diff", &a, "/no/such.sqlite"]).0, 3);
    let (rc, _, err) = run(&["diff", &a, &packed("nogpu").display().to_string()]);
    assert!(rc == 2 && err.contains("no kernels to compare"), "{err}");
    // A timeline and an ncu report are hardly comparable, and summaries have no individual launches.
    let ncu = root().join("fixtures/hints/zoo_full.ncu-rep.zst").display().to_string();
    let (rc, _, err) = run(&["diff", &a, &ncu]);
    assert!(rc == 0 && err.contains("one report is from ncu"), "{err}");
    // A limit on the change of their totals would be meaningless.
    for pair in [[&a, &ncu], [&ncu, &a]] {
        let (rc, out, err) = run(&["diff", pair[0], pair[1], "--fail-above", "5"]);
        assert!(rc == 2 && out.is_empty() && err.contains("--fail-above") && err.contains("measured one by one"), "{rc} {err}");
    }
    assert_eq!(run(&["diff", &ncu, &ncu, "--fail-above", "5"]).0, 0, "two reports of ncu are alike");
    let sums = root().join("fixtures/stats/zoo_cuda_gpu_kern_sum.csv").display().to_string();
    let (rc, out, _) = run(&["diff", &a, &sums, "--by", "demangled", "--format", "json"]);
    let json: Json = serde_json::from_str(&out).unwrap();
    assert!(rc == 0 && json["rows"].as_array().unwrap().iter().all(|r| r["p"].is_null()), "{out}");
}

#[test]
fn a_promise_stands_beside_what_came_of_it() {
    use warpscope::analysis::diff::{Diff, DiffRow, Side};
    use warpscope::analysis::hint_outcome::{Promise, predicted_gains};
    use warpscope::analysis::hints::{Diagnosis, Gain};
    let side = |count: u64, each: i64| {
        let (avg, total) = (each as f64, each * i64::try_from(count).unwrap());
        Some(Side { name: "rows".to_owned(), count, total, avg, median: Some(avg), collective: false })
    };
    let gain = Gain { at_most: 0.69, expected: Some((0.40, 0.59)), ..Gain::default() };
    let promise = Some(Promise { id: Diagnosis::Uncoalesced, gain, size: None, remains: false });
    let row = |after: Option<Side>, p| {
        let each = after.as_ref().and_then(|s| s.median).map(|m| (m - 1_000.0) / 10.0);
        DiffRow {
            fate: Fate::Both,
            before: side(10, 1_000),
            after,
            p,
            work: Work::Same,
            each,
            promise: promise.clone(),
            step: None,
            config_changes: Vec::new(),
        }
    };
    // The predictions are the lines below the table.
    let said = |row: &DiffRow| {
        let mut out = Vec::new();
        let page = warpscope::report::diff::document(&Diff::default(), &[row], None);
        warpscope::report::document::write_text(&mut out, &page, None).unwrap();
        String::from_utf8(out).unwrap().lines().skip(4).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(said(&row(side(10, 430), Some(1e-6))), "\nrows: uncoalesced-global predicted 40–59%, measured 57%");
    assert_eq!(said(&row(side(5, 200), None)), "\nrows: uncoalesced-global predicted 40–59%, measured 80%: more than it called possible");
    // Insignificant or tiny differences are not attributed to a change.
    assert_eq!(said(&row(side(10, 430), Some(0.2))), "");
    assert_eq!(said(&row(side(10, 995), None)), "");
    // A report with counters has predicted gains, listed under each of a kernel's names, but none for healthy kernels.
    // A timeline has none at all.
    let zoo = read(&root().join("fixtures/hints/zoo_full.ncu-rep.zst")).unwrap();
    let found = predicted_gains(&zoo);
    assert_eq!(found["transpose_conflict"].id, Diagnosis::BankConflicts);
    assert!(found["transpose_conflict"].gain.expected.is_some() && !found.contains_key("copy_coalesced"));
    assert!(predicted_gains(&read(&root().join("fixtures/probe/names.sqlite.zst")).unwrap()).is_empty());
}

/// Two runs of single processes are a run before and one after it, not two ranks.
#[test]
fn unrelated_runs_are_not_ranks_of_one_job() {
    let file = |name: &str| root().join(format!("fixtures/triage/{name}.sqlite.zst"));
    let mut e = Explorer::open(&[file("item_loop"), file("tiny_ops")], (120, 40));
    e.press("D");
    assert!(!e.screen().contains("ranks of one job"), "{}", e.screen());
    let mut e = Explorer::open(&[file("slow_rank_rank0"), file("slow_rank_rank1")], (120, 40));
    e.press("D");
    assert!(e.screen().contains("these are two ranks of one job"), "{}", e.screen());
}

/// Even the narrowest table shows the times of both runs, whether of whole runs or of one step.
#[test]
fn a_small_terminal_has_before_and_after() {
    let traces = ["eager_token", "graph_token"].map(|name| root().join(format!("fixtures/trace/{name}.wstrace.zst")));
    let mut e = Explorer::open(&traces, (80, 24));
    e.press("D");
    let screen = e.screen();
    let heads =
        screen.lines().find(|l| l.trim_start().starts_with("kernel ") && l.contains("change")).unwrap_or_else(|| panic!("{screen}"));
    assert!(heads.contains("first") && heads.contains("second"), "{screen}");
    let row = screen.lines().find(|l| l.contains("direct_copy")).unwrap();
    assert!(row.matches(" µs").count() + row.matches(" ns").count() >= 3, "{row}");
}

/// The steps of one of the runs take 1.35 or 42 ms: their median says nothing about the run.
#[test]
fn runs_whose_steps_take_the_same_on_average_are_not_faster() {
    let file = |name: &str| root().join(format!("fixtures/triage/{name}.sqlite.zst"));
    let files = [file("two_causes"), file("input_wait")];
    let mut e = Explorer::open(&files, (120, 40));
    e.press("D");
    let screen = e.screen();
    assert!(screen.contains("mean step 18.4 ms to 18.6 ms") && !screen.contains("faster"), "{screen}");
    let words: Vec<String> = std::iter::once("diff".to_owned()).chain(files.iter().map(|f| f.display().to_string())).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let said = run(&[&words[..], &["--format", "md"]].concat()).1;
    assert!(said.contains("mean step: 18.4 ms → 18.6 ms (+1%)") && said.contains("median step: 19.0 ms → 1.35 ms"), "{said}");
}
