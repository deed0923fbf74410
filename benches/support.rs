//! Makes large exports by repeating a real one: times and correlation ids are shifted, so that every launch is unique.

use rusqlite::Connection;
use std::path::Path;

/// Unpacks the fixture and repeats its kernels and API calls `times` times, and its NVTX ranges `ranges` times.
pub fn grow(target: &Path, times: u32, ranges: u32) -> Result<u64, Box<dyn std::error::Error>> {
    let packed = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/nsys/zoo.sqlite.zst");
    std::fs::write(target, zstd::stream::decode_all(std::fs::File::open(packed)?)?)?;
    let db = Connection::open(target)?;
    db.execute_batch("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-200000; BEGIN")?;
    let span: i64 = db.query_row("SELECT max(end) - min(start) + 1000000 FROM CUPTI_ACTIVITY_KIND_RUNTIME", [], |r| r.get(0))?;
    let ids: i64 = db.query_row("SELECT max(correlationId) + 1 FROM CUPTI_ACTIVITY_KIND_RUNTIME", [], |r| r.get(0))?;
    for (table, times) in [("CUPTI_ACTIVITY_KIND_KERNEL", times), ("CUPTI_ACTIVITY_KIND_RUNTIME", times), ("NVTX_EVENTS", ranges)] {
        let columns: Vec<String> =
            db.prepare(&format!("PRAGMA table_info({table})"))?.query_map([], |r| r.get(1))?.collect::<Result<_, _>>()?;
        let shifted: Vec<String> = columns
            .iter()
            .map(|c| match c.as_str() {
                "start" | "end" => format!("\"{c}\" + ?1"),
                "correlationId" => "correlationId + ?2".to_owned(),
                other => format!("\"{other}\""),
            })
            .collect();
        db.execute_batch(&format!("CREATE TEMP TABLE once AS SELECT * FROM {table}"))?;
        let with_ids = columns.iter().any(|c| c == "correlationId");
        let mut insert = db.prepare(&format!("INSERT INTO {table} SELECT {} FROM once", shifted.join(", ")))?;
        for i in 1..i64::from(times) {
            if with_ids {
                insert.execute([i * span, i * ids])?
            } else {
                insert.execute([i * span])?
            };
        }
        drop(insert);
        db.execute_batch("DROP TABLE once")?;
    }
    db.execute_batch("COMMIT")?;
    Ok(db.query_row("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL", [], |r| r.get::<_, i64>(0))?.cast_unsigned())
}
