#!/usr/bin/env bash
# run.sh test [FLAG...]: compares the engine with whisper.cpp's published Go
# bindings; run.sh vet vets the comparison. The bindings are linked against
# libwhisper and its header, as installed by `make setup`; without them, or
# without a C compiler, it prints a message and succeeds. TAGS are the build tags.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
native=$PWD/third_party/native
for file in "$native/include/whisper.h" "$native/lib/libwhisper.so"; do
  if [ ! -e "$file" ]; then
    echo "crosscheck: skipped: $file is missing (make setup)"
    exit 0
  fi
done
if ! command -v "${CC:-cc}" >/dev/null; then
  echo "crosscheck: skipped: no C compiler"
  exit 0
fi
# The compiler's own variables: with cgo's, all C code would be compiled again.
export CGO_ENABLED=1 C_INCLUDE_PATH=$native/include LIBRARY_PATH=$native/lib
run=()
[ "$1" != test ] || run=(-exec "env LD_LIBRARY_PATH=$native/lib")
"${GO:-go}" "$1" -C tools -tags "${TAGS:-crosscheck}" "${run[@]}" "${@:2}" ./crosscheck
