//! Every screen at three sizes: its snapshot, the bytes sent over a slow line, and gapless charts.

use super::support::{Explorer, demo_files};
use insta::assert_snapshot;
use ratatui::backend::Backend;
use ratatui::buffer::{Buffer, Cell};
use std::io::Write;
use warpscope::config::ColorMode;
use warpscope::ui::compact_backend::CompactBackend;

/// Screens of the demo, and the keys that lead to them from the first one.
const SCREENS: [(&str, &str); 15] = [
    ("overview", "O"),
    ("timeline", "T"),
    ("ranges", "V"),
    ("kernels", "K"),
    ("launches", "K enter"),
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
