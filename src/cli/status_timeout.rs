//! Timeout of the status message.

use crate::app::{App, Status};
use std::time::{Duration, Instant};

/// Minimum display time.
const LEAST: Duration = Duration::from_secs(3);
/// Reading time per character: 200 words a minute.
const LETTER: Duration = Duration::from_millis(50);

/// The displayed message and its expiry time.
#[derive(Default)]
pub struct Message(Option<(Status, Instant)>);

impl Message {
    /// Restarts the timeout if the message changed.
    pub fn sync_status(&mut self, app: &App) {
        match (&app.status, &self.0) {
            (Some(status), Some((shown, _))) if status == shown => {}
            (Some(status), _) => {
                let letters = u32::try_from(status.text.chars().count()).unwrap_or(u32::MAX);
                self.0 = Some((status.clone(), Instant::now() + LEAST.max(LETTER * letters.min(400))));
            }
            (None, _) => self.0 = None,
        }
    }

    /// Returns the expiry time.
    pub fn expires_at(&self) -> Option<Instant> {
        self.0.as_ref().map(|m| m.1)
    }

    /// Removes an expired message; returns true if the message was removed.
    pub fn clear_expired(&mut self, app: &mut App) -> bool {
        let over = self.expires_at().is_some_and(|until| until <= Instant::now());
        if over {
            (self.0, app.status) = (None, None);
        }
        over
    }
}
