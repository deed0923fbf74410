//! Fuzzes a trace of the built-in tracer. Checksums are fixed up, so that the fuzzer gets past them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpscope::analysis::call_tree::CallTree;
use warpscope::analysis::triage::{Scope, triage_profile};
use warpscope::analysis::{GroupBy, Grouping, Overview, Paths};
use warpscope::import::wstrace::WarpscopeTrace;
use warpscope::import::{self, Input, Job, Wants};
use warpscope::model::Cancel;

fn mended(bytes: &mut [u8]) {
    let mut at = 0;
    while let Some(found) = bytes[at..].windows(4).position(|w| w == b"WST1") {
        let head = at + found;
        at = head + 4;
        let Some(length) = bytes.get(head + 8..head + 12).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as usize) else { return };
        let Some(data) = bytes.get(head + 28..(head + 28).saturating_add(length)) else { continue };
        let mut crc = crc32fast::Hasher::new();
        crc.update(&bytes[head..head + 24]);
        crc.update(data);
        bytes[head + 24..head + 28].copy_from_slice(&crc.finalize().to_le_bytes());
    }
}

fuzz_target!(|data: &[u8]| {
    let mut bytes = data.to_vec();
    mended(&mut bytes);
    // `Input` needs `'static` bytes; they are freed below.
    let leaked: &'static mut [u8] = Box::leak(bytes.into_boxed_slice());
    let raw: *mut [u8] = leaked;
    {
        let input = Input::built_in("fuzz", unsafe { &*raw });
        let mut job = Job::new(Wants::ALL, &|_| {});
        job.threads = 1;
        if import::Importer::knows(&WarpscopeTrace, &input)
            && let Ok(profile) = import::Importer::read(&WarpscopeTrace, &input, &job)
        {
            let paths = Paths::from_profile(&profile);
            for by in GroupBy::ALL {
                let _ = Grouping::from_profile(&profile, by, Some(&paths));
            }
            let _ = Overview::from_profile(&profile);
            if let Some(found) = triage_profile(&profile, &Scope::default(), &Cancel::default()) {
                let _ = CallTree::from_time(&found.host_time, |thread| thread.to_string());
            }
        }
    }
    drop(unsafe { Box::from_raw(raw) });
});
