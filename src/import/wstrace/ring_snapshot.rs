//! Saves the most recent part of a trace as a new trace.

use super::blocks::{BlockKind, encode_block, find_blocks};
use super::process::Process;
use super::tail::Tail;
use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// Maximum number of bytes per read.
const CHUNK: u64 = 4 << 20;
/// Type number of blocks with facts.
const FACTS: u16 = 1;

/// Writes the dictionary and the rows of a process, with at most `most` kernels. `since` is the time from which to
/// write rows (ns since 1970), and the age of that time in ns; `None` writes all rows.
pub fn write_process<'t>(
    process: &Process,
    tails: impl Iterator<Item = &'t Tail>,
    (since, most): (Option<(i64, i64)>, u64),
    out: &mut impl Write,
) -> io::Result<()> {
    let mut sequence = 0;
    for block in &process.dictionary {
        for block in &find_blocks(block).0 {
            out.write_all(&block.with_sequence(sequence))?;
            sequence += 1;
        }
    }
    if let Some((_, kept)) = since {
        out.write_all(&encode_block(FACTS, 0, sequence, 2, &kept_fact(kept)))?;
        sequence += 1;
    }
    for tail in tails {
        let mut at = since.map_or(0, |(time, _)| tail.seek_offset(time, most));
        while at < tail.at {
            let mut bytes = vec![0; usize::try_from(CHUNK.min(tail.at - at)).unwrap_or(0)];
            tail.file.read_exact_at(&mut bytes, at)?;
            let (found, damage) = find_blocks(&bytes);
            let rows = |kind| {
                !matches!(
                    kind,
                    BlockKind::Facts
                        | BlockKind::Strings
                        | BlockKind::Configs
                        | BlockKind::Threads
                        | BlockKind::Device
                        | BlockKind::Unknown
                )
            };
            for block in found.iter().filter(|b| rows(b.kind) && b.has_valid_checksum()) {
                out.write_all(&block.with_sequence(sequence))?;
                sequence += 1;
            }
            let torn = damage.torn.min(bytes.len() as u64);
            // Skip a block that is larger than a piece, or that is damaged at the end.
            at += if torn == bytes.len() as u64 { torn } else { bytes.len() as u64 - torn };
        }
    }
    Ok(())
}

/// Encodes the facts that identify a snapshot and give the length of its recording.
fn kept_fact(ns: i64) -> Vec<u8> {
    let ms = (ns / 1_000_000).max(1).to_string();
    // All of these strings are shorter than 128 bytes, so each length takes one byte.
    ["kept_ms", &ms, "snapshot", "1"].iter().flat_map(|text| [&[u8::try_from(text.len()).unwrap_or(0)], text.as_bytes()].concat()).collect()
}

/// Writes to a temporary file and renames it to `path` once complete; fails if `path` exists.
pub fn save_atomically(path: &Path, write: impl FnOnce(&mut BufWriter<&std::fs::File>) -> io::Result<()>) -> io::Result<()> {
    let unfinished = path.with_extension(format!("{}.tmp", std::process::id()));
    if path.symlink_metadata().is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
    let mut out = BufWriter::new(&file);
    let done = write(&mut out).and_then(|()| out.flush()).and_then(|()| std::fs::rename(&unfinished, path));
    if done.is_err() {
        let _ = std::fs::remove_file(&unfinished);
    }
    done
}
