#!/usr/bin/env python3
"""How the explorer answers: benches/keys.py FILE [COLUMNSxROWS]. Runs target/release/warpscope in a pty, presses keys, and prints for each the time
to the first output, the time to the last, and the bytes sent; also when the first frame and the whole report were there, and the peak memory."""
import fcntl, os, pty, select, struct, sys, termios, time

file, size = sys.argv[1], (sys.argv[2] if len(sys.argv) > 2 else "120x40")
columns, rows = map(int, size.split("x"))
begun = time.time()
pid, fd = pty.fork()
if pid == 0:
    os.environ.update(TERM="xterm-256color", COLORTERM="truecolor", LANG="C.UTF-8")
    binary = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../target/release/warpscope")
    os.execv(binary, [binary, file])
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def read(wait):
    return os.read(fd, 1 << 16) if select.select([fd], [], [], wait)[0] else b""


def peak():
    return next(int(line.split()[1]) // 1024 for line in open(f"/proc/{pid}/status") if line.startswith("VmHWM"))


seen, first = b"", None
while b"next:" not in seen:
    data = read(0.01)
    if data and first is None:
        first = time.time() - begun
    seen += data
print(f"first frame {first * 1000:.0f} ms, whole report {time.time() - begun:.2f} s, peak {peak()} MiB")
while read(1.0):
    pass
for keys, name in [(b"j", "down"), (b"j", "down"), (b"\x1b[6~", "page down"), (b"S", "turn order round"), (b"sc", "sort by count"), (b"gd", "group by demangled"), (b"gr", "group by NVTX"),
                   (b"gn", "group by name"), (b"/", "filter"), (b"t", "a letter of it"), (b"\x1b", "clear it"), (b"\x1b[H", "first row"), (b"\r", "launches"), (b"j", "down"), (b"\x1b[F", "last"),
                   (b"Js", "jump to the slowest"), (b"sd", "sort by duration"), (b"r", "re-run"), (b"j", "next field"), (b"\rm", "mangled name"), (b"\x1b", "back"), (b"\x1b", "back")]:
    while read(0.3):
        pass
    at = time.time()
    os.write(fd, keys)
    answered, last, sent = None, 0, 0
    while time.time() - at < 1.5:
        data = read(0.05)
        if data:
            last = (time.time() - at) * 1000
            answered = answered or last
            sent += len(data)
    print(f"{name:22} answered after {answered or 0:5.1f} ms, done after {last:5.0f} ms, {sent} bytes")
print(f"peak {peak()} MiB")
os.write(fd, b"q")
