//! Database record of a run.

use crate::launch::runs::ExitProblem;
use std::path::PathBuf;

/// State of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not started yet.
    Starting,
    Running,
    /// Ended successfully, with a report.
    Done,
    Failed,
    /// The user stopped it.
    Stopped,
    /// The supervisor was killed, or the machine went down.
    Lost,
}

impl State {
    /// All states with their names.
    pub const ALL: [(Self, &'static str); 6] = [
        (Self::Starting, "starting"),
        (Self::Running, "running"),
        (Self::Done, "done"),
        (Self::Failed, "failed"),
        (Self::Stopped, "stopped"),
        (Self::Lost, "lost"),
    ];

    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(s, _)| *s == self).map_or("", |(_, w)| w)
    }

    /// Parses a state's name; unknown names, from a newer version, become `Lost`.
    pub fn parse(word: &str) -> Self {
        Self::ALL.iter().find(|(_, w)| *w == word).map_or(Self::Lost, |(s, _)| *s)
    }

    /// Returns true if the run has not ended.
    pub fn is_live(self) -> bool {
        matches!(self, Self::Starting | Self::Running)
    }
}

/// A step of a guided run: a command that the user runs in parallel.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct GuidedStep {
    /// Purpose of the step: wait, warm-up, open, load, close or stop.
    pub role: String,
    pub what: String,
    /// The command; empty for `stop`, which stops the run in the usual way.
    pub argv: Vec<String>,
    pub why: String,
    /// True if the user skipped the step.
    #[serde(default)]
    pub left_out: bool,
}

/// A run that is about to start.
#[derive(Clone, Debug, Default)]
pub struct NewRun {
    /// Name of the profiler: trace, nsys, ncu, torch, rocprofv3.
    pub tool: String,
    pub recipe: Option<String>,
    pub argv: Vec<String>,
    /// The program and its arguments.
    pub program: Vec<String>,
    /// Environment variables that are set for the run.
    pub env: Vec<(String, String)>,
    pub directory: PathBuf,
    /// Expected report files: full paths with at most one `*`, which matches any string without `/`. If all of them are
    /// outside the run's own folder, the user chose another location.
    pub patterns: Vec<String>,
    /// Helper files that warpscope wrote into the run's folder.
    pub support: Vec<PathBuf>,
    /// Original run, if this is a re-run.
    pub parent: Option<i64>,
    /// Launches to profile in a re-run, as JSON.
    pub selects: Option<String>,
    pub tags: Vec<String>,
    /// Notes to show to the user during the run.
    pub notes: String,
    /// Steps for the user to take during the run.
    pub steps: Vec<GuidedStep>,
    /// True if the run outlives the explorer.
    pub detached: bool,
}

/// A file produced by a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub path: PathBuf,
    /// Size at the last check, in bytes.
    pub bytes: u64,
    /// True if the file is in the run's own folder, so that warpscope may remove or compress it.
    pub owned: bool,
}

#[derive(Clone, Debug)]
pub struct Run {
    pub id: i64,
    /// Start, milliseconds since 1970.
    pub started_ms: i64,
    /// End, milliseconds since 1970; `None` for a live run, and for a lost run without an observed end.
    pub ended_ms: Option<i64>,
    /// Last modification of the log or the reports, for a lost run without an observed end; milliseconds since 1970.
    pub last_seen_ms: Option<i64>,
    pub state: State,
    /// Current stage of stopping the run, given by the name of a [`crate::launch::runs::Stage`].
    pub stage: String,
    /// True if the run outlives the explorer.
    pub detached: bool,
    pub tool: String,
    pub tool_version: Option<String>,
    pub recipe: Option<String>,
    pub argv: Vec<String>,
    /// The program and its arguments.
    pub program: Vec<String>,
    /// Environment variables that are set for the run.
    pub env: Vec<(String, String)>,
    pub directory: PathBuf,
    /// Patterns of the expected report files.
    pub patterns: Vec<String>,
    /// Helper files that warpscope wrote into the run's folder.
    pub support: Vec<PathBuf>,
    pub host: Option<String>,
    /// Identity of the machine's boot and PID namespace, in which the holder's process id is valid.
    pub machine: Option<String>,
    /// Git commit of the working directory.
    pub git_commit: Option<String>,
    /// True if the working directory had uncommitted changes.
    pub git_dirty: Option<bool>,
    /// Names of all environment variables.
    pub env_names: Vec<String>,
    /// Environment variables that contain no secrets, with their values.
    pub env_values: Vec<(String, String)>,
    pub devices: Option<String>,
    pub driver: Option<String>,
    /// SM clocks at the start, MHz.
    pub clocks_start: Option<String>,
    /// SM clocks at the end, MHz.
    pub clocks_end: Option<String>,
    /// Process that holds the run (the supervisor), and its start time in clock ticks.
    pub holder: Option<(i32, u64)>,
    pub profiler: Option<i32>,
    pub exit_code: Option<i32>,
    /// Signal that ended the profiler.
    pub exit_signal: Option<i32>,
    /// Reasons for the outcome.
    pub findings: Vec<ExitProblem>,
    /// Original run, if this is a re-run.
    pub parent: Option<i64>,
    /// Launches to profile in a re-run, as JSON.
    pub selects: Option<String>,
    pub notes: String,
    /// Steps for the user to take during the run.
    pub steps: Vec<GuidedStep>,
    /// Number of finished steps.
    pub step: usize,
    /// Tags, in alphabetical order.
    pub tags: Vec<String>,
    pub reports: Vec<Report>,
    /// Reports and helper files that no longer existed when the record was read.
    pub gone: Vec<PathBuf>,
}

impl Run {
    /// Duration, ms: until now for a live run, until the last observed activity for a run without an end.
    pub fn duration_ms(&self, now_ms: i64) -> i64 {
        let until = self.ended_ms.unwrap_or(if self.state.is_live() { now_ms } else { self.last_seen_ms.unwrap_or(self.started_ms) });
        until.saturating_sub(self.started_ms).max(0)
    }

    /// Total size of the reports, in bytes.
    pub fn total_bytes(&self) -> u64 {
        self.reports.iter().map(|r| r.bytes).sum()
    }

    /// Reports whose names `opens` accepts; excludes other files of the profiler.
    pub fn openable_reports(&self, opens: fn(&std::path::Path) -> bool) -> impl Iterator<Item = &Report> {
        self.reports.iter().filter(move |r| opens(&r.path))
    }

    /// Returns true if the data of the run contains all words.
    pub fn matches_words(&self, words: &str) -> bool {
        let text = format!(
            "#{} {} {} {} {} {} {} {} {}",
            self.id,
            self.state.as_str(),
            self.tool,
            self.recipe.as_deref().unwrap_or_default(),
            self.program.join(" "),
            self.tags.join(" "),
            self.notes,
            self.host.as_deref().unwrap_or_default(),
            self.directory.display()
        )
        .to_lowercase();
        words.to_lowercase().split_whitespace().all(|w| text.contains(w))
    }
}

/// Environment variables that describe the run and contain no secrets; a name may end in `*`.
pub const PLAIN_VARIABLES: &[&str] = &[
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "OMP_NUM_THREADS",
    "PYTORCH_CUDA_ALLOC_CONF",
    "TORCH_NVCC_FLAGS",
    "TORCHINDUCTOR_*",
    "NCCL_*",
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "SLURM_JOB_ID",
    "SLURM_PROCID",
    "SLURM_NNODES",
    "OMPI_COMM_WORLD_RANK",
    "CONDA_DEFAULT_ENV",
    "VIRTUAL_ENV",
    "TMPDIR",
];

/// Returns true if the value of a variable may be stored.
pub fn is_plain_variable(name: &str) -> bool {
    PLAIN_VARIABLES.iter().any(|p| p.strip_suffix('*').map_or(*p == name, |head| name.starts_with(head)))
}
