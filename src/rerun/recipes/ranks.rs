//! The profiler between a launcher and the program: one report for each rank.

use super::prepared::{Place, Wanted, program};
use crate::rerun::launchers::{self, Launched};
use crate::rerun::{Part, PartId, shell};

/// A command that may be a launcher's.
#[derive(Debug)]
pub(super) enum Ranks {
    /// One process, or all processes of a launcher in one report.
    Together,
    /// A launcher that starts a profiler for each rank.
    Each(Launched),
    /// No launcher here, but the command is written to be put behind one.
    Inner,
}

impl Ranks {
    /// Variable of the rank.
    pub(super) fn variable(&self) -> Option<&'static str> {
        match self {
            Self::Together => None,
            Self::Each(launched) => Some(launched.variable),
            Self::Inner => Some("RANK"),
        }
    }

    /// The report's name for an option of nsys or ncu. The macro is for the profiler, which runs inside the rank: only the name before it
    /// is literal.
    pub(super) fn output(&self, place: &Place<'_>) -> String {
        let name = shell::output_path(place.output);
        self.variable().map_or(name.clone(), |variable| format!("{name}.%q{{{variable}}}"))
    }

    /// What the report is called and why, with its suffix.
    pub(super) fn why(&self, place: &Place<'_>, suffix: &str) -> String {
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

    /// The profiler's pieces with the launcher before and the program after them.
    pub(super) fn around(&self, profiler: Vec<Part>, wanted: &Wanted) -> Vec<Part> {
        let mut parts = Vec::with_capacity(profiler.len() + 2);
        let inner = match self {
            Self::Each(launched) => {
                let why = if launched.launcher.names.contains(&"torchrun") {
                    "The launcher; --no-python, because it now starts a profiler instead of a Python script."
                } else {
                    "The launcher, unchanged."
                };
                parts.push(Part { id: PartId::Processes, words: launched.head.clone(), why: why.to_owned() });
                program(&launched.inner)
            }
            Self::Together | Self::Inner => program(&wanted.program),
        };
        parts.extend(profiler);
        parts.push(inner);
        parts
    }
}

/// Whether the ranks of the wanted program are to be profiled apart. `always`: the recipe does so wherever there is a launcher. A launcher
/// that cannot be taken apart is refused with a sentence that shows how to write it; `inner` is the profiler's command for that.
pub(super) fn of(wanted: &Wanted, always: bool, inner: impl Fn(&Ranks) -> Vec<Part>) -> Result<Ranks, String> {
    if !wanted.ranks && !always {
        return Ok(Ranks::Together);
    }
    match launchers::split(&wanted.program) {
        Some(Ok(launched)) => Ok(Ranks::Each(launched)),
        Some(Err(word)) => {
            let name = wanted.program.first().map_or("", String::as_str);
            let by_hand: Vec<String> = inner(&Ranks::Inner).into_iter().flat_map(|p| p.words).collect();
            Err(format!(
                "cannot tell where the program starts in this command of {name} (at `{word}`); write it by hand: {name} OPTIONS {} PROGRAM ARGUMENTS, with the launcher's own variable for RANK",
                shell::line(&by_hand)
            ))
        }
        None if wanted.ranks && !wanted.program.is_empty() => Err(format!(
            "no launcher in `{}`: torchrun, mpirun, mpiexec or srun must start the program, or drop the option that asks for ranks",
            shell::line(&wanted.program)
        )),
        None => Ok(Ranks::Inner),
    }
}

/// The launcher of a program whose ranks are not profiled apart, by its name.
pub(super) fn launcher(argv: &[String]) -> Option<&'static str> {
    match launchers::split(argv)? {
        Ok(launched) => launched.launcher.names.first().copied(),
        Err(_) => {
            let name = argv.first()?.rsplit('/').next()?;
            launchers::LAUNCHERS.iter().flat_map(|l| l.names).find(|n| **n == name).copied().or(Some("torchrun"))
        }
    }
}
