//! Fuzzes a Perfetto trace of any tool, a profile of XLA, and a tree of Proton.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpscope::analysis::{GroupBy, Grouping, Overview, Paths};
use warpscope::import::{self, Input, Job, Wants};

fuzz_target!(|data: &[u8]| {
    // `Input` needs `'static` bytes; they are freed below.
    let leaked: &'static mut [u8] = Box::leak(data.to_vec().into_boxed_slice());
    let raw: *mut [u8] = leaked;
    {
        let input = Input::built_in("fuzz", unsafe { &*raw });
        let mut job = Job::new(Wants::ALL, &|_| {});
        job.threads = 1;
        let importers: [&dyn import::Importer; 3] =
            [&import::chrome_perfetto::PerfettoTrace, &import::chrome_perfetto::xspace::XlaProfile, &import::proton::ProtonTree];
        if let Some(importer) = importers.into_iter().find(|i| i.knows(&input))
            && let Ok(profile) = importer.read(&input, &job)
        {
            let paths = Paths::from_profile(&profile);
            for by in GroupBy::ALL {
                let _ = Grouping::from_profile(&profile, by, Some(&paths));
            }
            let _ = Overview::from_profile(&profile);
        }
    }
    drop(unsafe { Box::from_raw(raw) });
});
