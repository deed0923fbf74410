//! Reads the kernel table in two passes: first names and times, to display something early, then the other columns.

use super::intern::{Interner, renumber_column};
use super::strings::Strings;
use crate::import::sqlite::db::Db;
use crate::import::sqlite::rowid_table::DURATION;
use crate::import::sqlite::scan::{self, CHUNK, Layout, NULL};
use crate::import::{ImportError, Job, Names, Parts, Preview, Progress};
use crate::model::launches::{NO_NODE, TimesBuilder};
use crate::model::{Bytes, Kernel, LaunchColumns, LaunchConfig, Launches};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Table of kernel launches.
pub const KERNEL: &str = "CUPTI_ACTIVITY_KIND_KERNEL";
/// Interval between previews of the growing table.
const PREVIEW_EVERY: Duration = Duration::from_millis(60);
/// Correlation id of launches that have none, or none that fits into 32 bits.
pub const NO_CORRELATION: u32 = u32::MAX;

/// Result of the first pass.
pub struct FirstPass {
    /// Launches with start, duration and kernel, in file order.
    pub launches: Launches,
    /// Kernels, in the order of their first launches.
    pub kernels: Vec<Kernel>,
    /// Division of the kernel table into chunks, for the second pass.
    pub layout: Layout,
}

type NameIds = [i64; 3];

/// Slices that receive the rows of one chunk.
struct Slot<'a> {
    start: &'a mut [i64],
    duration: &'a mut [u32],
    kernel: &'a mut [u32],
    filled: usize,
}

/// State of one thread in the first pass.
struct Reader<'a> {
    names: super::intern::Local<'a, NameIds>,
    wide: Vec<(usize, usize, i64)>,
    totals: Vec<(u64, i64)>,
}

/// Reads the start, duration and kernel of every launch.
pub fn first_pass(db: &Db, job: &Job<'_>, strings: &mut Strings<'_>) -> Result<FirstPass, ImportError> {
    let starts = job.wants.has_parts(Parts::STARTS) || job.wants.has_parts(Parts::DETAILS);
    if job.wants.names == Names::Demangled && db.has_column(KERNEL, "demangledName") {
        let pass = if starts {
            read_names(db, job, strings, ["start", "end", "demangledName"], |row: &[i64; 3]| [row[2], NULL, NULL])?
        } else {
            read_names(db, job, strings, [DURATION, "demangledName"], |row: &[i64; 2]| [row[1], NULL, NULL])?
        };
        // If any launch has no demangled name, read the other names as well.
        if pass.kernels.iter().all(|k| k.demangled.is_some()) {
            return Ok(pass);
        }
    }
    if starts {
        read_names(db, job, strings, ["start", "end", "demangledName", "shortName", "mangledName"], |row: &[i64; 5]| {
            [row[2], row[3], row[4]]
        })
    } else {
        read_names(db, job, strings, [DURATION, "demangledName", "shortName", "mangledName"], |row: &[i64; 4]| [row[1], row[2], row[3]])
    }
}

fn read_names<const N: usize>(
    db: &Db,
    job: &Job<'_>,
    strings: &mut Strings<'_>,
    columns: [&str; N],
    name_ids: fn(&[i64; N]) -> NameIds,
) -> Result<FirstPass, ImportError> {
    for needed in ["start", "end"] {
        if !db.has_column(KERNEL, needed) {
            return Err(ImportError::damaged(db.path(), KERNEL, format!("no column `{needed}`")));
        }
    }
    let layout = scan::find_layout(db, KERNEL)?;
    if u32::try_from(layout.rows).is_err() {
        return Err(ImportError::refused(
            db.path(),
            "more than 4 billion kernel launches",
            "export a part of it with `nsys export --times`",
        ));
    }
    let with_starts = columns[0] != DURATION;
    let mut start = vec![0_i64; if with_starts { layout.rows } else { 0 }];
    let (mut duration, mut kernel) = (vec![0_u32; layout.rows], vec![0_u32; layout.rows]);
    let slots: Vec<Mutex<Slot<'_>>> = start
        .chunks_mut(CHUNK)
        .chain(std::iter::repeat_with(Default::default))
        .zip(duration.chunks_mut(CHUNK))
        .zip(kernel.chunks_mut(CHUNK))
        .map(|((start, duration), kernel)| Mutex::new(Slot { start, duration, kernel, filled: 0 }))
        .collect();
    let names = Interner::<NameIds>::default();
    let preview = job.staged.then(|| Mutex::new(Totals::new(strings)));
    let readers = scan::scan_integers(
        db,
        KERNEL,
        columns,
        ("kernels", layout),
        job,
        || Reader { names: names.local_view(), wide: Vec::new(), totals: Vec::new() },
        |reader, chunk, rows| {
            let Some(slot) = slots.get(chunk) else {
                return Ok(());
            };
            let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
            let slot = &mut *slot;
            for (i, (row, (duration, kernel))) in rows.iter().zip(slot.duration.iter_mut().zip(slot.kernel.iter_mut())).enumerate() {
                let from = row[0];
                let length = if with_starts { row[1].saturating_sub(from) } else { from };
                // The duration is unknown if there is no start, or if the end precedes the start.
                let known = length >= 0 && from != NULL;
                if let Some(start) = slot.start.get_mut(i) {
                    *start = if from == NULL { 0 } else { from };
                }
                let (short, long) = TimesBuilder::squeeze_value(known.then_some(length));
                *duration = short;
                if let Some(long) = long {
                    reader.wide.push((chunk, i, long));
                }
                *kernel = reader.names.intern_value(name_ids(row), (chunk * CHUNK + i) as u64);
                if preview.is_some() {
                    let id = *kernel as usize;
                    if reader.totals.len() <= id {
                        reader.totals.resize(id + 1, (0, 0));
                    }
                    reader.totals[id].0 += 1;
                    reader.totals[id].1 += if known { length } else { 0 };
                }
            }
            slot.filled = check_fits(db, rows.len(), slot.duration.len())?;
            if let Some(preview) = &preview
                && let Ok(mut totals) = preview.try_lock()
            {
                totals.add_sums(&mut reader.totals, &names, job);
            }
            Ok(())
        },
    )?;
    drop(preview);
    let filled: Vec<usize> = slots.into_iter().map(|s| s.into_inner().unwrap_or_else(PoisonError::into_inner).filled).collect();
    let bases = chunk_bases(&filled);
    if with_starts {
        compact_column(&mut start, &filled);
    }
    compact_column(&mut duration, &filled);
    compact_column(&mut kernel, &filled);
    let wide: BTreeMap<u32, i64> = readers
        .iter()
        .flat_map(|r| &r.wide)
        .filter_map(|&(chunk, i, value)| Some((u32::try_from(bases.get(chunk)? + i).ok()?, value)))
        .collect();
    let (keys, place) = names.finish();
    let (kernels, merged) = resolve_names(&keys, strings);
    let place: Vec<u32> = place.iter().map(|&p| merged.get(p as usize).copied().unwrap_or(p)).collect();
    renumber_column(&mut kernel, &place);
    Ok(FirstPass {
        launches: Launches::new(LaunchColumns { start, duration: TimesBuilder::from_parts(duration, wide), kernel }),
        kernels,
        layout,
    })
}

/// Returns `rows`, or an error if a chunk has more rows than its range of rowids allows.
fn check_fits(db: &Db, rows: usize, room: usize) -> Result<usize, ImportError> {
    if rows <= room { Ok(rows) } else { Err(ImportError::damaged(db.path(), KERNEL, "more rows than row numbers")) }
}

/// Resolves name ids. Different ids that refer to the same three strings are one kernel, as in `nsys stats`, which
/// groups by string.
fn resolve_names(keys: &[NameIds], strings: &mut Strings<'_>) -> (Vec<Kernel>, Vec<u32>) {
    let mut kernels: Vec<Kernel> = Vec::new();
    let mut ids: HashMap<Kernel, u32> = HashMap::new();
    let merged = keys
        .iter()
        .map(|&[demangled, function, mangled]| {
            let kernel = Kernel {
                function: strings.get(function),
                demangled: strings.get(demangled),
                mangled: strings.get(mangled),
                ..Kernel::default()
            };
            *ids.entry(kernel.clone()).or_insert_with(|| {
                kernels.push(kernel);
                u32::try_from(kernels.len() - 1).unwrap_or(u32::MAX)
            })
        })
        .collect();
    (kernels, merged)
}

/// Totals for the preview table.
struct Totals<'s, 'd> {
    strings: &'s mut Strings<'d>,
    names: Vec<String>,
    sums: Vec<(u64, i64)>,
    shown: Instant,
}

impl<'s, 'd> Totals<'s, 'd> {
    fn new(strings: &'s mut Strings<'d>) -> Self {
        Self { strings, names: Vec::new(), sums: Vec::new(), shown: Instant::now() }
    }

    /// Adds the sums of a thread and resets them; sends a preview if the interval has elapsed.
    fn add_sums(&mut self, sums: &mut [(u64, i64)], names: &Interner<NameIds>, job: &Job<'_>) {
        if self.sums.len() < sums.len() {
            self.sums.resize(sums.len(), (0, 0));
        }
        for (total, sum) in self.sums.iter_mut().zip(sums.iter_mut()) {
            total.0 += sum.0;
            total.1 += sum.1;
            *sum = (0, 0);
        }
        if self.shown.elapsed() < PREVIEW_EVERY {
            return;
        }
        self.shown = Instant::now();
        for [demangled, function, mangled] in names.values_from(self.names.len()) {
            let kernel = Kernel {
                function: self.strings.get(function),
                demangled: self.strings.get(demangled),
                mangled: self.strings.get(mangled),
                ..Kernel::default()
            };
            self.names.push(kernel.function().to_owned());
        }
        let mut by_name: BTreeMap<&str, (u64, i64)> = BTreeMap::new();
        for (name, &(count, total)) in self.names.iter().zip(&self.sums) {
            let row = by_name.entry(name).or_default();
            row.0 += count;
            row.1 += total;
        }
        let mut rows: Vec<_> = by_name.into_iter().map(|(n, (c, t))| (n.to_owned(), c, t)).collect();
        rows.sort_by(|a, b| b.2.cmp(&a.2).then_with(|| a.0.cmp(&b.0)));
        (job.hear)(Progress::Preview(Preview { rows }));
    }
}

/// Result of the second pass: one column per field, in file order.
pub struct SecondPass {
    /// Indices into `configs`.
    pub config: Vec<u32>,
    /// Distinct configurations.
    pub configs: Vec<LaunchConfig>,
    /// Indices into `places`.
    pub place: Vec<u32>,
    /// Distinct combinations of globalPid, deviceId, contextId and streamId.
    pub places: Vec<[i64; 4]>,
    /// Indices into `nodes`, or `NO_NODE`; empty if no launch is a graph node.
    pub node: Vec<u32>,
    /// Distinct graph nodes.
    pub nodes: Vec<u64>,
    /// Correlation ids, or `NO_CORRELATION`.
    pub correlation: Vec<u32>,
}

const DETAILS: [&str; 21] = [
    "globalPid",
    "deviceId",
    "contextId",
    "streamId",
    "correlationId",
    "graphNodeId",
    "gridX",
    "gridY",
    "gridZ",
    "blockX",
    "blockY",
    "blockZ",
    "registersPerThread",
    "staticSharedMemory",
    "dynamicSharedMemory",
    "sharedMemoryExecuted",
    "localMemoryPerThread",
    "launchType",
    "clusterX",
    "clusterY",
    "clusterZ",
];
type ConfigKey = [i64; 15];

struct DetailSlot<'a> {
    config: &'a mut [u32],
    place: &'a mut [u32],
    node: &'a mut [u32],
    correlation: &'a mut [u32],
    filled: usize,
}

/// Reads the configuration, place, graph node and correlation id of every launch.
pub fn second_pass(db: &Db, job: &Job<'_>, layout: Layout) -> Result<SecondPass, ImportError> {
    let empty = || vec![0_u32; layout.rows];
    let (mut config, mut place, mut node, mut correlation) = (empty(), empty(), empty(), empty());
    let slots: Vec<Mutex<DetailSlot<'_>>> = config
        .chunks_mut(CHUNK)
        .zip(place.chunks_mut(CHUNK))
        .zip(node.chunks_mut(CHUNK).zip(correlation.chunks_mut(CHUNK)))
        .map(|((config, place), (node, correlation))| Mutex::new(DetailSlot { config, place, node, correlation, filled: 0 }))
        .collect();
    let (configs, places, nodes) = (Interner::<ConfigKey>::default(), Interner::<[i64; 4]>::default(), Interner::<i64>::default());
    scan::scan_integers(
        db,
        KERNEL,
        DETAILS,
        ("launch configurations", layout),
        job,
        || (configs.local_view(), places.local_view(), nodes.local_view()),
        |(configs, places, nodes), chunk, rows| {
            let Some(slot) = slots.get(chunk) else {
                return Ok(());
            };
            let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
            let slot = &mut *slot;
            let out = slot.config.iter_mut().zip(slot.place.iter_mut()).zip(slot.node.iter_mut().zip(slot.correlation.iter_mut()));
            for (i, (row, ((config, place), (node, correlation)))) in rows.iter().zip(out).enumerate() {
                let position = (chunk * CHUNK + i) as u64;
                *config = configs.intern_value(std::array::from_fn(|k| row[6 + k]), position);
                *place = places.intern_value([row[0], row[1], row[2], row[3]], position);
                *node = if row[5] == NULL { NO_NODE } else { nodes.intern_value(row[5], position) };
                *correlation = u32::try_from(row[4]).unwrap_or(NO_CORRELATION);
            }
            slot.filled = check_fits(db, rows.len(), slot.config.len())?;
            Ok(())
        },
    )?;
    let filled: Vec<usize> = slots.into_iter().map(|s| s.into_inner().unwrap_or_else(PoisonError::into_inner).filled).collect();
    for column in [&mut config, &mut place, &mut node, &mut correlation] {
        compact_column(column, &filled);
    }
    let (config_keys, order) = configs.finish();
    renumber_column(&mut config, &order);
    let (places, order) = places.finish();
    renumber_column(&mut place, &order);
    let (node_ids, order) = nodes.finish();
    if node_ids.is_empty() {
        node = Vec::new();
    } else {
        // NO_NODE is not an index into the table, so it stays unchanged.
        renumber_column(&mut node, &order);
    }
    let nodes = node_ids.iter().map(|&n| n.cast_unsigned()).collect();
    Ok(SecondPass { config, configs: config_keys.iter().map(config_of).collect(), place, places, node, nodes, correlation })
}

fn config_of(key: &ConfigKey) -> LaunchConfig {
    let number = |i: usize| u32::try_from(key[i]).ok();
    let bytes = |i: usize| u64::try_from(key[i]).ok().map(Bytes);
    let dims = |i: usize| Some([number(i)?, number(i + 1)?, number(i + 2)?]);
    LaunchConfig {
        grid: dims(0),
        block: dims(3),
        registers: number(6),
        static_shared: bytes(7),
        dynamic_shared: bytes(8),
        shared_carveout: bytes(9).filter(|b| b.0 > 0),
        local_per_thread: bytes(10),
        // launchType 2 and 3 are cooperative launches on one device and on several devices.
        cooperative: matches!(key[11], 2 | 3),
        cluster: dims(12).filter(|c| c.iter().all(|&n| n > 0)),
    }
}

/// Returns the first row of each chunk after compaction.
fn chunk_bases(filled: &[usize]) -> Vec<usize> {
    filled
        .iter()
        .scan(0, |at, &n| {
            let base = *at;
            *at += n;
            Some(base)
        })
        .collect()
}

/// Removes unused rows at the end of chunks, which are due to deleted rows.
fn compact_column<T: Copy>(column: &mut Vec<T>, filled: &[usize]) {
    let mut to = 0;
    for (chunk, &n) in filled.iter().enumerate() {
        let from = chunk * CHUNK;
        if from != to {
            column.copy_within(from..from + n, to);
        }
        to += n;
    }
    column.truncate(to);
}
