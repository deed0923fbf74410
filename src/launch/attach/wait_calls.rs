//! System calls in which a thread can be used to load the object.

/// A system call, with its numbers on x86-64 and aarch64; -1 if there is none.
type SystemCall = (&'static str, i64, i64);

/// System calls in which a thread holds no lock of the C library, longest waits first. A thread in `futex` may be
/// inside the C library, but it waits for a lock that it does not hold.
const WAITS: [SystemCall; 16] = [
    ("poll", 7, -1),
    ("ppoll", 271, 73),
    ("epoll_wait", 232, -1),
    ("epoll_pwait", 281, 22),
    ("epoll_pwait2", 441, 441),
    ("select", 23, -1),
    ("pselect6", 270, 72),
    ("clock_nanosleep", 230, 115),
    ("nanosleep", 35, 101),
    ("wait4", 61, 260),
    ("pause", 34, -1),
    ("futex", 202, 98),
    ("accept", 43, 202),
    ("accept4", 288, 242),
    ("recvfrom", 45, 207),
    ("recvmsg", 47, 212),
];

/// System calls that fail with EINTR when a thread is stopped in them and continued; those on sockets do so only if the
/// socket has a timeout (signal(7), "Interruption of system calls and library functions by stop signals"). All others
/// continue.
const FAILING: [SystemCall; 22] = [
    ("epoll_wait", 232, -1),
    ("epoll_pwait", 281, 22),
    ("epoll_pwait2", 441, 441),
    ("accept", 43, 202),
    ("accept4", 288, 242),
    ("connect", 42, 203),
    ("recvfrom", 45, 207),
    ("recvmsg", 47, 212),
    ("recvmmsg", 299, 243),
    ("sendto", 44, 206),
    ("sendmsg", 46, 211),
    ("sendmmsg", 307, 269),
    ("io_getevents", 208, 4),
    ("msgrcv", 70, 188),
    ("msgsnd", 69, 189),
    ("rt_sigtimedwait", 128, 137),
    ("semop", 65, 193),
    ("semtimedop", 220, 192),
    ("io_uring_enter", 426, 426),
    // These transfer less than requested instead of failing.
    ("splice", 275, 76),
    ("tee", 276, 77),
    ("vmsplice", 278, 75),
];
/// System calls that fail with EINTR if their file is a socket or an inotify instance.
const OF_FILES: [SystemCall; 4] = [("read", 0, 63), ("readv", 19, 65), WRITES[0], WRITES[1]];
/// System calls that write less than requested if their file is a pipe.
const WRITES: [SystemCall; 2] = [("write", 1, 64), ("writev", 20, 66)];

fn own_number(call: &SystemCall) -> i64 {
    if cfg!(target_arch = "aarch64") { call.2 } else { call.1 }
}

/// Rank of a system call of this machine among those in which a thread can be used, best first.
pub fn wait_rank(number: i64) -> Option<usize> {
    let rank = WAITS.iter().position(|call| number >= 0 && own_number(call) == number)?;
    // On aarch64, those that fail come last, because the kernel decides that before the thread can be redirected.
    let fails = cfg!(target_arch = "aarch64") && FAILING.iter().any(|call| own_number(call) == number);
    Some(if fails { rank + WAITS.len() } else { rank })
}

/// Returns true for a system call that may write only a part of its data if its thread is stopped in it.
pub fn is_write(number: i64) -> bool {
    WRITES.iter().any(|call| number >= 0 && own_number(call) == number)
}

/// Returns true if the system call may fail after its thread was stopped in it. `is_special` says whether its first
/// argument is a socket or inotify.
pub fn may_fail(number: i64, is_special: impl Fn() -> bool) -> bool {
    let among = |calls: &[SystemCall]| number >= 0 && calls.iter().any(|call| own_number(call) == number);
    among(&FAILING) || among(&OF_FILES) && is_special()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the numbers with the kernel's headers, where these are installed.
    #[test]
    fn numbers_are_those_of_the_kernel() {
        let number = |text: &str, name: &str| {
            let of = |line: &str| {
                let rest = line.strip_prefix("#define __NR_")?.strip_prefix(name)?;
                rest.starts_with([' ', '\t']).then(|| rest.trim().parse::<i64>().ok()).flatten()
            };
            text.lines().find_map(of).unwrap_or(-1)
        };
        let x86_64 = std::fs::read_to_string("/usr/include/x86_64-linux-gnu/asm/unistd_64.h");
        let aarch64 = std::fs::read_to_string("/usr/include/asm-generic/unistd.h");
        for (name, on_x86_64, on_aarch64) in [&WAITS[..], &FAILING, &OF_FILES].concat() {
            assert!(x86_64.as_ref().map_or(true, |text| number(text, name) == on_x86_64), "{name}");
            assert!(aarch64.as_ref().map_or(true, |text| number(text, name) == on_aarch64), "{name}");
        }
        assert_eq!((wait_rank(-1), wait_rank(0)), (None, None));
        let number = |name: &str| WAITS.iter().chain(&FAILING).chain(&OF_FILES).find(|w| w.0 == name).map_or(-1, own_number);
        assert!(!may_fail(number("futex"), || true) && may_fail(number("epoll_pwait2"), || false));
        assert!(may_fail(number("read"), || true) && !may_fail(number("read"), || false) && !may_fail(-1, || true));
    }
}
