// What the service stores with a recording: names, corrections, the sound; and
// the files that it writes with them.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { browser, eventually, logIn, open, recording, serious, service } from './world.mjs';

let s, b, page, task;
before(async () => {
  [s, b] = await Promise.all([service('--keep-audio', '1h'), browser()]);
  s.otograph('account', 'limits', 'local', '--tps', '1000', '--burst', '1000'); // two pages and this test send requests
  page = await open(b, { origin: s.url, acceptDownloads: true });
  await logIn(page, s);
});
after(async () => {
  await b?.close();
  await s?.stop();
});

/** keeps waits until the service keeps these names and texts. */
const keeps = (speakers, texts) =>
  eventually(async () => {
    await new Promise((go) => setTimeout(go, 1500));
    const kept = await s.notes(task.id);
    assert.deepEqual([kept.speakers, kept.texts], [speakers, texts]);
  });

test('names and corrections appear in another browser', async () => {
  await page.getByLabel('Choose files').setInputFiles(recording);
  await page.getByRole('link', { name: 'Open: conversation.flac' }).click();
  task = (await s.ask('/tasks')).tasks[0];
  await page.getByRole('button', { name: 'Rename SPEAKER_0' }).click();
  await page.getByRole('textbox', { name: 'Rename SPEAKER_0' }).fill('Ada <b>Lovelace</b>');
  await page.keyboard.press('Enter');
  const row = page.locator('.segment[data-segment="0"]');
  await row.hover();
  await row.getByRole('button', { name: /^Correct the text at/ }).click();
  await page.getByRole('textbox', { name: /^Correct the text at/ }).fill('Good morning, everyone.');
  await page.keyboard.press('Enter');
  await keeps({ SPEAKER_0: 'Ada <b>Lovelace</b>' }, { 0: 'Good morning, everyone.' });
  const other = await open(b, { origin: s.url });
  await logIn(other, s);
  await other.goto(`${s.url}/#/task/${task.id}`);
  await other.locator('.segment .text', { hasText: 'Good morning, everyone.' }).waitFor();
  await other.locator('.segment .who', { hasText: 'Ada <b>Lovelace</b>' }).first().waitFor();
  assert.deepEqual(other.wrong, []);
  await other.context().close();
});

test('a concurrent change by another user is not lost', async () => {
  const { version } = await s.notes(task.id);
  const answer = await fetch(`${s.url}/v1/tasks/${task.id}/corrections`, {
    method: 'POST',
    headers: { 'X-API-Key': s.key, 'Content-Type': 'application/json' },
    body: JSON.stringify({ version, op: 'annotate', speakers: { SPEAKER_1: 'Charles' } }),
  });
  assert.equal(answer.status, 201);
  await page.getByRole('button', { name: 'Rename Ada <b>Lovelace</b>' }).click();
  await page.getByRole('textbox', { name: 'Rename Ada <b>Lovelace</b>' }).fill('Ada');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Rename Charles' }).waitFor();
  await keeps({ SPEAKER_0: 'Ada', SPEAKER_1: 'Charles' }, { 0: 'Good morning, everyone.' });
});

test('the recording plays after a reload', async () => {
  let refused = false;
  await page.route(`${s.url}/v1/tasks/*/audio`, (route) => {
    if (refused) return route.continue();
    refused = true; // the first request exceeds the rate
    return route.fulfill({ status: 429, headers: { 'Retry-After': '1' } });
  });
  await page.reload();
  await page.getByRole('button', { name: 'Play', exact: true }).click();
  await page.getByRole('button', { name: 'Pause' }).click();
  assert.equal(await page.getByLabel('Open the recording').count(), 0);
});

test('a menu offers more formats, with names and corrections', async () => {
  const take = async (name) => {
    await page.locator('.menu summary').press('Enter');
    const button = page.getByRole('button', { name });
    await button.waitFor();
    const [download] = await Promise.all([page.waitForEvent('download'), button.press('Enter')]);
    return [download.suggestedFilename(), readFileSync(await download.path())];
  };
  for (const [name, file, holds] of [
    ['Markdown', 'conversation.md', /Ada/],
    ['Word document (DOCX)', 'conversation.docx', /^PK/],
    ['Praat TextGrid', 'conversation.TextGrid', /Good morning, everyone\./],
    ['ELAN annotations (EAF)', 'conversation.eaf', /Good morning, everyone\./],
    ['Audacity labels', 'conversation.labels.txt', /Ada/],
    ['Table (TSV)', 'conversation.tsv', /Ada/],
  ]) {
    const [saved, content] = await take(name);
    assert.equal(saved, file);
    assert.match(content.toString('latin1'), holds, name);
  }
  assert.deepEqual(page.wrong, []);
  await page.locator('.menu summary').press('Enter');
  assert.deepEqual(await serious(page), []);
  if (process.env.LOOK) await page.screenshot({ path: `${process.env.LOOK}/menu.png` });
});

test('a person makes and revokes API keys', async () => {
  s.otograph('user', 'create', 'local', 'ada', '--password=correct horse battery');
  const own = await open(b, { origin: s.url });
  await own.goto(s.url);
  await own.getByLabel('User name and password').check();
  await own.getByLabel('User name', { exact: true }).fill('ada');
  await own.getByLabel('Password', { exact: true }).fill('correct horse battery');
  await own.getByRole('button', { name: 'Log in' }).click();
  await own.getByRole('link', { name: 'Account' }).click();
  await own.getByRole('button', { name: 'Create a key' }).click();
  const key = await own.locator('code.key').innerText();
  const status = async () => (await fetch(`${s.url}/v1/account`, { headers: { 'X-API-Key': key } })).status;
  assert.notEqual(await status(), 401);
  assert.deepEqual(own.wrong, []);
  assert.deepEqual(await serious(own), []);
  if (process.env.LOOK) await own.screenshot({ path: `${process.env.LOOK}/keys.png`, fullPage: true });
  await own.getByRole('button', { name: `Revoke: ${key.slice(0, 8)}…` }).click();
  await own.getByRole('button', { name: 'Revoke', exact: true }).click();
  await own.locator('code.key').waitFor({ state: 'detached' });
  assert.equal(await status(), 401);
  await own.getByRole('button', { name: 'Log out' }).click();
  await logIn(own, s); // with a key
  await own.getByRole('link', { name: 'Account' }).click();
  await own.getByText('To create or revoke keys').waitFor();
  assert.equal(await own.getByRole('button', { name: 'Create a key' }).count(), 0);
  await own.context().close();
});
