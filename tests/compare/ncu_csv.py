#!/usr/bin/env python3
"""Reads ncu's CSV output in all pages, units and locales, and compares it with the report: ncu_csv.py WARPSCOPE REPORT…

Run by hand on a machine with ncu (no GPU needed) and the locales de_DE, en_US, fr_FR (missing ones are skipped; the
locales used are printed).
"""
import json, math, os, subprocess, sys, tempfile

warpscope, reports = sys.argv[1], sys.argv[2:]
known = subprocess.run(["locale", "-a"], capture_output=True, text=True).stdout.lower().split()
locales = ["C"] + [f"{l}.UTF-8" for l in ("en_US", "de_DE", "fr_FR") if f"{l.lower()}.utf8" in known]
print("locales:", *locales)
pages = {
    "raw base": ["--page", "raw", "--print-units", "base"],
    "raw auto": ["--page", "raw", "--print-units", "auto"],
    # Without --print-details all: ncu 2024.1.1 itself stops in the middle of some reports with it.
    "details": ["--page", "details", "--print-metric-name", "name"],
}


def read(path):
    out = subprocess.run([warpscope, "metrics", path, "--format", "json"], capture_output=True, text=True)
    return json.loads(out.stdout)["rows"] if out.returncode == 0 else out.stderr.strip()


def close(a, b, rounded):
    if isinstance(a, str) or isinstance(b, str):
        try:
            a, b = float(a), float(b)
        except ValueError:
            return a == b
    return (math.isnan(a) and math.isnan(b)) or abs(a - b) <= rounded + 1e-9 * abs(b)


total = bad = 0
for report in reports:
    with tempfile.TemporaryDirectory() as folder:
        path = report
        if report.endswith(".zst"):
            path = os.path.join(folder, "r.ncu-rep")
            subprocess.run(["zstd", "-qd", report, "-o", path], check=True)
        truth = read(path)
        # A column has one unit, chosen for its largest value.
        peak = {}
        for row in truth:
            for metric, v in row["metrics"].items():
                if isinstance(v["value"], (int, float)):
                    peak[metric] = max(peak.get(metric, 0), abs(v["value"]))
        for page, options in pages.items():
            for locale in locales:
                out = subprocess.run(["ncu", "--import", path, "--csv", *options], capture_output=True, env={**os.environ, "LC_ALL": locale}).stdout
                name = os.path.join(folder, "x.csv")
                open(name, "wb").write(out)
                rows = read(name)
                what = f"{os.path.basename(report)}, {page}, {locale}"
                if isinstance(rows, str) or len(rows) != len(truth):
                    print(f"{what}: {rows if isinstance(rows, str) else f'{len(rows)} results, not {len(truth)}'}")
                    bad += 1
                    continue
                errors = []
                for row, want in zip(rows, truth):
                    for fact in ("grid", "block", "device", "cc"):
                        if row[fact] != want[fact]:
                            errors.append(f"{fact}: {row[fact]}, not {want[fact]}")
                    for metric, got in row["metrics"].items():
                        have = want["metrics"].get(metric)
                        if have is None:
                            if page != "details":
                                errors.append(f"{metric}: not in the report")
                            continue
                        total += 1
                        # Two decimals, in the base unit or in one with one to three leading digits; raw auto has
                        # six, two for some.
                        value = have["value"]
                        size = abs(value) if isinstance(value, (int, float)) else 0
                        rounded = {"raw base": 0.00501, "raw auto": max(0.00501, size * 0.00501, peak.get(metric, 0) * 5.1e-7), "details": max(0.00501, size * 0.00501)}[page]
                        # In raw auto ncu prints NaN as 0.000000.
                        if page == "raw auto" and value == "NaN" and got["value"] == 0:
                            continue
                        if not close(got["value"], value, rounded):
                            errors.append(f"{metric}: {got['value']} {got['unit']}, not {have['value']}")
                        # ncu 2024.1.1 prints wrong units for these.
                        elif metric.startswith(("lts__t_sectors_srcunit_gcc", "TPC.TriageCompute.")):
                            continue
                        elif got["unit"] and have["unit"] and got["unit"] != have["unit"]:
                            errors.append(f"{metric}: in {got['unit']}, not {have['unit']}")
                bad += len(errors)
                print(f"{what}: {len(errors)} differences" + "".join(f"\n    {e}" for e in sorted(set(errors))[:8]))
print(f"{total} values compared, {bad} differences")
sys.exit(bad > 0)
