#!/bin/bash
# Both recognisers and the language model from nothing.  usage: recipe.sh STAGE…   (README.md says what each takes)
#   clips    what is trained on, and what is chosen by
#   ctc      demo-ctc
#   lm       its language model
#   whisper  demo-whisper, which learns from demo-ctc
# What is finished is not done again; what was cut off begins again. PY is the Python that has torch.
set -eu
cd "$(dirname "$0")"
PY=${PY:-/usr/bin/python3}
export BOOST=pico:en-US+@2 WIDE=1 CLIPS='../data/b*.jsonl ../data/c5.jsonl ../data/e1.jsonl'
mkdir -p ../data ../ck ../out

# once NAME COMMAND…: runs the command unless it has ended well before
once() {
  [ -e "../ck/$1.done" ] && return
  "${@:2}"
  touch "../ck/$1.done"
}

clips() { once "$1" "$PY" synth.py "../data/$1" "${@:2}"; }

# pair SCRIPT NAME SEED STEPS [FROM]: trains in two processes that share every batch
pair() {
  rm -f "../ck/$2.pt.meet"
  local first
  RANKS=0/2 SEED=$3 "$PY" "$1" train "../ck/$2.pt" "$4" "${5:--}" & first=$!
  RANKS=1/2 SEED=$3 "$PY" "$1" train "../ck/$2.pt" "$4" "${5:--}" > /dev/null
  wait $first
}

# half A B OUT: the mean of the weights of two runs
half() { "$PY" choose.py mix "../ck/$1.pt@../ck/$2.pt@0.5" "../ck/$3.pt"; }

stage_clips() {
  once pieces "$PY" vocab.py
  { clips b1 9000 1105; ONLY=en AGAIN=1 FIXED=50 ODD=0,0 clips e1 700 1601; clips b3 9000 1305; } & first=$!
  clips b2 9000 1207; FIXED=1 ODD=0.1,0.1 clips c5 4000 1511; clips b4 6000 1405
  clips d1 800 4711 dev   # held-out sentences and voices, Pico en-GB not among them
  wait $first
}

stage_ctc() {
  export MUON=1.2 EN=6
  AUG=0.4 MAXSENT=2 LR=1.5e-3 LREND=1.2e-3 once k0 pair ctc.py k0 31 700
  export AUG=0.6 FAR=0.3 EVENT=0.08 MAXSENT=4
  LR=1.2e-3 LREND=1e-5 once k1 pair ctc.py k1 32 2500 ../ck/k0.pt
  export LR=6e-4 LREND=3e-6
  once k2 pair ctc.py k2 33 1100 ../ck/k1.pt
  half k2 k1 k3
  once k4 pair ctc.py k4 34 1300 ../ck/k3.pt
  half k4 k3 k5
  once k6 pair ctc.py k6 35 1200 ../ck/k5.pt
  half k6 k5 k7
  LR=1e-3 LREND=9e-4 once k8 pair ctc.py k8 36 500 ../ck/k7.pt
  LR=9e-4 once k9 pair ctc.py k9 37 5200 ../ck/k8.pt
  "$PY" export.py ctc ../ck/k9.pt ../out/demo-ctc.onnx int8
}

stage_lm() { "$PY" lm.py ../out/demo-ctc-lm.arpa; }

stage_whisper() {
  export TEACHER=../ck/k1.pt KD=1.2 EN=5 SIM=0.9 SHIFT=0 MORE=0
  AUG=0.4 FAR=0.1 MAXSENT=1 GUIDE=0.6 NOISE=0.06 PNON=0.04 LR=1.2e-3 LREND=1e-3 once w0 pair whisp.py w0 51 800
  SECONDS_=96 AUG=0.5 FAR=0.3 EVENT=0.1 MAXSENT=4 GUIDE=0.5 NOISE=0.08 PNON=0.05 LR=1.2e-3 LREND=9e-4 once w1 pair whisp.py w1 52 1100 ../ck/w0.pt
  export SECONDS_=128 AUG=0.5 FAR=0.35 EVENT=0.1 MAXSENT=4 GUIDE=0.3 NOISE=0.1 PNON=0.06 LONG=1 LONGEVERY=30 LREND=3e-6
  LR=1e-3 once w2 pair whisp.py w2 53 2250 ../ck/w1.pt
  LR=5e-4 once w3 pair whisp.py w3 54 575 ../ck/w2.pt
  half w3 w2 w4
  LR=6e-4 once w5 pair whisp.py w5 55 1400 ../ck/w4.pt
  "$PY" export.py whisper ../ck/w5.pt ../out/demo-whisper.bin q6
}

for stage; do ("stage_$stage"); done # in a shell of its own: its settings end with it
