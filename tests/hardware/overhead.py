#!/usr/bin/env python3
"""What does recording cost loops of PyTorch? Each case runs in turn with the program alone, several times.

Prints the mean time of a step of each run and the ratio of the medians; moments of `--overhead` are rare, so that medians of steps
would not show them. Of `--overhead`, it also prints what `top` says of the whole run.

Needs an NVIDIA GPU and PyTorch. Run by hand from the repository's root:

    cargo build --release
    python3 tests/hardware/overhead.py [--warpscope target/release/warpscope] [--only NAME…] [--rounds 3] [--cases "--overhead 1" …]
"""
import argparse, json, os, statistics, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--warpscope", default="target/release/warpscope")
    ap.add_argument("--only", nargs="*", default=["train", "eager_decode", "graph_decode"])
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--seconds", type=float, default=10)
    ap.add_argument("--cases", nargs="*", default=["--overhead 1", "--closed", ""])
    args = ap.parse_args()
    warpscope = os.path.abspath(args.warpscope)
    for kind in args.only:
        folder = tempfile.mkdtemp(prefix="overhead-")
        path = os.path.join(folder, "steps.json")

        def run(steps, options):
            loop = [sys.executable, os.path.join(HERE, "attach.py"), "--loop", kind, "--steps", str(steps), "--to", path]
            command = loop if options is None else [warpscope, "trace", "-o", os.path.join(folder, "t"), *options.split(), *loop]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                print(done.stderr[-500:])
            times = json.load(open(path))["times"]
            return (times[-1][0] - times[20][0]) / (len(times) - 21) * 1000

        steps = int(args.seconds * 1000 / run(500, None))
        cases = [None, *args.cases]
        taken = {case: [] for case in cases}
        for _ in range(args.rounds):
            for case in cases:
                for name in os.listdir(folder):
                    os.remove(os.path.join(folder, name))
                taken[case].append(run(steps, case))
                if case and case.startswith("--overhead"):
                    traces = [os.path.join(folder, n) for n in os.listdir(folder) if n.endswith(".wstrace")]
                    top = subprocess.run([warpscope, "top", *traces, "--limit", "3"], capture_output=True, text=True)
                    print(f"  {kind} {case}: {top.stderr.strip()[-400:]}", flush=True)
        alone = statistics.median(taken[None])
        for case in cases:
            all_ = " ".join(f"{t:.4f}" for t in taken[case])
            print(f"{kind} {'alone' if case is None else case or 'everything'}: {all_} ms a step, {statistics.median(taken[case]) / alone:.3f}", flush=True)


if __name__ == "__main__":
    main()
