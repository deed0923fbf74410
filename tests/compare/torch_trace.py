#!/usr/bin/env python3
"""Compares warpscope's reading of PyTorch traces with Python's json: kernels by name with launches and summed
time, launch order by calls, grids and blocks.

    cargo build --release
    tests/compare/torch_trace.py [--warpscope target/release/warpscope] TRACE.json[.gz] ...

Exits with 1 on any difference. Traces that are not valid JSON are skipped with a message.
"""
import argparse, collections, decimal, gzip, json, subprocess, sys, tempfile, time

ap = argparse.ArgumentParser()
ap.add_argument("--warpscope", default="target/release/warpscope")
ap.add_argument("traces", nargs="+")
args = ap.parse_args()
bad = 0


def ns(us):
    return int((decimal.Decimal(us) * 1000).to_integral_value(rounding=decimal.ROUND_HALF_UP))


def run(*words):
    p = subprocess.run([args.warpscope, *words, "--format", "json"], capture_output=True, text=True)
    return json.loads(p.stdout) if p.returncode == 0 else p.stderr.strip()


for path in args.traces:
    data = open(path, "rb").read()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    begun = time.monotonic()
    try:
        trace = json.loads(data)
    except ValueError as e:
        print(f"left out  {path}: {e}")
        continue
    python = time.monotonic() - begun
    trace = json.loads(data, parse_float=decimal.Decimal)
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    of = lambda e: (e.get("args") or {}).get("rank", 0)
    kernels = [e for e in events if e["ph"] == "X" and e.get("cat", "").lower() == "kernel"]
    calls = {}
    for e in events:
        if e["ph"] == "X" and e.get("cat", "").lower() in ("cuda_runtime", "cuda_driver", "runtime", "driver"):
            c = (e.get("args") or {}).get("correlation")
            if c is not None:
                key = (of(e), c)
                calls[key] = min(calls.get(key, ns(e["ts"])), ns(e["ts"]))
    want = collections.defaultdict(lambda: [0, 0])
    for e in kernels:
        row = want[e["name"]]
        row[0] += 1
        row[1] += ns(e["dur"])
    # Use the uncompressed file, so that both read the same bytes.
    with tempfile.NamedTemporaryFile(suffix=".json") as f:
        f.write(data)
        f.flush()
        begun = time.monotonic()
        top = run("top", f.name, "--by", "demangled", "--limit", "1000000")
        ours = time.monotonic() - begun
        launches = run("launches", f.name)
    if isinstance(top, str):
        ok = not kernels
        print(f"{'ok' if ok else 'DIFFERS'}  {path}: {top[:150]}")
        bad += not ok
        continue
    have = {r["demangled"] or r["name"]: [r["count"], r["total_ns"]] for r in top["rows"]}
    ok = have == dict(want)
    key = lambda e: (calls.get((of(e), (e.get("args") or {}).get("correlation")), ns(e["ts"])), ns(e["ts"]))
    ordered = sorted(kernels, key=key)
    rows = launches if isinstance(launches, list) else launches["rows"]
    same = len(rows) == len(ordered)
    for row, e in zip(rows, ordered):
        a = e.get("args") or {}
        # Two launches with equal keys may come in either order.
        same &= (row["duration_ns"] == ns(e["dur"])) or key(e) in [key(x) for x in ordered if x is not e]
        if row["demangled"] == e["name"]:
            same &= row["grid"] == a.get("grid") and row["block"] == a.get("block") and row["stream"] == a.get("stream", row["stream"])
    print(f"{'ok' if ok and same else 'DIFFERS'}  {len(kernels):6} kernels  {len(data) >> 20:4} MiB  json.load {python:6.3f} s  top {ours:6.3f} s ({python / ours:.1f}x)  {path.split('/')[-1]}")
    bad += not (ok and same)
sys.exit(1 if bad else 0)
