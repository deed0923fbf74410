//! Rows of the metrics screen: the sections of a result in the profiler's own order and wording, with its rules; our
//! own sections if the report has no layouts; all metrics during a search.

pub use super::metrics_rows::{Cell, Chart, MetricsRow, Wish};

use super::fuzzy::Fuzzy;
use super::metric::{self, Lookup, is_list};
use super::{catalog, memory_chart};
use crate::model::sections::{Entry, InstanceKey, Instances, Item, MemoryTable, Section};
use crate::model::{Details, Metrics, Value};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Maximum number of hints to show above the sections.
const MOST_HINTS: usize = 3;

struct Page<'a> {
    lookup: &'a Lookup<'a>,
    details: &'a Details,
    wish: &'a Wish,
    rows: Vec<MetricsRow>,
    shown: HashSet<Arc<str>>,
}

pub fn build_rows(metrics: &Metrics, result: usize, details: &Details, wish: &Wish) -> Vec<MetricsRow> {
    let Some(result) = metrics.results.get(result) else { return Vec::new() };
    let lookup = Lookup::new(metrics, result);
    let mut page = Page { lookup: &lookup, details, wish, rows: Vec::new(), shown: HashSet::new() };
    if !wish.filter.trim().is_empty() {
        page.add_search_results();
        return page.rows;
    }
    page.add_pinned();
    page.first_hints();
    if details.sections.is_empty() {
        page.by_label();
        page.by_concept();
    } else {
        for section in in_order(&details.sections) {
            page.add_section(section);
        }
        page.stray_rules();
    }
    page.add_remaining();
    page.rows
}

/// Orders sections, each followed by its extensions. One level only: a section that extends itself or an extension is
/// listed separately.
fn in_order(sections: &[Section]) -> Vec<&Section> {
    let roots: HashSet<&str> = sections.iter().filter(|s| s.extends.is_none()).map(|s| &*s.id).collect();
    let parent = |s: &'_ Section| s.extends.clone().filter(|id| roots.contains(&**id));
    let mut under: HashMap<Arc<str>, Vec<&Section>> = HashMap::new();
    let mut own: Vec<&Section> = Vec::new();
    for s in sections {
        match parent(s) {
            Some(id) => under.entry(id).or_default().push(s),
            None => own.push(s),
        }
    }
    own.sort_by_key(|s| (s.order, s.name.clone()));
    let mut out = Vec::with_capacity(sections.len());
    for s in own {
        out.push(s);
        let mut after = under.remove(&s.id).unwrap_or_default();
        after.sort_by_key(|u| (u.order, u.name.clone()));
        out.extend(after);
    }
    out
}

impl Page<'_> {
    /// Formats a metric; `None` if it was not collected.
    fn format_cell(&mut self, name: &Arc<str>, label: &str) -> Option<Cell> {
        let value = self.lookup.value(name)?;
        self.shown.insert(name.clone());
        let unit = metric::unit_of(name, self.lookup.unit(name));
        let (number, shown_unit) = metric::format_value(value, unit);
        let label = if label.is_empty() { metric::display_title(name) } else { label.to_owned() };
        let percent = value.as_number().filter(|v| unit == "%" && v.is_finite());
        Some(Cell { name: name.clone(), label, number, unit: shown_unit, percent })
    }

    fn add_entries(&mut self, entries: &[Entry]) {
        for entry in entries.iter().filter(|e| !is_list(&e.metric)) {
            let row = match self.format_cell(&entry.metric, &entry.label) {
                Some(cell) => MetricsRow::Metric(cell),
                None => {
                    // The section lists this metric, but the report does not contain it: show it without a value.
                    let label = if entry.label.is_empty() { metric::display_title(&entry.metric) } else { entry.label.to_string() };
                    MetricsRow::Metric(Cell { name: entry.metric.clone(), label, ..Cell::default() })
                }
            };
            self.rows.push(row);
        }
    }

    fn add_section(&mut self, section: &Section) {
        let rules: Vec<usize> = (0..self.details.rules.len()).filter(|&r| *self.details.rules[r].section == *section.id).collect();
        let start = self.rows.len();
        let verdict = rules.iter().flat_map(|&r| &self.details.rules[r].messages).map(|m| m.verdict).max();
        self.rows.push(MetricsRow::Section {
            id: section.id.clone(),
            name: section.name.clone(),
            about: section.description.clone(),
            verdict,
        });
        self.add_entries(&section.header);
        self.add_rules(&rules);
        for item in &section.items {
            self.add_item(section, item);
        }
        // Omit the title of a section without collected values.
        let has = |r: &MetricsRow| {
            !matches!(r, MetricsRow::Section { .. } | MetricsRow::Label(_)) && !matches!(r, MetricsRow::Metric(c) if c.number.is_empty())
        };
        if !self.rows[start..].iter().any(has) {
            self.rows.truncate(start);
        }
    }

    fn add_rules(&mut self, rules: &[usize]) {
        for &r in rules {
            let messages = self.details.rules.get(r).map_or(0, |r| r.messages.len());
            self.rows.extend((0..messages).map(|m| MetricsRow::Rule(r, m)));
        }
    }

    /// Adds the results of rules whose section is not in the report.
    fn stray_rules(&mut self) {
        let known: HashSet<&str> = self.details.sections.iter().map(|s| &*s.id).collect();
        let stray: Vec<usize> =
            (0..self.details.rules.len()).filter(|&r| !known.contains(self.details.rules[r].section.as_str())).collect();
        if stray.iter().any(|&r| !self.details.rules[r].messages.is_empty()) {
            self.add_title("rules", "Other rules", "What NVIDIA's rules say that belongs to no section of this report.");
            self.add_rules(&stray);
        }
    }

    /// Adds the title of a section defined by this program, not by the report.
    fn add_title(&mut self, id: &str, name: &str, about: &str) {
        self.rows.push(MetricsRow::Section { id: Arc::from(id), name: Arc::from(name), about: Arc::from(about), verdict: None });
    }

    fn find_instances(&self, name: &str) -> Option<&Instances> {
        self.details.instances.get(&self.lookup.id(name)?).filter(|i| !i.is_empty())
    }

    fn add_item(&mut self, section: &Section, item: &Item) {
        match item {
            Item::Table { label, entries } => self.add_list(section, label, entries, false),
            Item::Bars { label, entries, largest_first } => self.add_list(section, label, entries, *largest_first || entries.len() > 3),
            Item::Histogram { label, entry } => self.add_list(section, label, std::slice::from_ref(entry), true),
            Item::Curves { label, axis, entries, here } => {
                let here = here.as_ref().and_then(|h| self.lookup.finite_number(&h.metric));
                for entry in entries {
                    let number = |k: &InstanceKey| match k {
                        InstanceKey::Number(n) => Some(*n as f64),
                        InstanceKey::Float(f) => Some(*f),
                        InstanceKey::None | InstanceKey::Text(_) => None,
                    };
                    let points: Vec<(f64, f64)> = self
                        .find_instances(&entry.metric)
                        .into_iter()
                        .flatten()
                        .filter_map(|(k, v)| Some((number(k)?, v.as_number()?)))
                        .collect();
                    if points.len() > 1 {
                        self.shown.insert(entry.metric.clone());
                        let title = if label.is_empty() { entry.label.to_string() } else { label.to_string() };
                        self.rows.push(MetricsRow::Label(title));
                        self.rows.push(MetricsRow::Chart(Chart::Curve { points, here, axis: axis.to_string() }));
                    }
                }
            }
            Item::Timeline { rows } => self.add_timeline(rows),
            Item::MemoryChart => {
                if let Some(flow) = memory_chart::Flow::from_lookup(self.lookup) {
                    self.rows.push(MetricsRow::Chart(Chart::Memory(Box::new(flow))));
                }
            }
            Item::Memory(which) => self.add_memory_table(*which),
            Item::Suffixes { label, suffixes, bases } => {
                let mut rows = Vec::new();
                for base in bases {
                    let name = |s: &str| format!("{}.{s}", base.metric.trim_end_matches('.'));
                    let cells: Vec<Option<Cell>> = suffixes.iter().map(|(s, _)| self.format_cell(&Arc::from(name(s)), "")).collect();
                    if cells.iter().any(Option::is_some) {
                        let label = if base.label.is_empty() { metric::member_title(&base.metric) } else { base.label.to_string() };
                        let metrics = cells.iter().flatten().map(|c| c.name.clone()).collect();
                        let text =
                            |c: Option<Cell>| c.map_or_else(String::new, |c| format!("{} {}", c.number, c.unit).trim_end().to_owned());
                        rows.push(MetricsRow::Cells { label, cells: cells.into_iter().map(text).collect(), metrics, head: false });
                    }
                }
                if !rows.is_empty() {
                    if !label.is_empty() {
                        self.rows.push(MetricsRow::Label(label.to_string()));
                    }
                    let heads = suffixes.iter().map(|(s, l)| if l.is_empty() { s.to_string() } else { l.to_string() }).collect();
                    self.rows.push(MetricsRow::Cells { label: String::new(), cells: heads, metrics: Vec::new(), head: true });
                    self.rows.append(&mut rows);
                }
            }
            // Rooflines and source lines have their own screens.
            Item::Roofline { .. } | Item::Lines { .. } => {}
        }
    }

    /// Adds charts of values over the kernel's duration; series that are always zero are counted, not drawn.
    fn add_timeline(&mut self, rows: &[(Arc<str>, Vec<Entry>)]) {
        let mut silent = 0;
        for (label, entry) in rows.iter().flat_map(|(l, entries)| entries.iter().map(move |e| (l, e))) {
            let values: Vec<f64> = self.find_instances(&entry.metric).into_iter().flatten().filter_map(|i| i.1.as_number()).collect();
            if values.len() < 2 {
                continue;
            }
            self.shown.insert(entry.metric.clone());
            if values.iter().all(|v| *v == 0.0) {
                silent += 1;
                continue;
            }
            let own = if entry.label.is_empty() { metric::member_title(&entry.metric) } else { entry.label.to_string() };
            let label = if label.is_empty() { own } else { format!("{label}: {own}") };
            let unit = self.lookup.metrics.units.get(self.lookup.id(&entry.metric).unwrap_or(u32::MAX) as usize).map_or("", |u| u);
            self.rows.push(MetricsRow::Chart(Chart::Time { label, unit: unit.to_owned(), values }));
        }
        if silent > 0 {
            self.rows.push(MetricsRow::Note(format!("{silent} more were always zero")));
        }
    }

    fn add_memory_table(&mut self, which: MemoryTable) {
        let table = memory_chart::metric_table(which);
        let mut rows = Vec::new();
        for (label, names) in table.rows {
            let cells: Vec<_> = names.iter().map(|n| memory_chart::evaluate_column(self.lookup, n)).collect();
            if cells.iter().any(Option::is_some) {
                let metrics: Vec<Arc<str>> = cells.iter().flatten().map(|c| c.0.clone()).collect();
                self.shown.extend(metrics.iter().cloned());
                let text = |c: &Option<(Arc<str>, Value, &str)>| {
                    c.as_ref().map_or_else(String::new, |(_, value, unit)| {
                        let (number, unit) = metric::format_value(value, unit);
                        let plain = ["inst", "sector", "request", ""].contains(&unit.as_str());
                        if plain { number } else { format!("{number} {unit}") }
                    })
                };
                rows.push(MetricsRow::Cells { label: label.to_owned(), cells: cells.iter().map(text).collect(), metrics, head: false });
            }
        }
        if rows.is_empty() {
            return;
        }
        let title = match which {
            MemoryTable::Shared => "Shared memory",
            MemoryTable::L1 => "L1/TEX cache",
            MemoryTable::L2 => "L2 cache",
            MemoryTable::Dram => "Device memory",
        };
        self.rows.push(MetricsRow::Label(title.to_owned()));
        let cells = table.columns.iter().map(|c| (*c).to_owned()).collect();
        self.rows.push(MetricsRow::Cells { label: String::new(), cells, metrics: Vec::new(), head: true });
        self.rows.append(&mut rows);
    }

    /// Adds a table or chart: the members of a breakdown are folded, instances and long lists are ranked.
    fn add_list(&mut self, section: &Section, label: &Arc<str>, entries: &[Entry], ranked: bool) {
        let mut members: Vec<(Arc<str>, String)> = Vec::new();
        let mut folded = false;
        let mut by_instance: Vec<(String, f64)> = Vec::new();
        for entry in entries {
            if is_list(&entry.metric) {
                folded |= entry.metric.starts_with("breakdown:");
                // `breakdown:2:metric` goes two levels deep; the metric itself contains the list.
                let list = self.lookup.value(&entry.metric).or_else(|| {
                    let (kind, rest) = entry.metric.split_once(':')?;
                    let plain = rest.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start_matches(':');
                    self.lookup.value(&format!("{kind}:{plain}"))
                });
                if let Some(Value::Text(list)) = list {
                    members.extend(list.split(',').map(|m| (Arc::from(m.trim()), metric::member_title(m.trim()))));
                }
            } else if let Some(instances) = self.find_instances(&entry.metric)
                && instances.iter().all(|(k, _)| matches!(k, InstanceKey::Text(_)))
            {
                by_instance.extend(instances.iter().filter_map(|(k, v)| match k {
                    InstanceKey::Text(t) => Some((t.to_string(), v.as_number()?)),
                    _ => None,
                }));
                self.shown.insert(entry.metric.clone());
            } else {
                members.push((entry.metric.clone(), entry.label.to_string()));
            }
        }
        let mut cells: Vec<(Cell, f64)> = Vec::new();
        for (name, label) in members {
            if let Some(cell) = self.format_cell(&name, &label) {
                let number = self.lookup.finite_number(&name).unwrap_or(0.0);
                cells.push((cell, number));
            }
        }
        for (label, value) in by_instance {
            let (number, unit) = metric::human_number(value, "inst");
            cells.push((Cell { label, number, unit, ..Cell::default() }, value));
        }
        if cells.is_empty() {
            return;
        }
        let ranked = ranked || folded;
        if ranked {
            cells.sort_by(|a, b| b.1.total_cmp(&a.1));
        }
        let title = if label.is_empty() { "Table".to_owned() } else { label.to_string() };
        let key = format!("{}/{title}", section.id);
        if folded {
            let open = self.wish.open.contains(&key);
            self.rows.push(MetricsRow::Fold { key, label: title, count: cells.len(), open });
            if !open {
                return;
            }
        } else {
            self.rows.push(MetricsRow::Label(title));
        }
        // A warp that issues (`selected`) is not stalled.
        let top = cells.iter().find(|c| !c.0.name.contains("stalled_selected")).map(|c| (c.0.name.clone(), c.1)).filter(|_| ranked);
        self.top_stall(top);
        let percent = cells.iter().all(|c| c.0.percent.is_some());
        let most = if percent { 100.0 } else { cells.iter().map(|c| c.1).fold(0.0, f64::max) };
        for (cell, value) in cells {
            self.rows.push(if ranked || percent {
                MetricsRow::Bar { cell, share: if most > 0.0 { value / most } else { 0.0 } }
            } else {
                MetricsRow::Metric(cell)
            });
        }
    }

    /// Adds the cause and remedy of the most frequent stall above the bars.
    fn top_stall(&mut self, top: Option<(Arc<str>, f64)>) {
        let Some((name, cycles)) = top.filter(|t| t.0.contains("issue_stalled_")) else { return };
        let Some(concept) = catalog::builtin_catalog().of_metric(&name) else { return };
        let share = self.lookup.finite_number("smsp__average_warp_latency_per_inst_issued.ratio").filter(|all| *all > 0.0);
        let share = share.map_or_else(String::new, |all| {
            format!(" of {all:.1} cycles between two instructions of a warp ({:.0}%)", cycles / all * 100.0)
        });
        let mut text = format!("top: {}, {cycles:.1}{share}.", concept.title.trim_start_matches("Stall: "));
        for part in [&concept.meaning, &concept.hint].into_iter().flatten() {
            let part = part.trim_start_matches("Average number of warps in this state per issued instruction: ").trim_end_matches('.');
            let mut letters = part.chars();
            if let Some(first) = letters.next() {
                text.push(' ');
                text.extend(first.to_uppercase());
                text.push_str(letters.as_str());
                text.push('.');
            }
        }
        self.rows.push(MetricsRow::Note(text));
    }

    fn add_pinned(&mut self) {
        if self.wish.pins.is_empty() {
            return;
        }
        self.add_title("pinned", "Pinned", "The metrics that you pinned, first in every result.");
        for name in self.wish.pins.clone() {
            let cell = self.format_cell(&name, "").unwrap_or_else(|| Cell { label: metric::display_title(&name), name, ..Cell::default() });
            self.rows.push(MetricsRow::Metric(cell));
        }
        self.shown.clear();
    }

    /// Adds the first few hints, so that users see them without searching.
    fn first_hints(&mut self) {
        if self.wish.hints > 0 {
            self.add_title("hints", "Hints", "The first of the hints that this program derives from the metrics of this result. The screen of hints has all of them, each with its figures and what to change.");
            self.rows.extend((0..self.wish.hints.min(MOST_HINTS)).map(MetricsRow::Hint));
        }
    }

    /// Adds the sections of a details page, whose values are named `Section: Label`.
    fn by_label(&mut self) {
        let mut sections: Vec<(&str, Vec<usize>)> = Vec::new();
        let labels = |at: usize| self.lookup.metrics.names.get(at)?.split_once(": ");
        for (n, _) in &self.lookup.result.values {
            let at = *n as usize;
            let Some((section, _)) = labels(at) else { continue };
            match sections.iter_mut().find(|s| s.0 == section) {
                Some(s) => s.1.push(at),
                None => sections.push((section, vec![at])),
            }
        }
        for (section, names) in sections {
            self.add_title(section, section, "");
            for name in names.into_iter().filter_map(|at| self.lookup.metrics.names.get(at)) {
                let label = name.split_once(": ").map_or("", |l| l.1);
                if let Some(cell) = self.format_cell(name, label) {
                    self.rows.push(MetricsRow::Metric(cell));
                }
            }
        }
    }

    /// Adds the metrics with a known concept, by the section that contains them; for a report without layouts.
    fn by_concept(&mut self) {
        let mut sections: Vec<&str> = Vec::new();
        let concepts = &catalog::builtin_catalog().concepts;
        for c in concepts {
            if let Some(s) = c.section.as_deref()
                && !sections.contains(&s)
            {
                sections.push(s);
            }
        }
        for section in sections {
            let start = self.rows.len();
            self.add_title(section, section, "");
            for c in concepts.iter().filter(|c| c.section.as_deref() == Some(section)) {
                let names = c.names.iter().chain(c.alias.values().flatten());
                for name in names {
                    if let Some(cell) = self.format_cell(&Arc::from(name.as_str()), &c.title) {
                        self.rows.push(MetricsRow::Metric(cell));
                        break;
                    }
                }
            }
            if self.rows.len() == start + 1 {
                self.rows.truncate(start);
            }
        }
    }

    /// Adds metrics outside of all sections, so that users can reach everything in the report.
    fn add_remaining(&mut self) {
        let names: Vec<Arc<str>> =
            self.lookup.result.values.iter().filter_map(|(n, _)| self.lookup.metrics.names.get(*n as usize)).cloned().collect();
        let left: Vec<Arc<str>> = names.into_iter().filter(|n| !self.shown.contains(n) && !is_list(n)).collect();
        let (device, other): (Vec<_>, Vec<_>) = left.into_iter().partition(|n| n.starts_with("device__attribute"));
        for (id, name, list) in [("other", "Other metrics", other), ("device", "Device attributes", device)] {
            if list.is_empty() {
                continue;
            }
            self.add_title(id, name, "");
            let open = self.wish.open.contains(id) || self.details.sections.is_empty() && id == "other";
            self.rows.push(MetricsRow::Fold {
                key: id.to_owned(),
                label: "not in any section of this report".to_owned(),
                count: list.len(),
                open,
            });
            if open {
                for name in list {
                    let label = if catalog::builtin_catalog().of_metric(&name).is_some() { String::new() } else { name.to_string() };
                    if let Some(cell) = self.format_cell(&name, &label) {
                        self.rows.push(MetricsRow::Metric(cell));
                    }
                }
            }
        }
    }

    fn add_search_results(&mut self) {
        let fuzzy = Fuzzy::new(&self.wish.filter);
        let mut labels: std::collections::HashMap<Arc<str>, Arc<str>> = std::collections::HashMap::new();
        for section in &self.details.sections {
            let items = section.items.iter().flat_map(|i| match i {
                Item::Table { entries, .. } | Item::Bars { entries, .. } => entries.as_slice(),
                _ => &[],
            });
            for e in section.header.iter().chain(items).filter(|e| !e.label.is_empty()) {
                labels.entry(e.metric.clone()).or_insert_with(|| e.label.clone());
            }
        }
        let mut found: Vec<(i64, usize, Arc<str>, String)> = Vec::new();
        for (at, (n, _)) in self.lookup.result.values.iter().enumerate() {
            let Some(name) = self.lookup.metrics.names.get(*n as usize).filter(|n| !is_list(n)) else { continue };
            let label = labels.get(name).map_or_else(|| metric::display_title(name), ToString::to_string);
            let score = [&label as &str, name].iter().filter_map(|t| fuzzy.match_positions(t)).map(|p| p.0).max();
            if let Some(score) = score {
                found.push((-score, at, name.clone(), label));
            }
        }
        found.sort();
        for (_, _, name, label) in found {
            if let Some(cell) = self.format_cell(&name, &label) {
                self.rows.push(MetricsRow::Metric(cell));
            }
        }
    }
}
