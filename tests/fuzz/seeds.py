#!/usr/bin/env python3
"""Fuzzing seeds that profilers never write: exports whose b-trees share pages or whose tables are views, and ncu
reports with many small messages and with line tables of nested inlined calls.

Usage: tests/fuzz/seeds.py SQLITE_FOLDER NCU_FOLDER (needs the command zstd)."""
import os, sqlite3, struct, subprocess, sys

root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
exports, reports = sys.argv[1:3]


def unpack(packed, to):
    subprocess.run(["zstd", "-dqf", packed, "-o", to], check=True)
    return to


def shared_pages(path, table):
    """Makes every cell of the table's root page point to the same leaf."""
    db = sqlite3.connect(path)
    root_page, = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    size, = db.execute("PRAGMA page_size").fetchone()
    highest, = db.execute(f'SELECT max(rowid) FROM "{table}"').fetchone()
    db.close()
    data = bytearray(open(path, "rb").read())
    at = lambda page: (page - 1) * size
    leaf = root_page
    while data[at(leaf)] == 5:
        leaf = struct.unpack_from(">I", data, at(leaf) + struct.unpack_from(">H", data, at(leaf) + 12)[0])[0]
    if leaf == root_page:
        data += data[at(root_page):at(root_page) + size]
        leaf = len(data) // size
    key, number = bytearray([highest & 0x7F]), highest >> 7
    while number:
        key.insert(0, number & 0x7F | 0x80)
        number >>= 7
    cell = struct.pack(">I", leaf) + bytes(key)
    count = (size - 12) // (len(cell) + 2)
    page, end = bytearray(size), size
    struct.pack_into(">BHHHBI", page, 0, 5, 0, count, 0, 0, leaf)
    for i in range(count):
        end -= len(cell)
        page[end:end + len(cell)] = cell
        struct.pack_into(">H", page, 12 + 2 * i, end)
    struct.pack_into(">H", page, 5, end)
    data[at(root_page):at(root_page) + size] = page
    struct.pack_into(">I", data, 28, len(data) // size)
    open(path, "wb").write(data)


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out + bytes([n]))


def field(number, value):
    return varint(number << 3 | 2) + varint(len(value)) + value if isinstance(value, bytes) else varint(number << 3) + varint(value)


def report(name, names, kernel):
    header = field(2, 1) + field(5, len(kernel) + 4) + field(4, names)
    with open(os.path.join(reports, name), "wb") as out:
        out.write(b"NVR\0" + struct.pack("<I", 2) + b"\x08\x07" + struct.pack("<I", len(header)) + header + struct.pack("<I", len(kernel)) + kernel)


os.makedirs(exports, exist_ok=True)
os.makedirs(reports, exist_ok=True)
single = os.path.join(root, "fixtures/nsys/single.sqlite.zst")
for table in ["CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "StringIds", "META_DATA_CAPTURE"]:
    shared_pages(unpack(single, os.path.join(exports, f"shared-{table}.sqlite")), table)
for table in ["StringIds", "CUPTI_ACTIVITY_KIND_RUNTIME"]:
    db = sqlite3.connect(unpack(single, os.path.join(exports, f"view-{table}.sqlite")))
    endless = "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT id, 'name' AS value FROM n"
    db.executescript(f"ALTER TABLE {table} RENAME TO other; CREATE VIEW {table} AS {endless};")
    db.close()
duration = field(1, b"gpu__time_duration.sum")
size = field(10, field(1, 64) + field(2, 1) + field(3, 1)) + field(11, field(1, 128) + field(2, 1) + field(3, 1))
report("names.ncu-rep", field(1, b"") * 20000, field(6, b"k") + size)
for number in [13, 17, 19, 21]:
    report(f"many-{number}.ncu-rep", duration, field(6, b"k") + size + field(number, b"") * 20000)
unpack(os.path.join(root, "fixtures/hostile/dwarf-chain.ncu-rep.zst"), os.path.join(reports, "dwarf-chain.ncu-rep"))
