//! What a pickle holds.

use std::sync::Arc;

/// A value of a pickle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    None,
    Bool(bool),
    Integer(i64),
    Real(f64),
    /// Index into [`Pickle::texts`].
    Text(u32),
    /// Index into [`Pickle::lists`]; tuples are lists, too.
    List(u32),
    /// Index into [`Pickle::dicts`].
    Dict(u32),
}

/// What a dictionary was handed over as.
#[derive(Clone, Debug)]
pub enum Dict {
    Empty,
    /// Index into [`Pickle::pairs`].
    Pairs(u32),
    /// Kind and index that whoever took it gave it.
    Taken(u8, u32),
}

/// All that a pickle holds.
#[derive(Debug, Default)]
pub struct Pickle {
    pub texts: Vec<Arc<str>>,
    pub lists: Vec<Vec<Value>>,
    pub dicts: Vec<Dict>,
    /// Keys and values in turn of each dictionary that nobody took.
    pub pairs: Vec<Vec<Value>>,
}

impl Pickle {
    #[must_use]
    pub fn text(&self, value: Value) -> Option<&Arc<str>> {
        if let Value::Text(at) = value { self.texts.get(at as usize) } else { None }
    }

    /// The items of a list.
    #[must_use]
    pub fn items(&self, value: Value) -> Option<&[Value]> {
        if let Value::List(at) = value { self.lists.get(at as usize).map(Vec::as_slice) } else { None }
    }

    /// The pairs of a dictionary that nobody took.
    pub fn pairs_of(&self, value: Value) -> impl Iterator<Item = (Value, Value)> {
        let flat: &[Value] = match value {
            Value::Dict(at) => match self.dicts.get(at as usize) {
                Some(Dict::Pairs(at)) => self.pairs.get(*at as usize).map_or(&[], Vec::as_slice),
                _ => &[],
            },
            _ => &[],
        };
        flat.chunks_exact(2).map(|p| (p[0], p[1]))
    }

    /// What a dictionary was taken as.
    #[must_use]
    pub fn taken(&self, value: Value) -> Option<(u8, u32)> {
        match value {
            Value::Dict(at) => match self.dicts.get(at as usize)? {
                Dict::Taken(kind, at) => Some((*kind, *at)),
                Dict::Pairs(_) | Dict::Empty => None,
            },
            _ => None,
        }
    }

    /// What a dictionary has under a key.
    #[must_use]
    pub fn get(&self, value: Value, key: &str) -> Option<Value> {
        self.pairs_of(value).find(|(k, _)| self.text(*k).is_some_and(|t| &**t == key)).map(|p| p.1)
    }
}

/// A number that is no less than 0, as such; sizes and addresses.
#[must_use]
pub fn natural(value: Option<Value>) -> Option<u64> {
    match value? {
        Value::Integer(n) => u64::try_from(n).ok(),
        _ => None,
    }
}
