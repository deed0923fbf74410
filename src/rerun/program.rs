//! The program to profile: recorded in the report, specified by the user, or a placeholder that cannot be run by
//! mistake.

use super::Options;
use crate::model::Profile;

/// Placeholder for an unknown program. When quoted, it is a single word that is not the name of any program, so ncu
/// fails before it starts anything.
pub const PLACEHOLDER: &str = "<PROGRAM AND ITS ARGUMENTS>";

/// Source of the program's command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    Report,
    User,
    Nowhere,
}

/// The program, its arguments and its working directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The command line; the placeholder if the program is unknown.
    pub argv: Vec<String>,
    pub from: From,
    /// Working directory, if known.
    pub directory: Option<String>,
}

/// Returns the program to run again: the user's, or else the recorded one, or else a placeholder.
pub fn resolve_program(profile: &Profile, options: &Options) -> Program {
    let recorded = &profile.capture.argv;
    let (argv, from) = match &options.program {
        Some(argv) if !argv.is_empty() => (argv.clone(), From::User),
        _ if recorded.iter().any(|w| !w.is_empty()) => (recorded.clone(), From::Report),
        _ => (vec![PLACEHOLDER.to_owned()], From::Nowhere),
    };
    let directory = options.directory.clone().or_else(|| profile.capture.directory.clone()).filter(|d| !d.is_empty());
    Program { argv, from, directory }
}
