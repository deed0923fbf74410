//! The hand on a running trace: each traced process listens on a socket beside its trace.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How long a process may take to answer.
const PATIENCE: Duration = Duration::from_secs(15);

/// Says a word (`open`, `close`, `flush`, `state`) to every process whose trace begins with that path, and returns what each answered: its process id
/// and a word. Sockets of processes that are gone are left out.
pub fn tell(output: &Path, word: &str) -> io::Result<Vec<(u32, String)>> {
    let folder = output.parent().unwrap_or(Path::new("/"));
    let stem = output.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let opened = File::open(folder)?;
    let mut out = Vec::new();
    for entry in std::fs::read_dir(folder)?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name.strip_prefix(&format!("{stem}.")).and_then(|n| n.strip_suffix(".sock"));
        let Some(pid) = pid.and_then(|p| p.parse().ok()) else { continue };
        // A socket's path has at most 107 bytes: the folder goes in by its descriptor.
        let Ok(mut socket) = UnixStream::connect(format!("/proc/self/fd/{}/{name}", opened.as_raw_fd())) else { continue };
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.write_all(word.as_bytes())?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer)?;
        out.push((pid, answer.trim().to_owned()));
    }
    out.sort();
    Ok(out)
}
