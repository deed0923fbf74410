//! Values of metrics.

use std::sync::Arc;

/// Value of a metric. Metrics that were not collected are absent, never zero.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Integer(u64),
    /// A measured or derived number; may be NaN, which is distinct from absent and from zero.
    Float(f64),
    /// Text, such as a device's name.
    Text(Arc<str>),
}

impl Value {
    /// Returns the value as a number; `None` for text.
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Self::Integer(n) => Some(*n as f64),
            Self::Float(f) => Some(*f),
            Self::Text(_) => None,
        }
    }
}

/// Formats the raw value in its base unit, for files and scripts.
impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Integer(n) => n.fmt(f),
            Self::Float(n) => n.fmt(f),
            Self::Text(t) => t.fmt(f),
        }
    }
}
