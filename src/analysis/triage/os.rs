//! OS calls that the launching threads made while a device was idle.

use super::finding::{Place, PlaceKind};
use super::idle_causes::Piece;
use super::run_context::RunContext;
use super::time_category::Cause;
use rustc_hash::FxHashMap;

/// Functions that write, open or close files, by the beginnings of their names. `read` is none of them, because it may
/// wait for another process.
const FILES: &[&str] = &[
    "close",
    "creat",
    "fallocate",
    "fclose",
    "fcntl",
    "fdatasync",
    "fflush",
    "flock",
    "fopen",
    "fsync",
    "ftruncate",
    "fwrite",
    "mkdir",
    "msync",
    "open",
    "pread",
    "pwrite",
    "rename",
    "stat",
    "sync",
    "unlink",
    "write",
];

/// Returns true for a call that waits for a file, not for another thread or process.
pub fn is_file_call(name: &str) -> bool {
    let name = name.trim_start_matches('_');
    FILES.iter().any(|f| name.starts_with(f))
}

/// OS runtime calls of the launching threads in idle time with a cause, longest total first. Only the longest of the idle
/// intervals that are `wanted` are examined; they account for nearly all of the time.
pub fn os_calls_in(case: &RunContext<'_>, cause: Cause, wanted: impl Fn(&Piece) -> bool) -> Vec<(String, Place)> {
    let os = &case.profile.os_calls;
    let Some(pieces) = case.pieces.get(&cause).filter(|_| !os.start.is_empty()) else { return Vec::new() };
    let mut by_thread: FxHashMap<(u32, u32), Vec<Piece>> = FxHashMap::default();
    for piece in pieces.iter().filter(|p| wanted(p)) {
        if let Some(lane) = piece.lane.and_then(|l| case.host.lanes.get(l)) {
            by_thread.entry((lane.pid, lane.tid)).or_default().push(*piece);
        }
    }
    let mut threads: Vec<Option<Vec<Piece>>> = case.profile.threads.iter().map(|t| by_thread.remove(&(t.pid, t.tid))).collect();
    for list in threads.iter_mut().flatten() {
        list.sort_unstable_by_key(|p| p.start);
    }
    let mut sums: FxHashMap<u32, (i64, Piece)> = FxHashMap::default();
    for row in 0..os.start.len() {
        let Some(list) = threads.get(os.thread[row] as usize).and_then(Option::as_ref) else { continue };
        let (start, end) = (os.start[row], os.start[row].saturating_add(os.duration[row]));
        let from = list.partition_point(|p| p.end <= start);
        for piece in list[from..].iter().take_while(|p| p.start < end) {
            let ns = end.min(piece.end) - start.max(piece.start);
            let sum = sums.entry(os.name[row]).or_insert((0, *piece));
            sum.0 += ns;
            if piece.end - piece.start > sum.1.end - sum.1.start {
                sum.1 = *piece;
            }
        }
    }
    let mut out: Vec<(u32, (i64, Piece))> = sums.into_iter().collect();
    out.sort_by_key(|(name, (ns, _))| (std::cmp::Reverse(*ns), *name));
    let name = |n: u32| os.names.get(n as usize).map_or_else(String::new, ToString::to_string);
    out.into_iter()
        .map(|(n, (ns, piece))| {
            let place = Place { kind: PlaceKind::Call, name: name(n), start: piece.start, end: piece.end, ns: Some(ns), rank: None };
            (name(n), place)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::is_file_call;

    #[test]
    fn files_are_told_from_other_waits() {
        assert!(["pwrite64", "__open64", "fsync", "fcntl", "write", "close"].into_iter().all(is_file_call));
        assert!(!["read", "poll", "futex", "pthread_cond_wait", "recvmsg", "epoll_wait"].into_iter().any(is_file_call));
    }
}
