// The waveform of long recordings: piece by piece in every usual format, ready
// made in a file of its own, and a band of speech where nothing can be decoded.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { binary, browser, eventually, folder, forge, logIn, open, service } from './world.mjs';

const dir = folder(), minutes = 12;
/** What a stretch of the recording is as loud as; each is a quarter. */
const loudness = [1, 0, 0.25, 1];
const quarter = (minutes * 60) / loudness.length;
const ffmpeg = (...args) => execFileSync('ffmpeg', ['-nostdin', '-v', 'error', '-y', ...args]);

let s, b, page;
before(async () => {
  ffmpeg('-f', 'lavfi', '-i', `sine=f=440:r=16000:d=${minutes * 60}`, '-af', `volume=enable='between(t,${quarter},${2 * quarter})':volume=0,volume=enable='between(t,${2 * quarter},${3 * quarter})':volume=0.25`, path.join(dir, 'made.wav'));
  [s, b] = await Promise.all([service(), browser()]);
  page = await open(b, { origin: s.url });
  await logIn(page, s);
});
after(async () => { await b?.close(); await s?.stop(); });

/** heights gives how high the waveform is drawn in the middle of each of n stretches, from 0 to 1. */
const heights = (page, n) => page.evaluate(drawn, n);
const drawn = (n) => {
  const host = [...document.querySelectorAll('.timeline-wave *')].find((e) => e.shadowRoot);
  const canvases = [...host?.shadowRoot.querySelectorAll('.canvases canvas') ?? []], width = canvases.reduce((w, c) => w + c.width, 0);
  const out = [];
  if (!width) throw new Error('nothing is drawn yet');
  for (let i = 0; i < n; i++) {
    let best = 0;
    const middle = Math.floor(((i + 0.5) * width) / n);
    for (let x = middle - 8; x < middle + 8; x++) {
      let left = x, canvas = 0;
      while (left >= canvases[canvas].width) left -= canvases[canvas++].width;
      const c = canvases[canvas], column = c.getContext('2d').getImageData(left, 0, 1, c.height).data;
      let high = 0;
      for (let k = 3; k < column.length; k += 4) if (column[k] > 60) high++;
      best = Math.max(best, high / c.height);
    }
    out.push(best);
  }
  return out;
};

/** near waits until the waveform of a page is drawn as high as the recording was made loud, but for some of its stretches. */
const near = (page, what, but = []) => eventually(async () => {
  const found = await heights(page, 24);
  found.forEach((h, i) => {
    if (but.includes(i)) return;
    const want = loudness[Math.floor((i * loudness.length) / found.length)];
    assert.ok(Math.abs(h - want) < 0.12, `${what}: stretch ${i} is drawn ${h.toFixed(2)} high, made ${want} loud: ${found.map((x) => x.toFixed(2))}`);
  });
});

/** silent is a result of a recording of so many seconds in which nothing was said, so that a band of speech is flat. */
const silent = (seconds) => ({ audio_duration: seconds, audio_md5: '0'.repeat(32), segments: [], vad_segments: [], billing: { mode: 'standard', billable_minutes: 1, amount: 0.01, balance: 1, detail: {} } });

const formats = {
  'wav, 16 bit': ['made.wav'],
  'wav, 24 bit, stereo': ['deep.wav', '-c:a', 'pcm_s24le', '-ac', '2'],
  mp3: ['made.mp3', '-c:a', 'libmp3lame', '-q:a', '7'],
  'aac in m4a': ['made.m4a', '-c:a', 'aac', '-b:a', '48k'],
  'aac in adts': ['made.aac', '-c:a', 'aac', '-b:a', '48k'],
  'opus in ogg': ['made.opus', '-c:a', 'libopus', '-b:a', '24k', '-application', 'voip'],
  'vorbis in ogg': ['made.ogg', '-c:a', 'libvorbis', '-q:a', '1', '-ar', '22050'],
  flac: ['made.flac', '-c:a', 'flac'],
  'opus in webm': ['made.webm', '-c:a', 'libopus', '-b:a', '24k'],
  'aac in matroska, live': ['made.mka', '-c:a', 'aac', '-b:a', '48k', '-live', '1', '-f', 'matroska'],
};
for (const [what, [name, ...args]] of Object.entries(formats)) {
  test(`a long recording is drawn: ${what}`, async () => {
    const file = path.join(dir, name);
    if (args.length) ffmpeg('-i', path.join(dir, 'made.wav'), ...args, file);
    const id = await forge(page, s, { id: crypto.randomUUID(), name, result: silent(minutes * 60) });
    await page.goto(`${s.url}/#/task/${id}`);
    await page.getByText('The band shows').waitFor();
    await eventually(async () => { const found = await heights(page, 24); assert.ok(found.every((h) => h > 0 && h < 0.1), `without the recording there is a band: ${found}`); });
    await page.evaluate(() => { // pieces, not the whole, are decoded
      window.decoded = [];
      const old = (window.original ??= BaseAudioContext.prototype.decodeAudioData);
      BaseAudioContext.prototype.decodeAudioData = function (data) { return old.call(this, data).then((x) => { window.decoded.push(x.duration); return x; }); };
    });
    await page.getByLabel('Open the recording').setInputFiles(file);
    await page.locator('.timeline-foot', { hasText: /^(?!.*(waveform|band))/ }).waitFor();
    const decoded = await page.evaluate(() => window.decoded);
    assert.ok(decoded.length >= minutes - 2, `${decoded.length} pieces`);
    assert.ok(Math.max(...decoded) < 130, `pieces of ${decoded.map(Math.round)} s`);
    assert.ok(Math.abs(decoded.reduce((x, y) => x + y, 0) - minutes * 60) < 3, `${decoded.reduce((x, y) => x + y, 0)} s in all`);
    await near(page, what);
  });
}

test('what cannot be decoded keeps the band, and says so', async () => {
  const id = await forge(page, s, { id: crypto.randomUUID(), name: 'made.wav', result: silent(minutes * 60) });
  await page.goto(`${s.url}/#/task/${id}`);
  await page.getByLabel('Open the recording').setInputFiles({ name: 'notes.mp3', mimeType: 'audio/mpeg', buffer: Buffer.alloc(100000, 'text ') });
  await page.getByText('cannot draw the waveform').waitFor();
  await page.getByText('This browser cannot play this file').waitFor();
});

test('a damaged part does not hide the rest', async () => {
  const name = path.join(dir, 'damaged.mp3');
  ffmpeg('-i', path.join(dir, 'made.wav'), '-c:a', 'libmp3lame', '-b:a', '32k', name);
  const bytes = readFileSync(name), middle = Math.floor(bytes.length / 2);
  bytes.fill(0x55, middle, middle + 30000);
  writeFileSync(name, bytes);
  const id = await forge(page, s, { id: crypto.randomUUID(), name: 'damaged.mp3', result: silent(minutes * 60) });
  await page.goto(`${s.url}/#/task/${id}`);
  await page.getByLabel('Open the recording').setInputFiles(name);
  await page.locator('.timeline-foot', { hasText: /^(?!.*(waveform|band))/ }).waitFor();
  await near(page, 'damaged', [12]);
});

test('a file of its own brings the waveform along, with and without the sound', async () => {
  const short = path.join(dir, 'short.wav');
  ffmpeg('-f', 'lavfi', '-i', 'sine=f=440:r=16000:d=40', '-af', "volume=enable='between(t,10,20)':volume=0,volume=enable='between(t,20,30)':volume=0.25", short);
  for (const embed of [[], ['--embed-audio']]) {
    const file = path.join(dir, `short${embed}.html`);
    execFileSync(binary, ['transcribe', '-q', '--enable-diarize=false', '--enable-audio-events=false', '--optimize=false', '--asr-language', 'en', '--format', 'html', ...embed, '-o', file, short], { stdio: 'inherit' });
    const own = await open(b, { origin: 'null' });
    await own.goto(pathToFileURL(file).href);
    await own.locator('.timeline-foot', { hasText: /^(?!.*(waveform|band))/ }).waitFor();
    await near(own, `file of its own ${embed}`);
    if (embed.length) {
      await own.getByRole('button', { name: 'Play', exact: true }).click();
      await own.waitForFunction(() => Number(document.querySelector('.scrub').value) > 0.3);
      await near(own, 'playing');
    } else await own.getByText('The recording itself is not stored').waitFor();
    assert.deepEqual(own.wrong.filter((w) => !w.startsWith('stranger: file:')), []);
    await own.context().close();
  }
});

test('nothing broke', () => { assert.deepEqual(page.wrong, []); });
