//! Kernel names shortened by nsys: versions before 2021.4 wrote long names that they could not demangle as
//! `PREFIX_NUMBER...`.

use crate::import::ImportError;
use crate::import::sqlite::db::Db;
use crate::model::{Kernel, KernelId, Shortened, kernel};

/// Maximum number of candidates to keep per kernel.
const MOST: usize = 16;

/// Returns the kernels whose names were shortened, each with the full names in the export that may match.
pub fn find_shortened(db: &Db, kernels: &[Kernel]) -> Result<Vec<Shortened>, ImportError> {
    let prefix = |k: &Kernel| kernel::truncated_prefix(k.function()).map(str::to_owned);
    let mut out: Vec<(String, Shortened)> =
        (0..).zip(kernels).filter_map(|(id, k)| Some((prefix(k)?, Shortened { kernel: KernelId(id), candidates: Vec::new() }))).collect();
    if out.is_empty() {
        return Ok(Vec::new());
    }
    for row in db.read_rows("StringIds", &["value"])? {
        let [Some(text)] = &row[..] else { continue };
        let whole = kernel::truncated_prefix(text).is_none();
        for (_, short) in out.iter_mut().filter(|(prefix, s)| whole && text.starts_with(&**prefix) && s.candidates.len() < MOST) {
            short.candidates.push(text.as_str().into());
        }
    }
    Ok(out.into_iter().map(|s| s.1).collect())
}
