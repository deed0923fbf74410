//! Measured kernels of a run, with the gain that each kernel's first hint predicts, for comparison with later runs of
//! the program.

use super::store::Library;
use super::{LibraryError, Run};
use rusqlite::params;

/// Maximum number of kernels stored per run; the kernels with the most time are stored.
const MOST: usize = 200;

/// Measurement of a kernel in a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Function name of the kernel.
    pub kernel: String,
    /// Measurement method; times measured by different methods are not compared.
    pub way: String,
    /// Mean time of a launch, ns.
    pub ns: f64,
    /// Number of measured launches.
    pub launches: u64,
    pub hint: Option<PredictedGain>,
}

/// Gain that the first hint on a kernel predicts.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictedGain {
    pub id: String,
    /// Upper bound on the share of the time that would be saved, 0 to 1.
    pub at_most: f64,
    /// Expected range of that share, if it was estimated.
    pub expected: Option<(f64, f64)>,
}

impl Library {
    /// Stores the measured kernels of a run, replacing those stored earlier.
    pub fn keep_kernels(&self, run: i64, kernels: &[Measured]) -> Result<(), LibraryError> {
        let keep = || -> rusqlite::Result<()> {
            let change = self.db.unchecked_transaction()?;
            change.execute("DELETE FROM kernels WHERE run = ?1", [run])?;
            for k in kernels.iter().take(MOST) {
                let launches = i64::try_from(k.launches).unwrap_or(i64::MAX);
                let hint = k.hint.as_ref();
                let expected = hint.and_then(|h| h.expected);
                change.execute(
                    "INSERT OR REPLACE INTO kernels VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                    params![
                        run,
                        k.kernel,
                        k.way,
                        k.ns,
                        launches,
                        hint.map(|h| &h.id),
                        hint.map(|h| h.at_most),
                        expected.map(|e| e.0),
                        expected.map(|e| e.1)
                    ],
                )?;
            }
            change.commit()
        };
        keep().map_err(|e| self.database_error(e))
    }

    /// Kernels stored for a run, sorted by name.
    pub fn load_kernels(&self, run: i64) -> Result<Vec<Measured>, LibraryError> {
        let read = || -> rusqlite::Result<Vec<Measured>> {
            let mut statement = self.db.prepare_cached("SELECT * FROM kernels WHERE run = ?1 ORDER BY kernel, way")?;
            let one = |r: &rusqlite::Row<'_>| {
                let launches: i64 = r.get("launches")?;
                let (hint, at_most): (Option<String>, Option<f64>) = (r.get("hint")?, r.get("at_most")?);
                let (least, most): (Option<f64>, Option<f64>) = (r.get("least")?, r.get("most")?);
                Ok(Measured {
                    kernel: r.get("kernel")?,
                    way: r.get("way")?,
                    ns: r.get("ns")?,
                    launches: u64::try_from(launches).unwrap_or(0),
                    hint: hint.zip(at_most).map(|(id, at_most)| PredictedGain { id, at_most, expected: least.zip(most) }),
                })
            };
            statement.query_map([run], one)?.collect()
        };
        read().map_err(|e| self.database_error(e))
    }

    /// For each kernel of a run, finds the latest measurement that has a hint and used the same method, among earlier
    /// runs of the program with the same arguments and folder.
    pub fn promised_before(&self, run: &Run, kernels: &[Measured]) -> Result<Vec<(i64, Measured)>, LibraryError> {
        let earlier: Vec<i64> = self
            .runs()?
            .into_iter()
            .filter(|r| r.id < run.id && r.directory == run.directory && r.program == run.program)
            .map(|r| r.id)
            .collect();
        let mut out: Vec<(i64, Measured)> = Vec::new();
        for id in earlier {
            let open = |k: &Measured| {
                kernels.iter().any(|o| o.kernel == k.kernel && o.way == k.way)
                    && out.iter().all(|(_, o)| o.kernel != k.kernel || o.way != k.way)
            };
            let found: Vec<Measured> = self.load_kernels(id)?.into_iter().filter(|k| k.hint.is_some() && open(k)).collect();
            out.extend(found.into_iter().map(|k| (id, k)));
        }
        Ok(out)
    }
}
