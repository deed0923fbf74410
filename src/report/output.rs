//! Options of the output that hold for all commands: a budget, headers, and notes.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};

/// Options of the output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Maximum size of a document, bytes; what weighs least is left out.
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

/// Stand-ins for the control sequences of bold text, since control characters are made visible on their way to a terminal.
/// From a name in a report they could only make it bold.
pub const BOLD: [(char, &str); 2] = [('\u{f0001}', "\u{1b}[1m"), ('\u{f0002}', "\u{1b}[0m")];

/// Returns a heading, in bold where the output is for people who see it.
pub fn bold(text: &str) -> Cow<'_, str> {
    if !output().bold {
        return Cow::Borrowed(text);
    }
    HAS_BOLD.store(true, Ordering::Relaxed);
    Cow::Owned(format!("{}{text}{}", BOLD[0].0, BOLD[1].0))
}

/// Set once a heading is in bold. Data never is: in other output the stand-ins are characters of names.
static HAS_BOLD: AtomicBool = AtomicBool::new(false);

/// Returns true if the output has stand-ins.
pub fn has_bold() -> bool {
    HAS_BOLD.load(Ordering::Relaxed)
}

/// Number of characters of a text that take room.
pub(super) fn count_shown(text: &str) -> usize {
    text.chars().filter(|c| BOLD.iter().all(|b| b.0 != *c)).count()
}

/// Size of a token, bytes: an average of English text and code.
pub const TOKEN: usize = 4;

static OUTPUT: OnceLock<Output> = OnceLock::new();

/// Sets the options, once for the process.
pub fn set_output(output: Output) {
    // A second call has no effect: the options are those of the command line.
    let _ = OUTPUT.set(output);
}

/// The options; before they are set, the defaults.
pub fn output() -> &'static Output {
    static DEFAULT: Output = Output { budget: None, no_header: false, quiet: false, bold: false, whole: Vec::new() };
    OUTPUT.get().unwrap_or(&DEFAULT)
}

/// Output that was cut already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    /// It has no form that is shorter, and says what it leaves out.
    Said,
    /// As above, but this has to be said after it.
    Unsaid(String),
}

static CUT: Mutex<Option<Cut>> = Mutex::new(None);

/// Notes that the output was cut.
pub fn note_cut(cut: Cut) {
    if let Ok(mut noted) = CUT.lock() {
        *noted = Some(cut);
    }
}

/// Takes the note that the output was cut; nothing if it still has to be.
pub fn take_cut() -> Option<Cut> {
    CUT.lock().ok()?.take()
}
