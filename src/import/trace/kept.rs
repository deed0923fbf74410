//! The last seconds of a trace as a trace of its own.

use super::blocks::{Kind, blocks, written};
use super::process::Process;
use super::tail::Tail;
use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// Bytes that are read at once.
const CHUNK: u64 = 4 << 20;
/// The number of blocks of facts in the format.
const FACTS: u16 = 1;

/// Writes what rows of a process refer to, and all of them or those that were written since then, with how long ago that was, ns.
pub fn write<'t>(
    process: &Process,
    tails: impl Iterator<Item = &'t Tail>,
    (since, most): (Option<(i64, i64)>, u64),
    out: &mut impl Write,
) -> io::Result<()> {
    let mut sequence = 0;
    for block in &process.dictionary {
        for block in &blocks(block).0 {
            out.write_all(&block.numbered(sequence))?;
            sequence += 1;
        }
    }
    if let Some((_, kept)) = since {
        out.write_all(&written(FACTS, 0, sequence, 2, &kept_fact(kept)))?;
        sequence += 1;
    }
    for tail in tails {
        let mut at = since.map_or(0, |(time, _)| tail.since(time, most));
        while at < tail.at {
            let mut bytes = vec![0; usize::try_from(CHUNK.min(tail.at - at)).unwrap_or(0)];
            tail.file.read_exact_at(&mut bytes, at)?;
            let (found, damage) = blocks(&bytes);
            let rows = |kind| !matches!(kind, Kind::Facts | Kind::Strings | Kind::Configs | Kind::Threads | Kind::Device | Kind::Unknown);
            for block in found.iter().filter(|b| rows(b.kind) && b.whole()) {
                out.write_all(&block.numbered(sequence))?;
                sequence += 1;
            }
            let torn = damage.torn.min(bytes.len() as u64);
            // A block that is longer than a piece, or damaged at the end: it is left out.
            at += if torn == bytes.len() as u64 { torn } else { bytes.len() as u64 - torn };
        }
    }
    Ok(())
}

/// What says that only the last seconds were kept.
fn kept_fact(ns: i64) -> Vec<u8> {
    let ms = (ns / 1_000_000).max(1).to_string();
    // All are shorter than 128 bytes: their lengths are one byte each.
    ["kept_ms", &ms, "snapshot", "1"].iter().flat_map(|text| [&[u8::try_from(text.len()).unwrap_or(0)], text.as_bytes()].concat()).collect()
}

/// A file that is there only when it is whole.
pub fn save(path: &Path, write: impl FnOnce(&mut BufWriter<&std::fs::File>) -> io::Result<()>) -> io::Result<()> {
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
