//! Runs the profiler between a launcher and the program, with one report per rank.

use super::prepared::{Place, Wanted, program_part};
use crate::rerun::launchers::{self, Launched};
use crate::rerun::{CommandPart, PartId, shell};

/// Placement of the profiler relative to a launcher.
#[derive(Debug)]
pub(super) enum Ranks {
    /// One process, or all processes of a launcher in one report.
    Together,
    /// The launcher starts one profiler per rank.
    Each(Launched),
    /// The command contains no launcher: the user runs it through one.
    Inner,
}

impl Ranks {
    /// Returns the environment variable that holds the rank; `None` if ranks are not profiled separately.
    pub(super) fn rank_variable(&self) -> Option<&'static str> {
        match self {
            Self::Together => None,
            Self::Each(launched) => Some(launched.variable),
            Self::Inner => Some("RANK"),
        }
    }

    /// Returns the report name to pass to nsys or ncu. The profiler runs inside the rank and expands the macro; the
    /// name before the macro is literal.
    pub(super) fn report_name(&self, place: &Place<'_>) -> String {
        let name = shell::output_path(place.output);
        self.rank_variable().map_or(name.clone(), |variable| format!("{name}.%q{{{variable}}}"))
    }

    /// Describes the report name, including its suffix.
    pub(super) fn describe_report(&self, place: &Place<'_>, suffix: &str) -> String {
        let output = place.output;
        match self {
            Self::Together => format!("The report: {output}.{suffix}."),
            Self::Each(launched) if launched.launcher.variables.len() > 1 => {
                let other = launched.launcher.variables.iter().find(|v| **v != launched.variable).unwrap_or(&"PMI_RANK");
                format!(
                    "One report per rank: {output}.0.{suffix} … Open MPI has OMPI_COMM_WORLD_RANK, MPICH and Intel MPI have PMI_RANK: use {other} if yours is the other."
                )
            }
            Self::Each(launched) => format!("One report per rank: {output}.0.{suffix} … by {}.", launched.variable),
            Self::Inner => format!(
                "One report per rank: {output}.0.{suffix} … RANK is torchrun's variable; Open MPI has OMPI_COMM_WORLD_RANK, MPICH and Intel MPI PMI_RANK, Slurm SLURM_PROCID."
            ),
        }
    }

    /// Returns the parts of the profiler's command that go between the launcher and the program.
    pub(super) fn wrap_profiler(&self, profiler: Vec<CommandPart>, wanted: &Wanted) -> Vec<CommandPart> {
        let mut parts = Vec::with_capacity(profiler.len() + 2);
        let inner = match self {
            Self::Each(launched) => {
                let why = if launched.launcher.names.contains(&"torchrun") {
                    "The launcher; --no-python, because it now starts a profiler instead of a Python script."
                } else {
                    "The launcher, unchanged."
                };
                parts.push(CommandPart { id: PartId::Processes, words: launched.head.clone(), why: why.to_owned() });
                program_part(&launched.inner)
            }
            Self::Together | Self::Inner => program_part(&wanted.program),
        };
        parts.extend(profiler);
        parts.push(inner);
        parts
    }
}

/// Decides whether ranks are profiled separately. `always` means that the recipe does so for any launcher. If the
/// launcher's command cannot be parsed, the error explains in one sentence how to write the command by hand; `inner`
/// returns the profiler's part of that command.
pub(super) fn resolve_ranks(wanted: &Wanted, always: bool, inner: impl Fn(&Ranks) -> Vec<CommandPart>) -> Result<Ranks, String> {
    if !wanted.ranks && !always {
        return Ok(Ranks::Together);
    }
    match launchers::split_command(&wanted.program) {
        Some(Ok(launched)) => Ok(Ranks::Each(launched)),
        Some(Err(word)) => {
            let name = wanted.program.first().map_or("", String::as_str);
            let by_hand: Vec<String> = inner(&Ranks::Inner).into_iter().flat_map(|p| p.words).collect();
            Err(format!(
                "cannot tell where the program starts in this command of {name} (at `{word}`); write it by hand: {name} OPTIONS {} PROGRAM ARGUMENTS, with the launcher's own variable for RANK",
                shell::command_line(&by_hand)
            ))
        }
        None if wanted.ranks && !wanted.program.is_empty() => Err(format!(
            "no launcher in `{}`: torchrun, mpirun, mpiexec or srun must start the program, or drop the option that asks for ranks",
            shell::command_line(&wanted.program)
        )),
        None => Ok(Ranks::Inner),
    }
}

/// Returns the name of the launcher of a program whose ranks are not profiled separately.
pub(super) fn launcher_name(argv: &[String]) -> Option<&'static str> {
    match launchers::split_command(argv)? {
        Ok(launched) => launched.launcher.names.first().copied(),
        Err(_) => {
            let name = argv.first()?.rsplit('/').next()?;
            launchers::LAUNCHERS.iter().flat_map(|l| l.names).find(|n| **n == name).copied().or(Some("torchrun"))
        }
    }
}
