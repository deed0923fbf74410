//! Fuzzes the CSV output of `ncu --csv`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpscope::import::ncu::{self, Decimal};
use warpscope::import::{Input, Job, Wants};

fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else { return };
    // `Input` needs `'static` bytes; they are freed below.
    let leaked: &'static mut [u8] = Box::leak(rest.to_vec().into_boxed_slice());
    let raw: *mut [u8] = leaked;
    {
        let input = Input::built_in("fuzz", unsafe { &*raw });
        let decimal = [None, Some(Decimal::Point), Some(Decimal::Comma)][usize::from(*first) % 3];
        if !ncu::is_report(&input)
            && let Ok(metrics) = ncu::read_input(&input, &Job::new(Wants::ALL, &|_| {}), decimal)
        {
            let _ = ncu::profile_of(metrics);
        }
    }
    drop(unsafe { Box::from_raw(raw) });
});
