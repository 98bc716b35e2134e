// node sherpa.js FOLDER KIND: the scores that sherpa-onnx gives each stretch of sound in
// FOLDER/windows.json with the tagger there, into FOLDER/result.json.
'use strict';
const fs = require('fs');
const path = require('path');
const sherpa = require('sherpa-onnx-node');

const [folder, kind] = process.argv.slice(2);
const file = (name) => path.join(folder, name);
const classes = 527;
const model = kind === 'ced' ? { ced: file('model.onnx') } : { zipformer: { model: file('model.onnx') } };
const tagger = new sherpa.AudioTagging({ model: { ...model, numThreads: 1 }, labels: file('labels.csv'), topK: classes });
const result = JSON.parse(fs.readFileSync(file('windows.json'))).map((samples) => {
  const stream = tagger.createStream();
  stream.acceptWaveform({ sampleRate: 16000, samples: Float32Array.from(samples) });
  const scores = new Array(classes).fill(0);
  for (const event of tagger.compute(stream, classes)) scores[event.index] = event.prob;
  return scores;
});
fs.writeFileSync(file('result.json'), JSON.stringify(result));
