//! Traces of the built-in tracer: one file for each process, readable while it grows. `FORMAT.md` beside this file describes every byte.

mod blocks;
mod build;
mod cursor;
mod facts;
mod kernels;
mod names;
mod notes;
mod ranges;
mod rows;

use super::input::Bytes;
use super::{ImportError, Importer, Input, Job};
use crate::model::{Profile, Source};
use blocks::Block;
use facts::Facts;
use notes::Missing;
use rows::Rows;
use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How names of traces end.
pub const SUFFIX: &str = "wstrace";
/// Version of the format that is read.
const FORMAT: u32 = 1;
/// Blocks that a thread takes at once.
const TAKEN: usize = 64;

pub struct WarpscopeTrace;

impl Importer for WarpscopeTrace {
    fn name(&self) -> &'static str {
        "warpscope trace"
    }

    fn files(&self) -> &'static [&'static str] {
        &[".wstrace"]
    }

    fn knows(&self, input: &Input) -> bool {
        input.head.starts_with(&blocks::MAGIC)
    }

    fn salvages(&self) -> bool {
        true
    }

    fn grows(&self) -> bool {
        true
    }

    fn read(&self, input: &Input, job: &Job<'_>) -> Result<Profile, ImportError> {
        let bytes: Cow<'_, [u8]> = match &input.bytes {
            Bytes::File(path) => Cow::Owned(std::fs::read(path).map_err(|e| ImportError::io(path, e))?),
            Bytes::BuiltIn(bytes) => Cow::Borrowed(bytes),
        };
        let (blocks, damage) = blocks::blocks(&bytes);
        let rows = read(&blocks, input, job)?;
        let facts = Facts::joined(&rows.facts);
        let format = facts.number::<u32>("format").unwrap_or(FORMAT);
        if format > FORMAT {
            return Err(ImportError::refused(
                &input.path,
                format!("a trace of a later warpscope (format {format})"),
                "open it with the version that recorded it",
            ));
        }
        let source = Source {
            tool: "trace".to_owned(),
            version: facts.get("cupti_version").map(|v| format!("CUPTI {v}")),
            schema: Some(format.to_string()),
            file: input.path.clone(),
        };
        let said = notes::Said::of(&rows, &facts, Missing { damage, blocks: missing(&blocks) });
        let mut profile = build::build(rows, &facts, job, Profile::new(source));
        profile.notes = notes::notes(&profile, &said);
        Ok(profile)
    }
}

/// Blocks whose number is not in the file, before the last that is.
fn missing(blocks: &[Block<'_>]) -> u64 {
    let mut numbers: Vec<u32> = blocks.iter().map(|b| b.sequence).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.last().map_or(0, |&last| (u64::from(last) + 1).saturating_sub(numbers.len() as u64))
}

/// Decodes all blocks, several threads side by side: each block is whole by itself.
fn read(blocks: &[Block<'_>], input: &Input, job: &Job<'_>) -> Result<Rows, ImportError> {
    let total: usize = blocks.iter().map(|b| b.data.len()).sum();
    let pieces: Vec<&[Block<'_>]> = blocks.chunks(TAKEN).collect();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        let mut out = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(piece) = pieces.get(at).filter(|_| !job.cancel.is_cancelled()) else { return out };
            let mut rows = Rows::default();
            for block in *piece {
                rows.take(block, job.wants);
                done.fetch_add(block.data.len(), Ordering::Relaxed);
            }
            job.progress("records", done.load(Ordering::Relaxed) as u64, total as u64);
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
