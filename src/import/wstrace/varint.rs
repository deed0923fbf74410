//! Variable-length integers as in LEB128 and Protocol Buffers: seven bits per byte, little-endian. Signed integers are
//! zigzag-encoded.

/// Reads the bytes of a block from front to back. Every method returns `None` at the end or if the bytes are invalid.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn read_byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(first)
    }

    pub fn read_varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.read_byte()?;
            value |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Some(value);
            }
        }
        None
    }

    pub fn read_u32(&mut self) -> Option<u32> {
        u32::try_from(self.read_varint()?).ok()
    }

    pub fn read_signed(&mut self) -> Option<i64> {
        let v = self.read_varint()?;
        Some((v >> 1).cast_signed() ^ -((v & 1).cast_signed()))
    }

    pub fn read_bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(length)?;
        self.bytes = rest;
        Some(taken)
    }

    /// Reads a string with a length prefix.
    pub fn read_text(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.read_varint()?).ok()?;
        self.read_bytes(length)
    }

    pub fn read_u64(&mut self) -> Option<u64> {
        self.read_bytes(8)?.try_into().ok().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_length() {
        let mut c = Cursor::new(&[0, 127, 0x80, 1, 3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0x80]);
        assert_eq!((c.read_varint(), c.read_varint(), c.read_varint(), c.read_signed()), (Some(0), Some(127), Some(128), Some(-2)));
        assert_eq!(c.read_varint(), Some(u64::MAX));
        assert_eq!(c.read_varint(), None, "it ends within a number");
    }
}
