//! Starts a program with the tracer: puts the object into a folder from which it can be loaded, and sets the
//! environment variables.

use super::super::private_files;
use super::{Library, OBJECT};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Condition that opens the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Each `cudaProfilerStart`, until the next `cudaProfilerStop`.
    ProfilerApi,
    /// An NVTX range with this domain and text: every time, or only the nth time it is entered (1-based).
    Nvtx { domain: Option<String>, text: String, nth: Option<u32> },
    /// Milliseconds after the start.
    Delay(u64),
    /// The first launch of a kernel, given by its mangled or function name.
    Kernel(String),
    /// The first launch after this many launches.
    Launches(u64),
    /// A command sent through the control socket.
    ByHand,
    /// Short recordings at random times, which may add this share of the run time, in hundredths of a percent.
    Overhead(u32),
}

/// Code whose stacks are sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Frames {
    /// Python in programs that have an interpreter, native code in others.
    #[default]
    Suitable,
    Python,
    Native,
    /// Python, and native code of threads that run no Python code.
    Both,
}

impl Frames {
    /// Parses the name on the command line; any other word means [`Suitable`](Self::Suitable).
    pub fn from_word(word: &str) -> Self {
        match word {
            "python" => Self::Python,
            "native" => Self::Native,
            "both" => Self::Both,
            _ => Self::Suitable,
        }
    }

    /// Name in the tracer's options.
    fn option(self) -> &'static str {
        match self {
            Self::Suitable => "frames=auto",
            Self::Python => "frames=python",
            Self::Native => "frames=native",
            Self::Both => "frames=both",
        }
    }
}

/// Contents and output of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "one for each option")]
pub struct Record {
    /// Absolute path of the traces without process id and suffix.
    pub output: PathBuf,
    /// Record only kernels.
    pub lean: bool,
    /// Record all driver calls, not only those that launch, copy, wait or allocate.
    pub all_calls: bool,
    /// Record each CUDA graph as one operation.
    pub whole_graphs: bool,
    /// Record every allocation of device memory.
    pub memory: bool,
    /// Samples of the launching threads per second; 0 for none.
    pub stack_rate: u32,
    pub frames: Frames,
    pub gate: Option<Gate>,
    /// Duration of the recording, ms.
    pub length: Option<u64>,
    /// Keep only the last part of the recording, this many ms long.
    pub keep: Option<u64>,
    /// Ranks of a job to record, as the first and last rank of each interval; all if empty.
    pub ranks: Vec<(u32, u32)>,
    /// The measurement plan ([`Measure::write_plan`](super::Measure::write_plan)).
    pub plan: Option<PathBuf>,
    /// Also preload the object (`LD_PRELOAD`), so that processes that exit through `_exit` lose no data.
    pub preload: bool,
    /// A libcupti that replaces the one that the program loads ([`can_be_preloaded`]). It is preloaded with the object:
    /// libraries that need a libcupti of the same major version then use it, because the loader compares sonames.
    pub library: Option<PathBuf>,
}

/// Reason why a program cannot be started with the tracer.
#[derive(Debug, thiserror::Error)]
pub enum Unable {
    #[error("the built-in tracer is for Linux on x86-64 and aarch64")]
    NoObject,
    #[error("{0} is set already: another tool is to be loaded into the program; unset it, or record with that tool")]
    Taken(&'static str),
    #[error("the tracer's object cannot be written to {}: {source}; set XDG_CACHE_HOME to a folder that only you can write to", folder.display())]
    Written { folder: PathBuf, source: std::io::Error },
}

/// Writes the object to a file that this user's programs can load.
pub fn write_object(cache: &Path) -> Result<PathBuf, Unable> {
    if OBJECT.is_empty() {
        return Err(Unable::NoObject);
    }
    write_loadable_file(cache, &format!("tracer-{:08x}.so", crc32fast::hash(OBJECT)), OBJECT, 0o700)
}

/// Writes a file that programs load or read, in such a way that no other user can replace it. Uses the first suitable
/// folder: the cache, the session's own (`XDG_RUNTIME_DIR`), or one below the temporary directory.
pub(super) fn write_loadable_file(cache: &Path, name: &str, bytes: &[u8], mode: u32) -> Result<PathBuf, Unable> {
    let session = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|p| p.is_absolute()).map(|p| p.join("warpscope"));
    let mut first = None;
    for folder in [Some(cache.to_owned()), session, Some(private_files::homeless_folder())].into_iter().flatten() {
        match write_to_folder(&folder, name, bytes, mode) {
            Ok(path) => return Ok(path),
            Err(source) => first = first.or(Some(Unable::Written { folder, source })),
        }
    }
    Err(first.unwrap_or(Unable::NoObject))
}

fn write_to_folder(folder: &Path, name: &str, bytes: &[u8], mode: u32) -> std::io::Result<PathBuf> {
    let folder = private_files::Folder::create_private(folder)?;
    folder.check_loadable()?;
    let real = folder.resolve_unshared()?;
    folder.write_file(name, bytes, mode)?;
    Ok(real.join(name))
}

/// Returns true if the dynamic loader treats the path as a single name: its lists are separated by colons and blanks.
fn is_single_list_entry(path: &Path) -> bool {
    path.to_str().is_some_and(|p| !p.contains([':', ' ', '\t', '\n']))
}

/// Returns true if the loader takes the library into a program; a library that is damaged, or needs one that is missing,
/// would keep every program from starting.
pub fn can_be_preloaded(library: &Path) -> bool {
    let tried = Command::new("sh").args(["-c", ":"]).env("LD_PRELOAD", library).output();
    is_single_list_entry(library) && tried.is_ok_and(|out| out.status.success() && out.stderr.is_empty())
}

impl Record {
    fn format_options(&self) -> String {
        let all = [(self.lean, "lean"), (self.all_calls, "api=all"), (self.whole_graphs, "graphs=whole"), (self.memory, "memory")];
        let every_us = 1_000_000_u32.checked_div(self.stack_rate).unwrap_or(0);
        let stacks = format!("stacks={every_us}");
        all.iter().filter(|(on, _)| *on).map(|(_, word)| *word).chain([stacks.as_str(), self.frames.option()]).collect::<Vec<_>>().join(",")
    }

    fn format_gate(&self) -> Option<String> {
        Some(match self.gate.as_ref()? {
            Gate::ProfilerApi => "profiler".to_owned(),
            Gate::ByHand => "closed".to_owned(),
            Gate::Overhead(share) => format!("overhead:{share}"),
            Gate::Delay(ms) => format!("after-ms:{ms}"),
            Gate::Kernel(name) => format!("launch:{name}"),
            Gate::Launches(n) => format!("launches:{n}"),
            Gate::Nvtx { domain, text, nth } => {
                let nth = nth.map_or_else(String::new, |n| format!("#{n}"));
                format!("nvtx{nth}:{}:{text}", domain.as_deref().unwrap_or_default())
            }
        })
    }

    /// Environment variables for a program. `before` looks up the existing ones.
    fn environment_variables(
        &self,
        object: &Path,
        libraries: &[Library],
        before: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Vec<(&'static str, OsString)>, Unable> {
        const INJECTION: &str = "CUDA_INJECTION64_PATH";
        // The variable already names this object if a traced program starts this program.
        let ours = |v: &OsStr| v == object.as_os_str();
        if before(INJECTION).is_some_and(|v| !v.is_empty() && !ours(&v)) {
            return Err(Unable::Taken(INJECTION));
        }
        let mut out = vec![(INJECTION, object.as_os_str().to_owned()), ("WARPSCOPE_TRACE_OUT", self.output.as_os_str().to_owned())];
        // If another tool already receives NVTX events, do not replace it; kernels are still recorded.
        if before("NVTX_INJECTION64_PATH").is_none_or(|v| v.is_empty() || ours(&v)) {
            out.push(("NVTX_INJECTION64_PATH", object.as_os_str().to_owned()));
        }
        let list: Vec<&OsStr> = libraries.iter().map(|l| l.path.as_os_str()).filter(|p| !p.to_string_lossy().contains(':')).collect();
        out.push(("WARPSCOPE_TRACE_CUPTI", list.join(OsStr::new(":"))));
        out.push(("WARPSCOPE_TRACE_OPTIONS", self.format_options().into()));
        out.push(("WARPSCOPE_TRACE_GATE", self.format_gate().unwrap_or_default().into()));
        out.push(("WARPSCOPE_TRACE_FOR_MS", self.length.map(|ms| ms.to_string()).unwrap_or_default().into()));
        out.push(("WARPSCOPE_TRACE_KEEP_MS", self.keep.map(|ms| ms.to_string()).unwrap_or_default().into()));
        let ranks: Vec<String> = self.ranks.iter().map(|(first, last)| format!("{first}-{last}")).collect();
        out.push(("WARPSCOPE_TRACE_RANKS", ranks.join(",").into()));
        if let Some(plan) = &self.plan {
            out.push(("WARPSCOPE_TRACE_MEASURE", plan.as_os_str().to_owned()));
        }
        let loaded = before("LD_PRELOAD").unwrap_or_default();
        // AddressSanitizer's library refuses to start unless it is the first preloaded library.
        let sanitized = before("ASAN_OPTIONS").is_some() || loaded.to_string_lossy().contains("asan");
        if self.preload && !sanitized && is_single_list_entry(object) && !loaded.to_string_lossy().contains(&*object.to_string_lossy()) {
            let mut list = loaded;
            // The object comes first: calls of the program to CUPTI must reach it.
            for path in [object].into_iter().chain(self.library.as_deref()) {
                if !list.is_empty() {
                    list.push(":");
                }
                list.push(path);
            }
            out.push(("LD_PRELOAD", list));
        }
        Ok(out)
    }
}

/// Separator of the command's words in the environment variable for the program's processes. A command that does not
/// fit into the trace is omitted.
const SEPARATOR: &str = "\x1f";
const LONGEST: usize = 12 << 10;
const LONGEST_WORD: usize = 4000;
const PER_WORD: usize = 16;

/// Builds the command that starts the program with the tracer.
pub fn traced_command(record: &Record, program: &[OsString], object: &Path, libraries: &[Library]) -> Result<Command, Unable> {
    let fits = program.iter().map(|w| w.len() + PER_WORD).sum::<usize>() <= LONGEST;
    let plain = program.iter().all(|w| w.len() < LONGEST_WORD && !w.to_string_lossy().contains(SEPARATOR));
    let told = if fits && plain { program.join(OsStr::new(SEPARATOR)) } else { OsString::new() };
    let mut words = program.iter();
    let mut command = Command::new(words.next().map_or_else(OsString::new, Clone::clone));
    command.args(words).envs(record.environment_variables(object, libraries, |name| std::env::var_os(name))?);
    command.env("WARPSCOPE_TRACE_COMMAND", told);
    Ok(command)
}

/// Files that a running program reads when the tracer is attached to it.
pub struct Attachable {
    pub object: PathBuf,
    pub settings: PathBuf,
}

/// Writes the object and its settings to a folder from which the process can read them. If the process belongs to
/// another user, only root attaches to it, and the folder is one of root's that everyone may read. `process` is the
/// user id and process id.
pub fn write_attachable(record: &Record, libraries: &[Library], cache: &Path, process: (u32, i32)) -> Result<Attachable, Unable> {
    use std::os::unix::ffi::OsStrExt;
    if OBJECT.is_empty() {
        return Err(Unable::NoObject);
    }
    let all = record.environment_variables(Path::new("/"), libraries, |_| None)?;
    let mut settings = Vec::new();
    for (name, value) in all.iter().filter(|(name, _)| name.starts_with("WARPSCOPE_TRACE_")) {
        settings.extend([name.as_bytes(), b"=", value.as_bytes(), b"\0"].concat());
    }
    let (user, pid) = process;
    let name = format!("attach-{pid}-{:08x}.settings", crc32fast::hash(&settings));
    if nix::unistd::geteuid().as_raw() == user {
        let settings = write_loadable_file(cache, &name, &settings, 0o600)?;
        return Ok(Attachable { object: write_object(cache)?, settings });
    }
    let parent = std::env::temp_dir();
    let write = || -> std::io::Result<Attachable> {
        let readable = std::os::unix::fs::PermissionsExt::from_mode;
        let folder = tempfile::Builder::new().prefix("warpscope-attach-").permissions(readable(0o755)).tempdir_in(&parent)?.keep();
        let files = Attachable { object: folder.join("tracer.so"), settings: folder.join(&name) };
        std::fs::write(&files.object, OBJECT)?;
        std::fs::write(&files.settings, &settings)?;
        for (file, mode) in [(&files.object, 0o755), (&files.settings, 0o644)] {
            std::fs::set_permissions(file, readable(mode))?;
        }
        Ok(files)
    };
    write().map_err(|source| Unable::Written { folder: parent.clone(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record { output: "/runs/1/report".into(), preload: true, ..Record::default() }
    }

    fn variables(record: &Record, before: &[(&str, &str)]) -> Result<Vec<(&'static str, String)>, Unable> {
        let before = |name: &str| before.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v));
        let all =
            record.environment_variables(Path::new("/c/tracer.so"), &[Library { path: "/l/libcupti.so.13".into(), of: "" }], before)?;
        Ok(all.into_iter().map(|(n, v)| (n, v.into_string().unwrap())).collect())
    }

    fn of(all: &[(&'static str, String)], name: &str) -> Option<String> {
        all.iter().find(|(n, _)| *n == name).map(|(_, v)| v.clone())
    }

    #[test]
    fn stacks_are_those_that_were_asked_for() {
        for (word, option) in [("auto", "frames=auto"), ("python", "frames=python"), ("native", "frames=native"), ("both", "frames=both")] {
            let asked = Record { stack_rate: 50, frames: Frames::from_word(word), ..record() };
            assert_eq!(asked.format_options(), format!("stacks=20000,{option}"));
        }
        assert_eq!(record().format_options(), "stacks=0,frames=auto");
    }

    #[test]
    fn other_tools_keep_their_place() {
        let all = variables(&record(), &[("LD_PRELOAD", "/x/libjemalloc.so")]).unwrap();
        assert_eq!(of(&all, "LD_PRELOAD").unwrap(), "/x/libjemalloc.so:/c/tracer.so");
        assert_eq!(of(&all, "WARPSCOPE_TRACE_CUPTI").unwrap(), "/l/libcupti.so.13");
        let newer = Record { library: Some("/n/libcupti.so.13".into()), ..record() };
        let all = variables(&newer, &[("LD_PRELOAD", "/x/libjemalloc.so")]).unwrap();
        assert_eq!(of(&all, "LD_PRELOAD").unwrap(), "/x/libjemalloc.so:/c/tracer.so:/n/libcupti.so.13");
        assert!(variables(&record(), &[("CUDA_INJECTION64_PATH", "/nsys/libToolsInjection64.so")]).is_err());
        let all = variables(&record(), &[("NVTX_INJECTION64_PATH", "/other.so"), ("ASAN_OPTIONS", "")]).unwrap();
        assert_eq!((of(&all, "NVTX_INJECTION64_PATH"), of(&all, "LD_PRELOAD")), (None, None));
        let again = [("CUDA_INJECTION64_PATH", "/c/tracer.so"), ("LD_PRELOAD", "/c/tracer.so")];
        assert_eq!(of(&variables(&record(), &again).unwrap(), "LD_PRELOAD"), None);
    }

    #[test]
    fn gates_in_the_objects_words() {
        let gate = |gate| Record { gate: Some(gate), ..record() }.format_gate().unwrap();
        assert_eq!(gate(Gate::Nvtx { domain: None, text: "step: 3".into(), nth: None }), "nvtx::step: 3");
        assert_eq!(gate(Gate::Nvtx { domain: Some("LLM".into()), text: "step".into(), nth: Some(3) }), "nvtx#3:LLM:step");
        assert_eq!((gate(Gate::Delay(1500)), gate(Gate::ProfilerApi)), ("after-ms:1500".to_owned(), "profiler".to_owned()));
    }
}
