//! Reads the details of one result on demand: sections, rules, metric instances and NVTX state.

use super::layout;
use super::proto::{Instance, MetricValue, NvtxState, SourceReference};
use super::wire::{Form, Wire};
use crate::import::{ImportError, Input};
use crate::model::sections::{InstanceKey, Instances};
use crate::model::{Details, ResultKind, ResultMetrics, Value};
use prost::Message;

/// Maximum number of sections and rules in a result. Real results have up to about 30 and 60; one screen lists them
/// all.
const MOST_SECTIONS: usize = 2_000;
const MOST_RULES: usize = 5_000;

/// Field numbers that differ between kinds of results, from the `.proto` files distributed with ncu.
struct Fields {
    metric: u64,
    section: u64,
    rules: &'static [u64],
    nvtx: u64,
    source: u64,
}

fn field_numbers(kind: ResultKind) -> Fields {
    match kind {
        ResultKind::Kernel => Fields { metric: 13, section: 17, rules: &[19], nvtx: 21, source: 15 },
        // Ranges and graphs have rules since ncu 2025.
        ResultKind::Range => Fields { metric: 4, section: 7, rules: &[20], nvtx: 10, source: 15 },
        ResultKind::CommandList | ResultKind::Graph => Fields { metric: 4, section: 7, rules: &[21, 22], nvtx: 10, source: 17 },
    }
}

/// Reads the details of a result; `input` must be the unmodified report from which the result was read.
pub fn read_details(input: &Input, result: &ResultMetrics) -> Result<Details, ImportError> {
    let Some(place) = result.place else {
        return Ok(Details::default());
    };
    let mut wire = Wire::open(&input.path, &input.bytes, input.size)?;
    wire.seek_to(place.at)?;
    let end = place.at.saturating_add(place.length);
    let chip = result.compute_capability.and_then(|(major, minor)| u32::try_from(major.checked_mul(10)?.checked_add(minor)?).ok());
    let of_kernel = result.kind == ResultKind::Kernel;
    let numbers = field_numbers(result.kind);
    let mut out = Details::default();
    let (mut thread, mut state) = (None, None);
    while let Some((number, form)) = wire.next_field(end)? {
        match (number, form) {
            (1, Form::Varint) => thread = u32::try_from(wire.read_varint(end)?).ok(),
            (n, Form::Bytes) if n == numbers.metric => {
                let to = wire.bytes_end(end)?;
                if let Some((name, list)) = read_instances(&mut wire, to)? {
                    out.instances.insert(name, list);
                }
            }
            (n, Form::Bytes) if n == numbers.section && out.sections.len() < MOST_SECTIONS => {
                let bytes = wire.read_field_bytes(end)?;
                out.sections.push(layout::convert_section(wire.decode_message(&bytes, "section")?, chip));
            }
            (n, Form::Bytes) if numbers.rules.contains(&n) && out.rules.len() < MOST_RULES => {
                let bytes = wire.read_field_bytes(end)?;
                out.rules.push(layout::convert_rule(wire.decode_message(&bytes, "rule")?));
            }
            (n, Form::Bytes) if n == numbers.nvtx => {
                let bytes = wire.read_field_bytes(end)?;
                state = Some(wire.decode_message::<NvtxState>(&bytes, "NVTX state")?);
            }
            (n, Form::Bytes) if n == numbers.source && of_kernel => {
                let bytes = wire.read_field_bytes(end)?;
                out.sources = wire.decode_message::<SourceReference>(&bytes, "source")?.reference.into_iter().collect();
            }
            (n, Form::Varint) if n == numbers.source && !of_kernel => {
                let reference = wire.read_varint(end)?;
                wire.charge_memory(size_of::<u64>())?;
                out.sources.push(reference);
            }
            _ => wire.skip_value(form, end)?,
        }
    }
    out.nvtx = state.map(|n| open_ranges(&n, thread)).unwrap_or_default();
    Ok(out)
}

/// Reads the name id and instances of a metric; `None` if it has no instances.
fn read_instances(wire: &mut Wire, end: u64) -> Result<Option<(u32, Instances)>, ImportError> {
    let (mut name, mut list) = (None, Instances::default());
    while let Some((number, form)) = wire.next_field(end)? {
        match (number, form) {
            (1, Form::Varint) => name = u32::try_from(wire.read_varint(end)?).ok(),
            (3, Form::Bytes) => {
                let bytes = wire.read_field_bytes(end)?;
                wire.charge_memory(size_of::<(InstanceKey, Value)>() + bytes.len())?;
                // An instance has no repeated fields, so its memory is bounded by its encoded size.
                let Ok(instance) = Instance::decode(&*bytes) else {
                    return Err(wire.damage_error("result", "it cannot be read"));
                };
                list.extend(instance.value.and_then(instance_value).map(|v| (instance.key.map_or(InstanceKey::None, instance_key), v)));
            }
            _ => wire.skip_value(form, end)?,
        }
    }
    Ok(name.filter(|_| !list.is_empty()).map(|n| (n, list)))
}

fn instance_key(v: MetricValue) -> InstanceKey {
    match v {
        MetricValue { text: Some(t), .. } => InstanceKey::Text(t.into()),
        MetricValue { large: Some(n), .. } => InstanceKey::Number(n),
        MetricValue { small: Some(n), .. } => InstanceKey::Number(n.into()),
        MetricValue { double: Some(d), .. } => InstanceKey::Float(d),
        MetricValue { float: Some(f), .. } => InstanceKey::Float(f.into()),
        _ => InstanceKey::None,
    }
}

fn instance_value(v: MetricValue) -> Option<Value> {
    match v {
        MetricValue { text: Some(t), .. } => Some(Value::Text(t.into())),
        MetricValue { double: Some(d), .. } => Some(Value::Float(d)),
        MetricValue { float: Some(f), .. } => Some(Value::Float(f.into())),
        MetricValue { large: Some(n), .. } => Some(Value::Integer(n)),
        MetricValue { small: Some(n), .. } => Some(Value::Integer(n.into())),
        _ => None,
    }
}

/// Returns the NVTX ranges that were open at the launch: those of the launching thread, outermost first, followed by
/// those of the process.
fn open_ranges(state: &NvtxState, thread: Option<u32>) -> Vec<String> {
    let domain = |id: Option<u64>| {
        let name = state.domains.iter().find(|d| d.id == id).and_then(|d| d.name.as_deref()).unwrap_or_default();
        if name.is_empty() || name == "<default domain>" { String::new() } else { format!("{name}:") }
    };
    let of_thread = state.threads.iter().filter(|t| t.thread == thread).flat_map(|t| &t.domains);
    let pushed = of_thread.flat_map(|d| d.ranges.iter().map(move |r| (d.domain, r.name.as_deref())));
    let started = state.start_end.iter().flat_map(|d| d.ranges.iter().map(move |r| (d.domain, r.name.as_deref())));
    pushed.chain(started).map(|(id, name)| format!("{}{}", domain(id), name.unwrap_or_default())).collect()
}
