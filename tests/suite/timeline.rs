//! Timeline windows against a brute-force scan of every event, and command output against SQL.

use super::support::{packed, read, root, run, unpacked};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rusqlite::Connection;
use std::path::PathBuf;
use std::sync::OnceLock;
use warpscope::analysis::timeline::{
    Category, Content, Event, Events, GroupKey, Lane, Matches, Pattern, RowKind, Timeline, TimelinePart, Track, Window, build_part,
    compute_cells, link, sum_calls, visible_blocks,
};
use warpscope::model::{Cancel, CopyKind, MemOpKind, Profile};
use warpscope::report::timeline::paint;

fn built(profile: &Profile) -> Timeline {
    let mut timeline = Timeline::default();
    for part in TimelinePart::ALL {
        timeline.add_part(build_part(profile, part, &Cancel::default()).unwrap());
    }
    timeline
}

fn torch(name: &str) -> PathBuf {
    root().join("fixtures/triage").join(format!("{name}.pt.trace.json.gz"))
}

/// All kinds of runs: streams, threads, processes, graphs, collectives, operators.
fn runs() -> &'static Vec<(String, Profile, Timeline)> {
    static RUNS: OnceLock<Vec<(String, Profile, Timeline)>> = OnceLock::new();
    RUNS.get_or_init(|| {
        let nsys = ["llm", "zoo", "threads", "procs", "graph_node", "graph_whole", "ddp_rank0", "whole_metrics"]
            .map(|n| (n.to_owned(), packed(n)));
        let traces = ["graph_tiny", "flops"].map(|n| (format!("{n} (torch)"), torch(n)));
        let all = nsys.into_iter().chain(traces);
        all.map(|(name, file)| {
            let profile = read(&file).unwrap_or_else(|e| panic!("{name}: {e}"));
            let timeline = built(&profile);
            (name, profile, timeline)
        })
        .collect()
    })
}

fn lanes(timeline: &Timeline) -> Vec<(RowKind, &Lane)> {
    timeline.groups.iter().flat_map(|g| &g.rows).flat_map(|r| r.lanes().iter().map(move |l| (r.key.kind, l))).collect()
}

fn events(lane: &Lane) -> impl Iterator<Item = Event> + '_ {
    (0..lane.len()).filter_map(|at| lane.get(at)).map(|id| id.to_event())
}

#[test]
fn every_event_is_in_one_lane_and_none_is_lost() {
    for (name, profile, timeline) in runs() {
        let of = timeline.event_reader(profile);
        let count = |wanted: &[RowKind]| lanes(timeline).iter().filter(|(k, _)| wanted.contains(k)).map(|(_, l)| l.len()).sum::<usize>();
        let host = |m: &warpscope::model::MemOp| matches!(m.kind, MemOpKind::Copy { kind: CopyKind::HostToHost, .. });
        let on_devices = profile.launches.len() + profile.memops.iter().filter(|m| !host(m)).count() + profile.graphs.len();
        assert_eq!(count(&[RowKind::Queue]), on_devices, "{name}");
        assert_eq!(count(&[RowKind::Ranges, RowKind::Operators, RowKind::Python]), profile.ranges.len(), "{name}");
        assert_eq!(count(&[RowKind::Os]), profile.os_calls.start.len(), "{name}");
        // Launches of a graph's nodes share a call.
        let mut calls: Vec<_> = (0..profile.launches.len())
            .filter_map(|l| {
                let place = &profile.places[profile.launches.place(l)?.0 as usize];
                Some((place.pid, place.thread?, profile.launches.call(l)?.0))
            })
            .collect();
        calls.sort_unstable();
        calls.dedup();
        assert_eq!(count(&[RowKind::Api]), calls.len() + profile.calls.len(), "{name}");
        assert!(timeline.groups.iter().flat_map(|g| &g.rows).all(|r| r.left_out == 0), "{name}");
        for (_, lane) in lanes(timeline) {
            let spans: Vec<(i64, i64)> = events(lane).map(|e| of.span(e)).collect();
            assert!(spans.windows(2).all(|w| w[0].1 <= w[1].0), "{name}: events of a lane overlap");
        }
        println!("{name}: {} lanes, {} events, {} B", lanes(timeline).len(), count(&RowKind::ALL), timeline.bytes());
    }
}

/// Busy time by category between two times, event by event.
fn brute(lane: &Lane, of: &Events<'_>, start: i64, end: i64) -> ([i64; 17], usize) {
    let mut busy = [0; 17];
    let mut count = 0;
    for event in events(lane) {
        let (from, to) = of.span(event);
        busy[of.category(event) as usize] += (to.min(end) - from.max(start)).max(0);
        count += usize::from((start..end).contains(&from));
    }
    (busy, count)
}

/// Returns a window of any length, at any place in a run.
fn somewhere(timeline: &Timeline, place: f64, length: f64, columns: usize) -> Window {
    let (from, to) = timeline.span;
    let whole = (to - from) as f64;
    let long = (whole * 10_f64.powf(-6.0 * length)).max(1.0);
    let start = from + ((whole - long).max(0.0) * place) as i64;
    Window::new(start, start + long as i64, columns)
}

#[test]
fn columns_say_what_every_event_says() {
    let mut runner = TestRunner::new(Config::with_cases(200));
    let windows = (0..runs().len(), 0.0..1.0_f64, 0.0..1.0_f64, 1..200_usize, 0..1_000_usize);
    let test = |(at, place, length, columns, lane): (usize, f64, f64, usize, usize)| {
        let (name, profile, timeline) = &runs()[at];
        let of = timeline.event_reader(profile);
        let all = lanes(timeline);
        let lane = all[lane % all.len()].1;
        let window = somewhere(timeline, place, length, columns);
        let found = compute_cells(lane, &of, window);
        // The first, a middle and the last column, and then the whole window.
        for column in [0, columns / 2, columns - 1] {
            let (start, end) = (window.column_start(column), window.column_start(column + 1));
            let (busy, count) = brute(lane, &of, start, end);
            let share = busy.iter().sum::<i64>() as f64 / (end - start) as f64;
            prop_assert!((found[column].share - share).abs() < 1e-9, "{name} {window:?} {column}: {} {share}", found[column].share);
            prop_assert_eq!(found[column].events, count);
            if let Some(top) = found[column].top {
                prop_assert_eq!(busy[top as usize], *busy.iter().max().unwrap());
            }
        }
        let (_, count) = brute(lane, &of, window.start, window.end);
        prop_assert_eq!(found.iter().map(|c| c.events).sum::<usize>(), count, "an event is lost");
        // A column with events is never blank.
        let glyphs = paint::lane_glyphs(lane, &of, window);
        for (cell, glyph) in found.iter().zip(&glyphs) {
            prop_assert!(cell.events == 0 || glyph.fill != paint::Fill::Blank);
            prop_assert!(cell.share == 0.0 || glyph.fill != paint::Fill::Blank);
        }
        Ok(())
    };
    runner.run(&windows, test).unwrap();
}

#[test]
fn two_zooms_of_a_window_agree() {
    let mut runner = TestRunner::new(Config::with_cases(200));
    let windows = (0..runs().len(), 0.0..1.0_f64, 0.0..1.0_f64, 1..100_usize, 2..6_usize, 0..1_000_usize);
    let test = |(at, place, length, columns, factor, lane): (usize, f64, f64, usize, usize, usize)| {
        let (_, profile, timeline) = &runs()[at];
        let of = timeline.event_reader(profile);
        let all = lanes(timeline);
        let lane = all[lane % all.len()].1;
        let near = somewhere(timeline, place, length, columns * factor);
        let far = Window { columns, ..near };
        let (fine, coarse) = (compute_cells(lane, &of, near), compute_cells(lane, &of, far));
        for (column, cell) in coarse.iter().enumerate() {
            let parts = &fine[column * factor..(column + 1) * factor];
            prop_assert_eq!(cell.events, parts.iter().map(|p| p.events).sum::<usize>());
            let width = |c: usize| (near.column_start(c + 1) - near.column_start(c)) as f64;
            let busy: f64 = parts.iter().zip(column * factor..).map(|(p, c)| p.share * width(c)).sum();
            let all: f64 = (column * factor..(column + 1) * factor).map(width).sum();
            prop_assert!((cell.share - busy / all).abs() < 1e-6);
        }
        // A block visible when zoomed out is also visible when zoomed in, at the same place.
        let (near_blocks, far_blocks) = (visible_blocks(lane, &of, near), visible_blocks(lane, &of, far));
        // Leave out blocks of a single column, whose midpoint says nothing about the finer columns inside it.
        for block in far_blocks.into_iter().filter(|b| b.to - b.from > 1) {
            let same = near_blocks.iter().find(|b| b.at == block.at);
            prop_assert!(
                same.is_some_and(|b| b.from / factor <= block.from + 1 && block.to <= b.to.div_ceil(factor) + 1),
                "{block:?} {same:?}"
            );
        }
        Ok(())
    };
    runner.run(&windows, test).unwrap();
}

/// Time in which anything runs on a device, recomputed event by event: each nanosecond counts once, for the first of
/// the categories that are running.
#[test]
fn a_device_is_the_union_of_its_streams() {
    let mut seen = 0;
    for (name, profile, timeline) in runs() {
        let of = timeline.event_reader(profile);
        for group in &timeline.groups {
            let Some(union) = &group.union else { continue };
            seen += 1;
            let mut all: Vec<(i64, i64, Category)> = group
                .rows
                .iter()
                .filter(|r| r.key.kind == RowKind::Queue)
                .flat_map(|r| r.lanes())
                .flat_map(events)
                .map(|e| (of.span(e).0, of.span(e).1, of.category(e)))
                .collect();
            all.sort_unstable();
            // Nothing changes between two neighbouring edges.
            let mut edges: Vec<i64> = all.iter().flat_map(|e| [e.0, e.1]).collect();
            edges.sort_unstable();
            edges.dedup();
            let mut busy = [0_i64; 17];
            let mut next = 0;
            let mut running: Vec<(i64, Category)> = Vec::new();
            for pair in edges.windows(2) {
                while next < all.len() && all[next].0 <= pair[0] {
                    running.push((all[next].1, all[next].2));
                    next += 1;
                }
                running.retain(|r| r.0 > pair[0]);
                let before = union.before(&of, pair[0]).busy;
                assert_eq!(before, busy, "{name} at {}", pair[0]);
                if let Some(first) = running.iter().map(|r| r.1).min() {
                    busy[first as usize] += pair[1] - pair[0];
                }
            }
        }
    }
    assert!(seen >= 3, "{seen}");
}

/// The pieces of idle time, each of which has a cause, cover exactly the time between the first and the last operation
/// in which no process runs anything on a device, and the rest of the steps around them.
#[test]
fn idle_times_are_what_the_streams_leave() {
    let mut around = 0;
    for (name, profile, timeline) in runs() {
        let of = timeline.event_reader(profile);
        let mut pieces = warpscope::analysis::triage::find_idle_times(profile, &Cancel::default()).unwrap();
        pieces.sort_by_key(|p| (p.device, p.start));
        assert!(pieces.windows(2).all(|w| w[0].device != w[1].device || w[0].end <= w[1].start), "{name}: idle twice");
        let all = timeline.groups.iter().filter(|g| matches!(g.key, GroupKey::Device(_))).flat_map(|g| &g.rows).flat_map(|r| r.lanes());
        let spans: Vec<(i64, i64)> = all.flat_map(events).map(|e| of.span(e)).collect();
        let Some((first, last)) = spans.iter().map(|s| s.0).min().zip(spans.iter().map(|s| s.1).max()) else { continue };
        for group in &timeline.groups {
            let GroupKey::Device(device) = group.key else { continue };
            let busy = |t: i64| group.busy_before(&of, t).busy.iter().sum::<i64>();
            let own = || pieces.iter().filter(|p| p.device == device);
            let idle: i64 = own().map(|p| (p.end.min(last) - p.start.max(first)).max(0)).sum();
            // Steps may begin before the first operation and end after the last one.
            let (begin, end) = (own().map(|p| p.start).min().unwrap_or(first), own().map(|p| p.end).max().unwrap_or(last));
            let outside: i64 = own().map(|p| (p.end.min(first) - p.start).max(0) + (p.end - p.start.max(last)).max(0)).sum();
            assert_eq!(outside, (first - begin).max(0) + (end - last).max(0), "{name}, device {device}: holes around the run");
            around += outside;
            assert_eq!(idle, (last - first) - (busy(last) - busy(first)), "{name}, device {device}");
            for piece in pieces.iter().filter(|p| p.device == device) {
                assert_eq!(busy(piece.start), busy(piece.end), "{name}: something runs in {piece:?}");
            }
        }
    }
    assert!(around > 0, "a step of ddp_rank0 begins before its first operation");
}

/// A window is judged by its gaps, including those it cuts: shading and verdict agree.
#[test]
fn a_window_is_judged_as_it_is_shaded() {
    use warpscope::analysis::timeline::Gaps;
    use warpscope::analysis::triage::{Scope, TimeCategory, triage_profile};
    let mut windows = 0;
    for (name, profile, timeline) in runs() {
        let gaps = Gaps::new(warpscope::analysis::triage::find_idle_times(profile, &Cancel::default()).unwrap());
        let queues = lanes(timeline).into_iter().filter(|l| l.0 == RowKind::Queue).flat_map(|l| events(l.1));
        let of = timeline.event_reader(profile);
        let (from, to) = queues.map(|e| of.span(e)).fold((i64::MAX, i64::MIN), |(a, b), (c, d)| (a.min(c), b.max(d)));
        for (a, b) in [(0.2, 0.5), (0.55, 0.56), (0.4, 0.9), (0.05, 0.95)] {
            let at = |share: f64| from + ((to - from) as f64 * share) as i64;
            let scope = Scope { windows: vec![(at(a), at(b))], ..Scope::default() };
            let Some(found) = triage_profile(profile, &scope, &Cancel::default()) else { continue };
            // Processes that share a device are judged separately, and one without work in the window is skipped.
            if found.devices.len() != 1 || profile.processes.len() > 1 || found.devices[0].busy == 0 {
                continue;
            }
            let device = found.devices[0].number.unwrap_or_default();
            let shaded = gaps.sum_by_part(device, found.window.0, found.window.1);
            for part in TimeCategory::ALL.into_iter().filter(|p| p.is_idle()) {
                let judged = found.devices[0].parts[part as usize].1;
                let shown = shaded.iter().find(|s| s.0 == part).map_or(0, |s| s.1);
                assert_eq!(judged, shown, "{name} {a} to {b}: {part:?}");
            }
            windows += 1;
        }
    }
    assert!(windows >= 12, "{windows}");
}

#[test]
fn what_is_not_freed_is_in_use_until_the_end() {
    let profile = &read(&root().join("fixtures/torch/whole.pt.trace.json.gz")).unwrap();
    let timeline = &built(profile);
    let row = timeline.groups.iter().flat_map(|g| &g.rows).find(|r| r.key.kind == RowKind::Memory).unwrap();
    let Content::Plot(plot) = &row.content else { panic!() };
    // Total that the framework reports after the last event.
    let last = profile.memory.totals.last().unwrap();
    let used = if row.key.number == 1 { last.1 } else { last.2 };
    assert!(used > 0);
    assert_eq!(plot.value_at(profile, timeline.span.1 - 1), Some(used as f64));
}

#[test]
fn names_are_found_where_they_are() {
    for (name, profile, timeline) in runs() {
        let of = timeline.event_reader(profile);
        for text in ["elementwise", "memcpy", "launch", "e"] {
            let matches = Matches::find_all(timeline, &of, text, &Cancel::default()).unwrap();
            let pattern = Pattern::new(profile, text);
            let mut total = 0;
            for row in timeline.groups.iter().flat_map(|g| &g.rows) {
                for (number, lane) in row.lanes().iter().enumerate() {
                    let wanted: Vec<usize> =
                        events(lane).enumerate().filter(|(_, e)| pattern.matches_event(&of, *e)).map(|(at, _)| at).collect();
                    total += wanted.len();
                    assert_eq!(matches.count_between(row.key, number, 0, lane.len()), wanted.len());
                    for probe in [0, lane.len() / 3, lane.len()] {
                        let next = wanted.iter().copied().find(|&w| w >= probe);
                        assert_eq!(matches.next(row.key, number, probe, true), next, "{name} {text}");
                        assert_eq!(matches.next(row.key, number, probe, false), wanted.iter().copied().rfind(|&w| w < probe));
                    }
                }
            }
            assert_eq!(matches.total, total, "{name} {text}");
        }
    }
}

#[test]
fn what_belongs_together_is_found_from_both_sides() {
    for (name, profile, timeline) in runs() {
        let of = timeline.event_reader(profile);
        let (mut pairs, mut inside) = (0, 0);
        for (kind, lane) in lanes(timeline) {
            for event in events(lane).take(300) {
                let spot = timeline.find_event(&of, event.into()).unwrap_or_else(|| panic!("{name}: {event:?} is nowhere"));
                assert!(timeline.event_at(spot).is_some_and(|id| id.to_event() == event || of.same_call(id.to_event(), event)));
                if kind != RowKind::Queue {
                    continue;
                }
                let Some(call) = link::originating_call(profile, event) else { continue };
                pairs += 1;
                assert!(timeline.find_event(&of, call.into()).is_some(), "{name}: the call of {event:?}");
                assert!(of.span(call).0 <= of.span(event).0);
                let back = link::started_operation(profile, call).unwrap();
                // The first node of a graph represents them all.
                assert!(back == event || link::originating_call(profile, back).is_some_and(|c| of.span(c) == of.span(call)), "{name}");
                let path = link::open_ranges(timeline, &of, link::event_thread(profile, call).unwrap(), of.span(call).0);
                inside += path.len();
                assert!(path.iter().all(|id| of.span(id.to_event()).0 <= of.span(call).0 && of.span(call).0 <= of.span(id.to_event()).1));
            }
        }
        println!("{name}: {pairs} pairs, {inside} ranges around them");
        assert!(pairs > 0 || profile.launches.is_empty() || name.contains("graph_whole"), "{name}");
    }
}

/// Sums of host calls in windows against the profile's tables, row by row.
#[test]
fn calls_in_a_window_are_those_of_the_tables() {
    let (mut sums, mut cut) = (0, 0);
    for (name, profile, timeline) in runs() {
        let of = timeline.event_reader(profile);
        for thread in timeline.groups.iter().filter_map(|g| if let GroupKey::Thread(pid, tid) = g.key { Some((pid, tid)) } else { None }) {
            for n in 0..40 {
                let window = somewhere(timeline, f64::from(n) / 40.0, 0.1 + f64::from(n % 4) * 0.15, 1);
                let (start, end) = (window.start, window.end);
                let Some(calls) = sum_calls(timeline, &of, thread, (start, end)) else {
                    cut += 1;
                    continue;
                };
                let clip =
                    |from: i64, took: i64| (from < end && from + took > start).then(|| ((from + took).min(end) - from.max(start), 1));
                let add = |a: (i64, usize), b: (i64, usize)| (a.0 + b.0, a.1 + b.1);
                let host = (0..profile.calls.len())
                    .filter(|&c| profile.calls.thread_of(c) == thread)
                    .filter_map(|c| clip(profile.calls.start[c], profile.calls.duration[c]));
                let os = (0..profile.os_calls.start.len())
                    .filter(|&c| {
                        let t = &profile.threads[profile.os_calls.thread[c] as usize];
                        (t.pid, t.tid) == thread
                    })
                    .filter_map(|c| clip(profile.os_calls.start[c], profile.os_calls.duration[c]));
                // The nodes of a graph share a call.
                let launched: std::collections::BTreeSet<(i64, i64)> = (0..profile.launches.len())
                    .filter(|&l| {
                        let place = &profile.places[profile.launches.place(l).unwrap().0 as usize];
                        place.thread.map(|t| (place.pid.unwrap_or_default(), t)) == Some(thread)
                    })
                    .filter_map(|l| profile.launches.call(l))
                    .collect();
                let launches = launched.into_iter().filter_map(|(from, took)| clip(from, took));
                let expected = host.chain(os).chain(launches).fold((0, 0), add);
                let found = calls.iter().map(|c| (c.ns, c.count)).fold((0, 0), add);
                assert_eq!(found, expected, "{name}: {thread:?} {start} to {end}: {calls:?}");
                assert!(calls.windows(2).all(|w| w[0].ns >= w[1].ns), "{name}");
                sums += calls.len();
            }
        }
    }
    assert!(sums > 500, "{sums} sums, {cut} windows with too many calls");
}

#[test]
fn counters_are_rows_of_their_device() {
    let (_, profile, timeline) = runs().iter().find(|r| r.0 == "whole_metrics").unwrap();
    let plots: Vec<_> = timeline.groups.iter().flat_map(|g| &g.rows).filter(|r| r.key.kind == RowKind::Counter).collect();
    assert!(!plots.is_empty());
    for row in plots {
        let Content::Plot(plot) = &row.content else { panic!() };
        let track = profile.counters.iter().find(|c| *c.name == row.name).unwrap();
        // The mean over the whole window is the time-weighted mean of the samples.
        let integral: f64 = track.times.windows(2).zip(&track.values).map(|(t, v)| v * (t[1] - t[0]) as f64).sum();
        let last = track.times[track.times.len() - 1];
        let window = Window { start: track.times[0], end: last, columns: 1 };
        let level = plot.column_levels(profile, window)[0].unwrap();
        assert!((level.mean - integral / (last - track.times[0]) as f64).abs() < 1e-6 * plot.most, "{}", row.name);
    }
}

#[test]
fn events_are_those_of_the_export_in_order() {
    let path = unpacked("zoo");
    let file = path.to_str().unwrap();
    let (code, out, _) = run(&["events", file, "--format", "csv"]);
    assert_eq!(code, 0);
    let starts: Vec<i64> = out.lines().skip(1).map(|l| l.split(',').next().unwrap().parse().unwrap()).collect();
    assert!(starts.is_sorted());
    let sql = |text: &str| Connection::open(&path).unwrap().query_row(text, [], |r| r.get::<_, i64>(0)).unwrap();
    let kernels = out.lines().filter(|l| l.contains(",kernel,")).count();
    assert_eq!(i64::try_from(kernels).unwrap(), sql("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL"));
    let copies = out.lines().filter(|l| l.contains(",memcpy,")).count();
    assert_eq!(i64::try_from(copies).unwrap(), sql("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_MEMCPY"));
    // A window: events that begin in it, and events running at its start.
    let (from, to) =
        (sql("SELECT min(start) + 1000000 FROM CUPTI_ACTIVITY_KIND_KERNEL"), sql("SELECT max(end) FROM CUPTI_ACTIVITY_KIND_KERNEL"));
    let (code, out, err) =
        run(&["events", file, "--rows", "streams", "--from", &format!("{from}ns"), "--to", &format!("{to}ns"), "--format", "csv"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let kernels = out.lines().filter(|l| l.contains(",kernel,")).count();
    let want = sql(&format!("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE start < {to} AND end > {from}"));
    assert_eq!(i64::try_from(kernels).unwrap(), want);
}

#[test]
fn events_have_the_throughputs_of_joined_results() {
    let demo = root().join("fixtures/demo");
    let (nsys, ncu) = (demo.join("llm.sqlite.zst"), demo.join("llm_decode.ncu-rep.zst"));
    let (code, out, err) = run(&["events", nsys.to_str().unwrap(), ncu.to_str().unwrap(), "--rows", "streams", "--format", "json"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    let with: Vec<_> = json["events"].as_array().unwrap().iter().filter(|e| e["sm_percent"].is_number()).collect();
    assert!(with.len() >= 10, "{}", with.len());
    assert!(with.iter().all(|e| e["launch"].is_number() && e["memory_percent"].as_f64().is_some_and(|p| (0.0..=100.0).contains(&p))));
}

#[test]
fn a_window_narrows_top_launches_and_triage() {
    let path = unpacked("llm");
    let file = path.to_str().unwrap();
    let db = Connection::open(&path).unwrap();
    let (from, to): (i64, i64) = db
        .query_row("SELECT min(start) + (max(end) - min(start)) * 6 / 10, min(start) + (max(end) - min(start)) * 8 / 10 FROM CUPTI_ACTIVITY_KIND_KERNEL", [], |r| {
            Ok((r.get(0)?, r.get(1)?))
        })
        .unwrap();
    let (count, sum): (i64, i64) = db
        .query_row(
            &format!("SELECT count(*), sum(end - start) FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE start >= {from} AND start < {to}"),
            [],
            |r| Ok((r.get(0)?, r.get(1)?)),
        )
        .unwrap();
    let window = ["--from".to_owned(), format!("{from}ns"), "--to".to_owned(), format!("{to}ns"), "--format".to_owned(), "json".to_owned()];
    let json = |command: &str| {
        let args: Vec<&str> = [command, file].into_iter().chain(window.iter().map(String::as_str)).collect();
        let (code, out, err) = run(&args);
        assert_eq!(code, 0, "{err}");
        serde_json::from_str::<serde_json::Value>(&out).unwrap()
    };
    let top = json("top");
    let rows = top["rows"].as_array().unwrap();
    assert_eq!(rows.iter().map(|r| r["count"].as_i64().unwrap()).sum::<i64>(), count, "{top}");
    assert_eq!(rows.iter().map(|r| r["total_ns"].as_i64().unwrap()).sum::<i64>(), sum);
    let launches = json("launches");
    let starts: Vec<i64> = launches["rows"].as_array().unwrap().iter().map(|r| r["start_ns"].as_i64().unwrap()).collect();
    assert_eq!(i64::try_from(starts.len()).unwrap(), count);
    assert!(starts.iter().all(|s| (from..to).contains(s)));
    let triage = json("triage");
    assert_eq!(triage["window"]["start_ns"].as_i64(), Some(from), "{}", triage["window"]);
    let (code, _, err) = run(&["top", file, "--from", "2s", "--to", "1s"]);
    assert_eq!((code, err.as_str()), (2, "warpscope: --from must lie before --to\n"));
    for command in ["top", "launches"] {
        let (code, out, err) = run(&[command, file, "--from", "1000s", "--to", "1001s"]);
        assert!(code == 2 && out.is_empty() && err.contains("no kernel was launched between these times"), "{command}: {out}{err}");
    }
}

#[test]
fn a_window_prints_as_text_and_says_what_is_wrong() {
    let path = packed("threads");
    let file = path.to_str().unwrap();
    let (code, out, err) = run(&["timeline", file, "--width", "60"]);
    assert_eq!((code, err.as_str()), (0, ""));
    insta::assert_snapshot!("timeline_text", out);
    let (code, _, err) = run(&["timeline", file, "--from", "1000s"]);
    assert_eq!(code, 2);
    assert!(err.contains("nothing is recorded then; it covers"), "{err}");
    let (code, out, _) = run(&["timeline", file, "--width", "60", "--rows", "streams"]);
    assert!(code == 0 && !out.contains("CUDA calls") && out.contains("stream"), "{out}");
    let (code, out, _) = run(&["timeline", file, "--width", "60", "--ascii"]);
    assert!(code == 0 && out.is_ascii(), "{out}");
    let (code, _, err) = run(&["timeline", file, "--rows", "python"]);
    assert!(code == 2 && err.contains("no rows of this kind"), "{err}");
    let ncu = root().join("fixtures/demo/zoo.ncu-rep.zst");
    let (code, _, err) = run(&["timeline", ncu.to_str().unwrap()]);
    assert!(code == 2 && err.contains("no timeline"), "{err}");
}

/// Streams with every kind of overlap, against a bitmap.
#[test]
fn streams_of_any_shape_are_what_a_bitmap_says() {
    use warpscope::model::{Kernel, LaunchColumns, LaunchSite, Launches, Source, launches::TimesBuilder};
    let mut runner = TestRunner::new(Config::with_cases(300));
    let launches = prop::collection::vec((0..200_i64, 0..40_i64, 0..3_u32, 0..2_u32), 0..200);
    let test = |raw: Vec<(i64, i64, u32, u32)>| {
        let mut profile = Profile::new(Source::default());
        profile.kernels =
            ["saxpy", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"].map(|n| Kernel { function: Some(n.into()), ..Kernel::default() }).to_vec();
        profile.places = (0..3).map(|stream| LaunchSite { ordinal: Some(0), stream: Some(stream), ..LaunchSite::default() }).collect();
        let mut duration = TimesBuilder::default();
        raw.iter().for_each(|r| duration.push(Some(r.1)));
        let columns = LaunchColumns { start: raw.iter().map(|r| r.0).collect(), duration, kernel: raw.iter().map(|r| r.3).collect() };
        profile.launches = Launches::new(columns);
        profile.launches.set_places(raw.iter().map(|r| r.2).collect());
        let timeline = built(&profile);
        let of = timeline.event_reader(&profile);
        prop_assert_eq!(lanes(&timeline).iter().map(|(_, l)| l.len()).sum::<usize>(), raw.len());
        let Some(group) = timeline.groups.first() else { return Ok(()) };
        let runs = |t: i64, kernel: u32| raw.iter().any(|r| r.3 == kernel && r.0 <= t && t < r.0 + r.1);
        let (mut kernels, mut collectives) = (0, 0);
        for t in 0..260 {
            let before = group.busy_before(&of, t);
            prop_assert_eq!(
                (before.busy[Category::Kernel as usize], before.busy[Category::Collective as usize]),
                (kernels, collectives),
                "{}",
                t
            );
            prop_assert_eq!(before.events, raw.iter().filter(|r| r.0 < t).count());
            let (k, c) = (runs(t, 0), runs(t, 1));
            kernels += i64::from(k);
            collectives += i64::from(c && !k);
        }
        Ok(())
    };
    runner.run(&launches, test).unwrap();
}
