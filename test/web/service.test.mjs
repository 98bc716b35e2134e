// A person's way through the page: log in, drop a recording, play it, correct
// it, download it, see its price.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { at, browser, eventually, logIn, open, recording, repeated, serious, service, working } from './world.mjs';

let s, b, page, result; // result is the API's result for the recording
before(async () => {
  [s, b] = await Promise.all([service(), browser()]);
  page = await open(b, { origin: s.url, acceptDownloads: true });
});
after(async () => {
  await b?.close();
  await s?.stop();
});

test('a wrong key is refused in plain words', async () => {
  await page.goto(s.url);
  await page
    .getByLabel('API key', { exact: true })
    .last()
    .fill('asr_' + 'x'.repeat(40));
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByText('This key does not exist').waitFor();
  await page.getByLabel('API key', { exact: true }).last().fill('hello');
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByText('begins with asr_ and has 44 characters').waitFor();
});

test('the first load is small', async () => {
  let sum = 0;
  for (const path of ['/', '/page.js', '/page.css', '/icon.svg']) {
    const r = await fetch(s.url + path, { headers: { 'Accept-Encoding': 'gzip' } });
    assert.equal(r.status, 200, path);
    sum += Number(r.headers.get('content-length') ?? 0) || (await r.arrayBuffer()).byteLength;
  }
  console.log(`first load: ${Math.round(sum / 1024)} KB`);
  assert.ok(sum < 300 * 1024, `${sum} bytes`);
});

test('a key logs in; a dropped recording is transcribed', async () => {
  await logIn(page, s);
  await page.getByText('No recordings yet').waitFor();
  await page.getByLabel('Accuracy').selectOption('words');
  const release = await working(page, s, 'conversation.flac');
  const bytes = readFileSync(recording).toString('base64');
  const transfer = await page.evaluateHandle((base64) => {
    const d = new DataTransfer();
    d.items.add(
      new File([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))], 'conversation.flac', { type: 'audio/flac' }),
    );
    return d;
  }, bytes);
  await page.dispatchEvent('.drop', 'dragover', { dataTransfer: transfer });
  await page.dispatchEvent('.drop', 'drop', { dataTransfer: transfer });
  const row = page.locator('.task', { hasText: 'conversation.flac' });
  await row.getByText('Transcribing').waitFor();
  await row.getByRole('progressbar', { name: 'Transcribing' }).waitFor();
  await release();
  await page.getByRole('link', { name: 'Open: conversation.flac' }).waitFor({ timeout: 600000 });
  const {
    tasks: [task],
  } = await s.ask('/tasks');
  result = await s.ask(`/tasks/${task.id}/result`);
});

test('a click on a word plays from there, and the word being played is highlighted', async () => {
  await page.getByRole('link', { name: 'Open: conversation.flac' }).click();
  await page.getByRole('heading', { name: 'conversation.flac' }).waitFor();
  const second = result.segments[0].words[1],
    word = page.locator('[data-segment="0"] [data-word="1"]');
  await word.waitFor();
  assert.equal(Number(await page.locator('.scrub').inputValue()), 0);
  await word.click();
  await page.getByRole('button', { name: 'Pause' }).waitFor();
  assert.deepEqual(await played(), [second.start]);
  await page.waitForFunction((t) => Number(document.querySelector('.scrub').value) > t, second.start);
  await page.locator('.word.now').waitFor();
  await page.locator('.segment.now').waitFor();
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.getByRole('button', { name: 'Play', exact: true }).waitFor();
  // After a jump, exactly the word at that time is marked.
  const last = result.segments[1].words.length - 1;
  await at(page, Math.ceil(result.segments[1].words[last].start * 10) / 10);
  await page.locator(`[data-segment="1"].now [data-word="${last}"].now`).waitFor();
  assert.equal(await page.locator('.word.now').count(), 1);
  // Playback and position by keyboard.
  await at(page, 10);
  await page.locator('#main').focus();
  await page.keyboard.press('ArrowRight');
  await page.waitForFunction(() => document.querySelector('.scrub').value === '15');
  await page.keyboard.press(' ');
  await page.getByRole('button', { name: 'Pause' }).waitFor();
  await page.keyboard.press(' ');
  await page.getByRole('button', { name: 'Play', exact: true }).waitFor();
  assert.deepEqual(await played(), [15]);
});

/** played returns where the page has begun to play since the last call, in seconds. */
const played = async () => (await page.evaluate(() => window.played.splice(0))).map((t) => Math.round(t * 1000) / 1000);

test('playback stops at the end of the recording', async () => {
  await page.evaluate(() => {
    window.endless = false;
  });
  await at(page, Math.floor(result.audio_duration) - 1);
  await page.getByRole('button', { name: 'Play', exact: true }).click();
  await page.waitForFunction((t) => Number(document.querySelector('.scrub').value) > t - 0.2, result.audio_duration);
  await page.getByRole('button', { name: 'Play', exact: true }).waitFor();
  await page.evaluate(() => {
    delete window.endless;
    window.played.length = 0;
  });
});

test('a click on the waveform or a speaker’s row plays from there', async () => {
  await page.locator('.timeline-foot', { hasText: /^(?!.*(waveform|bars))/ }).waitFor(); // nothing moves any more
  for (const selector of ['.timeline-wave', '.timeline-lanes']) {
    await at(page, 1);
    const box = await page.locator(selector).boundingBox();
    await page.mouse.click(box.x + box.width * 0.75, box.y + box.height / 2);
    await page.getByRole('button', { name: 'Pause' }).waitFor();
    const from = await played();
    assert.ok(from.length === 1 && Math.abs(from[0] / result.audio_duration - 0.75) < 0.005, `${selector}: ${from}`);
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByRole('button', { name: 'Play', exact: true }).waitFor();
  }
});

test('the time line is zoomed by button and wheel, and moved by dragging', async () => {
  await at(page, 0);
  const view = () =>
    page.evaluate(() => {
      const e = [...document.querySelectorAll('.timeline-wave *')]
        .find((x) => x.shadowRoot)
        .shadowRoot.querySelector('.scroll');
      return { width: e.scrollWidth, left: e.scrollLeft, room: e.clientWidth };
    });
  const whole = await view();
  assert.equal(whole.width, whole.room);
  /** shows waits until the recording is `times` as wide as at first, its point share at the view's place (0 to 1). */
  const shows = (times, share, place) =>
    eventually(async () => {
      const { width, left, room } = await view();
      assert.ok(Math.abs(width / whole.width - times) < 0.02, `${width} wide, ${whole.width} at first`);
      assert.ok(Math.abs(left + place * room - share * width) < 3, `${left} of ${width} on the left`);
    });
  await page.getByRole('button', { name: 'Zoom in' }).click();
  await shows(2, 0.5, 0.5);
  const lanes = await page.locator('.timeline-lanes').boundingBox();
  await page.mouse.move(lanes.x + lanes.width * 0.75, lanes.y + 30);
  await page.keyboard.down('Control');
  await page.mouse.wheel(0, -300);
  await page.keyboard.up('Control');
  await shows(2 * Math.E, 0.25 + 0.75 / 2, 0.75); // the time under the pointer stays there
  const before = (await view()).left;
  await page.mouse.down();
  await page.mouse.move(lanes.x + lanes.width * 0.75 - 120, lanes.y + 30, { steps: 5 });
  await page.mouse.up();
  await eventually(async () => assert.ok(Math.abs((await view()).left - before - 120) < 3, 'the view goes along'));
  assert.deepEqual(await played(), [], 'dragging does not play');
  await page.getByRole('button', { name: 'Whole recording' }).click();
  await shows(1, 0, 0);
});

test('doubtful words are marked, and the text can be copied', async () => {
  // In the rows that the page has, exactly the doubtful words are marked.
  const marked = (doubtful) =>
    eventually(async () => {
      const rows = await page
        .locator('.segment')
        .evaluateAll((all) =>
          all.map((e) => [
            Number(e.dataset.segment),
            [...e.querySelectorAll('.word.unsure')].map((w) => Number(w.dataset.word)),
          ]),
        );
      assert.ok(rows.length > 2);
      for (const [i, words] of rows)
        assert.deepEqual(
          words,
          result.segments[i].words.flatMap((w, k) => (doubtful && w.probability < 0.5 ? [k] : [])),
          result.segments[i].text,
        );
      return rows.flatMap(([, words]) => words).length;
    });
  await page.locator('.transcript-rows').evaluate((e) => {
    e.scrollTop = 0;
  });
  if (await marked(true))
    assert.match(await page.locator('.word.unsure').first().getAttribute('title'), /^Confidence: \d+ %$/);
  await page.getByLabel('Highlight uncertain words').uncheck();
  await marked(false);
  await page.getByLabel('Highlight uncertain words').check();
  await marked(true);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await Promise.all([
    page.getByRole('button', { name: 'Copied' }).waitFor(),
    page.getByRole('button', { name: 'Copy', exact: true }).click(),
  ]); // the button shows this for two seconds
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert.equal(copied, result.segments.map((x) => `[${x.speaker}] ${x.text}\n`).join(''));
});

test('search marks all matches and starts at the player’s position', async () => {
  const { word, hits, total } = repeated(result.segments),
    last = hits.at(-1),
    box = page.getByRole('searchbox', { name: 'Search' });
  const places = [
    [0, 1],
    [last.start + 0.2, total - last.times + 1],
    [result.audio_duration, 1],
  ]; // the first hit follows the last one
  for (const [time, number] of places) {
    await at(page, Math.floor(time * 10) / 10);
    await page.locator('#main').focus();
    await page.keyboard.press('/');
    await box.fill(word);
    await page.getByText(`${number} of ${total}`, { exact: true }).waitFor();
    assert.equal((await page.locator('mark.chosen').first().innerText()).toLowerCase(), word);
    await box.fill('');
    await page.locator('mark').first().waitFor({ state: 'detached' });
  }
  // In a pause, the next word is the current one.
  const pause = result.segments.find(
    (x, i) => i && x.start > hits[0].end && x.start - result.segments[i - 1].end > 0.6,
  );
  const passed = hits.filter((x) => x.end < pause.start).reduce((n, x) => n + x.times, 0);
  await at(page, Math.floor((pause.start - 0.15) * 10) / 10);
  await box.fill(word);
  await page.getByText(`${passed < total ? passed + 1 : 1} of ${total}`, { exact: true }).waitFor();
  await page.getByRole('searchbox', { name: 'Search' }).fill('zzzz');
  await page.getByText('No matches').waitFor();
  await page.getByRole('searchbox', { name: 'Search' }).fill('');
});

test('a speaker’s new name appears everywhere, and in downloads', async () => {
  await page.getByRole('button', { name: 'Rename SPEAKER_0' }).click();
  await page.getByRole('textbox', { name: 'Rename SPEAKER_0' }).fill('Ada Lovelace');
  await page.keyboard.press('Enter');
  await page.locator('.segment .who', { hasText: 'Ada Lovelace' }).first().waitFor();
  const files = {};
  for (const format of ['TXT', 'SRT', 'VTT', 'JSON', 'RTTM']) {
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: format, exact: true }).click(),
    ]);
    assert.equal(download.suggestedFilename(), `conversation.${format.toLowerCase()}`);
    files[format] = readFileSync(await download.path(), 'utf8');
  }
  assert.match(files.TXT, /^\[Ada Lovelace\] .+/m);
  assert.match(files.SRT, /^1\n00:00:\d\d,\d{3} --> 00:00:\d\d,\d{3}\n/);
  assert.match(files.SRT, /\[Ada Lovelace\]/);
  assert.match(files.VTT, /^WEBVTT\n\n00:00:\d\d\.\d{3} --> /);
  assert.match(files.VTT, /<v Ada Lovelace>/);
  assert.match(files.RTTM, /^SPEAKER conversation 1 \d+\.\d{3} \d+\.\d{3} <NA> <NA> Ada_Lovelace <NA> <NA>$/m);
  const json = JSON.parse(files.JSON);
  assert.ok(json.segments.length > 5);
  assert.ok(json.segments.some((x) => x.words?.length));
  assert.equal(json.speaker_embeddings.length, json.num_speakers);
  const { billing, ...rest } = result,
    { billing: told, ...also } = json;
  assert.deepEqual(also, rest);
  delete billing.balance;
  delete told.balance; // the balance may have changed since
  assert.deepEqual(told, billing);
  for (const text of [files.SRT, files.VTT])
    for (const line of text.split('\n')) assert.ok(line.replace(/^<v [^>]*>/, '').length <= 60, line);
});

test('a corrected text is downloaded with its correction', async () => {
  await page.locator('.transcript-rows').evaluate((e) => {
    e.scrollTop = 0;
  });
  const row = page.locator('.segment[data-segment="0"]');
  await row.hover();
  await row.getByRole('button', { name: /^Correct the text at/ }).click();
  await page.getByRole('textbox', { name: /^Correct the text at/ }).fill('Good morning, how is <b>Ada</b> today?');
  await page.keyboard.press('Enter');
  await page.locator('.segment .text', { hasText: 'how is <b>Ada</b> today' }).waitFor();
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'TXT', exact: true }).click(),
  ]);
  assert.match(readFileSync(await download.path(), 'utf8'), /how is <b>Ada<\/b> today\?/);
});

test('a user with a password sees the account and the charge', async () => {
  s.otograph('user', 'create', 'local', 'ada', '--password=correct horse battery');
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByLabel('User name and password').check();
  await page.getByLabel('User name', { exact: true }).fill('ada');
  await page.getByLabel('Password', { exact: true }).fill('wrong');
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByText('Wrong user name or password').waitFor();
  await page.getByLabel('Password', { exact: true }).fill('correct horse battery');
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('link', { name: 'Open: conversation.flac' }).waitFor();
  await page.getByRole('link', { name: 'Account' }).click();
  await page.getByRole('heading', { name: 'Transactions' }).waitFor();
  const charge = page.locator('tr', { hasText: 'Charge' });
  await charge.waitFor();
  // Standard, speakers and sounds for two minutes: (0.60 + 0.10 + 0.10) / 60 * 2, each part rounded to 4 digits.
  assert.match(await charge.innerText(), /-0\.026\d/);
  await page.locator('tr', { hasText: 'Payment' }).waitFor();
  const {
      balance,
      held_amount,
      resource_pack_equivalent,
      available_balance,
      tier,
      concurrency_limit,
      active_tasks,
      waiting_batch_tasks,
      tps_limit,
      tps_burst,
    } = await s.ask('/account'),
    prices = await s.ask('/pricing');
  await page.locator('.facts-table').nth(2).waitFor();
  const shown = Object.fromEntries(
    await page
      .locator('.facts-table div')
      .evaluateAll((all) => all.map((e) => [e.querySelector('dt').textContent, e.querySelector('dd').textContent])),
  );
  assert.equal(Number(await page.locator('.big').innerText()), balance);
  assert.deepEqual(Object.fromEntries(Object.entries(shown).map(([k, v]) => [k, Number(v.replace('× ', ''))])), {
    'Reserved for tasks in progress': held_amount,
    'Resource packs': resource_pack_equivalent,
    Available: available_balance,
    Tier: tier,
    'Recordings in parallel': concurrency_limit,
    'In progress': active_tasks,
    'Batch tasks waiting': waiting_batch_tasks,
    'Requests per second': tps_limit,
    'Requests in a burst': tps_burst,
    'Accurate (standard)': prices.standard_price_per_hour,
    Fast: prices.zh_lite_price_per_hour,
    'Speaker identification': prices.diarize_price_per_hour,
    'Sound detection': prices.audio_events_price_per_hour,
    Batch: prices.batch_discount,
  });
});

test('usage, grouped as the reader chooses, adds up to the charge and downloads as CSV', async () => {
  const { tasks } = await s.ask('/tasks'),
    { id } = tasks.find((x) => x.status === 'done'),
    { billing } = await s.ask(`/tasks/${id}/result`),
    { usage } = await s.ask('/usage?period=day&by=key'),
    section = page.getByRole('region', { name: 'Usage' }),
    rows = section.locator('tbody tr'),
    cells = async () => (await rows.locator('td').allInnerTexts()).map((x) => x.trim());
  await rows.first().waitFor();
  assert.equal(await rows.count(), 1);
  assert.deepEqual((await cells()).slice(1), [
    'Text, Speaker identification, Sound detection',
    '1',
    '1:00',
    String(billing.amount),
  ]);
  assert.equal(await section.locator('tfoot .sum').innerText(), String(billing.amount));
  await section.getByLabel('Work').uncheck();
  await section.getByLabel('API key').check();
  await section.getByLabel('Period').selectOption('day');
  await section.getByRole('columnheader', { name: 'API key' }).waitFor();
  await eventually(async () => assert.match((await cells())[0], /^\d{4}-\d{2}-\d{2}$/));
  await eventually(async () => assert.match((await cells())[1], /^asr_\w+…$/));
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    section.getByRole('button', { name: 'Save as CSV' }).click(),
  ]);
  const [head, row] = readFileSync(await file.path(), 'utf8')
    .trim()
    .split(/\r?\n/);
  assert.equal(head, 'period,key,tasks,seconds,minutes,amount,from_packs,charged');
  assert.equal(row.split(',')[1], usage[0].key);
  assert.deepEqual(await serious(page), []);

  await page.goto(`${s.url}/#/task/${id}`);
  await page.getByText('Price in detail').click();
  const d = billing.detail;
  assert.deepEqual(await page.locator('.price li').allInnerTexts(), [
    `Accurate (standard): 2 min at ${d.base_price_per_hour.toFixed(2)} per hour = ${d.base_amount}`,
    `Speaker identification: 2 min at ${d.diarize_price_per_hour.toFixed(2)} per hour = ${d.diarize_amount}`,
    `Sound detection: 2 min at ${d.events_price_per_hour.toFixed(2)} per hour = ${d.events_amount}`,
    `Sum: ${d.subtotal}`,
  ]);
  assert.equal(d.subtotal, billing.amount);
  await page.getByRole('link', { name: 'Account' }).click();
});

test('a result whose recording is not stored asks for the file', async () => {
  await page.reload();
  await page.getByRole('link', { name: 'Recordings', exact: true }).click();
  await page.getByRole('link', { name: 'Open: conversation.flac' }).click();
  await page.getByText('The recording is not stored').waitFor();
  await page.getByLabel('Open the recording').setInputFiles(recording);
  await page.getByText('The recording is not stored').waitFor({ state: 'detached' });
  await page.locator('.word').first().click();
  await page.getByRole('button', { name: 'Pause' }).waitFor();
});

test('broken files and refused links have plain error messages', async () => {
  await page.getByRole('link', { name: 'Recordings', exact: true }).click();
  await page.locator('.drop input').setInputFiles([
    { name: 'tiny.wav', mimeType: 'audio/wav', buffer: Buffer.from('RIFF') },
    { name: 'notes.mp3', mimeType: 'audio/mpeg', buffer: Buffer.alloc(4096, 'text ') },
  ]);
  await page.getByText('under 1 KB').waitFor();
  await page.locator('.task.failed', { hasText: 'notes.mp3' }).getByText('not an audio or video file').waitFor();
  const film = { audio_base64: readFileSync(recording).toString('base64'), audio_filename: 'film.flac' };
  const sent = await fetch(`${s.url}/v1/tasks`, {
    method: 'POST',
    headers: { 'X-API-Key': s.key, 'Content-Type': 'application/json' },
    body: JSON.stringify({ ...film, options: { audio_track: 7 } }),
  });
  assert.equal(sent.status, 201);
  await page.locator('.task.failed', { hasText: 'film.flac' }).getByText('audio track 7 is not there').waitFor();
  await page.getByLabel('Or paste a link').fill('ftp://example.com/a.mp3');
  await page.getByRole('button', { name: 'Fetch and transcribe' }).click();
  await page.getByText('Not a link').waitFor();
  await page.getByLabel('Or paste a link').fill('http://127.0.0.1/a.mp3');
  await page.getByRole('button', { name: 'Fetch and transcribe' }).click();
  await page.locator('.submit .error').getByText('The service rejected the request').waitFor();
});

test('a recording is deleted after a confirmation', async () => {
  const row = page.locator('.task', { hasText: 'notes.mp3' });
  await row.getByRole('button', { name: 'Delete: notes.mp3' }).click();
  await row.getByText('and its transcript?').waitFor();
  await row.getByRole('button', { name: 'Delete', exact: true }).click();
  await row.waitFor({ state: 'detached' });
});

test('the page logged no error, asked no other host and put no secret in a URL', async () => {
  assert.deepEqual(page.wrong, []);
  for (const u of page.urls) assert.ok(!u.includes(s.key) && !/asr_|eyJ/.test(u.replace(/^data:.*/, '')), u);
  assert.ok(!s.log().includes(s.key));
});
