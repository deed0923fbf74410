//! Block framing of a trace: finds and checks blocks. Blocks are self-contained, so a damaged one can be skipped.

use crate::model::{Cancel, Pace};
use crc32fast::Hasher;

/// Magic number at the start of every block.
pub const MAGIC: [u8; 4] = *b"WST1";
/// Size of a block's header and, within it, of the part that the checksum covers, bytes.
const HEAD: usize = 28;
const CHECKED: usize = 24;
/// Flag for the first block of a file that continues another file.
const CONTINUES: u16 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockKind {
    Facts,
    Strings,
    Configs,
    Kernels,
    MemOps,
    Calls,
    Events,
    Graphs,
    Memory,
    Overhead,
    Threads,
    Device,
    State,
    Stopped,
    End,
    States,
    /// Names given by the program to NVTX categories and threads.
    Given,
    /// Sets of metrics that are measured together.
    Sets,
    /// Metric values of individual launches.
    Measured,
    /// Stall reasons for the instructions of a launch.
    Stalls,
    /// Code of a module.
    Code,
    /// Python functions.
    Functions,
    Stacks,
    /// Samples of launching threads.
    Samples,
    /// Origins of graph nodes.
    GraphNodes,
    /// Modules of native code.
    Modules,
    /// Functions in them.
    NativeFunctions,
    /// A block type that this version does not support.
    Unknown,
}

impl BlockKind {
    fn from_number(number: u16) -> Self {
        const ALL: [BlockKind; 27] = [
            BlockKind::Facts,
            BlockKind::Strings,
            BlockKind::Configs,
            BlockKind::Kernels,
            BlockKind::MemOps,
            BlockKind::Calls,
            BlockKind::Events,
            BlockKind::Graphs,
            BlockKind::Memory,
            BlockKind::Overhead,
            BlockKind::Threads,
            BlockKind::Device,
            BlockKind::State,
            BlockKind::Stopped,
            BlockKind::End,
            BlockKind::States,
            BlockKind::Given,
            BlockKind::Sets,
            BlockKind::Measured,
            BlockKind::Stalls,
            BlockKind::Code,
            BlockKind::Functions,
            BlockKind::Stacks,
            BlockKind::Samples,
            BlockKind::GraphNodes,
            BlockKind::Modules,
            BlockKind::NativeFunctions,
        ];
        usize::from(number).checked_sub(1).and_then(|i| ALL.get(i)).copied().unwrap_or(Self::Unknown)
    }
}

/// A block whose header has been parsed, but whose checksum has not been verified (see
/// [`Block::has_valid_checksum`]).
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    pub kind: BlockKind,
    /// Number of rows.
    pub count: u32,
    /// OS thread id for the rows; 0 if they belong to several threads.
    pub thread: u32,
    /// Sequence number, which increases by one with every block of the process.
    pub sequence: u32,
    /// True for the first block of a file that continues another file of the same process.
    continues: bool,
    pub data: &'a [u8],
    /// Offset within the bytes searched.
    pub at: usize,
    head: &'a [u8],
}

impl Block<'_> {
    /// Returns true if the checksum (CRC-32 as in IEEE 802.3) matches the header and the data.
    pub fn has_valid_checksum(&self) -> bool {
        let mut crc = Hasher::new();
        crc.update(&self.head[..CHECKED]);
        crc.update(self.data);
        crc.finalize() == u32_at(self.head, CHECKED)
    }
}

impl Block<'_> {
    /// Returns true for the first block of a file.
    pub fn is_file_start(&self) -> bool {
        self.sequence == 0 || self.continues
    }

    /// Encodes the block with a different sequence number.
    pub fn with_sequence(&self, sequence: u32) -> Vec<u8> {
        let mut head = [0; HEAD];
        head.copy_from_slice(self.head);
        head[20..CHECKED].copy_from_slice(&sequence.to_le_bytes());
        seal_block(head, self.data)
    }
}

/// Encodes a block from its header and data, and sets the checksum.
fn seal_block(mut head: [u8; HEAD], data: &[u8]) -> Vec<u8> {
    let mut crc = Hasher::new();
    crc.update(&head[..CHECKED]);
    crc.update(data);
    head[CHECKED..].copy_from_slice(&crc.finalize().to_le_bytes());
    [&head, data].concat()
}

/// Encodes a block in the tracer's format; `kind` is the number of the block type.
pub fn encode_block(kind: u16, thread: u32, sequence: u32, count: u32, data: &[u8]) -> Vec<u8> {
    let mut head = [0; HEAD];
    head[..4].copy_from_slice(&MAGIC);
    head[4..6].copy_from_slice(&kind.to_le_bytes());
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
    for (at, number) in [(8, length), (12, count), (16, thread), (20, sequence)] {
        head[at..at + 4].copy_from_slice(&number.to_le_bytes());
    }
    seal_block(head, data)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).and_then(|b| b.try_into().ok()).map_or(0, u16::from_le_bytes)
}

/// Number of bytes in a file that do not belong to any block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Bytes skipped before and between blocks.
    pub passed: u64,
    /// Bytes of an incomplete block at the end, either because the tracer is still writing it or because the program
    /// was killed.
    pub torn: u64,
}

fn parse_block(bytes: &[u8]) -> Option<Block<'_>> {
    let head = bytes.get(..HEAD)?;
    if head[..4] != MAGIC {
        return None;
    }
    let length = usize::try_from(u32_at(head, 8)).ok()?;
    Some(Block {
        kind: BlockKind::from_number(u16_at(head, 4)),
        count: u32_at(head, 12),
        thread: u32_at(head, 16),
        sequence: u32_at(head, 20),
        continues: u16_at(head, 6) & CONTINUES != 0,
        data: bytes.get(HEAD..HEAD.checked_add(length)?)?,
        at: 0,
        head,
    })
}

/// Distance between the prefixes whose checksums are cached, bytes.
const FINE: usize = 256;

/// Cached checksums of prefixes, from which the checksum of any range can be computed. A corrupt file may contain a
/// header every few bytes; without the cache, each of these would require a checksum over all bytes that follow it.
struct Sums<'a> {
    bytes: &'a [u8],
    /// Checksum of the bytes before each multiple of [`FINE`].
    until: Vec<u32>,
}

impl<'a> Sums<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, until: Vec::new() }
    }

    /// Checksum of the bytes before `at`; `None` if canceled.
    fn prefix_sum(&mut self, at: usize, pace: &Pace) -> Option<Hasher> {
        while self.until.len() <= at / FINE {
            let next = match self.until.last() {
                None => 0,
                Some(&last) => {
                    let from = (self.until.len() - 1) * FINE;
                    let mut hasher = Hasher::new_with_initial_len(last, from as u64);
                    hasher.update(&self.bytes[from..from + FINE]);
                    hasher.finalize()
                }
            };
            self.until.push(next);
            pace.count_steps(FINE).then_some(())?;
        }
        let from = at - at % FINE;
        let mut hasher = Hasher::new_with_initial_len(self.until[at / FINE], from as u64);
        hasher.update(&self.bytes[from..at]);
        pace.count_steps(at % FINE).then_some(hasher)
    }

    /// Like [`Block::has_valid_checksum`], but uses the cache; `None` if canceled.
    fn check_block(&mut self, block: &Block<'_>, at: usize, pace: &Pace) -> Option<bool> {
        let from = at + HEAD;
        let (before, until) = (self.prefix_sum(from, pace)?, self.prefix_sum(from + block.data.len(), pace)?);
        // Remove the bytes before the data, by advancing their checksum by the length of the data.
        let mut moved = before;
        moved.combine(&Hasher::new_with_initial_len(0, block.data.len() as u64));
        let data = until.finalize() ^ moved.finalize();
        let mut whole = Hasher::new();
        whole.update(&block.head[..CHECKED]);
        whole.combine(&Hasher::new_with_initial_len(data, block.data.len() as u64));
        Some(whole.finalize() == u32_at(block.head, CHECKED))
    }
}

/// Finds all blocks of a file, in order.
pub fn find_blocks(bytes: &[u8]) -> (Vec<Block<'_>>, Damage) {
    find_blocks_paced(bytes, &Cancel::default().pace()).unwrap_or_default()
}

/// Like [`find_blocks`], but returns `None` if canceled.
pub fn find_blocks_paced<'a>(bytes: &'a [u8], pace: &Pace) -> Option<(Vec<Block<'a>>, Damage)> {
    let (mut out, mut damage) = (Vec::new(), Damage::default());
    let (mut at, mut sums) = (0, Sums::new(bytes));
    while at < bytes.len() {
        pace.count_steps(HEAD).then_some(())?;
        let found = parse_block(&bytes[at..]);
        if let Some(block) = found {
            let next = at + HEAD + block.data.len();
            let block = Block { at, ..block };
            // The length may be corrupt: if the block is not followed by a header, verify the checksum.
            if next == bytes.len() || bytes[next..].starts_with(&MAGIC) || sums.check_block(&block, at, pace)? {
                out.push(block);
                at = next;
                continue;
            }
        }
        match memchr::memmem::find(&bytes[at + 1..], &MAGIC) {
            Some(more) => {
                pace.count_steps(more).then_some(())?;
                damage.passed += more as u64 + 1;
                at += more + 1;
            }
            None => {
                damage.torn = (bytes.len() - at) as u64;
                break;
            }
        }
    }
    Some((out, damage))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_of_parts_are_those_of_their_bytes() {
        // Lengths near the cached prefixes. No header follows, so the checksum decides.
        for length in [0, 1, FINE - HEAD - 1, FINE - HEAD, FINE, 3 * FINE + 7] {
            let data: Vec<u8> = (0..length).map(|i| (i * 7 + 3) as u8).collect();
            for before in [0, 5, FINE - 1] {
                let mut file = [vec![9; before], encode_block(2, 1, 1, 1, &data), vec![9; 40]].concat();
                let kinds = |bytes: &[u8]| find_blocks(bytes).0.iter().map(|b| b.kind).collect::<Vec<_>>();
                assert_eq!(kinds(&file), [BlockKind::Strings], "{length} bytes at {before}");
                file[before + HEAD - 1] ^= 1;
                assert_eq!(kinds(&file), [], "{length} bytes at {before}");
            }
        }
    }

    #[test]
    fn heads_that_lead_astray_cost_no_more_than_the_bytes() {
        let steps = |n: u32| {
            let cancel = Cancel::default();
            let head = |i: u32| [&MAGIC[..], &[2, 0, 0, 0], &(n / 2 * 28 + 3).to_le_bytes(), &[0; 12], &i.to_le_bytes()].concat();
            let file: Vec<u8> = (0..n).flat_map(head).collect();
            assert!(find_blocks_paced(&file, &cancel.pace()).unwrap().0.is_empty());
            cancel.steps_done()
        };
        let (one, two) = (steps(2_000), steps(4_000));
        assert!(two * 2 <= one * 5, "{one} {two}");
    }

    #[test]
    fn a_damaged_length_costs_one_block() {
        let mut file = encode_block(1, 0, 0, 1, b"one");
        let second = file.len();
        file.extend(encode_block(2, 0, 1, 1, b"second"));
        file.extend(encode_block(15, 0, 2, 1, b"end"));
        let kinds = |bytes: &[u8]| find_blocks(bytes).0.iter().map(|b| (b.kind, b.has_valid_checksum())).collect::<Vec<_>>();
        assert_eq!(kinds(&file), [(BlockKind::Facts, true), (BlockKind::Strings, true), (BlockKind::End, true)]);
        file[second + 8] = 3;
        assert_eq!(kinds(&file), [(BlockKind::Facts, true), (BlockKind::End, true)]);
        assert_eq!(find_blocks(&file).1, Damage { passed: 34, torn: 0 });
        let cut = &file[..file.len() - 1];
        assert_eq!(find_blocks(cut).1.torn, 30);
    }
}
