//! Identity of the host: its name, its current boot, and a test for disks that are shared with other machines.

use nix::sys::statfs::{FsType, statfs};
use std::path::Path;

fn read_line(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|t| t.trim().to_owned())
}

pub fn hostname() -> Option<String> {
    read_line("/proc/sys/kernel/hostname")
}

/// Id of the machine's current boot.
pub fn boot_id() -> String {
    read_line("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

/// Identifies the scope in which a process id is unique: this boot and the PID namespace.
pub fn pid_scope() -> String {
    let numbering = std::fs::read_link("/proc/self/ns/pid").map(|p| p.display().to_string()).unwrap_or_default();
    format!("{} {numbering}", boot_id())
}

/// Returns true if other machines may see a folder: detects network and cluster file systems by their magic numbers
/// (statfs(2)).
pub fn is_shared_disk(folder: &Path) -> bool {
    // NFS, SMB, CIFS, SMB2, Lustre, GPFS, FUSE (sshfs and many more), AFS, 9P, BeeGFS, Ceph.
    const SHARED: [FsType; 11] = [
        FsType(0x6969),
        FsType(0x517b),
        FsType(0xff53_4d42),
        FsType(0xfe53_4d42),
        FsType(0x0bd0_0bd0),
        FsType(0x4750_4653),
        FsType(0x6573_5546),
        FsType(0x5346_414f),
        FsType(0x0102_1997),
        FsType(0x1983_0326),
        FsType(0x00c3_6400),
    ];
    statfs(folder).is_ok_and(|s| SHARED.contains(&s.filesystem_type()))
}
