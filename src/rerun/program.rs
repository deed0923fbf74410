//! The program that is profiled: as the report recorded it, as the user gave it, or a placeholder that cannot be run by mistake.

use super::Options;
use crate::model::Profile;

/// Stands for a program that nobody named. Quoted for a shell it is one word, and no program has this name: ncu refuses it before it starts
/// anything.
pub const PLACEHOLDER: &str = "<PROGRAM AND ITS ARGUMENTS>";

/// Where the program's words come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    Report,
    User,
    Nowhere,
}

/// The program, its arguments, its directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The words; the placeholder when nobody named any.
    pub argv: Vec<String>,
    /// Where they come from.
    pub from: From,
    /// Working directory, when known.
    pub directory: Option<String>,
}

/// The program of a re-run.
#[must_use]
pub fn of(profile: &Profile, options: &Options) -> Program {
    let recorded = &profile.capture.argv;
    let (argv, from) = match &options.program {
        Some(argv) if !argv.is_empty() => (argv.clone(), From::User),
        _ if recorded.iter().any(|w| !w.is_empty()) => (recorded.clone(), From::Report),
        _ => (vec![PLACEHOLDER.to_owned()], From::Nowhere),
    };
    let directory = options.directory.clone().or_else(|| profile.capture.directory.clone()).filter(|d| !d.is_empty());
    Program { argv, from, directory }
}
