//! Which clock a report's times are on, and which rank of a job it is of.

/// How the session's clock stands to the wall's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// Nanoseconds since 1970 at the session's 0.
    pub epoch_ns: Option<i64>,
    /// How far off that may be, ns; `None` where nobody knows.
    pub uncertainty_ns: Option<i64>,
}

/// Which process of a job of several this report is of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rank {
    pub rank: Option<u32>,
    /// Ranks in the job.
    pub world: Option<u32>,
    pub host: Option<String>,
}

/// Variables by which launchers (torchrun, Slurm, Open MPI, MPICH) tell a process its rank, and how many there are.
pub const LAUNCHERS: [(&str, &str); 4] =
    [("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE")];
