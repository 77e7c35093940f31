#!/usr/bin/env bash
# Makes .venv and installs the pinned requirements file named as the first argument, only when it or the Python changed.
set -euo pipefail
cd "$(dirname "$0")/.."
requirements=$1

if [ -n "${KB_VENV:-}" ]; then
    [ -x "$KB_VENV/bin/python" ] || { echo "KB_VENV=$KB_VENV has no bin/python." >&2; exit 1; }
    exit 0
fi

usable() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
    local candidate
    for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11 python3.14 python; do
        if command -v "$candidate" >/dev/null 2>&1 && usable "$candidate"; then echo "$candidate"; return; fi
    done
    local found
    found=$(python3 --version 2>&1 || true)
    {
        echo "Python 3.11 or newer is needed, and was not found (python3 is: ${found:-absent})."
        echo "Debian 12+, Ubuntu 24.04+: apt-get install python3 python3-venv    macOS: brew install python@3.13"
        echo "If it is installed elsewhere: make run PYTHON=/path/to/python3.13"
    } >&2
    exit 1
}

require_venv_module() {
    "$1" -c 'import ensurepip, venv' >/dev/null 2>&1 && return
    local version
    version=$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
        echo "Installing python$version-venv ..."
        apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "python$version-venv" >/dev/null
        "$1" -c 'import ensurepip, venv' >/dev/null 2>&1 && return
    fi
    echo "This Python ($1, $version) cannot make virtual environments. On Debian and Ubuntu: sudo apt-get install python$version-venv" >&2
    exit 1
}

hash_of() { cat "$@" | .venv/bin/python -S -c 'import hashlib, sys; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())'; }

if ! { [ -x .venv/bin/python ] && usable .venv/bin/python && .venv/bin/python -c 'import pip' 2>/dev/null; }; then
    python=$(find_python)
    require_venv_module "$python"
    echo "Making .venv with $("$python" --version) ..."
    rm -rf .venv .build/requirements*.stamp
    "$python" -m venv .venv
fi

mkdir -p .build
stamp=.build/${requirements%.txt}.stamp
files=(requirements.txt)
[ "$requirements" = requirements.txt ] || files+=("$requirements")
wanted="$(hash_of "${files[@]}") $(.venv/bin/python --version) $PWD"
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then exit 0; fi
echo "Installing $requirements (a minute or two the first time) ..."
if ! .venv/bin/python -m pip install --quiet --disable-pip-version-check --root-user-action=ignore -r "$requirements" >.build/pip.log 2>&1; then
    grep -v '^WARNING' .build/pip.log | tail -20 >&2
    echo "Installing $requirements failed; the whole output is in .build/pip.log." >&2
    exit 1
fi
# The development set contains the run-time set; the other way round an older development stamp no longer tells the truth.
rm -f .build/requirements*.stamp
printf '%s' "$wanted" >"$stamp"
if [ "$requirements" = requirements-dev.txt ]; then
    printf '%s' "$(hash_of requirements.txt) $(.venv/bin/python --version) $PWD" >.build/requirements.stamp
fi
