#!/usr/bin/env bash
# run.sh: the tests of the page, in a headless Chromium against bin/otograph
# with the embedded demo models. Needs Node 20, npm, ffmpeg and Debian's chromium
# (or CHROMIUM, the path of another one). With SCREENSHOTS=1 it also takes the
# pictures in docs/screenshots. With TRIES=3 a file of tests that fails is run
# again, with a service and a browser of its own each time, and fails when it has
# failed three times; without it, the first failure counts.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

for tool in node npm; do
  command -v "$tool" >/dev/null || { echo "test-web: $tool is missing (on Debian: apt-get install nodejs npm)" >&2; exit 1; }
done
command -v ffmpeg >/dev/null || { echo "test-web: ffmpeg is missing (on Debian: apt-get install ffmpeg)" >&2; exit 1; }
CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)}
[ -n "$CHROMIUM" ] || { echo "test-web: chromium is missing (on Debian: apt-get install chromium)" >&2; exit 1; }
export CHROMIUM
[ -f ../../web/dist/index.html ] || { echo "test-web: the page is not built: run make build where npm is installed" >&2; exit 1; }
if [ ! -f node_modules/.package-lock.json ] || [ package-lock.json -nt node_modules/.package-lock.json ]; then
  npm ci --ignore-scripts --no-audit --no-fund >/dev/null
  touch node_modules/.package-lock.json
fi
node_modules/.bin/tsc -p ../../web
tests=("$@")
[ $# -gt 0 ] || tests=(./*.test.mjs)
failed=() stumbled=()
for file in "${tests[@]}"; do
  for ((try = 1; ; try++)); do
    node --test --test-concurrency=1 --test-timeout=600000 "$file" && break
    stumbled+=("$file, try $try")
    [ "$try" -lt "${TRIES:-1}" ] || { failed+=("$file"); break; }
    echo "test-web: $file failed; once more" >&2
  done
done
[ ${#stumbled[@]} -eq 0 ] || printf 'test-web: failed: %s\n' "${stumbled[@]}" >&2
[ ${#failed[@]} -eq 0 ]
