//! Small dictionaries of a snapshot (frames, blocks and events), extracted while reading.

use super::pickle::Take;
use super::value::{Pickle, Value, to_natural};
use crate::model::api_call::NONE;
use crate::model::{Frame, Stacks};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Kinds of extracted dictionaries.
pub const FRAME: u8 = 0;
pub const EVENT: u8 = 1;
pub const BLOCK: u8 = 2;

/// Recognized keys, in the order of the values of [`Fields`].
const KEYS: [&str; 16] = [
    "action",
    "addr",
    "size",
    "time_us",
    "frames",
    "device_free",
    "name",
    "filename",
    "line",
    "address",
    "requested_size",
    "state",
    "history",
    "real_size",
    "stream",
    "pool_id",
];

/// Sentinel for a missing event time.
pub const UNTIMED: i64 = i64::MIN;

/// An event, as stored in the snapshot.
#[derive(Clone, Copy, Debug)]
pub struct RawEvent {
    /// Index into the pickle's strings.
    pub action: u32,
    /// Address; for a failed allocation, the number of free bytes on the device.
    pub address: u64,
    /// Size in bytes.
    pub size: u64,
    /// Microseconds since 1970; [`UNTIMED`] before `PyTorch` 2.1.
    pub time: i64,
    pub stack: u32,
    /// Index into [`Parts::owners`].
    pub owner: u32,
}

/// Stream and pool that memory belongs to, if known.
pub type Owner = (Option<u64>, Option<(u64, u64)>);

/// A block, as stored in the snapshot.
#[derive(Clone, Copy, Debug)]
pub struct RawBlock {
    pub address: Option<u64>,
    /// Size in bytes.
    pub size: u64,
    pub requested: Option<u64>,
    /// Index into the pickle's strings.
    pub state: u32,
    pub stack: u32,
}

#[derive(Debug, Default)]
pub struct Parts {
    /// Indexed by string: position of the string in [`KEYS`] plus 1, or 0 for other strings.
    keys: Vec<u8>,
    pub stacks: Stacks,
    frames: FxHashMap<Frame, u32>,
    /// Stack ids by frames, and by index of the list in the pickle.
    by_frames: FxHashMap<Vec<u32>, u32>,
    by_list: FxHashMap<u32, u32>,
    pub events: Vec<RawEvent>,
    /// Distinct owners; there are few.
    pub owners: Vec<Owner>,
    by_owner: FxHashMap<Owner, u32>,
    pub blocks: Vec<RawBlock>,
}

type Fields = [Option<Value>; KEYS.len()];

impl Parts {
    fn pick_fields(&mut self, pairs: &[Value], pickle: &Pickle) -> Fields {
        let mut out = [None; KEYS.len()];
        for pair in pairs.chunks_exact(2) {
            let Value::Text(at) = pair[0] else { continue };
            while self.keys.len() <= at as usize {
                let text = pickle.texts.get(self.keys.len()).map_or("", |t| &**t);
                let key = KEYS.iter().position(|k| *k == text).and_then(|k| u8::try_from(k + 1).ok());
                self.keys.push(key.unwrap_or(0));
            }
            if let Some(place) = self.keys[at as usize].checked_sub(1) {
                out[usize::from(place)] = Some(pair[1]);
            }
        }
        out
    }

    /// Returns the stack id of a list of frames, adding the stack if needed.
    fn intern_stack(&mut self, frames: Option<Value>, pickle: &mut Pickle) -> u32 {
        let Some(Value::List(list)) = frames else { return NONE };
        if let Some(&stack) = self.by_list.get(&list) {
            return stack;
        }
        let Some(items) = pickle.lists.get_mut(list as usize) else { return NONE };
        // Free the list, because the stack now holds its frames.
        let items = std::mem::take(items);
        let frames: Vec<u32> = items.iter().filter_map(|&f| pickle.taken_as(f)).filter(|t| t.0 == FRAME).map(|t| t.1).collect();
        let stack = match self.by_frames.get(&frames) {
            Some(&known) => known,
            None if frames.is_empty() => NONE,
            None => {
                let new = self.stacks.push(frames.iter().copied());
                self.by_frames.insert(frames, new);
                new
            }
        };
        self.by_list.insert(list, stack);
        stack
    }

    fn intern_owner(&mut self, owner: Owner) -> u32 {
        let next = u32::try_from(self.owners.len()).unwrap_or(NONE);
        let index = *self.by_owner.entry(owner).or_insert(next);
        if index == next {
            self.owners.push(owner);
        }
        index
    }

    fn intern_frame(&mut self, name: Option<Value>, file: Value, line: Option<Value>, pickle: &Pickle) -> Option<u32> {
        let text = |v: Option<Value>| v.and_then(|v| pickle.text(v)).map_or_else(|| Arc::from(""), Arc::clone);
        let line = to_natural(line).and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
        let frame = Frame { function: text(name), file: text(Some(file)), line };
        if let Some(&known) = self.frames.get(&frame) {
            return Some(known);
        }
        let new = u32::try_from(self.stacks.frames.len()).ok()?;
        self.stacks.frames.push(frame.clone());
        self.frames.insert(frame, new);
        Some(new)
    }
}

/// Parses a pool id, which is a pair of numbers.
pub fn pool_of(value: Value, pickle: &Pickle) -> Option<(u64, u64)> {
    let parts = pickle.items(value)?;
    let part = |i: usize| to_natural(parts.get(i).copied());
    Some((part(0)?, part(1)?))
}

impl Take for Parts {
    fn take(&mut self, pairs: &[Value], pickle: &mut Pickle) -> Option<(u8, u32)> {
        let [action, addr, size, time, frames, free, name, file, line, address, requested, state, history, real, stream, pool] =
            self.pick_fields(pairs, pickle);
        if let (Some(file), Some(_)) = (file, line) {
            return Some((FRAME, self.intern_frame(name, file, line, pickle)?));
        }
        if let (Some(Value::Text(action)), Some(size)) = (action, to_natural(size)) {
            let stack = self.intern_stack(frames, pickle);
            let time = match time {
                Some(Value::Integer(us)) => us,
                _ => UNTIMED,
            };
            // A failed allocation stores the amount of free memory instead of an address.
            let address = to_natural(addr).or(to_natural(free)).unwrap_or(0);
            let owner = self.intern_owner((to_natural(stream), pool.and_then(|p| pool_of(p, pickle))));
            self.events.push(RawEvent { action, address, size, time, stack, owner });
            return Some((EVENT, u32::try_from(self.events.len() - 1).ok()?));
        }
        if let (Some(Value::Text(state)), Some(size)) = (state, to_natural(size)) {
            // Before PyTorch 2.1, the frames and the requested size are in the block's history, newest first.
            let newest = history.and_then(|h| pickle.items(h)?.first().copied());
            let (frames, asked) = match newest {
                Some(newest) if frames.is_none() => (pickle.get(newest, "frames"), pickle.get(newest, "real_size")),
                _ => (frames, real),
            };
            let stack = self.intern_stack(frames, pickle);
            let requested = to_natural(requested.or(asked));
            self.blocks.push(RawBlock { address: to_natural(address), size, requested, state, stack });
            return Some((BLOCK, u32::try_from(self.blocks.len() - 1).ok()?));
        }
        None
    }
}
