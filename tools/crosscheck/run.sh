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
export CGO_ENABLED=1 CGO_CFLAGS="-I$native/include"
export CGO_LDFLAGS="-L$native/lib -Wl,-rpath,$native/lib -Wl,--disable-new-dtags"
"${GO:-go}" "$1" -C tools -tags "${TAGS:-crosscheck}" "${@:2}" ./crosscheck
