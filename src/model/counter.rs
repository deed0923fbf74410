//! Values that change with time: metrics of a GPU, memory in use, clocks, power.

use std::sync::Arc;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct CounterTrack {
    /// Index into [`Profile::devices`](super::Profile::devices); `None` for the machine's.
    pub device: Option<u32>,
    pub name: Arc<str>,
    /// As the tool gives it: `%`, `MHz`; empty where it does not say.
    pub unit: Arc<str>,
    /// ns, rising.
    pub times: Vec<i64>,
    /// As many as `times`.
    pub values: Vec<f64>,
}
