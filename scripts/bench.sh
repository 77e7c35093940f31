#!/usr/bin/env bash
# Runs every benchmarks/bench_*.py one after the other; ONLY=search runs one.
set -euo pipefail
cd "$(dirname "$0")/.."
shopt -s nullglob
found=(benchmarks/bench_${ONLY:-*}.py)
[ ${#found[@]} -gt 0 ] || { echo "No benchmark is named '${ONLY:-}'; there are: $(ls benchmarks)" >&2; exit 1; }
for file in "${found[@]}"; do
    echo "== $file"
    "$1" -m "benchmarks.$(basename "$file" .py)"
done
