//! Fuzzes an Nsight Compute report: reads it and opens every result on every screen.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpscope::analysis::roofline::Plot;
use warpscope::analysis::metrics_rows::Wish;
use warpscope::analysis::{code, compare, metrics_page};
use warpscope::import::ncu::{self, details, session, source};
use warpscope::import::{Cancel, Input, Job, Wants};

fuzz_target!(|data: &[u8]| {
    // `Input` needs `'static` bytes; they are freed below.
    let leaked: &'static mut [u8] = Box::leak(data.to_vec().into_boxed_slice());
    let raw: *mut [u8] = leaked;
    {
        let input = Input::built_in("fuzz", unsafe { &*raw });
        if ncu::is_report(&input) {
            look(&input);
        }
    }
    drop(unsafe { Box::from_raw(raw) });
});

fn look(input: &Input) {
    let job = Job::new(Wants::ALL, &|_| {});
    let _ = session::read_facts(input);
    let Ok(metrics) = ncu::read_input(input, &job, None) else { return };
    let metrics = std::sync::Arc::new(metrics);
    for (at, result) in metrics.results.iter().enumerate().take(4) {
        let Ok(details) = details::read_details(input, result) else { continue };
        let rows = metrics_page::build_rows(&metrics, at, &details, &Wish::default());
        let open = rows.iter().filter_map(|r| if let warpscope::analysis::metrics_rows::MetricsRow::Fold { key, .. } = r { Some(key.clone()) } else { None });
        let _ = metrics_page::build_rows(&metrics, at, &details, &Wish { open: open.collect(), ..Wish::default() });
        let _ = metrics_page::build_rows(&metrics, at, &details, &Wish { filter: "hit".to_owned(), ..Wish::default() });
        if let Ok(found) = source::read_code(input, &metrics, at, &details, &[], &Cancel::default()) {
            let _ = code::build_listing(&metrics, at, &details, &found, false);
        }
        let _ = Plot::from_result(&metrics, at, &[]);
        let _ = compare::compare_metrics(&metrics, at, &metrics, 0, "");
    }
    let metrics = std::sync::Arc::unwrap_or_clone(metrics);
    let _ = ncu::profile_of(metrics);
}
