//! `runs list` and `runs show`: recorded runs.

use super::envelope::{Envelope, JsonDocument, NextJson};
use super::{Format, table};
use crate::analysis::hint_outcome::Promise;
use crate::analysis::table::{Column, Unit, Value};
use crate::library::Run;
use crate::model::text::escape_unsafe;
use crate::model::{Bytes, Nanos};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

#[derive(Serialize, JsonSchema)]
struct ReportJson<'a> {
    path: String,
    bytes: u64,
    owned: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<&'a str>,
}

#[derive(Serialize, JsonSchema)]
struct FindingJson<'a> {
    what: &'a str,
    fix: &'a str,
}

/// Gain predicted by the first hint on a kernel of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Promised {
    pub kernel: String,
    /// Method by which the kernel was measured.
    pub way: String,
    /// Mean time of a launch, ns.
    pub ns: f64,
    pub launches: u64,
    pub promise: Promise,
}

/// Outcome of a prediction made for an earlier run.
#[derive(Clone, Debug, PartialEq)]
pub struct Came {
    /// Number of the earlier run.
    pub run: i64,
    pub kernel: String,
    /// Mean time of a launch in that run and in this one, ns.
    pub before_ns: f64,
    pub after_ns: f64,
    pub promise: Promise,
}

impl Came {
    /// Share of the time that was saved; negative if the kernel has become slower.
    pub fn saved_share(&self) -> f64 {
        1.0 - self.after_ns / self.before_ns
    }
}

#[derive(Serialize, JsonSchema)]
struct ExpectedJson {
    least_percent: f64,
    most_percent: f64,
}

#[derive(Serialize, JsonSchema)]
struct PromisedJson<'a> {
    kernel: &'a str,
    way: &'a str,
    mean_ns: f64,
    launches: u64,
    hint: &'a str,
    gain_percent: f64,
    gain_expected: Option<ExpectedJson>,
}

#[derive(Serialize, JsonSchema)]
struct CameJson<'a> {
    run: i64,
    kernel: &'a str,
    hint: &'a str,
    gain_percent: f64,
    gain_expected: Option<ExpectedJson>,
    before_ns: f64,
    after_ns: f64,
    got_percent: f64,
    outcome: &'a str,
}

#[derive(Serialize, JsonSchema)]
pub(in crate::report) struct OneJson<'a> {
    #[serde(flatten)]
    run: RunJson<'a>,
    promises: Vec<PromisedJson<'a>>,
    outcomes: Vec<CameJson<'a>>,
}

impl JsonDocument for OneJson<'_> {
    const NAME: &'static str = "runs-show";
}

#[derive(Serialize, JsonSchema)]
pub(in crate::report) struct RunsJson<'a> {
    runs: Vec<RunJson<'a>>,
}

impl JsonDocument for RunsJson<'_> {
    const NAME: &'static str = "runs-list";
}

#[derive(Serialize, JsonSchema)]
struct RunJson<'a> {
    id: i64,
    state: &'a str,
    started: String,
    started_ms: i64,
    ended_ms: Option<i64>,
    tool: &'a str,
    tool_version: Option<&'a str>,
    recipe: Option<&'a str>,
    argv: &'a [String],
    program: &'a [String],
    env: &'a [(String, String)],
    directory: String,
    host: Option<&'a str>,
    git_commit: Option<&'a str>,
    git_dirty: Option<bool>,
    env_names: &'a [String],
    env_values: &'a [(String, String)],
    devices: Option<&'a str>,
    driver: Option<&'a str>,
    clocks_start_mhz: Option<&'a str>,
    clocks_end_mhz: Option<&'a str>,
    detached: bool,
    exit_code: Option<i32>,
    exit_signal: Option<i32>,
    findings: Vec<FindingJson<'a>>,
    parent: Option<i64>,
    /// The user's text on the run (`warpscope runs note`).
    note: &'a str,
    tags: &'a [String],
    reports: Vec<ReportJson<'a>>,
}

impl<'a> From<&'a Run> for RunJson<'a> {
    fn from(r: &'a Run) -> Self {
        let report = |x: &'a crate::library::Report| ReportJson {
            path: x.path.display().to_string(),
            bytes: x.bytes,
            owned: x.owned,
            missing: r.gone.contains(&x.path).then_some("the file no longer exists"),
        };
        Self {
            id: r.id,
            state: r.state.as_str(),
            started: format_moment(r.started_ms),
            started_ms: r.started_ms,
            ended_ms: r.ended_ms,
            tool: &r.tool,
            tool_version: r.tool_version.as_deref(),
            recipe: r.recipe.as_deref(),
            argv: &r.argv,
            program: &r.program,
            env: &r.env,
            directory: r.directory.display().to_string(),
            host: r.host.as_deref(),
            git_commit: r.git_commit.as_deref(),
            git_dirty: r.git_dirty,
            env_names: &r.env_names,
            env_values: &r.env_values,
            devices: r.devices.as_deref(),
            driver: r.driver.as_deref(),
            clocks_start_mhz: r.clocks_start.as_deref(),
            clocks_end_mhz: r.clocks_end.as_deref(),
            detached: r.detached,
            exit_code: r.exit_code,
            exit_signal: r.exit_signal,
            findings: r.findings.iter().map(|f| FindingJson { what: &f.what, fix: &f.fix }).collect(),
            parent: r.parent,
            note: &r.notes,
            tags: &r.tags,
            reports: r.reports.iter().map(report).collect(),
        }
    }
}

/// Formats a time in the system's time zone: `2026-11-20 14:03:07`.
pub fn format_moment(ms: i64) -> String {
    let Ok(at) = jiff::Timestamp::from_millisecond(ms) else { return String::new() };
    at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Formats a duration in milliseconds with units.
pub fn format_length(ms: i64) -> String {
    match ms / 1000 {
        s if s >= 3600 => format!("{} h {:02} min", s / 3600, s / 60 % 60),
        s if s >= 60 => format!("{} min {:02} s", s / 60, s % 60),
        _ => Nanos(ms.saturating_mul(1_000_000)).to_string(),
    }
}

/// Formats an elapsed time in whole seconds: `42 s`.
pub fn format_clock(ms: i64) -> String {
    if ms < 60_000 { format!("{} s", ms / 1000) } else { format_length(ms) }
}

/// Writes runs as JSON.
pub fn write_json(out: &mut dyn Write, runs: &[Run]) -> io::Result<()> {
    let next = runs.first().map(|r| {
        NextJson::new(
            ["warpscope", "runs", "show", &r.id.to_string(), "--format", "json"],
            "says how the newest run ended, and lists its reports",
        )
    });
    Envelope::default().then(next).write(out, &RunsJson { runs: runs.iter().map(RunJson::from).collect() })
}

/// Writes one run as JSON.
pub fn one_json(out: &mut dyn Write, run: &Run, (promised, came): &(Vec<Promised>, Vec<Came>)) -> io::Result<()> {
    let expected =
        |p: &Promise| p.gain.expected.map(|(least, most)| ExpectedJson { least_percent: least * 100.0, most_percent: most * 100.0 });
    let promised = promised.iter().map(|p| PromisedJson {
        kernel: &p.kernel,
        way: &p.way,
        mean_ns: p.ns,
        launches: p.launches,
        hint: p.promise.id.id(),
        gain_percent: p.promise.gain.at_most * 100.0,
        gain_expected: expected(&p.promise),
    });
    let came = came.iter().map(|c| CameJson {
        run: c.run,
        kernel: &c.kernel,
        hint: c.promise.id.id(),
        gain_percent: c.promise.gain.at_most * 100.0,
        gain_expected: expected(&c.promise),
        before_ns: c.before_ns,
        after_ns: c.after_ns,
        got_percent: c.saved_share() * 100.0,
        outcome: c.promise.classify_outcome(c.saved_share()).id(),
    });
    let reports = run.reports.iter().filter(|r| !run.gone.contains(&r.path));
    let next = reports.map(|r| {
        let path = r.path.display().to_string();
        let command = if path.ends_with(".ncu-rep") { "hints" } else { "triage" };
        NextJson::new(["warpscope", command, &path, "--format", "json"], "judges what was recorded")
    });
    Envelope::default().then(next).write(out, &OneJson { run: RunJson::from(run), promises: promised.collect(), outcomes: came.collect() })
}

/// A run with the data of its cells.
#[derive(Clone, Copy)]
pub struct RunRow<'a> {
    pub run: &'a Run,
    pub now_ms: i64,
}

type RunColumn<'a> = Column<RunRow<'a>>;

/// The columns, in order.
pub fn columns<'a>() -> Vec<RunColumn<'a>> {
    vec![
        RunColumn::new("id", "run", Unit::Id, "number of the run", |r| Value::Int(r.run.id)),
        RunColumn::new("program", "program", Unit::Text, "program with its arguments", |r| {
            Value::Text(escape_unsafe(&r.run.program.join(" ")).into_owned().into())
        }),
        RunColumn::new("state", "state", Unit::Text, "state of the recording", |r| Value::text(r.run.state.as_str())),
        RunColumn::new("tool", "profiler", Unit::Text, "profiler that recorded it", |r| Value::text(&r.run.tool)).priority(2).on_screen(9),
        RunColumn::new("recipe", "recipe", Unit::Text, "recipe that it was recorded with", |r| {
            r.run.recipe.as_deref().map_or(Value::Absent, Value::text)
        })
        .priority(4)
        .on_screen(12),
        RunColumn::new("started", "started", Unit::Text, "local time", |r| {
            let moment = format_moment(r.run.started_ms);
            let minutes = moment.get(..16).unwrap_or_default().to_owned();
            Value::Labelled(moment.into(), minutes.into())
        })
        .priority(1)
        .on_screen(16),
        RunColumn::new("seconds", "took", Unit::Seconds, "duration so far, or of the recording", |r| {
            let ms = r.run.duration_ms(r.now_ms);
            Value::Labelled(format!("{:.3}", ms as f64 / 1e3).into(), format_length(ms).into())
        })
        .priority(1)
        .on_screen(11),
        RunColumn::new("bytes", "reports", Unit::Bytes, "size of the reports", |r| match r.run.total_bytes() {
            _ if r.run.reports.is_empty() => Value::Labelled("0".into(), "–".into()),
            bytes => Value::int(bytes),
        })
        .priority(3)
        .on_screen(9),
        RunColumn::new("tags", "tags", Unit::Text, "the user's tags", |r| Value::Text(r.run.tags.join(" ").into()))
            .priority(5)
            .on_screen(14),
        RunColumn::new("notes", "note", Unit::Text, "the user's note", |r| Value::Text(escape_unsafe(&r.run.notes).into_owned().into()))
            .priority(5)
            .on_screen(24),
    ]
}

/// The columns that people read: without tags and notes if no run has them.
pub fn readable_columns<'a>(runs: &[Run]) -> Vec<RunColumn<'a>> {
    let (tags, notes) = (runs.iter().any(|r| !r.tags.is_empty()), runs.iter().any(|r| !r.notes.is_empty()));
    columns().into_iter().filter(|c| (c.id != "tags" || tags || !notes) && (c.id != "notes" || notes)).collect()
}

/// Prints runs in a format other than JSON; only CSV always has all columns.
pub fn print_rows(out: &mut dyn Write, runs: &[Run], now_ms: i64, format: Format, width: Option<usize>) -> io::Result<()> {
    let columns = if format == Format::Csv { columns() } else { readable_columns(runs) };
    table::print_rows(columns, runs.iter().map(|run| RunRow { run, now_ms }), out, format, width)
}

/// Facts about a run, as title and text; unknown ones are omitted.
pub fn run_facts(run: &Run, command: &str, now_ms: i64) -> Vec<(&'static str, String)> {
    let mut out: Vec<(&'static str, String)> = Vec::new();
    let mut add = |title, text: Option<String>| out.extend(text.filter(|t| !t.is_empty()).map(|t| (title, t)));
    add("run", Some(run.id.to_string()));
    add(
        "state",
        Some(if run.detached && run.state.is_live() { format!("{}, detached", run.state.as_str()) } else { run.state.as_str().to_owned() }),
    );
    for f in &run.findings {
        add("why", Some(if f.fix.is_empty() { f.what.clone() } else { format!("{} → {}", f.what, f.fix) }));
    }
    add("started", Some(format!("{}, took {}", format_moment(run.started_ms), format_length(run.duration_ms(now_ms)))));
    add("profiler", Some(format!("{} {}", run.tool, run.tool_version.as_deref().unwrap_or_default()).trim().to_owned()));
    add("recipe", run.recipe.clone());
    add("command", Some(command.to_owned()));
    add("folder", Some(run.directory.display().to_string()));
    let git = |c: &String| {
        let dirty = match run.git_dirty {
            Some(true) => ", with uncommitted changes",
            Some(false) => "",
            None => ", changes unknown",
        };
        format!("{}{dirty}", c.get(..12).unwrap_or(c))
    };
    add("commit", run.git_commit.as_ref().map(git));
    add("machine", run.host.clone());
    add("GPUs", run.devices.as_ref().map(|d| format!("{d}, driver {}", run.driver.as_deref().unwrap_or("?"))));
    let clocks = |start: &String| match &run.clocks_end {
        Some(end) => format!("{start} MHz at the start, {end} MHz at the end"),
        None => format!("{start} MHz at the start"),
    };
    add("SM clocks", run.clocks_start.as_ref().map(clocks));
    let pairs = |all: &[(String, String)]| all.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(" ");
    add("env set", Some(pairs(&run.env)));
    add("environment", Some(pairs(&run.env_values)));
    let code = match (run.exit_code, run.exit_signal) {
        (_, Some(signal)) => Some(format!("signal {signal}")),
        (Some(code), None) => Some(format!("code {code}")),
        _ => None,
    };
    add("exit", code);
    add("re-run of", run.parent.map(|p| format!("run {p}")));
    for r in &run.reports {
        let gone = if run.gone.contains(&r.path) { " (no longer exists)" } else { "" };
        add("report", Some(format!("{} ({}){gone}", r.path.display(), Bytes(r.bytes))));
    }
    add("tags", Some(run.tags.join(" ")));
    add("notes", Some(run.notes.clone()));
    out
}

/// Name and value of a fact.
type Fact = (&'static str, String);

/// The columns of a run's facts, in order.
pub fn fact_columns() -> Vec<Column<Fact>> {
    vec![
        Column::new("fact", "fact", Unit::Text, "name of the fact", |f: &Fact| Value::text(f.0)),
        Column::new("value", "value", Unit::Text, "its value, for people", |f| Value::text(&f.1)),
    ]
}

/// Prints all details of a run as rows.
pub fn print_facts(
    out: &mut dyn Write,
    run: &Run,
    (promised, came): &(Vec<Promised>, Vec<Came>),
    command: &str,
    now_ms: i64,
    format: Format,
) -> io::Result<()> {
    let facts = run_facts(run, command, now_ms).into_iter().chain(outcome_facts(promised, came));
    table::print_rows(fact_columns(), facts, out, format, None)
}

/// Outcomes of earlier predictions, and predictions for this run, as title and text; kernels with the largest savings
/// come first.
pub fn outcome_facts(promised: &[Promised], came: &[Came]) -> Vec<(&'static str, String)> {
    let saved = |c: &Came| (c.before_ns - c.after_ns).abs();
    let mut came: Vec<&Came> = came.iter().collect();
    came.sort_by(|a, b| saved(b).total_cmp(&saved(a)));
    let came = came.into_iter().map(|c| {
        let times = format!("{} → {}", Nanos::format_ns(c.before_ns), Nanos::format_ns(c.after_ns));
        ("outcome", format!("{}: {} (run {}: {times})", c.kernel, c.promise.describe_outcome(c.saved_share()), c.run))
    });
    let worth = |p: &Promised| p.ns * p.launches as f64 * p.promise.gain.at_most;
    let mut promised: Vec<&Promised> = promised.iter().collect();
    promised.sort_by(|a, b| worth(b).total_cmp(&worth(a)));
    let promised = promised.into_iter().map(|p| {
        let (id, gain) = (p.promise.id.id(), p.promise.gain.to_text());
        ("promise", format!("{}: {id} saves {gain} of {} ({})", p.kernel, Nanos::format_ns(p.ns), p.way))
    });
    came.chain(promised).collect()
}

/// Prints all details of a run.
pub fn print_run(
    out: &mut dyn Write,
    run: &Run,
    (promised, came): &(Vec<Promised>, Vec<Came>),
    command: &str,
    now_ms: i64,
) -> io::Result<()> {
    for (title, text) in run_facts(run, command, now_ms) {
        writeln!(out, "{title:<12} {}", escape_unsafe(&text))?;
    }
    let mut last = "";
    for (title, text) in outcome_facts(promised, came) {
        writeln!(out, "{:<12} {}", if title == last { "" } else { title }, escape_unsafe(&text))?;
        last = title;
    }
    Ok(())
}
