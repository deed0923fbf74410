//! Twelve cases that every implementation must pass: a probe program whose launches carry their ordinal in `grid.x`
//! (`tests/hardware/probe.cu`), captured on an H200 and compared with the program's behaviour.

use super::ncu_model::{Event, Open, select};
use super::rerun::{based, one};
use super::support::{read, root, scratch};
use rusqlite::Connection;
use std::path::PathBuf;
use warpscope::model::{NameForm, Profile, Severity};
use warpscope::rerun::{OpenedBy, Options, Rerun, Within, nvtx};

fn packed(mode: &str) -> PathBuf {
    root().join(format!("fixtures/probe/{mode}.sqlite.zst"))
}

fn profile(mode: &str) -> Profile {
    read(&packed(mode)).unwrap_or_else(|e| panic!("{e}"))
}

fn foo(grid: u32) -> Event {
    named("foo", "foo(int *)", "_Z3fooPi", grid)
}

fn foobar(grid: u32) -> Event {
    named("foobar", "foobar(int *)", "_Z6foobarPi", grid)
}

fn c_plain(grid: u32) -> Event {
    named("c_plain", "c_plain", "c_plain", grid)
}

fn named(function: &str, demangled: &str, mangled: &str, grid: u32) -> Event {
    Event { pid: 1, function: function.into(), demangled: demangled.into(), mangled: mangled.into(), grid, ..Event::default() }
}

fn seq() -> Vec<Event> {
    let float = named("foo", "foo(float *)", "_Z3fooPf", 5);
    vec![foo(1), foobar(2), foo(3), c_plain(4), float, foobar(6), foo(7), c_plain(8), foo(9), foobar(10), foo(11), c_plain(12)]
}

fn names() -> Vec<Event> {
    let vk = |inner: &str| format!("void vk<{inner}>(T1 *, unsigned long long, const char *)");
    let string = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char>>";
    [
        ("c_plain", "c_plain".to_owned(), 1),
        ("foo", "foo(int *)".to_owned(), 2),
        ("foo", "foo(float *)".to_owned(), 3),
        ("foobar", "foobar(int *)".to_owned(), 4),
        ("tk", "void a::b::tk<float, (int)3>(T1 *)".to_owned(), 5),
        ("tk", "void a::b::tk<a::b::V<int> *, (int)1>(T1 *)".to_owned(), 6),
        ("anonk", "<unnamed>::anonk(int *)".to_owned(), 7),
        ("apply", "void apply<a::b::Op>(T1, int *)".to_owned(), 8),
        ("apply", "void apply<names()::[lambda(int) (instance 1)]>(T1, int *)".to_owned(), 9),
        ("apply", "void apply<names()::[lambda(int) (instance 2)]>(T1, int *)".to_owned(), 10),
        ("vk", vk("a::b::V<a::b::V<double>>"), 11),
        ("vk", vk("<unnamed>::Hidden"), 12),
        ("nt", "void nt<(bool)1, (unsigned int)7, (char)120>(int *)".to_owned(), 13),
        ("vk", vk(string), 16),
        ("vk", vk("int (*)(float, char)"), 17),
    ]
    .into_iter()
    .map(|(f, d, grid)| named(f, &d, "?", grid))
    .collect()
}

fn graph() -> Vec<Event> {
    let replay = |n| [foo(10), foobar(11), foo(12)].map(|e| Event { graph: Some(n), ..e });
    let mut out = vec![foo(1)];
    out.extend(replay(0));
    out.push(foo(2));
    out.extend(replay(1));
    out.push(foo(3));
    out
}

/// cudaProfilerStart and Stop around launches 3–4 and 6–8.
fn prof() -> Vec<Event> {
    let at = |e: Event, profiler| Event { profiler, stopped: profiler.is_none() && e.grid > 4, ..e };
    vec![
        at(foo(1), None),
        at(foo(2), None),
        at(foo(3), Some(1)),
        at(foo(4), Some(1)),
        at(foo(5), None),
        at(foo(6), Some(2)),
        at(foobar(7), Some(2)),
        at(foo(8), Some(2)),
        at(foo(9), None),
    ]
}

fn ranges() -> Vec<Event> {
    let open = |domain, text: &str, instance| Open { domain, text: text.into(), instance };
    let (d, llm) = (Some("D"), Some("LLM"));
    let with = |e: Event, stack: Vec<Open>, process_ranges: Vec<Open>| Event { stack, process_ranges, ..e };
    let a = |n| open(None, "A", n);
    let b = |n| open(None, "B", n);
    let s = |n| open(None, "S", n);
    vec![
        foo(1),
        with(foo(2), vec![a(1)], vec![]),
        with(foo(3), vec![a(1), b(1)], vec![]),
        with(foo(4), vec![a(1), b(1), open(None, "C", 1)], vec![]),
        with(foo(5), vec![b(2)], vec![]),
        with(foo(6), vec![], vec![s(1)]),
        with(foo(7), vec![open(d, "A", 1)], vec![]),
        with(foo(8), vec![], vec![open(d, "A", 1)]),
        with(foo(9), vec![open(None, "A/x", 1)], vec![]),
        with(foo(10), vec![open(None, "LLM@decode_all", 1)], vec![]),
        with(foo(11), vec![open(llm, "decode", 1)], vec![]),
        with(foo(12), vec![open(llm, "LLM@decode_all", 1)], vec![]),
        with(foo(13), vec![a(2)], vec![s(2)]),
        with(foobar(14), vec![a(2)], vec![s(2)]),
        with(foo(15), vec![a(2)], vec![s(2)]),
        with(foo(16), vec![open(None, "A range", 1)], vec![]),
        with(foo(17), vec![open(None, "step[3]", 1)], vec![]),
        foo(18),
    ]
}

/// Re-runs the launch with an ordinal; the command must select that ordinal, and contain these words in this order.
fn check(profile: &Profile, events: &[Event], ordinal: u32, options: &Options, words: &str) -> Rerun {
    let launch = launch_of(profile, ordinal);
    let rerun = one(profile, launch, options);
    let got: Vec<u32> =
        select(&rerun.argv(), events).unwrap_or_else(|e| panic!("{e}: {}", rerun.shell_line())).iter().map(|s| events[s[0]].grid).collect();
    assert_eq!(got, [ordinal], "{}", rerun.shell_line());
    assert!(rerun.shell_line().contains(words), "{}", rerun.shell_line());
    rerun
}

fn launch_of(profile: &Profile, ordinal: u32) -> usize {
    let grid = |row: usize| profile.configs[profile.launches.config(row).unwrap().0 as usize].grid.unwrap()[0];
    (0..profile.launches.len()).rfind(|&row| grid(row) == ordinal).unwrap()
}

#[test]
fn cases_1_to_3_overloads_c_names_and_substrings() {
    let (p, events) = (profile("seq"), seq());
    let plain = Options::default();
    check(&p, &events, 9, &plain, "--kernel-name foo --launch-skip 4 --launch-count 1");
    check(&p, &events, 9, &based(NameForm::Mangled), "--kernel-name-base mangled --kernel-name _Z3fooPi --launch-skip 3 --launch-count 1");
    check(&p, &events, 8, &plain, "--kernel-name c_plain --launch-skip 1 --launch-count 1");
    // foobar begins with foo, but does not count.
    check(&p, &events, 11, &plain, "--kernel-name foo --launch-skip 5 --launch-count 1");
    // One launch of each kernel in one command: the pattern is anchored.
    let both = warpscope::rerun::Target::Launches(vec![warpscope::model::LaunchId(2), warpscope::model::LaunchId(5)]);
    let plan = warpscope::rerun::plan(&p, &both, &plain).unwrap();
    assert!(plan.commands[0].shell_line().contains("'::regex:^(foo|foobar)$:2'"), "{}", plan.commands[0].shell_line());
    let got: Vec<u32> = select(&plan.commands[0].argv(), &events).unwrap().iter().map(|s| events[s[0]].grid).collect();
    assert_eq!(got, [3, 6]);
}

#[test]
fn cases_4_to_6_templates_namespaces_and_lambdas() {
    let (p, events) = (profile("names"), names());
    let plain = Options::default();
    check(&p, &events, 6, &plain, "--kernel-name tk --launch-skip 1 --launch-count 1");
    let demangled = "--kernel-name-base demangled --kernel-name 'void a::b::tk<a::b::V<int> *, (int)1>(T1 *)' --launch-skip 0";
    check(&p, &events, 6, &based(NameForm::Demangled), demangled);
    check(&p, &events, 10, &plain, "--kernel-name apply --launch-skip 2 --launch-count 1");
    // Every kernel name of the probe, however unusual.
    for base in [NameForm::Function, NameForm::Demangled] {
        for e in &events {
            check(&p, &events, e.grid, &based(base), "--launch-count 1");
        }
    }
    // Symbols of kernels with internal linkage are specific to one build.
    let hashed = one(&p, launch_of(&p, 7), &based(NameForm::Mangled));
    assert!(hashed.warnings.iter().any(|w| w.id == "rebuilt-symbol"), "{:?}", hashed.warnings);
    assert!(!one(&p, launch_of(&p, 5), &based(NameForm::Mangled)).warnings.iter().any(|w| w.id == "rebuilt-symbol"));
}

/// Case 5: a name with colons inside `--kernel-id`, for launches that are not consecutive.
#[test]
fn case_5_names_in_kernel_ids() {
    let p = changed(
        "names",
        "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET (demangledName, shortName, mangledName) = (SELECT demangledName, shortName, mangledName FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE gridX = 6) WHERE gridX IN (5, 8)",
    );
    let mut events = names();
    for at in [4, 7] {
        events[at] = Event { grid: events[at].grid, ..events[5].clone() };
    }
    let launches = [5, 8].map(|g| warpscope::model::LaunchId(u32::try_from(launch_of(&p, g)).unwrap())).to_vec();
    let plan = warpscope::rerun::plan(&p, &warpscope::rerun::Target::Launches(launches), &based(NameForm::Demangled)).unwrap();
    let argv = plan.commands[0].argv();
    let id = argv.iter().position(|w| w == "--kernel-id").map(|i| argv[i + 1].clone()).unwrap();
    assert_eq!(id.matches(':').count(), 4, "three, and the one of regex:: {id}");
    let got: Vec<u32> = select(&argv, &events).unwrap().iter().map(|s| events[s[0]].grid).collect();
    assert_eq!(got, [5, 8], "{id}");
}

#[test]
fn case_7_graph_nodes_and_whole_graphs() {
    let (p, events) = (profile("graph"), graph());
    check(&p, &events, 10, &Options::default(), "--kernel-name foo --launch-skip 4 --launch-count 1");
    let rerun = one(&p, launch_of(&p, 10), &Options { whole_graph: true, ..Options::default() });
    assert!(
        rerun.shell_line().contains("--graph-profiling graph --kernel-name graph --launch-skip 1 --launch-count 1"),
        "{}",
        rerun.shell_line()
    );
    assert_eq!(select(&rerun.argv(), &events).unwrap(), [vec![5, 6, 7]]);
}

#[test]
fn case_8_captures_between_profiler_start_and_stop() {
    let (p, events) = (profile("prof"), prof());
    assert_eq!(p.launches.len(), 2, "nsys stopped with the first cudaProfilerStop");
    let rerun = check(&p, &events, 4, &Options::default(), "--profile-from-start off --kernel-name foo --launch-skip 1 --launch-count 1");
    assert!(rerun.is_exact(), "{:?}", rerun.warnings);
    // The second report of `--capture-range-end=repeat`: launches 6 and 8 of the program.
    let bytes = zstd::stream::decode_all(std::fs::File::open(packed("prof")).unwrap()).unwrap();
    let second = scratch().join("p.2.sqlite");
    std::fs::write(&second, bytes).unwrap();
    Connection::open(&second).unwrap().execute_batch("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET gridX = gridX * 2").unwrap();
    let p = read(&second).unwrap();
    for ordinal in [6, 8] {
        let words = format!("--range-filter :2: --kernel-name foo --launch-skip {}", u32::from(ordinal == 8));
        let said = check(&p, &events, ordinal, &Options { opened_by: Some(OpenedBy::ProfilerApi(2)), ..Options::default() }, &words);
        assert!(said.warnings.is_empty() && said.is_exact(), "{:?}", said.warnings);
        // Without `opened_by`, the 2 in `p.2.sqlite` may also be the number of a rank.
        let unsaid = one(&p, launch_of(&p, ordinal), &Options::default());
        let w = unsaid.warnings.iter().find(|w| w.id == "numbered-range").unwrap();
        assert!(w.inexact && w.fix.as_deref().unwrap().contains("profiler:2"), "{w:?}");
    }
}

/// SQL for a profiler API call just before the launch with an ordinal (or after it, with `+`).
fn api_call(name: &str, ordinal: u32, after: &str) -> String {
    format!(
        "INSERT OR IGNORE INTO StringIds (id, value) VALUES ({id}, '{name}');
         INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME (start, end, eventClass, globalTid, correlationId, nameId, returnValue)
           SELECT r.start {after}, r.start {after} + 1, r.eventClass, r.globalTid, 900000 + {ordinal}, {id}, 0
           FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN CUPTI_ACTIVITY_KIND_KERNEL k USING (correlationId) WHERE k.gridX = {ordinal};",
        id = if name.contains("Stop") { 900_001 } else { 900_002 }
    )
}

fn changed(mode: &str, sql: &str) -> Profile {
    let path = tempfile::Builder::new().suffix(".sqlite").tempfile_in(scratch()).unwrap().into_temp_path().keep().unwrap();
    std::fs::write(&path, zstd::stream::decode_all(std::fs::File::open(packed(mode)).unwrap()).unwrap()).unwrap();
    Connection::open(&path).unwrap().execute_batch(sql).unwrap_or_else(|e| panic!("{e}: {sql}"));
    read(&path).unwrap()
}

/// By default ncu stops profiling at a cudaProfilerStop, even if the capture ignored it.
#[test]
fn profiler_stops_inside_a_capture() {
    // The program of `prof()`, captured from its start: `seq` with profiler API calls inserted.
    let calls = [
        ("cudaProfilerStart", 3, "- 10"),
        ("cudaProfilerStop", 5, "- 10"),
        ("cudaProfilerStart", 6, "- 10"),
        ("cudaProfilerStop", 9, "- 10"),
    ];
    let sql: String = calls.iter().map(|(name, ordinal, after)| api_call(name, *ordinal, after)).collect();
    let p = changed("seq", &sql);
    let window = |grid: u32| match grid {
        3 | 4 => (Some(1), false),
        6..=8 => (Some(2), false),
        5 | 9.. => (None, true),
        _ => (None, false),
    };
    let events: Vec<Event> = seq()
        .into_iter()
        .map(|e| {
            let (profiler, stopped) = window(e.grid);
            Event { profiler, stopped, ..e }
        })
        .collect();
    for e in &events {
        let rerun = check(&p, &events, e.grid, &Options::default(), "--disable-profiler-start-stop --kernel-name ");
        assert!(rerun.is_exact() && rerun.warnings.is_empty());
    }
    // A real capture of that program.
    let p = profile("prof_whole");
    assert_eq!((p.capture.gate.as_ref(), p.launches.len()), (None, 9), "nsys ignored the calls, and says so");
    for e in prof() {
        let rerun = check(&p, &prof(), e.grid, &Options::default(), "--disable-profiler-start-stop --kernel-name ");
        assert!(rerun.is_exact() && rerun.warnings.is_empty(), "{:?}", rerun.warnings);
    }
    // With the capture range opened by cudaProfilerStart and never closed (`--capture-range-end=none`).
    let gated = changed(
        "seq",
        &format!(
            "{sql} DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE gridX < 3; INSERT INTO DIAGNOSTIC_EVENT (timestamp, timestampType, source, severity, text, globalPid) SELECT 1, timestampType, source, 1, 'Profiling was started by the cudaProfilerStart API.', globalPid FROM DIAGNOSTIC_EVENT LIMIT 1"
        ),
    );
    assert_eq!(gated.capture.gate, Some(warpscope::model::CaptureRange::ProfilerApi));
    for ordinal in [3, 4, 6, 7, 8] {
        check(&gated, &events, ordinal, &Options::default(), "--profile-from-start off --kernel-name ");
    }
    for ordinal in [5, 9, 12] {
        let target =
            warpscope::rerun::Target::Launches(vec![warpscope::model::LaunchId(u32::try_from(launch_of(&gated, ordinal)).unwrap())]);
        let refused = warpscope::rerun::plan(&gated, &target, &Options::default()).unwrap_err();
        assert!(refused.contains("after cudaProfilerStop"), "{refused}");
    }
    // Without such calls the option is absent.
    assert!(!one(&profile("seq"), 3, &Options::default()).shell_line().contains("start-stop"));
}

#[test]
fn cases_9_and_10_nvtx_gates_and_names() {
    let (p, events) = (profile("nvtx"), ranges());
    let within = |label: &str, ordinal: u32, instance| {
        let around = nvtx::enclosing_ranges(&p, launch_of(&p, ordinal));
        let e = around.iter().find(|e| p.ranges.label(e.range.name) == label).unwrap_or_else(|| panic!("{label}: {around:?}"));
        Options { within: Within::Range(e.range, instance), ..Options::default() }
    };
    check(&p, &events, 15, &within("A", 15, None), "--nvtx --nvtx-include A/ --kernel-name foo --launch-skip 4 --launch-count 1");
    check(&p, &events, 15, &within("A", 15, Some(2)), "--nvtx --nvtx-include A/ --range-filter ::2 --kernel-name foo --launch-skip 1");
    check(
        &p,
        &events,
        12,
        &within("LLM:LLM@decode_all", 12, None),
        r"--nvtx-include 'LLM@LLM\@decode_all/' --kernel-name foo --launch-skip 0",
    );
    check(&p, &events, 10, &within("LLM@decode_all", 10, None), r"--nvtx-include 'LLM\@decode_all/'");
    check(&p, &events, 17, &within("step[3]", 17, None), r"--nvtx-include 'step\[3\]/'");
    check(&p, &events, 9, &within("A/x", 9, None), r"--nvtx-include 'A\/x/'");
    check(&p, &events, 16, &within("A range", 16, None), "--nvtx-include 'A range/'");
    check(&p, &events, 13, &within("S", 13, None), "--nvtx-include S --kernel-name foo --launch-skip 1");
    // A push/pop and a start/end range with the same name and domain are distinct.
    check(&p, &events, 7, &within("D:A", 7, None), "--nvtx-include D@A/");
    check(&p, &events, 8, &within("D:A", 8, None), "--nvtx-include D@A --kernel-name");
    // Every launch, in every range around it.
    for e in &events {
        for around in nvtx::enclosing_ranges(&p, launch_of(&p, e.grid)) {
            for instance in [None, Some(around.instance + 1)] {
                check(&p, &events, e.grid, &Options { within: Within::Range(around.range, instance), ..Options::default() }, "--nvtx ");
            }
        }
    }
    let outside =
        warpscope::rerun::plan(&p, &warpscope::rerun::Target::Launches(vec![warpscope::model::LaunchId(0)]), &within("A", 15, None));
    assert!(outside.unwrap_err().contains("is not in the NVTX range \"A\""));
}

#[test]
fn case_11_processes_in_turn_and_at_once() {
    let p = profile("procs");
    let mut events = Vec::new();
    for (pid, grids) in [(1, vec![1, 2, 3]), (2, vec![101, 102, 103]), (3, vec![201, 202, 203]), (1, vec![4, 5])] {
        events.extend(grids.into_iter().map(|g| Event { pid, ..foo(g) }));
    }
    for e in &events {
        let rerun = check(&p, &events, e.grid, &Options::default(), "--target-processes all --kernel-name foo --launch-skip ");
        let warning = rerun.warnings.iter().find(|w| w.id == "processes").unwrap();
        assert!(warning.text.contains("global counter") && warning.severity == Severity::Warning);
        assert!(!rerun.shell_line().contains("--kernel-id"));
    }
    check(&p, &events, 202, &Options::default(), "--launch-skip 7 --launch-count 1");
    // The same with one child concurrent with its parent: no common count.
    let path = scratch().join("at-once.sqlite");
    std::fs::write(&path, zstd::stream::decode_all(std::fs::File::open(packed("procs")).unwrap()).unwrap()).unwrap();
    let db = Connection::open(&path).unwrap();
    // Move the parent's last two launches, and everything it did after its first
    // three, into the middle of the last child.
    let middle = "(SELECT (MIN(start) + MAX(start)) / 2 FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE gridX = 202)";
    db.execute_batch(&format!(
        "CREATE TEMP TABLE late AS SELECT correlationId AS c, globalPid AS g FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE gridX = 4;
         UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET end = {middle} - 30000 + (end - start), start = {middle} - 30000
           WHERE correlationId IN (SELECT c FROM late) AND globalTid >> 24 IN (SELECT g >> 24 FROM late);"
    ))
    .unwrap();
    drop(db);
    let p = read(&path).unwrap();
    let rerun = one(&p, launch_of(&p, 202), &Options::default());
    assert!(rerun.argv().is_empty() && rerun.shell_line().is_empty(), "{}", rerun.shell_line());
    let wrapper = rerun.wrapper.as_deref().unwrap();
    assert!(wrapper.contains("--kernel-name foo \\\n        --launch-skip 1 --launch-count 1"), "{wrapper}");
    assert!(wrapper.contains("--target-processes all") && wrapper.contains("exec \"$@\""));
    let guessed = rerun.warnings.iter().find(|w| w.id == "processes").unwrap();
    assert!(guessed.text.contains("race") && guessed.text.contains("guess") && guessed.inexact && !rerun.is_exact());
    // Under a known launcher there is one command.
    let program = Some("mpirun -np 3 ./probe procs".split(' ').map(str::to_owned).collect());
    let rerun = one(&p, launch_of(&p, 202), &Options { program, rank: Some(2), ..Options::default() });
    assert!(
        rerun.shell_line().starts_with("mpirun -np 3 sh -c 'if [ \"${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-}}\" = 2 ]; then exec ncu "),
        "{}",
        rerun.shell_line()
    );
    assert!(rerun.shell_line().ends_with("; fi; exec \"$@\"' sh ./probe procs"), "{}", rerun.shell_line());
    let said = rerun.warnings.iter().find(|w| w.id == "processes").unwrap();
    assert!(!said.text.contains("guess") && rerun.is_exact(), "{said:?}");
}

#[test]
fn case_12_quoting() {
    let (p, events) = (profile("names"), names());
    let options = Options {
        program: Some(["python3", "-c", "print('it')"].map(str::to_owned).to_vec()),
        output: Some("r_100%".into()),
        ..based(NameForm::Demangled)
    };
    let rerun = check(&p, &events, 17, &options, "--launch-skip 0 --launch-count 1");
    let name = "'void vk<int (*)(float, char)>(T1 *, unsigned long long, const char *)'";
    let want = format!(
        "ncu --config-file off --kernel-name-base demangled --kernel-name {name} --launch-skip 0 --launch-count 1 --set detailed --export r_100%% python3 -c 'print('\\''it'\\'')'"
    );
    assert_eq!(rerun.shell_line(), want);
}

#[test]
fn threads_and_configurations() {
    let events: Vec<Event> = [1, 101, 2, 102, 3, 103].map(foo).to_vec();
    let p = profile("threads");
    let rerun = check(&p, &events, 102, &Options::default(), "--kernel-name foo --launch-skip 3 --launch-count 1");
    let warning = rerun.warnings.iter().find(|w| w.id == "threads").unwrap();
    assert!(warning.text.contains("2 threads launch at the same time"), "{}", warning.text);
    // All grids are 1 here; blocks distinguish the launches.
    let p = profile("cfg");
    let rerun = one(&p, 3, &Options::default());
    assert_eq!((rerun.selects[0].grid, rerun.selects[0].block), (Some([1, 1, 1]), Some([64, 1, 1])));
    assert!(rerun.shell_line().contains("--launch-skip 3 --launch-count 1") && !rerun.shell_line().contains("--filter-mode"));
}

/// A capture opened by an NVTX range says so, and the command counts inside that range.
#[test]
fn a_capture_opened_by_a_range() {
    let p = read(&packed("step")).unwrap();
    assert_eq!(p.capture.gate, Some(warpscope::model::CaptureRange::Nvtx));
    let events = super::rerun::truth("single");
    for launch in [0, 7, 12, 20, 21, 49] {
        let rerun = one(&p, launch, &Options::default());
        assert!(rerun.shell_line().contains("--nvtx --nvtx-include step1/ "), "{}", rerun.shell_line());
        assert_eq!(select(&rerun.argv(), &events).unwrap(), [vec![50 + launch]], "{}", rerun.shell_line());
        assert!(rerun.is_exact() && rerun.warnings.is_empty(), "{:?}", rerun.warnings);
    }
}
