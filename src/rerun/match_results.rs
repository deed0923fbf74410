//! Matches ncu results to the launches of a timeline: by the command that produced them, otherwise by kernel, grid,
//! block and order.

use super::capture_range::profiler_calls;
use super::ncu_report_selection::Selection;
use super::nvtx::{self, Cover, RangeName};
use super::verify::parameter_list;
use crate::model::metrics::{IN_PLACE, MEASURED_LAUNCHES, SAMPLED_LAUNCHES};
use crate::model::{Kernel, LaunchOrder, Metrics, NoteKind, Profile, RangeKind, ResultKind, ResultMetrics, Value};
use std::collections::{HashMap, HashSet};

/// Confidence in a match, highest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sure {
    /// The ncu command line selects this launch, and kernel, grid and block agree.
    Command,
    /// Measured while the timeline was recorded; the launch is identified by its API call.
    Measured,
    /// Measured in another run of the program, on the launch with this number among those with its kernel, grid and
    /// block.
    Number,
    /// The AMD dispatch number matches, and kernel, grid and workgroup agree.
    Dispatch,
    /// The only launch with this kernel, grid and block.
    Only,
    /// There are as many results as launches with this kernel, grid and block, so they are paired in order.
    Order,
    /// One of several launches with this kernel, grid and block; it is unknown which one.
    Alike(u64),
}

impl Sure {
    /// Returns true if the exact launch is known.
    pub fn is_exact(self) -> bool {
        !matches!(self, Self::Alike(_))
    }

    /// Explains why the result and the launch match.
    pub fn describe(self) -> String {
        match self {
            Self::Command => "ncu's command counts to this launch; kernel, grid and block match".to_owned(),
            Self::Measured => "measured in this run, on launches of the same kernel, grid and block".to_owned(),
            Self::Number => {
                "measured in another run of the program: the launch of the same number with this kernel, grid and block".to_owned()
            }
            Self::Dispatch => "the dispatch of the same number; kernel, grid and workgroup match".to_owned(),
            Self::Only => "the only launch with this kernel, grid and block".to_owned(),
            Self::Order => "as many results as launches with this kernel, grid and block: paired in order".to_owned(),
            Self::Alike(1) => "a launch with this kernel, grid and block; the timeline may not have all of them".to_owned(),
            Self::Alike(n) => format!("one of {n} launches with this kernel, grid and block; which one is unknown"),
        }
    }
}

/// A result and its launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Row of the launch.
    pub launch: u32,
    /// Index of the result.
    pub result: usize,
    pub sure: Sure,
}

/// All pairs of a timeline's launches and a set of results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Join {
    /// Pairs in the order of the results.
    pub pairs: Vec<Pair>,
    by_launch: HashMap<u32, usize>,
}

impl Join {
    /// Returns the pair of a launch.
    pub fn of_launch(&self, launch: u32) -> Option<&Pair> {
        self.by_launch.get(&launch).and_then(|&at| self.pairs.get(at))
    }

    /// Returns the pair of a result.
    pub fn of_result(&self, result: usize) -> Option<&Pair> {
        self.pairs.iter().find(|p| p.result == result)
    }

    fn in_order(mut self) -> Self {
        self.pairs.sort_by_key(|p| p.result);
        self.by_launch = HashMap::new();
        for (at, pair) in self.pairs.iter().enumerate() {
            self.by_launch.entry(pair.launch).or_insert(at);
        }
        self
    }

    fn push(&mut self, pair: Pair) {
        self.by_launch.entry(pair.launch).or_insert(self.pairs.len());
        self.pairs.push(pair);
    }
}

/// Returns true if a result may belong to a launch of this kernel: compares symbols if both are known, otherwise
/// function names and parameter types.
fn same_kernel(result: &Kernel, launch: &Kernel) -> bool {
    if let (Some(a), Some(b)) = (&result.mangled, &launch.mangled) {
        return a == b;
    }
    if result.function() != launch.function() {
        return false;
    }
    match (result.demangled.as_deref().and_then(parameter_list), launch.demangled.as_deref().and_then(parameter_list)) {
        (Some(a), Some(b)) => a == b,
        _ => true,
    }
}

/// Returns true if launches can be counted and distinguished by their order: the timeline is complete and has a single
/// process, thread and device.
fn is_countable(profile: &Profile, metrics: &Metrics) -> bool {
    let distinct = |mut values: Vec<u32>| {
        values.sort_unstable();
        values.dedup();
        values.len()
    };
    let pids = distinct(profile.places.iter().filter_map(|p| p.pid).collect());
    let threads = distinct(profile.places.iter().filter_map(|p| p.thread).collect());
    let devices = distinct(profile.places.iter().filter_map(|p| p.device.or(p.ordinal)).collect());
    let profiled = distinct(metrics.results.iter().filter_map(|r| r.pid).collect());
    let whole = profile.capture.gate.is_none() && profile.order == LaunchOrder::Host && profile.graphs.is_empty();
    let stops = profiler_calls(profile).iter().any(|c| !c.2);
    whole && !stops && pids <= 1 && threads <= 1 && devices <= 1 && profiled <= 1
}

/// Matches a result of the tracer to one of `rows`, the launches with its kernel, grid and block. The match is certain
/// if the counters are from this run; counters from another run can only be matched by launch number.
fn join_in_place(profile: &Profile, metrics: &Metrics, result: usize, rows: &[u32], countable: bool) -> Option<Pair> {
    let own = metrics.source.file == profile.source.file;
    let numbers = measured_launches(metrics, result);
    let found = numbers.first().and_then(|&n| rows.get(n));
    // A survey measures several launches and takes one part of the counters from each, so no single number identifies
    // the result. A single number identifies the same launch in every run that repeats the launches.
    let sure = match (own, numbers.len()) {
        (true, _) => Sure::Measured,
        (false, 1) if countable && found.is_some() => Sure::Number,
        _ => Sure::Alike(rows.len() as u64),
    };
    let launch = found.or(rows.last()).copied()?;
    Some(Pair { launch, result, sure })
}

/// Matches ncu results to the launches of a timeline. O(launches).
pub fn join_results(profile: &Profile, metrics: &Metrics) -> Join {
    let mut out = Join::default();
    // Results with the same kernel, grid and block are distinguished only by order.
    let mut classes: Vec<(&ResultMetrics, Vec<usize>, Vec<u32>)> = Vec::new();
    let mut class_of_result: HashMap<usize, usize> = HashMap::new();
    for (at, result) in metrics.results.iter().enumerate() {
        if result.kind != ResultKind::Kernel || result.failed {
            continue;
        }
        let alike = |other: &ResultMetrics| other.kernel == result.kernel && other.grid == result.grid && other.block == result.block;
        let class = classes.iter().position(|c| alike(c.0)).unwrap_or_else(|| {
            classes.push((result, Vec::new(), Vec::new()));
            classes.len() - 1
        });
        classes[class].1.push(at);
        class_of_result.insert(at, class);
    }
    let launches = &profile.launches;
    let amd = metrics.source.tool.starts_with("rocprof");
    let mut classes_of: HashMap<(u32, Option<u32>), Vec<usize>> = HashMap::new();
    // Classes that share launches: a launch without a symbol or grid can match several.
    let mut shared: HashSet<usize> = HashSet::new();
    for row in 0..launches.len() {
        let (kernel, config) = (launches.kernel(row).0, launches.config(row).map(|c| c.0));
        let fits = classes_of.entry((kernel, config)).or_insert_with(|| {
            let Some(name) = profile.kernels.get(kernel as usize) else { return Vec::new() };
            let config = config.and_then(|c| profile.configs.get(c as usize));
            // A value missing on one side is not a mismatch. AMD counter tables contain only the product of the
            // dimensions.
            let product = |d: [u32; 3]| d.iter().map(|&n| u64::from(n)).product::<u64>();
            let agrees = |a: Option<[u32; 3]>, b: Option<[u32; 3]>| match (a, b) {
                (Some(a), Some(b)) => a == b || (amd && a[1..] == [1, 1] && product(a) == product(b)),
                _ => true,
            };
            let fits = |r: &ResultMetrics| {
                same_kernel(&r.kernel, name) && config.is_none_or(|c| agrees(r.grid, c.grid) && agrees(r.block, c.block))
            };
            let found: Vec<usize> = (0..classes.len()).filter(|&c| fits(classes[c].0)).collect();
            if found.len() > 1 {
                shared.extend(&found);
            }
            found
        });
        for &class in &*fits {
            classes[class].2.push(u32::try_from(row).unwrap_or(u32::MAX));
        }
    }
    let countable = is_countable(profile, metrics);
    let is_of = |at: usize, row: &u32| class_of_result.get(&at).is_some_and(|c| classes[*c].2.binary_search(row).is_ok());
    if countable
        && let Some(rows) = by_command(profile, metrics)
        && rows.len() >= metrics.results.len()
        && rows.iter().zip(0..metrics.results.len()).all(|(row, at)| is_of(at, row))
    {
        for (result, &launch) in rows.iter().enumerate().take(metrics.results.len()) {
            out.push(Pair { launch, result, sure: Sure::Command });
        }
        return out;
    }
    if metrics.source.tool == IN_PLACE {
        for (_, results, rows) in &classes {
            out.pairs.extend(results.iter().filter_map(|&result| join_in_place(profile, metrics, result, rows, countable)));
        }
        return out.in_order();
    }
    let dispatched = if amd { by_dispatch(profile, metrics) } else { Vec::new() };
    for (class, (_, results, rows)) in classes.iter().enumerate() {
        let numbered = |result: usize| dispatched.get(result).copied().flatten().filter(|row| rows.binary_search(row).is_ok());
        if results.iter().any(|&r| numbered(r).is_some()) {
            let pairs = results.iter().filter_map(|&result| Some(Pair { launch: numbered(result)?, result, sure: Sure::Dispatch }));
            out.pairs.extend(pairs);
            continue;
        }
        let sure = match (results.len(), rows.len()) {
            (_, 0) => continue,
            (_, l) if !countable || shared.contains(&class) => Sure::Alike(l as u64),
            (1, 1) => Sure::Only,
            (r, l) if r == l => Sure::Order,
            (_, l) => Sure::Alike(l as u64),
        };
        for (i, &result) in results.iter().enumerate() {
            let launch = rows.get(i).or(rows.last()).copied().unwrap_or_default();
            out.push(Pair { launch, result, sure });
        }
    }
    out.in_order()
}

/// Indices, 0-based, of the launches measured (or sampled) for a result, among the launches with the same kernel, grid
/// and block.
fn measured_launches(metrics: &Metrics, result: usize) -> Vec<usize> {
    let Some(of) = metrics.results.get(result) else { return Vec::new() };
    match metrics.value(of, MEASURED_LAUNCHES).or_else(|| metrics.value(of, SAMPLED_LAUNCHES)) {
        Some(Value::Text(list)) => list.split(' ').filter_map(|n| n.parse::<usize>().ok()?.checked_sub(1)).collect(),
        _ => Vec::new(),
    }
}

/// Matches launches by AMD dispatch ids, which count from 1 in each process, if the timeline covers one complete
/// process. Another run of the program assigns the same ids if it makes the same dispatches.
fn by_dispatch(profile: &Profile, metrics: &Metrics) -> Vec<Option<u32>> {
    let mut pids = profile.places.iter().filter_map(|p| p.pid);
    let first = pids.next();
    let whole = [profile.source.tool.as_str(), &metrics.source.tool] == ["rocprofv3"; 2]
        && profile.order == LaunchOrder::Host
        && profile.notes.iter().all(|n| n.kind != NoteKind::Lost)
        && pids.all(|p| Some(p) == first);
    let Some(at) = metrics.names.iter().position(|n| &**n == "Dispatch_Id").filter(|_| whole) else { return Vec::new() };
    let number = |r: &ResultMetrics| r.values.iter().find(|v| v.0 as usize == at).and_then(|v| v.1.as_number());
    metrics.results.iter().map(|r| number(r).filter(|n| *n >= 1.0).map(|n| n as u32 - 1)).collect()
}

/// Returns the launches selected by the recorded ncu command line, if it can be parsed.
fn by_command(profile: &Profile, metrics: &Metrics) -> Option<Vec<u32>> {
    let selection = Selection::from_metrics(metrics)?;
    let range = match &selection.range {
        None => None,
        Some(expression) => {
            // The range must have exactly this expression.
            let ids = 0..u32::try_from(profile.ranges.names.len()).unwrap_or(u32::MAX);
            let kinds = |name| [RangeKind::PushPop, RangeKind::StartEnd].map(|kind| RangeName { name, kind });
            let mut named = ids.flat_map(kinds).filter(|r| nvtx::filter_expression(profile, *r).as_deref() == Some(expression.as_str()));
            let one = named.next()?;
            if named.next().is_some() {
                return None;
            }
            Some(one)
        }
    };
    // Counts differ between processes.
    let mut pids = profile.places.iter().filter_map(|p| p.pid);
    let first = pids.next();
    let selects = selection.name.is_some() || range.is_some() || selection.skip > 0 || selection.count.is_some();
    if !selects || pids.any(|p| Some(p) != first) {
        return None;
    }
    let fits: Vec<bool> = match &selection.name {
        None => vec![true; profile.kernels.len()],
        Some(pattern) => profile.kernels.iter().map(|k| pattern_matches(pattern, k.name(selection.base))).collect::<Option<_>>()?,
    };
    let cover = range.map(|r| Cover::for_range(profile, r, None));
    let rows = (0..profile.launches.len()).filter(|&r| {
        fits.get(profile.launches.kernel(r).0 as usize) == Some(&true) && cover.as_ref().is_none_or(|c| c.contains_launch(profile, r))
    });
    Some(rows.skip(selection.skip).take(selection.count.unwrap_or(usize::MAX)).filter_map(|r| u32::try_from(r).ok()).collect())
}

/// Returns true if ncu's name pattern matches a name. Supports exact names and regular expressions that consist of
/// plain text with optional `^` and `$`; returns `None` for others.
fn pattern_matches(pattern: &str, name: &str) -> Option<bool> {
    let Some(expression) = pattern.strip_prefix("regex:") else { return Some(pattern == name) };
    let (start, rest) = expression.strip_prefix('^').map_or((false, expression), |r| (true, r));
    let (end, text) = rest.strip_suffix('$').map_or((false, rest), |r| (true, r));
    if !text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == ' ') {
        return None;
    }
    // ncu searches: an unanchored expression can match anywhere.
    Some(match (start, end) {
        (true, true) => name == text,
        (true, false) => name.starts_with(text),
        (false, true) => name.ends_with(text),
        (false, false) => name.contains(text),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_that_are_only_text_are_understood() {
        for (pattern, name, want) in [
            ("foo", "foo", Some(true)),
            ("foo", "foobar", Some(false)),
            ("regex:foo", "xfoobar", Some(true)),
            ("regex:^foo$", "foobar", Some(false)),
            ("regex:^foo", "foobar", Some(true)),
            ("regex:^(a|b)$", "a", None),
        ] {
            assert_eq!(pattern_matches(pattern, name), want, "{pattern} {name}");
        }
    }
}
