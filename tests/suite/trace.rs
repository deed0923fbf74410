//! Traces written by the built-in tracer on an H100 (`fixtures/trace`), and damaged ones.

use super::support::{read, root, scratch};
use std::collections::BTreeMap;
use std::path::PathBuf;
use warpscope::analysis::{GroupBy, Grouping, Overview, Paths};
use warpscope::model::{CopyKind, LaunchOrder, MemOpKind, NoteKind, Profile};

const ALL: [&str; 4] = ["llm", "special", "torch_cuda_graph", "torch_eager"];

fn fixture(name: &str) -> PathBuf {
    root().join(format!("fixtures/trace/{name}.wstrace.zst"))
}

fn bytes(name: &str) -> Vec<u8> {
    zstd::stream::decode_all(std::fs::File::open(fixture(name)).unwrap()).unwrap()
}

fn kernels(profile: &Profile) -> BTreeMap<&str, usize> {
    let mut out = BTreeMap::new();
    for row in 0..profile.launches.len() {
        *out.entry(profile.kernels[profile.launches.kernel(row).0 as usize].function()).or_default() += 1;
    }
    out
}

/// Figures of the same programs under nsys 2025.3.1 on the same machine: `tests/hardware/tracer.py` found equal
/// launches, configurations, order and medians.
#[test]
fn real_traces_give_what_nsys_gave() {
    let llm = read(&fixture("llm")).unwrap();
    assert_eq!((llm.launches.len(), llm.order, llm.kernels.len(), llm.ranges.len()), (2023, LaunchOrder::Host, 11, 20));
    assert!((0..llm.launches.len()).all(|i| llm.launches.call(i).is_some()));
    let gpu = &llm.devices[0];
    assert_eq!((gpu.name.as_deref(), gpu.sm_count, gpu.compute_capability), (Some("NVIDIA H100 80GB HBM3"), Some(132), Some((9, 0))));
    assert_eq!((gpu.max_warps_per_sm, gpu.shared_per_sm.map(|b| b.0), gpu.l2.map(|b| b.0 >> 20)), (Some(64), Some(233_472), Some(50)));
    assert_eq!(llm.capture.argv, ["/opt/torch/.venv/bin/python3", "torch_loop.py"]);
    assert!(llm.notes.is_empty(), "{:?}", llm.notes);
    let special = read(&fixture("special")).unwrap();
    assert_eq!(kernels(&special), [("clustered", 1), ("together", 1), ("tiny", 164)].into());
    let config = |name: &str| {
        let row = (0..special.launches.len()).find(|&i| special.kernels[special.launches.kernel(i).0 as usize].function() == name).unwrap();
        special.configs[special.launches.config(row).unwrap().0 as usize].clone()
    };
    assert_eq!((config("together").cooperative, config("tiny").cooperative, config("clustered").cluster), (true, false, Some([2, 1, 1])));
    let ops: Vec<_> = special.memops.iter().map(|m| (m.kind, m.bytes.unwrap().0, m.call.is_some())).collect();
    assert!(
        matches!(ops[..], [(MemOpKind::Set, 1_048_576, true), (MemOpKind::Copy { kind: CopyKind::DeviceToHost, .. }, 4096, true)]),
        "{ops:?}"
    );
    let graph = read(&fixture("torch_cuda_graph")).unwrap();
    let nodes = (0..graph.launches.len()).filter(|&i| graph.launches.graph_node(i).is_some()).count();
    assert_eq!((graph.launches.len(), nodes), (162, 150));
    assert_eq!(read(&fixture("torch_eager")).unwrap().launches.len(), 151);
}

fn look(profile: &Profile) {
    let paths = Paths::from_profile(profile);
    for by in GroupBy::ALL {
        let _ = Grouping::from_profile(profile, by, Some(&paths));
    }
    let _ = Overview::from_profile(profile);
}

#[test]
fn a_trace_can_be_cut_anywhere() {
    let path = scratch().join("cut.wstrace");
    let whole = bytes("torch_eager");
    let mut last = 0;
    for length in (64..whole.len()).step_by(37) {
        std::fs::write(&path, &whole[..length]).unwrap();
        let profile = read(&path).unwrap();
        assert!(profile.launches.len() >= last, "what is whole is there");
        last = profile.launches.len();
        assert!(profile.notes.iter().any(|n| matches!(n.kind, NoteKind::Lost | NoteKind::Damaged)), "{length}: {:?}", profile.notes);
        look(&profile);
    }
    // Without a kernel, the cut is the reason, whatever the trace says of itself.
    for name in ["llm", "server_steady"] {
        std::fs::write(&path, &bytes(name)[..3_000]).unwrap();
        let profile = read(&path).unwrap();
        assert!(profile.launches.is_empty());
        assert!(profile.notes.iter().any(|n| n.text.contains("the file is cut off before the first one")), "{name}: {:?}", profile.notes);
    }
}

/// Fixes the checksum of every header, so that the data behind it is read.
fn mended(bytes: &mut [u8]) {
    let mut at = 0;
    while let Some(found) = memchr::memmem::find(&bytes[at..], b"WST1") {
        let head = at + found;
        at = head + 4;
        let Some(length) = bytes.get(head + 8..head + 12).map(|b| u32::from_le_bytes(b.try_into().unwrap()) as usize) else { return };
        let Some(data) = bytes.get(head + 28..head.saturating_add(28).saturating_add(length)) else { continue };
        let mut crc = crc32fast::Hasher::new();
        crc.update(&bytes[head..head + 24]);
        crc.update(data);
        bytes[head + 24..head + 28].copy_from_slice(&crc.finalize().to_le_bytes());
    }
}

#[test]
fn flipped_bytes_anywhere_give_a_profile() {
    let path = scratch().join("flipped.wstrace");
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let (mut damaged, mut reached) = (0, 0);
    for round in 0..600 {
        let mut bytes = bytes(ALL[round % ALL.len()]);
        for _ in 0..=(round % 9) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let at = usize::try_from(state % bytes.len() as u64).unwrap();
            bytes[at] ^= (state >> 32) as u8 | 1;
        }
        if round % 3 > 0 {
            mended(&mut bytes);
        }
        std::fs::write(&path, &bytes).unwrap();
        // Without its magic word it is not a trace.
        let Ok(profile) = read(&path) else { continue };
        damaged += usize::from(profile.notes.iter().any(|n| n.kind == NoteKind::Damaged));
        reached += usize::from(!profile.launches.is_empty());
        look(&profile);
    }
    assert!(damaged > 200 && reached > 300, "{damaged} {reached}");
}

#[test]
fn a_trace_of_a_later_version_is_refused_with_a_sentence() {
    let mut bytes = bytes("special");
    let at = memchr::memmem::find(&bytes, b"format").unwrap();
    bytes[at + 7] = b'9';
    mended(&mut bytes);
    let path = scratch().join("later.wstrace");
    std::fs::write(&path, bytes).unwrap();
    let text = read(&path).unwrap_err().to_string();
    assert!(text.contains("later warpscope (format 9)"), "{text}");
}

/// The argument of `trace -o` refers to the traces of all processes, as do their file names.
#[test]
fn traces_are_named_by_their_prefix() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("run.475.wstrace"), bytes("special")).unwrap();
    std::fs::write(folder.path().join("run2.9.wstrace"), bytes("llm")).unwrap();
    let profile = read(&folder.path().join("run")).unwrap();
    assert_eq!(profile.launches.len(), read(&fixture("special")).unwrap().launches.len());
    assert!(read(&folder.path().join("ru")).is_err());
}

/// The traces of a folder are one report if they may be of one run, and a copy of a trace is not read twice.
#[test]
fn traces_of_a_folder_are_those_of_one_run() {
    let folder = tempfile::tempdir().unwrap();
    let now = std::time::SystemTime::now();
    let write = |name: &str, of: &str| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes(of)).unwrap();
        path
    };
    let alone = read(&write("a/llm.77.wstrace", "llm")).unwrap().launches.len();
    write("a/copy/llm.77.wstrace", "llm");
    let joined = read(&folder.path().join("a")).unwrap();
    assert_eq!(joined.launches.len(), alone);
    let notes: Vec<&str> = joined.notes.iter().map(|n| n.text.as_str()).collect();
    assert_eq!(notes, ["llm.77.wstrace is a copy of copy/llm.77.wstrace and is left out."]);
    // The states in the traces say when each run ended, also in files that were copied without their times.
    for (name, of) in [("b/llm.77.wstrace", "llm"), ("b/eager.78.wstrace", "torch_eager")] {
        std::fs::File::options().write(true).open(write(name, of)).unwrap().set_modified(now).unwrap();
    }
    let refused = read(&folder.path().join("b")).unwrap_err().to_string();
    assert!(refused.contains("traces of 2 runs"), "{refused}");
    // The first run ended before the second began.
    let times: Vec<u64> = [("c/llm.77.wstrace", "llm"), ("c/eager.78.wstrace", "torch_eager")]
        .map(|(name, of)| {
            let path = write(name, of);
            let text = String::from_utf8_lossy(&bytes(of)[..4096]).into_owned();
            let started = text.split("started").nth(1).unwrap();
            let digits: String = started.chars().skip_while(|c| !c.is_ascii_digit()).take_while(char::is_ascii_digit).collect();
            // The length before the digits is no digit itself.
            let started: u64 = digits[digits.len() - 19..].parse().unwrap();
            let end = std::time::UNIX_EPOCH + std::time::Duration::from_nanos(started) + std::time::Duration::from_secs(1);
            std::fs::File::options().write(true).open(path).unwrap().set_modified(end).unwrap();
            started
        })
        .to_vec();
    assert!(times[0].abs_diff(times[1]) > 3_000_000_000, "{times:?}");
    let refused = read(&folder.path().join("c")).unwrap_err().to_string();
    assert!(refused.contains("traces of 2 runs") && refused.contains("c/llm") && refused.contains("c/eager"), "{refused}");
    assert_eq!(read(&folder.path().join("c/llm")).unwrap().launches.len(), alone);
}
