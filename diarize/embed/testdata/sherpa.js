// node sherpa.js FOLDER: sherpa-onnx's vector of FOLDER/samples.json, by the speaker network
// there, into FOLDER/result.json.
'use strict';
const fs = require('fs');
const path = require('path');
const sherpa = require('sherpa-onnx-node');

const folder = process.argv[2];
const extractor = new sherpa.SpeakerEmbeddingExtractor({ model: path.join(folder, 'model.onnx'), numThreads: 1 });
const stream = extractor.createStream();
const samples = Float32Array.from(JSON.parse(fs.readFileSync(path.join(folder, 'samples.json'))));
stream.acceptWaveform({ sampleRate: 16000, samples });
stream.inputFinished();
fs.writeFileSync(path.join(folder, 'result.json'), JSON.stringify(Array.from(extractor.compute(stream, false))));
