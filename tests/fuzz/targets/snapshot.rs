//! Fuzzes a PyTorch memory snapshot.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpscope::analysis::memory::{analyze_usage, held_rows};
use warpscope::import::torch_memory_snapshot::TorchSnapshot;
use warpscope::import::{Importer, Input, Job, Wants};
use warpscope::model::Cancel;

fuzz_target!(|data: &[u8]| {
    // `Input` needs `'static` bytes; they are freed below.
    let leaked: &'static mut [u8] = Box::leak(data.to_vec().into_boxed_slice());
    let raw: *mut [u8] = leaked;
    if let Ok(profile) = TorchSnapshot.read(&Input::built_in("x.pickle", unsafe { &*raw }), &Job::new(Wants::ALL, &|_| {}))
        && let Some(usage) = analyze_usage(&profile, &Cancel::default())
    {
        for device in &usage.devices {
            let _ = held_rows(device, &usage.sites, device.peak.0);
        }
    }
    drop(unsafe { Box::from_raw(raw) });
});
