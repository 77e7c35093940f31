#!/usr/bin/env bash
# Collects static files when a bundle of ours, a setting or an installed package changed; the first argument is the Python to use.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1
mkdir -p .build
wanted=$("$python" -S - <<'PY'
import hashlib
from pathlib import Path

digest = hashlib.sha256()
files = [path for path in Path("static/dist").rglob("*") if path.is_file()]
for path in sorted([*files, Path("requirements.txt"), Path("kbportal/settings/base.py")]):
    digest.update(str(path).encode() + b"\0" + path.read_bytes() + b"\0")
print(digest.hexdigest())
PY
)
if [ -d staticfiles ] && [ -f .build/static.stamp ] && [ "$(cat .build/static.stamp)" = "$wanted" ]; then exit 0; fi
echo "Collecting static files ..."
log=.build/collectstatic.log
if ! "$python" manage.py collectstatic --noinput --clear --verbosity 0 >"$log" 2>&1; then
    cat "$log" >&2
    exit 1
fi
printf '%s' "$wanted" >.build/static.stamp
