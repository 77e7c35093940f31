#!/usr/bin/env bash
# What some tests need beside Python packages: a browser, Chinese fonts, Redis. Root on Debian gets them installed;
# elsewhere the tests that need them skip, and pytest lists each by name at its end.
set -euo pipefail

missing=()
command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1 || missing+=(chromium)
command -v redis-server >/dev/null 2>&1 || missing+=(redis-server)
if command -v dpkg-query >/dev/null 2>&1; then
    dpkg-query -W -f '${Status}' fonts-noto-cjk 2>/dev/null | grep -q 'ok installed' || missing+=(fonts-noto-cjk)
fi
[ ${#missing[@]} -gt 0 ] || exit 0

if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    echo "Installing ${missing[*]} ..."
    log=$(mktemp)
    # policy-rc.d: the tests start their own Redis; the package must not start one on the well-known port.
    policy=/usr/sbin/policy-rc.d
    made_policy=
    if [ ! -e "$policy" ]; then printf '#!/bin/sh\nexit 101\n' >"$policy"; chmod +x "$policy"; made_policy=1; fi
    trap '[ -z "$made_policy" ] || rm -f "$policy"; rm -f "$log"' EXIT
    if ! { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
        tail -5 "$log" >&2
        echo "Not installed: ${missing[*]}; the tests that need them will be skipped." >&2
    fi
else
    echo "Not installed: ${missing[*]}; the tests that need them will be skipped (Debian: sudo apt-get install ${missing[*]})." >&2
fi
