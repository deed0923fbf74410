#!/usr/bin/env python3
"""Is a program that runs already recorded by `warpscope attach --pid`, unharmed and as fast as before after leaving?

Loops of PyTorch that were started by themselves are attached to and left again, many times. Each loop writes the wall-clock
time and the length of each step, and the bits of its result, which must be those of a run that nobody attached to.

Needs an NVIDIA GPU and PyTorch. Run by hand from the repository's root:

    cargo build --release
    python3 tests/hardware/attach.py --warpscope target/release/warpscope [--processes 5] [--times 10] [--only NAME…]
"""
import argparse, json, os, signal, statistics, subprocess, sys, tempfile, time

HERE = os.path.abspath(__file__)
LOOPS = ("train", "eager_decode", "graph_decode", "threads")
# A step of the graph is short: it must still run at the last attach.
LONGER = {"graph_decode": 4}


def run_loop(kind, steps, path):
    import torch

    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True)
    device = "cuda"
    layers = [torch.nn.Linear(512, 512) for _ in range(12)]
    model = torch.nn.Sequential(*[m for layer in layers for m in (layer, torch.nn.GELU())]).to(device)
    if kind == "train":
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        data = torch.randn(2048, 512, device=device)

        def step():
            optimizer.zero_grad()
            loss = model(data).square().mean()
            loss.backward()
            optimizer.step()
            torch.cuda.synchronize()
            return loss
    else:
        x = torch.randn(1, 512, device=device)
        with torch.no_grad():
            if kind == "graph_decode":
                stream = torch.cuda.Stream()
                with torch.cuda.stream(stream):
                    for _ in range(3):
                        y = model(x)
                torch.cuda.current_stream().wait_stream(stream)
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    y = model(x)
                    x.copy_(y / (y.norm() + 1e-6))

                def step():
                    for _ in range(10):
                        graph.replay()
                    torch.cuda.synchronize()
                    return y.sum()
            else:

                def step():
                    nonlocal x
                    with torch.no_grad():
                        for _ in range(4):
                            y = model(x)
                            x = y / (y.norm() + 1e-6)
                    torch.cuda.synchronize()
                    return x.sum()

    if kind == "threads":
        # Threads that compute and allocate outside of the interpreter's lock, so that the C library is busy.
        import threading, zlib

        def busy():
            while True:
                zlib.compress(b"some text " * 2000, 1)

        for _ in range(2):
            threading.Thread(target=busy, daemon=True).start()
    times = []
    # A signal handler that runs all the time.
    if kind == "threads":
        signal.signal(signal.SIGALRM, lambda *_: None)
        signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    print("ready", flush=True)
    for _ in range(steps):
        began = time.perf_counter()
        result = step()
        times.append((time.time(), time.perf_counter() - began))
    # At exit the interpreter gives the signal its default action, which ends the process.
    signal.setitimer(signal.ITIMER_REAL, 0)
    json.dump({"times": times, "bits": result.item().hex()}, open(path, "w"))


def start(kind, steps, folder):
    path = os.path.join(folder, "steps.json")
    if os.path.exists(path):
        os.remove(path)
    child = subprocess.Popen([sys.executable, HERE, "--loop", kind, "--steps", str(steps), "--to", path], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "ready\n", kind
    return child, path


def median_ms(times, windows, inside):
    """Median step in these windows of wall-clock time, or outside of them."""
    within = lambda t: any(a <= t <= b for a, b in windows)
    chosen = [d * 1000 for t, d in times if within(t) == inside]
    return statistics.median(chosen) if len(chosen) > 20 else None


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--warpscope", default="target/release/warpscope")
    ap.add_argument("--processes", type=int, default=5)
    ap.add_argument("--times", type=int, default=5, help="attaches to each process")
    ap.add_argument("--steps", type=int, default=8000)
    ap.add_argument("--only", nargs="*", default=list(LOOPS))
    ap.add_argument("--loop")
    ap.add_argument("--to")
    args = ap.parse_args()
    if args.loop:
        return run_loop(args.loop, args.steps, args.to)
    warpscope, wrong, attaches = os.path.abspath(args.warpscope), 0, 0
    for kind in args.only:
        folder = tempfile.mkdtemp(prefix="attach-")
        child, path = start(kind, args.steps * LONGER.get(kind, 1), folder)
        child.wait()
        plain = json.load(open(path))
        alone = statistics.median(d * 1000 for _, d in plain["times"][10:])
        print(f"{kind}: alone {alone:.4f} ms a step, {plain['bits']}", flush=True)
        for number in range(args.processes):
            child, path = start(kind, args.steps * LONGER.get(kind, 1), folder)
            time.sleep(1.5)
            windows, notes, first, leaving = [], [], None, set()
            for turn in range(args.times):
                began = time.time()
                done = subprocess.run([warpscope, "attach", "--pid", str(child.pid), "--seconds", "0.5", "-o", os.path.join(folder, f"trace{number}")],
                                      capture_output=True, text=True, timeout=60)
                windows.append((began - 0.05, time.time() + 0.05))
                if done.returncode:
                    notes.append(done.stderr.strip().splitlines()[-1] if done.stderr else f"exit {done.returncode}")
                    break
                attaches += 1
                leaving |= {line.split(': ', 1)[-1] for line in done.stderr.splitlines() if 'CUPTI' in line}
                first = first or (time.time() - began)
                time.sleep(1)
            code = child.wait()
            if code:
                wrong += 1
                print(f"  {number}: the program ended with {code}: {notes}", flush=True)
                continue
            after = json.load(open(path))
            kernels = 0
            if not notes:
                trace = os.path.join(folder, f"trace{number}.{child.pid}.wstrace")
                top = subprocess.run([warpscope, "top", trace, "--format", "json"], capture_output=True, text=True)
                document = json.loads(top.stdout) if top.stdout else {}
                kernels = document.get("launches", 0)
                size = os.path.getsize(trace)
            last = windows[-1][1]
            later = [d * 1000 for t, d in after["times"] if t > last + 0.1]
            before = [d * 1000 for t, d in after["times"][50:] if t < windows[0][0]]
            said = f"  {number}: {len(windows)} attaches, first {first or 0:.2f} s, {kernels} kernels"
            said += f", before {statistics.median(before) if len(before) > 20 else 0:.4f} ms, during {median_ms(after['times'], windows, True) or 0:.4f} ms"
            said += f", after {statistics.median(later) if len(later) > 20 else 0:.4f} ms"
            same = after["bits"] == plain["bits"]
            good = same and not notes and kernels > 0
            wrong += not good
            said += f" ({'; '.join(sorted(leaving))})"
            print(said + ("" if same else "  OTHER RESULT") + ("" if not notes else f"  {notes}") + ("" if good else "  WRONG"), flush=True)
    print(f"{attaches} attaches, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
