//! `warpscope doctor`: looks for obstacles to profiling on this machine.

use super::failure::Failure;
use super::values::word_parser;
use super::{interrupt, print};
use crate::analysis::table::{Column, Unit, Value};
use crate::config::{self, ColorMode, Config};
use crate::launch::doctor::{Check, Places, State, collect_facts, run_checks};
use crate::model::text::escape_unsafe;
use crate::model::units::format_count;
use crate::report::envelope::{Document, Envelope};
use crate::report::{Format, table};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{IsTerminal, Write};
use std::path::Path;

/// `warpscope doctor`.
#[derive(Debug, clap::Args)]
pub struct DoctorArgs {
    /// Output format [default: lines for people].
    #[arg(long, value_parser = word_parser::<Format>())]
    pub format: Option<Format>,
}

#[derive(Serialize, JsonSchema)]
struct CheckJson<'a> {
    id: &'a str,
    what: &'a str,
    state: &'a str,
    found: &'a str,
    means: &'a str,
    fix: Option<&'a str>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct DoctorJson<'a> {
    checks: Vec<CheckJson<'a>>,
    blocks: usize,
    warnings: usize,
}

impl Document for DoctorJson<'_> {
    const NAME: &'static str = "doctor";
}

/// The columns, in order.
fn columns() -> Vec<Column<Check>> {
    vec![
        Column::new("id", "check", Unit::Text, "identifier of the check", |c: &Check| Value::text(c.id)),
        Column::new("state", "state", Unit::Text, "ok, warning, blocks or unknown", |c| Value::text(c.state.as_str())),
        Column::new("what", "what", Unit::Text, "subject of the check", |c| Value::text(c.what)),
        Column::new("found", "found", Unit::Text, "state of the machine", |c| Value::text(&c.found)),
        Column::new("means", "means", Unit::Text, "consequence of a problem", |c| Value::text(&c.means)),
        Column::new("fix", "fix", Unit::Text, "command or step that solves it", |c| c.fix.as_deref().map_or(Value::Absent, Value::text)),
    ]
}

/// Prints obstacles to profiling on this machine. Changes nothing.
pub fn print_checks(args: &DoctorArgs, nsys: Option<&Path>, color: Option<ColorMode>, config: &Config) -> Result<(), Failure> {
    let machine = interrupt::read_cancellable(Path::new("doctor"), |cancel| {
        // If the object cannot be written, the driver is not queried, and its state stays unknown.
        let object = crate::launch::tracer::write_object(&crate::import::cache::default_folder()).ok();
        Ok(collect_facts(&Places { object, ..Places::from_environment() }, nsys, &|| cancel.is_cancelled()))
    })?;
    let mut checks = run_checks(&machine);
    checks.extend(check_terminal(color, config));
    let count = |s: State| checks.iter().filter(|c| c.state == s).count();
    let (blocks, warnings) = (count(State::Blocks), count(State::Warning));
    print::to_stdout(|out| match args.format {
        Some(Format::Json) => {
            let rows = checks.iter().map(|c| CheckJson {
                id: c.id,
                what: c.what,
                state: c.state.as_str(),
                found: &c.found,
                means: &c.means,
                fix: c.fix.as_deref(),
            });
            Envelope::default().write(out, &DoctorJson { checks: rows.collect(), blocks, warnings })
        }
        Some(format @ (Format::Csv | Format::Md)) => table::print_rows(columns(), checks.iter(), out, format, None),
        _ => print_text(out, &checks, (blocks, warnings)),
    })?;
    if blocks > 0 { Err(Failure::found("")) } else { Ok(()) }
}

/// Checks the terminal features that the explorer uses.
fn check_terminal(color: Option<ColorMode>, config: &Config) -> Vec<Check> {
    let variable = |name: &str| std::env::var(name).ok();
    let ok = |id, what, state, found: String, means: &str, fix: Option<&str>| Check {
        id,
        what,
        state,
        found,
        means: means.to_owned(),
        fix: fix.map(str::to_owned),
    };
    if !std::io::stdout().is_terminal() {
        return vec![ok(
            "terminal",
            "terminal",
            State::Unknown,
            "stdout is not a terminal".to_owned(),
            "colours and characters depend on the terminal it is opened in",
            None,
        )];
    }
    let mode = color.or(config.color).unwrap_or_else(|| ColorMode::detect_from_env(variable));
    let mut out =
        vec![ok("colours", "colours", State::Ok, ColorMode::ALL.iter().find(|(_, m)| *m == mode).map_or("", |m| m.0).to_owned(), "", None)];
    out.push(if config::utf8_locale(variable) {
        ok("utf-8", "characters", State::Ok, "UTF-8".to_owned(), "", None)
    } else {
        let means = "bars and marks are drawn with ASCII characters";
        ok(
            "utf-8",
            "characters",
            State::Warning,
            "the locale is not UTF-8".to_owned(),
            means,
            Some("export LANG=C.UTF-8, if the terminal can show it"),
        )
    });
    let inside = variable("TMUX").is_some();
    out.push(if inside {
        let means = "copying works inside tmux only if tmux passes it through";
        ok(
            "clipboard",
            "copying (OSC 52)",
            State::Unknown,
            "inside tmux".to_owned(),
            means,
            Some("tmux set -g set-clipboard on; tmux set -g allow-passthrough on"),
        )
    } else {
        ok("clipboard", "copying (OSC 52)", State::Ok, "the terminal is asked directly".to_owned(), "", None)
    });
    out
}

fn print_text(out: &mut dyn Write, checks: &[Check], (blocks, warnings): (usize, usize)) -> std::io::Result<()> {
    for c in checks {
        writeln!(out, "{:<8}  {:<34}  {}", c.state.as_str(), c.what, escape_unsafe(&c.found))?;
        if !c.means.is_empty() {
            writeln!(out, "{:<8}  {}", "", escape_unsafe(&c.means))?;
        }
        if let Some(fix) = &c.fix {
            writeln!(out, "{:<8}  → {}", "", escape_unsafe(fix))?;
        }
    }
    match (blocks, warnings) {
        (0, 0) => writeln!(out, "\nno problems found"),
        (0, w) => writeln!(out, "\nno blockers; {}", format_count(w, "warning")),
        (b, w) => {
            writeln!(out, "\n{} that block{}, {}", format_count(b, "thing"), if b == 1 { "s" } else { "" }, format_count(w, "warning"))
        }
    }
}
