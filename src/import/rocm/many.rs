//! Deserializer for long JSON lists that counts their items, so that a canceled job stops early.

use crate::model::Pace;
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;

thread_local! {
    /// Item counter of this thread, because serde's derived code cannot pass it to the visitor of a list.
    static PACE: RefCell<Option<Rc<Pace>>> = const { RefCell::new(None) };
}

/// Runs `read` with `pace` as the item counter of this thread.
pub fn with_counting<T>(pace: &Rc<Pace>, read: impl FnOnce() -> T) -> T {
    let before = PACE.replace(Some(Rc::clone(pace)));
    let out = read();
    PACE.set(before);
    out
}

/// A list whose items are counted while it is read.
pub struct Many<T>(pub Vec<T>);

impl<T> Default for Many<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

struct Items<T>(PhantomData<T>);

impl<'a, T: Deserialize<'a>> Visitor<'a> for Items<T> {
    type Value = Many<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut items: A) -> Result<Many<T>, A::Error> {
        let pace = PACE.with_borrow(Clone::clone);
        let mut out = Vec::new();
        while let Some(item) = items.next_element()? {
            if pace.as_ref().is_some_and(|p| !p.count_steps(1)) {
                return Err(A::Error::custom("cancelled"));
            }
            out.push(item);
        }
        Ok(Many(out))
    }
}

impl<'a, T: Deserialize<'a>> Deserialize<'a> for Many<T> {
    fn deserialize<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(Items(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Cancel;

    #[test]
    fn a_list_ends_where_the_job_does() {
        let text = format!("[{}0]", "1,".repeat(99_999));
        let cancel = Cancel::default();
        let read = || with_counting(&Rc::new(cancel.pace()), || serde_json::from_str::<Many<u32>>(&text));
        assert_eq!((read().unwrap().0.len(), cancel.steps_done()), (100_000, 100_000));
        cancel.cancel();
        assert!(read().is_err() && cancel.steps_done() < 200_000);
        assert_eq!(serde_json::from_str::<Many<u32>>("[1]").unwrap().0, [1]);
    }
}
