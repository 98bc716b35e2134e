#!/usr/bin/env bash
# run.sh [PACKAGE...]: build the program for 64-bit Arm, transcribe the bundled
# recording with it in qemu's emulator, compare the words with this machine's, and run
# the tests of the engines there. Slow: the emulator computes a twentieth to a hundredth
# of what the processor under it does. All files are in bin/arm64.
#
# Needs Debian's packages qemu-user and gcc-aarch64-linux-gnu, but not root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
GO=${GO:-go}
for tool in qemu-aarch64 aarch64-linux-gnu-gcc ffmpeg; do
  command -v $tool >/dev/null || { echo "test-arm64: $tool is missing: apt-get install qemu-user gcc-aarch64-linux-gnu ffmpeg" >&2; exit 1; }
done
packages=("$@")
[ $# -gt 0 ] || packages=(./internal/engine/dsp/... ./vad/... ./diarize/... ./events/... ./asr/...)
dir=$PWD/bin/arm64
mkdir -p "$dir/root/proc"

# The emulator looks for a program's files here first: ONNX Runtime reads the
# description of the processor, which must not be this machine's.
ln -sfn /usr/aarch64-linux-gnu/lib "$dir/root/lib"
export QEMU_CPU=cortex-a76
cpu() {
  local key=$'\t: '
  printf '%s\n' "processor$key$1" "BogoMIPS${key}50.00" \
    "Features${key}fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop asimddp ssbs" \
    "CPU implementer${key}0x41" "CPU architecture: 8" "CPU variant${key}0x3" "CPU part${key}0xd0c" "CPU revision${key}1" ''
}
{ cpu 0; cpu 1; } >"$dir/root/proc/cpuinfo"

NATIVE_ARCH=arm64 NATIVE_SYSROOT=$dir/root bash internal/system/native/recipe/fetch.sh "$dir/native"
export OTOGRAPH_NATIVE=$dir/native
emulate=(qemu-aarch64 -L "$dir/root")
build=(env CGO_ENABLED=1 GOARCH=arm64 CC=aarch64-linux-gnu-gcc "$GO")
"${build[@]}" build -o "$dir/otograph" ./cmd/otograph

# Some tests decode less often for an emulator.
export OTOGRAPH_EMULATED=1

# This machine's ffmpeg decodes: in the emulator, a program can't start another
# one.
ffmpeg -v error -y -i testdata/conversation.flac -c:a pcm_s16le "$dir/conversation.wav"

# Compares words, not times: another processor's sums differ in their last bits.
words() { sed 's/^[^A-Za-z\[]*sound.*//; s/^[0-9:. –-]*SPEAKER_[0-9]* *//' | tr -s ' \n' '\n'; }
for tier in true false; do
  with=(transcribe --demo --no-cascade --optimize="$tier" -l en "$dir/conversation.wav")
  "${emulate[@]}" "$dir/otograph" "${with[@]}" 2>"$dir/log" | words >"$dir/arm64.$tier" || { cat "$dir/log" >&2; exit 1; }
  OTOGRAPH_NATIVE='' "$GO" run ./cmd/otograph "${with[@]}" 2>/dev/null | words >"$dir/here.$tier"
  [ "$(wc -w <"$dir/here.$tier")" -gt 50 ] || { echo "test-arm64: no text on this machine (optimize=$tier)" >&2; exit 1; }
  diff "$dir/here.$tier" "$dir/arm64.$tier" || { echo "test-arm64: other words than on this machine (optimize=$tier)" >&2; exit 1; }
  echo "test-arm64: optimize=$tier: $(wc -w <"$dir/here.$tier") words, the same"
done
# Nothing can start another program in the emulator: the tests find none, and those that
# need one say so and are skipped. The examples can't skip, and most of them read FLAC
# with ffmpeg.
mkdir -p "$dir/empty"
"${build[@]}" test -count 1 -timeout 3h -p 1 -skip '^Example' -exec "env PATH=$dir/empty $(command -v qemu-aarch64) -L $dir/root" "${packages[@]}"
