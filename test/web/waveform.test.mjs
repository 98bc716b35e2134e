// The waveform of a result: as the service stored it, inside a downloaded page,
// and a band of speech without it.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { longResult } from './made.mjs';
import { binary, browser, eventually, folder, forge, logIn, open, service } from './world.mjs';

const dir = folder();
/** The length of the tests' recording, in seconds. */
const made = 40;
/** The loudness of each quarter of the recording. */
const loudness = [1, 0, 0.25, 1];
const quarter = made / loudness.length;
const ffmpeg = (...args) => execFileSync('ffmpeg', ['-nostdin', '-v', 'error', '-y', ...args]);

let s, b, page;
before(async () => {
  ffmpeg(
    '-f',
    'lavfi',
    '-i',
    `sine=f=440:r=16000:d=${made}`,
    '-af',
    `volume=enable='between(t,${quarter},${2 * quarter})':volume=0,volume=enable='between(t,${2 * quarter},${3 * quarter})':volume=0.25`,
    path.join(dir, 'made.wav'),
  );
  ffmpeg('-i', path.join(dir, 'made.wav'), '-c:a', 'libmp3lame', '-b:a', '64k', path.join(dir, 'made.mp3'));
  [s, b] = await Promise.all([service(), browser()]);
  page = await open(b, { origin: s.url });
  await logIn(page, s);
});
after(async () => {
  await b?.close();
  await s?.stop();
});

/** heights returns the height of the waveform in the middle of each of n stretches, from 0 to 1. */
const heights = (page, n) => page.evaluate(drawn, n);
const drawn = (n) => {
  const host = [...document.querySelectorAll('.timeline-wave *')].find((e) => e.shadowRoot);
  const canvases = [...(host?.shadowRoot.querySelectorAll('.canvases canvas') ?? [])],
    width = canvases.reduce((w, c) => w + c.width, 0);
  const out = [];
  if (!width) throw new Error('nothing is drawn yet');
  for (let i = 0; i < n; i++) {
    let best = 0;
    const middle = Math.floor(((i + 0.5) * width) / n);
    for (let x = middle - 8; x < middle + 8; x++) {
      let left = x,
        canvas = 0;
      while (left >= canvases[canvas].width) left -= canvases[canvas++].width;
      const c = canvases[canvas],
        column = c.getContext('2d').getImageData(left, 0, 1, c.height).data;
      let high = 0;
      for (let k = 3; k < column.length; k += 4) if (column[k] > 60) high++;
      best = Math.max(best, high / c.height);
    }
    out.push(best);
  }
  return out;
};

/** near waits until the waveform of a page has the heights of loudness. */
const near = (page, what) =>
  eventually(async () => {
    const found = await heights(page, 24);
    found.forEach((h, i) => {
      const want = loudness[Math.floor((i * loudness.length) / found.length)];
      assert.ok(
        Math.abs(h - want) < 0.12,
        `${what}: stretch ${i} is drawn ${h.toFixed(2)} high, made ${want} loud: ${found.map((x) => x.toFixed(2))}`,
      );
    });
  });

/** silent is a result without speech, so that the band of speech is flat. */
const silent = (seconds) => ({
  audio_duration: seconds,
  audio_md5: '0'.repeat(32),
  segments: [],
  vad_segments: [],
  billing: { mode: 'standard', billable_minutes: 1, amount: 0.01, balance: 1, detail: {} },
});

/** peaksAs returns stored peaks of a recording with this loudness. */
const peaksAs = (seconds) =>
  Uint8Array.from(
    { length: seconds * 50 },
    (_, i) => 255 * loudness[Math.floor((i * loudness.length) / (seconds * 50))],
  );

test('a result of five hours shows its stored waveform, without the recording', async () => {
  const id = await forge(page, s, {
    id: crypto.randomUUID(),
    name: 'five hours.flac',
    result: { ...longResult(20000), audio_duration: 18000 },
    peaks: peaksAs(18000),
  });
  await page.waitForTimeout(2500); // the page spaces its requests; a reader is not that fast either
  const began = Date.now();
  await page.goto(`${s.url}/#/task/${id}`);
  await page.locator('.timeline-foot', { hasText: /^(?!.*bars)/ }).waitFor();
  console.log(`the waveform of five hours is there ${Date.now() - began} ms after opening`);
  await near(page, 'five hours');
});

test('one loud click does not flatten the waveform of a quiet recording', async () => {
  const peaks = peaksAs(600).map((p) => p / 4);
  peaks[7000] = 255;
  const id = await forge(page, s, { id: crypto.randomUUID(), name: 'click.wav', result: silent(600), peaks });
  await page.goto(`${s.url}/#/task/${id}`);
  await near(page, 'a click');
});

test('without a stored waveform there is a band, also when the recording is opened', async () => {
  const id = await forge(page, s, { id: crypto.randomUUID(), name: 'made.wav', result: silent(made) });
  const flat = () =>
    eventually(async () => {
      const found = await heights(page, 24);
      assert.ok(
        found.every((h) => h > 0 && h < 0.1),
        `without a waveform there is a band: ${found}`,
      );
    });
  await page.goto(`${s.url}/#/task/${id}`);
  await page.getByText('The bars show').waitFor();
  await flat();
  await page.getByLabel('Open the recording').setInputFiles(path.join(dir, 'made.wav'));
  await page.getByRole('button', { name: 'Play', exact: true }).click();
  await page.getByRole('button', { name: 'Pause' }).click();
  await flat();
});

test('the page shows the peaks that the service measured', async () => {
  const own = await open(b, { origin: s.url });
  await logIn(own, s);
  await own.getByLabel('Choose files').setInputFiles(path.join(dir, 'made.mp3'));
  await own.getByRole('link', { name: 'Open: made.mp3' }).click();
  await own.locator('.timeline-foot', { hasText: /^(?!.*bars)/ }).waitFor();
  await near(own, 'served');
  await own.reload(); // and without the file
  await own.getByText('The recording is not stored').waitFor();
  await near(own, 'after a reload');
  assert.deepEqual(own.wrong, []);
  await own.context().close();
});

test('opening a file that is not a recording shows an error, and the waveform stays', async () => {
  const id = await forge(page, s, {
    id: crypto.randomUUID(),
    name: 'a.wav',
    result: silent(made),
    peaks: peaksAs(made),
  });
  await page.goto(`${s.url}/#/task/${id}`);
  await page
    .getByLabel('Open the recording')
    .setInputFiles({ name: 'notes.mp3', mimeType: 'audio/mpeg', buffer: Buffer.alloc(100000, 'ID3 text ') });
  await page.getByText('This browser cannot play this file').waitFor();
  await near(page, 'not a recording');
});

test('a downloaded page contains the waveform, with and without the sound', async () => {
  for (const embed of [[], ['--embed-audio']]) {
    const file = path.join(dir, `short${embed}.html`);
    execFileSync(
      binary,
      [
        'transcribe',
        '-q',
        '--enable-diarize=false',
        '--enable-audio-events=false',
        '--optimize=false',
        '--asr-language',
        'en',
        '--format',
        'html',
        ...embed,
        '-o',
        file,
        path.join(dir, 'made.wav'),
      ],
      { stdio: 'inherit' },
    );
    const own = await open(b, { origin: 'null' });
    await own.goto(pathToFileURL(file).href);
    await own.locator('.timeline-foot', { hasText: /^(?!.*(waveform|bars))/ }).waitFor();
    await near(own, `file of its own ${embed}`);
    if (embed.length) {
      await own.getByRole('button', { name: 'Play', exact: true }).click();
      await own.waitForFunction(() => Number(document.querySelector('.scrub').value) > 0.3);
      await near(own, 'playing');
    } else await own.getByText('The recording is not stored').waitFor();
    assert.deepEqual(
      own.wrong.filter((w) => !w.startsWith('stranger: file:')),
      [],
    );
    await own.context().close();
  }
});

test('the page logged no error', () => {
  assert.deepEqual(page.wrong, []);
});
