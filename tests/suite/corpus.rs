//! Every file of a corpus (folder named by `WARPSCOPE_CORPUS`) opens or gives one clear error; the
//! table of each SQLite export agrees with SQL.

use super::support::{read, scratch};
use rusqlite::Connection;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use warpscope::analysis::metric::is_list;
use warpscope::analysis::metrics_rows::{MetricsRow, Wish};
use warpscope::analysis::{GroupBy, Grouping, code, metrics_page, roofline};
use warpscope::import::ncu::{details, session, source};
use warpscope::import::{self, Cancel, Job, Wants};

fn files(folder: &Path, out: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, out);
        } else {
            out.push(path);
        }
    }
}

/// All files of the corpus, if there is one.
fn corpus() -> Option<Vec<PathBuf>> {
    let Some(corpus) = std::env::var_os("WARPSCOPE_CORPUS") else {
        println!("skipped: WARPSCOPE_CORPUS names no folder");
        return None;
    };
    let mut all = Vec::new();
    for part in ["captures", "samples"] {
        files(&Path::new(&corpus).join(part), &mut all);
    }
    all.sort();
    assert!(!all.is_empty(), "nothing in {}", Path::new(&corpus).display());
    Some(all)
}

#[test]
fn every_file_opens_or_gives_one_sentence() {
    let Some(all) = corpus() else { return };
    let (mut opened, mut refused, mut compared) = (0, 0, 0);
    for path in &all {
        match read(path) {
            Ok(profile) => {
                opened += 1;
                if std::fs::read(path).unwrap().starts_with(b"SQLite format 3\0") {
                    compared += usize::from(agrees_with_sql(path, &profile));
                }
            }
            Err(e) => {
                refused += 1;
                let text = e.to_string();
                assert!(
                    text.starts_with(&*path.to_string_lossy()) && !text.contains('\n') && text.len() > path.to_string_lossy().len() + 20,
                    "{text}"
                );
            }
        }
    }
    println!("corpus: {} files, {opened} opened, {refused} refused with a sentence, {compared} compared with SQL", all.len());
    assert!(opened > 0 && compared > 0);
}

/// Malicious files: with 2 GiB of memory, every command ends with a table or an error message.
#[test]
fn hostile_files_cost_little() {
    let Some(corpus) = std::env::var_os("WARPSCOPE_CORPUS") else { return };
    let folder = Path::new(&corpus).join("hostile");
    let mut all = Vec::new();
    files(&folder, &mut all);
    all.retain(|p| [".gz", ".zst"].iter().any(|e| p.to_string_lossy().ends_with(e)));
    let mut codes = BTreeMap::new();
    for path in &all {
        let file = path.to_str().unwrap();
        for command in [
            &["top"][..],
            &["top", "--by", "nvtx"],
            &["launches", "--limit", "3"],
            &["hints"],
            &["metrics", "--sections"],
            &["metrics", "--source"],
        ] {
            let args: Vec<&str> = command.iter().copied().chain([file]).collect();
            let out = super::hostile::limited(&args);
            let code = out.status.code();
            assert!(matches!(code, Some(0 | 2 | 3)), "{args:?}: {:?} {}", out.status, String::from_utf8_lossy(&out.stderr));
            *codes.entry(code).or_insert(0) += 1;
        }
    }
    println!("corpus: {} hostile files, exit codes {codes:?}", all.len());
}

/// Opens every result of every ncu report on every screen and checks that values are in the rows that list them.
#[test]
fn every_result_is_looked_at() {
    let Some(mut all) = corpus() else { return };
    all.retain(|p| p.to_string_lossy().contains(".ncu-rep"));
    let (mut results, mut rows, mut rules, mut placed, mut lines) = (0, 0, 0, 0, 0);
    for path in &all {
        let Ok(profile) = read(path) else { continue };
        let metrics = profile.metrics.clone().unwrap();
        let input = import::open::open_input(path, &Job { cache: scratch().join("cache"), ..Job::new(Wants::ALL, &|_| {}) }).unwrap();
        session::read_facts(&input).unwrap();
        for (at, result) in metrics.results.iter().enumerate() {
            let details = details::read_details(&input, result).unwrap_or_else(|e| panic!("{e}"));
            results += 1;
            rules += details.rules.len();
            let page = metrics_page::build_rows(&metrics, at, &details, &Wish::default());
            // Every collected metric is reachable.
            let open: BTreeSet<String> =
                page.iter().filter_map(|r| if let MetricsRow::Fold { key, .. } = r { Some(key.clone()) } else { None }).collect();
            let page = metrics_page::build_rows(&metrics, at, &details, &Wish { open, ..Wish::default() });
            let shown: usize = page
                .iter()
                .map(|r| match r {
                    MetricsRow::Cells { metrics, .. } => metrics.len(),
                    other => usize::from(other.metric().is_some()),
                })
                .sum();
            let named = result.values.iter().filter(|(n, _)| !is_list(&metrics.names[*n as usize])).count();
            assert!(shown >= named.saturating_sub(60), "{}: result {at}: {shown} rows of {named} metrics", path.display());
            rows += page.len();
            placed += roofline::place_result(&metrics, result).work.len();
            if at < 3 {
                let code = source::read_code(&input, &metrics, at, &details, &[], &Cancel::default()).unwrap_or_else(|e| panic!("{e}"));
                lines += code::build_listing(&metrics, at, &details, &code, false).lines.len();
            }
        }
    }
    println!("corpus: {results} results, {rows} rows, {rules} rules, {placed} kinds of work, {lines} source lines");
    assert!(results > 50 && rules > 500 && placed > 50 && lines > 10);
}

/// Compares counts and totals per demangled name; false if the export has no kernels.
fn agrees_with_sql(path: &Path, profile: &warpscope::model::Profile) -> bool {
    let db = Connection::open_with_flags(path, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let sql = "SELECT s.value, count(*), sum(end - start), min(end - start), max(end - start) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.demangledName GROUP BY 1";
    let Ok(mut statement) = db.prepare(sql) else { return false };
    let theirs: BTreeMap<String, (i64, i64, i64, i64)> =
        statement.query_map([], |r| Ok((r.get(0)?, (r.get(1)?, r.get(2)?, r.get(3)?, r.get(4)?)))).unwrap().map(Result::unwrap).collect();
    let total: i64 = db.query_row("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL", [], |r| r.get(0)).unwrap();
    let grouping = Grouping::from_profile(profile, GroupBy::Demangled, None);
    let ours: BTreeMap<String, _> = grouping
        .rows
        .iter()
        .map(|r| (r.name.clone(), (i64::try_from(r.stats.count).unwrap(), r.stats.total, r.stats.min, r.stats.max)))
        .collect();
    assert_eq!(ours.values().map(|f| f.0).sum::<i64>(), total, "{}", path.display());
    for (name, figures) in &theirs {
        assert_eq!(ours.get(name), Some(figures), "{}: {name}", path.display());
    }
    !theirs.is_empty()
}
