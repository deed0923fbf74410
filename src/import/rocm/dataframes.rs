//! Importer for the tables of `rocprof-compute analyze --save-dfs`: one CSV file per table, named by panel and number
//! (`2.1_Speed-of-Light.csv`). Values are averages over all analyzed dispatches.

use super::rows::strip_kd_suffix;
use super::tables::{Cell, is_value_column, known_values, only_value};
use super::workload;
use crate::import::input::{Input, Member};
use crate::import::{ImportError, Job};
use crate::launch::open;
use crate::model::kernel::function_of;
use crate::model::launches::{NO_NODE, TimesBuilder};
use crate::model::units::format_count;
use crate::model::{
    Device, Kernel, KernelId, KernelTotal, LaunchColumns, LaunchConfig, LaunchOrder, LaunchSite, Launches, Metrics, Nanos, Note, NoteKind,
    Profile, ResultKind, ResultMetrics, Severity, Value, Vendor,
};
use rustc_hash::FxHashMap;
use std::path::Path;
use std::sync::Arc;

/// Panels whose tables share the title `Speed-of-Light`, each with the other name that rocprof-compute has for it.
const PANELS: [(u32, &str); 7] =
    [(2, "System"), (11, "Compute"), (12, "LDS"), (13, "Instruction Cache"), (14, "Scalar L1D"), (16, "vL1D"), (17, "L2")];
/// Columns that hold no values: row labels and units.
const NO_VALUES: [&str; 6] = ["Metric", "Channel", "Unit", "Type", "Transaction", "Coherency"];

/// Parses the panel, number and title from a file name.
fn parse_title(path: &Path) -> Option<(u32, u32, String)> {
    let stem = path.file_name()?.to_str()?.strip_suffix(".csv")?;
    let (number, words) = stem.split_once('_')?;
    let (panel, table) = number.split_once('.')?;
    let (panel, table) = (panel.parse().ok()?, table.parse().ok()?);
    let words = words.replace('_', " ");
    let prefix = PANELS.iter().find(|p| p.0 == panel && words == "Speed-of-Light").map(|p| p.1);
    Some((panel, table, prefix.map_or(words.clone(), |p| format!("{p} {words}"))))
}

/// Returns true if a file is one of these tables.
fn is_table(member: &Member) -> bool {
    parse_title(&member.path).is_some() && [&b"Metric,"[..], b"Channel,"].iter().any(|start| member.head.starts_with(start))
}

/// Returns true if a directory contains such tables, but not the counters from which they were computed.
pub fn is_analysis(input: &Input) -> bool {
    input.members.iter().any(is_table) && !input.members.iter().any(|m| workload::is_counter_table(&m.head))
}

/// A row of the kernel table, `0.1_Top_Kernels.csv`, which wraps names at 40 characters and truncates long names.
struct Top {
    name: String,
    count: u64,
    total: f64,
    mean: f64,
    median: Option<f64>,
}

fn read_top_kernels(path: &Path) -> Vec<Top> {
    let Ok(file) = open::open_regular(path) else { return Vec::new() };
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(file);
    let Ok(head) = reader.headers().cloned() else { return Vec::new() };
    let at = |start: &str| head.iter().position(|h| h.starts_with(start));
    let (Some(name), Some(calls), Some(sum)) = (at("Kernel_Name"), at("Count"), at("Sum")) else { return Vec::new() };
    let rows = reader.records().flatten().filter_map(|r| {
        let number = |i: usize| r.get(i)?.trim().parse::<f64>().ok().filter(|n| n.is_finite() && (0.0..9e18).contains(n));
        let (count, total) = (number(calls).filter(|n| *n >= 1.0)?, number(sum)?);
        let text = strip_kd_suffix(&r.get(name)?.replace('\n', "")).to_owned();
        let mean = at("Mean").and_then(number).unwrap_or(total / count);
        Some(Top { name: text, count: count as u64, total, mean, median: at("Median").and_then(number) })
    });
    rows.collect()
}

/// A table cell, with owned strings.
struct Owned {
    table: String,
    metric: String,
    which: String,
    unit: String,
    value: f64,
}

fn read_cells(path: &Path, table: &str, out: &mut Vec<Owned>) -> Result<u64, csv::Error> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(open::open_regular(path)?);
    let head = reader.headers()?.clone();
    let at = |name: &str| head.iter().position(|h| h == name);
    let unit = at("Unit");
    let mut broken = 0;
    for row in reader.records() {
        let Ok(row) = row else {
            broken += 1;
            continue;
        };
        let Some(metric) = row.get(0).filter(|m| !m.is_empty()) else { continue };
        for (i, which) in head.iter().enumerate().filter(|(_, h)| !NO_VALUES.contains(h) && !h.is_empty()) {
            // A cell is empty if the metric is not available on this GPU or in this counter set.
            let Some(value) = row.get(i).and_then(|t| t.trim().parse::<f64>().ok()).filter(|v| v.is_finite()) else { continue };
            let unit = unit.and_then(|u| row.get(u)).unwrap_or_default().to_owned();
            out.push(Owned { table: table.to_owned(), metric: metric.to_owned(), which: which.to_owned(), unit, value });
        }
    }
    Ok(broken)
}

/// Reads the directory: kernel totals, and one result that covers all kernels.
pub fn read_folder(input: &Input, job: &Job<'_>, mut profile: Profile) -> Result<Profile, ImportError> {
    let mut files: Vec<((u32, u32, String), &Member)> =
        input.members.iter().filter(|m| is_table(m)).filter_map(|m| Some((parse_title(&m.path)?, m))).collect();
    files.sort_by_key(|((panel, number, _), _)| (*panel, *number));
    let (mut all, mut broken) = (Vec::new(), 0);
    for ((_, _, title), member) in &files {
        if job.cancel.is_cancelled() {
            return Err(ImportError::Cancelled { path: input.path.clone() });
        }
        broken += read_cells(&member.path, title, &mut all).map_err(|e| ImportError::damaged(&member.path, "its rows", &e))?;
    }
    let kernels = input.members.iter().find(|m| parse_title(&m.path).is_some_and(|t| (t.0, t.1) == (0, 1)));
    let kernels = kernels.map(|m| read_top_kernels(&m.path)).unwrap_or_default();
    let folder = files.first().and_then(|(_, m)| m.path.parent()).unwrap_or(&input.path);
    let (device, dies) = workload::read_device(folder).unwrap_or_else(|| (Device { maker: Vendor::Amd, ..Device::default() }, 0));
    profile.metrics = Some(Arc::new(build_metrics(&all, &kernels, (&device, dies), &profile)));
    profile.devices = vec![device];
    match &kernels[..] {
        [] => {}
        [one] => add_launch(one, &mut profile),
        all => add_totals(all, &mut profile),
    }
    let text = match &kernels[..] {
        [] => "These tables hold averages over the dispatches of the kernels that were analyzed.".to_owned(),
        [one] => format!(
            "Its {} are one row here: values and duration are their averages.",
            format_count(usize::try_from(one.count).unwrap_or(0), "dispatch")
        ),
        all => format!(
            "These tables hold averages over all {}: no hint can be given for one of them. `warpscope metrics` lists them.",
            format_count(all.len(), "kernel")
        ),
    };
    let mut note = Note::new(if kernels.len() > 1 { Severity::Warning } else { Severity::Info }, NoteKind::Guess, text);
    if kernels.len() > 1 {
        note = note.with_fix("open the workload folder with its pmc_perf.csv, or analyze one kernel with `-k`");
    }
    profile.notes.push(note);
    if broken > 0 {
        let text = format!("{} of these tables could not be understood; the rest is shown.", format_count(broken as usize, "row"));
        profile.notes.push(Note::new(Severity::Warning, NoteKind::Damaged, text));
    }
    Ok(profile)
}

/// Adds a launch for the only kernel, with its mean duration; the result belongs to this launch.
fn add_launch(one: &Top, profile: &mut Profile) {
    let mut columns = LaunchColumns::default();
    let mut durations = TimesBuilder::default();
    columns.start.push(0);
    durations.push(Some(one.mean as i64));
    columns.kernel.push(0);
    columns.duration = durations;
    profile.launches = Launches::new(columns);
    profile.kernels.push(parse_kernel(&one.name));
    profile.places = vec![LaunchSite { device: Some(0), ordinal: Some(0), ..LaunchSite::default() }];
    let result = profile.metrics.as_ref().and_then(|m| m.results.first());
    let (grid, block) = result.map_or((None, None), |r| (r.grid, r.block));
    profile.configs = vec![LaunchConfig { grid, block, ..LaunchConfig::default() }];
    profile.launches.set_details(vec![0], vec![0], vec![NO_NODE], Vec::new());
    profile.order = LaunchOrder::Chosen;
}

fn add_totals(kernels: &[Top], profile: &mut Profile) {
    for k in kernels {
        profile.totals.push(KernelTotal {
            kernel: KernelId(u32::try_from(profile.kernels.len()).unwrap_or(u32::MAX)),
            count: k.count,
            total: Nanos(k.total as i64),
            min: Nanos(k.mean as i64),
            max: Nanos(k.mean as i64),
            median_ns: k.median,
            stddev_ns: None,
        });
        profile.kernels.push(parse_kernel(&k.name));
    }
    let text = "The table of kernels has no shortest and no longest dispatch: the average stands for both.";
    profile.notes.push(Note::new(Severity::Info, NoteKind::Guess, text));
}

fn parse_kernel(name: &str) -> Kernel {
    let mangled = name.starts_with("_Z").then(|| name.into());
    Kernel { function: Some(function_of(name).into()), demangled: Some(name.into()), mangled, ..Kernel::default() }
}

/// Builds one result that contains every cell, named `Table: Metric (Column)`.
fn build_metrics(all: &[Owned], kernels: &[Top], (device, dies): (&Device, u32), profile: &Profile) -> Metrics {
    let mut out = Metrics { source: profile.source.clone(), ..Metrics::default() };
    let mut values: Vec<(u32, Value)> = Vec::new();
    let mut taken: FxHashMap<String, u32> = FxHashMap::default();
    let mut add = |name: String, unit: &str, value: Value, out: &mut Metrics| {
        let again = taken.entry(name.clone()).and_modify(|n| *n += 1).or_insert(1);
        let name = if *again > 1 { format!("{name} #{again}") } else { name };
        values.push((u32::try_from(out.names.len()).unwrap_or(u32::MAX), value));
        out.names.push(Arc::from(name));
        out.units.push(Arc::from(unit));
    };
    for c in all {
        let name = format!("{}: {}", c.table, c.metric);
        let percent = c.which.starts_with("Pct");
        add(
            if is_value_column(&c.which) { name } else { format!("{name} ({})", c.which) },
            if percent { "%" } else { &c.unit },
            Value::Float(c.value),
            &mut out,
        );
    }
    let borrowed: Vec<Cell<'_>> =
        all.iter().map(|c| Cell { table: &c.table, metric: &c.metric, which: &c.which, unit: &c.unit, value: c.value }).collect();
    let one = kernels.len() == 1;
    let (grid, block) = (only_value(&borrowed, "Grid Size"), only_value(&borrowed, "Workgroup Size"));
    // Add the values that rules and rooflines use only if the result covers a single kernel.
    if one {
        for (name, unit, value) in known_values(&borrowed) {
            add(name.to_owned(), unit, Value::Float(value), &mut out);
        }
        for (name, unit, value) in super::counters::agent_facts(device, dies) {
            add(name.to_owned(), unit, value, &mut out);
        }
    }
    let name = match kernels {
        [] => Kernel { function: Some("kernel".into()), ..Kernel::default() },
        [one] => parse_kernel(&one.name),
        all => Kernel { function: Some(format_count(all.len(), "kernel").into()), ..Kernel::default() },
    };
    out.results = vec![ResultMetrics {
        kind: if kernels.len() > 1 { ResultKind::Range } else { ResultKind::Kernel },
        kernel: name,
        device: Some(0),
        grid: grid.zip(block).filter(|_| one).map(|(grid, block)| [grid.div_ceil(block), 1, 1]),
        block: block.filter(|_| one).map(|b| [b, 1, 1]),
        ..ResultMetrics::from_values(values)
    }];
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_known_by_their_names() {
        let of = |name: &str| parse_title(Path::new(name));
        assert_eq!(of("d/2.1_Speed-of-Light.csv"), Some((2, 1, "System Speed-of-Light".to_owned())));
        assert_eq!(of("16.2_L1D_Cache_Stalls_(%).csv"), Some((16, 2, "L1D Cache Stalls (%)".to_owned())));
        assert_eq!((of("1.1.csv"), of("pmc_perf.csv"), of("x_1.csv")), (None, None, None));
    }
}
