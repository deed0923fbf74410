//! A recording without kernels ends with one sentence that gives the reason and the remedy. Each row runs in a real
//! process, with mocks of the driver, libcupti, the profilers and their errors.

use super::runs::Home;
use super::tracer::{built, cc};
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use warpscope::launch::tracer::find_libraries;

/// Options of `trace`, arguments of the mock program, environment variables, and the reason and advice that `triage`
/// gives for the trace.
type Traced = (&'static [&'static str], &'static [&'static str], &'static [(&'static str, &'static str)], &'static str, &'static str);

const SAYS_WHY: &str = "warpscope: no kernel was recorded: `warpscope triage ";
const NOTHING: &str = "warpscope: nothing was recorded so far: no process of this program made a CUDA call";

/// Recordings that exist but are empty: closed capture ranges, CUPTI errors (by result code), CUDA errors, and programs
/// that launch nothing.
const TRACED: &[Traced] = &[
    (&["--closed"], &["launches=10"], &[], "its recording was never opened", "--open` while the program runs"),
    (&["--range", "step"], &["launches=10"], &[], "the program marked no NVTX range", "torch.cuda.nvtx.range_push"),
    (
        &["--range", "nothing"],
        &["launches=10", "nvtx=1"],
        &[],
        "the range `nothing` was never entered, only 7 ranges of other names",
        "`warpscope ranges` shows their names",
    ),
    (
        &["--range", "step 1", "--nth", "5"],
        &["launches=10", "nvtx=1"],
        &[],
        "the range `step 1` was entered 1 time, and `--nth 5` was asked for",
        "a smaller number",
    ),
    (
        &["--range", "from thread to thread"],
        &["launches=10", "nvtx=1"],
        &[],
        "no kernel was launched inside the range `from thread to thread`, which was entered 1 time",
        "record without `--range`",
    ),
    (
        &["--kernel", "nothing"],
        &["launches=10"],
        &[],
        "the kernel `nothing` was never launched, among 10 launches",
        "`warpscope top` shows the names",
    ),
    (
        &["--after-launches", "1000"],
        &["launches=10"],
        &[],
        "the program made 10 launches, and the recording was to begin after 1000",
        "--after-launches",
    ),
    (&["--delay", "60"], &["launches=10"], &[], "the program ended before 60.0 s had passed", "a shorter `--delay`"),
    (&["--profiler-api"], &["launches=10"], &[], "cudaProfilerStart was never called", "without `--profiler-api`"),
    (
        &["--profiler-api"],
        &["launches=0", "gate=1"],
        &[],
        "no kernel was launched between cudaProfilerStart and cudaProfilerStop",
        "call cudaProfilerStart before the first launch",
    ),
    (&["--overhead", "1"], &["launches=10"], &[], "before its first moment", "short programs as a whole"),
    (
        &["--seconds", "0.001"],
        &["launches=10", "late=1"],
        &[],
        "no kernel was launched while its recording was open (1 time)",
        "record longer with `--seconds`, or later with `--delay`",
    ),
    (&[], &["launches=0"], &[], "it launched no kernel while it was recorded; record", "record the part that computes"),
    (
        &["--lean"],
        &["launches=0", "exit=_exit"],
        &[],
        "it launched no kernel while it was recorded; record",
        "record the part that computes",
    ),
    (
        &[],
        &["launches=0", "copies=3"],
        &[],
        "it launched no kernel while it was recorded, only 6 memcpys and memsets",
        "the part that computes, or a longer one",
    ),
    (&[], &["launches=0", "instantiates=2"], &[], "CUDA graphs were instantiated, and none was launched", "cudaGraphLaunch"),
    (&[], &["launches=0", "fork=late"], &[], "unless a child of fork did (1 fork)", "set_start_method("),
    (
        &[],
        &["launches=0", "failed=3", "code=209"],
        &[],
        "all of its 3 launches failed, the first with CUDA_ERROR_NO_BINARY_FOR_GPU: the program has no code for this GPU",
        "nvcc -arch=native",
    ),
    (
        &[],
        &["launches=0", "failed=1", "code=701"],
        &[],
        "its only launch failed with CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
        "-maxrregcount=N",
    ),
    (
        &[],
        &["launches=0", "failed=2", "code=719"],
        &[],
        "all of its 2 launches failed, the first with CUDA_ERROR_LAUNCH_FAILED",
        "compute-sanitizer",
    ),
    (&[], &["launches=0", "failed=2", "code=4711"], &[], "with CUDA error 4711", "compute-sanitizer"),
    (
        &[],
        &["launches=0", "loads=1", "code=222"],
        &[],
        "it launched no kernel, and cuModuleLoadData failed with CUDA_ERROR_UNSUPPORTED_PTX_VERSION: the program's PTX is of a newer CUDA than the driver",
        "update the driver",
    ),
    (&[], &["launches=10"], &[("MOCK_LOST", "1")], "CUPTI delivered no record of its 10 launches", "`warpscope doctor` says"),
    (&[], &[], &[("MOCK_INIT", "100")], "CUDA finds no GPU", "start the container with `--gpus all`"),
    (&[], &[], &[("MOCK_INIT", "803")], "are of different driver versions", "sudo modprobe nvidia"),
    (&[], &[], &[("MOCK_INIT", "4711")], "CUDA could not be initialized (cuInit: error 4711)", "`warpscope doctor` asks"),
    (&[], &["launches=10"], &[("MOCK_SUBSCRIBE", "1")], "does not work with this driver", "`warpscope trace --cupti FILE`"),
    (&[], &["launches=10"], &[("MOCK_SUBSCRIBE", "8")], "CUPTI got no memory", "`ulimit -v`"),
    (&[], &["launches=10"], &[("MOCK_SUBSCRIBE", "15")], "libcupti cannot connect to the CUDA driver", "of the driver's CUDA release"),
    (&[], &["launches=10"], &[("MOCK_SUBSCRIBE", "23")], "another profiler is active", "without the other profiler or debugger"),
    (&[], &["launches=10"], &[("MOCK_SUBSCRIBE", "27")], "this GPU or system does not support it", "`warpscope trace --cupti FILE`"),
    (&[], &["launches=10"], &[("MOCK_SUBSCRIBE", "33")], "CUPTI does not support this virtual GPU", "passed through"),
    (&[], &["launches=10"], &[("MOCK_SUBSCRIBE", "35")], "this user may not profile", "--cap-add=SYS_ADMIN"),
    (&[], &["launches=10"], &[("MOCK_SUBSCRIBE", "36")], "the program uses CUPTI's older profiling API", "without that profiler"),
    (
        &[],
        &["launches=10"],
        &[("MOCK_SUBSCRIBE", "39")],
        "another profiler (nsys, ncu, torch.profiler) already uses CUPTI",
        "`warpscope run --tool nsys -- PROGRAM`",
    ),
    (&[], &["launches=10"], &[("MOCK_SUBSCRIBE", "40")], "the hypervisor does not allow profiling", "`enable_profiling=1`"),
    (&[], &["launches=10"], &[("MOCK_SUBSCRIBE", "41")], "the GPU is in confidential computing mode", "--set-cc-mode=devtools"),
    (&[], &["launches=10"], &[("MOCK_SUBSCRIBE", "42")], "mining processors (CMP)", "record on another GPU"),
    (&[], &["launches=10"], &[("MOCK_SUBSCRIBE", "43")], "does not support MIG instances", "sudo nvidia-smi -i N -mig 0"),
    (&[], &["launches=10"], &[("MOCK_SUBSCRIBE", "44")], "joined by SLI", "--sli=off"),
    (&[], &["launches=10"], &[("MOCK_SUBSCRIBE", "45")], "CUPTI does not support this GPU under WSL", "`wsl --update`"),
    (&[], &["launches=10"], &[("MOCK_SUBSCRIBE", "999")], "CUPTI failed and does not say why", "`warpscope trace --cupti FILE`"),
    (
        &[],
        &["launches=10"],
        &[("MOCK_ENABLE", "41")],
        "CUPTI refused to record kernels: the GPU is in confidential computing mode",
        "--set-cc-mode=devtools",
    ),
];

/// A program that exits at once or cannot be started: the command, its environment variables, and the sentence on
/// stderr with its advice. `DIR` stands for the test's folder, which contains `program` and other files.
type Started = (&'static [&'static str], &'static [(&'static str, &'static str)], &'static str, &'static str);

const STARTED: &[Started] = &[
    (
        &["--", "true"],
        &[("CUDA_VISIBLE_DEVICES", "")],
        "CUDA_VISIBLE_DEVICES is empty, which hides every GPU",
        "`unset CUDA_VISIBLE_DEVICES`",
    ),
    (
        &["--", "true"],
        &[("CUDA_VISIBLE_DEVICES", "-1")],
        "CUDA_VISIBLE_DEVICES is `-1`, which hides every GPU",
        "`unset CUDA_VISIBLE_DEVICES`",
    ),
    (
        &["--", "true"],
        &[("CUDA_VISIBLE_DEVICES", "NoDevFiles")],
        "CUDA_VISIBLE_DEVICES is `NoDevFiles`, which hides every GPU",
        "`unset CUDA_VISIBLE_DEVICES`",
    ),
    (
        &["--", "true"],
        &[("LD_LIBRARY_PATH", "DIR/stubs")],
        "has a stub of libcuda.so.1, without a driver in it",
        "remove that folder from LD_LIBRARY_PATH",
    ),
    (
        &["--ranks", "3", "--", "sh", "-c", "RANK=0 DIR/program launches=10; true"],
        &[],
        "only the ranks that `--ranks` names are recorded",
        "leave it out",
    ),
    (
        &["--", "nsys", "profile", "DIR/program", "launches=10"],
        &[("PATH", "DIR:/usr/bin:/bin")],
        "`nsys` loads a tool of its own into the program, and only one of the two can",
        "open its report with `warpscope REPORT`",
    ),
    (
        &["--", "env", "-u", "CUDA_INJECTION64_PATH", "DIR/program", "launches=10"],
        &[],
        "this program loaded the CUDA driver, but cuInit was not called, failed, or did not load the tracer",
        "leave CUDA_INJECTION64_PATH",
    ),
    (
        &["--", "DIR/program", "init=first"],
        &[("MOCK_INIT", "100"), ("CUDA_VISIBLE_DEVICES", "none")],
        "this program loaded the CUDA driver, but cuInit was not called, failed, or did not load the tracer",
        "CUDA_VISIBLE_DEVICES is `none`",
    ),
    (
        &["--", "sh", "-c", "ulimit -f 0; exec DIR/program launches=10"],
        &[],
        "the limit of the size of files (ulimit -f) is too low",
        "`ulimit -f unlimited`",
    ),
    (&["-o", "DIR/gone/t", "--", "sh", "-c", "rm -r DIR/gone; exec DIR/program launches=10"], &[], "its folder does not exist", "with -o"),
    (&["-o", "DIR/gone/t", "--", "sh", "-c", "rm -r DIR/gone"], &[], "was removed meanwhile", "with -o"),
    (&["--", "DIR/program", "launches=10", "remove=1"], &[], "was removed while it was written", "name another place with -o"),
    (&["-o", "/proc/t", "--", "true"], &[], "/proc: nothing can be written there", "name another place with -o"),
    (&["-o", "DIR/none/t", "--", "true"], &[], "/none does not exist", "`mkdir -p "),
    (
        &["--", "true"],
        &[("XDG_CACHE_HOME", "/proc/none"), ("XDG_RUNTIME_DIR", "/proc/none"), ("TMPDIR", "/proc")],
        "the tracer's object cannot be written",
        "set XDG_CACHE_HOME to a folder that only you can write to",
    ),
    (&["--", "true"], &[("CUDA_INJECTION64_PATH", "/nsys/libToolsInjection64.so")], "CUDA_INJECTION64_PATH is set already", "unset it"),
    (&["--", "DIR/static"], &[], "is linked statically", "link it with the shared C library"),
    (&["--", "DIR/foreign"], &[], "is a program for another processor", "build it for this machine"),
    (&["--", "DIR/narrow"], &[], "is a 32-bit program", "build it for 64 bits"),
    (&["--", "env", "-i", "DIR/program", "launches=10"], &[], "`env -i` starts programs without the variables", "`env -i warpscope trace"),
    (&["--", "DIR/sudo", "DIR/program", "launches=10"], &[], "`sudo` starts programs without the variables", "`sudo warpscope trace"),
    (&["--", "DIR/docker", "run", "image", "true"], &[], "`docker` starts the program in a container", "put warpscope into the container"),
    (&["--", "DIR/ssh", "node", "true"], &[], "`ssh` starts the program somewhere else", "run warpscope there"),
    (&["--", "DIR/nothing"], &[], "there is no such file", "check its path"),
    (&["--", "no-such-program"], &[], "it is not on PATH", "`command -v no-such-program`"),
    (&["--", "program"], &[], "it is not on PATH", "write `./program`"),
    (&["--", "DIR"], &[], "it is a folder", "name the program in it"),
    (&["--", "DIR/plain.py"], &[], "it is not executable", "`chmod +x "),
    (&["--", "DIR/script"], &[], "its first line names /no/such/python, which is not there", "start it with one that is"),
    (&["--", "DIR/unloadable"], &[], "no/ld-linux", "build it for this one"),
];

/// Unusable libcupti files, passed with `--cupti`.
const LIBRARIES: &[(&str, &str, &str)] = &[
    ("cut", "the file is cut off", "pip install --force-reinstall nvidia-cuda-cupti"),
    ("foreign", "it is for another processor", "pip install --force-reinstall nvidia-cuda-cupti"),
    ("needy", "libgone.so: cannot open shared object file", "pip install --force-reinstall nvidia-cuda-cupti"),
    ("empty", "lacks functions that are needed: it is older than CUDA 11", "`warpscope trace --cupti FILE`"),
];

/// Results of cuInit, with the reason and the advice that `warpscope doctor` prints.
const DRIVER: &[(&str, &str, &str)] = &[
    ("2", "no memory is left for CUDA", "`nvidia-smi` shows"),
    ("3", "a child of fork whose parent had used CUDA", "spawn"),
    ("34", "is the toolkit's stub", "LD_LIBRARY_PATH"),
    ("46", "exclusive mode", "nvidia-smi -c DEFAULT"),
    ("100", "CUDA finds no GPU", "--gpus all"),
    ("101", "names a GPU or a MIG instance that is not there", "nvidia-smi -L"),
    ("102", "the virtual GPU has no license", "nvidia-gridd"),
    ("214", "uncorrectable error", "nvidia-smi -r"),
    ("304", "/dev/nvidia-uvm is missing", "nvidia-modprobe -u"),
    ("800", "this user may not use the GPU", "ls -l /dev/nvidia"),
    ("802", "the fabric manager does not run", "systemctl restart nvidia-fabricmanager"),
    ("803", "of different driver versions", "modprobe nvidia"),
    ("804", "cuda-compat", "LD_LIBRARY_PATH"),
    ("805", "cannot connect to the MPS daemon", "nvidia-cuda-mps-control -d"),
    ("806", "the MPS server does not answer", "echo quit | nvidia-cuda-mps-control"),
    ("807", "recovers from a client's fault", "get_server_list"),
    ("808", "as many clients as it can have", "end some of them"),
    ("809", "no connection left", "CUDA_DEVICE_MAX_CONNECTIONS"),
    ("999", "module nvidia_uvm is in a bad state", "modprobe nvidia_uvm"),
];

/// Runs under a profiler: arguments of `run`, environment variables of the mocks, and the message at the end of the
/// run.
const RUNS: &[Started] = &[
    (
        &["--tool", "trace", "--", "true"],
        &[("CUDA_VISIBLE_DEVICES", "-1")],
        "no process of the program used CUDA",
        "`unset CUDA_VISIBLE_DEVICES`",
    ),
    (
        &["--tool", "trace", "--", "sh", "-c", "echo RuntimeError: CUDA driver version is insufficient for CUDA runtime version; exit 1"],
        &[],
        "the driver is older than the CUDA that the program was built with",
        "update the driver",
    ),
    (
        &["--tool", "trace", "--", "sh", "-c", "echo AssertionError: Torch not compiled with CUDA enabled >&2; exit 1"],
        &[],
        "this PyTorch is a build for the CPU",
        "pip install torch --index-url",
    ),
    (
        &["--tool", "trace", "--", "sh", "-c", "echo RuntimeError: Cannot re-initialize CUDA in forked subprocess >&2; exit 1"],
        &[],
        "as in a child of fork whose parent had used CUDA",
        "start children with spawn",
    ),
    (
        &["--tool", "trace", "--", "sh", "-c", "echo CUDA error: no CUDA-capable device is detected; exit 1"],
        &[],
        "CUDA finds no GPU",
        "`nvidia-smi -L` lists the GPUs",
    ),
    (
        &["--tool", "trace", "--", "sh", "-c", "echo CUDA error: no kernel image is available for execution on the device; exit 1"],
        &[],
        "the program has no code for this GPU",
        "nvcc -arch=native",
    ),
    (
        &["--tool", "trace", "--", "sh", "-c", "echo ==1==ASan runtime does not come first in initial library list >&2; exit 1"],
        &[],
        "built with AddressSanitizer",
        "`warpscope trace --no-preload -o run PROGRAM`",
    ),
    (&["--tool", "trace", "--", "sh", "-c", "kill -9 $$"], &[], "the program was killed (signal 9)", "`dmesg` and the job's log"),
    (
        &["--tool", "nsys", "--", "true"],
        &[("STANDIN", "quiet")],
        "nsys exited without an error but left no report",
        "check the range's name",
    ),
    (&["--tool", "nsys", "--", "true"], &[("STANDIN", "nine")], "exited with code 9", "the last lines of the log say why"),
    (&["--tool", "ncu", "--", "true"], &[], "the program ran, but no kernel was profiled", "the filter matches no launch"),
    (
        &["--tool", "ncu", "--", "true"],
        &[("STANDIN_SAYS", "ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters")],
        "no permission to access the GPU performance counters",
        "NVreg_RestrictProfilingToAdminUsers=0",
    ),
    (
        &["--tool", "ncu", "--", "true"],
        &[("STANDIN_SAYS", "Profiling failed because a driver resource was unavailable.")],
        "another tool is using the GPU performance counters",
        "dcgmi profile --pause",
    ),
    (
        &["--tool", "ncu", "--", "true"],
        &[("STANDIN_SAYS", "Cuda driver is not compatible with Nsight Compute")],
        "this ncu is too new for the driver",
        "update the driver",
    ),
    (
        &["--tool", "ncu", "--", "true"],
        &[("STANDIN_SAYS", "The application failed to connect to the CUDA driver")],
        "the program found no CUDA driver",
        "start it with --gpus all",
    ),
];

const KINETO: &str = r#"{"schemaVersion":1,"deviceProperties":[DEVICES],"traceEvents":[
{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":7,"tid":7,"ts":1000.0,"dur":30.0,"args":{"External id":1}}CALLS]}"#;
const HIP: &str = "\"Domain\",\"Function\",\"Process_Id\",\"Thread_Id\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n";

/// Names of reports by other tools, their contents, and the reason and advice of `triage`.
const REPORTS: &[(&str, &str, &[&str], &str, &str)] = &[
    (
        "activities.json",
        KINETO,
        &[r#"{"id":0,"name":"NVIDIA H100","computeMajor":9,"computeMinor":0,"warpSize":32,"numSms":132}"#, ""],
        "although PyTorch found a GPU: only the CPU was profiled",
        "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]",
    ),
    (
        "cpu_build.json",
        KINETO,
        &["", ""],
        "which names no GPU: PyTorch found none, or was built without support for profiling GPUs",
        "torch.profiler.supported_activities()",
    ),
    (
        "calls.json",
        KINETO,
        &[
            "",
            r#",{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":7,"tid":7,"ts":1005.0,"dur":3.0,
            "args":{"External id":1,"correlation":5}}"#,
        ],
        "No kernels in this trace, only the calls that launched them",
        "let no other profiler use CUPTI",
    ),
    (
        "1_hip_api_trace.csv",
        HIP,
        &["", "\"HIP_RUNTIME_API\",\"hipLaunchKernel\",7,7,1,1000,2000\n\"HIP_RUNTIME_API\",\"hipLaunchKernel\",7,7,2,3000,4000\n"],
        "though 2 calls launched some: kernels were not traced",
        "rocprofv3 --kernel-trace",
    ),
    (
        "2_hip_api_trace.csv",
        HIP,
        &["", "\"HIP_RUNTIME_API\",\"hipMalloc\",7,7,1,1000,2000\n"],
        "made HIP calls while it was recorded and launched no kernel",
        "record the part that computes",
    ),
    (
        "3_hsa_api_trace.csv",
        HIP,
        &["", "\"HSA_CORE_API\",\"hsa_init\",7,7,1,1000,2000\n"],
        "made no HIP call while it was recorded, only calls of the HSA runtime",
        "kernels of OpenCL, OpenMP and HSA programs",
    ),
];

fn warpscope(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warpscope"));
    command.current_dir(folder).env("HOME", folder).env("XDG_CACHE_HOME", folder.join("cache")).stdin(Stdio::null());
    // Clear the variables of this machine that would change the result.
    for name in ["CUDA_VISIBLE_DEVICES", "CUDA_INJECTION64_PATH", "LD_LIBRARY_PATH", "RANK", "SLURM_PROCID"] {
        command.env_remove(name);
    }
    command
}

fn trace(folder: &Path, options: &[&str], words: &[&str], env: &[(&str, &str)]) -> Output {
    let mut command = warpscope(folder);
    command.arg("trace").arg("-o").arg(folder.join("t")).args(options).arg("--").args(words);
    command.envs(env.iter().copied()).output().unwrap()
}

/// Notes about a trace, as `triage` prints them.
fn triage(folder: &Path, file: &Path) -> String {
    let done = warpscope(folder).arg("triage").arg(file).args(["--format", "json"]).output().unwrap();
    String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr)
}

/// Runs the command named in the program's last sentence; returns the note and its advice.
fn follow_advice(folder: &Path, said: &str) -> String {
    let command = said.split('`').nth(1).unwrap_or_else(|| panic!("{said}"));
    triage(folder, Path::new(command.strip_prefix("warpscope triage ").unwrap()))
}

#[test]
fn a_hundred_reasons_are_made_here() {
    assert!(TRACED.len() + STARTED.len() + LIBRARIES.len() + DRIVER.len() + RUNS.len() >= 100);
    // The rows of a table have different reasons.
    let reasons: Vec<_> = TRACED.iter().map(|row| row.3).collect();
    assert_eq!(reasons.iter().collect::<BTreeSet<_>>().len(), reasons.len() - 1, "a lean recording says what another one says");
}

#[test]
fn each_reason_is_said_with_what_to_do() {
    let program = built().join("program").display().to_string();
    for (options, words, env, why, fix) in TRACED {
        let folder = tempfile::tempdir().unwrap();
        // The program loads the object as the driver would.
        let done = trace(folder.path(), options, &[&[&*program], *words].concat(), env);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        let said = said.lines().filter(|l| !l.starts_with("CUDA error")).collect::<Vec<_>>().join("\n");
        assert!(said.starts_with(SAYS_WHY) && said.lines().count() == 1, "{options:?} {words:?} {env:?}: {said}");
        let answer = follow_advice(folder.path(), &said);
        assert!(answer.contains(why) && answer.contains(fix), "{options:?} {words:?} {env:?}: {why}; {fix}: {answer}");
        // No other reason is given.
        let also = TRACED.iter().filter(|row| !row.3.contains(why) && !why.contains(row.3) && answer.contains(row.3)).count();
        assert_eq!(also, 0, "{options:?} {words:?} {env:?}: {answer}");
    }
    // Nothing is printed about a recording that has kernels.
    for options in [&[][..], &["--lean"]] {
        let folder = tempfile::tempdir().unwrap();
        let done = trace(folder.path(), options, &[&program, "launches=10", "threads=2"], &[]);
        assert!(done.stderr.is_empty(), "{}", String::from_utf8_lossy(&done.stderr));
    }
}

#[test]
fn reports_of_other_tools_without_kernels_say_why() {
    for (name, report, parts, why, fix) in REPORTS {
        let folder = tempfile::tempdir().unwrap();
        let text = if name.ends_with("json") {
            report.replace("DEVICES", parts[0]).replace("CALLS", parts[1])
        } else {
            format!("{report}{}", parts[1])
        };
        std::fs::write(folder.path().join(name), text).unwrap();
        let answer = triage(folder.path(), Path::new(name));
        assert!(answer.contains(why) && answer.contains(fix), "{name}: {why}; {fix}: {answer}");
        let also = REPORTS.iter().filter(|row| row.3 != *why && answer.contains(row.3)).count();
        assert_eq!(also, 0, "{name}: {answer}");
    }
}

/// A killed program cannot report the reason, but its trace does.
#[test]
fn a_killed_program_gives_no_reason_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let program = built().join("program").display().to_string();
    trace(folder.path(), &[], &[&program, "launches=0", "exit=kill"], &[]);
    let answer = triage(folder.path(), &folder.path().join("t"));
    assert!(answer.contains("until the trace breaks off, it launched none: it was killed"), "{answer}");
    assert!(answer.contains("`dmesg`") && !answer.contains("while it was recorded"), "{answer}");
    // A file size limit that leaves room for the description of the process but not for its kernels.
    let stopped = (1..200).any(|blocks| {
        let folder = tempfile::tempdir().unwrap();
        let limited = format!("ulimit -f {blocks}; exec {program} launches=20000");
        trace(folder.path(), &["--lean"], &["sh", "-c", &limited], &[]);
        let answer = triage(folder.path(), &folder.path().join("t"));
        let said = answer.contains("recording stopped before the first one: the file had reached the size that the system allows");
        assert!(!said || answer.contains("`ulimit -f unlimited`"), "{answer}");
        said
    });
    assert!(stopped);
}

/// Programs and scripts that cannot be traced, or that do not start.
fn make_programs(folder: &Path) {
    let write = |name: &str, bytes: &[u8], mode: u32| {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let program = std::fs::read(built().join("program")).unwrap();
    for library in ["libcupti.so.13", "libcuda.so.1"] {
        std::os::unix::fs::symlink(built().join(library), folder.join(library)).unwrap();
    }
    write("program", &program, 0o755);
    let changed = |at: usize, to: u8| {
        let mut bytes = program.clone();
        bytes[at] = to;
        bytes
    };
    write("foreign", &changed(18, 83), 0o755);
    write("narrow", &changed(4, 1), 0o755);
    let loader = memchr::memmem::find(&program, b"/ld-linux").unwrap();
    let begin = program[..loader].iter().rposition(|&b| b == 0).unwrap() + 1;
    let mut bytes = program.clone();
    // Move the loader (`/lib64/ld-linux…` or `/lib/ld-linux…`) to a folder that does not exist.
    bytes[begin..loader].fill(b'/');
    bytes[loader - 3..loader].copy_from_slice(b"/no");
    write("unloadable", &bytes, 0o755);
    write("stubs/libcuda.so.1", b"", 0o644);
    write("gone/here", b"", 0o644);
    write("plain.py", b"print(1)\n", 0o644);
    write("script", b"#!/no/such/python\n", 0o755);
    write("sudo", b"#!/bin/sh\nexec env -i \"$@\"\n", 0o755);
    write("docker", b"#!/bin/sh\nexit 0\n", 0o755);
    write("ssh", b"#!/bin/sh\nexit 0\n", 0o755);
    let end = if cfg!(target_arch = "aarch64") { "mov x8, #93; mov x0, #0; svc 0" } else { "mov $60, %eax; xor %edi, %edi; syscall" };
    write("static.c", format!("void _start(void) {{ __asm__(\"{end}\"); }}").as_bytes(), 0o644);
    cc(&["-static", "-nostdlib", "-ffreestanding", "-o", "static", "static.c"], folder);
}

#[test]
fn what_keeps_the_tracer_out_is_said_once_with_a_way_out() {
    for (words, env, why, fix) in STARTED {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().display().to_string();
        make_programs(folder.path());
        let words: Vec<String> = words.iter().map(|w| w.replace("DIR", &here)).collect();
        let mut command = warpscope(folder.path());
        command.arg("trace").args((words[0] != "-o").then_some(["-o", "t"]).into_iter().flatten()).args(&words);
        command.envs(env.iter().map(|(name, value)| (name, value.replace("DIR", &here))));
        let said = String::from_utf8_lossy(&command.output().unwrap().stderr).into_owned();
        let line = said.lines().find(|l| l.contains(why) && l.contains(fix));
        assert!(line.is_some_and(|l| l.starts_with("warpscope: ")), "{words:?} {env:?}: {why}; {fix}: {said}");
        assert_eq!(said.lines().filter(|l| l.starts_with("warpscope: ")).count(), 1, "{words:?} {env:?}: {said}");
    }
}

/// Skipped on a machine with its own libcupti, which would be tried last, and refused without a driver.
#[test]
fn a_libcupti_that_cannot_be_used_is_named() {
    if !find_libraries(Path::new("/"), &[], |_| None).is_empty() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::read(built().join("libcupti.so.13")).unwrap();
    let path = |name: &str| -> PathBuf { folder.path().join(format!("libcupti-{name}.so.13")) };
    std::fs::write(path("cut"), &whole[..1000]).unwrap();
    let mut foreign = whole.clone();
    foreign[18] = 83;
    std::fs::write(path("foreign"), foreign).unwrap();
    std::fs::write(folder.path().join("nothing.c"), "").unwrap();
    let shared = ["-fPIC", "-shared", "-o"];
    cc(&[&shared[..], &["libgone.so", "nothing.c"]].concat(), folder.path());
    cc(&[&shared[..], &["libcupti-needy.so.13", "nothing.c", "-Wl,--no-as-needed", "-L.", "-lgone"]].concat(), folder.path());
    cc(&[&shared[..], &["libcupti-empty.so.13", "nothing.c"]].concat(), folder.path());
    std::fs::remove_file(folder.path().join("libgone.so")).unwrap();
    // Each case has its own folder, because a trace of about the same age would count as a trace of this program.
    let below = |name: &str| {
        std::fs::create_dir(folder.path().join(name)).unwrap();
        folder.path().join(name)
    };
    let bare = built().join("bare").display().to_string();
    for (name, why, fix) in LIBRARIES {
        let named = path(name).display().to_string();
        let said = String::from_utf8_lossy(&trace(&below(name), &["--cupti", &named], &[&bare], &[]).stderr).into_owned();
        let answer = follow_advice(folder.path(), &said);
        assert!(answer.contains(why) && answer.contains(fix) && (*name == "needy" || answer.contains(&named)), "{name}: {answer}");
    }
    let said = String::from_utf8_lossy(&trace(&below("none"), &[], &[&bare], &[]).stderr).into_owned();
    let answer = follow_advice(folder.path(), &said);
    assert!(answer.contains("no libcupti was found") && answer.contains("pip install --force-reinstall nvidia-cuda-cupti"), "{answer}");
}

/// PyTorch needs the libcupti of its own CUDA release, and would load it before the tracer looks for one.
#[test]
fn a_named_libcupti_replaces_the_programs_own() {
    let newer = tempfile::tempdir().unwrap();
    let library = newer.path().join("libcupti.so.2026.4.1");
    std::fs::copy(built().join("libcupti.so.13"), &library).unwrap();
    let client = built().join("client").display().to_string();
    for (options, replaced) in [(vec!["--cupti", library.to_str().unwrap()], true), (vec![], false)] {
        let folder = tempfile::tempdir().unwrap();
        let done = trace(folder.path(), &options, &[&client, "profiles=1"], &[]);
        assert!(done.status.success() && done.stderr.is_empty(), "{options:?}: {}", String::from_utf8_lossy(&done.stderr));
        let mut files = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().path());
        let bytes = std::fs::read(files.find(|p| p.extension().is_some_and(|e| e == "wstrace")).unwrap()).unwrap();
        assert_eq!(memchr::memmem::find(&bytes, library.as_os_str().as_encoded_bytes()).is_some(), replaced, "{options:?}");
        assert!(triage(folder.path(), folder.path()).contains("\"findings\""));
    }
}

/// `warpscope doctor` queries the driver and libcupti directly.
#[test]
fn the_drivers_own_answer_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let check = |id: &str, env: &[(&str, &str)]| {
        let mut command = warpscope(folder.path());
        command.args(["doctor", "--format", "json"]).env("PATH", "/usr/bin:/bin").env("LD_LIBRARY_PATH", built()).envs(env.iter().copied());
        let out = command.output().unwrap();
        let all: Json = serde_json::from_slice(&out.stdout).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&out.stderr)));
        let found = all["checks"].as_array().unwrap().iter().find(|c| c["id"] == id).cloned();
        found.unwrap_or_else(|| panic!("{id}: {all}"))
    };
    for (code, why, fix) in DRIVER {
        let found = check("cuda", &[("MOCK_INIT", code)]);
        assert_eq!(found["state"], "blocks", "{found}");
        let text = |key: &str| found[key].as_str().unwrap_or_default();
        assert!(text("found").starts_with(&format!("cuInit fails with {code}, CUDA_ERROR_")), "{found}");
        assert!(text("means").contains(why) && text("fix").contains(fix), "{found}");
    }
    assert_eq!((&check("cuda", &[])["state"], &check("tracing", &[])["state"]), (&"ok".into(), &"ok".into()));
    // Programs with CUDA graphs grow under CUPTI 13.0 to 13.3.
    for (version, grows) in [("28", false), ("130001", true), ("130301", true), ("130500", false)] {
        let found = check("tracing", &[("MOCK_VERSION", version)]);
        assert_eq!(found["means"].as_str().is_some_and(|means| means.contains("`--cupti FILE`")), grows, "{version}: {found}");
    }
    for variable in ["MOCK_SUBSCRIBE", "MOCK_ENABLE"] {
        let found = check("tracing", &[(variable, "41")]);
        assert!(found["state"] == "blocks" && found["fix"].as_str().unwrap().contains("devtools"), "{found}");
    }
}

#[test]
fn a_run_without_kernels_ends_with_its_reason() {
    for (words, env, why, fix) in RUNS {
        let home = Home::new();
        let mut command = Command::new(env!("CARGO_BIN_EXE_warpscope"));
        command.env_clear().envs(home.env()).current_dir(home.folder.path()).args(["run", "--plain", "--force"]).args(*words);
        let out = command.envs(env.iter().copied()).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(1), "{words:?}: {said}");
        assert!(said.lines().any(|l| l.starts_with("warpscope: ") && l.contains(why) && l.contains(fix)), "{words:?} {env:?}: {said}");
    }
}

#[test]
fn a_program_without_cuda_is_told_so_once() {
    let folder = tempfile::tempdir().unwrap();
    for words in [&["true"][..], &["sh", "-c", "sh -c true; true"], &["python3", "-c", "import os; os._exit(0)"]] {
        let done = trace(folder.path(), &[], words, &[]);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success() && said.starts_with(NOTHING) && said.lines().count() == 1, "{words:?}: {said}");
    }
    // The exit code is the program's.
    assert_eq!(trace(folder.path(), &[], &["sh", "-c", "exit 7"], &[]).status.code(), Some(7));
    // The trace of an earlier run does not describe this one.
    std::fs::write(folder.path().join("t.1.wstrace"), "").unwrap();
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    std::fs::File::options().write(true).open(folder.path().join("t.1.wstrace")).unwrap().set_modified(old).unwrap();
    assert!(String::from_utf8_lossy(&trace(folder.path(), &[], &["true"], &[]).stderr).starts_with(NOTHING));
    // Nothing is printed about a launcher if its child process was recorded, or about a rank that was not to be
    // recorded.
    let program = format!("{} launches=10; true", built().join("program").display());
    assert!(trace(folder.path(), &[], &["sh", "-c", &program], &[]).stderr.is_empty());
    let program = format!("{} launches=10; exec true", built().join("program").display());
    assert!(trace(folder.path(), &[], &["sh", "-c", &program], &[]).stderr.is_empty(), "the launcher became another program");
    let elsewhere = tempfile::tempdir().unwrap();
    assert!(trace(elsewhere.path(), &["--ranks", "3"], &["true"], &[("RANK", "0")]).stderr.is_empty());
}

#[test]
fn a_pipe_that_is_not_read_ends_no_program() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = warpscope(folder.path());
    command.arg("trace").arg("-o").arg(folder.path().join("t")).args(["--", "sh", "-c", "read line"]);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    child.stdin.take().unwrap().write_all(b"go on\n").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
