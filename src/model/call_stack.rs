//! Samples of host threads: the activity of each thread at a moment, with its call stack.

use std::sync::Arc;

/// A function and line, as it appears in call stacks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct StackFrame {
    /// Qualified name of a Python function, or symbol of a native function.
    pub function: Arc<str>,
    /// Source file; for a native function whose source is unknown, its module.
    pub file: Option<Arc<str>>,
    /// Line being executed, starting at 1; `None` if unknown.
    pub line: Option<u32>,
    /// True if the line is the one at which the function begins, because no other was recorded (torch.profiler).
    pub first_line: bool,
    pub python: bool,
    /// Module of a native function (an executable or library), if `file` may be its source file.
    pub module: Option<Arc<str>>,
    /// True if the module is a library in the program's own folder.
    pub beside: bool,
}

/// A call stack: the innermost frame, plus a link to the caller's stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallStack {
    /// Index into [`Samples::stacks`], always less than this stack's own index; `None` for the outermost frame.
    pub caller: Option<u32>,
    /// Index into [`Samples::frames`].
    pub frame: u32,
}

/// Activity of a thread at the time of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Activity {
    Running,
    /// Waiting for a lock, a condition variable or a queue of another thread.
    Lock,
    /// Waiting for Python's global interpreter lock.
    InterpreterLock,
    /// Reading from a file, a pipe or a socket.
    Read,
    Write,
    /// Waiting for any of several file descriptors.
    Poll,
    Sleep,
    /// Waiting for a child process.
    Child,
    /// Blocked in another system call, in a driver, or on a page fault.
    Blocked,
    /// The activity was not recorded.
    #[default]
    Unknown,
}

impl Activity {
    /// All activities, in numeric order.
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

    /// Returns true if the thread was waiting for something other than the interpreter lock; `None` if unknown. Being
    /// blocked in a driver is not evidence of waiting, because threads also block there while they launch and
    /// synchronize.
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

/// One sample of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Nanoseconds since the session began.
    pub time: i64,
    /// Index into [`Profile::threads`](super::Profile::threads).
    pub thread: u32,
    /// Index into [`Samples::stacks`]; `None` if no stack was recorded, as for a thread without Python code.
    pub stack: Option<u32>,
    pub activity: Activity,
    /// True if the thread holds the interpreter lock that another thread is waiting for; the holder may have another
    /// sample at the same time.
    pub holds: bool,
}

/// Samples of threads, sorted by time; stacks and frames are interned.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    pub frames: Vec<StackFrame>,
    pub stacks: Vec<CallStack>,
    pub samples: Vec<Sample>,
    /// True if threads were sampled only while running, as nsys does.
    pub running_only: bool,
}

impl Samples {
    /// Frames of a stack, innermost first.
    pub fn frames_of(&self, stack: Option<u32>) -> impl Iterator<Item = &StackFrame> {
        let node = |at: u32| self.stacks.get(at as usize);
        // A caller has a smaller index than its callee, so this terminates.
        let callers = std::iter::successors(stack.and_then(node), move |s| s.caller.and_then(node));
        callers.filter_map(|s| self.frames.get(s.frame as usize))
    }
}
