//! Values in a pickle.

use crate::model::Pace;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    None,
    Bool(bool),
    Integer(i64),
    Real(f64),
    /// Index into [`Pickle::texts`].
    Text(u32),
    /// Index into [`Pickle::lists`]; also used for tuples.
    List(u32),
    /// Index into [`Pickle::dicts`].
    Dict(u32),
}

/// Contents of a dictionary.
#[derive(Clone, Debug)]
pub enum Dict {
    Empty,
    /// Index into [`Pickle::pairs`].
    Pairs(u32),
    /// Kind and index that the `Take` assigned when it extracted the dictionary.
    Taken(u8, u32),
}

/// Values of a dictionary by key, for the first `pairs` pairs.
#[derive(Debug, Default)]
struct Index {
    pairs: usize,
    of: FxHashMap<u32, Value>,
}

/// Maximum number of pairs for which a dictionary is searched linearly.
const FEW: usize = 16;

/// Values of a pickle, in one table per type.
#[derive(Debug)]
pub struct Pickle {
    pub texts: Vec<Arc<str>>,
    pub lists: Vec<Vec<Value>>,
    pub dicts: Vec<Dict>,
    /// Alternating keys and values of each dictionary that was not extracted.
    pub pairs: Vec<Vec<Value>>,
    /// Index of each string.
    pub known: FxHashMap<Arc<str>, u32>,
    /// Indices of large dictionaries, because a pickle may look up the same one repeatedly.
    indices: RefCell<FxHashMap<u32, Index>>,
    /// Counts steps to check for cancellation.
    pub pace: Pace,
}

impl Pickle {
    pub fn new(pace: Pace) -> Self {
        Self {
            texts: Vec::new(),
            lists: Vec::new(),
            dicts: Vec::new(),
            pairs: Vec::new(),
            known: FxHashMap::default(),
            indices: RefCell::default(),
            pace,
        }
    }

    pub fn text(&self, value: Value) -> Option<&Arc<str>> {
        if let Value::Text(at) = value { self.texts.get(at as usize) } else { None }
    }

    /// Items of a list; `None` for other values.
    pub fn items(&self, value: Value) -> Option<&[Value]> {
        if let Value::List(at) = value { self.lists.get(at as usize).map(Vec::as_slice) } else { None }
    }

    /// Key-value pairs of a dictionary that was not extracted.
    pub fn pairs_of(&self, value: Value) -> impl Iterator<Item = (Value, Value)> {
        self.flat_pairs(value).1.chunks_exact(2).map(|p| (p[0], p[1]))
    }

    /// Index of a dictionary that was not extracted, and its alternating keys and values.
    fn flat_pairs(&self, value: Value) -> (u32, &[Value]) {
        let Value::Dict(at) = value else { return (0, &[]) };
        match self.dicts.get(at as usize) {
            Some(Dict::Pairs(pairs)) => (at, self.pairs.get(*pairs as usize).map_or(&[], Vec::as_slice)),
            _ => (at, &[]),
        }
    }

    /// Kind and index of an extracted dictionary; `None` for other values.
    pub fn taken_as(&self, value: Value) -> Option<(u8, u32)> {
        match value {
            Value::Dict(at) => match self.dicts.get(at as usize)? {
                Dict::Taken(kind, at) => Some((*kind, *at)),
                Dict::Pairs(_) | Dict::Empty => None,
            },
            _ => None,
        }
    }

    /// Looks up a key in a dictionary.
    pub fn get(&self, value: Value, key: &str) -> Option<Value> {
        let (at, flat) = self.flat_pairs(value);
        if flat.len() <= 2 * FEW {
            // Cancellation is checked by the caller.
            let _ = self.pace.count_steps(flat.len() + 1);
            return flat.chunks_exact(2).find(|p| self.text(p[0]).is_some_and(|t| &**t == key)).map(|p| p[1]);
        }
        let key = self.known.get(key)?;
        let mut indices = self.indices.borrow_mut();
        let index = indices.entry(at).or_default();
        let new = flat.get(index.pairs..).unwrap_or_default();
        let _ = self.pace.count_steps(new.len() + 1);
        for pair in new.chunks_exact(2) {
            if let Value::Text(text) = pair[0] {
                index.of.entry(text).or_insert(pair[1]);
            }
        }
        index.pairs = flat.len();
        index.of.get(key).copied()
    }
}

/// Converts a value to a non-negative integer, such as a size or address.
pub fn to_natural(value: Option<Value>) -> Option<u64> {
    match value? {
        Value::Integer(n) => u64::try_from(n).ok(),
        _ => None,
    }
}
