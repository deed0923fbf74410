//! PyTorch traces: Chrome trace JSON from torch.profiler (kineto) since 2022, including malformed and truncated files.

pub(super) mod build;
pub(super) mod event;
pub(super) mod metadata;
mod other_events;
mod ranges;
mod repair;
pub(super) mod shard;
pub(super) mod tokenizer;

pub use metadata::OURS;

use super::input::Bytes as Where;
use super::{ImportError, Importer, Input, Job};
use crate::launch::open;
use crate::model::{Note, NoteKind, Profile, Severity, Source};
use shard::ShardEvents;
use std::io::Read;
use tokenizer::{Batch, Splitter};

/// Top-level keys written only by PyTorch.
const PYTORCH: [&str; 3] = ["schemaVersion", "deviceProperties", "distributedInfo"];

pub struct TorchTrace;

impl Importer for TorchTrace {
    fn name(&self) -> &'static str {
        "PyTorch or Chrome trace (JSON)"
    }

    fn files(&self) -> &'static [&'static str] {
        &[".pt.trace.json"]
    }

    fn suffixes(&self) -> &'static [&'static str] {
        &[".pt.trace.json", ".json"]
    }

    fn knows(&self, input: &Input) -> bool {
        let head = input.head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&input.head);
        let has = |word: &[u8]| memchr::memmem::find(head, word).is_some();
        // JSON from other tools.
        if has(b"rocprofiler-sdk-tool") {
            return false;
        }
        match head.trim_ascii_start().first() {
            Some(b'{') => has(b"\"traceEvents\"") || has(b"\"schemaVersion\"") || has(b"\"deviceProperties\""),
            Some(b'[') => has(b"\"ph\""),
            _ => false,
        }
    }

    fn salvages(&self) -> bool {
        true
    }

    fn is_of_rank(&self) -> bool {
        true
    }

    fn read(&self, input: &Input, job: &Job<'_>) -> Result<Profile, ImportError> {
        let reader: Box<dyn Read> = match &input.bytes {
            Where::File(path) => Box::new(open::open_regular(path).map_err(|e| ImportError::io(path, e))?),
            Where::BuiltIn(bytes) => Box::new(*bytes),
        };
        let mut splitter = Splitter::new(reader);
        let parts = read_parts(&mut splitter, input, job)?;
        if !splitter.seen_events {
            let what = if splitter.cut {
                "the beginning of a PyTorch trace, without its events"
            } else {
                "JSON without traceEvents, so not a trace"
            };
            return Err(ImportError::refused(&input.path, what, "name the file that torch.profiler wrote (*.pt.trace.json)"));
        }
        let facts = metadata::Facts::new(&splitter.facts);
        let mut profile =
            Profile::new(Source { tool: "torch".to_owned(), version: None, schema: facts.version_line(), file: input.path.clone() });
        let placed = parts.iter().any(|p| p.placed);
        let (mended, broken) = parts.iter().fold((0, 0), |(m, b), p| (m + p.mended, b + p.broken));
        note_damage(&mut profile, splitter.cut, mended, broken);
        let profile = build::build_profile(parts, facts, event::with_calls(job.wants), profile);
        // A trace without kernels, or whose kernels do not name a GPU, may be from another tool: classify it by its
        // tracks. Our own exports are marked.
        let nothing = profile.launches.is_empty() && profile.memops.is_empty();
        let ours = |(key, text): &(String, Vec<u8>)| key == "otherData" && memchr::memmem::find(text, b"warpscope").is_some();
        let of_pytorch = splitter.facts.iter().any(|(key, _)| PYTORCH.contains(&key.as_str()));
        if ((nothing || !placed) && !of_pytorch) || splitter.facts.iter().any(ours) {
            return Ok(super::chrome_perfetto::chrome::read_trace(input, job)?.unwrap_or(profile));
        }
        Ok(profile)
    }
}

/// Splits the text on this thread and parses the batches on other threads.
fn read_parts(splitter: &mut Splitter<Box<dyn Read>>, input: &Input, job: &Job<'_>) -> Result<Vec<ShardEvents>, ImportError> {
    let threads = job.threads.clamp(1, 16);
    let (send, batches) = crossbeam_channel::bounded::<Batch>(threads * 2);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                let batches = batches.clone();
                scope.spawn(move || {
                    let (mut part, pace) = (ShardEvents::default(), job.cancel.pace());
                    for batch in batches {
                        part.read_batch(&batch, job.wants, &pace);
                    }
                    part
                })
            })
            .collect();
        drop(batches);
        let cutting = loop {
            if job.cancel.is_cancelled() {
                break Err(ImportError::Cancelled { path: input.path.clone() });
            }
            match splitter.next_batch() {
                Ok(Some(batch)) => {
                    job.report_progress("events", splitter.read, input.size);
                    if send.send(batch).is_err() {
                        break Ok(());
                    }
                }
                Ok(None) => break Ok(()),
                Err(e) if e.kind() == std::io::ErrorKind::InvalidData => {
                    break Err(ImportError::refused(
                        &input.path,
                        e.to_string(),
                        "name the file that torch.profiler wrote (*.pt.trace.json)",
                    ));
                }
                Err(e) => break Err(ImportError::io(&input.path, e)),
            }
        };
        drop(send);
        let parts: Result<Vec<ShardEvents>, _> = workers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
        cutting?;
        if job.cancel.is_cancelled() {
            return Err(ImportError::Cancelled { path: input.path.clone() });
        }
        parts.map_err(|_| ImportError::Tool {
            path: input.path.clone(),
            what: "a thread of the reader failed".to_owned(),
            next: "this is a bug in warpscope: please report it with the file".to_owned(),
        })
    })
}

fn note_damage(profile: &mut Profile, cut: bool, mended: u64, broken: u64) {
    if cut {
        let text = "The trace is truncated: the program was killed while writing it, or the copy is incomplete. The part that could be read is shown.";
        profile.notes.push(Note::new(Severity::Error, NoteKind::Damaged, text));
    }
    if broken > 0 {
        let text = format!("{} could not be read, and {} missing here.", events_text(broken), if broken == 1 { "is" } else { "are" });
        profile.notes.push(Note::new(Severity::Error, NoteKind::Damaged, text));
    }
    if mended > 0 {
        let were = if mended == 1 { "was" } else { "were" };
        let text = format!(
            "{} {were} not valid JSON (quotes or control characters in names, nan, bytes that are not UTF-8) and {were} repaired.",
            events_text(mended)
        );
        profile.notes.push(Note::new(Severity::Warning, NoteKind::Damaged, text));
    }
}

fn events_text(n: u64) -> String {
    crate::model::units::format_count(n, "event")
}
