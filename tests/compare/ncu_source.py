#!/usr/bin/env python3
"""Compares the source and SASS of results with an installed ncu, by hand: ncu_source.py WARPSCOPE REPORT…

Every instruction of `ncu --import REPORT --page source --csv --print-source sass` must be in `warpscope metrics --sass` with the same address, text,
samples and executions; and every source line of the view `cuda,sass` with the same instructions.
"""
import csv, json, subprocess, sys

warpscope, files = sys.argv[1], sys.argv[2:]
instructions = mapped = inlined = wrong = 0
# The column's name differs between versions.
SAMPLES = ("# Samples", "Warp Stall Sampling (All Samples)", "Warp Stall Sampling (All Cycles)", "smsp__pcsamp_sample_count")


def lines(file, result, view):
    argv = ["ncu", "--import", file, "--page", "source", "--csv", "--print-source", view, "--launch-skip", str(result), "--launch-count", "1"]
    return subprocess.run(argv, capture_output=True, text=True).stdout.splitlines()


for file in files:
    ours = json.loads(subprocess.run([warpscope, "metrics", file, "--sass", "--format", "json"], capture_output=True, text=True).stdout)["rows"]
    for result in sorted({r["result"] for r in ours}):
        mine = {r["address"]: r for r in ours if r["result"] == result}
        head = None
        for line in lines(file, result, "sass"):
            if line.startswith('"Address"'):
                head = next(csv.reader([line]))
            elif line.startswith('"0x') and head:
                row = dict(zip(head, next(csv.reader([line]))))
                have = mine.get(row["Address"])
                count = lambda k: float(row.get(k) or 0) if (row.get(k) or "0") != "-" else 0.0
                # ncu lists the whole function, including code that never ran and was never sampled, and prints 0
                # for uncollected values too.
                samples, executed = max(count(k) for k in SAMPLES), count("Instructions Executed")
                if have is None:
                    if samples or executed:
                        wrong += 1
                        print(f"{file}: result {result} {row['Address']}: not there")
                    continue
                instructions += 1
                text = row["Source"].strip().rstrip(";").strip()
                # Tools print branch targets as an address, an offset or a label.
                branch = text.split("0x")[0] == (have["text"] or "").split("0x")[0].split("`")[0] and ("BRA" in text or "CALL" in text or "BSSY" in text or "WARPSYNC" in text)
                if ((have["text"] or "") != text and not branch) or have["samples"] != samples or (have["executed"] or 0) != executed:
                    wrong += 1
                    print(f"{file}: result {result} {row['Address']}: ncu {text!r} {samples} {executed}, ours {have['text']!r} {have['samples']} {have['executed']}")
        path, number = None, None
        # Inlined code is listed under its own line and under the line of the call.
        places = {}
        for line in lines(file, result, "cuda,sass"):
            # Quotes in source text are not escaped: use only the first fields.
            fields = line.split('","')
            if line.startswith('"File Path"'):
                path, number = fields[1].strip('"').rsplit("/", 1)[-1], None
            elif line.startswith('"","","0x') and number:
                places.setdefault(fields[2], set()).add((path, number))
            elif fields[0].strip('"').isdigit() and path:
                number = int(fields[0].strip('"'))
        for address, those in places.items():
            have = mine.get(address)
            if have:
                mapped += 1
                if all(name.endswith((".hpp", ".h", ".cuh")) for name, _ in those) and (have["file"] or "").endswith(".cu"):
                    # Library code: we report the calling line of the kernel.
                    inlined += 1
                elif (have["file"], have["line"]) not in those:
                    wrong += 1
                    print(f"{file}: result {result} {address}: ncu {those}, ours {have['file']}:{have['line']}")
print(f"{len(files)} reports, {instructions} instructions, {mapped} of them at source lines ({inlined} of a library, at the line that called it), {wrong} differences")
sys.exit(wrong > 0)
