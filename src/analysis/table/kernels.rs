//! Columns for kernels, or for other groups of launches.

use super::column::{Column, Outputs};
use super::sort::Sort;
use super::value::{Field, Unit, Value};
use crate::analysis::hints::Diagnosis;
use crate::analysis::run_estimate::RowEstimate;
use crate::analysis::what_if_curves::Curve;
use crate::analysis::{GroupBy, GroupRow};

/// A group, with the data for its cells.
pub struct KernelRow<'p> {
    /// Position in the list as sorted, from 1.
    pub rank: usize,
    pub group: &'p GroupRow,
    pub by: GroupBy,
    /// Demangled name of the kernel; if there are several, of the longest-running one.
    pub demangled: Option<&'p str>,
    /// Effect on the run of making the kernel faster, if the replay model applies.
    pub curve: Option<&'p Curve>,
    /// Totals for the whole run, if only short moments of it were recorded.
    pub estimate: Option<&'p RowEstimate>,
    /// First hint of the kernel's longest result, if it was measured.
    pub diagnosis: Option<Diagnosis>,
}

/// Diagnosis of a kernel, for tables that have this column.
pub fn diagnosis_column<'p>() -> Column<KernelRow<'p>> {
    Column::new("diagnosis", "diagnosis", Unit::Text, "what limits the kernel, from its longest result", |r: &KernelRow<'p>| {
        r.diagnosis.map_or(Value::Absent, |d| Value::text(d.id()))
    })
}

pub const TOTAL: Sort = Sort::descending("total", 't');
pub const NAME: Sort = Sort::ascending("name", 'n');

/// Effect of a kernel on the run, in percent of the run's length.
const RUN: &[Field] = &[
    Field::new("share_percent", Unit::Percent, "summed time of the kernel"),
    Field::new("saves_percent", Unit::Percent, "saved if the kernel takes no time"),
    Field::new("saves_at_least_percent", Unit::Percent, "lower bound of what is saved"),
    Field::new("saves_at_most_percent", Unit::Percent, "upper bound of what is saved"),
];

fn run_share(curve: &Curve) -> Value<'static> {
    let percent = |share: f64| Value::Real((share * 10_000.0).round() / 100.0);
    Value::Record(vec![
        ("share_percent", percent(curve.share)),
        ("saves_percent", percent(curve.saved_share(1.0))),
        ("saves_at_least_percent", percent(curve.bounds.0)),
        ("saves_at_most_percent", percent(curve.bounds.1)),
    ])
}

/// Totals for the whole run with their 95% intervals, if only short moments of it were recorded.
const WHOLE_RUN: &[Field] = &[
    Field::new("count", Unit::Count, "launches"),
    Field::new("count_at_least", Unit::Count, "lower end of the 95% interval"),
    Field::new("count_at_most", Unit::Count, "upper end of the 95% interval"),
    Field::new("total_ns", Unit::Ns, "summed duration"),
    Field::new("total_at_least_ns", Unit::Ns, "lower end of the 95% interval"),
    Field::new("total_at_most_ns", Unit::Ns, "upper end of the 95% interval"),
];

fn whole_run(estimate: &RowEstimate) -> Value<'static> {
    let whole = |n: f64| Value::Int(n.round() as i64);
    Value::Record(vec![
        ("count", whole(estimate.count.value)),
        ("count_at_least", whole(estimate.count.low.floor())),
        ("count_at_most", whole(estimate.count.high.ceil())),
        ("total_ns", whole(estimate.total.value)),
        ("total_at_least_ns", whole(estimate.total.low.floor())),
        ("total_at_most_ns", whole(estimate.total.high.ceil())),
    ])
}

type KernelColumn<'p> = Column<KernelRow<'p>>;

/// Columns, in order. For groups other than kernels, the header names the kind of group, and there are no kernel names.
pub fn columns<'p>(by: GroupBy) -> Vec<KernelColumn<'p>> {
    let with_demangled = matches!(by, GroupBy::Kernel | GroupBy::Name | GroupBy::Mangled);
    vec![
        KernelColumn::new("rank", "#", Unit::Id, "place in the list", |r| Value::int(r.rank)).only(Outputs::TEXT.with(Outputs::CSV)),
        KernelColumn::new("name", by.group_noun(), Unit::Text, "name of the group", |r| Value::text(&r.group.name)).sorted(NAME),
        KernelColumn::new("kernels", "kernels", Unit::Count, "different kernels in the group, if groups can have several", |r| {
            let several = r.group.kernel.is_some() && matches!(r.by, GroupBy::Kernel | GroupBy::Name);
            Value::maybe_int(several.then_some(r.group.kernels))
        })
        .only(Outputs::JSON),
        KernelColumn::new("share_percent", "share", Unit::Percent, "of the time of all launches", |r| Value::Real(r.group.share_percent)),
        KernelColumn::new("run", "run", Unit::Record(RUN), "share of the run, and what is saved if the kernel takes no time", |r| {
            r.curve.map_or(Value::Absent, run_share)
        })
        .only(Outputs::JSON),
        KernelColumn::new(
            "whole_run",
            "whole run",
            Unit::Record(WHOLE_RUN),
            "estimate for the whole run, if only short moments of it were recorded (`trace --overhead`)",
            |r| r.estimate.map_or(Value::Absent, whole_run),
        )
        .only(Outputs::JSON),
        KernelColumn::new("total_ns", "total", Unit::Ns, "total duration", |r| Value::Int(r.group.stats.total))
            .weighing()
            .on_screen(8)
            .sorted(TOTAL),
        KernelColumn::new("count", "count", Unit::Count, "number of launches", |r| Value::int(r.group.stats.count))
            .priority(1)
            .on_screen(9)
            .sorted(Sort::descending("count", 'c')),
        KernelColumn::new("avg_ns", "avg", Unit::Ns, "mean duration", |r| Value::Real(r.group.stats.avg))
            .priority(2)
            .on_screen(8)
            .sorted(Sort::descending("avg", 'a')),
        KernelColumn::new("median_ns", "median", Unit::Ns, "median duration (p50)", |r| Value::maybe_real(r.group.stats.median))
            .priority(5)
            .on_screen(8)
            .sorted(Sort::descending("median", 'm')),
        KernelColumn::new("p99_ns", "p99", Unit::Ns, "99th percentile", |r| Value::maybe_int(r.group.stats.p99))
            .priority(3)
            .on_screen(8)
            .sorted(Sort::descending("p99", '9')),
        KernelColumn::new("min_ns", "min", Unit::Ns, "shortest launch", |r| Value::Int(r.group.stats.min))
            .priority(7)
            .on_screen(8)
            .sorted(Sort::descending("min", 'i')),
        KernelColumn::new("max_ns", "max", Unit::Ns, "longest launch", |r| Value::Int(r.group.stats.max))
            .priority(6)
            .on_screen(8)
            .sorted(Sort::descending("max", 'x')),
        KernelColumn::new("stddev_ns", "stddev", Unit::Ns, "standard deviation (n − 1)", |r| Value::maybe_real(r.group.stats.stddev))
            .priority(8),
        KernelColumn::new("spread_percent", "spread", Unit::WholePercent, "standard deviation over mean", |r| {
            Value::maybe_real(r.group.stats.spread_percent())
        })
        .only(Outputs::NONE)
        .priority(8)
        .on_screen(6)
        .sorted(Sort::descending("spread", 's')),
        KernelColumn::new("demangled", "demangled", Unit::Text, "full C++ name of the kernel", |r| {
            r.demangled.map_or(Value::Absent, Value::text)
        })
        .only(if with_demangled { Outputs::CSV.with(Outputs::JSON) } else { Outputs::JSON }),
    ]
}

/// Sorts groups; ties are sorted by name.
pub fn sort_groups(groups: &[GroupRow], which: &[u32], by: Sort, ascending: bool) -> Vec<u32> {
    let mut out = which.to_vec();
    let rank = |at: u32| groups[at as usize].name_rank;
    let columns = columns(GroupBy::Kernel);
    let Some(value) = by.column(&columns).filter(|_| by != NAME).map(|c| c.value) else {
        out.sort_by_key(|&at| rank(at));
        if !ascending {
            out.reverse();
        }
        return out;
    };
    let key = |at: u32| {
        let group = &groups[at as usize];
        value(&KernelRow { rank: 0, group, by: GroupBy::Kernel, demangled: None, curve: None, estimate: None, diagnosis: None }).sort_key()
    };
    if ascending {
        out.sort_by_cached_key(|&at| (key(at), rank(at)));
    } else {
        out.sort_by_cached_key(|&at| (std::cmp::Reverse(key(at)), rank(at)));
    }
    out
}
