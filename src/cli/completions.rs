//! `warpscope completions` and `warpscope man`, both generated from the definition of the command line.

use super::args::{Args, ManArgs};
use super::complete_values::add_completers;
use super::{Failure, print};
use clap::{Command, CommandFactory};
use clap_complete::env::Shells;
use clap_complete::{CompleteEnv, Shell};
use clap_mangen::Man;
use std::path::Path;

/// Returns the command line definition without the internal commands.
fn public_command() -> Command {
    let full = Args::command();
    let shown: Vec<Command> = full.get_subcommands().filter(|c| !c.is_hide_set()).cloned().collect();
    Command::new("warpscope")
        .version(env!("CARGO_PKG_VERSION"))
        .about(full.get_about().cloned().unwrap_or_default())
        .disable_help_subcommand(true)
        .args(full.get_arguments().cloned())
        .subcommands(shown)
}

/// Variable with which the script of a shell asks for completions; its value is the shell.
const ASKS: &str = "WARPSCOPE_COMPLETE";

/// Answers a shell that asks for completions, and ends the process; returns if no shell asks.
pub fn complete_if_asked() {
    if std::env::var_os(ASKS).is_some() {
        CompleteEnv::with_factory(|| add_completers(public_command())).var(ASKS).complete();
    }
}

/// Prints the completion script of a shell: it asks this program for the values.
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

/// Renders the man pages: file name and text in roff.
fn render_pages() -> std::io::Result<Vec<(String, Vec<u8>)>> {
    let page = |name: String, command: Command| -> std::io::Result<(String, Vec<u8>)> {
        let mut text = Vec::new();
        Man::new(command).render(&mut text)?;
        Ok((format!("{name}.1"), text))
    };
    let mut all = public_command();
    all.build();
    let commands: Vec<Command> = all.get_subcommands().cloned().collect();
    let mut out = vec![page("warpscope".to_owned(), all)?];
    for command in commands {
        let name = format!("warpscope-{}", command.get_name());
        out.push(page(name.clone(), command.display_name(name))?);
    }
    Ok(out)
}

/// Prints one man page, or writes all of them into a folder.
pub fn print_man(args: &ManArgs) -> Result<(), Failure> {
    let pages = render_pages()?;
    if let Some(folder) = &args.output {
        return write_pages(&pages, folder).map_err(|e| Failure::wrong(format!("{}: {e}", folder.display())));
    }
    let wanted = args.command.as_ref().map_or_else(|| "warpscope.1".to_owned(), |c| format!("warpscope-{c}.1"));
    match pages.iter().find(|p| p.0 == wanted) {
        Some((_, text)) => print::to_stdout(|out| out.write_all(text)),
        None => Err(Failure::wrong(format!(
            "there is no command {:?}; `warpscope --help` lists the commands",
            args.command.as_deref().unwrap_or_default()
        ))),
    }
}

fn write_pages(pages: &[(String, Vec<u8>)], folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    pages.iter().try_for_each(|(name, text)| std::fs::write(folder.join(name), text))
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
        let pages = render_pages().unwrap();
        for command in Args::command().get_subcommands().filter(|c| !c.is_hide_set()) {
            let name = format!("warpscope-{}.1", command.get_name());
            let (_, text) = pages.iter().find(|p| p.0 == name).unwrap_or_else(|| panic!("{name}"));
            let text = String::from_utf8(text.clone()).unwrap();
            assert!(text.contains(".SH SYNOPSIS") && text.contains(".SH OPTIONS"), "{name}");
        }
        assert!(pages.iter().all(|p| !p.0.contains("__")));
    }
}
