//! `warpscope doctor`, with mock folders and programs and on this machine.

use super::support::run;
use serde_json::Value as Json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;
use warpscope::launch::doctor::{Places, State, collect_facts, run_checks};

fn program(folder: &Path, name: &str, script: &str) {
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn text(root: &Path, file: &str, text: &str) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A machine with one GPU, both profilers, and no restrictions.
fn machine() -> (TempDir, Places) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_owned();
    let bin = root.join("bin");
    fs::create_dir_all(&bin).unwrap();
    program(
        &bin,
        "nvidia-smi",
        r#"case "$1" in
--query-gpu*) echo "0, NVIDIA H200, 580.95.05, 9.0, Disabled, Enabled, 345, 1980, 4, 143771" ;;
*) ;;
esac"#,
    );
    program(&bin, "ncu", r#"if [ "$1" = --list-chips ]; then echo "ga100, gh100, tu102"; else echo "Version 2025.3.1.0 (build 1)"; fi"#);
    program(&bin, "nsys", r#"echo "NVIDIA Nsight Systems version 2025.3.2.474-253236v0""#);
    text(&root, "proc/driver/nvidia/params", "RmProfilingAdminOnly: 0\n");
    text(&root, "proc/self/status", "CapEff:\t0000000000000000\n");
    text(&root, "proc/sys/kernel/perf_event_paranoid", "2\n");
    text(&root, "lib/libdw.so.1", "");
    text(&root, "lib/libelf.so.1", "");
    let places = Places { path: vec![bin], tmp: root.clone(), here: root.clone(), root, installs: false, object: None };
    (folder, places)
}

fn states(places: &Places) -> Vec<(&'static str, State, String)> {
    run_checks(&collect_facts(places, None, &|| false)).into_iter().map(|c| (c.id, c.state, c.found)).collect()
}

fn of(places: &Places, id: &str) -> Option<(State, String)> {
    states(places).into_iter().find(|s| s.0 == id).map(|s| (s.1, s.2))
}

#[test]
fn a_good_machine() {
    let (_folder, places) = machine();
    let all = states(&places);
    let bad: Vec<_> = all.iter().filter(|s| s.1 == State::Blocks || s.1 == State::Unknown).collect();
    assert!(bad.is_empty(), "{bad:?}");
    assert_eq!(of(&places, "ncu-chip").unwrap(), (State::Ok, "gh100 (9.0)".to_owned()));
    assert!(of(&places, "gpus").unwrap().1.contains("1 × NVIDIA H200, driver 580.95.05"));
}

#[test]
fn troubles_of_the_machine_are_seen() {
    let (_folder, places) = machine();
    text(&places.root, "proc/driver/nvidia/params", "RmProfilingAdminOnly: 1\n");
    assert_eq!(of(&places, "counters").unwrap().0, State::Blocks);
    text(&places.root, "proc/self/status", "CapEff:\t0000000000200000\n");
    assert_eq!(of(&places, "counters").unwrap().0, State::Ok, "CAP_SYS_ADMIN");
    fs::remove_file(places.root.join("proc/driver/nvidia/params")).unwrap();
    assert_eq!(of(&places, "counters").unwrap().0, State::Unknown);
    text(&places.root, "proc/4711/comm", "nv-hostengine\n");
    text(&places.root, "proc/4712/comm", "nvidia-cuda-mps\n");
    assert_eq!(of(&places, "counter-holders").unwrap(), (State::Warning, "running: nv-hostengine".to_owned()));
    assert_eq!(of(&places, "mps").unwrap().0, State::Warning);
    fs::remove_file(places.root.join("lib/libdw.so.1")).unwrap();
    assert!(of(&places, "nsys-importer").unwrap().1.ends_with("libdw.so.1") || std::env::var_os("LD_LIBRARY_PATH").is_some());
    // Errors of the driver are quoted verbatim.
    program(&places.path[0], "nvidia-smi", "echo 'NVIDIA-SMI has failed because it could not communicate with the NVIDIA driver.'; exit 9");
    let (state, found) = of(&places, "gpus").unwrap();
    assert!(state == State::Blocks && found.contains("could not communicate"), "{found}");
}

#[test]
fn a_program_that_hangs_does_not_hang_us() {
    let (_folder, places) = machine();
    program(&places.path[0], "ncu", "sleep 600");
    let begun = std::time::Instant::now();
    let found = collect_facts(&places, None, &|| begun.elapsed() > std::time::Duration::from_millis(300));
    assert!(found.ncu.is_some_and(|t| t.version.is_none()) && begun.elapsed() < std::time::Duration::from_secs(60));
}

#[test]
fn on_this_machine() {
    let (rc, out, _) = run(&["doctor", "--format", "json"]);
    let json: Json = serde_json::from_str(&out).unwrap();
    let checks = json["checks"].as_array().unwrap();
    assert!(checks.len() >= 4 && checks.iter().all(|c| c["id"].is_string() && c["found"].is_string()));
    let blocks = checks.iter().filter(|c| c["state"] == "blocks").count();
    assert_eq!((json["blocks"].as_u64().unwrap() as usize, rc), (blocks, i32::from(blocks > 0)));
    assert!(checks.iter().filter(|c| c["state"] == "blocks").all(|c| !c["means"].as_str().unwrap().is_empty() && c["fix"].is_string()));
    let (_, text, _) = run(&["doctor"]);
    assert!(text.contains("temporary files") && text.lines().last().unwrap().contains(if blocks > 0 { "block" } else { "noth" }), "{text}");
}

#[test]
fn places_of_this_machine_are_absolute() {
    let places = Places::from_environment();
    assert!(places.root.as_os_str() == "/" && places.path.iter().all(|p| p.is_absolute()));
}
