//! Reader for the output of rocprof v1 and v2, which has one row per dispatch and counters as columns. The database
//! of v1 also contains HIP and HSA calls with their arguments as text, copies, and dispatches as recorded by the
//! runtime.

use super::csv_set::{Head, Reader, vector_registers};
use super::rows::{Call, Copy, Counter, Dispatch, Rows};
use crate::import::sqlite::db::Db;
use crate::import::{ImportError, Job};
use csv::ByteRecord;
use rustc_hash::FxHashMap;
use std::path::Path;

/// Parses dimensions from the arguments of a HIP call: `numBlocks({z(16) y(64) x(16})` is `[16, 64, 16]`.
fn parse_sizes(arguments: &str, name: &str) -> Option<[u32; 3]> {
    let inside = arguments.split_once(&format!("{name}({{"))?.1.split_once('}')?.0;
    let of = |axis: &str| -> Option<u32> {
        let digits = inside.split_once(&format!("{axis}("))?.1;
        digits.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    };
    Some([of("x")?, of("y")?, of("z")?])
}

/// Parses a number from the arguments of a HIP call: `sizeBytes(8388608)`.
fn parse_number(arguments: &str, name: &str) -> Option<u64> {
    arguments.split_once(&format!("{name}("))?.1.split(')').next()?.trim().parse().ok()
}

impl Reader {
    /// Reads a row of `results.csv`, from rocprof or rocprofv2. Sizes are products of the three dimensions.
    pub(super) fn read_legacy_row(&mut self, head: &Head, row: &ByteRecord) -> Option<()> {
        // Tables that contain nothing but counters have no times.
        let start: i64 = head.cell_number(row, &["beginns", "start_timestamp"]).unwrap_or(0);
        let process = self.process_index(head.cell_number(row, &["pid", "process_id"]));
        let name = head.cell_text(row, &["kernelname", "kernel_name"])?;
        // The database keeps the quotes of the source table.
        let name = name.strip_prefix(b"\"").and_then(|n| n.strip_suffix(b"\"")).unwrap_or(name);
        let symbol = self.symbol_index(process, head.cell_number(row, &["kernel_id"]).unwrap_or(0), name);
        let agent = self.agent_index(head.cell_text(row, &["gpu_id"]).unwrap_or(b"0"), true);
        let line = |names: &[&str]| [head.cell_number(row, names).unwrap_or(0), 1, 1];
        // `index` starts at 0, dispatch ids start at 1.
        let index: u64 = head
            .cell_number(row, &["index"])
            .map_or_else(|| head.cell_number(row, &["dispatch_id"]).unwrap_or(0), |i: u64| i.saturating_add(1));
        self.rows.dispatches.push(Dispatch {
            process,
            agent,
            symbol,
            thread: head.cell_number(row, &["tid", "thread_id"]).unwrap_or(0),
            id: index,
            queue: head.cell_number(row, &["queue_id"]).unwrap_or(0),
            start,
            end: head.cell_number(row, &["endns", "end_timestamp"]).unwrap_or(start),
            workgroup: line(&["wgr", "workgroup_size"]),
            grid: line(&["grd", "grid_size"]),
            lds: head.cell_number(row, &["lds", "lds_per_workgroup"]),
            scratch: head.cell_number(row, &["scr", "scratch_per_workitem"]),
            registers: vector_registers(head, row),
            ..Dispatch::default()
        });
        let field = |at: usize| std::str::from_utf8(row.get(at)?).ok()?.trim().parse::<f64>().ok().filter(|v| v.is_finite());
        for (at, column) in &head.counters {
            if let Some(value) = field(*at) {
                let name = self.intern_text(column.as_bytes());
                self.rows.counters.push(Counter { process, dispatch: index, name, value });
            }
        }
        Some(())
    }

    /// Reads a HIP or HSA call, or a `ROCTx` range.
    fn legacy_call(
        &mut self,
        row: &[Option<String>],
        marker: bool,
        launches: &mut FxHashMap<u64, String>,
        bytes: &mut FxHashMap<u64, u64>,
    ) {
        let text = |i: usize| row.get(i).and_then(Option::as_deref);
        let (Some(start), Some(end)) = (text(0).and_then(|t| t.parse().ok()), text(1).and_then(|t| t.parse().ok())) else {
            self.rows.broken += 1;
            return;
        };
        let process = self.process_index(text(2).and_then(|t| t.parse().ok()));
        let name = text(4).unwrap_or_default();
        let correlation: u64 = text(6).and_then(|t| t.parse().ok()).unwrap_or(0);
        let arguments = text(5).unwrap_or_default();
        if !marker && arguments.contains("numBlocks(") {
            launches.insert(correlation, arguments.to_owned());
        }
        bytes.extend(parse_number(arguments, "sizeBytes").filter(|_| !marker).map(|n| (correlation, n)));
        let call = Call {
            of_process: false,
            process,
            thread: text(3).and_then(|t| t.parse().ok()).unwrap_or(0),
            name: self.intern_text(name.as_bytes()),
            marker,
            correlation: if marker { 0 } else { correlation },
            start,
            end,
        };
        self.rows.calls.push(call);
    }

    /// Reads a dispatch as recorded by the runtime, or a copy.
    fn legacy_operation(&mut self, row: &[Option<String>], copy: bool, launches: &FxHashMap<u64, String>, bytes: &FxHashMap<u64, u64>) {
        let text = |i: usize| row.get(i).and_then(Option::as_deref);
        let small = |i: usize| text(i).and_then(|t| t.parse::<u32>().ok());
        let (Some(start), Some(end), Some(name)) = (text(0).and_then(|t| t.parse().ok()), text(1).and_then(|t| t.parse().ok()), text(4))
        else {
            self.rows.broken += 1;
            return;
        };
        let process = self.process_index(small(5));
        let agent = self.agent_index(text(2).unwrap_or("0").as_bytes(), true);
        let correlation: u64 = text(8).and_then(|t| t.parse().ok()).unwrap_or(0);
        let (thread, stream) = (small(6).unwrap_or(0), small(7));
        if copy {
            let (from, to) = (name.ends_with("ToHost").then_some(agent), name.ends_with("ToDevice").then_some(agent));
            let name = self.intern_text(name.as_bytes());
            let bytes = bytes.get(&correlation).copied();
            self.rows.copies.push(Copy { process, thread, from, to, name, bytes, stream, correlation, start, end });
            return;
        }
        let symbol = self.symbol_index(process, 0, name.as_bytes());
        let arguments = launches.get(&correlation).map_or("", String::as_str);
        let workgroup = parse_sizes(arguments, "dimBlocks").unwrap_or_default();
        let blocks = parse_sizes(arguments, "numBlocks").unwrap_or_default();
        let grid = [0, 1, 2].map(|i| blocks[i].saturating_mul(workgroup[i]));
        let id = self.rows.dispatches.len() as u64 + 1;
        let queue = small(3).unwrap_or(0);
        self.rows.dispatches.push(Dispatch {
            process,
            agent,
            symbol,
            thread,
            id,
            queue,
            stream,
            correlation,
            start,
            end,
            workgroup,
            grid,
            ..Dispatch::default()
        });
    }
}

/// Tables of calls, with true for the table of `ROCTx` ranges.
const CALLS: [(&str, bool); 3] = [("HIP", false), ("HSA", false), ("rocTX", true)];

/// Reads a database of rocprof v1.
pub fn read_db(db: &Db, path: &Path, job: &Job<'_>) -> Result<Rows, ImportError> {
    let mut reader = Reader::default();
    reader.begin_process(path);
    reader.rows.legacy = true;
    let cancelled = || if job.cancel.is_cancelled() { Err(db.cancelled_error()) } else { Ok(()) };
    let columns: Vec<&str> = db.column_names("KERN").collect();
    let head = Head::from_header(&ByteRecord::from(columns.clone()));
    let mut record = ByteRecord::new();
    for row in db.read_rows("KERN", &columns)? {
        record.clear();
        record.extend(row.iter().map(|field| field.as_deref().unwrap_or_default()));
        let understood = reader.read_legacy_row(&head, &record);
        reader.rows.broken += u64::from(understood.is_none());
    }
    cancelled()?;
    let (mut launches, mut bytes) = (FxHashMap::default(), FxHashMap::default());
    for (table, marker) in CALLS {
        for row in db.read_rows(table, &["BeginNs", "EndNs", "pid", "tid", "Name", "args", "Index"])? {
            reader.legacy_call(&row, marker, &mut launches, &mut bytes);
        }
        cancelled()?;
    }
    let traced = reader.rows.dispatches.is_empty();
    for (table, copy) in [("OPS", false), ("COPY", true)] {
        // Dispatches have already been read from `KERN`, with more details.
        if !copy && !traced {
            continue;
        }
        let mut rows = db.read_rows(table, &["BeginNs", "EndNs", "dev-id", "queue-id", "Name", "pid", "tid", "stream-id", "Index"])?;
        let key = |r: &Vec<Option<String>>, i: usize| r.get(i).and_then(|t| t.as_ref()?.parse::<i64>().ok()).unwrap_or(i64::MAX);
        // Sort by launch, then by start to order the operations of one launch (a graph).
        rows.sort_by_key(|r| (key(r, 8), key(r, 0)));
        for row in rows {
            reader.legacy_operation(&row, copy, &launches, &bytes);
        }
        cancelled()?;
    }
    Ok(reader.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_a_launch_from_hips_arguments() {
        let args = "( kernel(k(int)) function_address(0x201030) numBlocks({z(2) y(64) x(16}) dimBlocks({z(1) y(8) x(32}) args(0x7ffc) sharedMemBytes(0) stream(1))";
        assert_eq!(parse_sizes(args, "numBlocks"), Some([16, 64, 2]));
        assert_eq!(parse_sizes(args, "dimBlocks"), Some([32, 8, 1]));
        assert_eq!(parse_sizes("( dst(0x7f) sizeBytes(64))", "numBlocks"), None);
        assert_eq!(parse_number("( dst(0x7f) src(0x1) sizeBytes(64) kind(1))", "sizeBytes"), Some(64));
    }
}
