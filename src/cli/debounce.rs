//! Delays analysis until the cursor has stopped moving.

use super::event_sources::Wake;
use crate::app::jobs::Work;
use crossbeam_channel::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Time without cursor movement before details are requested: longer than the key repeat interval.
const REST: Duration = Duration::from_millis(160);

/// Pending work, ordered by due time.
#[derive(Default)]
pub struct Resting(Vec<(Instant, Box<Work>)>);

impl Resting {
    /// Delays work, replacing pending work for the same report.
    pub fn push_work(&mut self, work: Box<Work>) {
        self.0.retain(|(_, w)| w.report != work.report);
        self.0.push((Instant::now() + REST, work));
    }

    /// Drops pending work that a newer request supersedes.
    pub fn drop_superseded(&mut self, newer: &Work) {
        self.0.retain(|(_, w)| w.request_key() != newer.request_key());
    }

    /// Removes and returns work that is due.
    pub fn take_due(&mut self, now: Instant) -> Option<Box<Work>> {
        self.0.first().is_some_and(|w| w.0 <= now).then(|| self.0.remove(0).1)
    }

    /// Waits for an event until work is due or until `latest`; both count as a timeout.
    pub fn wait_for_wake(&self, wakes: &Receiver<Wake>, latest: Option<Instant>) -> Result<Wake, RecvTimeoutError> {
        match self.0.first().map(|w| w.0).into_iter().chain(latest).min() {
            Some(until) => wakes.recv_deadline(until),
            None => wakes.recv().map_err(|_| RecvTimeoutError::Disconnected),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::GroupBy;
    use crate::app::jobs::JobRequest;
    use crate::model::{Profile, Source};
    use std::sync::Arc;

    #[test]
    fn what_is_asked_at_once_is_not_asked_again_by_what_rested() {
        let work = |report, ask| Work::on_whole(report, 1, Arc::new(Profile::new(Source::default())), ask);
        let mut resting = Resting::default();
        resting.push_work(Box::new(work(0, JobRequest::Overview)));
        resting.push_work(Box::new(work(1, JobRequest::Overview)));
        resting.drop_superseded(&work(0, JobRequest::Group(GroupBy::Name)));
        assert_eq!(resting.0.len(), 2);
        resting.drop_superseded(&work(0, JobRequest::Overview));
        assert!(resting.take_due(Instant::now()).is_none(), "it rests");
        let later = Instant::now() + REST;
        assert_eq!(resting.take_due(later).map(|w| w.report), Some(1));
        assert!(resting.take_due(later).is_none());
    }
}
