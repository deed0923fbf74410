//! Profiled kernels read from Nsight Compute reports and CSVs, intact and
//! damaged; and the comparison with the selection.

use super::support::{packed, read, root, scratch};
use std::path::{Path, PathBuf};
use warpscope::import::{ImportError, Job, Wants, ncu};
use warpscope::model::{LaunchId, ResultMetrics};
use warpscope::rerun::{self, Options, ProfiledResult, Target, Verdict};

fn fixture(name: &str) -> PathBuf {
    root().join("fixtures/ncu").join(name)
}

fn results(path: &Path) -> Result<Vec<ResultMetrics>, ImportError> {
    ncu::read_metrics(path, &Job { cache: scratch().join("cache"), ..Job::new(Wants::ALL, &|_| {}) }, None).map(|m| m.results)
}

fn written(name: &str, bytes: &[u8]) -> PathBuf {
    let path = scratch().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn reports_and_csvs_give_kernel_grid_and_block() {
    // Files made on an H200 by this program's commands; the grids are those of the profiled program.
    for (file, names, grids) in [
        ("one.ncu-rep.zst", vec!["saxpy_v2"], vec![Some(35)]),
        ("c_kernel.ncu-rep.zst", vec!["c_kernel"], vec![Some(8)]),
        ("three.ncu-rep.zst", vec!["saxpy"; 3], vec![Some(133), Some(156), Some(158)]),
        ("three_raw.csv", vec!["saxpy"; 3], vec![Some(133), Some(156), Some(158)]),
        ("one_details.csv", vec!["saxpy_v2"], vec![Some(35)]),
    ] {
        let found = results(&fixture(file)).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(found.iter().map(|r| r.kernel.function()).collect::<Vec<_>>(), names, "{file}");
        assert_eq!(found.iter().map(|r| r.grid.map(|g| g[0])).collect::<Vec<_>>(), grids, "{file}");
        assert!(found.iter().all(|r| r.block == Some([64, 1, 1]) && !r.failed), "{file}");
    }
    let full: Vec<_> = results(&fixture("three_raw.csv")).unwrap().into_iter().map(|r| r.kernel.demangled.unwrap().to_string()).collect();
    assert_eq!(full, ["saxpy(double *)", "saxpy(float *)", "saxpy(double *)"]);
    let graph = results(&fixture("graph.ncu-rep.zst")).unwrap();
    assert_eq!((graph.len(), graph[0].kernel.function(), graph[0].grid), (1, "graph", None));
    let c = &results(&fixture("c_kernel.ncu-rep.zst")).unwrap()[0];
    assert_eq!((c.kernel.demangled.as_deref(), c.kernel.mangled.as_deref()), (None, Some("c_kernel")), "an empty full name is none");
}

#[test]
fn a_live_log_with_the_program_s_own_lines_is_read() {
    let csv = std::fs::read_to_string(fixture("three_raw.csv")).unwrap();
    let (head, rows) = csv.split_once('\n').unwrap();
    let log = format!(
        "==PROF== Connected to process 1 (/tmp/launches)\nTRUTH,1,0,1,\"c_kernel\n==PROF== Profiling \"saxpy\" - 0 (1/3): 0%....100% - 1 pass\n{head}\n{}",
        rows.replace("\n\"1\"", "\nTRUTH,1,2,3,x\n==PROF== Profiling \"saxpy\": 0%\n\"1\"")
    );
    let found = results(&written("live.csv", log.as_bytes())).unwrap();
    assert_eq!(found.iter().map(|r| r.grid.unwrap()[0]).collect::<Vec<_>>(), [133, 156, 158]);
    let log = "==PROF== Connected to process 1\n==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n";
    let error = results(&written("noperm.log", log.as_bytes())).unwrap_err().to_string();
    assert!(error.contains("ERR_NVGPUCTRPERM"), "{error}");
}

#[test]
fn other_files_are_refused_in_a_sentence() {
    for path in
        [packed("single"), written("text.txt", b"hello\n"), written("bin", b"\x7fELF\0\0"), written("csv.csv", b"\"ID\",\"x\"\n1,2\n")]
    {
        let error = results(&path).unwrap_err().to_string();
        assert!(error.contains("not an Nsight Compute report"), "{error}");
    }
    assert!(results(Path::new("/nonexistent")).is_err());
}

#[test]
fn damage_gives_what_is_whole_or_a_sentence() {
    let whole = zstd::stream::decode_all(std::fs::File::open(fixture("three.ncu-rep.zst")).unwrap()).unwrap();
    let path = scratch().join("damaged.ncu-rep");
    let mut seen = std::collections::BTreeSet::new();
    for cut in (0..whole.len()).step_by(1_499).chain(0..60) {
        std::fs::write(&path, &whole[..cut]).unwrap();
        seen.insert(results(&path).map_or(-1, |r| i64::try_from(r.len()).unwrap()));
    }
    assert!(seen.contains(&1) && seen.contains(&2) && seen.contains(&-1), "{seen:?}");
    // Any byte may be corrupt: lengths of 4 GiB, counts of a billion.
    let mut state = 12_345_u32;
    for _ in 0..600 {
        let mut bytes = whole.clone();
        for _ in 0..4 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let at = (state >> 8) as usize % if state & 1 == 0 { 200 } else { bytes.len() };
            bytes[at] = (state >> 3) as u8;
        }
        std::fs::write(&path, &bytes).unwrap();
        let _ = results(&path);
    }
}

#[test]
fn a_result_is_compared_with_what_was_selected() {
    let single = read(&packed("single")).unwrap();
    let verdict = |launches: &[u32], file: &str| {
        let target = Target::Launches(launches.iter().copied().map(LaunchId).collect());
        let plan = rerun::plan(&single, &target, &Options::default()).unwrap();
        let selects: Vec<_> = plan.commands.iter().flat_map(|c| c.selects.clone()).collect();
        let found: Vec<_> = results(&fixture(file)).unwrap().iter().map(ProfiledResult::from).collect();
        rerun::verify(&selects, &found)
    };
    assert_eq!(verdict(&[34], "one.ncu-rep.zst").sentence(), "verified: saxpy_v2 with grid 35 and block 64, as selected");
    assert_eq!(verdict(&[34], "one_details.csv").sentence(), "verified: saxpy_v2 with grid 35 and block 64, as selected");
    assert!(matches!(verdict(&[132, 155, 157], "three.ncu-rep.zst"), Verdict::Verified(_)));
    assert!(matches!(verdict(&[132, 155, 157], "three_raw.csv"), Verdict::Verified(_)));
    assert_eq!(verdict(&[35], "one.ncu-rep.zst").sentence(), "differs: grid 35 instead of 36");
    // An overload is another kernel, as its symbol shows.
    assert!(verdict(&[34], "c_kernel.ncu-rep.zst").sentence().contains("kernel c_kernel instead of saxpy_v2"));
    assert!(verdict(&[132], "three.ncu-rep.zst").sentence().contains("3 results instead of 1"));
    let graphs = read(&packed("graph_whole")).unwrap();
    let plan = rerun::plan(&graphs, &Target::Graph(1), &Options::default()).unwrap();
    let found: Vec<_> = results(&fixture("graph.ncu-rep.zst")).unwrap().iter().map(ProfiledResult::from).collect();
    assert_eq!(
        rerun::verify(&plan.commands[0].selects, &found).sentence(),
        "verified: one graph was profiled (a result does not say which)"
    );
}

/// Every Nsight Compute report of the corpus, if there is one.
#[test]
fn every_report_of_the_corpus_is_read() {
    let Some(corpus) = std::env::var_os("WARPSCOPE_CORPUS").map(PathBuf::from) else {
        return;
    };
    let mut read = 0;
    for folder in ["samples/ncu", "captures/zoo", "samples/odd"] {
        for entry in std::fs::read_dir(corpus.join(folder)).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = path.to_string_lossy().into_owned();
            if ["ncu-rep", "ncu-rep.zst", "nsight-cuprof-report"].iter().any(|s| name.ends_with(s)) {
                match results(&path) {
                    Ok(found) => {
                        assert!(found.iter().all(|r| !r.kernel.function().is_empty()), "{name}");
                        read += usize::from(!found.is_empty());
                    }
                    Err(e) => println!("{name}: {e}"),
                }
            }
        }
    }
    println!("{read} reports with results");
    assert!(read > 20);
}
