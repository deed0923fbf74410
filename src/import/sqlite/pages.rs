//! Reads table b-trees page by page. SQLite steps through a table row by row, which takes three times as long as
//! decoding its pages and barely scales with the number of processors.
//!
//! Supports only the plain case: a complete file without a journal, ordinary tables with rowids, and no overflow
//! pages. In all other cases, even if the file is valid, functions return `None` and the caller uses SQLite.

use super::record::{Decoder, Odd, read_varint};
use crate::launch::open;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Size of the file header, which is at the start of page 1, bytes.
const HEADER: usize = 100;
/// Page types in a b-tree.
const TABLE_INTERIOR: u8 = 5;
const TABLE_LEAF: u8 = 13;
/// Maximum number of consecutive pages to read at once.
const RUN: usize = 64;
/// Maximum depth of a b-tree; even a tree of 2³² pages is not that deep.
const MOST_LEVELS: u8 = 20;

enum Bytes {
    File(File),
    Memory(&'static [u8]),
}

pub struct Pages {
    bytes: Bytes,
    /// Page size in bytes.
    size: usize,
    /// Number of usable bytes in a page.
    usable: usize,
    /// Number of pages.
    count: u32,
}

/// Leaf pages of a table, in rowid order.
#[derive(Debug)]
pub struct Leaves {
    /// Page number, and upper bound for the rowids on the page.
    list: Vec<(u32, i64)>,
}

fn read_uint(bytes: &[u8], at: usize, count: usize) -> Option<u64> {
    Some(bytes.get(at..at.checked_add(count)?)?.iter().fold(0_u64, |a, &b| a << 8 | u64::from(b)))
}

impl Pages {
    /// Opens a file of `size` bytes.
    pub fn open(path: &Path, size: u64) -> Option<Self> {
        let file = open::open_regular(path).ok()?;
        let mut head = [0; HEADER];
        file.read_exact_at(&mut head, 0).ok()?;
        Self::new(Bytes::File(file), &head, size)
    }

    pub fn in_memory(bytes: &'static [u8]) -> Option<Self> {
        Self::new(Bytes::Memory(bytes), bytes.get(..HEADER)?, bytes.len() as u64)
    }

    fn new(bytes: Bytes, head: &[u8], length: u64) -> Option<Self> {
        let page = match read_uint(head, 16, 2)? {
            1 => 65_536,
            n => usize::try_from(n).ok()?,
        };
        let plain = head.starts_with(b"SQLite format 3\0")
            && page.is_power_of_two()
            && (512..=65_536).contains(&page)
            // The encoding is UTF-8, or 0 if no text has been written.
            && matches!(read_uint(head, 56, 4)?, 0 | 1);
        if !plain {
            return None;
        }
        let usable = page.checked_sub(usize::from(*head.get(20)?))?;
        let count = u32::try_from(length / page as u64).ok()?;
        (usable >= 480 && count > 0).then_some(Self { bytes, size: page, usable, count })
    }

    /// Reads `count` consecutive pages, starting at `page`.
    fn read_pages(&self, page: u32, count: usize, buffer: &mut Vec<u8>) -> Option<()> {
        let at = u64::from(page.checked_sub(1)?) * self.size as u64;
        let length = count * self.size;
        match &self.bytes {
            Bytes::File(file) => {
                buffer.resize(length, 0);
                file.read_exact_at(buffer, at).ok()
            }
            Bytes::Memory(bytes) => {
                buffer.clear();
                let at = usize::try_from(at).ok()?;
                buffer.extend_from_slice(bytes.get(at..at.checked_add(length)?)?);
                Some(())
            }
        }
    }

    /// Parses the b-tree header of a page into page type, number of cells, and offset of the cell pointers.
    fn page_header(page: &[u8], number_of: u32) -> Option<(u8, usize, usize)> {
        let at = if number_of == 1 { HEADER } else { 0 };
        let kind = *page.get(at)?;
        let cells = usize::try_from(read_uint(page, at + 3, 2)?).ok()?;
        Some((kind, cells, at + if kind == TABLE_INTERIOR { 12 } else { 8 }))
    }

    /// Finds the leaves of the table with this root page; `None` if the tree refers to a page twice.
    pub fn find_leaves(&self, root: u32) -> Option<Leaves> {
        let mut seen = vec![0_u64; self.count as usize / 64 + 1];
        let mut list = Vec::new();
        let mut buffer = Vec::new();
        // Pages to visit, with the next one last: number, upper bound for the rowids on the page, depth.
        let mut stack: Vec<(u32, i64, u8)> = vec![(root, i64::MAX, 0)];
        // All leaves have the same depth, so once a leaf is found, pages at that depth need not be read to find their
        // type.
        let mut leaf_depth = None;
        while let Some((page, most, depth)) = stack.pop() {
            if page == 0 || page > self.count || depth > MOST_LEVELS {
                return None;
            }
            let bit = &mut seen[page as usize / 64];
            if *bit >> (page % 64) & 1 == 1 {
                return None;
            }
            *bit |= 1 << (page % 64);
            if leaf_depth == Some(depth) {
                list.push((page, most));
                continue;
            }
            self.read_pages(page, 1, &mut buffer)?;
            let (kind, cells, pointers) = Self::page_header(&buffer, page)?;
            match kind {
                TABLE_LEAF => {
                    leaf_depth = Some(depth);
                    list.push((page, most));
                }
                TABLE_INTERIOR => {
                    let right = u32::try_from(read_uint(&buffer, pointers - 4, 4)?).ok()?;
                    stack.push((right, most, depth + 1));
                    let from = stack.len();
                    for cell in 0..cells {
                        let at = usize::try_from(read_uint(&buffer, pointers + cell * 2, 2)?).ok()?;
                        let child = u32::try_from(read_uint(&buffer, at, 4)?).ok()?;
                        let (key, _) = read_varint(buffer.get(at.checked_add(4)?..)?)?;
                        stack.push((child, key.cast_signed(), depth + 1));
                    }
                    stack[from..].reverse();
                }
                _ => return None,
            }
        }
        // Rowids increase from one leaf to the next.
        list.is_sorted_by_key(|l| l.1).then_some(Leaves { list })
    }

    /// Calls `each` for every row between two rowids, in order, with the rowid, the wanted columns, and true if all
    /// of these are integers or NULL. Returns `None` if a page is not plain; the rows already passed to `each` must
    /// then be discarded.
    pub fn for_each_row(
        &self,
        leaves: &Leaves,
        (low, high): (i64, i64),
        scratch: &mut Scratch,
        odd: &impl Odd,
        mut each: impl FnMut(i64, &[i64], bool) -> Option<()>,
    ) -> Option<()> {
        let from = leaves.list.partition_point(|l| l.1 < low);
        let mut last = None;
        let mut at = from;
        while let Some(&(page, _)) = leaves.list.get(at) {
            // The upper bound for the previous leaf is a lower bound for this one.
            if at > from && leaves.list[at - 1].1 >= high {
                break;
            }
            let run = leaves.list[at..].iter().zip(page..).take(RUN).take_while(|((leaf, _), next)| leaf == next).count().max(1);
            self.read_pages(page, run, &mut scratch.pages)?;
            for (number, bytes) in (page..).zip(scratch.pages.chunks_exact(self.size)) {
                let (kind, cells, pointers) = Self::page_header(bytes, number)?;
                if kind != TABLE_LEAF {
                    return None;
                }
                let pointers = bytes.get(pointers..pointers + cells * 2)?;
                for pointer in pointers.as_chunks::<2>().0 {
                    let cell = bytes.get(usize::from(u16::from_be_bytes(*pointer))..self.usable)?;
                    let (length, first) = read_varint(cell)?;
                    let (row, second) = read_varint(cell.get(first..)?)?;
                    let row = row.cast_signed();
                    if row < low {
                        continue;
                    }
                    if row > high {
                        return Some(());
                    }
                    if last.is_some_and(|l| l >= row) {
                        return None;
                    }
                    last = Some(row);
                    let local = self.local_size(usize::try_from(length).ok()?);
                    let record = cell.get(first + second..).filter(|r| r.len() >= local)?;
                    let plain = scratch.decoder.decode_record(record, local, odd, &mut scratch.values)?;
                    each(row, &scratch.values, plain)?;
                }
            }
            at += run;
        }
        Some(())
    }

    /// Number of bytes of a payload of this length that are stored in the page itself; any others are on overflow
    /// pages.
    fn local_size(&self, length: usize) -> usize {
        let most = self.usable - 35;
        if length <= most {
            return length;
        }
        let least = (self.usable - 12) * 32 / 255 - 23;
        let fit = least + (length - least) % (self.usable - 4);
        if fit <= most { fit } else { least }
    }
}

/// Buffers for the wanted columns of a table, reused for all chunks.
#[derive(Debug)]
pub struct Scratch {
    pages: Vec<u8>,
    values: Vec<i64>,
    decoder: Decoder,
}

impl Scratch {
    /// Returns buffers for columns, given by index in ascending order.
    pub fn new(wanted: Vec<usize>) -> Self {
        let decoder = Decoder::new(wanted);
        Self { pages: Vec::new(), values: vec![0; decoder.len()], decoder }
    }
}
