//! rocmProfileData: a real database of AMD's example, and small ones in the formats of both writers.

use super::rocm::table;
use super::rocm_releases::{durations, read_raw};
use super::support::{read, root};
use rusqlite::Connection;
use std::path::Path;
use warpscope::import::Wants;
use warpscope::model::{CopyKind, LaunchOrder, MemOpKind, Profile, Vendor};

/// Values by SQL over `rocpd_op`, `rocpd_copyapi` and `rocpd_string`: 29 kernels of 26,399,795 ns,
/// a fill, 55 copies of 2,032,000,296 bytes.
#[test]
fn a_real_database() {
    let profile = read(&root().join("fixtures/rocm/matmul.rpd.zst")).unwrap();
    table_agrees(&root().join("fixtures/rocm/matmul.rpd.zst"));
    let all = &profile.launches;
    assert_eq!((profile.source.tool.as_str(), all.len(), (0..all.len()).map(|r| all.duration(r)).sum::<i64>()), ("rpd", 29, 26_399_795));
    let copies: Vec<_> = profile.memops.iter().filter(|m| matches!(m.kind, MemOpKind::Copy { .. })).collect();
    assert_eq!((copies.len(), profile.memops.len()), (55, 56));
    assert_eq!(copies.iter().filter_map(|m| m.bytes).map(|b| b.0).sum::<u64>(), 2_032_000_296);
    assert_eq!(copies.iter().map(|m| m.duration.0).sum::<i64>(), 157_512_821);
    let to = |kind| copies.iter().filter(|m| matches!(m.kind, MemOpKind::Copy { kind: k, .. } if k == kind)).count();
    assert_eq!((to(CopyKind::DeviceToHost), to(CopyKind::HostToDevice)), (53, 2));
    // A GEMM's call gives the grid in work-items, the others in blocks.
    let config = |row: usize| profile.configs[all.config(row).unwrap().0 as usize].clone();
    assert_eq!((config(0).grid, config(0).block), (Some([7, 782, 1]), Some([256, 1, 1])));
    assert_eq!((config(1).grid, config(1).block), (Some([1, 2, 1]), Some([128, 1, 1])));
    assert_eq!((profile.devices[0].maker, profile.devices[0].id, profile.order), (Vendor::Amd, 2, LaunchOrder::Device));
    assert!((0..all.len()).all(|r| all.call(r).is_some()));
}

const SCHEMA: &str = r#"
    CREATE TABLE "rocpd_string" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "string" varchar(4096) NOT NULL);
    CREATE TABLE "rocpd_op" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "gpuId" integer NOT NULL, "queueId" integer NOT NULL, "sequenceId" integer NOT NULL, "completionSignal" varchar(18) NOT NULL, "start" integer NOT NULL, "end" integer NOT NULL, "description_id" integer NOT NULL, "opType_id" integer NOT NULL);
    CREATE TABLE "rocpd_api" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "pid" integer NOT NULL, "tid" integer NOT NULL, "start" integer NOT NULL, "end" integer NOT NULL, "apiName_id" integer NOT NULL, "args_id" integer NOT NULL);
    CREATE TABLE "rocpd_api_ops" ("id" integer NOT NULL PRIMARY KEY AUTOINCREMENT, "api_id" integer NOT NULL, "op_id" integer NOT NULL);
    CREATE TABLE "rocpd_kernelapi" ("api_ptr_id" integer NOT NULL PRIMARY KEY, "stream" varchar(18) NOT NULL, "gridX" integer NOT NULL, "gridY" integer NOT NULL, "gridZ" integer NOT NULL, "workgroupX" integer NOT NULL, "workgroupY" integer NOT NULL, "workgroupZ" integer NOT NULL, "groupSegmentSize" integer NOT NULL, "privateSegmentSize" integer NOT NULL, "kernelName_id" integer NOT NULL);
    CREATE TABLE "rocpd_copyapi" ("api_ptr_id" integer NOT NULL PRIMARY KEY, "stream" varchar(18) NOT NULL, "size" integer NOT NULL);
    INSERT INTO rocpd_string VALUES (1, ''), (2, 'hipLaunchKernel'), (3, 'UserMarker'), (4, 'step 1'), (5, 'KernelExecution'), (6, 'saxpy(float*)'),
      (7, 'Task'), (8, 'hipGraphLaunch'), (9, 'node_a(int)'), (10, 'node_b(int)'), (11, 'Barrier'), (12, 'Memcpy'), (13, 'hipMemcpyHostToDevice'), (14, 'hipMemcpyAsync');
"#;

fn made(folder: &Path, name: &str, rows: &str) -> Profile {
    let path = folder.join(name);
    Connection::open(&path).unwrap().execute_batch(&format!("{SCHEMA}{rows}")).unwrap();
    table_agrees(&path);
    read(&path).unwrap()
}

/// A table of kernels needs durations only, which agree with those of the launches.
fn table_agrees(path: &Path) {
    let (table, whole) = (read_raw(path, Wants::TABLE), read_raw(path, Wants::ALL));
    assert_eq!((durations(&table), table.devices.len()), (durations(&whole), whole.devices.len()));
    assert!(table.devices.iter().all(|d| whole.devices.contains(d)), "{:?} {:?}", table.devices, whole.devices);
}

fn names(profile: &Profile) -> Vec<&str> {
    (0..profile.launches.len()).map(|r| profile.kernels[profile.launches.kernel(r).0 as usize].demangled()).collect()
}

/// roctracer: the names are in the operation or its call, a graph's kernels are tasks of one call, and grids are in
/// blocks.
#[test]
fn as_roctracer_writes_it() {
    let folder = tempfile::tempdir().unwrap();
    let profile = made(
        folder.path(),
        "a.rpd",
        "INSERT INTO rocpd_api VALUES (1, 70, 71, 1000, 9000, 3, 4), (2, 70, 71, 2000, 2100, 2, 1), (3, 70, 71, 3000, 3100, 8, 1), (4, 80, 80, 3000, 3100, 2, 1);
         INSERT INTO rocpd_op VALUES (1, 2, 0, 0, '', 2500, 2600, 1, 5), (2, 2, 0, 0, '', 3500, 3600, 9, 7), (3, 2, 0, 0, '', 3600, 3800, 10, 7),
           (4, 2, 0, 0, '', 3800, 3900, 1, 11), (5, 3, 1, 0, '', 4000, 4100, 6, 5);
         INSERT INTO rocpd_api_ops (api_id, op_id) VALUES (2, 1), (3, 2), (3, 3), (3, 4), (4, 5);
         INSERT INTO rocpd_kernelapi VALUES (2, '0x0', 10, 2, 1, 64, 1, 1, 512, 0, 6), (3, '0x0', 0, 0, 0, 0, 0, 0, 0, 0, 1), (4, '0x0', 10, 2, 1, 64, 1, 1, 0, 0, 6);",
    );
    assert_eq!(names(&profile), ["saxpy(float*)", "node_a(int)", "node_b(int)", "saxpy(float*)"]);
    let config = profile.configs[profile.launches.config(0).unwrap().0 as usize].clone();
    assert_eq!((config.grid, config.block, config.static_shared.map(|b| b.0)), (Some([10, 2, 1]), Some([64, 1, 1]), Some(512)));
    let calls: Vec<_> = (0..4).map(|r| profile.launches.call(r).unwrap().1).collect();
    assert_eq!((calls, profile.order), (vec![100; 4], LaunchOrder::Device));
    let pids: Vec<_> = (0..4).map(|r| profile.places[profile.launches.place(r).unwrap().0 as usize].pid).collect();
    assert_eq!(pids, [Some(70), Some(70), Some(70), Some(80)]);
    assert_eq!(profile.ranges.iter().map(|r| profile.ranges.label(r.name).to_owned()).collect::<Vec<_>>(), ["step 1"]);
}

/// rocprofiler-sdk: dispatch ids, grids in work-items, copies named by their direction.
#[test]
fn as_rocprofiler_sdk_writes_it() {
    let folder = tempfile::tempdir().unwrap();
    let profile = made(
        folder.path(),
        "b.rpd",
        "INSERT INTO rocpd_api VALUES (1, 70, 71, 1000, 1100, 2, 1), (2, 70, 71, 2000, 2100, 14, 1);
         INSERT INTO rocpd_op VALUES (1, 2, 7, 5, '', 2500, 2600, 6, 5), (2, 2, 7, 0, '', 3500, 3600, 13, 12);
         INSERT INTO rocpd_api_ops (api_id, op_id) VALUES (1, 1), (2, 2);
         INSERT INTO rocpd_kernelapi VALUES (1, '0x0', 640, 2, 1, 64, 1, 1, 512, 16, 6);
         INSERT INTO rocpd_copyapi VALUES (2, '0x0', 4096);",
    );
    let config = profile.configs[profile.launches.config(0).unwrap().0 as usize].clone();
    assert_eq!((names(&profile), config.grid, profile.order), (vec!["saxpy(float*)"], Some([10, 2, 1]), LaunchOrder::Host));
    let copy = profile.memops.get(0).unwrap();
    assert!(matches!(copy.kind, MemOpKind::Copy { kind: CopyKind::HostToDevice, .. }), "{:?}", copy.kind);
    assert_eq!(copy.bytes.map(|b| b.0), Some(4096));
}

/// Missing tables, dangling references or truncation give a report or a one-line error.
#[test]
fn damage_gives_a_report_or_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let nothing = made(
        folder.path(),
        "c.rpd",
        "DROP TABLE rocpd_api_ops; DROP TABLE rocpd_copyapi; INSERT INTO rocpd_op VALUES (1, 2, 0, -5, '', 2500, 2600, 99, 5), (2, 2, 0, 0, '', 9223372036854775807, 1, 6, 5);",
    );
    assert!(nothing.notes.iter().any(|n| n.text.contains("could not be understood")), "{:?}", nothing.notes);
    let whole = std::fs::read(folder.path().join("c.rpd")).unwrap();
    for cut in (0..whole.len()).step_by(1021) {
        let path = table(folder.path(), "cut.rpd", "");
        std::fs::write(&path, &whole[..cut]).unwrap();
        if let Err(e) = read(&path) {
            assert!(!e.to_string().contains('\n'), "{e}");
        }
    }
}
