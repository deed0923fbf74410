//! Dependency graph of a crate's files: every `use`, `super::…` and inline `crate::…` path is resolved to the file
//! that defines the item, through re-exports.

use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Files by their path below `src`. All but `files` exclude comments, strings and unit tests.
pub struct Sources {
    /// Unmodified text.
    pub files: BTreeMap<String, String>,
    /// Text without comments, strings and unit tests.
    code: BTreeMap<String, String>,
    /// Path of the file of each module.
    modules: BTreeMap<Vec<String>, String>,
    /// Path of each re-exported item, by the file that re-exports it and its name there.
    given_out: BTreeMap<(String, String), Vec<String>>,
}

/// Returns the code that ships: unit tests may use any layer, and comments and strings use nothing.
fn shipped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    let mut before = ' ';
    while let Some(c) = rest.next() {
        match c {
            '/' if rest.peek() == Some(&'/') => {
                for c in rest.by_ref() {
                    if c == '\n' {
                        out.push('\n');
                        break;
                    }
                }
            }
            'r' if matches!(rest.peek(), Some('"' | '#')) && !before.is_alphanumeric() => {
                let mut marks = 0;
                while rest.next_if_eq(&'#').is_some() {
                    marks += 1;
                }
                if rest.next_if_eq(&'"').is_none() {
                    continue;
                }
                let mut seen = None;
                for c in rest.by_ref() {
                    seen = match (c, seen) {
                        ('"', _) => Some(0),
                        ('#', Some(n)) => Some(n + 1),
                        _ => None,
                    };
                    if seen == Some(marks) {
                        break;
                    }
                }
            }
            '"' => {
                while let Some(c) = rest.next() {
                    if c == '\\' {
                        rest.next();
                    } else if c == '"' {
                        break;
                    }
                }
            }
            '\'' => {
                // A character literal, unless it is a lifetime.
                let next = rest.peek().copied();
                if next == Some('\\') {
                    rest.next();
                    rest.next();
                    for c in rest.by_ref() {
                        if c == '\'' {
                            break;
                        }
                    }
                } else {
                    let mut ahead = rest.clone();
                    ahead.next();
                    if ahead.next() == Some('\'') {
                        rest.next();
                        rest.next();
                    }
                }
            }
            c => out.push(c),
        }
        before = c;
    }
    // Test-only items, with or without a body.
    while let Some(at) = out.find("#[cfg(test)]") {
        let rest = &out[at..];
        let end = match (rest.find(';'), rest.find('{')) {
            (Some(semicolon), open) if open.is_none_or(|o| semicolon < o) => at + semicolon + 1,
            (_, Some(open)) => {
                let mut depth = 0;
                let close = rest[open..].char_indices().find(|(_, c)| {
                    depth += match c {
                        '{' => 1,
                        '}' => -1,
                        _ => 0,
                    };
                    depth == 0
                });
                close.map_or(out.len(), |(i, _)| at + open + i + 1)
            }
            _ => out.len(),
        };
        out.replace_range(at..end, "");
    }
    out
}

/// `a::{b, c::{self, d}}` → `a::b`, `a::c`, `a::c::d`.
fn expanded(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some(open) = tree.find('{') else { return vec![tree.to_owned()] };
    let (before, inside) = (&tree[..open], &tree[open + 1..tree.rfind('}').unwrap()]);
    let (mut depth, mut from, mut out) = (0, 0, Vec::new());
    for (at, c) in inside.char_indices().chain([(inside.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !inside[from..at].trim().is_empty() {
                    out.extend(expanded(&inside[from..at]).into_iter().map(|x| format!("{before}{x}")));
                }
                from = at + 1;
            }
            _ => {}
        }
    }
    out
}

/// Returns true if a text contains `word` as a whole identifier.
fn named(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| !text[..at].ends_with(part) && !text[at + word.len()..].starts_with(part))
}

fn module(path: &str) -> Vec<String> {
    let stem = path.trim_end_matches(".rs");
    let stem = stem.strip_suffix("/mod").unwrap_or(stem);
    if stem == "lib" { Vec::new() } else { stem.split('/').map(str::to_owned).collect() }
}

impl Sources {
    /// Reads all files below a folder.
    pub fn read(folder: &Path) -> Self {
        let mut files = Vec::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(next) = folders.pop() {
            for entry in fs::read_dir(next).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|e| e == "rs") {
                    let name = path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
                    files.push((name, fs::read_to_string(&path).unwrap()));
                }
            }
        }
        Self::of(files)
    }

    pub fn of(files: impl IntoIterator<Item = (String, String)>) -> Self {
        let files: BTreeMap<String, String> = files.into_iter().collect();
        let code: BTreeMap<String, String> = files.iter().map(|(p, t)| (p.clone(), shipped(t))).collect();
        let modules = files.keys().map(|p| (module(p), p.clone())).collect();
        let mut sources = Self { files, code, modules, given_out: BTreeMap::new() };
        let gives = Regex::new(r"\bpub use\s+([^;]+);").unwrap();
        let mut given_out = BTreeMap::new();
        for (path, text) in &sources.code {
            for found in gives.captures_iter(text) {
                for whole in expanded(&found[1]) {
                    let (from, name) = whole.split_once(" as ").unwrap_or((&whole, whole.rsplit("::").next().unwrap()));
                    if let Some(target) = sources.absolute(path, from) {
                        given_out.insert((path.clone(), name.trim().to_owned()), target);
                    }
                }
            }
        }
        sources.given_out = given_out;
        sources
    }

    /// Resolves a path in a file to one from the crate's root; `None` for other crates.
    fn absolute(&self, file: &str, path: &str) -> Option<Vec<String>> {
        let path: String = path.chars().filter(|c| !c.is_whitespace()).collect();
        let mut parts: Vec<String> = path.split("::").map(str::to_owned).collect();
        let own = module(file);
        match parts[0].as_str() {
            "crate" => {
                parts.remove(0);
                Some(parts)
            }
            "super" | "self" => {
                let mut base = own;
                while !parts.is_empty() && matches!(parts[0].as_str(), "super" | "self") {
                    if parts.remove(0) == "super" {
                        base.pop();
                    }
                }
                Some([base, parts].concat())
            }
            // A child of this module, or an external crate.
            first => {
                let child = [own.clone(), vec![first.to_owned()]].concat();
                self.modules.contains_key(&child).then(|| [own, parts].concat())
            }
        }
    }

    /// Returns the file that defines the item at a path from the crate's root.
    fn defines(&self, path: &[String], depth: usize) -> Option<String> {
        let n = (0..=path.len()).rev().find(|&n| self.modules.contains_key(&path[..n]))?;
        let file = &self.modules[&path[..n]];
        if let Some(name) = path.get(n)
            && let Some(target) = self.given_out.get(&(file.clone(), name.clone()))
            && depth < 8
        {
            return self.defines(&[target.clone(), path[n + 1..].to_vec()].concat(), depth + 1);
        }
        Some(file.clone())
    }

    /// Returns the paths used in a file, each from the crate's root.
    fn names(&self, file: &str) -> Vec<Vec<String>> {
        let text = &self.code[file];
        let uses = Regex::new(r"(pub(?:\([a-z]+\))? )?\buse\s+([^;]+);").unwrap();
        let inline = Regex::new(r"\b(?:crate|super)(?:::\w+)+").unwrap();
        let mut out: Vec<String> = Vec::new();
        for found in uses.captures_iter(text) {
            // A re-export alone is not a use.
            if found.get(1).is_none_or(|p| p.as_str() != "pub ") {
                out.extend(expanded(&found[2]).into_iter().map(|p| p.split(" as ").next().unwrap().to_owned()));
            }
        }
        let rest = uses.replace_all(text, "");
        out.extend(inline.find_iter(&rest).map(|m| m.as_str().to_owned()));
        out.iter().filter_map(|p| self.absolute(file, p)).collect()
    }

    /// Returns the files that a file uses.
    pub fn uses(&self, file: &str) -> BTreeSet<String> {
        let uses = Regex::new(r"\b(pub(\([a-z]+\))? )?use\s+[^;]+;").unwrap();
        let body = uses.replace_all(&self.code[file], "");
        // Re-exported items that the file also uses itself.
        let own = self.given_out.iter().filter(|((f, name), _)| f == file && named(&body, name)).map(|(_, target)| target.clone());
        self.names(file).into_iter().chain(own).filter_map(|p| self.defines(&p, 0)).filter(|f| f != file).collect()
    }

    /// Returns each use of a layer that the using layer must not depend on.
    pub fn upward(&self, layers: &[(&str, &[&str])]) -> Vec<String> {
        let mut out = Vec::new();
        for file in self.files.keys() {
            let Some((layer, _)) = file.split_once('/') else { continue };
            let allowed = layers.iter().find(|(l, _)| *l == layer).unwrap_or_else(|| panic!("{layer} is no layer")).1;
            for path in self.names(file) {
                let Some(other) = path.first().filter(|o| layers.iter().any(|(l, _)| l == o)) else { continue };
                if other != layer && !allowed.contains(&other.as_str()) {
                    out.push(format!("{file}: {layer} must not use {other} ({})", path.join("::")));
                }
            }
        }
        out
    }

    /// Returns import cycles, each as its strongly connected component of files.
    pub fn circles(&self) -> Vec<String> {
        let graph: BTreeMap<&str, BTreeSet<String>> = self.files.keys().map(|f| (f.as_str(), self.uses(f))).collect();
        let reach = |from: &str| {
            let (mut seen, mut next) = (BTreeSet::new(), vec![from.to_owned()]);
            while let Some(file) = next.pop() {
                for to in graph.get(file.as_str()).into_iter().flatten() {
                    if seen.insert(to.clone()) {
                        next.push(to.clone());
                    }
                }
            }
            seen
        };
        let reaches: BTreeMap<&str, BTreeSet<String>> = graph.keys().map(|f| (*f, reach(f))).collect();
        let mut out = BTreeSet::new();
        for (file, reached) in &reaches {
            if reached.contains(*file) {
                let circle: Vec<&str> = reached.iter().map(String::as_str).filter(|f| reaches[f].contains(*file)).collect();
                let arrows =
                    circle.iter().flat_map(|a| graph[a].iter().filter(|b| circle.contains(&b.as_str())).map(move |b| format!("{a} → {b}")));
                out.insert(arrows.collect::<Vec<_>>().join(", "));
            }
        }
        out.into_iter().collect()
    }

    /// Returns the files in `layers` whose code contains any of `words`.
    pub fn naming(&self, layers: &[&str], words: &[&str]) -> Vec<String> {
        let mut out = Vec::new();
        for (file, text) in &self.code {
            if !file.split_once('/').is_some_and(|(layer, _)| layers.contains(&layer)) {
                continue;
            }
            for word in words {
                let here =
                    |(at, _): (usize, &str)| word.starts_with('.') || !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
                if text.match_indices(word).any(here) {
                    out.push(format!("{file} names {word}"));
                }
            }
        }
        out
    }
}
