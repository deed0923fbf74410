//! The first minute of a new user: start screen, demo, tour, and messages and keys that are the same everywhere.

use super::support::{Explorer, demo_files, packed, root, run};
use insta::assert_snapshot;
use std::path::PathBuf;
use warpscope::app::found_files::FileList;
use warpscope::app::session::Fact;
use warpscope::app::{self, ActionId, Effect, KeyScope, Mouse, Msg, Settings};
use warpscope::config::First;
use warpscope::import::folder::FoundReport;

fn home(size: (u16, u16)) -> Explorer {
    let mut e = Explorer::open(&[], size);
    let _ = app::open_library(&mut e.app);
    let fact = |name, there, text: &str| Fact { name, there, text: text.to_owned() };
    e.app.session.machine = vec![
        fact("GPU", true, "1 GPU, as the NVIDIA driver says"),
        fact("libcupti", true, "the built-in tracer records: warpscope run -- PROGRAM (/usr/local/cuda/lib64/libcupti.so.13)"),
        fact("nsys", false, "not found: needed only for OS calls, CPU samples and GPU metrics"),
    ];
    e.send(Msg::Library(Ok((Vec::new(), 0))));
    e
}

#[test]
fn the_first_screen_says_what_this_machine_can_do_and_opens_the_demo() {
    for (name, size) in [("home_80x24", (80, 24)), ("home_120x40", (120, 40))] {
        assert_snapshot!(name, home(size).screen());
    }
    let mut e = home((120, 40));
    e.press("enter");
    assert_eq!((e.app.current_scope(), e.app.session.reports.len()), (KeyScope::Kernels, 4));
    assert!(e.app.session.reports.iter().all(|r| r.built_in));
}

#[test]
fn a_tour_from_the_shell_begins_with_the_overview() {
    for first in [First::Overview, First::Kernels] {
        let settings = Settings { first, ..Settings::default() };
        let mut e = Explorer::begin_with(&demo_files(), (120, 40), settings, |app| app.session.tour = Some(0));
        assert_eq!(e.app.current_scope(), KeyScope::Overview);
        assert!(e.screen().contains("tour 1 of 5"), "{}", e.screen());
    }
}

#[test]
fn the_tour_leads_from_the_verdict_to_the_command() {
    let mut e = Explorer::open(&demo_files(), (120, 40));
    e.press("K ? t");
    assert_eq!(e.app.current_scope(), KeyScope::Overview);
    assert!(e.screen().contains("tour 1 of 5"), "{}", e.screen());
    e.press("T");
    assert!(e.screen().contains("tour 2 of 5"));
    // On another screen the tour says how to return.
    e.press("V");
    assert!(e.screen().contains("T goes to the timeline"), "{}", e.screen());
    e.press("esc K");
    assert!(e.screen().contains("tour 3 of 5"));
    e.press("a");
    assert!(e.screen().contains("tour 4 of 5"), "{}", e.screen());
    e.press("r");
    assert!(e.screen().contains("tour 5 of 5") && e.screen().contains("--launch-skip"), "{}", e.screen());
    assert!(!e.screen().contains('{'), "every key is spelled: {}", e.screen());
    e.press("esc");
    assert!(!e.screen().contains("tour") && e.app.session.tour.is_none());
    // The tour can be left at any step, and needs a timeline.
    e.press("? t ? t");
    assert!(e.app.session.tour.is_none() && e.screen().contains("the tour is over"));
    let mut e = Explorer::open(&[super::support::root().join("fixtures/demo/zoo.ncu-rep.zst")], (120, 40));
    e.press("? t");
    assert!(e.screen().contains("the tour needs a timeline"), "{}", e.screen());
}

#[test]
fn g_twice_is_the_first_row_everywhere() {
    let mut e = Explorer::open(&demo_files(), (120, 40));
    e.press("K j j j g g");
    let first = |e: &Explorer| e.app.report_screen::<warpscope::app::KernelsScreen>(0).unwrap().selected;
    assert_eq!(first(&e), 0);
    e.press("enter j j j");
    let selected = |e: &Explorer| e.app.report_screen::<warpscope::app::LaunchesScreen>(0).unwrap().selected;
    assert_eq!(selected(&e), 3);
    e.press("g g");
    assert_eq!(selected(&e), 0);
}

#[test]
fn a_message_has_its_own_line_and_the_keys_stay() {
    let mut e = Explorer::open(&demo_files(), (120, 40));
    e.press("K d");
    let screen = e.screen();
    let lines: Vec<&str> = screen.lines().collect();
    assert!(lines[38].contains("• demangled names"), "{screen}");
    assert!(lines[39].contains("q quit"), "{screen}");
    e.press("j");
    assert!(e.screen().lines().nth(38).unwrap().contains("next:"));
}

#[test]
fn a_report_that_cannot_be_opened_is_seen_from_every_other() {
    let broken = super::support::root().join("Cargo.toml");
    let mut e = Explorer::open(&[packed("llm"), broken], (120, 40));
    e.press("K");
    assert!(e.screen().lines().next().unwrap().contains("Cargo.toml could not be opened"), "{}", e.screen());
}

#[test]
fn help_has_what_works_here_first() {
    let mut e = Explorer::open(&demo_files(), (120, 40));
    e.press("K ?");
    let screen = e.screen();
    assert!(screen.contains("Here: kernels") && screen.contains("Signs and words"), "{screen}");
    e.press("esc T ?");
    assert!(e.screen().contains("Here: timeline"));
    let (code, out, _) = run(&["help", "keys"]);
    assert!(code == 0 && out.contains("KEYS"));
}

#[test]
fn keys_in_the_last_line_can_be_clicked() {
    let mut e = Explorer::open(&demo_files(), (120, 40));
    e.press("K");
    let screen = e.screen();
    let line: Vec<char> = screen.lines().nth(39).unwrap().chars().collect();
    let at = line.windows(8).position(|w| w.iter().collect::<String>() == "timeline").unwrap();
    let hit = e.view.hit_test(u16::try_from(at).unwrap(), 39);
    assert_eq!(hit, Mouse::Action(ActionId::Timeline));
    e.send(Msg::Mouse(hit));
    assert_eq!(e.app.current_scope(), KeyScope::Timeline);
}

#[test]
fn the_only_result_of_a_report_opens_with_its_hints() {
    let settings = || Settings { first: First::Overview, ..Settings::default() };
    let file = |name: &str| super::support::root().join("fixtures/ncu").join(name);
    let mut e = Explorer::begin_with(&[file("one.ncu-rep.zst")], (120, 40), settings(), |_| {});
    assert_eq!(e.app.current_scope(), KeyScope::Hints);
    e.press("esc");
    assert_eq!(e.app.current_scope(), KeyScope::Kernels);
    for files in [vec![file("three.ncu-rep.zst")], vec![file("one.ncu-rep.zst"), file("three.ncu-rep.zst")]] {
        let e = Explorer::begin_with(&files, (120, 40), settings(), |_| {});
        assert_eq!(e.app.current_scope(), KeyScope::Kernels, "{files:?}");
    }
}

fn listed(shown: bool) -> Msg {
    let now_ms = 1_000_000_000;
    let report = |path: PathBuf, bytes, age: i64| FoundReport { path, bytes, modified_ms: now_ms - age * 1000 };
    let reports = vec![
        report("runs/decode.nsys-rep".into(), 12 << 20, 40),
        report("runs/kernels.ncu-rep".into(), 300 << 10, 7_300),
        report("fixtures/trace/llm.wstrace.zst".into(), 94_000, 3 * 86_400),
    ];
    Msg::Files(Box::new(FileList { folders: vec!["/home/user/work".into()], reports, cut: false, now_ms, shown, named: None }))
}

/// Reports of the folder are offered on the start screen, and listed over any screen.
#[test]
fn reports_of_the_folder_can_be_opened_from_within() {
    let mut e = home((120, 40));
    e.send(listed(false));
    assert!(e.screen().contains("lists the 3 reports of this folder: the newest runs/decode.nsys-rep, just now"), "{}", e.screen());
    e.press("enter");
    assert!(matches!(&e.asked.last(), Some(Effect::Files { shown: true, folders }) if folders == &[PathBuf::from(".")]), "{:?}", e.asked);
    e.send(listed(true));
    assert_snapshot!("file_list_120x40", e.screen());
    e.press("l l m enter");
    assert_eq!(e.app.session.reports.len(), 1);
    assert!(!e.app.session.reports[0].trusted && e.app.session.reports[0].profile.is_some());
    assert_eq!(e.app.current_scope(), KeyScope::Kernels);
    // A second report is opened beside it; one that is open is only shown.
    e.press("ctrl-o");
    e.send(listed(true));
    assert!(e.screen().contains("3 days ago, open"), "{}", e.screen());
    e.press("l l m enter");
    assert_eq!(e.app.session.reports.len(), 1);
    // A path can be typed, and the folder above be listed.
    e.send(listed(true));
    e.send(Msg::Paste("/data/other.sqlite".to_owned()));
    e.press("enter");
    let asked = |e: &Explorer| match e.asked.last() {
        Some(Effect::Files { shown: true, folders }) => folders.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(asked(&e), [PathBuf::from("/data/other.sqlite")]);
    let path = root().join("fixtures/trace/torch_eager.wstrace.zst");
    let Msg::Files(found) = listed(true) else { unreachable!() };
    e.send(Msg::Files(Box::new(FileList { named: Some(path.clone()), ..*found })));
    assert_eq!((e.app.session.reports.len(), &e.app.session.reports[1].file), (2, &path));
    e.send(listed(true));
    e.press(". . enter");
    assert_eq!(asked(&e), [PathBuf::from("/home/user")]);
}
