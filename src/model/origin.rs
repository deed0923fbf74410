//! Shifts a report's times so that they count from the start of the session: times since 1970 are close to the limit
//! of 2^63 ns, and lose precision as floating-point numbers.

use super::Profile;

/// Maximum plausible time relative to the start of a session, ns: eleven days. Later times are absolute.
const OLDEST_NS: i64 = 1_000_000_000_000_000;
/// Minimum plausible time since 1970, ns (in 2001); times since boot are smaller.
const EPOCH_NS: i64 = 1_000_000_000_000_000_000;

impl Profile {
    /// Makes absolute times relative to the start of the session, and records that start in the clock.
    pub fn count_from_session(&mut self) {
        let launches = &self.launches;
        let launched =
            (0..launches.len()).filter(|&r| launches.has_start_times() && launches.has_duration(r)).map(|r| launches.start(r)).min();
        let others = [
            self.calls.start.iter().copied().min(),
            self.memops.iter().map(|m| m.start.0).min(),
            self.graphs.iter().map(|g| g.start.0).min(),
            self.ranges.iter().map(|r| r.start).min(),
        ];
        // The calls decide if times are absolute, or the kernels if there are no calls. Single wrong times are handled
        // by `coverage`.
        let first = launched.into_iter().chain(others.into_iter().flatten()).filter(|&t| t > OLDEST_NS).min();
        let (Some(first), Some(all)) = (first, others[0].or(launched)) else { return };
        if all <= OLDEST_NS {
            return;
        }
        let session = self.clock.epoch_ns.filter(|&e| e <= first && first - e < OLDEST_NS);
        let origin = session.unwrap_or(first);
        self.move_origin(origin);
        if origin > EPOCH_NS {
            self.clock.epoch_ns = Some(origin);
        }
    }

    /// Subtracts `origin` from all times.
    fn move_origin(&mut self, origin: i64) {
        let to = |time: &mut i64| *time = time.saturating_sub(origin);
        self.launches.move_origin(origin);
        self.memops.move_origin(origin);
        self.ranges.move_origin(origin);
        for graph in &mut self.graphs {
            to(&mut graph.start.0);
            graph.call.iter_mut().for_each(to);
        }
        let columns = [&mut self.calls.start, &mut self.waits.start, &mut self.os_calls.start];
        columns.into_iter().flatten().for_each(to);
        self.states.iter_mut().for_each(|s| to(&mut s.time));
        self.samples.samples.iter_mut().for_each(|s| to(&mut s.time));
        self.graph_nodes.origins_mut().for_each(|o| to(&mut o.time));
        self.counters.iter_mut().flat_map(|c| &mut c.times).for_each(to);
        self.memory.events.iter_mut().for_each(|e| to(&mut e.time));
        self.memory.refused.iter_mut().for_each(|r| to(&mut r.time));
        self.collectives.iter_mut().for_each(|c| to(&mut c.start));
        self.overhead.iter_mut().for_each(|o| to(&mut o.start));
        for sample in &mut self.run_samples {
            let moments = sample.moments.iter_mut().flat_map(|m| [&mut m.0, &mut m.1]);
            [&mut sample.span.0, &mut sample.span.1].into_iter().chain(moments).for_each(to);
        }
        for (from, until) in &mut self.recorded {
            to(from);
            // A range without an end remains open.
            if *until < i64::MAX {
                to(until);
            }
        }
    }
}
