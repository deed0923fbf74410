//! Metrics of Nsight Compute reports: values and units equal those of `ncu --import FILE --page raw --csv --print-units
//! base`; `warpscope metrics` prints them; damage loses only the damaged part.

use super::support::{packed, root, run, scratch};
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
    ncu::read_metrics(path, &Job { cache: scratch().join("cache"), ..Job::new(Wants::ALL, &|_| {}) }, None)
}

fn written(name: &str, bytes: &[u8]) -> PathBuf {
    let path = scratch().join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// Returns whether ncu's text equals this value at the text's precision.
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
    // Files from an H200; the values are ncu 2024.1.1's.
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
                // This ncu gives some metrics of newer versions an impossible unit: a percentage in sectors.
                let ours = ncu::units::metric_unit(title);
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
    assert_eq!((r.compute_capability, r.device), (Some((9, 0)), Some(0)));
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
    assert_eq!(metrics["gpu__time_duration.sum"].to_string(), r#"{"value":131968.0,"unit":"nsecond"}"#);
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
        (vec!["--launch", "3"], "results are numbered 0 to 2"),
        (vec!["--kernel", "gemm"], "no kernel matches \"gemm\"; `warpscope metrics` lists them"),
        (vec!["--metric", "nonsense"], "no metric whose name contains \"nonsense\""),
        (vec!["--launch", "1", "--kernel", "saxpy double"], "result 1 belongs to another kernel"),
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
    let single = packed("single").to_string_lossy().into_owned();
    let (code, out, err) = run(&["rerun", &single, "--kernel", "saxpy", "--slowest=3", "--verify", &path.to_string_lossy()]);
    assert!(code == 1 && out.contains("2 results instead of 3") && err.contains("damaged after result 1"), "{code} {out} {err}");
    for (bytes, want) in [
        (&whole[..3], "a truncated Nsight Compute report"),
        (&whole[..60], "damaged"),
        (b"\"ID\",1\n".as_slice(), "not an Nsight Compute report"),
    ] {
        std::fs::write(&path, bytes).unwrap();
        let (code, out, err) = run(&["metrics", &path.to_string_lossy()]);
        assert_eq!((code, out.as_str()), (3, ""), "{err}");
        assert!(err.contains(want), "{err}");
    }
}

/// Every report of the corpus, if there is one, opens or gives a one-line error.
#[test]
fn metrics_of_the_corpus() {
    let Some(corpus) = std::env::var_os("WARPSCOPE_CORPUS").map(PathBuf::from) else {
        return;
    };
    let (mut files, mut values) = (0, 0);
    for folder in ["samples/ncu", "samples/odd", "captures/zoo", "captures/llm", "captures/launches", "domain/probe/raw"] {
        for entry in std::fs::read_dir(corpus.join(folder)).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = path.to_string_lossy().into_owned();
            let csv = name.ends_with(".csv") && name.contains("ncu_");
            if csv || [".ncu-rep", ".ncu-rep.zst", ".nsight-cuprof-report"].iter().any(|s| name.ends_with(s)) {
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
    assert!(files >= 33 && values > 100_000, "{files} {values}");
}

fn csv_of(name: &str, text: &str) -> Metrics {
    let path = scratch().join(name);
    std::fs::write(&path, text).unwrap();
    read(&path).unwrap_or_else(|e| panic!("{e}"))
}

/// The text that ncu prints without `--csv` gives the same values as its CSV, also in a live log between the program's
/// own lines.
#[test]
fn pages_of_text_say_what_their_csv_says() {
    let text = std::fs::read_to_string(fixture("one_details.txt")).unwrap();
    let csv = read(&fixture("one_details.csv")).unwrap();
    let log = format!(
        "==PROF== Connected to process 959 (/tmp/launches)\nMetric Name Metric Unit Metric Value\n  loss, Context 3 of 4\n{text}done\n"
    );
    for text in [text, log] {
        let page = read(&written("one.log", text.as_bytes())).unwrap();
        let values = |of: &Metrics| {
            let all = of.results[0]
                .values
                .iter()
                .map(|(name, value)| (of.names[*name as usize].clone(), of.units[*name as usize].clone(), value.clone()));
            let mut all: Vec<_> = all.map(|v| format!("{v:?}")).collect();
            all.sort();
            all
        };
        assert_eq!(values(&page), values(&csv));
        let (a, b) = (&page.results[0], &csv.results[0]);
        assert_eq!(
            (&a.kernel, a.grid, a.block, a.pid, a.stream, a.context, a.device, a.compute_capability),
            (&b.kernel, b.grid, b.block, b.pid, b.stream, b.context, b.device, b.compute_capability)
        );
    }
    // A page that is truncated anywhere does no harm.
    let text = std::fs::read_to_string(fixture("one_details.txt")).unwrap();
    for end in (0..text.len()).step_by(37) {
        let _ = read(&written("cut.log", &text.as_bytes()[..end]));
    }
    assert!(read(&written("summary.log", b"==PROF== Connected to process 1\n  k, Device 0, CC 9.0, Invocations 1\n")).is_err());
}

#[test]
fn csvs_of_all_pages_units_and_locales_say_what_the_report_says() {
    // Output of ncu 2024.1.1 for the report: raw in base units; raw, scaled, in a German locale;
    // details with metric names in a French one; the raw page as text.
    for (csv, report, least) in [
        ("full_values.csv", "full", 2_100),
        ("full_auto_de.csv", "full", 2_100),
        ("full_details_fr.csv", "full", 60),
        ("full_raw.txt", "full", 2_100),
    ] {
        let report = read(&fixture(&format!("{report}.ncu-rep.zst"))).unwrap();
        let metrics = read(&fixture(&format!("{csv}.zst"))).unwrap();
        assert!(metrics.notes.is_empty(), "{csv}: {:?}", metrics.notes);
        assert_eq!(metrics.results.len(), report.results.len(), "{csv}");
        for (have, want) in metrics.results.iter().zip(&report.results) {
            assert_eq!(
                (have.kernel.function(), have.grid, have.block, have.device, have.compute_capability, have.pid, have.stream),
                (want.kernel.function(), want.grid, want.block, want.device, want.compute_capability, want.pid, want.stream)
            );
            let mut compared = 0;
            for (name, value) in &have.values {
                let (name, unit) = (&metrics.names[*name as usize], &metrics.units[*name as usize]);
                let Some(truth) = report.value(want, name) else {
                    assert_eq!(csv, "full_details_fr.csv", "{name} is not in the report");
                    continue;
                };
                let number = |v: &Value| match v {
                    Value::Integer(n) => Some(*n as f64),
                    Value::Float(f) => Some(*f),
                    Value::Text(_) => None,
                };
                match (number(value), number(truth)) {
                    // Scaled units keep three digits; NaN is printed as 0 there.
                    (Some(a), Some(b)) => assert!(
                        (a - b).abs() <= (b.abs() * 0.005_01).max(0.005_01) || b.is_nan() && (a.is_nan() || a == 0.0),
                        "{csv} {name}: {a} {unit}, not {b}"
                    ),
                    _ => assert_eq!(value, truth, "{csv} {name}"),
                }
                let wrong_in_ncu = ["lts__t_sectors_srcunit_gcc", "TPC.TriageCompute."].iter().any(|p| name.starts_with(p));
                assert!(wrong_in_ncu || unit.is_empty() || **unit == *ncu::units::metric_unit(name), "{csv} {name}: {unit}");
                compared += 1;
            }
            assert!(compared >= least, "{csv}: {compared}");
        }
    }
}

#[test]
fn labels_of_a_details_page_stand_under_their_section() {
    let metrics = read(&fixture("three_details.csv.zst")).unwrap();
    assert_eq!(metrics.results.len(), 3);
    let r = &metrics.results[0];
    // The same label in two sections, with two units.
    let both = ["GPU Speed Of Light Throughput: Duration", "Launch Statistics: Registers Per Thread"].map(|n| metrics.value(r, n));
    assert!(matches!(both, [Some(Value::Float(ns)), Some(Value::Integer(16))] if *ns > 1_000.0), "{both:?}");
    let at = metrics.names.iter().position(|n| &**n == "GPU Speed Of Light Throughput: Duration").unwrap();
    assert_eq!(&*metrics.units[at], "nsecond");
}

const HEAD: &str = r#""ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","dram__bytes.sum","launch__registers_per_thread","note__text""#;
const UNITS: &str = r#""","","","","","","","","","","","Mbyte","register/thread","""#;

fn row(id: u32, tail: &str) -> String {
    format!("\"{id}\",\"77\",\"app\",\"127.0.0.1\",\"foo(int *)\",\"1\",\"7\",\"(64, 1, 1)\",\"(9, 1, 1)\",\"0\",\"8.6\",{tail}")
}

#[test]
fn a_live_log_is_read_amid_other_lines() {
    let log = [
        "\u{feff}==PROF== Connected to process 77 (/app)\r",
        "step 1, loss \"0.5",
        HEAD,
        UNITS,
        "1,2,3,4,5,6,7,8,9,10,11,12,13,14",
        &row(0, "\"2.50\",\"32\",\"a \"\"b\"\"\""),
        "==PROF== Profiling \"foo\" - 1: 0%....100% - 1 pass",
        "\"0\",\"Tesla T4\",\"0\",\"0-1\",\"0\"",
        &row(1, "\"n/a\",\"\",\"two\nlines\""),
        "==PROF== Disconnected from process 77",
        HEAD,
        &UNITS.replace("Mbyte", "Gbyte"),
        &row(0, "\"(!) nan\",\"33\",\"c\""),
    ]
    .join("\n");
    let m = csv_of("live-metrics.csv", &log);
    assert_eq!(m.results.len(), 3, "a second run in the same file starts anew");
    assert!(m.notes.is_empty(), "{:?}", m.notes);
    let of = |i: usize, name: &str| m.value(&m.results[i], name).cloned();
    assert_eq!(of(0, "dram__bytes.sum"), Some(Value::Float(2.5e6)));
    assert_eq!(
        (of(0, "launch__registers_per_thread"), of(0, "note__text")),
        (Some(Value::Integer(32)), Some(Value::Text("a \"b\"".into())))
    );
    assert_eq!((of(1, "dram__bytes.sum"), of(1, "launch__registers_per_thread")), (None, None), "absent is neither zero nor NaN");
    assert_eq!(of(1, "note__text"), Some(Value::Text("two\nlines".into())));
    assert!(matches!(of(2, "dram__bytes.sum"), Some(Value::Float(f)) if f.is_nan()));
    assert_eq!(&*m.units[0], "byte");
    let r = &m.results[0];
    assert_eq!(
        (r.grid, r.block, r.device, r.compute_capability, r.pid),
        (Some([9, 1, 1]), Some([64, 1, 1]), Some(0), Some((8, 6)), Some(77))
    );
    // A spreadsheet removed the quotes.
    let plain = "ID,Process ID,Kernel Name,dram__bytes.sum\n,,,byte\n0,5,foo,12\n";
    let m = csv_of("plain.csv", plain);
    assert_eq!((m.results.len(), m.value(&m.results[0], "dram__bytes.sum")), (1, Some(&Value::Integer(12))));
}

#[test]
fn a_cut_csv_gives_its_whole_rows_and_a_log_without_results_its_reason() {
    let whole = [HEAD, UNITS, &row(0, "\"1.00\",\"32\",\"a\""), &row(1, "\"2.00\",\"32\",\"b\""), ""].join("\n");
    let mut seen = std::collections::BTreeSet::new();
    for cut in (HEAD.len()..whole.len()).step_by(3) {
        let m = csv_of("cut.csv", &whole[..cut]);
        for r in &m.results {
            assert!((r.kernel.demangled.as_deref(), r.grid) == (Some("foo(int *)"), Some([9, 1, 1])), "{cut}");
        }
        seen.insert((m.results.len(), m.notes.len()));
    }
    // Pairs of results and notes: a table without rows and the note about it, a whole result, and a result with a note.
    assert!(seen.contains(&(0, 1)) && seen.contains(&(1, 0)) && seen.contains(&(1, 1)), "{seen:?}");
    assert!(csv_of("cut.csv", &whole[..whole.len() - 6]).notes[0].text.contains("damaged after result 0"));
    for (log, want) in [
        ("==PROF== Connected\n==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n", "NVreg_RestrictProfilingToAdminUsers=0"),
        ("==PROF== Connected\nhello\n==WARNING== No kernels were profiled.\n", "check --kernel-name"),
        ("==ERROR== The application returned an error code (1).\n", "fix that"),
        ("==PROF== Connected to process 1\nhello\n", "a log of ncu without a table"),
        ("hello\n", "not an Nsight Compute report"),
    ] {
        let path = scratch().join("log.txt");
        std::fs::write(&path, log).unwrap();
        let (code, out, err) = run(&["metrics", &path.to_string_lossy()]);
        assert_eq!((code, out.as_str()), (3, ""), "{err}");
        assert!(err.contains(want) && err.lines().count() == 1, "{err}");
    }
}

#[test]
fn rows_are_of_their_own_result() {
    // Two concatenated logs without the second header: ids repeat.
    let m = csv_of("twice.csv", &[HEAD, UNITS, &row(0, "\"1.00\",\"32\",\"a\""), &row(0, "\"2.00\",\"33\",\"b\""), ""].join("\n"));
    assert_eq!(m.results.len(), 2);
    assert_eq!(m.value(&m.results[1], "launch__registers_per_thread"), Some(&Value::Integer(33)));
    let details = |rows: &str| {
        csv_of(
            "details.csv",
            &format!(
                "\"ID\",\"Process ID\",\"Kernel Name\",\"Grid Size\",\"Section Name\",\"Metric Name\",\"Metric Unit\",\"Metric Value\"\n{rows}"
            ),
        )
    };
    let m = details(
        "\"0\",\"7\",\"k\",\"(1, 1, 1)\",\"S\",\"Bandwidth\",\"byte\",\"1\"\n\"0\",\"7\",\"k\",\"(1, 1, 1)\",\"S\",\"Bandwidth\",\"%\",\"2\"\n",
    );
    assert_eq!(["S: Bandwidth", "S: Bandwidth (2)"].map(|n| m.value(&m.results[0], n).cloned()), [1, 2].map(|n| Some(Value::Integer(n))));
    let m =
        details("\"0\",\"7\",\"range\",\"(0, 0, 0)\",\"S\",\"A\",\"\",\"1\"\n\"1\",\"7\",\"k\",\"(0, 0, 0)\",\"S\",\"A\",\"\",\"n/a\"\n");
    assert_eq!(m.results.iter().map(|r| (r.kind, r.failed)).collect::<Vec<_>>(), [(ResultKind::Range, false), (ResultKind::Kernel, true)]);
    assert_eq!(csv_of("head.csv", HEAD).notes[0].text, "The table has no results");
}

#[test]
fn numbers_in_doubt_are_told_and_can_be_settled() {
    let path = scratch().join("doubt.csv");
    std::fs::write(&path, [HEAD, UNITS, &row(0, "\"117.344\",\"32\",\"\""), ""].join("\n")).unwrap();
    let value = |extra: &[&str]| {
        let (code, out, err) = run(&[&["metrics", &*path.to_string_lossy(), "--metric", "dram", "--format", "csv"], extra].concat());
        assert_eq!(code, 0, "{err}");
        (out.lines().nth(1).unwrap().rsplit(',').nth(1).unwrap().to_owned(), err.contains("117 thousand"))
    };
    assert_eq!(value(&[]), ("117344000000".to_owned(), true));
    assert_eq!(value(&["--decimal", "point"]), ("117344000".to_owned(), false));
    assert_eq!(value(&["--decimal", "comma"]), ("117344000000".to_owned(), false));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, ..proptest::prelude::ProptestConfig::with_cases(128) })]

    /// Reading arbitrary text ends with results or an error message.
    #[test]
    fn any_text_is_read_or_refused(text in "(\"ID\",\"Process ID\",\"Kernel Name\",\"Metric Value\"|\"[0-9]{1,2}\",|,|\n|\"|==ERROR== x|[0-9.,]{1,8}|[a-zé(]{1,5}){0,60}") {
        let path = scratch().join("any.csv");
        std::fs::write(&path, &text).unwrap();
        if let Err(e) = read(&path) {
            proptest::prop_assert!(!e.to_string().contains('\n'));
        }
    }
}

#[test]
fn sections_rules_and_facts_on_request() {
    let full = fixture("full.ncu-rep.zst");
    let full = full.to_str().unwrap();
    let (rc, out, _) = run(&["metrics", full, "--sections"]);
    assert_eq!(rc, 0);
    // ncu's own label, and the value that it prints as 86.90 %.
    let line = out.lines().find(|l| l.contains("SpeedOfLight,") && l.contains("DRAM Throughput")).unwrap();
    assert!(line.contains("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"), "{line}");
    let (rc, out, _) = run(&["metrics", full, "--rules", "--format", "json"]);
    let rules: serde_json::Value = serde_json::from_str(&out).unwrap();
    let rows = rules["rows"].as_array().unwrap();
    assert!(rc == 0 && rows.len() >= 7, "{out}");
    assert!(rows.iter().any(|r| r["kind"] == "OPT" && r["speedup_percent"].as_f64().is_some()));
    assert!(rows.iter().any(|r| r["links"].as_array().unwrap().iter().any(|l| l.as_str().unwrap().starts_with("section "))));
    assert!(rows.iter().all(|r| !r["text"].as_str().unwrap().contains("@section")));
    // Session facts are private: shown only on request.
    let demo = root().join("fixtures/demo/llm_gemm.ncu-rep.zst");
    let demo = demo.to_str().unwrap();
    let (_, plain, _) = run(&["metrics", demo, "--format", "json"]);
    assert!(!plain.contains("llm.py"));
    let (_, facts, _) = run(&["metrics", demo, "--session"]);
    assert!(facts.contains("--kernel-name regex:nvjet --launch-skip 5 --launch-count 4"), "{facts}");
    let (rc, _, err) = run(&["metrics", fixture("three_raw.csv").to_str().unwrap(), "--rules"]);
    assert!(rc == 2 && err.contains("only a .ncu-rep"), "{err}");
}

#[test]
fn what_is_no_text_or_no_result_costs_only_itself() {
    let whole = unpacked("../demo/llm_gemm.ncu-rep.zst");
    let path = scratch().join("odd_bytes.ncu-rep");
    let after = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        read(&path)
    };
    let before = after(&whole).unwrap();
    let word = before.tool_argv.iter().find(|w| w.contains(".py")).unwrap();
    // A command in Latin-1: the report is complete, and the command is left out.
    let mut latin = whole.clone();
    let at = whole.windows(word.len()).position(|w| w == word.as_bytes()).unwrap();
    latin[at] = 0xe9;
    let m = after(&latin).unwrap();
    assert_eq!((m.results.len(), m.tool_argv.len()), (before.results.len(), 0));
    // Extra bytes at the end look like a truncated length.
    for more in 1..4 {
        let m = after(&[&whole[..], &[1; 3][..more]].concat()).unwrap();
        assert_eq!(m.results.len(), before.results.len());
        assert!(m.notes.iter().any(|n| n.text.contains("within a length")), "{more}: {:?}", m.notes);
    }
}
