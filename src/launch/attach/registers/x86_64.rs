//! Registers of a thread that waits in a system call, on x86-64.

use crate::launch::attach::wait_calls::{may_fail, wait_rank};
use nix::sys::ptrace;
use nix::unistd::Pid;

/// Results of an interrupted system call that must be restarted (include/linux/errno.h): `ERESTARTSYS`,
/// `ERESTARTNOINTR`, `ERESTARTNOHAND`, `ERESTART_RESTARTBLOCK`.
const AGAIN: [i64; 4] = [-512, -513, -514, -516];
/// `EINTR`, which some system calls return even after a mere stop; `ERESTARTNOHAND`, which the kernel turns into it
/// only if a handler runs.
const EINTR: i64 = -4;
const RESTART_WITHOUT_HANDLER: i64 = -514;
/// Results of waits that fail with EINTR after any handler, also with `SA_RESTART` (signal(7)).
const INTERRUPTED: [i64; 3] = [EINTR, RESTART_WITHOUT_HANDLER, -516];
/// Length of the `syscall` instruction, bytes.
const SYSCALL_BYTES: u64 = 2;

/// The code returns by an indirect jump through memory, which reaches any address.
pub const REACH: u64 = u64::MAX;

/// A thread that is stopped inside of a system call.
pub struct Wait {
    registers: nix::libc::user_regs_struct,
    /// True if the system call must be made again.
    again: bool,
}

impl Wait {
    /// Returns `None` if the thread is not in one of the listed system calls.
    pub fn read(thread: Pid) -> Option<Self> {
        let registers = ptrace::getregs(thread).ok()?;
        let (call, result) = (registers.orig_rax.cast_signed(), registers.rax.cast_signed());
        let again = AGAIN.contains(&result) || result == EINTR && may_fail(call, || true);
        wait_rank(call).map(|_| Self { registers, again })
    }

    /// Address at which the thread must continue if a signal handler has run in between: after the system call, which
    /// has then failed with EINTR. `None` for calls that are restarted anyway.
    pub fn interrupted(&self) -> Option<u64> {
        (self.again && INTERRUPTED.contains(&self.registers.rax.cast_signed())).then_some(self.registers.rip)
    }

    /// Address at which the thread must continue.
    pub fn back(&self) -> u64 {
        if self.again { self.registers.rip - SYSCALL_BYTES } else { self.registers.rip }
    }

    /// Redirects the thread to the code at `room`.
    pub fn redirect(self, thread: Pid, room: u64) -> nix::Result<()> {
        let mut registers = self.registers;
        if self.again {
            registers.rax = registers.orig_rax;
        }
        // The kernel must not restart the system call on its own.
        registers.orig_rax = u64::MAX;
        registers.rip = room;
        ptrace::setregs(thread, registers)
    }
}

/// Keeps the system call of a thread that was stopped in it from failing with EINTR unless a handler runs.
pub fn keep_waiting(thread: Pid) {
    let Ok(registers) = ptrace::getregs(thread) else { return };
    if registers.rax.cast_signed() == EINTR && may_fail(registers.orig_rax.cast_signed(), || true) {
        // If this fails, the program's system call fails with EINTR.
        let _ = ptrace::setregs(thread, nix::libc::user_regs_struct { rax: RESTART_WITHOUT_HANDLER.cast_unsigned(), ..registers });
    }
}

/// Returns the stack pointer and the program counter of a stopped thread.
pub fn stack_and_code(thread: Pid) -> Option<(u64, u64)> {
    ptrace::getregs(thread).ok().map(|r| (r.rsp, r.rip))
}

/// Writes the addresses at which the thread continues into the first and the last of the code's words; the last is 0 if
/// a handler makes no difference.
pub fn write_return(code: &mut [u8], words: usize, _room: u64, (back, interrupted): (u64, Option<u64>)) {
    code[words..words + 8].copy_from_slice(&back.to_le_bytes());
    code[words + 48..words + 56].copy_from_slice(&interrupted.unwrap_or(0).to_le_bytes());
}
