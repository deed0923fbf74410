//! Drawing and navigating the timeline.

use super::support::{Explorer, demo_files, packed, root};
use insta::assert_snapshot;
use std::path::PathBuf;
use warpscope::analysis::triage::TimeCategory;
use warpscope::app::{KeyScope, Mouse, Msg, Pointer, TimelineScreen};
use warpscope::config::ColorMode;

fn opened(files: &[PathBuf], size: (u16, u16)) -> Explorer {
    let mut e = Explorer::open(files, size);
    e.press("T");
    e
}

fn screen(e: &Explorer) -> &TimelineScreen {
    e.app.report_screen(0).unwrap()
}

fn triage(name: &str) -> PathBuf {
    root().join("fixtures/triage").join(name)
}

/// Cursor and length of the window.
fn place(e: &Explorer) -> (i64, i64) {
    let place = screen(e).place.unwrap();
    (place.cursor, place.length())
}

#[test]
fn the_timeline_at_three_sizes() {
    for (size, name) in [((80, 24), "timeline_80x24"), ((120, 40), "timeline_120x40"), ((200, 50), "timeline_200x50")] {
        let mut e = opened(&demo_files(), size);
        e.press("O");
        e.press("T 0");
        assert_snapshot!(name, e.screen());
    }
}

/// A finding about collectives leads to the collective that ran alone for the longest time, with its step in view.
#[test]
fn a_finding_about_collectives_shows_a_collective() {
    let mut e = Explorer::open(&[root().join("fixtures/nsys/ddp_rank0.sqlite.zst")], (120, 40));
    e.press("O");
    assert!(e.screen().contains("comm-exposed"), "{}", e.screen());
    // The overview covers all kernels, as the table does.
    assert!(e.screen().contains("(NCCL)"), "{}", e.screen());
    e.press("enter");
    assert_eq!(e.app.current_scope(), KeyScope::Timeline);
    let screen = e.screen();
    assert!(screen.contains("╭ collective ") && screen.contains("(NCCL)"), "{screen}");
}

/// The whole run has the overview's verdict, which the warm-up does not change; a part of the run has its own verdict.
#[test]
fn the_limit_of_the_whole_run_is_that_of_the_overview() {
    let mut e = opened(&[triage("item_loop.sqlite.zst")], (200, 50));
    e.press("0");
    let whole = e.app.session.reports[0].whole_triage().unwrap().clone();
    let verdict = whole.verdict().unwrap();
    assert!(whole.outside.is_some() && verdict.gain_percent() >= 1.0);
    let limit = format!("{} (up to {:.0}%)", verdict.id.id(), verdict.gain_percent());
    assert!(e.screen().contains(&limit), "{limit}: {}", e.screen());
    assert!(e.screen().contains("of the steady state"), "{}", e.screen());
}

/// Shares of a view are relative to the time from the first operation to the last, as on the overview, and the screen
/// says so.
#[test]
fn shares_of_a_view_leave_out_the_time_before_and_after_the_devices_were_in_use() {
    let mut e = opened(&[root().join("fixtures/demo/llm.sqlite.zst")], (200, 50));
    e.press("0");
    let report = &e.app.session.reports[0];
    let span = report.whole_triage().unwrap().span;
    assert_eq!(report.part_in_use((i64::MIN / 4, i64::MAX / 4)), Some(span));
    assert_eq!((report.part_in_use((span.1, span.1 + 9)), report.part_in_use((span.0 - 9, span.0))), (None, None));
    let screen = e.screen();
    assert!(screen.contains("shares of 1.86 s: 187 ms before the first or after the last operation are left out"), "{screen}");
    assert!(!screen.contains("not in use") && !screen.contains("no cause known"), "{screen}");
}

/// One key goes to the longest idle time of the run; pressed again, it goes to the next longest.
#[test]
fn a_key_goes_to_the_longest_idle_time() {
    let mut e = opened(&[root().join("fixtures/demo/llm.sqlite.zst")], (200, 50));
    e.press("0 J");
    let longest = e.screen();
    let gaps = e.app.session.reports[0].gaps.clone().unwrap();
    let first = gaps.next_longest(0, i64::MIN).unwrap();
    let second = gaps.next_longest(0, first.start).unwrap();
    assert!(first.end - first.start > second.end - second.start);
    let said = |gap: warpscope::analysis::timeline::Gap| format!("idle {}", warpscope::model::Nanos(gap.end - gap.start));
    assert!(longest.contains(&said(first)), "{longest}");
    e.press("J");
    assert!(e.screen().contains(&said(second)), "{}", e.screen());
    // If another key went to a gap, J begins again with the longest one.
    let mut e = opened(&[root().join("fixtures/demo/llm.sqlite.zst")], (200, 50));
    e.press("0 i J");
    assert!(e.screen().contains(&said(first)), "{}", e.screen());
}

#[test]
fn other_runs() {
    let runs = [
        ("timeline_ddp", triage("balanced_rank0.sqlite.zst"), "j j 0"),
        ("timeline_torch", triage("flops.pt.trace.json.gz"), "j j j 0"),
        ("timeline_metrics", packed("whole_metrics"), "0"),
        ("timeline_two_devices", triage("uneven_devices.sqlite.zst"), "0"),
        ("timeline_nothing", packed("nogpu"), "T"),
    ];
    for (name, file, keys) in runs {
        let mut e = opened(&[file], (110, 36));
        e.press(keys);
        assert_snapshot!(name, e.screen());
    }
}

#[test]
fn without_colours_and_without_unicode_it_can_be_read() {
    let mut e = opened(&[triage("two_causes.sqlite.zst")], (100, 30));
    e.press("0 z");
    let buffer = e.buffer("mono", ColorMode::None);
    assert!(buffer.content.iter().all(|c| c.fg == ratatui::style::Color::Reset && c.bg == ratatui::style::Color::Reset));
    e.view.ascii = true;
    assert!(e.screen().is_ascii(), "{}", e.screen());
    let buffer = e.buffer("mono", ColorMode::None);
    let text: Vec<String> = buffer.content.chunks(100).map(|row| row.iter().map(ratatui::buffer::Cell::symbol).collect()).collect();
    assert_snapshot!("timeline_ascii_mono", text.join("\n"));
}

#[test]
fn zooming_panning_and_going_back() {
    let mut e = opened(&demo_files(), (120, 40));
    e.press("0 g");
    let (start, whole) = place(&e);
    e.press("right right right + +");
    let (cursor, near) = place(&e);
    assert!(cursor > start && near < whole / 3 && near > whole / 5, "{near} {whole}");
    e.press("- -");
    assert_eq!(place(&e), (cursor, whole));
    e.press("+ + + + shift-right");
    assert!(place(&e).0 > cursor);
    e.press("G");
    assert!(place(&e).0 > cursor);
    e.press("<");
    e.press("0");
    assert_eq!(place(&e).1, whole);
    e.press("<");
    assert!(place(&e).1 < whole);
    e.press(">");
    assert_eq!(place(&e).1, whole);
    // However far the zoom, a column is at least a nanosecond.
    for _ in 0..60 {
        e.press("+");
    }
    assert_eq!(place(&e).1, i64::try_from(warpscope::app::screens::timeline::lane_columns((120, 40))).unwrap());
    e.screen();
}

#[test]
fn idle_times_come_one_after_the_other_with_their_cause() {
    let mut e = opened(&demo_files(), (120, 40));
    e.press("0 g i");
    let first = place(&e).0;
    assert!(e.screen().contains("idle ") && e.screen().contains("the host: "), "{}", e.screen());
    e.press("i");
    assert!(place(&e).0 > first);
    e.press("I");
    assert_eq!(place(&e).0, first);
    e.press("z");
    assert!(e.screen().contains("of that"), "{}", e.screen());
}

#[test]
fn a_kernel_leads_to_its_call_its_range_and_back() {
    let mut e = opened(&demo_files(), (120, 40));
    e.press("0 / n v j e t");
    assert!(e.screen().contains("matches"), "{}", e.screen());
    e.press("enter");
    let text = e.screen();
    assert!(text.contains("kernel gemm 8x64 TNN (nvjet"), "{text}");
    let at = place(&e).0;
    e.press("f");
    assert!(e.screen().contains("launch call launch nvjet") || e.screen().contains("launch call"), "{}", e.screen());
    assert!(place(&e).0 < at, "the call comes before its kernel");
    e.press("f");
    assert!(e.screen().contains("range "), "{}", e.screen());
    e.press("f");
    assert_eq!(place(&e).0, at, "back at the kernel that one came from");
    // The next match is another launch.
    e.press(".");
    assert!(place(&e).0 > at);
    e.press(",");
    assert_eq!(place(&e).0, at);
    e.press("esc");
    assert!(!e.screen().contains("matches"));
}

#[test]
fn what_is_marked_is_measured_judged_and_zoomed_to() {
    let mut e = opened(&demo_files(), (120, 40));
    e.press("0 g");
    for _ in 0..80 {
        e.press("right");
    }
    e.press("b");
    for _ in 0..10 {
        e.press("right");
    }
    let text = e.screen();
    assert!(text.contains("Marked") && text.contains("limit") && text.contains("kernels"), "{text}");
    let (from, to) = screen(&e).marked_window().unwrap();
    e.press("z");
    let place = screen(&e).place.unwrap();
    assert!(place.start < from && to < place.end && place.length() < (to - from) * 2);
    e.press("y");
    e.press("c");
    assert_eq!(e.copied.last().unwrap().split(" --from ").nth(1), Some(format!("{from}ns --to {to}ns").as_str()));
    e.press("esc");
    assert!(!e.screen().contains("Marked"));
}

#[test]
fn rows_fold_pin_hide_and_move() {
    let mut e = opened(&[triage("balanced_rank0.sqlite.zst")], (110, 40));
    e.press("0");
    let rows = |e: &Explorer| screen(e).lines.len();
    let all = rows(&e);
    e.press("k k k k k k k k space");
    assert!(rows(&e) < all, "the device is folded");
    e.press("space");
    assert_eq!(rows(&e), all);
    e.press("j H");
    assert_eq!(rows(&e), all - 1);
    assert!(e.screen().contains("1 hidden"), "{}", e.screen());
    e.press("U");
    assert_eq!(rows(&e), all);
    e.press("j m");
    assert_eq!((rows(&e), screen(&e).selected), (all, 0), "{}", e.screen());
    assert!(e.screen().contains("• GPU 0"), "{}", e.screen());
    e.press("m");
    assert!(!e.screen().contains("• GPU 0"));
    // The device moves below the first thread.
    let first = |e: &mut Explorer| e.screen().lines().skip(6).find(|l| l.contains('▾')).unwrap().to_owned();
    e.press("k k k k");
    assert!(first(&mut e).contains("GPU 0"));
    e.press("}");
    assert!(!first(&mut e).contains("GPU 0"), "{}", e.screen());
    e.press("{");
    assert!(first(&mut e).contains("GPU 0"));
}

#[test]
fn rows_come_back_when_all_are_hidden() {
    let mut e = opened(&demo_files(), (120, 40));
    e.press("0");
    for _ in 0..20 {
        e.press("H");
    }
    assert!(screen(&e).lines.is_empty() && e.screen().contains("all rows are hidden"), "{}", e.screen());
    e.press("i . z f T T");
    e.press("U");
    assert!(screen(&e).lines.len() > 3, "{}", e.screen());
}

#[test]
fn a_press_on_the_map_goes_there() {
    let mut e = opened(&demo_files(), (120, 40));
    e.press("0 g + + + +");
    e.screen();
    let before = place(&e).0;
    assert!(matches!(e.view.hit_test(90, 3), Mouse::Spot(row, _) if row == warpscope::app::screens::timeline::MAP));
    e.send(Msg::Mouse(Mouse::Point(Pointer::Press(warpscope::app::screens::timeline::MAP, 60, false))));
    let now = screen(&e).place.unwrap();
    assert!(now.cursor > before && (now.start..now.end).contains(&now.cursor));
    e.press("<");
    assert_eq!(place(&e).0, before);
}

#[test]
fn the_mouse_zooms_pans_selects_and_marks() {
    let mut e = opened(&demo_files(), (120, 40));
    e.press("0 g");
    let (_, whole) = place(&e);
    let point = |e: &mut Explorer, p: Pointer| e.send(Msg::Mouse(Mouse::Point(p)));
    point(&mut e, Pointer::Wheel(50, -1));
    assert!(place(&e).1 < whole);
    let start = screen(&e).place.unwrap().start;
    point(&mut e, Pointer::Press(1, 50, false));
    assert_eq!(screen(&e).selected, 1);
    point(&mut e, Pointer::Drag(40, false));
    assert!(screen(&e).place.unwrap().start > start, "what is dragged to the left shows what is later");
    point(&mut e, Pointer::Press(1, 10, true));
    point(&mut e, Pointer::Drag(30, true));
    let (from, to) = screen(&e).marked_window().unwrap();
    let step = place(&e).1 / 94;
    assert!((to - from) / step >= 18 && (to - from) / step <= 22, "{} {step}", to - from);
    // Inside the rows, a click selects a column.
    e.screen();
    assert!(matches!(e.view.hit_test(60, 8), Mouse::Spot(_, column) if column > 20));
}

#[test]
fn every_screen_leads_here_and_back() {
    // From a finding.
    let mut e = Explorer::open(&demo_files(), (120, 40));
    e.press("O T");
    assert!(e.screen().contains("Timeline"), "{}", e.screen());
    let (_, near) = place(&e);
    e.press("0");
    assert!(near < place(&e).1, "it opens at the finding's place");
    e.press("esc");
    assert!(e.screen().contains("Where the time went"), "{}", e.screen());
    // From a range, at its first instance.
    e.press("V T");
    let text = e.screen();
    assert!(text.contains("range ") && text.contains("Timeline"), "{text}");
    e.press("esc");
    assert!(e.screen().contains("GPU busy") && e.screen().contains("LLM@"), "{}", e.screen());
    // From a kernel, and from a launch in its list.
    e.press("K T");
    assert!(e.screen().contains("kernel "), "{}", e.screen());
    e.press("esc enter j j T");
    let at = place(&e).0;
    assert!(e.screen().contains("kernel CatArray") || e.screen().contains("CatArrayBatchedCopy"), "{}", e.screen());
    // To the list of launches, to the command, and back to the same place.
    e.press("enter");
    assert!(e.screen().contains("duration over time"), "{}", e.screen());
    e.press("r");
    assert!(e.screen().contains("--launch-skip"), "{}", e.screen());
    e.press("esc esc");
    assert_eq!(place(&e).0, at);
    e.press("r");
    assert!(e.screen().contains("--launch-skip"), "{}", e.screen());
    e.press("esc T");
    assert!(e.screen().contains("duration over time"), "T leaves it as it came: {}", e.screen());
}

/// Threads that only wait for events are muted; idle time at the cursor stands out.
#[test]
fn what_waits_for_nothing_draws_no_eye() {
    use warpscope::ui::Role;
    let mut e = opened(&[triage("two_causes.sqlite.zst")], (200, 50));
    let theme = warpscope::ui::theme::Library::new(Vec::new()).theme("dark", ColorMode::True).unwrap();
    let row = e.screen().lines().position(|l| l.contains("cuda-EvtHandlr")).unwrap();
    let buffer = e.buffer("dark", ColorMode::True);
    let cells = |y: usize| (40..buffer.area.width).map(move |x| (x, u16::try_from(y).unwrap()));
    let waiting = theme.style(Role::Part(TimeCategory::Waiting)).fg;
    let muted = theme.style(Role::BarEmpty).fg;
    let colours: Vec<_> = cells(row).map(|at| &buffer[at]).filter(|c| c.symbol() != " ").map(|c| Some(c.fg)).collect();
    assert!(colours.contains(&muted) && !colours.contains(&waiting), "{colours:?}");
    e.press("i");
    let zoomed = e.screen();
    assert!(zoomed.contains('▓'), "{zoomed}");
}
