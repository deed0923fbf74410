//! Cost of untrusted files: steps grow linearly with file size, memory is bounded by it,
//! and reading never blocks on other files.

use super::hostile::limited;
use super::support::{run, scratch};
use rusqlite::Connection;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use warpscope::import::{self, Cancel, Job, Wants};

/// Encodes a length-delimited protobuf field.
fn field(number: u64, bytes: &[u8]) -> Vec<u8> {
    [varint(number << 3 | 2), varint(bytes.len() as u64), bytes.to_vec()].concat()
}

fn varint(mut n: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while n > 127 {
        out.push((n & 127) as u8 | 128);
        n >>= 7;
    }
    out.push(n as u8);
    out
}

fn number(field: u64, n: u64) -> Vec<u8> {
    [varint(field << 3), varint(n)].concat()
}

/// Encodes a pickled string.
fn text(text: &str) -> Vec<u8> {
    [&[0x8c, u8::try_from(text.len()).unwrap()][..], text.as_bytes()].concat()
}

/// `{"segments": […]}` with these items, in batches as Python writes them.
fn segments(first: &[u8], items: &[Vec<u8>]) -> Vec<u8> {
    let batches = items.chunks(1_000).flat_map(|batch| [&b"("[..], &batch.concat(), b"e"].concat());
    [b"\x80\x04}".to_vec(), text("segments"), b"](".to_vec(), first.to_vec(), b"e".to_vec(), batches.collect(), b"s.".to_vec()].concat()
}

/// One dictionary of many pairs, referenced many times.
fn one_dictionary(n: usize) -> Vec<u8> {
    let pairs: Vec<u8> = (0..n.div_ceil(1_000)).flat_map(|_| [&b"("[..], &b"K\x07N".repeat(1_000), b"u"].concat()).collect();
    segments(&[b"}\x94".to_vec(), pairs].concat(), &vec![b"h\x00".to_vec(); n])
}

/// A separate item that memoises the keys under 0, 1 and so on.
fn remembered(keys: &[&str], more: &[u8]) -> Vec<u8> {
    let keys: Vec<u8> = keys.iter().flat_map(|k| [text(k), b"\x94".to_vec()].concat()).collect();
    [&b"]("[..], &keys, more, b"e"].concat()
}

/// A different device for each segment.
fn devices(n: usize) -> Vec<u8> {
    let segment = |i: usize| [&b"}(h\x00K\x01h\x01]h\x02J"[..], &i32::try_from(i).unwrap().to_le_bytes(), b"u"].concat();
    segments(&remembered(&["total_size", "blocks", "device"], b""), &(0..n).map(segment).collect::<Vec<_>>())
}

/// One list of blocks, referenced by every segment.
fn one_list(n: usize) -> Vec<u8> {
    let items: Vec<u8> = (0..n.div_ceil(1_000)).flat_map(|_| [&b"("[..], &b"N".repeat(1_000), b"e"].concat()).collect();
    let list = [&b"]\x94"[..], &items].concat();
    segments(&remembered(&["total_size", "blocks"], &list), &vec![b"}(h\x00K\x01h\x01h\x02u".to_vec(); n])
}

/// A name of eight bytes per event, which all events reference.
fn one_name(n: usize, kind: &str) -> Vec<u8> {
    let interned = field(
        12,
        &[field(1, &[number(1, 1), field(2, kind.as_bytes())].concat()), field(2, &[number(1, 1), field(2, &vec![b'k'; n * 8])].concat())]
            .concat(),
    );
    let keys = ["begin_ns", "end_ns"].map(|k| [field(10, k.as_bytes())].concat());
    let track = field(60, &[number(1, 1), field(2, b"GPU 0 stream 7")].concat());
    let mut out = [field(1, &[track, number(10, 1)].concat()), field(1, &[number(10, 1), number(13, 1), interned].concat())].concat();
    for i in 0..n as u64 {
        let told: Vec<u8> =
            keys.iter().zip(0..).flat_map(|(key, at)| field(4, &[key.clone(), number(4, 1_000 + i * 10 + at)].concat())).collect();
        let begin = field(11, &[number(9, 1), number(11, 1), number(10, 1), number(3, 1), told].concat());
        out.extend(field(1, &[number(8, 1_000 + i * 10), number(10, 1), begin].concat()));
        let end = field(11, &[number(9, 2), number(11, 1)].concat());
        out.extend(field(1, &[number(8, 1_005 + i * 10), number(10, 1), end].concat()));
    }
    out
}

/// A table with very many counters.
fn columns(n: usize) -> Vec<u8> {
    let names: String = (0..n).map(|i| format!(",SQ_{i:x}")).collect();
    let head = format!("Dispatch_ID,Kernel_Name,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,Arch_VGPR{names}\n");
    [head, format!("1,k,64,64,0,8{}\n", ",1".repeat(n)), format!("2,k,64,64,0,8{}\n", ",1".repeat(n))].concat().into_bytes()
}

/// A rocpd database with a region for each string, each of which is a marker.
fn markers(n: usize) -> Vec<u8> {
    let path = scratch().join(format!("markers-{n}.db"));
    let db = Connection::open(&path).unwrap();
    db.execute_batch(
        "create table rocpd_metadata_x(id integer primary key, tag text, value text); create table rocpd_string_x(id integer primary key, string text);
         create table rocpd_info_node_x(id integer primary key, hostname text);
         create table rocpd_info_process_x(id integer primary key, pid integer, command text);
         create table rocpd_info_thread_x(id integer primary key, tid integer, name text, pid integer);
         create table rocpd_info_agent_x(id integer primary key, type text, type_index integer, name text, product_name text, extdata text);
         create table rocpd_info_kernel_symbol_x(id integer primary key, pid integer, kernel_name text, display_name text,
             arch_vgpr_count integer, accum_vgpr_count integer, extdata text);
         create table rocpd_event_x(id integer primary key, stack_id integer, category_id integer);
         create table rocpd_kernel_dispatch_x(id integer primary key, pid integer, kernel_id integer, dispatch_id integer, start integer,
             \"end\" integer, event_id integer, tid integer, agent_id integer, queue_id integer, stream_id integer);
         create table rocpd_region_x(id integer primary key, pid integer, tid integer, start integer, \"end\" integer, name_id integer, event_id integer);
         insert into rocpd_metadata_x values(1,'schema_version','3'); insert into rocpd_info_process_x values(1,7,'app');
         insert into rocpd_info_agent_x values(1,'GPU',0,'gfx942','MI300X','{}');
         insert into rocpd_info_kernel_symbol_x values(1,1,'k.kd','k',1,1,'{}');
         insert into rocpd_kernel_dispatch_x values(1,1,1,1,100,200,1,1,1,1,1);",
    )
    .unwrap();
    let rows = format!("with recursive i(n) as (select 1 union all select n + 1 from i where n < {n}) insert into");
    db.execute_batch(&format!(
        "{rows} rocpd_string_x(string) select 'MARKER' from i; {rows} rocpd_region_x(pid, tid, start, \"end\", name_id, event_id)
         select 1, 1, n * 10, n * 10 + 5, 1, 1 from i; insert into rocpd_event_x values(1, 1, {n});"
    ))
    .unwrap();
    drop(db);
    fs::read(path).unwrap()
}

/// A torch.profiler trace with this many launches and kernels.
fn torch_events(n: usize) -> Vec<u8> {
    let events = (0..n).map(|i| {
        let (call, kernel) = (i * 10, i * 10 + 5);
        format!(
            r#"{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":{call},"dur":2,"args":{{"correlation":{i}}}}},
{{"ph":"X","cat":"kernel","name":"k{}","pid":0,"tid":7,"ts":{kernel},"dur":3,"args":{{"device":0,"stream":7,"correlation":{i},"grid":[1,1,1],"block":[32,1,1]}}}}"#,
            i % 100
        )
    });
    format!(
        r#"{{"schemaVersion":1,"traceEvents":[{}]}}"#,
        events.collect::<Vec<_>>().join(
            ",
"
        )
    )
    .into_bytes()
}

/// An ncu table with this many kernels.
fn ncu_rows(n: usize) -> Vec<u8> {
    let head = r#""ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value""#;
    let row = |i| {
        format!(
            "\n\"{i}\",\"1\",\"app\",\"host\",\"k\",\"1\",\"7\",\"(32, 1, 1)\",\"(1, 1, 1)\",\"0\",\"9.0\",\"Speed\",\"Duration\",\"ns\",\"{i}\""
        )
    };
    (head.to_owned() + &(0..n).map(row).collect::<String>()).into_bytes()
}

/// An Nsight Compute report with this many kernels.
fn ncu_kernels(n: usize) -> Vec<u8> {
    let dims = |n| [number(1, n), number(2, 1), number(3, 1)].concat();
    let kernel = [field(6, b"k"), field(10, &dims(64)), field(11, &dims(128))].concat();
    let length = |b: &[u8]| u32::try_from(b.len()).unwrap().to_le_bytes();
    let body: Vec<u8> = (0..n).flat_map(|_| [&length(&kernel), &kernel[..]].concat()).collect();
    let header = [number(2, n as u64), number(5, body.len() as u64), field(4, &field(1, b"gpu__time_duration.sum"))].concat();
    [b"NVR\0", &length(&[0, 0])[..], &[0x08, 0x07], &length(&header), &header, &body].concat()
}

/// An Nsight Systems export with this many kernels, each with its own name, call and range.
fn nsys_rows(n: usize) -> Vec<u8> {
    let path = scratch().join(format!("rows-{n}.sqlite"));
    let _ = fs::remove_file(&path);
    let db = Connection::open(&path).unwrap();
    let rows = format!("with recursive i(n) as (select 1 union all select n + 1 from i where n < {n}) insert into");
    db.execute_batch(&format!(
        "create table StringIds(id integer primary key, value text not null);
         create table CUPTI_ACTIVITY_KIND_KERNEL(start integer, end integer, deviceId integer, contextId integer, streamId integer, correlationId integer,
             globalPid integer, demangledName integer, shortName integer, registersPerThread integer, gridX integer, gridY integer, gridZ integer,
             blockX integer, blockY integer, blockZ integer, staticSharedMemory integer, dynamicSharedMemory integer, graphNodeId integer);
         create table CUPTI_ACTIVITY_KIND_RUNTIME(start integer, end integer, eventClass integer, globalTid integer, correlationId integer,
             nameId integer, returnValue integer, callchainId integer);
         create table NVTX_EVENTS(start integer, end integer, eventType integer, text text, globalTid integer, textId integer, domainId integer);
         {rows} StringIds select n, 'k' || n from i;
         {rows} CUPTI_ACTIVITY_KIND_KERNEL select n * 10 + 5, n * 10 + 8, 0, 1, 7, n, 281474976710656, n, n, 32, 1, 1, 1, 32, 1, 1, 0, 0, null from i;
         {rows} CUPTI_ACTIVITY_KIND_RUNTIME select n * 10, n * 10 + 2, 0, 281474976710657, n, 1, 0, null from i;
         {rows} NVTX_EVENTS select n * 10, n * 10 + 9, 59, null, 281474976710657, n, 0 from i;"
    ))
    .unwrap();
    drop(db);
    fs::read(path).unwrap()
}

/// A rocprofv3 profile in JSON with this many dispatches.
fn rocm_dispatches(n: usize) -> Vec<u8> {
    let dispatch = |i: usize| {
        format!(
            r#"{{"thread_id":1,"correlation_id":{{"internal":{i},"external":0}},"start_timestamp":{},"end_timestamp":{},
"dispatch_info":{{"dispatch_id":{i},"kernel_id":1,"agent_id":{{"handle":1}},"queue_id":{{"handle":1}},"workgroup_size":{{"x":64,"y":1,"z":1}},"grid_size":{{"x":64,"y":1,"z":1}}}}}}"#,
            i * 10,
            i * 10 + 5
        )
    };
    let all = (0..n).map(dispatch).collect::<Vec<_>>().join(",");
    format!(
        r#"{{"rocprofiler-sdk-tool":[{{"metadata":{{"pid":1}},"agents":[{{"id":{{"handle":1}},"type":2,"name":"gfx942"}}],
"kernel_symbols":[{{"kernel_id":1,"formatted_kernel_name":"k","kernel_name":"k.kd"}}],"buffer_records":{{"kernel_dispatch":[{all}]}}}}]}}"#
    )
    .into_bytes()
}

/// The code listing of a thread trace with this many instructions.
fn instructions(n: usize) -> Vec<u8> {
    let row = |i: usize| format!(r#"["v_add_f32 v0, v0, v{}",0,{i},"a.hip:{i}",1,{},1,4,0,0]"#, i % 256, i * 4);
    format!(r#"{{"code":[["; k",0,0,"k",1,0,0,0,0,0],{}]}}"#, (0..n).map(row).collect::<Vec<_>>().join(",")).into_bytes()
}

/// An XLA profile in which all events share one long name, and each plane has its own list of names.
fn planes(n: usize) -> Vec<u8> {
    let field = |number: u8, bytes: &[u8]| {
        let mut out = vec![number << 3 | 2];
        let mut length = bytes.len();
        while length > 127 {
            out.push(length as u8 | 128);
            length >>= 7;
        }
        out.push(length as u8);
        [out, bytes.to_vec()].concat()
    };
    let name = "kernel".repeat(n / 60);
    let metadata = field(4, &[&[8, 1][..], &field(2, &field(2, name.as_bytes()))].concat());
    let events: Vec<u8> = (0..n / 10).flat_map(|_| field(4, &[8, 1, 16, 1, 24, 100])).collect();
    let line = field(3, &[field(2, b"Stream #7(Compute)"), events].concat());
    let plane = field(1, &[field(2, b"/device:GPU:0"), line, metadata].concat());
    plane.repeat(10)
}

/// A Proton tree: scopes with one kernel each.
fn scopes(n: usize) -> Vec<u8> {
    let one = |i: usize| {
        format!(
            r#"{{"children":[{{"children":[],"frame":{{"name":"k{i}"}},"metrics":{{"count":1,"time (ns)":5}}}}],"frame":{{"name":"s{i}"}},"metrics":{{}}}}"#
        )
    };
    let all: Vec<String> = (0..n).map(one).collect();
    format!(r#"[{{"children":[{}],"frame":{{"name":"ROOT"}},"metrics":{{}}}},{{}}]"#, all.join(",")).into_bytes()
}

/// The tree of `scopes` in `MessagePack`.
fn packed_scopes(n: usize) -> Vec<u8> {
    let text = |text: &str| [&[0xa0 | text.len() as u8], text.as_bytes()].concat();
    let node = |name: &str, metrics: &[u8], children: &[u8]| {
        [&b"\x83\xa5frame\x81\xa4name"[..], &text(name), b"\xa7metrics", metrics, b"\xa8children", children].concat()
    };
    let one = |i: usize| {
        node(&format!("s{i}"), b"\x80", &[b"\x91", &*node(&format!("k{i}"), b"\x82\xa5count\x01\xa9time (ns)\x05", b"\x90")].concat())
    };
    let all: Vec<u8> = (0..n).flat_map(one).collect();
    let root = node("ROOT", b"\x80", &[&[0xdd][..], &(n as u32).to_be_bytes(), &all].concat());
    [b"\x92", &*root, b"\x80"].concat()
}

type Make = fn(usize) -> Vec<u8>;

/// Files whose cost must not be quadratic, by number of items. For the first seven, an earlier version was quadratic.
const GROWING: [(&str, usize, Make); 16] = [
    ("one dictionary.pickle", 10_000, one_dictionary),
    ("devices.pickle", 10_000, devices),
    ("one list.pickle", 10_000, one_list),
    ("one name.pftrace", 2_000, |n| one_name(n, "gpu_kernel")),
    ("one name of rocprofv3.pftrace", 2_000, |n| one_name(n, "kernel_dispatch")),
    ("space.xplane.pb", 5_000, planes),
    ("tree.hatchet", 5_000, scopes),
    ("tree.hatchet_msgpack", 5_000, packed_scopes),
    ("pmc_perf.csv", 10_000, columns),
    ("markers_results.db", 10_000, markers),
    ("torch.json", 20_000, torch_events),
    ("ncu.csv", 20_000, ncu_rows),
    ("kernels.ncu-rep", 20_000, ncu_kernels),
    ("nsys.sqlite", 20_000, nsys_rows),
    ("out_results.json", 20_000, rocm_dispatches),
    ("code.json", 20_000, instructions),
];

fn written(name: &str, bytes: &[u8]) -> PathBuf {
    let folder = tempfile::tempdir_in(scratch()).unwrap().keep();
    fs::write(folder.join(name), bytes).unwrap();
    folder.join(name)
}

fn steps(path: &Path) -> u64 {
    let cancel = Cancel::default();
    let job = Job { cancel: cancel.clone(), threads: 2, cache: scratch().join("cache"), ..Job::new(Wants::ALL, &|_| {}) };
    // Errors are expected; only the step count matters here.
    let _ = import::open_profile(path, &job);
    cancel.steps_done()
}

#[test]
fn twice_as_large_a_file_costs_twice_as_much() {
    for (name, n, make) in GROWING {
        let (small, large) = (steps(&written(name, &make(n))), steps(&written(name, &make(2 * n))));
        assert!(small >= n as u64, "{name}: {small} steps are not all");
        assert!(large * 2 <= small * 5, "{name}: {small} steps, and {large} for twice as much");
    }
}

#[test]
fn readers_stop_when_they_are_told_to() {
    for (name, n, make) in GROWING {
        let path = written(name, &make(n * 4));
        let cancel = Cancel::default();
        cancel.cancel();
        let job = Job { cancel: cancel.clone(), threads: 2, cache: scratch().join("cache"), ..Job::new(Wants::ALL, &|_| {}) };
        let error = import::open_profile(&path, &job).map(|_| ()).unwrap_err().to_string();
        assert!(error.ends_with("cancelled") && cancel.steps_done() < 1 << 20, "{name}: {error}, {} steps", cancel.steps_done());
    }
}

fn packed(name: &str, bytes: impl Iterator<Item = Vec<u8>>) -> PathBuf {
    let path = written(name, b"");
    let mut out = flate2::write::GzEncoder::new(fs::File::create(&path).unwrap(), flate2::Compression::best());
    bytes.for_each(|b| out.write_all(&b).unwrap());
    out.finish().unwrap();
    path
}

/// A few kilobytes that expand to gigabytes: a one-line error, and no abort in 2 GiB.
#[test]
fn bombs_are_refused_in_a_sentence() {
    let list = |unit: &'static [u8]| {
        let begin = [&b"\x80\x04}"[..], &text("segments"), b"]"].concat();
        let batch = [&b"("[..], &unit.repeat(50_000), b"e"].concat();
        std::iter::once(begin).chain(std::iter::repeat_n(batch, 60_000_000 / 50_000 / unit.len())).chain([b"s.".to_vec()])
    };
    let zipped = |megabytes: usize| {
        let mut out = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        (0..megabytes).for_each(|_| out.write_all(&vec![0; 1 << 20]).unwrap());
        out.finish().unwrap()
    };
    let packet = field(1, &field(12, &field(2, &[number(1, 1), field(2, b"x")].concat())));
    let trace = [packet.repeat(3), field(1, &field(50, &zipped(400)))].concat();
    let json = |item: &'static str| {
        let begin = format!("{{\"rocprofiler-sdk-tool\":[{{\"buffer_records\":{{\"kernel_dispatch\":[{item}").into_bytes();
        let more = format!(",{item}").repeat(50_000).into_bytes();
        std::iter::once(begin).chain(std::iter::repeat_n(more, 60_000_000 / 50_000 / (item.len() + 1))).chain([b"]}}]}".to_vec()])
    };
    for path in [
        packed("lists.pickle.gz", list(b"]")),
        packed("pairs.pickle.gz", list(b"}NNs")),
        packed("trace.pftrace.gz", std::iter::once(trace.clone())),
        written("trace.pftrace", &trace),
        packed("objects_results.json.gz", json("{}")),
    ] {
        let out = limited(&["top", path.to_str().unwrap()]);
        let err = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(
            out.status.code() == Some(3) && err.contains("MB of memory") && err.lines().count() == 1,
            "{path:?}: {:?} {err}",
            out.status
        );
    }
}

/// Invalid page sizes, in a timeline and in a rocprofv3 database.
#[test]
fn a_database_without_a_page_size_is_damaged() {
    for size in [0_u16, 2, 3, 100, 256, 511, 513, 40_000, 65_535] {
        for tables in ["CUPTI_ACTIVITY_KIND_KERNEL", "CREATE TABLE rocpd_info_agent"] {
            let mut bytes = [b"SQLite format 3\0".to_vec(), vec![0; 4_080]].concat();
            bytes[16..18].copy_from_slice(&size.to_be_bytes());
            bytes[200..200 + tables.len()].copy_from_slice(tables.as_bytes());
            let out = limited(&["top", written("x_results.db", &bytes).to_str().unwrap()]);
            let err = String::from_utf8_lossy(&out.stderr).into_owned();
            assert!(out.status.code() == Some(3) && err.lines().count() == 1, "{size}: {:?} {err}", out.status);
        }
    }
}

/// Runs the program, which must end within ten seconds.
fn ended(args: &[&str]) -> Option<i32> {
    let mut command = Command::new("timeout");
    command.args(["--signal=KILL", "10"]).arg(assert_cmd::cargo::cargo_bin!("warpscope")).args(args);
    command.env_clear().env("HOME", scratch()).env("PATH", "/usr/bin:/bin").stdin(Stdio::null()).stdout(Stdio::null());
    command.status().unwrap().code()
}

/// File names looked up next to a report, each a FIFO without a writer.
#[test]
fn pipes_beside_a_report_are_passed_over() {
    let table = columns(1);
    for name in [
        "sysinfo.csv",
        "roofline.csv",
        "pmc_perf_2.csv",
        "code.json",
        "filenames.json",
        "x_results.db",
        "x_kernel_trace.csv",
        "x.1.wstrace",
    ] {
        let folder = written("pmc_perf.csv", &table).parent().unwrap().to_owned();
        nix::unistd::mkfifo(&folder.join(name), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(ended(&["top", folder.to_str().unwrap()]), Some(0), "{name}");
        assert_eq!(ended(&["top", folder.join("pmc_perf.csv").to_str().unwrap()]), Some(0), "{name}");
    }
    let folder = tempfile::tempdir_in(scratch()).unwrap();
    let prefix = folder.path().join("x");
    nix::unistd::mkfifo(&folder.path().join("x.1.wstrace"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert_eq!(ended(&["watch", prefix.to_str().unwrap(), "--plain", "--seconds", "1"]), Some(4));
}

#[test]
fn a_name_neither_commands_a_terminal_nor_fills_up_other_rows() {
    let event = |name: &str, at: u32| {
        format!(
            "{{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":{},\"pid\":0,\"tid\":7,\"ts\":{at},\"dur\":5,\"args\":{{\"device\":0,\"stream\":7}}}}",
            serde_json::Value::from(name)
        )
    };
    let long = "k".repeat(1_000_000);
    let rows: Vec<String> =
        (0..100).map(|i| event("short", 100 + i * 10)).chain([event(&long, 1), event("\x1b[31m\u{9b}2Jred\ttab", 2)]).collect();
    let path = written("t.json", format!("{{\"traceEvents\":[{}]}}", rows.join(",")).as_bytes());
    let (rc, out, err) = run(&["events", path.to_str().unwrap(), "--format", "table"]);
    assert!(rc == 0 && out.len() < 100_000, "{rc} {} {err}", out.len());
    let (rc, out, _) = run(&["top", path.to_str().unwrap(), "--format", "csv"]);
    assert!(rc == 0 && out.contains("^[[31m\\u{9b}2Jred\ttab") && !out.contains(['\x1b', '\u{9b}']));
    let (rc, out, _) = run(&["top", path.to_str().unwrap(), "--format", "json"]);
    let read: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(rc == 0 && read.to_string().contains("\\u001b[31m"), "JSON has the name as it is");
}
