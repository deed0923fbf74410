//! The layers point one way, and libraries stay where they belong.

use super::support::root;
use std::fs;
use std::path::{Path, PathBuf};

/// Each layer and the layers that it may use.
const LAYERS: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("launch", &[]),
    ("library", &["launch"]),
    ("analysis", &["model"]),
    ("import", &["model", "launch"]),
    ("rerun", &["model", "analysis"]),
    ("report", &["model", "analysis", "rerun", "library"]),
    ("config", &["analysis", "launch"]),
    ("app", &["model", "analysis", "import", "report", "config", "rerun", "launch", "library"]),
    ("ui", &["model", "analysis", "import", "app", "config", "rerun", "report", "launch", "library"]),
    ("cli", &["model", "analysis", "import", "report", "config", "app", "ui", "launch", "library", "rerun"]),
];

/// A library and the layers that may name it.
const LIBRARIES: &[(&str, &[&str])] = &[
    ("ratatui", &["ui"]),
    ("rusqlite", &["import", "library"]),
    ("crossterm", &["ui", "cli", "app", "config"]),
    ("fuzzy_matcher", &["analysis"]),
    ("clap", &["cli"]),
    ("csv", &["import", "report"]),
    ("toml", &["analysis", "config", "ui"]),
    ("prost", &["import"]),
    ("gimli", &["import"]),
    ("object::", &["import"]),
    ("shlex", &["app", "cli"]),
    ("nix", &["launch", "import"]),
    ("std::process::Command", &["launch", "import"]),
];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            out.extend(sources(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
    out
}

fn layer(path: &Path) -> String {
    path.strip_prefix(root().join("src")).unwrap().components().next().unwrap().as_os_str().to_string_lossy().into_owned()
}

/// The part of a file that ships: unit tests may look across.
fn shipped(text: &str) -> &str {
    text.split("#[cfg(test)]").next().unwrap()
}

#[test]
fn a_layer_uses_only_layers_below_it() {
    for path in sources(&root().join("src")) {
        let layer = layer(&path);
        if layer.ends_with(".rs") {
            continue;
        }
        let allowed = LAYERS.iter().find(|(l, _)| *l == layer).unwrap_or_else(|| panic!("{layer} is no layer")).1;
        let text = fs::read_to_string(&path).unwrap();
        for (other, _) in LAYERS {
            let named = shipped(&text).contains(&format!("crate::{other}::")) || shipped(&text).contains(&format!("crate::{other};"));
            assert!(!named || *other == layer || allowed.contains(other), "{}: {layer} must not use {other}", path.display());
        }
    }
}

/// Whether a line names a path that begins so: `nix::`, but not `unix::`.
fn names(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_'))
}

#[test]
fn libraries_stay_in_their_layers() {
    for path in sources(&root().join("src")) {
        let layer = layer(&path);
        let text = fs::read_to_string(&path).unwrap();
        for (library, layers) in LIBRARIES {
            let named = shipped(&text)
                .lines()
                .filter(|l| !l.trim_start().starts_with("//"))
                .any(|l| names(l, &format!("{library}::")) || l.contains(&format!("use {library};")));
            assert!(!named || layers.contains(&layer.as_str()), "{}: {library} has no place in {layer}", path.display());
        }
    }
}

#[test]
fn files_are_small_and_say_what_they_are() {
    for path in sources(&root().join("src")) {
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("//!"), "{} has no `//!` line", path.display());
        assert!(text.lines().count() <= 500, "{} holds more than one idea", path.display());
    }
}
