#!/usr/bin/env bash
# tags.sh: vets the packages of every build tag of this project (long, town,
# real …), which no other check compiles.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# Go's own tags, and ignore, which marks programs that are run by name.
own='go|build|ignore|race|cgo|purego|unix|linux|darwin|windows|amd64|arm64'
mapfile -t tags < <(git grep -hE '^//go:build ' -- '*.go' | grep -oE '[a-z]\w*' | sort -u | grep -vxE "$own")
for tag in "${tags[@]}"; do
  mapfile -t files < <(git grep -lE "^//go:build .*\b$tag\b" -- '*.go' ':!tools')
  [ ${#files[@]} -gt 0 ] || continue # tools/crosscheck's own
  mapfile -t packages < <(for file in "${files[@]}"; do echo "./$(dirname "$file")"; done | sort -u)
  "${GO:-go}" vet -tags "$tag" "${packages[@]}" || { echo "lint: go vet -tags $tag fails" >&2; exit 1; }
done
TAGS=crosscheck,long bash tools/crosscheck/run.sh vet
