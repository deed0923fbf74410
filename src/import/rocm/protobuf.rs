//! Field-by-field Protocol Buffers reader for byte slices. An invalid field ends the message.

use std::cell::Cell;

/// An interned string of a trace with its cached id: many events may refer to the string, and a lookup takes time
/// proportional to its length.
#[derive(Clone, Debug, Default)]
pub struct Text<'a> {
    pub bytes: &'a [u8],
    number: Cell<Option<u32>>,
}

impl<'a> Text<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, number: Cell::new(None) }
    }

    /// Returns the id; calls `look_up` on first use.
    pub fn cached_number(&self, look_up: impl FnOnce(&'a [u8]) -> u32) -> u32 {
        let number = self.number.get().unwrap_or_else(|| look_up(self.bytes));
        self.number.set(Some(number));
        number
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// A varint, or a fixed-size 32-bit or 64-bit number.
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    pub fn number(self) -> Option<u64> {
        if let Self::Number(n) = self { Some(n) } else { None }
    }

    pub fn bytes(self) -> Option<&'a [u8]> {
        if let Self::Bytes(b) = self { Some(b) } else { None }
    }
}

/// Iterates over the fields of a message in order.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
    /// True if the message ended within a field.
    pub torn: bool,
}

impl<'a> Fields<'a> {
    pub fn new(message: &'a [u8]) -> Self {
        Self { rest: message, torn: false }
    }

    fn read_varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            value |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Some(value);
            }
        }
        None
    }

    fn take_bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    fn read_field(&mut self) -> Option<(u64, Value<'a>)> {
        let key = self.read_varint()?;
        let value = match key & 7 {
            0 => Value::Number(self.read_varint()?),
            1 => Value::Number(u64::from_le_bytes(self.take_bytes(8)?.try_into().ok()?)),
            2 => {
                let length = usize::try_from(self.read_varint()?).ok()?;
                Value::Bytes(self.take_bytes(length)?)
            }
            5 => Value::Number(u64::from(u32::from_le_bytes(self.take_bytes(4)?.try_into().ok()?))),
            _ => return None,
        };
        Some((key >> 3, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u64, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.read_field();
        if field.is_none() {
            self.torn = true;
            self.rest = &[];
        }
        field
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_all_forms_until_one_is_torn() {
        let message = [0x08, 0x96, 0x01, 0x12, 2, b'h', b'i', 0x1d, 1, 0, 0, 0, 0x21, 2, 0, 0, 0, 0, 0, 0, 0, 0x0a, 9, 1];
        let mut fields = Fields::new(&message);
        assert_eq!(fields.next(), Some((1, Value::Number(150))));
        assert_eq!(fields.next(), Some((2, Value::Bytes(b"hi"))));
        assert_eq!(fields.next(), Some((3, Value::Number(1))));
        assert_eq!(fields.next(), Some((4, Value::Number(2))));
        assert_eq!((fields.next(), fields.torn), (None, true));
    }
}
