//! How far a stop of a run has gone: each step is told to the profiler by a harder signal.

use nix::sys::signal::Signal;

/// How far a stop has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Not asked to stop.
    Running,
    /// INT was sent: the profiler stops the program and writes its report.
    Interrupted,
    Terminated,
    Killed,
}

impl Stage {
    /// All, with their words.
    pub const ALL: [(Self, &'static str); 4] =
        [(Self::Running, "running"), (Self::Interrupted, "interrupted"), (Self::Terminated, "terminated"), (Self::Killed, "killed")];

    #[must_use]
    pub fn word(self) -> &'static str {
        Self::ALL.iter().find(|(s, _)| *s == self).map_or("", |(_, w)| w)
    }

    /// By its word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, w)| *w == word).map(|(s, _)| *s)
    }

    /// The step after it, and the signal that it takes.
    #[must_use]
    pub fn next(self) -> Option<(Self, Signal)> {
        match self {
            Self::Running => Some((Self::Interrupted, Signal::SIGINT)),
            Self::Interrupted => Some((Self::Terminated, Signal::SIGTERM)),
            Self::Terminated => Some((Self::Killed, Signal::SIGKILL)),
            Self::Killed => None,
        }
    }
}
