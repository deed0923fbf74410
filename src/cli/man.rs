//! `warpscope man`, generated from the definition of the command line.

use super::failure::Failure;
use super::print;
use clap::Command;
use clap_mangen::Man;
use std::path::{Path, PathBuf};

/// `warpscope man`.
#[derive(Debug, clap::Args)]
pub struct ManArgs {
    /// The command; without one, the program itself.
    pub command: Option<String>,
    /// Write all pages into this folder instead.
    #[arg(long, short = 'o', value_name = "DIR", conflicts_with = "command")]
    pub output: Option<PathBuf>,
}

/// Renders the man pages: file name and text in roff.
pub fn render_pages(mut all: Command) -> std::io::Result<Vec<(String, Vec<u8>)>> {
    let page = |name: String, command: Command| -> std::io::Result<(String, Vec<u8>)> {
        let mut text = Vec::new();
        Man::new(command).render(&mut text)?;
        Ok((format!("{name}.1"), text))
    };
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
/// `all` is the definition of the command line.
pub fn print_man(args: &ManArgs, all: Command) -> Result<(), Failure> {
    let pages = render_pages(all)?;
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
