//! Work inside a range: kernels and copies, in the tree of ranges and in its data.

use super::support::{Explorer, read, root};
use warpscope::analysis::range_tree::RangeTree;
use warpscope::app::KeyScope;
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
