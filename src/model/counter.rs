//! Counters over time: GPU metrics, memory in use, clocks, power.

use std::sync::Arc;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct CounterTrack {
    /// Index into [`Profile::devices`](super::Profile::devices); `None` if the values apply to the whole machine.
    pub device: Option<u32>,
    pub name: Arc<str>,
    /// Unit as spelled by the tool, such as `%` or `MHz`; empty if unknown.
    pub unit: Arc<str>,
    /// Timestamps, ns, ascending.
    pub times: Vec<i64>,
    /// One value per timestamp.
    pub values: Vec<f64>,
}
