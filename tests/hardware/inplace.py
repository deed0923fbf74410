#!/usr/bin/env python3
"""Measures counters live during a run on a real GPU, and compares them with ncu's values for the same kernels.

Needs an NVIDIA GPU, nvcc, ncu, PyTorch and the right to read the GPU's counters. Run by hand from the repository's
root:

    cargo build --release
    tests/hardware/inplace.py --warpscope target/release/warpscope              # values and first hints, against ncu and the labels
    tests/hardware/inplace.py --warpscope target/release/warpscope --stalls     # stall reasons by line, against ncu's PC samples
    tests/hardware/inplace.py --warpscope target/release/warpscope --reruns 40  # measured must equal chosen launches
    tests/hardware/inplace.py --warpscope target/release/warpscope --cause      # time to the first hint
    tests/hardware/inplace.py --warpscope target/release/warpscope --survey     # overhead of a survey
"""
import argparse, csv, glob, io, json, os, random, re, shutil, statistics, subprocess, sys, tempfile, time, tomllib

HERE = os.path.dirname(os.path.abspath(__file__))
HINTS = os.path.join(HERE, "../../fixtures/hints")
ap = argparse.ArgumentParser()
ap.add_argument("--warpscope", default="target/release/warpscope")
ap.add_argument("--survey", action="store_true")
ap.add_argument("--stalls", action="store_true")
ap.add_argument("--reruns", type=int, default=0, metavar="N")
ap.add_argument("--seed", type=int, default=1)
ap.add_argument("--cause", action="store_true")
ap.add_argument("--no-ncu", action="store_true")
ap.add_argument("--programs", default="causes,third")
ap.add_argument("--rounds", type=int, default=5)
ap.add_argument("--budget", default="3")
ap.add_argument("--steps", type=int, default=2500, help="of the training loop; others have more, shorter ones")
ap.add_argument("--loops", default="train,decode,graph", help="programs of --survey")
ap.add_argument("--keep", help="folder for what was recorded")
args = ap.parse_args()
WARPSCOPE = os.path.abspath(args.warpscope)
work = os.path.abspath(args.keep) if args.keep else tempfile.mkdtemp(prefix="warpscope-inplace-")
os.makedirs(work, exist_ok=True)
os.chdir(work)


def run(argv, env=None, **kw):
    return subprocess.run(argv, capture_output=True, text=True, env={**os.environ, **(env or {})}, **kw)


def warpscope(*words):
    p = run([WARPSCOPE, *words])
    if p.returncode:
        raise SystemExit(f"warpscope {' '.join(words)}: {p.stderr}")
    return p.stdout


def compiled(source):
    name = os.path.splitext(os.path.basename(source))[0]
    if not os.path.exists(name):
        p = run(["nvcc", "-O3", "--extended-lambda", "-lineinfo", "-std=c++17", "-arch=native", "-o", name, source])
        if p.returncode:
            raise SystemExit(p.stderr)
    return name


def trace(name, program, *options, env=None):
    for f in glob.glob(f"{name}.*"):
        os.remove(f)
    t = time.time()
    p = run([WARPSCOPE, "trace", *options, "-o", name, *program], env, timeout=500)
    return sorted(glob.glob(f"{name}.*.wstrace")), p, time.time() - t


def median(values):
    return statistics.median(values) if values else float("nan")


# Metrics that decide between causes, compared with ncu's: relative difference, or percentage points for percentages.
COMPARED = """gpu__time_duration.sum smsp__inst_executed.sum dram__bytes_read.sum dram__bytes_write.sum sm__warps_active.avg.pct_of_peak_sustained_active
sm__throughput.avg.pct_of_peak_sustained_elapsed gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed
dram__throughput.avg.pct_of_peak_sustained_elapsed lts__throughput.avg.pct_of_peak_sustained_elapsed l1tex__throughput.avg.pct_of_peak_sustained_active
smsp__issue_active.avg.per_cycle_active l1tex__t_sector_hit_rate.pct lts__t_sector_hit_rate.pct
smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio
smsp__average_warps_issue_stalled_wait_per_issue_active.ratio sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed
l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum smsp__thread_inst_executed_per_inst_executed.ratio""".split()


def results(report):
    out = {}
    for r in json.loads(warpscope("metrics", report, "--format", "json"))["rows"]:
        out.setdefault(r["kernel"], {n: m["value"] for n, m in r["metrics"].items()})
    return out


def first_hints(report):
    out = {}
    for k in json.loads(warpscope("hints", report, "--format", "json"))["rows"]:
        out.setdefault(k["kernel"], (k["hints"][0]["id"] if k["hints"] else "none", k.get("depth")))
    return out


def labelled(name):
    with open(os.path.join(HINTS, f"{name}_labels.toml"), "rb") as f:
        return tomllib.load(f)["kernels"]


def values_and_hints():
    apart = {m: [] for m in COMPARED}
    for name in args.programs.split(","):
        program = compiled(os.path.join(HINTS, f"{name}.cu"))
        labels = labelled(name)
        chosen = [w for k in labels for w in ("--measure", f"{k}#1")]
        plain = run(["./" + program]).stdout
        files, p, seconds = trace(f"{name}_in_place", ["./" + program], *chosen)
        if not files:
            raise SystemExit(f"{name}: nothing was recorded: {p.stderr}")
        print(f"{name}: {seconds:.1f} s in place, output {'the same' if p.stdout == plain else 'DIFFERS'}, exit {p.returncode}")
        ours, hints = results(files[0]), first_hints(files[0])
        theirs = {}
        if not args.no_ncu:
            t = time.time()
            run(["ncu", "-f", "-o", f"{name}_ncu", "--set", "detailed", "--metrics", ",".join(COMPARED), "--cache-control", "none", "--clock-control", "none", "./" + program], timeout=500)
            print(f"{name}: {time.time() - t:.1f} s under ncu")
            theirs = results(f"{name}_ncu.ncu-rep")
            ncu_hints = first_hints(f"{name}_ncu.ncu-rep")
        right = ncu_right = 0
        for kernel, label in labels.items():
            found = hints.get(kernel, ("absent", None))
            ok = found[0] in label["accept"]
            right += ok
            other = ncu_hints.get(kernel, ("absent", None)) if theirs else ("", None)
            ncu_right += other[0] in label["accept"]
            print(f"  {'ok ' if ok else '-- '}{kernel:24} {found[0]:26} ncu {other[0]:26} wanted {'|'.join(label['accept'])}")
            for m in COMPARED:
                a, b = ours.get(kernel, {}).get(m), theirs.get(kernel, {}).get(m)
                if isinstance(a, (int, float)) and isinstance(b, (int, float)):
                    apart[m].append((abs(a - b) if "pct" in m else 100 * abs(a - b) / b if b else (0.0 if abs(a) < 1e-9 else 100.0), kernel, a, b))
        print(f"{name}: first hint right for {right} of {len(labels)} in place, {ncu_right} under ncu with `detailed`; {len(ours)} results")
    for m, all_ in apart.items():
        if all_:
            worst = max(all_)
            print(f"  {m:75} {'points' if 'pct' in m else '%':6} median {median([a[0] for a in all_]):7.2f}  worst {worst[0]:8.2f} {worst[1]} ({worst[2]:.6g}, ncu {worst[3]:.6g})")


# Each kernel's lines and stall reasons with their shares of its samples.
def samples_of(report):
    metrics = json.loads(warpscope("metrics", report, "--format", "json"))["rows"]
    rows = json.loads(warpscope("metrics", report, "--source", "--format", "json"))["rows"]
    out = {}
    for r in metrics:
        if r["kernel"] in out:
            continue
        start = "smsp__pcsamp_warps_issue_stalled_"
        stalls = {n[len(start):]: m["value"] for n, m in r["metrics"].items() if n.startswith(start) and not n.endswith("_not_issued") and m["value"]}
        lines = {f"{h['file']}:{h['line']}": h["samples"] for h in rows if h["result"] == r["result"]}
        total = sum(stalls.values())
        if total:
            out[r["kernel"]] = (total, {k: v / total for k, v in stalls.items()}, {k: v / max(1, sum(lines.values())) for k, v in lines.items()})
    return out


def distance(a, b):
    return sum(abs(a.get(k, 0) - b.get(k, 0)) for k in {*a, *b}) / 2


def stalls():
    for name in args.programs.split(","):
        program = compiled(os.path.join(HINTS, f"{name}.cu"))
        labels = labelled(name)
        plain = run(["./" + program]).stdout
        files, p, seconds = trace(f"{name}_stalls", ["./" + program], *[w for k in labels for w in ("--stalls", f"{k}#1")])
        if not files:
            raise SystemExit(f"{name}: nothing was recorded: {p.stderr}")
        print(f"{name}: {seconds:.1f} s sampled, output {'the same' if p.stdout == plain else 'DIFFERS'}, exit {p.returncode}, {os.path.getsize(files[0])} bytes")
        ours = samples_of(files[0])
        run(["ncu", "-f", "-o", f"{name}_samples", "--section", "SourceCounters", "--section", "WarpStateStats", "--cache-control", "none", "--clock-control", "none", "./" + program], timeout=500)
        theirs = samples_of(f"{name}_samples.ncu-rep")
        both = [k for k in ours if k in theirs]
        print(f"{name}: {len(ours)} of {len(labels)} kernels sampled, {len(both)} with ncu's samples beside them")
        far = []
        for k in both:
            (n, reasons, lines), (m, reasons_, lines_) = ours[k], theirs[k]
            top = lambda d: max(d, key=d.get) if d else "none"
            far.append((distance(reasons, reasons_), distance(lines, lines_), top(reasons) == top(reasons_), top(lines) == top(lines_)))
            print(f"  {k[:40]:40} {n:8.0f} samples, ncu {m:8.0f}; reasons apart {100 * far[-1][0]:5.1f} %, lines {100 * far[-1][1]:5.1f} %; "
                  f"{top(reasons)} (ncu {top(reasons_)}), {top(lines)} (ncu {top(lines_)})")
        if far:
            print(f"{name}: reasons apart by {100 * median([f[0] for f in far]):.1f} % (median), lines by {100 * median([f[1] for f in far]):.1f} %; "
                  f"the same first reason in {sum(f[2] for f in far)} of {len(far)}, the same first line in {sum(f[3] for f in far)}")


# Every launch of launches.cu has a unique grid, which identifies the launch of a result.
def reruns():
    program = "./" + compiled(os.path.join(HERE, "launches.cu"))
    random.seed(args.seed)
    exact = wrong = 0
    for mode in ("single", "threads", "resets"):
        files, p, _ = trace(f"base_{mode}", [program, mode])
        base = files[0]
        launches = json.loads(warpscope("launches", base, "--format", "json"))["rows"]
        ways = [[], ["--base", "mangled"], ["--within", "inner"], ["--question", "memory"], ["--question", "source"]]
        for turn in range(args.reruns):
            how = ways[turn % len(ways)]
            # Some launches are outside such ranges.
            for row in random.sample(launches, len(launches)):
                p = run([WARPSCOPE, "rerun", base, "--launch", str(row["launch"]), "--in-place", *how, "--format", "json"])
                if not p.returncode or "--within" not in how:
                    break
            if p.returncode:
                wrong += 1
                print(f"  {mode} {row['launch']} {how}: {p.stderr.strip()}")
                continue
            argv = json.loads(p.stdout)["argv"]
            out = argv[argv.index("--output") + 1]
            for f in glob.glob(f"{out}.*"):
                os.remove(f)
            t = time.time()
            done = run([WARPSCOPE, *argv[1:]])
            t = time.time() - t
            traces = glob.glob(f"{out}.*.wstrace")
            got = json.loads(warpscope("metrics", traces[0], "--format", "json"))["rows"] if traces else []
            grids = [r.get("grid") for r in got]
            # After a replayed launch the next similar one is sampled: here there is none.
            if grids == [row["grid"]] and done.returncode == 0:
                exact += 1
                print(f"  {mode} launch {row['launch']}: {' '.join(argv[2:argv.index('--output')])} exact, {t:.1f} s")
            else:
                wrong += 1
                print(f"  {mode} launch {row['launch']} ({row['kernel']}, grid {row['grid']}): {' '.join(argv)} measured {grids} {done.stderr.strip()[-300:]}")
    print(f"in place: {exact} of {exact + wrong} launches exact")


# A GPT-2 with random weights that generates tokens one by one.
GENERATE = r'''
import sys, torch
from torch import nn
torch.manual_seed(0)
class Block(nn.Module):
    def __init__(self, d=768, h=12):
        super().__init__()
        self.h, self.a, self.b = h, nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out, self.up, self.down = nn.Linear(d, 3 * d), nn.Linear(d, d), nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.a(x)).view(b, t, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d)
        x = x + self.out(y)
        return x + self.down(nn.functional.gelu(self.up(self.b(x)), approximate="tanh"))
net = nn.Sequential(*[Block() for _ in range(12)]).cuda().half()
table, head = nn.Embedding(50257, 768).cuda().half(), nn.Linear(768, 50257, bias=False).cuda().half()
ids = torch.randint(0, 50257, (1, 64), device="cuda")
with torch.no_grad():
    for _ in range(int(sys.argv[1])):
        ids = torch.cat([ids, head(net(table(ids))[:, -1]).argmax(-1, keepdim=True)], 1)
print(ids.sum().item())
'''


# Time from a timeline to the first hint on the longest-running kernel, with ncu and live, from the command to the hint.
def cause():
    with open("generate.py", "w") as f:
        f.write(GENERATE)
    program = [sys.executable, "generate.py", "64"]
    t = time.time()
    plain = run(program).stdout
    print(f"the program alone: {time.time() - t:.1f} s")
    files, p, seconds = trace("generated", program)
    print(f"traced: {seconds:.1f} s, output {'the same' if p.stdout == plain else 'DIFFERS'}")
    tops = [r["name"] for r in json.loads(warpscope("top", files[0], "--format", "json"))["rows"][:3]]
    for kernel in tops:
        rows = json.loads(warpscope("launches", files[0], "--kernel", kernel, "--format", "json"))["rows"]
        row = sorted(rows, key=lambda r: r["duration_ns"])[len(rows) // 2]
        said = []
        for how in (["--set", "detailed"], ["--in-place"]):
            argv = json.loads(warpscope("rerun", files[0], "--launch", str(row["launch"]), *how, "--format", "json"))["argv"]
            out = argv[argv.index("--output" if "--in-place" in how else "--export") + 1]
            for f in glob.glob(f"{out}.*"):
                os.remove(f)
            t = time.time()
            done = run([WARPSCOPE, *argv[1:]] if "--in-place" in how else argv, timeout=500)
            took = time.time() - t
            results_ = glob.glob(f"{out}.*wstrace") + glob.glob(f"{out}.ncu-rep")
            hint = json.loads(warpscope("hints", results_[0], "--format", "json"))["rows"] if results_ else []
            seconds = time.time() - t
            first = hint[0]["hints"][0]["id"] if hint and hint[0]["hints"] else "none"
            said.append(f"{'in place' if '--in-place' in how else 'ncu'} {took:.1f} s, with the hint {seconds:.1f} s: {first}{'' if results_ else ' ' + done.stderr[-200:]}"
                        + ("" if plain.strip() in done.stdout else ", OUTPUT DIFFERS"))
        print(f"  {kernel[:50]} launch {row['launch']} of {len(rows)}: {'; '.join(said)}")


LOOP = r'''
import sys, time, torch
torch.manual_seed(0)
kind, n = sys.argv[1], int(sys.argv[2])
if kind == "train":
    net = torch.nn.Sequential(*[l for _ in range(6) for l in (torch.nn.Linear(2048, 2048), torch.nn.LayerNorm(2048), torch.nn.GELU())]).cuda().bfloat16()
    opt = torch.optim.AdamW(net.parameters(), 1e-4)
    x = torch.randn(4096, 2048, device="cuda", dtype=torch.bfloat16)
    def step():
        opt.zero_grad(set_to_none=True); loss = net(x).float().pow(2).mean(); loss.backward(); opt.step(); return loss
else:
    w = [torch.randn(1024, 1024, device="cuda", dtype=torch.bfloat16) * .03 for _ in range(32)]
    x = torch.randn(8, 1024, device="cuda", dtype=torch.bfloat16)
    def once():
        y = x
        for m in w: y = torch.nn.functional.gelu(y @ m)
        return y
    if kind == "graph":
        once(); g = torch.cuda.CUDAGraph()
        with torch.cuda.graph(g): kept = once()
        def step(): g.replay(); return kept.float().sum()
    else:
        def step(): return once().float().sum()
for _ in range(10): last = step()
torch.cuda.synchronize(); t = time.perf_counter()
for _ in range(n): last = step()
torch.cuda.synchronize()
print(f"{time.perf_counter() - t:.4f} {last.item()!r}")
'''


# Two processes on one GPU; only one can be measured at a time.
def two():
    program = [sys.executable, "loop.py", "train", str(args.steps // 2)]
    times, said = {"plain": [], "survey": []}, set()
    for _ in range(args.rounds):
        for how in times:
            for f in glob.glob("two.*"):
                os.remove(f)
            words = [WARPSCOPE, "trace", f"--survey={args.budget}", "-o", "two"] if how == "survey" else []
            both = [subprocess.Popen([*words, *program], stdout=subprocess.PIPE, text=True) for _ in range(2)]
            seconds = []
            for p in both:
                a, value = p.communicate()[0].split()
                seconds.append(float(a))
                said.add(value)
            times[how].append(max(seconds))
            print(f"  two {how} {max(seconds):.3f} s", flush=True)
    m = {k: median(v) for k, v in times.items()}
    measured = [sum(d != "timeline" for _, d in first_hints(f).values()) for f in sorted(glob.glob("two.*.wstrace"))]
    print(f"two processes: plain {m['plain']:.3f} s, with survey {m['survey'] / m['plain']:.3f}; results {'identical' if len(said) == 1 else f'DIFFER {said}'}; kernels measured {measured}")
    print("   ", [f"{k} {[round(x, 3) for x in v]}" for k, v in times.items()])


def survey():
    with open("loop.py", "w") as f:
        f.write(LOOP)
    for kind, n in (("train", args.steps), ("decode", args.steps * 8), ("graph", args.steps * 16)):
        if kind not in args.loops.split(","):
            continue
        program = [sys.executable, "loop.py", kind, str(n)]
        times = {"plain": [], "traced": [], "survey": []}
        said = set()
        for turn in range(args.rounds):
            for how in times:
                # The cost of tracing alone needs fewer runs.
                if how == "traced" and turn >= 3:
                    continue
                if how == "plain":
                    p = run(program)
                else:
                    files, p, _ = trace(f"{kind}_{how}", program, *([f"--survey={args.budget}"] if how == "survey" else []))
                if p.returncode:
                    raise SystemExit(f"{kind} {how}: {p.stderr[-2000:]}")
                seconds, value = p.stdout.split()
                times[how].append(float(seconds))
                print(f"  {kind} {how} {seconds} s", flush=True)
                said.add(value)
        m = {k: median(v) for k, v in times.items()}
        hints = first_hints(files[0]) if kind != "graph" else {}
        print(f"{kind}: plain {m['plain']:.3f} s, traced {m['traced'] / m['plain']:.3f}, with survey {m['survey'] / m['plain']:.3f} "
              f"({m['survey'] / m['traced']:.3f} of traced); results {'identical' if len(said) == 1 else f'DIFFER {said}'}; {sum(d != 'timeline' for _, d in hints.values())} of {len(hints)} kernels measured")
        for k, (hint, depth) in hints.items():
            print(f"    {k[:60]:60} {hint} ({depth})")
        print("   ", [f"{k} {[round(x, 3) for x in v]}" for k, v in times.items()])


    if "two" in args.loops.split(","):
        two()


reruns() if args.reruns else cause() if args.cause else survey() if args.survey else stalls() if args.stalls else values_and_hints()
