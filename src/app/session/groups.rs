//! Groups of a report's launches, shared by all its screens

use crate::analysis::{GroupBy, Grouping, kernel_groups, labels};
use crate::model::text::escape_unsafe;
use crate::model::{NameForm, Profile};
use std::collections::HashSet;
use std::sync::Arc;

/// Maximum number of rows whose labels are made distinct: a table of ranges may have a hundred thousand rows.
pub const MOST_COMPARED: usize = 5_000;

/// Groups of launches, with their labels and marks.
#[derive(Clone, Debug)]
pub struct Groups {
    /// Requested grouping.
    pub by: GroupBy,
    /// The groups, once computed; after the grouping has changed, the previous groups until the new ones are computed.
    pub grouping: Option<Arc<Grouping>>,
    /// Displayed form of kernel names.
    pub form: NameForm,
    /// Short distinct names, one for each row of the grouping.
    pub labels: Arc<Vec<String>>,
    /// Names of marked rows.
    pub marked: HashSet<String>,
    /// Number of marked rows, and their share of the time in percent.
    pub marked_sum: (usize, f64),
}

impl Groups {
    pub fn new(by: GroupBy) -> Self {
        Self { by, grouping: None, form: NameForm::Function, labels: Arc::default(), marked: HashSet::new(), marked_sum: (0, 0.0) }
    }

    pub fn set_grouping(&mut self, profile: &Profile, grouping: Arc<Grouping>) {
        self.grouping = Some(grouping);
        self.sum_marked();
        self.rebuild_labels(profile);
    }

    /// Returns true if the groups still belong to the previous grouping.
    pub fn is_pending(&self) -> bool {
        self.grouping.as_ref().is_some_and(|g| g.by != self.by)
    }

    pub fn row_name(&self, row: usize) -> Option<&str> {
        self.grouping.as_ref()?.rows.get(row).map(|r| r.name.as_str())
    }

    /// Rebuilds the labels after the groups or the form of names changed.
    pub fn rebuild_labels(&mut self, profile: &Profile) {
        let Some(grouping) = &self.grouping else {
            return;
        };
        let plain = || grouping.rows.iter().map(|r| r.name.clone()).collect::<Vec<_>>();
        let kernel = |r: &kernel_groups::GroupRow| r.kernel.and_then(|k| profile.kernels.get(k.0 as usize));
        let out = if !grouping.by.is_kernel() || grouping.rows.len() > MOST_COMPARED {
            plain()
        } else {
            match self.form {
                NameForm::Function if !matches!(grouping.by, GroupBy::Kernel | GroupBy::Name) => {
                    let rows: Vec<(&str, &str, &str)> = grouping
                        .rows
                        .iter()
                        .map(|r| kernel(r).map_or((r.name.as_str(), "", ""), |k| (k.function(), k.demangled(), k.mangled())))
                        .collect();
                    labels::label_kernels(&rows)
                }
                NameForm::Function => plain(),
                // Several kernels can share a function name: a row that covers several kernels must not have the name
                // of one of them.
                form => grouping
                    .rows
                    .iter()
                    .map(|r| match kernel(r) {
                        Some(k) if r.kernels == 1 || form == NameForm::Demangled && grouping.by == GroupBy::Demangled => {
                            k.name(form).to_owned()
                        }
                        Some(_) if r.kernels > 1 => format!("{} ({} kernels)", r.name, r.kernels),
                        _ => r.name.clone(),
                    })
                    .collect(),
            }
        };
        let mut out: Vec<String> = out.iter().map(|l| escape_unsafe(l).into_owned()).collect();
        if out.len() <= MOST_COMPARED {
            // Names may differ only in characters that cannot be displayed.
            labels::make_distinct(&mut out);
        }
        self.labels = Arc::new(out);
    }

    /// Marks or unmarks a row.
    pub fn toggle_mark(&mut self, name: String) {
        if !self.marked.remove(&name) {
            self.marked.insert(name);
        }
        self.sum_marked();
    }

    pub fn clear_marks(&mut self) {
        self.marked.clear();
        self.sum_marked();
    }

    /// Rows of the grouping that are marked.
    pub fn marked_rows(&self) -> Vec<usize> {
        let rows = self.grouping.iter().flat_map(|g| g.rows.iter().enumerate());
        rows.filter(|(_, r)| self.marked.contains(&r.name)).map(|(i, _)| i).collect()
    }

    fn sum_marked(&mut self) {
        let rows = self.grouping.iter().flat_map(|g| &g.rows).filter(|r| self.marked.contains(&r.name));
        self.marked_sum = if self.marked.is_empty() { (0, 0.0) } else { rows.fold((0, 0.0), |(n, s), r| (n + 1, s + r.share_percent)) };
    }
}
