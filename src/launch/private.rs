//! Folders and files that are this user's own: what reports hold (environments, commands) is nobody else's business, and what lies in a place that
//! others can write to may be theirs.

use nix::fcntl::OFlag;
use nix::unistd::getuid;
use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Write permission of others, and of the group.
const OTHERS_WRITE: u32 = 0o022;
/// Everything of others and of the group.
const OTHERS: u32 = 0o077;

fn denied(why: &str) -> Error {
    Error::new(ErrorKind::PermissionDenied, why)
}

fn mine(meta: &Metadata) -> Result<()> {
    if meta.uid() == getuid().as_raw() { Ok(()) } else { Err(denied("it belongs to another user")) }
}

/// Whether a folder is this user's.
#[must_use]
pub fn is_mine(folder: &Path) -> bool {
    std::fs::metadata(folder).is_ok_and(|m| mine(&m).is_ok())
}

/// Makes a folder, and those above it, that only this user can look into. Fails when it is there and somebody else's.
pub fn make(folder: &Path) -> Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let meta = std::fs::metadata(folder)?;
    mine(&meta)?;
    if meta.mode() & OTHERS != 0 {
        std::fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// As [`make`], in a folder that everybody can write to, under a name that everybody knows: a link of somebody else's in its place leads nowhere.
pub fn make_in_shared(folder: &Path) -> Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
        other => other?,
    }
    // What was opened is what is looked at, whatever is put in its place meanwhile.
    let flags = OFlag::O_NOFOLLOW | OFlag::O_DIRECTORY;
    let opened = OpenOptions::new().read(true).custom_flags(flags.bits()).open(folder).map_err(|e| match e.raw_os_error() {
        Some(code) if code == nix::errno::Errno::ELOOP as i32 || code == nix::errno::Errno::ENOTDIR as i32 => {
            denied("it is a link or a file, not a folder")
        }
        _ => e,
    })?;
    let meta = opened.metadata()?;
    mine(&meta)?;
    if meta.mode() & OTHERS != 0 { opened.set_permissions(Permissions::from_mode(0o700)) } else { Ok(()) }
}

/// Fails when others could have put something into a folder that is there: it is not this user's (or root's, who can do that anyway), or they may write
/// to it.
pub fn check(folder: &Path) -> Result<()> {
    let meta = std::fs::metadata(folder)?;
    if meta.uid() != 0 {
        mine(&meta)?;
    }
    if meta.mode() & OTHERS_WRITE != 0 {
        return Err(denied("other users can write to it; remove that permission (chmod go-w), or set XDG_DATA_HOME to another folder"));
    }
    Ok(())
}

/// A file with these bytes in a folder of this user's own, under its name only when it is whole: other programs may be reading it.
pub fn keep(folder: &Path, name: &str, bytes: &[u8], mode: u32) -> Result<PathBuf> {
    make(folder)?;
    let path = folder.join(name);
    if std::fs::read(&path).is_ok_and(|there| there == bytes) {
        return Ok(path);
    }
    let own = folder.join(format!("{name}.{}", std::process::id()));
    let _ = std::fs::remove_file(&own);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&own)?;
    file.write_all(bytes).and_then(|()| file.set_permissions(Permissions::from_mode(mode)))?;
    std::fs::rename(&own, &path)?;
    Ok(path)
}

/// Opens a lock, made when it is not there. What is in its place and no plain file (a pipe, say, that would be waited for) is refused.
pub fn lock_file(path: &Path) -> Result<File> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).custom_flags(OFlag::O_NONBLOCK.bits()).open(path);
    // A pipe that nobody reads.
    let file =
        file.map_err(|e| if e.raw_os_error() == Some(nix::errno::Errno::ENXIO as i32) { denied("it is not a regular file") } else { e })?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(denied("it is not a regular file")) }
}

/// The text of a file that a person writes by hand, at most `most` bytes of it: a setting, a theme. Pipes and devices are refused before they are read.
pub fn small_text(path: &Path, most: u64) -> Result<String> {
    let file = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(Error::new(ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut text = String::new();
    // Files of /proc have no size.
    file.take(most + 1).read_to_string(&mut text)?;
    if text.len() as u64 > most {
        return Err(Error::new(ErrorKind::FileTooLarge, format!("it is larger than {most} bytes")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn folders_are_private_and_links_lead_nowhere() {
        let home = tempfile::tempdir().unwrap();
        let ours = home.path().join("a/b");
        make(&ours).unwrap();
        assert_eq!(std::fs::metadata(&ours).unwrap().mode() & 0o777, 0o700);
        std::fs::set_permissions(&ours, Permissions::from_mode(0o755)).unwrap();
        make_in_shared(&ours).unwrap();
        assert_eq!(std::fs::metadata(&ours).unwrap().mode() & 0o777, 0o700);
        let link = home.path().join("link");
        symlink(&ours, &link).unwrap();
        assert!(make_in_shared(&link).unwrap_err().to_string().contains("link"));
        make(&link).unwrap();
        std::fs::set_permissions(&ours, Permissions::from_mode(0o775)).unwrap();
        assert!(check(&ours).unwrap_err().to_string().contains("chmod"));
        std::fs::set_permissions(&ours, Permissions::from_mode(0o755)).unwrap();
        check(&ours).unwrap();
    }

    #[test]
    fn nothing_is_waited_for() {
        let home = tempfile::tempdir().unwrap();
        let pipe = home.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(small_text(&pipe, 10).unwrap_err().to_string().contains("not a regular file"));
        assert!(lock_file(&pipe).is_err());
        assert!(small_text(Path::new("/dev/zero"), 10).is_err());
        let file = home.path().join("file");
        std::fs::write(&file, "0123456789").unwrap();
        assert_eq!(small_text(&file, 10).unwrap(), "0123456789");
        assert!(small_text(&file, 9).unwrap_err().to_string().contains("larger"));
        lock_file(&file).unwrap();
        lock_file(&home.path().join("lock")).unwrap();
    }
}
