//! Recording coverage of a report, as JSON.

use crate::model::Profile;
use crate::model::coverage::Work;
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Serialize, JsonSchema)]
struct WorkJson {
    work: &'static str,
    calls: u64,
    unrecorded: u64,
}

#[derive(Serialize, JsonSchema)]
struct UnrecordedJson<'a> {
    work: &'static str,
    pid: u32,
    call: &'a str,
    calls: u64,
    unrecorded: u64,
    threads: &'a [u32],
    stretch: &'static str,
    first_ns: i64,
    last_ns: i64,
}

/// Missing and damaged parts.
#[derive(Serialize, JsonSchema)]
pub struct CoverageJson<'a> {
    /// True if host calls were read; without them, unrecorded work cannot be detected.
    calls_read: bool,
    /// True if enough was recorded to determine idle time, limits and shares; `null` if the host calls were not read.
    enough: Option<bool>,
    /// Sentence on what is missing.
    text: Option<String>,
    fix: Option<String>,
    /// Calls whose work was not recorded, by kind of work.
    work: Vec<WorkJson>,
    unrecorded: Vec<UnrecordedJson<'a>>,
    /// Kernels without valid times.
    untimed_kernels: u64,
    untimed_copies: u64,
    /// Kernels that overlap the next one on their stream: their times are too long.
    overrun_kernels: u64,
    overrun_ns: i64,
}

impl<'a> From<&'a Profile> for CoverageJson<'a> {
    fn from(profile: &'a Profile) -> Self {
        let c = &profile.coverage;
        let text = c.describe_losses();
        Self {
            calls_read: c.calls,
            enough: c.calls.then(|| !c.is_inconclusive()),
            fix: text.as_ref().map(|_| profile.advise_on_losses()),
            text,
            work: Work::ALL
                .into_iter()
                .filter(|&w| c.lost_calls(w).0 > 0)
                .map(|w| WorkJson { work: w.as_str(), calls: c.lost_calls(w).1, unrecorded: c.lost_calls(w).0 })
                .collect(),
            unrecorded: c
                .unrecorded
                .iter()
                .map(|u| UnrecordedJson {
                    work: u.work.as_str(),
                    pid: u.pid,
                    call: &u.name,
                    calls: u.calls,
                    unrecorded: u.lost,
                    threads: &u.threads,
                    stretch: u.stretch.as_str(),
                    first_ns: u.first,
                    last_ns: u.last,
                })
                .collect(),
            untimed_kernels: c.untimed,
            untimed_copies: c.untimed_copies,
            overrun_kernels: c.overrun,
            overrun_ns: c.overrun_ns,
        }
    }
}
