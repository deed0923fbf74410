//! The session: its reports, and what is the same for all of them.

pub mod address;
pub mod groups;
mod narrowed;
pub mod report;
mod settings;

pub use address::{Address, Show};
pub use groups::Groups;
pub use report::{Report, Stage};
pub use settings::Settings;

use super::actions::ActionId;
use crate::model::Metrics;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Clone, Debug, Default)]
pub struct Session {
    pub reports: Vec<Report>,
    /// Index of the one that is shown.
    pub active: usize,
    pub settings: Settings,
    /// Metrics that are shown first for every result.
    pub pins: Vec<Arc<str>>,
    /// Columns and rows of the terminal.
    pub size: (u16, u16),
    /// Whether the details are wanted beside the tables.
    pub details: bool,
    /// How far the details are scrolled while keys go to them.
    pub reading: Option<usize>,
    /// How far what is read can be scrolled, as it was drawn last.
    pub most_scroll: usize,
    /// How often each action was done.
    pub used: BTreeMap<ActionId, u32>,
    /// The step of the tour, while there is one.
    pub tour: Option<usize>,
    /// Where the command line leads, until one is there.
    pub address: Option<Address>,
    /// What this machine has to profile with; empty where nobody asked.
    pub machine: Vec<Fact>,
}

/// Something that this machine has, or lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    pub name: &'static str,
    pub there: bool,
    /// What can be done with it, or without it.
    pub text: String,
}

impl Session {
    /// The report that is shown.
    #[must_use]
    pub fn report(&self) -> Option<&Report> {
        self.reports.get(self.active)
    }

    /// The first key of an action, as it is shown.
    #[must_use]
    pub fn key(&self, id: ActionId) -> String {
        self.settings.keymap.label(id)
    }

    /// The same for a sentence in which it is lit and can be pressed.
    #[must_use]
    pub fn link(&self, id: ActionId) -> String {
        self.settings.keymap.link(id)
    }

    /// Results of a report.
    #[must_use]
    pub fn metrics(&self, report: usize) -> Option<&Arc<Metrics>> {
        self.reports.get(report)?.profile.as_ref()?.metrics.as_ref()
    }

    /// Which report a file is.
    #[must_use]
    pub fn position(&self, file: &Path) -> Option<usize> {
        self.reports.iter().position(|r| r.file == file)
    }

    /// Whether the report is a timeline that was read whole.
    #[must_use]
    pub fn timeline(&self, report: usize) -> bool {
        self.reports.get(report).is_some_and(|r| r.profile.as_ref().is_some_and(|p| p.metrics.is_none() && p.complete))
    }

    /// Adds reports of the user's own runs.
    pub fn add(&mut self, files: &[PathBuf]) {
        for file in files {
            let mut report = Report::new(file.clone(), &self.settings);
            report.trusted = true;
            self.reports.push(report);
        }
    }

    /// Adds what else is in a report's file; returns its place.
    pub fn add_part(&mut self, of: usize) -> usize {
        let mut report = Report::new(PathBuf::new(), &self.settings);
        if let Some(whole) = self.reports.get(of) {
            (report.file, report.trusted, report.built_in) = (whole.file.clone(), whole.trusted, whole.built_in);
        }
        report.part_of = Some(of);
        self.reports.push(report);
        self.reports.len() - 1
    }

    /// Adds a report that is part of the program.
    pub fn add_built_in(&mut self, name: &str) {
        let mut report = Report::new(PathBuf::from(name), &self.settings);
        report.built_in = true;
        self.reports.push(report);
    }

    /// Whether the details are drawn beside a table.
    #[must_use]
    pub fn details_beside(&self) -> bool {
        self.details && self.details_room() != DetailsRoom::Over
    }

    /// Rows of a page on this terminal.
    #[must_use]
    pub fn page(&self) -> isize {
        isize::try_from(self.size.1.saturating_sub(10).max(4)).unwrap_or(10)
    }

    /// Where the details go at this size.
    #[must_use]
    pub fn details_room(&self) -> DetailsRoom {
        match self.size {
            (w, h) if w >= 120 && h >= 24 => DetailsRoom::Right,
            (w, h) if w >= 80 && h >= 34 => DetailsRoom::Below,
            _ => DetailsRoom::Over,
        }
    }
}

/// Where the details go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DetailsRoom {
    /// Right of the table.
    Right,
    Below,
    /// Over the table, on request.
    Over,
}
