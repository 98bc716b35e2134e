// The official client of OpenAI for JavaScript, unchanged, against otograph serve
// with the embedded demo models.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createReadStream, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import OpenAI, {
  APIConnectionTimeoutError,
  APIError,
  APIUserAbortError,
  AuthenticationError,
  BadRequestError,
  NotFoundError,
  RateLimitError,
  toFile,
} from 'openai';
import { folder, recording, service } from './world.mjs';

let s,
  client,
  calls = 0;
/** counted is fetch, and counts the client's calls. */
const counted = (...given) => {
  calls++;
  return fetch(...given);
};
before(async () => {
  s = await service();
  s.otograph('account', 'limits', 'local', '--tps', '1000', '--burst', '1000');
  client = new OpenAI({ apiKey: s.key, baseURL: `${s.url}/v1`, maxRetries: 0, fetch: counted });
});
after(async () => {
  await s?.stop();
});

const file = () => createReadStream(recording);
const ask = (params) => client.audio.transcriptions.create({ file: file(), model: 'whisper-1', ...params });
const first = /Good morning, how are you today\?/;

let known = 0,
  ran = 0;
/** made is test, and counts the tests that are declared and run. */
function made(name, work) {
  known++;
  test(name, async () => {
    ran++;
    await work();
  });
}

/** refused resolves with the error of a call that must fail. */
async function refused(promise, kind) {
  try {
    await promise;
  } catch (error) {
    assert.ok(error instanceof kind, `${error.constructor.name}: ${error.message}`);
    return error;
  }
  return assert.fail('was not refused');
}

made('models are listed and retrieved', async () => {
  const ids = [];
  for await (const model of client.models.list()) ids.push(model.id);
  assert.ok(ids.includes('whisper-1') && ids.includes('otograph-standard'), ids.join());
  assert.equal((await client.models.retrieve('otograph')).object, 'model');
  const error = await refused(client.models.retrieve('whisper-9'), NotFoundError);
  assert.deepEqual([error.code, error.param, error.type], ['model_not_found', 'model', 'invalid_request_error']);
});

made('every format', async () => {
  const plain = await ask({});
  assert.match(plain.text, first);
  assert.deepEqual(plain.usage, { type: 'duration', seconds: 61 });
  assert.match(await ask({ response_format: 'text' }), first);
  assert.match(await ask({ response_format: 'srt' }), /^1\n00:00:0\d,\d{3} --> /);
  assert.match(await ask({ response_format: 'vtt' }), /^WEBVTT\n/);
  const verbose = await ask({ response_format: 'verbose_json' });
  assert.equal(verbose.language, 'english');
  assert.ok(verbose.duration > 60 && verbose.segments.length > 10 && verbose.words === undefined);
  for (const x of verbose.segments) {
    assert.ok(x.tokens.length > 0 && x.avg_logprob <= 0 && x.no_speech_prob >= 0 && x.compression_ratio > 0);
    assert.ok(x.seek / 100 <= x.start + 0.01);
  }
  const standard = await ask({ model: 'otograph-standard', response_format: 'verbose_json' });
  for (const x of [...verbose.segments, ...standard.segments])
    assert.ok(Object.values(x).every((value) => value !== null));
});

made('word times, alone and with segments', async () => {
  const words = await ask({ response_format: 'verbose_json', timestamp_granularities: ['word'] });
  assert.equal(words.segments, undefined);
  assert.equal(words.words[0].word, 'Good');
  assert.ok(words.words.every((w, i, all) => w.end >= w.start && (i === 0 || w.start >= all[i - 1].start)));
  const both = await ask({ response_format: 'verbose_json', timestamp_granularities: ['word', 'segment'] });
  assert.ok(both.words.length > 50 && both.segments.length > 10);
});

made('speakers', async () => {
  const result = await ask({
    model: 'gpt-4o-transcribe-diarize',
    response_format: 'diarized_json',
    chunking_strategy: 'auto',
  });
  assert.deepEqual([...new Set(result.segments.map((x) => x.speaker))].sort(), ['SPEAKER_0', 'SPEAKER_1']);
  assert.ok(result.segments.every((x) => x.type === 'transcript.text.segment' && x.end > x.start));
});

made('known speakers', async () => {
  const clip = path.join(folder(), 'ann.wav');
  execFileSync('ffmpeg', ['-v', 'error', '-ss', '11.5', '-t', '4.4', '-i', recording, clip]);
  const result = await ask({
    model: 'gpt-4o-transcribe-diarize',
    response_format: 'diarized_json',
    known_speaker_names: ['Ann'],
    known_speaker_references: [`data:audio/wav;base64,${readFileSync(clip, 'base64')}`],
  });
  assert.equal(result.segments[0].speaker, 'Ann');
  assert.equal(new Set(result.segments.map((x) => x.speaker)).size, 2);
});

made('log probabilities', async () => {
  const { logprobs, text } = await ask({ model: 'gpt-4o-transcribe', include: ['logprobs'] });
  assert.ok(logprobs.length > 50 && logprobs.every((x) => x.logprob <= 0));
  assert.match(text, first);
  assert.equal(Buffer.from(logprobs[0].bytes).toString(), logprobs[0].token);
});

made('streams', async () => {
  let text = '',
    done;
  for await (const event of await ask({ model: 'gpt-4o-mini-transcribe', stream: true })) {
    if (event.type === 'transcript.text.delta') text += event.delta;
    if (event.type === 'transcript.text.done') done = event;
  }
  assert.match(text, first);
  assert.equal(done.text, text);
  assert.deepEqual([done.languages, done.usage], [[{ code: 'en' }], undefined]);
  const speakers = new Set();
  for await (const event of await ask({
    model: 'gpt-4o-transcribe-diarize',
    response_format: 'diarized_json',
    stream: true,
  })) {
    if (event.type === 'transcript.text.segment') speakers.add(event.speaker);
  }
  assert.equal(speakers.size, 2);
  let logprobs = 0;
  for await (const event of await ask({ stream: true, include: ['logprobs'] }))
    logprobs += event.type === 'transcript.text.delta' ? event.logprobs.length : 0;
  assert.ok(logprobs > 50);
});

made('options reach the task', async () => {
  const { data, response } = await ask({
    language: 'en',
    prompt: 'A talk about a budget.',
    temperature: 0.2,
    chunking_strategy: { type: 'server_vad', threshold: 0.4, silence_duration_ms: 200, prefix_padding_ms: 50 },
  }).withResponse();
  assert.match(data.text, /budget/);
  const { options } = await s.ask(`/tasks/${response.headers.get('x-task-id')}`);
  assert.deepEqual(
    [
      options.asr_language,
      options.asr_temperature,
      options.vad_threshold,
      options.vad_min_silence_ms,
      options.vad_speech_pad_ms,
    ],
    ['en', 0.2, 0.4, 200, 50],
  );
});

made('the parameters of 2026', async () => {
  const { data, response } = await ask({
    model: 'gpt-transcribe',
    keywords: ['Otograph', 'Doe, John'],
    languages: ['en', 'de'],
  }).withResponse();
  assert.match(data.text, first);
  assert.deepEqual(data.languages, [{ code: 'en' }]);
  const { options } = await s.ask(`/tasks/${response.headers.get('x-task-id')}`);
  assert.deepEqual(options.hotwords, ['Otograph', 'Doe, John']);
  assert.match((await ask({ model: 'gpt-4o-mini-transcribe-2025-12-15' })).text, first);
  assert.match((await ask({ model: 'demo-whisper' })).text, first);
  for (const [field, params] of Object.entries({
    'keywords[]': { keywords: ['<b>'] },
    'languages[]': { languages: ['klingon'] },
  })) {
    assert.equal((await refused(ask(params), BadRequestError)).param, field);
  }
});

made('files in every way that the client takes them', async () => {
  const bytes = readFileSync(recording);
  for (const given of [
    await toFile(bytes, 'talk.flac'),
    new File([bytes], 'talk.flac'),
    await toFile(Promise.resolve(bytes), 'talk.flac'),
  ]) {
    assert.match((await ask({ file: given })).text, first);
  }
});

made('errors are the client’s own', async () => {
  const field = async (params) => (await refused(ask(params), BadRequestError)).param;
  assert.equal(await field({ response_format: 'xml' }), 'response_format');
  assert.equal(await field({ language: 'klingon' }), 'language');
  assert.equal(await field({ temperature: 3 }), 'temperature');
  assert.equal(await field({ known_speaker_names: ['Ann'] }), 'known_speaker_names[]');
  assert.equal((await refused(ask({ model: 'whisper-9' }), NotFoundError)).code, 'model_not_found');
  const stranger = new OpenAI({
    apiKey: `asr_${'x'.repeat(40)}`,
    baseURL: `${s.url}/v1`,
    maxRetries: 0,
    fetch: counted,
  });
  const unknown = await refused(stranger.models.list(), AuthenticationError);
  assert.deepEqual([unknown.type, unknown.code], ['authentication_error', 'invalid_api_key']);
  const broken = await refused(
    ask({ file: await toFile(Buffer.from('this is no audio'.repeat(100)), 'a.wav') }),
    BadRequestError,
  );
  assert.deepEqual(
    [broken.param, broken.code, broken.headers.get('x-should-retry')],
    ['file', 'invalid_value', 'false'],
  );
  assert.ok(broken.requestID);
  const stream = await ask({ file: await toFile(Buffer.from('this is no audio'.repeat(100)), 'a.wav'), stream: true });
  await assert.rejects(async () => {
    for await (const event of stream) assert.ok(event.type);
  }, /could not be transcribed/);
  assert.equal(
    (await refused(client.audio.speech.create({ input: 'x', model: 'x', voice: 'x' }), NotFoundError)).type,
    'invalid_request_error',
  );
  const untranslated = await refused(
    client.audio.translations.create({ file: file(), model: 'whisper-1' }),
    BadRequestError,
  );
  assert.equal(untranslated.param, 'model');
  assert.match(untranslated.message, /not all installed models can translate/);
});

made('a page of models, and realtime', async () => {
  const page = await client.models.list();
  assert.deepEqual([page.object, page.hasNextPage()], ['list', false]);
  assert.ok(page.data.every((x) => x.object === 'model' && x.created > 0 && x.owned_by === 'otograph'));
  const { response, request_id: id } = await client.models.list().withResponse();
  assert.ok(id);
  assert.equal(response.status, 200);
  const secret = await client.realtime.clientSecrets.create({ session: { type: 'transcription' } });
  assert.match(secret.value, /^ek_/);
  assert.ok(secret.expires_at > Date.now() / 1000);
  assert.equal(secret.session.type, 'transcription');
  const conversation = client.realtime.clientSecrets.create({ session: { type: 'realtime' } });
  assert.match((await refused(conversation, BadRequestError)).message, /transcription/);
  assert.equal((await refused(client.models.delete('whisper-1'), APIError)).status, 405);
});

made('what more is sent, and what is too much', async () => {
  assert.match((await ask({ user: 'someone', keyterms: ['budget'], model: 'gpt-4o-transcribe' })).text, first);
  const byHeader = new OpenAI({
    apiKey: 'not used',
    baseURL: `${s.url}/v1`,
    maxRetries: 0,
    fetch: counted,
    defaultHeaders: { Authorization: null, 'X-API-Key': s.key },
  });
  assert.ok((await byHeader.models.retrieve('whisper-1')).id);
  const field = async (params) => (await refused(ask(params), BadRequestError)).param;
  assert.equal(await field({ temperature: 2 }), 'temperature');
  assert.equal(await field({ chunking_strategy: { type: 'client_vad' } }), 'chunking_strategy');
  assert.equal(await field({ file: await toFile(Buffer.alloc(0), 'a.wav') }), 'file');
  assert.equal(await field({ include: ['everything'] }), 'include[]');
  for (const format of ['text', 'srt', 'vtt', 'verbose_json']) {
    const translated = client.audio.translations.create({ file: file(), model: 'whisper-1', response_format: format });
    assert.equal((await refused(translated, BadRequestError)).param, 'model');
  }
});

made('a large file', async () => {
  const large = path.join(folder(), 'large.wav');
  execFileSync('ffmpeg', ['-v', 'error', '-i', recording, '-ar', '48000', '-ac', '8', '-c:a', 'pcm_s16le', large]);
  assert.ok(statSync(large).size > 25 << 20, 'more than OpenAI takes');
  assert.match((await ask({ file: createReadStream(large) })).text, first);
});

made('streams end where the client leaves', async () => {
  const types = new Set();
  const stream = await ask({ stream: true, response_format: 'text' });
  for await (const event of stream) {
    types.add(event.type);
    if (event.type === 'transcript.text.delta') stream.controller.abort();
  }
  assert.deepEqual([...types], ['transcript.text.delta']);
  const controller = new AbortController();
  setTimeout(() => controller.abort(), 50);
  const left = client.audio.transcriptions.create({ file: file(), model: 'whisper-1' }, { signal: controller.signal });
  await refused(left, APIUserAbortError);
  const late = client.audio.transcriptions.create({ file: file(), model: 'whisper-1' }, { timeout: 50 });
  await refused(late, APIConnectionTimeoutError);
  assert.match((await ask({})).text, first, 'the service goes on');
});

made('too many requests are sent again', async () => {
  s.otograph('account', 'create', 'hurried');
  const apiKey = s.otograph('key', 'create', 'hurried').match(/asr_[0-9A-Za-z]+/)[0];
  s.otograph('account', 'limits', 'hurried', '--tps', '1', '--burst', '1');
  const given = { apiKey, baseURL: `${s.url}/v1`, fetch: counted };
  const hurried = new OpenAI({ ...given, maxRetries: 0 });
  await hurried.models.list();
  const error = await refused(hurried.models.list(), RateLimitError);
  assert.deepEqual([error.code, error.type], ['rate_limit_exceeded', 'rate_limit_error']);
  assert.ok(Number(error.headers.get('retry-after')) >= 1);
  const before = calls;
  assert.ok((await new OpenAI({ ...given, maxRetries: 5 }).models.list()).data.length > 0);
  assert.ok(calls > before + 1, 'it was refused first');
});

test('at least 25 calls were made', (t) => {
  if (ran < known) return t.skip(`${ran} of ${known} tests ran`);
  t.diagnostic(`${calls} calls of the official JavaScript client`);
  assert.ok(calls >= 25, calls);
});
