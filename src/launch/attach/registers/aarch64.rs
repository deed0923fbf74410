//! Registers of a thread that waits in a system call, on aarch64.

use crate::launch::attach::wait_calls::wait_rank;
use nix::sys::ptrace;
use nix::unistd::Pid;

/// The instruction `svc #0`.
const SVC: u32 = 0xd400_0001;

/// Distance that a branch covers in both directions, bytes (Arm Architecture Reference Manual, B), less the code itself.
pub const REACH: u64 = (1 << 27) - (1 << 16);

/// A thread that is stopped at a system call.
pub struct Wait {
    registers: nix::libc::user_regs_struct,
}

impl Wait {
    /// Returns `None` if the thread is not at one of the listed system calls.
    ///
    /// When a system call was interrupted, the kernel has already set the registers so that it is made again once the
    /// thread continues (`do_signal` in arch/arm64/kernel/signal.c); otherwise it has returned. The call's number stays
    /// in x8 in both cases.
    pub fn read(thread: Pid) -> Option<Self> {
        let registers = ptrace::getregs(thread).ok()?;
        let instruction = |address: u64| {
            let word = ptrace::read(thread, std::ptr::with_exposed_provenance_mut(address as usize)).ok()?;
            Some(word.cast_unsigned() as u32)
        };
        let at_call = [registers.pc, registers.pc.wrapping_sub(4)].into_iter().any(|pc| instruction(pc) == Some(SVC));
        (at_call && wait_rank(registers.regs[8].cast_signed()).is_some()).then_some(Self { registers })
    }

    /// Address at which the thread must continue.
    pub fn back(&self) -> u64 {
        self.registers.pc
    }

    /// Always `None`: the kernel has already decided if the call is made again, so there is no second address.
    pub fn interrupted(&self) -> Option<u64> {
        None
    }

    /// Redirects the thread to the code at `room`.
    pub fn redirect(self, thread: Pid, room: u64) -> nix::Result<()> {
        ptrace::setregs(thread, nix::libc::user_regs_struct { pc: room, ..self.registers })
    }
}

/// Does nothing: the kernel has already decided if the call fails or is made again (`do_signal` in
/// arch/arm64/kernel/signal.c).
pub fn keep_waiting(_thread: Pid) {}

/// Returns the stack pointer and the program counter of a stopped thread.
pub fn stack_and_code(thread: Pid) -> Option<(u64, u64)> {
    ptrace::getregs(thread).ok().map(|r| (r.sp, r.pc))
}

/// Writes the way back into the code, which lies at `room`: a branch before its words, since a jump to an address in
/// memory needs a register.
pub fn write_return(code: &mut [u8], words: usize, room: u64, (back, _): (u64, Option<u64>)) {
    const B: u32 = 0x1400_0000;
    let at = words - 8;
    let distance = back.wrapping_sub(room + at as u64) >> 2;
    let branch = B | (distance as u32 & 0x03ff_ffff);
    code[at..at + 4].copy_from_slice(&branch.to_le_bytes());
}
