//! Parser for rows of hardware counters measured during the run.

use super::varint::Cursor;

/// Metrics that are measured together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    pub number: u32,
    /// Metric names, as string ids.
    pub metrics: Vec<u32>,
}

/// Counter values from one launch that was replayed, or from several launches of the same kernel with one pass each.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    pub set: u32,
    /// True for a single launch that was replayed once per pass.
    pub replayed: bool,
    /// Time just before the first launch call, ns since 1970.
    pub time: i64,
    /// Name, grid, block and dynamic shared memory as passed to the launch call.
    pub shape: (u32, [u32; 3], [u32; 3], u32),
    /// Correlation id of the launch of each pass.
    pub correlations: Vec<u32>,
    /// Values in the order of the set; NaN if a value is missing.
    pub values: Vec<f64>,
}

/// Reads a row that lists the metrics of a set.
pub fn read_set(c: &mut Cursor<'_>) -> Option<Set> {
    let (number, _passes, count) = (c.read_u32()?, c.read_u32()?, c.read_u32()?);
    let metrics = (0..count).map(|_| c.read_u32()).collect::<Option<_>>()?;
    Some(Set { number, metrics })
}

/// Reads a row of metric values.
pub fn read_measured(c: &mut Cursor<'_>) -> Option<Measured> {
    let (set, replayed, _thread) = (c.read_u32()?, c.read_u32()? != 0, c.read_u32()?);
    let time = i64::try_from(c.read_varint()?).ok()?;
    let three = |c: &mut Cursor<'_>| Some([c.read_u32()?, c.read_u32()?, c.read_u32()?]);
    let shape = (c.read_u32()?, three(c)?, three(c)?, c.read_u32()?);
    let launches = c.read_u32()?;
    let correlations = (0..launches).map(|_| c.read_u32()).collect::<Option<_>>()?;
    let count = c.read_u32()?;
    let values = (0..count).map(|_| c.read_u64().map(f64::from_bits)).collect::<Option<_>>()?;
    Some(Measured { set, replayed, time, shape, correlations, values })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_end_early_are_none() {
        let mut row = vec![1, 0, 7, 100, 3, 2, 1, 1, 64, 1, 1, 0, 2, 5, 6, 1];
        row.extend(2.5_f64.to_le_bytes());
        let read = |bytes: &[u8]| read_measured(&mut Cursor::new(bytes));
        let whole = read(&row).unwrap();
        assert_eq!((whole.set, whole.replayed, whole.shape), (1, false, (3, [2, 1, 1], [64, 1, 1], 0)));
        assert_eq!((whole.correlations, whole.values), (vec![5, 6], vec![2.5]));
        for cut in 0..row.len() {
            assert_eq!(read(&row[..cut]), None, "{cut} bytes");
        }
        // This count is larger than any file.
        assert_eq!(read_set(&mut Cursor::new(&[0, 1, 0xff, 0xff, 0xff, 0xff, 0x0f, 1, 2])), None);
    }
}
