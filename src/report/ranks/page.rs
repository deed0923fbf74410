//! A job as a document, and as rows.

use super::json::Together;
use crate::analysis::ranks::{Job, Link, Member};
use crate::analysis::table::{Column, Outputs, Unit, Value};
use crate::analysis::triage::Finding;
use crate::model::digest::Digest;
use crate::model::{Bytes, Nanos, units};
use crate::report::document::{Block, Document, Rows, Table};
use crate::report::finding_text::FindingText;
use crate::report::{Format, table, triage};
use std::io::{self, Write};

/// Maximum number of ranks on a page; a page on a larger job lists only the ranks that the others wait for the longest.
const LISTED: usize = 64;
/// Maximum number of rank pairs on a page.
const PAIRS: usize = 8;
/// Width of a bar, in columns.
const BAR: usize = 24;

fn format_ns(n: i64) -> String {
    Nanos(n).to_string()
}

fn share(part: i64, of: i64) -> f64 {
    if of > 0 { part as f64 / of as f64 } else { 0.0 }
}

/// Summary of the number of ranks, their hosts, and the precision of their clocks.
fn summary_line(of: &Together<'_>) -> String {
    let job = of.job;
    let mut hosts: Vec<&str> = of.digests.iter().filter_map(|d| d.host.as_deref()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let mut text = job.size_text();
    if !hosts.is_empty() {
        text = format!("{text} on {}", units::format_count(hosts.len(), "host"));
    }
    let matched = job.matched_count();
    if matched > 0 {
        text = format!("{text} · {} matched", units::format_count(matched, "collective"));
        let clocks = job.ranks.iter().filter(|m| m.clock.by > 0).map(|m| m.clock.uncertainty).max();
        if let Some(worst) = clocks {
            text = format!("{text} · clocks aligned by them to within {}", format_ns(worst));
        }
    }
    text
}

/// Bar of computation (█) and exposed communication (▒); the rest is copies and idle time.
fn time_bar(m: &Member) -> String {
    let cells = |part: i64| (share(part, m.judged) * BAR as f64).round() as usize;
    let (compute, exposed) = (cells(m.compute), cells(m.exposed));
    let mut text = "█".repeat(compute.min(BAR));
    text.push_str(&"▒".repeat(exposed.min(BAR - compute.min(BAR))));
    let left = BAR.saturating_sub(text.chars().count());
    text.push_str(&"·".repeat(left));
    text
}

/// Ranks to list, by number, and the number of ranks omitted. A large job lists only the ranks that the others wait for
/// the longest.
fn listed_ranks(job: &Job) -> (Vec<&Member>, usize) {
    let mut list: Vec<&Member> = job.ranks.iter().collect();
    if list.len() > LISTED {
        list.sort_by_key(|m| std::cmp::Reverse(m.late));
        list.truncate(LISTED);
        list.sort_by_key(|m| m.rank);
    }
    let rest = job.ranks.len() - list.len();
    (list, rest)
}

/// Sentence that names the base of the table's times: the judged time, which may differ between ranks.
fn base_line(job: &Job) -> Option<String> {
    let judged = || job.ranks.iter().map(|m| m.judged).filter(|ns| *ns > 0);
    let (shortest, longest) = (format_ns(judged().min()?), format_ns(judged().max()?));
    Some(if shortest == longest {
        format!("The times are parts of the judged {longest} of each rank.")
    } else {
        format!("The times are parts of each rank's own judged time: {shortest} to {longest}.")
    })
}

/// Puts a finding into words. Its times are on the clock of one rank.
pub fn finding_text(f: &Finding) -> FindingText {
    FindingText { places: Vec::new(), ..triage::finding_text(f, "a rank's judged time", None) }
}

/// The job for people: the verdict, the ranks, their collectives, who waits for whom, and the findings.
pub fn document<'a>(of: &Together<'a>) -> Document<'a> {
    let job = of.job;
    let mut blocks = vec![Block::Heading(3, summary_line(of))];
    blocks.push(match job.findings.first() {
        Some(f) => Block::Verdict(f.id.id(), f.headline.clone()),
        None => Block::Text(job.nothing_found()),
    });
    let (list, rest) = listed_ranks(job);
    let rows = list.into_iter().map(|member| RankRow { of: *of, member }).collect();
    blocks.push(Block::Rows(Box::new(Rows { columns: rank_columns(), rows })));
    if let Some(base) = base_line(job) {
        blocks.push(Block::Text(base));
    }
    if rest > 0 {
        let ranks = units::format_count(rest, "rank");
        blocks.push(Block::Text(format!("{ranks} that the others wait for less are not listed; --format csv lists all")));
    }
    if !job.links.is_empty() {
        blocks.push(Block::Table(link_table(&job.links)));
    }
    let pairs = pair_lines(job);
    if !pairs.is_empty() {
        blocks.push(Block::List(pairs));
    }
    blocks.extend(job.findings.iter().map(|f| Block::Finding(finding_text(f))));
    let remarks: Vec<String> = job.told.source_remark().map(str::to_owned).into_iter().chain(job.remarks.iter().cloned()).collect();
    if !remarks.is_empty() {
        blocks.push(Block::List(remarks));
    }
    Document { blocks }
}

fn link_table(links: &[Link]) -> Table {
    let head = vec![
        ("collective", false),
        ("ranks", true),
        ("count", true),
        ("message", true),
        ("time", true),
        ("bus", true),
        ("of its peak", false),
        ("waiting", true),
    ];
    let row = |l: &Link| {
        let count = units::format_grouped(l.count);
        let bytes = l.bytes.map_or_else(String::new, |b| Bytes(b).to_string());
        let bus = l.bus.map_or_else(String::new, |b| format!("{:.1} GB/s", b / 1e9));
        let of = l
            .bus
            .zip(l.peak)
            .map_or_else(String::new, |(b, (peak, name))| format!("{} of {name}", units::format_whole_percent(b / peak * 100.0)));
        vec![l.kind.to_string(), l.size.to_string(), count, bytes, format_ns(l.time), bus, of, format_ns(l.waited)]
    };
    Table { head, rows: links.iter().map(row).collect() }
}

/// Sentences on the ranks that wait longest for another one.
fn pair_lines(job: &Job) -> Vec<String> {
    let mut pairs: Vec<((u32, u32), i64)> = job.waits.pairs.iter().map(|(&p, &ns)| (p, ns)).filter(|p| p.1 > 0).collect();
    pairs.sort_by_key(|p| (std::cmp::Reverse(p.1), p.0));
    let line = |&((waiter, other), time): &((u32, u32), i64)| {
        format!("rank {} waits {} for rank {}", job.rank_number(waiter), format_ns(time), job.rank_number(other))
    };
    let mut lines: Vec<String> = pairs.iter().take(PAIRS).map(line).collect();
    if pairs.len() > PAIRS {
        lines.push(format!("… and {} more", units::format_count(pairs.len() - PAIRS, "pair")));
    }
    lines
}

/// A rank with the data of its cells.
#[derive(Clone, Copy)]
pub struct RankRow<'a> {
    of: Together<'a>,
    member: &'a Member,
}

impl<'a> RankRow<'a> {
    fn digest(&self) -> Option<&'a Digest> {
        self.of.digests.get(self.member.digest)
    }
}

/// The columns, in order. Text output also has a bar of each rank's times.
pub fn rank_columns<'a>() -> Vec<Column<RankRow<'a>>> {
    type RankColumn<'a> = Column<RankRow<'a>>;
    vec![
        RankColumn::new("rank", "rank", Unit::Id, "number of the rank", |r| Value::int(r.member.rank)),
        RankColumn::new("host", "host", Unit::Text, "machine", |r| {
            r.digest().and_then(|d| d.host.as_deref()).map_or(Value::Absent, Value::text)
        }),
        RankColumn::new("device", "device", Unit::Id, "number of the GPU", |r| Value::maybe_int(r.digest().and_then(|d| d.device)))
            .priority(5),
        RankColumn::new("bar", "kernels █  collectives ▒", Unit::Text, "kernels and exposed collectives as a bar", |r| {
            Value::Text(time_bar(r.member).into())
        })
        .only(Outputs::TEXT)
        .priority(3),
        RankColumn::new("step_ns", "step", Unit::Ns, "median step", |r| Value::maybe_int(r.member.step)).priority(2),
        RankColumn::new("compute_ns", "kernels", Unit::Ns, "time with kernels other than collectives", |r| Value::Int(r.member.compute)),
        RankColumn::new("comm_ns", "collectives", Unit::Ns, "time with collectives", |r| Value::Int(r.member.comm)).priority(4),
        RankColumn::new("exposed_ns", "exposed", Unit::Ns, "time with collectives alone", |r| Value::Int(r.member.exposed)),
        RankColumn::new("idle_ns", "idle", Unit::Ns, "time in which the GPU was idle", |r| Value::Int(r.member.idle)),
        RankColumn::new("judged_ns", "judged", Unit::Ns, "length of the judged window", |r| Value::Int(r.member.judged)).priority(6),
        RankColumn::new("waited_ns", "waiting", Unit::Ns, "time in which it waited for other ranks", |r| Value::Int(r.member.waited)),
        RankColumn::new("late_ns", "delaying", Unit::Ns, "time in which other ranks waited for it", |r| Value::Int(r.member.late)),
        RankColumn::new("straggler", "straggler", Unit::Text, "why it is late, if it is a straggler", |r| {
            let late = r.of.job.stragglers.iter().find(|s| s.rank == r.member.rank);
            late.map_or(Value::Absent, |s| Value::text(s.why.as_str()))
        })
        .priority(1),
        RankColumn::new("file", "file", Unit::Text, "report", |r| r.digest().map_or(Value::Absent, |d| Value::text(&d.file))).priority(7),
    ]
}

/// Prints one CSV row per rank.
pub fn print_csv(out: &mut dyn Write, of: &Together<'_>, width: Option<usize>) -> io::Result<()> {
    table::print_rows(rank_columns(), of.job.ranks.iter().map(|member| RankRow { of: *of, member }), out, Format::Csv, width)
}
