#!/usr/bin/env bash
# build.sh: builds the page into web/dist, quick and silent when nothing has
# changed since. npm brings the packages that web/package-lock.json pins; their
# scripts do not run. Without npm there is no page, and the binary says so.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

if [ -f dist/index.html ] && [ -z "$(find src ../tools/page package-lock.json -newer dist/index.html -print -quit)" ]; then
  exit 0
fi
if ! command -v npm >/dev/null; then
  echo "web: npm is missing: the page of otograph serve is left out" >&2
  exit 0
fi
if [ ! -f node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
  if ! log=$(npm ci --ignore-scripts --omit=dev --no-audit --no-fund 2>&1); then
    printf '%s\n' "$log" >&2
    echo "web: npm could not fetch the page's packages: the page of otograph serve is left out" >&2
    exit 0
  fi
  touch node_modules/.package-lock.json
fi
"${GO:-go}" run -C ../tools ./page
