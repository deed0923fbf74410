//! Builds a profile from an ncu report. Such a report has no timeline, so each result becomes a launch with the
//! duration that ncu measured.

use super::details::read_details;
use super::{is_report, read_input, session, source};
use crate::import::importer::{Fact, KernelData};
use crate::import::{Cancel, ImportError, Importer, Input, Job};
use crate::model::metrics::IN_PLACE;
use crate::model::units::format_count;
use crate::model::{
    Bytes, Capture, Code, Details, Device, Kernel, LaunchColumns, LaunchConfig, LaunchOrder, LaunchSite, Launches, Metrics, Note, NoteKind,
    Process, Profile, ResultMetrics, Severity, Value, argv,
};
use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::Hash;
use std::path::PathBuf;
use std::sync::Arc;

pub struct Ncu;

impl Importer for Ncu {
    fn name(&self) -> &'static str {
        "Nsight Compute reports, CSV and text"
    }

    fn files(&self) -> &'static [&'static str] {
        &[".ncu-rep", "`ncu`"]
    }

    fn suffixes(&self) -> &'static [&'static str] {
        &[".ncu-rep", ".csv"]
    }

    fn knows(&self, input: &Input) -> bool {
        if is_report(input) {
            return true;
        }
        let head = String::from_utf8_lossy(&input.head);
        let has = |w: &str| head.contains(w);
        !input.head.contains(&0)
            && (has("\"ID\",\"Process ID\"")
                || has("ID,Process ID")
                || has("==PROF==")
                || has("==ERROR==")
                || has("Metric Name") && has(", Context "))
    }

    fn read(&self, input: &Input, job: &Job<'_>) -> Result<Profile, ImportError> {
        Ok(build_profile(read_input(input, job, None)?))
    }

    fn kernel_data(&self, input: &Input) -> KernelData {
        if is_report(input) { KernelData::Sections } else { KernelData::Metrics }
    }

    fn read_details(&self, input: &Input, metrics: &Metrics, result: usize) -> Result<Details, ImportError> {
        match metrics.results.get(result) {
            Some(of) if of.place.is_some() => read_details(input, of),
            // Text reports have no further details.
            _ => Ok(Details::default()),
        }
    }

    fn read_code(
        &self,
        input: &Input,
        metrics: &Metrics,
        result: usize,
        details: Option<&Details>,
        disassemblers: &[PathBuf],
        cancel: &Cancel,
    ) -> Result<Code, ImportError> {
        let Some(of) = metrics.results.get(result).filter(|r| r.place.is_some()) else {
            let remark = "this result was read from text, which has no code: open the .ncu-rep".to_owned();
            return Ok(Code { remarks: vec![remark], ..Code::default() });
        };
        let details = details.map_or_else(|| read_details(input, of).map(Cow::Owned), |d| Ok(Cow::Borrowed(d)))?;
        source::read_code(input, metrics, result, &details, disassemblers, cancel)
    }

    fn read_session(&self, input: &Input) -> Result<Vec<Fact>, ImportError> {
        if !is_report(input) {
            return Err(ImportError::refused(&input.path, "text has no session information", "name the .ncu-rep"));
        }
        session::read_facts(input)
    }
}

/// Interns values, numbered in order of first appearance.
struct Table<T> {
    ids: HashMap<T, u32>,
    list: Vec<T>,
}

impl<T: Clone + Eq + Hash> Table<T> {
    fn new() -> Self {
        Self { ids: HashMap::new(), list: Vec::new() }
    }

    fn intern_value(&mut self, value: T) -> u32 {
        if let Some(&id) = self.ids.get(&value) {
            return id;
        }
        let id = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        self.ids.insert(value.clone(), id);
        self.list.push(value);
        id
    }
}

/// Builds a profile with one launch per result.
pub fn build_profile(metrics: Metrics) -> Profile {
    let mut profile = Profile::new(metrics.source.clone());
    let (mut kernels, mut configs, mut places) = (Table::<Kernel>::new(), Table::<LaunchConfig>::new(), Table::<LaunchSite>::new());
    let mut columns = LaunchColumns::default();
    let (mut config, mut place) = (Vec::new(), Vec::new());
    let (mut untimed, mut failed) = (0_u64, 0_u64);
    for result in &metrics.results {
        let duration = metrics.duration(result);
        untimed += u64::from(duration.is_none() && !result.failed);
        failed += u64::from(result.failed);
        columns.duration.push(duration.map(|d| d.0));
        columns.kernel.push(kernels.intern_value(result.kernel.clone()));
        config.push(configs.intern_value(config_of(&metrics, result)));
        let device = device_index(&mut profile.devices, &metrics, result);
        let small = |n: Option<u64>| n.and_then(|n| u32::try_from(n).ok());
        place.push(places.intern_value(LaunchSite {
            pid: result.pid,
            device,
            ordinal: small(result.device),
            context: small(result.context),
            stream: small(result.stream),
            thread: None,
        }));
    }
    (profile.kernels, profile.configs, profile.places) = (kernels.list, configs.list, places.list);
    let mut pids: Vec<u32> = profile.places.iter().filter_map(|p| p.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    profile.processes = pids.into_iter().map(|pid| Process { pid, ..Process::default() }).collect();
    profile.launches = Launches::new(columns);
    profile.launches.set_details(config, place, Vec::new(), Vec::new());
    let line = argv::parse_command_line(&metrics.tool_argv);
    profile.order = if line.as_ref().is_some_and(|l| !l.filters_launches()) { LaunchOrder::Host } else { LaunchOrder::Chosen };
    let named = !metrics.program.is_empty();
    let program = if named { Some(metrics.program.clone()) } else { line.map(|l| l.program) };
    profile.notes.clone_from(&metrics.notes);
    if let (false, Some(_)) = (named, &program) {
        let text = "The program is taken from ncu's command line, which is stored without quotes: an argument with a space in it appears as two here.";
        profile.notes.push(Note::new(Severity::Info, NoteKind::Guess, text));
    }
    profile.capture = Capture { argv: program.unwrap_or_default(), directory: metrics.directory.clone(), ..Capture::default() };
    add_notes(&mut profile, &metrics, untimed, failed);
    profile.metrics = Some(Arc::new(metrics));
    profile
}

fn add_notes(profile: &mut Profile, metrics: &Metrics, untimed: u64, failed: u64) {
    let fix = "profile again with a section that collects it: `--section SpeedOfLight`, or `--metrics gpu__time_duration.sum`";
    let notes = &mut profile.notes;
    if metrics.results.is_empty() {
        let text = "The report has no results: ncu profiled no launch.";
        let fix = "check its filters (--kernel-name, --launch-skip, --launch-count) and that the program uses the GPU at all";
        notes.push(Note::new(Severity::Error, NoteKind::Empty, text).with_fix(fix));
        return;
    }
    if failed > 0 {
        let text = format!("{} could not be profiled: ncu got neither its configuration nor any counter.", format_count(failed, "launch"));
        let fix = "look for ncu's message in its output; a launch that fails in the program fails here, too: check its error, or use compute-sanitizer";
        notes.push(Note::new(Severity::Error, NoteKind::Tool, text).with_fix(fix));
    }
    if untimed > 0 && metrics.source.tool != IN_PLACE {
        let text =
            format!("{} without a duration: it was not collected, and is shown as zero in the table.", format_count(untimed, "result"));
        notes.push(Note::new(Severity::Warning, NoteKind::Guess, text).with_fix(fix));
    }
    // The notes below apply only to ncu; the tracer adds its own.
    if metrics.source.tool == IN_PLACE {
        return;
    }
    let locked = metrics.results.iter().any(|r| r.clocks_locked == Some(true));
    let clocks = if locked { "with clocks locked to base" } else { "with clocks not locked" };
    let text = format!(
        "Durations are ncu's: each launch alone on the GPU, {clocks}, caches flushed unless told otherwise. They differ from a run without a profiler."
    );
    notes.push(Note::new(Severity::Info, NoteKind::Tool, text));
}

fn config_of(metrics: &Metrics, result: &ResultMetrics) -> LaunchConfig {
    let number = |name: &str| metrics.integer(result, name);
    let small = |name: &str| number(name).and_then(|n| u32::try_from(n).ok());
    // A cluster of 0 blocks means that there is no cluster.
    let cluster = match ["x", "y", "z"].map(|d| small(&format!("launch__cluster_dim_{d}"))) {
        [Some(x), Some(y), Some(z)] if x > 0 => Some([x, y.max(1), z.max(1)]),
        _ => None,
    };
    LaunchConfig {
        grid: result.grid,
        block: result.block,
        registers: small("launch__registers_per_thread"),
        static_shared: number("launch__shared_mem_per_block_static").map(Bytes),
        dynamic_shared: number("launch__shared_mem_per_block_dynamic").map(Bytes),
        shared_carveout: number("launch__shared_mem_config_size").map(Bytes),
        local_per_thread: None,
        cluster,
        cooperative: false,
    }
}

/// Returns the index of the result's device in `devices`, adding the device if needed.
fn device_index(devices: &mut Vec<Device>, metrics: &Metrics, result: &ResultMetrics) -> Option<u32> {
    let id = u32::try_from(result.device?).ok()?;
    if let Some(at) = devices.iter().position(|d| d.id == id) {
        return u32::try_from(at).ok();
    }
    let attribute = |name: &str| metrics.integer(result, &format!("device__attribute_{name}"));
    let small = |name: &str| attribute(name).and_then(|n| u32::try_from(n).ok());
    let name = match metrics.value(result, "device__attribute_display_name") {
        Some(Value::Text(t)) => Some(t.to_string()),
        _ => None,
    };
    // The clock is in kHz, and memory transfers data twice per cycle.
    let bandwidth = attribute("memory_clock_rate")
        .zip(attribute("global_memory_bus_width"))
        .map(|(khz, bits)| khz.saturating_mul(1_000).saturating_mul(2).saturating_mul(bits) / 8);
    devices.push(Device {
        maker: crate::model::Vendor::Nvidia,
        id,
        name,
        chip: None,
        bus: None,
        arch: None,
        compute_capability: result.compute_capability.and_then(|(a, b)| Some((u32::try_from(a).ok()?, u32::try_from(b).ok()?))),
        sm_count: small("multiprocessor_count"),
        clock_hz: attribute("clock_rate").map(|khz| khz.saturating_mul(1_000)),
        memory_bandwidth: bandwidth.filter(|&b| b > 0),
        memory: attribute("total_memory").map(Bytes),
        l2: attribute("l2_cache_size").map(Bytes),
        warp_size: small("warp_size"),
        max_warps_per_sm: small("max_warps_per_multiprocessor"),
        max_blocks_per_sm: small("max_blocks_per_multiprocessor").or_else(|| small("limits_max_cta_per_sm")),
        registers_per_sm: small("max_registers_per_multiprocessor"),
        registers_per_block: small("max_registers_per_block"),
        shared_per_sm: attribute("max_shared_memory_per_multiprocessor").map(Bytes),
        shared_per_block: attribute("max_shared_memory_per_block_optin").map(Bytes),
        max_threads_per_block: small("max_threads_per_block"),
    });
    u32::try_from(devices.len() - 1).ok()
}
