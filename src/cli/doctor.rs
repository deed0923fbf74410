//! `warpscope doctor`: looks for obstacles to profiling on this machine.

use super::failure::Failure;
use super::values::word_parser;
use super::{interrupt, print};
use crate::config::{self, ColorMode, Config};
use crate::launch::doctor::{Check, Places, State, collect_facts, run_checks};
use crate::report::document::{CheckText, Renderer};
use crate::report::{PageFormat, doctor};
use std::io::IsTerminal;
use std::path::Path;

/// `warpscope doctor`.
#[derive(Debug, clap::Args)]
pub struct DoctorArgs {
    /// Output format [default: lines for people].
    #[arg(long, value_parser = word_parser::<PageFormat>())]
    pub format: Option<PageFormat>,
}

/// Prints obstacles to profiling on this machine. Changes nothing.
pub fn print_checks(args: &DoctorArgs, nsys: Option<&Path>, color: Option<ColorMode>, config: &Config) -> Result<(), Failure> {
    let machine = interrupt::read_cancellable(Path::new("doctor"), |cancel| {
        // If the tracer's object file cannot be written, the driver cannot be queried, so its state is reported as
        // unknown.
        let object = crate::launch::tracer::write_object(&crate::import::cache::default_folder()).ok();
        Ok(collect_facts(&Places { object, ..Places::from_environment() }, nsys, &|| cancel.is_cancelled()))
    })?;
    let mut checks = run_checks(&machine);
    checks.extend(check_terminal(color, config));
    let blocks = checks.iter().any(|c| c.state == State::Blocks);
    let texts: Vec<CheckText> = checks.into_iter().map(check_text).collect();
    print::to_stdout(|out| match args.format.unwrap_or(PageFormat::Page(Renderer::Text)) {
        PageFormat::Json => doctor::write_json(out, &texts),
        PageFormat::Csv => doctor::print_csv(out, &texts),
        PageFormat::Page(renderer) => doctor::document(texts).write(out, renderer, None),
    })?;
    if blocks { Err(Failure::found("")) } else { Ok(()) }
}

fn check_text(c: Check) -> CheckText {
    CheckText { id: c.id, state: c.state.as_str(), what: c.what, found: c.found, means: c.means, fix: c.fix }
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
