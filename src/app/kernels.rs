//! State of the kernels screen: grouping, order, filter, marks, and where the selection is.

use crate::analysis::fuzzy::Fuzzy;
use crate::analysis::{GroupBy, Grouping, SortBy, group, labels};
use crate::model::{NameForm, Profile};
use std::collections::HashSet;
use std::sync::Arc;
use tui_input::Input;

/// Rows beyond which labels are not compared with each other: a table of ranges may have a hundred thousand.
pub const MOST_COMPARED: usize = 5_000;

/// Letters of all names times letters of the pattern beyond which the filter looks for the words as they are: matching strewn letters
/// takes about 5 ns for each such pair, and a key must be answered within 16 ms.
const MOST_FUZZY: usize = 2_000_000;
/// Letters of a filter that count.
const LONGEST_FILTER: usize = 100;

/// The kernels screen.
#[derive(Clone, Debug)]
pub struct KernelsScreen {
    /// What launches are grouped by.
    pub by: GroupBy,
    /// The groups, once they are there.
    pub grouping: Option<Arc<Grouping>>,
    /// Which form of kernel names is shown.
    pub form: NameForm,
    /// Short distinct names, one for each row of the grouping.
    pub labels: Arc<Vec<String>>,
    /// Order.
    pub sort: SortBy,
    /// Smallest first.
    pub ascending: bool,
    /// Filter text.
    pub filter: Input,
    /// Whether keys go to the filter.
    pub typing: bool,
    /// Rows of the grouping that are listed, in order.
    pub shown: Vec<u32>,
    /// Index of the selected row in `shown`.
    pub selected: usize,
    /// Names of marked rows.
    pub marked: HashSet<String>,
    /// How many rows are marked, and their share of the time in percent.
    pub marked_sum: (usize, f64),
    /// Names of all groups in lower case, for the filter; made when it is first used.
    lower: Option<Vec<String>>,
}

impl KernelsScreen {
    /// An empty screen.
    #[must_use]
    pub fn new(by: GroupBy, sort: SortBy) -> Self {
        Self {
            by,
            grouping: None,
            form: NameForm::Function,
            labels: Arc::default(),
            sort,
            ascending: sort == SortBy::Name,
            filter: Input::default(),
            typing: false,
            shown: Vec::new(),
            selected: 0,
            marked: HashSet::new(),
            marked_sum: (0, 0.0),
            lower: None,
        }
    }

    /// The selected row of the grouping.
    #[must_use]
    pub fn row(&self) -> Option<usize> {
        self.shown.get(self.selected).map(|&r| r as usize)
    }

    /// Takes new groups.
    pub fn take(&mut self, profile: &Profile, grouping: Arc<Grouping>) {
        let selected = self.selected_name();
        self.grouping = Some(grouping);
        self.lower = None;
        self.sum_marked();
        self.label(profile);
        self.arrange_keeping(selected);
    }

    /// Selects a group by name; false when it is not listed.
    pub fn select(&mut self, name: &str) -> bool {
        let Some(grouping) = &self.grouping else { return false };
        let found = self.shown.iter().position(|&r| grouping.rows[r as usize].name == name);
        self.selected = found.unwrap_or(self.selected);
        found.is_some()
    }

    /// The name of the selected group.
    #[must_use]
    pub fn selected_name(&self) -> Option<String> {
        let row = self.row()?;
        self.grouping.as_ref()?.rows.get(row).map(|r| r.name.clone())
    }

    /// Makes the labels anew: after new groups, or another form of names.
    pub fn label(&mut self, profile: &Profile) {
        let Some(grouping) = &self.grouping else {
            return;
        };
        let plain = || grouping.rows.iter().map(|r| r.name.clone()).collect::<Vec<_>>();
        let kernel = |r: &group::GroupRow| r.kernel.and_then(|k| profile.kernels.get(k.0 as usize));
        let out = if !grouping.by.is_kernel() || grouping.rows.len() > MOST_COMPARED {
            plain()
        } else {
            match self.form {
                NameForm::Function if grouping.by != GroupBy::Name => {
                    let rows: Vec<(&str, &str, &str)> = grouping
                        .rows
                        .iter()
                        .map(|r| kernel(r).map_or((r.name.as_str(), "", ""), |k| (k.function(), k.demangled(), k.mangled())))
                        .collect();
                    labels::kernels(&rows)
                }
                NameForm::Function => plain(),
                // Several kernels may share a function name: then one of them does not stand for the row.
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
        let mut out: Vec<String> = out.iter().map(|l| crate::model::text::clean(l).into_owned()).collect();
        if out.len() <= MOST_COMPARED {
            // Names that differ only in what cannot be shown.
            labels::make_distinct(&mut out);
        }
        self.labels = Arc::new(out);
    }

    /// Filters and orders anew, and keeps the selected group selected if it is still listed.
    pub fn arrange(&mut self) {
        let selected = self.selected_name();
        self.arrange_keeping(selected);
    }

    fn arrange_keeping(&mut self, selected: Option<String>) {
        let Some(grouping) = &self.grouping else {
            return;
        };
        let pattern: String = self.filter.value().chars().take(LONGEST_FILTER).collect();
        let all = (0..u32::try_from(grouping.rows.len()).unwrap_or(u32::MAX)).collect::<Vec<_>>();
        let fuzzy_cost = self.labels.iter().map(String::len).sum::<usize>().saturating_mul(pattern.len());
        let listed = if pattern.trim().is_empty() {
            all
        } else {
            let fuzzy = Fuzzy::new(&pattern);
            let lower = self.lower.get_or_insert_with(|| grouping.rows.iter().map(|r| r.name.to_lowercase()).collect());
            let words: Vec<String> = pattern.split_whitespace().map(str::to_lowercase).collect();
            let passes = |&row: &u32| {
                let label = self.labels.get(row as usize).map_or("", String::as_str);
                // The full name counts only where it holds the words as they are: strewn letters are in nearly every long name.
                (fuzzy_cost <= MOST_FUZZY && fuzzy.matches(label)) || {
                    let name = lower.get(row as usize).map_or("", String::as_str);
                    words.iter().all(|w| name.contains(w))
                }
            };
            all.into_iter().filter(passes).collect()
        };
        self.shown = group::sorted(&grouping.rows, &listed, self.sort, self.ascending);
        let found = selected.and_then(|name| self.shown.iter().position(|&r| grouping.rows[r as usize].name == name));
        self.selected = found.unwrap_or(0).min(self.shown.len().saturating_sub(1));
    }

    /// Another order; the same one again turns it round.
    pub fn sort_by(&mut self, sort: SortBy) {
        if self.sort == sort {
            self.ascending = !self.ascending;
        } else {
            self.sort = sort;
            self.ascending = sort == SortBy::Name;
        }
        self.arrange();
    }

    /// Marks or unmarks the selected row and goes on to the next.
    pub fn toggle_mark(&mut self) {
        if let Some(name) = self.selected_name() {
            if !self.marked.remove(&name) {
                self.marked.insert(name);
            }
            self.sum_marked();
            self.selected = (self.selected + 1).min(self.shown.len().saturating_sub(1));
        }
    }

    /// Removes all marks.
    pub fn unmark(&mut self) {
        self.marked.clear();
        self.sum_marked();
    }

    fn sum_marked(&mut self) {
        let rows = self.grouping.iter().flat_map(|g| &g.rows).filter(|r| self.marked.contains(&r.name));
        self.marked_sum = if self.marked.is_empty() { (0, 0.0) } else { rows.fold((0, 0.0), |(n, s), r| (n + 1, s + r.share_percent)) };
    }
}
