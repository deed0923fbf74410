//! Importer for the analysis database of rocprof-compute (`rocprof-compute analyze --output-format db`): kernel
//! metrics with their tables, units and peaks, averaged over the dispatches of each kernel.

use super::counters::agent_facts;
use super::rows::strip_kd_suffix;
use super::tables::{Cell, is_value_column, known_values, only_value};
use crate::import::sqlite::db::Db;
use crate::import::{ImportError, Job};
use crate::model::kernel::function_of;
use crate::model::launches::{NO_NODE, TimesBuilder};
use crate::model::{
    Device, Kernel, LaunchColumns, LaunchConfig, LaunchOrder, LaunchSite, Launches, Metrics, Note, NoteKind, Profile, ResultMetrics,
    Severity, Value, Vendor,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Name of a table found only in this kind of database.
pub const VALUES: &str = "compute_kernel_metric_value";

fn parse_number<N: std::str::FromStr>(text: Option<&Option<String>>) -> Option<N> {
    text?.as_ref()?.parse().ok()
}

/// Reads the system information, which is stored as JSON in a column.
fn read_facts(db: &Db) -> Result<serde_json::Value, ImportError> {
    let rows = db.read_rows("compute_workload", &["sys_info_extdata"])?;
    Ok(rows.into_iter().next().and_then(|r| serde_json::from_str(r.into_iter().next()??.as_str()).ok()).unwrap_or_default())
}

fn parse_device(facts: &serde_json::Value) -> Device {
    let some = |key: &str| facts.get(key).and_then(serde_json::Value::as_u64).and_then(|n| u32::try_from(n).ok()).filter(|&n| n > 0);
    let text = |key: &str| facts.get(key).and_then(serde_json::Value::as_str).map(str::to_owned);
    Device {
        maker: Vendor::Amd,
        name: text("gpu_model"),
        arch: text("gpu_arch"),
        chip: text("gpu_arch"),
        sm_count: some("cu_per_gpu"),
        warp_size: some("wave_size"),
        max_warps_per_sm: some("max_waves_per_cu"),
        clock_hz: some("max_sclk").map(|mhz| u64::from(mhz) * 1_000_000),
        ..Device::default()
    }
}

/// Reads the database: dispatches as launches, and one result per kernel.
pub fn read_database(db: &Db, job: &Job<'_>, mut profile: Profile) -> Result<Profile, ImportError> {
    let facts = read_facts(db)?;
    profile.source.version =
        db.read_rows("compute_metadata", &["compute_version"])?.into_iter().next().and_then(|r| r.into_iter().next()?);
    profile.devices = vec![parse_device(&facts)];
    if let Some(command) = facts.get("command").and_then(serde_json::Value::as_str) {
        profile.capture.argv = command.split_whitespace().map(str::to_owned).collect();
    }
    // Start, end, kernel.
    let mut ran: Vec<(i64, i64, i64)> = Vec::new();
    for row in db.read_rows("compute_dispatch", &["kernel_uuid", "start_timestamp", "end_timestamp"])? {
        let (Some(kernel), Some(start), Some(end)) =
            (parse_number(row.first()), parse_number::<i64>(row.get(1)), parse_number::<i64>(row.get(2)))
        else {
            continue;
        };
        ran.push((start, end, kernel));
    }
    ran.sort_unstable();
    let mut metrics = Metrics { source: profile.source.clone(), ..Metrics::default() };
    let mut results: BTreeMap<i64, ResultMetrics> = BTreeMap::new();
    for row in db.read_rows("compute_kernel", &["kernel_uuid", "kernel_name"])? {
        let Some(id) = parse_number(row.first()) else { continue };
        let name = row.into_iter().nth(1).flatten().unwrap_or_default();
        let name = strip_kd_suffix(&name);
        let kernel = Kernel { function: Some(function_of(name).into()), demangled: Some(name.into()), ..Kernel::default() };
        results.insert(id, ResultMetrics { kernel, device: Some(0), ..ResultMetrics::from_values(Vec::new()) });
    }
    let dies = facts.get("num_xcd").and_then(serde_json::Value::as_u64).and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
    read_values(db, job, (&profile.devices[0], dies), &mut metrics, &mut results)?;
    let zero = ran.first().map_or(0, |r| r.0);
    let mut columns = LaunchColumns::default();
    let mut durations = TimesBuilder::default();
    let mut configs = Vec::new();
    let index: FxHashMap<i64, u32> = results.keys().copied().zip(0..).collect();
    profile.kernels = results.values().map(|r| r.kernel.clone()).collect();
    profile.configs = results.values().map(|r| LaunchConfig { grid: r.grid, block: r.block, ..LaunchConfig::default() }).collect();
    // Results are averages per kernel. Each result belongs to the first dispatch of its kernel, so these dispatches
    // come first, in the order of the results.
    let mut seen = FxHashSet::default();
    let mut ran: Vec<(bool, u32, i64, i64)> = ran
        .into_iter()
        .filter_map(|(start, end, kernel)| Some((*index.get(&kernel)?, start, end)))
        .map(|(kernel, start, end)| if seen.insert(kernel) { (false, kernel, start, end) } else { (true, kernel, start, end) })
        .collect();
    ran.sort_by_key(|&(again, kernel, start, _)| if again { (true, start) } else { (false, i64::from(kernel)) });
    for (_, kernel, start, end) in ran {
        columns.start.push(start.saturating_sub(zero));
        durations.push((end >= start).then(|| end.saturating_sub(start)));
        columns.kernel.push(kernel);
        configs.push(kernel);
    }
    columns.duration = durations;
    let n = columns.kernel.len();
    profile.launches = Launches::new(columns);
    profile.places = vec![LaunchSite { device: Some(0), ordinal: Some(0), ..LaunchSite::default() }];
    profile.launches.set_details(configs, vec![0; n], vec![NO_NODE; n], Vec::new());
    profile.order = LaunchOrder::Chosen;
    metrics.results = results.into_values().collect();
    profile.metrics = Some(Arc::new(metrics));
    let text =
        "Values are averages over the dispatches of a kernel, and of several runs of the program; launches have their own durations.";
    profile.notes.push(Note::new(Severity::Info, NoteKind::Guess, text));
    Ok(profile)
}

/// Reads the values of all kernels, named `Table: Metric` as on the details page of ncu.
fn read_values(
    db: &Db,
    job: &Job<'_>,
    (device, dies): (&Device, u32),
    metrics: &mut Metrics,
    results: &mut BTreeMap<i64, ResultMetrics>,
) -> Result<(), ImportError> {
    let mut defined: FxHashMap<i64, (String, String)> = FxHashMap::default();
    let mut taken: FxHashMap<String, u32> = FxHashMap::default();
    for row in db.read_rows("compute_metric_definition", &["metric_uuid", "sub_table_name", "name", "unit"])? {
        let Some(id) = parse_number(row.first()) else { continue };
        let text = |i: usize| row.get(i).and_then(Option::as_deref).unwrap_or_default();
        let mut name = format!("{}: {}", text(1), text(2));
        let before = taken.entry(name.clone()).or_default();
        *before += 1;
        if *before > 1 {
            name = format!("{name} #{before}");
        }
        defined.insert(id, (name, text(3).to_owned()));
    }
    let mut numbers: FxHashMap<(i64, String), u32> = FxHashMap::default();
    let mut cells: BTreeMap<i64, Vec<(i64, String, f64)>> = BTreeMap::new();
    for row in db.read_rows(VALUES, &["metric_uuid", "kernel_uuid", "value_name", "value"])? {
        if job.cancel.is_cancelled() {
            return Err(db.cancelled_error());
        }
        let (Some(metric), Some(kernel), Some(value)) =
            (parse_number::<i64>(row.first()), parse_number(row.get(1)), parse_number::<f64>(row.get(3)))
        else {
            continue;
        };
        let (Some((name, unit)), Some(result)) = (defined.get(&metric), results.get_mut(&kernel)) else { continue };
        let which = row.get(2).and_then(Option::as_deref).unwrap_or_default();
        cells.entry(kernel).or_default().push((metric, which.to_owned(), value));
        let id = *numbers.entry((metric, which.to_owned())).or_insert_with(|| {
            metrics.names.push(if is_value_column(which) { Arc::from(name.as_str()) } else { Arc::from(format!("{name} ({which})")) });
            metrics.units.push(Arc::from(if which.starts_with("Pct") { "%" } else { unit.as_str() }));
            u32::try_from(metrics.names.len() - 1).unwrap_or(u32::MAX)
        });
        result.values.push((id, Value::Float(value)));
    }
    // Add the same values under the names of rocprofv3's derived counters, which rules and rooflines use.
    let mut named: FxHashMap<&'static str, u32> = FxHashMap::default();
    let mut number = |name: &'static str, unit: &'static str, metrics: &mut Metrics| {
        *named.entry(name).or_insert_with(|| {
            metrics.names.push(Arc::from(name));
            metrics.units.push(Arc::from(unit));
            u32::try_from(metrics.names.len() - 1).unwrap_or(u32::MAX)
        })
    };
    for (kernel, cells) in &cells {
        let Some(result) = results.get_mut(kernel) else { continue };
        let of = |(metric, which, value): &'_ (i64, String, f64)| {
            let (table, name, unit) = defined.get(metric).map(|(name, unit)| (name, unit)).and_then(|(name, unit)| {
                let (table, metric) = name.split_once(": ")?;
                Some((table, metric, unit.as_str()))
            })?;
            Some((table, name, which.clone(), unit, *value))
        };
        let owned: Vec<_> = cells.iter().filter_map(of).collect();
        let cells: Vec<Cell<'_>> =
            owned.iter().map(|(table, metric, which, unit, value)| Cell { table, metric, which, unit, value: *value }).collect();
        for (name, unit, value) in known_values(&cells) {
            let id = number(name, unit, metrics);
            result.values.push((id, Value::Float(value)));
        }
        if let Some((grid, block)) = only_value(&cells, "Grid Size").zip(only_value(&cells, "Workgroup Size")) {
            (result.grid, result.block) = (Some([grid.div_ceil(block), 1, 1]), Some([block, 1, 1]));
        }
        for (name, unit, value) in agent_facts(device, dies) {
            let id = number(name, unit, metrics);
            result.values.push((id, value));
        }
    }
    Ok(())
}
