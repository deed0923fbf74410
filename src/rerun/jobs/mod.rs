//! Checks rocprofv3's input files: the data that each job collects, the launches that it actually selects, and
//! incompatibilities with `ROCm` releases. The rules come from `rocprofv3.py` and the tool library of `ROCm` 6.2 to
//! 7.14; nothing was run on an AMD GPU.

pub mod filter;
mod options;
pub mod read;
pub mod regex;
mod rules;
pub mod select;
mod values;

use crate::model::Severity;
use filter::Filter;
use read::Job;

/// A finding about a job or the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobProblem {
    pub severity: Severity,
    /// Stable identifier for scripts.
    pub id: &'static str,
    /// The affected line, if known.
    pub line: Option<usize>,
    pub text: String,
    pub fix: Option<String>,
}

impl JobProblem {
    fn new(severity: Severity, id: &'static str, line: Option<usize>, text: impl Into<String>) -> Self {
        Self { severity, id, line, text: text.into(), fix: None }
    }

    fn with_fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}

/// A job and its findings.
#[derive(Debug)]
pub struct Checked {
    /// Job number, 1-based.
    pub number: usize,
    pub line: Option<usize>,
    /// Description of the collected data.
    pub collects: Vec<String>,
    /// Launches that get counters or a thread trace; `None` if the job collects neither.
    pub filter: Option<Filter>,
    /// Findings, most severe first.
    pub findings: Vec<JobProblem>,
}

/// A checked file.
#[derive(Debug)]
pub struct File {
    pub jobs: Vec<Checked>,
    /// Findings about the file as a whole.
    pub findings: Vec<JobProblem>,
}

impl File {
    /// Returns the highest severity of all findings.
    pub fn max_severity(&self) -> Option<Severity> {
        self.findings.iter().chain(self.jobs.iter().flat_map(|j| &j.findings)).map(|f| f.severity).max()
    }
}

/// Checks a file given its name and contents.
///
/// # Errors
/// Fails if rocprofv3 would reject the file; the error is one sentence.
pub fn check_file(name: &str, text: &str) -> Result<File, String> {
    let (jobs, beside) = read::parse_jobs(name, text)?;
    let findings = rules::of_file(name, &jobs, &beside);
    let several = jobs.len() > 1;
    let one = |(i, job): (usize, &Job)| {
        let filter = Filter::from_job(job);
        let mut findings = values::of_job(job);
        findings.extend(rules::of_job(job, filter.as_ref(), several));
        findings.sort_by_key(|f| std::cmp::Reverse(f.severity));
        Checked { number: i + 1, line: job.line, collects: rules::collected_data(job), filter, findings }
    };
    Ok(File { jobs: jobs.iter().enumerate().map(one).collect(), findings })
}

#[cfg(test)]
mod tests;
