//! The tables and their columns. Tables of launches share the columns of all other launch tables.

use super::table::{Of, Table};
use crate::analysis::table::launches::{self, LaunchRow};
use crate::analysis::table::ranges::origin_word;
use crate::analysis::table::{Column, Unit, Value};
use crate::analysis::triage::Finding;
use crate::model::digest::{Collective, CollectiveKind, Digest};
use crate::model::range::Range;
use crate::model::{LaunchSite, MemOp, MemOpKind, Profile};

pub fn launches(of: Of<'_>) -> Table<'_> {
    let row = |at: usize| Some(LaunchRow::new(of.profile, None, u32::try_from(at).ok()?, 0));
    Table::new(launches::columns(), of.profile.launches.len(), row)
}

/// Row of a profile's table: the profile and the row's index.
type At<'a> = (&'a Profile, usize);

fn call_name((p, at): At<'_>) -> Option<&str> {
    Some(p.calls.names.get(*p.calls.name.get(at)? as usize)?.name.as_ref())
}

pub fn calls(of: Of<'_>) -> Table<'_> {
    type CallColumn<'a> = Column<At<'a>>;
    let columns = vec![
        CallColumn::new("name", "name", Unit::Text, "function", |&r| call_name(r).map_or(Value::Absent, Value::text)),
        CallColumn::new("start_ns", "start", Unit::Time, "from the report's 0", |(p, at)| {
            Value::maybe_int(p.calls.start.get(*at).copied())
        }),
        CallColumn::new("duration_ns", "duration", Unit::Ns, "on the host", |(p, at)| Value::maybe_int(p.calls.duration.get(*at).copied())),
        CallColumn::new("pid", "pid", Unit::Id, "process", |(p, at)| Value::int(p.calls.thread_of(*at).0)),
        CallColumn::new("thread", "thread", Unit::Id, "operating-system thread", |(p, at)| Value::int(p.calls.thread_of(*at).1)),
    ];
    Table::new(all_parquet(columns), of.profile.calls.len(), move |at| Some((of.profile, at)))
}

/// A memory copy or memory set of a profile.
type MemOpRow<'a> = (&'a Profile, MemOp);

fn memop_place<'a>((p, op): &MemOpRow<'a>) -> Option<&'a LaunchSite> {
    p.places.get(op.place.0 as usize)
}

pub fn memcpys(of: Of<'_>) -> Table<'_> {
    type CopyColumn<'a> = Column<MemOpRow<'a>>;
    let columns = vec![
        CopyColumn::new("kind", "kind", Unit::Text, "direction, or set", |(_, op)| match op.kind {
            MemOpKind::Copy { kind, .. } => Value::text(kind.as_str()),
            MemOpKind::Set => Value::text("set"),
        }),
        CopyColumn::new("start_ns", "start", Unit::Time, "from the report's 0", |(_, op)| Value::Int(op.start.0)),
        CopyColumn::new("duration_ns", "duration", Unit::Ns, "on the device", |(_, op)| Value::Int(op.duration.0)),
        CopyColumn::new("bytes", "bytes", Unit::Bytes, "bytes copied or set", |(_, op)| Value::maybe_int(op.bytes.map(|b| b.0))),
        CopyColumn::new("device", "gpu", Unit::Id, "number of the GPU", |r| {
            let place = memop_place(r);
            Value::maybe_int(place.and_then(|place| r.0.device_of(place).map(|d| d.id).or(place.ordinal)))
        }),
        CopyColumn::new("context", "ctx", Unit::Id, "CUDA context", |r| Value::maybe_int(memop_place(r).and_then(|p| p.context))),
        CopyColumn::new("stream", "stream", Unit::Id, "stream or queue", |r| Value::maybe_int(memop_place(r).and_then(|p| p.stream))),
        CopyColumn::new("pid", "pid", Unit::Id, "process", |r| Value::maybe_int(memop_place(r).and_then(|p| p.pid))),
    ];
    Table::new(all_parquet(columns), of.profile.memops.len(), move |at| Some((of.profile, of.profile.memops.get(at)?)))
}

/// A range of a profile.
type RangeRow<'a> = (&'a Profile, Range);

fn range_thread((p, range): &RangeRow<'_>) -> Option<(u32, u32)> {
    p.ranges.threads.get(range.thread as usize).copied()
}

fn range_name<'a>(p: &'a Profile, range: &Range) -> Option<&'a (Option<std::sync::Arc<str>>, std::sync::Arc<str>)> {
    p.ranges.names.get(range.name as usize)
}

pub fn ranges(of: Of<'_>) -> Table<'_> {
    type RangeColumn<'a> = Column<RangeRow<'a>>;
    let columns = vec![
        RangeColumn::new("name", "name", Unit::Text, "name", |(p, r)| range_name(p, r).map_or(Value::Absent, |n| Value::text(&n.1))),
        RangeColumn::new("domain", "domain", Unit::Text, "of NVTX", |(p, r)| {
            range_name(p, r).and_then(|n| n.0.as_deref()).map_or(Value::Absent, Value::text)
        }),
        RangeColumn::new("origin", "by", Unit::Text, "nvtx, roctx, annotation, operator, python", |(_, r)| {
            Value::text(origin_word(r.origin))
        }),
        RangeColumn::new("start_ns", "start", Unit::Time, "from the report's 0", |(_, r)| Value::Int(r.start)),
        RangeColumn::new("end_ns", "end", Unit::Time, "absent if it was still open at the end", |(_, r)| {
            Value::maybe_int(Some(r.end).filter(|&e| e != i64::MAX))
        }),
        RangeColumn::new("pid", "pid", Unit::Id, "process", |r| Value::maybe_int(range_thread(r).map(|t| t.0))),
        RangeColumn::new("thread", "thread", Unit::Id, "operating-system thread", |r| Value::maybe_int(range_thread(r).map(|t| t.1))),
    ];
    Table::new(all_parquet(columns), of.profile.ranges.len(), move |at| Some((of.profile, of.profile.ranges.get(at))))
}

/// A rank's part in a collective.
type CollectiveRow<'a> = (&'a Digest, Collective);

fn collective_kind<'a>((digest, collective): &CollectiveRow<'a>) -> Option<&'a CollectiveKind> {
    digest.kinds.get(collective.kind)
}

pub fn collectives(of: Of<'_>) -> Table<'_> {
    type CollectiveColumn<'a> = Column<CollectiveRow<'a>>;
    let columns = vec![
        CollectiveColumn::new("kind", "kind", Unit::Text, "all_reduce, all_gather and so on", |r| {
            collective_kind(r).map_or(Value::Absent, |k| Value::text(&k.name))
        }),
        CollectiveColumn::new("group", "group", Unit::Text, "process group, NCCL's communicator, or the rank's stream", |r| {
            collective_kind(r).map_or(Value::Absent, |k| Value::text(&k.group))
        }),
        CollectiveColumn::new("algorithm", "algorithm", Unit::Text, "NCCL's algorithm and protocol", |r| {
            collective_kind(r).map(|k| k.algorithm.as_str()).filter(|a| !a.is_empty()).map_or(Value::Absent, Value::text)
        }),
        CollectiveColumn::new("sequence", "sequence", Unit::Id, "number in its group", |(_, c)| Value::Int(c.sequence)),
        CollectiveColumn::new("start_ns", "start", Unit::Time, "from the report's 0", |(_, c)| Value::Int(c.start)),
        CollectiveColumn::new("duration_ns", "duration", Unit::Ns, "including the time in which this rank waited for others", |(_, c)| {
            Value::Int(c.duration)
        }),
        CollectiveColumn::new("bytes", "bytes", Unit::Bytes, "message of a rank, if the framework or NCCL reports it", |(_, c)| {
            Value::maybe_int(Some(c.bytes).filter(|&b| b > 0))
        }),
        CollectiveColumn::new("peer", "peer", Unit::Id, "number in the group of the other rank of a send or receive", |r| {
            Value::maybe_int(collective_kind(r).and_then(|k| k.peer))
        }),
        CollectiveColumn::new("device", "gpu", Unit::Id, "number of the GPU", |(d, _)| Value::maybe_int(d.device)),
        CollectiveColumn::new("pid", "pid", Unit::Id, "process", |(d, _)| Value::maybe_int(d.pid)),
    ];
    let all: Vec<CollectiveRow<'_>> = of.digests.iter().flat_map(|d| d.collectives().map(move |c| (d, c))).collect();
    Table::new(all_parquet(columns), all.len(), move |at| all.get(at).copied())
}

pub fn findings(of: Of<'_>) -> Table<'_> {
    type FindingColumn<'a> = Column<(usize, &'a Finding)>;
    let list = of.triage.map_or(&[][..], |t| &t.findings[..]);
    let columns = vec![
        FindingColumn::new("rank_in_list", "#", Unit::Id, "1 is the verdict", |(at, _)| Value::int(at + 1)),
        FindingColumn::new("id", "finding", Unit::Text, "never changes its meaning", |(_, f)| Value::text(f.id.id())),
        FindingColumn::new("severity", "severity", Unit::Text, "high, medium, low or healthy", |(_, f)| Value::text(f.severity.as_str())),
        FindingColumn::new("sure", "sure", Unit::Text, "certain, likely or possible", |(_, f)| Value::text(f.sure.as_str())),
        FindingColumn::new("share_percent", "share", Unit::Percent, "of the window that would be gained at most", |(_, f)| {
            Value::Real(f.gain_percent())
        }),
        FindingColumn::new("headline", "headline", Unit::Text, "the finding in a sentence", |(_, f)| Value::text(&f.headline)),
    ];
    Table::new(all_parquet(columns), list.len(), move |at| list.get(at).map(|f| (at, f)))
}

/// Columns that are only in this export.
fn all_parquet<R>(columns: Vec<Column<R>>) -> Vec<Column<R>> {
    columns.into_iter().map(Column::and_parquet).collect()
}
