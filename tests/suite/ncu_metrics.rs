//! Metrics of Nsight Compute reports: values and units are those of `ncu --import FILE --page raw --csv --print-units base`; `warpscope
//! metrics` prints them; damage costs no more than what it hit.

use super::support::{root, scratch};
use assert_cmd::Command;
use std::path::{Path, PathBuf};
use warpscope::import::{Job, Wants, ncu};
use warpscope::model::{Metrics, ResultKind, Value};

fn fixture(name: &str) -> PathBuf {
    root().join("fixtures/ncu").join(name)
}

fn unpacked(name: &str) -> Vec<u8> {
    zstd::stream::decode_all(std::fs::File::open(fixture(name)).unwrap()).unwrap()
}

fn read(path: &Path) -> Result<Metrics, warpscope::import::ImportError> {
    ncu::read(path, &Job { cache: scratch().join("cache"), ..Job::new(Wants::ALL, &|_| {}) })
}

fn run(args: &[&str]) -> (i32, String, String) {
    let mut command = Command::cargo_bin("warpscope").unwrap();
    command.env_clear().env("HOME", scratch()).env("PATH", "/usr/bin:/bin").env("LANG", "C.UTF-8").current_dir(root());
    let out = command.timeout(std::time::Duration::from_secs(60)).args(args).output().unwrap();
    (out.status.code().unwrap(), String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap())
}

/// Whether ncu's text is this value at the text's precision.
fn same(text: &str, value: &Value) -> bool {
    let number = |have: f64| {
        let want: f64 = text.replace(',', "").parse().unwrap();
        let digits = text.split_once('.').map_or(0, |(_, d)| d.len());
        (want.is_nan() && have.is_nan()) || (want - have).abs() <= 0.500_000_1 * 10_f64.powi(-(digits as i32)) + have.abs() * 1e-12
    };
    match value {
        Value::Text(t) => &**t == text,
        Value::Integer(n) => number(*n as f64),
        Value::Float(f) => number(*f),
    }
}

#[test]
fn values_and_units_are_ncu_s() {
    // Files of an H200; the values are ncu 2024.1.1's.
    for (name, results, least) in [("full", 1, 2_100), ("three", 3, 1_500), ("graph", 1, 500)] {
        let metrics = read(&fixture(&format!("{name}.ncu-rep.zst"))).unwrap();
        let truth = unpacked(&format!("{name}_values.csv.zst"));
        let mut csv = csv::ReaderBuilder::new().has_headers(false).from_reader(&*truth);
        let rows: Vec<csv::StringRecord> = csv.records().map(Result::unwrap).collect();
        let (titles, units, rows) = (&rows[0], &rows[1], &rows[2..]);
        assert_eq!((rows.len(), metrics.results.len()), (results, results), "{name}");
        let first = titles.iter().position(|t| t == "CC").unwrap() + 1;
        let (mut compared, mut nan) = (0, 0);
        for (row, result) in rows.iter().zip(&metrics.results) {
            for ((title, unit), text) in titles.iter().zip(units).zip(row).skip(first) {
                let value = metrics.value(result, title);
                if text.is_empty() || text == "no data" {
                    assert_eq!(value, None, "{name} {title}: absent is not zero");
                    continue;
                }
                let value = value.unwrap_or_else(|| panic!("{name} {title}: ncu has {text}"));
                assert!(same(text, value), "{name} {title}: ncu {text}, we {value:?}");
                // This ncu gives some metrics of newer versions a unit that they cannot have: a percentage in sectors.
                let ours = ncu::units::unit(title);
                let quirk = ours == "%" || ["lts__t_sectors_srcunit_gcc", "TPC.TriageCompute."].iter().any(|p| title.starts_with(p));
                assert!(ours == unit || quirk, "{name} {title}: {unit:?}, we {ours:?}");
                compared += 1;
                nan += usize::from(text == "nan");
            }
        }
        assert!(compared >= least, "{name}: {compared}");
        assert_eq!(nan, usize::from(name == "full"), "{name}: NaN is neither absent nor zero");
    }
}

#[test]
fn a_result_says_what_it_is_about() {
    let full = read(&fixture("full.ncu-rep.zst")).unwrap();
    let r = &full.results[0];
    assert_eq!(
        (r.kernel.function(), r.kind, r.grid, r.block),
        ("copy_coalesced", ResultKind::Kernel, Some([2112, 1, 1]), Some([256, 1, 1]))
    );
    assert_eq!((full.compute_capability(r), full.integer(r, "device__attribute_device_index")), (Some((9, 0)), Some(0)));
    assert!(r.kernel.demangled.as_deref().is_some_and(|d| d.starts_with("copy_coalesced(")) && !r.failed);
    let graph = read(&fixture("graph.ncu-rep.zst")).unwrap();
    assert_eq!((graph.results[0].kind, graph.results[0].grid), (ResultKind::Graph, None));
}

#[test]
fn json_has_the_fields_of_the_contract() {
    let (code, out, err) = run(&["metrics", "fixtures/ncu/full.ncu-rep.zst", "--format", "json"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    let row = &json["rows"][0];
    assert_eq!((row["result"].as_u64(), row["kernel"].as_str(), row["cc"].as_str()), (Some(0), Some("copy_coalesced"), Some("9.0")));
    assert_eq!(
        (row["grid"].to_string(), row["block"].to_string(), row["device"].as_u64()),
        ("[2112,1,1]".into(), "[256,1,1]".into(), Some(0))
    );
    let metrics = row["metrics"].as_object().unwrap();
    assert!(metrics.len() > 2_100, "{}", metrics.len());
    assert_eq!(metrics["gpu__time_duration.sum"].to_string(), r#"{"unit":"nsecond","value":131968.0}"#);
    let nan: Vec<&String> = metrics.iter().filter(|(_, m)| m["value"] == "NaN").map(|(n, _)| n).collect();
    assert_eq!(nan.len(), 1, "JSON has no NaN: {nan:?}");
    assert!(metrics.values().all(|m| !m["value"].is_null() && m["unit"].is_string()));
}

#[test]
fn results_and_metrics_are_chosen() {
    let file = "fixtures/ncu/three.ncu-rep.zst";
    let (code, out, _) = run(&["metrics", file, "--metric", "TIME_duration.sum"]);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!((code, lines.len(), lines[0]), (0, 4, "result,kernel,grid,block,metric,value,unit"));
    assert!(lines[2].starts_with("1,saxpy,156x1x1,64x1x1,gpu__time_duration.sum,") && lines[2].ends_with(",nsecond"), "{}", lines[2]);
    let (_, one, _) = run(&["metrics", file, "--metric", "time_duration.sum", "--launch", "1"]);
    assert_eq!(one.lines().nth(1), Some(lines[2]));
    let (_, part, _) = run(&["metrics", file, "--metric", "time_duration.sum", "--kernel", "saxpy float"]);
    assert_eq!(part.lines().count(), 2, "a part of the full name: {part}");
    for (args, want) in [
        (vec!["--launch", "3"], "they go from 0 to 2"),
        (vec!["--kernel", "gemm"], "no kernel matches \"gemm\"; `warpscope metrics` lists them"),
        (vec!["--metric", "nonsense"], "no metric whose name contains \"nonsense\""),
        (vec!["--launch", "1", "--kernel", "saxpy double"], "result 1 is of another kernel"),
    ] {
        let (code, out, err) = run(&[vec!["metrics", file], args.clone()].concat());
        assert_eq!((code, out.as_str()), (2, ""), "{args:?}");
        assert!(err.contains(want) && err.lines().count() == 1, "{args:?}: {err}");
    }
    let (_, table, _) = run(&["metrics", file, "--metric", "registers_per_thread", "--format", "table"]);
    assert!(table.contains("register/thread") && table.lines().count() == 10, "{table}");
}

#[test]
fn damage_costs_only_what_it_hit() {
    let whole = unpacked("three.ncu-rep.zst");
    let path = scratch().join("cut-metrics.ncu-rep");
    std::fs::write(&path, &whole[..whole.len() - 100]).unwrap();
    let metrics = read(&path).unwrap();
    assert_eq!(metrics.results.len(), 2);
    assert!(metrics.notes.len() == 1 && metrics.notes[0].text.contains("damaged after result 1"), "{:?}", metrics.notes);
    let (code, out, err) = run(&["metrics", &path.to_string_lossy(), "--metric", "time_duration.sum", "--format", "csv"]);
    assert_eq!((code, out.lines().count()), (0, 3));
    assert!(err.contains("damaged after result 1"), "{err}");
    for (bytes, want) in [
        (&whole[..3], "not an Nsight Compute report"),
        (&whole[..60], "damaged"),
        (b"\"ID\",1\n".as_slice(), "not an Nsight Compute report"),
    ] {
        std::fs::write(&path, bytes).unwrap();
        let (code, out, err) = run(&["metrics", &path.to_string_lossy()]);
        assert_eq!((code, out.as_str()), (2, ""), "{err}");
        assert!(err.contains(want), "{err}");
    }
}

/// Every report of the corpus, if there is one: opened, or one sentence.
#[test]
fn metrics_of_the_corpus() {
    let Some(corpus) = std::env::var_os("WARPSCOPE_CORPUS").map(PathBuf::from) else {
        return;
    };
    let (mut files, mut values) = (0, 0);
    for folder in ["samples/ncu", "samples/odd", "captures/zoo", "captures/llm", "captures/launches"] {
        for entry in std::fs::read_dir(corpus.join(folder)).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = path.to_string_lossy().into_owned();
            if [".ncu-rep", ".ncu-rep.zst", ".nsight-cuprof-report"].iter().any(|s| name.ends_with(s)) {
                match read(&path) {
                    Ok(m) => {
                        assert!(m.results.iter().all(|r| r.values.iter().all(|(n, _)| (*n as usize) < m.names.len())), "{name}");
                        files += 1;
                        values += m.results.iter().map(|r| r.values.len()).sum::<usize>();
                    }
                    Err(e) => println!("{name}: {e}"),
                }
            }
        }
    }
    println!("corpus: {values} metric values of {files} Nsight Compute reports");
    assert!(files >= 28 && values > 100_000, "{files} {values}");
}
