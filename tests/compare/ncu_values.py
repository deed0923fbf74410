#!/usr/bin/env python3
"""Compares `warpscope metrics` with ncu itself: ncu_values.py WARPSCOPE REPORT…

For every metric of every result, `ncu --import REPORT --page raw --csv --print-units base` must print our value at its precision, and our
unit. Run by hand on a machine with ncu (no GPU needed). Units that ncu omits for unknown chips are not compared.
"""
import csv, io, json, math, os, subprocess, sys, tempfile

warpscope, reports = sys.argv[1], sys.argv[2:]
total = bad = 0
for report in reports:
    path = report
    with tempfile.TemporaryDirectory() as folder:
        if report.endswith(".zst"):
            path = os.path.join(folder, "r.ncu-rep")
            subprocess.run(["zstd", "-qd", report, "-o", path], check=True)
        theirs = subprocess.run(["ncu", "--import", path, "--page", "raw", "--csv", "--print-units", "base"], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    ours = subprocess.run([warpscope, "metrics", report, "--format", "json"], capture_output=True, text=True)
    name = os.path.basename(report)
    lines = [l for l in theirs.stdout.splitlines(True)]
    start = next((i for i, l in enumerate(lines) if l.startswith('"ID"')), None)
    if start is None:
        print(f"{name}: ncu prints nothing ({theirs.stdout.strip()[:80]}); we: {ours.stdout[:60] or ours.stderr.strip()[:80]}")
        continue
    if ours.returncode:
        print(f"{name}: we fail: {ours.stderr.strip()}")
        bad += 1
        continue
    rows = list(csv.reader(io.StringIO("".join(lines[start:]))))
    titles, units, rows = rows[0], rows[1], [r for r in rows[2:] if len(r) == len(rows[0])]
    mine = json.loads(ours.stdout)["rows"]
    if len(rows) != len(mine):
        print(f"{name}: {len(rows)} results, we have {len(mine)}")
        bad += 1
        continue
    first = titles.index("CC") + 1 if "CC" in titles else 9
    known = any(units[first:])
    errors = []
    for row, our in zip(rows, mine):
        for title, unit, text in zip(titles[first:], units[first:], row[first:]):
            got = our["metrics"].get(title)
            # Metrics with instances only have no value of their own.
            if text in ("", "no data"):
                if got is not None:
                    errors.append(f"{title}: ncu has none, we {got}")
                continue
            total += 1
            if got is None:
                errors.append(f"{title}: ncu {text}, we none")
                continue
            value = got["value"]
            try:
                want = float(text.replace(",", ""))
                have = float(value)
                digits = len(text.split(".")[1]) if "." in text else 0
                ok = (math.isnan(want) and math.isnan(have)) or abs(want - have) <= 0.5000001 * 10 ** -digits + abs(have) * 1e-12
            except (ValueError, TypeError):
                ok = str(value) == text
            if not ok:
                errors.append(f"{title}: ncu {text}, we {value}")
            # Newer versions spell units differently.
            for new, old in (("byte/s", "byte/second"), ("hz", "cycle/second"), ("ns", "nsecond"), ("sector/s", "sector/second")):
                unit = old if unit == new else unit
            unit = unit[:-2] + "/second" if unit.endswith("/s") else unit
            # ncu 2024.1.1 gives some metrics of newer versions an impossible unit: a percentage in sectors.
            quirk = (got["unit"] == "%" and unit != "%") or title.startswith(("lts__t_sectors_srcunit_gcc", "TPC.TriageCompute."))
            if known and unit != got["unit"] and not quirk:
                errors.append(f"{title}: unit {unit!r}, we {got['unit']!r}")
        extra = set(our["metrics"]) - set(titles)
        if extra:
            errors.append(f"we have {len(extra)} more: {sorted(extra)[:5]}")
    bad += len(errors)
    print(f"{name}: {len(rows)} results, {len(errors)} differences" + "".join(f"\n    {e}" for e in sorted(set(errors))[: 400 if os.environ.get("ALL") else 8]))
print(f"{total} values compared, {bad} differences")
sys.exit(bad > 0)
