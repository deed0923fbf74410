//! Reads the metric values of a result. Sections, rules, sources and instance values, which make up most of its
//! bytes, are skipped.

use super::blocks::BlockKind;
use super::wire::{Form, Wire};
use crate::import::ImportError;
use crate::model::{Extent, ResultKind, ResultMetrics, Value};
use std::sync::Arc;

/// Field numbers that differ between kinds of results, from the `.proto` files distributed with ncu.
pub struct Fields {
    /// A metric with its value.
    pub metric: u64,
    pub context: u64,
    pub stream: u64,
    /// The clock locking state.
    pub clocks: u64,
}

pub fn field_numbers(kind: BlockKind) -> Fields {
    match kind {
        BlockKind::Kernel | BlockKind::Source => Fields { metric: 13, context: 22, stream: 23, clocks: 25 },
        BlockKind::Range => Fields { metric: 4, context: 11, stream: u64::MAX, clocks: 12 },
        BlockKind::CommandList | BlockKind::Graph => Fields { metric: 4, context: 11, stream: 12, clocks: 13 },
    }
}

/// Reads a result up to `end`.
pub fn read_result(wire: &mut Wire, kind: BlockKind, end: u64, pid: Option<u32>) -> Result<ResultMetrics, ImportError> {
    let place = Extent { at: wire.at, length: end - wire.at };
    let numbers = field_numbers(kind);
    let mut out = ResultMetrics {
        kind: match kind {
            BlockKind::Graph => ResultKind::Graph,
            BlockKind::CommandList => ResultKind::CommandList,
            BlockKind::Range => ResultKind::Range,
            BlockKind::Kernel | BlockKind::Source => ResultKind::Kernel,
        },
        pid,
        place: Some(place),
        ..ResultMetrics::from_values(Vec::new())
    };
    let of_kernel = kind == BlockKind::Kernel;
    wire.charge_memory(size_of::<ResultMetrics>())?;
    while let Some((number, form)) = wire.next_field(end)? {
        match (number, form) {
            (n, Form::Bytes) if n == numbers.metric => {
                let to = wire.bytes_end(end)?;
                if let Some((name, value)) = read_metric(wire, to)? {
                    let text = if let Value::Text(t) = &value { t.len() } else { 0 };
                    wire.charge_memory(size_of::<(u32, Value)>() + text)?;
                    out.values.push((name, value));
                }
            }
            (n, Form::Varint) if n == numbers.context => out.context = Some(wire.read_varint(end)?),
            (n, Form::Varint) if n == numbers.stream => out.stream = Some(wire.read_varint(end)?),
            (n, Form::Bytes) if n == numbers.clocks => {
                let to = wire.bytes_end(end)?;
                while let Some((number, form)) = wire.next_field(to)? {
                    match (number, form) {
                        (2, Form::Varint) => out.clocks_locked = Some(wire.read_varint(to)? != 0),
                        _ => wire.skip_value(form, to)?,
                    }
                }
            }
            (5..=7, Form::Bytes) if of_kernel => {
                let text = wire.read_text(end)?;
                wire.charge_memory(text.len())?;
                // The full name of a kernel with C linkage is empty.
                let name = (!text.is_empty()).then(|| Arc::<str>::from(text));
                match number {
                    5 => out.kernel.mangled = name,
                    6 => out.kernel.function = name,
                    _ => out.kernel.demangled = name,
                }
            }
            (10, Form::Bytes) if of_kernel => out.grid = Some(read_dims(wire, end)?),
            (11, Form::Bytes) if of_kernel => out.block = Some(read_dims(wire, end)?),
            _ => wire.skip_value(form, end)?,
        }
    }
    if of_kernel {
        // A launch that could not be profiled has no grid or block.
        out.failed = out.grid == Some([0; 3]);
        if out.failed {
            (out.grid, out.block) = (None, None);
        }
    } else {
        let word = match out.kind {
            ResultKind::Graph => "graph",
            ResultKind::CommandList => "cmdlist",
            _ => "range",
        };
        out.kernel.function = Some(Arc::from(word));
    }
    Ok(out)
}

fn read_dims(wire: &mut Wire, end: u64) -> Result<[u32; 3], ImportError> {
    let to = wire.bytes_end(end)?;
    let mut out = [0; 3];
    while let Some((number, form)) = wire.next_field(to)? {
        match (number, form) {
            (1..=3, Form::Varint) => {
                let value = u32::try_from(wire.read_varint(to)?).unwrap_or(u32::MAX);
                if let Some(slot) = usize::try_from(number).ok().and_then(|n| out.get_mut(n - 1)) {
                    *slot = value;
                }
            }
            _ => wire.skip_value(form, to)?,
        }
    }
    Ok(out)
}

/// Reads a metric; `None` if it only has instances.
fn read_metric(wire: &mut Wire, end: u64) -> Result<Option<(u32, Value)>, ImportError> {
    let (mut name, mut value) = (None, None);
    while let Some((number, form)) = wire.next_field(end)? {
        match (number, form) {
            (1, Form::Varint) => name = u32::try_from(wire.read_varint(end)?).ok(),
            (2, Form::Bytes) => {
                let to = wire.bytes_end(end)?;
                value = self::read_value(wire, to)?;
            }
            _ => wire.skip_value(form, end)?,
        }
    }
    Ok(name.zip(value))
}

/// Reads a value, which has exactly one field set.
fn read_value(wire: &mut Wire, end: u64) -> Result<Option<Value>, ImportError> {
    let mut out = None;
    while let Some((number, form)) = wire.next_field(end)? {
        out = match (number, form) {
            (1, Form::Bytes) => {
                // Ignore empty strings, for which ncu prints nothing.
                let text = wire.read_text(end)?;
                (!text.is_empty()).then(|| Value::Text(text.into()))
            }
            (2, Form::Fixed32) => Some(Value::Float(f32::from_le_bytes(wire.read_fixed32(end)?).into())),
            (3, Form::Fixed64) => Some(Value::Float(f64::from_le_bytes(wire.read_fixed64(end)?))),
            (4 | 5, Form::Varint) => Some(Value::Integer(wire.read_varint(end)?)),
            _ => {
                wire.skip_value(form, end)?;
                out
            }
        };
    }
    Ok(out)
}

/// Reads the source id from a reference in a result.
pub fn read_reference(wire: &mut Wire, end: u64) -> Result<Option<u64>, ImportError> {
    while let Some((number, form)) = wire.next_field(end)? {
        if (number, form) == (1, Form::Varint) {
            return Ok(Some(wire.read_varint(end)?));
        }
        wire.skip_value(form, end)?;
    }
    Ok(None)
}
