//! Several queues of one device, combined into one track. Each nanosecond counts only once; if several categories are
//! running, it counts toward the first in `Category` order.

use super::event::{Category, EventId, Events};
use super::lane::BLOCK;
use super::track::{Before, Track};

const KINDS: usize = Category::ALL.len();

/// State at the start of a block of events.
#[derive(Clone, Copy, Debug)]
struct State {
    /// Time up to which everything has been accounted for, ns.
    at: i64,
    /// Latest end of the events started so far, by category, ns.
    ends: [i64; KINDS],
    busy: [i64; KINDS],
}

impl State {
    /// Accounts for the time up to `to`, in which no event starts.
    fn advance_to(&mut self, to: i64) {
        for (end, busy) in self.ends.iter().zip(&mut self.busy) {
            let end = (*end).min(to);
            if end > self.at {
                *busy += end - self.at;
                self.at = end;
            }
        }
        self.at = self.at.max(to);
    }

    fn begin_event(&mut self, of: &Events<'_>, id: EventId) {
        let (start, end) = of.span(id.to_event());
        self.advance_to(start);
        let known = &mut self.ends[of.category(id.to_event()) as usize];
        *known = (*known).max(end);
    }
}

/// Events that may overlap, sorted by start.
#[derive(Clone, Debug, Default)]
pub struct Union {
    events: Vec<EventId>,
    /// Start of the first event of each block, ns.
    starts: Vec<i64>,
    states: Vec<State>,
}

impl Union {
    /// Builds the union from events that are sorted by start.
    pub fn new(events: Vec<EventId>, of: &Events<'_>) -> Self {
        let (mut starts, mut states) = (Vec::new(), Vec::new());
        let mut state = State { at: i64::MIN, ends: [i64::MIN; KINDS], busy: [0; KINDS] };
        for (at, id) in events.iter().enumerate() {
            if at % BLOCK == 0 {
                starts.push(of.span(id.to_event()).0);
                states.push(state);
            }
            state.begin_event(of, *id);
        }
        Self { events, starts, states }
    }
}

impl Track for Union {
    fn before(&self, of: &Events<'_>, time: i64) -> Before {
        let block = self.starts.partition_point(|&s| s < time);
        let Some(block) = block.checked_sub(1) else { return Before::default() };
        let mut state = self.states[block];
        let from = block * BLOCK;
        let mut events = from;
        for id in self.events.iter().skip(from).take(BLOCK) {
            if of.span(id.to_event()).0 >= time {
                break;
            }
            state.begin_event(of, *id);
            events += 1;
        }
        state.advance_to(time);
        Before { busy: state.busy, events }
    }

    fn bytes(&self) -> usize {
        self.events.capacity() * size_of::<EventId>() + self.starts.capacity() * 8 + self.states.capacity() * size_of::<State>()
    }
}
