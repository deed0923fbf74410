//! Metadata of a trace ("facts"), which consists of keys and values in text form. Unknown keys are ignored.

use super::varint::Cursor;
use crate::model::clock::LAUNCHERS;
use crate::model::{Bytes, Capture, CaptureRange, Device, GraphMode, Rank, Vendor};

/// Maximum number of facts in a block; the tracer writes a few dozen, plus one per program argument.
const MOST: usize = 1 << 20;

/// Key-value pairs in the order in which they were written; the last value of a key wins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts(Vec<(String, String)>);

impl Facts {
    pub fn read(c: &mut Cursor<'_>) -> Option<Self> {
        let mut out = Vec::new();
        while !c.is_empty() {
            if out.len() == MOST {
                return None;
            }
            let mut text = || Some(String::from_utf8_lossy(c.read_text()?).into_owned());
            out.push((text()?, text()?));
        }
        Some(Self(out))
    }

    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().rev().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    pub fn number<N: std::str::FromStr>(&self, key: &str) -> Option<N> {
        self.get(key)?.parse().ok()
    }

    fn all_values<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a String> {
        self.0.iter().filter(move |(k, _)| k == key).map(|(_, v)| v)
    }

    /// Values that together identify a process.
    pub fn process_key(&self) -> [Option<&str>; 3] {
        ["host", "pid", "started"].map(|key| self.get(key))
    }

    /// Returns true if only the most recent part of the recording was kept.
    pub fn is_rolling(&self) -> bool {
        self.number::<u64>("kept_ms").is_some_and(|ms| ms > 0)
    }

    /// Memory for the facts, bytes, counted twice because [`Facts::join_all`] copies them.
    pub fn memory_bytes(&self) -> usize {
        self.0.iter().map(|(key, value)| 2 * (size_of::<(String, String)>() + key.len() + value.len())).sum()
    }

    /// Concatenates the facts of several blocks.
    pub fn join_all(all: &[Self]) -> Self {
        Self(all.iter().flat_map(|f| f.0.iter().cloned()).collect())
    }

    /// Returns the command that starts the program again: the process's own command line, or the user's command if
    /// the process cannot be started directly. The latter is the case for one of several processes of a launcher, for
    /// children of Python's multiprocessing and Ray workers, which communicate with their parent through pipes, and
    /// for processes that overwrote their arguments (setproctitle leaves them empty).
    fn launch_command(&self, siblings: bool) -> Vec<String> {
        const CHILDREN: [&str; 4] = ["from multiprocessing.", "--multiprocessing-fork", "ray/_private/workers/", "ray::"];
        let words = |key| self.all_values(key).cloned().collect::<Vec<_>>();
        let (own, launched) = (words("argument"), words("launched"));
        let renamed = own.len() > 1 && own.iter().skip(1).all(String::is_empty);
        let child = own.iter().any(|w| CHILDREN.iter().any(|part| w.contains(part)));
        if own.is_empty() || renamed || child || siblings && !launched.is_empty() { launched } else { own }
    }

    /// Capture settings of the trace. `siblings` is true if other recorded processes have the same parent.
    pub fn capture_info(&self, siblings: bool) -> Capture {
        let rolling = self.is_rolling().then_some(CaptureRange::Late);
        let gate = self.get("gate").map(|gate| match gate.split([':', '#']).next() {
            Some("profiler") => CaptureRange::ProfilerApi,
            // If a later occurrence of the range opened the gate, it is unknown how many came before it.
            Some("nvtx") if gate.starts_with("nvtx:") || gate.starts_with("nvtx#1:") => CaptureRange::Nvtx,
            _ => CaptureRange::Late,
        });
        Capture {
            argv: self.launch_command(siblings),
            directory: self.get("directory").map(str::to_owned),
            graphs: self.get("graphs").map(|g| if g == "whole" { GraphMode::Graph } else { GraphMode::Node }),
            gate: rolling.or(gate),
        }
    }

    /// Rank in a job, taken from the environment variables that launchers set.
    pub fn rank(&self) -> Rank {
        let of = |name: &str| self.number(&format!("environment.{name}"));
        Rank {
            rank: LAUNCHERS.iter().find_map(|(rank, _)| of(rank)),
            world: LAUNCHERS.iter().find_map(|(_, world)| of(world)),
            host: self.get("host").map(str::to_owned),
        }
    }

    /// Returns the GPU described by these facts.
    pub fn device(&self) -> Option<Device> {
        let some = |key| self.number::<u32>(key).filter(|&n| n > 0);
        let bytes = |key| self.number(key).filter(|&n: &u64| n > 0).map(Bytes);
        let warp = some("warp_size");
        // Memory has a double data rate: it transfers data on both clock edges.
        let bandwidth = self.number::<u64>("memory_clock_khz").zip(self.number::<u64>("memory_bus_bits"));
        Some(Device {
            id: self.number("device")?,
            maker: Vendor::Nvidia,
            name: self.get("name").map(str::to_owned),
            chip: None,
            bus: self.get("bus").map(str::to_owned),
            arch: None,
            compute_capability: self.number("cc_major").zip(self.number("cc_minor")),
            sm_count: some("sm_count"),
            clock_hz: self.number::<u64>("clock_khz").filter(|&k| k > 0).map(|k| k.saturating_mul(1000)),
            memory_bandwidth: bandwidth.map(|(khz, bits)| khz.saturating_mul(2000).saturating_mul(bits / 8)).filter(|&b| b > 0),
            memory: bytes("memory"),
            l2: bytes("l2_bytes"),
            warp_size: warp,
            max_warps_per_sm: some("threads_per_sm").zip(warp).and_then(|(threads, warp): (u32, u32)| threads.checked_div(warp)),
            max_blocks_per_sm: some("blocks_per_sm"),
            registers_per_sm: some("registers_per_sm"),
            registers_per_block: some("registers_per_block"),
            shared_per_sm: bytes("shared_per_sm"),
            shared_per_block: bytes("shared_per_block_optin").or_else(|| bytes("shared_per_block")),
            max_threads_per_block: some("max_threads_per_block"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_a_launchers_processes_is_run_again_by_the_launcher() {
        let facts = |pairs: &[(&str, &str)]| Facts(pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect());
        let rank = facts(&[("argument", "./app"), ("argument", "0"), ("launched", "mpirun"), ("launched", "-np"), ("launched", "2")]);
        assert_eq!(rank.launch_command(false), ["./app", "0"]);
        assert_eq!(rank.launch_command(true), ["mpirun", "-np", "2"]);
        // The user's command is unknown if the tracer was loaded manually.
        assert_eq!(facts(&[("argument", "./app")]).launch_command(true), ["./app"]);
    }
}
