//! Decoder for table records. The terms are those of SQLite's file format (sqlite.org/fileformat2.html, 2.1).
//!
//! A record is a header with one serial type per column, followed by the values. Adjacent rows nearly always have the
//! same header, so value offsets are computed once per header and then looked up.

/// Reads a varint of up to nine bytes, big-endian. Returns the value and its length in bytes.
#[inline]
pub fn read_varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    if first < 0x80 {
        return Some((u64::from(first), 1));
    }
    read_long_varint(bytes)
}

fn read_long_varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0;
    for (at, &byte) in bytes.iter().enumerate().take(9) {
        if at == 8 {
            return Some((value << 8 | u64::from(byte), 9));
        }
        value = value << 7 | u64::from(byte & 0x7f);
        if byte < 0x80 {
            return Some((value, at + 1));
        }
    }
    None
}

/// Size of a value of this serial type, bytes; 10 and 11 are reserved.
fn value_size(serial: u64) -> Option<usize> {
    match serial {
        0 | 8 | 9 => Some(0),
        1..=4 => usize::try_from(serial).ok(),
        5 => Some(6),
        6 | 7 => Some(8),
        10 | 11 => None,
        _ => usize::try_from((serial - 12) / 2).ok(),
    }
}

/// Type of a column, in records that share a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Null,
    /// 0 or 1, which the serial type itself represents.
    Constant(i64),
    /// A big-endian two's complement integer.
    Integer,
    Real,
    Text,
    Blob,
}

/// Type of a wanted column's value, and its location in the body of the record.
#[derive(Clone, Copy, Debug)]
struct Field {
    kind: Kind,
    /// Offset from the end of the header in bytes.
    at: usize,
    size: usize,
}

/// Layout of the records that share a header.
#[derive(Debug, Default)]
struct Shape {
    header: Vec<u8>,
    fields: Vec<Field>,
    /// True if a wanted column is neither an integer nor NULL.
    odd: bool,
    /// Number of bytes from the start of the record to the end of the last wanted value.
    needed: usize,
}

/// Number of layouts to cache, indexed by a hash of the header.
const SHAPES: usize = 64;
/// Maximum length of a header to cache.
const LONGEST: usize = 64;

/// Converts values that are neither integers nor NULL.
pub trait Odd {
    fn real(&self, value: f64) -> i64;
    fn text(&self, text: &[u8]) -> i64;
    /// The value to use for NULL and for blobs.
    fn null(&self) -> i64;
}

/// Decodes wanted columns from records.
#[derive(Debug)]
pub struct Decoder {
    wanted: Vec<usize>,
    shapes: Vec<Shape>,
    /// Index of the layout used last, because adjacent rows often share a layout.
    last: usize,
    /// Layout of the most recent header that was too long to cache.
    other: Shape,
}

fn hash_header(header: &[u8]) -> usize {
    let (words, rest) = header.as_chunks::<8>();
    let mix = |h: u64, w: u64| (h.rotate_left(5) ^ w).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let h = words.iter().fold(0, |h, w| mix(h, u64::from_le_bytes(*w)));
    let h = rest.iter().fold(h, |h, b| mix(h, u64::from(*b)));
    (h >> 58) as usize
}

impl Decoder {
    /// Returns a decoder for columns, given by index in ascending order.
    pub fn new(wanted: Vec<usize>) -> Self {
        Self { wanted, shapes: (0..SHAPES).map(|_| Shape::default()).collect(), last: 0, other: Shape::default() }
    }

    /// Number of wanted columns.
    pub fn len(&self) -> usize {
        self.wanted.len()
    }

    /// Decodes the wanted values of a record into `out`, which must be large enough. `record` starts with the record
    /// and may extend beyond it; `length` is the number of available bytes that belong to the record. Returns true if
    /// all values are integers or NULL, or `None` if a wanted column is missing or incomplete.
    #[inline]
    pub fn decode_record(&mut self, record: &[u8], length: usize, odd: &impl Odd, out: &mut [i64]) -> Option<bool> {
        let (head, _) = read_varint(record)?;
        // The size of the header includes itself.
        let head = usize::try_from(head).ok().filter(|&h| h > 0)?;
        let header = record.get(..head)?;
        let shape = if head <= LONGEST {
            if self.shapes[self.last].header != header {
                self.last = hash_header(header);
                let shape = &mut self.shapes[self.last];
                if shape.header != header {
                    *shape = shape_of(header, &self.wanted)?;
                }
            }
            &self.shapes[self.last]
        } else {
            self.other = shape_of(header, &self.wanted)?;
            &self.other
        };
        if shape.needed > length {
            return None;
        }
        let body = record.get(head..)?;
        for (field, out) in shape.fields.iter().zip(out) {
            *out = match field.kind {
                // Read eight bytes at once and shift out the excess ones.
                Kind::Integer => match body.get(field.at..field.at + 8) {
                    Some(bytes) => i64::from_be_bytes(bytes.try_into().ok()?) >> (64 - 8 * field.size),
                    None => read_integer(body.get(field.at..field.at + field.size)?),
                },
                Kind::Null | Kind::Blob => odd.null(),
                Kind::Constant(value) => value,
                Kind::Real => odd.real(f64::from_bits(read_integer(body.get(field.at..field.at + 8)?).cast_unsigned())),
                Kind::Text => odd.text(body.get(field.at..field.at + field.size)?),
            };
        }
        Some(!shape.odd)
    }
}

fn read_integer(bytes: &[u8]) -> i64 {
    let Some(&first) = bytes.first() else { return 0 };
    bytes[1..].iter().fold(i64::from(first.cast_signed()), |value, &byte| value << 8 | i64::from(byte))
}

fn shape_of(header: &[u8], wanted: &[usize]) -> Option<Shape> {
    let (_, mut at) = read_varint(header)?;
    let mut shape = Shape { header: header.to_vec(), needed: header.len(), ..Shape::default() };
    let (mut body, mut column) = (0_usize, 0);
    for &want in wanted {
        loop {
            let (serial, taken) = read_varint(header.get(at..)?)?;
            at += taken;
            let size = value_size(serial)?;
            let end = body.checked_add(size)?;
            column += 1;
            if column > want {
                let kind = match serial {
                    0 => Kind::Null,
                    1..=6 => Kind::Integer,
                    7 => Kind::Real,
                    8 => Kind::Constant(0),
                    9 => Kind::Constant(1),
                    _ if serial.is_multiple_of(2) => Kind::Blob,
                    _ => Kind::Text,
                };
                shape.odd |= matches!(kind, Kind::Real | Kind::Text | Kind::Blob);
                shape.fields.push(Field { kind, at: body, size });
                body = end;
                shape.needed = header.len().checked_add(end)?;
                break;
            }
            body = end;
        }
    }
    Some(shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Plainly;

    impl Odd for Plainly {
        fn real(&self, value: f64) -> i64 {
            (value * 10.0) as i64
        }
        fn text(&self, text: &[u8]) -> i64 {
            i64::try_from(text.len()).unwrap() * 1_000
        }
        fn null(&self) -> i64 {
            i64::MIN
        }
    }

    #[test]
    fn varints_are_big_endian_with_nine_bytes_at_most() {
        assert_eq!(read_varint(&[0x7f]), Some((127, 1)));
        assert_eq!(read_varint(&[0x81, 0x00]), Some((128, 2)));
        assert_eq!(read_varint(&[0xff; 9]), Some((u64::MAX, 9)));
        assert_eq!(read_varint(&[0x80; 8]), None);
        assert_eq!(read_varint(&[]), None);
    }

    #[test]
    fn values_come_out_by_their_serial_type() {
        // NULL, −2 in one byte, 300 in two bytes, 1, "hi", 1.5, −3 in six bytes.
        let record = [8, 0, 1, 2, 9, 17, 7, 5, 0xfe, 1, 44, b'h', b'i', 0x3f, 0xf8, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfd];
        let read = |wanted: &[usize], length: usize| {
            let mut decoder = Decoder::new(wanted.to_vec());
            let mut out = vec![7; wanted.len()];
            // The first call sees a new header, the second a cached one.
            let first = decoder.decode_record(&record[..length], length, &Plainly, &mut out);
            assert_eq!(decoder.decode_record(&record[..length], length, &Plainly, &mut out), first);
            first.map(|plain| (plain, out))
        };
        assert_eq!(read(&[0, 1, 2, 3, 4, 5, 6], record.len()), Some((false, vec![i64::MIN, -2, 300, 1, 2_000, 15, -3])));
        assert_eq!(read(&[1, 2, 6], record.len()), Some((true, vec![-2, 300, -3])));
        assert_eq!(read(&[7], record.len()), None, "there are seven columns");
        assert_eq!(read(&[4], 12), None, "the text is cut off");
        assert_eq!(read(&[1], 9), Some((true, vec![-2])), "what is wanted is there");
        assert_eq!(read(&[], 8), Some((true, Vec::new())));
    }
}
