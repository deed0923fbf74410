//! Conventions for comments and names: comments begin with a noun or a verb, and function names have a verb and its
//! object.

use super::support::root;
use regex::Regex;
use std::fs;
use std::path::{Path, PathBuf};

/// Maximum share of comment lines that begin with a relative clause.
const CLAUSES: f64 = 0.02;
/// Maximum number of archaic words per 1,000 words of comments.
const ARCHAIC: f64 = 5.0;
/// Maximum share of functions with a one-word name.
const ONE_WORD: f64 = 0.45;

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| ["rs", "c", "h"].iter().any(|x| e == *x)) {
            found.push(path);
        }
    }
}

fn lines_of_src() -> Vec<(PathBuf, usize, String)> {
    let mut files = Vec::new();
    sources(&root().join("src"), &mut files);
    files.sort();
    let lines = |file: PathBuf| {
        let text = fs::read_to_string(&file).unwrap();
        text.lines().enumerate().map(|(at, line)| (file.clone(), at + 1, line.to_owned())).collect::<Vec<_>>()
    };
    files.into_iter().flat_map(lines).collect()
}

#[test]
fn comments_begin_with_nouns_and_verbs() {
    let comment = Regex::new(r"^\s*(?:///|//!|//)\s*(\S.*)$").unwrap();
    let clause = Regex::new(r"^(?:What|How|Which|Whether|Where|Who|Of)\b").unwrap();
    let archaic = Regex::new(r"(?i)\b(?:nobody|somebody|whoever|whom|wherever|whichever|therein|thereof|is no|are no)\b").unwrap();
    let (mut comments, mut words, mut clauses, mut old) = (0_usize, 0_usize, Vec::new(), Vec::new());
    for (file, at, line) in lines_of_src() {
        let Some(text) = comment.captures(&line).map(|c| c[1].to_owned()) else { continue };
        comments += 1;
        words += text.split_whitespace().count();
        let place = || format!("{}:{at}: {text}", file.display());
        clauses.extend(clause.is_match(&text).then(place));
        old.extend(archaic.find_iter(&text).map(|_| place()));
    }
    assert!(comments > 5_000, "{comments}");
    assert!(clauses.len() as f64 <= CLAUSES * comments as f64, "{} of {comments}:\n{}", clauses.len(), clauses.join("\n"));
    assert!(old.len() as f64 <= ARCHAIC * words as f64 / 1000.0, "{} in {words} words:\n{}", old.len(), old.join("\n"));
}

#[test]
fn functions_are_named_by_verb_and_object() {
    let function = Regex::new(r"^\s*(?:pub(?:\([a-z]+\))? )?(?:const )?fn ([a-z0-9_]+)\s*[(<]").unwrap();
    let names: Vec<String> = lines_of_src().iter().filter_map(|(_, _, line)| Some(function.captures(line)?[1].to_owned())).collect();
    let one_word = names.iter().filter(|n| !n.contains('_')).count();
    assert!(names.len() > 3_000, "{}", names.len());
    assert!(one_word as f64 <= ONE_WORD * names.len() as f64, "{one_word} of {} have one word", names.len());
}

#[test]
fn lines_of_c_have_at_most_120_columns() {
    let wide = |(file, _, line): &&(PathBuf, usize, String)| file.extension().is_some_and(|e| e != "rs") && line.chars().count() > 120;
    let lines = lines_of_src();
    let found: Vec<_> = lines.iter().filter(wide).map(|(file, at, _)| format!("{}:{at}", file.display())).collect();
    assert!(found.is_empty(), "{found:?}");
}
