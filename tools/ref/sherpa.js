// sherpa.js: what the same models cost in sherpa-onnx, the published engine for
// them. It is the reference that docs/measurements/standard-tier.md compares the optimized tier,
// voice activity detection and voice vectors with. sherpa-onnx comes as an npm package:
//
//   npm install --prefix DIR sherpa-onnx-node@1.13.8
//   NODE_PATH=DIR/node_modules LD_LIBRARY_PATH=DIR/node_modules/sherpa-onnx-linux-x64 \
//     node tools/ref/sherpa.js vad=silero_vad.onnx ctc=ctc.onnx tokens=tokens.txt speaker=speaker.onnx \
//     threads=2 sound=recording.wav
//
// The recording is WAV at 16 kHz, one channel. ctc and tokens, or speaker, may be left
// out, and with them their stage. Seconds by the clock and of processor time of
// every stage are printed as one line of JSON.
//
// Voice activity detection has Otograph's defaults (0.35, 250 ms, 100 ms) and runs on one
// thread, as it does there; the segments it finds are decoded greedily one after the
// other (the package has no batches), each on all threads. Voice vectors are those of
// windows of 1.5 s every 0.75 s. Clustering is left out: sherpa-onnx offers it only
// behind a segmentation model.
'use strict';
const sherpa = require('sherpa-onnx-node');

const arg = Object.fromEntries(process.argv.slice(2).map((a) => a.split(/=(.*)/s).slice(0, 2)));
if (!arg.vad || !arg.sound) {
  console.error('usage: node sherpa.js vad=FILE sound=FILE [ctc=FILE tokens=FILE] [speaker=FILE] [threads=2]');
  process.exit(2);
}
const numThreads = Number(arg.threads || 2);
const out = {};

function stage(name, work) {
  const wall = process.hrtime.bigint(), cpu = process.cpuUsage();
  const result = work();
  const used = process.cpuUsage(cpu);
  out[name] = {
    wall: Number(process.hrtime.bigint() - wall) / 1e9,
    cpu: (used.user + used.system) / 1e6,
  };
  return result;
}

const models = stage('load', () => ({
  vad: new sherpa.Vad({
    sileroVad: {model: arg.vad, threshold: 0.35, minSpeechDuration: 0.25, minSilenceDuration: 0.1, maxSpeechDuration: 20, windowSize: 512},
    sampleRate: 16000, numThreads: 1, bufferSizeInSeconds: 60,
  }, 60),
  recognizer: arg.ctc && new sherpa.OfflineRecognizer({
    featConfig: {sampleRate: 16000, featureDim: 80},
    modelConfig: {zipformerCtc: {model: arg.ctc}, tokens: arg.tokens, numThreads},
  }),
  extractor: arg.speaker && new sherpa.SpeakerEmbeddingExtractor({model: arg.speaker, numThreads}),
}));

const {samples} = stage('decode', () => sherpa.readWave(arg.sound));
out.seconds = samples.length / 16000;

const segments = stage('vad', () => {
  const found = [];
  const take = () => {
    for (; !models.vad.isEmpty(); models.vad.pop()) {
      const s = models.vad.front();
      found.push({start: s.start, samples: s.samples});
    }
  };
  for (let i = 0; i + 512 <= samples.length; i += 512) {
    models.vad.acceptWaveform(samples.subarray(i, i + 512));
    take();
  }
  models.vad.flush();
  take();
  return found;
});
out.segments = segments.length;
out.speech = segments.reduce((n, s) => n + s.samples.length, 0) / 16000;

if (models.recognizer) {
  const texts = stage('recognize', () => segments.map((s) => {
    const stream = models.recognizer.createStream();
    stream.acceptWaveform({sampleRate: 16000, samples: s.samples});
    models.recognizer.decode(stream);
    return models.recognizer.getResult(stream).text;
  }));
  out.characters = texts.join(' ').length;
}

if (models.extractor) {
  out.windows = stage('embed', () => {
    let n = 0;
    for (const s of segments) {
      for (let at = 0; at === 0 || at + 12000 < s.samples.length; at += 12000) {
        const stream = models.extractor.createStream();
        stream.acceptWaveform({sampleRate: 16000, samples: s.samples.subarray(at, at + 24000)});
        stream.inputFinished();
        models.extractor.compute(stream);
        n++;
      }
    }
    return n;
  });
}
console.log(JSON.stringify(out));
