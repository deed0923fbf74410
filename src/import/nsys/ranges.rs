//! Reads NVTX ranges with their domains. Reports contain millions of ranges, so strings are interned while reading.

use super::calls::{pid_of, tid_of};
use super::python_samples::{self, Mark, Marks};
use super::strings::Strings;
use crate::import::Budget;
use crate::import::sqlite::db::Db;
use crate::import::sqlite::scan::{self, NULL};
use crate::import::{ImportError, Job, Parts};
use crate::model::range::{Payload, UNNAMED};
use crate::model::{NcclCall, Range, RangeKind, RangeOrigin, Ranges};
use rusqlite::Row;
use rusqlite::types::ValueRef;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Table of NVTX events.
pub const NVTX: &str = "NVTX_EVENTS";

/// An unresolved name: either the string itself or its id.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Text {
    Inline(Box<str>),
    Id(i64),
}

#[derive(Default)]
struct Reader {
    inline: FxHashMap<(u32, i64), FxHashMap<Box<str>, u32>>,
    by_id: FxHashMap<(u32, i64, i64), u32>,
    names: Vec<(u32, i64, Text)>,
    threads: FxHashMap<(u32, u32), u32>,
    thread_list: Vec<(u32, u32)>,
    ranges: Vec<(usize, Range)>,
    domains: Vec<(u32, i64, Text)>,
    /// Categories that have a name, as process, domain, number and name.
    categories: Vec<(u32, i64, i64, Text)>,
    /// Optional attributes, by chunk and by index of the range.
    extra: Vec<((usize, usize), Extra)>,
    /// Marks that may be sampled stacks, and the number of those without text or payload, by process and domain.
    marks: Vec<Mark>,
    bare_marks: FxHashMap<(u32, i64), u64>,
}

/// Attributes that only a few ranges have.
#[derive(Debug, Default, PartialEq)]
struct Extra {
    color: Option<u32>,
    /// Process, domain and number of the category.
    category: Option<(u32, i64, i64)>,
    payload: Option<Given>,
}

/// A payload whose string has not been resolved yet.
#[derive(Debug, PartialEq)]
enum Given {
    Known(Payload),
    Text(i64),
    /// First bytes of an extended payload, and the number of them.
    Bytes([u8; MESSAGE], usize),
}

/// Number of bytes to keep of an extended payload; enough for NCCL calls.
const MESSAGE: usize = 24;

const TOO_LONG: &str = "its strings are longer than a file of this size can contain";

/// Event types from `ENUM_NSYS_EVENT_TYPE` of nsys.
const PUSH_POP: i64 = 59;
const START_END: i64 = 60;
const MARK: i64 = 34;
/// Imported text ranges, which nest like push/pop ranges.
const IMPORTED: [i64; 2] = [70, 71];
const DOMAIN: i64 = 75;
/// Event type for the name of a category.
const CATEGORY: i64 = 33;

/// Reads all ranges without thread names, and those marks that hold sampled stacks.
pub fn read_ranges(db: &Db, job: &Job<'_>, strings: &mut Strings<'_>) -> Result<(Ranges, Marks), ImportError> {
    if !db.has_table(NVTX) {
        return Ok(Default::default());
    }
    let layout = scan::find_layout(db, NVTX)?;
    let plain = ["start", "end", "eventType", "globalTid", "domainId", "textId", "text"];
    let extra = [
        "color",
        "category",
        "jsonTextId",
        "jsonText",
        "uint64Value",
        "int64Value",
        "doubleValue",
        "uint32Value",
        "int32Value",
        "floatValue",
    ];
    let details = job.wants.has_parts(Parts::RANGE_DETAILS);
    let mut columns = if details { [&plain[..], &extra].concat() } else { plain.to_vec() };
    // Read extended payloads, because the layout is known for NCCL's ranges.
    let binary = columns.len();
    columns.push("binaryData");
    let texts = db.table_budget();
    let capture_end = read_capture_end(db);
    let readers = scan::scan_rows(db, NVTX, &columns, ("NVTX ranges", layout), job, Reader::default, |reader, chunk, row| {
        let integer = |i| row.get_ref(i).map(|v| v.as_i64().unwrap_or(NULL));
        let kind = match integer(2)? {
            PUSH_POP => Some(RangeKind::PushPop),
            START_END => Some(RangeKind::StartEnd),
            t if IMPORTED.contains(&t) => Some(RangeKind::PushPop),
            DOMAIN | CATEGORY | MARK => None,
            _ => return Ok(()),
        };
        let (thread, domain, id) = (integer(3)?, integer(4)?, integer(5)?);
        let pid = pid_of(thread).unwrap_or_default();
        let domain = if domain == NULL { 0 } else { domain };
        if integer(2)? == MARK {
            let mark = match row.get_ref(binary)? {
                ValueRef::Blob(bytes) => {
                    extended_payload(bytes).and_then(|b| Mark::from_payload(b, (pid, tid_of(thread)), domain, integer(0).ok()?))
                }
                _ if id == NULL && matches!(row.get_ref(6)?, ValueRef::Null) => {
                    *reader.bare_marks.entry((pid, domain)).or_default() += 1;
                    None
                }
                _ => None,
            };
            if let Some(mark) = mark.filter(|m| m.time != NULL) {
                if !texts.try_spend(mark.size()) {
                    return Err(rusqlite::Error::UserFunctionError(TOO_LONG.into()));
                }
                reader.marks.push(mark);
            }
            return Ok(());
        }
        let inline = match row.get_ref(6)? {
            ValueRef::Text(text) if !texts.try_spend(text.len() as u64) => {
                return Err(rusqlite::Error::UserFunctionError(TOO_LONG.into()));
            }
            ValueRef::Text(text) => Some(String::from_utf8_lossy(text)),
            _ => None,
        };
        let Some(kind) = kind else {
            let text = inline.map_or(Text::Id(id), |t| Text::Inline(t.into()));
            if integer(2)? == DOMAIN {
                reader.domains.push((pid, domain, text));
            } else if details {
                reader.categories.push((pid, domain, integer(8)?, text));
            }
            return Ok(());
        };
        let start = integer(0)?;
        if start == NULL {
            return Ok(());
        }
        let end = integer(1)?;
        let name = reader.name_id(pid, domain, id, inline.as_deref());
        let thread = reader.thread_id(pid, tid_of(thread).unwrap_or_default());
        let mut extra = Extra::default();
        if details {
            extra = Extra {
                color: integer(7).ok().filter(|&c| c != NULL).map(|c| c as u32),
                category: integer(8).ok().filter(|&c| c > 0).map(|c| (pid, domain, c)),
                payload: read_payload(row, &texts)?,
            };
        }
        if let ValueRef::Blob(bytes) = row.get_ref(binary)?
            && let Some(bytes) = extended_payload(bytes)
        {
            extra.payload = Some(Given::Bytes(std::array::from_fn(|i| bytes.get(i).copied().unwrap_or(0)), bytes.len().min(MESSAGE)));
        }
        if extra != Extra::default() {
            reader.extra.push(((chunk, reader.ranges.len()), extra));
        }
        // nsys closes ranges that are still open at the end of the capture, since 2025 with exactly this time.
        let end = if end == NULL || Some(end) == capture_end { i64::MAX } else { end };
        reader.ranges.push((chunk, Range { start, end, name, thread, kind, origin: RangeOrigin::Nvtx }));
        Ok(())
    })?;
    Ok(merge_readers(readers, strings))
}

/// Reads the time at which the capture ended, ns since it began; `None` if older nsys did not write it.
fn read_capture_end(db: &Db) -> Option<i64> {
    let rows = db.read_rows("ANALYSIS_DETAILS", &["duration"]).ok()?;
    rows.first()?.first()?.as_deref()?.parse().ok().filter(|&ns| ns > 0)
}

/// Returns the extended payload of a range; `None` if there are several. nsys stores a header before the payloads,
/// which consists of their number and the schema, size and offset of each.
fn extended_payload(bytes: &[u8]) -> Option<&[u8]> {
    let long = |at: usize| usize::try_from(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?)).ok();
    let (size, from) = (long(16)?, long(24)?);
    if long(0)? != 1 || from < 32 {
        return None;
    }
    bytes.get(from..from.checked_add(size)?)
}

/// Returns the only payload of a range, from the columns after `category`.
fn read_payload(row: &Row<'_>, texts: &Budget) -> rusqlite::Result<Option<Given>> {
    let known = |p| Ok(Some(Given::Known(p)));
    if let ValueRef::Integer(id) = row.get_ref(9)? {
        return Ok(Some(Given::Text(id)));
    }
    if let ValueRef::Text(text) = row.get_ref(10)? {
        if !texts.try_spend(text.len() as u64) {
            return Err(rusqlite::Error::UserFunctionError(TOO_LONG.into()));
        }
        return known(Payload::Json(Arc::from(String::from_utf8_lossy(text))));
    }
    for (at, unsigned) in [(11, true), (12, false), (14, true), (15, false)] {
        if let ValueRef::Integer(value) = row.get_ref(at)? {
            return known(if unsigned { Payload::Unsigned(value.cast_unsigned()) } else { Payload::Integer(value) });
        }
    }
    for at in [13, 16] {
        if let ValueRef::Real(value) = row.get_ref(at)? {
            return known(Payload::Real(value));
        }
    }
    Ok(None)
}

impl Reader {
    fn name_id(&mut self, pid: u32, domain: i64, id: i64, inline: Option<&str>) -> u32 {
        let next = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        let (found, text) = match inline {
            Some(text) => {
                let texts = self.inline.entry((pid, domain)).or_default();
                if let Some(&found) = texts.get(text) {
                    return found;
                }
                texts.insert(text.into(), next);
                (next, Text::Inline(text.into()))
            }
            None => (*self.by_id.entry((pid, domain, id)).or_insert(next), Text::Id(id)),
        };
        if found == next {
            self.names.push((pid, domain, text));
        }
        found
    }

    fn thread_id(&mut self, pid: u32, tid: u32) -> u32 {
        let next = u32::try_from(self.thread_list.len()).unwrap_or(u32::MAX);
        let id = *self.threads.entry((pid, tid)).or_insert(next);
        if id == next {
            self.thread_list.push((pid, tid));
        }
        id
    }
}

/// Numbers categories in order of first appearance.
#[derive(Default)]
struct Categories {
    named: FxHashMap<(u32, i64, i64), Arc<str>>,
    numbers: FxHashMap<(u32, i64, i64), u16>,
}

impl Categories {
    /// Returns the index into `list`; `None` if there are more categories than the type of the column can represent.
    fn category_number(&mut self, key: (u32, i64, i64), list: &mut Vec<Arc<str>>) -> Option<u16> {
        if let Some(&number) = self.numbers.get(&key) {
            return Some(number);
        }
        let number = u16::try_from(list.len()).ok().filter(|&n| n < u16::MAX)?;
        list.push(self.named.get(&key).cloned().unwrap_or_else(|| Arc::from(key.2.to_string())));
        self.numbers.insert(key, number);
        Some(number)
    }
}

/// Merges the tables of the reader threads; ranges are in file order.
fn merge_readers(readers: Vec<Reader>, strings: &mut Strings<'_>) -> (Ranges, Marks) {
    let mut text = |t: &Text| match t {
        Text::Inline(t) => Arc::from(&**t),
        Text::Id(id) => strings.get(*id).unwrap_or_else(|| Arc::from(UNNAMED)),
    };
    let mut categories = Categories::default();
    for (pid, domain, number, name) in readers.iter().flat_map(|r| &r.categories) {
        categories.named.insert((*pid, *domain, *number), text(name));
    }
    let mut domains: FxHashMap<(u32, i64), Arc<str>> = FxHashMap::default();
    for (pid, domain, name) in readers.iter().flat_map(|r| &r.domains) {
        if *domain != 0 {
            domains.insert((*pid, *domain), text(name));
        }
    }
    let is_python = |pid: u32, domain: i64| domains.get(&(pid, domain)).is_some_and(|name| python_samples::DOMAINS.contains(&&**name));
    let mut marks = Marks::default();
    let mut out = Ranges::default();
    out.reserve(readers.iter().map(|r| r.ranges.len()).sum());
    let mut names: FxHashMap<(Option<Arc<str>>, Arc<str>), u32> = FxHashMap::default();
    let mut threads: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    let mut parts = Vec::new();
    for reader in readers {
        marks.list.extend(reader.marks.into_iter().filter(|m| is_python(m.pid, m.domain)));
        marks.without_payload += reader.bare_marks.iter().filter(|((pid, domain), _)| is_python(*pid, *domain)).map(|m| m.1).sum::<u64>();
        let mut intern = |(pid, domain, t): &(u32, i64, Text)| {
            let unnamed = || Arc::from(format!("domain {domain}"));
            let domain = (*domain != 0).then(|| domains.get(&(*pid, *domain)).cloned().unwrap_or_else(unnamed));
            let key = (domain, text(t));
            *names.entry(key.clone()).or_insert_with(|| {
                out.names.push(key);
                u32::try_from(out.names.len() - 1).unwrap_or(u32::MAX)
            })
        };
        let name_ids: Vec<u32> = reader.names.iter().map(&mut intern).collect();
        let thread_ids: Vec<u32> = reader
            .thread_list
            .iter()
            .map(|&t| {
                *threads.entry(t).or_insert_with(|| {
                    out.threads.push(t);
                    u32::try_from(out.threads.len() - 1).unwrap_or(u32::MAX)
                })
            })
            .collect();
        parts.push((reader.ranges, name_ids, thread_ids, reader.extra.into_iter().peekable()));
    }
    // Each thread's chunks are in ascending order, so merge the parts chunk by chunk instead of sorting the ranges.
    let mut at = vec![0; parts.len()];
    while let Some((part, chunk)) =
        parts.iter().enumerate().filter_map(|(p, (ranges, ..))| Some((p, ranges.get(at[p])?.0))).min_by_key(|&(_, chunk)| chunk)
    {
        let (ranges, names, threads, extra) = &mut parts[part];
        while let Some((c, range)) = ranges.get(at[part])
            && *c == chunk
        {
            let renamed = |ids: &[u32], id: u32| ids.get(id as usize).copied().unwrap_or(id);
            let row = u32::try_from(out.len()).unwrap_or(u32::MAX);
            let name = renamed(names, range.name);
            out.push(Range { name, thread: renamed(threads, range.thread), ..*range });
            if let Some((_, extra)) = extra.next_if(|((_, place), _)| *place == at[part]) {
                if let Some(color) = extra.color {
                    out.set_color(color);
                }
                if let Some(category) = extra.category.and_then(|c| categories.category_number(c, &mut out.categories)) {
                    out.set_category(category);
                }
                let payload = match extra.payload {
                    Some(Given::Known(payload)) => Some(payload),
                    Some(Given::Text(id)) => strings.get(id).map(Payload::Json),
                    Some(Given::Bytes(bytes, n)) => {
                        let named = out.names.get(name as usize).filter(|of| of.0.as_deref() == Some("NCCL"));
                        named.and_then(|of| NcclCall::from_payload(&of.1, bytes.get(..n)?)).map(Payload::Nccl)
                    }
                    None => None,
                };
                out.payloads.extend(payload.map(|p| (row, p)));
            }
            at[part] += 1;
        }
    }
    (out, marks)
}
