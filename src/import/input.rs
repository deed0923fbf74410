//! A file of unknown format: its first bytes, its size, and its contents, decompressed in the case of `.gz` and
//! `.zst`.

use super::budget::Budget;
use super::cache;
use super::error::ImportError;
use super::job::Job;
use super::progress_reader::Counted;
use crate::launch::open;
use std::collections::BTreeSet;
use std::fs::Metadata;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Number of bytes to read for format detection. Some tools write 26 KB of metadata before the events of a trace.
const HEAD: usize = 1 << 16;

/// Source of the contents.
#[derive(Clone, Debug)]
pub enum Bytes {
    /// The user's file, or a decompressed copy of it.
    File(PathBuf),
    BuiltIn(&'static [u8]),
}

/// A file that has been inspected but not yet read.
#[derive(Clone, Debug)]
pub struct Input {
    /// Path as given by the user, for use in errors and titles.
    pub path: PathBuf,
    /// Decompressed contents.
    pub bytes: Bytes,
    /// First bytes of the decompressed contents.
    pub head: Vec<u8>,
    /// Size of the decompressed contents, bytes.
    pub size: u64,
    /// Size on disk of the given file, or of all files in a directory, bytes.
    stored: u64,
    /// Files of a directory that may form a single report; empty for a single file. If there are members, `head` is
    /// empty.
    pub members: Vec<Member>,
    /// Size and modification time of `bytes`, to detect changes while reading.
    stamp: Option<(u64, Option<SystemTime>)>,
}

/// A file in a directory.
#[derive(Clone, Debug)]
pub struct Member {
    pub path: PathBuf,
    /// First bytes of the file, as stored.
    pub head: Vec<u8>,
    pub size: u64,
}

/// Format checks that make it possible to reject a file before decompressing it.
#[derive(Clone, Copy)]
pub struct Kinds<'a> {
    /// Returns true if an importer supports the file.
    pub knows: &'a dyn Fn(&Input) -> bool,
    /// Returns true if a truncated compressed file can be read up to its end.
    pub salvages: &'a dyn Fn(&Input) -> bool,
    pub refusal: &'a dyn Fn(&Input) -> ImportError,
    /// Returns true if a file in a folder may be a report, judging by its name.
    pub openable: &'a dyn Fn(&Path) -> bool,
}

/// Maximum depth of subdirectories to search: rocprofv3 creates one per host, rocprof-compute `workloads/NAME/GPU`.
const DEEPEST: usize = 3;
/// Maximum number of files to read from a directory.
const MOST_MEMBERS: usize = 4_096;
/// Number of bytes to read from each member.
const MEMBER_HEAD: u64 = 4_096;

/// Compression formats, which are undone before the file format is detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    Gzip,
    Zstd,
}

fn detect_packing(head: &[u8]) -> Option<Packing> {
    match head {
        [0x1f, 0x8b, ..] => Some(Packing::Gzip),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Packing::Zstd),
        _ => None,
    }
}

impl Input {
    /// Inspects a file or directory. If it is compressed and an importer supports it, decompresses it into the cache.
    pub fn open(path: &Path, job: &Job<'_>, kinds: Kinds<'_>) -> Result<Self, ImportError> {
        let io = |e| ImportError::io(path, e);
        let meta = match std::fs::metadata(path) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Self::open_traces(path, kinds).ok_or_else(|| io(e)),
            meta => meta.map_err(io)?,
        };
        if meta.is_dir() {
            return Self::open_folder(path, job, kinds);
        }
        if !meta.is_file() {
            if path.extension().is_some_and(|e| e == "sock") {
                let what = "the control socket of a trace, not a report";
                return Err(ImportError::refused(path, what, "name the .wstrace beside it, or the folder for all traces in it"));
            }
            return Err(ImportError::refused(path, "not a regular file", "save it to a file first"));
        }
        let head = read_head(path).map_err(io)?;
        if head.is_empty() {
            return Err(ImportError::refused(path, "the file is empty", "is the profiler still running, or did the copy fail?"));
        }
        let Some(packing) = detect_packing(&head) else {
            return Ok(Self {
                path: path.to_owned(),
                head,
                size: meta.len(),
                stored: meta.len(),
                members: Vec::new(),
                stamp: Some(file_stamp(&meta)),
                bytes: Bytes::File(path.to_owned()),
            });
        };
        let unpacked = unpack_file(path, &meta, packing, job, kinds)?;
        let head = read_head(&unpacked).map_err(|e| ImportError::io(&unpacked, e))?;
        let size = std::fs::metadata(&unpacked).map_err(|e| ImportError::io(&unpacked, e))?.len();
        if head.is_empty() {
            return Err(ImportError::refused(path, "the archive is empty", "compress the report again"));
        }
        Ok(Self { path: path.to_owned(), bytes: Bytes::File(unpacked), head, size, stored: meta.len(), members: Vec::new(), stamp: None })
    }

    /// Opens the traces written by `warpscope trace -o PREFIX`, one per process, unless `PREFIX` itself is a file.
    fn open_traces(prefix: &Path, kinds: Kinds<'_>) -> Option<Self> {
        let start = format!("{}.", prefix.file_name()?.to_str()?);
        let folder = prefix.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut members = Vec::new();
        let ours = |name: &str| name.starts_with(&start) && name.ends_with(".wstrace");
        collect_files(folder, 0, &ours, &mut members).ok()?;
        members.sort_by(|a, b| a.path.cmp(&b.path));
        let input = Self::from_members(prefix, members);
        (!input.members.is_empty() && (kinds.knows)(&input)).then_some(input)
    }

    /// Opens a directory of files that may form a single report.
    fn open_folder(path: &Path, job: &Job<'_>, kinds: Kinds<'_>) -> Result<Self, ImportError> {
        let mut members = Vec::new();
        collect_files(path, DEEPEST, &|_| true, &mut members).map_err(|e| ImportError::io(path, e))?;
        members.sort_by(|a, b| a.path.cmp(&b.path));
        let input = Self::from_members(path, members);
        if (kinds.knows)(&input) {
            return Ok(input);
        }
        // rocprof-compute has a folder for the GPU inside of that of the workload.
        let inner = input.report_folders(path, kinds);
        let files =
            input.members.iter().map(|m| &m.path).filter(|file| (kinds.openable)(file) && !inner.iter().any(|f| file.starts_with(f)));
        let mut reports: Vec<PathBuf> = files.cloned().chain(inner.iter().cloned()).collect();
        reports.sort();
        if let [only] = &reports[..] {
            return Self::open(only, job, kinds);
        }
        // In a thread trace, each dispatch has its own directory.
        let traced: Vec<String> = input
            .members
            .iter()
            .filter(|m| m.path.file_name().is_some_and(|n| n == "code.json"))
            .filter_map(|m| Some(m.path.parent()?.strip_prefix(path).ok()?.display().to_string()))
            .collect();
        if let [first, others @ ..] = &traced[..] {
            let what = match others {
                [] => "a folder with the thread trace of one dispatch".to_owned(),
                _ => format!("a folder with thread traces of {} dispatches", traced.len()),
            };
            return Err(ImportError::refused(path, what, format!("name one of them, such as {}", path.join(first).display())));
        }
        // rocprofv3's decoder does not write code.json if it finds no code object.
        if input.members.iter().any(|m| m.path.file_name().is_some_and(|n| n == "wstates1.json" || n == "filenames.json")) {
            let what = "the waves of a thread trace without the instructions that they ran: code.json is missing";
            return Err(ImportError::refused(path, what, "copy the whole folder, or take the trace again"));
        }
        // rocprof-compute writes pmc_perf.csv last.
        if reports.is_empty()
            && input.members.iter().any(|m| m.path.file_name().is_some_and(|n| n == "profiling_config.yaml" || n == "sysinfo.csv"))
        {
            let what = "a workload of rocprof-compute without pmc_perf.csv, the table of its counters";
            return Err(ImportError::refused(path, what, "copy the whole folder, or profile again: it may have been interrupted"));
        }
        match &reports[..] {
            [] => Err(ImportError::refused(path, "a folder without a report", "name a report, or the folder of one")),
            [first, ..] => {
                let what = format!("a folder with {} reports", reports.len());
                Err(ImportError::refused(path, what, format!("name one of them, such as {}", first.display())))
            }
        }
    }

    /// Folders below, each of whose files form a report; none of them contains another.
    fn report_folders(&self, path: &Path, kinds: Kinds<'_>) -> Vec<PathBuf> {
        let mut folders: BTreeSet<&Path> = BTreeSet::new();
        for member in &self.members {
            folders.extend(member.path.ancestors().skip(1).take_while(|folder| *folder != path));
        }
        let mut found: Vec<PathBuf> = Vec::new();
        // An ordered set has each folder before those in it.
        for folder in folders {
            if found.iter().any(|outer| folder.starts_with(outer)) {
                continue;
            }
            let inside = self.members.iter().filter(|m| m.path.starts_with(folder)).cloned().collect();
            if (kinds.knows)(&Self::from_members(folder, inside)) {
                found.push(folder.to_owned());
            }
        }
        found
    }

    fn from_members(path: &Path, members: Vec<Member>) -> Self {
        let stored = members.iter().map(|m| m.size).fold(0, u64::saturating_add);
        Self { path: path.to_owned(), bytes: Bytes::BuiltIn(&[]), head: Vec::new(), size: 0, stored, members, stamp: None }
    }

    /// Size on disk, bytes.
    pub fn stored_size(&self) -> u64 {
        self.stored
    }

    pub fn memory_budget(&self) -> Budget {
        Budget::from_plain_size(&self.path, self.stored, if self.members.is_empty() { self.size } else { self.stored })
    }

    /// Opens one file of a multi-file report, without decompressing it.
    pub fn open_part(path: &Path) -> Result<Self, ImportError> {
        let io = |e| ImportError::io(path, e);
        let size = std::fs::metadata(path).map_err(io)?.len();
        let head = read_head(path).map_err(io)?;
        Ok(Self { path: path.to_owned(), bytes: Bytes::File(path.to_owned()), head, size, stored: size, members: Vec::new(), stamp: None })
    }

    /// Creates an input from bytes built into the program; `name` is for display only.
    pub fn built_in(name: &str, bytes: &'static [u8]) -> Self {
        let head = bytes[..bytes.len().min(HEAD)].to_vec();
        let size = bytes.len() as u64;
        Self { path: PathBuf::from(name), bytes: Bytes::BuiltIn(bytes), head, size, stored: size, members: Vec::new(), stamp: None }
    }

    /// Returns the same input, but with the contents of an exported file.
    pub fn with_export(&self, file: &Path) -> Result<Self, ImportError> {
        let meta = std::fs::metadata(file).map_err(|e| ImportError::io(file, e))?;
        let head = read_head(file).map_err(|e| ImportError::io(file, e))?;
        let size = meta.len();
        let (path, bytes) = (self.path.clone(), Bytes::File(file.to_owned()));
        Ok(Self { path, bytes, head, size, stored: size, members: Vec::new(), stamp: None })
    }

    /// Returns an error if the file changed while it was read, which means that it is still being written.
    pub fn check_unchanged(&self) -> Result<(), ImportError> {
        let (Some(before), Bytes::File(path)) = (&self.stamp, &self.bytes) else {
            return Ok(());
        };
        let now = std::fs::metadata(path).map_err(|e| ImportError::io(path, e))?;
        if file_stamp(&now) == *before {
            return Ok(());
        }
        Err(ImportError::refused(
            &self.path,
            "the file changed while it was read",
            "it is still being written: open it again when the profiler has finished",
        ))
    }
}

/// Collects the regular files with matching names in a directory and its subdirectories, skipping unreadable ones.
fn collect_files(folder: &Path, deeper: usize, wanted: &dyn Fn(&str) -> bool, out: &mut Vec<Member>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let Ok(entry) = entry else { continue };
        let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
        if kind.is_dir() && deeper > 0 {
            // Skip unreadable directories.
            let _ = collect_files(&path, deeper - 1, wanted, out);
        } else if kind.is_file()
            && out.len() < MOST_MEMBERS
            && wanted(&entry.file_name().to_string_lossy())
            && let Ok(meta) = entry.metadata()
        {
            let mut head = Vec::new();
            if open::open_regular(&path).and_then(|f| f.take(MEMBER_HEAD).read_to_end(&mut head)).is_ok() {
                out.push(Member { path, head, size: meta.len() });
            }
        }
    }
    Ok(())
}

fn file_stamp(meta: &Metadata) -> (u64, Option<SystemTime>) {
    (meta.len(), meta.modified().ok())
}

fn read_head(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD);
    open::open_regular(path)?.take(HEAD as u64).read_to_end(&mut head)?;
    Ok(head)
}

fn unpack_file(path: &Path, meta: &Metadata, packing: Packing, job: &Job<'_>, kinds: Kinds<'_>) -> Result<PathBuf, ImportError> {
    cache::get_or_make(&job.cache, &job.cancel, path, meta, "unpacked", |out| {
        let io = |e: std::io::Error| ImportError::io(path, e);
        let file = open::open_regular(path).map_err(io)?;
        let counted = Counted::new(file, meta.len(), job);
        let done = counted.bytes_read();
        let mut reader: Box<dyn Read> = match packing {
            Packing::Gzip => Box::new(flate2::read::MultiGzDecoder::new(counted)),
            Packing::Zstd => Box::new(zstd::stream::read::Decoder::new(counted).map_err(io)?),
        };
        let damaged = |e: std::io::Error| {
            if job.cancel.is_cancelled() {
                return ImportError::Cancelled { path: path.to_owned() };
            }
            // A full disk, a quota or a limit set in the shell does not mean that the file is damaged.
            if matches!(e.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge) {
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
        // Detect the format before decompressing to disk.
        let mut head = Vec::with_capacity(HEAD);
        (&mut reader).take(HEAD as u64).read_to_end(&mut head).map_err(damaged)?;
        let probe = Input {
            path: path.to_owned(),
            bytes: Bytes::BuiltIn(&[]),
            size: head.len() as u64,
            stored: 0,
            head,
            members: Vec::new(),
            stamp: None,
        };
        if !(kinds.knows)(&probe) {
            return Err((kinds.refusal)(&probe));
        }
        let most = Budget::from_stored_size(path, meta.len()).total_bytes();
        // Copy one byte more than allowed, to detect that the limit has been exceeded.
        match cache::copy_until_cancelled(&mut probe.head.chain(reader).take(most + 1), out, &job.cancel) {
            Ok(bytes) if bytes > most => Err(ImportError::refused(
                path,
                format!("{} bytes that decompress to more than {} MB", meta.len(), most / 1_000_000),
                "no profiler report compresses that well; if it is one, decompress it yourself and open the result",
            )),
            Err(e) if e.kind() == ErrorKind::UnexpectedEof && (kinds.salvages)(&probe) => Ok(()),
            other => other.map(drop).map_err(damaged),
        }
    })
}
