//! `warpscope agent`: a page for coding agents, printed or written as a skill.

use super::failure::Failure;
use super::{help, print};
use std::path::{Path, PathBuf};

/// `warpscope agent`.
#[derive(Debug, clap::Args)]
pub struct AgentArgs {
    /// Write the page as a skill, `DIR/warpscope/SKILL.md` [default: ~/.claude/skills].
    #[arg(long, value_name = "DIR", num_args = 0..=1)]
    pub install: Option<Option<PathBuf>>,
}

/// Name of the skill and its folder.
const NAME: &str = "warpscope";

/// Description in the skill, from which an agent decides when to read the page.
const ABOUT: &str = "Profile GPU programs (CUDA, PyTorch, vLLM, ROCm): find what limits a run, which kernel or line of code takes the time, and \
                     profile one kernel launch again. Use when a GPU program is slow, or when there is a profile of nsys, ncu, torch.profiler or rocprofv3.";
/// Default folder for skills, inside the home folder.
const FOLDER: &str = ".claude/skills";

/// Prints the page or, if `install` is set, writes it as a skill.
pub fn print_or_install(args: &AgentArgs) -> Result<(), Failure> {
    let page = help::find_topic("agent").unwrap_or_default();
    let Some(folder) = &args.install else { return print::to_stdout(|out| out.write_all(page.as_bytes())) };
    let folder = match folder {
        Some(folder) => folder.clone(),
        None => std::env::var_os("HOME")
            .map(|home| PathBuf::from(home).join(FOLDER))
            .ok_or_else(|| Failure::wrong("HOME is not set: name a folder, `--install DIR`"))?,
    };
    let file = install_skill(&folder, page).map_err(|e| Failure::unable(format!("{}: {e}", folder.display())))?;
    print::lines(&[format!("wrote {}", file.display())])
}

/// Writes the page as a skill: a folder with a `SKILL.md` that begins with its name and when to use it.
fn install_skill(folder: &Path, page: &str) -> std::io::Result<PathBuf> {
    let folder = folder.join(NAME);
    std::fs::create_dir_all(&folder)?;
    let file = folder.join("SKILL.md");
    std::fs::write(&file, format!("---\nname: {NAME}\ndescription: {ABOUT}\n---\n\n{page}"))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_has_its_name_and_when_to_use_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = install_skill(folder.path(), "# Page\n").unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        let (head, page) = text.strip_prefix("---\n").unwrap().split_once("---\n\n").unwrap();
        assert_eq!(page, "# Page\n");
        assert!(head.starts_with("name: warpscope\ndescription: Profile GPU programs"), "{head}");
        assert!(head.lines().count() == 2 && head.len() < 1024, "{head}");
    }
}
