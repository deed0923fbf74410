//! What the explorer writes to files that the user names.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Saves an executable script; a file that is there stays as it is.
pub fn script(path: &Path, text: &str) -> Result<String, String> {
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o755).open(path);
    match file.and_then(|mut f| f.write_all(text.as_bytes())) {
        Ok(()) => Ok(format!("saved {}; run it with sh", path.display())),
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Err(format!("{} already exists; choose another name", path.display())),
        Err(e) => Err(format!("could not save {}: {e}", path.display())),
    }
}
