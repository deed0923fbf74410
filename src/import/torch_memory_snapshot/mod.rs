//! Snapshots of `PyTorch`'s CUDA memory: pickles written by `torch.cuda.memory._dump_snapshot`.

mod build;
mod parts;
mod pickle;
mod sizes;
mod stream;
mod value;

use super::input::Bytes as Where;
use super::{ImportError, Importer, Input, Job};
use crate::launch::open;
use crate::model::{Profile, Source};
use parts::Parts;
use std::io::Read;
use stream::Refusal;

pub struct TorchSnapshot;

/// Returns true for the first bytes of a pickle that uses protocol 2 to 5.
pub fn is_pickle(head: &[u8]) -> bool {
    matches!(head, [0x80, 2..=5, ..])
}

impl Importer for TorchSnapshot {
    fn name(&self) -> &'static str {
        "PyTorch memory snapshot"
    }

    fn files(&self) -> &'static [&'static str] {
        &[".pickle"]
    }

    fn suffixes(&self) -> &'static [&'static str] {
        &[".pickle"]
    }

    fn knows(&self, input: &Input) -> bool {
        let has = |word: &[u8]| memchr::memmem::find(&input.head, word).is_some();
        is_pickle(&input.head) && (has(b"segments") || has(b"device_traces") || has(b"segment_type"))
    }

    fn read(&self, input: &Input, job: &Job<'_>) -> Result<Profile, ImportError> {
        let reader: Box<dyn Read> = match &input.bytes {
            Where::File(path) => Box::new(open::open_regular(path).map_err(|e| ImportError::io(path, e))?),
            Where::BuiltIn(bytes) => Box::new(*bytes),
        };
        let mut counted = Counted { inner: reader, done: 0, job, total: input.size };
        let mut parts = Parts::default();
        let read = pickle::read_pickle(&mut counted, &mut parts, job.cancel.pace(), input.memory_budget().bytes_left());
        let (pickle, whole) = read.map_err(|(refusal, at)| refusal_error(input, refusal, at))?;
        let source =
            Source { tool: "torch".to_owned(), version: None, schema: Some("memory snapshot".to_owned()), file: input.path.clone() };
        let built = build::build_profile(pickle, whole, parts, Profile::new(source));
        if job.cancel.is_cancelled() {
            return Err(ImportError::Cancelled { path: input.path.clone() });
        }
        built.ok_or_else(|| {
            ImportError::refused(
                &input.path,
                "a Python pickle, but no memory snapshot of PyTorch",
                "name the file that torch.cuda.memory._dump_snapshot wrote",
            )
        })
    }
}

fn refusal_error(input: &Input, refusal: Refusal, at: u64) -> ImportError {
    let damaged = |reason: &str| ImportError::Damaged {
        path: input.path.clone(),
        place: format!("the pickle, after {at} opcodes"),
        reason: reason.to_owned(),
        next: "copy it again, or write it again with torch.cuda.memory._dump_snapshot".to_owned(),
    };
    match refusal {
        Refusal::Io(e) => ImportError::io(&input.path, e),
        Refusal::Memory => input.memory_budget().exceeded_error(),
        Refusal::Cancelled => ImportError::Cancelled { path: input.path.clone() },
        Refusal::Short => damaged("it ends in the middle: the program was killed while it wrote it, or the copy is incomplete"),
        Refusal::Damaged(why) => damaged(why),
        Refusal::Code(name) => ImportError::refused(
            &input.path,
            format!("a pickle that would run code when Python loads it (opcode {name}); a memory snapshot holds only plain values"),
            "nothing of it was run; do not load it with Python if you do not know where it is from",
        ),
    }
}

/// A reader that reports its progress.
struct Counted<'a> {
    inner: Box<dyn Read>,
    done: u64,
    total: u64,
    job: &'a Job<'a>,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.done += n as u64;
        self.job.report_progress("values", self.done, self.total);
        Ok(n)
    }
}
