//! Step numbers set by the program or its framework. They serve to align ranks, because a step has the same number on
//! all of them.

use crate::analysis::name_pattern::name_pattern;
use crate::analysis::triage::StepSource;
use crate::model::Profile;
use rustc_hash::FxHashMap;

/// Name pattern of the step ranges written by PyTorch's profiler.
const STEPS: &str = "ProfilerStep#";

/// Numbered step ranges by process, sorted by start: start, end, number.
pub struct Marks {
    of_process: FxHashMap<u32, Vec<(i64, i64, u32)>>,
}

/// Returns the number in a name; `None` if the name contains none or several.
fn parse_step_number(name: &str) -> Option<u32> {
    let mut all = name.split(|c: char| !c.is_ascii_digit()).filter(|n| !n.is_empty());
    all.next().filter(|_| all.next().is_none())?.parse().ok()
}

impl Marks {
    /// Reads step numbers from the ranges of PyTorch's profiler, or else from the ranges that mark the steps.
    pub fn from_profile(profile: &Profile, found: Option<&StepSource>) -> Self {
        let ranges = &profile.ranges;
        let has = |wanted: &str| ranges.names.iter().any(|(_, name)| name_pattern(name) == wanted);
        let wanted = match found {
            Some(StepSource::Ranges(name)) if !has(STEPS) => name.as_str(),
            _ => STEPS,
        };
        let numbers: Vec<Option<u32>> =
            ranges.names.iter().map(|(_, name)| (name_pattern(name) == wanted).then(|| parse_step_number(name)).flatten()).collect();
        let mut of_process: FxHashMap<u32, Vec<(i64, i64, u32)>> = FxHashMap::default();
        for range in ranges.iter().filter(|r| !r.origin.is_hardware()) {
            if let Some(Some(number)) = numbers.get(range.name as usize) {
                let pid = ranges.threads.get(range.thread as usize).map_or(0, |t| t.0);
                of_process.entry(pid).or_default().push((range.start, range.end, *number));
            }
        }
        for list in of_process.values_mut() {
            list.sort_unstable();
        }
        Self { of_process }
    }

    /// Number of the step that a process executes at a time. If the process is unknown or has no marks, those of the
    /// only process with marks are used.
    pub fn step_at(&self, pid: Option<u32>, time: i64) -> Option<u32> {
        let own = pid.and_then(|pid| self.of_process.get(&pid));
        let only = || self.of_process.values().next().filter(|_| self.of_process.len() == 1);
        let list = own.or_else(only)?;
        let (_, end, number) = *list.get(list.partition_point(|m| m.0 <= time).checked_sub(1)?)?;
        (time < end).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_one_number_number_steps() {
        let all = ["ProfilerStep#12", "step 3", "decode 7 of 15", "step", "iteration 99999999999"].map(parse_step_number);
        assert_eq!(all, [Some(12), Some(3), None, None, None]);
    }
}
