#!/usr/bin/env python3
"""Traces programs on a real GPU with the built-in tracer, and compares the traces with the programs' own logs and with
nsys.

Needs an NVIDIA GPU and nvcc; PyTorch, JAX, CuPy and nsys are used if installed. Run by hand from the repository's root:

    cargo build --release
    tests/hardware/tracer.py --warpscope target/release/warpscope            # correctness of the records
    tests/hardware/tracer.py --warpscope target/release/warpscope --cost     # tracing overhead
    tests/hardware/tracer.py --warpscope target/release/warpscope --live     # watching a program, threads, memory
    tests/hardware/tracer.py --warpscope target/release/warpscope --bare     # as root: nsys, ncu and toolkit hidden

Re-runs drawn from traces are run by `tests/hardware/rerun.py --tracer`.
"""
import argparse, collections, csv, glob, io, json, os, re, resource, shutil, statistics, subprocess, sys, tempfile, time

HERE = os.path.dirname(os.path.abspath(__file__))
ap = argparse.ArgumentParser()
ap.add_argument("--warpscope", default="target/release/warpscope")
ap.add_argument("--cupti", action="append", default=[], help="a further libcupti to try")
ap.add_argument("--cost", action="store_true")
ap.add_argument("--live", action="store_true")
ap.add_argument("--bare", action="store_true")
ap.add_argument("--nccl", action="store_true", help="only NCCL on two GPUs")
ap.add_argument("--rounds", type=int, default=5)
ap.add_argument("--only", help="rows of the cost table that contain this")
ap.add_argument("--keep", help="folder for the traces")
args = ap.parse_args()
WARPSCOPE = os.path.abspath(args.warpscope)
work = os.path.abspath(args.keep) if args.keep else tempfile.mkdtemp(prefix="warpscope-tracer-")
os.makedirs(work, exist_ok=True)
os.chdir(work)
table = []


def run(argv, env=None, **kw):
    return subprocess.run(argv, capture_output=True, text=True, env={**os.environ, **(env or {})}, **kw)


if not os.path.exists("traced"):
    p = run(["nvcc", "-O2", "-std=c++17", "-arch=native", "-o", "traced", f"{HERE}/traced.cu"])
    if p.returncode:
        raise SystemExit(p.stderr)
nsys = shutil.which("nsys") or (sorted(glob.glob("/opt/nvidia/nsight-*/*/host/target-linux-x64/nsys")) or [None])[-1]
if nsys and run([nsys, "--version"]).returncode:
    nsys = None


def trace(name, program, *options, env=None):
    """Traces a program; returns its traces and the finished process."""
    shutil.rmtree(name, ignore_errors=True)
    os.makedirs(name)
    p = run([WARPSCOPE, "trace", *options, "-o", f"{name}/t", *program], env, timeout=300)
    return sorted(glob.glob(f"{name}/t.*.wstrace")), p


def rows(report, *options):
    p = run([WARPSCOPE, "launches", report, "--format", "csv", *options])
    if p.returncode:
        raise SystemExit(f"{report}: {p.stderr}")
    return list(csv.DictReader(io.StringIO(p.stdout))), p.stderr


def say(ok, what, text):
    table.append(bool(ok))
    print(f"{'ok ' if ok else 'NO '} {what}: {text}", flush=True)


def numbered(launches):
    """(launch number, the program's thread number, system thread id) of each direct launch, in order."""
    out = []
    for r in launches:
        if r["graph_node"] or not r["kernel"].startswith("tiny"):
            continue
        grid, block = r["grid"].split("x"), r["block"].split("x")
        out.append((int(r["dynamic_shared_bytes"]) | (int(grid[0]) - 1) << 15, int(block[0]) // 32 - 1, r["tid"]))
    return out


def whole(name, want, program, *options, env=None, racing=False, lost=0, files=1):
    """Traces a program whose launches are numbered: each must be recorded exactly once, in the program's order."""
    traces, p = trace(name, program, *options, env=env)
    if len(traces) != files:
        return say(False, name, f"{len(traces)} traces, {p.stdout} {p.stderr}")
    launches, said = rows(traces[0] if files == 1 else name)
    if files > 1:
        return say(len(launches) == want, name, f"{len(launches)} launches of {files} processes")
    got = numbered(launches)
    order = sum(a[0] > b[0] for a, b in zip(got, got[1:]))
    last, inside = {}, 0
    for n, thread, _ in got:
        inside += last.get(thread, -1) > n
        last[thread] = n
    numbers = [g[0] for g in got]
    complete = len(set(numbers)) == len(numbers) and len(numbers) >= want - lost and (lost or set(numbers) == set(range(want)))
    tids = collections.defaultdict(set)
    for _, thread, tid in got:
        tids[thread].add(tid)
    threads = all(len(t) == 1 for t in tids.values())
    ok = complete and inside == 0 and threads and (racing or order == 0)
    say(ok, name, f"{len(got)} of {want}, {order} out of order, {inside} inside a thread, one system thread each: {threads}, {os.path.getsize(traces[0]) / max(len(launches), 1):.1f} B a launch {said.strip()[:160]}")


def correctness():
    t, n = "./traced", ["launches=60000", "numbered=1"]
    whole("one thread", 60000, [t, *n])
    whole("two threads in turn", 60000, [t, *n, "threads=2", "one=1"])
    whole("four threads that race", 60000, [t, *n, "threads=4"], racing=True)
    whole("kernels only", 60000, [t, *n], "--lean")
    whole("all calls, with 16 other calls a launch", 20000, [t, "launches=20000", "numbered=1", "chat=16"], "--api", "all")
    whole("_exit", 60000, [t, *n, "exit=_exit"])
    whole("SIGKILL", 400000, [t, "launches=400000", "numbered=1", "exit=kill"], lost=400000)
    whole("SIGTERM", 400000, [t, "launches=400000", "numbered=1", "exit=term"], lost=400000)
    whole("fork before CUDA", 40128, [t, "launches=20000", "fork=early"], files=2)
    traces, p = trace("fork after CUDA", [t, "launches=20000", "fork=late"])
    say(len(traces) == 1 and "left with 7" in p.stdout, "fork after CUDA", p.stdout.strip().replace("\n", "; "))
    traces, p = trace("exec", [t, "launches=2000", "exec=1"])
    say(sorted(len(rows(f)[0]) for f in traces) == [1000, 2064], "exec", f"{[len(rows(f)[0]) for f in traces]}")
    traces, p = trace("window", [t, *n, "window=1"], "--profiler-api")
    got = [g[0] for g in numbered(rows(traces[0])[0])]
    say(got == list(range(20000, 40000)), "cudaProfilerStart and Stop", f"{len(got)} launches, {got[:1]} to {got[-1:]}")
    traces, p = trace("ranges", [t, *n, "nvtx=1"], "--range", "step 7")
    got = [g[0] for g in numbered(rows(traces[0])[0])]
    say(got == list(range(700, 800)), "one NVTX range", f"{len(got)} launches, {got[:1]} to {got[-1:]}")
    traces, p = trace("nvtx", [t, *n, "nvtx=1"])
    inside = [r["nvtx"] for r in rows(traces[0])[0]]
    say(inside == [f"step {i // 100}" for i in range(60000)], "NVTX ranges around launches", f"{sum(map(bool, inside))} of 60000")
    for how, want in (("nodes", 40000 * 20), ("whole", 0)):
        traces, p = trace(f"graphs {how}", [t, "launches=0", "graphs=40000"], "--graphs", how)
        launches, said = rows(traces[0])
        nodes = [r for r in launches if r["graph_node"]]
        order = sum(int(a["graph_node"]) > int(b["graph_node"]) and i % 20 != 19 for i, (a, b) in enumerate(zip(nodes, nodes[1:])))
        say(len(nodes) == want and not order, f"graphs, {how}", f"{len(nodes)} nodes, {order} out of order {said.strip()[:120]}")
    traces, p = trace("special", [t, "launches=100", "special=1"])
    got = collections.Counter(r["kernel"] for r in rows(traces[0])[0])
    say(got["together"] == got["clustered"] == 1, "cooperative and cluster launches", dict(got))
    for library in args.cupti:
        whole(f"libcupti {library}", 20000, [t, "launches=20000", "numbered=1"], "--cupti", os.path.abspath(library))


def beside_nsys():
    """Traces a program with nsys and with the tracer: kernels, configurations and streams must
    be equal, times within 2%."""
    if not nsys:
        return print("nsys is not there: not compared", flush=True)
    for name, program in (("llm", [sys.executable, "torch_loop.py"]), ("loop", ["./traced", "launches=20000", "special=1", "graphs=500"])):
        traces, p = trace(f"{name} traced", program)
        q = run([nsys, "profile", "--trace=cuda,nvtx", "--sample=none", "--cpuctxsw=none", "--cuda-graph-trace=node", "-f", "true", "-o", f"{name}.nsys", *program])
        run([nsys, "export", "--type", "sqlite", "-f", "true", "-o", f"{name}.sqlite", f"{name}.nsys.nsys-rep"])
        if not traces or not os.path.exists(f"{name}.sqlite"):
            say(False, f"{name} under both", f"{p.stderr[-300:]} {q.stdout[-300:]} {q.stderr[-300:]}")
            continue
        both = []
        for report in (traces[0], f"{name}.sqlite"):
            launches, _ = rows(report)
            both.append((launches, collections.Counter((r["kernel"], r["grid"], r["block"], r["dynamic_shared_bytes"], r["registers"], r["stream"]) for r in launches)))
        (a, counts_a), (b, counts_b) = both
        mean = lambda launches: {k: statistics.median(int(r["duration_ns"]) for r in launches if r["kernel"] == k) for k in {r["kernel"] for r in launches}}
        ma, mb = mean(a), mean(b)
        far = {k: (ma[k], mb.get(k)) for k in ma if abs(ma[k] - mb.get(k, 0)) > max(0.02 * ma[k], 64)}
        same_order = [r["kernel"] for r in a] == [r["kernel"] for r in b]
        say(counts_a == counts_b and same_order, f"{name} under both", f"{len(a)} and {len(b)} launches, {len(counts_a)} configurations, equal: {counts_a == counts_b}, same order: {same_order}, medians apart by more than 2% and 64 ns: {far}")


TORCH = """
import sys, time, torch, torch.nn as nn
kind = sys.argv[1] if len(sys.argv) > 1 else "decode"
torch.manual_seed(0)
d, layers = 512, 6
model = nn.Sequential(*[nn.TransformerEncoderLayer(d, 8, 2048, batch_first=True, dropout=0.0) for _ in range(layers)]).cuda().to(torch.bfloat16)
x = torch.randn(4, 64, d, device="cuda", dtype=torch.bfloat16)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
def step():
    if kind == "train":
        optimizer.zero_grad(set_to_none=True)
        model(x).float().pow(2).mean().backward()
        optimizer.step()
    else:
        with torch.no_grad():
            model(x)
for _ in range(5): step()
torch.cuda.synchronize()
n = int(sys.argv[2]) if len(sys.argv) > 2 else 20
profiler = None
if "profiler" in sys.argv:
    from torch.profiler import profile, ProfilerActivity
    profiler = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
    profiler.__enter__()
begin = time.perf_counter()
for i in range(n):
    torch.cuda.nvtx.range_push(f"step {i}"); step(); torch.cuda.nvtx.range_pop()
torch.cuda.synchronize()
print(f"{(time.perf_counter() - begin) / n * 1e6:.1f} us a step")
if profiler: profiler.__exit__(None, None, None)
"""
FRAMEWORKS = {
    "torch, eager": "import torch\nx = torch.randn(512, 512, device='cuda')\nfor i in range(50): y = (x @ x).relu()\ntorch.cuda.synchronize()",
    "torch, a CUDA graph": "import torch\nx = torch.randn(256, 256, device='cuda')\ns = torch.cuda.Stream()\ns.wait_stream(torch.cuda.current_stream())\nwith torch.cuda.stream(s):\n    for _ in range(3): y = (x @ x).relu()\ntorch.cuda.current_stream().wait_stream(s)\ng = torch.cuda.CUDAGraph()\nwith torch.cuda.graph(g): y = (x @ x).relu()\nfor _ in range(50): g.replay()\ntorch.cuda.synchronize()",
    "torch.compile": "import torch\nf = torch.compile(lambda x: (x.sin() + x.cos()).relu())\nx = torch.randn(1 << 20, device='cuda')\nfor _ in range(20): f(x)\ntorch.cuda.synchronize()",
    "JAX": "import jax, jax.numpy as jnp\nf = jax.jit(lambda x: jnp.tanh(x @ x))\nx = jnp.ones((512, 512))\nfor _ in range(20): x = f(x)\nx.block_until_ready()",
    "CuPy": "import cupy\nx = cupy.ones((512, 512))\nfor _ in range(20): y = cupy.tanh(x @ x)\ncupy.cuda.Device().synchronize()",
    "torch.profiler inside": "import torch\nfrom torch.profiler import profile, ProfilerActivity\nx = torch.randn(512, 512, device='cuda')\nwith profile(activities=[ProfilerActivity.CUDA]) as p:\n    for i in range(10): y = x @ x\n    torch.cuda.synchronize()\nprint('it saw', sum(e.device_time_total > 0 for e in p.key_averages()), 'kernels')",
    "children of multiprocessing": "import torch, torch.multiprocessing as mp\ndef f(i):\n    x = torch.ones(1000, device='cuda')\n    for _ in range(100): x = x + 1\n    torch.cuda.synchronize()\nif __name__ == '__main__':\n    mp.set_start_method('fork')\n    ps = [mp.Process(target=f, args=(i,)) for i in range(2)]\n    [p.start() for p in ps]; [p.join() for p in ps]",
}
NCCL = """
import os, sys, torch, torch.distributed as dist
dist.init_process_group("nccl"); r = dist.get_rank(); torch.cuda.set_device(r)
x = torch.ones(1 << 20, device="cuda")
for _ in range(50): dist.all_reduce(x); x = x / dist.get_world_size()
torch.cuda.synchronize(); dist.destroy_process_group()
"""


def frameworks():
    for name, text in FRAMEWORKS.items():
        with open("framework.py", "w") as f:
            f.write(text)
        traces, p = trace(name, [sys.executable, "framework.py"])
        if p.returncode:
            print(f"-- {name}: not there or failed: {p.stderr.strip().splitlines()[-1:]}", flush=True)
            continue
        launches, said = rows(name)
        kernels = collections.Counter(r["kernel"] for r in launches)
        say(bool(launches), name, f"{len(traces)} traces, {len(launches)} launches, {sum(bool(r['graph_node']) for r in launches)} in graphs: {dict(kernels.most_common(3))} {p.stdout.strip()[:80]} {said.strip()[:160]}")
    nccl()


def nccl():
    gpus = run(["nvidia-smi", "-L"]).stdout.count("GPU ")
    if gpus > 1:
        with open("nccl.py", "w") as f:
            f.write(NCCL)
        traces, p = trace("nccl", [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", "nccl.py"])
        launches, said = rows("nccl")
        by = collections.Counter((r["pid"], r["device"]) for r in launches if "AllReduce" in r["kernel"])
        say(len(by) == 2 and set(by.values()) == {50}, "NCCL on two GPUs", f"{len(traces)} traces, all-reduces by process and GPU: {dict(by)} {p.stderr[-200:] if p.returncode else ''}")


LOOP = """
import sys, time, torch, torch.nn as nn, torch.nn.functional as F
kind, n = sys.argv[1], int(sys.argv[2])
torch.manual_seed(0)
D, H, L, B, T, V = (1024, 16, 12, 8, 512, 32000) if kind == "train" else (2048, 16, 16, 4, 512, 32000)
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.RMSNorm(D), nn.RMSNorm(D)
        self.qkv, self.o = nn.Linear(D, 3 * D, bias=False), nn.Linear(D, D, bias=False)
        self.g, self.u, self.d = nn.Linear(D, 4 * D, bias=False), nn.Linear(D, 4 * D, bias=False), nn.Linear(4 * D, D, bias=False)
    def forward(self, x, cache=None, at=None):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, H, D // H).permute(2, 0, 3, 1, 4)
        if cache is not None:
            cache[0].index_copy_(2, at, k)
            cache[1].index_copy_(2, at, v)
            k, v = cache
        a = F.scaled_dot_product_attention(q, k, v, is_causal=cache is None)
        x = x + self.o(a.transpose(1, 2).reshape(b, t, D))
        h = self.n2(x)
        return x + self.d(F.silu(self.g(h)) * self.u(h))
class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.b, self.h = nn.Embedding(V, D), nn.ModuleList(Block() for _ in range(L)), nn.Linear(D, V, bias=False)
    def forward(self, ids, caches=None, at=None):
        x = self.e(ids)
        for i, b in enumerate(self.b):
            x = b(x, None if caches is None else caches[i], at)
        return self.h(x)
with torch.device("cuda"):
    model = LM().bfloat16()
if kind == "train":
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    ids = torch.randint(0, V, (B, T + 1), device="cuda")
    def step():
        optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(model(ids[:, :-1]).flatten(0, 1).float(), ids[:, 1:].flatten()).backward()
        optimizer.step()
    ways = {"train": step}
else:
    model.eval().requires_grad_(False)
    caches = [torch.zeros(2, B, H, T, D // H, device="cuda", dtype=torch.bfloat16) for _ in range(L)]
    token, at = torch.zeros(B, 1, device="cuda", dtype=torch.long), torch.zeros(1, device="cuda", dtype=torch.long)
    @torch.no_grad()
    def token_step():
        token.copy_(model(token, caches, at)[:, -1:].argmax(-1))
        at.add_(1).remainder_(T)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3): token_step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph): token_step()
    ways = {"decode": lambda: (token_step(), token.cpu()), "decode with a CUDA graph": lambda: (graph.replay(), token.cpu())}
for step in ways.values():
    for _ in range(10): step()
torch.cuda.synchronize()
if "profiler" in sys.argv:
    from torch.profiler import profile, ProfilerActivity
    profiler = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
    profiler.__enter__()
for block in range(3):
    for name, step in ways.items():
        begin = time.perf_counter()
        for i in range(n): step()
        torch.cuda.synchronize()
        print(f"{(time.perf_counter() - begin) / n * 1e6:.1f} us a step of {name}", flush=True)
if "profiler" in sys.argv: profiler.__exit__(None, None, None)
"""
WAITS = {
    "input-wait": "import time, torch\nx = torch.randn(2048, 2048, device='cuda', dtype=torch.bfloat16)\nfor i in range(150):\n    time.sleep(0.02)\n    for _ in range(20): y = x @ x\n    torch.cuda.synchronize()",
    "host-compute": "import time, torch\nx = torch.randn(2048, 2048, device='cuda', dtype=torch.bfloat16)\nfor i in range(150):\n    t = time.perf_counter()\n    while time.perf_counter() < t + 0.02: pass\n    for _ in range(20): y = x @ x\n    torch.cuda.synchronize()",
}


def processor_time(argv, env):
    """Returns a program's CPU time in seconds, and its output."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    p = run(argv, env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, p


def live():
    """Watches a program that launches as fast as it can, and checks the ring trace it leaves; also thousands of
    threads, and allocations."""
    env = {"XDG_DATA_HOME": f"{work}/data", "XDG_CACHE_HOME": f"{work}/cache"}
    shutil.rmtree(f"{work}/data", ignore_errors=True)
    p = run([WARPSCOPE, "run", "--force", "--detach", "--recipe", "trace-last", "--", "./traced", "launches=20000000", "nvtx=1"], env)
    say(p.returncode == 0, "a detached run", p.stderr.strip()[-120:])
    time.sleep(5)
    took, p = processor_time([WARPSCOPE, "watch", "--format", "json", "--seconds", "10"], env)
    seconds = [json.loads(line) for line in p.stdout.splitlines()]
    if not seconds:
        return say(False, "watch", p.stderr[-300:])
    last = seconds[-1]
    say(took / 10 < 0.03 * max(1, last["launches_per_second"] / 1e5) and last["verdict"], "watching 10 s", f"{took / 10:.1%} of a core at {last['launches_per_second']:.0f} launches/s; busy {last['busy']:.0%}, tracer {last['tracer_share_of_a_core']:.1%} of a core, lost {sum(r['lost'] for r in last['recorders'])}, verdict {(last.get('verdict') or {}).get('id')}, {len(seconds)} lines")
    p = run([WARPSCOPE, "attach", "--snapshot", "--last", "2"], env)
    snapshot = p.stdout.strip()
    launches = rows(snapshot)[0] if snapshot else []
    ok = launches and last["launches_per_second"] * 1.5 < len(launches) < last["launches_per_second"] * 4.5
    say(ok and all(r["nvtx"].startswith("step ") for r in launches[200:]), "a snapshot of 2 s", f"{len(launches)} launches {p.stderr.strip()[-160:]}")
    p = run([WARPSCOPE, "attach", "--close"], env)
    closed = time.time()
    time.sleep(2.5)
    p2 = run([WARPSCOPE, "watch", "--format", "json", "--seconds", "2"], env)
    state = json.loads(p2.stdout.splitlines()[-1]) if p2.stdout.strip() else {}
    say(p.returncode == 0 and state.get("recording") is False, "closed by hand", f"recording: {state.get('recording')}, {state.get('launches_per_second')} launches/s {p.stderr.strip()[-120:]}")
    run([WARPSCOPE, "attach", "--open"], env)
    time.sleep(3)
    run([WARPSCOPE, "attach", "--stop"], env)
    p = run([WARPSCOPE, "attach", "--plain"], env, timeout=120)
    report = p.stdout.strip().splitlines()[-1:] or [""]
    launches = rows(report[0])[0] if report[0] else []
    size = os.path.getsize(report[0]) if report[0] and os.path.isfile(report[0]) else 0
    say(bool(launches), "the end of the run", f"{len(launches)} launches, {size >> 20} MiB, {p.stdout.strip()[-200:]} {p.stderr.strip()[-200:]}")
    for want, text in WAITS.items():
        with open("waits.py", "w") as f:
            f.write(text)
        traces, p = trace(want, [sys.executable, "waits.py"])
        q = run([WARPSCOPE, "triage", traces[0], "--format", "json"])
        found = json.loads(q.stdout)["findings"] if q.returncode == 0 else []
        say(bool(found) and found[0]["id"] == want, want, f"{[f['id'] for f in found]} {q.stderr.strip()[-200:]}")
    traces, p = trace("two thousand threads", ["./traced", "launches=60000", "threads=2000"])
    launches, said = rows(traces[0]) if traces else ([], p.stderr)
    say(len(launches) == 60064, "2,000 threads", f"{len(launches)} of 60064, {len({r['tid'] for r in launches})} threads {p.stdout.strip()} {said.strip()[-200:]}")
    with open("memory.py", "w") as f:
        f.write("import torch\nkept = [torch.empty(64 << 20, dtype=torch.uint8, device='cuda') for _ in range(10)]\ndel kept\ntorch.cuda.empty_cache()\nx = torch.ones(1000, device='cuda')\ntorch.cuda.synchronize()\n")
    traces, p = trace("memory", [sys.executable, "memory.py"], "--memory")
    q = run([WARPSCOPE, "timeline", traces[0]])
    calls = run([WARPSCOPE, "events", traces[0], "--rows", "api", "--format", "csv"]).stdout
    say("  memory" in q.stdout and calls.count("cuMemAlloc") >= 10 and calls.count("cuMemFree") >= 10, "allocations", f"{calls.count('cuMemAlloc')} calls that allocate, {calls.count('cuMemFree')} that free {q.stderr.strip()[-200:]}")
    traces, p = trace("all", ["./traced", "launches=2000", "numbered=1", "special=1"], "--api", "all")
    with_call = run([WARPSCOPE, "events", traces[0], "--rows", "api", "--format", "csv"]).stdout.count(",launch call,")
    say(with_call == 2002, "all calls, with those that launch", f"{with_call} launches with their call")


def bare():
    """The whole workflow in a mount namespace without nsys, ncu and the CUDA toolkit, using only the Python
    packages."""
    with open("train.py", "w") as f:
        f.write(LOOP)
    hide = "; ".join(f"if [ -d {d} ]; then mount -t tmpfs none {d}; fi" for d in ("/opt/nvidia", "/usr/local/cuda", "/usr/local/cuda-13.0", "/usr/local/cuda-13", "/usr/lib/nsight-systems", "/usr/lib/nsight-compute"))
    env = {"XDG_DATA_HOME": f"{work}/bare", "XDG_CACHE_HOME": f"{work}/bare-cache", "PATH": f"{os.path.dirname(sys.executable)}:/usr/bin:/bin:/usr/local/nvidia/bin"}
    p = run(["unshare", "-m", "sh", "-c", f"{hide}; command -v nsys ncu nvcc; {WARPSCOPE} doctor; {WARPSCOPE} run --plain -- {sys.executable} train.py train 30"], env, timeout=300)
    print(p.stdout[-3500:], p.stderr[-2500:])
    report = (p.stdout.strip().splitlines() or [""])[-1]
    q = run([WARPSCOPE, "triage", report], env)
    print(q.stdout[:2500], q.stderr[-500:])
    say(p.returncode == 0 and q.returncode == 0, "nothing but the packages of Python", report)


def costs():
    """Median times of a launch or a step, measured alternately; the ratio to the untraced program."""
    loop = ["./traced"]
    torch = lambda kind, n: [sys.executable, "loop.py", kind, str(n)]
    programs = {
        "launches back to back": loop + ["launches=150000"],
        "with 16 other calls each": loop + ["launches=80000", "chat=16"],
        "four threads": loop + ["launches=300000", "threads=4"],
        "loops (torch), training": torch("train", 25),
        "loops (torch), decoding": torch("decode", 200),
    }
    out = lambda n: ["-o", f"cost/{n}"]
    ways = {
        "alone": lambda p: p,
        "tracer": lambda p: [WARPSCOPE, "trace", *out("a"), *p],
        "kernels only": lambda p: [WARPSCOPE, "trace", "--lean", *out("b"), *p],
        "gate closed": lambda p: [WARPSCOPE, "trace", "--closed", *out("c"), *p],
        "nsys": lambda p: [nsys, "profile", "-t", "cuda", "-s", "none", "--cpuctxsw=none", "-f", "true", *out("n"), *p],
        "torch.profiler": lambda p: p + ["profiler"],
    }
    for name, program in programs.items():
        if args.only and args.only not in name:
            continue
        took, whole = collections.defaultdict(lambda: collections.defaultdict(list)), collections.defaultdict(list)
        for _ in range(args.rounds):
            for way, make in ways.items():
                if (way == "nsys" and not nsys) or (way == "torch.profiler" and "torch" not in name):
                    continue
                shutil.rmtree("cost", ignore_errors=True)
                os.makedirs("cost")
                begin = time.monotonic()
                p = run(make(program), timeout=120)
                whole[way].append(time.monotonic() - begin)
                for line in p.stdout.splitlines():
                    found = re.match(r"([\d.]+) (ns a launch|us a step.*)$", line)
                    if found:
                        took[found[2]][way].append(float(found[1]))
        for unit, of in took.items():
            base, least = statistics.median(of["alone"]), min(of["alone"])
            print(f"{name}: alone {base:.0f} {unit} (of {sorted(round(v) for v in of['alone'])}); " + "; ".join(f"{w} {statistics.median(v) / base:.2f} (least {min(v) / least:.2f})" for w, v in of.items() if w != "alone") + "; whole program, s: " + ", ".join(f"{w} {statistics.median(v):.1f}" for w, v in whole.items()), flush=True)


with open("torch_loop.py", "w") as f:
    f.write(TORCH)
with open("loop.py", "w") as f:
    f.write(LOOP)
if args.nccl:
    nccl()
elif args.cost:
    costs()
elif args.live or args.bare:
    if args.bare:
        bare()
    if args.live:
        live()
    print(f"{sum(table)} of {len(table)}")
    sys.exit(not all(table))
else:
    correctness()
    frameworks()
    beside_nsys()
    print(f"{sum(table)} of {len(table)}")
    sys.exit(not all(table))
