//! The command line: its definition, and the commands.

pub mod agent;
mod args;
mod complete_values;
mod completions;
pub mod debounce;
pub mod demo;
pub mod details;
pub mod diff;
pub mod doctor;
pub mod event_loop;
pub mod event_sources;
mod export;
mod handout;
pub mod help;
pub mod hints;
pub mod interrupt;
mod jobs;
mod lines;
mod live;
mod machine;
mod mcp;
mod memory;
pub mod metrics;
mod mouse;
pub mod print;
pub mod ranges;
mod ranks;
pub mod reason;
pub mod recipes;
mod recipes_args;
pub mod recorder;
pub mod rerun;
pub mod run_args;
pub mod runs;
pub mod save;
mod schema;
mod server_metrics;
mod settings;
mod status_timeout;
mod themes;
pub mod timeline;
mod timeline_args;
mod trace;
mod trace_args;
mod triage;
pub mod triage_args;
pub mod tty;
mod values;
mod which_args;
mod workers;

use crate::analysis::fuzzy::nearest_match;
use crate::config::{ColorMode, Config};
use crate::report::output::{self, Output};
use args::{Args, Command};
use clap::{CommandFactory, Parser};
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

pub use reason::Reason;

/// Exit code if what the command was asked to fail on was found, or if a recorded program failed.
pub const FOUND: u8 = 1;
/// Exit code for invalid arguments, or for something that is not in the report.
pub const WRONG: u8 = 2;
/// Exit code for an input file that cannot be read.
pub const UNREADABLE: u8 = 3;
/// Exit code if it could not be done: a tool or a permission is missing, a disk is full, a run has ended.
pub const UNABLE: u8 = 4;
/// Exit code after SIGINT, as shells report it.
pub const INTERRUPTED: u8 = 130;

/// An error for the user: one sentence and an exit code.
#[derive(Debug)]
pub struct Failure {
    pub text: String,
    pub code: u8,
    pub reason: Reason,
}

impl Failure {
    /// Creates an error about invalid arguments or input.
    pub fn wrong(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: WRONG, reason: Reason::Request }
    }

    /// Creates an error about values of options.
    pub fn usage(text: impl Into<String>) -> Self {
        Self { reason: Reason::Usage, ..Self::wrong(text) }
    }

    /// Creates an error about something that could not be done.
    pub fn unable(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: UNABLE, reason: Reason::Failed }
    }

    /// Reports what the command was asked to fail on; an empty text if the output says it already.
    pub fn found(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: FOUND, reason: Reason::Found }
    }

    /// Creates an error about a missing file; suggests a command, because a mistyped command is parsed as a file.
    pub fn no_such_file(file: &Path) -> Self {
        let name = file.to_string_lossy();
        let failure = |text| Self { text, code: UNREADABLE, reason: Reason::NoSuchFile };
        let commands = crate::report::REPORTS.iter().map(|r| r.0).chain(["demo", "themes", "recipes"]);
        match nearest_match(&name, commands).filter(|_| !name.contains(['/', '.'])) {
            Some(near) => {
                Self { reason: Reason::Usage, ..Self::wrong(format!("{name}: no such file; did you mean the command `{near}`?")) }
            }
            None => failure(format!("{name}: no such file")),
        }
    }
}

impl From<crate::import::ImportError> for Failure {
    fn from(e: crate::import::ImportError) -> Self {
        use crate::import::ImportError;
        let code = match &e {
            ImportError::Tool { .. } => UNABLE,
            ImportError::Cancelled { .. } => INTERRUPTED,
            _ => UNREADABLE,
        };
        Self { text: e.to_string(), code, reason: (&e).into() }
    }
}

impl From<std::io::Error> for Failure {
    fn from(e: std::io::Error) -> Self {
        Self { text: e.to_string(), code: UNABLE, reason: Reason::Failed }
    }
}

/// Runs the program.
pub fn main() -> ExitCode {
    completions::complete_if_asked();
    let json = reason::asks_for_json(std::env::args_os());
    let args = Args::try_parse().unwrap_or_else(|e| {
        if !e.use_stderr() {
            // Help and version are no errors, unless nobody gets to read them.
            let printed = e.print().and_then(|()| std::io::stdout().flush());
            if let Err(failed) = crate::report::tolerate_broken_pipe(printed) {
                print::error(&failed.to_string());
                std::process::exit(UNABLE.into());
            }
        }
        if e.kind() == clap::error::ErrorKind::UnknownArgument
            && let Some(failure) = mistyped_command()
        {
            print::error(&failure.text);
            if json {
                print_json_error(failure.reason, &failure.text, failure.code);
            }
            std::process::exit(failure.code.into());
        }
        if json && e.use_stderr() {
            let text = e.to_string();
            // The error, and what clap knows better; the rest is for people.
            let said = text.lines().take_while(|l| !l.starts_with("Usage:")).map(str::trim).filter(|l| !l.is_empty());
            let said: Vec<&str> = said.take_while(|l| !l.starts_with("For more information")).collect();
            print_json_error(Reason::Usage, said.join(" ").trim_start_matches("error: "), WRONG);
        }
        e.exit()
    });
    if let Ok(program) = std::env::current_exe() {
        crate::launch::end_tools_with_us(vec![program.into_os_string(), runs::supervisor::EXEC.into()]);
    }
    match run_command(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.text.is_empty() {
                print::error(&failure.text);
            }
            // A second document on stdout would make the first unreadable: the exit code tells.
            if json && !print::has_begun() {
                print_json_error(failure.reason, &failure.text, failure.code);
            }
            ExitCode::from(failure.code)
        }
    }
}

/// The error about a first word that is neither a command nor a file: its options belong to the command that was meant.
fn mistyped_command() -> Option<Failure> {
    let word = std::env::args_os().nth(1).filter(|w| !w.as_encoded_bytes().starts_with(b"-"))?;
    let is_command = Args::command().get_subcommands().any(|c| c.get_name_and_visible_aliases().iter().any(|n| *n == word));
    let path = Path::new(&word);
    (!is_command && !path.exists()).then(|| Failure::no_such_file(path))
}

/// Prints an error as JSON to stdout, for scripts that asked for JSON.
fn print_json_error(reason: Reason, message: &str, exit: u8) {
    // The reader may be gone, as with any other output.
    let _ = reason::write_error(&mut std::io::stdout(), reason, message, exit);
}

/// The words of a command line without its budget.
fn without_budget(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut value = false;
    for (at, word) in words.enumerate() {
        if std::mem::take(&mut value) || word.starts_with("--budget=") {
            continue;
        }
        value = word == "--budget";
        if !value {
            out.push(if at == 0 { "warpscope".to_owned() } else { word });
        }
    }
    out
}

/// Returns true if headings are in bold: on a terminal, or where `CLICOLOR_FORCE` says so; `--color none` and `NO_COLOR`
/// take precedence (<https://bixense.com/clicolors>).
fn shows_bold(color: Option<ColorMode>, variable: impl Fn(&str) -> Option<String>) -> bool {
    let is_set = |name: &str| variable(name).is_some_and(|v| !v.is_empty() && v != "0");
    if color == Some(ColorMode::None) || variable("NO_COLOR").is_some_and(|v| !v.is_empty()) {
        return false;
    }
    let terminal = || std::io::stdout().is_terminal() && ColorMode::detect_from_env(&variable) != ColorMode::None;
    is_set("CLICOLOR_FORCE") || (variable("CLICOLOR").is_none_or(|v| v != "0") && terminal())
}

fn run_command(args: &Args) -> Result<(), Failure> {
    let variable = |name: &str| std::env::var_os(name).map(|v| v.to_string_lossy().into_owned());
    let ascii = |chosen: Option<bool>| chosen.unwrap_or_else(|| !crate::config::utf8_locale(variable));
    print::set_ascii(ascii(args.ascii));
    output::set_output(Output {
        budget: args.budget.map(|tokens| tokens as usize * output::TOKEN),
        no_header: args.no_header,
        quiet: args.quiet,
        bold: shows_bold(args.color, variable),
        whole: without_budget(std::env::args_os().map(|w| w.to_string_lossy().into_owned())),
    });
    match &args.command {
        // These commands do not read the configuration: an invalid configuration must not stop a run.
        Some(Command::Supervise { run, detached, kept: true }) => return runs::supervisor::supervise_run(*run, *detached),
        Some(Command::Supervise { run, detached, kept: false }) => return runs::supervisor::keep_supervisor(*run, *detached),
        Some(Command::SampleMetrics { pid, url, started, detached: false }) => {
            return server_metrics::sample_in_background(*pid, url, *started);
        }
        Some(Command::SampleMetrics { pid, url, started, detached: true }) => return server_metrics::sample_until_end(*pid, url, *started),
        Some(Command::Exec { supervisor, argv }) => return Err(runs::supervisor::last_step(*supervisor, argv)),
        Some(Command::Foreground { run, explorer }) => return runs::tty::run_foreground(*run, *explorer),
        Some(Command::Terminal { modes, group }) => return tty::give_back(modes, *group),
        Some(Command::Help { topic }) => return help::print_help(topic.as_deref()),
        Some(Command::Completions { shell }) => return completions::print_completions(*shell),
        Some(Command::Man(args)) => return completions::print_man(args),
        // Replaces this process with the program.
        Some(Command::Trace(args)) => return Err(trace::exec_traced(args)),
        _ => {}
    }
    let config = Config::load(args.config.as_deref()).map_err(|e| Failure { reason: Reason::Config, ..Failure::wrong(e) })?;
    if let Some(theme) = &args.theme {
        // A wrong name must not be found out only in the explorer.
        themes::check_theme(theme)?;
    }
    let ascii = ascii(args.ascii.or(config.ascii));
    print::set_ascii(ascii);
    let nsys = args.nsys.clone().or_else(|| config.nsys.clone());
    match &args.command {
        Some(Command::Run(run)) => runs::run::start_run(args, run, &config),
        Some(Command::Watch(watch)) => runs::watch::watch_program(args, watch, &config),
        Some(Command::Attach(attach)) => runs::attach::attach_run(args, attach, &config),
        Some(Command::Runs(runs)) => runs::list::manage_runs(runs, nsys.as_deref()),
        Some(
            Command::Supervise { .. }
            | Command::Trace(_)
            | Command::Exec { .. }
            | Command::SampleMetrics { .. }
            | Command::Foreground { .. }
            | Command::Terminal { .. }
            | Command::Completions { .. }
            | Command::Man(_)
            | Command::Help { .. },
        ) => Ok(()),
        Some(Command::Triage(args)) => triage::print_triage(args, nsys.as_deref()),
        Some(Command::Ranks(args)) => ranks::compare_ranks(args, nsys.as_deref()),
        Some(Command::Digest(args)) => ranks::write_digests(args, nsys.as_deref()),
        Some(Command::Memory(args)) => memory::print_memory(args, nsys.as_deref()),
        Some(Command::Report(args)) => handout::write_report(args, nsys.as_deref()),
        Some(Command::Export(args)) => export::export_reports(args, nsys.as_deref()),
        Some(Command::Timeline(wanted)) => timeline::print_timeline(wanted, ascii, nsys),
        Some(Command::Events(args)) => timeline::print_events(args, nsys),
        Some(Command::Mcp(args)) => mcp::serve(args),
        Some(Command::Schema(args)) => schema::print_schema(args),
        Some(Command::Agent(args)) => agent::print_or_install(args),
        Some(Command::Lines(args)) => lines::print_lines(args, nsys),
        Some(Command::Ranges(args)) => ranges::print_ranges(args, nsys),
        Some(Command::Top(top)) => print::top(top, nsys),
        Some(Command::Launches(launches)) => print::launches(launches, nsys),
        Some(Command::Metrics(args)) => metrics::print_metrics(args),
        Some(Command::Doctor(doctor)) => doctor::print_checks(doctor, nsys.as_deref(), args.color, &config),
        Some(Command::Diff(args)) => diff::print_diff(args, nsys),
        Some(Command::Hints(args)) => hints::print_hints(args, nsys),
        Some(Command::Rerun(args)) => rerun::print_rerun(args, nsys),
        Some(Command::Recipes(args)) => match &args.command {
            Some(args::RecipesCommand::Check(check)) => jobs::check_jobs(check, nsys),
            None => recipes::print_recipes(args, &config),
        },
        Some(Command::Themes) => themes::list_themes(),
        Some(Command::Demo { opening, tour }) => event_loop::built_in(args, opening, *tour, &config),
        None if args.files.is_empty() && std::io::stdout().is_terminal() && std::io::stdin().is_terminal() => {
            event_loop::explore_library(args, &config)
        }
        None if args.files.is_empty() => {
            Err(Failure::wrong("name a report, or try `warpscope demo`; `warpscope --help` lists the files that open"))
        }
        None => event_loop::explore_files(args, &config),
    }
}
