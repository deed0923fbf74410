//! Gains that hints predicted for a run's kernels, stored in the run library and compared with later runs.

use super::super::failure::Failure;
use crate::analysis::hint_outcome::{Promise, measured_kernels};
use crate::analysis::hints::{Diagnosis, Gain};
use crate::import::{self, Job, Wants};
use crate::library::{Library, Measured, PredictedGain, Report, Run};
use crate::report::runs::{Came, Promised};
use std::path::Path;

/// Maximum size of a report that is reread at the end of its run, bytes.
const LARGEST: u64 = 2 << 30;

/// Stores kernel times and predicted gains from the reports of a finished run.
pub fn keep_promises(library: &Library, run: i64, reports: &[Report]) -> Result<(), Failure> {
    let counters = |path: &Path| path.extension().is_some_and(|e| e == "ncu-rep" || e == "wstrace");
    let mut kernels = Vec::new();
    for report in reports.iter().filter(|r| counters(&r.path) && r.bytes <= LARGEST) {
        // Skip unreadable reports.
        let Ok(profile) = import::open_profile(&report.path, &Job::new(Wants::LAUNCHES, &|_| {})) else { continue };
        kernels.extend(measured_kernels(&profile).into_iter().map(|k| Measured {
            kernel: k.kernel,
            way: k.way.to_owned(),
            ns: k.ns,
            launches: k.launches,
            hint: k.promise.map(|p| PredictedGain { id: p.id.id().to_owned(), at_most: p.gain.at_most, expected: p.gain.expected }),
        }));
    }
    if kernels.is_empty() {
        return Ok(());
    }
    Ok(library.keep_kernels(run, &kernels)?)
}

fn to_promise(of: &Measured) -> Option<Promise> {
    let PredictedGain { id, at_most, expected } = of.hint.as_ref()?;
    // Skip unknown hints from other versions.
    let id = Diagnosis::from_id(id)?;
    Some(Promise { id, gain: Gain { at_most: *at_most, expected: *expected, ..Gain::default() }, size: None, remains: false })
}

/// Returns the gains predicted for a run, and the outcome of the predictions for earlier runs of the program.
pub fn load_promises(library: &Library, run: &Run) -> Result<(Vec<Promised>, Vec<Came>), Failure> {
    let kernels = library.load_kernels(run.id)?;
    let promised = kernels
        .iter()
        .filter_map(|k| {
            Some(Promised { kernel: k.kernel.clone(), way: k.way.clone(), ns: k.ns, launches: k.launches, promise: to_promise(k)? })
        })
        .collect();
    let mut came = Vec::new();
    for (earlier, before) in library.promised_before(run, &kernels)? {
        let Some(now) = kernels.iter().find(|k| k.kernel == before.kernel && k.way == before.way) else { continue };
        // A different number of launches means different work.
        let (Some(promise), true) = (to_promise(&before), now.launches == before.launches && before.ns > 0.0) else { continue };
        came.push(Came { run: earlier, kernel: before.kernel, before_ns: before.ns, after_ns: now.ns, promise });
    }
    Ok((promised, came))
}
