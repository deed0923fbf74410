//! The blocks of a trace: found, and checked. What is damaged is passed over; the rest is whole by itself.

/// First bytes of every block.
pub const MAGIC: [u8; 4] = *b"WST1";
/// Bytes of a block's head, and of the part of it that its checksum covers.
const HEAD: usize = 28;
const CHECKED: usize = 24;
/// Flag of the first block of a file that continues another.
const CONTINUES: u16 = 1;

/// What is in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
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
    /// Names that the program gave its categories and threads.
    Given,
    /// Metrics that are collected together.
    Sets,
    /// Their values of single launches.
    Measured,
    /// Stall reasons of a launch's instructions.
    Stalls,
    /// A module's code.
    Code,
    /// Of a later version.
    Unknown,
}

impl Kind {
    fn of(number: u16) -> Self {
        const ALL: [Kind; 21] = [
            Kind::Facts,
            Kind::Strings,
            Kind::Configs,
            Kind::Kernels,
            Kind::MemOps,
            Kind::Calls,
            Kind::Events,
            Kind::Graphs,
            Kind::Memory,
            Kind::Overhead,
            Kind::Threads,
            Kind::Device,
            Kind::State,
            Kind::Stopped,
            Kind::End,
            Kind::States,
            Kind::Given,
            Kind::Sets,
            Kind::Measured,
            Kind::Stalls,
            Kind::Code,
        ];
        usize::from(number).checked_sub(1).and_then(|i| ALL.get(i)).copied().unwrap_or(Self::Unknown)
    }
}

/// One block whose head was read; its bytes are checked by [`Block::whole`].
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    pub kind: Kind,
    /// Rows in it.
    pub count: u32,
    /// Operating-system thread that its rows are of; 0 where they are of no single one.
    pub thread: u32,
    /// Counts up by one with every block that was written.
    pub sequence: u32,
    /// Whether a file begins with it that goes on where another of the same process ended.
    continues: bool,
    pub data: &'a [u8],
    /// Where it begins, from the beginning of the bytes that were looked through.
    pub at: usize,
    head: &'a [u8],
}

impl Block<'_> {
    /// Whether its checksum (CRC-32 as in IEEE 802.3) is that of its bytes.
    #[must_use]
    pub fn whole(&self) -> bool {
        let mut crc = crc32fast::Hasher::new();
        crc.update(&self.head[..CHECKED]);
        crc.update(self.data);
        crc.finalize() == u32_at(self.head, CHECKED)
    }
}

impl Block<'_> {
    /// Whether what follows is of another file than what came before.
    #[must_use]
    pub fn begins(&self) -> bool {
        self.sequence == 0 || self.continues
    }

    /// The same under another number.
    #[must_use]
    pub fn numbered(&self, sequence: u32) -> Vec<u8> {
        let mut head = [0; HEAD];
        head.copy_from_slice(self.head);
        head[20..CHECKED].copy_from_slice(&sequence.to_le_bytes());
        whole(head, self.data)
    }
}

/// A block with that head, but for its checksum, which is that of its bytes.
fn whole(mut head: [u8; HEAD], data: &[u8]) -> Vec<u8> {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&head[..CHECKED]);
    crc.update(data);
    head[CHECKED..].copy_from_slice(&crc.finalize().to_le_bytes());
    [&head, data].concat()
}

/// A block as the tracer writes it; `kind` is the number of the format.
#[must_use]
pub fn written(kind: u16, thread: u32, sequence: u32, count: u32, data: &[u8]) -> Vec<u8> {
    let mut head = [0; HEAD];
    head[..4].copy_from_slice(&MAGIC);
    head[4..6].copy_from_slice(&kind.to_le_bytes());
    let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
    for (at, number) in [(8, length), (12, count), (16, thread), (20, sequence)] {
        head[at..at + 4].copy_from_slice(&number.to_le_bytes());
    }
    whole(head, data)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).and_then(|b| b.try_into().ok()).map_or(0, u16::from_le_bytes)
}

/// What lies between blocks or behind the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Bytes before a later block that belong to none.
    pub passed: u64,
    /// Bytes at the end that are no whole block: one is being written, or the program was killed while it wrote.
    pub torn: u64,
}

fn block(bytes: &[u8]) -> Option<Block<'_>> {
    let head = bytes.get(..HEAD)?;
    if head[..4] != MAGIC {
        return None;
    }
    let length = usize::try_from(u32_at(head, 8)).ok()?;
    Some(Block {
        kind: Kind::of(u16_at(head, 4)),
        count: u32_at(head, 12),
        thread: u32_at(head, 16),
        sequence: u32_at(head, 20),
        continues: u16_at(head, 6) & CONTINUES != 0,
        data: bytes.get(HEAD..HEAD.checked_add(length)?)?,
        at: 0,
        head,
    })
}

/// All blocks of a file in order.
#[must_use]
pub fn blocks(bytes: &[u8]) -> (Vec<Block<'_>>, Damage) {
    let (mut out, mut damage) = (Vec::new(), Damage::default());
    let mut at = 0;
    while at < bytes.len() {
        let found = block(&bytes[at..]);
        if let Some(block) = found {
            let next = at + HEAD + block.data.len();
            let block = Block { at, ..block };
            // A head whose length is damaged leads astray: where no head follows, its checksum decides.
            if next == bytes.len() || bytes[next..].starts_with(&MAGIC) || block.whole() {
                out.push(block);
                at = next;
                continue;
            }
        }
        match memchr::memmem::find(&bytes[at + 1..], &MAGIC) {
            Some(more) => {
                damage.passed += more as u64 + 1;
                at += more + 1;
            }
            None => {
                damage.torn = (bytes.len() - at) as u64;
                break;
            }
        }
    }
    (out, damage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_length_costs_one_block() {
        let mut file = written(1, 0, 0, 1, b"one");
        let second = file.len();
        file.extend(written(2, 0, 1, 1, b"second"));
        file.extend(written(15, 0, 2, 1, b"end"));
        let kinds = |bytes: &[u8]| blocks(bytes).0.iter().map(|b| (b.kind, b.whole())).collect::<Vec<_>>();
        assert_eq!(kinds(&file), [(Kind::Facts, true), (Kind::Strings, true), (Kind::End, true)]);
        file[second + 8] = 3;
        assert_eq!(kinds(&file), [(Kind::Facts, true), (Kind::End, true)]);
        assert_eq!(blocks(&file).1, Damage { passed: 34, torn: 0 });
        let cut = &file[..file.len() - 1];
        assert_eq!(blocks(cut).1.torn, 30);
    }
}
