//! Fuzzes the file formats of AMD's profilers.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpscope::analysis::{GroupBy, Grouping, Overview, Paths};
use warpscope::import::rocm::{RocmCsv, RocmJson, RocmPcSamples, RocmPerfetto, RocmStats, RocmThreadTrace, Rocpd, RocprofCompute, RocprofDb, RocprofWorkload, Rpd};
use warpscope::import::{Importer, Input, Job, Wants};

fuzz_target!(|data: &[u8]| {
    // `Input` needs `'static` bytes; they are freed below.
    let leaked: &'static mut [u8] = Box::leak(data.to_vec().into_boxed_slice());
    let raw: *mut [u8] = leaked;
    {
        let input = Input::built_in("fuzz", unsafe { &*raw });
        let mut job = Job::new(Wants::ALL, &|_| {});
        job.threads = 1;
        for importer in [&Rocpd as &dyn Importer, &RocprofDb, &RocprofCompute, &Rpd, &RocmThreadTrace, &RocmPcSamples, &RocprofWorkload, &RocmCsv, &RocmStats, &RocmJson, &RocmPerfetto] {
            if importer.knows(&input)
                && let Ok(profile) = importer.read(&input, &job)
            {
                let paths = Paths::from_profile(&profile);
                for by in GroupBy::ALL {
                    let _ = Grouping::from_profile(&profile, by, Some(&paths));
                }
                let _ = Overview::from_profile(&profile);
            }
        }
    }
    drop(unsafe { Box::from_raw(raw) });
});
