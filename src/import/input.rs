//! A file before it is known what it is: its first bytes, its size, and the bytes behind `.gz` and `.zst`.

use super::{ImportError, Job, cache};
use std::fs::{File, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Bytes that are looked at to tell what a file is. Some tools write 26 KB of metadata before a trace's events.
const HEAD: usize = 1 << 16;

/// What a packed file may unpack to: so much, and so many times its size. Real reports pack 3 to 40 times.
const UNPACKED: u64 = 64 << 20;
const UNPACKED_TIMES: u64 = 200;

/// Where the bytes are.
#[derive(Clone, Debug)]
pub enum Bytes {
    /// In a file: the user's own, or the unpacked copy of it.
    File(PathBuf),
    /// In the program.
    BuiltIn(&'static [u8]),
}

/// A file that was looked at but not read.
#[derive(Clone, Debug)]
pub struct Input {
    /// The file as the user named it: errors and titles use this.
    pub path: PathBuf,
    /// Where its (unpacked) bytes are.
    pub bytes: Bytes,
    /// The first bytes, unpacked.
    pub head: Vec<u8>,
    /// Size of the unpacked bytes.
    pub size: u64,
    /// Size and modification time of `bytes`, to notice a file that changes under the reader.
    stamp: Option<(u64, Option<SystemTime>)>,
}

/// Packings that are undone before a file is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    Gzip,
    Zstd,
}

fn packing(head: &[u8]) -> Option<Packing> {
    match head {
        [0x1f, 0x8b, ..] => Some(Packing::Gzip),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Packing::Zstd),
        _ => None,
    }
}

impl Input {
    /// Looks at a file, and unpacks it into the cache when it is packed and an importer reads it.
    pub fn open(path: &Path, job: &Job<'_>) -> Result<Self, ImportError> {
        Self::open_if(path, job, &|input| super::IMPORTERS.iter().any(|i| i.knows(input)))
    }

    /// The same for what `reads` reads.
    pub fn open_if(path: &Path, job: &Job<'_>, reads: &dyn Fn(&Self) -> bool) -> Result<Self, ImportError> {
        let io = |e| ImportError::io(path, e);
        let meta = std::fs::metadata(path).map_err(io)?;
        if meta.is_dir() {
            return Err(ImportError::refused(path, "a directory, not a report", "name a file in it"));
        }
        if !meta.is_file() {
            return Err(ImportError::refused(path, "not a regular file", "save it to a file first"));
        }
        let head = read_head(path).map_err(io)?;
        if head.is_empty() {
            return Err(ImportError::refused(path, "the file is empty", "is the profiler still running, or did the copy fail?"));
        }
        let Some(packing) = packing(&head) else {
            return Ok(Self {
                path: path.to_owned(),
                head,
                size: meta.len(),
                stamp: Some(stamp(&meta)),
                bytes: Bytes::File(path.to_owned()),
            });
        };
        let unpacked = unpack(path, &meta, packing, job, reads)?;
        let head = read_head(&unpacked).map_err(|e| ImportError::io(&unpacked, e))?;
        let size = std::fs::metadata(&unpacked).map_err(|e| ImportError::io(&unpacked, e))?.len();
        if head.is_empty() {
            return Err(ImportError::refused(path, "the archive is empty", "compress the report again"));
        }
        Ok(Self { path: path.to_owned(), bytes: Bytes::File(unpacked), head, size, stamp: None })
    }

    /// An input that is part of the program, under the name that is shown for it.
    #[must_use]
    pub fn built_in(name: &str, bytes: &'static [u8]) -> Self {
        let head = bytes[..bytes.len().min(HEAD)].to_vec();
        Self { path: PathBuf::from(name), bytes: Bytes::BuiltIn(bytes), head, size: bytes.len() as u64, stamp: None }
    }

    /// The same report, now read from another file (the export that was made of it).
    pub fn exported(&self, file: &Path) -> Result<Self, ImportError> {
        let meta = std::fs::metadata(file).map_err(|e| ImportError::io(file, e))?;
        let head = read_head(file).map_err(|e| ImportError::io(file, e))?;
        Ok(Self { path: self.path.clone(), bytes: Bytes::File(file.to_owned()), head, size: meta.len(), stamp: None })
    }

    /// Fails when the file changed while it was read: then it is still being written.
    pub fn check_unchanged(&self) -> Result<(), ImportError> {
        let (Some(before), Bytes::File(path)) = (&self.stamp, &self.bytes) else {
            return Ok(());
        };
        let now = std::fs::metadata(path).map_err(|e| ImportError::io(path, e))?;
        if stamp(&now) == *before {
            return Ok(());
        }
        Err(ImportError::refused(
            &self.path,
            "the file changed while it was read",
            "it is still being written: open it again when the profiler has finished",
        ))
    }
}

fn stamp(meta: &Metadata) -> (u64, Option<SystemTime>) {
    (meta.len(), meta.modified().ok())
}

fn read_head(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD);
    File::open(path)?.take(HEAD as u64).read_to_end(&mut head)?;
    Ok(head)
}

fn unpack(path: &Path, meta: &Metadata, packing: Packing, job: &Job<'_>, reads: &dyn Fn(&Input) -> bool) -> Result<PathBuf, ImportError> {
    cache::entry(&job.cache, path, meta, "unpacked", |out| {
        let io = |e: std::io::Error| ImportError::io(path, e);
        let file = File::open(path).map_err(io)?;
        let counted = cache::Counted::new(file, meta.len(), job);
        let done = counted.done();
        let mut reader: Box<dyn Read> = match packing {
            Packing::Gzip => Box::new(flate2::read::MultiGzDecoder::new(counted)),
            Packing::Zstd => Box::new(zstd::stream::read::Decoder::new(counted).map_err(io)?),
        };
        let damaged = |e: std::io::Error| {
            if job.cancel.is_cancelled() {
                return ImportError::Cancelled { path: path.to_owned() };
            }
            if e.kind() == std::io::ErrorKind::StorageFull {
                return ImportError::Tool {
                    path: path.to_owned(),
                    what: format!("there is not enough space to decompress it in {}", job.cache.display()),
                    next: "free some, or set XDG_CACHE_HOME to a folder with enough space".to_owned(),
                };
            }
            ImportError::Damaged {
                path: path.to_owned(),
                place: format!("the compressed data, {} bytes in", done.get()),
                reason: e.to_string(),
                next: "copy it again, or compress it again".to_owned(),
            }
        };
        // What is in it decides before the disk is filled with it.
        let mut head = Vec::with_capacity(HEAD);
        (&mut reader).take(HEAD as u64).read_to_end(&mut head).map_err(damaged)?;
        let probe = Input { path: path.to_owned(), bytes: Bytes::BuiltIn(&[]), size: head.len() as u64, head, stamp: None };
        if !reads(&probe) {
            return Err(super::known::refusal(&probe));
        }
        let most = UNPACKED + meta.len().saturating_mul(UNPACKED_TIMES);
        // One byte more than that tells.
        match cache::copy(&mut probe.head.chain(reader).take(most + 1), out, &job.cancel) {
            Ok(bytes) if bytes > most => Err(ImportError::refused(
                path,
                format!("{} bytes that decompress to more than {} MB", meta.len(), most / 1_000_000),
                "no profiler report compresses that well; if it is one, decompress it yourself and open the result",
            )),
            Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof && super::IMPORTERS.iter().any(|i| i.salvages() && i.knows(&probe)) => {
                Ok(())
            }
            other => other.map(drop).map_err(damaged),
        }
    })
}
