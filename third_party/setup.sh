#!/usr/bin/env bash
# setup.sh: install the requirements of builds and tests on this machine. Quick and
# silent if nothing is missing. As root on Debian it installs Debian's packages;
# elsewhere it prints the missing ones.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

need() { # COMMAND PACKAGE WHY
  command -v "$1" >/dev/null && return 0
  missing+=("$2"); why+=("$1 ($3)")
}
missing=() why=()
need gcc gcc "cgo"
need curl curl "fetching ONNX Runtime"
need openssl openssl "checking it"
need ffmpeg ffmpeg "compressed audio formats"
[ "$(uname -s)" != Linux ] || [ -e third_party/native/lib/libonnxruntime.so.1 ] || [ -n "${ONNXRUNTIME_LIB:-}" ] || need npm npm "fetching ONNX Runtime"
# A C compiler without the C library's headers can't build cgo code.
if command -v gcc >/dev/null && ! echo '#include <stdlib.h>' | gcc -E - >/dev/null 2>&1; then
  missing+=(libc6-dev); why+=("C headers (cgo)")
fi
if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "setup: installing ${missing[*]}" >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get -qq update && apt-get -qq install -y --no-install-recommends "${missing[@]}" >/dev/null
  else
    printf 'setup: %s is missing\n' "${why[@]}" >&2
    echo "setup: install: ${missing[*]} (on Debian: sudo apt-get install ${missing[*]})" >&2
    command -v gcc >/dev/null || exit 1
  fi
fi
# The recipe is for Linux; on other systems the program itself fetches ONNX Runtime.
[ "$(uname -s)" = Linux ] || exec "${GO:-go}" run ./cmd/otograph native --to third_party/native
exec bash internal/system/native/recipe/fetch.sh third_party/native
