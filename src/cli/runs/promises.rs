//! What the hints on a run's kernels promised, kept in the run library, and what came of it in a later run.

use super::super::Failure;
use crate::analysis::hints::{Diagnosis, Gain};
use crate::analysis::promise::{Promise, kept};
use crate::import::{self, Job, Wants};
use crate::library::{Hint, Library, Measured, Report, Run};
use crate::report::runs::{Came, Promised};
use std::path::Path;

/// A report larger than this is not read again when its run ends.
const LARGEST: u64 = 2 << 30;

/// Keeps what the reports of a run that has ended say of its kernels.
pub fn keep(library: &Library, run: i64, reports: &[Report]) -> Result<(), Failure> {
    let counters = |path: &Path| path.extension().is_some_and(|e| e == "ncu-rep" || e == "wstrace");
    let mut kernels = Vec::new();
    for report in reports.iter().filter(|r| counters(&r.path) && r.bytes <= LARGEST) {
        // A report that cannot be read has nothing to keep.
        let Ok(profile) = import::open(&report.path, &Job::new(Wants::LAUNCHES, &|_| {})) else { continue };
        kernels.extend(kept(&profile).into_iter().map(|k| Measured {
            kernel: k.kernel,
            way: k.way.to_owned(),
            ns: k.ns,
            launches: k.launches,
            hint: k.promise.map(|p| Hint { id: p.id.id().to_owned(), at_most: p.gain.at_most, expected: p.gain.expected }),
        }));
    }
    if kernels.is_empty() {
        return Ok(());
    }
    Ok(library.keep_kernels(run, &kernels)?)
}

fn promise(of: &Measured) -> Option<Promise> {
    let Hint { id, at_most, expected } = of.hint.as_ref()?;
    // One of another version that is not known here is not shown.
    let id = Diagnosis::parse(id)?;
    Some(Promise { id, gain: Gain { at_most: *at_most, expected: *expected, left: String::new() } })
}

/// What the hints of a run promise, and what came of those of earlier runs of the program.
pub fn of(library: &Library, run: &Run) -> Result<(Vec<Promised>, Vec<Came>), Failure> {
    let kernels = library.kernels(run.id)?;
    let promised = kernels
        .iter()
        .filter_map(|k| {
            Some(Promised { kernel: k.kernel.clone(), way: k.way.clone(), ns: k.ns, launches: k.launches, promise: promise(k)? })
        })
        .collect();
    let mut came = Vec::new();
    for (earlier, before) in library.promised_before(run, &kernels)? {
        let Some(now) = kernels.iter().find(|k| k.kernel == before.kernel && k.way == before.way) else { continue };
        // Another number of launches is other work.
        let (Some(promise), true) = (promise(&before), now.launches == before.launches && before.ns > 0.0) else { continue };
        came.push(Came { run: earlier, kernel: before.kernel, before_ns: before.ns, after_ns: now.ns, promise });
    }
    Ok((promised, came))
}
