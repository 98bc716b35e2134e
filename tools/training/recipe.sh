#!/bin/bash
# Trains the demonstration models from scratch.  usage: recipe.sh STAGE…   (see README.md for requirements and times)
#   clips      the recognizers' training clips and the clips for choosing checkpoints
#   ctc        demo-ctc
#   lm         its language model
#   whisper    demo-whisper, which learns from demo-ctc
# Settings and seeds are in config/. Finished steps are skipped; interrupted ones start again.
# PY is the Python that has torch.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")"
PY=${PY:-/usr/bin/python3}
PYTHONPATH=$(dirname "$PWD")
export PYTHONPATH
mkdir -p data ck out work

# once NAME COMMAND…: runs the command unless it has already succeeded
once() {
  [ -e "ck/$1.done" ] && return
  "${@:2}"
  touch "ck/$1.done"
}

# stage STAGE ROUND [NAME=VALUE…]: one round of a stage
stage() { once "$1-$2" "$PY" -m training "$@"; }

# pair STAGE ROUND: trains in two processes that share every batch
pair() {
  once "$1-$2" both "$@"
}
both() {
  rm -f "ck/$2.pt.meet"
  local first
  "$PY" -m training "$@" rank=0 ranks=2 & first=$!
  "$PY" -m training "$@" rank=1 ranks=2 > /dev/null
  wait $first
}

# half A B OUT: the mean of the weights of two runs
half() { "$PY" -m training.asr.choose mix "ck/$1.pt@ck/$2.pt@0.5" "ck/$3.pt"; }

stage_clips() {
  once pieces "$PY" -m training.asr.vocab
  { stage clips b1; stage clips e1; stage clips b3; } & first=$!
  for round in b2 c5 b4 d1; do stage clips $round; done
  wait $first
}

stage_ctc() {
  pair ctc k0
  pair ctc k1
  pair ctc k2
  half k2 k1 k3
  pair ctc k4
  half k4 k3 k5
  pair ctc k6
  half k6 k5 k7
  pair ctc k8
  pair ctc k9
  "$PY" -m training.asr.export ctc ck/k9.pt out/demo-ctc.onnx int8
}

stage_lm() { "$PY" -m training lm lm; }

stage_whisper() {
  pair whisper w0
  pair whisper w1
  pair whisper w2
  pair whisper w3
  half w3 w2 w4
  pair whisper w5
  "$PY" -m training.asr.export whisper ck/w5.pt out/demo-whisper.bin q6
}

for stage; do ("stage_$stage"); done # in a shell of its own: its settings end with it
