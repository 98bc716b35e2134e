// node sherpa.js FOLDER LEAD THRESHOLD…: for each threshold whether sherpa-onnx hears speech
// after each window of FOLDER/samples.json, LEAD zeros in front, into FOLDER/result.json.
'use strict';
const fs = require('fs');
const path = require('path');
const sherpa = require('sherpa-onnx-node');

const [folder, lead, ...thresholds] = process.argv.slice(2);
const samples = Float32Array.from(JSON.parse(fs.readFileSync(path.join(folder, 'samples.json'))));
const result = thresholds.map((threshold) => {
  const sileroVad = {
    model: path.join(folder, 'model.onnx'),
    threshold: Number(threshold),
    minSpeechDuration: 0.01,
    minSilenceDuration: 0.01,
    maxSpeechDuration: 100,
    windowSize: 512,
  };
  const vad = new sherpa.Vad({ sileroVad, sampleRate: 16000, numThreads: 1, bufferSizeInSeconds: 60 }, 60);
  if (Number(lead) > 0) vad.acceptWaveform(new Float32Array(Number(lead)));
  const heard = [];
  for (let i = 0; i + 512 <= samples.length; i += 512) {
    vad.acceptWaveform(samples.slice(i, i + 512));
    heard.push(vad.isDetected());
  }
  return heard;
});
fs.writeFileSync(path.join(folder, 'result.json'), JSON.stringify(result));
