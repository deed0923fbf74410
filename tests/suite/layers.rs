//! Architecture rules: layers depend in one direction, files have no import cycles, pure layers do no
//! I/O, and libraries stay in their layers.

use super::arrows::Sources;
use super::support::root;

/// Each layer and the layers it may use.
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

/// A library and the layers that may use it.
const LIBRARIES: &[(&str, &[&str])] = &[
    ("ratatui", &["ui"]),
    ("rusqlite", &["import", "library"]),
    ("crossterm", &["ui", "cli", "app", "config"]),
    ("fuzzy_matcher", &["analysis"]),
    ("clap", &["cli"]),
    ("csv", &["import", "report"]),
    ("toml", &["analysis", "config", "ui"]),
    ("prost", &["import", "model"]),
    ("saphyr_parser", &["rerun"]),
    ("regress", &["rerun"]),
    ("gimli", &["import"]),
    ("parquet", &["report"]),
    ("object::", &["import", "launch"]),
    ("shlex", &["app", "cli"]),
    ("nix", &["launch", "import"]),
    ("std::process::Command", &["launch", "import"]),
];

/// Layers that only compute: no files, clocks, processes, threads or environment variables.
const PURE: &[&str] = &["model", "analysis", "rerun", "report", "app", "ui"];
/// Paths that do I/O.
const WORLD: &[&str] = &[
    "std::fs",
    "fs::",
    "File::",
    "Instant",
    "SystemTime",
    "std::process",
    "thread::spawn",
    "thread::sleep",
    "std::net",
    "std::env",
    "env::var",
    ".exists()",
    ".is_file()",
    ".is_dir()",
    ".canonicalize(",
    ".metadata(",
    ".read_dir(",
];

fn project() -> Sources {
    Sources::read(&root().join("src"))
}

#[test]
fn a_layer_uses_only_layers_below_it() {
    assert_eq!(project().upward(LAYERS), [] as [String; 0]);
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    assert_eq!(project().circles(), [] as [String; 0]);
}

#[test]
fn what_only_computes_touches_nothing() {
    assert_eq!(project().naming(PURE, WORLD), [] as [String; 0]);
}

#[test]
fn libraries_stay_in_their_layers() {
    let sources = project();
    for (library, layers) in LIBRARIES {
        let others: Vec<&str> = LAYERS.iter().map(|l| l.0).filter(|l| !layers.contains(l)).collect();
        let path = if library.contains("::") { (*library).to_owned() } else { format!("{library}::") };
        assert_eq!(sources.naming(&others, &[&path]), [] as [String; 0]);
    }
}

#[test]
fn files_are_small_and_say_what_they_are() {
    for (path, text) in &project().files {
        assert!(text.starts_with("//!"), "{path} has no `//!` line");
        assert!(text.lines().count() <= 700, "{path} holds more than one idea");
    }
}

/// Each kind of violation, planted in a scratch copy, must be detected however it is written.
#[test]
fn planted_mistakes_are_found() {
    let layers: &[(&str, &[&str])] = &[("model", &[]), ("app", &["model"])];
    let good = [
        ("lib.rs", "pub mod app;\npub mod model;"),
        ("model/mod.rs", "//! m\npub mod a;\npub mod b;\npub use a::A;\npub use b::{B, Other as C};"),
        ("model/a.rs", "pub struct A; // use crate::app::Nothing\nconst T: &str = \"crate::app::x\";"),
        ("model/b.rs", "use super::A;\npub struct B(A);\npub struct Other;"),
        ("app/mod.rs", "pub mod x;\npub mod deep;\nuse crate::model::{self, B};"),
        ("app/x.rs", "use crate::model::C;\n#[cfg(test)]\nmod tests { use crate::app::deep::y::Y; fn t() { std::fs::read(\"\"); } }"),
        ("app/deep/mod.rs", "pub mod y;"),
        ("app/deep/y.rs", "use super::super::x::X;\npub struct Y(X);"),
    ];
    let found = |path: &str, text: &str| {
        let mut files: Vec<(String, String)> = good.iter().map(|(p, t)| ((*p).to_owned(), (*t).to_owned())).collect();
        files.iter_mut().filter(|f| f.0 == path).for_each(|f| f.1.push_str(text));
        let sources = Sources::of(files);
        [sources.upward(layers), sources.circles(), sources.naming(&["app", "model"], WORLD)].map(|f| f.join("; "))
    };
    assert_eq!(found("none", ""), ["", "", ""]);
    // Upward dependencies, in each way of writing them.
    for line in [
        "\nuse crate::app::x::X;",
        "\nuse crate::{model, app::x};",
        "\nfn f() { crate::app::x::go(); }",
        "\nuse super::super::app::x::X;",
        "\nfn f() -> crate::app::deep::y::Y { todo!() }",
        "\nuse crate::app;",
    ] {
        let [upward, ..] = found("model/a.rs", line);
        assert!(upward.contains("model/a.rs: model must not use app"), "{line}: {upward:?}");
    }
    // Cycles: of two files in one folder, across folders, through a re-export, by an inline path.
    for (path, line, through) in [
        ("model/a.rs", "\nuse super::b::B;", "model/a.rs"),
        ("model/a.rs", "\nuse super::C;", "model/b.rs"),
        ("app/x.rs", "\nuse super::deep::y::Y;", "app/deep/y.rs"),
        ("app/x.rs", "\nfn f() { super::deep::y::go() }", "app/x.rs"),
    ] {
        let [_, circles, _] = found(path, line);
        assert!(circles.contains(through), "{line}: {circles:?}");
    }
    // I/O, by import and by path.
    for line in [
        "\nuse std::fs::File;",
        "\nfn f() { std::time::Instant::now(); }",
        "\nuse std::process::Command;",
        "\nfn f(p: &Path) { p.exists(); }",
    ] {
        let [.., world] = found("app/x.rs", line);
        assert!(world.contains("app/x.rs names"), "{line}: {world:?}");
    }
}
