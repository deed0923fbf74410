#!/usr/bin/env python3
"""The whole workflow on a real GPU, driven through a pseudo-terminal like a user: doctor, record a program under nsys,
select the longest-running kernel, profile it again with ncu from inside the explorer, see the result joined with its
launch and verified, read its hint. Then the same without nsys, from ncu's scan, and from PyTorch's trace if python3 has
torch.

Needs an NVIDIA GPU, nvcc (unless --program is given), ncu, nsys with its importer's libraries, the right to read the GPU's counters, and
`pip install pyte`. Run by hand from the repository's root:

    cargo build --release
    tests/hardware/loop.py --warpscope target/release/warpscope --keep /tmp/loop

Saves the screens as text in the folder named by --keep. Exits with 1 if a step fails.
"""
import argparse, fcntl, json, os, pty, select, shutil, struct, subprocess, sys, tempfile, termios, time

import pyte

HERE = os.path.dirname(os.path.abspath(__file__))
ap = argparse.ArgumentParser()
ap.add_argument("--warpscope", default="target/release/warpscope")
ap.add_argument("--source", default=os.path.join(HERE, "../../fixtures/hints/causes.cu"), help="CUDA program to build")
ap.add_argument("--program", help="program to run instead of building one")
ap.add_argument("--keep", help="folder for the library and the screens")
ap.add_argument("--size", default="120x40")
args = ap.parse_args()
WARPSCOPE = os.path.abspath(args.warpscope)
work = os.path.abspath(args.keep) if args.keep else tempfile.mkdtemp(prefix="warpscope-loop-")
os.makedirs(work, exist_ok=True)
COLUMNS, ROWS = (int(n) for n in args.size.split("x"))
failures = []
# A hand-written layer, forward and backward, three times.
TORCH = """
import torch
torch.manual_seed(0)
w = torch.randn(1024, 1024, device="cuda", requires_grad=True)
x = torch.randn(4096, 1024, device="cuda")
for step in range(3):
    with torch.profiler.record_function("step %d" % step):
        y = torch.softmax(x @ w, dim=-1)
        (y * y).sum().backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
            w.grad = None
torch.cuda.synchronize()
print("done")
"""


class Explorer:
    """The program in its own terminal, and the contents of its screen."""

    def __init__(self, words, env):
        self.screen = pyte.Screen(COLUMNS, ROWS)
        self.stream = pyte.ByteStream(self.screen)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(env, TERM="xterm-256color", COLORTERM="truecolor", LANG="C.UTF-8")
            os.chdir(work)
            os.execv(WARPSCOPE, [WARPSCOPE, *words])
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.ended = False

    def text(self):
        return "\n".join(line.rstrip() for line in self.screen.display)

    def take(self, seconds):
        if select.select([self.fd], [], [], seconds)[0]:
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                data = b""
            if not data:
                self.ended = True
            # The program queries the cursor position once, at the start.
            if b"\x1b[6n" in data:
                os.write(self.fd, b"\x1b[1;1R")
            self.stream.feed(data)

    def wait(self, *texts, seconds=120):
        until = time.monotonic() + seconds
        while not any(t in self.text() for t in texts):
            if time.monotonic() > until or self.ended:
                raise SystemExit(f"FAILED: waited for {texts}, the screen shows:\n{self.text()}")
            self.take(0.2)
        return next(t for t in texts if t in self.text())

    def keys(self, keys):
        os.write(self.fd, keys.encode())

    def shot(self, name):
        for _ in range(3):
            self.take(0.3)
        with open(os.path.join(work, name + ".txt"), "w") as f:
            f.write(self.text() + "\n")
        print(f"--- {name}\n{self.text()}\n")

    def quit(self):
        self.keys("q")
        while not self.ended:
            self.take(0.5)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def warpscope(env, *words):
    p = subprocess.run([WARPSCOPE, *words], capture_output=True, text=True, cwd=work, env={**os.environ, **env})
    return p.returncode, p.stdout, p.stderr


def check(what, ok, more=""):
    print(f"{'ok' if ok else 'FAILED'}: {what} {more}")
    if not ok:
        failures.append(what)


program = args.program
if not program:
    program = os.path.join(work, "program")
    subprocess.run(["nvcc", "-O2", "-std=c++17", "-arch=native", "-o", program, args.source], check=True)
program = os.path.abspath(program)


def loop(name, env, before, program):
    shutil.rmtree(env["XDG_DATA_HOME"], ignore_errors=True)
    begun = time.monotonic()
    e = Explorer([*before, "--", *program], env)
    e.wait("next:", seconds=30)
    e.wait("sort total", seconds=300)
    while "reading" in e.text() or "next:" not in e.text():
        e.take(0.2)
    recorded = time.monotonic() - begun
    e.shot(f"{name}_1_table")
    rc, out, err = warpscope(env, "runs", "show", "1", "--format", "json")
    first = json.loads(out)
    report = first["reports"][0]["path"]
    _, out, _ = warpscope(env, "top", report, "--format", "json", "--limit", "1")
    slowest = json.loads(out)["rows"][0]["name"]
    check(f"{name}: {first['tool']} {first['tool_version']} recorded the program in {recorded:.1f} s", first["state"] == "done", f"({report})")
    begun = time.monotonic()
    e.keys("R")
    e.wait("verified:", "differs:", "of no launch", "will probably fail", "set it in the field", seconds=300)
    e.shot(f"{name}_2_hints")
    screen = e.text()
    check(f"{name}: {slowest} was profiled again, joined and verified in {time.monotonic() - begun:.1f} s", "verified:" in screen and slowest[:12] in screen)
    rc, out, err = warpscope(env, "runs", "show", "2", "--format", "json")
    second = json.loads(out)
    check(f"{name}: run 2 is a re-run of run 1", second["parent"] == 1 and second["state"] == "done")
    result = second["reports"][0]["path"]
    rc, out, err = warpscope(env, "hints", result, "--format", "json")
    hints = json.loads(out)
    rows = hints if isinstance(hints, list) else hints.get("rows", hints.get("results", []))
    first_hint = rows[0]["hints"][0]["id"] if rows and rows[0]["hints"] else None
    check(f"{name}: its first hint is {first_hint}", first_hint is not None and first_hint in screen)
    e.keys("L")
    e.wait("run library")
    e.wait("2 runs")
    e.shot(f"{name}_3_library")
    check(f"{name}: the explorer ends well", e.quit() == 0)


base = {"XDG_DATA_HOME": os.path.join(work, "data"), "XDG_CACHE_HOME": os.path.join(work, "cache")}
rc, out, _ = warpscope(base, "doctor")
print(out)
rc, out, _ = warpscope(base, "doctor", "--format", "json")
blocks = [c["id"] for c in json.loads(out)["checks"] if c["state"] == "blocks"]
check("doctor: nothing blocks", not blocks, str(blocks))
loop("nsys", {**base, "XDG_DATA_HOME": os.path.join(work, "data-nsys")}, ["run"], [program])
# Emulate a machine without nsys: the nsys it is given does not exist.
loop("scan", {**base, "XDG_DATA_HOME": os.path.join(work, "data-scan")}, ["run", "--recipe", "scan"], [program])
if subprocess.run(["python3", "-c", "import torch"], capture_output=True).returncode == 0:
    with open(os.path.join(work, "layer.py"), "w") as f:
        f.write(TORCH)
    loop("torch", {**base, "XDG_DATA_HOME": os.path.join(work, "data-torch")}, ["run", "--tool", "torch"], ["python3", "layer.py"])
else:
    print("python3 has no torch: the loop from PyTorch's trace was not tried")
print(f"{len(failures)} failed" if failures else "all of the loop holds")
sys.exit(1 if failures else 0)
