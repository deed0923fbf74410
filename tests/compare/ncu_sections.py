#!/usr/bin/env python3
"""Compares sections and rules with an installed ncu, by hand: ncu_sections.py WARPSCOPE REPORT…

Every header metric of every section in `ncu --import REPORT --page details --csv --print-units base` must be in `warpscope metrics --sections`
with the same section, label and value (at ncu's two decimals), and every rule in `warpscope metrics --rules` with the same section, kind, text and
estimated speed-up.
"""
import csv, io, re, subprocess, sys


def rows(*argv):
    out = subprocess.run(argv, capture_output=True, text=True).stdout
    lines = [l for l in out.splitlines(keepends=True)]
    start = next((i for i, l in enumerate(lines) if l.startswith('"ID"') or l.startswith("result,")), None)
    return [] if start is None else list(csv.DictReader(io.StringIO("".join(lines[start:]))))


def same(theirs, ours):
    if theirs == ours:
        return True
    try:
        a, b = float(theirs.replace(",", "")), float(ours)
    except ValueError:
        return False
    return a == b or (a != a and b != b) or abs(a - b) <= 0.0050001 + abs(b) * 1e-9


def text(t):
    # ncu prints links as the label with the URL in parentheses.
    return re.sub(r"\s+", " ", re.sub(r" \(https?:[^ ]*\)", "", t)).strip()


warpscope, files = sys.argv[1], sys.argv[2:]
metrics = rules = wrong = 0
for file in files:
    ours = rows(warpscope, "metrics", file, "--sections", "--format", "csv")
    named = {}
    for r in ours:
        named.setdefault((r["result"], r["section_name"], r["label"] or r["metric"]), []).append(r["value"])
    said = {}
    for r in rows(warpscope, "metrics", file, "--rules", "--format", "csv"):
        said.setdefault((r["result"], r["section"]), []).append(r)
    for r in rows("ncu", "--import", file, "--page", "details", "--csv", "--print-units", "base"):
        if r.get("Rule Name"):
            rules += 1
            fit = [
                o for o in said.get((r["ID"], r["Section Name"]), [])
                if text(o["text"]) == text(r["Rule Description"]) and o["kind"] == (r["Rule Type"] or "")
                and (not r.get("Estimated Speedup") or same(r["Estimated Speedup"], o["speedup_percent"] or "x"))
            ]
            if not fit:
                wrong += 1
                print(f"{file}: result {r['ID']} rule {r['Rule Name']} {r['Rule Type']} {r['Rule Description'][:90]!r}")
        elif r.get("Metric Name"):
            if r["Section Name"] == "Command line profiler metrics":
                continue
            metrics += 1
            have = named.get((r["ID"], r["Section Name"], r["Metric Name"]), [])
            # ncu prints n/a for metrics that the section names for other chips only; we omit them.
            if r["Metric Value"] == "n/a" and not have:
                continue
            if not any(same(r["Metric Value"], h) or (h == "" and r["Metric Value"] in ("n/a", "no data", "")) for h in have):
                wrong += 1
                print(f"{file}: result {r['ID']} {r['Section Name']} / {r['Metric Name']}: ncu {r['Metric Value']}, ours {have}")
print(f"{len(files)} reports, {metrics} header metrics, {rules} rules, {wrong} differences")
sys.exit(wrong > 0)
