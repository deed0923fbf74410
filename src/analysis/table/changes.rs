//! Columns for the comparison of two runs.

use super::column::{Column, Outputs};
use super::value::{Field, Unit, Value};
use crate::analysis::diff::{DiffRow, Fate, MATTERS, Side, StepChange};
use crate::analysis::workload_match::Work;
use crate::model::units::format_grouped;
use std::borrow::Cow;

fn total<'a>(side: Option<&Side>) -> Value<'a> {
    Value::maybe_int(side.map(|s| s.total))
}

fn count<'a>(side: Option<&Side>) -> Value<'a> {
    Value::maybe_int(side.map(|s| s.count))
}

/// A kernel in one of the runs.
const SIDE: &[Field] = &[
    Field::new("name", Unit::Text, "name in this run"),
    Field::new("count", Unit::Count, "number of launches"),
    Field::new("total_ns", Unit::Ns, "total duration"),
    Field::new("avg_ns", Unit::Ns, "mean duration"),
    Field::new("median_ns", Unit::Ns, "median duration"),
];

fn side_json(side: Option<&Side>) -> Value<'_> {
    side.map_or(Value::Absent, |s| {
        Value::Record(vec![
            ("name", Value::text(&s.name)),
            ("count", Value::int(s.count)),
            ("total_ns", Value::Int(s.total)),
            ("avg_ns", Value::Real(s.avg)),
            ("median_ns", Value::maybe_real(s.median)),
        ])
    })
}

/// Describes the launches that were compared; `None` if all were.
fn compared_launches(r: &DiffRow) -> Option<String> {
    r.work.describe_work().filter(|_| r.before.is_some() && r.after.is_some())
}

/// Probability from which a difference counts as none: the usual level for a single comparison.
const MAY_BE_CHANCE: f64 = 0.05;

fn verdict_word(r: &DiffRow) -> &'static str {
    match (r.is_significant(), r.p, r.work) {
        (true, _, Work::Uneven) => "other work?",
        (true, ..) if r.each_percent().unwrap_or(0.0) > 0.0 => "slower",
        (true, ..) => "faster",
        // Too likely by chance for a table of hundreds of kernels, and too unlikely to be called equal.
        (false, Some(p), _) if p < MAY_BE_CHANCE && r.each_percent().is_some_and(|c| c.abs() >= MATTERS) => "unclear",
        (false, Some(_), _) => "same",
        (false, None, Work::Other) if r.before.is_some() && r.after.is_some() => "other grids",
        (false, None, _) => "",
    }
}

/// Number of launches, per step where times are; of both runs if they differ.
fn launch_counts<'a>(r: &DiffRow) -> Value<'a> {
    let side = |count: f64| {
        if (count - count.round()).abs() < 0.05 { format_grouped(count.round() as i64) } else { format!("{count:.1}") }
    };
    let (before, after) = r.shown_launches();
    let (before, after) = (side(before), side(after));
    Value::Text(if before == after { before.into() } else { format!("{before} to {after}").into() })
}

/// A prediction and its outcome, in percent of the kernel's time.
const PROMISE: &[Field] = &[
    Field::new("id", Unit::Text, "identifier of the first run's hint"),
    Field::new("at_most_percent", Unit::Percent, "upper bound of the predicted gain"),
    Field::new("least_percent", Unit::Percent, "predicted gain, from"),
    Field::new("most_percent", Unit::Percent, "predicted gain, to"),
    Field::new("got_percent", Unit::Percent, "measured gain; negative if the kernel got slower"),
    Field::new("outcome", Unit::Text, "comparison of both, as an identifier"),
];

fn promise_json<'a>(r: &DiffRow) -> Value<'a> {
    let Some(promise) = &r.promise else { return Value::Absent };
    let percent = |share: f64| Value::Real((share * 10_000.0).round() / 100.0);
    let maybe = |share: Option<f64>| share.map_or(Value::Absent, percent);
    let outcome = r.hint_outcome().map(|(p, got)| p.classify_outcome(got).id());
    Value::Record(vec![
        ("id", Value::text(promise.id.id())),
        ("at_most_percent", percent(promise.gain.at_most)),
        ("least_percent", maybe(promise.gain.expected.map(|e| e.0))),
        ("most_percent", maybe(promise.gain.expected.map(|e| e.1))),
        ("got_percent", maybe(r.saved_fraction())),
        ("outcome", outcome.map_or(Value::Absent, Value::text)),
    ])
}

type ChangeColumn = Column<DiffRow>;

/// Ids of the columns of totals, which are replaced by columns of times per step if the numbers of steps differ.
const TOTALS: [&str; 4] = ["before_ns", "after_ns", "delta_ns", "delta_percent"];
const STEPS: [&str; 4] = ["step_before_ns", "step_after_ns", "step_delta_ns", "step_delta_percent"];

/// Columns for human readers: times per step, or else totals.
pub fn readable_columns(per_step: bool) -> Vec<ChangeColumn> {
    let other = if per_step { TOTALS } else { STEPS };
    columns().into_iter().filter(|c| !other.contains(&c.id)).collect()
}

fn step_time<'a>(r: &DiffRow, of: fn(&StepChange) -> f64) -> Value<'a> {
    Value::maybe_int(r.step.as_ref().map(|s| of(s).round() as i64))
}

pub fn columns() -> Vec<ChangeColumn> {
    const TEXTS: Outputs = Outputs::TEXT.with(Outputs::CSV);
    vec![
        ChangeColumn::new("name", "kernel", Unit::Text, "name in the second run, or else in the first", |r| Value::text(r.name())),
        ChangeColumn::new("fate", "", Unit::Text, "both, new, gone or renamed", |r| {
            let word = r.fate.display_name();
            Value::Labelled(Cow::Borrowed(word), Cow::Borrowed(if r.fate == Fate::Both { "" } else { word }))
        })
        .priority(3),
        ChangeColumn::new("before", "before", Unit::Record(SIDE), "the kernel in the first run", |r| side_json(r.before.as_ref()))
            .only(Outputs::JSON),
        ChangeColumn::new("after", "after", Unit::Record(SIDE), "the kernel in the second run", |r| side_json(r.after.as_ref()))
            .only(Outputs::JSON),
        ChangeColumn::new("before_ns", "before", Unit::Ns, "total duration in the first run", |r| total(r.before.as_ref()))
            .only(TEXTS)
            .priority(1)
            .on_screen(9),
        ChangeColumn::new("after_ns", "after", Unit::Ns, "total duration in the second run", |r| total(r.after.as_ref()))
            .only(TEXTS)
            .priority(1)
            .on_screen(9),
        ChangeColumn::new("delta_ns", "change", Unit::NsChange, "change of the total duration", |r| Value::Int(r.total_change()))
            .weighing()
            .on_screen(10),
        ChangeColumn::new("delta_percent", "in %", Unit::PercentChange, "change of the total duration, relative to the first run", |r| {
            Value::maybe_real(r.total_change_percent())
        })
        .on_screen(8),
        ChangeColumn::new(
            "step_before_ns",
            "step before",
            Unit::Ns,
            "mean time in a step of the first run, if the runs have different numbers of steps",
            |r| step_time(r, |s| s.before),
        )
        .priority(1)
        .on_screen(11),
        ChangeColumn::new("step_after_ns", "step after", Unit::Ns, "mean time in a step of the second run", |r| step_time(r, |s| s.after))
            .priority(1)
            .on_screen(11),
        ChangeColumn::new("step_delta_ns", "step change", Unit::NsChange, "change of the time in a step", |r| {
            step_time(r, |s| s.after - s.before)
        })
        .on_screen(11),
        ChangeColumn::new(
            "step_delta_percent",
            "in %",
            Unit::PercentChange,
            "change of the time in a step, relative to the first run",
            |r| Value::maybe_real(r.step_percent()),
        )
        .on_screen(8),
        ChangeColumn::new("count_before", "n before", Unit::Count, "launches in the first run", |r| count(r.before.as_ref()))
            .only(TEXTS)
            .priority(5),
        ChangeColumn::new("count_after", "n after", Unit::Count, "launches in the second run", |r| count(r.after.as_ref()))
            .only(TEXTS)
            .priority(5),
        ChangeColumn::new("launches", "launches", Unit::Text, "launches in both runs, per step where times are", launch_counts)
            .only(Outputs::NONE)
            .priority(5)
            .on_screen(17),
        ChangeColumn::new("median_percent", "median", Unit::PercentChange, "change of the median duration of comparable launches", |r| {
            Value::maybe_real(r.each_percent())
        })
        .priority(2)
        .on_screen(8),
        ChangeColumn::new("p", "p", Unit::Probability, "probability that the durations differ as much by chance (Mann–Whitney)", |r| {
            Value::maybe_real(r.p)
        })
        .only(Outputs::CSV.with(Outputs::JSON))
        .priority(4)
        .on_screen(7),
        ChangeColumn::new("significant", "", Unit::Flag, "the durations of single launches changed by more than chance", |r| {
            Value::Flag(r.is_significant(), verdict_word(r))
        })
        .priority(4),
        ChangeColumn::new("name_before", "was", Unit::Text, "name in the first run", |r| {
            Value::text(r.before.as_ref().map_or("", |b| &b.name))
        })
        .only(Outputs::CSV),
        ChangeColumn::new("promise", "", Unit::Text, "predicted and measured gain, in a sentence", |r| {
            Value::Text(r.hint_outcome().map_or_else(String::new, |(p, got)| p.describe_outcome(got)).into())
        })
        .only(Outputs::CSV),
        ChangeColumn::new("promise", "", Unit::Record(PROMISE), "predicted and measured gain, as an object", promise_json)
            .only(Outputs::JSON),
        ChangeColumn::new(
            "configuration",
            "",
            Unit::Text,
            "what differs between the launch configurations with the most time, if they are known",
            |r| r.config_text().map_or(Value::Absent, |text| Value::Text(text.into())),
        )
        .only(Outputs::CSV.with(Outputs::JSON)),
        ChangeColumn::new("compared", "", Unit::Text, "launches that the comparison covers, if not all of them", |r| {
            compared_launches(r).map_or(Value::Absent, |c| Value::Text(c.into()))
        })
        .only(Outputs::CSV.with(Outputs::JSON)),
    ]
}
