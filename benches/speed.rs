//! Reading, grouping and drawing an export of a million launches; reading and displaying an Nsight Compute report.

#![allow(missing_docs, clippy::unwrap_used, clippy::pedantic)]

mod support;

use criterion::{Criterion, criterion_group, criterion_main};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use std::sync::Arc;
use warpscope::analysis::metrics_rows::Wish;
use warpscope::analysis::range_tree::RangeTree;
use warpscope::analysis::roofline::Plot;
use warpscope::analysis::timeline::{Matches, Timeline, TimelinePart, Window, build_part};
use warpscope::analysis::triage::{Scope, triage_profile};
use warpscope::analysis::{GroupBy, Grouping, Overview, Paths, compare, metrics_page};
use warpscope::app::{App, Effect, Msg, Settings, jobs, update};
use warpscope::config::ColorMode;
use warpscope::import::{self, Input, Job, Names, Wants, ncu};
use warpscope::model::{Cancel, LaunchId};
use warpscope::report::timeline::paint;
use warpscope::rerun::{Options, Target, plan};
use warpscope::ui::theme::Library;
use warpscope::ui::{View, draw};

/// Copies of the fixture; each has 957 launches.
const TIMES: u32 = 1045;

fn speed(c: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("million.sqlite");
    support::grow(&path, TIMES, TIMES).unwrap();
    let read = |wants| import::open_profile(&path, &Job::new(wants, &|_| {})).unwrap();
    let mut group = c.benchmark_group("million launches");
    group.sample_size(10);
    group.bench_function("read names and times", |b| b.iter(|| read(Wants { names: Names::Demangled, ..Wants::TABLE })));
    group.bench_function("read everything", |b| b.iter(|| read(Wants::ALL)));
    group.bench_function("read everything with SQLite's library", |b| {
        b.iter(|| import::open_profile(&path, &Job { pages: false, ..Job::new(Wants::ALL, &|_| {}) }).unwrap())
    });
    let profile = Arc::new(read(Wants::ALL));
    let paths = Paths::from_profile(&profile);
    group.bench_function("group by demangled name", |b| b.iter(|| Grouping::from_profile(&profile, GroupBy::Demangled, None)));
    group.bench_function("attribute to NVTX ranges", |b| b.iter(|| Paths::from_profile(&profile)));
    group.bench_function("group by NVTX range", |b| b.iter(|| Grouping::from_profile(&profile, GroupBy::Nvtx, Some(&paths))));
    group.bench_function("overview", |b| b.iter(|| Overview::from_profile(&profile)));
    group.bench_function("what limits the run", |b| {
        b.iter(|| triage_profile(&profile, &Scope::default(), &Cancel::default()).unwrap().devices.len())
    });
    group.bench_function("the tree of ranges", |b| b.iter(|| RangeTree::from_profile(&profile, &Cancel::default()).unwrap().nodes.len()));

    for (part, name) in
        [(TimelinePart::Devices, "the timeline's streams"), (TimelinePart::Calls, "its calls"), (TimelinePart::Ranges, "its ranges")]
    {
        group.bench_function(name, |b| b.iter(|| build_part(&profile, part, &Cancel::default()).unwrap().groups.len()));
    }
    let mut timeline = Timeline::default();
    TimelinePart::ALL.into_iter().for_each(|part| timeline.add_part(build_part(&profile, part, &Cancel::default()).unwrap()));
    let of = timeline.event_reader(&profile);
    let whole = Window::new(timeline.span.0, timeline.span.1, 200);
    group.bench_function("all lanes of a window of 200 columns", |b| {
        b.iter(|| {
            let rows = timeline.groups.iter().flat_map(|g| &g.rows);
            rows.flat_map(|r| r.lanes()).map(|lane| paint::lane_glyphs(lane, &of, whole).len()).sum::<usize>()
        })
    });
    group.bench_function("find events by name", |b| {
        b.iter(|| Matches::find_all(&timeline, &of, "atomic", &Cancel::default()).unwrap().total)
    });

    let last = Target::Launches(vec![LaunchId(u32::try_from(profile.launches.len() - 1).unwrap())]);
    group.bench_function("plan a re-run of the last launch", |b| b.iter(|| plan(&profile, &last, &Options::default()).unwrap()));

    let (mut app, _) = App::new(vec![path.clone()], Settings::default(), (200, 50));
    let mut effects = update(&mut app, Msg::Loaded(0, Ok(Arc::clone(&profile))));
    while let Some(effect) = effects.pop() {
        if let Effect::Work(work) | Effect::Rest(work) = effect {
            let done = jobs::perform_work(&work, &Cancel::default()).unwrap();
            effects.extend(update(&mut app, Msg::Done { report: work.report, generation: work.generation, window: work.window, done }));
        }
    }
    let theme = Library::new(Vec::new()).theme("dark", ColorMode::True).unwrap();
    let mut terminal = Terminal::new(TestBackend::new(200, 50)).unwrap();
    let mut view = View::new(false);
    group.bench_function("draw a frame", |b| b.iter(|| terminal.draw(|frame| draw(frame, &app, &mut view, &theme)).unwrap().count));
    group.finish();
}

/// An Nsight Compute report: opening it, displaying one result, and handling a key.
fn metrics(c: &mut Criterion) {
    let packed = std::fs::File::open("fixtures/ncu/full.ncu-rep.zst").unwrap();
    let bytes: &'static [u8] = Box::leak(zstd::stream::decode_all(packed).unwrap().into_boxed_slice());
    let input = Input::built_in("full.ncu-rep", bytes);
    let open = || ncu::read_input(&input, &Job::new(Wants::ALL, &|_| {}), None).unwrap();
    let metrics = Arc::new(open());
    let details = ncu::details::read_details(&input, &metrics.results[0]).unwrap();
    let mut group = c.benchmark_group("one ncu result with 2,200 metrics");
    group.bench_function("open the report", |b| b.iter(open));
    group.bench_function("read sections, rules and instances", |b| {
        b.iter(|| ncu::details::read_details(&input, &metrics.results[0]).unwrap())
    });
    group.bench_function("rows of the metrics screen", |b| b.iter(|| metrics_page::build_rows(&metrics, 0, &details, &Wish::default())));
    let wish = Wish { filter: "hit rate".to_owned(), ..Wish::default() };
    group.bench_function("search among all metrics", |b| b.iter(|| metrics_page::build_rows(&metrics, 0, &details, &wish)));
    group.bench_function("compare with itself", |b| b.iter(|| compare::compare_metrics(&metrics, 0, &metrics, 0, "")));
    group.bench_function("roofline", |b| b.iter(|| Plot::from_result(&metrics, 0, &[])));
    group.finish();
}

/// A `PyTorch` trace, read in full.
fn torch(c: &mut Criterion) {
    let mut text = Vec::new();
    let packed = std::fs::File::open("fixtures/torch/llm.pt.trace.json.gz").unwrap();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(packed), &mut text).unwrap();
    let bytes: &'static [u8] = Box::leak(text.into_boxed_slice());
    let input = Input::built_in("llm.pt.trace.json", bytes);
    let mut group = c.benchmark_group("a PyTorch trace of 868 launches");
    group.throughput(criterion::Throughput::Bytes(bytes.len() as u64));
    group.bench_function("read all of it", |b| b.iter(|| warpscope::import::read_profile(&input, &Job::new(Wants::ALL, &|_| {})).unwrap()));
    group.bench_function("read the table", |b| {
        b.iter(|| warpscope::import::read_profile(&input, &Job::new(Wants::TABLE, &|_| {})).unwrap())
    });
    group.finish();
}

/// A trace of the built-in tracer, read in full.
fn trace(c: &mut Criterion) {
    let packed = std::fs::File::open("fixtures/trace/llm.wstrace.zst").unwrap();
    let bytes: &'static [u8] = Box::leak(zstd::stream::decode_all(packed).unwrap().into_boxed_slice());
    let input = Input::built_in("llm.wstrace", bytes);
    let mut group = c.benchmark_group("a trace of 2,023 launches");
    group.throughput(criterion::Throughput::Bytes(bytes.len() as u64));
    group.bench_function("read all of it", |b| b.iter(|| warpscope::import::read_profile(&input, &Job::new(Wants::ALL, &|_| {})).unwrap()));
    group.bench_function("read the table", |b| {
        b.iter(|| warpscope::import::read_profile(&input, &Job::new(Wants::TABLE, &|_| {})).unwrap())
    });
    group.finish();
}

criterion_group!(benches, speed, metrics, torch, trace);
criterion_main!(benches);
