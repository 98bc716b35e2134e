// node sherpa.js FOLDER KIND: sherpa-onnx over FOLDER/samples.json with the model
// there, into FOLDER/result.json.
'use strict';
const fs = require('fs');
const path = require('path');
const sherpa = require('sherpa-onnx-node');

const [folder, kind] = process.argv.slice(2);
const file = (name) => path.join(folder, name);
const model = { tokens: file('tokens.txt'), numThreads: 1, provider: 'cpu' };
const online = kind.endsWith('Online');
if (online || kind === 'transducer' || kind === 'icefallTransducer') {
  model.transducer = { encoder: file('encoder.onnx'), decoder: file('decoder.onnx'), joiner: file('joiner.onnx') };
  model.modelType = { zipformerOnline: 'zipformer2', nemoOnline: '', transducer: 'nemo_transducer', icefallTransducer: 'transducer' }[kind];
} else {
  model[kind] = { model: file('model.onnx') };
  if (kind === 'senseVoice') Object.assign(model[kind], { language: 'auto', useInverseTextNormalization: 1 });
}
const Recognizer = online ? sherpa.OnlineRecognizer : sherpa.OfflineRecognizer;
const recognizer = new Recognizer({ featConfig: { sampleRate: 16000, featureDim: 80 }, modelConfig: model });
const stream = recognizer.createStream();
stream.acceptWaveform({ sampleRate: 16000, samples: Float32Array.from(JSON.parse(fs.readFileSync(file('samples.json')))) });
if (online) {
  stream.inputFinished();
  while (recognizer.isReady(stream)) recognizer.decode(stream);
} else recognizer.decode(stream);
fs.writeFileSync(file('result.json'), JSON.stringify(recognizer.getResult(stream)));
