//! Every screen at three sizes: its snapshot, the bytes sent over a slow line, and gapless charts.

use super::support::{Explorer, demo_files, root, scratch};
use insta::assert_snapshot;
use ratatui::backend::Backend;
use ratatui::buffer::{Buffer, Cell};
use std::io::Write;
use warpscope::analysis::triage::TimeCategory;
use warpscope::app::actions::table::find_action;
use warpscope::app::{KeyScope, Mouse};
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

/// Screens at 200x50 that may take more than 12 KiB, or a step more than 4 KiB, because their text and borders alone
/// come close to that: name, limit of the screen and limit of a step, bytes.
const LARGE: [(&str, usize, usize); 5] = [
    ("kernels", 13_700, 4_096),
    ("compare", 13_950, 4_096),
    ("notes", 13_500, 4_096),
    ("checklist", 13_450, 4_096),
    // Scrolling by a page replaces all of its text.
    ("help", 12_288, 4_200),
];

/// 12 KiB take a second at 100 kbit/s.
#[test]
fn a_large_screen_in_256_colours_is_sent_in_about_a_second() {
    let (mut all, mut wrong) = (Vec::new(), Vec::new());
    for (name, keys) in SCREENS.into_iter().chain(MORE) {
        let mut explorer = at(keys, (200, 50));
        let screen = explorer.buffer("dark", ColorMode::Indexed);
        let sent = bytes(&Buffer::empty(screen.area), &screen);
        explorer.press("down");
        let step = bytes(&screen, &explorer.buffer("dark", ColorMode::Indexed));
        let &(_, whole, most) = LARGE.iter().find(|s| s.0 == name).unwrap_or(&(name, 12_288, 4_096));
        all.push(format!("{name} {sent} {step}"));
        if sent > whole || step > most {
            wrong.push(format!("{name}: {sent} bytes, {step} a step"));
        }
    }
    println!("{}", all.join(", "));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
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

/// Each label of the roofline is beside its line, and fits in one row of the chart without being cut.
#[test]
fn labels_of_the_roofline_are_whole() {
    for size in SIZES {
        let text = at("K ] ] ] p o", size).screen();
        // Roofs that are in one row of the chart share a label.
        let apart = text.contains("FP32 66.9 TFLOP/s");
        let together = ["FP32 66.9, FP64 33.4 TFLOP/s", "FP16 tensor 1070 TFLOP/s"];
        let labels = if apart { &["FP32 66.9 TFLOP/s", "FP64 33.4 TFLOP/s", together[1]][..] } else { &together };
        for label in labels {
            assert!(text.lines().any(|l| l.contains(label)), "{label} at {size:?}:\n{text}");
        }
    }
}

/// Without Unicode blocks and lines, a screen shows the same text; the C locale uses only ASCII.
#[test]
fn in_ascii_every_screen_keeps_its_words() {
    for (name, keys) in SCREENS {
        let mut explorer = at(keys, (120, 40));
        explorer.view.ascii = true;
        let text = explorer.screen();
        assert!(text.is_ascii(), "{name}: {text}");
    }
}

/// Actions that change nothing if nothing is left to do: moving past an end, undoing nothing. The last two act outside
/// the screen.
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

/// Every key either does something, or a message says why not and where it works.
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
            // `g` goes to the first row unless it is bound.
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

/// Runs with different causes, and the screens that `enter` opens from their verdict.
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

/// Single keys lead from the verdict to its longest occurrence, to the launch there, and to its re-run. `next:` names
/// the key of each step, and esc goes back the same way.
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
        // On the start screen, esc shows an explanation.
        e.press("esc");
        assert_eq!(here(&e), KeyScope::Overview, "{run}: home");
        assert!(e.screen().contains("q quits"), "{run}: {}", e.screen());
    }
}

/// Every drawn key can be clicked, with the same effect as on the keyboard.
#[test]
fn what_looks_like_a_key_is_one() {
    let theme = warpscope::ui::theme::Library::new(Vec::new()).theme("dark", ColorMode::True).unwrap();
    let key = theme.style(warpscope::ui::Role::Key);
    let mut dead = Vec::new();
    for (name, keys) in SCREENS.into_iter().filter(|s| !["help", "palette", "notes", "checklist"].contains(&s.0)) {
        let mut explorer = at(keys, (120, 40));
        let buffer = explorer.buffer("dark", ColorMode::True);
        let scope = explorer.app.current_scope();
        let works = warpscope::app::ACTIONS.iter().filter(|a| a.on.applies_to(scope));
        let actions: Vec<_> = works.map(|a| (a.id, explorer.app.session.key_label(a.id))).filter(|a| !a.1.is_empty()).collect();
        for y in 0..buffer.area.height {
            let cell = |x: u16| &buffer[(x, y)];
            let is_key = |x: u16| {
                x < buffer.area.width
                    && cell(x).symbol() != " "
                    && cell(x).fg == key.fg.unwrap()
                    && cell(x).modifier.contains(key.add_modifier)
            };
            let mut x = 0;
            while x < buffer.area.width {
                let from = x;
                while is_key(x) {
                    x += 1;
                }
                let text: String = (from..x).map(|x| cell(x).symbol()).collect();
                let id = actions.iter().find(|a| a.1 == text).map(|a| a.0);
                let hit = explorer.view.hit_test(from, y);
                if id.is_some_and(|id| !matches!(hit, Mouse::Action(of) if explorer.app.session.key_label(of) == text || of == id)) {
                    dead.push(format!("{name}: {text} at {from},{y}: {hit:?}"));
                }
                x = x.max(from + 1);
            }
        }
    }
    assert!(dead.is_empty(), "{}", dead.join("\n"));
    // Words can be clicked as well.
    let mut kernels = at("O K", (120, 40));
    let screen = kernels.screen();
    for (word, action) in [("group kernel", "group"), ("sort total", "sort"), ("1 of 4", "next-report"), ("1 warning (n)", "notes")] {
        let (y, line) = screen.lines().enumerate().find(|(_, l)| l.contains(word)).unwrap_or_else(|| panic!("{word}\n{screen}"));
        let x = line[..line.find(word).unwrap()].chars().count();
        for x in [x, x + word.len() - 1] {
            let at = (u16::try_from(x).unwrap(), u16::try_from(y).unwrap());
            let hit = kernels.view.hit_test(at.0, at.1);
            let id = if let Mouse::Action(id) = hit { find_action(id).map(|a| a.name) } else { None };
            assert_eq!(id, Some(action), "{word} at {at:?}: {hit:?}");
        }
    }
}

/// For the labelled runs, the overview, the kernels, the text, the JSON and the shareable report agree on the first
/// finding and on the time breakdown.
#[test]
fn a_cause_has_one_name_and_one_share_everywhere() {
    let folder = root().join("fixtures/triage");
    let mut runs: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
    runs.retain(|p| p.to_string_lossy().ends_with(".zst"));
    runs.sort();
    let (mut judged, mut limits, mut panels) = (0, 0, 0);
    // The label of a part on the screens.
    let label = |id: &str| {
        let part = TimeCategory::ALL.into_iter().find(|p| p.id() == id).unwrap_or_else(|| panic!("{id}"));
        part.labelled()
    };
    let parts = |json: &serde_json::Value| -> Vec<(String, f64)> {
        // The screens show the mean of the devices.
        let devices = json["devices"].as_array().unwrap();
        let share = |d: &serde_json::Value, at: usize| d["attribution"][at]["share_percent"].as_f64().unwrap();
        let all = devices[0]["attribution"].as_array().unwrap().iter().enumerate();
        all.map(|(at, p)| {
            let mean = devices.iter().map(|d| share(d, at)).sum::<f64>() / devices.len() as f64;
            (label(p["part"].as_str().unwrap()), mean)
        })
        .collect()
    };
    for run in runs {
        let name = run.display().to_string();
        let (_, json, _) = super::support::run(&["triage", &name, "--format", "json"]);
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        let Some(first) = json["findings"].get(0) else { continue };
        let (id, share) = (first["id"].as_str().unwrap(), first["share_percent"].as_f64().unwrap());
        let headline = first["headline"].as_str().unwrap();
        let whole = warpscope::model::units::format_whole_percent(share);
        let gains = share > 0.0 && first["severity"] != "healthy" && id != "gpu-bound";
        let (_, text, _) = super::support::run(&["triage", &name, "--format", "table"]);
        let line = text.lines().find(|l| l.starts_with("1. ")).unwrap_or_else(|| panic!("{name}: {text}"));
        assert!(line.contains(id) && (!gains || line.contains(&format!("up to {whole} of"))), "{name}: {line}");
        let html = scratch().join("truth.html");
        super::support::run(&["report", &name, "--force", "-o", &html.display().to_string()]);
        let html = std::fs::read_to_string(html).unwrap();
        let sentence = headline.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
        assert!(html.contains(id) && html.contains(&sentence), "{name}: {sentence}");
        assert!(!html.contains(">Kernels<") || html.contains("shares are of the time of all kernels"), "{name}: shares without a base");
        let mut e = Explorer::open(std::slice::from_ref(&run), (120, 40));
        e.press("O");
        let overview = e.screen();
        let banner = overview.lines().nth(2).unwrap();
        assert!(banner.contains(id) && (!gains || banner.contains(&format!("up to {whole} of"))), "{name}: {banner}");
        let row = |screen: &str, begin: &str| screen.lines().find(|l| l.contains(begin) && l.contains(id)).map(str::to_owned);
        let finding = row(&overview, " 1 ").unwrap_or_else(|| panic!("{name}\n{overview}"));
        assert!(finding.contains(&whole), "{name}: {finding}");
        // The overview and the panel of the kernel table show the time breakdown with the same figures.
        e.press("K");
        let kernels = e.screen();
        for (part, percent) in parts(&json).into_iter().filter(|p| p.1 >= 1.0) {
            let figure = format!("{percent:.1}%");
            let says =
                |screen: &str| screen.lines().any(|l| l.split_once(&part).is_some_and(|(_, rest)| rest.trim_start().starts_with(&figure)));
            assert!(says(&overview), "{name}: {part} {figure}\n{overview}");
            if kernels.contains("Where the time went") && kernels.contains(&part) {
                panels += 1;
                assert!(says(&kernels), "{name}: {part} {figure}\n{kernels}");
            }
        }
        if let Some(limit) = kernels.lines().skip_while(|l| !l.contains("What limits the run")).nth(1) {
            assert!(limit.contains(id) && limit.contains(&whole), "{name}: {limit}");
            limits += 1;
        }
        judged += 1;
    }
    assert!(judged > 50 && limits > 25 && panels > 50, "{judged} {limits} {panels}");
}

/// Further screens of the demo, in addition to `SCREENS`.
const MORE: [(&str, &str); 6] = [
    ("lines", "C"),
    ("ranks", "A"),
    ("library", "L"),
    ("kernels of ncu", "K ] ] ]"),
    ("diagnosis of ncu", "K ] ] ] a"),
    ("changes", "] ] ] D enter"),
];

/// Reports to open, and the name and key sequence of each screen to check.
type Opened = (&'static [&'static str], &'static [(&'static str, &'static str)]);
const OTHERS: [Opened; 10] = [
    (
        &["triage/late_host_rank0.sqlite.zst"],
        &[("overview", "O"), ("timeline", "T"), ("ranges", "V"), ("kernels", "K"), ("launches", "K enter"), ("rerun", "K r")],
    ),
    (
        &["triage/decode_graph.wstrace.zst"],
        &[("overview", "O"), ("timeline", "T"), ("kernels", "K"), ("launches", "K enter"), ("rerun", "K r")],
    ),
    (&["triage/conv_train.wstrace.zst"], &[("overview", "O"), ("kernels", "K"), ("ranges", "V")]),
    (&["triage/detokenize.pt.trace.json.gz"], &[("overview", "O"), ("lines", "C"), ("kernels", "K"), ("rerun", "K enter r")]),
    (&["rocm/matmul.rpd.zst"], &[("overview", "O"), ("kernels", "K"), ("rerun", "K enter r")]),
    (
        &["triage/late_host_rank0.sqlite.zst", "triage/late_host_rank1.sqlite.zst"],
        &[("ranks", "A"), ("collectives", "A tab"), ("changes", "D")],
    ),
    (&["demo/zoo.ncu-rep.zst", "hints/zoo_full.ncu-rep.zst"], &[("changes", "D")]),
    (&["nsys/zoo.sqlite.zst", "demo/zoo.ncu-rep.zst"], &[("changes", "D"), ("launches", "D enter")]),
    (&["ncu/source.ncu-rep.zst"], &[("metrics", "p"), ("diagnosis", "a"), ("source", "e")]),
    (&["torch/memory/leak.pickle.gz"], &[("memory", "")]),
];

/// Largest share of a screen at 200x50 that may be blank below its last content, measured in each quarter of its width
/// and summed. `HAS_NO_MORE` has higher limits, for screens that have nothing more to show.
const BLANK: f64 = 0.35;
const HAS_NO_MORE: [(&str, f64); 12] = [
    // Few ranges that contain all kernels and all figures; few findings and kernels; few collected metrics.
    ("triage/conv_train.wstrace.zst ranges", 0.60),
    ("triage/detokenize.pt.trace.json.gz overview", 0.40),
    ("triage/detokenize.pt.trace.json.gz kernels", 0.40),
    ("demo ranges", 0.55),
    ("triage/late_host_rank0.sqlite.zst ranges", 0.60),
    ("triage/decode_graph.wstrace.zst overview", 0.40),
    ("ncu/source.ncu-rep.zst metrics", 0.55),
    ("ncu/source.ncu-rep.zst diagnosis", 0.50),
    // A notice that says what would fill the screen.
    ("demo lines", 1.0),
    ("demo library", 1.0),
    ("triage/detokenize.pt.trace.json.gz lines", 1.0),
    // Two ranks, of which one waits fourteen times.
    ("triage/late_host_rank0.sqlite.zst and triage/late_host_rank1.sqlite.zst collectives", 0.50),
];

#[test]
fn a_large_terminal_is_not_half_empty() {
    let is_ink = |c: &char| !" │╭╮╰╯─".contains(*c);
    let mut wrong = Vec::new();
    let mut judge = |name: &str, screen: &str| {
        let areas = screen.lines().skip(2).take(45).flat_map(|line| {
            let line: Vec<char> = line.chars().chain(std::iter::repeat(' ')).take(200).collect();
            line.chunks(50).map(|area| area.iter().any(is_ink)).collect::<Vec<_>>()
        });
        let areas: Vec<bool> = areas.collect();
        let lines = areas.len() / 4;
        let below = |column: usize| (0..lines).rev().take_while(|line| !areas[line * 4 + column]).count();
        let blank = (0..4).map(below).sum::<usize>() as f64 / areas.len() as f64;
        let most = HAS_NO_MORE.iter().find(|s| s.0 == name).map_or(BLANK, |s| s.1);
        if blank > most {
            wrong.push(format!("{name}: {:.0}% blank", blank * 100.0));
        }
    };
    for (name, keys) in SCREENS.into_iter().chain(MORE) {
        judge(&format!("demo {name}"), &at(keys, (200, 50)).screen());
    }
    for (files, screens) in OTHERS {
        let file = files.join(" and ");
        for (name, keys) in screens {
            let files: Vec<_> = files.iter().map(|file| root().join("fixtures").join(file)).collect();
            let mut explorer = Explorer::open(&files, (200, 50));
            if !keys.is_empty() {
                explorer.press(keys);
            }
            judge(&format!("{file} {name}"), &explorer.screen());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Beside a short tree of ranges, there is room for a range's kernels, their kinds, its figures and its time on the
/// host.
#[test]
fn a_large_terminal_shows_more_of_a_range() {
    let screen = at("V", (200, 50)).screen();
    for panel in ["GPU work inside", "Kinds of work", "Figures", "Time on the host"] {
        assert!(screen.contains(panel), "{panel}\n{screen}");
    }
}

/// A screen without content has one message in its middle: what is missing, and how to get it.
#[test]
fn empty_screens_look_alike() {
    let theme = warpscope::ui::theme::Library::new(Vec::new()).theme("dark", ColorMode::True).unwrap();
    let title = theme.style(warpscope::ui::Role::Title);
    let mut seen = 0;
    for (file, keys, what) in [
        ("fixtures/triage/gemm_healthy.sqlite.zst", "C", "This report has no stacks"),
        ("fixtures/triage/loader_inline.wstrace.zst", "V", "This report has no ranges"),
        ("fixtures/rocm/matmul.rpd.zst", "V", "This report has no ranges"),
        ("fixtures/trace/zoo_survey.wstrace.zst", "A", "There are no ranks"),
        ("fixtures/triage/gemm_healthy.sqlite.zst", "E", "This report has nothing of memory"),
    ] {
        let mut e = Explorer::open(&[root().join(file)], (120, 40));
        e.press(keys);
        let screen = e.screen();
        if !screen.contains(what) {
            continue;
        }
        seen += 1;
        let (y, line) = screen.lines().enumerate().find(|(_, l)| l.contains(what)).unwrap();
        let x = line.find(what).unwrap();
        let buffer = e.buffer("dark", ColorMode::True);
        let cell = &buffer[(u16::try_from(x).unwrap(), u16::try_from(y).unwrap())];
        assert!(x >= 10 && (8..24).contains(&y), "{file}: at {x},{y}\n{screen}");
        assert_eq!((Some(cell.fg), cell.modifier), (title.fg, title.add_modifier), "{file}");
        let rest = screen.lines().nth(y + 2).unwrap_or_default();
        assert!(!rest.trim().is_empty(), "{file}: no advice\n{screen}");
    }
    assert!(seen >= 2, "{seen}");
}

/// The line `next:` begins with the key to press, in the colour of keys.
#[test]
fn the_next_step_begins_with_its_key() {
    let theme = warpscope::ui::theme::Library::new(Vec::new()).theme("dark", ColorMode::True).unwrap();
    let key = theme.style(warpscope::ui::Role::Key);
    let (mut seen, mut wrong) = (0, Vec::new());
    let mut judge = |name: &str, e: &mut Explorer| {
        let screen = e.screen();
        let Some(y) = screen.lines().position(|l| l.starts_with(" next: ")) else { return };
        seen += 1;
        let buffer = e.buffer("dark", ColorMode::True);
        if Some(buffer[(7, u16::try_from(y).unwrap())].fg) != key.fg {
            wrong.push(format!("{name}: {}", screen.lines().nth(y).unwrap().trim()));
        }
    };
    for size in [(80, 24), (200, 50)] {
        for (name, keys) in SCREENS.into_iter().chain(MORE) {
            judge(&format!("demo {name}"), &mut at(keys, size));
        }
        for (files, screens) in OTHERS {
            for (name, keys) in screens {
                let files: Vec<_> = files.iter().map(|file| root().join("fixtures").join(file)).collect();
                let mut e = Explorer::open(&files, size);
                if !keys.is_empty() {
                    e.press(keys);
                }
                judge(&format!("{} {name}", files[0].display()), &mut e);
            }
        }
    }
    assert!(seen > 60 && wrong.is_empty(), "{seen} lines\n{}", wrong.join("\n"));
}
