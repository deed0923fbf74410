//! The re-run screen: contents, effect of fields on the command, copies, scripts, comparison, undo.

use super::support::{Explorer, edited, packed, root};
use insta::assert_snapshot;
use std::path::PathBuf;
use warpscope::app::{KeyScope, Mouse, Msg};
use warpscope::config::ColorMode;

pub fn open(name: &str, size: (u16, u16), keys: &str) -> Explorer {
    let mut explorer = Explorer::open(&[packed(name)], size);
    explorer.press(keys);
    assert_eq!(explorer.app.current_scope(), KeyScope::Rerun);
    explorer
}

/// Returns the displayed command on one line.
pub fn command(explorer: &mut Explorer) -> String {
    explorer.press("y c");
    let screen = explorer.screen();
    explorer.copied.pop().unwrap_or_else(|| panic!("{screen}"))
}

#[test]
fn the_screen_at_three_sizes() {
    for (name, size) in [("rerun_80x24", (80, 24)), ("rerun_120x40", (120, 40)), ("rerun_200x50", (200, 50))] {
        assert_snapshot!(name, open("llm", size, "r").screen());
    }
    assert_snapshot!("rerun_60x16", open("llm", (60, 16), "r").screen());
}

#[test]
fn warnings_several_commands_and_reasons() {
    assert_snapshot!("rerun_processes", open("procs", (120, 40), "enter G r").screen());
    assert_snapshot!("rerun_nccl", open("ddp_rank0", (120, 40), "/ n c c l enter r").screen());
    // Three marked kernels: one launch of each, as three commands.
    let mut explorer = open("single", (120, 40), "m j m j m r");
    assert_snapshot!("rerun_marked", explorer.screen());
    let first = command(&mut explorer);
    explorer.press("tab");
    assert_ne!(command(&mut explorer), first);
    explorer.press("tab tab");
    assert_eq!(command(&mut explorer), first, "round");
    // A capture that began late.
    let late = edited("single", "UPDATE META_DATA_CAPTURE SET value = '60000' WHERE name = 'START_DELAY_MS'; DELETE FROM NVTX_EVENTS;");
    let mut explorer = Explorer::open(&[late], (80, 24));
    explorer.press("enter J n");
    explorer.type_text("9");
    explorer.press("enter r");
    let screen = explorer.screen();
    assert!(screen.contains("not exact") && screen.contains("No exact count is possible"), "{screen}");
}

#[test]
fn ascii_without_colour() {
    let mut explorer = open("procs", (80, 24), "enter r j");
    explorer.view.ascii = true;
    let buffer = explorer.buffer("mono", ColorMode::None);
    let text: String = buffer.content.iter().map(ratatui::buffer::Cell::symbol).collect();
    assert!(text.is_ascii());
    assert!(buffer.content.iter().any(|c| c.modifier.contains(ratatui::style::Modifier::REVERSED)), "the selection is seen");
}

#[test]
fn every_field_changes_the_command_and_undo_takes_it_back() {
    let mut explorer = Explorer::open(&[packed("single")], (120, 40));
    explorer.press("/ s a x p y enter enter J n");
    explorer.type_text("5");
    explorer.press("enter r");
    let first = command(&mut explorer);
    assert!(first.contains("--kernel-name saxpy") && first.contains("--launch-count 1"), "{first}");
    let mut history = vec![first.clone()];
    // Moves down the fields; each is changed, and each change is visible.
    for (keys, says) in [
        ("enter 3", "--launch-count 3"),
        ("enter o", "--launch-count 1"),
        ("j enter m", "--kernel-name-base mangled"),
        ("j enter 1", "--nvtx-include "),
        ("j enter f", "--set full"),
        ("enter 2", "--section MemoryWorkloadAnalysis_Tables"),
        ("j enter", "--clock-control none"),
        ("j enter", "--cache-control none"),
        ("j enter p", "--replay-mode application"),
        ("j enter", "--import-source yes"),
        ("j enter", "--kill yes"),
        ("j enter o", "--force-overwrite"),
    ] {
        explorer.press(keys);
        let now = command(&mut explorer);
        assert!(now.contains(says), "{keys}: {now}");
        history.push(now);
    }
    explorer.press("enter n");
    explorer.type_text("x100%");
    explorer.press("enter");
    let named = command(&mut explorer);
    assert!(named.contains("x100%%"), "{named}");
    explorer.press("u");
    explorer.press("j enter");
    explorer.type_text(" --more 'a b'");
    explorer.press("enter");
    assert!(command(&mut explorer).ends_with("./launches single --more 'a b'"));
    explorer.press("u j enter");
    explorer.type_text("/x y");
    explorer.press("enter y d");
    assert!(explorer.copied.pop().unwrap().starts_with("cd -- '/tmp/w/x y' && ncu "));
    explorer.press("u");
    for want in history.into_iter().rev() {
        assert_eq!(command(&mut explorer), want);
        explorer.press("u");
    }
    assert!(explorer.screen().contains("nothing to undo"));
    assert_eq!(command(&mut explorer), first);
    explorer.press("esc");
    assert_eq!(explorer.app.current_scope(), KeyScope::Launches);
}

#[test]
fn an_alternative_is_taken_over() {
    let mut explorer = open("graph_node", (120, 40), "enter G r G");
    let before = command(&mut explorer);
    let screen = explorer.screen();
    assert!(screen.contains("The whole CUDA graph"), "{screen}");
    explorer.press("enter");
    assert!(command(&mut explorer).contains("--graph-profiling graph --kernel-name graph"));
    explorer.press("u");
    assert_eq!(command(&mut explorer), before);
}

#[test]
fn copies_and_scripts_are_the_command() {
    let mut explorer = open("single", (120, 40), "enter r y l");
    let lines = explorer.copied.pop().unwrap();
    assert!(lines.contains(" \\\n    --launch-skip "), "{lines}");
    explorer.press("y j");
    let json: serde_json::Value = serde_json::from_str(&explorer.copied.pop().unwrap()).unwrap();
    assert_eq!(json["shell"].as_str().unwrap(), command(&mut explorer));
    explorer.press("y s");
    let script = explorer.copied.pop().unwrap();
    assert!(script.starts_with("#!/bin/sh\n") && script.contains(&lines), "{script}");
    explorer.press("w");
    assert!(explorer.screen().contains("save the script as"), "{}", explorer.screen());
    explorer.press("enter");
    let (path, saved) = explorer.saved.pop().unwrap();
    assert_eq!((path, saved), (PathBuf::from("./scale-2.sh"), script));
}

#[test]
fn a_result_is_compared_on_the_screen() {
    let mut explorer = Explorer::open(&[packed("single")], (120, 40));
    explorer.press("/ s a x p y _ v 2 enter enter J n");
    explorer.type_text("3");
    explorer.press("enter r");
    let launch = command(&mut explorer);
    let result = root().join("fixtures/ncu/one.ncu-rep.zst");
    let compare = |explorer: &mut Explorer, result: &std::path::Path| {
        explorer.press("v ctrl-u");
        explorer.type_text(&result.to_string_lossy());
        explorer.press("enter");
        explorer.screen()
    };
    let screen = compare(&mut explorer, &result);
    assert!(
        screen.contains("verified: saxpy_v2 with grid 35 and block 64") || screen.contains("differs: grid 35 instead of"),
        "{launch}\n{screen}"
    );
    // Another launch is reported, and so is a missing file.
    explorer.press("esc j r");
    let screen = compare(&mut explorer, &result);
    assert!(screen.contains("differs: grid 35 instead of "), "{screen}");
    let screen = compare(&mut explorer, std::path::Path::new("/nonexistent.ncu-rep"));
    assert!(screen.contains("/nonexistent.ncu-rep: No such file"), "{screen}");
    // The old command's result is not shown beside a new command.
    explorer.press("enter s");
    assert!(!explorer.screen().contains("differs"), "{}", explorer.screen());
}

#[test]
fn there_is_a_word_where_nothing_can_be_profiled() {
    let mut explorer = Explorer::open(&[packed("nogpu")], (80, 24));
    explorer.press("r");
    assert!(explorer.screen().contains("there is no launch to profile again"), "{}", explorer.screen());
    let mut explorer = Explorer::open(&[root().join("fixtures/stats/single_cuda_gpu_kern_sum.csv")], (80, 24));
    explorer.press("r");
    assert!(explorer.screen().contains("per-kernel totals only"), "{}", explorer.screen());
}

/// Row of the clock setting, after better command, profiler, launches, name, counted in, collect.
const CLOCKS: usize = 5;

#[test]
fn the_mouse_selects_and_changes_fields() {
    let mut explorer = open("single", (120, 40), "enter r");
    explorer.screen();
    let (area, _) = *explorer.view.hits.iter().find(|(_, m)| *m == Mouse::Row(CLOCKS)).unwrap();
    for _ in 0..2 {
        let hit = explorer.view.hit_test(area.x + 2, area.y);
        explorer.send(Msg::Mouse(hit));
        explorer.screen();
    }
    assert!(command(&mut explorer).contains("--clock-control none"));
}

#[test]
fn hostile_names_stay_inside_the_screen() {
    let evil = edited(
        "single",
        "UPDATE StringIds SET value = 'sax' || char(27) || '[2Jpy' || char(10) || '$(id) ' || char(8238) WHERE value = 'saxpy'; UPDATE META_DATA_CAPTURE SET value = char(27) || ']0;x' || char(7) WHERE name = 'PROCESS_0:ARGUMENT_0'",
    );
    let mut explorer = Explorer::open(&[evil], (120, 40));
    explorer.press("j r");
    let screen = explorer.screen();
    assert!(!screen.chars().any(|c| c != '\n' && (c.is_control() || c == '\u{202e}')), "{screen}");
    assert!(screen.contains("^[[2J"), "{screen}");
}

/// A wide screen says once what is missing; the field says what to do about it.
#[test]
fn a_report_without_its_program_says_so_once() {
    let mut e = Explorer::open(&[root().join("fixtures/triage/item_loop.pt.trace.json.gz")], (120, 40));
    e.press("K r");
    let screen = e.screen();
    assert_eq!(screen.matches("The report does not say which program").count(), 1, "{screen}");
    assert_eq!(screen.matches("give the program and its arguments").count(), 1, "{screen}");
}
