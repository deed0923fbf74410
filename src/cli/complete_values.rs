//! Values that shells complete: kernels of the named report, recorded runs, themes, recipes and help topics.

use super::{help, recipes};
use crate::config::{self, Config};
use crate::import::{self, Job, Wants};
use crate::library::{Library, store};
use crate::model::units::format_count;
use crate::report::runs::format_moment;
use crate::ui::theme;
use clap::Command;
use clap_complete::CompletionCandidate;
use clap_complete::engine::ArgValueCompleter;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;

/// Returns the values that start with a word typed so far.
type Completer = fn(&OsStr) -> Vec<CompletionCandidate>;

/// Maximum number of values to offer.
const MOST: usize = 200;

/// Adds completers to the arguments whose values depend on the machine or on a report.
pub fn add_completers(mut command: Command) -> Command {
    let known: Vec<(clap::Id, Completer)> = command
        .get_arguments()
        .filter_map(|a| {
            let complete: Completer = match a.get_id().as_str() {
                "kernel" => complete_kernel,
                "theme" => complete_theme,
                "recipe" => complete_recipe,
                "topic" => complete_topic,
                "run" => complete_run,
                _ => return None,
            };
            Some((a.get_id().clone(), complete))
        })
        .collect();
    for (id, complete) in known {
        command = command.mut_arg(id, |arg| arg.add(ArgValueCompleter::new(complete)));
    }
    let names: Vec<String> = command.get_subcommands().map(|c| c.get_name().to_owned()).collect();
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, add_completers))
}

fn offer(current: &OsStr, values: impl IntoIterator<Item = (String, String)>) -> Vec<CompletionCandidate> {
    let typed = current.to_string_lossy();
    let fitting = values.into_iter().filter(|(value, _)| value.starts_with(&*typed));
    fitting.take(MOST).map(|(value, about)| CompletionCandidate::new(value).help(Some(about.into()))).collect()
}

/// Kernels of the first file on the command line (skipping this program, `--`, and the program being completed),
/// longest total time first.
fn complete_kernel(current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(file) = std::env::args_os().skip(3).map(PathBuf::from).find(|w| w.is_file()) else { return Vec::new() };
    let Ok(profile) = import::open_profile(&file, &Job::new(Wants::TABLE, &|_| {})) else { return Vec::new() };
    let mut times: BTreeMap<&str, (i64, u64)> = BTreeMap::new();
    for row in 0..profile.launches.len() {
        if let Some(kernel) = profile.kernels.get(profile.launches.kernel(row).0 as usize) {
            let known = times.entry(kernel.function()).or_default();
            *known = (known.0.saturating_add(profile.launches.duration(row)), known.1 + 1);
        }
    }
    let mut kernels: Vec<(&str, (i64, u64))> = times.into_iter().collect();
    kernels.sort_by_key(|k| std::cmp::Reverse(k.1.0));
    offer(current, kernels.into_iter().map(|(name, (_, count))| (name.to_owned(), format_count(count, "launch"))))
}

fn complete_theme(current: &OsStr) -> Vec<CompletionCandidate> {
    let names = theme::Library::new(config::load_themes(config::config_folder().as_deref())).names();
    offer(current, names.into_iter().map(|name| (name, String::new())))
}

fn complete_recipe(current: &OsStr) -> Vec<CompletionCandidate> {
    let users = Config::load(None).ok().and_then(|config| recipes::user_recipes(&config).ok()).unwrap_or_default();
    offer(current, crate::rerun::recipes::all_recipes(&users).map(|r| (r.id.to_owned(), format!("{}: {}", r.tool, r.about))))
}

fn complete_topic(current: &OsStr) -> Vec<CompletionCandidate> {
    offer(current, help::TOPICS.iter().map(|(name, _)| ((*name).to_owned(), String::new())))
}

/// Numbers of runs, newest first.
fn complete_run(current: &OsStr) -> Vec<CompletionCandidate> {
    let runs = Library::open().and_then(|library| library.runs()).unwrap_or_default();
    let now = store::now_ms();
    let about = |r: &crate::library::Run| {
        let recent = now.saturating_sub(r.started_ms) < 86_400_000;
        let when = format_moment(r.started_ms);
        let when = if recent { when.get(11..16).unwrap_or_default().to_owned() } else { when.get(..10).unwrap_or_default().to_owned() };
        format!("{when} {}", r.program.join(" "))
    };
    offer(current, runs.iter().map(|r| (r.id.to_string(), about(r))))
}
