#!/usr/bin/env python3
"""Predicted gain of a run from a faster kernel, against the run with that kernel made nearly empty.

Needs an NVIDIA GPU and nvcc. Run by hand from the repository's root:

    cargo build --release
    tests/hardware/faster.py --warpscope target/release/warpscope
"""
import argparse, json, os, subprocess, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ap = argparse.ArgumentParser()
ap.add_argument("--warpscope", default="target/release/warpscope")
ap.add_argument("--steps", type=int, default=1000)
args = ap.parse_args()
WARPSCOPE = os.path.abspath(args.warpscope)
work = tempfile.mkdtemp(prefix="warpscope-faster-")
os.chdir(work)

# Mode, durations of heavy, light and the host work in a step, µs.
CASES = [
    ("steps", 100, 20, 0), ("steps", 100, 20, 60), ("steps", 100, 20, 110), ("steps", 100, 20, 200), ("steps", 20, 100, 60),
    ("sync", 100, 20, 0), ("sync", 100, 20, 60), ("copy", 100, 20, 40), ("copy", 40, 20, 200),
    ("streams", 100, 60, 0), ("streams", 60, 100, 0), ("streams", 100, 60, 150),
]


def run(argv):
    p = subprocess.run(argv, capture_output=True, text=True)
    if p.returncode:
        raise SystemExit(f"{' '.join(argv)}: {p.stderr}")
    return p.stdout


def traced(mode, heavy, light, host):
    name = f"{mode}_{heavy}_{light}_{host}.wstrace"
    run([WARPSCOPE, "trace", "-o", name, "./faster", mode, str(heavy), str(light), str(host), str(args.steps)])
    found = sorted(f for f in os.listdir() if f.startswith(name.split(".")[0] + "."))
    return found[0]


def span(report):
    """Time from the start of the first launch to the end of the last one, ns."""
    rows = json.loads(run([WARPSCOPE, "launches", report, "--format", "json"]))["rows"]
    return max(r["start_ns"] + r["duration_ns"] for r in rows) - min(r["start_ns"] for r in rows)


run(["nvcc", "-O3", "-arch=native", "-o", "faster", os.path.join(HERE, "faster.cu")])
print(f"{'mode':8} {'heavy':>5} {'light':>5} {'host':>5}   heavy runs for   said   came of it")
worst = 0
for mode, heavy, light, host in CASES:
    slow, fast = traced(mode, heavy, light, host), traced(mode, 0, light, host)
    rows = json.loads(run([WARPSCOPE, "hints", slow, "--kernel", "heavy", "--format", "json"]))["rows"]
    said = rows[0]["run"]
    got = (1 - span(fast) / span(slow)) * 100
    worst = max(worst, abs(got - said["critical_percent"]))
    print(f"{mode:8} {heavy:5} {light:5} {host:5}   {said['share_percent']:12.1f}%  {said['critical_percent']:5.1f}%  {got:9.1f}%", flush=True)
print(f"the largest difference is {worst:.1f} points of the run")
