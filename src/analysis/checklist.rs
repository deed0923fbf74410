//! Checklist of the data that an analysis needs, ticked off from the session's reports.

use super::hints::{Depth, Subject};
use super::next_step::key_of;
use super::roofline;
use super::triage::Triage;
use crate::model::{Metrics, Profile, units};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// State of a checklist item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tick {
    Done,
    Partly,
    /// Not done yet.
    Open,
    /// Not necessary.
    NotNeeded,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Title of the item.
    pub what: &'static str,
    pub tick: Tick,
    /// Data in the session that covers this item.
    pub have: String,
    /// Next step, unless the item is done.
    pub next: String,
}

/// A report in the session: its profile and, for a timeline, results from other reports joined to its launches.
pub struct ReportFacts<'a> {
    pub profile: &'a Profile,
    /// Bottleneck analysis of the run, once available.
    pub triage: Option<Arc<Triage>>,
    /// Launch, report and result of each joined result.
    pub joined: Vec<(u32, Arc<Metrics>, usize)>,
}

/// Number of longest-running kernels that count as hot.
const HOT: usize = 3;

/// A hot kernel's name, share of the time, and results.
type Hot<'a> = (String, f64, Vec<(&'a Metrics, usize)>);

/// Returns the hot kernels of the first timeline, or else of the first ncu report.
fn hot_kernels<'a>(parts: &'a [ReportFacts<'a>]) -> Vec<Hot<'a>> {
    let timeline = parts.iter().find(|p| p.profile.metrics.is_none() && !p.profile.launches.is_empty());
    let Some(part) = timeline.or_else(|| parts.iter().find(|p| p.profile.metrics.is_some())) else { return Vec::new() };
    let launches = &part.profile.launches;
    let mut kernels: Vec<i64> = vec![0; part.profile.kernels.len()];
    for row in 0..launches.len() {
        if let Some(sum) = kernels.get_mut(launches.kernel(row).0 as usize) {
            *sum += launches.duration(row);
        }
    }
    let total: i64 = kernels.iter().sum();
    let mut order: Vec<(u32, i64)> = (0..).zip(kernels).filter(|k| k.1 > 0).collect();
    order.sort_by_key(|k| (std::cmp::Reverse(k.1), k.0));
    let share = |ns: i64| if total > 0 { ns as f64 / total as f64 } else { 0.0 };
    order
        .into_iter()
        .take(HOT)
        .map(|(kernel, ns)| {
            let is = |launch: u32| (launch as usize) < launches.len() && launches.kernel(launch as usize).0 == kernel;
            let results = match &part.profile.metrics {
                Some(own) => (0u32..).take(own.results.len()).filter(|l| is(*l)).map(|l| (&**own, l as usize)).collect(),
                None => part.joined.iter().filter(|j| is(j.0)).map(|j| (&*j.1, j.2)).collect(),
            };
            let name = part.profile.kernels.get(kernel as usize).map_or_else(String::new, |k| k.function().to_owned());
            (name, share(ns), results)
        })
        .collect()
}

fn tick_from_counts(done: usize, all: usize) -> Tick {
    match (done, all) {
        (_, 0) => Tick::Open,
        (d, a) if d >= a => Tick::Done,
        (0, _) => Tick::Open,
        _ => Tick::Partly,
    }
}

/// Returns the items, in the order in which they are usually done.
pub fn checklist_items(parts: &[ReportFacts<'_>]) -> Vec<Item> {
    let timelines: Vec<&Profile> = parts.iter().map(|p| p.profile).filter(|p| p.metrics.is_none()).collect();
    let reports: Vec<&Arc<Metrics>> = parts.iter().filter_map(|p| p.profile.metrics.as_ref()).collect();
    let hot = hot_kernels(parts);
    let amd = parts.iter().any(|p| p.profile.is_amd());
    let launches: usize = timelines.iter().map(|p| p.launches.len()).sum();
    let known: usize = timelines.iter().map(|p| p.totals.len()).sum();
    let mut out = vec![Item {
        what: "timeline collected",
        tick: if launches > 0 {
            Tick::Done
        } else if known > 0 {
            Tick::Partly
        } else {
            Tick::Open
        },
        have: format!("{} in {}", units::format_count(launches, "launch"), units::format_count(timelines.len(), "timeline")),
        next: if amd {
            "record one: `rocprofv3 --sys-trace --marker-trace -- PROGRAM`"
        } else {
            "record one with nsys: `warpscope recipes exact`"
        }
        .to_owned(),
    }];
    out.push(verdict_item(parts));
    let subject = |m: &Metrics, r: usize| Subject::of_metrics(m, r).unwrap_or_default();
    let count = |test: &dyn Fn(&Metrics, usize) -> bool| hot.iter().filter(|h| h.2.iter().any(|(m, r)| test(m, *r))).count();
    let share: f64 = hot.iter().filter(|h| !h.2.is_empty()).map(|h| h.1).sum();
    let analysed = count(&|m, r| subject(m, r).depth >= Depth::Basic);
    out.push(Item {
        what: "hot kernels analyzed",
        tick: tick_from_counts(analysed, hot.len()),
        have: format!("{analysed} of the {} hottest, {} of kernel time", hot.len(), units::format_whole_percent((share * 100.0).abs())),
        next: format!(
            "mark them ({}): {} shows the commands, and {} there runs them; the results join the timeline",
            key_of("mark"),
            key_of("rerun"),
            key_of("run-here")
        ),
    });
    let placed = count(&|m, r| {
        m.results.get(r).is_some_and(|r| roofline::place_result(m, r).work.iter().any(|w| w.achieved.is_some_and(|a| a > 0.0)))
    });
    out.push(Item {
        what: "roofline placed",
        tick: tick_from_counts(placed, hot.len()),
        have: format!("{placed} of {}", hot.len()),
        next: if amd {
            "`rocprof-compute profile` collects what it needs; kernels without floating-point work have none"
        } else {
            "collect --set roofline, or sections with RooflineChart in their names; kernels without floating-point work have none"
        }
        .to_owned(),
    });
    let stalls = count(&|m, r| {
        let subject = subject(m, r);
        if subject.is_amd() { !subject.waves.is_empty() } else { super::hints::stalls::Stalls::from_facts(&subject.facts).is_some() }
    });
    out.push(Item {
        what: "stalls explained",
        tick: tick_from_counts(stalls, hot.len()),
        have: format!(
            "{stalls} of {} have {}",
            hot.len(),
            if amd { "wave cycles, a thread trace or PC samples" } else { "warp states or PC samples" }
        ),
        next: if amd {
            "collect SQ_WAVE_CYCLES with SQ_WAIT_ANY and SQ_WAIT_INST_ANY, or a thread trace (`rocprofv3 --att`)"
        } else {
            "collect WarpStateStats or SourceCounters"
        }
        .to_owned(),
    });
    let ranges: usize = timelines.iter().map(|p| p.ranges.len()).sum();
    out.push(Item {
        what: "ranges present",
        tick: if ranges > 0 { Tick::Done } else { Tick::Open },
        have: format!("{ranges} ranges"),
        next: format!("mark steps and layers: {}", range_apis(amd)),
    });
    out.push(devices_item(&timelines));
    let pairs = before_after(&reports);
    out.push(Item {
        what: "before and after recorded",
        tick: if pairs > 0 { Tick::Done } else { Tick::Open },
        have: format!("{} in two reports", units::format_count(pairs, "kernel")),
        next: format!(
            "after a change profile the same launch again and open both reports: {} on a result shows them side by side",
            key_of("compare")
        ),
    });
    out
}

fn verdict_item(parts: &[ReportFacts<'_>]) -> Item {
    let found = parts.iter().find_map(|p| p.triage.as_ref()?.verdict());
    Item {
        what: "what limits the run",
        tick: if found.is_some() { Tick::Done } else { Tick::Open },
        have: found.map_or_else(|| "no verdict yet".to_owned(), |f| format!("{}: {}", f.id, f.headline)),
        next: if parts.iter().any(|p| p.profile.metrics.is_none()) {
            format!("{} shows it, with what to do", key_of("overview"))
        } else {
            "open a timeline of the run beside these results".to_owned()
        },
    }
}

fn devices_item(timelines: &[&Profile]) -> Item {
    let there = timelines.iter().map(|p| p.devices.len()).max().unwrap_or(0);
    let used: usize = timelines.iter().map(|p| p.places.iter().filter_map(|l| l.device).collect::<BTreeSet<_>>().len()).sum();
    Item {
        what: "several GPUs covered",
        tick: match (there, used) {
            (0, _) => Tick::Open,
            (1, _) => Tick::NotNeeded,
            (there, used) => tick_from_counts(used, there),
        },
        have: format!("{used} of {} in the timelines", units::format_count(there, "GPU")),
        next: "open the report of each rank: several files on the command line are one session".to_owned(),
    }
}

/// Key for matching results from before and after a change: name, grid, block.
type Key<'a> = (&'a str, Option<[u32; 3]>, Option<[u32; 3]>);

/// Counts the kernels that occur in more than one ncu report with the same grid and block.
fn before_after(reports: &[&Arc<Metrics>]) -> usize {
    let mut seen: BTreeMap<Key<'_>, BTreeSet<usize>> = BTreeMap::new();
    for (at, metrics) in reports.iter().enumerate() {
        for r in &metrics.results {
            seen.entry((r.kernel.function(), r.grid, r.block)).or_default().insert(at);
        }
    }
    seen.values().filter(|s| s.len() > 1).count()
}

/// Lists the APIs that a program can use to mark ranges.
pub fn range_apis(amd: bool) -> &'static str {
    if amd {
        "roctxRangePush, torch.cuda.nvtx.range, record_function of PyTorch's profiler; record with `rocprofv3 --marker-trace`"
    } else {
        "torch.cuda.nvtx.range, nvtx.annotate, nvtxRangePush, or record_function of PyTorch's profiler"
    }
}
