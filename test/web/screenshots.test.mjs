// Pictures of the page's main states. With SCREENSHOTS=1 they replace those in
// docs/screenshots; otherwise they only show that the states can be reached and
// that nothing sticks out of the page.
import assert from 'node:assert/strict';
import { mkdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { longResult } from './made.mjs';
import { browser, folder, forge, logIn, open, recording, root, service } from './world.mjs';

const out = process.env.SCREENSHOTS ? path.join(root, 'docs', 'screenshots') : folder();
let s, b;
before(async () => { mkdirSync(out, { recursive: true }); [s, b] = await Promise.all([service(), browser()]); });
after(async () => { await b?.close(); await s?.stop(); });

async function shoot(page, name) {
  await page.mouse.move(0, 0);
  await page.waitForTimeout(300); // the canvases draw
  const { wide, room } = await page.evaluate(() => ({ wide: document.documentElement.scrollWidth, room: document.documentElement.clientWidth }));
  assert.ok(wide <= room, `${name}: the page is ${wide} wide in a window of ${room}`);
  const file = path.join(out, `${name}.png`);
  await page.screenshot({ path: file });
  assert.ok(statSync(file).size < 300 * 1024, `${name}: ${statSync(file).size} bytes`);
}

async function transcribed(page, quality) {
  await page.getByLabel('Accuracy').selectOption(quality);
  await page.locator('.drop input').setInputFiles(recording);
  await page.locator('.task', { hasText: 'conversation.flac' }).getByText('Working').waitFor({ timeout: 60000 });
}

test('by day', async () => {
  const page = await open(b, { origin: s.url });
  await page.goto(s.url);
  await page.getByRole('button', { name: 'Log in' }).waitFor();
  await shoot(page, 'login');
  await logIn(page, s);
  await page.getByText('Nothing here yet').waitFor();
  await page.getByText('Costs about').waitFor();
  await shoot(page, 'empty');
  await transcribed(page, 'words');
  await page.locator('.queue').scrollIntoViewIfNeeded();
  await shoot(page, 'working');
  await page.getByRole('link', { name: 'Open: conversation.flac' }).click({ timeout: 240000 });
  for (const [speaker, name] of [['SPEAKER_0', 'Martha'], ['SPEAKER_1', 'Tom']]) {
    await page.getByRole('button', { name: `Rename ${speaker}` }).click();
    await page.getByRole('textbox', { name: `Rename ${speaker}` }).fill(name);
    await page.keyboard.press('Enter');
  }
  await page.getByText('The band shows').waitFor({ state: 'detached', timeout: 20000 });
  await page.locator('.word', { hasText: 'morning' }).first().click();
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.evaluate(() => scrollTo(0, 0));
  await shoot(page, 'result');
  await page.getByRole('button', { name: 'Light or dark' }).click();
  await shoot(page, 'dark');
  await page.getByRole('button', { name: '中文' }).click();
  await page.getByRole('heading', { name: '转写文字' }).waitFor();
  await shoot(page, 'chinese');
  await page.getByRole('button', { name: 'English' }).click();
  await page.getByRole('button', { name: 'Light or dark' }).click();
  await page.getByRole('link', { name: 'Account' }).click();
  await page.locator('tr', { hasText: 'Charge' }).waitFor();
  await shoot(page, 'account');
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test('on a narrow screen', async () => {
  const page = await open(b, { origin: s.url, viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true });
  await logIn(page, s);
  await page.getByText('Costs about').waitFor();
  await shoot(page, 'narrow');
  const id = await forge(page, s, { name: 'Weekly meeting of the printing works, 3 March.m4a', result: longResult(3000) });
  await page.goto(`${s.url}/#/task/${id}`);
  await page.locator('.segment').first().waitFor();
  await shoot(page, 'narrow-result');
  await page.getByRole('link', { name: 'Account' }).click();
  await page.locator('tr', { hasText: 'Charge' }).waitFor();
  await shoot(page, 'narrow-account');
  await page.context().close();
});

test('five hours', async () => {
  const page = await open(b, { origin: s.url });
  await logIn(page, s);
  const id = await forge(page, s, { name: 'Weekly meeting of the printing works, 3 March.m4a', result: longResult(20000) });
  await page.goto(`${s.url}/#/task/${id}`);
  await page.locator('.segment').first().waitFor();
  for (let i = 0; i < 5; i++) await page.getByRole('button', { name: 'Zoom in' }).click();
  await page.locator('.word').nth(40).click();
  await page.getByRole('searchbox', { name: 'Search' }).fill('recording');
  await page.evaluate(() => { document.activeElement.blur(); scrollTo(0, 0); });
  await shoot(page, 'long');
  await page.context().close();
});
