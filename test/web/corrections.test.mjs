// Corrections by hand: sentences given to another speaker, split, joined and
// undone, by mouse and by keyboard; by two people at the same time.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { at, browser, eventually, logIn, open, recording, serious, service } from './world.mjs';

let s, b, page, task, first;
before(async () => {
  [s, b] = await Promise.all([service('--keep-audio', '1h'), browser()]);
  s.otograph('account', 'limits', 'local', '--tps', '1000', '--burst', '1000'); // two pages and this test send requests
  page = await open(b, { origin: s.url, acceptDownloads: true });
  await logIn(page, s);
  const answer = await fetch(`${s.url}/v1/tasks`, {
    method: 'POST',
    headers: { 'X-API-Key': s.key, 'Content-Type': 'application/json' },
    body: JSON.stringify({
      audio_filename: 'conversation.flac',
      audio_base64: readFileSync(recording).toString('base64'),
      options: { optimize: false }, // it has words
    }),
  });
  task = await answer.json();
  await eventually(async () => assert.equal((await s.ask(`/tasks/${task.id}`)).status, 'done'));
  first = await s.ask(`/tasks/${task.id}/result`);
  await page.goto(`${s.url}/#/task/${task.id}`);
  await page.locator('.segment').first().waitFor();
});
after(async () => {
  await b?.close();
  await s?.stop();
});

const look = async (name, p = page) => {
  if (process.env.LOOK) await p.screenshot({ path: `${process.env.LOOK}/${name}.png` });
};

/** shown lists the sentences at the top of a page. */
const shown = (p = page) =>
  p
    .locator('.segment')
    .evaluateAll((rows) =>
      rows
        .sort((x, y) => x.dataset.segment - y.dataset.segment)
        .map((r) => [
          r.querySelector('.who').textContent,
          (r.querySelector('.text').textContent ?? '').replace(/ · Corrected here$/, ''),
        ]),
    );

/** agree waits until the service returns the sentences that a page shows, and returns them. */
const agree = (p = page) =>
  eventually(async () => {
    const { segments } = await s.ask(`/tasks/${task.id}/result`),
      here = await shown(p);
    assert.ok(here.length > 0);
    assert.deepEqual(
      segments.slice(0, here.length).map((x) => [x.speaker, x.text]),
      here,
    );
    return segments;
  });

/** open the editor of a row. */
const edit = async (i, p = page) => {
  const row = p.locator(`.segment[data-segment="${i}"]`);
  await row.hover();
  await row.getByRole('button', { name: /^Correct the text at/ }).click();
  return row;
};

/** caret puts the cursor of the open editor before a word. */
const caret = (word, p = page) =>
  p.getByRole('textbox', { name: /^Correct the text at/ }).evaluate((e, w) => {
    const i = e.value.indexOf(w);
    e.setSelectionRange(i, i);
  }, word);

/** inner is a word in the middle of a sentence of several. */
const inner = (text) => text.split(' ')[2];

test('by mouse, a sentence is split at the cursor, given to another speaker, joined and undone', async () => {
  const i = first.segments.findIndex((x) => x.text.split(' ').length >= 4),
    word = inner(first.segments[i].text);
  assert.ok(i >= 0 && i < 5, 'a sentence to split');
  await edit(i);
  await caret(word);
  await look('editor');
  await page.getByRole('button', { name: 'Split at the cursor' }).click();
  let now = await agree();
  assert.equal(now.length, first.segments.length + 1);
  assert.ok(now[i + 1].text.startsWith(word));
  const cut = first.segments[i].words.find((w) => w.word.trim() === word);
  assert.equal(now[i + 1].start, cut.start, 'the times of the words');

  const other = now[i].speaker === 'SPEAKER_0' ? 'SPEAKER_1' : 'SPEAKER_0';
  await edit(i + 1);
  await page.getByRole('combobox', { name: 'Speaker' }).selectOption(other);
  await page.keyboard.press('Escape');
  now = await agree();
  assert.equal(now[i + 1].speaker, other);
  await at(page, cut.start + 0.01);
  await page.locator(`.segment.now[data-segment="${i + 1}"]`).waitFor(); // the player follows

  await edit(i);
  await page.getByRole('button', { name: 'Join with the next' }).click();
  now = await agree();
  assert.deepEqual([now[i].text, now[i].speaker], [first.segments[i].text, first.segments[i].speaker]);
  const author = await page.locator(`.segment[data-segment="${i}"] .edited`).getAttribute('title');
  assert.match(author, new RegExp(`^${s.key.slice(0, 8)}…, \\d+ `));
  await look('corrected');
  const undo = page.getByRole('button', { name: 'Undo' });
  for (let left = 3; left > 0; left--) await undo.click();
  await page.locator('.bar button', { hasText: 'Undo' }).waitFor({ state: 'detached' });
  await eventually(async () => assert.deepEqual((await s.ask(`/tasks/${task.id}/result`)).segments, first.segments));
  const { corrections } = await s.ask(`/tasks/${task.id}/corrections`);
  assert.deepEqual(
    corrections.map((c) => [c.op, c.author]),
    ['split', 'assign', 'join', 'undo', 'undo', 'undo'].map((op) => [op, `${s.key.slice(0, 8)}…`]),
  );
  assert.deepEqual(page.wrong, []);
});

test('the text being typed is saved when the reader opens another page', async () => {
  await edit(0);
  await page.getByRole('textbox', { name: /^Correct the text at/ }).fill('Typed, not finished');
  await page.goBack();
  await page.getByRole('heading', { name: 'New transcript' }).waitFor();
  await eventually(async () =>
    assert.equal((await s.ask(`/tasks/${task.id}/result`)).segments[0].text, 'Typed, not finished'),
  );
  await page.goForward();
  await page.getByRole('button', { name: 'Undo' }).click();
  await eventually(async () => assert.deepEqual((await s.ask(`/tasks/${task.id}/result`)).segments, first.segments));
});

test('the page asks before it loses a correction that the service does not have', async () => {
  const log = `${s.url}/v1/tasks/${task.id}/corrections`,
    away = (route) => (route.request().method() === 'POST' ? route.abort() : route.continue());
  await page.route(log, away);
  await edit(0);
  await page.getByRole('textbox', { name: /^Correct the text at/ }).fill('Typed without a connection');
  await page.keyboard.press('Enter');
  await page.getByText('The last change was not saved').waitFor();
  const question = page.waitForEvent('dialog');
  await page.evaluate(() => void setTimeout(() => location.reload()));
  const dialog = await question;
  assert.equal(dialog.type(), 'beforeunload');
  await dialog.dismiss();
  await page.unroute(log, away);
  await page.getByText('The last change was not saved').waitFor({ state: 'detached' });
  await agree();
  await page.reload(); // nothing is lost, so nothing is asked
  await page.getByRole('button', { name: 'Undo' }).click();
  await eventually(async () => assert.deepEqual((await s.ask(`/tasks/${task.id}/result`)).segments, first.segments));
});

test('a correction whose login ends is sent after the next one', async () => {
  const log = `${s.url}/v1/tasks/${task.id}/corrections`,
    ended = (route) =>
      route.request().method() === 'POST'
        ? route.fulfill({
            status: 401,
            contentType: 'application/json',
            body: '{"error":"","error_code":"unauthorized"}',
          })
        : route.continue();
  await page.route(log, ended);
  await edit(0);
  await page.getByRole('textbox', { name: /^Correct the text at/ }).fill('Typed as the login ended');
  await page.keyboard.press('Enter');
  await page.getByText('has expired. Please log in again').waitFor();
  await page.unroute(log, ended);
  await page.getByLabel('API key', { exact: true }).last().fill(s.key);
  await page.getByRole('button', { name: 'Log in' }).click();
  await eventually(async () =>
    assert.equal((await s.ask(`/tasks/${task.id}/result`)).segments[0].text, 'Typed as the login ended'),
  );
  await page.reload();
  await page.getByRole('button', { name: 'Undo' }).click();
  await eventually(async () => assert.deepEqual((await s.ask(`/tasks/${task.id}/result`)).segments, first.segments));
});

test('by keyboard, the focused sentence is split, given to another speaker, joined and undone', async () => {
  const i = first.segments.findIndex((x) => x.text.split(' ').length >= 4),
    word = inner(first.segments[i].text);
  await page.locator('.segment[data-segment="0"] button.edit').focus();
  for (let k = 0; k < i; k++) await page.keyboard.press('ArrowDown');
  await page.waitForFunction((n) => document.activeElement.closest('[data-segment]')?.dataset.segment === n, String(i));
  await page.keyboard.press('Enter');
  await caret(word);
  await page.keyboard.press('Control+Enter');
  await page.waitForFunction((n) => document.activeElement.closest('[data-segment]')?.dataset.segment === n, String(i));
  await page.keyboard.press('0'); // a speaker whom the result does not have
  let now = await agree();
  const fresh = now[i].speaker;
  assert.ok(!first.segments.some((x) => x.speaker === fresh));
  await page.getByRole('button', { name: `Rename ${fresh}` }).waitFor();
  await page.keyboard.press('ArrowDown');
  await page.waitForFunction(
    (n) => document.activeElement.closest('[data-segment]')?.dataset.segment === n,
    String(i + 1),
  );
  await page.keyboard.press('2');
  now = await agree();
  assert.equal(now[i + 1].speaker, 'SPEAKER_1');
  await page.keyboard.press('ArrowUp');
  await page.waitForFunction((n) => document.activeElement.closest('[data-segment]')?.dataset.segment === n, String(i));
  await page.keyboard.press('j');
  now = await agree();
  assert.equal(now[i].text, first.segments[i].text);
  await look('keyboard');
  for (const [format, holds] of [
    ['SRT', `[${fresh}] `],
    ['VTT', `<v ${fresh}>`],
    ['RTTM', ` ${fresh} `],
    ['TXT', `[${fresh}] ${first.segments[i].text}\n`],
    ['JSON', `"speaker": "${fresh}"`],
  ]) {
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: format, exact: true }).click(),
    ]);
    const text = readFileSync(await download.path(), 'utf8');
    assert.ok(text.includes(holds), `${format} lacks ${holds}`);
    if (format === 'JSON') {
      // the page applies corrections as the service does
      const [ours, theirs] = [JSON.parse(text), await s.ask(`/tasks/${task.id}/result`)];
      for (const part of ['segments', 'diarize_segments', 'num_speakers'])
        assert.deepEqual(ours[part], theirs[part], part);
    }
  }
  for (let k = 0; k < 5; k++) await page.keyboard.press('Control+z');
  await eventually(async () => assert.deepEqual((await s.ask(`/tasks/${task.id}/result`)).segments, first.segments));
  assert.deepEqual(
    await shown(),
    first.segments.slice(0, (await shown()).length).map((x) => [x.speaker, x.text]),
  );
  assert.deepEqual(page.wrong, []);
});

test('corrections by another user are neither lost nor overwritten', async () => {
  const other = await open(b, { origin: s.url });
  await logIn(other, s);
  await other.goto(`${s.url}/#/task/${task.id}`);
  await other.locator('.segment').first().waitFor();
  await other.locator('.segment[data-segment="1"] button.edit').focus();
  await other.keyboard.press('0');
  await agree(other);
  await page.locator('.segment[data-segment="0"] button.edit').focus();
  await page.keyboard.press('0'); // a change of another sentence does not conflict
  let now = await agree();
  assert.ok(![now[0].speaker, now[1].speaker].some((x) => first.segments.some((y) => y.speaker === x)));

  await other.locator('.segment[data-segment="0"] button.edit').focus();
  await other.keyboard.press('j'); // the sentence differs from this page's
  await other.getByText('another person has changed this sentence in the meantime').waitFor();
  now = await agree(other);
  assert.equal(now.length, first.segments.length);
  assert.deepEqual(other.wrong, []);
  await look('meanwhile', other);
  await other.context().close();
});

test('a sentence of several segments is one row, one line, one correction and one undo', async () => {
  const other = await open(b, { origin: s.url, acceptDownloads: true });
  await logIn(other, s);
  const texts = first.segments.map((x) => x.text);
  await other.route(/\/result(\?|$)/, async (route) => {
    const response = await route.fetch(),
      body = await response.json();
    for (const [i, pause] of [1.4, 1.6].entries()) {
      const [before, next] = body.segments.slice(i, i + 2);
      before.text = before.text.replace(/[.?!]+$/, '');
      next.speaker = before.speaker;
      next.start = before.end + pause;
      next.end = next.start + 1;
    }
    await route.fulfill({ response, json: body });
  });
  await other.goto(`${s.url}/#/task/${task.id}`);
  const row = (i) => other.locator(`.segment[data-segment="${i}"] .text`),
    bare = (i) => texts[i].replace(/[.?!]+$/, ''),
    sentence = `${bare(0)} ${bare(1)}`,
    ops = async () => (await s.ask(`/tasks/${task.id}/corrections`)).corrections.map((c) => c.op).slice(earlier),
    earlier = (await s.ask(`/tasks/${task.id}/corrections`)).corrections.length;
  await row(0).waitFor();
  for (let k = 0; k < 2; k++) await other.getByRole('button', { name: 'Undo' }).click(); // of the test before
  await row(0).filter({ hasText: sentence }).waitFor();
  assert.equal(await row(1).textContent(), texts[2], 'a pause of 1.6 s parts rows');
  await look('sentence', other);
  const [download] = await Promise.all([
    other.waitForEvent('download'),
    other.getByRole('button', { name: 'TXT', exact: true }).click(),
  ]);
  const speaker = first.segments[0].speaker;
  assert.ok(
    readFileSync(await download.path(), 'utf8').includes(`[${speaker}] ${sentence}\n[${speaker}] ${texts[2]}\n`),
  );

  await edit(0, other);
  await other.getByRole('textbox', { name: /^Correct the text at/ }).fill('One sentence.');
  await other.keyboard.press('Enter');
  await row(0).filter({ hasText: 'One sentence.' }).waitFor();
  await eventually(async () => assert.deepEqual((await ops()).slice(-2), ['join', 'annotate']));
  const before = (await ops()).length;
  await other.getByRole('button', { name: 'Undo' }).click();
  await row(0).filter({ hasText: sentence }).waitFor();
  await eventually(async () => assert.deepEqual((await ops()).slice(before), ['undo', 'undo']));
  assert.equal(await row(0).locator('.edited').count(), 0);
  assert.deepEqual(other.wrong, []);
  await other.context().close();
});

test('the editor fits a phone screen and a dark theme', async () => {
  const small = await open(b, { origin: s.url, viewport: { width: 390, height: 800 }, colorScheme: 'dark' });
  await logIn(small, s);
  await small.goto(`${s.url}/#/task/${task.id}`);
  await edit(0, small);
  await look('narrow-dark', small);
  assert.deepEqual([...(await serious(small)), ...(await serious(page))], []);
  assert.ok(await small.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  await small.context().close();
});
