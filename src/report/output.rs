//! Output options that apply to all commands: a budget, headers and notes.

use crate::analysis::labels::display_width;
use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

/// Output options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Maximum size of a document, bytes; the content with the smallest weight is left out.
    pub budget: Option<usize>,
    /// Omit the header of tables.
    pub no_header: bool,
    /// Omit notes and warnings on stderr.
    pub quiet: bool,
    /// Show headings in bold.
    pub bold: bool,
    /// The command without its budget, which prints everything.
    pub whole: Vec<String>,
}

/// Placeholders for the escape sequences of bold text, because real control characters are made visible before the
/// output reaches the terminal. A name in a report that contains them can do no more than turn bold.
pub const BOLD: [(char, &str); 2] = [('\u{f0001}', "\u{1b}[1m"), ('\u{f0002}', "\u{1b}[0m")];

/// Returns a heading, in bold if the options say so.
pub fn bold(text: &str) -> Cow<'_, str> {
    if !output().bold {
        return Cow::Borrowed(text);
    }
    HAS_BOLD.store(true, Ordering::Relaxed);
    Cow::Owned(format!("{}{text}{}", BOLD[0].0, BOLD[1].0))
}

/// Set once a heading has been printed in bold. Until then, the placeholders can only be characters of names in a
/// report, and must stay as they are.
static HAS_BOLD: AtomicBool = AtomicBool::new(false);

/// Returns true if the output contains placeholders.
pub fn has_bold() -> bool {
    HAS_BOLD.load(Ordering::Relaxed)
}

/// Columns that a string takes up.
pub(super) fn count_shown(text: &str) -> usize {
    display_width(text) - text.chars().filter(|c| BOLD.iter().any(|b| b.0 == *c)).count()
}

/// Size of a token, bytes: an average for English text and code.
pub const TOKEN: usize = 4;

static OUTPUT: OnceLock<Output> = OnceLock::new();

/// Sets the options, once per process.
pub fn set_output(output: Output) {
    // A second call has no effect: the options are those of the command line.
    let _ = OUTPUT.set(output);
}

/// The options, or the defaults if none have been set.
pub fn output() -> &'static Output {
    static DEFAULT: Output = Output { budget: None, no_header: false, quiet: false, bold: false, whole: Vec::new() };
    OUTPUT.get().unwrap_or(&DEFAULT)
}

/// Output that has already been cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The output cannot be made shorter, and it already says what it leaves out.
    Said,
    /// The output cannot be made shorter, and this has to be printed after it.
    Unsaid(String),
}

static CUT: Mutex<Option<Cut>> = Mutex::new(None);

/// Records that the output was cut.
pub fn note_cut(cut: Cut) {
    if let Ok(mut noted) = CUT.lock() {
        *noted = Some(cut);
    }
}

/// Takes the record that the output was cut; `None` if it still has to be cut.
pub fn take_cut() -> Option<Cut> {
    CUT.lock().ok()?.take()
}
