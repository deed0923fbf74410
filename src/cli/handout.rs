//! `warpscope report`: a shareable report in a single file.

use super::failure::Failure;
use super::{interrupt, print, save};
use crate::analysis::kernel_lead::find_kernel_lead;
use crate::analysis::memory::analyze_usage as memory_usage;
use crate::analysis::triage::{self, Scope};
use crate::import::Wants;
use crate::model::Cancel;
use crate::report::document::{self, Given};
use crate::report::ranks::Together;
use crate::report::triage::Judged;
use std::path::Path;
use std::path::PathBuf;

/// `warpscope report`.
#[derive(Debug, clap::Args)]
pub struct ReportArgs {
    /// Reports: timelines, results of ncu or rocprofv3, memory snapshots; several of one job are compared as ranks.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The file to write; its extension sets the format: .html or .md.
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Keep paths of files; without it only their names are written.
    #[arg(long)]
    pub paths: bool,
    /// Replace a file that exists.
    #[arg(long)]
    pub force: bool,
}

/// Writes the report as HTML or Markdown, depending on the extension of the output file.
pub fn write_report(args: &ReportArgs, nsys: Option<&Path>) -> Result<(), Failure> {
    let name = args.output.file_name().map_or_else(String::new, |n| n.to_string_lossy().to_lowercase());
    let html = match name.rsplit_once('.').map(|n| n.1) {
        Some("html" | "htm") => true,
        Some("md" | "markdown") => false,
        _ => {
            return Err(Failure::wrong(format!(
                "{}: name a file that ends in .html or .md (`warpscope triage --format json` prints JSON)",
                args.output.display()
            )));
        }
    };
    let mut all = Vec::new();
    for file in &args.files {
        let profile = interrupt::open_report(file, nsys.map(Path::to_owned), Wants::EXPLORER)?;
        print::warn(&profile);
        let timed = profile.metrics.is_none();
        let mut found = timed.then(|| triage::triage_profile(&profile, &Scope::default(), &Cancel::default())).flatten();
        if let Some(found) = &mut found {
            found.kernel_lead = find_kernel_lead(&profile, found);
        }
        let usage = memory_usage(&profile, &Cancel::default());
        if profile.metrics.is_none() && found.is_none() && usage.is_none() && profile.totals.is_empty() {
            return Err(Failure::wrong(format!("{}: nothing ran on a GPU, and nothing is known of memory", file.display())));
        }
        all.push((profile, found, usage));
    }
    let judged: Vec<Judged<'_>> = all.iter().filter_map(|(p, t, _)| Some((p, t.as_ref()?))).collect();
    let ranks = super::ranks::of_reports(&judged);
    let ranks = ranks.as_ref().map(|(digests, reports, job)| Together { job, digests, reports });
    let given: Vec<Given<'_>> = all.iter().map(|(p, t, u)| Given { profile: p, triage: t.as_ref(), usage: u.as_ref() }).collect();
    let made = document::build_handout(&given, ranks.as_ref());
    save::refuse_overwrite(&args.output, &args.files)?;
    save::write_atomically(&args.output, args.force, |out| {
        if html { document::write_html(out, &made, args.paths) } else { document::write_markdown(out, &made, args.paths) }
    })?;
    print::to_stdout(|out| writeln!(out, "{}", args.output.display()))
}
