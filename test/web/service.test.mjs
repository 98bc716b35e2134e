// A person's way through the page: log in, drop a recording, hear it, correct
// it, take it along, see what it cost.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { browser, logIn, open, recording, service } from './world.mjs';

let s, b, page;
before(async () => { [s, b] = await Promise.all([service(), browser()]); page = await open(b, { origin: s.url, acceptDownloads: true }); });
after(async () => { await b?.close(); await s?.stop(); });

test('a wrong key is refused in plain words', async () => {
  await page.goto(s.url);
  await page.getByLabel('API key', { exact: true }).last().fill('asr_' + 'x'.repeat(40));
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByText('The service does not know this key').waitFor();
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
  await page.getByText('Nothing here yet').waitFor();
  await page.getByLabel('Accuracy').selectOption('words');
  const bytes = readFileSync(recording).toString('base64');
  const transfer = await page.evaluateHandle((base64) => {
    const d = new DataTransfer();
    d.items.add(new File([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))], 'conversation.flac', { type: 'audio/flac' }));
    return d;
  }, bytes);
  await page.dispatchEvent('.drop', 'dragover', { dataTransfer: transfer });
  await page.dispatchEvent('.drop', 'drop', { dataTransfer: transfer });
  await page.locator('.task', { hasText: 'conversation.flac' }).getByText('Working').waitFor({ timeout: 30000 });
  await page.getByRole('link', { name: 'Open: conversation.flac' }).waitFor({ timeout: 180000 });
});

test('the result plays from a word, and the word that is said is shown', async () => {
  await page.getByRole('link', { name: 'Open: conversation.flac' }).click();
  await page.getByRole('heading', { name: 'conversation.flac' }).waitFor();
  const word = page.locator('.word', { hasText: 'morning' }).first();
  await word.waitFor();
  const start = await page.evaluate(() => document.querySelector('.scrub').value);
  assert.equal(Number(start), 0);
  await word.click();
  await page.getByRole('button', { name: 'Pause' }).waitFor();
  await page.waitForFunction(() => Number(document.querySelector('.scrub').value) > 5.5);
  await page.locator('.word.now').waitFor();
  await page.locator('.segment.now').waitFor();
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.getByRole('button', { name: 'Play', exact: true }).waitFor();
  // The keyboard does it too.
  const before = Number(await page.locator('.scrub').inputValue());
  await page.locator('#main').focus();
  await page.keyboard.press('ArrowRight');
  await page.waitForFunction((t) => Math.abs(Number(document.querySelector('.scrub').value) - t - 5) < 0.3, before);
  await page.keyboard.press(' ');
  await page.getByRole('button', { name: 'Pause' }).waitFor();
  await page.keyboard.press(' ');
  await page.getByRole('button', { name: 'Play', exact: true }).waitFor();
});

test('a click on the waveform or a lane plays from there', async () => {
  for (const selector of ['.timeline-wave', '.timeline-lanes']) {
    await page.locator('.scrub').fill('1');
    const box = await page.locator(selector).boundingBox();
    await page.mouse.click(box.x + box.width * 0.75, box.y + box.height / 2);
    await page.getByRole('button', { name: 'Pause' }).waitFor();
    await page.waitForFunction(() => { const s = document.querySelector('.scrub'); return Math.abs(s.value / s.max - 0.75) < 0.05; });
    await page.getByRole('button', { name: 'Pause' }).click();
  }
});

test('the time line is zoomed by button and wheel, and moved by dragging', async () => {
  const view = () => page.evaluate(() => { const e = [...document.querySelectorAll('.timeline-wave *')].find((x) => x.shadowRoot).shadowRoot.querySelector('.scroll'); return { width: e.scrollWidth, left: Math.round(e.scrollLeft), room: e.clientWidth }; });
  const whole = await view();
  assert.equal(whole.width, whole.room);
  await page.getByRole('button', { name: 'Zoom in' }).click();
  await page.waitForFunction((w) => { const e = [...document.querySelectorAll('.timeline-wave *')].find((x) => x.shadowRoot).shadowRoot.querySelector('.scroll'); return Math.abs(e.scrollWidth - 2 * w) < 4; }, whole.width);
  const lanes = await page.locator('.timeline-lanes').boundingBox();
  await page.mouse.move(lanes.x + lanes.width / 2, lanes.y + 30);
  await page.keyboard.down('Control');
  await page.mouse.wheel(0, -300);
  await page.keyboard.up('Control');
  await page.waitForFunction((w) => { const e = [...document.querySelectorAll('.timeline-wave *')].find((x) => x.shadowRoot).shadowRoot.querySelector('.scroll'); return e.scrollWidth > 4 * w; }, whole.width);
  await page.waitForTimeout(100);
  const before = (await view()).left;
  await page.mouse.down();
  await page.mouse.move(lanes.x + lanes.width / 2 - 120, lanes.y + 30, { steps: 5 });
  await page.mouse.up();
  assert.ok(Math.abs((await view()).left - before - 120) < 3, 'the view goes along');
  assert.equal(await page.getByRole('button', { name: 'Pause' }).count(), 0, 'dragging does not play');
  await page.getByRole('button', { name: 'Whole recording' }).click();
  await page.waitForFunction((w) => { const e = [...document.querySelectorAll('.timeline-wave *')].find((x) => x.shadowRoot).shadowRoot.querySelector('.scroll'); return e.scrollWidth === w; }, whole.width);
});

test('doubtful words are marked, and the text can be copied', async () => {
  const api = await (await fetch(`${s.url}/v1/tasks/${/[0-9a-f-]{36}/.exec(page.url())[0]}/result`, { headers: { 'X-API-Key': s.key } })).json();
  const doubtful = api.segments.flatMap((x) => x.words).filter((w) => w.probability < 0.5).length;
  assert.ok(doubtful > 0);
  assert.equal(await page.locator('.word.unsure').count(), doubtful);
  assert.match(await page.locator('.word.unsure').first().getAttribute('title'), /^Not sure: \d+ %$/);
  await page.getByLabel('Mark doubtful words').uncheck();
  assert.equal(await page.locator('.word.unsure').count(), 0);
  await page.getByLabel('Mark doubtful words').check();
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.getByRole('button', { name: 'Copy', exact: true }).click();
  await page.getByRole('button', { name: 'Copied' }).waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert.equal(copied, api.segments.map((x) => `[${x.speaker}] ${x.text}\n`).join(''));
});

test('search finds and marks', async () => {
  await page.keyboard.press('/');
  await page.getByRole('searchbox', { name: 'Search' }).fill('thank');
  await page.locator('mark.chosen').first().waitFor();
  await page.getByText(/^1 of \d+$/).waitFor();
  await page.getByRole('searchbox', { name: 'Search' }).fill('zzzz');
  await page.getByText('Not found').waitFor();
  await page.getByRole('searchbox', { name: 'Search' }).fill('');
});

test('a renamed speaker shows everywhere, and in what is downloaded', async () => {
  await page.getByRole('button', { name: 'Rename SPEAKER_0' }).click();
  await page.getByRole('textbox', { name: 'Rename SPEAKER_0' }).fill('Ada Lovelace');
  await page.keyboard.press('Enter');
  await page.locator('.segment .who', { hasText: 'Ada Lovelace' }).first().waitFor();
  const files = {};
  for (const format of ['TXT', 'SRT', 'VTT', 'JSON', 'RTTM']) {
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: format, exact: true }).click()]);
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
  const api = await (await fetch(`${s.url}/v1/tasks/${json.task_id}/result`, { headers: { 'X-API-Key': s.key } })).json();
  delete api.billing.balance; delete json.billing.balance; // the balance is that of the moment
  assert.deepEqual(json, api);
  for (const text of [files.SRT, files.VTT]) for (const line of text.split('\n')) assert.ok(line.replace(/^<v [^>]*>/, '').length <= 60, line);
});

test('a text is corrected, and goes along corrected', async () => {
  const row = page.locator('.segment', { hasText: 'how are you today' }).first();
  await row.hover();
  await row.getByRole('button', { name: /^Correct the text at/ }).click();
  await page.getByRole('textbox', { name: /^Correct the text at/ }).fill('Good morning, how is <b>Ada</b> today?');
  await page.keyboard.press('Enter');
  await page.locator('.segment .text', { hasText: 'how is <b>Ada</b> today' }).waitFor();
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'TXT', exact: true }).click()]);
  assert.match(readFileSync(await download.path(), 'utf8'), /how is <b>Ada<\/b> today\?/);
});

test('a user with a password sees the account and the charge', async () => {
  s.otograph('user', 'create', 'local', 'ada', '--password=correct horse battery');
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByLabel('User name and password').check();
  await page.getByLabel('User name', { exact: true }).fill('ada');
  await page.getByLabel('Password', { exact: true }).fill('wrong');
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByText('The user name or the password is not right').waitFor();
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
  const ask = async (path) => (await fetch(s.url + '/v1' + path, { headers: { 'X-API-Key': s.key } })).json();
  const { balance, held_amount, resource_pack_equivalent, available_balance, tier, concurrency_limit, active_tasks, waiting_batch_tasks, tps_limit, tps_burst } = await ask('/account'), prices = await ask('/pricing');
  await page.locator('.facts-table').nth(2).waitFor();
  const shown = Object.fromEntries(await page.locator('.facts-table div').evaluateAll((all) => all.map((e) => [e.querySelector('dt').textContent, e.querySelector('dd').textContent])));
  assert.equal(Number(await page.locator('.big').innerText()), balance);
  assert.deepEqual(Object.fromEntries(Object.entries(shown).map(([k, v]) => [k, Number(v.replace('× ', ''))])), {
    'Held for work in progress': held_amount, 'Resource packs': resource_pack_equivalent, Available: available_balance,
    Tier: tier, 'Recordings at once': concurrency_limit, 'In work now': active_tasks, 'Waiting without hurry': waiting_batch_tasks, 'Requests per second': tps_limit, 'Requests in one burst': tps_burst,
    'Careful (standard)': prices.standard_price_per_hour, Fast: prices.zh_lite_price_per_hour, 'Telling speakers apart': prices.diarize_price_per_hour, 'Other sounds': prices.audio_events_price_per_hour, 'Without hurry': prices.batch_discount,
  });
});

test('without the recording the page asks for it', async () => {
  await page.reload();
  await page.getByRole('link', { name: 'Recordings', exact: true }).click();
  await page.getByRole('link', { name: 'Open: conversation.flac' }).click();
  await page.getByText('The recording itself is not stored').waitFor();
  await page.getByLabel('Open the recording').setInputFiles(recording);
  await page.getByText('The recording itself is not stored').waitFor({ state: 'detached' });
  await page.locator('.word', { hasText: 'Good' }).first().click();
  await page.getByRole('button', { name: 'Pause' }).waitFor();
});

test('broken files and refused links are told of in plain words', async () => {
  await page.getByRole('link', { name: 'Recordings', exact: true }).click();
  await page.locator('.drop input').setInputFiles([{ name: 'tiny.wav', mimeType: 'audio/wav', buffer: Buffer.from('RIFF') }, { name: 'notes.mp3', mimeType: 'audio/mpeg', buffer: Buffer.alloc(4096, 'text ') }]);
  await page.getByText('less than 1 KB').waitFor();
  await page.locator('.task.failed', { hasText: 'notes.mp3' }).getByText('The service says').waitFor({ timeout: 60000 });
  await page.getByLabel('Or paste a link').fill('ftp://example.com/a.mp3');
  await page.getByRole('button', { name: 'Fetch and transcribe' }).click();
  await page.getByText('This is not a link').waitFor();
  await page.getByLabel('Or paste a link').fill('http://127.0.0.1/a.mp3');
  await page.getByRole('button', { name: 'Fetch and transcribe' }).click();
  await page.locator('.submit .error').getByText('The service did not accept this').waitFor();
});

test('a recording is deleted after a question', async () => {
  const row = page.locator('.task', { hasText: 'notes.mp3' });
  await row.getByRole('button', { name: 'Delete: notes.mp3' }).click();
  await row.getByText('with its transcript?').waitFor();
  await row.getByRole('button', { name: 'Delete', exact: true }).click();
  await row.waitFor({ state: 'detached' });
});

test('nothing broke, nobody else was asked, no secret in an address', async () => {
  assert.deepEqual(page.wrong, []);
  for (const u of page.urls) assert.ok(!u.includes(s.key) && !/asr_|eyJ/.test(u.replace(/^data:.*/, '')), u);
  assert.ok(!s.log().includes(s.key));
});
