//! Log of a run: the output of the profiler and its program, unchanged, in numbered pieces of bounded size. The first
//! piece and the last two are kept, so that endless output neither fills the disk nor hides the start of the run.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Approximate maximum size of a piece, bytes.
const PIECE: u64 = 2 << 20;
/// Maximum number of bytes per read.
const CHUNK: usize = 64 << 10;
/// A reader that is further than this from the end of a piece skips ahead: such output is too fast to be read.
const BEHIND: u64 = 512 << 10;
/// Lines longer than this are truncated.
const LINE: usize = 4096;

fn piece_path(folder: &Path, n: u64) -> PathBuf {
    folder.join(format!("log.{n}"))
}

#[derive(Debug)]
pub struct LogWriter {
    folder: PathBuf,
    file: File,
    number: u64,
    written: u64,
    /// Output stream whose last line is incomplete, if any.
    open: Option<usize>,
    /// Error at which writing stopped. A failing log must not end the run: later output is dropped.
    pub trouble: Option<String>,
}

impl LogWriter {
    /// Creates a log in an existing folder.
    pub fn create(folder: &Path) -> std::io::Result<Self> {
        Ok(Self { folder: folder.to_owned(), file: File::create(piece_path(folder, 0))?, number: 0, written: 0, open: None, trouble: None })
    }

    /// Appends bytes of an output stream (0: stdout, 1: stderr, 2: warpscope's own messages). First ends an incomplete
    /// line of another stream.
    pub fn write_output(&mut self, output: usize, bytes: &[u8]) {
        if self.trouble.is_none()
            && let Err(e) = self.try_write(output, bytes)
        {
            self.trouble = Some(e.to_string());
        }
    }

    fn try_write(&mut self, output: usize, bytes: &[u8]) -> std::io::Result<()> {
        let Some(&last) = bytes.last() else { return Ok(()) };
        if self.open.is_some_and(|o| o != output) {
            self.file.write_all(b"\n")?;
        }
        self.file.write_all(bytes)?;
        self.written += bytes.len() as u64;
        self.open = (last != b'\n' && last != b'\r').then_some(output);
        // Pieces end with a complete line, unless a line is very long.
        if self.written >= PIECE && (self.open.is_none() || self.written >= 2 * PIECE) {
            self.number += 1;
            self.file = File::create(piece_path(&self.folder, self.number))?;
            self.written = 0;
            self.open = None;
            if self.number > 2 {
                match std::fs::remove_file(piece_path(&self.folder, self.number - 2)) {
                    Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Appends one of warpscope's own messages.
    pub fn write_message(&mut self, text: &str) {
        self.write_output(2, format!("warpscope: {text}\n").as_bytes());
    }
}

/// Files of a log, for removing it.
pub fn piece_paths(folder: &Path) -> Vec<PathBuf> {
    let numbered =
        |p: &PathBuf| p.file_name().and_then(|n| n.to_str()).and_then(|n| n.strip_prefix("log.")).is_some_and(|n| n.parse::<u64>().is_ok());
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path()).filter(numbered).collect()
}

/// Reads a log, which may still be growing.
#[derive(Debug)]
pub struct Tail {
    folder: PathBuf,
    file: Option<File>,
    number: u64,
    at: u64,
    line: Vec<u8>,
    /// The end was reached at least once. Until then nothing in the first piece is skipped, so that the beginning of a
    /// run is read even if it is long.
    caught_up: bool,
    /// Skips only deleted pieces, even when far behind.
    patient: bool,
}

/// Result of reading a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// Complete lines, oldest first; `None` for skipped lines.
    pub lines: Vec<Option<String>>,
    /// The incomplete last line.
    pub open: String,
    /// All available output was read.
    pub all: bool,
}

impl Tail {
    /// Creates a reader that starts at the beginning.
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), file: None, number: 0, at: 0, line: Vec::new(), caught_up: false, patient: false }
    }

    /// Creates a reader that skips only deleted pieces, because output to a pipe should be complete.
    pub fn without_skipping(folder: &Path) -> Self {
        Self { patient: true, ..Self::new(folder) }
    }

    fn open_piece(&mut self) -> bool {
        if self.file.is_none() {
            self.file = File::open(piece_path(&self.folder, self.number)).ok();
        }
        self.file.is_some()
    }

    /// Number of the next existing piece.
    fn next_piece(&self) -> Option<u64> {
        let numbers = piece_paths(&self.folder).into_iter().filter_map(|p| p.extension()?.to_str()?.parse::<u64>().ok());
        numbers.filter(|n| *n > self.number).min()
    }

    /// Splits bytes into lines.
    fn split_lines(&mut self, bytes: &[u8], news: &mut News) {
        self.at += bytes.len() as u64;
        for &byte in bytes {
            match byte {
                b'\n' | b'\r' if self.line.is_empty() => {}
                b'\n' | b'\r' => {
                    news.lines.push(Some(String::from_utf8_lossy(&self.line).into_owned()));
                    self.line.clear();
                }
                _ if self.line.len() < LINE => self.line.push(byte),
                _ => {}
            }
        }
    }

    /// Reads new output up to a limit: `all` is false if there is more.
    pub fn read_new(&mut self) -> News {
        let mut news = News { all: true, ..News::default() };
        let mut budget = CHUNK * 4;
        while budget > 0 && self.open_piece() {
            let Some(file) = &mut self.file else { break };
            let length = file.metadata().map_or(0, |m| m.len());
            let may_leave_out = !self.patient && (self.caught_up || self.number > 0);
            if may_leave_out && length.saturating_sub(self.at) > BEHIND && file.seek(SeekFrom::Start(length - CHUNK as u64)).is_ok() {
                self.at = length - CHUNK as u64;
                self.line.clear();
                news.lines.push(None);
            }
            let mut buffer = vec![0; CHUNK.min(budget)];
            let mut n = file.read(&mut buffer).unwrap_or(0);
            if n == 0 {
                self.caught_up = true;
                let Some(next) = self.next_piece() else { break };
                // Between the two reads, the writer may have finished this piece and started the next.
                n = self.file.as_mut().and_then(|f| f.read(&mut buffer).ok()).unwrap_or(0);
                if n > 0 {
                    self.split_lines(&buffer[..n], &mut news);
                    budget -= n.min(budget);
                    continue;
                }
                if next > self.number + 1 {
                    news.lines.push(None);
                    self.line.clear();
                }
                (self.file, self.number, self.at) = (None, next, 0);
                continue;
            }
            self.split_lines(&buffer[..n], &mut news);
            budget -= n.min(budget);
            news.all = budget > 0;
        }
        news.open = String::from_utf8_lossy(&self.line).into_owned();
        news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(tail: &mut Tail) -> Vec<Option<String>> {
        let mut out = Vec::new();
        loop {
            let news = tail.read_new();
            out.extend(news.lines);
            if news.all {
                return out;
            }
        }
    }

    #[test]
    fn outputs_do_not_run_into_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = LogWriter::create(folder.path()).unwrap();
        let mut tail = Tail::new(folder.path());
        log.write_output(0, b"0%....");
        assert_eq!(tail.read_new(), News { lines: vec![], open: "0%....".into(), all: true });
        log.write_output(0, b"100%\nout");
        log.write_output(1, b"err\n10%\r20%\r");
        log.write_message("the end");
        let lines: Vec<String> = all(&mut tail).into_iter().flatten().collect();
        assert_eq!(lines, ["0%....100%", "out", "err", "10%", "20%", "warpscope: the end"]);
    }

    #[test]
    fn a_flood_is_bounded_on_disk_and_begin_and_end_stay() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = LogWriter::create(folder.path()).unwrap();
        log.write_output(0, b"the beginning\n");
        let flood = "a line of a program that says a lot\n".repeat(1000);
        for _ in 0..600 {
            log.write_output(1, flood.as_bytes());
        }
        log.write_output(0, b"the end\n");
        let bytes: u64 = piece_paths(folder.path()).iter().map(|p| p.metadata().unwrap().len()).sum();
        assert!(bytes <= 4 * PIECE && piece_paths(folder.path()).len() <= 3, "{bytes}");
        let lines = all(&mut Tail::new(folder.path()));
        assert!(lines.contains(&None));
        assert_eq!(lines[0].as_deref(), Some("the beginning"), "how it began is there");
        assert_eq!(lines.last().unwrap().as_deref(), Some("the end"));
    }

    #[test]
    fn a_reader_that_is_behind_leaves_out_what_is_between() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = LogWriter::create(folder.path()).unwrap();
        let mut tail = Tail::new(folder.path());
        log.write_output(0, b"first\n");
        assert_eq!(tail.read_new().lines, [Some("first".to_owned())]);
        for n in 0..40_000 {
            log.write_output(0, format!("{n:>20}\n").as_bytes());
        }
        let lines = all(&mut tail);
        assert_eq!(lines[0], None);
        assert_eq!(lines.last().unwrap().as_deref().map(str::trim), Some("39999"));
    }

    #[test]
    fn a_log_that_cannot_be_written_is_given_up_and_says_why() {
        let full = Path::new("/dev/full");
        if !full.exists() {
            println!("no /dev/full: not checked");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut log = LogWriter::create(folder.path()).unwrap();
        log.file = File::options().write(true).open(full).unwrap();
        log.write_output(0, b"one\n");
        log.write_message("two");
        assert!(log.trouble.unwrap().contains("No space left"));
    }
}
