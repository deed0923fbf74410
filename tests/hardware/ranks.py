#!/usr/bin/env python3
"""Jobs of several ranks with known problems, recorded with the built-in tracer through torchrun on this machine's GPUs,
and the findings of `warpscope ranks`. Then prints the command that re-profiles a launch of each rank, to be run by
hand.

Needs two or more NVIDIA GPUs and python3 with torch. Run by hand from the repository's root:

    cargo build --release
    tests/hardware/ranks.py --warpscope target/release/warpscope --keep /tmp/ranks

With --torch PyTorch's profiler also records the same jobs; with --nsys PATH nsys does, once for the whole job. Exits
with 1 if a job is judged wrong.
"""
import argparse, glob, json, os, subprocess, sys, tempfile

PROGRAM = r'''
import os, sys, time, torch, torch.nn as nn, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
torch.manual_seed(rank)
job, steps, folder = sys.argv[1], int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None
bf, D = torch.bfloat16, "cuda"
mlp = lambda d, n: nn.Sequential(*[l for _ in range(n) for l in (nn.Linear(d, d), nn.GELU())]).to(D, bf)


def sharded():
    """Each layer's weight lies in pieces on all ranks: gathered before its product, gradients reduced and scattered after it. Rank 0 has
    sequences that are half as long again."""
    d, layers = 4096, 8
    shards = [torch.randn(d // world, d, device=D, dtype=bf) / 64 for _ in range(layers)]
    full, grad = torch.empty(d, d, device=D, dtype=bf), torch.empty(d // world, d, device=D, dtype=bf)
    x = torch.randn(6144 if rank == 0 else 4096, d, device=D, dtype=bf)

    def step(i):
        h = x
        for s in shards:
            dist.all_gather_into_tensor(full, s)
            h = h @ full
        for s in shards:
            dist.reduce_scatter_tensor(grad, full.t() @ full)
            h = h @ full
            s.add_(grad, alpha=1e-9)
    return step


def ddp(late):
    m = DDP(mlp(4096, 8), device_ids=[torch.cuda.current_device()])
    o = torch.optim.AdamW(m.parameters(), 1e-5, fused=True)
    x = torch.randn(8192, 4096, device=D, dtype=bf)

    def step(i):
        late(i)
        m(x).square().mean().backward()
        o.step()
        o.zero_grad()
    return step


def tokenise(i):
    """Rank 1's host computes before each step, and the GPU has nothing left to do meanwhile."""
    if rank == 1:
        torch.cuda.synchronize()
        end = time.perf_counter() + 0.009
        n = 0
        while time.perf_counter() < end:
            n = (n * 31 + 7) % 1000003


def checkpoint(i):
    """Once, in the middle, rank 1 stands still for a quarter of a second."""
    if rank == 1 and i == steps // 2:
        torch.cuda.synchronize()
        time.sleep(0.25)


def pipeline():
    """A stage on each rank, few microbatches, all forward and then all backward: most ranks wait most of the time."""
    stage, d, micro = mlp(4096, 6), 4096, 2
    buffers = [torch.empty(8192, d, device=D, dtype=bf) for _ in range(micro)]

    def step(i):
        outs = []
        for k in range(micro):
            if rank > 0:
                dist.recv(buffers[k], rank - 1)
            h = buffers[k].detach().requires_grad_(rank > 0)
            outs.append((h, stage(h)))
            if rank < world - 1:
                dist.send(outs[k][1].detach(), rank + 1)
        for k in range(micro):
            h, out = outs[k]
            if rank < world - 1:
                dist.recv(buffers[k], rank + 1)
                out.backward(buffers[k])
            else:
                out.square().mean().backward()
            if rank > 0:
                dist.send(h.grad, rank - 1)
    return step


def exchange():
    """Collectives of 256 MiB with hardly any work."""
    a, b = (torch.randn(128 << 20, device=D, dtype=bf) for _ in range(2))
    w = torch.randn(2048, 2048, device=D, dtype=bf)

    def step(i):
        w @ w
        dist.all_reduce(a)
        dist.all_to_all_single(b, a)
    return step


step = {"sharded": sharded, "busy_host": lambda: ddp(tokenise), "even": lambda: ddp(lambda i: None), "once": lambda: ddp(checkpoint),
        "pipeline": pipeline, "exchange": exchange}[job]()


def go(n):
    for i in range(n):
        torch.cuda.nvtx.range_push("step %d" % i)
        step(i)
        torch.cuda.nvtx.range_pop()


go(3)
torch.cuda.synchronize()
dist.barrier()
torch.cuda.synchronize()
if folder:
    from torch.profiler import profile, ProfilerActivity as A
    with profile(activities=[A.CPU, A.CUDA]) as p:
        go(steps)
        torch.cuda.synchronize()
    p.export_chrome_trace(f"{folder}/{job}_rank{rank}.pt.trace.json")
else:
    torch.cuda.cudart().cudaProfilerStart()
    go(steps)
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStop()
dist.destroy_process_group()
'''
# Job, accepted ids of the first finding, rank and cause of the straggler.
JOBS = {
    "sharded": (["straggler"], 0, "compute"),
    "busy_host": (["straggler"], 1, "host"),
    "even": (["comm-exposed", None], None, None),
    "once": (["comm-exposed", None], None, None),
    "pipeline": (["pipeline-bubble"], None, None),
    "exchange": (["comm-exposed"], None, None),
}
ap = argparse.ArgumentParser()
ap.add_argument("--warpscope", default="target/release/warpscope")
ap.add_argument("--jobs", default=",".join(JOBS))
ap.add_argument("--steps", type=int, default=24)
ap.add_argument("--keep", help="folder for the traces")
ap.add_argument("--torch", action="store_true", help="record with torch.profiler, too")
ap.add_argument("--nsys", help="record with this nsys, too")
ap.add_argument("--no-rerun", action="store_true", help="do not print the re-runs")
ap.add_argument("--judge", action="store_true", help="record nothing: judge what is in the folder")
args = ap.parse_args()
tool = os.path.abspath(args.warpscope)
keep = os.path.abspath(args.keep) if args.keep else tempfile.mkdtemp(prefix="warpscope-ranks-")
os.makedirs(keep, exist_ok=True)
program = os.path.join(keep, "job.py")
open(program, "w").write(PROGRAM)
torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=gpu", program]
wrong = []


def call(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, **more)
    if done.returncode:
        print("!", " ".join(command[:6]), "ended with", done.returncode, (done.stderr or done.stdout)[-1500:])
    return done.stdout


def judge(job, how, files):
    right, rank, cause = JOBS[job]
    if not files:
        wrong.append(f"{job} {how}: nothing recorded")
        return
    text = call([tool, "ranks", *files, "--format", "json"])
    if not text:
        wrong.append(f"{job} {how}: no answer")
        return
    said = json.loads(text)
    first = said["findings"][0]["id"] if said["findings"] else None
    who = said["straggler"] or {}
    good = first in right and who.get("rank") == rank and who.get("cause") == cause
    print(f"{'ok' if good else 'WRONG':6}{job:10} {how:7} {first} rank {who.get('rank')} {who.get('cause')}; wanted {right[0]} {rank} {cause}")
    for f in said["findings"]:
        print("         ", f["id"] + ":", f["headline"])
    for remark in said.get("remarks", []):
        print("          -", remark)
    if not good:
        wrong.append(f"{job} {how}")


for job in args.jobs.split(","):
    own = os.path.join(keep, job)
    if not args.judge:
        os.makedirs(own, exist_ok=True)
        call([tool, "trace", "-o", os.path.join(own, "t"), "--", *torchrun, job, str(args.steps)])
        if args.torch:
            call([*torchrun, job, str(args.steps), keep])
        if args.nsys:
            call([args.nsys, "profile", "-t", "cuda,nvtx", "-s", "none", "--cpuctxsw=none", "-f", "true", "-o", os.path.join(keep, job), *torchrun, job, str(args.steps)])
            call([args.nsys, "export", "--type", "sqlite", "--include-blobs", "true", "-f", "true", "-o", f"{keep}/{job}.sqlite", f"{keep}/{job}.nsys-rep"])
    judge(job, "tracer", sorted(glob.glob(own + "/*.wstrace")))
    if glob.glob(f"{keep}/{job}_rank*.json*"):
        judge(job, "torch", sorted(glob.glob(f"{keep}/{job}_rank*.json*")))
    for report in glob.glob(f"{keep}/{job}.sqlite"):
        judge(job, "nsys", [report])

if not args.no_rerun and not args.judge:
    job = args.jobs.split(",")[0]
    for trace in sorted(glob.glob(os.path.join(keep, job, "*.wstrace"))):
        # The middle launch of this rank's longest-running kernel, collectives excluded.
        rows = json.loads(call([tool, "launches", trace, "--format", "json"]) or "[]")
        rows = rows if isinstance(rows, list) else rows.get("rows", rows.get("launches", []))
        times = {}
        for r in rows:
            if "nccl" not in r["kernel"].lower():
                times.setdefault(r["kernel"], []).append(r)
        if not times:
            continue
        most = max(times.values(), key=lambda l: sum(r.get("duration_ns") or 0 for r in l))
        chosen = most[len(most) // 2]
        plan = call([tool, "rerun", trace, "--launch", str(chosen["id"])])
        print(f"re-run of {chosen['kernel'][:60]} launch {chosen['id']} of {os.path.basename(trace)}:\n{plan}")
print("wrong:", wrong or "none")
sys.exit(1 if wrong else 0)
