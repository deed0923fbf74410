//! Launch order against the program's own log (truth files of `captures`: process, index, grid.x, kernel).

use super::support::{packed, read, root};
use std::collections::BTreeMap;
use warpscope::model::LaunchOrder;

/// Number of times the program launches its graph.
const REPLAYS: usize = 4;

/// Grid sizes by process, in launch order. A `GRAPH` line is a node; nodes run once per graph launch.
fn truth(name: &str) -> BTreeMap<u32, Vec<u32>> {
    let text = std::fs::read_to_string(root().join(format!("fixtures/nsys/truth_{name}.txt"))).unwrap();
    let mut out: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let nodes: Vec<u32> =
        text.lines().filter_map(|l| l.strip_prefix("GRAPH,")).map(|l| l.split(',').next().unwrap().parse().unwrap()).collect();
    let mut graphs_done = nodes.is_empty();
    let mut last = 0;
    for line in text.lines() {
        if line.starts_with("GRAPH,") && !graphs_done {
            let list = out.get_mut(&last).unwrap();
            (0..REPLAYS).for_each(|_| list.extend(&nodes));
            graphs_done = true;
        } else if line.starts_with("TRUTH,") {
            let fields: Vec<&str> = line.splitn(5, ',').collect();
            last = fields[1].parse().unwrap();
            out.entry(last).or_default().push(fields[3].parse().unwrap());
        }
    }
    out
}

fn measured(fixture: &str) -> BTreeMap<u32, Vec<u32>> {
    let profile = read(&packed(fixture)).unwrap();
    assert_eq!(profile.order, LaunchOrder::Host, "{fixture}");
    let mut out: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for row in 0..profile.launches.len() {
        let place = &profile.places[profile.launches.place(row).unwrap().0 as usize];
        let config = &profile.configs[profile.launches.config(row).unwrap().0 as usize];
        out.entry(place.pid.unwrap()).or_default().push(config.grid.unwrap()[0]);
    }
    out
}

#[test]
fn launches_come_in_the_order_in_which_the_program_made_them() {
    for (fixture, name) in [("single", "single"), ("threads", "threads"), ("procs", "procs"), ("graph_node", "graph")] {
        assert_eq!(measured(fixture), truth(name), "{fixture}");
    }
}

#[test]
fn several_threads_and_streams_are_told_apart() {
    let profile = read(&packed("threads")).unwrap();
    let threads: std::collections::BTreeSet<_> = profile.places.iter().filter_map(|p| p.thread).collect();
    let streams: std::collections::BTreeSet<_> = profile.places.iter().filter_map(|p| p.stream).collect();
    assert!(threads.len() >= 2 && streams.len() >= 2, "{threads:?} {streams:?}");
    let profile = read(&packed("procs")).unwrap();
    assert_eq!(profile.processes.len(), 2);
}

#[test]
fn nodes_of_a_graph_are_launches_and_whole_graphs_are_not() {
    let node = read(&packed("graph_node")).unwrap();
    assert_eq!((0..node.launches.len()).filter(|&r| node.launches.graph_node(r).is_some()).count(), 20);
    assert!(node.graphs.is_empty());
    let whole = read(&packed("graph_whole")).unwrap();
    assert_eq!((whole.graphs.len(), whole.launches.len()), (4, 41));
    assert!(whole.notes.iter().any(|n| n.fix.as_deref().is_some_and(|f| f.contains("--cuda-graph-trace=node"))));
}
