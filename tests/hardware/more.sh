#!/bin/sh
# The runs of fixtures/triage/more.py, recorded in both forms into a folder. By hand, on a machine with a GPU and PyTorch, from the repository's root:
#     tests/hardware/more.sh FOLDER trace|torch [NAME…]
set -u
out=$1 form=$2; shift 2
mkdir -p "$out"
[ $# -gt 0 ] || set -- $(sed -n 's/^def \([a-z_]*\)(steps.*/\1/p' fixtures/triage/more.py)
for name; do
    case $form in
    torch) timeout 60 python3 fixtures/triage/more.py "$name" "$out/$name.pt.trace.json" && gzip -9f "$out/$name.pt.trace.json" ;;
    trace) timeout 60 "${WARPSCOPE:-target/release/warpscope}" trace --profiler-api -o "$out/$name" python3 fixtures/triage/more.py "$name" ;;
    esac || echo "$name: failed"
done
