//! Data that is read on demand

use std::sync::Arc;

/// State of data that is read on demand.
#[derive(Clone, Debug)]
pub enum Asked<T> {
    /// Not requested yet.
    No,
    Waiting,
    Is(Arc<T>),
    /// The data could not be read, for this reason.
    Failed(String),
}

impl<T> Asked<T> {
    /// Converts the outcome of a read.
    pub fn from_outcome(outcome: &Result<Arc<T>, String>) -> Self {
        match outcome {
            Ok(t) => Self::Is(Arc::clone(t)),
            Err(text) => Self::Failed(text.clone()),
        }
    }

    pub fn get(&self) -> Option<&Arc<T>> {
        match self {
            Self::Is(t) => Some(t),
            _ => None,
        }
    }
}
