//! README, `demo.tape` and `--help` agree with the program.

use super::support::{Explorer, demo_files, root, run};
use std::fs;
use std::path::PathBuf;
use warpscope::app::ACTIONS;
use warpscope::cli::demo::DEMO;
use warpscope::cli::help::TOPICS;
use warpscope::config::ColorMode;
use warpscope::config::keys::Key;
use warpscope::ui::screen_export;
use warpscope::ui::theme::{Library, THEMES};

fn readme() -> String {
    fs::read_to_string(root().join("README.md")).unwrap()
}

/// Source text of a `warpscope help` topic.
fn topic(name: &str) -> &'static str {
    TOPICS.iter().find(|t| t.0 == name).unwrap().1
}

#[test]
fn the_keys_of_the_readme_do_what_it_says() {
    let section = readme().split("## Keys").nth(1).unwrap().split("\n## ").next().unwrap().to_owned();
    // The first and third columns hold keys.
    let mut named = Vec::new();
    for row in section.lines().filter(|l| l.starts_with("| `")) {
        let cells: Vec<&str> = row.split('|').collect();
        named.extend([cells[1], cells[3]].iter().flat_map(|c| c.split('`').skip(1).step_by(2)).map(str::to_owned));
    }
    assert!(named.len() > 15, "{named:?}");
    for key in named {
        let bound = ACTIONS.iter().any(|a| a.keys.iter().any(|k| Key::parse(k).unwrap().label() == key));
        assert!(bound, "{key} does nothing");
    }
}

#[test]
fn no_line_of_the_readme_needs_scrolling_sideways() {
    for line in readme().lines().filter(|l| !l.starts_with("![")) {
        assert!(line.chars().count() <= 100, "{line}");
    }
    assert!(readme().lines().count() <= 130);
}

#[test]
fn every_topic_is_named_in_the_readme() {
    let more = readme().split("## More").nth(1).unwrap().to_owned();
    for (name, _) in TOPICS {
        assert!(more.contains(&format!("`{name}`")) || readme().contains(&format!("warpscope help {name}")), "{name}");
    }
    let (code, out, _) = run(&["help"]);
    assert!(code == 0 && TOPICS.iter().all(|t| out.contains(t.0)), "{out}");
    let (code, out, _) = run(&["help", "triage"]);
    assert!(code == 0 && out.contains("pageable-copies") && out.contains("warpscope triage --help"), "{out}");
    let (code, out, _) = run(&["help", "top"]);
    assert!(code == 0 && out.contains("--by"), "{out}");
    let (code, _, err) = run(&["help", "timelin"]);
    assert!(code == 2 && err.contains("did you mean `timeline`?"), "{err}");
}

/// The picture in the README equals the demo's first screen, as the explorer itself saves it.
#[test]
fn the_picture_of_the_readme_is_the_demo() {
    let mut explorer = Explorer::open(&demo_files(), (120, 40));
    explorer.press("O");
    // The file name that the demo gives its capture.
    explorer.app.session.reports[0].file = PathBuf::from(DEMO[0].0);
    let theme = Library::new(Vec::new()).theme("dark", ColorMode::True).unwrap();
    let drawn = screen_export::export_screen(&explorer.app, &mut explorer.view, &theme, false, screen_export::Form::Svg);
    let place = "fixtures/readme/overview.svg";
    assert!(readme().contains(&format!("]({place})")));
    if fs::read_to_string(root().join(place)).ok().as_ref() != Some(&drawn) {
        let fresh = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("overview.svg");
        fs::write(&fresh, drawn).unwrap();
        panic!("the picture is of an older demo: cp {} {place}", fresh.display());
    }
}

#[test]
fn the_picture_of_the_timeline_is_the_demo() {
    let mut explorer = Explorer::open(&demo_files(), (110, 30));
    explorer.app.session.reports[0].file = PathBuf::from(DEMO[0].0);
    explorer.press("O T");
    for key in ["0", "j", "j", "/", "n", "v", "j", "e", "t", "enter", "-", "-"] {
        explorer.press(key);
    }
    let screen: String = explorer.screen().lines().map(|l| format!("{}\n", l.trim_end())).collect();
    assert!(topic("timeline").contains(&screen), "put this into src/cli/help/timeline.md:\n{screen}");
}

#[test]
fn themes_and_words_are_all_named() {
    let names = THEMES.iter().map(|(n, _)| *n).collect::<Vec<_>>().join(", ");
    assert!(topic("config").contains(&format!("# {names}")), "{names}");
    let example = topic("config").split("```toml\n").nth(1).unwrap().split("```").next().unwrap().to_owned();
    let config = warpscope::config::Config::parse(&example).unwrap();
    assert!(!warpscope::cli::recipes::user_recipes(&config).unwrap_or_else(|e| panic!("{}", e.text)).is_empty());
    for (name, _) in warpscope::report::REPORTS {
        assert!(TOPICS.iter().any(|t| t.1.contains(&format!("warpscope {name} "))), "{name}");
    }
}

#[test]
fn the_tape_plays_on_the_demo() {
    let tape = fs::read_to_string(root().join("demo.tape")).unwrap();
    let mut explorer: Option<Explorer> = None;
    let mut typed = 0;
    for line in tape.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let text = rest.trim_matches('"');
        match (word, &mut explorer) {
            ("Output" | "Set" | "Require" | "Hide" | "Show" | "Sleep", _) => {}
            ("Type", None) if text.contains("warpscope demo") => explorer = Some(Explorer::open(&demo_files(), (120, 40))),
            ("Type", None) => assert_eq!(text, "cargo build --release && clear"),
            ("Enter" | "Wait", None) => {}
            // The Enter that starts `warpscope demo` goes to the shell.
            ("Enter", Some(_)) if typed == 0 => typed = 1,
            ("Type", Some(e)) => {
                for c in text.chars() {
                    e.press(&c.to_string());
                }
            }
            ("Enter" | "Down" | "Escape", Some(e)) => e.press(match word {
                "Enter" => "enter",
                "Down" => "down",
                _ => "esc",
            }),
            (wait, Some(e)) if wait.starts_with("Wait") => {
                let wanted = rest.trim_matches('/');
                assert!(e.screen().contains(wanted), "{line}: the screen is\n{}", e.screen());
            }
            _ => panic!("demo.tape: {line}"),
        }
    }
    assert!(explorer.is_some_and(|e| e.quit), "the tape ends the program");
}

#[test]
fn help_names_every_command_and_option() {
    let help = assert_cmd::Command::cargo_bin("warpscope").unwrap().arg("--help").output().unwrap();
    let text = String::from_utf8(help.stdout).unwrap();
    for word in ["top", "launches", "hints", "diff", "doctor", "demo", "themes", "--theme", "--color", "--ascii", "--config", "--nsys"] {
        assert!(text.contains(word), "{word}");
    }
    insta::assert_snapshot!("help_text", text);
    let top = assert_cmd::Command::cargo_bin("warpscope").unwrap().args(["top", "--help"]).output().unwrap();
    insta::assert_snapshot!("help_text_top", String::from_utf8(top.stdout).unwrap());
}

#[test]
fn the_changelog_has_this_version_or_what_comes_next() {
    let text = fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    assert!(text.contains("## [Unreleased]") || text.contains(concat!("## [", env!("CARGO_PKG_VERSION"), "]")));
}

#[test]
fn sentences_name_keys_of_actions_that_exist() {
    fn files(folder: &std::path::Path, out: &mut Vec<std::path::PathBuf>) {
        for entry in fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
            if entry.is_dir() { files(&entry, out) } else { out.push(entry) }
        }
    }
    let mut all = Vec::new();
    files(&root().join("src"), &mut all);
    let mut named = 0;
    for file in all {
        for after in fs::read_to_string(&file).unwrap().split("key_of(\"").skip(1) {
            let name = after.split('"').next().unwrap();
            assert!(warpscope::app::ACTIONS.iter().any(|a| a.name == name), "{}: there is no action {name:?}", file.display());
            named += 1;
        }
    }
    assert!(named > 10);
}

/// Every path that the page names exists, and the page mentions every folder of `src`.
#[test]
fn the_architecture_page_names_files_that_exist() {
    const BEGINNINGS: [&str; 6] = ["src/", "tests/", "fixtures/", "themes/", "benches/", ".ci/"];
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let quoted = page.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let paths: Vec<&str> = quoted.filter(|text| BEGINNINGS.iter().any(|b| text.starts_with(b))).collect();
    assert!(paths.len() > 50, "{paths:?}");
    let missing: Vec<&&str> = paths.iter().filter(|path| !root().join(path).exists()).collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md names what is not there: {missing:?}");
    for entry in fs::read_dir(root().join("src")).unwrap().map(|e| e.unwrap()) {
        let name = format!("src/{}/", entry.file_name().to_string_lossy());
        assert!(!entry.path().is_dir() || paths.contains(&name.as_str()), "ARCHITECTURE.md does not name {name}");
    }
    assert!(page.lines().count() <= 135 && page.lines().all(|line| line.chars().count() <= 100), "one page of 100 columns");
}
