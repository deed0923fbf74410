//! Memory map of a process (`/proc/PID/maps`).

use std::io;

/// A line of the memory map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    pub start: u64,
    pub end: u64,
    /// Permissions, such as `r-xp`.
    pub permissions: String,
    /// Offset in the file, bytes.
    pub offset: u64,
    pub inode: u64,
    /// Path of the file; empty for other memory. The path of a file that was replaced ends in ` (deleted)`.
    pub path: String,
}

impl Mapping {
    pub fn is_code(&self) -> bool {
        self.permissions == "r-xp" && self.inode != 0
    }

    /// Name of the file without its folders.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

fn parse_mapping(line: &str) -> Option<Mapping> {
    let mut rest = line;
    let mut word = || {
        let (first, after) = rest.split_once(' ').unwrap_or((rest, ""));
        rest = after;
        first
    };
    let (range, permissions, offset, _device, inode) = (word(), word(), word(), word(), word());
    let (start, end) = range.split_once('-')?;
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    Some(Mapping {
        start: hex(start)?,
        end: hex(end)?,
        permissions: permissions.to_owned(),
        offset: hex(offset)?,
        inode: inode.parse().ok()?,
        path: rest.trim_start().to_owned(),
    })
}

/// Reads the memory map of a process, sorted by address.
pub fn read_map(pid: i32) -> io::Result<Vec<Mapping>> {
    let text = std::fs::read(format!("/proc/{pid}/maps"))?;
    Ok(String::from_utf8_lossy(&text).lines().filter_map(parse_mapping).collect())
}

/// Returns the address of at least `bytes` of free memory, in the middle of the largest gap between mappings.
pub fn find_gap(map: &[Mapping], bytes: u64) -> Option<u64> {
    // Pages have up to 64 KiB on aarch64.
    const PAGE: u64 = 1 << 16;
    // Higher addresses belong to the kernel.
    const END: u64 = if cfg!(target_arch = "aarch64") { 1 << 48 } else { 1 << 47 };
    let programs = map.windows(2).filter(|pair| pair[1].start < END);
    let (size, start) = programs.map(|pair| (pair[1].start.saturating_sub(pair[0].end), pair[0].end)).max()?;
    // Leave room on both sides: stacks and heaps grow into gaps.
    (size >= bytes.saturating_mul(16)).then(|| (start + size / 2) / PAGE * PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_map_are_read() {
        let code = parse_mapping("7f1c2a028000-7f1c2a1b0000 r-xp 00028000 08:01 2097 /usr/lib/a b/libc.so.6").unwrap();
        assert_eq!((code.start, code.offset, code.inode, code.name()), (0x7f1c_2a02_8000, 0x28000, 2097, "libc.so.6"));
        assert!(code.is_code());
        let stack = parse_mapping("7ffd000-7ffe000 rw-p 00000000 00:00 0                          [stack]").unwrap();
        assert!(!stack.is_code() && stack.path == "[stack]");
        assert_eq!(parse_mapping(""), None);
    }

    #[test]
    fn gaps_leave_room_on_both_sides() {
        let at = |start: u64, end: u64| Mapping { start, end, permissions: String::new(), offset: 0, inode: 0, path: String::new() };
        let map = [at(0x1000, 0x2000), at(0x200_0000, 0x201_0000), at(0x2_0000_0000, 0x3_0000_0000)];
        let found = find_gap(&map, 1 << 20).unwrap();
        assert!(found.is_multiple_of(4096) && found > 0x201_0000 + (1 << 24) && found + (1 << 24) < 0x2_0000_0000);
        assert_eq!(find_gap(&map[..1], 1), None);
        assert_eq!(find_gap(&map[..2], 1 << 30), None);
    }
}
