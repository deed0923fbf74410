//! Table of kernels: groups of launches, filtered and sorted

mod lists;

use crate::analysis::fuzzy::Fuzzy;
use crate::analysis::{Grouping, SortBy, group};
use crate::app::actions::{ActionId, Where};
use crate::app::copies::{self, MOST_COPIED, TO_PASTE};
use crate::app::msg::Effect;
use crate::app::over::{Choice, CopyWhat, Finder};
use crate::app::screen::{Answer, Cx, Go, News, ResultView, Screen, Selection, shift};
use crate::app::session::{Groups, Report, Session};
use crate::app::work::Done;
use crate::report;
use std::sync::Arc;

/// Limit of total name length × pattern length beyond which the filter matches literal words only: fuzzy matching takes
/// about 5 ns per pair of letters, and a key must be answered within 16 ms.
const MOST_FUZZY: usize = 2_000_000;
/// Maximum length of a filter.
const LONGEST_FILTER: usize = 100;

/// Sort keys by column, in the order of the headers.
pub const HEADS: [SortBy; 9] =
    [SortBy::Name, SortBy::Total, SortBy::Count, SortBy::Avg, SortBy::Median, SortBy::P99, SortBy::Min, SortBy::Max, SortBy::Spread];

#[derive(Clone, Debug)]
pub struct KernelsScreen {
    /// Grouping that `shown` refers to.
    of: Option<Arc<Grouping>>,
    pub sort: SortBy,
    /// Smallest first.
    pub ascending: bool,
    pub finder: Finder,
    /// Rows of the grouping that are listed, in order.
    pub shown: Vec<u32>,
    /// Index of the selected row in `shown`.
    pub selected: usize,
    /// Names of all groups in lower case, for the filter; built on first use.
    lower: Option<Vec<String>>,
}

fn same(a: Option<&Arc<Grouping>>, b: Option<&Arc<Grouping>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        (a, b) => a.is_none() && b.is_none(),
    }
}

/// Text that the filter searches: the row's name, and the exact name of its kernel.
fn searched(row: &group::GroupRow) -> String {
    let exact = row.exact.as_deref().unwrap_or_default();
    format!("{} {exact}", row.name).to_lowercase()
}

impl KernelsScreen {
    #[must_use]
    pub fn new(sort: SortBy) -> Self {
        Self { of: None, sort, ascending: sort == SortBy::Name, finder: Finder::default(), shown: Vec::new(), selected: 0, lower: None }
    }

    /// The selected row of the grouping.
    #[must_use]
    pub fn row(&self) -> Option<usize> {
        self.shown.get(self.selected).map(|&r| r as usize)
    }

    /// Selects a group by name; returns false if it is not listed.
    pub fn select(&mut self, name: &str) -> bool {
        let Some(grouping) = &self.of else { return false };
        // A readable name matches its function's row, and the other way round: `gelu (vectorized_elementwise_kernel)`.
        let of =
            |function: &str, name: &str| name.strip_suffix(')').and_then(|n| n.strip_suffix(function)).is_some_and(|n| n.ends_with(" ("));
        let at = |is: &dyn Fn(&str) -> bool| self.shown.iter().position(|&r| is(&grouping.rows[r as usize].name));
        let found = at(&|row| row == name).or_else(|| at(&|row| of(name, row) || of(row, name)));
        self.selected = found.unwrap_or(self.selected);
        found.is_some()
    }

    /// The name of the selected group.
    #[must_use]
    pub fn selected_name(&self) -> Option<&str> {
        self.of.as_ref()?.rows.get(self.row()?).map(|r| r.name.as_str())
    }

    /// Filters and sorts again; keeps the selected group if it is still listed.
    fn arrange(&mut self, groups: &Groups) {
        let selected = self.selected_name().map(str::to_owned);
        if !same(self.of.as_ref(), groups.grouping.as_ref()) {
            self.of.clone_from(&groups.grouping);
            self.lower = None;
        }
        let Some(grouping) = &self.of else { return };
        let pattern: String = self.finder.text().chars().take(LONGEST_FILTER).collect();
        let all = (0..u32::try_from(grouping.rows.len()).unwrap_or(u32::MAX)).collect::<Vec<_>>();
        let fuzzy_cost = groups.labels.iter().map(String::len).sum::<usize>().saturating_mul(pattern.len());
        let listed = if pattern.trim().is_empty() {
            all
        } else {
            let fuzzy = Fuzzy::new(&pattern);
            let lower = self.lower.get_or_insert_with(|| grouping.rows.iter().map(searched).collect());
            let words: Vec<String> = pattern.split_whitespace().map(str::to_lowercase).collect();
            let passes = |&row: &u32| {
                let label = groups.labels.get(row as usize).map_or("", String::as_str);
                // In the full name, words must match literally: scattered letters occur in nearly every long name.
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

    /// Sorts by another key; the same key again reverses the order.
    fn sort_by(&mut self, sort: SortBy, groups: &Groups) {
        if self.sort == sort {
            self.ascending = !self.ascending;
        } else {
            self.sort = sort;
            self.ascending = sort == SortBy::Name;
        }
        self.arrange(groups);
    }

    /// Requests the details of the new selection.
    fn moved(&self, cx: &mut Cx<'_>) -> Answer {
        let (at, row) = (cx.report, self.row());
        cx.report_mut().map(|r| r.want_detail(at, row)).unwrap_or_default().into()
    }

    fn ordered(&mut self, sort: SortBy, cx: &mut Cx<'_>) -> Answer {
        let Some(report) = cx.report() else { return Answer::none() };
        self.sort_by(sort, &report.groups);
        self.moved(cx)
    }

    /// Opens the selected group.
    fn open(&self, cx: &Cx<'_>) -> Answer {
        let Some(report) = cx.report() else { return Answer::none() };
        let (Some(grouping), Some(row), Some(profile)) = (self.of.clone(), self.row(), &report.profile) else { return Answer::none() };
        // A list of one result is not useful.
        if profile.metrics.is_some() && grouping.rows.get(row).is_some_and(|g| g.stats.count == 1) {
            return Go::Result(ResultView::Metrics).into();
        }
        if profile.launches.is_empty() {
            return Answer::wrong("this report has per-kernel totals only");
        }
        if report.reading() {
            return Answer::say("the launches are still being read");
        }
        Go::Launches { grouping, row }.into()
    }

    fn copy_rows(&self, what: CopyWhat, report: &Report) -> Option<(String, String)> {
        let (profile, grouping) = (report.profile.as_ref()?, self.of.as_ref()?);
        let marked = &report.groups.marked;
        let picked: Vec<u32> = match what {
            CopyWhat::Row => vec![u32::try_from(self.row()?).ok()?],
            _ if !marked.is_empty() => self.shown.iter().copied().filter(|&r| marked.contains(&grouping.rows[r as usize].name)).collect(),
            _ => self.shown.iter().copied().take(MOST_COPIED).collect(),
        };
        let mut out = Vec::new();
        report::top::table(profile, grouping, &picked).print(&mut out, report::Format::Csv, TO_PASTE).ok()?;
        Some((String::from_utf8(out).ok()?, copies::said(what, picked.len())))
    }
}

impl Screen for KernelsScreen {
    fn place(&self) -> Where {
        Where::Kernels
    }

    fn selection(&self, session: &Session, report: usize) -> Selection {
        let Some(row) = self.row() else { return Selection::default() };
        let result = session.reports.get(report).and_then(|r| r.best(row));
        Selection { group: self.of.clone().map(|g| (g, row)), result, ..Selection::default() }
    }

    fn act(&mut self, id: ActionId, cx: &mut Cx<'_>) -> Option<Answer> {
        Some(match id {
            ActionId::Open => self.open(cx),
            ActionId::Back => self.back(cx),
            ActionId::Filter => {
                self.finder.typing = true;
                Answer::none()
            }
            ActionId::Group => Answer::over(lists::groupings(cx.report()?.groups.by)),
            ActionId::Sort => Answer::over(lists::orders(self.sort)),
            ActionId::Reverse => self.ordered(self.sort, cx),
            ActionId::Mark => {
                let name = self.selected_name()?.to_owned();
                cx.report_mut()?.groups.toggle(name);
                self.selected = shift(self.selected, 1, self.shown.len());
                self.moved(cx)
            }
            ActionId::Unmark => {
                cx.report_mut()?.groups.unmark();
                Answer::none()
            }
            ActionId::Copy => Answer::over(copies::of_table()),
            _ => return None,
        })
    }

    fn scroll(&mut self, by: isize, cx: &mut Cx<'_>) -> Answer {
        self.selected = shift(self.selected, by, self.shown.len());
        self.moved(cx)
    }

    fn press(&mut self, row: usize, cx: &mut Cx<'_>) -> Answer {
        if self.selected == row {
            return self.open(cx);
        }
        self.selected = shift(row, 0, self.shown.len());
        self.moved(cx)
    }

    fn head(&mut self, column: usize, cx: &mut Cx<'_>) -> Answer {
        HEADS.get(column).map(|&by| self.ordered(by, cx)).unwrap_or_default()
    }

    fn finder(&mut self) -> Option<&mut Finder> {
        Some(&mut self.finder)
    }

    fn found(&mut self, first: bool, cx: &mut Cx<'_>) -> Answer {
        let Some(report) = cx.report() else { return Answer::none() };
        self.arrange(&report.groups);
        if first {
            self.selected = 0;
        }
        self.moved(cx)
    }

    fn choose(&mut self, choice: Choice, cx: &mut Cx<'_>) -> Answer {
        match choice {
            Choice::Group(by) => {
                let at = cx.report;
                cx.report_mut().map(|r| r.group(at, by)).unwrap_or_default().into()
            }
            Choice::Sort(by) if by == self.sort => self.moved(cx),
            Choice::Sort(by) => self.ordered(by, cx),
            _ => Answer::none(),
        }
    }

    fn take(&mut self, news: News<'_>, cx: &mut Cx<'_>) -> Answer {
        match news {
            News::Done(Done::Group(_)) | News::Window => {
                let Some(report) = cx.report() else { return Answer::none() };
                self.arrange(&report.groups);
            }
            News::Done(Done::Paths(_)) => {}
            // Names matter only to a filter.
            News::Names if !self.finder.is_empty() => {
                let Some(report) = cx.report() else { return Answer::none() };
                self.arrange(&report.groups);
                return Answer::none();
            }
            _ => return Answer::none(),
        }
        let (at, row) = (cx.report, self.row());
        cx.report_mut().map(|r| r.want_detail_now(at, row)).unwrap_or_default().into()
    }

    fn copy(&self, what: CopyWhat, cx: &Cx<'_>) -> Option<(String, String)> {
        let report = cx.report()?;
        let CopyWhat::Name(form) = what else { return self.copy_rows(what, report) };
        let row = self.of.as_ref()?.rows.get(self.row()?)?;
        let kernel = row.kernel.and_then(|k| report.profile.as_ref()?.kernels.get(k.0 as usize));
        Some((kernel.map_or(row.name.as_str(), |k| k.name(form)).to_owned(), format!("{} name", form.word())))
    }

    /// Clears the filter, stops reading, or clears the time filter; else tells the user how to quit, because this is
    /// the bottom screen.
    fn back(&mut self, cx: &mut Cx<'_>) -> Answer {
        if self.finder.clear() {
            return self.found(false, cx);
        }
        if cx.report().is_some_and(Report::reading) {
            return Answer::effect(Effect::Cancel(cx.report));
        }
        if cx.report().is_some_and(|r| r.window.is_some()) {
            return Go::Window(None).into();
        }
        Answer::say(format!("{} quits", cx.session.key(ActionId::Quit)))
    }
}
