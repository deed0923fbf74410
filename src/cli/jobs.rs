//! `warpscope recipes check`: checks jobs in rocprofv3's input files.

use super::failure::Failure;
use super::{interrupt, print};
use crate::import::Wants;
use crate::model::Severity;
use crate::report::document::Renderer;
use crate::report::{self, PageFormat};
use crate::rerun::jobs::{self, File, select::select_launches};
use std::io::Read;
use std::path::{Path, PathBuf};

/// `warpscope recipes check`.
#[derive(Debug, clap::Args)]
pub struct CheckJobsArgs {
    /// Input files as `rocprofv3 --input` takes them: YAML, JSON or text.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// A trace of the program, to list which of its launches each job selects.
    #[arg(long, value_name = "REPORT")]
    pub report: Option<PathBuf>,
    /// Output format [default: lines for people].
    #[arg(long, value_parser = super::values::word_parser::<PageFormat>())]
    pub format: Option<PageFormat>,
}

/// Maximum size of an input file, bytes.
const MOST: u64 = 1 << 20;

fn read_file(path: &Path) -> Result<(String, File), Failure> {
    let name = path.display().to_string();
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|e| Failure::wrong(format!("{name}: {e}")))?;
    file.take(MOST + 1).read_to_string(&mut text).map_err(|e| Failure::wrong(format!("{name}: {e}")))?;
    if text.len() as u64 > MOST {
        return Err(Failure::wrong(format!("{name}: larger than an input file of rocprofv3 is")));
    }
    let checked = jobs::check_file(&name, &text).map_err(|e| Failure::wrong(format!("{name}: {e}")))?;
    Ok((name, checked))
}

/// Prints the launches that the jobs in input files select, and any problems with the jobs.
pub fn check_jobs(args: &CheckJobsArgs, nsys: Option<PathBuf>) -> Result<(), Failure> {
    let read: Vec<(String, File)> = args.files.iter().map(|f| read_file(f)).collect::<Result<_, _>>()?;
    let profile = args.report.as_ref().map(|r| interrupt::open_report(r, nsys, Wants::LAUNCHES)).transpose()?;
    let found = |file: &File| {
        let one = |job: &jobs::Checked| Some(select_launches(profile.as_ref()?, job.filter.as_ref()?));
        file.jobs.iter().map(one).collect()
    };
    let files: Vec<(String, File, report::jobs::InReport)> = read
        .into_iter()
        .map(|(name, file)| {
            let found = found(&file);
            (name, file, found)
        })
        .collect();
    let report = args.report.as_ref().map_or_else(String::new, |r| r.display().to_string());
    print::to_stdout(|out| match args.format.unwrap_or(PageFormat::Page(Renderer::Text)) {
        PageFormat::Json => report::jobs::write_json(out, &files),
        PageFormat::Csv => report::jobs::print_csv(out, &files),
        PageFormat::Page(renderer) => {
            report::jobs::document(&files, &report).write(out, renderer, Some(print::terminal_width().unwrap_or(100)))
        }
    })?;
    let broken = files.iter().any(|(_, f, _)| f.max_severity() == Some(Severity::Error));
    if broken { Err(Failure::found("")) } else { Ok(()) }
}
