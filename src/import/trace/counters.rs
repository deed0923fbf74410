//! Rows of counters that were measured while the program ran.

use super::cursor::Cursor;

/// Metrics that were collected together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    pub number: u32,
    /// Their names as texts by number.
    pub metrics: Vec<u32>,
}

/// Counters of launches that are alike, or of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    pub set: u32,
    /// One launch, which ran once for each pass.
    pub replayed: bool,
    /// ns since 1970, before the first call.
    pub time: i64,
    /// As the launching calls had them: name, grid, block, dynamic shared memory.
    pub shape: (u32, [u32; 3], [u32; 3], u32),
    /// The launch of each pass.
    pub correlations: Vec<u32>,
    /// In the order of the set; NaN where there is none.
    pub values: Vec<f64>,
}

/// A row that names the metrics of a set.
pub fn set(c: &mut Cursor<'_>) -> Option<Set> {
    let (number, _passes, count) = (c.small()?, c.small()?, c.small()?);
    let metrics = (0..count).map(|_| c.small()).collect::<Option<_>>()?;
    Some(Set { number, metrics })
}

/// A row of values.
pub fn measured(c: &mut Cursor<'_>) -> Option<Measured> {
    let (set, replayed, _thread) = (c.small()?, c.small()? != 0, c.small()?);
    let time = i64::try_from(c.number()?).ok()?;
    let three = |c: &mut Cursor<'_>| Some([c.small()?, c.small()?, c.small()?]);
    let shape = (c.small()?, three(c)?, three(c)?, c.small()?);
    let launches = c.small()?;
    let correlations = (0..launches).map(|_| c.small()).collect::<Option<_>>()?;
    let count = c.small()?;
    let values = (0..count).map(|_| c.eight().map(f64::from_bits)).collect::<Option<_>>()?;
    Some(Measured { set, replayed, time, shape, correlations, values })
}
