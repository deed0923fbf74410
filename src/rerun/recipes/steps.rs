//! Steps of a guided session with a server: each is a command that a person can also type.

/// What a step is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Starts the server under the profiler: the prepared command itself.
    Start,
    /// Waits until the server answers.
    Wait,
    /// Warms the server up, unrecorded.
    WarmUp,
    Open,
    /// The load that is recorded; a person's own load takes its place.
    Load,
    Close,
    /// Ends the server, by an interrupt to the command of [`Role::Start`].
    Stop,
}

impl Role {
    /// Its word, for scripts.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Wait => "wait",
            Self::WarmUp => "warm-up",
            Self::Open => "open",
            Self::Load => "load",
            Self::Close => "close",
            Self::Stop => "stop",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What it is for.
    pub role: Role,
    pub what: String,
    /// The command; empty for [`Role::Start`], which is the prepared command, and [`Role::Stop`], which is an interrupt to it.
    pub argv: Vec<String>,
    pub why: String,
}
