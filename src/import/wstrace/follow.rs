//! Follows the traces of a run while they grow. Appended bytes are decoded once and then discarded; only file
//! positions are kept, so that the most recent data can be read again if needed.

use super::blocks::{Block, BlockKind, find_blocks};
use super::build::{Section, build_profile};
use super::file_name::numbers_of_trace;
use super::key_values::Facts;
use super::process::{Numbers, Process};
use super::ring_snapshot;
use super::rows::Rows;
use super::tail::Tail;
use crate::import::{ImportError, Job, Parts, Wants};
use crate::launch::open;
use crate::model::live::Fresh;
use crate::model::{Profile, Source};
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Maximum number of bytes per read and per call to [`Follow::poll_files`]: it takes several calls to catch up with a
/// trace of several hours.
const CHUNK: u64 = 4 << 20;
const LOOK: u64 = 64 << 20;
/// Maximum size of a block, bytes: blocks of rows are below 1 MiB, but the code of a module may take several hundred
/// MiB.
const LONGEST: u64 = 512 << 20;
/// Number of bytes at the start of a file that are certain to include its first block.
const FIRST: usize = 64 << 10;
const WANTS: Wants = Wants { parts: Parts::MEMOPS, ..Wants::TABLE };
/// Parts to read for a process in which only short periods are recorded, including the times of those periods.
const SAMPLED: Wants = Wants { parts: Parts::MEMOPS.union(Parts::RANGES), ..Wants::TABLE };

/// The traces of a run.
pub struct Follow {
    folder: PathBuf,
    /// The file names without process id and suffix.
    prefix: String,
    tails: Vec<Tail>,
    processes: Vec<Process>,
    numbers: Numbers,
}

fn now_ns() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| i64::try_from(d.as_nanos()).unwrap_or(i64::MAX))
}

impl Follow {
    /// Follows the files `OUTPUT.PID.wstrace`.
    pub fn new(output: &Path) -> Self {
        let folder = output.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned();
        let prefix = output.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        Self { folder, prefix, tails: Vec::new(), processes: Vec::new(), numbers: Numbers::default() }
    }

    fn list_names(&self) -> io::Result<Vec<OsString>> {
        let ours = |name: &OsString| name.to_str().is_some_and(|n| numbers_of_trace(&self.prefix, n).is_some());
        match std::fs::read_dir(&self.folder) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            found => Ok(found?.flatten().map(|e| e.file_name()).filter(ours).collect()),
        }
    }

    /// Reads the bytes appended since the last call. It is not an error if there are no files yet.
    pub fn poll_files(&mut self) -> io::Result<Fresh> {
        let names = self.list_names()?;
        for name in &names {
            if self.tails.iter().all(|t| t.name != *name)
                && let Some(tail) = self.open_tail(name)
            {
                self.tails.push(tail);
            }
        }
        // If only the most recent data is kept, the tracer deletes old files, and rows in them that were not read are
        // lost.
        for tail in self.tails.iter().filter(|t| t.first && !names.contains(&t.name)) {
            self.processes[tail.process].mark_deleted();
        }
        self.tails.retain(|t| names.contains(&t.name));
        // Rows refer to strings and configurations in the first file of their process. Determine the size of the
        // other files before that of the first file, but read the first file before them.
        self.tails.sort_by_key(|t| !t.first);
        self.tails.iter_mut().rev().for_each(Tail::update_size);
        let (mut out, mut budget) = (Fresh::default(), LOOK);
        for tail in &mut self.tails {
            let process = &mut self.processes[tail.process];
            while budget > 0 && tail.at < tail.there && read_piece(tail, process, &mut self.numbers, &mut budget, &mut out)? {}
            out.behind += tail.there - tail.at;
        }
        let now = now_ns();
        self.processes.iter_mut().for_each(|p| p.check_alive(now));
        out.kernels = self.numbers.kernels.take_fresh();
        out.devices = self.numbers.devices.take_fresh();
        out.recorders = self.processes.iter().map(|p| p.recorder.clone()).collect();
        out.measured = self.processes.iter().map(|p| p.counting.update_count()).sum();
        Ok(out)
    }

    /// Opens a file; `None` if its first block is still incomplete, or if the file belongs to another program.
    fn open_tail(&mut self, name: &OsString) -> Option<Tail> {
        let file = open::open_regular(&self.folder.join(name)).ok()?;
        let mut head = vec![0; FIRST];
        let n = file.read_at(&mut head, 0).ok()?;
        head.truncate(n);
        let (found, _) = find_blocks(&head);
        let first = found.first().filter(|b| b.at == 0 && b.kind == BlockKind::Facts && b.has_valid_checksum())?;
        let mut rows = Rows::default();
        rows.decode_block(first, WANTS);
        let facts = Facts::join_all(&rows.facts);
        let begins = facts.get("continues").is_none();
        // `run.5.12.wstrace` is the first file of `run.5`, not the twelfth of `run`.
        if begins && numbers_of_trace(&self.prefix, name.to_str()?)?.contains('.') {
            return None;
        }
        let known = self.processes.iter().position(|p| p.facts.process_key() == facts.process_key());
        let time = facts.number("time").unwrap_or(0);
        let process = known.unwrap_or_else(|| {
            self.processes.push(Process::new(facts));
            self.processes.len() - 1
        });
        if !begins && time > 0 {
            self.processes[process].extend_since(time);
        }
        Some(Tail::new(name.clone(), file, process, (!begins).then_some(time)))
    }

    /// Returns the path of the trace if it consists of exactly one file.
    pub fn only_file(&self) -> Option<PathBuf> {
        if let [one] = &self.tails[..] { Some(self.folder.join(&one.name)) } else { None }
    }

    /// Reads a profile of the last `ns` nanoseconds with at most `most` kernels per process.
    pub fn recent_profile(&self, ns: i64, most: u64, job: &Job<'_>) -> Result<Profile, ImportError> {
        let since = Some((now_ns() - ns, ns));
        let io = |e| ImportError::io(&self.folder, e);
        let mut files = Vec::new();
        for (i, process) in self.processes.iter().enumerate() {
            let mut bytes = Vec::new();
            let tails = self.tails.iter().filter(|t| t.process == i);
            ring_snapshot::write_process(process, tails, (since, most), &mut bytes).map_err(io)?;
            files.push(bytes.into());
        }
        super::build_profile(&files, &crate::import::Input::built_in("the last seconds", &[]), job)
    }

    /// Builds a profile of the measurements so far, in the form of an imported ncu report; `None` if there are none.
    /// For kernels that were measured repeatedly, it contains the latest measurements.
    pub fn measured_profile(&self, job: &Job<'_>) -> Option<Arc<Profile>> {
        let of = |process: &Process| {
            let mut rows = Rows::default();
            process.dictionary.iter().flat_map(|b| find_blocks(b).0).for_each(|block| rows.decode_block(&block, WANTS));
            process.counting.append_to(&mut rows);
            Section { facts: Facts::join_all(&rows.facts), rows }
        };
        let sections = self.processes.iter().filter(|p| p.counting.update_count() > 0).map(of).collect();
        let source = Source { tool: "trace".to_owned(), ..Source::default() };
        build_profile(sections, job, Profile::new(source)).measured
    }

    /// Saves the last `ns` nanoseconds, or everything if `None`, as a trace. Fails if the file exists or if nothing
    /// was recorded.
    pub fn save_trace(&self, ns: Option<i64>, path: &Path) -> io::Result<()> {
        if self.processes.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "nothing has been recorded yet"));
        }
        ring_snapshot::save_atomically(path, |out| {
            for (i, process) in self.processes.iter().enumerate() {
                ring_snapshot::write_process(
                    process,
                    self.tails.iter().filter(|t| t.process == i),
                    (ns.map(|ns| (now_ns() - ns, ns)), u64::MAX),
                    out,
                )?;
            }
            Ok(())
        })
    }
}

/// Reads a piece of a file; returns false if the file has no complete block yet.
fn read_piece(tail: &mut Tail, process: &mut Process, numbers: &mut Numbers, budget: &mut u64, out: &mut Fresh) -> io::Result<bool> {
    let mut size = CHUNK;
    let (bytes, whole) = loop {
        let length = usize::try_from(size.min(tail.there - tail.at)).unwrap_or(0);
        let mut bytes = vec![0; length];
        tail.file.read_exact_at(&mut bytes, tail.at)?;
        let whole = length - usize::try_from(find_blocks(&bytes).1.torn).unwrap_or(length);
        if whole > 0 || size >= tail.there - tail.at {
            break (bytes, whole);
        }
        // The block would exceed the maximum size, so its header is corrupt: skip this piece.
        if size > LONGEST {
            tail.at += CHUNK;
            *budget = budget.saturating_sub(size);
            return Ok(true);
        }
        // The block is larger than the piece, so read a larger piece.
        size *= 2;
    };
    let mut rows = Rows::default();
    let keep = |block: &Block<'_>| {
        matches!(block.kind, BlockKind::Facts | BlockKind::Strings | BlockKind::Configs | BlockKind::Threads | BlockKind::Device)
    };
    for block in &find_blocks(&bytes[..whole]).0 {
        rows.decode_block(block, if process.recorder.sampled { SAMPLED } else { WANTS });
        if keep(block) && tail.first && block.has_valid_checksum() {
            process.dictionary.push(block.with_sequence(0));
        }
        if block.kind == BlockKind::State {
            let time = rows.state.as_ref().and_then(|s| s.number("time")).unwrap_or_else(now_ns);
            out.states.push((time, rows.state.as_ref().and_then(|s| s.number("open")) != Some(0_u8)));
            process.record_state(time, block.sequence);
        }
        if let Some(time) = process.last_state_before(block.sequence) {
            tail.add_mark(time, tail.at + block.at as u64);
        }
        if block.kind == BlockKind::Kernels {
            tail.kernels += u64::from(block.count);
        }
    }
    process.take_rows(rows, numbers, out);
    tail.at += whole as u64;
    *budget = budget.saturating_sub(bytes.len() as u64);
    Ok(whole > 0)
}
