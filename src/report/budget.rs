//! Cuts documents to a size: rows with the smallest weight are dropped first, then the ends of lists and strings.

use super::output::TOKEN;
use crate::analysis::table::Column;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use std::borrow::Borrow;
use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// List that was cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CutJson {
    /// Names from the document down to the list; `[]` stands for each element of a list.
    list: String,
    shown: usize,
    /// Number of elements without the budget; for lists in elements of a list, those in the elements that are shown.
    of: usize,
}

/// Content that a budget left out of a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LeftOutJson {
    lists: Vec<CutJson>,
    /// Number of texts that were shortened: they end in `…`.
    texts: usize,
    /// Size of this document, tokens of four bytes, if it has no form that fits into the budget.
    tokens: Option<usize>,
    /// The command that prints all of it.
    argv: Vec<String>,
}

impl LeftOutJson {
    fn new(lists: BTreeMap<String, (usize, usize)>, texts: usize, argv: &[String]) -> Self {
        let lists = lists.into_iter().map(|(list, (shown, of))| CutJson { list, shown, of }).collect();
        Self { lists, texts, tokens: None, argv: argv.to_vec() }
    }
}

/// Result of applying a budget to a table, which keeps the rows with the highest weight.
#[derive(Clone, Copy, Debug, Default)]
struct Kept {
    left_out: usize,
    /// Field that contains the weight; without one, earlier rows weigh more.
    weight: Option<&'static str>,
}

thread_local! {
    /// Table of the document that is being written. A document has at most one.
    static KEPT: Cell<Kept> = const { Cell::new(Kept { left_out: 0, weight: None }) };
}

/// Column that indicates how important a row is, if the rows are not in that order.
fn weight_column<R>(columns: &[Column<R>]) -> Option<&Column<R>> {
    columns.iter().find(|c| c.weighs)
}

/// Weight of a row: the absolute value, so that large decreases weigh as much as large increases.
fn weight_of<R>(column: &Column<R>, row: &R) -> i64 {
    match (column.value)(row) {
        crate::analysis::table::Value::Int(n) => n.saturating_abs(),
        crate::analysis::table::Value::Real(n) => crate::analysis::table::Value::Real(n.abs()).sort_key(),
        _ => i64::MIN,
    }
}

/// The heaviest `most` rows in their original order, with their weights, and the number of rows dropped.
fn keep_heaviest<R, B: Borrow<R>>(columns: &[Column<R>], rows: impl Iterator<Item = B>, most: usize) -> (Vec<(i64, B)>, usize) {
    let Some(column) = weight_column(columns) else {
        let mut rows = rows;
        let kept = (0..most).rev().zip(rows.by_ref()).map(|(weight, row)| (i64::try_from(weight).unwrap_or(i64::MAX), row)).collect();
        return (kept, rows.count());
    };
    // Among rows of equal weight, the first ones are kept.
    let mut heap: BinaryHeap<Reverse<(i64, Reverse<usize>)>> = BinaryHeap::new();
    let mut held: BTreeMap<usize, (i64, B)> = BTreeMap::new();
    let mut left_out = 0;
    for (at, row) in rows.enumerate() {
        let weight = weight_of(column, row.borrow());
        heap.push(Reverse((weight, Reverse(at))));
        held.insert(at, (weight, row));
        if held.len() > most
            && let Some(Reverse((_, Reverse(lightest)))) = heap.pop()
        {
            held.remove(&lightest);
            left_out += 1;
        }
    }
    (held.into_values().collect(), left_out)
}

/// Minimum size of a row in any format, bytes; it limits the number of rows that a budget can hold.
const LEAST_ROW: usize = 8;

/// Keeps the JSON rows that a budget can hold; records for [`shrink`] what was dropped.
pub(super) fn keep_for_json<R, B: Borrow<R>>(columns: &[Column<R>], rows: impl Iterator<Item = B>, budget: usize) -> Vec<B> {
    let (kept, left_out) = keep_heaviest(columns, rows, (budget / LEAST_ROW).max(1));
    KEPT.set(Kept { left_out, weight: weight_column(columns).map(|c| c.id) });
    kept.into_iter().map(|k| k.1).collect()
}

/// Returns as many of the heaviest rows as fit when printed, in their original order, and the number of rows dropped.
/// `size` returns the printed size of some rows.
pub(super) fn keep_for_text<R, B: Borrow<R>>(
    columns: &[Column<R>],
    rows: impl Iterator<Item = B>,
    budget: usize,
    mut size: impl FnMut(&[&B]) -> usize,
) -> (Vec<B>, usize) {
    let (kept, mut left_out) = keep_heaviest(columns, rows, (budget / LEAST_ROW).max(1));
    let mut order: Vec<usize> = (0..kept.len()).collect();
    order.sort_by_key(|&at| (Reverse(kept[at].0), at));
    let rank: BTreeMap<usize, usize> = order.into_iter().enumerate().map(|(rank, at)| (at, rank)).collect();
    let first = |most: usize| kept.iter().enumerate().filter(|(at, _)| rank[at] < most).map(|(_, k)| &k.1).collect::<Vec<_>>();
    // The size grows with the number of rows, except for the effect of column widths.
    let (mut fits, mut above) = (1.min(kept.len()), kept.len() + 1);
    while above - fits > 1 {
        let middle = fits.midpoint(above);
        if size(&first(middle)) <= budget { fits = middle } else { above = middle }
    }
    left_out += kept.len() - fits;
    let kept = kept.into_iter().enumerate().filter(|(at, _)| rank[at] < fits).map(|(_, k)| k.1).collect();
    (kept, left_out)
}

/// Fields of the frame, which matter less than the document's own fields.
const FRAME: [&str; 5] = ["schema", "source", "coverage", "notes", "next"];
/// Weight of a document's own field relative to a field of the frame.
const OWN: usize = 4;
/// Values up to this size are never cut, bytes.
const SHORT: usize = 60;
/// Objects with more fields are maps from names to values: no document declares that many.
pub(super) const MOST_FIELDS: usize = 64;
/// Space reserved for `left_out` itself, bytes.
const NOTICE: usize = 300;

fn size_of(value: &Value) -> usize {
    match value {
        Value::Object(map) => 1 + map.iter().map(|(k, v)| k.len() + 4 + size_of(v)).sum::<usize>().max(1),
        Value::Array(list) => 1 + list.iter().map(|v| 2 + size_of(v)).sum::<usize>().max(1),
        Value::String(text) => text.len() + 2,
        other => other.to_string().len(),
    }
}

#[derive(Default)]
struct Cuts {
    lists: BTreeMap<String, (usize, usize)>,
    texts: usize,
}

impl Cuts {
    fn add(&mut self, other: Self) {
        for (path, (shown, of)) in other.lists {
            self.add_list(&path, shown, of);
        }
        self.texts += other.texts;
    }

    fn add_list(&mut self, path: &str, shown: usize, of: usize) {
        let cut = self.lists.entry(path.to_owned()).or_default();
        *cut = (cut.0 + shown, cut.1 + of);
    }

    /// Records that the remaining elements of a list have been dropped, too.
    fn add_emptied(&mut self, path: &str, elements: usize) {
        match self.lists.get_mut(path) {
            Some(cut) => cut.0 = cut.0.saturating_sub(elements),
            None => {
                self.lists.insert(path.to_owned(), (0, elements));
            }
        }
    }
}

fn shrink_text(text: &mut String, most: usize, cuts: &mut Cuts) {
    let most = most.max(SHORT);
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most - '…'.len_utf8()));
        text.push('…');
        cuts.texts += 1;
    }
}

/// Number of elements of a list that are shortened rather than dropped, and the size below which shortening an element
/// gains nothing, bytes.
const SEVERAL: usize = 5;
const LEAST_ELEMENT: usize = 400;

/// Keeps the heaviest elements of a list that fit, in their original order, and at least one.
fn shrink_list(list: &mut Vec<Value>, most: usize, weight: Option<&str>, path: &str, cuts: &mut Cuts) {
    let before = list.len();
    let mut order: Vec<usize> = (0..before).collect();
    if let Some(field) = weight {
        let of = |at: usize| list[at][field].as_f64().map_or(0.0, f64::abs);
        order.sort_by(|&a, &b| of(b).total_cmp(&of(a)).then(a.cmp(&b)));
    }
    // Several shortened elements say more than one complete element. Values cannot shrink below a minimum size, so try
    // fewer elements until the shortened ones fit.
    let elements = format!("{path}[]");
    let mut several = before.min(SEVERAL).min(most / LEAST_ELEMENT).max(1);
    loop {
        let mut own = Cuts::default();
        let mut short: Vec<Value> = order[..several].iter().map(|&at| list[at].clone()).collect();
        for value in &mut short {
            shrink_value(value, (most / several).saturating_sub(2), None, &elements, &mut own);
        }
        if several == 1 || short.iter().map(|v| size_of(v) + 2).sum::<usize>() <= most {
            for (&at, value) in order.iter().zip(short) {
                list[at] = value;
            }
            cuts.add(own);
            break;
        }
        several -= 1;
    }
    let (mut room, mut keep) = (most, vec![false; before]);
    for (taken, at) in order.into_iter().enumerate() {
        let size = size_of(&list[at]) + 2;
        if size > room && taken >= several {
            break;
        }
        room = room.saturating_sub(size);
        keep[at] = true;
    }
    let mut at = 0..;
    list.retain(|_| at.next().is_some_and(|at| keep[at]));
    if list.len() < before {
        cuts.add_list(path, list.len(), before);
    }
}

/// Keeps the first entries of a map that fit, and at least one.
fn shrink_map(map: &mut Map<String, Value>, most: usize, path: &str, cuts: &mut Cuts) {
    let (before, mut room, mut taken) = (map.len(), most, 0);
    map.retain(|name, value| {
        let size = name.len() + 4 + size_of(value);
        let fits = taken == 0 || size <= room;
        room = if fits { room.saturating_sub(size) } else { 0 };
        taken += usize::from(fits);
        fits
    });
    cuts.add_list(path, taken, before);
}

/// Divides the space among fields; space that a small field does not need is available to the others.
fn shrink_object(map: &mut Map<String, Value>, most: usize, weight: Option<&str>, path: &str, cuts: &mut Cuts) {
    let share = |name: &str| if path.is_empty() && !FRAME.contains(&name) { OWN } else { 1 };
    let mut fields: Vec<(usize, String)> = map.iter().map(|(name, value)| (name.len() + 4 + size_of(value), name.clone())).collect();
    fields.sort_by_key(|(size, name)| size / share(name));
    let mut shares: usize = fields.iter().map(|f| share(&f.1)).sum();
    let mut room = most;
    for (size, name) in fields {
        let own = room * share(&name) / shares.max(1);
        shares -= share(&name);
        // The schema, the source and commands are kept whole: a document without its name or with half a command is
        // useless.
        let whole = path.is_empty() && matches!(name.as_str(), "schema" | "source") || name == "argv";
        let Some(value) = map.get_mut(&name).filter(|_| size > own && !whole) else {
            room = room.saturating_sub(size);
            continue;
        };
        let inner = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        shrink_value(value, own.saturating_sub(name.len() + 4), weight, &inner, cuts);
        room = room.saturating_sub(name.len() + 4 + size_of(value));
    }
}

fn shrink_value(value: &mut Value, most: usize, weight: Option<&str>, path: &str, cuts: &mut Cuts) {
    // A triple of extents, a name or an identifier is either complete or missing.
    if size_of(value) <= most.max(SHORT) {
        return;
    }
    match value {
        Value::String(text) => shrink_text(text, most, cuts),
        Value::Array(list) => shrink_list(list, most, weight, path, cuts),
        Value::Object(map) if map.len() > MOST_FIELDS => shrink_map(map, most, path, cuts),
        Value::Object(map) => shrink_object(map, most, weight, path, cuts),
        _ => {}
    }
}

/// Lists of a document that may be emptied, with their sizes in bytes: first those of the frame, then those inside
/// other values. A document's own lists keep at least one element, because the document would be useless without it.
fn list_sizes(document: &Value) -> BTreeMap<String, usize> {
    fn visit(value: &Value, path: &str, sizes: &mut BTreeMap<String, usize>) {
        match value {
            Value::Array(list) => {
                let own = !path.contains(['.', '[']) && !FRAME.contains(&path);
                let whole = path == "source" || path.rsplit('.').next() == Some("argv");
                // A triple of extents is never cut either.
                let numbers = list.iter().all(Value::is_number);
                if !own && !whole && !numbers {
                    *sizes.entry(path.to_owned()).or_default() += size_of(value);
                }
                let elements = format!("{path}[]");
                for v in list {
                    visit(v, &elements, sizes);
                }
            }
            Value::Object(map) if map.len() <= MOST_FIELDS => {
                for (name, value) in map {
                    let inner = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    visit(value, &inner, sizes);
                }
            }
            _ => {}
        }
    }
    let mut sizes = BTreeMap::new();
    visit(document, "", &mut sizes);
    sizes.retain(|_, size| *size > SHORT);
    sizes
}

/// Empties the lists at a path and records how many elements that dropped.
fn empty_lists(value: &mut Value, path: &str, at: &str, cuts: &mut Cuts) {
    match value {
        Value::Array(list) if at == path => {
            cuts.add_emptied(path, list.len());
            list.clear();
        }
        Value::Array(list) => {
            let elements = format!("{at}[]");
            for value in list.iter_mut().filter(|_| path.starts_with(&elements)) {
                empty_lists(value, path, &elements, cuts);
            }
        }
        Value::Object(map) if map.len() <= MOST_FIELDS => {
            for (name, value) in map {
                let inner = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
                if path.starts_with(&inner) {
                    empty_lists(value, path, &inner, cuts);
                }
            }
        }
        _ => {}
    }
}

/// Empties lists, the least important and largest first, until a document fits.
fn empty_until_fits(document: &mut Value, most: usize, cuts: &mut Cuts) {
    let class = |path: &str| ["coverage", "notes", "next"].iter().position(|f| path.starts_with(f)).map_or(1, |at| [0, 2, 3][at]);
    while size_of(document) > most {
        let sizes = list_sizes(document);
        let Some((path, _)) = sizes.into_iter().min_by_key(|(path, size)| (class(path), Reverse(*size))) else { break };
        empty_lists(document, &path, "", cuts);
    }
}

/// Shrinks a document to about `budget` bytes and returns what was left out. `whole` is the command that prints
/// everything.
pub(super) fn shrink(document: &mut Value, budget: usize, whole: &[String]) -> Option<LeftOutJson> {
    let kept = KEPT.take();
    let mut cuts = Cuts::default();
    let most = budget.saturating_sub(NOTICE);
    if kept.left_out > 0 || size_of(document) > budget {
        shrink_value(document, most, kept.weight, "", &mut cuts);
        empty_until_fits(document, most, &mut cuts);
    }
    if kept.left_out > 0 {
        // Also count the rows that were dropped before they were turned into JSON.
        let rows = ["rows", "events"].into_iter().find_map(|name| Some((name, document[name].as_array()?.len())));
        let (name, shown) = rows.unwrap_or(("rows", 0));
        let cut = cuts.lists.entry(name.to_owned()).or_insert((shown, shown));
        cut.1 += kept.left_out;
    }
    let cut = !cuts.lists.is_empty() || cuts.texts > 0;
    let mut left_out = LeftOutJson::new(cuts.lists, cuts.texts, whole);
    let size = size_of(document) + if cut { size_of(&serde_json::to_value(&left_out).unwrap_or_default()) } else { 0 };
    left_out.tokens = (size > budget).then(|| size.div_ceil(TOKEN));
    (cut || left_out.tokens.is_some()).then_some(left_out)
}

/// Sentence saying that rows were left out of a table.
pub(super) fn left_out_sentence(rows: usize, whole: &[String]) -> String {
    format!(
        "{} left out for the budget, those that matter least; all of it: {}",
        crate::model::units::format_count(rows as u64, "row"),
        crate::rerun::shell::command_line(whole)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn cut(mut document: Value, budget: usize) -> (Value, Option<LeftOutJson>) {
        let out = shrink(&mut document, budget, &["warpscope".to_owned()]);
        (document, out)
    }

    #[test]
    fn what_fits_stays_as_it_is() {
        let document = json!({"schema": {"name": "x"}, "rows": [{"a": 1}], "next": []});
        assert_eq!(cut(document.clone(), 2000), (document, None));
    }

    #[test]
    fn the_heaviest_rows_stay_in_their_order() {
        KEPT.set(Kept { left_out: 7, weight: Some("total_ns") });
        let rows: Vec<Value> = (0..100).map(|n| json!({"name": format!("kernel {n}"), "total_ns": (n * 37) % 100})).collect();
        let (document, left) = cut(json!({"schema": {"name": "top"}, "rows": rows}), 1000);
        let kept: Vec<i64> = document["rows"].as_array().unwrap().iter().map(|r| r["total_ns"].as_i64().unwrap()).collect();
        let least = kept.iter().min().unwrap();
        assert_eq!(kept.len(), usize::try_from(100 - least).unwrap(), "all that weigh more are there: {kept:?}");
        assert!(!kept.is_sorted() && size_of(&document) <= 1000 - NOTICE, "{kept:?}");
        assert_eq!(left.unwrap().lists, [CutJson { list: "rows".to_owned(), shown: kept.len(), of: 107 }]);
    }

    #[test]
    fn small_fields_stay_and_large_ones_share_the_room() {
        let text = "é".repeat(4000);
        let evidence: Vec<Value> = (0..500).map(|n| json!({"value": n})).collect();
        let document = json!({
            "schema": {"name": "triage"},
            "findings": [{"id": "a", "argv": vec!["word"; 30], "evidence": evidence, "bound": text}],
            "notes": [{"text": text}],
            "window": {"start_ns": 1},
        });
        let (document, left) = cut(document, 2400);
        let left = left.unwrap();
        assert!(size_of(&document) <= 2400, "{}", size_of(&document));
        assert_eq!((&document["window"]["start_ns"], &document["findings"][0]["id"]), (&json!(1), &json!("a")));
        assert_eq!(document["findings"][0]["argv"].as_array().unwrap().len(), 30, "a command is whole or missing");
        assert_eq!((left.texts, left.lists[0].list.as_str(), left.lists[0].of), (2, "findings[].evidence", 500));
        assert!(document["findings"][0]["bound"].as_str().unwrap().ends_with('…'));
        let (findings, notes) = (size_of(&document["findings"]), size_of(&document["notes"]));
        assert!(findings > 2 * notes, "{findings} {notes}");
    }
}
