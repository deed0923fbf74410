//! `.nsys-rep` files, exported with the user's nsys. Mock tools are used; the real one as well if it is on PATH.

use super::support::{scratch, unpacked};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use warpscope::import::{self, Cancel, ImportError, Job, Progress, Wants};
use warpscope::model::Profile;

/// Cache folder per test thread: other tests create entries concurrently.
fn cache() -> PathBuf {
    let test = std::thread::current().name().unwrap_or_default().replace(':', "-");
    scratch().join("exporter").join(test)
}

/// A `.nsys-rep` whose header names this version of nsys; the rest is a placeholder.
fn report(version: &str) -> PathBuf {
    let file = tempfile::Builder::new().suffix(".nsys-rep").tempfile_in(scratch()).unwrap().into_temp_path().keep().unwrap();
    fs::write(&file, format!("NVIDIA Tegra Profiler Report {}@99-253236v0.\0\0binary", version.replace('.', "@"))).unwrap();
    file
}

/// A mock nsys: prints its version, and runs `script` to export to `$out`.
fn tool(version: &str, script: &str) -> PathBuf {
    let path = tempfile::Builder::new().prefix("nsys-").tempfile_in(scratch()).unwrap().into_temp_path().keep().unwrap();
    let text = format!(
        "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'NVIDIA Nsight Systems version {version}.1-234v0'; exit 0; fi\n[ \"$1 $2 $3\" = 'export --type sqlite' ] || exit 99\nwhile [ $# -gt 1 ]; do [ \"$1\" = -o ] && out=$2; shift; done\n{script}\n"
    );
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn open(report: &Path, tool: &Path, cancel: &Cancel, hear: &(dyn Fn(Progress) + Sync)) -> Result<Profile, ImportError> {
    import::open_profile(report, &Job { nsys: Some(tool.to_owned()), cancel: cancel.clone(), cache: cache(), ..Job::new(Wants::ALL, hear) })
}

fn sentence(report: &Path, tool: &Path) -> String {
    open(report, tool, &Cancel::default(), &|_| {}).unwrap_err().to_string()
}

#[test]
fn a_report_is_exported_once_with_progress_and_then_found_in_the_cache() {
    let fixture = unpacked("single");
    let count = scratch().join("exports");
    let script = format!(
        "echo x >> {}; printf 'Processing: [==  25%%]\\rProcessing: [====100%%]\\n' >&2; cp {} \"$out\"",
        count.display(),
        fixture.display()
    );
    let (report, tool) = (report("2025.3.2"), tool("2025.3.2", &script));
    let heard = Mutex::new(Vec::new());
    let hear = |p| {
        if let Progress::Stage { name: "exporting with nsys", done, .. } = p {
            heard.lock().unwrap().push(done);
        }
    };
    let profile = open(&report, &tool, &Cancel::default(), &hear).unwrap();
    assert_eq!((profile.launches.len(), profile.source.version.as_deref()), (200, Some("2025.3.2")));
    assert_eq!(*heard.lock().unwrap(), [0, 25, 100]);
    open(&report, &tool, &Cancel::default(), &|_| {}).unwrap();
    assert_eq!(fs::read_to_string(&count).unwrap(), "x\n", "the second time it comes from the cache");
    fs::write(&report, [fs::read(&report).unwrap(), b"more".to_vec()].concat()).unwrap();
    open(&report, &tool, &Cancel::default(), &|_| {}).unwrap();
    assert_eq!(fs::read_to_string(&count).unwrap(), "x\nx\n", "a changed report is exported again");
}

#[test]
fn what_is_wrong_with_the_tool_is_said_with_what_to_do() {
    let text = sentence(&report("2025.5.1"), &tool("2023.4.4", "exit 1"));
    assert!(
        text.contains("recorded by nsys 2025.5.1, but the newest nsys here is 2023.4.4") && text.contains("install nsys 2025.5.1 or newer"),
        "{text}"
    );
    let text = sentence(&report("2025.5.1"), Path::new("/no/such/nsys"));
    assert!(text.contains("does not run"), "{text}");
    let text = sentence(
        &report("2025.5.1"),
        &tool(
            "2025.5.1",
            "echo 'Importer: error while loading shared libraries: libdw.so.1: cannot open shared object file: No such file or directory' >&2; exit 127",
        ),
    );
    assert!(text.contains("is missing libdw.so.1") && text.contains("libdw1"), "{text}");
    let text = sentence(
        &report("2025.5.1"),
        &tool("2025.5.1", "echo half > \"$out\"; echo 'Exportation error: Section Table Reference magic number mismatch.' >&2; exit 1"),
    );
    assert!(text.contains("damaged"), "{text}");
    let text = sentence(&report("2025.5.1"), &tool("2025.5.1", "exit 0"));
    assert!(text.contains("printed nothing"), "a tool that makes no file: {text}");
}

#[test]
fn a_running_export_can_be_cancelled_and_leaves_nothing() {
    let (report, cancel) = (report("2025.3.2"), Cancel::default());
    let tool = tool("2025.3.2", "trap '' INT; echo '[=  10%]' >&2; sleep 600 & wait");
    let hear = |p| {
        if matches!(p, Progress::Stage { name: "exporting with nsys", done: 10, .. }) {
            cancel.cancel();
        }
    };
    assert!(matches!(open(&report, &tool, &cancel, &hear), Err(ImportError::Cancelled { .. })));
    let left =
        fs::read_dir(cache()).map(|d| d.flatten().filter(|e| e.file_name().to_string_lossy().contains("making")).count()).unwrap_or(0);
    assert_eq!(left, 0);
}

#[test]
fn the_real_nsys_agrees_when_it_is_there() {
    let answers = std::process::Command::new("nsys").arg("--version").output().is_ok_and(|o| o.status.success());
    if !answers {
        println!("skipped: no nsys on PATH");
        return;
    }
    let fixture = unpacked("zoo");
    let output = std::process::Command::new("nsys")
        .args(["stats", "-q", "--format", "csv", "-r", "cuda_gpu_kern_sum"])
        .arg(&fixture)
        .output()
        .unwrap();
    let theirs = String::from_utf8(output.stdout).unwrap();
    let grouping = warpscope::analysis::Grouping::from_profile(
        &super::support::read(&fixture).unwrap(),
        warpscope::analysis::GroupBy::Demangled,
        None,
    );
    let mut rows = 0;
    for record in csv::Reader::from_reader(theirs.as_bytes()).records() {
        let record = record.unwrap();
        let row = grouping.rows.iter().find(|r| r.name == record[8]).unwrap();
        assert_eq!((record[1].parse(), record[2].parse()), (Ok(row.stats.total), Ok(row.stats.count)));
        rows += 1;
    }
    assert_eq!(rows, grouping.rows.len());
}
