#!/usr/bin/env python3
"""Reads the output of `warpscope export --format perfetto` and `--format chrome` with Perfetto's own descriptors (pip
install perfetto) and Python's json, and compares names, counts and durations with
`warpscope export --format parquet` of the same report (pip install duckdb). Usage: tests/compare/trace_event.py
WARPSCOPE REPORT… (each on its own), or with --job before several reports of one job."""
import collections, json, os, subprocess, sys, tempfile

import duckdb
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4


def perfetto(path):
    trace = pb.Trace()
    with open(path, "rb") as f:
        trace.ParseFromString(f.read())
    names, categories, keys, texts = {}, {}, {}, {}
    tracks, open_slices = {}, collections.defaultdict(list)
    slices, flows, counters, instants = [], collections.Counter(), collections.Counter(), []
    for packet in trace.packet:
        data = packet.interned_data
        for table, entries in ((names, data.event_names), (categories, data.event_categories), (keys, data.debug_annotation_names)):
            for entry in entries:
                table[entry.iid] = entry.name
        for entry in data.debug_annotation_string_values:
            texts[entry.iid] = entry.str
        if packet.HasField("track_descriptor"):
            d = packet.track_descriptor
            assert d.uuid not in tracks, "a track is told twice"
            tracks[d.uuid] = d
        if not packet.HasField("track_event"):
            continue
        e = packet.track_event
        assert e.track_uuid in tracks, "an event is on no track"
        if e.type == BEGIN:
            args = {keys[a.name_iid]: texts[a.string_value_iid] if a.HasField("string_value_iid") else a.int_value for a in e.debug_annotations}
            open_slices[e.track_uuid].append((packet.timestamp, names[e.name_iid], categories[e.category_iids[0]], args))
            flows.update(("from", f) for f in e.flow_ids)
            flows.update(("to", f) for f in e.terminating_flow_ids)
        elif e.type == END:
            start, name, category, args = open_slices[e.track_uuid].pop()
            assert packet.timestamp >= start
            slices.append((category, name, start, packet.timestamp - start, args))
        elif e.type == COUNTER:
            counters[e.track_uuid] += 1
        elif e.type == INSTANT:
            instants.append(names[e.name_iid])
    assert not any(open_slices.values()), "slices are left open"
    for d in tracks.values():
        assert not d.parent_uuid or d.parent_uuid in tracks, "a parent is missing"
    begun = {f for kind, f in flows if kind == "from"}
    ended = {f for kind, f in flows if kind == "to"}
    assert all(n == 1 for (kind, f), n in flows.items() if kind == "from"), "a flow begins twice"
    return slices, begun, ended, counters, instants, tracks


def chrome(path):
    events = json.load(open(path))["traceEvents"]
    slices = [(e["cat"], e["name"], round(e["ts"] * 1000), round(e["dur"] * 1000), e["args"]) for e in events if e["ph"] == "X"]
    begun = {e["id"] for e in events if e["ph"] == "s"}
    ended = {e["id"] for e in events if e["ph"] == "f"}
    return slices, begun, ended


def summed(slices, category):
    out = collections.defaultdict(lambda: [0, 0])
    for c, name, _, duration, _ in slices:
        if c == category:
            out[name][0] += 1
            out[name][1] += duration
    return {k: tuple(v) for k, v in out.items()}


def table(folder, name, sql):
    if not os.path.isdir(os.path.join(folder, name)):
        return {}
    rows = duckdb.sql(f"select {sql} from read_parquet('{folder}/{name}/**/*.parquet') group by 1").fetchall()
    return {r[0]: (r[1], int(r[2])) for r in rows}


def compare(program, reports):
    with tempfile.TemporaryDirectory() as folder:
        run = lambda *args: subprocess.run([program, "export", *reports, *args], check=True, capture_output=True)
        run("--format", "perfetto", "-o", f"{folder}/t.pftrace")
        run("--format", "chrome", "-o", f"{folder}/t.json")
        run("-o", f"{folder}/p")
        slices, begun, ended, counters, instants, tracks = perfetto(f"{folder}/t.pftrace")
        json_slices, json_begun, json_ended = chrome(f"{folder}/t.json")
        same = lambda s: collections.Counter((c, n, a, d) for c, n, a, d, _ in s)
        assert same(slices) == same(json_slices), "the two formats differ"
        assert (begun, ended) == (json_begun, json_ended)
        kernels = table(f"{folder}/p", "launches", "kernel, count(*), sum(duration_ns)")
        assert {k: v for k, v in summed(slices, "kernel").items() if k != "CUDA graph"} == kernels, "kernels differ"
        copies = table(f"{folder}/p", "memcpys", "case kind when 'set' then 'memset' else 'memcpy ' || kind end, count(*), sum(duration_ns)")
        assert summed(slices, "memcpy") == copies, "memcpys differ"
        calls = table(f"{folder}/p", "calls", "name, count(*), sum(duration_ns)")
        assert {k: v for k, v in summed(slices, "api").items() if k != "launch call"} == calls, "calls differ"
        ranges = collections.Counter(s[1] for s in slices if s[0] in ("nvtx", "roctx", "annotation", "operator", "python"))
        want = {k: v[0] for k, v in table(f"{folder}/p", "ranges", "name, count(*), 0").items()}
        assert dict(ranges) == want, "ranges differ"
        launched = duckdb.sql(f"select count(*) from read_parquet('{folder}/p/launches/**/*.parquet') where call_start_ns is not null").fetchall()[0][0] if kernels else 0
        to_kernels = sum(1 for s in slices if s[0] == "kernel")
        assert (len(begun) > 0) == (launched > 0 or bool(calls)), "flows"
        print(f"{', '.join(os.path.basename(r) for r in reports)}: {len(slices):,} slices on {len(tracks)} tracks, {to_kernels:,} kernels, "
              f"{len(begun & ended):,} flows, {sum(counters.values()):,} values, {len(instants)} findings: the same in all three")


if __name__ == "__main__":
    program, *reports = sys.argv[1:]
    if reports[0] == "--job":
        compare(program, reports[1:])
    else:
        for report in reports:
            compare(program, [report])
