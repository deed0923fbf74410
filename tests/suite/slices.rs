//! Traces of other tools: Chrome JSON of JAX and of converters, Perfetto protobuf, and our own exports. The tests
//! write the traces in these tools' formats.

use super::support::{read, root, run};
use std::path::{Path, PathBuf};
use warpscope::analysis::nvtx::Paths;
use warpscope::analysis::range_tree::RangeTree;
use warpscope::model::{Cancel, CopyKind, LaunchOrder, MemOpKind, NoteKind, Profile};

fn written(folder: &Path, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// A real JAX trace: names, counts and durations as read by Python.
#[test]
fn a_real_trace_of_jax() {
    let profile = read(&root().join("fixtures/slices/jax.trace.json.gz")).unwrap();
    let mut of: std::collections::BTreeMap<String, (usize, i64)> = std::collections::BTreeMap::new();
    for row in 0..profile.launches.len() {
        let kernel = &profile.kernels[profile.launches.kernel(row).0 as usize];
        let sum = of.entry(kernel.demangled().to_owned()).or_default();
        *sum = (sum.0 + 1, sum.1 + profile.launches.duration(row));
    }
    let wanted = [
        ("gemm_fusion_dot", 10, 415_912),
        ("input_reduce_fusion", 10, 48_927),
        ("loop_multiply_fusion", 20, 173_541),
        ("nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT", 10, 430_377),
        ("wrapped_subtract", 10, 64_546),
    ];
    let got: Vec<_> = of.iter().map(|(name, (n, ns))| (name.as_str(), *n, *ns)).collect();
    assert_eq!(got, wanted);
    let config = profile.launches.config(0).map(|c| &profile.configs[c.0 as usize]).unwrap();
    assert_eq!((config.grid, config.block, config.registers), (Some([2, 66, 1]), Some([384, 1, 1]), Some(168)));
    assert_eq!(profile.memops.len(), 10);
    let steps = profile.ranges.iter().filter(|r| profile.ranges.label(r.name).starts_with("train")).count();
    assert_eq!(steps, 10);
}

/// A real `TensorFlow` profile (`XSpace`): counts and sums as read by Python from the protobuf.
#[test]
fn a_real_profile_of_xla() {
    let path = root().join("fixtures/slices/tensorflow.xplane.pb.gz");
    let profile = read(&path).unwrap();
    let all = rows(&profile);
    let of = |device: u32| {
        let durations = all.iter().filter(|r| r.6 == Some(device)).map(|r| r.2);
        (durations.clone().count(), durations.sum::<i64>())
    };
    assert_eq!((all.len(), of(4), of(6)), (120, (60, 1_907_701), (60, 1_731_573)));
    assert!(all.iter().all(|r| r.0.starts_with("void tensorflow::functor::FillPhiloxRandomKernelLaunch<")));
    assert!(all.iter().all(|r| r.7 == Some(if r.6 == Some(6) { 142 } else { 134 })));
    assert!(all.iter().all(|r| (r.3, r.4, r.5) == (Some([160, 1, 1]), Some([1024, 1, 1]), Some(38))));
    let copies = |way| {
        profile
            .memops
            .iter()
            .filter(|m| matches!(m.kind, MemOpKind::Copy { kind, .. } if kind == way))
            .map(|m| m.bytes.unwrap().0)
            .sum::<u64>()
    };
    assert_eq!(profile.memops.len(), 2 * (14 + 12));
    assert!(copies(CopyKind::HostToDevice) > 0 && copies(CopyKind::DeviceToHost) > 0);
    let device = profile.devices.iter().find(|d| d.id == 6).unwrap();
    assert_eq!((device.sm_count, device.compute_capability, device.clock_hz), (Some(80), Some((7, 0)), Some(1_530_000_000)));
    assert_eq!((device.memory_bandwidth, device.memory.unwrap().0), (Some(898_048_000_000), 16_945_512_448));
    assert!(!profile.ranges.is_empty());
    // A trace that is truncated anywhere is read up to that point, or refused.
    let mut whole = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(std::fs::File::open(&path).unwrap()), &mut whole).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut lost = 0;
    for at in (0..whole.len()).step_by(whole.len() / 40) {
        if let Ok(profile) = read(&written(folder.path(), "cut.xplane.pb", &whole[..at])) {
            lost += usize::from(profile.notes.iter().any(|n| n.kind == NoteKind::Lost));
        }
    }
    assert!(lost > 0, "a file that ends early is said to");
    let mut host = vec![0x0a, 11, 0x12, 9];
    host.extend(b"/host:CPU");
    let refused = read(&written(folder.path(), "host.xplane.pb", &host)).unwrap_err().to_string();
    assert!(refused.contains("without kernels of a GPU"), "{refused}");
}

/// Name, start from the first, duration, grid, block, registers, device, stream.
type Row = (String, i64, i64, Option<[u32; 3]>, Option<[u32; 3]>, Option<u32>, Option<u32>, Option<u32>);

fn rows(profile: &Profile) -> Vec<Row> {
    let l = &profile.launches;
    let first = (0..l.len()).map(|r| l.start(r)).min().unwrap_or(0);
    let one = |r: usize| {
        let config = l.config(r).and_then(|c| profile.configs.get(c.0 as usize)).cloned().unwrap_or_default();
        let place = l.place(r).and_then(|p| profile.places.get(p.0 as usize)).cloned().unwrap_or_default();
        let device = place.device.map(|d| profile.devices[d as usize].id);
        let name = profile.kernels[l.kernel(r).0 as usize].demangled().to_owned();
        (name, l.start(r) - first, l.duration(r), config.grid, config.block, config.registers, device, place.stream)
    };
    let mut out: Vec<Row> = (0..l.len()).map(one).collect();
    out.sort();
    out
}

/// JAX: kernels on tracks called streams, joined to their calls; derived lanes are not work.
#[test]
fn a_trace_of_jax() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"{"displayTimeUnit":"ns","traceEvents":[
        {"ph":"M","pid":1,"name":"process_name","args":{"name":"/device:GPU:0"}},
        {"ph":"M","pid":1,"tid":14,"name":"thread_name","args":{"name":"Stream #14(Compute)"}},
        {"ph":"M","pid":1,"tid":15,"name":"thread_name","args":{"name":"Stream #15(MemcpyH2D)"}},
        {"ph":"M","pid":1,"tid":99,"name":"thread_name","args":{"name":"XLA Ops"}},
        {"ph":"M","pid":701,"name":"process_name","args":{"name":"/host:CPU"}},
        {"ph":"X","pid":701,"tid":3,"ts":1000.0,"dur":200,"name":"train_step","args":{"step_num":"7"}},
        {"ph":"X","pid":701,"tid":3,"ts":1010.0,"dur":5.5,"name":"cuLaunchKernel","args":{"correlation_id":"21"}},
        {"ph":"X","pid":701,"tid":3,"ts":1020.0,"dur":5.5,"name":"cuLaunchKernel","args":{"correlation_id":"22"}},
        {"ph":"X","pid":1,"tid":14,"ts":1100.5,"dur":25.123,"name":"fusion_2","args":{"correlation_id":"22","kernel_details":"regs:40 static_shared:0 dynamic_shared:1024 grid:100,2,1 block:256,1,1 occ_pct:100"}},
        {"ph":"X","pid":1,"tid":14,"ts":1060.5,"dur":30,"name":"fusion_1","args":{"correlation_id":"21","kernel_details":"regs:32 static_shared:0 dynamic_shared:0 grid:7,1,1 block:64,1,1 occ_pct:50"}},
        {"ph":"X","pid":1,"tid":99,"ts":1060.5,"dur":65,"name":"fusion.1"},
        {"ph":"X","pid":1,"tid":15,"ts":1005.0,"dur":3,"name":"MemcpyH2D","args":{"memcpy_details":"kind_src:pageable kind_dst:device size:4194304 dest:0 async:1"}},
        {}]}"#;
    let profile = read(&written(folder.path(), "trace.json", text)).unwrap();
    assert_eq!((profile.source.tool.as_str(), profile.order), ("Chrome trace", LaunchOrder::Host));
    assert_eq!(
        rows(&profile),
        [
            ("fusion_1".to_owned(), 0, 30_000, Some([7, 1, 1]), Some([64, 1, 1]), Some(32), Some(0), Some(14)),
            ("fusion_2".to_owned(), 40_000, 25_123, Some([100, 2, 1]), Some([256, 1, 1]), Some(40), Some(0), Some(14)),
        ]
    );
    assert_eq!(profile.launches.call(1).map(|c| c.1), Some(5_500));
    let copy = profile.memops.get(0).unwrap();
    assert_eq!(copy.bytes.map(|b| b.0), Some(4_194_304));
    assert!(matches!(copy.kind, MemOpKind::Copy { kind: CopyKind::HostToDevice, .. }), "{copy:?}");
    assert_eq!(profile.ranges.iter().count(), 1);
    assert!(profile.notes.iter().any(|n| n.kind == NoteKind::Guess && n.text.contains("another tool")), "{:?}", profile.notes);
    let (code, _, err) = run(&["triage", folder.path().join("trace.json").to_str().unwrap()]);
    assert_eq!(code, 0, "{err}");
}

/// Converters of nsys reports: names instead of numbers for processes and threads,
/// begin/end pairs, and a bare list of events.
#[test]
fn words_for_tracks_and_pairs_of_events() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"[{"ph":"B","cat":"cuda","name":"gemm<float>","pid":"Device 1","tid":"Stream 7","ts":10,"args":{"grid":"(4, 2, 1)","block":[32,4,1]}},
        {"ph":"E","pid":"Device 1","tid":"Stream 7","ts":12.5},
        {"ph":"X","cat":"gpu_kernel","name":"copy_all(int*)","pid":9,"tid":3,"ts":20,"dur":1,"args":{"device":2,"stream":5}},
        {"ph":"E","pid":"Device 1","tid":"Stream 7","ts":14},
        {"ph":"X","cat":"nvtx","name":"step","pid":9,"tid":3,"ts":5,"dur":30}]"#;
    let profile = read(&written(folder.path(), "nsys.json", text)).unwrap();
    let found: Vec<_> = rows(&profile).into_iter().map(|r| (r.0, r.2, r.3, r.4, r.6, r.7)).collect();
    assert_eq!(
        found,
        [
            ("copy_all(int*)".to_owned(), 1000, None, None, Some(2), Some(5)),
            ("gemm<float>".to_owned(), 2500, Some([4, 2, 1]), Some([32, 4, 1]), Some(1), Some(7)),
        ]
    );
    // A trace of a program without a GPU is unaffected.
    let host = r#"{"traceEvents":[{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":9,"tid":3,"ts":5,"dur":30}]}"#;
    let profile = read(&written(folder.path(), "host.json", host)).unwrap();
    assert_eq!((profile.source.tool.as_str(), profile.launches.len()), ("torch", 0));
}

/// Triton's Proton: kernels in PyTorch's category, on lanes called streams; scopes are ranges.
#[test]
fn a_trace_of_proton() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"{"displayTimeUnit": "us", "traceEvents": [
        {"ph":"M","pid":0,"tid":0,"name":"process_name","args":{"name":"Trace"}}, {"ph":"M","pid":0,"tid":1,"name":"thread_name","args":{"name":"CPU Thread 0"}},
        {"ph":"M","pid":0,"tid":1000007,"name":"thread_name","args":{"name":"Graph: Stream 7"}}, {"ph":"M","pid":0,"tid":2000007,"name":"thread_name","args":{"name":"GPU Stream 7"}},
        {"ph":"M","pid":0,"tid":2000009,"name":"thread_name","args":{"name":"GPU Stream 9"}},
        {"name":"matmul_scope","cat":"scope","ph":"X","pid":0,"ts":0,"dur":20.0,"tid":1,"args":{"call_stack":["ROOT","matmul_scope"]}},
        {"name":"graph_scope","cat":"scope","ph":"X","pid":0,"ts":30,"dur":100.0,"tid":1000007},
        {"name":"matmul_kernel","cat":"kernel","ph":"X","pid":0,"ts":30,"dur":60.5,"tid":2000007,"args":{"call_stack":["ROOT","matmul_scope"]}},
        {"name":"launch->kernel","cat":"flow","ph":"s","pid":0,"tid":1,"ts":0,"id":3,"bp":"e"}, {"name":"launch->kernel","cat":"flow","ph":"f","pid":0,"tid":2000007,"ts":30,"id":3,"bp":"e"},
        {"name":"copy_kernel","cat":"kernel","ph":"X","pid":0,"ts":95,"dur":5,"tid":2000009}]}"#;
    let profile = read(&written(folder.path(), "proton.chrome_trace", text)).unwrap();
    let found: Vec<_> = rows(&profile).into_iter().map(|r| (r.0, r.1, r.2, r.7)).collect();
    assert_eq!(found, [("copy_kernel".to_owned(), 65_000, 5_000, Some(9)), ("matmul_kernel".to_owned(), 0, 60_500, Some(7))]);
    let ranges: Vec<_> = profile.ranges.iter().map(|r| profile.ranges.label(r.name)).collect();
    assert_eq!(ranges, ["matmul_scope", "graph_scope"]);
    // A flow ties a kernel to its scope, although no call was recorded.
    let paths = Paths::from_profile(&profile);
    let of: Vec<_> = (0..2).map(|row| paths.launch_path(row).map(|p| paths.path_label(&profile, p))).collect();
    assert_eq!(of, [Some("matmul_scope".to_owned()), None]);
    assert!((0..2).all(|row| profile.launches.call(row).is_none()) && profile.order == LaunchOrder::Device);
    let tree = RangeTree::from_profile(&profile, &Cancel::default()).unwrap();
    let kernels: Vec<_> = tree.nodes.iter().map(|n| (n.name.as_str(), n.kernels)).collect();
    assert_eq!(kernels, [("matmul_scope", 1), ("graph_scope", 0)]);
    // PyTorch records the device and stream of kernels: such traces are read as PyTorch traces, even if other data is
    // missing.
    let torch = text.replace(r#""args":{"call_stack":["ROOT","matmul_scope"]}},"#, r#""args":{"device":0,"stream":7}},"#);
    assert_eq!(read(&written(folder.path(), "torch.json", torch)).unwrap().source.tool, "torch");
}

/// rocmProfileData: numbers are strings, lanes of a GPU's process are its queues, and an
/// argument gives the kind of each operation.
#[test]
fn a_trace_of_rocm_profile_data() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"[ {}
        ,{"name":"process_name","ph":"M","pid":"2","args":{"name":"GPU2"}}
        ,{"name":"thread_name","ph":"M","pid":"4001","tid":"4001","args":{"name":"Hip 4001"}}
        ,{"pid":"2","tid":"0","name":"CopyHostToDevice","ts":"8306017670485","dur":"154889","ph":"X","args":{"desc":"CopyHostToDevice"}}
        ,{"pid":"2","tid":"1","name":"FillBuffer","ts":"8306017926047","dur":"3","ph":"X","args":{"desc":"FillBuffer"}}
        ,{"pid":"2","tid":"1","name":"copy_all(float*)","ts":"8306020592134","dur":"6","ph":"X","args":{"desc":"KernelExecution"}}
        ,{"pid":"4001","tid":"4001","name":"hipLaunchKernel","ts":"8306020592100","dur":"9","ph":"X","args":{"desc":"stream=0"}}
        ,{"pid":"4001","tid":"4001","cat":"api_op","name":"api_op","ts":"8306020592101","ph":"s","id":"7"}
        ,{"pid":"2","tid":"1","cat":"api_op","name":"api_op","ts":"8306020592134","ph":"f","bp":"e","id":"7"}
        ]"#;
    let profile = read(&written(folder.path(), "rpd.json", text)).unwrap();
    assert_eq!(
        rows(&profile).into_iter().map(|r| (r.0, r.2, r.6, r.7)).collect::<Vec<_>>(),
        [("copy_all(float*)".to_owned(), 6_000, Some(2), Some(1))]
    );
    assert_eq!(profile.launches.call(0).map(|c| c.1), Some(9_000));
    let copies: Vec<_> = profile.memops.iter().map(|m| (m.duration.0, matches!(m.kind, MemOpKind::Set))).collect();
    assert_eq!(copies, [(154_889_000, false), (3_000, true)]);
    assert!(matches!(profile.memops.get(0).unwrap().kind, MemOpKind::Copy { kind: CopyKind::HostToDevice, .. }));
}

/// Our Perfetto and Chrome exports are read back with the same launches.
#[test]
fn our_own_exports_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = root().join("fixtures/triage/slow_rank_rank0.sqlite.zst");
    let wanted = rows(&read(&fixture).unwrap());
    for format in ["perfetto", "chrome"] {
        let path = folder.path().join(format!("out.{format}"));
        let (code, _, err) = run(&["export", "--format", format, fixture.to_str().unwrap(), "-o", path.to_str().unwrap()]);
        assert_eq!(code, 0, "{err}");
        let found = rows(&read(&path).unwrap());
        assert_eq!(found.len(), wanted.len(), "{format}");
        // A trace stores one name per kernel, and the sum of its shared memory.
        for (found, wanted) in found.iter().zip(&wanted) {
            assert_eq!(found, wanted, "{format}");
        }
    }
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

fn bytes(field: u64, b: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(b.len() as u64), b.to_vec()].concat()
}

/// Packets as rocprofiler-systems writes them: a queue's track by name, a default track, compressed packets.
#[test]
fn a_perfetto_trace_of_another_tool() {
    let folder = tempfile::tempdir().unwrap();
    let packet = |fields: &[Vec<u8>]| bytes(1, &fields.concat());
    let track = packet(&[bytes(60, &[number(1, 77), bytes(2, b"GPU Kernel Dispatch [1] Queue 4")].concat()), number(10, 1)]);
    let defaults = packet(&[bytes(59, &bytes(11, &number(11, 77))), number(10, 1), number(13, 1)]);
    let annotation = |key: &[u8], text: &[u8]| bytes(4, &[bytes(10, key), bytes(6, text)].concat());
    let begin =
        [number(9, 1), bytes(22, b"rocm_kernel_dispatch"), bytes(23, b"void k<float>(float*)"), annotation(b"corr_id", b"5")].concat();
    let events =
        [packet(&[number(8, 1000), bytes(11, &begin), number(10, 1)]), packet(&[number(8, 1750), bytes(11, &number(9, 2)), number(10, 1)])]
            .concat();
    let plain = [track.clone(), defaults.clone(), events.clone()].concat();
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut zlib, &events).unwrap();
    let compressed = [track.clone(), defaults, packet(&[bytes(50, &zlib.finish().unwrap())])].concat();
    for (name, text) in [("plain.pftrace", &plain), ("packed.pftrace", &compressed)] {
        let profile = read(&written(folder.path(), name, text)).unwrap();
        assert_eq!(profile.source.tool, "Perfetto trace", "{name}");
        let found: Vec<_> = rows(&profile).into_iter().map(|r| (r.0, r.2, r.6, r.7)).collect();
        assert_eq!(found, [("void k<float>(float*)".to_owned(), 750, Some(1), Some(4))]);
    }
    for cut in 0..plain.len() {
        let path = written(folder.path(), "cut.pftrace", &plain[..cut]);
        if let Err(e) = read(&path) {
            assert!(!e.to_string().contains('\n'), "{e}");
        }
    }
    let host =
        [track, packet(&[number(8, 5), bytes(11, &[number(9, 1), number(11, 3), bytes(23, b"main")].concat()), number(10, 1)])].concat();
    let error = read(&written(folder.path(), "host.pftrace", &host)).unwrap_err().to_string();
    assert!(error.contains("without slices of a GPU"), "{error}");
}

/// Any corruption gives a profile or a one-line error.
#[test]
fn flipped_bytes_give_a_profile_or_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = root().join("fixtures/triage/slow_rank_rank0.sqlite.zst");
    for format in ["perfetto", "chrome"] {
        let path = folder.path().join(format!("whole.{format}"));
        run(&["export", "--format", format, fixture.to_str().unwrap(), "-o", path.to_str().unwrap()]);
        let mut whole = std::fs::read(&path).unwrap();
        whole.truncate(12_000);
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..400 {
            let mut bytes = whole.clone();
            for _ in 0..4 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let at = (random >> 20) as usize % bytes.len();
                bytes[at] = (random >> 8) as u8;
            }
            if let Err(e) = read(&written(folder.path(), "flipped", &bytes)) {
                assert!(!e.to_string().contains('\n'), "{e}");
            }
        }
    }
}

/// Device, name, unit, values at times.
type Counted = (Option<u32>, String, String, Vec<(i64, f64)>);

fn counters(profile: &Profile) -> Vec<Counted> {
    let of = |c: &warpscope::model::CounterTrack| {
        let device = c.device.map(|d| profile.devices[d as usize].id);
        (device, c.name.to_string(), c.unit.to_string(), c.times.iter().copied().zip(c.values.iter().copied()).collect())
    };
    let mut out: Vec<Counted> = profile.counters.iter().map(of).collect();
    out.sort_by(|a, b| (&a.1, &a.2, a.0).cmp(&(&b.1, &b.2, b.0)));
    out
}

/// Counters and flow arrows in any tool's Chrome JSON: a kernel without a
/// correlation id is linked to its call by the arrow.
#[test]
fn counters_and_arrows_of_chromes_traces() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"{"traceEvents":[
        {"ph":"M","pid":5,"name":"process_name","args":{"name":"GPU 1"}},
        {"ph":"M","pid":5,"tid":1,"name":"thread_name","args":{"name":"Stream 9"}},
        {"ph":"X","pid":7,"tid":3,"ts":100,"dur":50,"name":"step"},
        {"ph":"X","pid":7,"tid":3,"ts":110,"dur":5,"name":"cudaLaunchKernel"},
        {"ph":"X","pid":7,"tid":3,"ts":120,"dur":5,"name":"cudaLaunchKernel"},
        {"ph":"s","pid":7,"tid":3,"ts":112,"id":"0x1","cat":"launch","name":"x"},
        {"ph":"s","pid":7,"tid":3,"ts":121,"id":2,"cat":"launch","name":"x"},
        {"ph":"X","pid":5,"tid":1,"ts":130,"dur":10,"name":"first"},
        {"ph":"X","pid":5,"tid":1,"ts":145,"dur":10,"name":"second"},
        {"ph":"f","pid":5,"tid":1,"ts":130,"bp":"e","id":"0x1","cat":"launch","name":"x"},
        {"ph":"f","pid":5,"tid":1,"ts":142,"id":2,"cat":"launch","name":"x"},
        {"ph":"C","pid":5,"ts":100,"name":"clock (MHz)","args":{"value":1500}},
        {"ph":"C","pid":5,"ts":150,"name":"clock (MHz)","args":{"value":"1755.5"}},
        {"ph":"C","pid":7,"ts":120,"name":"memory","args":{"used":3,"free":5}},
        {"ph":"C","pid":7,"ts":121,"name":"memory","args":{"used":"none"}},
        {"ph":"C","pid":7,"ts":122,"name":"busy","id":1,"args":{"value":8}},
        {"ph":"C","pid":7,"ts":122,"name":"busy","id":2,"args":{"value":9,"who":"nobody"}}]}"#;
    let profile = read(&written(folder.path(), "trace.json", text)).unwrap();
    let calls: Vec<_> = (0..profile.launches.len()).map(|r| profile.launches.call(r)).collect();
    assert_eq!(calls, [Some((10_000, 5_000)), Some((20_000, 5_000))]);
    let wanted = [
        (None, "busy 1", "", vec![(22_000, 8.0)]),
        (None, "busy 2", "", vec![(22_000, 9.0)]),
        (Some(1), "clock", "MHz", vec![(0, 1500.0), (50_000, 1755.5)]),
        (None, "memory free", "", vec![(20_000, 5.0)]),
        (None, "memory used", "", vec![(20_000, 3.0)]),
    ];
    assert_eq!(counters(&profile), wanted.map(|(d, n, u, v)| (d, n.to_owned(), u.to_owned(), v)));
    assert!(profile.notes.iter().any(|n| n.text.contains("1 event of this trace could not be understood")), "{:?}", profile.notes);
}

/// The same in Perfetto protobuf: integers, deltas with a factor, floating-point values; flows inside slices.
#[test]
fn counters_and_arrows_of_perfettos_traces() {
    let folder = tempfile::tempdir().unwrap();
    let packet = |fields: &[Vec<u8>]| bytes(1, &[fields.concat(), number(10, 1)].concat());
    let fixed = |field: u64, n: u64| [varint(field << 3 | 1), n.to_le_bytes().to_vec()].concat();
    let track = |uuid: u64, more: &[Vec<u8>]| packet(&[bytes(60, &[number(1, uuid), more.concat()].concat())]);
    let event = |time: u64, kind: u64, uuid: u64, more: &[Vec<u8>]| {
        packet(&[number(8, time), bytes(11, &[number(9, kind), number(11, uuid), more.concat()].concat())])
    };
    let trace = [
        track(1, &[bytes(2, b"GPU 0")]),
        track(2, &[bytes(2, b"stream 7"), number(5, 1)]),
        track(3, &[bytes(4, &[number(1, 40), number(2, 41), bytes(5, b"main")].concat())]),
        // Kibibytes as deltas; a plain integer; a floating-point value with its own unit.
        track(4, &[bytes(2, b"memory"), number(5, 1), bytes(8, &[number(3, 3), number(4, 1024), number(5, 1)].concat())]),
        track(5, &[bytes(2, b"queued"), bytes(8, &[])]),
        track(6, &[bytes(2, b"power"), number(5, 1), bytes(8, &bytes(6, b"W"))]),
        event(1000, 1, 3, &[bytes(23, b"hipLaunchKernel"), fixed(47, 99)]),
        event(1500, 2, 3, &[]),
        event(2000, 1, 2, &[bytes(23, b"k"), fixed(48, 99)]),
        event(2600, 2, 2, &[]),
        event(1000, 4, 4, &[number(30, 4)]),
        event(2000, 4, 4, &[number(30, 2)]),
        event(3000, 4, 4, &[number(30, (-1_i64).cast_unsigned())]),
        event(1200, 4, 5, &[number(30, 3)]),
        event(1300, 4, 6, &[fixed(44, 250.5_f64.to_bits())]),
    ]
    .concat();
    let profile = read(&written(folder.path(), "trace.pftrace", &trace)).unwrap();
    assert_eq!(profile.launches.call(0), Some((0, 500)));
    let wanted = [
        (Some(0), "memory", "B", vec![(0, 4096.0), (1000, 6144.0), (2000, 5120.0)]),
        (Some(0), "power", "W", vec![(300, 250.5)]),
        (None, "queued", "", vec![(200, 3.0)]),
    ];
    assert_eq!(counters(&profile), wanted.map(|(d, n, u, v)| (d, n.to_owned(), u.to_owned(), v)));
}

/// Counters of a report survive both exports.
#[test]
fn counters_of_our_own_exports_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = root().join("fixtures/nsys/whole_metrics.sqlite.zst");
    let original = read(&fixture).unwrap();
    let wanted = counters(&original);
    assert!(wanted.len() > 3 && wanted.iter().any(|c| c.3.len() > 10), "{}", wanted.len());
    for format in ["perfetto", "chrome"] {
        let path = folder.path().join(format!("out.{format}"));
        let (code, _, err) = run(&["export", "--format", format, fixture.to_str().unwrap(), "-o", path.to_str().unwrap()]);
        assert_eq!(code, 0, "{err}");
        let again = read(&path).unwrap();
        // Times count from the first event, which is the same in both.
        let shift =
            again.counters.iter().flat_map(|c| &c.times).min().unwrap() - original.counters.iter().flat_map(|c| &c.times).min().unwrap();
        let found: Vec<Counted> =
            counters(&again).into_iter().map(|(d, n, u, v)| (d, n, u, v.into_iter().map(|(t, v)| (t - shift, v)).collect())).collect();
        let names = |all: &[Counted]| all.iter().map(|c| (c.0, c.1.clone(), c.2.clone(), c.3.len())).collect::<Vec<_>>();
        assert_eq!(names(&found), names(&wanted), "{format}");
        assert!(found == wanted, "{format}");
        let calls = |p: &Profile| (0..p.launches.len()).filter_map(|r| p.launches.call(r)).map(|c| c.1).sum::<i64>();
        assert_eq!(calls(&again), calls(&original), "{format}");
    }
}
