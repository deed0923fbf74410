//! Fuzzes the output of `nsys stats`: CSV, TSV and text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpscope::import::stats_csv::NsysStatsCsv;
use warpscope::import::{Importer, Input, Job, Wants};

fuzz_target!(|data: &[u8]| {
    // `Input` needs `'static` bytes; they are freed below.
    let leaked: &'static mut [u8] = Box::leak(data.to_vec().into_boxed_slice());
    let raw: *mut [u8] = leaked;
    {
        let input = Input::built_in("fuzz", unsafe { &*raw });
        if NsysStatsCsv.knows(&input) {
            let _ = NsysStatsCsv.read(&input, &Job::new(Wants::ALL, &|_| {}));
        }
    }
    drop(unsafe { Box::from_raw(raw) });
});
