//! `rerun`: the command that profiles a launch again, either explained, for a shell, as a script or as JSON.

use super::document::{Block, Document, KeyValue};
use super::envelope::{Envelope, JsonDocument, NextJson};
use crate::model::text::escape_unsafe;
use crate::model::{Bytes, Nanos, Profile, config, units};
use crate::rerun::{Alternative, CommandPart, Cost, Plan, Rerun, Selects, Warning, shell};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

#[derive(Debug, Serialize, JsonSchema)]
struct SelectsJson<'a> {
    kernel: &'a str,
    demangled: Option<&'a str>,
    launch: Option<u32>,
    nth: u64,
    grid: Option<[u32; 3]>,
    block: Option<[u32; 3]>,
    duration_ns: i64,
}

impl<'a> From<&'a Selects> for SelectsJson<'a> {
    fn from(s: &'a Selects) -> Self {
        Self {
            kernel: &s.kernel,
            demangled: s.demangled.as_deref(),
            launch: s.launch.map(|l| l.0),
            nth: s.nth,
            grid: s.grid,
            block: s.block,
            duration_ns: s.duration.0,
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
struct WarningJson<'a> {
    id: &'a str,
    severity: &'a str,
    text: &'a str,
    fix: Option<&'a str>,
    inexact: bool,
}

impl<'a> From<&'a Warning> for WarningJson<'a> {
    fn from(w: &'a Warning) -> Self {
        Self { id: w.id, severity: w.severity.as_str(), text: &w.text, fix: w.fix.as_deref(), inexact: w.inexact }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
struct AlternativeJson<'a> {
    why: &'a str,
    argv: &'a [String],
    shell: String,
    better: bool,
}

impl<'a> From<&'a Alternative> for AlternativeJson<'a> {
    fn from(a: &'a Alternative) -> Self {
        Self { why: &a.why, argv: &a.argv, shell: shell::command_line(&a.argv), better: a.better }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
struct CostJson {
    passes: Option<u32>,
    passes_at_most: bool,
    seconds: Option<f64>,
    report_bytes: Option<u64>,
    program_runs: u32,
}

impl From<&Cost> for CostJson {
    fn from(c: &Cost) -> Self {
        let seconds = c.seconds.map(|s| (s * 1000.0).round() / 1000.0);
        Self { passes: c.passes, passes_at_most: c.at_most, seconds, report_bytes: c.bytes, program_runs: c.runs }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct PartJson<'a> {
    words: &'a [String],
    why: &'a str,
}

impl<'a> From<&'a CommandPart> for PartJson<'a> {
    fn from(p: &'a CommandPart) -> Self {
        Self { words: &p.words, why: &p.why }
    }
}

/// JSON form of one command. `selects` is for scripts that profile one launch; `all` has every launch that
/// the command selects, in the order of the results.
#[derive(Debug, Serialize, JsonSchema)]
struct CommandJson<'a> {
    tool: &'a str,
    argv: Vec<String>,
    shell: String,
    selects: Option<SelectsJson<'a>>,
    all: Vec<SelectsJson<'a>>,
    exact: bool,
    runnable: bool,
    base: &'a str,
    directory: Option<&'a str>,
    output: String,
    cost: CostJson,
    parts: Vec<PartJson<'a>>,
    wrapper: Option<&'a str>,
    alternatives: Vec<AlternativeJson<'a>>,
    warnings: Vec<WarningJson<'a>>,
}

impl<'a> From<&'a Rerun> for CommandJson<'a> {
    fn from(r: &'a Rerun) -> Self {
        Self {
            tool: r.tool,
            argv: r.argv(),
            shell: r.shell_line(),
            selects: r.selects.first().map(Into::into),
            all: r.selects.iter().map(Into::into).collect(),
            exact: r.is_exact(),
            runnable: r.is_runnable(),
            base: r.base.as_str(),
            directory: r.directory.as_deref(),
            output: r.report_path(),
            cost: (&r.cost).into(),
            parts: r.parts.iter().map(Into::into).collect(),
            wrapper: r.wrapper.as_deref(),
            alternatives: r.alternatives.iter().map(Into::into).collect(),
            warnings: r.warnings.iter().map(Into::into).collect(),
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::report) struct PlanJson<'a> {
    #[serde(flatten)]
    first: Option<CommandJson<'a>>,
    /// The remaining commands, if one command cannot select all launches.
    more: Vec<CommandJson<'a>>,
    /// Directory for the reports of several commands; it must exist.
    folder: Option<&'a str>,
}

impl JsonDocument for PlanJson<'_> {
    const NAME: &'static str = "rerun";
}

/// Writes a plan as JSON: the fields of the first command, and the other commands under `more`.
pub fn write_json(out: &mut dyn Write, profile: &Profile, plan: &Plan) -> io::Result<()> {
    let mut commands = plan.commands.iter().map(CommandJson::from);
    let document = PlanJson { first: commands.next(), more: commands.collect(), folder: plan.folder.as_deref() };
    let runnable = plan.commands.iter().filter(|c| c.is_runnable() && !c.argv().is_empty());
    let next = runnable.map(|c| NextJson::new(c.argv(), "profiles the selected launches, where the program ran"));
    Envelope::of_profile(profile).then(next).write(out, &document)
}

/// Writes the commands for a shell, one per line; if only a wrapper script is correct, writes that script.
pub fn shell_lines(out: &mut dyn Write, plan: &Plan, for_terminal: bool) -> io::Result<()> {
    if let Some(folder) = &plan.folder {
        // ncu does not create directories.
        writeln!(out, "mkdir -p -- {}", shell::quote(folder))?;
    }
    for command in &plan.commands {
        let text = command.wrapper.clone().unwrap_or_else(|| command.shell_line());
        if for_terminal {
            for line in text.lines() {
                writeln!(out, "{}", escape_unsafe(line))?;
            }
        } else {
            writeln!(out, "{text}")?;
        }
    }
    Ok(())
}

/// Maximum number of selected launches in human-readable output.
const MOST_SELECTED: usize = 12;

/// Short statement of how exactly a command selects the launches.
fn exactness_text(command: &Rerun) -> &'static str {
    if command.selects.is_empty() {
        "a range, not a launch"
    } else if command.is_exact() {
        "exact: nothing in the report contradicts it, provided the program does the same again"
    } else {
        "not exact: see the warnings"
    }
}

/// Describes a launch on a single line.
pub fn describe_launch(s: &Selects) -> String {
    let dims = |d: Option<[u32; 3]>| d.map_or_else(|| "?".to_owned(), config::format_dim3);
    let nth = match s.skipped {
        0 => format!("nth {}, from 0", units::format_grouped(s.nth)),
        skipped => format!("after {} that the report's own command skipped", units::format_grouped(skipped)),
    };
    let which = s.launch.map_or_else(|| format!("number {}", s.nth), |l| format!("launch {} ({nth})", units::format_grouped(l.0)));
    let shape =
        if s.grid.is_some() || s.block.is_some() { format!(" · grid {} × block {}", dims(s.grid), dims(s.block)) } else { String::new() };
    format!("{which}{shape} · {}", s.duration)
}

/// Cost of a command on a single line; `None` if the cost is unknown.
pub fn cost_text(c: &Cost) -> Option<String> {
    let (passes, seconds, bytes) = (c.passes?, c.seconds?, c.bytes?);
    let most = if c.at_most { "at most " } else { "" };
    let program = if c.runs > 1 { format!("{} runs of the program", c.runs) } else { "the program".to_owned() };
    Some(format!(
        "{most}{} · about {} on top of {program} · report {}",
        crate::model::units::format_count(passes, "pass"),
        Nanos::format_ns(seconds * 1e9),
        Bytes(bytes)
    ))
}

/// A plan for people: selected launches, parts of the command with their purpose, cost, warnings, and other commands.
pub fn document(plan: &Plan) -> Document<'static> {
    let mut blocks = Vec::new();
    if let Some(folder) = &plan.folder {
        let seconds: Option<f64> = plan.commands.iter().map(|c| c.cost.seconds).sum();
        let runs: u32 = plan.commands.iter().map(|c| c.cost.runs).sum();
        let cost = seconds.map(|s| format!("in all about {} on top of {runs} runs of the program", Nanos::format_ns(s * 1e9)));
        let create = format!("{} commands; create the directory first: mkdir -p -- {}", plan.commands.len(), shell::quote(folder));
        blocks.push(Block::List(cost.into_iter().chain([create]).collect()));
    }
    for (i, command) in plan.commands.iter().enumerate() {
        if plan.commands.len() > 1 {
            blocks.push(Block::Heading(3, format!("command {} of {}", i + 1, plan.commands.len())));
        }
        append_command(command, &mut blocks);
    }
    Document { blocks }
}

fn append_command(command: &Rerun, blocks: &mut Vec<Block<'static>>) {
    let mut facts = vec![KeyValue::new("is", exactness_text(command))];
    let selected = command.selects.iter().take(MOST_SELECTED);
    facts.extend(selected.map(|s| KeyValue::new("selects", format!("{} · {}", s.kernel, describe_launch(s)))));
    if command.selects.len() > MOST_SELECTED {
        facts.push(KeyValue::new("", format!("and {} more (--format json lists all)", command.selects.len() - MOST_SELECTED)));
    }
    facts.extend(command.directory.as_ref().map(|d| KeyValue::new("in", d)));
    facts.extend(cost_text(&command.cost).map(|text| KeyValue::new("costs", text)));
    blocks.push(Block::KeyValues(facts));
    blocks.push(match &command.wrapper {
        Some(wrapper) => Block::Script(wrapper.clone()),
        None => Block::Explained(command.parts.clone()),
    });
    if !command.warnings.is_empty() {
        blocks.push(Block::KeyValues(command.warnings.iter().map(|w| KeyValue::new(w.severity.as_str(), w.to_sentence())).collect()));
    }
    blocks.extend(command.alternatives.iter().map(|a| {
        let key = if a.better { "better" } else { "or" };
        Block::KeyValues(vec![KeyValue::new(key, &a.why).with_command(&a.argv)])
    }));
}
