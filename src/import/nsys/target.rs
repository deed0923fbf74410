//! Reads the machine, processes and capture settings from an export.
//!
//! The tables also contain environment variables, which are not read because they may be private.

use super::note_damage;
use crate::import::ImportError;
use crate::import::sqlite::db::Db;
use crate::model::{Bytes, Capture, CaptureRange, Clock, Device, GraphMode, Nanos, Note, Process, Vendor};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub struct Target {
    /// GPUs by id.
    pub devices: Vec<Device>,
    pub capture: Capture,
    /// Capture options by name, excluding the environment.
    pub options: BTreeMap<String, String>,
    /// Requested event types (`Cuda`, `NvtxEvents` …).
    pub event_types: Vec<String>,
    /// Version of the tool that made the export, such as `2025.3.2.0`.
    pub exporter: Option<String>,
    /// Schema version, such as `3.20.3`.
    pub schema: Option<String>,
    /// Wall-clock time at time 0 of the session.
    pub clock: Clock,
    pub host: Option<String>,
    /// Index into `devices` by process and CUDA ordinal.
    by_process: BTreeMap<(u32, u32), u32>,
    /// Index into `devices` by CUDA ordinal, for ordinals that refer to the same GPU in all processes.
    by_ordinal: BTreeMap<u32, u32>,
    names: BTreeMap<u32, String>,
}

const GPU: [&str; 19] = [
    "id",
    "name",
    "chipName",
    "busLocation",
    "computeMajor",
    "computeMinor",
    "smCount",
    "clockRate",
    "memoryBandwidth",
    "totalMemory",
    "l2CacheSize",
    "threadsPerWarp",
    "maxWarpsPerSm",
    "maxBlocksPerSm",
    "maxRegistersPerSm",
    "maxRegistersPerBlock",
    "maxShmemPerSm",
    "maxShmemPerBlockOptin",
    "maxThreadsPerBlock",
];

impl Target {
    /// Reads these small tables. The ranking does not need them, so damage merely adds a note.
    pub fn read(db: &Db, notes: &mut Vec<Note>) -> Result<Self, ImportError> {
        let mut target = Self::default();
        let devices = target.read_devices(db);
        note_damage(notes, devices)?;
        let meta = target.read_meta(db);
        note_damage(notes, meta)?;
        for row in note_damage(notes, db.read_rows("TARGET_INFO_SESSION_START_TIME", &["utcEpochNs"]))? {
            target.clock.epoch_ns = row.first().and_then(Option::as_deref).and_then(|t| t.parse().ok());
        }
        for row in note_damage(notes, db.read_rows("TARGET_INFO_SYSTEM_ENV", &["name", "value"]))? {
            if let [Some(name), Some(value)] = &row[..]
                && name == "Hostname"
            {
                target.host = Some(value.clone()).filter(|v| !v.is_empty());
            }
        }
        for row in note_damage(notes, db.read_rows("PROCESSES", &["pid", "name"]))? {
            if let [Some(pid), Some(name)] = &row[..]
                && let Ok(pid) = pid.parse()
            {
                target.names.entry(pid).or_insert_with(|| name.clone());
            }
        }
        Ok(target)
    }

    fn read_devices(&mut self, db: &Db) -> Result<(), ImportError> {
        let mut ordinals = Vec::new();
        for row in db.read_rows("TARGET_INFO_GPU", &[&GPU[..], &["cuDevice"]].concat())? {
            let text = |i: usize| row.get(i).and_then(Clone::clone).filter(|t| !t.is_empty());
            // Zero means that the driver did not report the limit.
            let number = |i: usize| text(i).and_then(|t| t.parse::<u64>().ok()).filter(|&n| n > 0);
            let small = |i: usize| number(i).and_then(|n| u32::try_from(n).ok());
            let id = text(0).and_then(|t| t.parse().ok()).unwrap_or_else(|| u32::try_from(self.devices.len()).unwrap_or(0));
            ordinals.push((text(19).and_then(|t| t.parse::<u32>().ok()), id));
            self.devices.push(Device {
                maker: Vendor::Nvidia,
                id,
                name: text(1),
                chip: text(2),
                bus: text(3),
                arch: None,
                compute_capability: small(4).map(|major| (major, text(5).and_then(|t| t.parse().ok()).unwrap_or(0))),
                sm_count: small(6),
                clock_hz: number(7),
                memory_bandwidth: number(8),
                memory: number(9).map(Bytes),
                l2: number(10).map(Bytes),
                warp_size: small(11),
                max_warps_per_sm: small(12),
                max_blocks_per_sm: small(13),
                registers_per_sm: small(14),
                registers_per_block: small(15),
                shared_per_sm: number(16).map(Bytes),
                shared_per_block: number(17).map(Bytes),
                max_threads_per_block: small(18),
            });
        }
        self.devices.sort_by_key(|d| d.id);
        let places: FxHashMap<u32, u32> = (0..).zip(&self.devices).map(|(at, d)| (d.id, at)).collect();
        let index = |id: u32| places.get(&id).copied();
        for (ordinal, id) in ordinals {
            if let (Some(ordinal), Some(at)) = (ordinal, index(id)) {
                self.by_ordinal.insert(ordinal, at);
            }
        }
        for row in db.read_rows("TARGET_INFO_CUDA_DEVICE", &["gpuId", "cudaId", "pid"])? {
            let number = |i: usize| row.get(i).and_then(Option::as_deref).and_then(|t| t.parse::<u32>().ok());
            if let (Some(gpu), Some(ordinal), Some(pid)) = (number(0), number(1), number(2))
                && let Some(at) = index(gpu)
            {
                self.by_process.insert((pid, ordinal), at);
            }
        }
        Ok(())
    }

    fn read_meta(&mut self, db: &Db) -> Result<(), ImportError> {
        // The table was called EXPORT_META_DATA up to schema 3.1 (nsys 2023.2).
        for table in ["META_DATA_EXPORT", "EXPORT_META_DATA"] {
            for row in db.read_rows(table, &["name", "value"])? {
                match (row.first().and_then(Option::as_deref), row.get(1).and_then(Clone::clone)) {
                    (Some("EXPORT_PRODUCT_VERSION"), value) => self.exporter = value,
                    (Some("EXPORT_SCHEMA_VERSION"), value) => self.schema = value,
                    _ => {}
                }
            }
        }
        let mut arguments: BTreeMap<usize, String> = BTreeMap::new();
        let mut command = None;
        for row in db.rows_without("META_DATA_CAPTURE", ["name", "value"], "ENVIRONMENT")? {
            let [Some(name), value] = &row[..] else {
                continue;
            };
            let value = value.clone().unwrap_or_default();
            if let Some(n) = name.strip_prefix("PROCESS_0:ARGUMENT_") {
                if let Ok(n) = n.parse() {
                    arguments.insert(n, value);
                }
            } else if name == "PROCESS_0:COMMAND" {
                command = Some(value).filter(|v| !v.is_empty());
            } else if name == "PROCESS_0:WORKING_DIR" {
                self.capture.directory = Some(value).filter(|v| !v.is_empty());
            } else if name == "CAPTURE_EVENT_TYPE" {
                self.event_types.push(value);
            } else {
                self.options.insert(name.clone(), value);
            }
        }
        self.capture.argv = command.into_iter().chain(arguments.into_values()).collect();
        self.capture.graphs = match self.capture_option("CUDA_GRAPH_TRACE_OPTIONS:MODE") {
            Some("Graph") => Some(GraphMode::Graph),
            Some("Node") => Some(GraphMode::Node),
            _ => None,
        };
        let delay = self.options.get("START_DELAY_MS").and_then(|v| v.parse::<i64>().ok()).filter(|&ms| ms > 0);
        let manual = self.options.get("START_TRIGGER").is_some_and(|t| t == "Manual").then_some(CaptureRange::Late);
        self.capture.gate = delay.map(|ms| CaptureRange::Delay(Nanos(ms.saturating_mul(1_000_000)))).or(manual);
        Ok(())
    }

    /// Returns a capture option of the profiled process.
    pub fn capture_option(&self, name: &str) -> Option<&str> {
        self.options.get(&format!("PROCESS_0:{name}")).map(String::as_str)
    }

    /// Returns the index of the GPU with this device ordinal in a process.
    pub fn gpu_of(&self, pid: Option<u32>, ordinal: Option<u32>) -> Option<u32> {
        let ordinal = ordinal?;
        let exact = pid.and_then(|p| self.by_process.get(&(p, ordinal))).or_else(|| self.by_ordinal.get(&ordinal));
        exact.copied().or((self.devices.len() == 1).then_some(0))
    }

    /// Returns a process, with its name if it is in the report.
    pub fn process_info(&self, pid: u32) -> Process {
        Process { pid, name: self.names.get(&pid).cloned().filter(|n| !n.is_empty()), rank: None }
    }
}
