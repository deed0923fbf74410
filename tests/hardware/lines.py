#!/usr/bin/env python3
"""Does the verdict name the function for which the GPU waits? Loops of PyTorch, each slowed down in one function that is
known, recorded by `warpscope trace`; then the cost of the samples, on a loop of launches and on one of training.

Needs an NVIDIA GPU and PyTorch. Run by hand from the repository's root:

    cargo build --release
    python3 tests/hardware/lines.py --warpscope target/release/warpscope [--only NAME…] [--cost] [--keep FOLDER]
"""
import argparse, json, os, subprocess, sys, tempfile

HERE = os.path.abspath(__file__)

# ---- The loops: name, guilty function, text of the guilty line, verdicts that are right. Written before any recording, but for
# two: `recursion` took too little time at first, and the label of `loader_inline` was the caller of the slow function.
LOOPS = [
    ("collate", "collate", "rows = [[", ("host-compute",)),
    ("tokenize", "tokenize", "re.findall", ("host-compute",)),
    ("json_log", "log_metrics", "json.dumps", ("host-compute",)),
    ("file_log", "write_log", "os.fsync", ("input-wait", "host-compute")),
    ("numpy_metric", "accuracy", "np.sort", ("host-compute",)),
    ("pandas_like", "group_rows", "sorted(", ("host-compute",)),
    ("gc_each", "collect_garbage", "gc.collect", ("host-compute",)),
    ("recursion", "visit", "visit(", ("host-compute",)),
    ("queue", "next_batch", "batches.get()", ("input-wait",)),
    ("poll_queue", "poll_batch", "batches.get(timeout", ("input-wait", "host-compute")),
    ("pipe", "ask_worker", "readline()", ("input-wait",)),
    ("socket", "receive", "connection.recv", ("input-wait",)),
    ("pace", "wait_for_request", "time.sleep", ("input-wait",)),
    ("loader_slow", "loader_loop", "for x in loader", ("input-wait", "host-compute")),
    ("loader_inline", "decode", "sum(range", ("host-compute", "input-wait")),
    ("lock_held", "hog", "while True: sum", ("host-compute",)),
    ("checkpoint", "save_state", "torch.save", ("periodic-stall", "host-compute", "input-wait", "copy-bound", "pageable-copies", "host-sync")),
    ("item_each", "train_step", ".item()", ("host-sync", "host-compute", "small-kernels", "launch-bound")),
    ("detokenize", "detokenize", "reversed(", ("host-compute",)),
    ("many_small", "launch_many", "x = x + 1", ("launch-bound", "small-kernels", "host-compute")),
]


def run_loop(name, seconds):
    import gc, multiprocessing, queue, re, socket, threading, time
    import numpy as np, torch, torch.nn as nn
    device, start = "cuda", torch.cuda.cudart()
    a = torch.randn(2048, 2048, device=device, dtype=torch.bfloat16)

    def work(n=4):
        for _ in range(n):
            a @ a

    def burn(ms):
        end = time.perf_counter() + ms / 1e3
        while time.perf_counter() < end:
            yield

    def collate():
        for _ in burn(4):
            rows = [[float((j * k) % 7) for k in range(64)] for j in range(64)]

    text = "the quick brown fox jumps over the lazy dog " * 200

    def tokenize():
        for _ in burn(4):
            re.findall(r"\w+", text)

    table = {"step": 1, "values": list(range(300))}

    def log_metrics():
        for _ in burn(4):
            json.dumps(table)

    log = tempfile.TemporaryFile()

    def write_log():
        for _ in range(3):
            log.write(b"x" * 65536), log.flush()
            os.fsync(log.fileno())

    values = np.random.rand(200_000)

    def accuracy():
        np.sort(values)

    rows = [(i * 2654435761 % 1000003, str(i)) for i in range(8000)]

    def group_rows():
        sorted(rows, key=lambda r: r[1])

    keep = [[i] for i in range(100_000)]

    def collect_garbage():
        gc.collect()

    def visit(depth=0):
        if depth < 13:
            visit(depth + 1), visit(depth + 1)

    batches = queue.Queue(2)

    def feed(ms):
        def make():
            while True:
                time.sleep(ms / 1e3), batches.put(torch.zeros(4))
        threading.Thread(target=make, daemon=True).start()

    def next_batch():
        batches.get()

    def poll_batch():
        while True:
            try:
                return batches.get(timeout=0.0005)
            except queue.Empty:
                pass

    def worker():
        clean = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "CUDA_INJECTION64_PATH")}
        code = "import sys, time\nfor line in sys.stdin: time.sleep(0.006); print('x', flush=True)"
        return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=clean)

    child = worker() if name == "pipe" else None

    def ask_worker():
        child.stdin.write(b"\n"), child.stdin.flush()
        child.stdout.readline()

    here, connection = socket.socketpair()

    def serve():
        while True:
            time.sleep(0.006), here.send(b"x")

    def receive():
        connection.recv(1)

    def wait_for_request():
        time.sleep(0.005)

    def decode(i):
        for _ in burn(2):
            sum(range(200))
        return torch.full((64,), float(i))

    class Slow(torch.utils.data.Dataset):
        def __len__(self):
            return 1 << 20

        def __getitem__(self, i):
            return decode(i)

    def loader_loop(workers):
        loader = torch.utils.data.DataLoader(Slow(), batch_size=4, num_workers=workers)
        for x in loader:
            work()
            if time.perf_counter() > end:
                return

    def hog():
        while True: sum(i * i for i in range(500))

    model = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(4)]).to(device)
    optimizer = torch.optim.SGD(model.parameters(), 1e-4)
    inputs = torch.randn(64, 1024, device=device)

    def save_state():
        torch.save(model.state_dict(), "/tmp/lines_state.pt")

    def train_step():
        optimizer.zero_grad()
        loss = model(inputs).square().mean()
        loss.backward()
        optimizer.step()
        loss.item()

    ids = list(range(200))

    def detokenize():
        for _ in burn(3):
            "".join(reversed([chr(97 + i % 26) for i in ids]))

    small = torch.zeros(16, device=device)

    def launch_many():
        x = small
        for _ in range(300):
            x = x + 1
        return x

    steps = {
        "queue": next_batch, "poll_queue": poll_batch, "pipe": ask_worker, "socket": receive, "pace": wait_for_request, "json_log": log_metrics,
        "file_log": write_log, "numpy_metric": accuracy, "pandas_like": group_rows, "gc_each": collect_garbage, "recursion": visit,
        "collate": collate, "tokenize": tokenize, "detokenize": detokenize, "checkpoint": save_state, "item_each": train_step,
        "many_small": launch_many,
    }
    if name in ("queue", "poll_queue"):
        feed(8)
    if name == "socket":
        threading.Thread(target=serve, daemon=True).start()
    work(), torch.cuda.synchronize()
    if name == "lock_held":
        threading.Thread(target=hog, daemon=True).start()
    done, end = 0, time.perf_counter() + seconds
    if name.startswith("loader"):
        loader_loop(2 if name == "loader_slow" else 0)
    elif name == "lock_held":
        while time.perf_counter() < end:
            work(), torch.cuda.current_stream().synchronize()
    elif name == "train":
        while time.perf_counter() < end:
            train_step()
            done += 1
    elif name == "empty":
        while time.perf_counter() < end:
            launch_many()
            done += 1
    else:
        while time.perf_counter() < end:
            if name not in ("item_each", "many_small"):
                work()
            steps[name]()
            done += 1
    print(done / seconds, flush=True)
    os._exit(0) if name in ("lock_held",) else None


def judge(tool, name, guilty, text, verdicts, folder):
    prefix = os.path.join(folder, name)
    command = [tool, "trace", "-o", prefix, "--delay", "0", sys.executable, HERE, "--loop", name, "--seconds", "3"]
    command = [w for i, w in enumerate(command) if command[i - 1] != "--delay" and w != "--delay"]
    p = subprocess.run(command, capture_output=True, text=True, timeout=120)
    files = sorted((os.path.getsize(os.path.join(folder, f)), os.path.join(folder, f)) for f in os.listdir(folder) if f.startswith(name + "."))
    if not files:
        return f"no trace: {p.stderr[-200:]}"
    file = files[-1][1]
    answer = subprocess.run([tool, "triage", file, "--format", "json"], capture_output=True, text=True)
    if answer.returncode:
        return f"triage failed: {answer.stderr[-200:]}"
    report = json.loads(answer.stdout.splitlines()[0])
    source = open(HERE).read().splitlines()
    found = report["findings"][0]
    lines = report["host_lines"] or []
    top = lines[0] if lines else None
    at = source[top["line"] - 1] if top and top["file"] == HERE and top["line"] else ""
    ok_function = bool(top) and top["function"].split(".")[-1] == guilty
    words = [found["id"], "" if found["id"] in verdicts else f"(not {'/'.join(verdicts)})"]
    where = f"{top['function']}:{top['line']} {top['share_percent']:.0f}% of {top['idle_ns'] / 1e9:.2f} s, {top['activity']}" if top else "no line"
    named = guilty in found["headline"]
    return ("RIGHT" if ok_function and found["id"] in verdicts else "WRONG") + f" {' '.join(words)} | {where} | line {'yes' if text in at else 'NO: ' + at.strip()[:50]} | headline {'yes' if named else 'no: ' + found['headline'][:120]}"


def cost(tool, folder):
    def rate(prefix, loop):
        p = subprocess.run(prefix + [sys.executable, HERE, "--loop", loop, "--seconds", "4"], capture_output=True, text=True)
        return float(p.stdout.split()[-1])
    out = os.path.join(folder, "cost")
    kinds = {
        "plain": [], "stacks": [tool, "trace", "-o", out, "--"], "off": [tool, "trace", "-o", out, "--stacks", "off", "--"],
    }
    for loop in ("train", "empty"):
        rates = {k: [] for k in kinds}
        for _ in range(6):
            for kind, prefix in kinds.items():
                rates[kind].append(rate(prefix, loop))
                for f in os.listdir(folder):
                    f.startswith("cost") and os.remove(os.path.join(folder, f))
        middle = {k: sorted(v)[len(v) // 2] for k, v in rates.items()}
        print(f"{loop}: " + ", ".join(f"{k} {v:.1f}/s ({middle['plain'] / v:.4f})" for k, v in middle.items()), flush=True)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--warpscope", default="target/release/warpscope")
    ap.add_argument("--only", nargs="*")
    ap.add_argument("--cost", action="store_true")
    ap.add_argument("--keep")
    ap.add_argument("--loop")
    ap.add_argument("--seconds", type=float, default=3)
    args = ap.parse_args()
    if args.loop:
        return run_loop(args.loop, args.seconds)
    tool = os.path.abspath(args.warpscope)
    folder = args.keep or tempfile.mkdtemp(prefix="warpscope-lines-")
    os.makedirs(folder, exist_ok=True)
    right = 0
    loops = [l for l in LOOPS if args.only is None or l[0] in args.only]
    for name, guilty, text, verdicts in loops:
        said = judge(tool, name, guilty, text, verdicts, folder)
        right += said.startswith("RIGHT")
        print(f"{name}: {said}", flush=True)
    print(f"{right} of {len(loops)}")
    if args.cost:
        cost(tool, folder)


main()
