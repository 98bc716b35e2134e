// The report of `otograph bench`, opened as a file: a click on a wrong word plays
// its part of the recording; the table of recordings sorts and filters.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { binary, browser, eventually, folder, open, recording, serious } from './world.mjs';

const dir = folder();
const said = {
  'a #1.flac': ['good morning', 'good mourning', 'good morning'],
  'b.flac': ['see you on monday', 'see you', 'see me on a monday'],
  'gone.flac': ['no problem', 'problem', 'problem'],
};
let b, page;

before(async () => {
  const lines = Object.entries(said).map(([file, [text]]) => {
    copyFileSync(recording, path.join(dir, file));
    return JSON.stringify({ file, text, language: 'en' });
  });
  writeFileSync(path.join(dir, 'manifest.jsonl'), lines.join('\n'));
  const systems = ['ours', 'theirs'].flatMap((name, i) => {
    mkdirSync(path.join(dir, name));
    for (const [file, texts] of Object.entries(said))
      writeFileSync(
        path.join(dir, name, file.replace('.flac', '.json')),
        JSON.stringify({ segments: [{ start: 8, end: 9, text: texts[i + 1] }] }),
      );
    return ['--hyp', `${name}=${path.join(dir, name)}`];
  });
  execFileSync(
    binary,
    ['bench', path.join(dir, 'manifest.jsonl'), '--no-own', ...systems, '-q', '-o', path.join(dir, 'out')],
    {
      stdio: 'ignore',
    },
  );
  b = await browser();
  page = await open(b, { origin: 'null' });
  await page.goto(pathToFileURL(path.join(dir, 'out', 'report.html')).href);
});
after(() => b?.close());

const audio = () =>
  page.locator('audio').evaluate((a) => ({ source: decodeURI(a.src), time: a.currentTime, paused: a.paused }));

test('wrong words are shown beside the reference, and a click plays them', async () => {
  const text = page.locator('.texts', { hasText: 'a #1.flac' });
  assert.deepEqual(await text.locator('.word').last().locator('> span').allInnerTexts(), [
    'morning',
    'mourning',
    'morning',
  ]);
  await text.getByRole('link', { name: 'mourning' }).click();
  await eventually(async () => {
    const { source, time, paused } = await audio();
    assert.match(source, /a %231\.flac$/);
    assert.ok(time >= 7.5 && !paused, `plays at ${time}`);
  });
  await eventually(async () => {
    const { time, paused } = await audio();
    assert.ok(paused && time >= 9.5 && time < 12, `stopped at ${time}`);
  });
  await page.locator('.texts', { hasText: 'b.flac' }).locator('.missing').first().click();
  await page.locator('#played', { hasText: 'b.flac' }).waitFor();
});

test('the page reports a recording that is not in its folder', async () => {
  rmSync(path.join(dir, 'gone.flac'));
  await page.locator('.texts', { hasText: 'gone.flac' }).getByRole('link', { name: 'no' }).first().click();
  await page.locator('#played', { hasText: 'gone.flac is not beside this page any more' }).waitFor();
});

test('the table of recordings sorts and filters', async () => {
  const names = () => page.locator('#recordings tbody tr:visible td:first-child').allInnerTexts();
  assert.deepEqual(await names(), ['a #1.flac', 'b.flac', 'gone.flac']);
  const ours = page.locator('#recordings').getByRole('button', { name: 'ours' });
  await ours.click();
  assert.deepEqual(await names(), ['b.flac', 'a #1.flac', 'gone.flac']);
  await ours.click();
  assert.equal((await names())[2], 'b.flac');
  await page.locator('#recordings').getByRole('button', { name: 'Recording' }).click();
  assert.equal((await names())[0], 'a #1.flac');
  await page.getByRole('searchbox', { name: 'Filter by name' }).fill('B.FL');
  assert.deepEqual(await names(), ['b.flac']);
});

test('the report fits a phone screen and paper, and needs no network', async () => {
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    assert.deepEqual(await serious(page), []);
  }
  await page.setViewportSize({ width: 390, height: 844 });
  assert.ok(
    (await page.evaluate(() => document.documentElement.scrollWidth)) <= 390,
    'nothing is wider than the screen',
  );
  await page.emulateMedia({ media: 'print' });
  assert.ok(await page.locator('#player').isHidden(), 'paper has no player');
  assert.ok(await page.locator('#filter').isHidden());
  assert.deepEqual(page.wrong, []);
});
