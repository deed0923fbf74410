//! Options of the output that hold for all commands: a budget, headers, and notes.

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
    /// The command without its budget, which prints everything.
    pub whole: Vec<String>,
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
    static DEFAULT: Output = Output { budget: None, no_header: false, quiet: false, whole: Vec::new() };
    OUTPUT.get().unwrap_or(&DEFAULT)
}

/// What was left out of the output, to be said after it.
static LEFT_OUT: Mutex<Option<String>> = Mutex::new(None);

/// Notes a sentence on what was left out.
pub fn note_left_out(sentence: String) {
    if let Ok(mut noted) = LEFT_OUT.lock() {
        *noted = Some(sentence);
    }
}

/// Takes the sentence on what was left out.
pub fn take_left_out() -> Option<String> {
    LEFT_OUT.lock().ok()?.take()
}
