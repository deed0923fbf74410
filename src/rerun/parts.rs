//! Parts of an ncu command that do not depend on the launch.

use super::options::{CacheControl, ClockControl, Options, Replay};
use super::program::{self, Program};
use super::{CommandPart, PartId, shell};
use crate::model::Profile;

pub fn tool() -> CommandPart {
    CommandPart {
        id: PartId::Tool,
        words: ["ncu", "--config-file", "off"].map(str::to_owned).to_vec(),
        why: "NVIDIA's kernel profiler. A configuration file in this or the home directory could change any option; it is ignored."
            .to_owned(),
    }
}

/// Parts for the collected metrics and their settings.
pub fn settings(profile: &Profile, o: &Options, as_range: bool) -> Vec<CommandPart> {
    let part =
        |id, words: &[&str], why: &str| CommandPart { id, words: words.iter().map(|w| (*w).to_owned()).collect(), why: why.to_owned() };
    let mut parts =
        vec![CommandPart { id: PartId::Collect, words: o.collect.to_args(), why: format!("What is measured: {}.", o.collect.describe()) }];
    if o.clock_control(profile) == ClockControl::None {
        parts.push(part(
            PartId::Clocks,
            &["--clock-control", "none"],
            "Clocks are not locked: times are as in production, and vary as much.",
        ));
    }
    if o.cache == CacheControl::None {
        parts.push(part(
            PartId::Caches,
            &["--cache-control", "none"],
            "Caches are not flushed: each pass starts with what the previous one left in them.",
        ));
    }
    if as_range {
        let why = "The program runs once for each pass, and everything inside the range is measured together.";
        parts.push(part(PartId::Replay, &["--replay-mode", "app-range"], why));
    } else if o.replay == Some(Replay::Application) {
        let why = "The program is rerun for each pass, instead of the kernel; no memory is saved and restored.";
        parts.push(part(PartId::Replay, &["--replay-mode", "application"], why));
    }
    if o.import_source || o.collect.wants_source() {
        let why = "CUDA source is imported into the report; the program must be built with -lineinfo.";
        parts.push(part(PartId::Source, &["--import-source", "yes"], why));
    }
    if o.kill {
        parts.push(part(PartId::End, &["--kill", "yes"], "The program is terminated after the last result."));
    }
    parts
}

pub fn output(output: &str, overwrite: bool) -> CommandPart {
    let mut words = vec!["--export".to_owned(), shell::output_path(output)];
    let mut why = format!("The report: {output}.ncu-rep.");
    if overwrite {
        words.push("--force-overwrite".to_owned());
        why.push_str(" An existing file is overwritten.");
    } else {
        why.push_str(" ncu refuses to start if it already exists.");
    }
    CommandPart { id: PartId::Output, words, why }
}

pub fn program(program: &Program) -> CommandPart {
    let why = match program.from {
        program::From::Report => "The program and its arguments, as the report recorded them.",
        program::From::User => "The program and its arguments, as you gave them.",
        program::From::Nowhere => "The report does not say which program ran: put it here.",
    };
    CommandPart { id: PartId::Program, words: program.argv.clone(), why: why.to_owned() }
}
