//! What is read only when it is looked at.

use std::sync::Arc;

/// Something that is read when it is looked at.
#[derive(Clone, Debug)]
pub enum Asked<T> {
    /// Not asked for.
    No,
    Waiting,
    Is(Arc<T>),
    /// Could not be read, and why.
    Failed(String),
}

impl<T> Asked<T> {
    /// What came of it.
    #[must_use]
    pub fn of(outcome: &Result<Arc<T>, String>) -> Self {
        match outcome {
            Ok(t) => Self::Is(Arc::clone(t)),
            Err(text) => Self::Failed(text.clone()),
        }
    }

    #[must_use]
    pub fn get(&self) -> Option<&Arc<T>> {
        match self {
            Self::Is(t) => Some(t),
            _ => None,
        }
    }
}
