//! What a report holds about one result beside its values, read when somebody looks at the result: sections, rules, instances, NVTX state.

use super::layout;
use super::proto::{Extra, GraphExtra, MetricResult, MetricValue, NvtxState, RangeExtra};
use super::wire::Wire;
use crate::import::{ImportError, Input};
use crate::model::sections::{InstanceKey, Instances};
use crate::model::{Details, ResultKind, ResultMetrics, Value};
use prost::Message;
use std::collections::HashMap;

/// Sections and rules of a result that are shown: real results have up to about 30 and 60; a screen is made of all of them.
const MOST_SECTIONS: usize = 2_000;
const MOST_RULES: usize = 5_000;

/// Reads them. The report must still be the one that the result is from.
pub fn read(input: &Input, result: &ResultMetrics) -> Result<Details, ImportError> {
    let Some(place) = result.place else {
        return Ok(Details::default());
    };
    let mut wire = Wire::open(&input.path, &input.bytes, input.size)?;
    wire.seek(place.at)?;
    let bytes = wire.take(place.length, "result")?;
    let damaged = |_| wire.damaged("result", "it cannot be read");
    let chip = result.compute_capability.and_then(|(major, minor)| u32::try_from(major.checked_mul(10)?.checked_add(minor)?).ok());
    let (extra, sources) = match result.kind {
        ResultKind::Kernel => {
            let extra = Extra::decode(&*bytes).map_err(damaged)?;
            let sources = extra.source.and_then(|s| s.reference).into_iter().collect();
            (Extra { source: None, ..extra }, sources)
        }
        ResultKind::Range => {
            let r = RangeExtra::decode(&*bytes).map_err(damaged)?;
            (Extra { thread: r.thread, metrics: r.metrics, sections: r.sections, rules: r.rules, nvtx: r.nvtx, source: None }, r.sources)
        }
        ResultKind::CommandList | ResultKind::Graph => {
            let r = GraphExtra::decode(&*bytes).map_err(damaged)?;
            let rules = r.rules.into_iter().chain(r.graph_rules).collect();
            let extra = Extra { thread: r.thread, metrics: r.metrics, sections: r.sections, rules, nvtx: r.nvtx, source: None };
            (extra, r.sources)
        }
    };
    Ok(Details {
        sections: extra.sections.into_iter().take(MOST_SECTIONS).map(|s| layout::section(s, chip)).collect(),
        rules: extra.rules.into_iter().take(MOST_RULES).map(layout::rule).collect(),
        instances: instances(extra.metrics),
        nvtx: extra.nvtx.map(|n| nvtx(&n, extra.thread)).unwrap_or_default(),
        sources,
    })
}

fn instances(metrics: Vec<MetricResult>) -> HashMap<u32, Instances> {
    let key = |v: MetricValue| match v {
        MetricValue { text: Some(t), .. } => InstanceKey::Text(t.into()),
        MetricValue { large: Some(n), .. } => InstanceKey::Number(n),
        MetricValue { small: Some(n), .. } => InstanceKey::Number(n.into()),
        MetricValue { double: Some(d), .. } => InstanceKey::Float(d),
        MetricValue { float: Some(f), .. } => InstanceKey::Float(f.into()),
        _ => InstanceKey::None,
    };
    let value = |v: MetricValue| match v {
        MetricValue { text: Some(t), .. } => Some(Value::Text(t.into())),
        MetricValue { double: Some(d), .. } => Some(Value::Float(d)),
        MetricValue { float: Some(f), .. } => Some(Value::Float(f.into())),
        MetricValue { large: Some(n), .. } => Some(Value::Integer(n)),
        MetricValue { small: Some(n), .. } => Some(Value::Integer(n.into())),
        _ => None,
    };
    let mut out = HashMap::new();
    for metric in metrics {
        let Some(name) = metric.name.filter(|_| !metric.instances.is_empty()) else { continue };
        let list = metric.instances.into_iter();
        let list: Instances = list.filter_map(|i| Some((i.key.map_or(InstanceKey::None, key), value(i.value?)?))).collect();
        out.insert(name, list);
    }
    out
}

/// Ranges that were open at the launch: those of its thread, outermost first, then those of the process.
fn nvtx(state: &NvtxState, thread: Option<u32>) -> Vec<String> {
    let domain = |id: Option<u64>| {
        let name = state.domains.iter().find(|d| d.id == id).and_then(|d| d.name.as_deref()).unwrap_or_default();
        if name.is_empty() || name == "<default domain>" { String::new() } else { format!("{name}:") }
    };
    let of_thread = state.threads.iter().filter(|t| t.thread == thread).flat_map(|t| &t.domains);
    let pushed = of_thread.flat_map(|d| d.ranges.iter().map(move |r| (d.domain, r.name.as_deref())));
    let started = state.start_end.iter().flat_map(|d| d.ranges.iter().map(move |r| (d.domain, r.name.as_deref())));
    pushed.chain(started).map(|(id, name)| format!("{}{}", domain(id), name.unwrap_or_default())).collect()
}
