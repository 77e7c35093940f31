#!/usr/bin/env bash
# Every check that needs no running portal. All of them run; the names of those that failed are listed at the end.
set -uo pipefail
cd "$(dirname "$0")/.."
python=$1
bin=$(dirname "$python")
export DJANGO_SETTINGS_MODULE=kbportal.settings.test
mkdir -p .build
failed=()

check() {
    local name=$1
    shift
    local log=".build/lint-${name// /-}.log"
    if "$@" >"$log" 2>&1; then
        printf '  ok      %s\n' "$name"
    else
        printf '  FAILED  %s\n' "$name"
        tail -40 "$log"
        failed+=("$name")
    fi
}

openapi_in_step() {
    "$python" manage.py spectacular --validate --fail-on-warn --file .build/openapi.yaml || return 1
    diff -u docs/openapi.yaml .build/openapi.yaml | head -60
    [ "${PIPESTATUS[0]}" -eq 0 ] || { echo "docs/openapi.yaml is not what the code says; run: make openapi"; return 1; }
}

check "ruff" "$python" -m ruff check .
check "format" "$python" -m ruff format --check .
check "layers" "$bin/lint-imports" --config pyproject.toml
check "types" "$python" -m mypy apps
[ ! -d templates ] || check "templates" "$python" -m djlint --quiet --lint templates
check "django check" "$python" manage.py check --fail-level WARNING
check "migrations" "$python" manage.py makemigrations --check --dry-run
check "translations" "$python" scripts/messages.py check
check "openapi" openapi_in_step

if [ ${#failed[@]} -gt 0 ]; then
    printf 'lint: %d failed: %s\n' "${#failed[@]}" "$(IFS=,; echo "${failed[*]}")" >&2
    exit 1
fi
