//! Reads source files named in a report from disk.

use crate::launch::open;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Maximum size of a source file read from disk, bytes.
const MOST_SOURCE: u64 = 8 << 20;

/// Returns the directories from which source files may be read: those of the system and toolkit, the current
/// directory, and the directories of the report and of the program. The last two are omitted if they contain too much
/// (close to the root, or above the home directory), because the path of the program comes from the untrusted report.
pub fn source_folders(report: &Path, program: Option<&str>) -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from).and_then(|h| h.canonicalize().ok());
    let narrow = |p: &PathBuf| p.components().count() > 2 && home.as_ref().is_none_or(|h| !h.starts_with(p));
    let program = program.into_iter().map(PathBuf::from);
    let told = program.chain(report.parent().map(Path::to_owned)).filter_map(|p| p.canonicalize().ok()).filter(narrow);
    // Accept the current directory whatever it is, since the user chose it.
    let here = std::env::current_dir().ok().and_then(|p| p.canonicalize().ok());
    ["/usr", "/opt"].into_iter().map(PathBuf::from).chain(told).chain(here).collect()
}

/// File name extensions for source files: CUDA, C, C++, Python, Fortran, HIP, `OpenCL`, Rust, Julia, and PTX.
const SOURCES: [&str; 26] = [
    "cu", "cuh", "c", "cc", "cpp", "cxx", "c++", "h", "hh", "hpp", "hxx", "h++", "inl", "inc", "ipp", "tcc", "py", "pyx", "f", "f90",
    "cuf", "hip", "cl", "rs", "jl", "ptx",
];

/// Reads a source file from disk. Since the path comes from an untrusted report, a file must be in one of the
/// directories, have a source file extension, and not be hidden or in a pseudo file system.
pub fn read_source(name: &str, folders: &[PathBuf]) -> Option<String> {
    let path = Path::new(name);
    // Resolve symlinks first, because they could lead out of the directory.
    let path = path.canonicalize().ok().filter(|_| path.is_absolute())?;
    if ["/proc", "/sys", "/dev"].iter().any(|p| path.starts_with(p)) {
        return None;
    }
    let below = folders.iter().find_map(|f| path.strip_prefix(f).ok())?;
    let hidden = below.components().any(|c| c.as_os_str().to_string_lossy().starts_with('.'));
    let source = path.extension().and_then(|e| e.to_str()).is_some_and(|e| SOURCES.contains(&e.to_lowercase().as_str()));
    if hidden || !source {
        return None;
    }
    let mut bytes = Vec::new();
    open::open_regular(&path).ok()?.take(MOST_SOURCE + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= MOST_SOURCE).then(|| String::from_utf8_lossy(&bytes).into_owned())
}
