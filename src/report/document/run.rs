//! Run section: time breakdown, timeline and findings.

use super::block::{Block, Picture, Table};
use super::svg::{Svg, WIDTH};
use crate::analysis::Family;
use crate::analysis::triage::{Finding, LineTime, RUNNING, TimeCategory, Triage};
use crate::model::{Nanos, Profile, units};
use crate::report::finding_text::FindingText;
use crate::report::timeline::describe::format_time;
use crate::report::triage::{finding_text, judged_line, remarks};
use std::collections::BTreeMap;

/// Maximum number of places listed per finding.
const PLACES: usize = 4;
/// Maximum number of timeline rows: queues first, then threads.
const QUEUES: usize = 8;
/// Width of the names to the left of the timeline.
const NAMES: f64 = 150.0;
/// Minimum width for an event to be drawn separately from its neighbors.
const NARROW: f64 = 0.8;

pub fn blocks(profile: &Profile, triage: &Triage) -> Vec<Block<'static>> {
    let mut out = Vec::new();
    out.push(Block::Text(format!("Judged: {}.", judged_line(triage))));
    out.push(Block::Heading(3, "Where the time went".to_owned()));
    out.push(Block::Picture(shares_picture(triage)));
    out.push(Block::Table(parts_table(triage)));
    if triage.strip.len() > 1 {
        out.push(Block::Picture(strip_picture(triage)));
    }
    out.extend(timeline_picture(profile, triage).map(Block::Picture));
    if !triage.findings.is_empty() {
        out.push(Block::Heading(3, "What limits it".to_owned()));
        out.extend(triage.findings.iter().map(|f| Block::Finding(finding_block(f, triage))));
    }
    let lines = triage.host_time.main_lines(LINES);
    if !lines.is_empty() {
        out.push(Block::Heading(3, "Lines of the program that the GPU waits for".to_owned()));
        out.push(Block::Table(lines_table(triage, &lines)));
    }
    let remarks = remarks(triage);
    if !remarks.is_empty() {
        out.push(Block::Heading(3, "How it was judged, and what was not recorded".to_owned()));
        out.push(Block::List(remarks));
    }
    out
}

/// Maximum number of program lines in the report.
const LINES: usize = 10;

fn lines_table(triage: &Triage, lines: &[LineTime]) -> Table {
    let all = triage.host_time.known().max(1) as f64;
    let launching = lines.iter().any(|l| l.launching.launches().is_some_and(|n| n > 0));
    let row = |l: &LineTime| {
        let share = units::format_percent(l.ns as f64 / all * 100.0);
        let mut row = vec![l.label(), Nanos(l.ns).to_string(), share, l.cause.part().short_label().to_owned()];
        if launching {
            let launches = l.launching.launches().map(units::format_grouped);
            row.extend([launches.unwrap_or_default(), l.launching.host_ns().map_or_else(String::new, |ns| Nanos(ns).to_string())]);
        }
        row
    };
    let mut head = vec![("function", false), ("GPU idle", true), ("share", true), ("while the host", false)];
    if launching {
        head.extend([("launches", true), ("host time", true)]);
    }
    Table { head, rows: lines.iter().map(row).collect() }
}

fn css_class(part: TimeCategory) -> String {
    format!("p-{}", part.short_label().replace([' ', '/'], "-"))
}

fn shares_picture(triage: &Triage) -> Picture {
    let height = 34.0;
    let mut svg = Svg::new(height * triage.devices.len().max(1) as f64);
    let mut words = Vec::new();
    for (row, device) in triage.devices.iter().enumerate() {
        let mut x = 0.0;
        let y = row as f64 * height;
        for (part, ns) in device.parts.iter().filter(|p| p.1 > 0) {
            let share = *ns as f64 / triage.length().max(1) as f64;
            let about = format!("{}: {} ({})", part.short_label(), Nanos(*ns), units::format_percent(share * 100.0));
            svg.add_rect((x, y + 2.0, share * WIDTH, height - 6.0), &css_class(*part), &about);
            if share > 0.09 {
                svg.add_text(
                    (x + 8.0, y + 20.0),
                    "start",
                    "on",
                    &format!("{} {}", part.short_label(), units::format_whole_percent(share * 100.0)),
                );
            }
            x += share * WIDTH;
            words.push(about);
        }
    }
    svg.into_picture(words.join("; "))
}

fn parts_table(triage: &Triage) -> Table {
    let devices = triage.devices.len().max(1) as f64;
    let mut rows = Vec::new();
    for part in TimeCategory::ALL {
        let ns: i64 = triage.devices.iter().map(|d| d.parts[part as usize].1).sum();
        if ns > 0 {
            let time = Nanos((ns as f64 / devices) as i64).to_string();
            rows.push(vec![part.short_label().to_owned(), time, units::format_percent(triage.part_percent(part))]);
        }
    }
    let each = if triage.devices.len() > 1 { "time (mean of the devices)" } else { "time" };
    Table { head: vec![("part", false), (each, true), ("share", true)], rows }
}

/// Utilization of the devices over the window, with causes of idle time.
fn strip_picture(triage: &Triage) -> Picture {
    let height = 64.0;
    let mut svg = Svg::new(height);
    let cell = WIDTH / triage.strip.len() as f64;
    let top = 44.0;
    for (at, slice) in triage.strip.iter().enumerate() {
        let x = at as f64 * cell;
        if let Some(part) = slice.idle {
            svg.add_rect((x, 0.0, cell, top), &format!("{} faint", css_class(part)), part.short_label());
        }
        let mut y = top;
        for (part, share) in RUNNING.into_iter().zip(slice.running).filter(|s| s.1 > 0.0) {
            let high = f64::from(share) * top;
            y -= high;
            svg.add_rect(
                (x, y, cell, high),
                &css_class(part),
                &format!("{} {}", part.short_label(), units::format_whole_percent(f64::from(share) * 100.0)),
            );
        }
    }
    let (begin, end) = triage.window;
    svg.add_text((0.0, 60.0), "start", "dim", &Nanos(begin).to_string());
    svg.add_text((WIDTH / 2.0, 60.0), "middle", "dim", "GPU busy over time; behind it why it idles");
    svg.add_text((WIDTH, 60.0), "end", "dim", &Nanos(end).to_string());
    let mean = triage.strip.iter().map(|s| f64::from(s.busy())).sum::<f64>() / triage.strip.len().max(1) as f64;
    svg.into_picture(format!("The GPU is busy for {} of {}", units::format_whole_percent(mean * 100.0), triage.base))
}

/// Time range of the timeline picture: around the first finding, or otherwise a step in the middle.
fn shown_window(triage: &Triage) -> (i64, i64) {
    let middle = triage.steps.get(triage.steps.len() / 2).map(|s| (s.start, s.end));
    let place = triage.findings.first().and_then(|f| f.places.iter().find(|p| p.end > p.start && p.end - p.start < triage.length() / 2));
    let step = |time: i64| triage.steps.iter().find(|s| (s.start..s.end).contains(&time)).map(|s| (s.start, s.end));
    match place {
        Some(p) => step(p.start).unwrap_or_else(|| {
            let more = (p.end - p.start).max(1);
            ((p.start - more).max(triage.window.0), (p.end + more).min(triage.window.1))
        }),
        None => middle.unwrap_or(triage.window),
    }
}

/// A row of the timeline: its name, and its events as start, end, class, name.
type Lane = (String, Vec<(i64, i64, &'static str, String)>);

/// Draws the events of the time range that [`shown_window`] returns.
fn timeline_picture(profile: &Profile, triage: &Triage) -> Option<Picture> {
    let (begin, end) = shown_window(triage);
    if end <= begin {
        return None;
    }
    let within = |start: i64, stop: i64| stop >= begin && start <= end;
    let mut lanes: BTreeMap<(bool, String), Lane> = BTreeMap::new();
    let queue = |place: Option<u32>| {
        let place = place.and_then(|p| profile.places.get(p as usize));
        let device = place.and_then(|p| profile.device_of(p)).map(|d| d.id).or(place.and_then(|p| p.ordinal));
        let stream = place.and_then(|p| p.stream);
        let words = [device.map(|d| format!("GPU {d}")), stream.map(|s| format!("stream {s}"))];
        let name = words.into_iter().flatten().collect::<Vec<_>>().join(" · ");
        if name.is_empty() { "GPU".to_owned() } else { name }
    };
    let mut put = |host: bool, name: String, item: (i64, i64, &'static str, String)| {
        lanes.entry((host, name.clone())).or_insert_with(|| (name, Vec::new())).1.push(item);
    };
    if profile.launches.has_start_times() {
        for row in 0..profile.launches.len() {
            let (start, stop) = (profile.launches.start(row), profile.launches.end(row));
            if within(start, stop) {
                let Some(kernel) = profile.kernels.get(profile.launches.kernel(row).0 as usize) else { continue };
                let family = Family::guess(kernel.function(), kernel.demangled());
                let class = if family == Family::Nccl { "p-collectives" } else { "p-kernels" };
                let item = (start, stop, class, kernel.function().to_owned());
                put(false, queue(profile.launches.place(row).map(|p| p.0)), item);
            }
        }
    }
    for op in profile.memops.iter() {
        let (start, stop) = (op.start.0, op.start.0.saturating_add(op.duration.0));
        if within(start, stop) {
            put(false, queue(Some(op.place.0)), (start, stop, "p-copies", "memcpy or memset".to_owned()));
        }
    }
    for graph in &profile.graphs {
        let (start, stop) = (graph.start.0, graph.start.0.saturating_add(graph.duration.0));
        if within(start, stop) {
            put(false, queue(Some(graph.place)), (start, stop, "p-kernels", "CUDA graph".to_owned()));
        }
    }
    for row in 0..profile.calls.len() {
        let (start, long) = (profile.calls.start[row], profile.calls.duration[row]);
        if within(start, start.saturating_add(long)) {
            let name = profile.calls.call_name(row).map_or("", |n| &*n.name);
            let thread = format!("thread {}", profile.calls.thread_of(row).1);
            put(true, thread, (start, start.saturating_add(long), "call", name.to_owned()));
        }
    }
    for row in 0..profile.launches.len() {
        let Some((start, long)) = profile.launches.call(row) else { continue };
        let place = profile.launches.place(row).and_then(|p| profile.places.get(p.0 as usize));
        if let Some(thread) = place.and_then(|p| p.thread).filter(|_| within(start, start.saturating_add(long))) {
            put(true, format!("thread {thread}"), (start, start.saturating_add(long), "call", "launch".to_owned()));
        }
    }
    let mut all: Vec<((bool, String), Lane)> = lanes.into_iter().collect();
    all.sort_by_key(|((host, _), lane)| (*host, std::cmp::Reverse(lane.1.len())));
    all.truncate(QUEUES);
    if all.is_empty() {
        return None;
    }
    let (row, scale) = (24.0, (WIDTH - NAMES) / (end - begin) as f64);
    let height = all.len() as f64 * row + 22.0;
    let mut svg = Svg::new(height);
    let x = |time: i64| NAMES + (time.clamp(begin, end) - begin) as f64 * scale;
    for (at, (_, (name, mut items))) in all.into_iter().enumerate() {
        let y = at as f64 * row;
        svg.add_text((0.0, y + 16.0), "start", "dim", &crate::analysis::labels::cut_end(&name, 22));
        svg.add_rect((NAMES, y + 2.0, WIDTH - NAMES, row - 4.0), "lane", "");
        items.sort_by_key(|i| i.0);
        let mut drawn: Option<(f64, f64, &'static str, String, usize)> = None;
        for (start, stop, class, name) in items {
            let (from, to) = (x(start), x(stop));
            match &mut drawn {
                // Merge events that are too narrow to be told apart.
                Some((_, last, same, _, count)) if *same == class && from - *last < NARROW && to - from < NARROW * 4.0 => {
                    *last = last.max(to);
                    *count += 1;
                }
                other => {
                    if let Some(done) = other.replace((from, to, class, name, 1)) {
                        draw_event(&mut svg, done, y + 4.0, row - 8.0);
                    }
                }
            }
        }
        if let Some(done) = drawn {
            draw_event(&mut svg, done, y + 4.0, row - 8.0);
        }
    }
    let base = height - 6.0;
    let at = |ns: i64| format_time(ns, (end - begin) / 100);
    svg.add_text((NAMES, base), "start", "dim", &at(begin));
    svg.add_text((f64::midpoint(NAMES, WIDTH), base), "middle", "dim", &format!("a window of {}", Nanos(end - begin)));
    svg.add_text((WIDTH, base), "end", "dim", &at(end));
    Some(svg.into_picture(format!("What ran from {} to {}", at(begin), at(end))))
}

fn draw_event(svg: &mut Svg, (from, to, class, name, count): (f64, f64, &'static str, String, usize), y: f64, height: f64) {
    let about = if count > 1 { format!("{name} and {} more", count - 1) } else { name };
    svg.add_rect((from, y, (to - from).max(0.6), height), class, &about);
}

/// Omits the command: the commands of all findings are at the end of the report.
fn finding_block(f: &Finding, triage: &Triage) -> FindingText {
    let mut text = finding_text(f, triage.base, triage.origin());
    text.places.truncate(PLACES);
    text.confirm = Default::default();
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_category_has_a_color() {
        let style = include_str!("style.css");
        for part in TimeCategory::ALL {
            assert!(style.contains(&format!(".{}{{fill:", css_class(part))), "{part:?}");
        }
    }
}
