//! Line tables of Python code objects.

/// Line of the instruction at a byte offset in a function's code; `None` if it has no line. `first` is the line
/// before the first instruction. `minor` is the minor version of Python 3, which determines the encoding: `co_lnotab`
/// before 3.10 (`Objects/lnotab_notes.txt`), `co_linetable` as in PEP 626, and from 3.11 on as in PEP 657
/// (`InternalDocs/code_objects.md`).
pub fn find_line(table: &[u8], minor: u32, first: i64, offset: i64) -> Option<u32> {
    let line = match minor {
        _ if offset < 0 => first,
        0..10 => line_in_lnotab(table, first, offset),
        10 => line_in_pep_626(table, first, offset)?,
        _ => line_in_locations(table, first, offset)?,
    };
    u32::try_from(line).ok().filter(|&line| line > 0)
}

/// The table consists of pairs: increment of the offset, and increment of the line.
fn line_in_lnotab(table: &[u8], first: i64, offset: i64) -> i64 {
    let (mut at, mut line) = (0, first);
    for pair in table.as_chunks::<2>().0 {
        at += i64::from(pair[0]);
        if at > offset {
            break;
        }
        line = line.saturating_add(i64::from(pair[1].cast_signed()));
    }
    line
}

/// The table consists of pairs: length of a range, and increment of the line at its start; -128 if the range has no
/// line.
fn line_in_pep_626(table: &[u8], first: i64, offset: i64) -> Option<i64> {
    let (mut end, mut line) = (0, first);
    for pair in table.as_chunks::<2>().0 {
        end += i64::from(pair[0]);
        let step = pair[1].cast_signed();
        if step != i8::MIN {
            line = line.saturating_add(i64::from(step));
        }
        if offset < end {
            return (step != i8::MIN).then_some(line);
        }
    }
    None
}

/// Each entry starts with a byte that holds a code (4 bits) and a length in instructions (3 bits). The code
/// determines what follows: an increment of the line, and columns.
fn line_in_locations(table: &[u8], first: i64, offset: i64) -> Option<i64> {
    const INSTRUCTION: i64 = 2;
    let mut bytes = table.iter().copied();
    let (mut end, mut line) = (0_i64, first);
    while let Some(byte) = bytes.next() {
        let (code, length) = (byte >> 3 & 15, i64::from(byte & 7) + 1);
        let mut known = true;
        match code {
            0..10 => {
                bytes.next()?;
            }
            10..13 => {
                line = line.saturating_add(i64::from(code) - 10);
                bytes.nth(1)?;
            }
            13 => line = line.saturating_add(read_signed(&mut bytes)?),
            14 => {
                line = line.saturating_add(read_signed(&mut bytes)?);
                for _ in 0..3 {
                    read_number(&mut bytes)?;
                }
            }
            _ => known = false,
        }
        end += length * INSTRUCTION;
        if offset < end {
            return known.then_some(line);
        }
    }
    None
}

/// Six bits per byte, lowest bits first; bit 6 is set in all bytes except the last.
fn read_number(bytes: &mut impl Iterator<Item = u8>) -> Option<i64> {
    let mut value = 0;
    for shift in (0..36).step_by(6) {
        let byte = bytes.next()?;
        value |= i64::from(byte & 63) << shift;
        if byte & 64 == 0 {
            return Some(value);
        }
    }
    None
}

/// The lowest bit is the sign.
fn read_signed(bytes: &mut impl Iterator<Item = u8>) -> Option<i64> {
    let value = read_number(bytes)?;
    Some(if value & 1 == 1 { -(value >> 1) } else { value >> 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `(offset, line)` pairs from `dis.findlinestarts` for this function in each version, and its table:
    /// ```python
    /// def f(a):
    ///     b = [a,
    ///          a]
    ///     for i in b:
    ///
    ///         g(i,
    ///           b)
    ///     return b
    /// ```
    #[test]
    fn lines_as_python_has_them() {
        for (minor, first, table, lines) in CASES {
            let table: Vec<u8> = (0..table.len() / 2).map(|i| u8::from_str_radix(&table[2 * i..2 * i + 2], 16).unwrap()).collect();
            for &(offset, line) in *lines {
                assert_eq!(find_line(&table, *minor, *first, offset), Some(line), "3.{minor} at {offset}");
            }
            assert_eq!(find_line(&table, *minor, *first, -2), u32::try_from(*first).ok(), "before its first instruction");
        }
    }

    #[test]
    fn a_damaged_table_has_no_lines_or_others() {
        for minor in [8, 10, 11, 14] {
            for table in [&[][..], &[0xff; 7], &[0xf0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], &[0x80, 0x7f].repeat(5000)] {
                assert!(find_line(table, minor, 7, 1 << 20).is_none() || minor == 8);
                assert!(find_line(table, minor, i64::MAX, 2).is_none());
            }
            assert_eq!(find_line(&[], minor, 0, 0), None);
        }
    }

    type Case = (u32, i64, &'static str, &'static [(i64, u32)]);
    const CASES: &[Case] = &[
        (
            8,
            3,
            "0001020102ff04020802040102ff0602",
            &[(0, 4), (2, 5), (4, 4), (6, 4), (8, 6), (14, 6), (16, 8), (18, 8), (20, 9), (22, 8), (26, 8), (28, 10)],
        ),
        (
            9,
            3,
            "0001020102ff04020802040102ff0602",
            &[(0, 4), (2, 5), (4, 4), (6, 4), (8, 6), (14, 6), (16, 8), (18, 8), (20, 9), (22, 8), (26, 8), (28, 10)],
        ),
        (
            10,
            3,
            "0201020104ff08020402020106ff0402",
            &[(0, 4), (2, 5), (4, 4), (6, 4), (8, 6), (14, 6), (16, 8), (18, 8), (20, 9), (22, 8), (26, 8), (28, 10), (30, 10)],
        ),
        (
            11,
            3,
            "8000d8090ad8090af00301090c8041e00d0ef00003050df00003050d8801e508098821d80a0bf10301090df40001090df00001090df00001090de00b0c8048",
            &[
                (0, 3),
                (2, 4),
                (4, 5),
                (6, 4),
                (8, 4),
                (10, 6),
                (12, 6),
                (14, 6),
                (16, 6),
                (18, 8),
                (28, 8),
                (30, 8),
                (32, 9),
                (34, 8),
                (36, 8),
                (38, 8),
                (46, 8),
                (48, 8),
                (50, 8),
                (52, 10),
                (54, 10),
            ],
        ),
        (
            12,
            3,
            "8000d8090ad8090af00301090c8041e00d0ef20003050d8801e408098821d80a0bf50301090df00503050df008000c0d8048",
            &[
                (0, 3),
                (2, 4),
                (4, 5),
                (6, 4),
                (8, 4),
                (10, 6),
                (18, 6),
                (20, 8),
                (30, 8),
                (32, 9),
                (34, 8),
                (44, 8),
                (46, 6),
                (48, 10),
                (50, 10),
            ],
        ),
        (
            13,
            3,
            "8000d8090ad8090af00301090c8041e30d0e8801e408098821d80a0bf60301090df105000e0ff008000c0d8048",
            &[
                (0, 3),
                (2, 4),
                (4, 5),
                (6, 4),
                (8, 4),
                (10, 6),
                (18, 6),
                (20, 8),
                (30, 8),
                (32, 9),
                (34, 8),
                (46, 8),
                (48, 6),
                (50, 6),
                (52, 10),
                (54, 10),
            ],
        ),
        (
            14,
            3,
            "8000d8090ad8090af00301090c8041e30d0e8801e408098821d80a0bf60301090df105000e0ff008000c0d8048",
            &[
                (0, 3),
                (2, 4),
                (4, 5),
                (6, 4),
                (8, 4),
                (10, 6),
                (18, 6),
                (20, 8),
                (30, 8),
                (32, 9),
                (34, 8),
                (46, 8),
                (48, 6),
                (50, 6),
                (52, 10),
                (54, 10),
            ],
        ),
    ];
}
