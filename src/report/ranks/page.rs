//! A job as a readable page, as Markdown, and as rows.

use super::json::Together;
use crate::analysis::labels::cut_end;
use crate::analysis::ranks::{Job, Link, Member};
use crate::analysis::table::{Column, Unit, Value};
use crate::analysis::triage::Finding;
use crate::model::digest::Digest;
use crate::model::{Bytes, Nanos, units};
use crate::report::Format;
use crate::report::finding_text::{self, FindingText};
use crate::report::output::bold;
use crate::report::table::{self, write_wrapped};
use crate::report::triage;
use std::io::{self, Write};

/// Maximum number of ranks on a page; for a larger job, the latest ranks are listed.
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

/// Ranks to list, and the number of ranks omitted.
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

fn link_words(l: &Link) -> [String; 6] {
    let bus = l.bus.map_or_else(String::new, |b| format!("{:.1} GB/s", b / 1e9));
    let of = l.bus.zip(l.peak).map_or_else(String::new, |(b, (peak, name))| format!("{:.0}% of {name}", b / peak * 100.0));
    let bytes = l.bytes.map_or_else(String::new, |b| Bytes(b).to_string());
    [units::format_grouped(i64::try_from(l.count).unwrap_or(i64::MAX)), bytes, format_ns(l.time), bus, of, format_ns(l.waited)]
}

/// Puts a finding into words. Its times are on the clock of one rank.
pub fn finding_text(f: &Finding) -> FindingText {
    FindingText { places: Vec::new(), ..triage::finding_text(f, "a rank's judged time", 0) }
}

/// Prints the readable page.
pub fn print_page(out: &mut dyn Write, of: &Together<'_>, width: usize) -> io::Result<()> {
    let (job, width) = (of.job, width.clamp(60, 140));
    writeln!(out, "{}", summary_line(of))?;
    match job.findings.first() {
        Some(f) => write_wrapped(out, &format!("{} ", bold(&format!("{}:", f.id.id()))), "  ", &f.headline, width)?,
        None => write_wrapped(out, "", "  ", &job.nothing_found(), width)?,
    }
    writeln!(out)?;
    let several = of.digests.iter().any(|d| d.host != of.digests[0].host) && width >= 100;
    let host = |d: Option<&Digest>| {
        if several { format!("{:<14}", cut_end(d.and_then(|d| d.host.as_deref()).unwrap_or(""), 14)) } else { String::new() }
    };
    let title = if several { format!("{:<14}", "host") } else { String::new() };
    writeln!(
        out,
        "  {:>4}  {title}{:<BAR$}  {:>9}  {:>9}  {:>9}  {:>9}  {:>9}  {:>12}",
        "rank", "kernels █  collectives ▒", "step", "kernels", "exposed", "idle", "waiting", "delaying"
    )?;
    let (list, rest) = listed_ranks(job);
    for m in list {
        let step = m.step.map_or_else(String::new, format_ns);
        let mark = if job.stragglers.iter().any(|s| s.rank == m.rank) { '›' } else { ' ' };
        writeln!(
            out,
            "{mark} {:>4}  {}{}  {step:>9}  {:>9}  {:>9}  {:>9}  {:>9}  {:>12}",
            m.rank,
            host(of.digests.get(m.digest)),
            time_bar(m),
            format_ns(m.compute),
            format_ns(m.exposed),
            format_ns(m.idle),
            format_ns(m.waited),
            format_ns(m.late)
        )?;
    }
    if rest > 0 {
        writeln!(out, "  {} that the others wait for less are not listed; --format csv lists all", units::format_count(rest, "rank"))?;
    }
    write_links(out, job)?;
    write_pairs(out, job)?;
    for (rank, f) in job.findings.iter().enumerate() {
        writeln!(out)?;
        finding_text::write_text(out, rank + 1, &finding_text(f), width)?;
    }
    if let Some(words) = job.told.source_remark() {
        writeln!(out)?;
        write_wrapped(out, "", "  ", words, width)?;
    }
    job.remarks.iter().try_for_each(|r| write_wrapped(out, "", "  ", r, width))
}

fn write_links(out: &mut dyn Write, job: &Job) -> io::Result<()> {
    if job.links.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    writeln!(
        out,
        "  {:<16} {:>5}  {:>8}  {:>9}  {:>9}  {:>11}  {:<18}  {:>9}",
        "collective", "ranks", "count", "message", "time", "bus", "", "waiting"
    )?;
    for l in &job.links {
        let [count, bytes, time, bus, of, waited] = link_words(l);
        writeln!(out, "  {:<16} {:>5}  {count:>8}  {bytes:>9}  {time:>9}  {bus:>11}  {of:<18}  {waited:>9}", l.kind, l.size)?;
    }
    Ok(())
}

fn write_pairs(out: &mut dyn Write, job: &Job) -> io::Result<()> {
    let mut pairs: Vec<((u32, u32), i64)> = job.waits.pairs.iter().map(|(&p, &ns)| (p, ns)).filter(|p| p.1 > 0).collect();
    if pairs.is_empty() {
        return Ok(());
    }
    pairs.sort_by_key(|p| (std::cmp::Reverse(p.1), p.0));
    let all = pairs.len();
    pairs.truncate(PAIRS);
    writeln!(out)?;
    for ((waiter, other), time) in pairs {
        writeln!(out, "  rank {} waits {} for rank {}", job.rank_number(waiter), format_ns(time), job.rank_number(other))?;
    }
    if all > PAIRS {
        writeln!(out, "  … and {} more", units::format_count(all - PAIRS, "pair"))?;
    }
    Ok(())
}

/// A rank with the data of its cells.
#[derive(Clone, Copy)]
pub struct RankRow<'a> {
    of: &'a Together<'a>,
    member: &'a Member,
}

impl<'a> RankRow<'a> {
    fn digest(&self) -> Option<&'a Digest> {
        self.of.digests.get(self.member.digest)
    }
}

/// The columns, in order.
pub fn rank_columns<'a>() -> Vec<Column<RankRow<'a>>> {
    type RankColumn<'a> = Column<RankRow<'a>>;
    vec![
        RankColumn::new("rank", "rank", Unit::Id, "number of the rank", |r| Value::int(r.member.rank)),
        RankColumn::new("host", "host", Unit::Text, "machine", |r| {
            r.digest().and_then(|d| d.host.as_deref()).map_or(Value::Absent, Value::text)
        }),
        RankColumn::new("device", "device", Unit::Id, "number of the GPU", |r| Value::maybe_int(r.digest().and_then(|d| d.device))),
        RankColumn::new("step_ns", "step", Unit::Ns, "median step", |r| Value::maybe_int(r.member.step)),
        RankColumn::new("compute_ns", "compute", Unit::Ns, "time with kernels other than collectives", |r| Value::Int(r.member.compute)),
        RankColumn::new("comm_ns", "collectives", Unit::Ns, "time with collectives", |r| Value::Int(r.member.comm)),
        RankColumn::new("exposed_ns", "exposed", Unit::Ns, "time with collectives alone", |r| Value::Int(r.member.exposed)),
        RankColumn::new("idle_ns", "idle", Unit::Ns, "time in which the GPU was idle", |r| Value::Int(r.member.idle)),
        RankColumn::new("judged_ns", "judged", Unit::Ns, "length of the judged window", |r| Value::Int(r.member.judged)),
        RankColumn::new("waited_ns", "waits", Unit::Ns, "time in which it waited for other ranks", |r| Value::Int(r.member.waited)),
        RankColumn::new("late_ns", "waited for", Unit::Ns, "time in which other ranks waited for it", |r| Value::Int(r.member.late)),
        RankColumn::new("straggler", "straggler", Unit::Text, "why it is late, if it is a straggler", |r| {
            let late = r.of.job.stragglers.iter().find(|s| s.rank == r.member.rank);
            late.map_or(Value::Absent, |s| Value::text(s.why.as_str()))
        }),
        RankColumn::new("file", "file", Unit::Text, "report", |r| r.digest().map_or(Value::Absent, |d| Value::text(&d.file))),
    ]
}

fn print_ranks(out: &mut dyn Write, of: &Together<'_>, format: Format, width: Option<usize>) -> io::Result<()> {
    table::print_rows(rank_columns(), of.job.ranks.iter().map(|member| RankRow { of, member }), out, format, width)
}

/// Prints one CSV row per rank.
pub fn print_csv(out: &mut dyn Write, of: &Together<'_>, width: Option<usize>) -> io::Result<()> {
    print_ranks(out, of, Format::Csv, width)
}

/// Writes the job as Markdown, for an issue tracker.
pub fn write_markdown(out: &mut dyn Write, of: &Together<'_>) -> io::Result<()> {
    writeln!(out, "### {}", summary_line(of))?;
    writeln!(out)?;
    for f in &of.job.findings {
        finding_text::write_markdown(out, &finding_text(f), &|t| table::escape_markdown(t))?;
    }
    print_ranks(out, of, Format::Md, None)?;
    writeln!(out)?;
    of.job
        .told
        .source_remark()
        .into_iter()
        .chain(of.job.remarks.iter().map(String::as_str))
        .try_for_each(|r| writeln!(out, "- {}", table::escape_markdown(r)))
}
