//! What is kept of a run.

use crate::launch::runs::Finding;
use std::path::PathBuf;

/// How a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not started yet.
    Starting,
    Running,
    /// It ended well and left a report.
    Done,
    Failed,
    /// The user stopped it.
    Stopped,
    /// Its supervisor is gone without a word: killed, or the machine went down.
    Lost,
}

impl State {
    /// All, with their words.
    pub const ALL: [(Self, &'static str); 6] = [
        (Self::Starting, "starting"),
        (Self::Running, "running"),
        (Self::Done, "done"),
        (Self::Failed, "failed"),
        (Self::Stopped, "stopped"),
        (Self::Lost, "lost"),
    ];

    #[must_use]
    pub fn word(self) -> &'static str {
        Self::ALL.iter().find(|(s, _)| *s == self).map_or("", |(_, w)| w)
    }

    /// By its word; what a newer program wrote counts as lost.
    #[must_use]
    pub fn parse(word: &str) -> Self {
        Self::ALL.iter().find(|(_, w)| *w == word).map_or(Self::Lost, |(s, _)| *s)
    }

    /// Whether it has not ended.
    #[must_use]
    pub fn live(self) -> bool {
        matches!(self, Self::Starting | Self::Running)
    }
}

/// One step of a guided run: what a person does beside it, as a command.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Step {
    /// What it is for, in a word: wait, warm-up, open, load, close, stop.
    pub role: String,
    pub what: String,
    /// The command; empty for `stop`, which is what stops any run.
    pub argv: Vec<String>,
    pub why: String,
    /// Whether the user went on without doing it here.
    #[serde(default)]
    pub left_out: bool,
}

/// A run that is about to start.
#[derive(Clone, Debug, Default)]
pub struct NewRun {
    /// The profiler's word: nsys, ncu, torch, rocprofv3.
    pub tool: String,
    pub recipe: Option<String>,
    pub argv: Vec<String>,
    /// The program and its arguments.
    pub program: Vec<String>,
    /// Variables that are set for it.
    pub env: Vec<(String, String)>,
    pub directory: PathBuf,
    /// Files that it will leave: whole paths, with at most one `*`, which stands for any text without `/`. `None` of them in the run's own folder means that the user
    /// named another place.
    pub patterns: Vec<String>,
    /// Files that warpscope wrote into the run's folder for it.
    pub support: Vec<PathBuf>,
    /// The run that this one is a re-run of.
    pub parent: Option<i64>,
    /// The launches that a re-run is to profile, as JSON.
    pub selects: Option<String>,
    pub tags: Vec<String>,
    /// What the user is to know while it runs.
    pub notes: String,
    /// What the user is to do while it runs.
    pub steps: Vec<Step>,
    /// Whether it outlives the explorer.
    pub detached: bool,
}

/// A file that a run left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub path: PathBuf,
    /// How large it was when it was last looked at.
    pub bytes: u64,
    /// Whether it lies in the run's own folder, so that warpscope may remove or pack it.
    pub owned: bool,
}

#[derive(Clone, Debug)]
pub struct Run {
    pub id: i64,
    /// Start, milliseconds since 1970.
    pub started_ms: i64,
    /// End; of a run that is lost without anybody who saw it, none.
    pub ended_ms: Option<i64>,
    /// Last change of its log or reports, when it is lost without an end.
    pub last_seen_ms: Option<i64>,
    pub state: State,
    /// How far a stop has gone, as a word of [`crate::launch::runs::Stage`].
    pub stage: String,
    /// Whether it outlives the explorer.
    pub detached: bool,
    pub tool: String,
    pub tool_version: Option<String>,
    pub recipe: Option<String>,
    pub argv: Vec<String>,
    /// The program and its arguments.
    pub program: Vec<String>,
    /// Variables that were set for it.
    pub env: Vec<(String, String)>,
    pub directory: PathBuf,
    /// Files that it was to leave.
    pub patterns: Vec<String>,
    /// Files that warpscope wrote into the run's folder for it.
    pub support: Vec<PathBuf>,
    pub host: Option<String>,
    /// This start of the machine, and the numbering of its processes: where the holder's process id means something.
    pub machine: Option<String>,
    /// Commit of the working directory.
    pub git_commit: Option<String>,
    /// Whether there were changes on top of it.
    pub git_dirty: Option<bool>,
    /// Names of the variables that were there.
    pub env_names: Vec<String>,
    /// Those with values that hold no secrets.
    pub env_values: Vec<(String, String)>,
    pub devices: Option<String>,
    pub driver: Option<String>,
    /// SM clocks at the start, MHz.
    pub clocks_start: Option<String>,
    /// SM clocks at the end, MHz.
    pub clocks_end: Option<String>,
    /// The process that holds the run (the supervisor), and when it started, in clock ticks.
    pub holder: Option<(i32, u64)>,
    pub profiler: Option<i32>,
    pub exit_code: Option<i32>,
    /// Signal that ended it.
    pub exit_signal: Option<i32>,
    /// Why it ended as it did.
    pub findings: Vec<Finding>,
    /// The run that it is a re-run of.
    pub parent: Option<i64>,
    /// The launches that it was to profile, as JSON.
    pub selects: Option<String>,
    pub notes: String,
    /// What the user is to do while it runs.
    pub steps: Vec<Step>,
    /// How many of the steps are done.
    pub step: usize,
    /// Tags, in alphabetical order.
    pub tags: Vec<String>,
    pub reports: Vec<Report>,
    /// Those of its reports and of the files written for it that no longer existed when the run was read.
    pub gone: Vec<PathBuf>,
}

impl Run {
    /// Duration in milliseconds, until now when it still runs, and until its last sign of life when nobody saw its end.
    #[must_use]
    pub fn millis(&self, now_ms: i64) -> i64 {
        let until = self.ended_ms.unwrap_or(if self.state.live() { now_ms } else { self.last_seen_ms.unwrap_or(self.started_ms) });
        until.saturating_sub(self.started_ms).max(0)
    }

    /// Bytes of its reports.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.reports.iter().map(|r| r.bytes).sum()
    }

    /// Its reports that the explorer opens: those, and not what else the profiler left.
    pub fn openable(&self) -> impl Iterator<Item = &Report> {
        self.reports.iter().filter(|r| opens(&r.path))
    }

    /// Whether all words occur in what is known of it.
    #[must_use]
    pub fn matches(&self, words: &str) -> bool {
        let text = format!(
            "#{} {} {} {} {} {} {} {} {}",
            self.id,
            self.state.word(),
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

/// Whether a file that a profiler left is a report, by its name.
#[must_use]
pub fn opens(path: &std::path::Path) -> bool {
    const KINDS: [&str; 12] =
        [".nsys-rep", ".ncu-rep", ".sqlite", ".qdrep", ".csv", ".json", ".wstrace", ".db", ".pftrace", ".pickle", ".wsd", ".rpd"];
    let name = path.to_string_lossy().to_lowercase();
    let bare = name.trim_end_matches(".zst").trim_end_matches(".gz");
    KINDS.iter().any(|k| bare.ends_with(k))
}

/// Variables whose values say what ran and hold no secrets; the end of a name may be `*`.
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

/// Whether a variable's value may be kept.
#[must_use]
pub fn plain(name: &str) -> bool {
    PLAIN_VARIABLES.iter().any(|p| p.strip_suffix('*').map_or(*p == name, |head| name.starts_with(head)))
}
