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
use build::Section;
use facts::Facts;
use notes::{Missing, Said};
use rows::Rows;
use std::borrow::Cow;
use std::path::Path;
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
        // A folder with the traces of several processes is one report.
        input.head.starts_with(&blocks::MAGIC) || input.members.iter().any(|m| m.head.starts_with(&blocks::MAGIC))
    }

    fn salvages(&self) -> bool {
        true
    }

    fn grows(&self) -> bool {
        true
    }

    fn read(&self, input: &Input, job: &Job<'_>) -> Result<Profile, ImportError> {
        let file = |path: &Path| std::fs::read(path).map(Cow::Owned).map_err(|e| ImportError::io(path, e));
        let members = input.members.iter().filter(|m| m.head.starts_with(&blocks::MAGIC));
        let files: Vec<Cow<'_, [u8]>> = match &input.bytes {
            _ if !input.members.is_empty() => members.map(|m| file(&m.path)).collect::<Result<_, _>>()?,
            Bytes::File(path) => vec![file(path)?],
            Bytes::BuiltIn(bytes) => vec![Cow::Borrowed(bytes)],
        };
        let (mut sections, mut missing) = (Vec::new(), Missing::default());
        for bytes in &files {
            let (blocks, damage) = blocks::blocks(bytes);
            missing.damage.passed += damage.passed;
            missing.damage.torn += damage.torn;
            // Traces of several processes may stand behind each other in one file.
            for blocks in blocks.chunk_by(|_, next| next.sequence != 0) {
                missing.blocks += lacking(blocks);
                let rows = read(blocks, input, job)?;
                let facts = Facts::joined(&rows.facts);
                sections.push(Section { rows, facts });
            }
        }
        let newest = sections.iter().filter_map(|s| s.facts.number::<u32>("format")).max().unwrap_or(FORMAT);
        if newest > FORMAT {
            return Err(ImportError::refused(
                &input.path,
                format!("a trace of a later warpscope (format {newest})"),
                "open it with the version that recorded it",
            ));
        }
        let source = Source {
            tool: "trace".to_owned(),
            version: sections.iter().find_map(|s| s.facts.get("cupti_version")).map(|v| format!("CUPTI {v}")),
            schema: Some(newest.to_string()),
            file: input.path.clone(),
        };
        let said = Said::of(&sections, missing);
        let mut profile = build::build(sections, job, Profile::new(source));
        profile.notes = notes::notes(&profile, &said);
        Ok(profile)
    }
}

/// Blocks whose number is not in the file, before the last that is.
fn lacking(blocks: &[Block<'_>]) -> u64 {
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
