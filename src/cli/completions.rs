//! `warpscope completions`, generated from the definition of the command line.

use super::args::Args;
use super::complete_values::add_completers;
use super::failure::Failure;
use super::print;
use clap::{Command, CommandFactory};
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};

/// Returns the command-line definition without the internal commands.
pub fn public_command() -> Command {
    let full = Args::command();
    let shown: Vec<Command> = full.get_subcommands().filter(|c| !c.is_hide_set()).cloned().collect();
    Command::new("warpscope")
        .version(env!("CARGO_PKG_VERSION"))
        .about(full.get_about().cloned().unwrap_or_default())
        .disable_help_subcommand(true)
        .args(full.get_arguments().cloned())
        .subcommands(shown)
}

/// Variable with which a shell's script requests completions; its value is the shell.
const ASKS: &str = "WARPSCOPE_COMPLETE";

/// Answers a shell that requests completions and exits the process; otherwise returns.
pub fn complete_if_asked() {
    if std::env::var_os(ASKS).is_some() {
        CompleteEnv::with_factory(|| add_completers(public_command())).var(ASKS).complete();
    }
}

/// Prints a shell's completion script, which asks this program for the values.
pub fn print_completions(shell: Shell) -> Result<(), Failure> {
    let script = completion_script(shell)?;
    print::to_stdout(|out| out.write_all(&script))
}

fn completion_script(shell: Shell) -> Result<Vec<u8>, Failure> {
    let known = Shells::builtins();
    let Some(completer) = known.completer(&shell.to_string()) else {
        return Err(Failure::wrong(format!("no completions for {shell}")));
    };
    let mut script = Vec::new();
    completer.write_registration(ASKS, "warpscope", "warpscope", "warpscope", &mut script)?;
    Ok(script)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_has_a_script_that_asks_this_program() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Elvish, Shell::PowerShell] {
            let script = String::from_utf8(completion_script(shell).unwrap()).unwrap();
            assert!(script.contains(ASKS) && script.contains("warpscope"), "{shell}: {script}");
        }
    }

    #[test]
    fn every_command_has_a_man_page() {
        let pages = super::super::man::render_pages(public_command()).unwrap();
        for command in public_command().get_subcommands().filter(|c| !c.is_hide_set()) {
            let name = format!("warpscope-{}.1", command.get_name());
            let (_, text) = pages.iter().find(|p| p.0 == name).unwrap_or_else(|| panic!("{name}"));
            let text = String::from_utf8(text.clone()).unwrap();
            assert!(text.contains(".SH SYNOPSIS") && text.contains(".SH OPTIONS"), "{name}");
        }
        assert!(pages.iter().all(|p| !p.0.contains("__")));
    }
}
