// Overlapping speakers in a result, and voices saved by name.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { binary, browser, eventually, folder, forge, logIn, open, recording, service } from './world.mjs';

const dir = folder();
const shots = process.env.PICTURES || dir;
const embedding = Array.from({ length: 192 }, (_, i) => (i % 2 ? 0.0722 : -0.0722));

/** overlapped is a result of 20 s in which two speakers overlap from 8 to 11 s. */
function overlapped() {
  const say = (id, speaker, start, end, text) => ({
    id,
    start,
    end,
    text,
    speaker,
    words: text.split(' ').map((word, i, all) => ({
      word,
      start: start + ((end - start) * i) / all.length,
      end: start + ((end - start) * (i + 1)) / all.length,
      probability: 0.9,
    })),
  });
  const turns = [
    { start: 0, end: 11, speaker: 'SPEAKER_0' },
    { start: 8, end: 15, speaker: 'SPEAKER_1' },
    { start: 16, end: 20, speaker: 'SPEAKER_0' },
  ];
  return {
    audio_duration: 20,
    audio_md5: '0'.repeat(32),
    language: 'en',
    language_probability: 0.99,
    segments: [
      say(0, 'SPEAKER_0', 0, 11, 'so the plan is this we send the samples first thing'),
      say(1, 'SPEAKER_1', 11, 15, 'no wait please'),
      say(2, 'SPEAKER_0', 16, 20, 'all right then'),
    ],
    vad_segments: [
      { start: 0, end: 15 },
      { start: 16, end: 20 },
    ],
    num_speakers: 2,
    speaker_embeddings: [0, 1].map((i) => ({ speaker_id: 'SPEAKER_' + i, embedding, segment_count: 2 })),
    diarize_segments: turns,
    billing: { mode: 'standard', billable_minutes: 1, amount: 0.0133, balance: 999.9, detail: {} },
  };
}

let s, b, page, id;
before(async () => {
  [s, b] = await Promise.all([service(), browser()]);
  page = await open(b, { origin: s.url });
  await logIn(page, s);
  id = await forge(page, s, { id: crypto.randomUUID(), name: 'two at once.wav', result: overlapped() });
});
after(async () => {
  await b?.close();
  await s?.stop();
});

/** lanes returns whether each speaker's row is colored at a time in seconds, and whether the band between the rows is. */
const lanes = (page, time) =>
  page.evaluate((time) => {
    const canvas = document.querySelector('.timeline-lanes'),
      ratio = canvas.width / canvas.getBoundingClientRect().width;
    const g = canvas.getContext('2d'),
      x = (time / 20) * canvas.width;
    const ink = (y) => {
      const [r, gr, bl, a] = g.getImageData(x, y * ratio, 1, 1).data;
      return a > 0 ? `${r},${gr},${bl}` : '';
    };
    return { first: ink(20 + 3), second: ink(20 + 22 + 3), between: ink(20 + 16 + 3) };
  }, time);

/** shows looks at the result that a page shows. */
async function shows(page, name) {
  await page.locator('.timeline-lanes').waitFor();
  await eventually(async () => {
    const [alone, both, other] = [await lanes(page, 5), await lanes(page, 9.5), await lanes(page, 13)];
    assert.ok(alone.first && !alone.second && !alone.between, `${name}: one voice at 5 s: ${JSON.stringify(alone)}`);
    assert.equal(both.first, alone.first, `${name}: the first voice's row at 9.5 s`);
    assert.equal(both.second, other.second, `${name}: the second voice's row at 9.5 s`);
    assert.ok(other.second && !other.between, `${name}: one voice at 13 s: ${JSON.stringify(other)}`);
    assert.ok(both.between && ![both.first, both.second].includes(both.between), `${name}: the band at 9.5 s`);
  });
  const marked = await page.locator('.transcript-rows .word.together').allTextContents();
  assert.deepEqual(marked, ['samples', 'first', 'thing'], `${name}: marked words`);
  assert.match(
    await page.locator('.word.together[title]').first().getAttribute('title'),
    /several speakers at the same time/,
  );
}

test('overlapping speakers have their own rows, and their words are marked', async () => {
  for (const [name, size, colorScheme] of [
    ['narrow', { width: 390, height: 800 }, 'light'],
    ['wide', { width: 1400, height: 900 }, 'light'],
    ['dark', { width: 1400, height: 900 }, 'dark'],
  ]) {
    await page.setViewportSize(size);
    await page.emulateMedia({ colorScheme });
    await page.goto(`${s.url}/#/task/${id}`);
    await shows(page, name);
    await page.screenshot({ path: path.join(shots, `overlap-${name}.png`), fullPage: true });
  }
  await page.emulateMedia({ colorScheme: 'light' });
});

test('the page saved as a file shows overlapping speakers', async () => {
  const silence = path.join(dir, 'calls.wav'),
    html = path.join(dir, 'calls.html');
  execFileSync('ffmpeg', ['-nostdin', '-v', 'error', '-y', '-f', 'lavfi', '-i', 'anullsrc=r=16000:d=20', silence]);
  execFileSync(binary, ['transcribe', '--format', 'html', '--output', html, silence], { stdio: 'ignore' });
  const text = readFileSync(html, 'utf8'),
    data = /(<script type="application\/json" id="data">)(.*?)(<\/script>)/s.exec(text);
  const held = { ...JSON.parse(data[2]), result: overlapped() };
  delete held.peaks;
  writeFileSync(
    html,
    text.replace(data[2], () => JSON.stringify(held)),
  );
  const file = await open(b, {});
  await file.goto(pathToFileURL(html).href);
  await shows(file, 'file');
  await file.close();
});

test('a voice is saved only with consent, listed, and deleted', async () => {
  const posts = [];
  page.on('request', (r) => {
    if (r.method() === 'POST' && r.url().endsWith('/v1/voices')) posts.push(r.postDataJSON());
  });
  await page.setViewportSize({ width: 1400, height: 900 });
  const clip = path.join(dir, 'clip.flac');
  execFileSync('ffmpeg', ['-nostdin', '-v', 'error', '-y', '-i', recording, '-ss', '5', '-t', '14', clip]);
  const answer = await fetch(`${s.url}/v1/tasks`, {
    method: 'POST',
    headers: { 'X-API-Key': s.key, 'Content-Type': 'application/json' },
    body: JSON.stringify({ audio_base64: readFileSync(clip).toString('base64'), audio_filename: 'clip.flac' }),
  });
  assert.equal(answer.status, 201);
  const task = (await answer.json()).id;
  await eventually(async () => assert.equal((await s.ask(`/tasks/${task}`)).status, 'done'));
  const speakers = (await s.ask(`/tasks/${task}/result`)).speaker_embeddings.map((v) => v.speaker_id);
  assert.ok(speakers.length > 1, 'the clip has two speakers');
  await page.unrouteAll({ behavior: 'wait' });
  await page.goto(`${s.url}/#/task/${task}`);
  await page.getByText('Remember a voice', { exact: true }).click();
  const send = page.getByRole('button', { name: 'Remember this voice' }),
    tick = page.getByLabel('This person agreed');
  await page.getByLabel('Name of the person').fill('Ruth');
  assert.ok(await send.isDisabled(), 'without consent nothing can be sent');
  await page.getByLabel('Name of the person').press('Enter');
  await tick.check();
  assert.ok(await send.isEnabled());
  await page.locator('.remember select').selectOption(speakers[1]);
  assert.ok(!(await tick.isChecked()), 'the consent is one person’s');
  assert.ok(await send.isDisabled());
  await page.getByLabel('Name of the person').fill('Ruth');
  await tick.check();
  await page.screenshot({ path: path.join(shots, 'remember.png'), fullPage: true });
  assert.deepEqual(posts, [], 'nothing was sent before');
  await send.click();
  await eventually(() => assert.equal(posts.length, 1));
  assert.equal(posts[0].speaker, speakers[1]);
  assert.match(posts[0].consent, /agreed that their voice is remembered/);
  await eventually(async () => {
    assert.equal(await page.locator('.remember [role=status]').textContent(), 'The voice of Ruth is remembered.');
  });
  const kept = (await s.ask('/voices')).voices;
  assert.deepEqual(
    kept.map((v) => v.name),
    ['Ruth'],
  );

  await page.route(`**/v1/tasks/${task}/result*`, async (route) => {
    const response = await route.fetch();
    const voices = [{ speaker: speakers[0], name: 'Ruth', cosine: 0.6, probability: 0.42, suggested: true }];
    await route.fulfill({ response, json: { ...(await response.json()), voices } });
  });
  await page.reload();
  await page.getByText('Remember a voice', { exact: true }).click();
  assert.match(await page.locator('.remember option').first().textContent(), /: Ruth\? \(42 %\)$/);
  await page.getByRole('button', { name: `${speakers[0]} is not Ruth` }).click();
  await eventually(async () => {
    assert.equal(
      await page.locator('.remember [role=status]').textContent(),
      'Later recordings do not call this voice Ruth.',
    );
  });
  assert.equal((await s.ask('/voices')).voices[0].denied, 1);
  await page.unrouteAll({ behavior: 'wait' });

  await page.goto(`${s.url}/#/account`);
  await page.getByRole('button', { name: 'Forget: Ruth' }).click();
  await eventually(async () => assert.deepEqual((await s.ask('/voices')).voices, []));
});
