//! Export to Parquet, read back by the library's own reader;
//! `tests/compare/parquet.py` does the same with DuckDB and Spark.

use super::support::root;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use warpscope::import::Wants;

fn export(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warpscope"));
    command.arg("export").args(words).current_dir(folder).env("XDG_CACHE_HOME", folder.join(".cache"));
    command.output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

type Row = BTreeMap<String, Field>;

fn rows(file: &Path) -> Vec<Row> {
    let reader = SerializedFileReader::new(std::fs::File::open(file).unwrap()).unwrap();
    let rows = reader.get_row_iter(None).unwrap();
    rows.map(|r| r.unwrap().into_columns().into_iter().collect()).collect()
}

fn long(row: &Row, name: &str) -> Option<i64> {
    match row[name] {
        Field::Long(n) => Some(n),
        Field::Null => None,
        ref other => panic!("{name}: {other:?}"),
    }
}

fn one(folder: &Path) -> PathBuf {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().flatten().map(|e| e.path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}

/// Every launch keeps its configuration, times and names; units are in the metadata;
/// folders are partitioned by run and rank.
#[test]
fn launches_come_back_from_parquet() {
    let folder = tempfile::tempdir().unwrap();
    let report = root().join("fixtures/triage/slow_rank_rank1.sqlite.zst");
    let said = export(folder.path(), &[report.to_str().unwrap(), "-o", "out", "--run", "a/b=c"]);
    assert!(said.status.success(), "{}", text(&said));
    let profile = super::support::read_as(&report, Wants::TRIAGE).unwrap();
    let at = |table: &str| one(&folder.path().join(format!("out/{table}/run=a%2Fb%3Dc/rank=1")));
    let launches = rows(&at("launches"));
    assert_eq!(launches.len(), profile.launches.len());
    for (i, row) in launches.iter().enumerate() {
        let kernel = &profile.kernels[profile.launches.kernel(i).0 as usize];
        assert_eq!(row["kernel"], Field::Str(kernel.function().to_owned()));
        assert_eq!(
            (long(row, "start_ns"), long(row, "duration_ns")),
            (Some(profile.launches.start(i)), Some(profile.launches.duration(i)))
        );
        assert_eq!(long(row, "call_start_ns"), profile.launches.call(i).map(|c| c.0));
        let config = &profile.configs[profile.launches.config(i).unwrap().0 as usize];
        assert_eq!(long(row, "grid_x"), config.grid.map(|g| i64::from(g[0])));
        assert_eq!(long(row, "graph_node"), None);
    }
    let copies = rows(&at("memcpys"));
    let bytes: i64 = copies.iter().filter_map(|r| long(r, "bytes")).sum();
    assert_eq!(bytes, profile.memops.iter().filter_map(|m| m.bytes).map(|b| b.0 as i64).sum::<i64>());
    assert_eq!((rows(&at("ranges")).len(), rows(&at("calls")).len()), (profile.ranges.len(), profile.calls.len()));
    assert_eq!(rows(&at("findings"))[0]["id"], Field::Str("gpu-bound".to_owned()));
    assert_eq!(rows(&at("collectives")).len(), 90);
    let reader = SerializedFileReader::new(std::fs::File::open(at("launches")).unwrap()).unwrap();
    let keys = reader.metadata().file_metadata().key_value_metadata().unwrap();
    assert!(keys.iter().any(|k| k.key == "unit.duration_ns" && k.value.as_deref() == Some("ns")));
    // No temporary files remain, and existing files are replaced only with `--force`.
    let again = export(folder.path(), &[report.to_str().unwrap(), "-o", "out", "--run", "a/b=c", "--tables", "launches"]);
    assert!(!again.status.success() && text(&again).contains("--force"), "{}", text(&again));
    let forced = export(folder.path(), &[report.to_str().unwrap(), "-o", "out", "--run", "a/b=c", "--tables", "launches", "--force"]);
    assert!(forced.status.success() && text(&forced).lines().count() == 1, "{}", text(&forced));
    assert!(text(&export(folder.path(), &["x", "-o", "o", "--tables", "nonsense"])).contains("the tables are launches, calls"));
}

/// A read-only folder and a report of single kernels each give a one-line error.
#[test]
fn what_cannot_be_exported_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let ncu = root().join("fixtures/ncu/full.ncu-rep.zst");
    assert!(text(&export(folder.path(), &[ncu.to_str().unwrap(), "-o", "out"])).contains("single kernels"));
    std::fs::write(folder.path().join("file"), "").unwrap();
    let report = root().join("fixtures/triage/slow_rank_rank1.sqlite.zst");
    let said = export(folder.path(), &[report.to_str().unwrap(), "-o", "file"]);
    assert!(!said.status.success() && text(&said).lines().count() == 1, "{}", text(&said));
}
