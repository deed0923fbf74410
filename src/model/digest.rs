//! Digest of a rank (a `.wsd` file), small enough to send and to compare with hundreds of other ranks.
//!
//! A file consists of [`MAGIC`] followed by the zstd-compressed protobuf message [`Digest`]; unknown fields from
//! later versions are skipped. Times are in ns on the report's own clock. Delta-encoded columns start from 0.

use prost::Message;
use std::collections::HashMap;

/// First bytes of a file; the last of them is the version.
pub const MAGIC: &[u8; 4] = b"WSD1";
/// Limit of plausible times and durations, ns: 104 days.
const FAR: i64 = 1 << 53;
/// Maximum size of an unpacked message; the largest that we write is about 2 MiB. In memory, columns take up to
/// sixteen times their encoded size.
const MOST: u64 = 8 << 20;
/// Decompression is limited to `BASE` bytes plus `PACKED_TIMES` times the file size (and to `MOST`), so that a small
/// file cannot fill the memory. Real digests compress by a factor of two to five.
const BASE: u64 = 1 << 20;
const PACKED_TIMES: u64 = 64;
/// Maximum number of top-level fields in a message, and maximum number of kinds of collectives.
const MOST_PARTS: usize = 10_000;
const MOST_KINDS: usize = 256;
/// Maximum number of host functions in a digest.
pub const MOST_HOST_LINES: usize = 16;

/// One rank of a job, or one GPU of a process that drives several.
#[derive(Clone, PartialEq, Message)]
pub struct Digest {
    /// File name of the source report.
    #[prost(string, tag = "1")]
    pub file: String,
    #[prost(string, tag = "2")]
    pub tool: String,
    #[prost(string, optional, tag = "3")]
    pub host: Option<String>,
    #[prost(uint32, optional, tag = "4")]
    pub rank: Option<u32>,
    /// Number of ranks in the job.
    #[prost(uint32, optional, tag = "5")]
    pub world: Option<u32>,
    #[prost(uint32, optional, tag = "6")]
    pub pid: Option<u32>,
    /// Index of the rank's GPU.
    #[prost(uint32, optional, tag = "7")]
    pub device: Option<u32>,
    #[prost(string, optional, tag = "8")]
    pub device_name: Option<String>,
    /// Time 0 of the report, in nanoseconds since 1970.
    #[prost(sint64, optional, tag = "9")]
    pub epoch: Option<i64>,
    /// Start of the first operation and end of the last.
    #[prost(sint64, tag = "10")]
    pub start: i64,
    #[prost(sint64, tag = "11")]
    pub end: i64,
    /// The analyzed window, and the part of it (`judged`) to which the verdict applies.
    #[prost(sint64, tag = "12")]
    pub window_start: i64,
    #[prost(sint64, tag = "13")]
    pub window_end: i64,
    #[prost(sint64, tag = "14")]
    pub judged: i64,
    /// Breakdown of GPU time in the window: one value per time category of the triage, in its order.
    #[prost(sint64, repeated, tag = "15")]
    pub parts: Vec<i64>,
    /// Time spent in collectives within the window, whether or not they overlap with compute.
    #[prost(sint64, tag = "16")]
    pub collective_time: i64,
    /// Total duration of all kernels except collectives, in the whole report.
    #[prost(sint64, tag = "17")]
    pub kernel_time: i64,
    #[prost(uint64, tag = "18")]
    pub launches: u64,
    #[prost(message, optional, tag = "19")]
    pub steps: Option<Steps>,
    #[prost(message, repeated, tag = "20")]
    pub kernels: Vec<Kernel>,
    #[prost(message, repeated, tag = "21")]
    pub kinds: Vec<CollectiveKind>,
    #[prost(message, optional, tag = "22")]
    pub collectives: Option<Collectives>,
    #[prost(message, repeated, tag = "23")]
    pub findings: Vec<RankFinding>,
    /// Notes on data that was not recorded, and how that limits the analysis.
    #[prost(string, repeated, tag = "24")]
    pub missing: Vec<String>,
    /// Description of unrecorded work, if there is so much that idle time and shares are unknown.
    #[prost(string, optional, tag = "25")]
    pub unrecorded: Option<String>,
    /// Functions of the program during which the GPU is idle longest.
    #[prost(message, repeated, tag = "26")]
    pub host_lines: Vec<HostLine>,
}

/// A function of the program that a launching thread executes while the GPU is idle.
#[derive(Clone, PartialEq, Message)]
pub struct HostLine {
    /// Function with file and line, such as `collate (data.py:88)`.
    #[prost(string, tag = "1")]
    pub label: String,
    /// GPU idle time, ns.
    #[prost(sint64, tag = "2")]
    pub ns: i64,
}

/// Steps, stored in columns.
#[derive(Clone, PartialEq, Message)]
pub struct Steps {
    /// Index among the steps of the run, from 0.
    #[prost(uint32, repeated, tag = "1")]
    pub number: Vec<u32>,
    /// Difference from the start of the previous step.
    #[prost(sint64, repeated, tag = "2")]
    pub start: Vec<i64>,
    #[prost(sint64, repeated, tag = "3")]
    pub length: Vec<i64>,
    /// Time spent in kernels other than collectives.
    #[prost(sint64, repeated, tag = "4")]
    pub compute: Vec<i64>,
    /// Time during which only collectives ran.
    #[prost(sint64, repeated, tag = "5")]
    pub exposed: Vec<i64>,
    #[prost(sint64, repeated, tag = "6")]
    pub idle: Vec<i64>,
}

/// A kernel and the distribution of its durations.
#[derive(Clone, PartialEq, Message)]
pub struct Kernel {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(uint64, tag = "2")]
    pub count: u64,
    #[prost(sint64, tag = "3")]
    pub total: i64,
    #[prost(sint64, tag = "4")]
    pub min: i64,
    #[prost(sint64, tag = "5")]
    pub max: i64,
    /// Numbers of the non-empty buckets of a histogram of durations, ascending. There are eight buckets per power of
    /// two of ns.
    #[prost(uint32, repeated, tag = "6")]
    pub bucket: Vec<u32>,
    #[prost(uint64, repeated, tag = "7")]
    pub filled: Vec<u64>,
    /// True if the kernel's name looks like that of a collective.
    #[prost(bool, tag = "8")]
    pub collective: bool,
}

/// All collectives of one kind in one group.
#[derive(Clone, PartialEq, Message)]
pub struct CollectiveKind {
    /// Kind as spelled in the report, such as `all_reduce` or `send_recv`; taken from the NCCL kernel's name if the
    /// framework does not report it.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Process group or communicator; if not in the report, the index among the rank's streams that run collectives.
    #[prost(string, tag = "2")]
    pub group: String,
    /// Ranks in the group, if listed in the report.
    #[prost(uint32, repeated, tag = "3")]
    pub ranks: Vec<u32>,
    #[prost(uint32, optional, tag = "4")]
    pub size: Option<u32>,
    /// NCCL's algorithm and protocol, such as `RING_LL`, from the kernel's name.
    #[prost(string, tag = "5")]
    pub algorithm: String,
    /// True if `sequence` counts the group's collectives over the whole run, not only within this report.
    #[prost(bool, tag = "6")]
    pub numbered: bool,
    /// Rank of the peer within the group, for sends and receives.
    #[prost(uint32, optional, tag = "7")]
    pub peer: Option<u32>,
    /// This rank's number within the group.
    #[prost(uint32, optional, tag = "8")]
    pub member: Option<u32>,
}

/// Collectives in order of start, stored in columns.
#[derive(Clone, PartialEq, Message)]
pub struct Collectives {
    /// Index into [`Digest::kinds`].
    #[prost(uint32, repeated, tag = "1")]
    pub kind: Vec<u32>,
    /// Sequence number within the group, as the difference from the group's previous collective.
    #[prost(sint64, repeated, tag = "2")]
    pub sequence: Vec<i64>,
    /// Difference from the start of the previous collective.
    #[prost(sint64, repeated, tag = "3")]
    pub start: Vec<i64>,
    #[prost(sint64, repeated, tag = "4")]
    pub duration: Vec<i64>,
    /// Bytes that each rank sends or receives, whichever is larger; 0 if unknown.
    #[prost(uint64, repeated, tag = "5")]
    pub bytes: Vec<u64>,
    /// Sampling interval: only collectives whose sequence number is a multiple of this value are stored.
    #[prost(uint32, tag = "6")]
    pub each: u32,
    /// Number of the enclosing step, as given by the program or its framework, plus 1; 0 if there is none. Empty if
    /// no collective belongs to a step.
    #[prost(uint32, repeated, tag = "7")]
    pub step: Vec<u32>,
}

/// A finding that concerns this rank alone.
#[derive(Clone, PartialEq, Message)]
pub struct RankFinding {
    #[prost(string, tag = "1")]
    pub id: String,
    #[prost(string, tag = "2")]
    pub headline: String,
    /// Affected share of the window, 0 to 1.
    #[prost(double, tag = "3")]
    pub stake: f64,
    #[prost(string, tag = "4")]
    pub severity: String,
}

/// A collective on one rank, timed by that rank's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collective {
    /// Index into [`Digest::kinds`].
    pub kind: usize,
    pub sequence: i64,
    pub start: i64,
    pub duration: i64,
    pub bytes: u64,
}

impl Collective {
    pub fn end(&self) -> i64 {
        self.start.saturating_add(self.duration)
    }
}

/// A step on one rank, timed by that rank's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankStep {
    pub number: u32,
    pub start: i64,
    pub length: i64,
    pub compute: i64,
    pub exposed: i64,
    pub idle: i64,
}

impl Digest {
    /// Encodes the digest as the contents of a file.
    pub fn to_bytes(&self) -> Vec<u8> {
        Self::pack_message(&self.encode_to_vec())
    }

    /// Compresses an encoded message into the contents of a file.
    pub fn pack_message(message: &[u8]) -> Vec<u8> {
        [&MAGIC[..], &zstd::bulk::compress(message, 6).unwrap_or_default()].concat()
    }

    /// Returns true if a file begins like a digest file, of any version.
    pub fn is_digest(head: &[u8]) -> bool {
        head.starts_with(&MAGIC[..3]) && head.get(3).is_some_and(u8::is_ascii_digit)
    }

    /// Decodes the contents of a file.
    ///
    /// # Errors
    /// Returns a description of the problem.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let Some(rest) = bytes.strip_prefix(MAGIC) else {
            let newer = bytes.starts_with(&MAGIC[..3]);
            return Err(if newer { "made by a later version of warpscope" } else { "not a digest of warpscope" }.to_owned());
        };
        let mut unpacked = Vec::new();
        let most = MOST.min(BASE.saturating_add((bytes.len() as u64).saturating_mul(PACKED_TIMES)));
        let reader = zstd::stream::read::Decoder::new(rest).map_err(|e| format!("damaged: {e}"))?;
        std::io::Read::read_to_end(&mut std::io::Read::take(reader, most), &mut unpacked).map_err(|e| format!("damaged: {e}"))?;
        if unpacked.len() as u64 == most {
            return Err("larger than a digest can be".to_owned());
        }
        if count_fields(&unpacked).is_none_or(|n| n > MOST_PARTS) {
            return Err("damaged, or of more parts than a digest has".to_owned());
        }
        Self::decode(&unpacked[..]).map(Self::clamp_values).map_err(|e| format!("damaged: {e}"))
    }

    /// Clamps times and truncates lists, so that damaged files cannot cause overflows.
    fn clamp_values(mut self) -> Self {
        let fit = |n: &mut i64| *n = (*n).clamp(-FAR, FAR);
        let all = [&mut self.start, &mut self.end, &mut self.window_start, &mut self.window_end, &mut self.judged];
        all.into_iter().chain([&mut self.collective_time, &mut self.kernel_time]).for_each(fit);
        self.epoch = self.epoch.map(|e| e.clamp(-(1 << 62), 1 << 62));
        self.parts.iter_mut().for_each(fit);
        self.parts.truncate(64);
        self.kinds.truncate(MOST_KINDS);
        self.host_lines.truncate(MOST_HOST_LINES);
        self.host_lines.iter_mut().for_each(|l| fit(&mut l.ns));
        self.findings.iter_mut().for_each(|f| f.stake = if f.stake.is_finite() { f.stake.clamp(0.0, 1.0) } else { 0.0 });
        for kernel in &mut self.kernels {
            [&mut kernel.total, &mut kernel.min, &mut kernel.max].into_iter().for_each(fit);
            kernel.count = kernel.count.min(FAR.unsigned_abs());
        }
        if let Some(steps) = &mut self.steps {
            let columns = [&mut steps.start, &mut steps.length, &mut steps.compute, &mut steps.exposed, &mut steps.idle];
            columns.into_iter().flatten().for_each(fit);
        }
        if let Some(of) = &mut self.collectives {
            [&mut of.sequence, &mut of.start, &mut of.duration].into_iter().flatten().for_each(fit);
            of.each = of.each.clamp(1, 1 << 20);
        }
        self
    }

    /// Valid collectives, in order of start.
    pub fn collectives(&self) -> impl Iterator<Item = Collective> + '_ {
        let c = self.collectives.as_ref();
        let (mut start, mut before) = (0i64, vec![0i64; self.kinds.len()]);
        // Kinds that belong to the same group share its sequence numbers.
        let group: Vec<usize> =
            self.kinds.iter().map(|k| self.kinds.iter().position(|o| (&o.group, &o.ranks) == (&k.group, &k.ranks)).unwrap_or(0)).collect();
        (0..c.map_or(0, |c| c.kind.len())).filter_map(move |i| {
            let c = c?;
            let kind = c.kind[i] as usize;
            let of = *group.get(kind)?;
            start = start.saturating_add(*c.start.get(i)?);
            before[of] = before[of].saturating_add(*c.sequence.get(i)?);
            let duration = (*c.duration.get(i)?).max(0);
            Some(Collective { kind, sequence: before[of], start, duration, bytes: c.bytes.get(i).copied().unwrap_or(0) })
        })
    }

    /// Stores collectives, which must be ordered by start.
    pub fn set_collectives(&mut self, list: &[Collective], each: u32) {
        let group = |kind: usize| {
            let of = self.kinds.get(kind);
            self.kinds.iter().position(|o| of.is_some_and(|k| (&o.group, &o.ranks) == (&k.group, &k.ranks))).unwrap_or(0)
        };
        let groups: Vec<usize> = (0..self.kinds.len()).map(group).collect();
        let mut out = Collectives { each, ..Collectives::default() };
        let (mut start, mut before) = (0, vec![0i64; self.kinds.len()]);
        for c in list.iter().filter(|c| c.kind < groups.len()) {
            out.kind.push(u32::try_from(c.kind).unwrap_or(u32::MAX));
            out.sequence.push(c.sequence.saturating_sub(before[groups[c.kind]]));
            before[groups[c.kind]] = c.sequence;
            out.start.push(c.start.saturating_sub(start));
            start = c.start;
            out.duration.push(c.duration);
            out.bytes.push(c.bytes);
        }
        if out.bytes.iter().all(|&b| b == 0) {
            out.bytes = Vec::new();
        }
        self.collectives = Some(out);
    }

    /// Step numbers of collectives, by kind and sequence number.
    pub fn steps_of_collectives(&self) -> HashMap<(usize, i64), u32> {
        let named = self.collectives.as_ref().map(|c| &c.step[..]).unwrap_or_default();
        let step = |at: usize| named.get(at).and_then(|s| s.checked_sub(1));
        if named.len() == self.collectives().count() {
            self.collectives().enumerate().filter_map(|(at, c)| Some(((c.kind, c.sequence), step(at)?))).collect()
        } else {
            HashMap::new()
        }
    }

    /// Sets the step number of each collective, in the order in which they were passed to [`Self::set_collectives`].
    pub fn set_steps_of_collectives(&mut self, list: &[Option<u32>]) {
        if let Some(of) = self.collectives.as_mut().filter(|c| c.kind.len() == list.len() && list.iter().any(Option::is_some)) {
            of.step = list.iter().map(|s| s.map_or(0, |s| s.saturating_add(1))).collect();
        }
    }

    /// Steps, in order of start.
    pub fn steps(&self) -> Vec<RankStep> {
        let Some(s) = &self.steps else { return Vec::new() };
        let mut start = 0i64;
        let of = |column: &[i64], i: usize| column.get(i).copied().unwrap_or(0).max(0);
        (0..s.number.len().min(s.start.len()).min(s.length.len()))
            .map(|i| {
                start = start.saturating_add(s.start[i]);
                RankStep {
                    number: s.number[i],
                    start,
                    length: of(&s.length, i),
                    compute: of(&s.compute, i),
                    exposed: of(&s.exposed, i),
                    idle: of(&s.idle, i),
                }
            })
            .collect()
    }

    pub fn set_steps(&mut self, list: &[RankStep]) {
        let mut out = Steps::default();
        let mut start = 0;
        for s in list {
            out.number.push(s.number);
            out.start.push(s.start.saturating_sub(start));
            start = s.start;
            out.length.push(s.length);
            out.compute.push(s.compute);
            out.exposed.push(s.exposed);
            out.idle.push(s.idle);
        }
        self.steps = (!list.is_empty()).then_some(out);
    }
}

/// Counts the top-level fields of a message, because a decoded field may take far more memory than its encoding.
/// `None` if the message is damaged.
fn count_fields(message: &[u8]) -> Option<usize> {
    let (mut rest, mut n) = (message, 0usize);
    while !rest.is_empty() {
        let key = prost::encoding::decode_varint(&mut rest).ok()?;
        let skipped = match key & 7 {
            0 => {
                prost::encoding::decode_varint(&mut rest).ok()?;
                0
            }
            1 => 8,
            2 => prost::encoding::decode_varint(&mut rest).ok()?,
            5 => 4,
            _ => return None,
        };
        rest = rest.get(usize::try_from(skipped).ok()?..)?;
        n += 1;
    }
    Some(n)
}

/// Number of the histogram bucket for a duration; there are eight per power of two of ns.
pub fn duration_bucket(ns: i64) -> u32 {
    let value = ns.max(1).cast_unsigned();
    let power = value.ilog2();
    let eighth = if power >= 3 { value >> (power - 3) & 7 } else { value << (3 - power) & 7 };
    power * 8 + u32::try_from(eighth).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_comes_back_as_it_was() {
        let kind = |group: &str| CollectiveKind {
            name: "all_reduce".to_owned(),
            group: group.to_owned(),
            numbered: true,
            ..CollectiveKind::default()
        };
        let mut digest = Digest { rank: Some(3), kinds: vec![kind("0"), kind("1")], ..Digest::default() };
        let one = |i: i64| Collective { kind: usize::from(i % 2 == 1), sequence: i / 2, start: 1000 * i, duration: 10 + i, bytes: 4096 };
        let list: Vec<Collective> = (0..100).map(one).collect();
        digest.set_collectives(&list, 1);
        let steps = [RankStep { number: 3, start: 100, length: 50, compute: 30, exposed: 10, idle: 10 }; 2];
        digest.set_steps(&steps);
        let bytes = digest.to_bytes();
        let back = Digest::from_bytes(&bytes).unwrap();
        assert_eq!((back.collectives().collect::<Vec<_>>(), back.steps()), (list, steps.to_vec()));
        assert_eq!(back, digest);
        for cut in 0..bytes.len() {
            assert!(Digest::from_bytes(&bytes[..cut]).is_err());
        }
        assert!(Digest::from_bytes(b"WSD2....").unwrap_err().contains("later version"));
    }

    #[test]
    fn a_small_file_holds_no_large_message() {
        let columns = |n: usize| Digest { parts: vec![0; n], ..Digest::default() };
        // The first length corresponds to the number of steps in the largest digest.
        for (n, taken) in [(1 << 19, true), (1 << 21, false), (60 << 20, false)] {
            let bytes = columns(n).to_bytes();
            assert!(bytes.len() < 10_000);
            let read = Digest::from_bytes(&bytes);
            assert_eq!(read.is_ok(), taken, "{n}");
            assert!(taken || read.unwrap_err().contains("larger"), "{n}");
        }
    }

    #[test]
    fn buckets_are_eighths_of_powers_of_two() {
        assert_eq!([1, 2, 3, 8, 9, 15, 16, 1024].map(duration_bucket), [0, 8, 12, 24, 25, 31, 32, 80]);
        assert!((1..5000).all(|n| duration_bucket(n) <= duration_bucket(n + 1)));
    }
}
