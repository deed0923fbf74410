//! Source lines and instructions of a result, hottest first by PC samples, with stall reasons and counters.

use crate::model::code::Code;
use crate::model::sections::InstanceKey;
use crate::model::{Details, Metrics};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Counters of one line or instruction; `None` if not collected.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Warp samples at this location.
    pub samples: f64,
    /// Executions, counted per warp.
    pub executed: Option<f64>,
    /// Executions, counted per thread.
    pub threads: Option<f64>,
    /// L2 sectors beyond what coalesced accesses need.
    pub excess_l2: Option<f64>,
    /// Shared-memory wavefronts beyond what conflict-free accesses need.
    pub excess_shared: Option<f64>,
    /// Samples by stall reason, largest first.
    pub stalls: Vec<(Arc<str>, f64)>,
}

impl Counts {
    fn add_counts(&mut self, other: &Self) {
        self.samples += other.samples;
        let pairs = [
            (&mut self.executed, other.executed),
            (&mut self.threads, other.threads),
            (&mut self.excess_l2, other.excess_l2),
            (&mut self.excess_shared, other.excess_shared),
        ];
        for (sum, more) in pairs {
            *sum = match (*sum, more) {
                (Some(a), Some(b)) => Some(a + b),
                (a, b) => a.or(b),
            };
        }
        for (reason, n) in &other.stalls {
            match self.stalls.iter_mut().find(|s| s.0 == *reason) {
                Some(s) => s.1 += n,
                None => self.stalls.push((reason.clone(), *n)),
            }
        }
    }

    fn sort_stalls(&mut self) {
        self.stalls.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    }

    /// Returns the most frequent stall reason and its share of these samples in percent; warps that issued do not count
    /// as stalled.
    pub fn top_stall(&self) -> Option<(&Arc<str>, f64)> {
        let (reason, n) = self.stalls.iter().find(|s| !matches!(&*s.0, "selected" | ISSUING))?;
        (self.samples > 0.0).then(|| (reason, n / self.samples * 100.0))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Instruction {
    /// Address during profiling.
    pub address: u64,
    /// Enclosing function and offset from its start.
    pub place: Option<(Arc<str>, u64)>,
    /// Disassembly, if available.
    pub text: Option<Arc<str>>,
    /// File number (index into [`Code::files`] plus one) and line number.
    pub line: Option<(u32, u32)>,
    pub counts: Counts,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// File number: index into [`Code::files`] plus one.
    pub file: u32,
    /// Line, from 1.
    pub line: u32,
    /// File name without its folder.
    pub name: String,
    /// Text of the line, if the source is available.
    pub text: Option<String>,
    /// Totals over the line's instructions.
    pub counts: Counts,
    pub instructions: usize,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    pub lines: Vec<Line>,
    pub instructions: Vec<Instruction>,
    pub samples: f64,
    /// Unit of the samples.
    pub unit: &'static str,
    /// Notes on missing data, with the reasons.
    pub remarks: Vec<String>,
}

/// The field of [`Counts`] to which a metric's value is added; only the sample count is always present.
enum Counter<'a> {
    Samples(&'a mut f64),
    Other(&'a mut Option<f64>),
}

/// Pseudo stall reason for a wave that is not waiting, in AMD thread traces.
const ISSUING: &str = "issuing";
const STALL: &str = "smsp__pcsamp_warps_issue_stalled_";
/// Prefix of the metrics that count AMD's PC samples by stall reason.
const PC_STALLED: &str = "PC_Stalled: ";

/// Returns true if the results contain instructions of an AMD thread trace.
pub fn has_thread_trace(metrics: &Metrics) -> bool {
    metrics.names.iter().any(|n| matches!(&**n, "Hitcount" | "PC_Issued" | "PC_Samples"))
}

/// Builds the listing, sorted by samples or, if `in_order`, by location.
pub fn build_listing(metrics: &Metrics, result: usize, details: &Details, code: &Code, in_order: bool) -> Listing {
    let mut out = Listing { remarks: code.remarks.clone(), ..Listing::default() };
    out.unit = if has_thread_trace(metrics) && metrics.names.iter().any(|n| &**n == "Latency") { "cycles" } else { "samples" };
    let by_address = if metrics.results.get(result).is_some() { count_by_address(metrics, details) } else { BTreeMap::new() };
    let by_line = list_instructions(&mut out, by_address, code);
    // Split each file into lines only once.
    let texts: Vec<Vec<&str>> = code.files.iter().map(|f| f.text.as_deref().map(|t| t.lines().collect()).unwrap_or_default()).collect();
    for ((file, line), (mut counts, instructions)) in by_line {
        counts.sort_stalls();
        let at = (file as usize).wrapping_sub(1);
        let name = code.files.get(at).map_or_else(|| format!("file {file}"), |f| base_name(&f.name));
        let text = texts.get(at).and_then(|t| t.get((line as usize).wrapping_sub(1))).map(|t| (*t).to_owned());
        out.lines.push(Line { file, line, name, text, counts, instructions });
    }
    if in_order {
        add_context_lines(&mut out.lines, &texts);
        out.lines.sort_by_key(|l| (l.file, l.line));
    } else {
        out.lines.sort_by(|a, b| compare_hotness(&a.counts, &b.counts).then((a.file, a.line).cmp(&(b.file, b.line))));
        out.instructions.sort_by(|a, b| compare_hotness(&a.counts, &b.counts).then(a.address.cmp(&b.address)));
    }
    if out.instructions.is_empty() {
        let totals = metrics.names.iter().any(|n| n.contains("pcsamp"));
        let text = if totals {
            "SourceCounters was collected, but the report has only its totals: the values of single instructions are missing"
        } else {
            "no values of single instructions in this result: collect --section SourceCounters"
        };
        out.remarks.push(text.to_owned());
    } else if out.samples == 0.0 {
        out.remarks.push("no PC samples in this result: ranked by executions".to_owned());
    }
    out
}

/// Field that receives a metric's value; `None` for metrics that are not counters of instructions.
fn field_of(name: &str, is_stall: bool) -> Option<fn(&mut Counts) -> Counter<'_>> {
    Some(match name {
        // Older versions have `group` metrics instead of a count: the reasons add up to the count.
        "smsp__pcsamp_sample_count" | "group:smsp__pcsamp_warp_stall_reasons" => |c| Counter::Samples(&mut c.samples),
        "inst_executed" | "Hitcount" => |c| Counter::Other(&mut c.executed),
        // AMD thread traces count wave cycles at an instruction (`Latency`), the stalled part of those (`Stall`), and
        // idle cycles before the instruction (`Idle`).
        "Latency" | "Stall" | "Idle" | "PC_Samples" | "PC_Issued" | "PC_Stalled" => |c| Counter::Samples(&mut c.samples),
        "thread_inst_executed" => |c| Counter::Other(&mut c.threads),
        "memory_l2_theoretical_sectors_global_excessive" | "derived__memory_l2_theoretical_sectors_global_excessive" => {
            |c| Counter::Other(&mut c.excess_l2)
        }
        "memory_l1_wavefronts_shared_excessive" | "derived__memory_l1_wavefronts_shared_excessive" => {
            |c| Counter::Other(&mut c.excess_shared)
        }
        _ if is_stall => |c| Counter::Samples(&mut c.samples),
        _ => return None,
    })
}

/// Counters of each instruction, by address.
fn count_by_address(metrics: &Metrics, details: &Details) -> BTreeMap<u64, Counts> {
    let mut by_address: BTreeMap<u64, Counts> = BTreeMap::new();
    let counted = metrics.names.iter().any(|n| &**n == "PC_Samples");
    let reasons = metrics.names.iter().any(|n| n.starts_with(PC_STALLED));
    for (id, instances) in &details.instances {
        let Some(name) = metrics.names.get(*id as usize) else { continue };
        let stall = name.strip_prefix(STALL).filter(|s| !s.ends_with("_not_issued")).or_else(|| name.strip_prefix(PC_STALLED));
        let Some(field) = field_of(name, stall.is_some()) else { continue };
        // The stall reason, and true if this metric's values add up to the total number of samples.
        let reason = match (stall, &**name) {
            (Some(reason), _) => Some((reason, false)),
            (None, "Latency" | "PC_Issued") => Some((ISSUING, !counted)),
            (None, "Idle") => Some(("idle", !counted)),
            (None, "PC_Stalled") => Some(("stalled", !counted)),
            (None, "Stall") => Some(("stalled", false)),
            (None, _) => None,
        };
        // The individual stall reasons replace the sum of all.
        let replaced = reasons && &**name == "PC_Stalled";
        for (key, value) in instances {
            let (InstanceKey::Number(address), Some(n)) = (key, value.as_number().filter(|n| n.is_finite())) else { continue };
            let counts = by_address.entry(*address).or_default();
            let Some((reason, adds_up)) = reason else {
                match field(counts) {
                    Counter::Samples(all) => *all = all.max(n),
                    Counter::Other(one) => *one = Some(one.map_or(n, |o| o.max(n))),
                }
                continue;
            };
            if adds_up {
                counts.samples += n;
            }
            if n > 0.0 && !replaced {
                counts.stalls.push((Arc::from(reason), n));
            }
        }
    }
    fill_zeros(&mut by_address);
    by_address
}

/// Sets missing counters to zero if other instructions have them: reports omit zero values of collected metrics.
fn fill_zeros(by_address: &mut BTreeMap<u64, Counts>) {
    let fields: [fn(&mut Counts) -> &mut Option<f64>; 4] =
        [|c| &mut c.executed, |c| &mut c.threads, |c| &mut c.excess_l2, |c| &mut c.excess_shared];
    for field in fields {
        if by_address.values_mut().any(|c| field(c).is_some()) {
            for counts in by_address.values_mut() {
                let slot = field(counts);
                *slot = Some(slot.unwrap_or(0.0));
            }
        }
    }
}

/// Adds the instructions to the listing; returns the counters and the number of instructions of each line, by file and
/// line.
fn list_instructions(out: &mut Listing, by_address: BTreeMap<u64, Counts>, code: &Code) -> HashMap<(u32, u32), (Counts, usize)> {
    let mut by_line: HashMap<(u32, u32), (Counts, usize)> = HashMap::new();
    for (address, mut counts) in by_address {
        if counts.samples == 0.0 {
            // An empty sum is -0.0.
            counts.samples = counts.stalls.iter().fold(0.0, |sum, s| sum + s.1);
        }
        // `Latency` includes the stalled cycles.
        let stalled = counts.stalls.iter().find(|s| &*s.0 == "stalled").map_or(0.0, |s| s.1);
        if out.unit == "cycles"
            && let Some(latency) = counts.stalls.iter_mut().find(|s| &*s.0 == ISSUING)
        {
            latency.1 = (latency.1 - stalled).max(0.0);
        }
        counts.sort_stalls();
        let found = code.find_function(address);
        let line = found.and_then(|(f, offset)| f.line_at(offset));
        out.samples += counts.samples;
        if let Some(line) = line {
            let sum = by_line.entry(line).or_default();
            sum.0.add_counts(&counts);
            sum.1 += 1;
        }
        out.instructions.push(Instruction {
            address,
            place: found.map(|(f, offset)| (f.name.clone(), offset)),
            text: found.and_then(|(f, offset)| f.instruction_at(offset).cloned()),
            line,
            counts,
        });
    }
    by_line
}

/// For the listing in code order: `CONTEXT` is the number of source lines shown around a line with instructions; gaps
/// of up to `GAP` lines between two such lines are filled completely.
const CONTEXT: u32 = 20;
const GAP: u32 = 40;

/// Adds the source lines around and between lines with instructions, for reading in code order.
fn add_context_lines(lines: &mut Vec<Line>, texts: &[Vec<&str>]) {
    let mut by_file: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for line in lines.iter() {
        by_file.entry(line.file).or_default().insert(line.line);
    }
    for (file, known) in by_file {
        let Some(text) = texts.get((file as usize).wrapping_sub(1)).filter(|t| !t.is_empty()) else { continue };
        let name = lines.iter().find(|l| l.file == file).map(|l| l.name.clone()).unwrap_or_default();
        let mut wanted: BTreeSet<u32> = BTreeSet::new();
        let mut before: Option<u32> = None;
        for &line in &known {
            let from = match before {
                Some(b) if line - b <= GAP => b,
                _ => line.saturating_sub(CONTEXT),
            };
            wanted.extend(from.max(1)..=line.saturating_add(CONTEXT));
            before = Some(line);
        }
        for line in wanted.into_iter().filter(|l| !known.contains(l)) {
            let Some(text) = text.get((line as usize).wrapping_sub(1)) else { continue };
            let (name, text) = (name.clone(), Some((*text).to_owned()));
            lines.push(Line { file, line, name, text, counts: Counts::default(), instructions: 0 });
        }
    }
}

fn compare_hotness(a: &Counts, b: &Counts) -> std::cmp::Ordering {
    b.samples.total_cmp(&a.samples).then(b.executed.unwrap_or(0.0).total_cmp(&a.executed.unwrap_or(0.0)))
}

/// Returns the file name of a path.
fn base_name(path: &str) -> String {
    path.rsplit(['/', '\\']).next().unwrap_or(path).to_owned()
}
