//! Values by row id, in a vector for the consecutive ids, which nearly all ids are.

use rustc_hash::FxHashMap;

pub struct ById<T> {
    first: i64,
    dense: Vec<T>,
    others: FxHashMap<i64, T>,
}

impl<T: Copy> ById<T> {
    /// Collects rows in table order.
    pub fn from_rows(rows: usize, mut all: impl Iterator<Item = (i64, T)>) -> Self {
        let mut out = Self { first: 0, dense: Vec::with_capacity(rows), others: FxHashMap::default() };
        if let Some((id, value)) = all.next() {
            out.first = id;
            out.dense.push(value);
        }
        for (id, value) in all {
            if id.checked_sub(out.first).and_then(|i| usize::try_from(i).ok()) == Some(out.dense.len()) {
                out.dense.push(value);
            } else {
                out.others.insert(id, value);
            }
        }
        out
    }

    pub fn get(&self, id: i64) -> Option<T> {
        let at = id.checked_sub(self.first).and_then(|i| usize::try_from(i).ok());
        at.and_then(|at| self.dense.get(at)).or_else(|| self.others.get(&id)).copied()
    }
}

impl<T> Default for ById<T> {
    fn default() -> Self {
        Self { first: 0, dense: Vec::new(), others: FxHashMap::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_in_any_order_are_found() {
        let rows = [(7, 'a'), (8, 'b'), (3, 'c'), (9, 'd'), (20, 'e'), (i64::MIN, 'f')];
        let map = ById::from_rows(rows.len(), rows.into_iter());
        assert!(rows.iter().all(|&(id, value)| map.get(id) == Some(value)));
        assert_eq!((map.get(10), map.get(6), map.get(i64::MAX)), (None, None, None));
        assert_eq!(ById::<u8>::from_rows(0, std::iter::empty()).get(0), None);
    }
}
