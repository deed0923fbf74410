#!/usr/bin/env python3
"""Opens and closes the capture range of programs that keep a GPU busy, and checks that their results and exit codes
stay the same.

The tracer subscribes to CUPTI when the capture range first opens, while the program is working. Each program has
threads that replay a CUDA graph, launch, copy and allocate, and compares its results with earlier ones. Each launch in
a trace must have its kernels; only few may have times that CUPTI mixed up with another replay's. Every third program
is recorded from its start. Needs an NVIDIA GPU and PyTorch. Run by hand from the repository's root:

    cargo build --release
    tests/hardware/gates.py --warpscope target/release/warpscope --programs 100
"""
import argparse, glob, os, re, subprocess, sys, tempfile, time

PROGRAM = r"""
import sys, threading, time, torch
few = len(sys.argv) > 2
torch.manual_seed(0)
x, w = torch.randn(512, 512, device="cuda"), torch.randn(512, 512, device="cuda")
def work(a):
    for _ in range(20): a = torch.tanh(a @ w * 0.02)
    return a
side = torch.cuda.Stream()
with torch.cuda.stream(side): work(x)
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph): y = work(x)
graph.replay(); torch.cuda.synchronize()
by_graph, by_launch, on_host = y.clone(), work(x).clone(), x.view(-1)[:1 << 16].cpu()
torch.cuda.synchronize()
rounds, wrong, going = [0] * 5, [0] * 5, True
def replay(i):
    graph.replay(); torch.cuda.current_stream().synchronize()
    return rounds[i] % 50 or torch.equal(y, by_graph)
def launch(i):
    r = work(x); e = torch.cuda.Event(); e.record(); e.synchronize()
    return rounds[i] % 10 or torch.equal(r, by_launch)
pinned = torch.empty(1 << 16, pin_memory=True)
def copy(i):
    pinned.copy_(x.view(-1)[:1 << 16], non_blocking=True); torch.cuda.current_stream().synchronize()
    return torch.equal(pinned, on_host)
def allocate(i):
    torch.empty(3 << 20, device="cuda").zero_(); torch.cuda.empty_cache(); time.sleep(0.01)
    return True
def thread(i, step):
    with torch.cuda.stream(torch.cuda.Stream() if i else torch.cuda.default_stream()):
        while going:
            rounds[i] += 1
            wrong[i] += not step(i)
steps = [replay, allocate] if few else [replay, launch, launch, copy, allocate]
threads = [threading.Thread(target=thread, args=s) for s in enumerate(steps)]
for t in threads: t.start()
print("ready", flush=True)
sys.stdin.read(1)
going = False
for t in threads: t.join()
torch.cuda.synchronize()
print("rounds", rounds, "wrong", sum(wrong), flush=True)
sys.exit(sum(wrong) > 0)
"""

ap = argparse.ArgumentParser()
ap.add_argument("--warpscope", default="target/release/warpscope")
ap.add_argument("--programs", type=int, default=100)
ap.add_argument("--beside", type=int, default=5, help="programs at the same time")
ap.add_argument("--windows", type=int, default=3, help="times that each recording is opened")
ap.add_argument("--keep", help="folder for the traces")
args = ap.parse_args()
warpscope = os.path.abspath(args.warpscope)
work = os.path.abspath(args.keep) if args.keep else tempfile.mkdtemp(prefix="warpscope-gates-")
os.makedirs(work, exist_ok=True)
os.chdir(work)
with open("busy.py", "w") as file:
    file.write(PROGRAM)


def attach(name, word):
    p = subprocess.run([warpscope, "attach", name, word], capture_output=True, text=True)
    return p.returncode == 0, (p.stdout + p.stderr).strip()


def fault(name):
    """Returns the problem of a trace, or None."""
    files = glob.glob(f"{name}.*.wstrace")
    if len(files) != 1:
        return f"{len(files)} traces"
    p = subprocess.run([warpscope, "top", files[0], "--limit", "1", "--format", "json"], capture_output=True, text=True)
    without_times = sum(int(n.replace(",", "")) for n in re.findall(r"([\d,]+) kernels without valid times", p.stderr))
    # Two replays of 40 nodes at each close.
    if p.returncode or "no record of a kernel" in p.stderr or without_times > 80 * (args.windows + 1):
        return p.stderr.strip()


good = opened = 0
for first in range(0, args.programs, args.beside):
    names = [f"p{i}" for i in range(first, min(first + args.beside, args.programs))]
    few = [["few"] if i % 2 else [] for i in range(len(names))]
    run = lambda name, how, words: subprocess.Popen([warpscope, "trace", *how, "-o", name, sys.executable, "busy.py", "x", *words],
                                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    from_start = [i % 3 == 2 for i in range(len(names))]
    programs = [run(name, [] if whole else ["--closed"], words) for name, whole, words in zip(names, from_start, few)]
    # All programs are busy by now.
    ready = [p.stdout.readline().strip() == "ready" for p in programs]
    done = [True] * len(names)
    for i in range(len(names)):
        if from_start[i]:
            attach(names[i], "--close")
    for _ in range(args.windows):
        for word in ("--open", "--close"):
            for i, name in enumerate(names):
                ok, said = attach(name, word)
                opened += ok and word == "--open"
                if not ok:
                    done[i] = False
                    print(f"NO  {name} {word}: {said}")
            time.sleep(0.3)
    for i, (name, p) in enumerate(zip(names, programs)):
        out, err = p.communicate("x", timeout=120)
        missing = fault(name)
        fine = ready[i] and done[i] and p.returncode == 0 and not missing
        good += fine
        if not fine:
            print(f"NO  {name}: exit code {p.returncode} {out.strip()} {err.strip()[-300:]} {missing}")
print(f"{good} of {args.programs} programs, opened {opened} times; traces in {work}")
sys.exit(good != args.programs)
