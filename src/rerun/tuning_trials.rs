//! Trials of a compiler that tunes a kernel while the program runs, as Triton's autotuner does: it launches the
//! kernel many times in a row, each time with code that was compiled differently. Compiled code always needs the same
//! number of registers, so other numbers show that there were several.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Launches in a row with the same code that make a trial. Triton's autotuner measures for 100 ms, so at least 20
/// launches of all but the longest kernels fit (vLLM 0.26 on an H200: 99 to 107).
const LAUNCHES: usize = 20;
/// Most launches of the process, for each of them: the tuner may clear the cache in between, and a step of a program
/// launches more kernels than that.
const PER_LAUNCH: u64 = 3;

#[derive(Debug)]
struct Burst {
    registers: u32,
    /// Numbers of its latest launches among the process's launches.
    latest: VecDeque<u64>,
}

#[derive(Debug, Default)]
pub struct TuningTrials {
    current: BTreeMap<u32, Burst>,
    tried: BTreeMap<u32, BTreeSet<u32>>,
}

impl TuningTrials {
    /// Adds a launch of a kernel; `number` counts the launches of its process.
    pub fn add_launch(&mut self, kernel: u32, registers: u32, number: u64) {
        let burst = self.current.entry(kernel).or_insert_with(|| Burst { registers, latest: VecDeque::new() });
        if burst.registers != registers {
            *burst = Burst { registers, latest: VecDeque::new() };
        }
        burst.latest.push_back(number);
        if burst.latest.len() < LAUNCHES {
            return;
        }
        let first = burst.latest.pop_front().unwrap_or(number);
        if number - first < PER_LAUNCH * LAUNCHES as u64 {
            self.tried.entry(kernel).or_default().insert(registers);
        }
    }

    /// Largest number of ways in which a kernel was compiled and tried.
    pub fn variants(&self) -> usize {
        self.tried.values().map(BTreeSet::len).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Launches of kernel 1, by registers; `others` launches of other kernels follow each.
    fn variants(runs: &[(u32, u32)], others: u64) -> usize {
        let (mut trials, mut number) = (TuningTrials::default(), 0);
        for &(registers, launches) in runs {
            for _ in 0..launches {
                trials.add_launch(1, registers, number);
                number += 1 + others;
            }
        }
        trials.variants()
    }

    #[test]
    fn trials_are_bursts_of_code_that_was_compiled_differently() {
        assert_eq!(variants(&[(32, 106), (16, 99), (32, 107)], 1), 2, "with a launch in between that clears the cache");
        assert_eq!(variants(&[(32, 6), (16, 1), (32, 99), (16, 99)], 1), 2, "after a few launches that estimate the time");
        assert_eq!(variants(&[(32, 5000)], 0), 1, "a loop over one kernel");
        assert_eq!(variants(&[(32, 20), (16, 3), (24, 3)], 0), 1, "three launches are no trial");
        assert_eq!(variants(&[(32, 500), (16, 500)], 9), 0, "two phases of a program with other kernels");
        assert_eq!(variants(&[(32, 1), (16, 1)].repeat(50), 0), 0, "alternating");
    }
}
