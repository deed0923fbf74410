//! Threads that run analyses for the explorer's event loop. Work that the user is waiting for has priority. A newer
//! request of the same kind for the same report replaces a waiting one and cancels a running one.

use super::event_sources::Wake;
use crate::app::{Msg, Work, jobs};
use crate::model::Cancel;
use crossbeam_channel::Sender;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Maximum number of threads: importers already use all processors, and concurrent analyses share the memory.
const MOST: usize = 4;

/// Waiting and running work.
#[derive(Default)]
struct Queue {
    waiting: Vec<(u64, Box<Work>)>,
    doing: Vec<(u64, Box<Work>, Cancel)>,
    /// Sequence number of the last request.
    last: u64,
    /// True once shutdown was requested.
    over: bool,
}

impl Queue {
    fn enqueue_work(&mut self, work: Box<Work>) {
        let kind = work.request_key();
        self.waiting.retain(|(_, w)| w.request_key() != kind);
        for (_, _, cancel) in self.doing.iter().filter(|(_, w, _)| w.request_key() == kind) {
            cancel.cancel();
        }
        self.last += 1;
        self.waiting.push((self.last, work));
    }

    /// Returns the most urgent work; among equally urgent work, the oldest comes first.
    fn next_work(&mut self) -> Option<(u64, Box<Work>, Cancel)> {
        let at = (0..self.waiting.len()).min_by_key(|&i| (self.waiting[i].1.urgency(), self.waiting[i].0))?;
        let (number, work) = self.waiting.remove(at);
        let cancel = Cancel::default();
        self.doing.push((number, work.clone(), cancel.clone()));
        Some((number, work, cancel))
    }
}

/// The thread pool. Dropping it ends the threads.
pub struct Workers {
    shared: Arc<(Mutex<Queue>, Condvar)>,
}

fn lock_queue(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    // Analyses cannot poison the lock: they run, and their panics are caught, outside it.
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Workers {
    /// Starts threads that send their results: at least two, so that urgent work can overtake long-running work.
    pub fn new(send: &Sender<Wake>) -> Self {
        let shared = Arc::<(Mutex<Queue>, Condvar)>::default();
        let threads = std::thread::available_parallelism().map_or(2, NonZero::get).clamp(2, MOST);
        for _ in 0..threads {
            let (shared, send) = (Arc::clone(&shared), send.clone());
            std::thread::spawn(move || serve_queue(&shared, &send));
        }
        Self { shared }
    }

    /// Enqueues an analysis.
    pub fn enqueue_work(&self, work: Box<Work>) {
        lock_queue(&self.shared.0).enqueue_work(work);
        self.shared.1.notify_one();
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        let mut queue = lock_queue(&self.shared.0);
        queue.over = true;
        queue.doing.iter().for_each(|d| d.2.cancel());
        drop(queue);
        self.shared.1.notify_all();
    }
}

fn serve_queue((queue, woken): &(Mutex<Queue>, Condvar), send: &Sender<Wake>) {
    let mut held = lock_queue(queue);
    loop {
        if held.over {
            return;
        }
        let Some((number, work, cancel)) = held.next_work() else {
            held = woken.wait(held).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        drop(held);
        let msg = match catch_unwind(AssertUnwindSafe(|| jobs::perform_work(&work, &cancel))) {
            Ok(Some(done)) => Some(Msg::Done { report: work.report, generation: work.generation, window: work.window, done }),
            Ok(None) => None,
            Err(_) => Some(Msg::Trouble("an analysis of this report failed; please report it as a bug".to_owned())),
        };
        // Free memory before waiting for the lock.
        drop(work);
        held = lock_queue(queue);
        held.doing.retain(|d| d.0 != number);
        // Discard results that a newer request has superseded.
        if let Some(msg) = msg.filter(|_| !cancel.is_cancelled())
            && send.send(Wake::Message(msg)).is_err()
        {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::GroupBy;
    use crate::app::jobs::JobRequest;
    use crate::model::{Profile, Source};

    fn work(report: usize, ask: JobRequest) -> Box<Work> {
        Box::new(Work::on_whole(report, 1, Arc::new(Profile::new(Source::default())), ask))
    }

    #[test]
    fn a_newer_piece_replaces_one_that_waits_and_ends_one_that_is_done() {
        let mut queue = Queue::default();
        queue.enqueue_work(work(0, JobRequest::Overview));
        queue.enqueue_work(work(0, JobRequest::Group(GroupBy::Name)));
        queue.enqueue_work(work(1, JobRequest::Group(GroupBy::Name)));
        queue.enqueue_work(work(0, JobRequest::Group(GroupBy::Stream)));
        assert_eq!(queue.waiting.len(), 3);
        let (_, first, cancel) = queue.next_work().unwrap();
        assert_eq!(
            (first.report, matches!(first.ask, JobRequest::Group(GroupBy::Name))),
            (1, true),
            "the most urgent, of these the oldest"
        );
        let (_, second, other) = queue.next_work().unwrap();
        assert!(second.report == 0 && matches!(second.ask, JobRequest::Group(GroupBy::Stream)));
        queue.enqueue_work(work(1, JobRequest::Group(GroupBy::Process)));
        assert!(cancel.is_cancelled() && !other.is_cancelled());
        assert!(matches!(queue.next_work().unwrap().1.ask, JobRequest::Group(GroupBy::Process)), "the header waits");
    }

    #[test]
    fn pieces_are_done_and_told() {
        let (send, wakes) = crossbeam_channel::unbounded();
        let workers = Workers::new(&send);
        drop(send);
        for report in 0..20 {
            workers.enqueue_work(work(report, JobRequest::Overview));
        }
        let mut told: Vec<usize> = (0..20)
            .map(|_| match wakes.recv().unwrap() {
                Wake::Message(Msg::Done { report, .. }) => report,
                _ => panic!("another message"),
            })
            .collect();
        told.sort_unstable();
        assert_eq!(told, (0..20).collect::<Vec<_>>());
        drop(workers);
        assert!(wakes.recv().is_err(), "the threads have ended");
    }
}
