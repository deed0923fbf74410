//! Fuzzes a rank's digest, analysed together with a valid one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warpscope::analysis::ranks::build_job;
use warpscope::model::digest::{Collective, Digest, CollectiveKind};

fuzz_target!(|data: &[u8]| {
    let Ok(read) = Digest::from_bytes(data).or_else(|_| Digest::from_bytes(&Digest::pack_message(data))) else { return };
    let mut whole = Digest { kinds: vec![CollectiveKind { name: "all_reduce".to_owned(), group: "0".to_owned(), ..CollectiveKind::default() }], ..Digest::default() };
    let list: Vec<Collective> = (0..20).map(|i| Collective { kind: 0, sequence: i, start: i * 1000, duration: 100, bytes: 0 }).collect();
    whole.set_collectives(&list, 1);
    let all = [read, whole];
    let found = build_job(&all);
    let _ = found.steps_by_number(&all);
});
