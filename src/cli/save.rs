//! What the explorer writes to files: scripts that the user names, and what no clipboard takes.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Saves an executable script; a file that is there stays as it is.
pub fn script(path: &Path, text: &str) -> Result<String, String> {
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o755).open(path);
    match file.and_then(|mut f| f.write_all(text.as_bytes())) {
        Ok(()) => Ok(format!("saved {}; run it with sh", path.display())),
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Err(format!("{} already exists; choose another name", path.display())),
        Err(e) => Err(format!("could not save {}: {e}", path.display())),
    }
}

/// Saves a text where the user can find it; gives the path.
pub fn copied(text: &str, folder: &Path) -> std::io::Result<PathBuf> {
    crate::import::cache::make_private(folder)?;
    let path = folder.join("copied.txt");
    std::fs::write(&path, text)?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_copied_is_saved() {
        let folder = tempfile::tempdir().unwrap();
        let path = copied("text", folder.path()).unwrap();
        assert_eq!(std::fs::read_to_string(path).unwrap(), "text");
    }
}
