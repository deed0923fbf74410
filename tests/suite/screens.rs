//! Every screen, drawn from real reports without a terminal. Snapshots hold the
//! text; a few styles are checked explicitly.

use super::support::{Explorer, edited, packed, root};
use insta::assert_snapshot;
use ratatui::style::Modifier;
use std::path::PathBuf;
use warpscope::app::{KeyScope, Mouse, Msg, Settings};
use warpscope::config::{ColorMode, First};
use warpscope::import::{Cancel, Preview, Progress};

fn llm(size: (u16, u16)) -> Explorer {
    Explorer::open(&[packed("llm")], size)
}

#[test]
fn kernels_at_three_sizes() {
    assert_snapshot!("kernels_80x24", llm((80, 24)).screen());
    assert_snapshot!("kernels_120x40", llm((120, 40)).screen());
    assert_snapshot!("kernels_200x50", llm((200, 50)).screen());
}

#[test]
fn launches_at_three_sizes() {
    for (name, size) in [("launches_80x24", (80, 24)), ("launches_120x40", (120, 40)), ("launches_200x50", (200, 50))] {
        let mut explorer = llm(size);
        explorer.press("enter J s");
        assert_snapshot!(name, explorer.screen());
    }
}

#[test]
fn every_grouping() {
    for (letter, name) in
        [("d", "demangled"), ("m", "mangled"), ("c", "config"), ("s", "stream"), ("g", "device"), ("p", "process"), ("r", "nvtx")]
    {
        let mut explorer = Explorer::open(&[packed("procs")], (100, 24));
        explorer.press(&format!("g {letter}"));
        assert_snapshot!(format!("group_{name}"), explorer.screen());
    }
}

#[test]
fn what_lies_over_the_screen() {
    for (keys, name) in [
        ("?", "help"),
        (":", "palette"),
        ("n", "notes"),
        ("N", "names"),
        ("i", "details"),
        ("g", "pick_group"),
        ("s", "pick_sort"),
        ("t", "pick_theme"),
        ("y", "pick_copy"),
    ] {
        // The path is on the screen: it must not depend on the project's location.
        let mut explorer = Explorer::open(&[PathBuf::from("fixtures/nsys/graph_whole.sqlite.zst")], (90, 30));
        explorer.press(keys);
        assert_snapshot!(format!("over_{name}"), explorer.screen());
        explorer.press("esc");
        assert!(explorer.app.over.is_none(), "{name} closes");
    }
}

#[test]
fn filtering_lights_the_letters_that_match() {
    let mut explorer = llm((120, 30));
    explorer.press("/");
    explorer.type_text("gath");
    assert_snapshot!("filter", explorer.screen());
    let buffer = explorer.buffer("dark", ColorMode::True);
    let row = (0..30).find(|&y| (0..100).map(|x| buffer[(x, y)].symbol()).collect::<String>().contains("vectorized_gather")).unwrap();
    let lit: String =
        (0..100).filter(|&x| buffer[(x, row)].modifier.contains(Modifier::UNDERLINED)).map(|x| buffer[(x, row)].symbol()).collect();
    assert_eq!(lit, "gath");
    explorer.press("bs bs bs bs");
    explorer.type_text("zzzz");
    assert!(explorer.screen().contains("No name matches"));
    explorer.press("esc");
    assert_eq!(explorer.app.kernels_screen(0).unwrap().shown.len(), 21);
}

#[test]
fn no_two_rows_look_the_same() {
    for report in ["llm", "zoo", "procs", "ddp_rank0", "papi"] {
        for size in [(80, 24), (120, 40), (200, 50)] {
            for letter in ["k", "n", "d", "m"] {
                let mut explorer = Explorer::open(&[packed(report)], size);
                explorer.press(&format!("g {letter}"));
                for _ in 0..3 {
                    explorer.screen();
                    let labels = explorer.app.session.reports[0].groups.labels.clone();
                    for width in [26, 34, 40, 60] {
                        let fitted = warpscope::analysis::labels::fit_labels(&labels, width);
                        let distinct: std::collections::HashSet<_> = fitted.iter().collect();
                        assert_eq!(distinct.len(), fitted.len(), "{report} {letter} {width}: {fitted:#?}");
                    }
                    explorer.press("d");
                }
            }
        }
    }
}

#[test]
fn the_notes_of_an_empty_report_are_its_screen() {
    assert_snapshot!("empty", Explorer::open(&[packed("nogpu")], (80, 24)).screen());
}

#[test]
fn a_file_that_cannot_be_opened_is_explained() {
    let file = PathBuf::from("/no/such/report.sqlite");
    assert_snapshot!("failure", Explorer::open(&[file], (80, 24)).screen());
}

#[test]
fn a_summary_csv_has_a_table_but_no_launches() {
    let mut explorer = Explorer::open(&[root().join("fixtures/stats/zoo_cuda_gpu_kern_sum.csv")], (100, 24));
    assert_snapshot!("summary_csv", explorer.screen());
    explorer.press("enter");
    assert!(explorer.screen().contains("per-kernel totals only"));
}

#[test]
fn a_table_that_is_still_growing() {
    use warpscope::app::{App, Settings, update};
    let (mut app, _) = App::new(vec![PathBuf::from("big.sqlite")], Settings::default(), (100, 24));
    let rows = vec![("gemm_kernel".to_owned(), 1_000_000, 5_000_000_000), ("tiny".to_owned(), 4_000_000, 3_000_000_000)];
    update(&mut app, Msg::Progress(0, Progress::Stage { name: "kernels", done: 31, total: 100 }));
    update(&mut app, Msg::Progress(0, Progress::Preview(Preview { rows })));
    let mut explorer =
        Explorer { app, view: warpscope::ui::View::default(), copied: Vec::new(), saved: Vec::new(), quit: false, asked: Vec::new() };
    assert_snapshot!("growing", explorer.screen());
    explorer.press("esc");
    assert!(!explorer.quit, "esc stops reading, not the program");
}

#[test]
fn a_terminal_that_is_too_small_is_told_in_one_line() {
    let mut explorer = llm((50, 10));
    assert_eq!(explorer.screen().trim(), "warpscope needs 60×16, this is 50×10");
    for size in [(1, 1), (3, 40), (200, 2), (60, 16), (61, 17), (500, 200)] {
        explorer.send(Msg::Resize(size.0, size.1));
        explorer.screen();
    }
}

#[test]
fn ascii_and_no_colour() {
    let mut explorer = llm((80, 24));
    explorer.view.ascii = true;
    let text = explorer.screen();
    assert!(text.is_ascii(), "{text}");
    assert_snapshot!("ascii_80x24", text);
    let buffer = explorer.buffer("mono", ColorMode::None);
    assert!(buffer.content.iter().all(|c| matches!((c.fg, c.bg), (ratatui::style::Color::Reset, ratatui::style::Color::Reset))));
    assert!(buffer.content.iter().any(|c| c.modifier.contains(Modifier::REVERSED)), "the selection is still seen");
}

#[test]
fn facets_jumps_and_sorting_of_launches() {
    let mut explorer = Explorer::open(&[packed("threads")], (120, 40));
    explorer.press("enter f s down enter");
    let screen = explorer.app.launches_screen(0).unwrap();
    assert!(screen.facets.stream.is_some());
    let profile = explorer.app.session.reports[0].profile.clone().unwrap();
    let streams: std::collections::BTreeSet<_> = screen
        .list
        .as_ref()
        .unwrap()
        .rows
        .iter()
        .map(|r| profile.places[profile.launches.place(r.0 as usize).unwrap().0 as usize].stream)
        .collect();
    assert_eq!(streams.len(), 1);
    assert_snapshot!("launches_one_stream", explorer.screen());
    explorer.press("esc");
    assert!(!explorer.app.launches_screen(0).unwrap().facets.has_conditions());
    explorer.press("s d");
    let durations: Vec<i64> = explorer
        .app
        .launches_screen(0)
        .unwrap()
        .list
        .as_ref()
        .unwrap()
        .rows
        .iter()
        .map(|r| profile.launches.duration(r.0 as usize))
        .collect();
    assert!(durations.is_sorted_by(|a, b| a >= b));
    explorer.press("J n");
    explorer.type_text("2");
    explorer.press("1 enter");
    let screen = explorer.app.launches_screen(0).unwrap();
    assert_eq!(screen.list.as_ref().unwrap().rows[screen.selected].1, 21);
    explorer.press("J n 9 9 9 9 enter");
    assert!(explorer.screen().contains("launch number 9999 is not in this list"));
}

#[test]
fn answers_that_come_late_are_not_shown_under_another_heading() {
    use warpscope::app::{Effect, jobs, update};
    let mut explorer = Explorer::open(&[packed("zoo")], (120, 40));
    let ask = |explorer: &mut Explorer, key: &str| update(&mut explorer.app, Msg::Key(super::support::key_event(key)));
    let answer = |effects: &[Effect]| -> Vec<Msg> {
        let work = effects.iter().filter_map(|e| match e {
            Effect::Work(w) | Effect::Rest(w) => Some(w),
            _ => None,
        });
        work.map(|w| Msg::Done {
            report: w.report,
            generation: w.generation,
            window: w.window,
            done: jobs::perform_work(w, &Cancel::default()).unwrap(),
        })
        .collect()
    };
    let first = answer(&ask(&mut explorer, "enter"));
    ask(&mut explorer, "esc");
    let moved = answer(&ask(&mut explorer, "down"));
    let second = answer(&ask(&mut explorer, "enter"));
    for msg in first {
        explorer.send(msg);
    }
    assert!(explorer.app.launches_screen(0).unwrap().list.is_none(), "the first kernel's launches belong to a screen that is gone");
    let reversed = answer(&ask(&mut explorer, "S"));
    for msg in second {
        explorer.send(msg);
    }
    assert!(explorer.app.launches_screen(0).unwrap().is_pending(), "an order that is no longer wanted");
    for msg in reversed.into_iter().chain(moved) {
        explorer.send(msg);
    }
    let screen = explorer.app.launches_screen(0).unwrap();
    let profile = explorer.app.session.reports[0].profile.as_ref().unwrap();
    let list = screen.list.as_ref().unwrap();
    assert!(!screen.is_pending() && list.rows.is_sorted_by(|a, b| a.0 > b.0));
    assert!(list.rows.iter().all(|r| profile.kernels[profile.launches.kernel(r.0 as usize).0 as usize].function() == screen.group_name()));
}

#[test]
fn a_list_that_is_made_again_leaves_the_cursor_where_it_is_now() {
    use warpscope::app::{Effect, jobs, update};
    let mut explorer = Explorer::open(&[packed("zoo")], (120, 40));
    explorer.press("enter");
    let report = &explorer.app.session.reports[0];
    let (generation, paths) = (report.generation, report.paths.clone().unwrap());
    // The ranges arrive, and the list is requested again; meanwhile the cursor moves on.
    let again = update(&mut explorer.app, Msg::Done { report: 0, generation, window: None, done: jobs::JobResult::Paths(paths) });
    explorer.press("down down down");
    let launch = explorer.app.launches_screen(0).unwrap().selected_launch();
    for effect in again {
        if let Effect::Work(w) = effect {
            explorer.send(Msg::Done { report: 0, generation, window: None, done: jobs::perform_work(&w, &Cancel::default()).unwrap() });
        }
    }
    assert_eq!(explorer.app.launches_screen(0).unwrap().selected_launch(), launch);
    assert!(launch.is_some_and(|l| l > 0));
}

#[test]
fn copies_are_what_the_screen_says() {
    let mut explorer = Explorer::open(&[packed("single")], (120, 40));
    explorer.press("g d y d y r m m y t");
    assert_eq!(explorer.copied.len(), 3);
    let first = explorer.app.session.reports[0].groups.grouping.as_ref().unwrap().rows[0].name.clone();
    assert_eq!(explorer.copied[0], first);
    assert_eq!(explorer.copied[1].lines().count(), 2);
    assert_eq!(explorer.copied[2].lines().count(), 3, "the marked rows");
    explorer.press("enter y t");
    assert!(explorer.copied[3].starts_with("launch,kernel,nth,start_ns"));
}

#[test]
fn the_mouse_selects_opens_sorts_and_scrolls() {
    let mut explorer = llm((100, 30));
    explorer.screen();
    let hit = |explorer: &Explorer, wanted: &dyn Fn(&Mouse) -> bool| explorer.view.hits.iter().find(|(_, m)| wanted(m)).unwrap().0;
    let row = hit(&explorer, &|m| *m == Mouse::Row(4));
    let pressed = explorer.view.hit_test(row.x + 5, row.y);
    explorer.send(Msg::Mouse(pressed));
    assert_eq!(explorer.app.kernels_screen(0).unwrap().selected, 4);
    let head = hit(&explorer, &|m| matches!(m, Mouse::Head(sort) if sort.word == "count"));
    explorer.send(Msg::Mouse(explorer.view.hit_test(head.x, head.y)));
    assert_eq!(explorer.app.kernels_screen(0).unwrap().sort.word, "count");
    explorer.send(Msg::Mouse(Mouse::Wheel(3)));
    let selected = explorer.app.kernels_screen(0).unwrap().selected;
    explorer.send(Msg::Mouse(Mouse::Row(selected)));
    assert!(explorer.app.launches_screen(0).is_some());
}

#[test]
fn several_reports_are_one_session() {
    let mut explorer = Explorer::open(&[packed("zoo"), packed("llm")], (100, 24));
    assert!(explorer.screen().contains("1 of 2"));
    explorer.press("]");
    assert!(explorer.screen().contains("llm.sqlite.zst · 2 of 2"));
    explorer.press("]");
    assert_eq!(explorer.app.session.active, 0);
}

#[test]
fn hostile_names_keep_the_columns_straight() {
    let evil = edited(
        "single",
        "UPDATE StringIds SET value = 'カーネル' || char(27) || '[2J' || char(8238) || 'e' || char(769) || 'x' WHERE value IN ('c_kernel', 'saxpy')",
    );
    let mut explorer = Explorer::open(&[evil], (100, 24));
    let text = explorer.screen();
    assert!(!text.chars().any(|c| c.is_control() && c != '\n' || c == '\u{202e}'));
    assert_snapshot!("hostile_names", text.lines().skip(2).collect::<Vec<_>>().join("\n"));
}

#[test]
fn escape_and_quit() {
    let mut explorer = llm((80, 24));
    explorer.press("esc");
    assert_eq!(explorer.app.current_scope(), warpscope::app::KeyScope::Overview);
    explorer.press("esc");
    assert!(explorer.screen().contains("q quits"));
    explorer.press("K enter esc");
    assert!(explorer.app.launches_screen(0).is_none());
    explorer.press("q");
    assert!(explorer.quit);
    let mut explorer = llm((80, 24));
    explorer.press("/ ctrl-c");
    assert!(explorer.quit, "ctrl-c quits even while typing");
}

/// A finding about the time between kernels has no kernel to explain or to profile again: these keys show its evidence,
/// where the command that confirms it can be copied.
#[test]
fn keys_about_kernels_show_the_evidence_of_a_finding_of_the_host() {
    for key in ["a", "r"] {
        let mut e = Explorer::open(&[root().join("fixtures/triage/item_loop.sqlite.zst")], (120, 40));
        e.press("O");
        assert!(!e.screen().contains("r re-run"), "{}", e.screen());
        e.press(key);
        assert_eq!(e.app.current_scope(), KeyScope::Overview, "{key}");
        let screen = e.screen();
        assert!(screen.contains("To confirm") && screen.contains("y copy command"), "{key}: {screen}");
        e.press("y");
        let command = e.copied.last().expect("a command");
        assert!(command.starts_with("warpscope run --recipe "), "{key}: {command}");
    }
}

/// Shares of a view are of what was recorded in it, and the rest does not look idle.
#[test]
fn holes_of_a_recording_do_not_look_idle() {
    let mut e = Explorer::open(&[root().join("fixtures/trace/server_moments.wstrace.zst")], (160, 40));
    e.press("O");
    assert!(e.screen().contains("of 217 s, in 30 parts"), "{}", e.screen());
    e.press("T");
    let screen = e.screen();
    assert!(screen.contains("of it recorded (╱ was not)") && screen.contains("╱╱╱╱╱"), "{screen}");
    assert!(screen.contains("were not recorded") && !screen.contains("no cause known"), "{screen}");
    // A theme with a background of its own.
    let light = e.buffer("light", ColorMode::True);
    assert!(light.content.iter().filter(|cell| cell.symbol() == "╱").count() > 100);
}

/// The overview judges the steady state; the tables behind it show the same time, unless the user asks for the whole
/// run.
#[test]
fn tables_show_the_time_that_the_overview_judges() {
    let settings = Settings { first: First::Overview, ..Settings::default() };
    let file = root().join("fixtures/triage/item_loop.sqlite.zst");
    let mut e = Explorer::begin_with(&[file], (120, 40), settings, |_| {});
    let figure = |screen: &str, name: &str| {
        let line = screen.lines().find(|l| l.contains(name) && l.contains('%')).unwrap_or_else(|| panic!("{name}\n{screen}"));
        line.split_whitespace().skip_while(|w| !w.ends_with('%')).take(3).collect::<Vec<_>>().join(" ")
    };
    let overview = e.screen();
    assert!(overview.contains("steady state (B whole run)"), "{overview}");
    e.press("K");
    let kernels = e.screen();
    assert!(kernels.contains("steady state (B whole run)"), "{kernels}");
    for name in ["direct_copy", "mean (reduce"] {
        assert_eq!(figure(&overview, name), figure(&kernels, name));
    }
    // Going back leaves the time as it is.
    e.press("esc");
    assert_eq!(e.app.current_scope(), KeyScope::Overview);
    e.press("K");
    assert!(e.screen().contains("steady state (B whole run)"));
    e.press("B");
    let whole = e.screen();
    assert!(whole.contains("whole run (B steady state)"), "{whole}");
    assert_ne!(figure(&whole, "direct_copy"), figure(&kernels, "direct_copy"));
    // The overview judges what the tables show.
    e.press("O");
    let run = e.screen();
    assert!(run.contains("whole run (B steady state)") && run.contains("whole run: 25.4 ms"), "{run}");
    assert_eq!(figure(&run, "direct_copy"), figure(&whole, "direct_copy"));
    // The choice stays.
    e.press("K");
    assert!(e.screen().contains("whole run (B steady state)"));
    e.press("B");
    assert_eq!(figure(&e.screen(), "direct_copy"), figure(&kernels, "direct_copy"));
    // A launch of the warm-up is shown in the whole run.
    e.press("T 0 home j . enter");
    let screen = e.screen();
    assert!(screen.contains("outside the steady state: all screens show the whole run"), "{screen}");
    assert!(e.app.session.reports[0].window.is_none());
}

/// A launch of the warm-up keeps its keys while the tables show the steady state: its result, and the command for it.
#[test]
fn a_launch_outside_of_the_steady_state_can_be_profiled_again() {
    let settings = Settings { first: First::Overview, ..Settings::default() };
    let mut e = Explorer::begin_with(&super::support::demo_files(), (120, 40), settings, |_| {});
    e.press("K a");
    assert_eq!(e.app.current_scope(), KeyScope::Hints);
    e.press("r");
    assert!(e.app.current_scope() == KeyScope::Rerun && e.screen().contains("--launch-skip"), "{}", e.screen());
}

/// On idle time, the keys for a kernel are about the one that ends it.
#[test]
fn idle_time_offers_the_kernel_that_ends_it() {
    let settings = Settings { first: First::Overview, ..Settings::default() };
    let file = root().join("fixtures/triage/input_wait.sqlite.zst");
    let mut e = Explorer::begin_with(&[file], (120, 40), settings, |_| {});
    e.press("enter");
    let screen = e.screen();
    assert!(screen.contains("goes to the launch after this idle time"), "{screen}");
    e.press("r");
    assert!(e.app.current_scope() == KeyScope::Rerun && e.screen().contains("--launch-skip"), "{}", e.screen());
}
