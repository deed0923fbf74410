//! Traces for Perfetto and Chrome's viewer contain all data of a report exactly once, with its times, and escaped text.

use super::support::{packed, read, root, run, scratch};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn export(files: &[&Path], format: &str, more: &[&str]) -> PathBuf {
    let out = tempfile::Builder::new().suffix(".trace").tempfile_in(scratch()).unwrap().into_temp_path().keep().unwrap();
    let files: Vec<&str> = files.iter().map(|f| f.to_str().unwrap()).collect();
    let (code, _, err) = run(&[&["export"], &files[..], &["--format", format, "--force", "-o", out.to_str().unwrap()], more].concat());
    assert_eq!(code, 0, "{err}");
    out
}

fn chrome(files: &[&Path], more: &[&str]) -> Vec<Value> {
    let json: Value = serde_json::from_slice(&std::fs::read(export(files, "chrome", more)).unwrap()).unwrap();
    json["traceEvents"].as_array().unwrap().clone()
}

/// Fields of a protobuf message: number, and the value or bytes.
fn fields(mut of: &[u8]) -> Vec<(u64, u64, &[u8])> {
    fn varint(of: &mut &[u8]) -> u64 {
        let mut out = 0;
        for shift in (0..70).step_by(7) {
            let byte = of[0];
            *of = &of[1..];
            out |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        out
    }
    let mut out = Vec::new();
    while !of.is_empty() {
        let tag = varint(&mut of);
        match tag & 7 {
            0 => out.push((tag >> 3, varint(&mut of), &[][..])),
            1 => {
                out.push((tag >> 3, u64::from_le_bytes(of[..8].try_into().unwrap()), &[][..]));
                of = &of[8..];
            }
            2 => {
                let long = usize::try_from(varint(&mut of)).unwrap();
                out.push((tag >> 3, 0, &of[..long]));
                of = &of[long..];
            }
            wire => panic!("wire type {wire}"),
        }
    }
    out
}

/// Slices of a Perfetto trace: name, start, duration.
fn perfetto(bytes: &[u8]) -> Vec<(String, i64, i64)> {
    let one = |of: &[(u64, u64, &[u8])], field: u64| of.iter().find(|f| f.0 == field).map(|f| f.1);
    let (mut names, mut open, mut out) = (BTreeMap::new(), BTreeMap::<u64, Vec<(String, i64)>>::new(), Vec::new());
    for (field, _, packet) in fields(bytes) {
        assert_eq!(field, 1);
        let packet = fields(packet);
        for data in packet.iter().filter(|f| f.0 == 12) {
            for entry in fields(data.2).iter().filter(|f| f.0 == 2) {
                let of = fields(entry.2);
                names.insert(one(&of, 1).unwrap(), String::from_utf8(of.iter().find(|f| f.0 == 2).unwrap().2.to_vec()).unwrap());
            }
        }
        for event in packet.iter().filter(|f| f.0 == 11) {
            let event = fields(event.2);
            let (time, track) = (i64::try_from(one(&packet, 8).unwrap()).unwrap(), one(&event, 11).unwrap());
            match one(&event, 9).unwrap() {
                1 => open.entry(track).or_default().push((names[&one(&event, 10).unwrap()].clone(), time)),
                2 => {
                    let (name, start) = open.get_mut(&track).unwrap().pop().unwrap();
                    out.push((name, start, time - start));
                }
                _ => {}
            }
        }
    }
    assert!(open.values().all(Vec::is_empty), "slices are left open");
    out.sort();
    out
}

#[test]
fn all_of_a_report_is_there_once() {
    for name in ["zoo", "graph_node", "graph_whole", "procs", "whole_metrics", "whole_llm"] {
        let file = packed(name);
        let profile = read(&file).unwrap();
        let events = chrome(&[&file], &[]);
        let of = |ph: &str| events.iter().filter(|e| e["ph"] == ph).collect::<Vec<_>>();
        let kernels: Vec<_> = of("X").into_iter().filter(|e| e["cat"] == "kernel" && e["name"] != "CUDA graph").collect();
        assert_eq!(kernels.len(), profile.launches.len(), "{name}");
        let ns = |v: &Value| (v.as_f64().unwrap() * 1000.0).round() as i64;
        let total: i64 = (0..profile.launches.len()).map(|r| profile.launches.duration(r)).sum();
        assert_eq!(kernels.iter().map(|e| ns(&e["dur"])).sum::<i64>(), total, "{name}");
        let copies: Vec<_> = of("X").into_iter().filter(|e| e["cat"] == "memcpy").collect();
        assert_eq!(copies.len(), profile.memops.len(), "{name}");
        assert_eq!(of("X").iter().filter(|e| e["cat"] == "nvtx").count(), profile.ranges.len(), "{name}");
        assert_eq!(of("X").iter().filter(|e| e["cat"] == "api" && e["name"] != "launch call").count(), profile.calls.len(), "{name}");
        // A flow begins at one call, and every kernel with a call ends one.
        let begun: Vec<u64> = of("s").iter().map(|e| e["id"].as_u64().unwrap()).collect();
        let ended = of("f").iter().filter(|e| begun.contains(&e["id"].as_u64().unwrap())).count();
        let called = (0..profile.launches.len()).filter(|&r| profile.launches.call(r).is_some()).count();
        assert!(ended >= called && called > 0, "{name}: {ended} of {called}");
        let values: usize = profile.counters.iter().map(|c| c.times.len()).sum();
        let memory = profile.memory.events.iter().filter(|e| e.device.is_some()).count();
        // Plus the memory in use before the first event.
        assert_eq!(of("C").len(), values + memory + usize::from(memory > 0), "{name}");
        assert!(of("i").iter().all(|e| e["args"]["headline"].is_string()) && !of("i").is_empty(), "{name}");
        // Both formats agree.
        let mut slices: Vec<_> = of("X").iter().map(|e| (e["name"].as_str().unwrap().to_owned(), ns(&e["ts"]), ns(&e["dur"]))).collect();
        slices.sort();
        assert_eq!(perfetto(&std::fs::read(export(&[&file], "perfetto", &[])).unwrap()), slices, "{name}");
    }
}

#[test]
fn windows_jobs_and_what_is_wrong() {
    let zoo = packed("zoo");
    let whole = chrome(&[&zoo], &[]);
    let part = chrome(&[&zoo], &["--from", "1.7s", "--to", "2.0s"]);
    assert!(part.len() < whole.len());
    // Ranks are separate processes on one clock.
    let rank = |r| root().join(format!("fixtures/triage/slow_rank_rank{r}.sqlite.zst"));
    let job = chrome(&[&rank(0), &rank(1)], &[]);
    let names: Vec<&str> = job.iter().filter(|e| e["name"] == "process_name").map(|e| e["args"]["name"].as_str().unwrap()).collect();
    assert!(names.iter().any(|n| n.contains("rank 0")) && names.iter().any(|n| n.contains("rank 1")), "{names:?}");
    let slices = |r: usize| chrome(&[&rank(r)], &[]).iter().filter(|e| e["ph"] == "X").count();
    assert_eq!(job.iter().filter(|e| e["ph"] == "X").count(), slices(0) + slices(1));
    assert!(job.iter().filter(|e| e["ph"] == "X").all(|e| e["ts"].as_f64().unwrap() >= 0.0));
    let out = scratch().join("never.pftrace");
    let said = |args: &[&str]| run(&[&["export", zoo.to_str().unwrap(), "-o", out.to_str().unwrap()], args].concat());
    let (code, _, err) = said(&["--format", "perfetto", "--tables", "launches"]);
    assert!(code == 2 && err.contains("for --format parquet"), "{err}");
    let (code, _, err) = said(&["--from", "1s"]);
    assert!(code == 2 && err.contains("for traces"), "{err}");
    let (code, _, err) = said(&["--format", "perfetto", "--from", "9999s"]);
    assert!(code != 0 && err.contains("nothing happened in this window"), "{err}");
    // In a window every flow has both ends.
    let ids =
        |ph: &str| part.iter().filter(|e| e["ph"] == ph).map(|e| e["id"].as_u64().unwrap()).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(ids("s"), ids("f"));
    let (code, _, _) = said(&["--format", "perfetto"]);
    assert_eq!(code, 0);
    let (code, _, err) = said(&["--format", "perfetto"]);
    assert!(code == 2 && err.contains("--force replaces it"), "{err}");
}
