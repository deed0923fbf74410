//! Opens files that the user did not name, such as those in a folder that others can write to, or those that a report
//! names: they may be pipes or devices.

use nix::fcntl::OFlag;
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a regular file for reading. Refuses anything else without blocking. The check applies to the opened file, not
/// to the path, which may change before or after.
pub fn open_regular(path: &Path) -> Result<File> {
    let file = OpenOptions::new().read(true).custom_flags((OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(Error::new(ErrorKind::InvalidInput, "it is not a regular file")) }
}

/// Reads all bytes of a regular file.
pub fn read_regular(path: &Path) -> Result<Vec<u8>> {
    let mut file = open_regular(path)?;
    let mut bytes = Vec::new();
    let size = file.metadata()?.len();
    // A file that claims to be larger than the memory must cause an error, not abort the program.
    bytes.try_reserve_exact(usize::try_from(size).unwrap_or(usize::MAX))?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_regular_files_are_opened_and_nothing_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        symlink(at("pipe"), at("link to a pipe")).unwrap();
        symlink("/dev/zero", at("link to a device")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        std::fs::create_dir(at("folder")).unwrap();
        for name in ["pipe", "link to a pipe", "link to a device", "socket", "folder", "nothing"] {
            assert!(open_regular(&at(name)).is_err() && read_regular(&at(name)).is_err(), "{name}");
        }
        std::fs::write(at("file"), "text").unwrap();
        symlink(at("file"), at("link to a file")).unwrap();
        assert_eq!(read_regular(&at("file")).unwrap(), b"text");
        assert_eq!(read_regular(&at("link to a file")).unwrap(), b"text");
    }
}
