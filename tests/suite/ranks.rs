//! Analysis of many ranks: captures with known causes, generated jobs of up to 512 ranks, and the commands.

use super::jobs::{Plan, Wrong, job as made_up};
use super::support::{Explorer, root};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use warpscope::analysis::ranks::{Job, Late, build_job};
use warpscope::analysis::triage::Verdict;
use warpscope::app::KeyScope;
use warpscope::model::digest::{Digest, HostLine};
use warpscope::report::document::Renderer;

fn warpscope(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warpscope"));
    command.args(words).current_dir(folder).env_remove("RANK").env_remove("WORLD_SIZE");
    command.env("XDG_CACHE_HOME", folder.join(".cache")).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

pub fn plans(ranks: usize) -> Vec<Plan> {
    let mut out = Vec::new();
    let tensors: &[usize] = if ranks >= 64 { &[1, 8] } else { &[1, 4] };
    let wrongs = |seed: u64| {
        let rank = (seed as usize * 7 + 3) % ranks;
        [
            Wrong::Nothing,
            Wrong::Compute(rank, 0.15),
            Wrong::Compute(rank, 0.6),
            Wrong::Host(rank, 1_500_000),
            Wrong::Host(rank, 4_000_000),
            Wrong::Uneven(3_000_000),
        ]
    };
    for &tensor in tensors {
        for seed in 1..=(if ranks > 100 { 1 } else { 3 }) {
            for wrong in wrongs(seed) {
                // Unnamed groups can be identified only if there is one.
                for numbered in if tensor == 1 { &[true, false][..] } else { &[true][..] } {
                    out.push(Plan { ranks, tensor, numbered: *numbered, steps: 40, layers: 8, wrong, seed });
                }
            }
            if tensor > 1 && ranks / tensor >= 3 {
                out.push(Plan {
                    ranks,
                    tensor,
                    numbered: true,
                    steps: 40,
                    layers: 8,
                    wrong: Wrong::Link(seed as usize % (ranks / tensor), 3.0),
                    seed,
                });
            }
        }
    }
    out
}

/// Returns whether the findings match the planted problem.
pub fn right(plan: &Plan, found: &Job) -> bool {
    let straggler = found.stragglers.first().map(|s| (s.rank as usize, s.why));
    // The collectives of these jobs do not overlap compute, so this finding is in all of them.
    let ids: Vec<Verdict> = found.findings.iter().map(|f| f.id).filter(|id| *id != Verdict::CommExposed).collect();
    match plan.wrong {
        Wrong::Nothing => ids.is_empty() && straggler.is_none(),
        Wrong::Compute(rank, _) => straggler == Some((rank, Late::Compute)) && found.stragglers.len() == 1,
        Wrong::Host(rank, _) => straggler == Some((rank, Late::Host)) && found.stragglers.len() == 1,
        Wrong::Uneven(_) => straggler.is_none() && ids == [Verdict::RankImbalance],
        // Ranks of the slow group are late elsewhere, but none of them is to blame.
        Wrong::Link(group, _) => {
            ids.contains(&Verdict::SlowLink) && {
                let f = found.findings.iter().find(|f| f.id == Verdict::SlowLink).unwrap();
                f.headline.contains(&format!("ranks {}–{} ", group * plan.tensor, (group + 1) * plan.tensor - 1))
            }
        }
    }
}

/// Precision and recall of the named rank and cause, over generated jobs.
#[test]
fn stragglers_of_made_up_jobs() {
    for ranks in [8, 64, 512] {
        let plans = plans(ranks);
        let mut wrong = Vec::new();
        let (mut named, mut rightly, mut planted) = (0, 0, 0);
        for plan in &plans {
            let found = build_job(&made_up(plan));
            let is = matches!(plan.wrong, Wrong::Compute(..) | Wrong::Host(..));
            let ok = right(plan, &found);
            planted += usize::from(is);
            named += usize::from(!found.stragglers.is_empty());
            rightly += usize::from(is && ok);
            if !ok {
                wrong.push(format!(
                    "{plan:?}: {:?} {:?}",
                    found.stragglers,
                    found.findings.iter().map(|f| &f.headline).collect::<Vec<_>>()
                ));
            }
        }
        println!(
            "{ranks} ranks: {} jobs, {} right; stragglers: {planted} planted, {named} named, {rightly} right",
            plans.len(),
            plans.len() - wrong.len()
        );
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

/// Transfer time of a collective, once all ranks have arrived, is separated from waiting time; the worst step is named.
#[test]
fn exposed_collectives_are_transfer_and_waiting() {
    let plan = |wrong| Plan { ranks: 8, tensor: 1, numbered: true, steps: 40, layers: 8, wrong, seed: 7 };
    let of = |wrong| {
        let found = build_job(&made_up(&plan(wrong)));
        let finding = found.findings.iter().find(|f| f.id == Verdict::CommExposed).cloned().unwrap();
        let value = |name: &str| finding.evidence.iter().find(|e| e.name.starts_with(name)).map(|e| e.value).unwrap();
        (
            finding.stake,
            value("collectives alone"),
            value("waiting"),
            value("share of the worst step") - value("median share"),
            finding.places.len(),
        )
    };
    let (even, uneven, one) = (of(Wrong::Nothing), of(Wrong::Uneven(3_000_000)), of(Wrong::Host(3, 4_000_000)));
    assert!(even.2 < 3.0 && uneven.2 > 20.0 && one.2 > 20.0, "waiting: {even:?} {uneven:?} {one:?}");
    // The transfer takes the same time in each job, so it is a smaller share of a longer step.
    for (stake, alone, waiting, over, places) in [even, uneven, one] {
        assert!((stake * 100.0 - (alone - waiting)).abs() < 1e-6 && (0.08..0.3).contains(&stake), "{stake} {alone} {waiting}");
        assert!(over >= 0.0 && places == 4);
    }
}

/// Clocks that are seconds apart and drift are aligned, also through intermediate ranks.
#[test]
fn clocks_of_made_up_jobs_come_together() {
    let plan = Plan { ranks: 16, tensor: 4, numbered: true, steps: 400, layers: 4, wrong: Wrong::Nothing, seed: 5 };
    let all = made_up(&plan);
    let found = build_job(&all);
    // The last collective of each rank is that of its data-parallel group, whose ranks are four apart: on the common
    // clock, their ends must agree.
    for group in 0..4usize {
        let ends: Vec<(i64, i64)> = (group..16)
            .step_by(4)
            .map(|rank| {
                let last = all[rank].collectives().last().unwrap().end();
                let clock = found.ranks[rank].clock;
                (clock.common_time(last), clock.uncertainty)
            })
            .collect();
        let (first, last) = (ends.iter().map(|e| e.0).min().unwrap(), ends.iter().map(|e| e.0).max().unwrap());
        let stated = ends.iter().map(|e| e.1).max().unwrap();
        assert!(last - first <= 2 * stated, "{} of {stated}", last - first);
        assert!(stated < 100_000, "{stated}");
    }
}

/// Id and confidence of a finding.
type First = (String, String);

/// Recorded jobs with known causes: name, whether the result is right, and the first finding.
pub fn labelled() -> Vec<(String, bool, Option<First>)> {
    let captures = [("balanced", None), ("slow_rank", Some((1, "compute"))), ("late_host", Some((0, "host")))];
    let traced = [("busy_host", Some((1, "host"))), ("even", None), ("once", None), ("pipeline", None), ("exchange", None)];
    let files = captures.map(|(name, want)| (name, [0, 1].map(|r| format!("fixtures/triage/{name}_rank{r}.sqlite.zst")), want));
    let digests = traced.map(|(name, want)| (name, [0, 1].map(|r| format!("fixtures/ranks/{name}_{r}.wsd")), want));
    let home = tempfile::tempdir().unwrap();
    files
        .into_iter()
        .chain(digests)
        .map(|(name, files, want)| {
            let files = files.map(|f| root().join(f).to_str().unwrap().to_owned());
            let out = warpscope(home.path(), &["ranks", "--format", "json", &files[0], &files[1]]);
            let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{name}: {e} {}", text(&out)));
            let straggler = json["straggler"]["rank"].as_u64().zip(json["straggler"]["cause"].as_str());
            let word = |key: &str| json["findings"][0][key].as_str().map(str::to_owned);
            // The limit of a job without a straggler is known as well.
            let ids: &[&str] = match (name, want) {
                (_, Some(_)) => &["straggler"],
                ("pipeline", _) => &["pipeline-bubble"],
                _ => &["gpu-bound", "comm-exposed"],
            };
            let first = word("id").zip(word("sure"));
            (name.to_owned(), straggler == want && first.as_ref().is_none_or(|f| ids.contains(&f.0.as_str())), first)
        })
        .collect()
}

/// Collectives alone do not tell if the late rank's GPU computes longer or its host launches late.
#[test]
fn a_rank_whose_work_was_not_recorded_has_no_cause() {
    let digest = |name: &str| Digest::from_bytes(&std::fs::read(root().join(format!("fixtures/ranks/{name}.wsd"))).unwrap()).unwrap();
    let mut all = vec![digest("busy_host_0"), digest("busy_host_1")];
    let late = |all: &[Digest]| build_job(all).stragglers.iter().map(|s| (s.rank, s.why)).collect::<Vec<_>>();
    assert_eq!(late(&all), [(1, Late::Host)]);
    for digest in &mut all {
        digest.kernel_time = 0;
        digest.kernels.clear();
    }
    assert_eq!(late(&all), [(1, Late::Unknown)]);
}

/// Two ranks with a known cause, recorded by nsys and by `torch.profiler`.
#[test]
fn pairs_of_captures() {
    let folder = root().join("fixtures/triage");
    let pair = |name: &str, end: &str| -> Option<Vec<PathBuf>> {
        let files: Vec<PathBuf> = (0..2).map(|r| folder.join(format!("{name}_rank{r}{end}"))).collect();
        files.iter().all(|f| f.is_file()).then_some(files)
    };
    let mut judged = 0;
    for (name, straggler) in
        [("balanced", None), ("slow_rank", Some((1, "compute"))), ("late_host", Some((0, "host"))), ("comm_bound", None)]
    {
        for end in [".pt.trace.json.gz", ".sqlite.zst", ".sqlite"] {
            let Some(files) = pair(name, end) else { continue };
            let files: Vec<&str> = files.iter().map(|f| f.to_str().unwrap()).collect();
            let home = tempfile::tempdir().unwrap();
            let out = warpscope(home.path(), &[&["ranks", "--format", "json"], &files[..]].concat());
            let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{name}{end}: {e} {}", text(&out)));
            let found = json["straggler"]["rank"].as_u64().zip(json["straggler"]["cause"].as_str());
            assert_eq!(found, straggler, "{name}{end}");
            assert_eq!(json["ranks"].as_array().unwrap().len(), 2);
            judged += 1;
        }
    }
    assert!(judged >= 2, "{judged}");
}

/// Jobs of two ranks on two GPUs with known problems, recorded by the built-in tracer: first finding, straggler.
#[test]
fn jobs_that_the_tracer_recorded() {
    let folder = root().join("fixtures/ranks");
    let digests = |name: &str| [0, 1].map(|r| folder.join(format!("{name}_{r}.wsd"))).to_vec();
    let jobs = [
        ("busy_host", Some("straggler"), Some((1, "host"))),
        ("even", None, None),
        ("once", None, None),
        ("pipeline", Some("pipeline-bubble"), None),
        ("exchange", Some("comm-exposed"), None),
    ];
    let home = tempfile::tempdir().unwrap();
    let judge = |files: &[PathBuf]| -> serde_json::Value {
        let files: Vec<&str> = files.iter().map(|f| f.to_str().unwrap()).collect();
        let out = warpscope(home.path(), &[&["ranks", "--format", "json"], &files[..]].concat());
        assert!(out.status.success(), "{}", text(&out));
        serde_json::from_slice(&out.stdout).unwrap()
    };
    let said = |json: &serde_json::Value| {
        let first = json["findings"][0]["id"].as_str().map(str::to_owned);
        (first, json["straggler"]["rank"].as_u64().zip(json["straggler"]["cause"].as_str().map(str::to_owned)))
    };
    for (name, first, straggler) in jobs {
        let json = judge(&digests(name));
        assert_eq!(said(&json), (first.map(str::to_owned), straggler.map(|(r, c)| (r, c.to_owned()))), "{name}");
        let remarks = json["remarks"].to_string();
        assert_eq!(remarks.contains("longest 251 ms for rank 1"), name == "once", "{remarks}");
    }
    // Including the trace of the launcher, which used CUDA but ran no kernels.
    let traces: Vec<PathBuf> = ["1540", "1590", "1591"].iter().map(|p| folder.join(format!("sharded.{p}.wstrace.zst"))).collect();
    let json = judge(&traces);
    assert_eq!(said(&json), (Some("straggler".to_owned()), Some((0, "compute".to_owned()))));
    assert!(json["remarks"].to_string().contains("1 report left out, in which nothing ran on a GPU"), "{}", json["remarks"]);
    let only = warpscope(home.path(), &["ranks", traces[0].to_str().unwrap()]);
    assert!(!only.status.success() && text(&only).contains("nothing ran on a GPU"), "{}", text(&only));
}

/// Even with a single collective per step, and only eight steps, the straggler is found.
#[test]
fn stragglers_of_short_captures() {
    for (wrong, why) in [(Wrong::Compute(1, 0.6), Late::Compute), (Wrong::Host(1, 4_000_000), Late::Host)] {
        let found = build_job(&made_up(&Plan { ranks: 4, tensor: 1, numbered: true, steps: 8, layers: 1, wrong, seed: 5 }));
        assert_eq!(found.stragglers.iter().map(|s| (s.rank, s.why)).collect::<Vec<_>>(), [(1, why)], "{:?}", found.findings);
    }
}

/// A late rank is named together with the function during which its GPU is idle longer than its peers' GPUs are, if
/// there is such a function.
#[test]
fn the_line_that_makes_a_rank_late_is_named() {
    let plan = Plan { ranks: 8, tensor: 1, numbered: true, steps: 30, layers: 4, wrong: Wrong::Host(5, 3_000_000), seed: 4 };
    let with = |lines: &dyn Fn(u32) -> Vec<(&'static str, i64)>| {
        let mut all = made_up(&plan);
        for (rank, digest) in (0..).zip(&mut all) {
            digest.host_lines = lines(rank).into_iter().map(|(label, ns)| HostLine { label: label.to_owned(), ns }).collect();
            // The digest after a round trip through a file.
            *digest = Digest::from_bytes(&digest.to_bytes()).unwrap();
        }
        let found = build_job(&all);
        let headline = found.findings.iter().find(|f| f.id == Verdict::Straggler).map(|f| f.headline.clone());
        headline.unwrap_or_else(|| panic!("{:?}", found.findings))
    };
    let late = 90_000_000;
    // All ranks wait for data, this one slightly longer; only it writes a log, on other lines of the same function.
    let named = with(&|rank| match rank {
        5 => vec![("collate (data.py:88)", 300_000_000), ("log (train.py:41)", late)],
        _ => vec![("collate (data.py:88)", 295_000_000), ("log (train.py:44)", 2_000_000)],
    });
    assert!(named.contains("its GPU is idle 88.0 ms longer than the others' while it is in log (train.py:41)"), "{named}");
    // A function that all ranks execute does not explain a late rank, nor does a function with little idle time.
    for other in [("collate (data.py:88)", 300_000_000), ("log (train.py:41)", 1_000_000)] {
        let named = with(&|rank| if rank == 5 { vec![other] } else { vec![("collate (data.py:88)", 300_000_000)] });
        assert!(named.contains("its host launches late") && !named.contains(".py"), "{named}");
    }
    // C++ function names contain colons, too, and have no lines.
    let named = with(&|rank| if rank == 5 { vec![("io::write", late)] } else { vec![("io::read", late)] });
    assert!(named.contains("while it is in io::write"), "{named}");
    // If only this rank was sampled, the usual idle time is unknown.
    let named = with(&|rank| if rank == 5 { vec![("log (train.py:41)", late)] } else { Vec::new() });
    assert!(!named.contains(".py"), "{named}");
}

/// Digests that are made for each rank and analysed together give the same result as the reports.
#[test]
fn digests_say_what_the_reports_say() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let reports = root().join("fixtures/triage");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&reports).unwrap().flatten().map(|e| e.path()).collect();
    files.retain(|f| f.file_name().is_some_and(|n| n.to_string_lossy().contains("slow_rank_rank")));
    files.sort();
    files.truncate(2);
    assert_eq!(files.len(), 2, "{files:?}");
    for (rank, file) in files.iter().enumerate() {
        let made = warpscope(here, &["digest", file.to_str().unwrap(), "-o", "d{rank}.wsd", "--rank", &rank.to_string()]);
        assert!(made.status.success(), "{}", text(&made));
        assert!(std::fs::metadata(here.join(format!("d{rank}.wsd"))).unwrap().len() < 20_000);
    }
    let again = warpscope(here, &["digest", files[0].to_str().unwrap(), "-o", "d0.wsd"]);
    assert!(!again.status.success() && text(&again).contains("--force"), "{}", text(&again));
    let json = |words: &[&str]| -> serde_json::Value { serde_json::from_slice(&warpscope(here, words).stdout).unwrap() };
    let (one, two) = (files[0].to_str().unwrap(), files[1].to_str().unwrap());
    let (of_reports, of_digests) = (json(&["ranks", "--format", "json", one, two]), json(&["ranks", "--format", "json", "."]));
    for key in ["straggler", "findings", "waits", "matched_collectives"] {
        assert_eq!(of_reports[key], of_digests[key], "{key}");
    }
    // One damaged digest among several does not hide the others.
    std::fs::write(here.join("d2.wsd"), b"WSD1nothing").unwrap();
    let some = warpscope(here, &["ranks", ".", "--format", "table"]);
    assert!(
        some.status.code() == Some(3) && text(&some).contains("d2.wsd") && text(&some).contains("1 report could not be read"),
        "{}",
        text(&some)
    );
    let failed = warpscope(here, &["ranks", "d0.wsd", "d1.wsd", "--fail-on", "straggler"]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(!warpscope(here, &["ranks", "/no/such"]).status.success());
    // A duplicate counts once, whatever its name.
    std::fs::copy(here.join("d1.wsd"), here.join("copy.wsd")).unwrap();
    let twice: serde_json::Value =
        serde_json::from_slice(&warpscope(here, &["ranks", "d0.wsd", "d1.wsd", "d1.wsd", "copy.wsd", "--format", "json"]).stdout).unwrap();
    assert_eq!((twice["ranks"].as_array().unwrap().len(), twice["straggler"]["rank"].as_u64()), (2, Some(1)));
    assert_eq!(twice["remarks"].as_array().unwrap().len(), 2, "{}", twice["remarks"]);
    assert!(text(&warpscope(here, &["digest", "d0.wsd", "-o", "z.wsd"])).contains("a digest already"));
    std::fs::create_dir(here.join("empty")).unwrap();
    assert!(text(&warpscope(here, &["ranks", "empty"])).contains("no reports of ranks"));
}

/// Untrusted folders: symlink loops, and small files that decompress to a lot.
#[test]
fn folders_of_ranks_that_strangers_made() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let fixtures = root().join("fixtures/ranks");
    std::fs::create_dir(here.join("job")).unwrap();
    // A rank's folder may be a symlink.
    std::os::unix::fs::symlink(here.join("elsewhere"), here.join("job/rank1")).unwrap();
    std::fs::create_dir(here.join("elsewhere")).unwrap();
    std::fs::copy(fixtures.join("even_0.wsd"), here.join("job/even_0.wsd")).unwrap();
    std::fs::copy(fixtures.join("even_1.wsd"), here.join("elsewhere/even_1.wsd")).unwrap();
    for n in 0..200 {
        std::os::unix::fs::symlink(".", here.join(format!("job/{n}"))).unwrap();
    }
    let json = warpscope(here, &["ranks", "job", "--format", "json"]);
    assert!(json.status.success(), "{}", text(&json));
    let found: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(found["ranks"].as_array().unwrap().len(), 2, "{found}");
    let bomb = Digest { parts: vec![0; 40 << 20], ..Digest::default() }.to_bytes();
    for n in 0..40 {
        std::fs::write(here.join(format!("elsewhere/bomb{n}.wsd")), &bomb).unwrap();
    }
    let out = super::hostile::limited(&["ranks", here.join("elsewhere").to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(3), "{}", text(&out));
    assert!(text(&out).contains("larger than a digest can be"), "{}", text(&out));
}

/// A folder with the digests of 95 of the 96 ranks, and the output as text, CSV and Markdown.
#[test]
fn pages_of_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let plan = Plan { ranks: 96, tensor: 8, numbered: true, steps: 30, layers: 4, wrong: Wrong::Host(37, 3_000_000), seed: 2 };
    let all = made_up(&plan);
    for digest in all.iter().skip(1) {
        std::fs::write(folder.path().join(format!("{}.wsd", digest.file)), digest.to_bytes()).unwrap();
    }
    let page = warpscope(folder.path(), &["ranks", ".", "--format", "table"]);
    insta::assert_snapshot!("ranks_page", text(&page));
    let csv = warpscope(folder.path(), &["ranks", ".", "--format", "csv"]);
    assert!(text(&csv).contains("the CSV lists ranks only: "), "{}", text(&csv));
    let csv = warpscope(folder.path(), &["ranks", ".", "--format", "csv", "-q"]);
    assert_eq!(text(&csv).lines().count(), 96);
    assert!(text(&csv).lines().any(|l| l.starts_with("37,node4,5,") && l.contains(",host,")), "{}", text(&csv));
    let md = text(&warpscope(folder.path(), &["ranks", ".", "--format", "md"]));
    assert!(md.contains("**straggler** (high, certain, up to 49% of a rank's judged time): rank 37"), "{md}");
}

/// A digest damaged anywhere gives a job or an error.
#[test]
fn damaged_digests() {
    let plan = Plan { ranks: 2, tensor: 1, numbered: true, steps: 10, layers: 2, wrong: Wrong::Nothing, seed: 1 };
    let whole = made_up(&plan);
    let message = prost_bytes(&whole[0]);
    let mut taken = 0;
    for at in 0..message.len() {
        let mut bytes = message.clone();
        bytes[at] ^= 0x55;
        if let Ok(damaged) = Digest::from_bytes(&Digest::pack_message(&bytes)) {
            assert_eq!(build_job(&[damaged, whole[1].clone()]).ranks.len(), 2);
            taken += 1;
        }
    }
    assert!(taken > 0);
}

/// Returns a digest's protobuf message, decompressed and without the magic word.
fn prost_bytes(digest: &Digest) -> Vec<u8> {
    zstd::stream::decode_all(&digest.to_bytes()[4..]).unwrap()
}

/// Writes the digests of 512 ranks with 5,000 collectives each, for measurements: `WARPSCOPE_JOB=FOLDER cargo test
/// --release -- --ignored job_of_512`, then `warpscope ranks FOLDER`.
#[test]
#[ignore = "writes 100 MB for a measurement by hand"]
fn a_job_of_512_ranks_is_written() {
    let folder = PathBuf::from(std::env::var_os("WARPSCOPE_JOB").expect("WARPSCOPE_JOB names the folder"));
    std::fs::create_dir_all(&folder).unwrap();
    let plan = Plan { ranks: 512, tensor: 8, numbered: true, steps: 200, layers: 24, wrong: Wrong::Compute(77, 0.2), seed: 9 };
    for digest in made_up(&plan) {
        std::fs::write(folder.join(format!("{}.wsd", digest.file)), digest.to_bytes()).unwrap();
    }
}

/// With both ranks open, the overview says who is late, and does not ask to open or to record the ranks.
#[test]
fn the_overview_of_a_rank_names_the_rank_that_is_late() {
    let folder = root().join("fixtures/triage");
    let files: Vec<PathBuf> = (0..2).map(|r| folder.join(format!("slow_rank_rank{r}.sqlite.zst"))).collect();
    let mut explorer = Explorer::open(&files, (120, 40));
    explorer.press("O");
    let screen = explorer.screen();
    assert!(screen.contains("next: ⏎ shows the ranks side by side: rank 1 makes the others wait"), "{screen}");
    assert!(!screen.contains("open all their reports") && !screen.contains("recipe rank"), "{screen}");
    // The kernel with 255 launches instead of 75 takes the extra time, although each launch is shorter.
    explorer.press("A");
    let screen = explorer.screen();
    let first = screen.lines().skip_while(|l| !l.contains("launches / others")).nth(1).unwrap_or_default();
    assert!(first.contains("255 / 75") && first.contains("+32.3 ms"), "{screen}");
    let mut alone = Explorer::open(&files[..1], (120, 40));
    alone.press("O");
    assert!(alone.screen().contains("open all their reports"), "{}", alone.screen());
}

/// Ranks of a session on the screen: the late rank, its worst step, and from there its timeline.
#[test]
fn ranks_on_the_screen() {
    let folder = root().join("fixtures/triage");
    let files: Vec<PathBuf> = (0..2).map(|r| folder.join(format!("slow_rank_rank{r}.sqlite.zst"))).collect();
    for (name, size) in [("ranks_80x24", (80, 24)), ("ranks_120x40", (120, 40)), ("ranks_200x50", (200, 50))] {
        let mut explorer = Explorer::open(&files, size);
        explorer.press("A");
        explorer.press(".");
        insta::assert_snapshot!(name, explorer.screen());
        // The collectives of that step, on the common clock.
        explorer.press("tab");
        insta::assert_snapshot!(format!("collectives_{}", &name[6..]), explorer.screen());
    }
    let mut explorer = Explorer::open(&files, (120, 40));
    explorer.press("A tab");
    let worst = explorer.screen();
    assert!(worst.contains("rank 1 arrives last"), "{worst}");
    explorer.press("right");
    assert_ne!(explorer.screen(), worst);
    explorer.press("left + + -");
    assert!(explorer.screen().contains("79 of 90"), "{}", explorer.screen());
    explorer.press("enter");
    assert_eq!(explorer.app.current_scope(), KeyScope::Timeline);
    // By SQL on rank 1's report, that collective starts at 0.200821 s.
    let screen = explorer.screen();
    assert!(screen.contains("collective AllReduce") && screen.contains("0.200821 s"), "{screen}");
    explorer.press("A");
    assert!(explorer.screen().contains("79 of 90"), "it is where one left it: {}", explorer.screen());
    explorer.press("esc");
    assert!(explorer.app.current_scope() == KeyScope::Ranks && !explorer.screen().contains("on the common clock"), "{}", explorer.screen());
    explorer.press("esc");
    let mut explorer = Explorer::open(&files, (120, 40));
    explorer.press("A");
    assert_eq!(explorer.app.current_scope(), KeyScope::Ranks);
    assert!(explorer.screen().contains("rank 1 arrives last"));
    explorer.press("right right left");
    assert!(explorer.screen().contains("step 0 of"), "{}", explorer.screen());
    explorer.press("up enter");
    assert_eq!((explorer.app.current_scope(), explorer.app.session.active), (KeyScope::Timeline, 0));
    explorer.press("A A");
    let mut one = Explorer::open(&files[..1], (80, 24));
    one.press("A");
    assert!(one.screen().contains("only one rank is open"), "{}", one.screen());
    let mut none = Explorer::open(&[root().join("fixtures/ncu/full.ncu-rep.zst")], (80, 24));
    none.press("A");
    assert!(none.screen().contains("There are no ranks to compare"), "{}", none.screen());
}

/// Digests of 8 ranks in the explorer: the screen of ranks opens first, the row of a rank without a slice of a
/// collective shows its guide lines, and launches can only be seen in the traces.
#[test]
fn digests_on_the_screen() {
    let folder = tempfile::tempdir().unwrap();
    let plan = Plan { ranks: 8, tensor: 4, numbered: true, steps: 40, layers: 8, wrong: Wrong::Host(5, 4_000_000), seed: 3 };
    let files: Vec<PathBuf> = made_up(&plan)
        .into_iter()
        .enumerate()
        .map(|(rank, digest)| {
            let path = folder.path().join(format!("{rank}.wsd"));
            std::fs::write(&path, Digest { file: format!("/runs/{rank}.wstrace"), ..digest }.to_bytes()).unwrap();
            path
        })
        .collect();
    for (name, size) in [("digests_80x24", (80, 24)), ("digests_120x40", (120, 40)), ("digests_200x50", (200, 50))] {
        let mut explorer = Explorer::open(&files, size);
        assert_eq!(explorer.app.current_scope(), KeyScope::Ranks);
        assert!(explorer.screen().contains("rank 5 arrives last"), "{}", explorer.screen());
        explorer.press("tab");
        insta::assert_snapshot!(name, explorer.screen());
        explorer.press("enter");
        assert!(explorer.screen().contains("open 5.wstrace for its timeline"), "{}", explorer.screen());
    }
    // A single digest is a table of kernels.
    let mut explorer = Explorer::open(&files[..1], (120, 40));
    explorer.press("esc");
    assert!(explorer.screen().contains("This is a digest of 0.wstrace") || explorer.screen().contains("1 note"), "{}", explorer.screen());
    let out = warpscope(folder.path(), &["top", files[0].to_str().unwrap()]);
    assert!(out.status.success() && text(&out).lines().count() > 1, "{}", text(&out));
    std::fs::write(&files[0], [&b"WSD1"[..], b"damaged"].concat()).unwrap();
    let out = warpscope(folder.path(), &["top", files[0].to_str().unwrap()]);
    assert!(!out.status.success() && text(&out).contains("make it again with `warpscope digest`"), "{}", text(&out));
}

/// Two unrelated runs: no rank is blamed.
#[test]
fn ranks_of_different_runs_are_not_judged() {
    let folder = root().join("fixtures/triage");
    let files = [folder.join("slow_rank_rank0.sqlite.zst"), folder.join("late_host_rank1.sqlite.zst")];
    let home = tempfile::tempdir().unwrap();
    let out = warpscope(home.path(), &["ranks", "--format", "json", files[0].to_str().unwrap(), files[1].to_str().unwrap()]);
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert!(json["straggler"].is_null() && json["findings"].as_array().unwrap().is_empty(), "{json}");
    assert!(json["remarks"].to_string().contains("different runs"), "{}", json["remarks"]);
}

/// Reports of two jobs in one call: their ranks are matched within each job, and the page says how many jobs there are.
#[test]
fn ranks_of_two_jobs_are_told_apart() {
    let folder = root().join("fixtures/triage");
    let names = ["slow_rank_rank0", "slow_rank_rank1", "late_host_rank0", "late_host_rank1"];
    let files: Vec<String> = names.iter().map(|n| folder.join(format!("{n}.sqlite.zst")).to_str().unwrap().to_owned()).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let home = tempfile::tempdir().unwrap();
    let out = text(&warpscope(home.path(), &[&["ranks", "--format", "table"], &files[..]].concat()));
    assert!(out.starts_with("4 ranks of 2 jobs"), "{out}");
    assert!(
        out.contains("the ranks are of 2 jobs")
            && out.lines().any(|l| l.split_whitespace().collect::<Vec<_>>().starts_with(&["all_reduce", "2", "180"])),
        "{out}"
    );
}

/// Sends and receives whose kernels do not name the other rank are counted but not matched, and the report says both.
#[test]
fn sends_that_cannot_be_matched_are_said() {
    let plan = Plan { ranks: 8, tensor: 1, numbered: true, steps: 40, layers: 8, wrong: Wrong::Nothing, seed: 7 };
    let mut all = made_up(&plan);
    assert!(build_job(&all).remarks.iter().all(|r| !r.contains("sends and receives")));
    for digest in &mut all {
        let mut list: Vec<_> = digest.collectives().collect();
        let kind = digest.kinds.len();
        digest.kinds.push(warpscope::model::digest::CollectiveKind { name: "SendRecv".to_owned(), ..Default::default() });
        // Add as many messages as there are collectives, of the same durations, so that messages make up half of the
        // exposed time.
        let sends: Vec<_> = (0..).zip(&list).map(|(sequence, c)| warpscope::model::digest::Collective { kind, sequence, ..*c }).collect();
        list.extend(sends);
        list.sort_by_key(|c| c.start);
        digest.set_collectives(&list, 1);
    }
    let found = build_job(&all);
    let (there, said) = (all.iter().map(|d| d.collectives().count() / 2).sum::<usize>(), found.remarks.join(" "));
    assert!(
        said.contains(&format!("{there} of {there} sends and receives could not be matched (their kernels do not name the other rank)")),
        "{said}"
    );
    let exposed = found.findings.iter().find(|f| f.id == Verdict::CommExposed).unwrap();
    let value = |name: &str| exposed.evidence.iter().find(|e| e.name.starts_with(name)).map(|e| e.value).unwrap();
    let (alone, messages) = (value("collectives alone"), value("sends and receives alone"));
    assert!((alone - messages).abs() < 1.0 && alone > 1.0, "{alone} {messages}");
    assert!(exposed.headline.contains("; sends and receives take another "), "{}", exposed.headline);
}

/// Files that decompress to far more than their size, and impossible rank numbers.
#[test]
fn digests_that_are_bombs() {
    let empty_kernels = [0xa2, 0x01, 0x00].repeat(100_000);
    assert!(Digest::from_bytes(&Digest::pack_message(&empty_kernels)).unwrap_err().contains("more parts"));
    let zeros = [&b"WSD1"[..], &zstd::bulk::compress(&vec![0; 80 << 20], 19).unwrap()].concat();
    assert!(Digest::from_bytes(&zeros).is_err());
    let far = |rank| Digest { rank: Some(rank), world: Some(u32::MAX), ..Digest::default() };
    assert_eq!(build_job(&[far(u32::MAX), far(0)]).ranks.len(), 2);
    assert_eq!(build_job(&[Digest { rank: Some(u32::MAX), ..Digest::default() }]).ranks.len(), 1);
}

/// Impossible numbers are clamped to a safe range.
#[test]
fn digests_with_impossible_numbers() {
    let plan = Plan { ranks: 3, tensor: 1, numbered: true, steps: 6, layers: 2, wrong: Wrong::Nothing, seed: 1 };
    for number in [i64::MIN, i64::MAX, -1] {
        let mut all = made_up(&plan);
        let bad = &mut all[1];
        bad.parts = vec![number; 200];
        (bad.start, bad.end, bad.judged, bad.window_end) = (number, number, number, number);
        (bad.kernel_time, bad.collective_time, bad.epoch) = (number, number, Some(number));
        let columns = bad.collectives.as_mut().unwrap();
        columns.start.iter_mut().for_each(|n| *n = number);
        columns.duration.iter_mut().for_each(|n| *n = number);
        columns.sequence.iter_mut().step_by(2).for_each(|n| *n = number);
        columns.kind.iter_mut().step_by(3).for_each(|n| *n = u32::MAX);
        columns.each = u32::MAX;
        bad.kernels[0].count = u64::MAX;
        let steps = bad.steps.as_mut().unwrap();
        steps.start.iter_mut().for_each(|n| *n = number);
        steps.length.iter_mut().for_each(|n| *n = number);
        let all: Vec<Digest> = all.iter().map(|d| Digest::from_bytes(&d.to_bytes()).unwrap()).collect();
        let found = build_job(&all);
        assert_eq!((found.ranks.len(), found.steps_by_number(&all).is_empty()), (3, false));
        let reports = [0, 1, 2];
        let of = warpscope::report::ranks::Together { job: &found, digests: &all, reports: &reports };
        let mut out = Vec::new();
        warpscope::report::ranks::document(&of).write(&mut out, Renderer::Text, Some(80)).unwrap();
        warpscope::report::ranks::write_job_json(&mut out, &of).unwrap();
    }
}

/// The path from a rank whose host launches late leads to the idle time before its work, and to what the host does in it.
#[test]
fn a_late_host_is_shown_by_the_idle_time_before_its_work() {
    let folder = root().join("fixtures/triage");
    let files: Vec<PathBuf> = (0..2).map(|r| folder.join(format!("late_host_rank{r}.sqlite.zst"))).collect();
    let mut e = Explorer::open(&files, (120, 40));
    e.press("O enter");
    assert_eq!(e.app.current_scope(), KeyScope::Ranks, "{}", e.screen());
    e.press(". enter");
    assert_eq!(e.app.current_scope(), KeyScope::Timeline, "{}", e.screen());
    let timeline = e.screen();
    assert!(timeline.contains("╭ idle ") && timeline.contains("clock_nanosleep"), "{timeline}");
}

/// A report of several ranks has one finding on the collectives of all of them; if they mostly wait, to communicate less
/// saves little.
#[test]
fn collectives_that_mostly_wait_are_not_a_matter_of_bandwidth() {
    let folder = root().join("fixtures/ranks");
    let files: Vec<PathBuf> = (0..2).map(|r| folder.join(format!("comm_bound_rank{r}.pt.trace.json.gz"))).collect();
    let judged: Vec<_> = files
        .iter()
        .map(|file| {
            let profile = super::support::read(file).unwrap();
            let triage = super::triage::judge(&profile);
            (profile, triage)
        })
        .collect();
    let digests: Vec<Digest> = judged.iter().flat_map(|(p, t)| warpscope::analysis::ranks::build_digests(p, t, &p.file_name())).collect();
    let mut job = build_job(&digests);
    let finding = |job: &Job, reports: &[usize]| {
        let mut all = vec![judged[0].1.findings.clone()];
        warpscope::analysis::ranks::complete_reports(&mut all, job, reports);
        all.remove(0).into_iter().find(|f| f.id == Verdict::CommBound).unwrap()
    };
    let waited = |f: &warpscope::analysis::triage::Finding| f.evidence.iter().find(|e| e.name == "waiting for other ranks").unwrap().value;
    // Both ranks in one report: the sum of what they wait.
    let (one, both) = (finding(&job, &[0, 1]), finding(&job, &[0, 0]));
    let sum: i64 = job.ranks.iter().map(|m| m.waited).sum();
    assert!((waited(&both) - sum as f64).abs() < 1.0 && waited(&one) < waited(&both) && both.bound.contains("these ranks"), "{both:?}");
    assert!(!both.headline.contains("waiting") && both.actions[0].starts_with("Communicate less"), "{both:?}");
    for member in &mut job.ranks {
        member.waited = member.exposed / 4 * 3;
    }
    let waits = finding(&job, &[0, 0]);
    assert!(waits.headline.contains("75% of the exposed time is waiting") && waits.actions[0].starts_with("Find out"), "{waits:?}");
}

/// With all ranks open, a rank's own finding on collectives says how long it waits for the others, and asks for no more
/// recordings. Compute of 13% hides little, so that to communicate less comes first on both screens.
#[test]
fn open_ranks_answer_what_one_rank_cannot() {
    let folder = root().join("fixtures/ranks");
    let files: Vec<PathBuf> = (0..2).map(|r| folder.join(format!("comm_bound_rank{r}.pt.trace.json.gz"))).collect();
    let mut both = Explorer::open(&files, (120, 40));
    both.press("O i");
    let page = both.screen();
    assert!(page.contains("waiting for other ranks is") && page.contains("bus bandwidth of all_reduce"), "{page}");
    assert!(!page.contains("--recipe rank") && !page.contains("Compare the ranks"), "{page}");
    both.press("esc A");
    let ranks = both.screen();
    assert!(ranks.contains("Move less") && !ranks.contains("Overlap:"), "{ranks}");
    let mut one = Explorer::open(&files[..1], (120, 40));
    one.press("O i");
    assert!(one.screen().contains("--recipe rank"), "{}", one.screen());
}
