//! Facts about this machine that can be collected within seconds and without privileges. Unknown facts are absent.

use super::super::tracer::{Library, find_libraries};
use super::super::{self as launch, Tool, Version, locate_tools};
use super::driver::{DriverAnswer, ask_driver};
use super::smi::{self, Gpu};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Folders to examine; tests replace the machine's root with a folder of their own.
#[derive(Clone, Debug)]
pub struct Places {
    /// Root of the file system.
    pub root: PathBuf,
    pub path: Vec<PathBuf>,
    /// Folder for temporary files.
    pub tmp: PathBuf,
    /// Folder for reports.
    pub here: PathBuf,
    /// Also search the vendors' install folders.
    pub installs: bool,
    /// The tracer's object, if the driver should be queried directly, which initializes CUDA.
    pub object: Option<PathBuf>,
}

impl Places {
    /// Folders of this machine. The report folder does not have to exist yet.
    pub fn for_reports(folder: &Path) -> Self {
        let there = folder.ancestors().find(|p| p.is_dir()).unwrap_or(folder);
        Self { here: there.to_owned(), ..Self::from_environment() }
    }

    pub fn from_environment() -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        Self {
            root: PathBuf::from("/"),
            path: std::env::split_paths(&path).filter(|p| p.is_absolute()).collect(),
            tmp: std::env::temp_dir(),
            here: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
            installs: true,
            object: None,
        }
    }

    fn read_text(&self, inside: &str) -> Option<String> {
        std::fs::read_to_string(self.root.join(inside)).ok()
    }

    fn find_program(&self, name: &str) -> Option<PathBuf> {
        self.path.iter().map(|p| p.join(name)).find(|p| p.is_file())
    }
}

/// Facts about an output folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folder {
    pub path: PathBuf,
    /// Free bytes for this user.
    pub free: Option<u64>,
    /// This user may write to the folder.
    pub writable: bool,
    /// Programs and libraries can be loaded from the folder.
    pub loads: bool,
}

#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "facts that do not depend on each other")]
pub struct Machine {
    /// GPUs; `None` if `nvidia-smi` is missing or did not answer.
    pub gpus: Option<Vec<Gpu>>,
    /// Error message of `nvidia-smi`.
    pub smi_error: Option<String>,
    /// AMD's driver is present.
    pub amd: bool,
    /// Processes that use a GPU.
    pub processes: Vec<(u32, String)>,
    /// Only administrators may read the GPU's counters (`RmProfilingAdminOnly`).
    pub admin_only: Option<bool>,
    /// This process runs as root.
    pub root: bool,
    pub capabilities: Option<u64>,
    /// `perf_event_paranoid`.
    pub paranoid: Option<i64>,
    /// A filter decides which system calls this process may make (seccomp).
    pub seccomp: bool,
    /// Yama's `ptrace_scope`; `None` without Yama.
    pub ptrace_scope: Option<u8>,
    pub container: bool,
    pub nsys: Option<Tool>,
    pub ncu: Option<Tool>,
    pub rocprof: Option<Tool>,
    /// Libraries that the built-in tracer can use.
    pub cupti: Vec<Library>,
    /// Results of querying the driver and libcupti, if they were queried.
    pub driver: Option<DriverAnswer>,
    /// Chips that this ncu supports.
    pub chips: Option<Vec<String>>,
    /// Missing libraries that nsys's importer needs.
    pub missing_libraries: Vec<String>,
    /// Programs that hold the GPU's counters, such as DCGM.
    pub counter_holders: Vec<String>,
    /// CUDA's multi-process service is running.
    pub mps: bool,
    /// Folder for ncu's lock file and nsys's intermediate files.
    pub tmp: Folder,
    /// A lock file of ncu that belongs to another user.
    pub foreign_lock: Option<PathBuf>,
    pub here: Folder,
    /// Programs named `warpscope` on PATH, without duplicates, in the order of PATH.
    pub namesakes: Vec<PathBuf>,
}

/// `CAP_SYS_PTRACE`.
pub const SYS_PTRACE: u32 = 19;
/// `CAP_SYS_ADMIN`.
pub const SYS_ADMIN: u32 = 21;
/// `CAP_PERFMON`.
pub const PERFMON: u32 = 38;
/// Time that a program has to answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Programs that hold counters: DCGM's host engine, its exporter for clusters, and its command-line tool.
const HOLDERS: [&str; 3] = ["nv-hostengine", "dcgm-exporter", "dcgmi"];

/// Runs a program and returns its output lines, or its error message.
fn query_program(program: &Path, args: &[&str], cancelled: &dyn Fn() -> bool) -> Result<Vec<String>, String> {
    let until = Instant::now() + PATIENCE;
    let mut lines = Vec::new();
    let ended = launch::run_query(Command::new(program).args(args), |l| lines.push(l.to_owned()), || cancelled() || Instant::now() > until);
    match ended {
        Ok(e) if e.status.success() => Ok(lines),
        Ok(e) if e.cancelled => Err(format!("{} did not answer within {} s", program.display(), PATIENCE.as_secs())),
        Ok(e) => Err(e.log.first().cloned().unwrap_or_else(|| "it failed without a message".to_owned())),
        Err(e) => Err(e.to_string()),
    }
}

pub fn collect_facts(places: &Places, nsys: Option<&Path>, cancelled: &dyn Fn() -> bool) -> Machine {
    let mut out = Machine { amd: places.root.join("dev/kfd").exists(), root: nix::unistd::geteuid().is_root(), ..Machine::default() };
    if let Some(program) = places.find_program("nvidia-smi") {
        match query_program(&program, &smi::GPUS, cancelled) {
            Ok(lines) => out.gpus = Some(smi::parse_gpus(&lines)),
            Err(why) => out.smi_error = Some(why),
        }
        if out.gpus.as_ref().is_some_and(|g| !g.is_empty()) {
            out.processes = query_program(&program, &smi::PROCESSES, cancelled).map(|l| smi::parse_processes(&l)).unwrap_or_default();
        }
    }
    out.admin_only = places.read_text("proc/driver/nvidia/params").and_then(|t| parse_admin_only(&t));
    out.capabilities = places.read_text("proc/self/status").and_then(|t| parse_capabilities(&t));
    out.ptrace_scope = places.read_text("proc/sys/kernel/yama/ptrace_scope").and_then(|t| t.trim().parse().ok());
    out.seccomp = places.read_text("proc/self/status").is_some_and(|t| t.lines().any(|l| l == "Seccomp:\t2"));
    out.paranoid = places.read_text("proc/sys/kernel/perf_event_paranoid").and_then(|t| t.trim().parse().ok());
    let marks = [".dockerenv", "run/.containerenv"];
    let scheduled =
        places.read_text("proc/1/cgroup").is_some_and(|t| ["docker", "kubepods", "containerd", "lxc"].iter().any(|w| t.contains(w)));
    out.container = marks.iter().any(|m| places.root.join(m).exists()) || scheduled;
    let tool = |path: PathBuf| locate_tools::query_version(&path, cancelled);
    let here = |name: &str| places.find_program(name).or_else(|| places.installs.then(|| locate_tools::find_installed(name)).flatten());
    let systems = match nsys {
        Some(chosen) => Some(chosen.to_owned()),
        None if places.installs => locate_tools::find_nsys(None).into_iter().next(),
        None => places.find_program("nsys"),
    };
    out.nsys = systems.map(tool);
    out.ncu = here("ncu").map(tool);
    out.rocprof = here("rocprofv3").map(tool);
    // A Python program may bring its own libraries.
    let python = ["python3", "python"].into_iter().filter_map(|p| Some(places.find_program(p)?.display().to_string()));
    let variable = |name: &str| std::env::var_os(name).filter(|v| places.installs && !v.is_empty()).map(PathBuf::from);
    out.cupti = find_libraries(&places.root, &python.collect::<Vec<_>>(), variable);
    out.driver = places.object.as_ref().and_then(|object| ask_driver(object, &out.cupti, cancelled));
    if let Some(ncu) = &out.ncu {
        out.chips = query_program(&ncu.path, &["--list-chips"], cancelled).ok().map(|lines| parse_chips(&lines)).filter(|c| !c.is_empty());
    }
    if out.nsys.is_some() {
        out.missing_libraries = ["libdw.so.1", "libelf.so.1"].into_iter().filter(|l| !has_library(places, l)).map(str::to_owned).collect();
    }
    let names = running_processes(places);
    out.counter_holders =
        HOLDERS.iter().filter(|h| names.iter().any(|n| h.starts_with(n.as_str()) && n.len() >= 5)).map(|h| (*h).to_owned()).collect();
    out.mps = names.iter().any(|n| n.starts_with("nvidia-cuda-mps"));
    out.tmp = examine_folder(&places.tmp);
    let lock = places.tmp.join("nsight-compute-lock");
    out.foreign_lock = (lock.exists() && !can_write(&lock)).then_some(lock);
    out.here = examine_folder(&places.here);
    let mut seen = std::collections::HashSet::new();
    let named = places.path.iter().map(|p| p.join("warpscope")).filter(|p| p.is_file());
    out.namesakes = named.filter(|p| seen.insert(std::fs::canonicalize(p).unwrap_or_else(|_| p.clone()))).collect();
    out
}

/// Returns true if a file can be opened for writing. The file may be a pipe that another user created in the temporary
/// directory, so this must not block.
fn can_write(file: &Path) -> bool {
    std::fs::OpenOptions::new().write(true).custom_flags(nix::fcntl::OFlag::O_NONBLOCK.bits()).open(file).is_ok()
}

fn parse_admin_only(params: &str) -> Option<bool> {
    let line = params.lines().find(|l| l.starts_with("RmProfilingAdminOnly"))?;
    line.split(':').nth(1)?.trim().parse::<u32>().ok().map(|n| n != 0)
}

fn parse_capabilities(status: &str) -> Option<u64> {
    let line = status.lines().find(|l| l.starts_with("CapEff:"))?;
    u64::from_str_radix(line.split(':').nth(1)?.trim(), 16).ok()
}

/// Parses ncu's comma-separated list of chips.
fn parse_chips(lines: &[String]) -> Vec<String> {
    let words = lines.iter().flat_map(|l| l.split([',', ' ']));
    let is_chip = |w: &&str| {
        w.len() >= 5
            && w.len() <= 6
            && w.chars().take(2).all(|c| c.is_ascii_lowercase())
            && w.chars().skip(2).take(3).all(|c| c.is_ascii_alphanumeric())
    };
    words.map(str::trim).filter(is_chip).filter(|w| w.chars().any(|c| c.is_ascii_digit())).map(str::to_owned).collect()
}

/// Names of the running processes, which the kernel truncates to 15 characters.
fn running_processes(places: &Places) -> Vec<String> {
    let all = std::fs::read_dir(places.root.join("proc")).into_iter().flatten().flatten();
    all.filter(|e| e.file_name().to_string_lossy().chars().all(|c| c.is_ascii_digit()))
        .filter_map(|e| std::fs::read_to_string(e.path().join("comm")).ok())
        .map(|t| t.trim().to_owned())
        .filter(|t| !t.is_empty())
        .collect()
}

/// Returns true if the loader would find a library in `LD_LIBRARY_PATH` or in the standard folders of the
/// distributions.
fn has_library(places: &Places, name: &str) -> bool {
    let own = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let own = std::env::split_paths(&own).map(|p| p.join(name));
    let usual = [
        "usr/lib/x86_64-linux-gnu",
        "lib/x86_64-linux-gnu",
        "usr/lib/aarch64-linux-gnu",
        "lib/aarch64-linux-gnu",
        "usr/lib64",
        "lib64",
        "usr/lib",
        "lib",
    ];
    own.chain(usual.iter().map(|u| places.root.join(u).join(name))).any(|p| p.exists())
}

fn examine_folder(path: &Path) -> Folder {
    let disk = nix::sys::statvfs::statvfs(path).ok();
    let free = disk.map(|s| s.blocks_available().saturating_mul(s.fragment_size()));
    let writable = nix::unistd::access(path, nix::unistd::AccessFlags::W_OK).is_ok();
    let loads = disk.is_none_or(|s| !s.flags().contains(nix::sys::statvfs::FsFlags::ST_NOEXEC));
    Folder { path: path.to_owned(), free, writable, loads }
}

/// Formats a tool's version for display.
pub fn format_version(tool: &Tool) -> String {
    tool.version.as_ref().map_or_else(|| "of unknown version".to_owned(), Version::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_in_the_place_of_ncus_lock_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        std::fs::write(at("lock"), "").unwrap();
        assert!(can_write(&at("lock")) && !can_write(&at("pipe")) && !can_write(&at("nothing")));
    }

    #[test]
    fn what_the_kernel_and_the_tools_say_is_read() {
        assert_eq!(parse_admin_only("EnableMSI: 1\nRmProfilingAdminOnly: 0\n"), Some(false));
        assert_eq!(parse_admin_only("RmProfilingAdminOnly: 1\n"), Some(true));
        assert_eq!(parse_admin_only("EnableMSI: 1\n"), None);
        assert_eq!(parse_capabilities("Name:\tsh\nCapEff:\t00000000a80425fb\n"), Some(0xa804_25fb));
        // Output of ncu 2024.1.
        let lines = ["ga100, ga102, ga103, ad102, gh100, gv100, tu102, tu117, gv11b".to_owned()];
        let found = parse_chips(&lines);
        assert!(found.len() == 9 && found.contains(&"gv11b".to_owned()), "{found:?}");
    }
}
