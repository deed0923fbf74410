//! Circumstances that keep the tracer out of a program, detected before the program starts.

use crate::launch::locate_tools::find_on_path;
use object::elf::{EM_AARCH64, EM_X86_64, ET_DYN, ET_EXEC, FileHeader64, PT_INTERP};
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, FileKind, Object, ObjectSymbol, ReadCache};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Reason why nothing, or not the program itself, will be recorded. Each message ends with a way out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    #[error(
        "`{0}` starts programs without the variables that load the tracer, so nothing will be recorded; put warpscope behind it: \
         `{0} warpscope trace -o run PROGRAM`"
    )]
    Cleared(String),
    #[error(
        "`{0}` starts the program in a container, where the tracer is not, so nothing will be recorded; put warpscope into the container, \
         such as with `-v $(command -v warpscope):/usr/bin/warpscope`, and before the program there: `warpscope trace -o run PROGRAM`"
    )]
    Container(String),
    #[error(
        "`{0}` starts the program somewhere else, so nothing will be recorded; run warpscope there: `{0} … warpscope trace -o run PROGRAM`"
    )]
    Elsewhere(String),
    #[error(
        "`{0}` loads a tool of its own into the program, and only one of the two can; run `{0}` without `warpscope trace` and open its report \
         with `warpscope REPORT`, or record without it: `warpscope trace -o run PROGRAM`"
    )]
    Profiler(String),
    #[error(
        "{0} is linked statically, so programs that it starts are recorded, but not itself; if it uses CUDA, link it with the shared C \
         library"
    )]
    Static(String),
    #[error("{0} is a program for another processor, and the tracer is for this one; build it for this machine")]
    Foreign(String),
    #[error("{0} is a 32-bit program, and the tracer is for 64-bit ones; build it for 64 bits")]
    Narrow(String),
    #[error(
        "{0} is setuid or setgid, so the dynamic loader ignores the variables that load the tracer; run it as its owner, from a copy \
         without that bit"
    )]
    SetUser(String),
    #[error(
        "{0} has file capabilities, so the dynamic loader ignores the variables that load the tracer; run it as root, or from a copy \
         without them: `sudo setcap -r COPY`"
    )]
    Capable(String),
}

/// Programs that pass their environment on to another program, which is one of their arguments.
const PASSING: [&str; 13] =
    ["env", "nice", "nohup", "time", "timeout", "taskset", "numactl", "setsid", "stdbuf", "chrt", "ionice", "catchsegv", "xargs"];
/// Programs that start others without most environment variables.
const CLEARING: [&str; 7] = ["sudo", "doas", "su", "pkexec", "runuser", "systemd-run", "machinectl"];
const CONTAINERS: [&str; 4] = ["docker", "podman", "nerdctl", "kubectl"];
/// Programs that start others on another machine, or later.
const REMOTE: [&str; 6] = ["ssh", "pdsh", "sbatch", "qsub", "bsub", "at"];

/// NVIDIA's profilers and debuggers: they set `CUDA_INJECTION64_PATH` for the program, or are the only client that CUPTI
/// accepts.
const PROFILERS: [&str; 6] = ["nsys", "ncu", "nv-nsight-cu-cli", "nvprof", "compute-sanitizer", "cuda-gdb"];

/// Static programs that are known to do nothing but start others.
const STATIC_LAUNCHERS: [&str; 5] = ["uv", "uvx", "pixi", "mise", "just"];

fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Explains why a program's environment variables will not reach the programs that it starts.
fn lost_variables(words: &[String]) -> Option<Obstacle> {
    let (first, rest) = words.split_first()?;
    let name = base_name(first);
    let options: Vec<&str> = rest.iter().map(String::as_str).take_while(|w| w.starts_with('-')).collect();
    match name {
        "env" if options.iter().any(|o| matches!(*o, "-i" | "-" | "--ignore-environment")) => {
            return Some(Obstacle::Cleared(format!("env {}", options.join(" "))));
        }
        // All variables are kept except those of the dynamic loader, which the tracer does not need.
        "sudo" if options.iter().any(|o| matches!(*o, "-E" | "--preserve-env")) => return None,
        "systemd-run" if options.contains(&"--scope") => return None,
        _ if CLEARING.contains(&name) => return Some(Obstacle::Cleared(name.to_owned())),
        _ if CONTAINERS.contains(&name) && rest.iter().any(|w| matches!(w.as_str(), "run" | "exec")) => {
            return Some(Obstacle::Container(name.to_owned()));
        }
        _ if PROFILERS.contains(&name) => return Some(Obstacle::Profiler(name.to_owned())),
        _ if REMOTE.contains(&name) => return Some(Obstacle::Elsewhere(name.to_owned())),
        _ => {}
    }
    if !PASSING.contains(&name) {
        return None;
    }
    // The options, their values, and variables precede the program.
    let is_program = |w: &str| !w.starts_with('-') && !w.contains('=') && !w.starts_with(|c: char| c.is_ascii_digit());
    let at = rest.iter().position(|w| is_program(w))?;
    lost_variables(&rest[at..])
}

/// Tests whether an executable is one of NVIDIA's profilers or debuggers.
pub fn is_profiler(executable: &str) -> bool {
    let name = base_name(executable);
    PROFILERS.contains(&name) || name.starts_with("nsys-")
}

/// Path of a program, if there is such a file.
pub(super) fn find_program(word: &str) -> Option<PathBuf> {
    let path = if word.contains('/') { PathBuf::from(word) } else { find_on_path(word)? };
    path.is_file().then_some(path)
}

/// Tests whether a program gets capabilities from its file.
fn has_capabilities(path: &Path) -> bool {
    let mut value = [0_u8; 64];
    rustix::fs::getxattr(path, "security.capability", &mut value).is_ok_and(|n| n > 0)
}

/// Reads from an executable why the tracer cannot be loaded into it.
fn describe_executable(path: &Path) -> Option<Obstacle> {
    let file = File::open(path).ok()?;
    let about = file.metadata().ok()?;
    let data = ReadCache::new(file);
    let shown = path.display().to_string();
    match FileKind::parse(&data).ok()? {
        FileKind::Elf32 => Some(Obstacle::Narrow(shown)),
        FileKind::Elf64 => {
            let header = FileHeader64::<Endianness>::parse(&data).ok()?;
            let endian = header.endian().ok()?;
            let own = if cfg!(target_arch = "aarch64") { EM_AARCH64 } else { EM_X86_64 };
            if header.e_machine(endian) != own {
                return Some(Obstacle::Foreign(shown));
            }
            let is_program = matches!(header.e_type(endian), ET_EXEC | ET_DYN);
            let segments = header.program_headers(endian, &data).ok()?;
            let launches = path.file_name().is_some_and(|n| STATIC_LAUNCHERS.iter().any(|l| n == *l));
            if is_program && !launches && !segments.iter().any(|s| s.p_type(endian) == PT_INTERP) {
                return Some(Obstacle::Static(shown));
            }
            // The kernel does not mark a process that gains nothing (AT_SECURE), such as root's.
            let user = nix::unistd::geteuid();
            let gains = |bit: u32, own: u32, other: u32| about.mode() & bit != 0 && own != other;
            if gains(0o4000, user.as_raw(), about.uid()) || gains(0o2000, nix::unistd::getegid().as_raw(), about.gid()) {
                return Some(Obstacle::SetUser(shown));
            }
            (!user.is_root() && has_capabilities(path)).then_some(Obstacle::Capable(shown))
        }
        _ => None,
    }
}

/// Determines what will keep the tracer out of a program.
pub fn find_obstacle(words: &[String]) -> Option<Obstacle> {
    lost_variables(words).or_else(|| describe_executable(&find_program(words.first()?)?))
}

/// Creates a file in a folder and removes it; returns the free space there, bytes.
pub fn try_to_write(folder: &Path) -> std::io::Result<u64> {
    let trial = folder.join(format!(".warpscope-{}", std::process::id()));
    match File::options().write(true).create_new(true).open(&trial) {
        // A process with the same id on another machine is testing the same folder, so it is writable.
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(e) => return Err(e),
        Ok(_) => std::fs::remove_file(&trial)?,
    }
    Ok(nix::sys::statvfs::statvfs(folder).map_or(u64::MAX, |s| s.blocks_available().saturating_mul(s.fragment_size())))
}

/// Returns true for a program that loads the shared library `libasan`, which refuses to start unless it is the first
/// preloaded library.
pub fn loads_address_sanitizer(word: &str) -> bool {
    let Some(file) = find_program(word).and_then(|path| File::open(path).ok()) else { return false };
    let data = ReadCache::new(file);
    let Ok(elf) = ElfFile64::<Endianness, _>::parse(&data) else { return false };
    elf.dynamic_symbols().any(|s| s.is_undefined() && s.name() == Ok("__asan_init"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn of(command: &str) -> Option<Obstacle> {
        lost_variables(&command.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn what_clears_the_environment_is_known_behind_what_does_not() {
        for (command, by) in [
            ("sudo ./app", "sudo"),
            ("/usr/bin/sudo -u root ./app", "sudo"),
            ("nice -n 5 sudo ./app", "sudo"),
            ("env A=1 timeout 5 su -c ./app", "su"),
            ("env -i ./app", "env -i"),
            ("systemd-run --user ./app", "systemd-run"),
        ] {
            assert_eq!(of(command), Some(Obstacle::Cleared(by.to_owned())), "{command}");
        }
        assert_eq!(of("docker run --gpus all image python3 train.py"), Some(Obstacle::Container("docker".to_owned())));
        assert_eq!(of("kubectl exec pod -- ./app"), Some(Obstacle::Container("kubectl".to_owned())));
        assert_eq!(of("nice nsys profile ./app"), Some(Obstacle::Profiler("nsys".to_owned())));
        assert_eq!(of("ssh node ./app"), Some(Obstacle::Elsewhere("ssh".to_owned())));
        for command in [
            "./app sudo",
            "env A=1 ./app -i",
            "sudo -E ./app",
            "systemd-run --scope ./app",
            "python3 -m docker run",
            "docker ps",
            "nice",
            "numactl --cpunodebind=0 ./app",
        ] {
            assert_eq!(of(command), None, "{command}");
        }
    }

    #[test]
    fn folders_are_tried() {
        let folder = tempfile::tempdir().unwrap();
        assert!(try_to_write(folder.path()).unwrap() > 0);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
        // Not even root can create files there.
        assert!(try_to_write(Path::new("/proc")).is_err());
    }

    #[test]
    fn executables_are_read_and_other_files_left_alone() {
        let own = std::env::current_exe().unwrap().display().to_string();
        let script = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(script.path(), "#!/bin/sh\nexit 0\n").unwrap();
        for word in [own.as_str(), "sh", "no-such-program", "/", script.path().to_str().unwrap()] {
            assert_eq!((find_obstacle(&[word.to_owned()]), loads_address_sanitizer(word)), (None, false), "{word}");
        }
        assert_eq!(find_obstacle(&[]), None);
        let folder = tempfile::tempdir().unwrap();
        let made = |name: &str, bytes: &[u8], mode: u32| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            path.display().to_string()
        };
        let dynamic = std::fs::read(&own).unwrap();
        // The segment that names the loader is made unused.
        let mut without_loader = dynamic.clone();
        let number = |at: usize, n: usize| dynamic[at..at + n].iter().rev().fold(0, |all, &b| all << 8 | usize::from(b));
        let (table, size, count) = (number(32, 8), number(54, 2), number(56, 2));
        let loader = (0..count).map(|i| table + i * size).find(|&at| number(at, 4) == 3).unwrap();
        without_loader[loader] = 0;
        let mut narrow = dynamic.clone();
        narrow[4] = 1;
        let of = |path: &str| find_obstacle(&[path.to_owned()]);
        let path = made("static", &without_loader, 0o700);
        assert_eq!(of(&path), Some(Obstacle::Static(path.clone())));
        assert_eq!(of(&made("uv", &without_loader, 0o700)), None);
        let path = made("narrow", &narrow, 0o700);
        assert_eq!(of(&path), Some(Obstacle::Narrow(path.clone())));
        let mut foreign = dynamic.clone();
        foreign[18] = 83;
        let path = made("foreign", &foreign, 0o700);
        assert_eq!(of(&path), Some(Obstacle::Foreign(path.clone())));
        // A setuid program of this user gains nothing, so it is no obstacle; only root can make one of another user.
        assert_eq!(of(&made("own", &dynamic, 0o4700)), None);
        let path = made("setuid", &dynamic, 0o700);
        if std::os::unix::fs::chown(&path, Some(65534), Some(65534)).is_ok() {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o4755)).unwrap();
            assert_eq!(of(&path), Some(Obstacle::SetUser(path.clone())));
        }
        // Damaged headers of a program are no reason to refuse it.
        let mut bytes = std::fs::read(&own).unwrap();
        bytes.truncate(4096);
        for at in [4, 16, 32, 54, 56] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0xff;
            std::fs::write(script.path(), damaged).unwrap();
            let _ = (find_obstacle(&[script.path().display().to_string()]), loads_address_sanitizer(script.path().to_str().unwrap()));
        }
    }
}
