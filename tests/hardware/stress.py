#!/usr/bin/env python3
"""Runs the stress program of tests/mock/strange.c for minutes, traced and untraced, without a GPU.

Both must print the same, end with the same exit code, and the traced one must not take more than 100 ms longer to exit.

    tests/hardware/stress.py --object tracer.so --minutes 10
"""
import argparse, os, pathlib, shutil, subprocess, tempfile, time

MOCK = pathlib.Path(__file__).resolve().parent.parent / "mock"


def build(folder):
    cc = lambda *words: subprocess.run(["cc", "-O1", "-w", *words], cwd=folder, check=True)
    cc("-fPIC", "-shared", "-o", "libcupti.so.13", MOCK / "cupti.c", "-Wl,-soname,libcupti.so.13", "-lpthread")
    cc("-fPIC", "-shared", "-o", "libcuda.so.1", MOCK / "cuda.c", "./libcupti.so.13", "-Wl,-soname,libcuda.so.1")
    cc("-o", "strange", MOCK / "strange.c", "-Wl,--no-as-needed", "./libcuda.so.1", "./libcupti.so.13", "-Wl,-rpath,$ORIGIN", "-lpthread", "-ldl")


def run(program, seed, rounds, env):
    done = subprocess.Popen([program, "stress", str(seed), str(rounds)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **env})
    try:
        out, err = done.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        # Left running, so that it can be looked at.
        raise SystemExit(f"seed {seed}: does not end, process {done.pid}, traced: {bool(env)}")
    ended = time.clock_gettime(time.CLOCK_MONOTONIC)
    return out, done.returncode, ended - float(err.split()[-1]) if err else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--object", required=True, help="the tracer's shared object")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp())
    build(folder)
    until, seed, slowest, different, traces = time.time() + 60 * args.minutes, args.seed, 0.0, 0, 0
    while time.time() < until:
        at = folder / "out"
        at.mkdir()
        object_ = str(pathlib.Path(args.object).resolve())
        env = {"CUDA_INJECTION64_PATH": object_, "NVTX_INJECTION64_PATH": object_, "LD_PRELOAD": object_, "WARPSCOPE_TRACE_OUT": str(at / "r")}
        plain, traced = run(folder / "strange", seed, args.rounds, {}), run(folder / "strange", seed, args.rounds, env)
        traces += len(list(at.glob("*.wstrace")))
        if plain[:2] != traced[:2] or list(at.glob("*.sock")):
            different += 1
            print(f"seed {seed}: exit code {plain[1]} untraced, {traced[1]} traced; output {'equal' if plain[0] == traced[0] else 'differs'}", flush=True)
        if plain[2] is not None and traced[2] is not None:
            slowest = max(slowest, traced[2] - plain[2])
        shutil.rmtree(at)
        seed += 1
    runs = seed - args.seed
    print(f"{runs} programs of {args.rounds} rounds, {traces} traces: {different} differ, slowest exit {slowest * 1000:.0f} ms longer")
    raise SystemExit(1 if different or slowest > 0.1 else 0)


main()
