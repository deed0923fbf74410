//! Values of metrics.

use std::sync::Arc;

/// Value of a metric. A metric that was not collected is absent, never zero.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Integer(u64),
    /// A measured or derived number. NaN is possible and means something other than a missing value or zero.
    Float(f64),
    /// Text, such as the name of a device.
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
