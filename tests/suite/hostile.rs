//! Untrusted files and folders: bounded memory and time, nothing overwritten, a one-line
//! error. Each of these broke an earlier version.

use super::support::{Explorer, edited, packed, read, root, run, scratch, unpacked};
use rusqlite::Connection;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use warpscope::import::{Cancel, Job, Wants};
use warpscope::model::NoteKind;

const KERNEL: &str = "CUPTI_ACTIVITY_KIND_KERNEL";

/// Runs the program with a 2 GiB memory limit and its own home. A run that exceeds the limit is
/// killed by a signal and has no exit code.
pub fn limited(args: &[&str]) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v 2097152; ulimit -c 0; exec \"$@\"", "sh"]).arg(assert_cmd::cargo::cargo_bin!("warpscope")).args(args);
    command.env_clear().env("HOME", scratch()).env("PATH", "/usr/bin:/bin").env("LANG", "C.UTF-8").current_dir(root());
    command.stdin(Stdio::null()).output().unwrap()
}

/// If a file size limit, like a quota, leaves no room for the cache, the report still opens, and a message says why.
#[test]
fn a_cache_without_room_is_no_damage() {
    let cache = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$@\"", "sh"]).arg(assert_cmd::cargo::cargo_bin!("warpscope"));
    command.args(["top", "fixtures/nsys/zoo.sqlite.zst"]).env("XDG_CACHE_HOME", cache.path()).current_dir(root()).stdin(Stdio::null());
    let out = command.output().unwrap();
    let err = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.code() == Some(4) && err.contains("not enough space") && err.contains("XDG_CACHE_HOME"), "{:?} {err}", out.status);
}

/// Error message of a command that must refuse its file.
fn refused(args: &[&str]) -> String {
    let out = limited(args);
    let err = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(3), "{args:?}: {err}");
    assert!(err.starts_with("warpscope: ") && err.lines().count() == 1, "{args:?}: {err}");
    err
}

/// SQLite reads tables left by ANALYZE together with the schema, before any check of ours can refuse them.
#[test]
fn what_analyze_left_costs_no_more_than_the_rest() {
    let path = unpacked("single");
    let db = Connection::open(&path).unwrap();
    db.execute_batch(&format!("CREATE INDEX x ON {KERNEL}(start); CREATE TABLE s4 (tbl, idx, neq, nlt, ndlt, sample)")).unwrap();
    let row = format!("INSERT INTO s4 VALUES ('{KERNEL}', 'x', '1 1', '1 1', '1 1', zeroblob(30000))");
    db.execute_batch(&row).unwrap();
    let rename = "PRAGMA writable_schema = ON; UPDATE sqlite_master SET name = 'sqlite_stat4', tbl_name = 'sqlite_stat4', sql = replace(sql, 's4', 'sqlite_stat4') WHERE name = 's4'";
    db.execute_batch(rename).unwrap();
    drop(db);
    share_children(&path, "sqlite_stat4", 3, false);
    let out = limited(&["top", path.to_str().unwrap()]);
    assert!(matches!(out.status.code(), Some(0..=2)), "{:?} {}", out.status, String::from_utf8_lossy(&out.stderr));
}

/// A timeline with a table that appears to have endless rows.
fn shared_children(table: &str, levels: usize, gap: bool) -> PathBuf {
    let path = unpacked("single");
    share_children(&path, table, levels, gap);
    path
}

/// Makes every cell of a table's root page point to the same child, `levels` deep: endless rows in a file of few pages.
/// With `gap` the last page stays unchanged, so that the row ids have a gap.
fn share_children(path: &Path, table: &str, levels: usize, gap: bool) {
    let db = Connection::open(path).unwrap();
    let root: usize =
        db.query_row("SELECT rootpage FROM sqlite_master WHERE name = ?1", [table], |r| r.get::<_, i64>(0)).unwrap().try_into().unwrap();
    let size: usize = db.query_row("PRAGMA page_size", [], |r| r.get::<_, i64>(0)).unwrap().try_into().unwrap();
    drop(db);
    let mut file = fs::read(path).unwrap();
    let number = |file: &[u8], at: usize, bytes: usize| file[at..at + bytes].iter().fold(0_usize, |n, &b| n << 8 | usize::from(b));
    let begin = |page: usize| (page - 1) * size;
    // Down the left edge to a leaf, and down the right edge to the last page.
    let (mut leaf, mut last) = (root, root);
    while file[begin(leaf)] == 5 {
        leaf = number(&file, begin(leaf) + number(&file, begin(leaf) + 12, 2), 4);
    }
    while file[begin(last)] == 5 {
        last = number(&file, begin(last) + 8, 4);
    }
    if leaf == root {
        let copy = file[begin(root)..begin(root) + size].to_vec();
        file.extend(copy);
        leaf = file.len() / size;
        last = leaf;
    }
    let varint = |mut at: usize| {
        let mut n = 0_u64;
        loop {
            n = n << 7 | u64::from(file[at] & 0x7f);
            at += 1;
            if file[at - 1] < 0x80 {
                return (n, at);
            }
        }
    };
    let cells = number(&file, begin(leaf) + 3, 2);
    let highest = (0..cells).map(|i| varint(varint(begin(leaf) + number(&file, begin(leaf) + 8 + 2 * i, 2)).1).0).max().unwrap();
    assert!(highest < 1 << 14);
    let interior = |child: usize, right: usize| {
        let key: &[u8] = &if highest < 128 { vec![highest as u8] } else { vec![(highest >> 7) as u8 | 0x80, (highest & 0x7f) as u8] };
        let cell = [&u32::try_from(child).unwrap().to_be_bytes(), key].concat();
        let count = (size - 12) / (cell.len() + 2);
        let mut page = vec![0; size];
        page[0] = 5;
        page[3..5].copy_from_slice(&u16::try_from(count).unwrap().to_be_bytes());
        page[8..12].copy_from_slice(&u32::try_from(right).unwrap().to_be_bytes());
        let mut at = size;
        for i in 0..count {
            at -= cell.len();
            page[at..at + cell.len()].copy_from_slice(&cell);
            page[12 + 2 * i..14 + 2 * i].copy_from_slice(&u16::try_from(at).unwrap().to_be_bytes());
        }
        page[5..7].copy_from_slice(&u16::try_from(at).unwrap().to_be_bytes());
        page
    };
    let mut child = leaf;
    let mut made = Vec::new();
    for _ in 1..levels {
        made.push(interior(child, child));
        child = file.len() / size + made.len();
    }
    let top = interior(child, if gap { last } else { child });
    file.extend(made.concat());
    let at = (root - 1) * size;
    file[at..at + size].copy_from_slice(&top);
    let pages = u32::try_from(file.len() / size).unwrap();
    file[28..32].copy_from_slice(&pages.to_be_bytes());
    fs::write(path, file).unwrap();
}

/// Commands that read a timeline.
const COMMANDS: [&[&str]; 5] =
    [&["top"], &["top", "--by", "nvtx"], &["launches", "--limit", "2"], &["hints"], &["rerun", "--kernel", "saxpy"]];

fn with<'a>(command: &[&'a str], file: &'a Path) -> Vec<&'a str> {
    command.iter().copied().chain([file.to_str().unwrap()]).collect()
}

#[test]
fn pages_that_share_children_hold_no_more_than_their_file() {
    for gap in [false, true] {
        let path = shared_children(KERNEL, 5, gap);
        for command in COMMANDS {
            let err = refused(&with(command, &path));
            assert!(err.contains(&format!("damaged in {KERNEL}")), "{err}");
        }
    }
    // Other tables cost only the rows they really hold.
    for table in ["CUPTI_ACTIVITY_KIND_RUNTIME", "StringIds", "META_DATA_CAPTURE", "TARGET_INFO_GPU"] {
        let path = shared_children(table, 5, false);
        for command in COMMANDS {
            let out = limited(&with(command, &path));
            assert!(matches!(out.status.code(), Some(0..=2)), "{table} {command:?}: {:?}", out.status);
        }
    }
}

#[test]
fn a_walk_without_end_ends_when_it_is_told_to() {
    let path = shared_children("META_DATA_CAPTURE", 5, false);
    let cancel = Cancel::default();
    cancel.cancel();
    let job = Job { cancel, cache: scratch().join("cache"), ..Job::new(Wants::ALL, &|_| {}) };
    let error = warpscope::import::open_profile(&path, &job).unwrap_err().to_string();
    assert!(error.ends_with("cancelled"), "{error}");
}

#[test]
fn views_and_what_they_could_run_are_not_tables() {
    let endless = "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT id, 'name' || id AS value FROM n";
    for (fixture, table) in
        [("graph_whole", "StringIds"), ("single", "StringIds"), ("threads", "NVTX_EVENTS"), ("single", "CUPTI_ACTIVITY_KIND_RUNTIME")]
    {
        let path = edited(fixture, &format!("ALTER TABLE {table} RENAME TO other; CREATE VIEW {table} AS {endless};"));
        for command in COMMANDS {
            let out = limited(&with(command, &path));
            assert!(matches!(out.status.code(), Some(0..=2)), "{table} {command:?}: {:?}", out.status);
        }
    }
    // A generated column runs code as well, so it is treated as absent.
    let sql = format!(
        "ALTER TABLE {KERNEL} RENAME TO other; CREATE TABLE {KERNEL} (start, end INT GENERATED ALWAYS AS (length(hex(zeroblob(30000000)))), demangledName); INSERT INTO {KERNEL} SELECT start, demangledName FROM other;"
    );
    let text = read(&edited("single", &sql)).unwrap_err().to_string();
    assert!(text.contains("no column `end`"), "{text}");
}

/// Encodes a protobuf varint.
fn varint(mut n: usize) -> Vec<u8> {
    let mut out = Vec::new();
    while n > 0x7f {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
    out
}

/// Encodes a length-delimited protobuf field.
fn field(number: usize, bytes: &[u8]) -> Vec<u8> {
    [varint(number << 3 | 2), varint(bytes.len()), bytes.to_vec()].concat()
}

/// Encodes a varint protobuf field.
fn value(number: usize, n: usize) -> Vec<u8> {
    [varint(number << 3), varint(n)].concat()
}

/// Writes an Nsight Compute report of one block.
fn report(names: &[u8], kernels: &[Vec<u8>]) -> PathBuf {
    let length = |b: &[u8]| u32::try_from(b.len()).unwrap().to_le_bytes();
    let body: Vec<u8> = kernels.iter().flat_map(|k| [&length(k), &k[..]].concat()).collect();
    let header = [value(2, kernels.len()), value(5, body.len()), field(4, names)].concat();
    let bytes = [b"NVR\0", &length(&[0, 0])[..], &[0x08, 0x07], &length(&header), &header, &body].concat();
    let path = tempfile::Builder::new().suffix(".ncu-rep").tempfile_in(scratch()).unwrap().into_temp_path().keep().unwrap();
    fs::write(&path, bytes).unwrap();
    path
}

fn kernel(more: &[u8]) -> Vec<u8> {
    let dims = |n| [value(1, n), value(2, 1), value(3, 1)].concat();
    [field(6, b"k"), field(10, &dims(64)), field(11, &dims(128)), more.to_vec()].concat()
}

#[test]
fn a_report_takes_no_more_memory_than_one_of_its_size() {
    let duration = field(1, b"gpu__time_duration.sum");
    // Empty strings and two-byte messages, which take up to a hundred times their size in memory.
    let names = report(&[0x0a, 0].repeat(6_000_000), &[kernel(&[])]);
    let kernels = report(&duration, &vec![vec![0x08, 0x01]; 700_000]);
    for path in [names, kernels] {
        for command in [&["top"][..], &["metrics", "--format", "json"], &["hints"]] {
            let err = refused(&with(command, &path));
            assert!(err.contains("MB of memory"), "{err}");
        }
    }
    // A section with a million items; empty sections, rules and metrics.
    let items = field(17, &field(5, &field(1, &[]).repeat(1_000_000)));
    let path = report(&duration, &[kernel(&items)]);
    assert_eq!(limited(&with(&["top"], &path)).status.code(), Some(0));
    let err = refused(&with(&["metrics", "--sections"], &path));
    assert!(err.contains("more fields than one that ncu writes"), "{err}");
    for number in [13, 17, 19] {
        let path = report(&duration, &[kernel(&field(number, &[]).repeat(2_000_000))]);
        for command in [&["metrics", "--sections"][..], &["metrics", "--rules"], &["hints"]] {
            assert_eq!(limited(&with(command, &path)).status.code(), Some(0), "{number} {command:?}");
        }
    }
}

#[test]
fn a_line_table_of_calls_within_calls_costs_a_step_a_row() {
    let out = limited(&["metrics", "--source", "fixtures/hostile/dwarf-chain.ncu-rep.zst"]);
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
}

#[test]
fn what_unpacks_to_more_than_any_report_is_refused() {
    let path = scratch().join("zeros.ncu-rep.zst");
    let mut packed = zstd::stream::Encoder::new(fs::File::create(&path).unwrap(), 1).unwrap();
    std::io::Write::write_all(&mut packed, b"NVR\0").unwrap();
    std::io::copy(&mut std::io::Read::take(std::io::repeat(0), 200 << 20), &mut packed).unwrap();
    packed.finish().unwrap();
    let err = refused(&with(&["top"], &path));
    assert!(err.contains("decompress to more than") && err.contains("decompress it yourself"), "{err}");
    let left =
        fs::read_dir(scratch().join(".cache/warpscope")).unwrap().flatten().filter(|e| e.file_name().to_string_lossy().contains("zeros"));
    assert_eq!(left.count(), 0, "nothing of it stays");
}

/// Writes an executable script.
fn program(folder: &Path, name: &str, script: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Runs `metrics --sass` on a capture with a binary, in a folder, with this PATH.
fn sass(folder: &Path, path: &str) -> Output {
    let report = root().join("fixtures/ncu/source.ncu-rep.zst");
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("warpscope"));
    command.args(["metrics", "--sass", report.to_str().unwrap()]);
    command.env_clear().env("HOME", folder).env("PATH", path).current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

#[test]
fn tools_that_are_asked_something_obey_no_file_of_the_current_folder() {
    let folder = tempfile::tempdir_in(scratch()).unwrap();
    let said = folder.path().join("said");
    program(folder.path(), "ncu", &format!("echo \"$PWD $*\" >> {}", said.display()));
    sass(folder.path(), &format!("{}:/usr/bin:/bin", folder.path().display()));
    let said = fs::read_to_string(said).unwrap();
    assert!(said.starts_with("/ --config-file off --import /"), "{said}");
}

#[test]
fn the_real_ncu_overwrites_nothing() {
    let Some(ncu) = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).map(|p| p.join("ncu")).find(|p| p.is_file())
    else {
        println!("skipped: no ncu on PATH");
        return;
    };
    let folder = tempfile::tempdir_in(scratch()).unwrap();
    let precious = folder.path().join("precious");
    fs::write(&precious, "mine").unwrap();
    let config = format!("[Import]\n--log-file = {}\n", precious.display());
    fs::write(folder.path().join("config.ncu-cfg"), &config).unwrap();
    let home = folder.path().join(".config/NVIDIA Corporation");
    fs::create_dir_all(&home).unwrap();
    fs::write(home.join("config.ncu-cfg"), &config).unwrap();
    let bin = tempfile::tempdir_in(scratch()).unwrap();
    // Only ncu: other disassemblers would be tried first.
    std::os::unix::fs::symlink(&ncu, bin.path().join("ncu")).unwrap();
    sass(folder.path(), &format!("{}:/usr/bin:/bin", bin.path().display()));
    assert_eq!(fs::read_to_string(&precious).unwrap(), "mine");
}

#[test]
fn an_exporter_ends_with_the_program_that_asked_it() {
    let folder = tempfile::tempdir_in(scratch()).unwrap();
    let pid = folder.path().join("pid");
    let script = format!(
        "[ \"$1\" = --version ] && {{ echo 'NVIDIA Nsight Systems version 2025.3.2.1-1v0'; exit; }}\necho $$ > {p}.new; mv {p}.new {p}; exec sleep 600",
        p = pid.display()
    );
    let nsys = program(folder.path(), "nsys", &script);
    let report = folder.path().join("r.nsys-rep");
    fs::write(&report, "NVIDIA Tegra Profiler Report 2025@3@2@99-253236v0.\0\0binary").unwrap();
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("warpscope"));
    command.args(["top", "--nsys"]).arg(&nsys).arg(&report).env_clear().env("HOME", folder.path()).env("PATH", "/usr/bin:/bin");
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let exporter = super::runs::pid_in(&pid);
    let started = warpscope::launch::runs::process::read_process(exporter).unwrap().started;
    child.kill().unwrap();
    child.wait().unwrap();
    super::runs::until("the exporter to end", || !warpscope::launch::runs::process::is_running(exporter, started));
}

#[test]
fn a_message_that_nobody_can_hear_changes_nothing() {
    let full = || Stdio::from(fs::File::options().write(true).open("/dev/full").unwrap());
    // The note about graphs traced as a whole goes to stderr.
    let file = packed("graph_whole");
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("warpscope"));
    command.args(["top", file.to_str().unwrap()]).env_clear().env("HOME", scratch()).env("PATH", "/usr/bin:/bin").stdin(Stdio::null());
    let out = command.stderr(full()).output().unwrap();
    assert_eq!(out.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&out.stdout).lines().count() > 1);
    // A closed pipe before the first byte is not an error either.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let out = command.stderr(Stdio::from(writer)).output().unwrap();
    assert_eq!(out.status.code(), Some(0));
    let mut wrong = Command::new(assert_cmd::cargo::cargo_bin!("warpscope"));
    wrong.args(["top", "/not/there"]).env_clear().env("HOME", scratch()).stdin(Stdio::null()).stderr(full());
    assert_eq!(wrong.status().unwrap().code(), Some(3));
}

/// Names with terminal escapes, shell commands and spreadsheet formulas.
const EVIL: &str = "UPDATE StringIds SET value = 'k' || char(27) || '[201~' || char(10) || 'touch x' || char(155) || '31m' WHERE id IN (SELECT demangledName FROM CUPTI_ACTIVITY_KIND_KERNEL UNION SELECT shortName FROM CUPTI_ACTIVITY_KIND_KERNEL)";

#[test]
fn what_is_copied_presses_no_keys() {
    let mut explorer = Explorer::open(&[edited("single", EVIL)], (120, 40));
    explorer.press("y f");
    explorer.press("y d");
    explorer.press("y r");
    explorer.press("y t");
    explorer.press("r");
    explorer.press("y c");
    explorer.press("y l");
    explorer.press("y s");
    explorer.press("y j");
    assert_eq!(explorer.copied.len(), 8);
    for text in &explorer.copied {
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    }
    assert_eq!(explorer.copied[0], "k^[[201~^Jtouch x\\u{9b}31m");
    // Copied commands still contain the exact name.
    let words = Command::new("sh").args(["-c", &format!("printf '%s|' {}", explorer.copied[4])]).output().unwrap();
    assert!(String::from_utf8_lossy(&words.stdout).contains("k\u{1b}[201~\ntouch x\u{9b}31m"), "{words:?}");
}

#[test]
fn a_name_is_neither_a_formula_nor_a_picture() {
    let rename = |name: &str| {
        format!(
            "UPDATE StringIds SET value = '{name}' WHERE id IN (SELECT demangledName FROM CUPTI_ACTIVITY_KIND_KERNEL UNION SELECT shortName FROM CUPTI_ACTIVITY_KIND_KERNEL)"
        )
    };
    let path = edited("single", &rename("=HYPERLINK(1)"));
    let (_, out, _) = run(&["top", "--format", "csv", path.to_str().unwrap()]);
    assert!(out.contains(",'=HYPERLINK(1)") || out.contains("\"'=HYPERLINK(1)") || out.contains("1,'=HYPERLINK(1)"), "{out}");
    let path = edited("single", &rename("![x](http://evil)"));
    let (_, out, _) = run(&["top", "--format", "md", path.to_str().unwrap()]);
    assert!(out.contains(r"\!\[x\](http://evil)"), "{out}");
}

#[test]
fn a_metric_that_is_named_twice_is_one_key() {
    let name = |n: &[u8]| field(1, n);
    let metric = |id: usize, v: usize| field(13, &[value(1, id), field(2, &value(5, v))].concat());
    let path = report(
        &[name(b"gpu__time_duration.sum"), name(b"a"), name(b"a")].concat(),
        &[kernel(&[metric(0, 10), metric(1, 1), metric(2, 2), metric(1, 3)].concat())],
    );
    let (rc, out, _) = run(&["metrics", "--format", "json", path.to_str().unwrap()]);
    assert_eq!((rc, out.matches("\"a\":").count()), (0, 1), "{out}");
}

#[test]
fn pipes_and_devices_are_not_waited_for() {
    let home = tempfile::tempdir_in(scratch()).unwrap();
    let pipe = home.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let themes = home.path().join(".config/warpscope/themes");
    fs::create_dir_all(&themes).unwrap();
    fs::create_dir_all(home.path().join(".local/share/warpscope")).unwrap();
    std::os::unix::fs::symlink(&pipe, themes.join("pipe.toml")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", themes.join("zero.toml")).unwrap();
    fs::write(themes.join("large.toml"), vec![b'#'; 2 << 20]).unwrap();
    let ran = |args: &[&str]| {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("warpscope"));
        let out =
            command.args(args).env_clear().env("HOME", home.path()).env("PATH", "/usr/bin:/bin").stdin(Stdio::null()).output().unwrap();
        (out.status.code(), String::from_utf8_lossy(&out.stdout).into_owned(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    let (rc, out, _) = ran(&["themes"]);
    assert!(rc == Some(0) && out.contains("dark") && !["pipe", "zero", "large"].iter().any(|t| out.contains(t)), "{out}");
    let (rc, _, err) = ran(&["--config", pipe.to_str().unwrap(), "themes"]);
    assert!(rc == Some(2) && err.contains("not a regular file"), "{err}");
    std::os::unix::fs::symlink(&pipe, home.path().join(".local/share/warpscope/runs.lock")).unwrap();
    let (rc, _, err) = ran(&["runs"]);
    assert!(rc == Some(4) && err.contains("runs.lock: it is not a regular file"), "{err}");
}

#[test]
fn a_library_that_others_may_write_to_or_made_is_not_trusted() {
    let home = tempfile::tempdir_in(scratch()).unwrap();
    let ran = || {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("warpscope"));
        let out = command
            .args(["runs", "list"])
            .env_clear()
            .env("HOME", home.path())
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    assert_eq!(ran().0, Some(0));
    let folder = home.path().join(".local/share/warpscope");
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    let db = Connection::open(folder.join("runs.db")).unwrap();
    db.execute_batch(
        "PRAGMA foreign_keys = OFF; ALTER TABLE runs RENAME TO other;
         CREATE VIEW runs AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id, other.* FROM n, other;",
    )
    .unwrap();
    drop(db);
    let (rc, err) = ran();
    assert!(rc == Some(4) && err.contains("runs.db"), "{err}");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    let (rc, err) = ran();
    assert!(rc == Some(4) && err.contains("other users can write to it"), "{err}");
}

#[test]
fn without_a_home_a_link_in_the_temporary_folder_leads_nowhere() {
    // A user without a passwd entry has no home; only root can switch to another user.
    if !nix::unistd::getuid().is_root() {
        println!("skipped: not root");
        return;
    }
    let user = "54321";
    let tmp = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    for folder in [&tmp, &elsewhere] {
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    }
    let program = tmp.path().join("warpscope");
    fs::copy(assert_cmd::cargo::cargo_bin!("warpscope"), &program).unwrap();
    let report = tmp.path().join("r.sqlite.zst");
    fs::copy(packed("single"), &report).unwrap();
    let ran = || {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", user, "--regid", user, "--clear-groups"]).arg(&program).arg("top").arg(&report);
        command.env_clear().env("PATH", "/usr/bin:/bin").env("TMPDIR", tmp.path()).current_dir(tmp.path()).stdin(Stdio::null()).output()
    };
    let Ok(out) = ran() else {
        println!("skipped: no setpriv");
        return;
    };
    assert_eq!(out.status.code(), Some(0), "{}", String::from_utf8_lossy(&out.stderr));
    let folder = tmp.path().join(format!("warpscope-{user}"));
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    // A folder owned by another user, or a link to a place that others can read.
    fs::remove_dir_all(&folder).unwrap();
    fs::create_dir(&folder).unwrap();
    let err = String::from_utf8_lossy(&ran().unwrap().stderr).into_owned();
    assert!(err.contains("belongs to another user"), "{err}");
    fs::remove_dir(&folder).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), &folder).unwrap();
    let err = String::from_utf8_lossy(&ran().unwrap().stderr).into_owned();
    assert!(err.contains("it is a link"), "{err}");
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn damage_that_nsys_finds_is_the_files() {
    let folder = tempfile::tempdir_in(scratch()).unwrap();
    let script = "[ \"$1\" = --version ] && { echo 'NVIDIA Nsight Systems version 2025.3.2.1-1v0'; exit; }\necho 'Exportation error: Section Table Reference magic number mismatch.' >&2; exit 1";
    let nsys = program(folder.path(), "nsys", script);
    let report = folder.path().join("r.nsys-rep");
    fs::write(&report, "NVIDIA Tegra Profiler Report 2025@3@2@99-253236v0.\0\0binary").unwrap();
    let (rc, _, err) = run(&["--nsys", nsys.to_str().unwrap(), "top", report.to_str().unwrap()]);
    assert!(rc == 3 && err.contains("reports that it is damaged"), "{rc} {err}");
}

#[test]
fn the_demo_says_that_it_is_one() {
    let mut explorer = Explorer::open(&[packed("llm")], (120, 40));
    explorer.app.session.reports[0].built_in = true;
    explorer.press("r");
    explorer.press("R");
    let status = explorer.app.status.clone().unwrap();
    assert!(status.text.contains("the demo was recorded on another machine"), "{}", status.text);
    assert!(explorer.asked.is_empty());
    assert!(explorer.app.session.reports[0].profile.as_ref().unwrap().notes.iter().all(|n| n.kind != NoteKind::Damaged));
}
