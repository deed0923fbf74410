//! Categories of a device's time, and causes of its idle time.

/// Category of device time; each nanosecond belongs to exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimeCategory {
    Kernels,
    /// Only collectives run.
    Collectives,
    /// Only copies or memsets run.
    Copies,
    Synchronising,
    Launching,
    Computing,
    Waiting,
    Allocating,
    Compiling,
    Graphs,
    Other,
}

impl TimeCategory {
    /// All categories in legend order.
    pub const ALL: [Self; 11] = [
        Self::Kernels,
        Self::Collectives,
        Self::Copies,
        Self::Synchronising,
        Self::Launching,
        Self::Computing,
        Self::Waiting,
        Self::Allocating,
        Self::Compiling,
        Self::Graphs,
        Self::Other,
    ];

    /// Stable identifier for scripts.
    pub fn id(self) -> &'static str {
        match self {
            Self::Kernels => "kernels",
            Self::Collectives => "collectives exposed",
            Self::Copies => "copies exposed",
            Self::Synchronising => "idle: synchronizing",
            Self::Launching => "idle: launching",
            Self::Computing => "idle: host computes",
            Self::Waiting => "idle: host waits",
            Self::Allocating => "idle: allocating",
            Self::Compiling => "idle: compiling or loading code",
            Self::Graphs => "idle: capturing or instantiating graphs",
            Self::Other => "idle: other or unknown",
        }
    }

    /// Short label for narrow layouts.
    pub fn short_label(self) -> &'static str {
        match self {
            Self::Kernels => "kernels",
            Self::Collectives => "collectives",
            Self::Copies => "copies",
            Self::Synchronising => "synchronizing",
            Self::Launching => "launching",
            Self::Computing => "host computes",
            Self::Waiting => "host waits",
            Self::Allocating => "allocating",
            Self::Compiling => "compile/load",
            Self::Graphs => "graph capture",
            Self::Other => "other",
        }
    }

    /// Letter for displays without color.
    pub fn letter(self) -> &'static str {
        match self {
            Self::Kernels => "K",
            Self::Collectives => "N",
            Self::Copies => "C",
            Self::Synchronising => "S",
            Self::Launching => "L",
            Self::Computing => "H",
            Self::Waiting => "W",
            Self::Allocating => "A",
            Self::Compiling => "M",
            Self::Graphs => "G",
            Self::Other => "O",
        }
    }

    /// Short label that says what else runs: `kernels`, `collectives alone`, `idle: launching`.
    pub fn labelled(self) -> String {
        match self {
            Self::Kernels => self.short_label().to_owned(),
            Self::Collectives | Self::Copies => format!("{} alone", self.short_label()),
            _ => format!("idle: {}", self.short_label()),
        }
    }

    /// Returns true if nothing runs on the device.
    pub fn is_idle(self) -> bool {
        !matches!(self, Self::Kernels | Self::Collectives | Self::Copies)
    }
}

/// Cause of idle time, finer than [`TimeCategory`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// The thread was in a call that waits for the GPU, or had returned from one and not yet reached its next launch.
    Sync,
    /// The thread launches kernels one after the other.
    Launch,
    /// The thread starts a copy or a memset.
    CopyCall,
    Compute,
    Wait,
    /// The program is a server and had no requests.
    NoRequests,
    Alloc,
    Compile,
    Graph,
    /// The next operation had already been launched before the gap: the device paused, or the operation waited for
    /// another queue.
    Queued,
    /// The gap ends with the migration of managed memory, triggered by a page fault.
    Paging,
    /// Nothing more was launched on the device.
    Ended,
    /// The process that launches the next operation had not made its first call, and the last one belongs to another.
    Absent,
    /// The thread was in another CUDA call.
    OtherCall,
    /// Host activity outside of CUDA that the report does not record.
    Unknown,
    /// The report does not record the call that started the next operation.
    NoCall,
}

impl Cause {
    pub const ALL: [Self; 16] = [
        Self::Sync,
        Self::Launch,
        Self::CopyCall,
        Self::Compute,
        Self::Wait,
        Self::NoRequests,
        Self::Alloc,
        Self::Compile,
        Self::Graph,
        Self::Queued,
        Self::Paging,
        Self::Ended,
        Self::Absent,
        Self::OtherCall,
        Self::Unknown,
        Self::NoCall,
    ];

    /// Category to which the cause belongs.
    pub fn part(self) -> TimeCategory {
        match self {
            Self::Sync => TimeCategory::Synchronising,
            Self::Launch | Self::CopyCall => TimeCategory::Launching,
            Self::Compute => TimeCategory::Computing,
            Self::Wait | Self::NoRequests => TimeCategory::Waiting,
            Self::Alloc => TimeCategory::Allocating,
            Self::Compile => TimeCategory::Compiling,
            Self::Graph => TimeCategory::Graphs,
            Self::Queued | Self::Paging | Self::Ended | Self::Absent | Self::OtherCall | Self::Unknown | Self::NoCall => {
                TimeCategory::Other
            }
        }
    }

    /// Returns true if the cause is activity of the thread that launches the next operation.
    pub fn is_of_host(self) -> bool {
        !matches!(self, Self::NoRequests | Self::Queued | Self::Paging | Self::Ended | Self::Absent | Self::NoCall)
    }

    /// Description of the host's activity.
    pub fn as_text(self) -> &'static str {
        match self {
            Self::Sync => "in a synchronization, or just back from one",
            Self::Launch => "launching kernels",
            Self::CopyCall => "issuing memcpys and memsets",
            Self::Compute => "computing",
            Self::Wait => "waiting",
            Self::NoRequests => "without requests",
            Self::Alloc => "allocating or freeing memory",
            Self::Compile => "compiling or loading code",
            Self::Graph => "capturing or instantiating graphs",
            Self::Queued => "waiting for nothing: the next operation was queued already",
            Self::Paging => "touching managed memory, or waiting for its pages",
            Self::Ended => "done with this device: nothing more was launched on it",
            Self::Absent => "not there: the process that launches next had made no call yet",
            Self::OtherCall => "in other driver calls",
            Self::Unknown => "outside the driver, not recorded",
            Self::NoCall => "not recorded",
        }
    }
}

/// Time by cause, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByCause([i64; Cause::ALL.len()]);

impl ByCause {
    pub fn add(&mut self, cause: Cause, ns: i64) {
        self.0[cause as usize] += ns;
    }

    pub fn get(&self, cause: Cause) -> i64 {
        self.0[cause as usize]
    }

    pub fn total(&self) -> i64 {
        self.0.iter().sum()
    }

    /// Idle time in a category, ns.
    pub fn of_part(&self, part: TimeCategory) -> i64 {
        Cause::ALL.iter().filter(|c| c.part() == part).map(|c| self.get(*c)).sum()
    }

    /// Returns the category with the most time, if any.
    pub fn largest_part(&self) -> Option<TimeCategory> {
        let (ns, part) = TimeCategory::ALL.into_iter().map(|p| (self.of_part(p), p)).max_by_key(|e| e.0)?;
        (ns > 0).then_some(part)
    }

    pub fn add_all(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_and_parts_are_listed_in_the_order_of_their_numbers() {
        assert!(Cause::ALL.iter().enumerate().all(|(i, c)| *c as usize == i));
        assert!(TimeCategory::ALL.iter().enumerate().all(|(i, p)| *p as usize == i));
        assert!(Cause::ALL.iter().all(|c| c.part().is_idle()));
    }
}
