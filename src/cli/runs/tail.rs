//! Follows the output and state of a run, including runs of other processes.

use super::super::failure::Failure;
use crate::launch::runs::{News, Tail, process};
use crate::library::{Library, Run, State};
use crate::model::text::escape_unsafe;
use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

/// A followed run.
#[derive(Debug)]
pub struct Follow {
    library: Library,
    id: i64,
    tail: Tail,
    /// Time at which the run was first seen to be lost.
    lost: Option<Instant>,
}

/// Time for a supervisor's keeper process to take over.
const TAKE_OVER: Duration = Duration::from_secs(1);

/// Changes to a run since the last poll.
#[derive(Debug)]
pub struct Update {
    pub news: News,
    pub run: Run,
    /// True after the last update.
    pub ended: bool,
}

impl Follow {
    /// Follows a run from the beginning of its log.
    pub fn new(library: Library, id: i64) -> Self {
        let tail = Tail::new(&library.run_folder(id));
        Self { library, id, tail, lost: None }
    }

    /// Follows a run without skipping lines that are still available.
    pub fn patient(library: Library, id: i64) -> Self {
        let tail = Tail::without_skipping(&library.run_folder(id));
        Self { library, id, tail, lost: None }
    }

    /// Returns the changes since the last call.
    pub fn poll_update(&mut self) -> Result<Update, Failure> {
        // Read the state first: the log of a run that has ended is complete.
        let run = self.library.run(self.id)?;
        let mut news = self.tail.read_new();
        for line in news.lines.iter_mut().flatten() {
            *line = strip_escapes(line);
        }
        news.open = strip_escapes(&news.open);
        self.lost = if run.state == State::Lost && run.ended_ms.is_none() { self.lost.or_else(|| Some(Instant::now())) } else { None };
        let ended = !run.state.is_live() && news.all && self.lost.is_none_or(|since| since.elapsed() > TAKE_OVER);
        // The supervisor has died: end the remaining processes of the run.
        if ended
            && run.state == State::Lost
            && let Some((supervisor, _)) = run.holder.filter(|_| run.profiler.is_some())
        {
            process::end_session(supervisor);
        }
        Ok(Update { news, run, ended })
    }
}

/// Returns the last lines of a log, safe for this terminal.
pub fn last_lines(folder: &Path, most: usize) -> Vec<String> {
    let mut tail = Tail::new(folder);
    let mut lines: VecDeque<String> = VecDeque::new();
    loop {
        let news = tail.read_new();
        lines.extend(news.lines.iter().map(|l| l.as_deref().map_or_else(|| "…".to_owned(), strip_escapes)));
        lines.drain(..lines.len().saturating_sub(most));
        if news.all {
            let open = strip_escapes(&news.open);
            lines.extend((!open.is_empty()).then_some(open));
            return lines.into();
        }
    }
}

/// Strips colors and cursor movements from a line of a program's output, to make it safe for this terminal.
pub fn strip_escapes(line: &str) -> String {
    let stripped = anstream::adapter::strip_str(line).to_string();
    escape_unsafe(&stripped.replace('\t', "    ")).into_owned()
}

#[cfg(test)]
mod tests {
    use super::strip_escapes;

    #[test]
    fn colours_go_and_nothing_that_a_terminal_obeys_stays() {
        assert_eq!(strip_escapes("\u{1b}[1;32mok\u{1b}[0m\t100%"), "ok    100%");
        assert_eq!(strip_escapes("\u{1b}]0;title\u{7}text"), "text");
        assert!(!strip_escapes("a\u{9b}31mb\u{1b}c\u{8}").contains(|c: char| c.is_control()));
    }
}
