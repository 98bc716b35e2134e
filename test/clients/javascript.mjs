// javascript.mjs URL SECURE_URL KEY RECORDING.s16le...: runs the JavaScript clients of OpenAI, Vercel and Deepgram,
// unchanged, against a server; OpenAI's only speaks TLS. It prints a JSON object for each recording (24 kHz, mono, 16
// bits), with the texts by client. Its packages are in the same folder, see make test-clients.
import { readFileSync } from 'node:fs';
import { createOpenAI } from '@ai-sdk/openai';
import { DeepgramClient } from '@deepgram/sdk';
import { experimental_streamTranscribe as streamTranscribe } from 'ai';
import OpenAI from 'openai';
import { OpenAIRealtimeWS } from 'openai/realtime/ws';
import WebSocket from 'ws';

const [url, secure, key, ...recordings] = process.argv.slice(2);
const piece = 2400; // bytes: 50 ms

function* pieces(sound) {
  for (let at = 0; at < sound.length; at += piece) yield sound.subarray(at, at + piece);
}

/** openai returns the texts of OpenAI's client; either the client or the service ends the turns. */
async function openai(sound, turns) {
  const client = new OpenAI({ baseURL: `${secure}/v1`, apiKey: key });
  const session = await OpenAIRealtimeWS.create(client, { intent: 'transcription' });
  const texts = [],
    kinds = new Set(),
    deltas = new Map(),
    open = new Set();
  let last = !turns; // the last commit is of the silence; items may be completed in another order
  await new Promise((done, fail) => {
    session.on('error', fail);
    session.on('event', (event) => kinds.add(event.type));
    session.on('session.created', () =>
      session.send({
        type: 'session.update',
        session: {
          type: 'transcription',
          audio: {
            input: {
              format: { type: 'audio/pcm', rate: 24000 },
              transcription: { model: 'gpt-4o-transcribe', language: 'en' },
              turn_detection: turns,
            },
          },
        },
      }),
    );
    session.on('session.updated', () => {
      const append = (bytes) => session.send({ type: 'input_audio_buffer.append', audio: bytes.toString('base64') });
      for (const bytes of pieces(sound)) append(bytes);
      if (turns) append(Buffer.alloc(2 * 48000));
      session.send({ type: 'input_audio_buffer.commit' });
    });
    session.on('input_audio_buffer.committed', (event) => open.add(event.item_id));
    session.on('conversation.item.input_audio_transcription.delta', ({ item_id, delta }) =>
      deltas.set(item_id, (deltas.get(item_id) ?? '') + delta),
    );
    session.on('conversation.item.input_audio_transcription.completed', ({ item_id, transcript }) => {
      const delta = deltas.get(item_id) ?? '';
      if (delta !== transcript) fail(new Error(`the deltas are ${delta}, the transcript ${transcript}`));
      if (transcript) texts.push(transcript);
      else last = true;
      open.delete(item_id);
      if (last && !open.size) done();
    });
  });
  session.close();
  return { text: texts.join(' '), kinds: [...kinds].sort() };
}

async function vercel(sound) {
  const provider = createOpenAI({ baseURL: `${url}/v1`, apiKey: key, webSocket: WebSocket });
  const result = streamTranscribe({
    model: provider.transcription('gpt-realtime-whisper'),
    audio: ReadableStream.from(pieces(sound)),
    inputAudioFormat: { type: 'audio/pcm', rate: 24000 },
  });
  const kinds = new Set();
  for await (const part of result.fullStream) kinds.add(part.type);
  return { text: await result.text, kinds: [...kinds].sort() };
}

/** deepgram returns the texts of its client's first interface, or of Flux. */
async function deepgram(sound, version) {
  const web = url.replace('http', 'ws'),
    environment = { base: url, production: web, agent: web, agentRest: url },
    client = new DeepgramClient({ apiKey: key, environment }),
    flux = version === 'v2',
    model = flux ? { model: 'flux-general-en' } : { model: 'nova-3', language: 'en', interim_results: 'true' },
    connection = await client.listen[version].connect({ ...model, encoding: 'linear16', sample_rate: 24000 });
  const texts = [];
  const closed = new Promise((done, fail) => {
    connection.on('error', fail);
    connection.on('close', done);
    connection.on('message', (m) => {
      if (m.type === 'Results' && m.is_final) texts.push(m.channel.alternatives[0].transcript);
      if (m.type === 'TurnInfo' && m.event === 'EndOfTurn') texts.push(m.transcript);
      if (m.type === 'Error') fail(new Error(JSON.stringify(m)));
    });
  });
  connection.connect();
  await connection.waitForOpen();
  for (const bytes of pieces(sound)) connection.sendMedia(bytes);
  if (flux) connection.sendForceEndTurn({ type: 'ForceEndTurn' });
  else connection.sendFinalize({ type: 'Finalize' });
  connection.sendCloseStream({ type: 'CloseStream' });
  await closed;
  return { text: texts.filter(Boolean).join(' ') };
}

for (const recording of recordings) {
  const sound = readFileSync(recording);
  const texts = {
    openai: await openai(sound, null),
    openai_server_vad: await openai(sound, { type: 'server_vad', silence_duration_ms: 500 }),
    vercel: await vercel(sound),
    deepgram: await deepgram(sound, 'v1'),
    deepgram_flux: await deepgram(sound, 'v2'),
  };
  console.log(JSON.stringify({ recording, texts }));
}
process.exit(0); // clients leave connections open
