"""Compares DuckDB's and Spark's reading of `warpscope export --format parquet` with warpscope's own output.

    python3 tests/compare/parquet.py WARPSCOPE RANK0 RANK1 ...

Needs the packages duckdb and, for Spark, pyspark (with Java); prints skipped comparisons.
"""
import json, subprocess, sys, tempfile
from collections import Counter
from pathlib import Path

warpscope, *reports = sys.argv[1:]


def ours(*words):
    return json.loads(subprocess.run([warpscope, *words, "--format", "json"], check=True, capture_output=True, text=True).stdout)


folder = tempfile.mkdtemp()
subprocess.run([warpscope, "export", *reports, "--run", "job", "-o", folder], check=True, capture_output=True)

TOP = "select kernel, count(*) as n, sum(duration_ns) as total from launches group by kernel order by total desc, kernel limit 20"
# The last rank to arrive has the shortest kernel of a collective; the others wait for the difference.
WAITS = """
    select rank, sum(duration_ns - shortest) as waited, sum(case when duration_ns = shortest then 1 else 0 end) as came_last
    from (select *, min(duration_ns) over (partition by run, "group", kind, sequence) as shortest from collectives) as c
    group by rank order by rank"""

kernels = Counter()
counts = Counter()
for report in reports:
    for row in ours("top", report, "--by", "name")["rows"]:
        kernels[row["name"]] += row["total_ns"]
        counts[row["name"]] += row["count"]
want = sorted(((n, counts[n], t) for n, t in kernels.items()), key=lambda r: (-r[2], r[0]))[:20]
ranks = ours("ranks", *reports)
failed = False


def compare(engine, top, waits):
    global failed
    top = [(n, int(c), int(t)) for n, c, t in top]
    same = top == want
    late = max(waits, key=lambda w: w[2])[0] if waits else None
    straggler = ranks["straggler"]["rank"] if ranks["straggler"] else None
    agree = straggler is None or late == straggler
    print(f"{engine}: top kernels {'equal' if same else 'DIFFER'}, last at collectives most often: rank {late}, warpscope: {straggler}")
    failed = failed or not same or not agree


try:
    import duckdb

    c = duckdb.connect()
    for table in ("launches", "collectives"):
        c.sql(f"create view {table} as select * from read_parquet('{folder}/{table}/**/*.parquet', hive_partitioning=true)")
    compare("DuckDB", c.sql(TOP).fetchall(), c.sql(WAITS).fetchall())
except ImportError:
    print("DuckDB is not installed: not compared")
try:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    for table in ("launches", "collectives"):
        spark.read.parquet(f"{folder}/{table}").createOrReplaceTempView(table)
    compare("Spark", [tuple(r) for r in spark.sql(TOP).collect()], [tuple(r) for r in spark.sql(WAITS.replace('"', "`")).collect()])
except ImportError:
    print("pyspark is not installed: not compared")
sys.exit(failed)
