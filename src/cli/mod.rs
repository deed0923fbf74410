//! The command line: its definition and the commands.

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
pub mod failure;
mod file_list;
mod global_args;
mod handout;
pub mod help;
pub mod hints;
pub mod interrupt;
mod jobs;
mod lines;
mod live;
mod machine;
mod man;
mod mcp;
mod memory;
pub mod metrics;
mod mouse;
pub mod print;
pub mod ranges;
mod ranks;
pub mod reason;
pub mod recipes;
pub mod recorder;
pub mod rerun;
pub mod runs;
pub mod save;
mod schema;
mod scope_args;
mod server_metrics;
mod settings;
mod status_timeout;
mod themes;
mod time_window;
pub mod timeline;
mod trace;
mod triage;
pub mod tty;
mod values;
mod which_args;
mod workers;

use crate::config::{ColorMode, Config};
use crate::report::output::{self, Output};
use args::{Args, Command};
use clap::{CommandFactory, Parser};
use failure::{Failure, UNABLE, WRONG};
use reason::Reason;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

/// Runs the program.
pub fn main() -> ExitCode {
    completions::complete_if_asked();
    let json = reason::asks_for_json(std::env::args_os());
    let args = Args::try_parse().unwrap_or_else(|e| {
        if !e.use_stderr() {
            // Help and version are not errors unless they cannot be written.
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
            // Keep the error and clap's suggestion; the rest is only useful to human readers.
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
            // Do not print an error document after a part of the result: two documents on stdout could not be parsed.
            // The exit code reports the failure.
            if json && !print::has_begun() {
                print_json_error(failure.reason, &failure.text, failure.code);
            }
            ExitCode::from(failure.code)
        }
    }
}

/// Returns the error for a first word that is neither a command nor a file. It takes precedence over errors about
/// options, which belong to the intended command.
fn mistyped_command() -> Option<Failure> {
    let word = std::env::args_os().nth(1).filter(|w| !w.as_encoded_bytes().starts_with(b"-"))?;
    let is_command = Args::command().get_subcommands().any(|c| c.get_name_and_visible_aliases().iter().any(|n| *n == word));
    let path = Path::new(&word);
    (!is_command && !path.exists()).then(|| Failure::no_such_file(path))
}

/// Prints an error as JSON to stdout, for scripts that requested JSON.
fn print_json_error(reason: Reason, message: &str, exit: u8) {
    // The reader may be gone, as with any other output.
    let _ = reason::write_error(&mut std::io::stdout(), reason, message, exit);
}

/// Returns the words of a command line without the budget.
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

/// Returns true if headings are bold: on a terminal, or if `CLICOLOR_FORCE` is set; `--color none` and `NO_COLOR`
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
    print::set_ascii(ascii(args.global.ascii));
    output::set_output(Output {
        budget: args.global.budget.map(|tokens| tokens as usize * output::TOKEN),
        no_header: args.global.no_header,
        quiet: args.global.quiet,
        bold: shows_bold(args.global.color, variable),
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
        Some(Command::Help { topic }) => return help::print_help(topic.as_deref(), Args::command()),
        Some(Command::Completions { shell }) => return completions::print_completions(*shell),
        Some(Command::Man(args)) => return man::print_man(args, completions::public_command()),
        // Replaces this process with the program.
        Some(Command::Trace(args)) => return Err(trace::exec_traced(args)),
        _ => {}
    }
    let config = Config::load(args.global.config.as_deref()).map_err(|e| Failure { reason: Reason::Config, ..Failure::wrong(e) })?;
    if let Some(theme) = &args.global.theme {
        // Report an unknown theme here, before the explorer starts.
        themes::check_theme(theme)?;
    }
    let ascii = ascii(args.global.ascii.or(config.ascii));
    print::set_ascii(ascii);
    let nsys = args.global.nsys.clone().or_else(|| config.nsys.clone());
    match &args.command {
        Some(Command::Run(run)) => runs::run::start_run(&args.global, run, &config),
        Some(Command::Watch(watch)) => runs::watch::watch_program(&args.global, watch, &config),
        Some(Command::Attach(attach)) => runs::attach::attach_run(&args.global, attach, &config),
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
        Some(Command::Doctor(doctor)) => doctor::print_checks(doctor, nsys.as_deref(), args.global.color, &config),
        Some(Command::Diff(args)) => diff::print_diff(args, nsys),
        Some(Command::Hints(args)) => hints::print_hints(args, nsys),
        Some(Command::Rerun(args)) => rerun::print_rerun(args, nsys),
        Some(Command::Recipes(args)) => match &args.command {
            Some(recipes::RecipesCommand::Check(check)) => jobs::check_jobs(check, nsys),
            None => recipes::print_recipes(args, &config),
        },
        Some(Command::Themes) => themes::list_themes(),
        Some(Command::Demo { opening, tour }) => event_loop::built_in(&args.global, opening, *tour, &config),
        None if args.files.is_empty() && std::io::stdout().is_terminal() && std::io::stdin().is_terminal() => {
            event_loop::explore_library(&args.global, &config)
        }
        None if args.files.is_empty() => {
            Err(Failure::wrong("name a report, or try `warpscope demo`; `warpscope --help` lists the files that open"))
        }
        None => event_loop::explore_files(&args.files, &args.global, &config),
    }
}
