#!/usr/bin/env bash
# run.sh: the checks of make lint besides Go: the subjects of commits, phrases to avoid in
# all texts, shell scripts with shellcheck, manifests, the page and its tests with eslint
# and prettier, Python with ruff. A tool that is not installed is named and left out; with
# CI set it is an error.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

bash test/lint/commits.sh
"${GO:-go}" run -C tools ./english

missing() {
  echo "lint: $1 is missing (on Debian: apt-get install $2): $3 is not checked" >&2
  [ -z "${CI:-}" ] || exit 1
}

if command -v shellcheck >/dev/null; then
  mapfile -t scripts < <(git ls-files '*.sh' .ci/run)
  shellcheck --severity=warning "${scripts[@]}"
else
  missing shellcheck shellcheck "no script"
fi

bash test/lint/kubernetes.sh

if ! command -v npm >/dev/null || ! command -v node >/dev/null; then
  missing npm "nodejs npm" "neither the page nor Python"
  exit 0
fi
tools=test/lint/node_modules
if [ ! -f $tools/.package-lock.json ] || [ test/lint/package-lock.json -nt $tools/.package-lock.json ]; then
  (cd test/lint && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null)
  touch $tools/.package-lock.json
fi
$tools/.bin/eslint -c test/lint/eslint.config.mjs web/src test
$tools/.bin/prettier --config test/lint/prettier.config.mjs --log-level warn --check web/src 'test/**/*.mjs'
mapfile -t programs < <(git ls-files '*.py')
node test/lint/ruff.mjs "${programs[@]}"
