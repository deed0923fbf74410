#!/usr/bin/env python3
"""Runs re-run commands for real, and compares the launches that ncu profiled with the program's own launch log.

Needs an NVIDIA GPU, nvcc, ncu, nsys and the right to read the GPU's counters. Run by hand from the repository's root:

    cargo build --release
    tests/hardware/rerun.py --warpscope target/release/warpscope --count 60

With --tracer the captures are the built-in tracer's, and nsys is not needed.

Builds launches.cu (every launch has a unique grid.x) and probe.cu, captures them with the commands of `warpscope
recipes`, draws launches from all modes and name forms, runs the argv printed by `warpscope rerun --format json`, and
reads the result twice: with `ncu --import` and with `warpscope rerun --verify`. Clocks stay unlocked unless
--lock-clocks is given.
"""
import argparse, csv, glob, io, json, os, random, re, shutil, sqlite3, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ap = argparse.ArgumentParser()
ap.add_argument("--warpscope", default="target/release/warpscope")
ap.add_argument("--nsys", default=None)
ap.add_argument("--count", type=int, default=60)
ap.add_argument("--seed", type=int, default=1)
ap.add_argument("--keep", help="folder for the captures and results")
ap.add_argument("--lock-clocks", action="store_true")
ap.add_argument("--tracer", action="store_true", help="capture with the built-in tracer instead of nsys")
ap.add_argument("--only", help="only checks of this kind: single, threads, procs, graph, whole graph, several, range, gate, probe")
ap.add_argument("--only-ranks", action="store_true", help="only the processes that run at the same time")
args = ap.parse_args()
WARPSCOPE = os.path.abspath(args.warpscope)
work = os.path.abspath(args.keep) if args.keep else tempfile.mkdtemp(prefix="warpscope-hardware-")
os.makedirs(work, exist_ok=True)
os.chdir(work)
random.seed(args.seed)


def find_nsys():
    if args.nsys:
        return args.nsys
    return shutil.which("nsys") or (sorted(glob.glob("/opt/nvidia/nsight-*/*/host/target-linux-x64/nsys") + glob.glob("/opt/nvidia/nsight-systems/*/bin/nsys")) or ["nsys"])[-1]


NSYS = find_nsys()


def run(argv, **kw):
    return subprocess.run(argv, capture_output=True, text=True, **kw)


def warpscope(*words, check=True):
    p = run([WARPSCOPE, *words])
    if check and p.returncode:
        raise SystemExit(f"warpscope {' '.join(words)}: {p.stderr}")
    return p


for name, extra in (("launches", []), ("probe", ["-DNOAK"])):
    if not os.path.exists(name):
        p = run(["nvcc", "-O2", "-std=c++17", "--extended-lambda", "-arch=native", *extra, "-o", name, f"{HERE}/{name}.cu", "-lcuda"])
        if p.returncode:
            raise SystemExit(p.stderr)


def capture(name, recipe, program, *extra, many=False):
    """Records a program with a recipe: returns the SQLite export (both of two numbered reports) or the trace, and the
    program's output."""
    if args.tracer:
        options = {"light": ["--graphs", "whole"], "profiler-api": ["--profiler-api"], "nvtx": ["--range", *extra[1:], "--nth", "1"]}.get(recipe, [])
        p = run([WARPSCOPE, "trace", *options, "-o", name, *program])
        parts = sorted(glob.glob(f"{name}.*.wstrace"))
        if not parts:
            raise SystemExit(f"no trace {name}: {p.stdout}{p.stderr}")
        with open(f"{name}.wstrace", "wb") as out:
            for part in parts:
                with open(part, "rb") as f:
                    out.write(f.read())
        return f"{name}.wstrace", p.stdout
    argv = json.loads(warpscope("recipes", recipe, "-o", name, "--format", "json", *extra, "--", *program).stdout)["argv"]
    argv[0] = NSYS
    p = run(argv + [])
    for one in ([f"{name}.1", f"{name}.2"] if many else [name]):
        if not os.path.exists(f"{one}.nsys-rep"):
            raise SystemExit(f"no {one}.nsys-rep: {p.stdout}{p.stderr}")
        e = run([NSYS, "export", "--type", "sqlite", "--lazy=false", "-f", "true", "-o", f"{one}.sqlite", f"{one}.nsys-rep"])
        if not os.path.exists(f"{one}.sqlite"):
            raise SystemExit(f"no {one}.sqlite: {e.stdout}{e.stderr}")
    return f"{name}.sqlite", p.stdout


def truth_of(text):
    """grid.x of every launch in order, with graph nodes once for each of the four replays."""
    out, nodes = [], [int(l.split(",")[1]) for l in text.splitlines() if l.startswith("GRAPH,")]
    done = not nodes
    for l in text.splitlines():
        if l.startswith("GRAPH,") and not done:
            out += nodes * 4
            done = True
        elif l.startswith("TRUTH,"):
            out.append(int(l.split(",")[3]))
    return out


def profiled(report):
    """(kernel name, grid.x) of each result, read by ncu itself."""
    p = run(["ncu", "--import", report, "--page", "raw", "--csv", "--print-kernel-base", "function"])
    rows = list(csv.reader(io.StringIO("".join(l for l in p.stdout.splitlines(True) if l.startswith('"')))))
    if not rows:
        return []
    name, grid = rows[0].index("Kernel Name"), rows[0].index("Grid Size")
    number = lambda t: int(re.findall(r"\d+", t)[0]) if re.findall(r"\d+", t) else None
    return [(r[name], number(r[grid])) for r in rows[2:]]


CLOCKS = [] if args.lock_clocks else ["--clock-control", "none"]
table = []


def check(label, words, want, tag):
    """Runs one command; `want` is the list of grid.x that must be profiled (None: any, for graphs)."""
    if args.only and tag != args.only:
        return
    out = f"r{len(table)}"
    words = [*words, *CLOCKS, "--export", out]
    planned = warpscope("rerun", *words, "--format", "json", check=False)
    if planned.returncode:
        table.append((False, tag, label, want, [], planned.stderr.strip(), ""))
        print("FAILED", label, want, planned.stderr.strip(), sep="\n   ", flush=True)
        return
    plan = json.loads(planned.stdout)
    assert args.lock_clocks or all("--clock-control none" in c["shell"] for c in [plan, *plan["more"]]), plan
    commands, found, verdicts = [plan, *plan["more"]], [], []
    if plan["folder"]:
        os.makedirs(plan["folder"], exist_ok=True)
    for command in commands:
        p = run(command["argv"], cwd=work)
        if os.path.exists(command["output"]):
            found += profiled(command["output"])
    if len(commands) > 1:
        # Results are ordered by command.
        want = [truth[s["launch"]] for c in commands for s in c["all"]]
    ok = len(found) == len(want) and all(w is None or g == w for (_, g), w in zip(found, want))
    v = run([WARPSCOPE, "rerun", *words, "--verify", *[c["output"] for c in commands]])
    verdict = (v.stdout or v.stderr).strip()
    table.append((ok and v.returncode == 0, tag, label, want, found, verdict, " ".join(plan["argv"])))
    if not ok or v.returncode:
        print("FAILED", label, want, found, verdict, plan["shell"], p.stdout[-800:], p.stderr[-400:], sep="\n   ", flush=True)


def ranks():
    """Two concurrent processes, started by a launcher that sets RANK: a wrapper profiles a launch of one of them."""
    with open("ranks.sh", "w") as f:
        f.write('#!/bin/sh\nfor r in 0 1; do\n    [ $r = 0 ] && mode=single || mode=threads\n    RANK=$r "$@" $mode &\ndone\nwait\n')
    os.chmod("ranks.sh", 0o755)
    report, text = capture("ranks", "exact", ["./ranks.sh", "./launches"])
    listed = json.loads(warpscope("launches", report, "--format", "json").stdout)["rows"]
    pids = sorted({r["pid"] for r in listed})
    print("ranks", pids, len(listed), flush=True)
    # Rank 0 launches 200 kernels, rank 1 launches 120; they are matched by pid order.
    for rank, pid in enumerate(pids):
        mine = [r for r in listed if r["pid"] == pid]
        for row in random.sample([r for r in mine if r["kernel"] in ("saxpy", "scale", "apply")], 4):
            out, words = f"k{len(table)}", [report, "--launch", str(row["launch"])]
            words += [*CLOCKS, "--export", out]
            plan = json.loads(warpscope("rerun", *words, "--format", "json").stdout)
            if not plan["wrapper"]:
                table.append((False, "ranks", f"launch {row['launch']}", [row["grid"][0]], [], "no wrapper", plan["shell"]))
                continue
            assert args.lock_clocks or "--clock-control none" in plan["wrapper"]
            with open("wrapper.sh", "w") as f:
                f.write(plan["wrapper"])
            os.chmod("wrapper.sh", 0o755)
            p = run(["./ranks.sh", "./wrapper.sh", "./launches"])
            found = profiled(f"{out}.ncu-rep") if os.path.exists(f"{out}.ncu-rep") else []
            ok = [g for _, g in found] == [row["grid"][0]]
            v = run([WARPSCOPE, "rerun", *words, "--verify", f"{out}.ncu-rep"])
            table.append((ok and v.returncode == 0, "ranks", f"rank {rank}, launch {row['launch']} {row['kernel']}", [row["grid"][0]], found, (v.stdout or v.stderr).strip(), ""))
            if not table[-1][0]:
                print("FAILED", table[-1], plan["wrapper"], p.stdout[-600:], p.stderr[-400:], sep="\n   ", flush=True)
    # Without a launcher the wrapper fails with a message instead of running unprofiled.
    p = run(["sh", "-c", "unset RANK; exec ./wrapper.sh ./launches single"])
    table.append((p.returncode == 2 and "no rank" in p.stderr, "ranks", "a wrapper without a launcher", [], [], p.stderr.strip(), ""))


def finish():
    good = sum(r[0] for r in table)
    print("\n| ok | kind | what | expected grid.x | profiled | verdict |\n|---|---|---|---|---|---|")
    for ok, tag, label, want, found, verdict, _ in table:
        print(f"| {'yes' if ok else 'NO'} | {tag} | {label} | {', '.join('any' if w is None else str(w) for w in want)} | {', '.join(f'{k} {g}' for k, g in found)} | {verdict.split(':')[0]} |")
    print(f"\n{good} of {len(table)}")
    sys.exit(good != len(table))


if args.only_ranks:
    ranks()
    finish()
captures = {}
for mode in ("single", "threads", "graph"):
    captures[mode] = capture(mode, "exact", ["./launches", mode])
captures["procs"] = capture("procs", "forks", ["./launches", "procs"])
captures["graphg"] = capture("graphg", "light", ["./launches", "graph"])
print("captured", {m: len(truth_of(t)) for m, (_, t) in captures.items()}, flush=True)

# 1. One launch, drawn over modes and name forms.
modes, bases = ["single", "threads", "procs", "graph", "graphg"], ["function", "mangled"] + ([] if args.tracer else ["demangled"])
for i in range(args.count):
    mode, base = modes[i % len(modes)], bases[(i // len(modes)) % len(bases)]
    report, text = captures[mode]
    truth = truth_of(text)
    if mode == "graphg":
        # This report does not contain the kernels inside graphs.
        nodes = {int(l.split(",")[1]) for l in text.splitlines() if l.startswith("GRAPH,")}
        truth = [g for g in truth if g not in nodes]
    at = len(truth) - 1 if i == 4 else random.randrange(len(truth))
    check(f"{mode} launch {at} by {base}", [report, "--launch", str(at), "--base", base], [truth[at]], mode)
# 2. Graphs as a whole.
for n in (0, 2, 3):
    check(f"graph {n} of a capture of whole graphs", [captures["graphg"][0], "--graph", str(n)], [None], "whole graph")
check("the graph of a node", [captures["graph"][0], "--launch", "52", "--whole-graph"], [None], "whole graph")
# 3. Several launches.
single, truth = captures["single"][0], truth_of(captures["single"][1])


def by_sql(column, name, n):
    """grid.x of the n slowest launches of a kernel, in launch order, by SQL over the export."""
    db = sqlite3.connect(single)
    sql = f"SELECT k.gridX FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.{column} WHERE s.value = ? ORDER BY k.end - k.start DESC, k.gridX LIMIT ?"
    return sorted(r[0] for r in db.execute(sql, (name, n)))


def chosen(words):
    """Returns the launches that the program chose; the slowest ones are checked against SQL."""
    plan = json.loads(warpscope("rerun", single, *words, "--format", "json").stdout)
    got = [truth[s["launch"]] for c in [plan, *plan["more"]] for s in c["all"]]
    slowest = [w for w in words if w.startswith("--slowest=")]
    if slowest and not args.tracer:
        want = by_sql("demangledName" if "demangled" in words else "shortName", words[words.index("--kernel") + 1], int(slowest[0].split("=")[1]))
        assert sorted(got) == want, (words, got, want)
    return got


for words in (["--kernel", "saxpy", "--slowest=3"], ["--kernel", "saxpy", "--slowest", "--median"], ["--kernel", "saxpy(float *)", "--base", "demangled", "--slowest=2"],
              ["--kernel", "void ops::scale<float, (int)4>(T1 *)", "--base", "demangled", "--slowest=3"], ["--top", "3", "--nth", "2"], ["--top", "4", "--nth", "1", "--base", "mangled"],
              ["--launch", "16,17,18"], ["--kernel", "saxpy", "--within", "inner", "--every"], ["--kernel", "saxpy", "--within", "step2", "--every"],
              ["--kernel", "saxpy", "--within", "inner", "--instance", "2", "--every"]):
    # A trace does not have names in nvcc's spelling.
    if args.tracer and "demangled" in words:
        continue
    check("single " + " ".join(words), [single, *words], chosen(words), "several")
# 4. Inside ranges, and gated captures.
for at in (57, 61, 115, 160):
    kernel = json.loads(warpscope("rerun", single, "--launch", str(at), "--format", "json").stdout)
    check(f"single launch {at} inside its step", [single, "--launch", str(at), "--within", f"step{at // 50}"], [truth[at]], "range")
papi, _ = capture("papi", "profiler-api", ["./probe", "prof"])
for n, want in enumerate([3, 4]):
    check(f"cudaProfilerStart, foo number {n}", [papi, "--kernel", "foo", "--nth", str(n)], [want], "gate")
step, _ = capture("step", "nvtx", ["./launches", "single"], "--range", "step1")
check("nsys -c nvtx, launch 7", [step, "--launch", "7"], [truth[57]], "gate")
check("nsys -c nvtx, launch 10", [step, "--launch", "10"], [truth[60]], "gate")
# The program stops the profiler in between, which the capture ignored.
whole, _ = capture("prof_whole", "exact", ["./probe", "prof"])
for at in range(9):
    check(f"cudaProfilerStop inside a whole capture, launch {at}", [whole, "--launch", str(at)], [at + 1], "gate")
if args.tracer:
    # The trace contains every window, and ncu counts across all of them.
    for n, want in enumerate([6, 8], start=2):
        check(f"cudaProfilerStart, foo number {n}, second window", [papi, "--kernel", "foo", "--nth", str(n)], [want], "gate")
each = None if args.tracer else capture("each", "profiler-api-each", ["./probe", "prof"], many=True)
if each:
    check("second report of repeat, launch 1", ["each.2.sqlite", "--launch", "1", "--opened-by", "profiler:2"], [7], "gate")
    check("second report of repeat, launch 2", ["each.2.sqlite", "--launch", "2", "--opened-by", "profiler:2"], [8], "gate")
    check("first report of repeat, launch 1", ["each.1.sqlite", "--launch", "1"], [4], "gate")
# 5. The probe's cases: the ordinal is grid.x.
probes = {m: capture(f"probe_{m}", "forks" if m == "procs" else "exact", ["./probe", m])[0] for m in ("seq", "names", "graph", "nvtx", "procs", "threads", "cfg")}
for mode, launch, extra, want in (
    ("seq", 8, [], 9), ("seq", 8, ["--base", "mangled"], 9), ("seq", 7, [], 8), ("seq", 10, [], 11),
    ("names", 5, [], 6), ("names", 5, ["--base", "demangled"], 6), ("names", 9, [], 10), ("names", 9, ["--base", "demangled"], 10), ("names", 6, ["--base", "mangled"], 7),
    ("names", 11, ["--base", "demangled"], 12), ("names", 13, ["--base", "demangled"], 16), ("names", 14, ["--base", "demangled"], 17),
    ("graph", 5, [], 10), ("graph", 8, [], 3),
    ("nvtx", 14, ["--within", "A"], 15), ("nvtx", 14, ["--within", "A", "--instance", "2"], 15), ("nvtx", 11, ["--within", "LLM:LLM@decode_all"], 12),
    ("nvtx", 9, ["--within", "LLM@decode_all"], 10), ("nvtx", 16, ["--within", "step[3]"], 17), ("nvtx", 8, ["--within", "A/x"], 9), ("nvtx", 15, ["--within", "A range"], 16),
    ("nvtx", 12, ["--within", "S"], 13), ("nvtx", 6, ["--within", "D:A"], 7), ("nvtx", 7, ["--within", "D:A"], 8),
    ("procs", 7, [], 202), ("procs", 10, [], 5), ("threads", 3, [], 102), ("threads", 4, ["--base", "mangled"], 3)):
    if args.tracer and "demangled" in extra:
        continue
    check(f"probe {mode} launch {launch} {' '.join(extra)}", [probes[mode], "--launch", str(launch), *extra], [want], "probe")
# 6. Concurrent processes.
if not args.only:
    ranks()
finish()
