//! Memory limit for reading a report, based on the size of the file: a malicious file of a few kilobytes must not use
//! gigabytes.

use super::error::ImportError;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Minimum budget for a report, bytes.
const BASE: u64 = 64 << 20;
/// Limit as a multiple of the file size on disk, for decompressed bytes and for allocated memory. Real reports
/// compress by a factor of 3 to 40.
const STORED_TIMES: u64 = 200;
/// Limit as a multiple of the decompressed size. In memory, real reports take 0.1 to 5 times their decompressed size.
const PLAIN_TIMES: u64 = 16;

/// Memory budget of a report, shared by the threads that read it.
#[derive(Debug)]
pub struct Budget {
    path: PathBuf,
    /// Size of the file on disk, before decompression.
    stored: u64,
    most: AtomicU64,
    left: AtomicU64,
}

impl Budget {
    /// Creates the budget for a file of `stored` bytes on disk.
    pub fn from_stored_size(path: &Path, stored: u64) -> Self {
        Self::with_limit(path, stored, BASE.saturating_add(stored.saturating_mul(STORED_TIMES)))
    }

    /// Creates the budget for a file of `stored` bytes on disk and `plain` bytes after decompression.
    pub fn from_plain_size(path: &Path, stored: u64, plain: u64) -> Self {
        let out = Self::from_stored_size(path, stored);
        out.lower_limit(plain);
        out
    }

    fn with_limit(path: &Path, stored: u64, most: u64) -> Self {
        Self { path: path.to_owned(), stored, most: AtomicU64::new(most), left: AtomicU64::new(most) }
    }

    /// Creates the budget for the rows of a table, which cannot take up more bytes than the file.
    pub fn of_rows(path: &Path, size: u64) -> Self {
        Self::with_limit(path, size, size)
    }

    /// Lowers the limit once the decompressed size is known. Bytes spent earlier still count.
    pub fn lower_limit(&self, plain: u64) {
        let most = BASE.saturating_add(plain.saturating_mul(PLAIN_TIMES));
        let spent = self.total_bytes().saturating_sub(self.bytes_left());
        self.most.fetch_min(most, Ordering::Relaxed);
        self.left.fetch_min(most.saturating_sub(spent), Ordering::Relaxed);
    }

    /// Total budget, bytes.
    pub fn total_bytes(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }

    pub fn bytes_left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }

    /// Takes bytes from the budget; returns false if they exceed it.
    pub fn try_spend(&self, bytes: u64) -> bool {
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }

    /// Takes bytes from the budget; returns an error if they exceed it.
    pub fn charge_bytes(&self, bytes: u64) -> Result<(), ImportError> {
        if self.try_spend(bytes) { Ok(()) } else { Err(self.exceeded_error()) }
    }

    /// The error for a report that exceeds its budget.
    pub fn exceeded_error(&self) -> ImportError {
        ImportError::refused(
            &self.path,
            format!("{} bytes that need more than {} MB of memory", self.stored, self.total_bytes() / 1_000_000),
            "no profiler writes such a report: copy it again from where it was recorded",
        )
    }
}

/// Upper bound on the memory that a JSON text needs once parsed, in bytes, based on its number of objects, lists and
/// items.
pub fn estimate_json(text: &[u8]) -> u64 {
    const OBJECT: u64 = 160;
    const ITEM: u64 = 32;
    let count = |byte: u8| memchr::memchr_iter(byte, text).count() as u64;
    count(b'{') * OBJECT + (count(b'[') + count(b',')) * ITEM
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded_by_both_sizes() {
        let path = Path::new("x");
        assert_eq!(Budget::from_stored_size(path, 10).total_bytes(), BASE + 2_000);
        assert_eq!(Budget::from_plain_size(path, 10, 1_000_000).total_bytes(), BASE + 2_000);
        let budget = Budget::from_plain_size(path, 1_000, 1_000);
        assert_eq!(budget.total_bytes(), BASE + 16_000);
        budget.charge_bytes(BASE).unwrap();
        assert!(budget.try_spend(15_999) && !budget.try_spend(2) && budget.try_spend(1) && !budget.try_spend(1));
        let sentence = budget.charge_bytes(1).unwrap_err().to_string();
        assert_eq!(
            sentence,
            "x: 1000 bytes that need more than 67 MB of memory; no profiler writes such a report: copy it again from where it was recorded"
        );
        // Bytes spent before the size was known still count.
        let budget = Budget::from_stored_size(path, 1 << 20);
        assert!(budget.try_spend(100));
        budget.lower_limit(1_000);
        assert_eq!(budget.bytes_left(), BASE + 16_000 - 100);
        assert_eq!(Budget::from_stored_size(path, u64::MAX).total_bytes(), u64::MAX);
    }
}
