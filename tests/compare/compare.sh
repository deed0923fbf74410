#!/usr/bin/env bash
# Compares warpscope with `nsys stats` on the same large exports, in turn, and prints medians and ratios.
# Needs nsys on PATH and about 4 GB of disk. Usage: tests/compare/compare.sh [FOLDER]
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=${1:-$(mktemp -d)}
mkdir -p "$folder"
cargo build --release --quiet
run=target/release/warpscope
[ -f "$folder/ten.sqlite" ] || cargo run --release --quiet --example grow -- "$folder/ten.sqlite" 10450
[ -f "$folder/ranges.sqlite" ] || cargo run --release --quiet --example grow -- "$folder/ranges.sqlite" 1045 250000

# Seconds of wall clock and peak KiB of one run.
once() { /usr/bin/time -f '%e %M' "$@" 2>&1 >/dev/null | tail -n 1; }
median() { sort -n | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }'; }
# NAME RUNS FILE OUR-GROUPING THEIR-REPORT
compare() {
  local name=$1 runs=$2 file=$3 by=$4 report=$5 i ours=() theirs=() o t
  once "$run" top "$file" --by "$by" >/dev/null; cat "$file" >/dev/null
  for i in $(seq "$runs"); do ours+=("$(once "$run" top "$file" --by "$by")"); theirs+=("$(once nsys stats -q -r "$report" "$file")"); done
  o=$(printf '%s\n' "${ours[@]}" | median); t=$(printf '%s\n' "${theirs[@]}" | median)
  echo "$name: warpscope ${o} s ($(printf '%s\n' "${ours[@]}" | awk '{ print int($2 / 1024) }' | sort -n | tail -n 1) MiB), nsys ${t} s ($(printf '%s\n' "${theirs[@]}" | awk '{ print int($2 / 1024) }' | sort -n | tail -n 1) MiB), ratio $(awk "BEGIN { printf \"%.1f\", $t / $o }")"
}
compare "10 million launches, kernels by demangled name" 5 "$folder/ten.sqlite" demangled cuda_gpu_kern_sum
compare "1 million launches and 5 million ranges, kernels by demangled name" 5 "$folder/ranges.sqlite" demangled cuda_gpu_kern_sum
compare "1 million launches and 5 million ranges, by NVTX range" 1 "$folder/ranges.sqlite" nvtx nvtx_kern_sum
