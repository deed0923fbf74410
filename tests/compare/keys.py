#!/usr/bin/env python3
"""Measures the explorer's response times: tests/compare/keys.py FILE [COLUMNSxROWS [SCREEN…]]. Runs
target/release/warpscope in a pty, presses keys, and prints for each the time to the first and last output and the
bytes sent; also the times of the first frame and the complete report, and the peak memory."""
import fcntl, os, pty, select, struct, sys, termios, time

file, size = sys.argv[1], (sys.argv[2] if len(sys.argv) > 2 else "120x40")
columns, rows = map(int, size.split("x"))
wanted = sys.argv[3:]
begun = time.time()
pid, fd = pty.fork()
if pid == 0:
    os.environ.update(TERM="xterm-256color", COLORTERM="truecolor", LANG="C.UTF-8")
    binary = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../target/release/warpscope")
    os.execv(binary, [binary, file, "--first", "kernels"])
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
slow = []


def press(keys, name, settle=True, watch=1.2):
    """Presses all keys at once; the response is the first output after them."""
    while settle and read(0.25):
        pass
    at = time.time()
    os.write(fd, keys)
    answered, last, sent = None, 0, 0
    while time.time() - at < watch:
        data = read(0.02)
        if data:
            last = (time.time() - at) * 1000
            answered = answered or last
            sent += len(data)
    print(f"{name:34} answered after {answered or 0:5.1f} ms, done after {last:5.0f} ms, {sent} bytes")
    if answered and answered > 16:
        slow.append(f"{name}: {answered:.1f} ms")


def walk(title, steps):
    if wanted and title not in wanted:
        return
    print(f"-- {title}")
    for keys, name in steps:
        press(keys, name)


common = [(b"j", "down"), (b"k", "up"), (b"\x1b[6~", "page down"), (b"\x1b[F", "end"), (b"\x1b[H", "home")]
over = [(b"?", "help"), (b"\x1b[F", "its end"), (b"\x1b", "close"), (b"n", "about the report"), (b"\x1b", "close"), (b"x", "checklist"), (b"\x1b", "close"), (b":", "actions"),
        (b"r", "a letter"), (b"\x1b", "close"), (b"t", "themes"), (b"j", "the next one"), (b"\x1b", "close"), (b"y", "copy"), (b"\x1b", "close"), (b"N", "full name"), (b"\x1b", "close")]
walk("kernels", common + [(b"S", "reverse the sort"), (b"sc", "sort by count"), (b"gd", "group by demangled name"), (b"gm", "group by mangled name"), (b"gc", "group by configuration"),
     (b"gs", "group by stream"), (b"gv", "group by device"), (b"gp", "group by process"), (b"gr", "group by NVTX range"), (b"gn", "group by name"), (b"/", "filter"), (b"t", "a letter of it"),
     (b"\x1b", "clear it"), (b"m", "mark"), (b"M", "clear marks"), (b"i", "details"), (b"i", "details"), (b"d", "form of names"), (b"p", "metrics"), (b"a", "hints"), (b"\x1b", "back"),
     (b"D", "changes"), (b"\x1b", "back")] + over)
walk("launches", [(b"\x1b[H", "first row"), (b"\r", "launches")] + common + [(b"Js", "jump to the slowest"), (b"Jm", "jump to the median"), (b"Jf", "jump to the first"), (b"sd", "sort by duration"),
     (b"S", "reverse the sort"), (b"f", "filter by"), (b"\x1b", "close"), (b"i", "details"), (b"i", "details"), (b"d", "form of names"), (b"a", "hints"), (b"\x1b", "back"), (b"o", "roofline")])
walk("re-run", [(b"r", "re-run"), (b"j", "next field"), (b"\rm", "mangled name"), (b"u", "undo"), (b"\t", "next command"), (b"y", "copy"), (b"\x1b", "close"), (b"v", "check a result"), (b"\x1b", "close"),
     (b"w", "save"), (b"\x1b", "close"), (b"\x1b", "back"), (b"\x1b", "back")])
wheel = lambda button: b"\x1b[<%d;%d;%dM" % (button, columns // 2, 9)
walk("timeline", [(b"\x1b[H", "first row"), (b"T", "timeline at the longest launch"), (b"0", "whole run"), (b"g", "begin"), (b"l", "right"), (b"h", "left"), (b")", "pan right"), (b"w", "zoom in"), (b"w", "zoom in"),
     (b")", "pan right"), (b"(", "pan left"), (b"wwwww", "zoom in five times"), (b")", "pan right"), (b"l", "right"), (b".", "next event"), (b",", "previous event"), (b"j", "down"), (b"j", "down"),
     (b"wwwwwwww", "zoom in eight times"), (b")", "pan right"), (b"l", "right"), (b"s", "zoom out"), (b".", "next event"), (b"f", "follow"), (b"f", "follow"), (wheel(64), "wheel in"), (wheel(65), "wheel out"),
     (b"0", "whole run"), (b"i", "next idle time"), (b"z", "zoom to it"), (b"I", "previous idle time"), (b"<", "earlier place"), (b">", "later place"), (b"b", "mark"), (b"lllll", "measure"), (b"\x1b", "no mark"),
     (b" ", "fold"), (b" ", "unfold"), (b"m", "pin"), (b"m", "unpin"), (b"/", "find"), (b"a", "a letter"), (b"t", "another"), (b"\r", "keep"), (b".", "next match"), (b"\x1b", "clear"), (b"0", "whole run"),
     (b"G", "end"), (b"y", "copy"), (b"\x1b", "close"), (b"\r", "open"), (b"\x1b", "back"), (b"T", "leave")])
walk("library", [(b"L", "library"), (b"j", "down"), (b"/", "filter"), (b"\x1b", "close"), (b"\x1b", "back")])
if not wanted or "jobs" in wanted:
    print("-- while a job runs")
for job, name in [(b"gr", "group by NVTX range"), (b"gc", "group by configuration"), (b"sc", "sort by count"), (b"a", "hints"), (b"x", "checklist")] if not wanted or "jobs" in wanted else []:
    while read(0.25):
        pass
    os.write(fd, job)
    read(0.004)
    while read(0.004):
        pass
    press(b"j", f"down, during {name}", settle=False)
    press(b"?", "help")
    press(b"\x1b\x1b\x1b", "close")
    press(b"gn", "group by name")
print(f"peak {peak()} MiB; over 16 ms: {'; '.join(slow) or 'none'}")
os.write(fd, b"q")
