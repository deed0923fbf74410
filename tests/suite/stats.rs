//! The kernel table against `nsys stats -r cuda_gpu_kern_sum` on the same file (fixtures/stats, made by nsys 2023.4.4).

use super::support::{packed, read, read_as, root, scratch};
use std::collections::HashMap;
use warpscope::analysis::{GroupBy, Grouping, Paths};
use warpscope::import::{Names, Wants};

const REPORTS: [&str; 10] = ["llm", "zoo", "zoo_2023", "single", "threads", "procs", "graph_node", "graph_whole", "papi", "ddp_rank0"];

#[test]
fn grouped_by_demangled_name_every_figure_is_the_one_nsys_prints() {
    for name in REPORTS {
        let profile = read_as(&packed(name), Wants { names: Names::Demangled, ..Wants::TABLE }).unwrap();
        let grouping = Grouping::from_profile(&profile, GroupBy::Demangled, None);
        let ours: HashMap<&str, _> = grouping.rows.iter().map(|r| (r.name.as_str(), r)).collect();
        let mut csv = csv::Reader::from_path(root().join(format!("fixtures/stats/{name}_cuda_gpu_kern_sum.csv"))).unwrap();
        let mut rows = 0;
        for record in csv.records() {
            let record = record.unwrap();
            let row = ours.get(&record[8]).unwrap_or_else(|| panic!("{name}: no row for {}", &record[8]));
            let s = &row.stats;
            let exact = [(1, s.total), (2, i64::try_from(s.count).unwrap()), (5, s.min), (6, s.max)];
            for (column, value) in exact {
                assert_eq!(record[column].parse::<i64>().unwrap(), value, "{name}: {} column {column}", &record[8]);
            }
            let rounded = [(0, row.share_percent), (3, s.avg), (4, s.median.unwrap()), (7, s.stddev.unwrap())];
            for (column, value) in rounded {
                let theirs: f64 = record[column].parse().unwrap();
                assert!((theirs - value).abs() <= 0.05 + 1e-9, "{name}: {} column {column}: {theirs} and {value}", &record[8]);
            }
            rows += 1;
        }
        assert_eq!(rows, grouping.rows.len(), "{name}");
        assert!(rows >= 7, "{name}");
    }
}

#[test]
fn every_grouping_counts_every_launch_once() {
    for name in REPORTS {
        let profile = read(&packed(name)).unwrap();
        let paths = Paths::from_profile(&profile);
        let total: i64 = (0..profile.launches.len()).map(|r| profile.launches.duration(r)).sum();
        for by in GroupBy::ALL {
            let grouping = Grouping::from_profile(&profile, by, Some(&paths));
            if let Some(why) = grouping.unavailable {
                let known = [(GroupBy::Nvtx, profile.ranges.is_empty()), (GroupBy::Line, !profile.graph_nodes.have_stacks())];
                assert!(known.contains(&(by, true)), "{name} by {}: {why}", by.cli_name());
                continue;
            }
            let launches: u64 = grouping.rows.iter().map(|r| r.stats.count).sum();
            assert_eq!((launches, grouping.total_ns), (profile.launches.len() as u64, total), "{name} by {}", by.cli_name());
            for (i, row) in grouping.rows.iter().enumerate().take(5) {
                let members = grouping.row_launches(&profile, Some(&paths), i);
                assert_eq!(members.len() as u64, row.stats.count, "{name} by {}: {}", by.cli_name(), row.name);
            }
        }
        assert!(profile.launches.bytes_per_launch() <= 40, "{name}");
    }
}

#[test]
fn reading_on_one_thread_or_many_gives_the_same_profile() {
    let path = packed("llm");
    let with = |threads| {
        let profile = warpscope::import::open_profile(
            &path,
            &warpscope::import::Job { threads, cache: scratch().join("cache"), ..warpscope::import::Job::new(Wants::ALL, &|_| {}) },
        )
        .unwrap();
        let rows: Vec<_> = (0..profile.launches.len())
            .map(|r| {
                (
                    profile.launches.start(r),
                    profile.launches.kernel(r),
                    profile.launches.config(r),
                    profile.launches.place(r),
                    profile.launches.call(r),
                )
            })
            .collect();
        (rows, profile.kernels, profile.configs, profile.places, profile.ranges.names, profile.calls.names)
    };
    let one = with(1);
    for threads in [2, 7] {
        assert!(with(threads) == one, "{threads} threads");
    }
}

#[test]
fn the_summary_csv_of_a_report_ranks_like_the_report() {
    let summary = read(&root().join("fixtures/stats/llm_cuda_gpu_kern_sum.csv")).unwrap();
    let report = read(&packed("llm")).unwrap();
    let names = |p| {
        Grouping::from_profile(p, GroupBy::Demangled, None)
            .rows
            .iter()
            .map(|r| (r.name.clone(), r.stats.total, r.stats.count, r.stats.min, r.stats.max))
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&summary), names(&report));
    assert!(summary.launches.is_empty(), "a summary has no launches, and none are made up");
    assert!(Grouping::from_profile(&summary, GroupBy::Stream, None).unavailable.is_some());
    assert!(summary.notes[0].text.contains("per-kernel totals only"));
}

#[test]
fn the_trace_csv_of_a_report_has_its_launches() {
    let trace = read(&root().join("fixtures/stats/single_cuda_gpu_trace.csv")).unwrap();
    let report = read(&packed("single")).unwrap();
    assert_eq!(trace.launches.len(), report.launches.len());
    let durations = |p: &warpscope::model::Profile| (0..p.launches.len()).map(|r| p.launches.duration(r)).sum::<i64>();
    assert_eq!(durations(&trace), durations(&report));
    assert_eq!(trace.devices[0].name.as_deref(), Some("NVIDIA H200"));
    assert_eq!(trace.memops.len(), 1);
    assert!(trace.notes.iter().any(|n| n.text.contains("device order")));
    let ms = read(&root().join("fixtures/stats/zoo_cuda_gpu_trace_ms.csv")).unwrap();
    assert_eq!(ms.memops.get(0).unwrap().duration.0, 28_720_400, "a unit of ms is read as one");
}

/// What `nsys stats` prints for people, as TSV, or by grid and block has the totals of its CSV.
#[test]
fn every_form_of_nsys_stats_has_the_same_totals() {
    let at = |name: &str| root().join("fixtures/stats").join(name);
    let totals = |path: &std::path::Path| {
        let profile = read(path).unwrap();
        let one = |t: &warpscope::model::KernelTotal| {
            // In text, names are cut.
            let name: String = profile.kernels[t.kernel.0 as usize].demangled().chars().take(90).collect();
            (name, t.count, t.total, t.min, t.max)
        };
        let mut all: Vec<_> = profile.totals.iter().map(one).collect();
        all.sort_by(|a, b| a.0.cmp(&b.0).then(a.2.cmp(&b.2)));
        assert!(!all.is_empty(), "{}", path.display());
        all
    };
    assert_eq!(totals(&at("single_stats.txt")), totals(&at("single_cuda_gpu_kern_sum.csv")));
    assert_eq!(totals(&at("zoo_cuda_gpu_kern_gb_sum.csv")), totals(&at("zoo_cuda_gpu_kern_sum.csv")));
    let csv = std::fs::read(at("zoo_cuda_gpu_kern_sum.csv")).unwrap();
    let mut tsv = csv::WriterBuilder::new().delimiter(b'\t').from_writer(Vec::new());
    for row in csv::ReaderBuilder::new().has_headers(false).from_reader(&csv[..]).records() {
        tsv.write_record(&row.unwrap()).unwrap();
    }
    let copy = scratch().join("zoo.tsv");
    std::fs::write(&copy, tsv.into_inner().unwrap()).unwrap();
    assert_eq!(totals(&copy), totals(&at("zoo_cuda_gpu_kern_sum.csv")));
    // A truncated or damaged text is read as far as it goes, or refused.
    let text = std::fs::read(at("single_stats.txt")).unwrap();
    for end in (0..text.len()).step_by(61) {
        std::fs::write(&copy, &text[..end]).unwrap();
        let _ = read(&copy);
    }
}
