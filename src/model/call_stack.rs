//! Samples of host threads: what a thread executed or waited for, with its call stack.

use std::sync::Arc;

/// A function at a line, as it appears in call stacks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct StackFrame {
    /// Qualified name of a Python function, or the symbol of a native one.
    pub function: Arc<str>,
    /// Source file of a Python function, or the module of a native one.
    pub file: Option<Arc<str>>,
    /// Executed line, from 1; `None` if unknown.
    pub line: Option<u32>,
    pub python: bool,
}

/// A call stack: its innermost frame, on top of the stack of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallStack {
    /// Index into [`Samples::stacks`], smaller than the own index; `None` for the outermost frame.
    pub caller: Option<u32>,
    /// Index into [`Samples::frames`].
    pub frame: u32,
}

/// Activity of a thread when it was sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Activity {
    Running,
    /// Waited for a lock, a condition or a queue of another thread.
    Lock,
    /// Waited for Python's global interpreter lock.
    InterpreterLock,
    /// Read from a file, a pipe or a socket.
    Read,
    Write,
    /// Waited for one of several descriptors.
    Poll,
    Sleep,
    /// Waited for a child process.
    Child,
    /// Blocked in another system call, in a driver, or on a page fault.
    Blocked,
    /// Not recorded.
    #[default]
    Unknown,
}

impl Activity {
    /// All, in the order of their numbers.
    pub const ALL: [Self; 10] = [
        Self::Running,
        Self::Lock,
        Self::InterpreterLock,
        Self::Read,
        Self::Write,
        Self::Poll,
        Self::Sleep,
        Self::Child,
        Self::Blocked,
        Self::Unknown,
    ];

    /// Stable identifier for scripts.
    pub fn id(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Lock => "lock",
            Self::InterpreterLock => "gil",
            Self::Read => "read",
            Self::Write => "write",
            Self::Poll => "poll",
            Self::Sleep => "sleep",
            Self::Child => "child",
            Self::Blocked => "blocked",
            Self::Unknown => "unknown",
        }
    }

    /// Returns true if the thread waited for something other than the interpreter lock; `None` if unknown. Drivers are
    /// left out: a thread is blocked in them while it launches and synchronizes.
    pub fn waits(self) -> Option<bool> {
        match self {
            Self::Running | Self::InterpreterLock => Some(false),
            Self::Lock | Self::Read | Self::Write | Self::Poll | Self::Sleep | Self::Child => Some(true),
            Self::Blocked | Self::Unknown => None,
        }
    }

    /// Completes the phrase "the thread …".
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "runs",
            Self::Lock => "waits for a lock or a queue",
            Self::InterpreterLock => "waits for the interpreter lock (GIL)",
            Self::Read => "reads from a file, pipe or socket",
            Self::Write => "writes to a file, pipe or socket",
            Self::Poll => "waits for input (poll)",
            Self::Sleep => "sleeps",
            Self::Child => "waits for a child process",
            Self::Blocked => "is blocked in the operating system",
            Self::Unknown => "does something unknown",
        }
    }
}

/// A sample of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// ns.
    pub time: i64,
    /// Index into [`Profile::threads`](super::Profile::threads).
    pub thread: u32,
    /// Index into [`Samples::stacks`]; `None` if there is no stack, as for a thread without Python code.
    pub stack: Option<u32>,
    pub activity: Activity,
    /// The thread holds the interpreter lock for which another waits; it may have another sample of the same time.
    pub holds: bool,
}

/// Samples of threads, by time; stacks and frames are interned.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    pub frames: Vec<StackFrame>,
    pub stacks: Vec<CallStack>,
    pub samples: Vec<Sample>,
    /// True if threads were sampled only while they ran, as by nsys.
    pub running_only: bool,
}

impl Samples {
    /// Frames of a stack, innermost first.
    pub fn frames_of(&self, stack: Option<u32>) -> impl Iterator<Item = &StackFrame> {
        let node = |at: u32| self.stacks.get(at as usize);
        // A caller precedes its callee, so this ends.
        let callers = std::iter::successors(stack.and_then(node), move |s| s.caller.and_then(node));
        callers.filter_map(|s| self.frames.get(s.frame as usize))
    }
}
