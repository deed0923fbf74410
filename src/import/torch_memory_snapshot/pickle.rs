//! Safe reader for pickles that contain only plain values. Opcodes that run code or create objects are errors.
//!
//! Opcodes are those in `Lib/pickletools.py` of Python 3.14. A snapshot may contain ten million small dictionaries;
//! to save memory, each of them is passed to a [`Take`] as soon as it is complete.

use super::stream::{Bytes, Refusal};
use super::value::{Dict, Pickle, Value};
use crate::model::Pace;
use std::io::Read;
use std::sync::Arc;

/// Extracts small dictionaries from a pickle.
pub trait Take {
    /// Called when a dictionary receives items, with `pairs` alternating between keys and values. Returns a
    /// replacement for the dictionary, or `None` to keep it.
    fn take(&mut self, pairs: &[Value], pickle: &mut Pickle) -> Option<(u8, u32)>;
}

/// Maximum number of values on the stack. Python writes batches of 1,000 values.
const DEEPEST: usize = 1 << 16;
/// Maximum length of a string, bytes; names, paths and settings are much shorter.
const LONGEST: u64 = 1 << 24;

/// Memory used by a list item, an empty list, an empty dictionary, and a string excluding its characters, bytes.
/// Increased by half, because all of them are stored in growing tables.
const VALUE: usize = size_of::<Value>() * 3 / 2;
const LIST: usize = size_of::<Vec<Value>>() * 3 / 2;
const DICT: usize = size_of::<Dict>() * 3 / 2;
const TEXT: usize = 96;

/// Opcodes that import, call or construct something.
const CODE: &[(u8, &str)] = &[
    (b'c', "GLOBAL"),
    (0x93, "STACK_GLOBAL"),
    (b'R', "REDUCE"),
    (b'b', "BUILD"),
    (b'i', "INST"),
    (b'o', "OBJ"),
    (0x81, "NEWOBJ"),
    (0x92, "NEWOBJ_EX"),
    (0x82, "EXT1"),
    (0x83, "EXT2"),
    (0x84, "EXT4"),
    (b'P', "PERSID"),
    (b'Q', "BINPERSID"),
];

struct Machine<'a, R, T> {
    from: Bytes<'a, R>,
    take: &'a mut T,
    out: Pickle,
    stack: Vec<Value>,
    /// Stack positions of the first items of lists, tuples and dictionaries under construction.
    marks: Vec<usize>,
    memo: Vec<Value>,
    /// Remaining memory budget, bytes.
    left: u64,
    word: Vec<u8>,
}

impl<R: Read, T: Take> Machine<'_, R, T> {
    fn check_pace(&self, steps: usize) -> Result<(), Refusal> {
        if self.out.pace.count_steps(steps) { Ok(()) } else { Err(Refusal::Cancelled) }
    }

    fn read_bytes<const N: usize>(&mut self) -> Result<[u8; N], Refusal> {
        self.from.next()
    }

    /// Takes memory from the budget.
    #[inline]
    fn charge_memory(&mut self, bytes: usize) -> Result<(), Refusal> {
        self.left = self.left.checked_sub(bytes as u64).ok_or(Refusal::Memory)?;
        Ok(())
    }

    fn push(&mut self, value: Value) -> Result<(), Refusal> {
        if self.stack.len() >= DEEPEST {
            return Err(Refusal::Damaged("too many values wait to be put somewhere"));
        }
        self.stack.push(value);
        Ok(())
    }

    fn pop_value(&mut self) -> Result<Value, Refusal> {
        self.top_start(1)?;
        self.stack.pop().ok_or(Refusal::Damaged("a value is missing"))
    }

    /// Returns the stack position of the last `values` values, all of which must come after the last mark.
    fn top_start(&self, values: usize) -> Result<usize, Refusal> {
        let least = self.marks.last().copied().unwrap_or(0);
        self.stack.len().checked_sub(values).filter(|&at| at >= least).ok_or(Refusal::Damaged("a value is missing"))
    }

    /// Removes the last mark and returns its stack position.
    fn pop_mark(&mut self) -> Result<usize, Refusal> {
        self.marks.pop().ok_or(Refusal::Damaged("a mark is missing"))
    }

    fn read_text(&mut self, length: u64) -> Result<Value, Refusal> {
        if length > LONGEST {
            return Err(Refusal::Damaged("a text is longer than 16 MB"));
        }
        self.check_pace(usize::try_from(length).unwrap_or(usize::MAX))?;
        self.word.clear();
        self.from.read_many(usize::try_from(length).unwrap_or(usize::MAX), &mut self.word)?;
        let text = String::from_utf8_lossy(&self.word);
        if let Some(&index) = self.out.known.get(&*text) {
            return Ok(Value::Text(index));
        }
        let (text, index): (Arc<str>, u32) = (Arc::from(&*text), to_index(self.out.texts.len())?);
        self.charge_memory(text.len() + TEXT)?;
        self.out.texts.push(Arc::clone(&text));
        self.out.known.insert(text, index);
        Ok(Value::Text(index))
    }

    fn new_list(&mut self, items: Vec<Value>) -> Result<Value, Refusal> {
        self.charge_memory(LIST + items.len() * VALUE)?;
        self.out.lists.push(items);
        Ok(Value::List(to_index(self.out.lists.len() - 1)?))
    }

    fn make_tuple(&mut self, items: usize) -> Result<(), Refusal> {
        let mut of = Vec::with_capacity(items);
        for _ in 0..items {
            of.push(self.pop_value()?);
        }
        of.reverse();
        let value = self.new_list(of)?;
        self.push(value)
    }

    /// Moves the values from stack position `from` onward into the list below them.
    fn append_items(&mut self, from: usize) -> Result<(), Refusal> {
        let Some(&Value::List(list)) = from.checked_sub(1).and_then(|at| self.stack.get(at)) else {
            return Err(Refusal::Damaged("items without a list"));
        };
        self.charge_memory((self.stack.len() - from) * VALUE)?;
        self.out.lists[list as usize].extend_from_slice(&self.stack[from..]);
        self.stack.truncate(from);
        Ok(())
    }

    /// Moves the keys and values from stack position `from` onward into the dictionary below them.
    fn set_items(&mut self, from: usize) -> Result<(), Refusal> {
        let Some(&Value::Dict(dict)) = from.checked_sub(1).and_then(|at| self.stack.get(at)) else {
            return Err(Refusal::Damaged("items without a dictionary"));
        };
        let items = self.stack.len() - from;
        self.check_pace(items)?;
        // This is an upper bound, because extracted parts take less memory.
        self.charge_memory(LIST + items * VALUE)?;
        let pairs = &self.stack[from..];
        if pairs.len() % 2 == 1 {
            return Err(Refusal::Damaged("a key without a value"));
        }
        match self.out.dicts[dict as usize] {
            Dict::Taken(..) => return Err(Refusal::Damaged("items for a dictionary that was whole")),
            Dict::Pairs(there) => self.out.pairs[there as usize].extend_from_slice(pairs),
            Dict::Empty => {
                self.out.dicts[dict as usize] = if let Some((kind, at)) = self.take.take(pairs, &mut self.out) {
                    Dict::Taken(kind, at)
                } else {
                    self.out.pairs.push(pairs.to_vec());
                    Dict::Pairs(to_index(self.out.pairs.len() - 1)?)
                };
            }
        }
        self.stack.truncate(from);
        Ok(())
    }

    fn memoize_top(&mut self, at: Option<usize>) -> Result<(), Refusal> {
        let value = *self.stack.last().ok_or(Refusal::Damaged("nothing to remember"))?;
        let at = at.unwrap_or(self.memo.len());
        self.charge_memory(VALUE)?;
        // Memo ids are consecutive, starting at 0 or 1.
        match at.checked_sub(self.memo.len()) {
            None => self.memo[at] = value,
            Some(0 | 1) => self.memo.resize(at + 1, value),
            Some(_) => return Err(Refusal::Damaged("values are remembered out of order")),
        }
        Ok(())
    }

    fn push_memo(&mut self, at: usize) -> Result<(), Refusal> {
        let value = *self.memo.get(at).ok_or(Refusal::Damaged("a value that was never remembered"))?;
        self.push(value)
    }

    /// Reads a little-endian two's complement integer of up to 128 bits. Integers in snapshots fit into 64 bits,
    /// except for some huge line numbers, which are clamped.
    fn read_long(&mut self, length: usize) -> Result<(), Refusal> {
        // Fast path for the most common integers, which are addresses and times.
        if let 6 | 7 = length {
            let mut bytes = [0; 8];
            if length == 6 {
                bytes[..6].copy_from_slice(&self.read_bytes::<6>()?);
            } else {
                bytes[..7].copy_from_slice(&self.read_bytes::<7>()?);
            }
            let unused = u32::try_from(8 - length).unwrap_or(0) * 8;
            return self.push(Value::Integer((i64::from_le_bytes(bytes) << unused) >> unused));
        }
        if length > 16 {
            return Err(Refusal::Damaged("an integer of more than 128 bits"));
        }
        self.word.clear();
        self.from.read_many(length, &mut self.word)?;
        let mut bytes = [0; 16];
        bytes[..length].copy_from_slice(&self.word);
        let unused = u32::try_from(16 - length).unwrap_or(0) * 8;
        let value = if length == 0 { 0 } else { (i128::from_le_bytes(bytes) << unused) >> unused };
        let nearest = value.clamp(i64::MIN.into(), i64::MAX.into());
        self.push(Value::Integer(i64::try_from(nearest).unwrap_or(i64::MAX)))
    }

    /// Executes one opcode other than `STOP`.
    #[inline]
    fn execute_opcode(&mut self, code: u8) -> Result<(), Refusal> {
        match code {
            0x80 => drop(self.read_bytes::<1>()?),
            // Skip the length of the frame.
            0x95 => drop(self.read_bytes::<8>()?),
            b'N' => self.push(Value::None)?,
            0x88 => self.push(Value::Bool(true))?,
            0x89 => self.push(Value::Bool(false))?,
            b'K' => {
                let [n] = self.read_bytes()?;
                self.push(Value::Integer(n.into()))?;
            }
            b'M' => {
                let n = u16::from_le_bytes(self.read_bytes()?);
                self.push(Value::Integer(n.into()))?;
            }
            b'J' => {
                let n = i32::from_le_bytes(self.read_bytes()?);
                self.push(Value::Integer(n.into()))?;
            }
            0x8a => {
                let [n] = self.read_bytes()?;
                self.read_long(n.into())?;
            }
            0x8b => {
                let n = u32::from_le_bytes(self.read_bytes()?);
                self.read_long(n as usize)?;
            }
            b'G' => {
                let x = f64::from_be_bytes(self.read_bytes()?);
                self.push(Value::Real(x))?;
            }
            // Strings, and also byte strings, which are irrelevant in a snapshot.
            0x8c | b'C' => {
                let [n] = self.read_bytes()?;
                let text = self.read_text(n.into())?;
                self.push(text)?;
            }
            b'X' | b'B' => {
                let n = u32::from_le_bytes(self.read_bytes()?);
                let text = self.read_text(n.into())?;
                self.push(text)?;
            }
            0x8d | 0x8e => {
                let n = u64::from_le_bytes(self.read_bytes()?);
                let text = self.read_text(n)?;
                self.push(text)?;
            }
            b']' => {
                let list = self.new_list(Vec::new())?;
                self.push(list)?;
            }
            b'0' => {
                self.pop_value()?;
            }
            b')' => self.make_tuple(0)?,
            0x85 => self.make_tuple(1)?,
            0x86 => self.make_tuple(2)?,
            0x87 => self.make_tuple(3)?,
            b't' => {
                let from = self.pop_mark()?;
                let items = self.stack.split_off(from);
                let tuple = self.new_list(items)?;
                self.push(tuple)?;
            }
            b'}' => {
                self.charge_memory(DICT)?;
                self.out.dicts.push(Dict::Empty);
                let dict = Value::Dict(to_index(self.out.dicts.len() - 1)?);
                self.push(dict)?;
            }
            b'(' if self.marks.len() < DEEPEST => self.marks.push(self.stack.len()),
            b'a' => {
                let from = self.top_start(1)?;
                self.append_items(from)?;
            }
            b'e' => {
                let from = self.pop_mark()?;
                self.append_items(from)?;
            }
            b's' => {
                let from = self.top_start(2)?;
                self.set_items(from)?;
            }
            b'u' => {
                let from = self.pop_mark()?;
                self.set_items(from)?;
            }
            0x94 => self.memoize_top(None)?,
            b'q' => {
                let [at] = self.read_bytes()?;
                self.memoize_top(Some(at.into()))?;
            }
            b'r' => {
                let at = u32::from_le_bytes(self.read_bytes()?);
                self.memoize_top(Some(at as usize))?;
            }
            b'h' => {
                let [at] = self.read_bytes()?;
                self.push_memo(at.into())?;
            }
            b'j' => {
                let at = u32::from_le_bytes(self.read_bytes()?);
                self.push_memo(at as usize)?;
            }
            other => {
                let known = CODE.iter().find(|c| c.0 == other).map(|c| c.1);
                return Err(known.map_or(Refusal::Damaged("an opcode that no snapshot has"), Refusal::Code));
            }
        }
        Ok(())
    }
}

fn to_index(n: usize) -> Result<u32, Refusal> {
    u32::try_from(n).map_err(|_| Refusal::Damaged("more than four thousand million values"))
}

/// Reads a complete pickle using at most `left` bytes of memory. Returns the outermost value or, on failure, the
/// error and the number of opcodes executed.
pub fn read_pickle<R: Read, T: Take>(from: &mut R, take: &mut T, pace: Pace, left: u64) -> Result<(Pickle, Value), (Refusal, u64)> {
    let out = Pickle::new(pace);
    let from = Bytes::new(from);
    let (stack, marks, memo, word) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut machine = Machine { from, take, out, stack, marks, memo, left, word };
    let mut done = 0_u64;
    loop {
        if let Err(refusal) = machine.check_pace(1) {
            return Err((refusal, done));
        }
        let step = match machine.read_bytes() {
            Ok([b'.']) => return machine.pop_value().map(|value| (machine.out, value)).map_err(|refusal| (refusal, done)),
            Ok([code]) => machine.execute_opcode(code),
            Err(refusal) => Err(refusal),
        };
        if let Err(refusal) = step {
            return Err((refusal, done));
        }
        done += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Cancel;

    struct Nobody;
    impl Take for Nobody {
        fn take(&mut self, _: &[Value], _: &mut Pickle) -> Option<(u8, u32)> {
            None
        }
    }

    fn loaded(bytes: &[u8]) -> Result<(Pickle, Value), Refusal> {
        loaded_in(bytes, 1 << 24)
    }

    fn loaded_in(mut bytes: &[u8], left: u64) -> Result<(Pickle, Value), Refusal> {
        read_pickle(&mut bytes, &mut Nobody, Cancel::default().pace(), left).map_err(|e| e.0)
    }

    #[test]
    fn values_are_what_python_wrote() {
        // pickle.dumps({"a": [1, 300, -5, 1 << 40, 1.5, None, True], "b": (1, 2), "c": "a"}, 4)
        let bytes = b"\x80\x04\x951\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01a\x94]\x94(K\x01M,\x01J\xfb\xff\xff\xff\x8a\x06\x00\x00\x00\x00\x00\x01G?\xf8\x00\x00\x00\x00\x00\x00N\x88e\x8c\x01b\x94K\x01K\x02\x86\x94\x8c\x01c\x94h\x01u.";
        let (pickle, whole) = loaded(bytes).unwrap();
        let a = pickle.items(pickle.get(whole, "a").unwrap()).unwrap();
        let n = Value::Integer;
        assert_eq!(a, [n(1), n(300), n(-5), n(1 << 40), Value::Real(1.5), Value::None, Value::Bool(true)]);
        assert_eq!(pickle.items(pickle.get(whole, "b").unwrap()).unwrap(), [n(1), n(2)]);
        assert_eq!(pickle.text(pickle.get(whole, "c").unwrap()).map(|t| &**t), Some("a"));
    }

    #[test]
    fn nothing_is_run() {
        // `os.system("true")`, as `pickle.dumps` encodes it for an object with `__reduce__`.
        let bytes =
            b"\x80\x04\x95\x1c\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94\x8c\x04true\x94\x85\x94R\x94.";
        assert!(matches!(loaded(bytes), Err(Refusal::Code("STACK_GLOBAL"))));
        assert!(matches!(loaded(b"\x80\x02cposix\nsystem\n."), Err(Refusal::Code("GLOBAL"))));
    }

    #[test]
    fn memory_is_bounded_whatever_takes_it() {
        let units: [(&str, &[u8]); 6] = [
            ("lists", b"]a"),
            ("dictionaries", b"}a"),
            ("tuples", b"NNN\x87a"),
            ("pairs", b"}NNsa"),
            ("what is remembered", b"N\x94a"),
            ("items", b"Na"),
        ];
        for (name, unit) in units {
            let of = |n: usize| [b"\x80\x04]", unit.repeat(n).as_slice(), b"."].concat();
            assert!(matches!(loaded_in(&of(200_000), 1 << 20), Err(Refusal::Memory)), "{name}");
            assert!(loaded_in(&of(2_000), 1 << 20).is_ok(), "{name}");
        }
    }

    #[test]
    fn damage_is_said_and_never_fatal() {
        assert!(matches!(loaded(b"\x80\x04"), Err(Refusal::Short)));
        assert!(matches!(loaded(b"\x80\x04a."), Err(Refusal::Damaged(_))));
        assert!(matches!(loaded(b"\x80\x04}K\x01s."), Err(Refusal::Damaged(_))));
        assert!(matches!(loaded(b"\x80\x04h\x07."), Err(Refusal::Damaged(_))));
        assert!(matches!(loaded(b"\x80\x04N\x72\xff\xff\xff\xff."), Err(Refusal::Damaged(_))));
        assert!(matches!(loaded(b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xff."), Err(Refusal::Damaged(_))));
        assert!(matches!(loaded(&vec![b']'; 100_000]), Err(Refusal::Damaged(_) | Refusal::Memory)));
        // A list containing itself.
        assert!(loaded(b"\x80\x04]\x94h\x00a.").is_ok());
    }
}
