//! The jq and SQL lines of `warpscope help formats` return the results that the page describes.

use super::support::{packed, root, scratch};
use rusqlite::Connection;
use std::process::{Command, Stdio};

/// Commands in the page's shell block, with real reports in place of its file names.
fn lines() -> Vec<String> {
    let page = std::fs::read_to_string(root().join("src/cli/help/formats.md")).unwrap();
    let block = page.split("With jq and DuckDB:").nth(1).unwrap().split("```").nth(1).unwrap();
    let (llm, before) = (packed("llm").display().to_string(), packed("whole_llm").display().to_string());
    let named = |line: &str| line.replace("before.sqlite", &before).replace("after.sqlite", &llm).replace("run.sqlite", &llm);
    // An indented line continues the previous one.
    let block = block.replace("\n    ", " ");
    block.lines().filter(|l| !l.starts_with('#') && !l.is_empty() && *l != "sh").map(named).collect()
}

fn shell(line: &str) -> String {
    let program = assert_cmd::cargo::cargo_bin!("warpscope");
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", program.parent().unwrap().display());
    let mut sh = Command::new("sh");
    sh.args(["-c", line]).env_clear().env("HOME", scratch()).env("PATH", path).env("LANG", "C.UTF-8").current_dir(scratch());
    let out = sh.stdin(Stdio::null()).output().unwrap();
    assert!(out.status.success(), "{line}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn jq_lines_answer() {
    let with_jq: Vec<String> = lines().into_iter().filter(|l| l.contains("| jq ")).collect();
    assert_eq!(with_jq.len(), 6);
    if !Command::new("jq").arg("--version").stdout(Stdio::null()).status().is_ok_and(|s| s.success()) {
        println!("skipped: there is no jq");
        return;
    }
    let answers: Vec<String> = with_jq.iter().map(|l| shell(l)).collect();
    assert_eq!(answers[0], "compilation 66.6038%\n");
    assert!(answers[1].starts_with("{\"kernels\":8.59"), "{}", answers[1]);
    assert_eq!(answers[2].lines().next(), Some("CatArrayBatchedCopy"));
    assert_eq!(answers[2].lines().count(), 6, "{}", answers[2]);
    assert!(answers[3].lines().count() > 15 && answers[3].contains("[\"CatArrayBatchedCopy\","), "{}", answers[3]);
    assert!(answers[4].starts_with("ncu\n") && answers[4].contains("--launch-count\n1\n"), "{}", answers[4]);
    assert!(!answers[5].contains("null"), "{}", answers[5]);
}

/// The SQL is portable: SQLite returns the same rows in the same order.
#[test]
fn the_sql_line_agrees_with_the_table() {
    let all = lines();
    let [.., csv, sql] = all.as_slice() else { panic!("{all:?}") };
    shell(csv);
    let query = sql.split('"').nth(1).unwrap().replace("'launches.csv'", "launches");
    let text = std::fs::read_to_string(scratch().join("launches.csv")).unwrap();
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let db = Connection::open_in_memory().unwrap();
    let head = reader.headers().unwrap().clone();
    db.execute_batch(&format!("CREATE TABLE launches ({})", head.iter().collect::<Vec<_>>().join(", "))).unwrap();
    let marks = vec!["?"; head.len()].join(", ");
    for row in reader.records() {
        db.execute(&format!("INSERT INTO launches VALUES ({marks})"), rusqlite::params_from_iter(row.unwrap().iter())).unwrap();
    }
    let mut query = db.prepare(&query).unwrap();
    let rows = query.query_map([], |r| Ok((r.get::<_, String>(0)?, r.get::<_, i64>(1)?, r.get::<_, f64>(2)? as i64))).unwrap();
    let rows: Vec<(String, i64, i64)> = rows.map(Result::unwrap).collect();
    assert_eq!(rows[0], ("CatArrayBatchedCopy".to_owned(), 1176, 18_489_668));
    assert_eq!(rows.len(), 5);
}
