//! Reports of several processes. ncu counts across all processes that it follows, which is deterministic if they take
//! turns and racy if they run concurrently. If they are concurrent, the command selects one by its executable or by its
//! launcher's rank.

use super::launch_skip::{self, Count};
use super::launchers::{self, Launched};
use super::{CommandPart, PartId, ranges, shell};
use crate::analysis::ranks::in_name;
use crate::model::Profile;
use std::collections::{BTreeMap, BTreeSet};

/// Processes that ncu's count covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Only one process launches candidates.
    One,
    /// This many processes launch candidates, strictly one after another.
    InTurn(usize),
    /// Several processes launch concurrently, but the selected one has a unique executable name.
    ByName(String),
    /// Several processes run concurrently, in the report or beside it; the selected one has this rank.
    AtOnce {
        /// Processes that launch candidates; 1 if the report holds one rank of a job.
        processes: usize,
        /// Rank of the selected process.
        rank: u32,
        /// Reason for a guessed rank; `None` if the user set the rank.
        because: Option<&'static str>,
    },
}

/// Returns the scope for launches of one process.
pub fn resolve_scope(profile: &Profile, count: &Count, pid: u32, rank: Option<u32>) -> Scope {
    let pids: BTreeSet<u32> = count.by_process.keys().copied().collect();
    if pids.len() < 2 {
        return if ranges::has_peers(profile) { one_of_several_ranks(profile, pid, rank) } else { Scope::One };
    }
    if launch_skip::one_after_another(profile, &pids) {
        return Scope::InTurn(pids.len());
    }
    let names: BTreeMap<u32, &str> = profile
        .processes
        .iter()
        .filter_map(|p| Some((p.pid, p.name.as_deref()?.rsplit('/').next()?)))
        .filter(|(_, name)| !name.is_empty() && !name.contains([',', ':']))
        .collect();
    if let Some(mine) = names.get(&pid)
        && profile.processes.len() == names.len()
        && names.values().filter(|n| *n == mine).count() == 1
    {
        return Scope::ByName((*mine).to_owned());
    }
    let (rank, because) = match rank {
        Some(rank) => (rank, None),
        None => {
            let (rank, because) = guess_rank(profile, &pids, pid);
            (rank, Some(because))
        }
    };
    Scope::AtOnce { processes: pids.len(), rank, because }
}

/// Scope of a report that holds one rank of a job: the program does not start without the others.
fn one_of_several_ranks(profile: &Profile, pid: u32, rank: Option<u32>) -> Scope {
    let named = || in_name(&profile.file_name());
    let (rank, because) = match rank.or_else(named) {
        Some(rank) => (rank, None),
        None => {
            let own = profile.places.iter().filter(|p| p.pid.is_none_or(|p| p == pid)).find_map(|p| p.device);
            (own.unwrap_or(0), Some("ranks usually follow the order of the GPUs"))
        }
    };
    Scope::AtOnce { processes: 1, rank, because }
}

/// Guesses the rank of a process: its GPU if each process has its own, otherwise its position among the sorted process
/// ids.
fn guess_rank(profile: &Profile, pids: &BTreeSet<u32>, pid: u32) -> (u32, &'static str) {
    let mut devices: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for place in &profile.places {
        if let (Some(p), Some(device)) = (place.pid, place.device)
            && pids.contains(&p)
        {
            devices.entry(p).or_default().insert(device);
        }
    }
    let own: BTreeSet<u32> = devices.values().filter(|d| d.len() == 1).flatten().copied().collect();
    if own.len() == pids.len()
        && let Some(device) = devices.get(&pid).and_then(|d| d.first())
    {
        return (*device, "each process has one GPU, and ranks usually follow the order of the GPUs");
    }
    let at = pids.iter().position(|&p| p == pid).unwrap_or(0);
    (u32::try_from(at).unwrap_or(0), "ranks are usually started in the order of their process ids")
}

impl Scope {
    /// Returns the options with which ncu follows these processes; `None` if there is only one.
    pub fn to_part(&self) -> Option<CommandPart> {
        let (words, why) = match self {
            Self::One => return None,
            Self::InTurn(n) => (
                vec!["--target-processes".to_owned(), "all".to_owned()],
                format!("{n} processes launch kernels of this name, one after another; ncu counts across all of them."),
            ),
            Self::ByName(name) => (
                vec![
                    "--target-processes".to_owned(),
                    "all".to_owned(),
                    "--target-processes-filter".to_owned(),
                    // Commas separate filters, and `regex:` and `exclude:` introduce other kinds of filters: such names
                    // are excluded.
                    name.clone(),
                ],
                format!("Only the process that runs {name:?} is profiled: the others launch kernels of this name at the same time."),
            ),
            Self::AtOnce { .. } => (
                vec!["--target-processes".to_owned(), "all".to_owned()],
                "Only this rank and its child processes run under ncu, so that the count is its own.".to_owned(),
            ),
        };
        Some(CommandPart { id: PartId::Processes, words, why })
    }
}

/// Rank variables of common launchers, in order of precedence.
const RANKS: &str = "${RANK:-${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-${SLURM_PROCID:-}}}}";

/// Returns a script to start instead of the program. The script runs the selected rank under the profiler and the
/// others unchanged.
pub fn wrapper_script(ncu: &[CommandPart], rank: u32) -> String {
    let groups: Vec<Vec<String>> = ncu.iter().filter(|p| p.id != PartId::Program).map(|p| p.words.clone()).collect();
    let command = shell::command_lines(&groups).replace("\n    ", "\n        ");
    format!(
        "#!/bin/sh\n# Started by the launcher in place of the program: LAUNCHER … ./THIS-SCRIPT PROGRAM ARGUMENTS…\n\
         rank={RANKS}\n\
         if [ -z \"$rank\" ]; then\n    echo \"$0: no rank in the environment; a launcher must start this\" >&2\n    exit 2\nfi\n\
         if [ \"$rank\" = {rank} ]; then\n    exec {command} \\\n        \"$@\"\nfi\nexec \"$@\"\n"
    )
}

/// Returns the complete command for a known launcher: the launcher, a shell that selects by rank, and the program.
/// Returns `None` if it is unknown where in the launcher's command the program is.
pub fn launcher_parts(ncu: &[CommandPart], rank: u32, program: &[String]) -> Option<Vec<CommandPart>> {
    let Launched { launcher, head, inner, .. } = launchers::split_command(program)?.ok()?;
    let command: Vec<String> = ncu.iter().filter(|p| p.id != PartId::Program).flat_map(|p| p.words.iter().cloned()).collect();
    let variable = launcher.shell_variable();
    let text = format!("if [ \"${{{variable}}}\" = {rank} ]; then exec {} \"$@\"; fi; exec \"$@\"", shell::command_line(&command));
    Some(vec![
        CommandPart { id: PartId::Program, words: head, why: "The launcher, unchanged.".to_owned() },
        CommandPart {
            id: PartId::Processes,
            words: vec!["sh".to_owned(), "-c".to_owned(), text, "sh".to_owned()],
            why: format!("Rank {rank} runs under ncu with a count of its own; the other ranks run without a profiler."),
        },
        CommandPart { id: PartId::Program, words: inner, why: "The program that the launcher starts.".to_owned() },
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn one_rank_runs_under_the_profiler() {
        let ncu = [
            CommandPart { id: PartId::Tool, words: words("ncu"), why: String::new() },
            CommandPart { id: PartId::Name, words: vec!["--kernel-name".into(), "a b".into()], why: String::new() },
            CommandPart { id: PartId::Program, words: words("mpirun -np 2 ./app"), why: String::new() },
        ];
        let argv: Vec<String> = launcher_parts(&ncu, 1, &words("mpirun -np 2 ./app")).unwrap().into_iter().flat_map(|p| p.words).collect();
        assert_eq!(argv[..3], words("mpirun -np 2"));
        assert_eq!(
            argv[5],
            "if [ \"${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-}}\" = 1 ]; then exec ncu --kernel-name 'a b' \"$@\"; fi; exec \"$@\""
        );
        assert_eq!(argv[6..], words("sh ./app"));
        let script = wrapper_script(&ncu, 1);
        assert!(script.contains("exec ncu \\\n        --kernel-name 'a b' \\\n        \"$@\"\nfi"), "{script}");
    }
}
