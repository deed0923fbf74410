//! Steps of a guided session with a server: each is a command that the user could also type.

/// Purpose of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Starts the server under the profiler: the prepared command itself.
    Start,
    /// Waits until the server answers.
    Wait,
    /// Warms up the server without recording.
    WarmUp,
    Open,
    /// The load to record; the user can replace it with another.
    Load,
    Close,
    /// Sends an interrupt to the command of [`Role::Start`], which terminates the server.
    Stop,
}

impl Role {
    /// Returns the role's name for scripts.
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
pub struct RecipeStep {
    pub role: Role,
    pub what: String,
    /// The command; empty for [`Role::Start`] (the prepared command) and [`Role::Stop`] (an interrupt).
    pub argv: Vec<String>,
    pub why: String,
}
