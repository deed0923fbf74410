//! `--budget`: output stays near the number of tokens, the most important content comes first, and omissions are
//! counted.

use super::schemas::{check, validators};
use super::support::{edited, root, run, scratch};
use serde_json::Value;

const LLM: &str = "fixtures/demo/llm.sqlite.zst";
const ZOO: &str = "fixtures/demo/zoo.ncu-rep.zst";

fn budgeted(command: &str, format: &str, tokens: usize) -> (String, String) {
    let budget = tokens.to_string();
    let args: Vec<&str> = command.split(' ').chain(["--format", format, "--budget", &budget]).collect();
    let (code, out, err) = run(&args);
    assert_eq!(code, 0, "{args:?}: {err}");
    (out, err)
}

fn whole(command: &str, format: &str) -> String {
    let (code, out, err) = run(&command.split(' ').chain(["--format", format]).collect::<Vec<_>>());
    assert_eq!(code, 0, "{err}");
    out
}

#[test]
fn documents_keep_to_their_budget_and_to_their_schema() {
    let validators = validators();
    for command in [
        format!("triage {LLM}"),
        format!("top {LLM}"),
        format!("launches {LLM}"),
        format!("events {LLM}"),
        format!("ranges {LLM}"),
        format!("hints {LLM}"),
        format!("rerun {LLM} --top 3"),
        format!("diff {LLM} fixtures/nsys/whole_llm.sqlite.zst"),
        format!("metrics {ZOO}"),
        format!("metrics {ZOO} --rules"),
        format!("hints {ZOO}"),
        "lines fixtures/trace/lines_collate.wstrace.zst".to_owned(),
        "memory fixtures/torch/memory/leak.pickle.gz".to_owned(),
    ] {
        for tokens in [100, 250, 500, 1000, 4000] {
            let (out, _) = budgeted(&command, "json", tokens);
            check(&validators, &[&command], &out);
            let document: Value = serde_json::from_str(&out).unwrap();
            // A document always keeps its frame and one element of each of its own lists, and reports its actual size.
            let size = document["left_out"]["tokens"].as_u64().map_or(tokens, |t| t as usize);
            assert!(size == tokens || tokens <= 1000 && size < 1250, "{command}: {size} tokens instead of {tokens}");
            assert!(out.len() <= size * 4 + size / 5 + 80, "{command}: {} bytes, said to be {size} tokens, for {tokens}", out.len());
            let all: Value = serde_json::from_str(&whole(&command, "json")).unwrap();
            let left = &document["left_out"];
            assert_eq!(left.is_null(), document == all, "{command}: {left}");
            for cut in left["lists"].as_array().into_iter().flatten() {
                let Some(list) = cut["list"].as_str().filter(|l| !l.contains(['.', '['])) else { continue };
                let counts = |d: &Value| d[list].as_array().unwrap().len();
                assert_eq!(
                    (cut["shown"].as_u64().unwrap() as usize, cut["of"].as_u64().unwrap() as usize),
                    (counts(&document), counts(&all)),
                    "{command}: {list}"
                );
                let may_be_empty = tokens <= 1000 && ["coverage", "notes", "next"].contains(&list);
                assert!(counts(&document) > 0 || may_be_empty, "{command}: {list} at {tokens} tokens");
            }
            let words =
                |argv: &Value| argv.as_array().unwrap().iter().map(|w| w.as_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ");
            assert!(left.is_null() || words(&left["argv"]) == format!("warpscope {command} --format json"), "{left}");
        }
    }
}

/// Launches are listed in launch order, and the longest ones are kept wherever they are.
#[test]
fn rows_that_matter_least_are_left_out() {
    let durations = |text: &str| -> Vec<(u64, i64)> {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let head = reader.headers().unwrap().clone();
        let at = |name: &str| head.iter().position(|h| h == name).unwrap();
        let (launch, duration) = (at("launch"), at("duration_ns"));
        reader.records().map(|r| r.unwrap()).map(|r| (r[launch].parse().unwrap(), r[duration].parse().unwrap())).collect()
    };
    let all = durations(&whole(&format!("launches {LLM}"), "csv"));
    let (out, err) = budgeted(&format!("launches {LLM}"), "csv", 1000);
    let kept = durations(&out);
    assert!(out.len() <= 4000 && kept.len() > 10 && kept.is_sorted(), "{} bytes, {kept:?}", out.len());
    let mut longest = all.clone();
    longest.sort_by_key(|&(launch, ns)| (std::cmp::Reverse(ns), launch));
    let mut longest: Vec<_> = longest.into_iter().take(kept.len()).collect();
    longest.sort_unstable();
    assert_eq!(kept, longest);
    let left = all.len() - kept.len();
    let sentence = format!("{},{:03} rows left out for the budget", left / 1000, left % 1000);
    assert!(err.contains(&sentence) && err.contains(&format!("all of it: warpscope launches {LLM}")), "{err}");
    // JSON keeps the longest launches as well.
    let (out, _) = budgeted(&format!("launches {LLM}"), "json", 1000);
    let document: Value = serde_json::from_str(&out).unwrap();
    let kept: Vec<i64> = document["rows"].as_array().unwrap().iter().map(|r| r["duration_ns"].as_i64().unwrap()).collect();
    let least = *kept.iter().min().unwrap();
    assert!(all.iter().filter(|l| l.1 > least).count() <= kept.len(), "{kept:?}");
}

#[test]
fn texts_say_what_they_leave_out() {
    let (out, _) = budgeted(&format!("top {LLM}"), "table", 300);
    let last = out.lines().last().unwrap();
    assert!(out.len() <= 1200 && last.contains("rows left out for the budget") && last.ends_with("--format table"), "{out}");
    let (page, err) = budgeted(&format!("triage {LLM}"), "table", 100);
    assert!(
        page.len() <= 400 && page.ends_with('\n') && err.contains("lines left out for the budget; all of it: warpscope triage"),
        "{page}{err}"
    );
    assert!(whole(&format!("triage {LLM}"), "table").starts_with(&page));
    // A large budget changes nothing.
    let (out, err) = budgeted(&format!("top {LLM}"), "csv", 1_000_000);
    assert!(out == whole(&format!("top {LLM}"), "csv") && !err.contains("left out"), "{err}");
}

#[test]
fn headers_and_notes_can_be_left_out() {
    let all = whole(&format!("top {LLM}"), "csv");
    let (_, bare, err) = run(&["top", LLM, "--format", "csv", "--no-header", "-q"]);
    assert_eq!((all.split_once('\n').unwrap().1, ""), (bare.as_str(), err.as_str()));
    for format in ["table", "md"] {
        let (_, bare, _) = run(&["top", LLM, "--format", format, "--no-header"]);
        assert!(whole(&format!("top {LLM}"), format).ends_with(&bare) && bare.lines().count() == all.lines().count() - 1, "{bare}");
    }
    let (_, _, err) = run(&["hints", LLM]);
    assert!(err.contains("Scheduling information is absent"), "{err}");
    assert_eq!(run(&["hints", LLM, "--quiet"]).2, "");
    // Errors are printed even with `--quiet`.
    assert!(run(&["top", "no/such/file", "-q"]).2.contains("No such file"));
}

/// Bold headings are for people: in a pipe only on request, and never in data or against `NO_COLOR`.
#[test]
fn headings_are_bold_where_they_are_seen() {
    let out = |args: &[&str], environment: &[(&str, &str)]| {
        let mut command = assert_cmd::Command::cargo_bin("warpscope").unwrap();
        command.env_clear().envs(environment.iter().copied()).env("HOME", scratch()).env("LANG", "C.UTF-8").current_dir(root());
        String::from_utf8(command.args(args).output().unwrap().stdout).unwrap()
    };
    let table = ["top", LLM, "--format", "table"];
    let forced = [("CLICOLOR_FORCE", "1")];
    let (plain, bold) = (out(&table, &[]), out(&table, &forced));
    let head = plain.lines().next().unwrap();
    assert_eq!(bold, plain.replacen(head, &format!("\u{1b}[1m{head}\u{1b}[0m"), 1));
    let without = [("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")];
    assert_eq!((out(&table, &without), out(&[&table[..], &["--color", "none"]].concat(), &forced)), (plain.clone(), plain));
    let page = ["triage", LLM, "--format", "table"];
    let bold = out(&page, &forced);
    assert!(bold.contains("\u{1b}[1m1. compilation\u{1b}[0m (high"), "{bold}");
    assert_eq!(bold.replace("\u{1b}[1m", "").replace("\u{1b}[0m", ""), out(&page, &[]), "the lines break at the same words");
    // Data is byte-identical, including names with a tab, non-ASCII letters, and the placeholder for bold text.
    let names = "UPDATE StringIds SET value = 'k' || char(9) || 'é' || char(983041) || value WHERE id IN (SELECT shortName FROM CUPTI_ACTIVITY_KIND_KERNEL)";
    let odd = edited("single", names).display().to_string();
    for format in ["csv", "md", "json"] {
        let args = ["top", &odd, "--by", "name", "--format", format];
        let plain = out(&args, &[]);
        assert!(plain.contains('é') && !plain.contains('\u{1b}'), "{plain}");
        assert_eq!(out(&args, &[("CLICOLOR_FORCE", "1"), ("LC_ALL", "C")]), plain, "{format}");
    }
    for format in ["csv", "md", "json"] {
        assert!(!out(&["top", LLM, "--format", format], &forced).contains('\u{1b}'), "{format}");
    }
}

/// An HTML page is complete under every budget: parts that do not fit are left out whole, and counted.
#[test]
fn pages_stay_whole() {
    for command in [format!("triage {LLM}"), format!("hints {ZOO}"), "memory fixtures/torch/memory/leak.pickle.gz".to_owned()] {
        let all = whole(&command, "html");
        let mut last = 0;
        for tokens in [50, 1000, 1500, 2500, 5000, 100_000] {
            let (out, err) = budgeted(&command, "html", tokens);
            assert!(out.starts_with("<!DOCTYPE html>") && out.ends_with("</main></body></html>\n"), "{command}, {tokens}");
            assert!(out.len() >= last, "{command}, {tokens}");
            last = out.len();
            assert_eq!(out != all, err.contains("left out for the budget"), "{command}, {tokens}: {err}");
        }
        assert_eq!(last, all.len(), "{command}");
    }
}
