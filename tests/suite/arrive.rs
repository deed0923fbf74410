//! Deep links: the command copied from a screen opens the same place again.

use super::support::{Explorer, root, run};
use std::path::PathBuf;
use std::process::Command;
use warpscope::app::{KeyScope, Location, Settings};

fn fixture(name: &str) -> PathBuf {
    root().join("fixtures").join(name)
}

/// Splits a command into words as a shell does.
fn words(command: &str) -> Vec<String> {
    let out = Command::new("sh").arg("-c").arg(format!("printf '%s\\n' {command}")).output().unwrap();
    String::from_utf8(out.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// Parses the options and files of a command line.
fn read(words: &[String]) -> (Vec<PathBuf>, Location, Settings) {
    let (mut files, mut address, mut settings) = (Vec::new(), Location::default(), Settings::default());
    let mut words = words.iter().skip(1);
    while let Some(word) = words.next() {
        let Some(option) = word.strip_prefix("--") else {
            files.push(PathBuf::from(word));
            continue;
        };
        let (option, value) = match option.split_once('=') {
            Some((option, value)) => (option, value.to_owned()),
            None => (option, words.next().unwrap().clone()),
        };
        let time = || value.strip_suffix("ns").unwrap().parse().unwrap();
        match option {
            "first" => address.show = KeyScope::LINKS.iter().find(|s| s.0 == value.as_str()).map(|s| s.1),
            "kernel" => address.kernel = Some(value.clone()),
            "launch" => address.launch = Some(value.parse().unwrap()),
            "result" => address.result = Some(value.parse().unwrap()),
            "range" => address.range = Some(value.clone()),
            "from" => address.window = Some((time(), 0)),
            "to" => address.window = address.window.map(|w| (w.0, time())),
            "group" => settings.group = warpscope::analysis::GroupBy::ALL.into_iter().find(|g| g.cli_name() == value).unwrap(),
            other => panic!("--{other}"),
        }
    }
    (files, address, settings)
}

/// Copies the command of the current place and opens it; both screens must be the same.
fn again(explorer: &mut Explorer) -> String {
    explorer.press("Y");
    let command = explorer.copied.last().expect("a command").clone();
    let (files, address, settings) = read(&words(&command));
    let mut other = Explorer::open_with(&files, explorer.app.session.size, Settings { address: Some(address), ..settings });
    other.app.status = None;
    explorer.app.status = None;
    assert_eq!(other.screen(), explorer.screen(), "{command}");
    assert!(other.app.session.address.is_none(), "{command}");
    // The real program accepts the same arguments.
    let (_, _, err) = run(&words(&command).iter().skip(1).map(String::as_str).collect::<Vec<_>>());
    assert!(err.contains("the explorer needs a terminal"), "{command}: {err}");
    command
}

#[test]
fn places_of_a_timeline_are_opened_again() {
    let file = [fixture("nsys/whole_llm.sqlite.zst")];
    for size in [(120, 40), (80, 24)] {
        let mut e = Explorer::open(&file, size);
        e.press("down down");
        assert!(again(&mut e).contains("--first kernels --kernel "));
        e.press("enter down down");
        assert_eq!(e.app.current_scope(), KeyScope::Launches);
        let command = again(&mut e);
        assert!(command.contains("--first launches --kernel ") && command.contains(" --launch "), "{command}");
        e.press("r");
        assert_eq!(e.app.current_scope(), KeyScope::Rerun);
        again(&mut e);
        e.press("esc T");
        assert_eq!(e.app.current_scope(), KeyScope::Timeline);
        e.press("+ +");
        let command = again(&mut e);
        assert!(command.contains("--first timeline --launch ") && command.contains("ns --to "), "{command}");
        let mut e = Explorer::open(&file, size);
        e.press("V down");
        assert_eq!(e.app.current_scope(), KeyScope::Ranges);
        again(&mut e);
        let mut e = Explorer::open(&file, size);
        e.press("O");
        assert_eq!(e.app.current_scope(), KeyScope::Overview);
        again(&mut e);
    }
}

#[test]
fn places_of_other_reports_are_opened_again() {
    let mut e = Explorer::open(&[fixture("ncu/full.ncu-rep.zst")], (120, 40));
    e.press("down");
    again(&mut e);
    for key in ["enter", "v", "o"] {
        e.press(key);
        let command = again(&mut e);
        assert!(command.contains(" --result "), "{command}");
    }
    let mut e = Explorer::open(&[fixture("torch/memory/leak.pickle.gz")], (120, 40));
    assert_eq!(e.app.current_scope(), KeyScope::Memory);
    assert!(again(&mut e).ends_with("--first memory"));
    let mut e = Explorer::open(&[fixture("torch/whole.pt.trace.json.gz")], (120, 40));
    // The time filter is set to the visible part of the timeline.
    e.press("T + + + B K");
    assert_eq!(e.app.current_scope(), KeyScope::Kernels);
    let command = again(&mut e);
    assert!(command.contains("--from "), "{command}");
}

#[test]
fn a_place_that_is_not_there_is_said() {
    let open = |name: &str, address: Location| {
        let mut e = Explorer::open_with(&[fixture(name)], (120, 40), Settings { address: Some(address), ..Settings::default() });
        e.screen()
    };
    let at = |show| Location { show: Some(show), ..Location::default() };
    let single = "nsys/single.sqlite.zst";
    let nothing = open(single, Location { kernel: Some("no_such_kernel".into()), ..at(KeyScope::Kernels) });
    assert!(nothing.contains("no kernel is called no_such_kernel"), "{nothing}");
    let far = open(single, Location { launch: Some(4_000_000), ..at(KeyScope::Launches) });
    assert!(far.contains("there is no launch 4000000"), "{far}");
    let metrics = open(single, at(KeyScope::Hints));
    assert!(metrics.contains("this report has no metrics of kernels"), "{metrics}");
    let result = open("ncu/full.ncu-rep.zst", Location { result: Some(99), ..at(KeyScope::Metrics) });
    assert!(result.contains("there is no result 99"), "{result}");
    // A place outside the window, or one that cannot be listed, ends the navigation on a usable screen.
    let outside = Location { launch: Some(5), window: Some((1 << 60, (1 << 60) + 1)), ..at(KeyScope::Launches) };
    let mut e = Explorer::open_with(&[fixture(single)], (120, 40), Settings { address: Some(outside), ..Settings::default() });
    assert!(e.screen().contains("not in the window") && e.app.session.address.is_none(), "{}", e.screen());
    e.press("B");
    assert!(e.app.report().unwrap().window.is_none());
    let snapshot = open("torch/memory/leak.pickle.gz", at(KeyScope::Launches));
    assert!(snapshot.contains("no single launches"), "{snapshot}");
    let ncu = open("ncu/three.ncu-rep.zst", Location { window: Some((0, 5)), ..at(KeyScope::Kernels) });
    assert!(!ncu.contains("0 rows"), "{ncu}");
    // A window may be open at one end.
    for show in [KeyScope::Timeline, KeyScope::Kernels, KeyScope::Overview] {
        for window in [(i64::MIN, 100_000_000), (100_000_000, i64::MAX)] {
            let screen = open("nsys/whole_llm.sqlite.zst", Location { window: Some(window), ..at(show) });
            assert!(!screen.contains("9223372036"), "{show:?}: {screen}");
        }
    }
    let named = Location { range: Some("--- step".into()), ..at(KeyScope::Ranges) };
    assert_eq!(named.to_args(), ["--first", "ranges", "--range=--- step"]);
    let memory = open(single, at(KeyScope::Memory));
    assert!(memory.contains("nothing is recorded of memory"), "{memory}");
}

fn triage_of(name: &str) -> std::path::PathBuf {
    root().join(format!("fixtures/triage/{name}.sqlite.zst"))
}

/// `esc` goes back the way that one came, between reports, too.
#[test]
fn the_timeline_of_a_rank_leads_back_to_the_ranks() {
    let mut e = Explorer::open(&[triage_of("slow_rank_rank0"), triage_of("slow_rank_rank1")], (120, 40));
    for (keys, back) in [("A enter", "A"), ("A tab enter", "A tab")] {
        let mut there = e.fork();
        there.press(back);
        let want = there.screen();
        let mut went = e.fork();
        went.press(keys);
        assert_eq!(went.app.current_scope(), KeyScope::Timeline);
        went.press("esc");
        assert_eq!(went.screen(), want, "{keys}");
    }
    // Then back to the report that was shown before.
    let first = e.screen();
    e.press("A enter esc esc");
    assert_eq!(e.screen(), first);
}

#[test]
fn a_snapshot_of_memory_has_no_other_home() {
    for keys in ["esc", "K", "esc K esc"] {
        let mut e = Explorer::open(&[fixture("torch/memory/leak.pickle.gz")], (120, 40));
        e.press(keys);
        assert_eq!(e.app.current_scope(), KeyScope::Memory, "{keys}: {}", e.screen());
    }
}

/// The counters of a trace are in the same file; they are no other run.
#[test]
fn a_trace_is_not_compared_with_its_own_counters() {
    let mut e = Explorer::open(&[fixture("trace/zoo_survey.wstrace.zst")], (200, 50));
    let footer = e.screen().lines().last().unwrap().to_owned();
    e.press("D");
    assert!(!footer.contains("D changes") && e.screen().contains("only one report is open"), "{footer} {}", e.screen());
}

/// The first key leads to what the verdict is about.
#[test]
fn the_verdict_opens_its_own_place() {
    let cases = [
        (fixture("rocm/matmul.rpd.zst"), "idle 2.74 s"),
        (triage_of("small_copies"), "memcpy HtoD"),
        (triage_of("pageable_h2d"), "memcpy HtoD"),
    ];
    for (file, what) in cases {
        let mut e = Explorer::open(&[file], (120, 40));
        e.press("O enter");
        assert!(e.screen().contains(&format!("╭ {what} ")), "{what}: {}", e.screen());
        // Without a kernel at the cursor there is nothing to run again.
        assert_eq!(e.screen().lines().last().unwrap().contains("r re-run"), what.starts_with("idle"), "{}", e.screen());
        e.press("f");
        assert!(!e.screen().contains("no event is at the cursor"), "{}", e.screen());
    }
}
