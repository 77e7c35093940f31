#!/usr/bin/env bash
# Runs every program in benchmarks/ one after the other; ONLY=search_quality runs one.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1
known=$(grep -l '__name__ == "__main__"' benchmarks/*.py | xargs -n 1 basename -s .py)
for name in ${ONLY:-$known}; do
    if ! grep -qx "$name" <<<"$known"; then
        echo "No benchmark is named $name; there are: $(tr '\n' ' ' <<<"$known")" >&2
        exit 1
    fi
    echo "== $name"
    "$python" -m "benchmarks.$name"
done
