//! Groups the blocks of one or more files by process, and decodes them in parallel.

use super::blocks::{self, Block};
use super::build::Section;
use super::key_values::Facts;
use super::notes::Missing;
use super::rows::Rows;
use crate::import::{Budget, ImportError, Input, Job};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Number of blocks that a thread claims at a time.
const TAKEN: usize = 64;

/// Rows and block numbers from one file of a process.
struct Part {
    section: Section,
    numbers: Vec<u32>,
    /// Number of the file within the process: 0 for the first file, then from 1 for the files that continue it.
    number: u64,
}

/// Reads the processes in the files, and determines which parts are missing.
pub fn read_sections(files: &[Cow<'_, [u8]>], input: &Input, job: &Job<'_>) -> Result<(Vec<Section>, Missing), ImportError> {
    let (mut parts, mut missing): (Vec<Part>, _) = (Vec::new(), Missing::default());
    // A trace that is being followed has no stored file size.
    let plain = files.iter().map(|bytes| bytes.len() as u64).sum();
    let budget =
        Budget::from_plain_size(&input.path, if input.stored_size() == 0 || files.len() > 1 { plain } else { input.stored_size() }, plain);
    for bytes in files {
        let pace = job.cancel.pace();
        let Some((blocks, damage)) = blocks::find_blocks_paced(bytes, &pace) else {
            return Err(ImportError::Cancelled { path: input.path.clone() });
        };
        missing.damage.passed += damage.passed;
        missing.damage.torn += damage.torn;
        // A file may be a concatenation of traces from several processes.
        for blocks in blocks.chunk_by(|_, next| !next.is_file_start()) {
            let rows = decode_blocks(blocks, input, &budget, job)?;
            let facts = Facts::join_all(&rows.facts);
            let number = facts.number("continues").unwrap_or(0);
            parts.push(Part { section: Section { rows, facts }, numbers: sequence_numbers(blocks), number });
        }
    }
    // Sort the first file of a process first, because it contains the facts and names.
    parts.sort_by_key(|p| p.number);
    let mut whole: Vec<Part> = Vec::new();
    let mut first: FxHashMap<[Option<String>; 3], usize> = FxHashMap::default();
    for mut part in parts {
        let process = part.section.facts.process_key().map(|fact| fact.map(str::to_owned));
        match first.get(&process).filter(|_| part.number > 0).and_then(|at| whole.get_mut(*at)) {
            Some(first) => {
                first.numbers.append(&mut part.numbers);
                first.section.rows.append(part.section.rows);
                first.section.rows.continuing += 1;
            }
            None => {
                missing.first |= part.number > 0;
                first.entry(process).or_insert(whole.len());
                whole.push(part);
            }
        }
    }
    missing.blocks = whole.iter().map(|p| if p.section.facts.is_rolling() { 0 } else { count_missing(&p.numbers) }).sum();
    Ok((whole.into_iter().map(|p| p.section).collect(), missing))
}

/// Returns the blocks' sequence numbers. If there are gaps, only of undamaged blocks: a damaged number may be any.
fn sequence_numbers(blocks: &[Block<'_>]) -> Vec<u32> {
    let all: Vec<u32> = blocks.iter().map(|b| b.sequence).collect();
    if count_missing(&all) == 0 {
        return all;
    }
    blocks.iter().filter(|b| b.has_valid_checksum()).map(|b| b.sequence).collect()
}

/// Returns how many sequence numbers are missing before the last one.
fn count_missing(numbers: &[u32]) -> u64 {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.last().map_or(0, |&last| (u64::from(last) + 1).saturating_sub(numbers.len() as u64))
}

/// Decodes the blocks in parallel.
fn decode_blocks(blocks: &[Block<'_>], input: &Input, budget: &Budget, job: &Job<'_>) -> Result<Rows, ImportError> {
    let total: usize = blocks.iter().map(|b| b.data.len()).sum();
    let pieces: Vec<&[Block<'_>]> = blocks.chunks(TAKEN).collect();
    let (next, done, full) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
    let work = || {
        let mut out = Vec::new();
        let pace = job.cancel.pace();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(piece) = pieces.get(at).filter(|_| !job.cancel.is_cancelled()) else { return out };
            let mut rows = Rows::default();
            for block in *piece {
                if !pace.count_steps(block.data.len() + 1) {
                    return out;
                }
                rows.decode_block(block, job.wants);
                done.fetch_add(block.data.len(), Ordering::Relaxed);
            }
            if full.load(Ordering::Relaxed) || !budget.try_spend(rows.memory_bytes()) {
                full.store(true, Ordering::Relaxed);
                return out;
            }
            job.report_progress("records", done.load(Ordering::Relaxed) as u64, total as u64);
            out.push((at, rows));
        }
    };
    let threads = job.threads.clamp(1, 16).min(pieces.len().max(1));
    let parts = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut parts = work();
        for other in others {
            parts.extend(other.join().ok()?);
        }
        Some(parts)
    });
    if job.cancel.is_cancelled() {
        return Err(ImportError::Cancelled { path: input.path.clone() });
    }
    if full.into_inner() {
        return Err(budget.exceeded_error());
    }
    let mut parts = parts.ok_or_else(|| ImportError::Tool {
        path: input.path.clone(),
        what: "a thread of the reader failed".to_owned(),
        next: "this is a bug in warpscope: please report it with the file".to_owned(),
    })?;
    parts.sort_by_key(|(at, _)| *at);
    let mut all = parts.into_iter().map(|(_, rows)| rows);
    let mut rows = all.next().unwrap_or_default();
    all.for_each(|later| rows.append(later));
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_number_counts_as_one_block() {
        let file: Vec<Vec<u8>> = (0..5).map(|i| blocks::encode_block(2, 1, i, 0, b"rows")).collect();
        let missing = |file: &[Vec<u8>]| count_missing(&sequence_numbers(&blocks::find_blocks(&file.concat()).0));
        assert_eq!(missing(&file), 0);
        let mut flipped = file.clone();
        // The highest byte of a block's number.
        flipped[2][23] ^= 0x80;
        assert_eq!(missing(&flipped), 1, "not 2,147,483,645");
        assert_eq!(missing(&[&file[..1], &file[3..]].concat()), 2);
    }
}
