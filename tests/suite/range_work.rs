//! Work inside a range: kernels and copies, in the tree of ranges and in its data.

use super::support::{Explorer, read, read_as, root, unpacked};
use rusqlite::Connection;
use warpscope::analysis::range_tree::RangeTree;
use warpscope::analysis::triage::Verdict;
use warpscope::app::KeyScope;
use warpscope::import::Wants;
use warpscope::model::Cancel;

/// A range that only copies is not a range without work: its copies are listed, and the key leads to the longest one.
#[test]
fn a_range_that_only_copies_leads_to_its_longest_copy() {
    for size in [(80, 24), (120, 40), (200, 50)] {
        let mut e = Explorer::open(&[root().join("fixtures/triage/two_causes.pt.trace.json.gz")], size);
        e.press("V");
        let tree = e.screen();
        assert!(tree.contains("aten::to") && tree.contains("memcpy HtoD, pageable"), "{tree}");
        assert!(!tree.contains("nothing was launched"), "{tree}");
        e.press("enter");
        let timeline = e.screen();
        assert_eq!(e.app.current_scope(), KeyScope::Timeline, "{timeline}");
        e.press("esc");
        assert_eq!(e.app.current_scope(), KeyScope::Ranges);
    }
}

#[test]
fn the_work_of_a_node_is_all_of_its_operations() {
    for name in ["two_causes", "small_copies", "gemm_healthy"] {
        let profile = read(&root().join(format!("fixtures/triage/{name}.pt.trace.json.gz"))).unwrap();
        let tree = RangeTree::from_profile(&profile, &Cancel::default()).unwrap();
        for (id, node) in (0..).zip(&tree.nodes) {
            let work = tree.work_inside(&profile, id);
            let launches: u64 = work.kernels.iter().map(|k| k.2).sum();
            let copies: u64 = work.copies.iter().map(|c| c.count).sum();
            assert_eq!((launches, copies), (node.kernels + node.collectives, node.copies), "{name}: {}", node.name);
            let longest = |c: &warpscope::analysis::range_tree::CopyTime| profile.memops.get(c.longest as usize).unwrap().duration.0;
            assert!(work.copies.iter().all(|c| longest(c) <= c.ns && longest(c) as f64 >= c.ns as f64 / c.count as f64));
        }
    }
}

/// Ranges that the program did not close last until the last event of their process, by SQL.
#[test]
fn ranges_that_stay_open_end_with_their_process() {
    let path = unpacked("procs");
    let db = Connection::open(&path).unwrap();
    let sql = "SELECT (SELECT max(r.end) FROM CUPTI_ACTIVITY_KIND_RUNTIME r WHERE r.globalTid / 16777216 = n.globalTid / 16777216) - n.start \
               FROM NVTX_EVENTS n WHERE n.end = (SELECT duration FROM ANALYSIS_DETAILS) AND n.text = 'step1'";
    let mut query = db.prepare(sql).unwrap();
    let open: Vec<i64> = query.query_map([], |r| r.get(0)).unwrap().map(Result::unwrap).collect();
    let tree = RangeTree::from_profile(&read_as(&path, Wants::EXPLORER).unwrap(), &Cancel::default()).unwrap();
    let step = tree.nodes.iter().find(|n| n.name == "step#").unwrap();
    assert_eq!((open.len(), step.count), (2, 4));
    assert_eq!(step.max, open.into_iter().max().unwrap() + 1);
    assert!(step.idle <= step.wall, "{step:?}");
}

/// A delay in a gap with other causes is where it is, not where the gap begins.
#[test]
fn a_single_delay_is_where_its_call_is() {
    let path = unpacked("procs");
    let db = Connection::open(&path).unwrap();
    let sql = "SELECT r.start FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN StringIds s ON s.id = r.nameId WHERE s.value LIKE 'cudaMalloc%' \
               AND r.start > (SELECT min(start) FROM CUPTI_ACTIVITY_KIND_KERNEL) ORDER BY r.end - r.start DESC LIMIT 1";
    let call: i64 = db.query_row(sql, [], |r| r.get(0)).unwrap();
    let triage = super::triage::judge(&read(&path).unwrap());
    let delay = triage.findings.iter().find(|f| f.id == Verdict::SingleDelay).unwrap();
    assert_eq!((delay.places[0].name.as_str(), delay.places[0].start), ("cudaMalloc", call), "{delay:?}");
}

/// A backward pass runs on a thread of its own, while the thread of its NVTX range waits: kernels in the range by SQL, by
/// the time of their calls.
#[test]
fn what_a_helper_launches_is_in_the_range_of_the_thread_that_waits() {
    let path = unpacked("ddp_rank0");
    let db = Connection::open(&path).unwrap();
    let kernels = |range: &str| -> i64 {
        let sql = "SELECT count(DISTINCT k.rowid) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r \
                   ON r.correlationId = k.correlationId AND r.globalTid / 16777216 = k.globalPid / 16777216 \
                   JOIN NVTX_EVENTS n ON r.start BETWEEN n.start AND n.end LEFT JOIN StringIds s ON s.id = n.textId \
                   WHERE coalesce(n.text, s.value) = ?1";
        db.query_row(sql, [range], |r| r.get(0)).unwrap()
    };
    let tree = RangeTree::from_profile(&read_as(&path, Wants::EXPLORER).unwrap(), &Cancel::default()).unwrap();
    let node = |name: &str| tree.nodes.iter().find(|n| n.name == name).unwrap();
    for name in ["backward", "forward", "optimizer"] {
        let node = node(name);
        assert_eq!(i64::try_from(node.kernels + node.collectives).unwrap(), kernels(name), "{name}");
    }
    let (backward, forward) = (node("backward"), node("forward"));
    assert!(backward.helped_percent().unwrap() > 90.0 && forward.helped == 0, "{backward:?}");
    assert!(tree.outside_percent() < 1.0);
}
