//! A report's clock, and its process's rank within a job.

/// Relation of the session clock to wall-clock time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// Time 0 of the session, in nanoseconds since 1970.
    pub epoch_ns: Option<i64>,
    /// Error bound of `epoch_ns`, ns; `None` if unknown.
    pub uncertainty_ns: Option<i64>,
}

/// Position of the report's process within a distributed job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rank {
    pub rank: Option<u32>,
    /// Number of ranks in the job.
    pub world: Option<u32>,
    pub host: Option<String>,
}

/// Environment variables that hold the rank and the number of ranks, by launcher: torchrun, Slurm, Open MPI, MPICH.
pub const LAUNCHERS: [(&str, &str); 4] =
    [("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("PMI_RANK", "PMI_SIZE")];
