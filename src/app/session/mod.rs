//! Session: its reports and the state that they share

pub mod groups;
pub mod lead;
pub mod location;
pub mod measured_group;
pub mod report;
mod settings;
mod time_filter;

pub use groups::Groups;
pub use location::Location;
pub use report::{Report, Stage};
pub use settings::Settings;

use super::actions::ActionId;
use super::jobs::Ranks;
use crate::analysis::ranks::Member;
use crate::analysis::triage::Finding;
use crate::model::Metrics;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Clone, Debug, Default)]
pub struct Session {
    /// Report whose kernel table leads back to the comparison from which it was opened.
    pub changes_behind: Option<usize>,
    pub reports: Vec<Report>,
    /// Index of the active report.
    pub active: usize,
    pub settings: Settings,
    /// Analysis of the ranks among the reports; `None` until it is computed.
    pub ranks: Option<Arc<Ranks>>,
    /// Metrics pinned to the top of every result.
    pub pins: Vec<Arc<str>>,
    /// Size of the terminal in columns and rows.
    pub size: (u16, u16),
    /// True if details are shown next to the tables.
    pub details: bool,
    /// Scroll offset of the details while they have the focus.
    pub reading: Option<usize>,
    /// Maximum scroll offset of the page or details, as of the last draw.
    pub most_scroll: usize,
    /// Number of uses of each action.
    pub used: BTreeMap<ActionId, u32>,
    /// Current step of the tour.
    pub tour: Option<usize>,
    /// Location named on the command line, until the session has reached it.
    pub address: Option<Location>,
    /// Profiling capabilities of this machine; empty if unknown.
    pub machine: Vec<Fact>,
}

/// Profiling capability of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    pub name: &'static str,
    pub there: bool,
    /// Consequence of having or lacking the capability.
    pub text: String,
}

/// Rank that makes the others wait.
#[derive(Clone, Copy, Debug)]
pub struct Straggler<'a> {
    pub rank: u32,
    pub finding: &'a Finding,
}

impl Session {
    /// Rank that makes the others wait, if the active report is one of several ranks.
    pub fn straggler(&self) -> Option<Straggler<'_>> {
        self.straggler_of(self.active)
    }

    /// The active report, or the timeline from whose file its counters are.
    pub fn active_run(&self) -> usize {
        self.reports.get(self.active).and_then(|r| r.part_of).unwrap_or(self.active)
    }

    /// Reports with which the active run can be compared. The counters of its own file are none.
    pub fn baselines(&self) -> Vec<usize> {
        let own = self.active_run();
        (0..self.reports.len()).filter(|&i| i != own && self.reports[i].part_of.is_none()).collect()
    }

    /// Returns true if both reports are ranks of one job, whose collectives were matched.
    pub fn are_ranks(&self, a: usize, b: usize) -> bool {
        let matched = self.ranks.as_ref().filter(|r| !r.job.matches.list.is_empty());
        matched.is_some_and(|r| r.reports.contains(&a) && r.reports.contains(&b))
    }

    /// Completes the ranks' own findings by what all ranks together show. A window that the user chose is not what the
    /// ranks were judged on.
    pub fn complete_findings(&mut self) {
        let Some(ranks) = self.ranks.clone().filter(|r| r.job.ranks.len() > 1) else { return };
        for (at, report) in self.reports.iter_mut().enumerate().filter(|(_, r)| r.chosen_window().is_none()) {
            let members: Vec<&Member> = ranks.job.ranks.iter().filter(|m| ranks.reports.get(m.digest) == Some(&at)).collect();
            if !members.is_empty() {
                report.complete_findings(&ranks.job, &members);
            }
        }
    }

    /// Rank that makes the others wait, if a report is one of several ranks.
    fn straggler_of(&self, report: usize) -> Option<Straggler<'_>> {
        let ranks = self.ranks.as_ref().filter(|r| r.job.ranks.len() > 1 && r.reports.contains(&report))?;
        let finding = ranks.job.findings.first()?;
        let rank = ranks.job.stragglers.first()?.rank;
        Some(Straggler { rank, finding })
    }

    /// The active report.
    pub fn report(&self) -> Option<&Report> {
        self.reports.get(self.active)
    }

    /// Label of an action's first key.
    pub fn key_label(&self, id: ActionId) -> String {
        self.settings.keymap.key_label(id)
    }

    /// First key of an action, highlighted and clickable in a sentence.
    pub fn key_link(&self, id: ActionId) -> String {
        self.settings.keymap.link(id)
    }

    /// Results of a report.
    pub fn metrics(&self, report: usize) -> Option<&Arc<Metrics>> {
        self.reports.get(report)?.profile.as_ref()?.metrics.as_ref()
    }

    /// Index of the report read from this file.
    pub fn find_report(&self, file: &Path) -> Option<usize> {
        self.reports.iter().position(|r| r.file == file)
    }

    /// Returns true if the report is a timeline that has been read completely.
    pub fn is_complete_timeline(&self, report: usize) -> bool {
        self.reports.get(report).is_some_and(|r| r.profile.as_ref().is_some_and(|p| p.metrics.is_none() && p.complete))
    }

    /// Adds a report that the user chose.
    pub fn add_report(&mut self, file: &Path) {
        let report = Report::new(file.to_owned(), &self.settings);
        self.reports.push(report);
    }

    /// Adds reports of the user's own runs, whose programs are trusted.
    pub fn add_reports(&mut self, files: &[PathBuf]) {
        let first = self.reports.len();
        for file in files {
            self.add_report(file);
        }
        for report in self.reports.iter_mut().skip(first) {
            report.trusted = true;
        }
    }

    /// Adds a second report for the measurements in a report's file and returns its index.
    pub fn add_part(&mut self, of: usize) -> usize {
        let mut report = Report::new(PathBuf::new(), &self.settings);
        if let Some(whole) = self.reports.get(of) {
            (report.file, report.trusted, report.built_in) = (whole.file.clone(), whole.trusted, whole.built_in);
        }
        report.part_of = Some(of);
        self.reports.push(report);
        self.reports.len() - 1
    }

    /// Adds a report that is built into the program.
    pub fn add_built_in(&mut self, name: &str) {
        let mut report = Report::new(PathBuf::from(name), &self.settings);
        report.built_in = true;
        self.reports.push(report);
    }

    /// Returns true if the details are drawn next to a table.
    pub fn details_beside(&self) -> bool {
        self.details && self.details_room() != DetailsRoom::Over
    }

    /// Number of rows of a page at this terminal size.
    pub fn page_rows(&self) -> isize {
        isize::try_from(self.size.1.saturating_sub(10).max(4)).unwrap_or(10)
    }

    /// Placement of the details at this terminal size.
    pub fn details_room(&self) -> DetailsRoom {
        match self.size {
            (w, h) if w >= 120 && h >= 24 => DetailsRoom::Right,
            (w, h) if w >= 80 && h >= 34 => DetailsRoom::Below,
            _ => DetailsRoom::Over,
        }
    }
}

/// Placement of the details.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DetailsRoom {
    /// To the right of the table.
    Right,
    Below,
    /// Over the table, on request.
    Over,
}
