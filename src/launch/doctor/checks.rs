//! Checks of this machine for profiling, one function each, listed in [`CHECKS`]. If facts are missing, a check is
//! `Unknown`, never `Ok`.

use super::super::tracer::{NEW_CUPTI, OTHER_CUPTI, explain_cuda_error, explain_cupti_error};
use super::machine::{Folder, Machine, PERFMON, SYS_ADMIN, SYS_PTRACE, format_version};

/// Outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// No problem.
    Ok,
    /// Could not be determined.
    Unknown,
    /// Works, but with restrictions.
    Warning,
    /// Prevents some kind of profiling.
    Blocks,
}

impl State {
    /// Stable name, for scripts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unknown => "unknown",
            Self::Warning => "warning",
            Self::Blocks => "blocks",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub id: &'static str,
    /// Subject of the check.
    pub what: &'static str,
    pub state: State,
    pub found: String,
    /// Consequence of the problem; empty if there is none.
    pub means: String,
    /// Command or step that fixes it.
    pub fix: Option<String>,
}

fn new_check(id: &'static str, what: &'static str, state: State, found: impl Into<String>) -> Check {
    Check { id, what, state, found: found.into(), means: String::new(), fix: None }
}

impl Check {
    fn with_meaning(mut self, text: impl Into<String>) -> Self {
        self.means = text.into();
        self
    }

    fn with_fix(mut self, text: impl Into<String>) -> Self {
        self.fix = Some(text.into());
        self
    }
}

/// A check; `None` if it does not apply to this machine.
pub type Look = fn(&Machine) -> Option<Check>;

/// All checks, in the order in which one would diagnose a machine by hand.
pub static CHECKS: &[Look] = &[
    check_gpus,
    check_cuda,
    check_ncu,
    check_ncu_chip,
    check_cupti,
    check_tracing,
    check_nsys,
    check_nsys_importer,
    check_rocprof,
    check_counters,
    check_cpu_sampling,
    check_ptrace,
    check_container,
    check_mig,
    check_mps,
    check_counter_holders,
    check_other_processes,
    check_clocks,
    check_ncu_lock,
    check_tmp,
    check_report_folder,
    check_namesakes,
];

pub fn run_checks(machine: &Machine) -> Vec<Check> {
    CHECKS.iter().filter_map(|look| look(machine)).collect()
}

fn has_gpu(m: &Machine) -> bool {
    m.gpus.as_ref().is_some_and(|g| !g.is_empty())
}

#[expect(clippy::unnecessary_wraps, reason = "a row of CHECKS like the others")]
fn check_gpus(m: &Machine) -> Option<Check> {
    let (id, what) = ("gpus", "GPUs and driver");
    Some(match &m.gpus {
        Some(all) if !all.is_empty() => {
            let named = all.iter().map(|g| g.name.as_str()).collect::<std::collections::BTreeSet<_>>();
            let driver = all.first().map_or("", |g| &g.driver);
            let names = named.into_iter().collect::<Vec<_>>().join(", ");
            new_check(id, what, State::Ok, format!("{} × {names}, driver {driver}", all.len()))
        }
        _ if m.amd => new_check(id, what, State::Ok, "an AMD GPU (/dev/kfd)"),
        _ => {
            let found = m.smi_error.clone().unwrap_or_else(|| {
                let why = if m.gpus.is_some() { "nvidia-smi lists no GPU" } else { "nvidia-smi is not on PATH" };
                format!("{why}, and there is no /dev/kfd")
            });
            new_check(id, what, State::Blocks, found)
                .with_meaning("without a GPU and driver, reports can be read here, but nothing can be profiled")
                .with_fix("run this on the GPU machine; in a container start it with --gpus all (NVIDIA) or --device=/dev/kfd --device=/dev/dri (AMD)")
        }
    })
}

/// State of the CUDA driver, queried directly, because `nvidia-smi` works without it.
fn check_cuda(m: &Machine) -> Option<Check> {
    let (id, what) = ("cuda", "CUDA");
    let driver = m.driver.as_ref()?;
    let Some(code) = driver.cuda else {
        let found = format!("libcuda.so.1 cannot be loaded: {}", driver.no_driver.as_deref().unwrap_or_default());
        // Without a GPU, the driver need not be installed.
        return has_gpu(m).then(|| {
            new_check(id, what, State::Blocks, found)
                .with_meaning("programs find no CUDA driver, although nvidia-smi finds GPUs")
                .with_fix("in a container start it with -e NVIDIA_DRIVER_CAPABILITIES=compute,utility; otherwise install the driver's libraries (libnvidia-compute, nvidia-driver-cuda-libs)")
        });
    };
    let version = driver.version.map_or_else(String::new, |v| format!("; the driver is of CUDA {}.{}", v / 1000, v % 1000 / 10));
    Some(match (code, explain_cuda_error(code)) {
        (0, _) => new_check(id, what, State::Ok, format!("cuInit succeeds{version}")),
        (_, Some(refusal)) => new_check(id, what, State::Blocks, format!("cuInit fails with {code}, {}{version}", refusal.name))
            .with_meaning(refusal.why)
            .with_fix(refusal.fix),
        (_, None) => new_check(id, what, State::Blocks, format!("cuInit fails with {code}{version}"))
            .with_meaning("programs cannot use the GPU")
            .with_fix("sudo dmesg | grep -i nvrm shows the driver's messages"),
    })
}

fn check_ncu(m: &Machine) -> Option<Check> {
    let (id, what) = ("ncu", "Nsight Compute");
    if m.amd && !has_gpu(m) {
        return None;
    }
    Some(match &m.ncu {
        Some(tool) => new_check(id, what, State::Ok, format!("{} at {}", format_version(tool), tool.path.display())),
        None => new_check(id, what, State::Blocks, "not on PATH and not in /opt/nvidia/nsight-compute")
            .with_meaning("kernels cannot be profiled again")
            .with_fix("install it with the CUDA toolkit, or from https://developer.nvidia.com/nsight-compute; no root needed: unpack it and add it to PATH"),
    })
}

/// ncu's names of chips, by compute capability.
const CHIPS: [((u32, u32), &str); 11] = [
    ((7, 0), "gv100"),
    ((7, 2), "gv11b"),
    ((7, 5), "tu102"),
    ((8, 0), "ga100"),
    ((8, 6), "ga102"),
    ((8, 7), "ga10b"),
    ((8, 9), "ad102"),
    ((9, 0), "gh100"),
    ((10, 0), "gb100"),
    ((10, 3), "gb110"),
    ((12, 0), "gb202"),
];

fn check_ncu_chip(m: &Machine) -> Option<Check> {
    let (id, what) = ("ncu-chip", "Nsight Compute supports this GPU");
    let gpu = m.gpus.as_ref()?.first()?;
    let (tool, cc) = (m.ncu.as_ref()?, gpu.capability?);
    let Some(chips) = &m.chips else {
        return Some(
            new_check(id, what, State::Unknown, "ncu --list-chips gave no answer")
                .with_meaning("whether this ncu supports the GPU will show only when it profiles"),
        );
    };
    let name = CHIPS.iter().find(|c| c.0 == cc).map(|c| c.1);
    if name.is_some_and(|n| chips.iter().any(|c| c == n)) {
        return Some(new_check(id, what, State::Ok, format!("{} ({}.{})", name.unwrap_or_default(), cc.0, cc.1)));
    }
    let newer = if cc.0 < 7 {
        "GPUs before Volta need nvprof"
    } else if cc.0 == 7 && cc.1 < 5 {
        "Volta needs ncu 2025.2 or older"
    } else {
        "install a newer ncu"
    };
    Some(
        new_check(
            id,
            what,
            State::Blocks,
            format!("compute capability {}.{} is not supported by ncu {}", cc.0, cc.1, format_version(tool)),
        )
        .with_meaning("it would profile nothing")
        .with_fix(newer),
    )
}

fn check_nsys(m: &Machine) -> Option<Check> {
    let (id, what) = ("nsys", "Nsight Systems");
    if m.amd && !has_gpu(m) {
        return None;
    }
    Some(match &m.nsys {
        Some(tool) => new_check(id, what, State::Ok, format!("{} at {}", format_version(tool), tool.path.display())),
        None => new_check(id, what, State::Warning, "not found on PATH, where NVIDIA installs it, or inside Nsight Compute")
            .with_meaning("no timeline can be recorded, and .nsys-rep files cannot be opened (.sqlite files can)")
            .with_fix("install nsight-systems-cli; without it `warpscope recipes scan` gives durations of launches with ncu alone"),
    })
}

fn check_nsys_importer(m: &Machine) -> Option<Check> {
    m.nsys.as_ref()?;
    let (id, what) = ("nsys-importer", "libraries of the nsys importer");
    Some(if m.missing_libraries.is_empty() {
        new_check(id, what, State::Ok, "libdw and libelf found")
    } else {
        new_check(id, what, State::Warning, format!("not found: {}", m.missing_libraries.join(", ")))
            .with_meaning(
                "nsys can record, but cannot turn the recording into a report (\"Importer … error while loading shared libraries\")",
            )
            .with_fix("apt install libdw1 libelf1, or unpack their packages with dpkg -x and extend LD_LIBRARY_PATH")
    })
}

fn check_cupti(m: &Machine) -> Option<Check> {
    let (id, what) = ("cupti", "libcupti, for the built-in tracer");
    if m.amd && !has_gpu(m) {
        return None;
    }
    let Some(first) = m.cupti.first() else {
        return Some(
            new_check(id, what, State::Warning, "not in Python's packages, conda, CUDA toolkits or Nsight's folders")
                .with_meaning("`warpscope run` can trace only programs that bring their own libcupti, as PyTorch does; others need nsys")
                .with_fix("pip install nvidia-cuda-cupti (nvidia-cuda-cupti-cu12 for a driver of CUDA 12), or install the CUDA toolkit"),
        );
    };
    let more = match m.cupti.len() - 1 {
        0 => String::new(),
        n => format!("; {n} more, tried if the driver refuses it"),
    };
    let found = format!("{} ({}), unless the program has its own loaded{more}", first.path.display(), first.of);
    let beside = first.path.with_file_name("libnvperf_host.so").is_file();
    let out = new_check(id, what, State::Ok, found);
    Some(if beside {
        out
    } else {
        out.with_meaning(
            "`--survey`, `--measure` and `--stalls` need libnvperf_host.so beside it, which is not there: they measure nothing",
        )
    })
}

/// Versions of CUPTI (13.0 to 13.3) that keep 32 bytes for each launch outside of graphs by a thread that instantiated a
/// graph with kernels, even if no record is asked for. Measured with bare CUPTI on an H200 (driver 580): 12.4, 12.9, 13.4
/// and 13.5 keep none.
const GROWING_CUPTI: std::ops::Range<u32> = 130_000..130_400;
const GROWTH: &str = "programs with CUDA graphs grow by 32 bytes for each launch outside of graphs while this libcupti is in use: for runs of many hours, name one of 13.4 or newer with `--cupti FILE`";

/// State of libcupti, queried with the calls that the tracer makes.
fn check_tracing(m: &Machine) -> Option<Check> {
    let (id, what) = ("tracing", "CUPTI with this driver");
    let driver = m.driver.as_ref().filter(|d| d.cuda == Some(0))?;
    let means = "the built-in tracer records nothing";
    let code = driver.subscribe.filter(|&code| code != 0).or(driver.kernels);
    Some(match (code, driver.unusable.as_deref()) {
        (Some(0), _) => {
            let out = new_check(id, what, State::Ok, format!("{} records kernels", driver.libcupti));
            if driver.cupti_version.is_some_and(|v| GROWING_CUPTI.contains(&v)) { out.with_meaning(GROWTH) } else { out }
        }
        (Some(code), _) => {
            let refusal = explain_cupti_error(code);
            let (why, fix) = refusal.map_or((means, OTHER_CUPTI), |r| (r.why, r.fix));
            let name = refusal.map_or("", |r| r.name);
            new_check(id, what, State::Blocks, format!("{}: error {code} {name}", driver.libcupti).trim_end().to_owned())
                .with_meaning(why)
                .with_fix(fix)
        }
        // The check `cupti` reports a missing library.
        (None, None | Some("missing")) => return None,
        (None, Some("unloadable")) => new_check(id, what, State::Blocks, driver.reason.clone()).with_meaning(means).with_fix(NEW_CUPTI),
        (None, Some(_)) => new_check(id, what, State::Blocks, driver.reason.clone()).with_meaning(means).with_fix(OTHER_CUPTI),
    })
}

fn check_rocprof(m: &Machine) -> Option<Check> {
    let (id, what) = ("rocprofv3", "rocprofv3");
    if !m.amd && m.rocprof.is_none() {
        return None;
    }
    Some(match &m.rocprof {
        Some(tool) => new_check(id, what, State::Ok, tool.path.display().to_string()),
        None => new_check(id, what, State::Warning, "not found on PATH or under /opt/rocm")
            .with_meaning("nothing can be recorded on the AMD GPU")
            .with_fix("install rocprofiler-sdk (ROCm 6.2 or later), or add its bin folder to PATH"),
    })
}

fn check_counters(m: &Machine) -> Option<Check> {
    let (id, what) = ("counters", "GPU performance counter access");
    if !has_gpu(m) {
        return None;
    }
    let can = |bit: u32| m.capabilities.is_some_and(|c| c >> bit & 1 == 1);
    let admin = can(SYS_ADMIN);
    Some(match m.admin_only {
        Some(false) => new_check(id, what, State::Ok, "open to all users (RmProfilingAdminOnly: 0)"),
        Some(true) if admin => new_check(id, what, State::Ok, "admin only, and this process has CAP_SYS_ADMIN"),
        Some(true) => {
            let who = if m.root { "root without CAP_SYS_ADMIN" } else { "an ordinary user" };
            let fix = if m.container {
                "start the container with --cap-add=SYS_ADMIN, or open the counters on the host: options nvidia NVreg_RestrictProfilingToAdminUsers=0 in /etc/modprobe.d/nvidia-prof.conf, update-initramfs -u, reboot"
            } else {
                "sudo env PATH=$PATH ncu …, or open them to all users: options nvidia NVreg_RestrictProfilingToAdminUsers=0 in /etc/modprobe.d/nvidia-prof.conf, update-initramfs -u, reboot"
            };
            new_check(id, what, State::Blocks, format!("admin only (RmProfilingAdminOnly: 1), and this process is run by {who}"))
                .with_meaning("ncu would fail with ERR_NVGPUCTRPERM, and nsys could not sample GPU metrics; timelines work")
                .with_fix(fix)
        }
        None => new_check(id, what, State::Unknown, "/proc/driver/nvidia/params cannot be read")
            .with_meaning("if ncu fails with ERR_NVGPUCTRPERM, the permission is missing")
            .with_fix("grep RmProfilingAdminOnly /proc/driver/nvidia/params on the host"),
    })
}

fn check_cpu_sampling(m: &Machine) -> Option<Check> {
    let (id, what) = ("cpu-samples", "CPU sampling permission");
    if m.nsys.is_none() && m.cupti.is_empty() {
        return None;
    }
    let perfmon = m.capabilities.is_some_and(|c| c >> PERFMON & 1 == 1 || c >> SYS_ADMIN & 1 == 1);
    Some(match m.paranoid {
        Some(p) if p <= 2 && m.seccomp && !perfmon => {
            new_check(id, what, State::Unknown, "this process may not make all system calls (Seccomp in /proc/self/status)")
                .with_meaning(
                    "if perf_event_open is among them, as in Docker's own containers, native stacks are only those of threads that wait",
                )
                .with_fix("start the container with --cap-add=PERFMON")
        }
        Some(p) if p <= 2 => new_check(id, what, State::Ok, format!("perf_event_paranoid is {p}")),
        Some(p) if perfmon => new_check(id, what, State::Ok, format!("perf_event_paranoid is {p}, but this process is allowed to")),
        Some(p) => new_check(id, what, State::Warning, format!("perf_event_paranoid is {p}"))
            .with_meaning(
                "timelines of nsys have no CPU samples and no context switches, and the tracer's native stacks are only those of \
                 threads that wait; kernels, memory copies and API calls are recorded",
            )
            .with_fix("sudo sysctl kernel.perf_event_paranoid=2"),
        None => new_check(id, what, State::Unknown, "perf_event_paranoid cannot be read")
            .with_meaning("CPU samples may be missing; kernels are recorded"),
    })
}

/// Attaching the tracer to a running program (Documentation/admin-guide/LSM/Yama.rst).
fn check_ptrace(m: &Machine) -> Option<Check> {
    let (id, what) = ("attach", "attaching to running programs");
    m.cupti.first()?;
    let capable = m.capabilities.is_some_and(|c| c >> SYS_PTRACE & 1 == 1);
    let said = |scope| format!("kernel.yama.ptrace_scope is {scope}");
    Some(match m.ptrace_scope {
        None | Some(0) => new_check(id, what, State::Ok, "this user may attach to its own programs"),
        Some(scope @ (1 | 2)) if capable => new_check(id, what, State::Ok, format!("{}, but this process is allowed to", said(scope))),
        Some(scope @ (1 | 2)) => new_check(id, what, State::Warning, said(scope))
            .with_meaning("`warpscope attach --pid` cannot record programs that were started without warpscope")
            .with_fix("sudo warpscope attach --pid PID, or: sudo sysctl kernel.yama.ptrace_scope=0"),
        Some(scope) => new_check(id, what, State::Warning, said(scope))
            .with_meaning("nobody can attach to a running program until this machine is started again with another setting")
            .with_fix("start the program with `warpscope run`"),
    })
}

fn check_container(m: &Machine) -> Option<Check> {
    let (id, what) = ("container", "container");
    m.container.then(|| {
        let admin = m.capabilities.is_some_and(|c| c >> SYS_ADMIN & 1 == 1);
        let found = if admin { "this is a container with CAP_SYS_ADMIN" } else { "this is a container without CAP_SYS_ADMIN" };
        new_check(id, what, State::Ok, found)
    })
}

fn check_mig(m: &Machine) -> Option<Check> {
    let split: Vec<String> = m.gpus.as_ref()?.iter().filter(|g| g.mig == Some(true)).map(|g| g.index.to_string()).collect();
    (!split.is_empty()).then(|| {
        new_check("mig", "Multi-Instance GPU (MIG)", State::Warning, format!("GPU {} partitioned into MIG instances", split.join(", ")))
            .with_meaning("counters of units shared between instances are not available, and clocks cannot be locked")
            .with_fix("profile on a whole GPU, or add --clock-control none")
    })
}

fn check_mps(m: &Machine) -> Option<Check> {
    m.mps.then(|| {
        new_check("mps", "multi-process service (MPS)", State::Warning, "its daemon runs")
            .with_meaning("timelines work; ncu profiles MPS clients only since 2025.2, with --mps")
            .with_fix("stop it for profiling: echo quit | nvidia-cuda-mps-control")
    })
}

fn check_counter_holders(m: &Machine) -> Option<Check> {
    has_gpu(m).then(|| {
        let (id, what) = ("counter-holders", "other users of the counters");
        if m.counter_holders.is_empty() {
            return new_check(id, what, State::Ok, "none seen");
        }
        new_check(id, what, State::Warning, format!("running: {}", m.counter_holders.join(", ")))
            .with_meaning(
                "while DCGM samples, ncu may fail with \"driver resource was unavailable\", and `--survey`, `--measure` and `--stalls` measure nothing",
            )
            .with_fix("dcgmi profile --pause (and --resume afterwards)")
    })
}

fn check_other_processes(m: &Machine) -> Option<Check> {
    has_gpu(m).then(|| {
        let (id, what) = ("other-processes", "other processes on the GPU");
        if m.processes.is_empty() {
            return new_check(id, what, State::Ok, "none seen");
        }
        let named: Vec<String> = m.processes.iter().take(4).map(|(pid, name)| format!("{name} ({pid})")).collect();
        let more = m.processes.len().saturating_sub(4);
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        new_check(id, what, State::Warning, format!("{}{rest}", named.join(", ")))
            .with_meaning("they compete for caches, memory and GPU time with what is measured")
            .with_fix("wait for them, or choose a free GPU with CUDA_VISIBLE_DEVICES")
    })
}

fn check_clocks(m: &Machine) -> Option<Check> {
    let all = m.gpus.as_ref().filter(|g| !g.is_empty())?;
    let (id, what) = ("clocks", "clocks and persistence");
    let lazy = all.iter().any(|g| g.persistence == Some(false));
    let clock = all.first().and_then(|g| Some(format!("SM at {} of {} MHz", g.clock?, g.most_clock?))).unwrap_or_default();
    Some(if lazy {
        new_check(id, what, State::Warning, format!("{clock}, persistence mode is off").trim_start_matches(", ").to_owned())
            .with_meaning("the first launch after idling waits for the driver to load, and clocks vary")
            .with_fix("sudo nvidia-smi -pm 1; to compare runs, lock the clocks: sudo nvidia-smi -lgc MHZ (ncu locks them itself while it measures)")
    } else {
        new_check(
            id,
            what,
            State::Ok,
            if clock.is_empty() { "persistence mode is on".to_owned() } else { format!("{clock}, persistence mode is on") },
        )
    })
}

fn check_ncu_lock(m: &Machine) -> Option<Check> {
    m.ncu.as_ref()?;
    let (id, what) = ("ncu-lock", "ncu lock file");
    Some(match &m.foreign_lock {
        None => new_check(id, what, State::Ok, "free"),
        Some(path) => new_check(id, what, State::Blocks, format!("{} belongs to another user", path.display()))
            .with_meaning("ncu would fail with \"Failed to open/create lock file\"")
            .with_fix("TMPDIR=$HOME/tmp ncu … (create that folder first)"),
    })
}

/// Number of free bytes below which a report may not fit: two full reports of a few hundred kernels, plus nsys's
/// intermediate files.
const LITTLE: u64 = 2 << 30;

fn check_free_space(id: &'static str, what: &'static str, folder: &Folder, variable: &str) -> Check {
    let gib = |b: u64| format!("{:.1} GiB", b as f64 / f64::from(1 << 30));
    let free = folder.free.map_or_else(|| "an unknown amount".to_owned(), gib);
    let found = format!("{}: {free} free", folder.path.display());
    if !folder.writable {
        return new_check(id, what, State::Blocks, format!("{} is not writable", folder.path.display()))
            .with_meaning("there is no place for reports or for the profilers' temporary files")
            .with_fix(format!("choose another folder{variable}"));
    }
    match folder.free {
        Some(free) if free < LITTLE => new_check(id, what, State::Warning, found)
            .with_meaning("a long recording may not fit: about 110 bytes per launch for nsys, up to 1 MB per result for ncu --set full")
            .with_fix(format!("free some space, or choose another folder{variable}")),
        Some(_) => new_check(id, what, State::Ok, found),
        None => new_check(id, what, State::Unknown, found),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "a row of CHECKS like the others")]
fn check_tmp(m: &Machine) -> Option<Check> {
    let found = check_free_space("tmp", "temporary files", &m.tmp, ": TMPDIR=DIR");
    // PyTorch's and Triton's compilers write libraries to the temporary folder and load them from it.
    if found.state == State::Ok && !m.tmp.loads {
        return Some(
            new_check("tmp", "temporary files", State::Warning, format!("{} is mounted noexec", m.tmp.path.display()))
                .with_meaning("libraries that a program compiles there, as torch.compile does, cannot be loaded; the tracer is loaded from the cache folder")
                .with_fix("choose another folder: TMPDIR=DIR"),
        );
    }
    Some(found)
}

fn check_namesakes(m: &Machine) -> Option<Check> {
    let (first, others) = m.namesakes.split_first()?;
    let named: Vec<String> = others.iter().map(|p| p.display().to_string()).collect();
    (!named.is_empty()).then(|| {
        new_check("namesakes", "programs called warpscope", State::Warning, format!("{} runs; also on PATH: {}", first.display(), named.join(", ")))
            .with_meaning("another GPU profiler on the Python index has the same name and command, or two versions are installed")
            .with_fix("remove one of them (pip uninstall warpscope removes the other profiler; this one is warpscope-tui), or call this one by its path")
    })
}

#[expect(clippy::unnecessary_wraps, reason = "a row of CHECKS like the others")]
fn check_report_folder(m: &Machine) -> Option<Check> {
    Some(check_free_space("disk", "report folder", &m.here, ""))
}

#[cfg(test)]
mod tests {
    use super::super::smi::Gpu;
    use super::*;
    use crate::launch::{Tool, Version};
    use std::path::PathBuf;

    fn tool(name: &str, version: &str) -> Tool {
        Tool { path: PathBuf::from(format!("/opt/{name}")), version: Version::find_in(version) }
    }

    fn good() -> Machine {
        let folder = Folder { path: "/tmp".into(), free: Some(100 << 30), writable: true, loads: true };
        let gpu = Gpu {
            name: "NVIDIA H200".into(),
            driver: "580.95".into(),
            capability: Some((9, 0)),
            mig: Some(false),
            persistence: Some(true),
            clock: Some(345),
            most_clock: Some(1980),
            ..Gpu::default()
        };
        Machine {
            gpus: Some(vec![gpu]),
            admin_only: Some(false),
            capabilities: Some(0),
            paranoid: Some(2),
            nsys: Some(tool("nsys", "2025.3.1")),
            ncu: Some(tool("ncu", "2025.3.1")),
            chips: Some(vec!["gh100".into()]),
            cupti: vec![crate::launch::tracer::Library { path: "/l/libcupti.so.13".into(), of: "the CUDA toolkit" }],
            tmp: folder.clone(),
            here: folder,
            ..Machine::default()
        }
    }

    fn state(m: &Machine, id: &str) -> Option<State> {
        run_checks(m).into_iter().find(|c| c.id == id).map(|c| c.state)
    }

    #[test]
    fn a_good_machine_is_found_good() {
        let all = run_checks(&good());
        assert!(all.iter().all(|c| c.state == State::Ok), "{all:?}");
        assert!(all.len() >= 12);
    }

    #[test]
    fn each_trouble_is_named_with_what_it_means_and_its_remedy() {
        type Spoil = fn(&mut Machine);
        let cases: [(&str, State, Spoil); 21] = [
            ("gpus", State::Blocks, |m| m.gpus = None),
            ("ncu", State::Blocks, |m| m.ncu = None),
            ("ncu-chip", State::Blocks, |m| m.chips = Some(vec!["ga100".into()])),
            ("cupti", State::Warning, |m| m.cupti = Vec::new()),
            ("nsys", State::Warning, |m| m.nsys = None),
            ("nsys-importer", State::Warning, |m| m.missing_libraries = vec!["libdw.so.1".into()]),
            ("rocprofv3", State::Warning, |m| m.amd = true),
            ("counters", State::Blocks, |m| m.admin_only = Some(true)),
            ("cpu-samples", State::Warning, |m| (m.paranoid, m.nsys) = (Some(4), None)),
            ("cpu-samples", State::Unknown, |m| m.seccomp = true),
            ("attach", State::Warning, |m| m.ptrace_scope = Some(1)),
            ("attach", State::Warning, |m| m.ptrace_scope = Some(3)),
            ("mig", State::Warning, |m| m.gpus.as_mut().unwrap()[0].mig = Some(true)),
            ("mps", State::Warning, |m| m.mps = true),
            ("counter-holders", State::Warning, |m| m.counter_holders = vec!["nv-hostengine".into()]),
            ("other-processes", State::Warning, |m| m.processes = vec![(7, "python".into())]),
            ("clocks", State::Warning, |m| m.gpus.as_mut().unwrap()[0].persistence = Some(false)),
            ("ncu-lock", State::Blocks, |m| m.foreign_lock = Some("/tmp/nsight-compute-lock".into())),
            ("tmp", State::Blocks, |m| m.tmp.writable = false),
            ("tmp", State::Warning, |m| m.tmp.loads = false),
            ("namesakes", State::Warning, |m| m.namesakes = vec!["/venv/bin/warpscope".into(), "/usr/bin/warpscope".into()]),
        ];
        for (id, want, spoil) in cases {
            let mut m = good();
            spoil(&mut m);
            let all = run_checks(&m);
            let found = all.iter().find(|c| c.id == id).unwrap_or_else(|| panic!("{id}"));
            assert_eq!(found.state, want, "{id}");
            assert!(!found.means.is_empty() && found.fix.as_ref().is_some_and(|f| !f.is_empty()), "{found:?}");
        }
    }

    #[test]
    fn rights_come_from_capabilities_and_what_is_not_known_is_not_fine() {
        let mut m = Machine { admin_only: Some(true), ..good() };
        assert_eq!(state(&m, "counters"), Some(State::Blocks));
        m.capabilities = Some(1 << SYS_ADMIN);
        assert_eq!(state(&m, "counters"), Some(State::Ok));
        m.admin_only = None;
        assert_eq!(state(&m, "counters"), Some(State::Unknown));
        m = Machine { paranoid: Some(4), capabilities: Some(1 << PERFMON), ..good() };
        assert_eq!(state(&m, "cpu-samples"), Some(State::Ok));
        m.seccomp = true;
        assert_eq!(state(&m, "cpu-samples"), Some(State::Ok));
        m = Machine { chips: None, ..good() };
        assert_eq!(state(&m, "ncu-chip"), Some(State::Unknown));
    }
}
