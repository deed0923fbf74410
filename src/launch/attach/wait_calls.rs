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
    ("accept", 43, 202),
    ("accept4", 288, 242),
    ("clock_nanosleep", 230, 115),
    ("nanosleep", 35, 101),
    ("wait4", 61, 260),
    ("pause", 34, -1),
    ("recvfrom", 45, 207),
    ("recvmsg", 47, 212),
    ("futex", 202, 98),
];

/// Rank of a system call of this machine among those in which a thread can be used, best first.
pub fn wait_rank(number: i64) -> Option<usize> {
    let own = |call: &SystemCall| if cfg!(target_arch = "aarch64") { call.2 } else { call.1 };
    WAITS.iter().position(|call| number >= 0 && own(call) == number)
}

/// Returns true if the system call continues after a thread was stopped in it; others fail with EINTR (signal(7)).
pub fn restarts(number: i64) -> bool {
    const FAIL: [&str; 3] = ["epoll_wait", "epoll_pwait", "epoll_pwait2"];
    wait_rank(number).is_some_and(|rank| !FAIL.contains(&WAITS[rank].0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares them with the kernel's headers, where these are installed.
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
        for (name, on_x86_64, on_aarch64) in WAITS {
            assert!(x86_64.as_ref().map_or(true, |text| number(text, name) == on_x86_64), "{name}");
            assert!(aarch64.as_ref().map_or(true, |text| number(text, name) == on_aarch64), "{name}");
        }
        assert_eq!((wait_rank(-1), wait_rank(0)), (None, None));
        let number = |name: &str| WAITS.iter().find(|w| w.0 == name).map_or(-1, |w| if cfg!(target_arch = "aarch64") { w.2 } else { w.1 });
        assert!(restarts(number("futex")) && restarts(number("clock_nanosleep")) && !restarts(number("epoll_pwait2")));
    }
}
