//! Converts a report's section layouts and rules to the types of the model.

use super::markup;
use super::proto;
use crate::model::sections::{Entry, Item, Marker, MarkerPlace, MemoryTable, Message, RoofValue, RuleResult, Scope, Section, Verdict};
use std::sync::Arc;

fn to_text(t: Option<String>) -> Arc<str> {
    Arc::from(t.unwrap_or_default())
}

/// Returns true if an item applies to this chip (compute capability times ten). If the chip is unknown, all items
/// apply.
fn applies_to(filter: Option<&proto::Filter>, chip: Option<u32>) -> bool {
    let (Some(filter), Some(chip)) = (filter, chip) else { return true };
    // A bound outside of the enum's range leaves the range open.
    let within = |least: Option<u32>, most: Option<u32>| least.is_none_or(|l| chip >= l) && most.is_none_or(|m| chip <= m);
    if filter.items.is_empty() { within(filter.least, filter.most) } else { filter.items.iter().any(|i| within(i.least, i.most)) }
}

fn convert_entry(e: proto::Entry, chip: Option<u32>) -> Option<Entry> {
    let own = applies_to(e.filter.as_ref(), chip);
    let other = e.options.into_iter().find(|o| o.filter.is_some() && applies_to(o.filter.as_ref(), chip));
    let label = to_text(e.label);
    match other {
        // The section specifies a different metric for this chip.
        Some(o) => {
            let renamed = to_text(o.label);
            let label = if renamed.is_empty() { label } else { renamed };
            Some(Entry { metric: to_text(o.metric), label, unit: to_text(e.unit) })
        }
        None => own.then(|| Entry { metric: to_text(e.metric), label, unit: to_text(e.unit) }),
    }
    .filter(|e| !e.metric.is_empty())
}

fn convert_entries(all: Vec<proto::Entry>, chip: Option<u32>) -> Vec<Entry> {
    all.into_iter().filter_map(|e| convert_entry(e, chip)).collect()
}

/// Converts a section, omitting items that are for other chips.
pub fn convert_section(s: proto::Section, chip: Option<u32>) -> Section {
    let mut items = Vec::new();
    for item in s.bodies.into_iter().flat_map(|b| b.items) {
        body_item(item, chip, &mut items, 0);
    }
    Section {
        id: to_text(s.id),
        name: to_text(s.name),
        description: to_text(s.description),
        order: s.order.unwrap_or(u32::MAX),
        extends: s.extends.filter(|e| !e.is_empty()).map(Arc::from),
        header: s.header.map(|h| convert_entries(h.metrics, chip)).unwrap_or_default(),
        items,
    }
}

/// Maximum nesting depth of containers.
const DEEPEST: usize = 8;

fn body_item(item: proto::BodyItem, chip: Option<u32>, out: &mut Vec<Item>, depth: usize) {
    if !applies_to(item.filter.as_ref(), chip) {
        return;
    }
    if let Some(c) = item.container.filter(|_| depth < DEEPEST) {
        for item in c.items {
            body_item(item, chip, out, depth + 1);
        }
    }
    if let Some(t) = item.table {
        out.push(Item::Table { label: to_text(t.label), entries: convert_entries(t.metrics, chip) });
    }
    if let Some(b) = item.bars {
        // A value of 1 means sorted by value, with the largest bar first.
        let largest_first = b.sort == Some(1);
        out.push(Item::Bars { label: to_text(b.label), entries: convert_entries(b.metrics, chip), largest_first });
    }
    if let Some(h) = item.histogram
        && let Some(entry) = h.metric.and_then(|m| convert_entry(m, chip))
    {
        out.push(Item::Histogram { label: to_text(h.label), entry });
    }
    if let Some(l) = item.lines {
        let here = l.here.and_then(|h| h.metrics.into_iter().find_map(|m| convert_entry(m, chip)));
        let axis = l.axis.map(|a| to_text(a.label)).unwrap_or_default();
        out.push(Item::Curves { label: to_text(l.label), axis, entries: convert_entries(l.metrics, chip), here });
    }
    if let Some(r) = item.roofline {
        let roofs = |all: Vec<proto::Roof>| {
            all.into_iter()
                .filter_map(|r| {
                    let label = r.options.map(|o| to_text(o.label)).unwrap_or_default();
                    Some((label, roof_value(r.work?, chip)?, roof_value(r.traffic?, chip)?))
                })
                .collect()
        };
        out.push(Item::Roofline { label: to_text(r.label), roofs: roofs(r.roofs), achieved: roofs(r.achieved) });
    }
    if let Some(s) = item.source {
        out.push(Item::Lines { label: to_text(s.label), entries: convert_entries(s.metrics, chip) });
    }
    if let Some(t) = item.timeline {
        let rows = t.groups.into_iter().flat_map(|g| g.rows).map(|r| (to_text(r.label), convert_entries(r.metrics, chip))).collect();
        out.push(Item::Timeline { rows });
    }
    if let Some(s) = item.suffixes {
        let suffixes =
            s.suffixes.map(|s| s.suffixes.into_iter().map(|s| (to_text(s.name), to_text(s.label))).collect()).unwrap_or_default();
        let bases = s.bases.map(|b| convert_entries(b.names, chip)).unwrap_or_default();
        out.push(Item::Suffixes { label: to_text(s.label), suffixes, bases });
    }
    if item.chart.is_some() {
        out.push(Item::MemoryChart);
    }
    for (there, table) in [
        (item.shared.is_some(), MemoryTable::Shared),
        (item.l1.is_some() || item.l1_old.is_some(), MemoryTable::L1),
        (item.l2.is_some() || item.l2_old.is_some(), MemoryTable::L2),
        (item.dram.is_some(), MemoryTable::Dram),
    ] {
        if there {
            out.push(Item::Memory(table));
        }
    }
}

fn roof_value(v: proto::RoofValue, chip: Option<u32>) -> Option<RoofValue> {
    if let Some(p) = v.per_cycle {
        return Some(RoofValue::PerCycle(convert_entries(p.metrics, chip), p.clock.and_then(|c| convert_entry(c, chip))));
    }
    if let Some(m) = v.metric {
        return convert_entry(m, chip).map(RoofValue::Metric);
    }
    v.constant.map(RoofValue::Constant)
}

pub fn convert_rule(r: proto::RuleResult) -> RuleResult {
    let name = r.name.unwrap_or_default();
    let mut messages: Vec<Message> = Vec::new();
    for item in r.body.into_iter().flat_map(|b| b.items) {
        if let Some(m) = item.message {
            let verdict = match m.kind {
                Some(1) => Verdict::Info,
                Some(2) => Verdict::Warning,
                Some(3) => Verdict::Error,
                Some(4) => Verdict::Optimization,
                _ => Verdict::None,
            };
            let title = m.name.filter(|n| !n.is_empty()).unwrap_or_else(|| name.clone());
            let text = markup::split_pieces(m.text.as_deref().unwrap_or_default());
            messages.push(Message { verdict, title, text, speedup: None, because: Vec::new() });
        }
        // Speedups and metrics belong to the preceding message.
        let Some(last) = messages.last_mut() else { continue };
        if let Some(s) = item.speedup
            && let Some(percent) = s.percent.filter(|p| p.is_finite())
        {
            last.speedup = Some((if s.kind == Some(2) { Scope::Global } else { Scope::Local }, percent));
        }
        last.because.extend(item.focus.into_iter().filter_map(|f| Some((f.metric?, f.value?))));
    }
    let markers = r.markers.into_iter().filter_map(|m| {
        let place = match (m.address, m.line) {
            (Some(a), _) => MarkerPlace::Address(a),
            (None, Some(l)) => MarkerPlace::Line(m.file, l),
            (None, None) => return None,
        };
        Some(Marker { place, text: m.text.unwrap_or_default() })
    });
    RuleResult { id: r.id.unwrap_or_default(), section: r.section.unwrap_or_default(), messages, markers: markers.collect(), name }
}
