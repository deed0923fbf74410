//! Private folders and files: reports contain environment variables and command lines, which other users must not read,
//! and files in a shared folder may belong to another user.

use nix::errno::Errno;
use nix::fcntl::{OFlag, openat, renameat};
use nix::sys::stat::Mode;
use nix::sys::statvfs::FsFlags;
use nix::unistd::{Group, UnlinkatFlags, User, getgid, getgroups, getuid, unlinkat};
use std::collections::hash_map::RandomState;
use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions, TryLockError};
use std::hash::BuildHasher;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Write permission for group and others.
const OTHERS_WRITE: u32 = 0o022;
/// All permissions for group and others.
const OTHERS: u32 = 0o077;
const STICKY: u32 = 0o1000;
/// Number of names to try for a temporary file.
const ATTEMPTS: usize = 16;

fn permission_denied(why: &str) -> Error {
    Error::new(ErrorKind::PermissionDenied, why)
}

fn check_owner(meta: &Metadata) -> Result<()> {
    if meta.uid() == getuid().as_raw() { Ok(()) } else { Err(permission_denied("it belongs to another user")) }
}

/// Returns true if a folder belongs to this user.
pub fn is_mine(folder: &Path) -> bool {
    std::fs::metadata(folder).is_ok_and(|m| check_owner(&m).is_ok())
}

/// A folder of this user, held open: files are created relative to the folder that was checked, even if its path is
/// replaced in the meantime.
#[derive(Debug)]
pub struct Folder {
    dir: File,
    path: PathBuf,
}

impl Folder {
    /// Creates the folder and its parents so that only this user has access. Fails if the folder exists and belongs to
    /// another user, or is a symlink that another user could have created.
    pub fn create_private(path: &Path) -> Result<Self> {
        if let Some(above) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
            DirBuilder::new().recursive(true).mode(0o700).create(above)?;
        }
        match DirBuilder::new().mode(0o700).create(path) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            other => other?,
        }
        let dir = open_folder(path)?;
        let meta = dir.metadata()?;
        check_owner(&meta)?;
        if meta.mode() & OTHERS != 0 {
            dir.set_permissions(Permissions::from_mode(0o700))?;
        }
        Ok(Self { dir, path: path.to_owned() })
    }

    /// Path of the folder with links resolved.
    fn resolved_path(&self) -> Result<PathBuf> {
        let own = format!("/proc/self/fd/{}", self.dir.as_raw_fd());
        std::fs::read_link(own).or_else(|_| std::fs::canonicalize(&self.path))
    }

    /// Returns the resolved path of the folder if only this user and root can replace any part of it, because programs
    /// load files from the folder. The error names the folder that others can write to.
    pub fn resolve_unshared(&self) -> Result<PathBuf> {
        let real = self.resolved_path()?;
        let mut below = self.dir.metadata()?;
        for above in real.ancestors().skip(1) {
            let meta = std::fs::metadata(above)?;
            let owned = meta.uid() == 0 || meta.uid() == getuid().as_raw();
            // In a sticky folder, only the owner of an entry can rename or remove it.
            let kept = meta.mode() & STICKY != 0 && (below.uid() == 0 || below.uid() == getuid().as_raw());
            // With an access control list, the group permissions are the maximum for all users named in it.
            let by_group = || has_access_list(above) || !is_root_only_group(meta.gid()) && !is_own_group(meta.gid());
            let open = meta.mode() & 0o002 != 0 || meta.mode() & 0o020 != 0 && by_group();
            if !owned || (open && !kept) {
                return Err(permission_denied(&format!(
                    "other users can write to {}, and could put something else there",
                    above.display()
                )));
            }
            below = meta;
        }
        Ok(real)
    }

    /// Fails if the folder's file system is mounted noexec.
    pub fn check_loadable(&self) -> Result<()> {
        let flags = nix::sys::statvfs::fstatvfs(&self.dir)?.flags();
        if flags.contains(FsFlags::ST_NOEXEC) {
            Err(permission_denied("its file system is mounted noexec: nothing can be loaded from it"))
        } else {
            Ok(())
        }
    }

    /// Writes a temporary file and renames it once it is complete, because other programs may be reading the old file.
    pub fn write_file(&self, name: &str, bytes: &[u8], mode: u32) -> Result<()> {
        if self.read_own_file(name, bytes.len()).is_some_and(|there| there == bytes) {
            return Ok(());
        }
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        // Processes on other machines or in other containers may have the same id, so the name also contains a random
        // number.
        let made = (0..ATTEMPTS).find_map(|_| {
            let own = format!("{name}.{:016x}", RandomState::new().hash_one(std::process::id()));
            match openat(&self.dir, own.as_str(), flags, Mode::from_bits_truncate(mode)) {
                Err(Errno::EEXIST) => None,
                other => Some(other.map(|fd| (own, File::from(fd)))),
            }
        });
        let (own, mut file) = made.unwrap_or(Err(Errno::EEXIST))?;
        // Restores the permissions that the umask cleared.
        let written = file.write_all(bytes).and_then(|()| file.set_permissions(Permissions::from_mode(mode)));
        let kept = written.and_then(|()| Ok(renameat(&self.dir, own.as_str(), &self.dir, name)?));
        if kept.is_err() {
            let _ = unlinkat(&self.dir, own.as_str(), UnlinkatFlags::NoRemoveDir);
        }
        kept
    }

    /// Reads a file of this user if it has the size `size`.
    fn read_own_file(&self, name: &str, size: usize) -> Option<Vec<u8>> {
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let file = File::from(openat(&self.dir, name, flags, Mode::empty()).ok()?);
        let meta = file.metadata().ok().filter(|m| m.is_file() && m.len() == size as u64 && m.uid() == getuid().as_raw())?;
        let mut bytes = Vec::with_capacity(size);
        (meta.mode() & OTHERS_WRITE == 0).then_some(())?;
        file.take(size as u64).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }
}

/// Opens a folder. Follows a symlink only if no other user could have created it.
fn open_folder(path: &Path) -> Result<File> {
    let open = |flags: OFlag| OpenOptions::new().read(true).custom_flags((flags | OFlag::O_DIRECTORY).bits()).open(path);
    match open(OFlag::O_NOFOLLOW) {
        Err(e) if is_errno(&e, Errno::ELOOP) || is_errno(&e, Errno::ENOTDIR) => {
            let above = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
            check_not_shared(above).map_err(|_| permission_denied("it is a link or a file, not a folder, where other users can write"))?;
            open(OFlag::empty())
        }
        other => other,
    }
}

fn is_errno(e: &Error, errno: Errno) -> bool {
    e.raw_os_error() == Some(errno as i32)
}

/// Returns true if a folder has a POSIX access control list, or if this is unknown: another user may then have write
/// permission that the mode shows as the group's.
fn has_access_list(folder: &Path) -> bool {
    match rustix::fs::getxattr(folder, "system.posix_acl_access", &mut [0_u8; 512][..]) {
        Ok(size) => size > 0,
        Err(e) => e != rustix::io::Errno::NODATA && e != rustix::io::Errno::NOTSUP,
    }
}

/// Returns true for root's group if root is its only member: in some containers, all users are in that group.
fn is_root_only_group(gid: u32) -> bool {
    let member = || getgid().as_raw() == 0 || getgroups().map_or(true, |all| all.iter().any(|g| g.as_raw() == 0));
    gid == 0 && (getuid().is_root() || !member())
}

/// Resolves the path of a file that will be loaded into a program. Fails if anyone but this user, root or `owners`
/// could replace it or a folder above it. Group write permission is allowed, because groups may share their work.
pub fn resolve_trusted(path: &Path, owners: &[u32]) -> Result<PathBuf> {
    let real = std::fs::canonicalize(path)?;
    let trusted = |uid: u32| uid == 0 || uid == getuid().as_raw() || owners.contains(&uid);
    let mut below: Option<Metadata> = None;
    for part in real.ancestors() {
        let meta = std::fs::metadata(part)?;
        let kept = meta.mode() & STICKY != 0 && below.is_some_and(|b| trusted(b.uid()));
        if !trusted(meta.uid()) || meta.mode() & 0o002 != 0 && !kept {
            return Err(permission_denied(&format!("other users can write to {}, and could put something else there", part.display())));
        }
        below = Some(meta);
    }
    Ok(real)
}

/// Returns true if this user is a group's only member: most distributions create such a group for each user.
fn is_own_group(gid: u32) -> bool {
    let Ok(Some(user)) = User::from_uid(getuid()) else { return false };
    let Ok(Some(group)) = Group::from_gid(gid.into()) else { return false };
    user.gid.as_raw() == gid && group.name == user.name && group.mem.iter().all(|m| *m == user.name)
}

/// Creates a folder like [`Folder::create_private`].
pub fn create_folder(folder: &Path) -> Result<()> {
    Folder::create_private(folder).map(drop)
}

/// Folder for a user without a home directory, below the temporary directory.
pub fn homeless_folder() -> PathBuf {
    std::env::temp_dir().join(format!("warpscope-{}", getuid()))
}

/// Fails if others could have put files into an existing folder: it belongs to neither this user nor root, or others
/// may write to it.
pub fn check_not_shared(folder: &Path) -> Result<()> {
    let meta = std::fs::metadata(folder)?;
    if meta.uid() != 0 {
        check_owner(&meta)?;
    }
    if meta.mode() & OTHERS_WRITE != 0 {
        return Err(permission_denied(
            "other users can write to it; remove that permission (chmod go-w), or set XDG_DATA_HOME to another folder",
        ));
    }
    Ok(())
}

/// Writes a file into a private folder ([`Folder::write_file`]) and returns its path.
pub fn write_private_file(folder: &Path, name: &str, bytes: &[u8], mode: u32) -> Result<PathBuf> {
    Folder::create_private(folder)?.write_file(name, bytes, mode)?;
    Ok(folder.join(name))
}

/// Opens a file of this user for writing, in a folder that others may write to, and locks it until all processes have
/// closed it. Refuses symlinks, pipes, files of other users, and files locked by another process.
pub fn open_locked_output(path: &Path) -> Result<File> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let file = OpenOptions::new().create(true).truncate(false).append(true).mode(0o600).custom_flags(flags.bits()).open(path)?;
    let meta = file.metadata()?;
    check_owner(&meta)?;
    if !meta.is_file() {
        return Err(permission_denied("it is not a regular file"));
    }
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(permission_denied("another process writes it")),
        Err(TryLockError::Error(e)) => Err(e),
    }
}

/// Opens a lock file, creating it if needed. Refuses everything but regular files: opening a pipe, for example, would
/// block.
pub fn open_lock_file(path: &Path) -> Result<File> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).custom_flags(OFlag::O_NONBLOCK.bits()).open(path);
    // It is a pipe without a reader.
    let file = file.map_err(|e| if is_errno(&e, Errno::ENXIO) { permission_denied("it is not a regular file") } else { e })?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(permission_denied("it is not a regular file")) }
}

/// Reads a small file written by hand (settings, a theme) of at most `most` bytes. Refuses pipes and devices without
/// reading them.
pub fn read_small_text(path: &Path, most: u64) -> Result<String> {
    let file = OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(Error::new(ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut text = String::new();
    // Files in /proc have no size.
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

    fn allow(path: &Path, mode: u32) {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn folders_are_private_and_links_of_others_lead_nowhere() {
        let home = tempfile::tempdir().unwrap();
        let ours = home.path().join("a/b");
        create_folder(&ours).unwrap();
        assert_eq!(std::fs::metadata(&ours).unwrap().mode() & 0o777, 0o700);
        allow(&ours, 0o755);
        create_folder(&ours).unwrap();
        assert_eq!(std::fs::metadata(&ours).unwrap().mode() & 0o777, 0o700);
        let link = home.path().join("link");
        symlink(&ours, &link).unwrap();
        // Only this user can write to the folder, so the link can be trusted.
        create_folder(&link).unwrap();
        allow(&ours, 0o755);
        for shared in [0o777, 0o1777, 0o770] {
            allow(home.path(), shared);
            assert!(create_folder(&link).unwrap_err().to_string().contains("link"), "{shared:o}");
            assert_eq!(std::fs::metadata(&ours).unwrap().mode() & 0o777, 0o755, "what the link leads to is as it was");
        }
        allow(home.path(), 0o700);
        allow(&ours, 0o775);
        assert!(check_not_shared(&ours).unwrap_err().to_string().contains("chmod"));
        allow(&ours, 0o755);
        check_not_shared(&ours).unwrap();
    }

    #[test]
    fn nothing_is_loaded_from_below_a_folder_that_others_can_write_to() {
        let home = tempfile::tempdir().unwrap();
        let shared = home.path().join("shared");
        let own = Folder::create_private(&shared.join("own")).unwrap();
        assert_eq!(own.resolve_unshared().unwrap(), std::fs::canonicalize(shared.join("own")).unwrap());
        // Users with write permission can replace the folder; in a sticky folder, they can replace only their own
        // entries.
        for (mode, refused) in [(0o777, true), (0o1777, false), (0o755, false), (0o1775, false), (0o702, true)] {
            allow(&shared, mode);
            assert_eq!(own.resolve_unshared().is_err(), refused, "{mode:o}");
        }
        allow(&shared, 0o777);
        assert!(own.resolve_unshared().unwrap_err().to_string().contains("shared"));
    }

    #[test]
    fn a_user_named_in_an_access_list_can_write_to_a_folder() {
        let home = tempfile::tempdir().unwrap();
        let shared = home.path().join("shared");
        let own = Folder::create_private(&shared.join("own")).unwrap();
        // acl(5), Linux format: version 2, then tag, permissions and id of the owner, user 65534, the group, mask,
        // others.
        let entries = [(1, 7, u32::MAX), (2, 7, 65534), (4, 5, u32::MAX), (16, 7, u32::MAX), (32, 5, u32::MAX)];
        let entry =
            |(tag, permissions, id): (u16, u16, u32)| [&tag.to_le_bytes()[..], &permissions.to_le_bytes(), &id.to_le_bytes()].concat();
        let list = [2_u32.to_le_bytes().to_vec(), entries.into_iter().flat_map(entry).collect()].concat();
        assert!(!has_access_list(&shared));
        let set = rustix::fs::setxattr(&shared, "system.posix_acl_access", &list, rustix::fs::XattrFlags::empty());
        if set == Err(rustix::io::Errno::NOTSUP) {
            // This file system has no access control lists.
            return;
        }
        set.unwrap();
        assert!(has_access_list(&shared) && std::fs::metadata(&shared).unwrap().mode() & 0o777 == 0o775);
        assert!(own.resolve_unshared().unwrap_err().to_string().contains("shared"));
        allow(&shared, 0o755);
        own.resolve_unshared().unwrap();
    }

    #[test]
    fn what_others_can_replace_is_not_loaded() {
        let home = tempfile::tempdir().unwrap();
        let lib = home.path().join("lib");
        std::fs::create_dir(&lib).unwrap();
        let file = lib.join("libx.so");
        std::fs::write(&file, "").unwrap();
        allow(&lib, 0o755);
        assert_eq!(resolve_trusted(&file, &[]).unwrap(), std::fs::canonicalize(&file).unwrap());
        for (mode, refused) in [(0o777, true), (0o1777, false), (0o775, false)] {
            allow(&lib, mode);
            assert_eq!(resolve_trusted(&file, &[]).is_err(), refused, "{mode:o}");
        }
        allow(&lib, 0o755);
        allow(&file, 0o666);
        assert!(resolve_trusted(&file, &[]).unwrap_err().to_string().contains("libx.so"));
        allow(&file, 0o644);
        let elsewhere = home.path().join("elsewhere");
        std::fs::write(&elsewhere, "").unwrap();
        symlink(&elsewhere, lib.join("link")).unwrap();
        assert_eq!(resolve_trusted(&lib.join("link"), &[]).unwrap(), std::fs::canonicalize(&elsewhere).unwrap());
        allow(&elsewhere, 0o666);
        assert!(resolve_trusted(&lib.join("link"), &[]).is_err(), "the file behind a link counts");
    }

    #[test]
    fn a_file_that_is_kept_is_this_users_whole_and_no_link() {
        let home = tempfile::tempdir().unwrap();
        let (folder, elsewhere) = (Folder::create_private(&home.path().join("f")).unwrap(), home.path().join("elsewhere"));
        std::fs::write(&elsewhere, "theirs").unwrap();
        let path = home.path().join("f/x");
        for before in ["link", "file", "same", "pipe", "writable"] {
            let _ = std::fs::remove_file(&path);
            match before {
                "link" => symlink(&elsewhere, &path).unwrap(),
                "pipe" => nix::unistd::mkfifo(&path, Mode::S_IRWXU).unwrap(),
                "same" | "writable" => std::fs::write(&path, "ours").unwrap(),
                _ => std::fs::write(&path, "older").unwrap(),
            }
            if before == "writable" {
                allow(&path, 0o666);
            }
            folder.write_file("x", b"ours", 0o600).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "ours", "{before}");
            let meta = std::fs::symlink_metadata(&path).unwrap();
            assert!(meta.is_file() && meta.mode() & OTHERS_WRITE == 0, "{before}");
        }
        assert_eq!(std::fs::read_to_string(&elsewhere).unwrap(), "theirs");
        // Writes go to the opened folder, even after its name has passed to another folder.
        std::fs::rename(home.path().join("f"), home.path().join("moved")).unwrap();
        symlink(home.path(), home.path().join("f")).unwrap();
        folder.write_file("y", b"1", 0o600).unwrap();
        assert!(home.path().join("moved/y").is_file() && !home.path().join("y").exists());
    }

    #[test]
    fn nothing_is_waited_for() {
        let home = tempfile::tempdir().unwrap();
        let pipe = home.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert!(read_small_text(&pipe, 10).unwrap_err().to_string().contains("not a regular file"));
        assert!(open_lock_file(&pipe).is_err());
        assert!(read_small_text(Path::new("/dev/zero"), 10).is_err());
        let file = home.path().join("file");
        std::fs::write(&file, "0123456789").unwrap();
        assert_eq!(read_small_text(&file, 10).unwrap(), "0123456789");
        assert!(read_small_text(&file, 9).unwrap_err().to_string().contains("larger"));
        open_lock_file(&file).unwrap();
        open_lock_file(&home.path().join("lock")).unwrap();
    }
}
