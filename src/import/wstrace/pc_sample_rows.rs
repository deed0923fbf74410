//! Parser for rows of stall reasons sampled during the run.

use super::varint::Cursor;

/// Samples of one instruction by stall reason. The module is identified by the CRC of its code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    pub module: u64,
    pub function: u32,
    pub offset: u64,
    pub reasons: Vec<(u32, u32)>,
}

/// A sampled launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stalls {
    /// OS thread that launched the kernel.
    pub thread: u32,
    /// Time just before the launch, ns since 1970.
    pub time: i64,
    /// Name, grid, block and dynamic shared memory as passed to the launch call.
    pub shape: (u32, [u32; 3], [u32; 3], u32),
    pub correlation: u32,
    /// Sampling period of each SM as a power of two: 2^period cycles.
    pub period: u32,
    /// Number of samples in the program's kernels, including instructions that are not in the row.
    pub total: u64,
    pub dropped: u64,
    /// True if CUPTI's buffer on the GPU filled up before the launch ended.
    pub full: bool,
    pub instructions: Vec<Instruction>,
}

/// Reads a row of samples.
pub fn read_stalls(c: &mut Cursor<'_>) -> Option<Stalls> {
    let thread = c.read_u32()?;
    let time = i64::try_from(c.read_varint()?).ok()?;
    let three = |c: &mut Cursor<'_>| Some([c.read_u32()?, c.read_u32()?, c.read_u32()?]);
    let shape = (c.read_u32()?, three(c)?, three(c)?, c.read_u32()?);
    let (correlation, period, total, dropped, full) =
        (c.read_u32()?, c.read_u32()?, c.read_varint()?, c.read_varint()?, c.read_varint()? != 0);
    let count = c.read_u32()?;
    let reasons = |c: &mut Cursor<'_>| {
        let count = c.read_u32()?;
        (0..count).map(|_| Some((c.read_u32()?, c.read_u32()?))).collect::<Option<Vec<_>>>()
    };
    let instruction = |c: &mut Cursor<'_>| {
        Some(Instruction { module: c.read_varint()?, function: c.read_u32()?, offset: c.read_varint()?, reasons: reasons(c)? })
    };
    let instructions = (0..count).map(|_| instruction(c)).collect::<Option<_>>()?;
    Some(Stalls { thread, time, shape, correlation, period, total, dropped, full, instructions })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_end_early_are_none() {
        // Thread, time, shape, correlation id, period, total, dropped, full, one instruction with two reasons.
        let row = [7, 100, 3, 2, 1, 1, 64, 1, 1, 0, 9, 11, 5, 0, 0, 1, 42, 4, 16, 2, 5, 3, 6, 1];
        let whole = read_stalls(&mut Cursor::new(&row)).unwrap();
        assert_eq!((whole.shape, whole.correlation, whole.period), ((3, [2, 1, 1], [64, 1, 1], 0), 9, 11));
        assert_eq!(whole.instructions, [Instruction { module: 42, function: 4, offset: 16, reasons: vec![(5, 3), (6, 1)] }]);
        for cut in 0..row.len() {
            assert_eq!(read_stalls(&mut Cursor::new(&row[..cut])), None, "{cut} bytes");
        }
    }
}
