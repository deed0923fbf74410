#!/usr/bin/env python3
"""Runs a command in a pty of 120x40, waits until it shows the demo's table of kernels, quits it, and fails where that fails: demo.py COMMAND"""
import os, pty, select, signal, struct, fcntl, sys, termios, time
pid, fd = pty.fork()
if pid == 0:
    os.environ.update(TERM="xterm-256color", COLORTERM="truecolor", LANG="C.UTF-8")
    os.execv("/bin/sh", ["sh", "-c", "exec " + sys.argv[1]])
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
seen, end, quit_sent = b"", time.time() + 300, False
while time.time() < end:
    if select.select([fd], [], [], 0.2)[0]:
        try:
            data = os.read(fd, 65536)
        except OSError:
            break
        if not data:
            break
        seen += data
    if not quit_sent and b"next:" in seen and b"CatArrayBatchedCopy" in seen:
        os.write(fd, b"q")
        quit_sent = True
else:
    os.kill(pid, signal.SIGKILL)
    sys.exit("the demo did not end")
status = os.waitpid(pid, 0)[1]
if not quit_sent or status != 0:
    sys.exit(f"the demo showed no table or failed ({status}): {seen[-2000:]!r}")
print("the demo shows its table and quits")
