//! Escalates a stop: each step sends the profiler a stronger signal.

use nix::sys::signal::Signal;

/// Current step of a stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// No stop was requested.
    Running,
    /// INT was sent: the profiler stops the program and writes its report.
    Interrupted,
    Terminated,
    Killed,
}

impl Stage {
    /// All stages and their names.
    pub const ALL: [(Self, &'static str); 4] =
        [(Self::Running, "running"), (Self::Interrupted, "interrupted"), (Self::Terminated, "terminated"), (Self::Killed, "killed")];

    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(s, _)| *s == self).map_or("", |(_, w)| w)
    }

    /// Parses the name of a stage.
    pub fn from_name(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, w)| *w == word).map(|(s, _)| *s)
    }

    /// Returns the next stage, and the signal that starts it.
    pub fn next(self) -> Option<(Self, Signal)> {
        match self {
            Self::Running => Some((Self::Interrupted, Signal::SIGINT)),
            Self::Interrupted => Some((Self::Terminated, Signal::SIGTERM)),
            Self::Terminated => Some((Self::Killed, Signal::SIGKILL)),
            Self::Killed => None,
        }
    }
}
