//! Every screen at three sizes: its snapshot, the bytes sent over a slow line, and gapless charts.

use super::support::{Explorer, demo_files, root};
use insta::assert_snapshot;
use ratatui::backend::Backend;
use ratatui::buffer::{Buffer, Cell};
use std::io::Write;
use warpscope::app::KeyScope;
use warpscope::app::actions::table::find_action;
use warpscope::config::ColorMode;
use warpscope::config::keys::Key;
use warpscope::ui::compact_backend::CompactBackend;

/// Screens of the demo, and the keys that lead to them from the first one.
const SCREENS: [(&str, &str); 15] = [
    ("overview", "O"),
    ("timeline", "T"),
    ("ranges", "V"),
    ("kernels", "O K"),
    ("launches", "O K enter"),
    ("rerun", "K r"),
    ("metrics", "K p"),
    ("diagnosis", "K a"),
    ("roofline", "K ] ] ] p o"),
    ("compare", "K ] ] ] p c enter"),
    ("source", "K ] ] ] p e"),
    ("checklist", "x"),
    ("help", "?"),
    ("palette", ":"),
    ("notes", "n"),
];
const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (200, 50)];

fn at(keys: &str, size: (u16, u16)) -> Explorer {
    let mut explorer = Explorer::open(&demo_files(), size);
    if !keys.is_empty() {
        explorer.press(keys);
    }
    explorer
}

/// Counts written bytes.
#[derive(Default)]
struct Count(std::rc::Rc<std::cell::Cell<usize>>);

impl Write for Count {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.set(self.0.get() + bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns the bytes needed to turn one screen into another.
fn bytes(from: &Buffer, to: &Buffer) -> usize {
    let count = Count::default();
    let sum = std::rc::Rc::clone(&count.0);
    let mut backend = CompactBackend::new(count, (to.area.width, to.area.height));
    let before: Vec<(u16, u16, &Cell)> =
        Buffer::empty(from.area).diff(from).into_iter().map(|(x, y, _)| (x, y, from.cell((x, y)).unwrap())).collect();
    backend.draw(before.into_iter()).unwrap();
    sum.set(0);
    backend.draw(from.diff(to).into_iter()).unwrap();
    sum.get()
}

#[test]
fn every_screen_of_the_demo_at_three_sizes() {
    // The notes name the report's folder, which differs between machines.
    for (name, keys) in SCREENS.into_iter().filter(|s| s.0 != "notes") {
        for size in SIZES {
            assert_snapshot!(format!("{name}_{}x{}", size.0, size.1), at(keys, size).screen());
        }
    }
}

/// 12 KiB take a second at 100 kbit/s.
#[test]
fn a_full_redraw_takes_less_than_12_kib() {
    let mut all = Vec::new();
    for (name, keys) in SCREENS {
        let screen = at(keys, (120, 40)).buffer("dark", ColorMode::True);
        let sent = bytes(&Buffer::empty(screen.area), &screen);
        all.push(format!("{name} {sent}"));
        assert!((1_000..12 << 10).contains(&sent), "{name}: {sent} bytes");
    }
    println!("{}", all.join(", "));
}

/// One selection step, with the charts that follow it.
#[test]
fn a_step_of_the_selection_takes_less_than_4_kib() {
    let mut all = Vec::new();
    for (name, keys) in &SCREENS[..11] {
        let mut explorer = at(keys, (120, 40));
        let before = explorer.buffer("dark", ColorMode::True);
        explorer.press("down");
        let sent = bytes(&before, &explorer.buffer("dark", ColorMode::True));
        all.push(format!("{name} {sent}"));
        assert!(sent < 4 << 10, "{name}: {sent} bytes");
    }
    println!("{}", all.join(", "));
}

/// Labels of the roofline are next to its lines: each label fits in one row of the chart.
#[test]
fn labels_of_the_roofline_are_whole() {
    for size in SIZES {
        let text = at("K ] ] ] p o", size).screen();
        for label in ["FP32 66.9 TFLOP/s", "FP64 33.4 TFLOP/s", "FP16 tensor 1070 TFLOP/s"] {
            assert!(text.lines().any(|l| l.contains(label)), "{label} at {size:?}:\n{text}");
        }
    }
}

/// Without Unicode blocks and lines a screen has the same words: in the C locale only ASCII is drawn.
#[test]
fn in_ascii_every_screen_keeps_its_words() {
    for (name, keys) in SCREENS {
        let mut explorer = at(keys, (120, 40));
        explorer.view.ascii = true;
        let text = explorer.screen();
        assert!(text.is_ascii(), "{name}: {text}");
    }
}

/// Actions that change nothing where there is nothing left to do, as everywhere: moves at an end, undoing nothing. The
/// last two act outside of the screen.
const MAY_REST: [&str; 21] = [
    "up",
    "down",
    "page-up",
    "page-down",
    "first",
    "last",
    "back",
    "time-left",
    "time-right",
    "pan-left",
    "pan-right",
    "row-up",
    "row-down",
    "run-start",
    "run-end",
    "next-section",
    "previous-section",
    "quit",
    "unmark-all",
    "redraw",
    "suspend",
];

/// A key does something, or a line says why not and where it works.
#[test]
fn no_key_is_without_an_answer() {
    let mut dead = Vec::new();
    let keymap = warpscope::app::Keymap::default();
    for (name, keys) in SCREENS.into_iter().filter(|s| !["help", "palette", "notes"].contains(&s.0)) {
        let mut start = at(keys, (120, 40));
        start.app.status = None;
        let before = start.fork().buffer("dark", ColorMode::True);
        let scope = if start.app.over.is_some() { KeyScope::Kernels } else { start.app.current_scope() };
        let keys: std::collections::BTreeSet<&str> = warpscope::app::ACTIONS.iter().flat_map(|a| a.keys).copied().collect();
        for key in keys {
            let bound = Key::parse(key).and_then(|key| keymap.find_action(key, scope)).and_then(find_action);
            // `g` is the first row where it is not bound.
            if bound.map_or(key == "g", |a| MAY_REST.contains(&a.name)) {
                continue;
            }
            let mut explorer = start.fork();
            explorer.press(key);
            if explorer.asked.is_empty() && !explorer.quit && explorer.buffer("dark", ColorMode::True) == before {
                dead.push(format!("{name}: {key} ({})", bound.map_or("", |a| a.name)));
            }
        }
    }
    assert!(dead.is_empty(), "{}", dead.join("\n"));
}

/// Runs of different causes, and the screens that `enter` leads to from their verdict.
const PATHS: [(&str, &[KeyScope]); 8] = [
    ("host_compute.sqlite.zst", &[KeyScope::Timeline, KeyScope::Launches]),
    ("input_wait.sqlite.zst", &[KeyScope::Timeline, KeyScope::Launches]),
    ("item_loop.sqlite.zst", &[KeyScope::Timeline, KeyScope::Launches]),
    ("jit_variants.sqlite.zst", &[KeyScope::Timeline, KeyScope::Launches]),
    ("detokenize.pt.trace.json.gz", &[KeyScope::Timeline, KeyScope::Launches]),
    ("graph_tiny.sqlite.zst", &[KeyScope::Kernels, KeyScope::Launches]),
    ("gemm_healthy.sqlite.zst", &[KeyScope::Kernels, KeyScope::Launches]),
    ("conv_train.wstrace.zst", &[KeyScope::Kernels, KeyScope::Launches]),
];

/// From the verdict to its longest occurrence, to the launch there and to its re-run, one key each; `next:` names the
/// key of each step, and esc goes back the same way.
#[test]
fn the_path_from_the_verdict_to_the_re_run_and_back() {
    for (run, path) in PATHS {
        let mut e = Explorer::open(&[root().join("fixtures/triage").join(run)], (120, 40));
        let here = |e: &Explorer| e.app.current_scope();
        let next = |e: &mut Explorer| {
            let screen = e.screen();
            screen.lines().find(|l| l.starts_with(" next: ")).unwrap_or_else(|| panic!("{run}: no next step\n{screen}")).to_owned()
        };
        e.press("O");
        assert_eq!(here(&e), KeyScope::Overview, "{run}");
        for &step in path {
            let said = next(&mut e);
            assert!(said.contains('⏎') || said.contains("small-kernels"), "{run}: {said}");
            e.press("enter");
            assert_eq!(here(&e), step, "{run}: {}", e.screen());
        }
        // The launch that ends the idle time, or the first of the kernel, is selected.
        let selected = e.app.launches_screen(0).and_then(warpscope::app::LaunchesScreen::selected_launch);
        assert!(selected.is_some(), "{run}");
        e.press("r");
        assert_eq!(here(&e), KeyScope::Rerun, "{run}: {}", e.screen());
        for &step in path.iter().rev().chain([KeyScope::Overview].iter()) {
            e.press("esc");
            assert_eq!(here(&e), step, "{run}: back");
        }
        // Home: esc explains instead of going on.
        e.press("esc");
        assert_eq!(here(&e), KeyScope::Overview, "{run}: home");
        assert!(e.screen().contains("q quits"), "{run}: {}", e.screen());
    }
}

/// Largest share of blank areas of a screen at 200x50, and of the screens that have no more to show. An area is a
/// quarter of a line.
const BLANK: f64 = 0.45;
const HAS_NO_MORE: [(&str, f64); 4] = [("ranges", 0.60), ("timeline", 0.65), ("roofline", 0.60), ("source", 0.70)];

#[test]
fn a_large_terminal_is_not_half_empty() {
    let is_ink = |c: &char| !" │╭╮╰╯─".contains(*c);
    for (name, keys) in SCREENS {
        let screen = at(keys, (200, 50)).screen();
        let areas = screen.lines().skip(2).take(45).flat_map(|line| {
            let line: Vec<char> = line.chars().chain(std::iter::repeat(' ')).take(200).collect();
            line.chunks(50).map(|area| area.iter().any(is_ink)).collect::<Vec<_>>()
        });
        let areas: Vec<bool> = areas.collect();
        let blank = areas.iter().filter(|ink| !**ink).count() as f64 / areas.len() as f64;
        let most = HAS_NO_MORE.iter().find(|s| s.0 == name).map_or(BLANK, |s| s.1);
        assert!(blank <= most, "{name}: {:.0}% blank\n{screen}", blank * 100.0);
    }
}
