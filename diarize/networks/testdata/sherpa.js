// node sherpa.js FOLDER: sherpa-onnx's vector of FOLDER/samples.json, by the speaker network
// there, into FOLDER/result.json.
//
// node sherpa.js FOLDER SPEAKERS…: sherpa-onnx's turns of each recording FOLDER/samplesN.json,
// N = 0, 1, …, with so many speakers, and the processor time it took in milliseconds, into
// FOLDER/result.json. Its clusters are the local speakers of a window where a recording is one.
'use strict';
const fs = require('fs');
const path = require('path');
const sherpa = require('sherpa-onnx-node');

const [folder, ...speakers] = process.argv.slice(2);
const file = (name) => path.join(folder, name);
const read = (name) => Float32Array.from(JSON.parse(fs.readFileSync(file(name))));

function vector() {
  const extractor = new sherpa.SpeakerEmbeddingExtractor({ model: file('model.onnx'), numThreads: 1 });
  const stream = extractor.createStream();
  stream.acceptWaveform({ sampleRate: 16000, samples: read('samples.json') });
  stream.inputFinished();
  return Array.from(extractor.compute(stream, false));
}

function turnsOf(count, i) {
  const diarizer = new sherpa.OfflineSpeakerDiarization({
    segmentation: { pyannote: { model: file('model.onnx') }, numThreads: 1 },
    embedding: { model: file('embedder.onnx'), numThreads: 1 },
    clustering: { numClusters: Number(count) },
    minDurationOn: 1e-6, // 0 is the default of 0.3 s
    minDurationOff: 1e-6,
  });
  const samples = read(`samples${i}.json`);
  const before = process.cpuUsage();
  const turns = diarizer.process(samples);
  const { user, system } = process.cpuUsage(before);
  return { turns, milliseconds: (user + system) / 1000 };
}

const result = speakers.length > 0 ? speakers.map(turnsOf) : vector();
fs.writeFileSync(file('result.json'), JSON.stringify(result));
