#!/usr/bin/env python3
"""Does torch.profiler inside a traced program see what it sees alone, and does the tracer record everything beside it?

A loop of PyTorch profiles some of its steps, three times, and counts what its profiler recorded. It is run alone, traced from
the start, with a recording that is never opened, with one that is opened and closed beside the second profile, and with short
moments (`--overhead`). In each, every profile must have the kernels of the run alone, each after the call that launched it, and
the trace all launches of the loop.

Needs an NVIDIA GPU and PyTorch. Run by hand from the repository's root:

    cargo build --release
    python3 tests/hardware/profiler.py --warpscope target/release/warpscope [--graph]
"""
import argparse, csv, io, json, os, statistics, subprocess, sys, tempfile, time

HERE = os.path.abspath(__file__)
STEPS, PROFILES = 30, 3


def run_loop(graph, pauses, folder):
    import torch
    from torch.profiler import ProfilerActivity, profile

    x = torch.randn(1024, 1024, device="cuda")

    def body():
        y = x @ x
        for _ in range(4):
            y = y.sin()
        return y.sum()

    body()
    torch.cuda.synchronize()
    step = body
    if graph:
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            body()
        torch.cuda.current_stream().wait_stream(stream)
        captured = torch.cuda.CUDAGraph()
        with torch.cuda.graph(captured):
            body()
        step = captured.replay

    def steps():
        for _ in range(STEPS):
            step()
            torch.cuda.synchronize()

    for number in range(PROFILES):
        if pauses:
            print("pause", flush=True)
            sys.stdin.readline()
        steps()
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as p:
            steps()
        steps()
        p.export_chrome_trace(os.path.join(folder, f"profile{number}.json"))
    if pauses:
        print("pause", flush=True)
        sys.stdin.readline()


def judge_profile(path):
    """Kernels, kernels without a launching call, kernels before their call, median duration in us."""
    events = json.load(open(path))["traceEvents"]
    calls = {}
    for e in events:
        if e.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in e.get("args", {}):
            calls.setdefault(e["args"]["correlation"], e["ts"])
    kernels = [e for e in events if e.get("cat") == "kernel"]
    lost = sum(e["args"]["correlation"] not in calls for e in kernels)
    early = sum(e["ts"] < calls.get(e["args"]["correlation"], 0) for e in kernels)
    return len(kernels), lost, early, statistics.median([e["dur"] for e in kernels] or [0])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--warpscope", default="target/release/warpscope")
    ap.add_argument("--graph", action="store_true")
    ap.add_argument("--loop")
    ap.add_argument("--pauses", action="store_true")
    args = ap.parse_args()
    if args.loop:
        return run_loop(args.graph, args.pauses, args.loop)
    warpscope, wrong, alone = os.path.abspath(args.warpscope), 0, None
    cases = {"alone": None, "traced": [], "never opened": ["--closed"], "opened for the second": ["--closed"], "moments": ["--overhead", "20"],
             "kernels only": ["--lean"]}
    for name, options in cases.items():
        folder = tempfile.mkdtemp(prefix="profiler-")
        pauses = name == "opened for the second"
        loop = [sys.executable, HERE, "--loop", folder] + ["--graph"] * args.graph + ["--pauses"] * pauses
        command = loop if options is None else [warpscope, "trace", "-o", os.path.join(folder, "t"), *options, *loop]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if pauses:
            for word in (None, "--open", "--close", None):
                assert child.stdout.readline() == "pause\n", child.stderr.read()
                if word:
                    done = subprocess.run([warpscope, "attach", os.path.join(folder, "t"), word], capture_output=True, text=True)
                    print(f"  {word}: {(done.stdout + done.stderr).strip()[-200:]}")
                child.stdin.write("\n"), child.stdin.flush()
        out, errors = child.communicate(timeout=300)
        profiles = [judge_profile(os.path.join(folder, f"profile{n}.json")) for n in range(PROFILES)]
        alone = alone or profiles
        good = child.returncode == 0 and all(p[0] == a[0] and p[1] == a[1] and not p[2] for p, a in zip(profiles, alone))
        sines = None
        if options is not None:
            traces = [os.path.join(folder, f) for f in os.listdir(folder) if f.endswith(".wstrace")]
            done = subprocess.run([warpscope, "launches", *traces, "--format", "csv"], capture_output=True, text=True)
            sines = sum("sin" in ",".join(row) for row in csv.reader(io.StringIO(done.stdout)))
            expected = {"traced": 9 * STEPS * 4, "kernels only": 9 * STEPS * 4, "never opened": 0, "opened for the second": 3 * STEPS * 4}.get(name)
            # The warm-up, and the step before the capture, run outside of the loop.
            good &= expected is None or expected <= sines <= expected + 8
        wrong += not good
        print(f"{name}: kernels, without call, before call, median us: {profiles}; sines traced {sines}; exit {child.returncode}" + ("" if good else "  WRONG"),
              flush=True)
        if not good:
            print("   ", errors.strip()[-600:])
    print(f"{wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
