// Pictures of the page's main states. With SCREENSHOTS=1 they replace those in
// docs/screenshots; otherwise the tests only check that the states can be
// reached and that nothing is wider than the page.
import assert from 'node:assert/strict';
import { mkdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { longResult } from './made.mjs';
import { stranger } from './stranger.mjs';
import {
  at,
  browser,
  folder,
  forge,
  forgeSession,
  logIn,
  microphone,
  open,
  recording,
  root,
  say,
  service,
  working,
} from './world.mjs';

const out = process.env.SCREENSHOTS ? path.join(root, 'docs', 'screenshots') : folder();
let s, b, other;
before(async () => {
  mkdirSync(out, { recursive: true });
  other = await stranger();
  [s, b] = await Promise.all([service('--allow-outbound', other.address), browser(...microphone())]);
});
after(async () => {
  await b?.close();
  await s?.stop();
  await other?.stop();
});

async function shoot(page, name) {
  await page.mouse.move(0, 0);
  await page.waitForTimeout(300); // the canvases draw
  const { wide, room } = await page.evaluate(() => ({
    wide: document.documentElement.scrollWidth,
    room: document.documentElement.clientWidth,
  }));
  assert.ok(wide <= room, `${name}: the page is ${wide} wide in a window of ${room}`);
  const file = path.join(out, `${name}.png`);
  await page.screenshot({ path: file });
  assert.ok(statSync(file).size < 300 * 1024, `${name}: ${statSync(file).size} bytes`);
}

test('screenshots in the light theme', async () => {
  const page = await open(b, { origin: s.url });
  await page.goto(s.url);
  await page.getByRole('button', { name: 'Log in' }).waitFor();
  await shoot(page, 'login');
  await logIn(page, s);
  await page.getByText('No recordings yet').waitFor();
  await page.getByText('per hour of audio').waitFor();
  await shoot(page, 'empty');
  await page.getByText('More options').click();
  await page.locator('.more').scrollIntoViewIfNeeded();
  await page.locator('.more').evaluate((e) => scrollTo(0, e.offsetTop - 20));
  await shoot(page, 'options');
  await page.getByText('More options').click();
  await page.evaluate(() => scrollTo(0, 0));
  await page.getByLabel('Accuracy').selectOption('words');
  const release = await working(page, s, 'conversation.flac');
  await page.locator('.drop input').setInputFiles(recording);
  await page.locator('.task', { hasText: 'conversation.flac' }).getByText('Transcribing').waitFor();
  await page.locator('.queue').scrollIntoViewIfNeeded();
  await shoot(page, 'working');
  await release();
  await page.locator('.drop input').setInputFiles([
    { name: 'notes.mp3', mimeType: 'audio/mpeg', buffer: Buffer.alloc(4096, 'Dear all, ') },
    { name: 'empty.wav', mimeType: 'audio/wav', buffer: Buffer.from('RIFF') },
  ]);
  await page.getByLabel('Or paste a link').fill('http://192.168.1.20/meeting.mp3');
  await page.getByRole('button', { name: 'Fetch and transcribe' }).click();
  await page.locator('.submit .error').waitFor();
  await page
    .locator('.task.failed', { hasText: 'notes.mp3' })
    .getByText('not an audio or video file')
    .waitFor({ timeout: 600000 });
  await page.getByRole('link', { name: 'Open: conversation.flac' }).waitFor({ timeout: 600000 });
  await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
  await shoot(page, 'problems');
  await page.getByRole('button', { name: 'Dismiss' }).click();
  await page.getByRole('button', { name: 'Delete: notes.mp3' }).click();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await page.locator('.task', { hasText: 'notes.mp3' }).waitFor({ state: 'detached' });
  await page.getByRole('link', { name: 'Open: conversation.flac' }).click();
  for (const [speaker, name] of [
    ['SPEAKER_0', 'Martha'],
    ['SPEAKER_1', 'Tom'],
  ]) {
    await page.getByRole('button', { name: `Rename ${speaker}` }).click();
    await page.getByRole('textbox', { name: `Rename ${speaker}` }).fill(name);
    await page.keyboard.press('Enter');
  }
  await page.getByText('The bars show').waitFor({ state: 'detached' });
  await page.locator('.word').nth(1).click();
  await page.getByRole('button', { name: 'Pause' }).click();
  await at(page, 6);
  await page.evaluate(() => scrollTo(0, 0));
  await shoot(page, 'result');
  await page.getByRole('button', { name: 'Light or dark' }).click();
  await shoot(page, 'dark');
  await page.getByRole('button', { name: '中文' }).click();
  await page.getByRole('heading', { name: '转写文本' }).waitFor();
  await shoot(page, 'chinese');
  await page.getByRole('button', { name: 'English' }).click();
  await page.getByRole('button', { name: 'Light or dark' }).click();
  await page.getByRole('link', { name: 'Account' }).click();
  await page.locator('tr', { hasText: 'Charge' }).waitFor();
  await page.getByText('billed in whole minutes').waitFor();
  await shoot(page, 'account');
  await page.locator('.usage tfoot').waitFor();
  await page.locator('.usage').evaluate((e) => scrollTo(0, e.offsetTop - 20));
  await shoot(page, 'usage');
  await page.getByLabel('Address of your receiver').fill(other.url + '/hook');
  await page.locator('#tester-secret').fill('a secret of yours');
  await page.getByRole('button', { name: 'Send a test callback' }).click();
  await page.getByText('has been queued').waitFor();
  await page.locator('.tester').scrollIntoViewIfNeeded();
  await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
  await shoot(page, 'callback');
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test('screenshots on a narrow screen', async () => {
  const page = await open(b, {
    origin: s.url,
    viewport: { width: 390, height: 844 },
    deviceScaleFactor: 2,
    hasTouch: true,
    isMobile: true,
  });
  await logIn(page, s);
  await page.getByText('per hour of audio').waitFor();
  await shoot(page, 'narrow');
  const id = await forge(page, s, {
    name: 'Weekly meeting of the printing works, 3 March.m4a',
    result: longResult(3000),
  });
  await page.goto(`${s.url}/#/task/${id}`);
  await page.locator('.segment').first().waitFor();
  await shoot(page, 'narrow-result');
  await page.getByRole('link', { name: 'Account' }).click();
  await page.locator('tr', { hasText: 'Charge' }).first().waitFor();
  await page.getByText('billed in whole minutes').waitFor();
  await page.locator('.usage tfoot').waitFor();
  await page.locator('.usage').evaluate((e) => scrollTo(0, e.offsetTop - 20));
  await shoot(page, 'narrow-account');
  await page.context().close();
});

test('screenshots of a live session', async () => {
  for (const [name, options] of [
    ['live', {}],
    ['narrow-live', { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true }],
  ]) {
    const page = await open(b, { origin: s.url, ...options });
    await logIn(page, s);
    await page.getByRole('link', { name: 'Transcribe live' }).click();
    await forgeSession(page, (tell) => {
      say(tell, 'a', 0, [
        ['SPEAKER_0', 'Let us begin with the numbers of the last quarter, and then look at the plan.'],
        ['SPEAKER_1', 'That is a good idea, because the recording from Tuesday was cut short.'],
      ]);
      tell('conversation.item.sound_detection', {
        item_id: 'a',
        start: 9,
        end: 9,
        detections: [{ label: 'Laughter' }],
      });
      say(tell, 'b', 11, [['SPEAKER_2', 'We had three orders from Lisbon and one from Porto.']]);
      tell('input_audio_buffer.speech_started', { item_id: 'c', audio_start_ms: 16000 });
      const delta = 'Then there is time enough to send the';
      tell('conversation.item.input_audio_transcription.delta', { item_id: 'c', delta });
    });
    await page.getByRole('button', { name: 'Start the microphone' }).click();
    await page.locator('.caption.growing').waitFor();
    await page.waitForFunction(() => document.querySelector('.level').value > 0.5);
    await shoot(page, name);
    await page.getByRole('button', { name: 'Large captions' }).click();
    await page.locator('.projector').waitFor();
    await shoot(page, `${name}-large`);
    await page.context().close();
  }
});

test('screenshots of a five-hour recording', async () => {
  const page = await open(b, { origin: s.url });
  await logIn(page, s);
  const id = await forge(page, s, {
    name: 'Weekly meeting of the printing works, 3 March.m4a',
    result: longResult(20000),
  });
  await page.goto(`${s.url}/#/task/${id}`);
  await page.locator('.segment').first().waitFor();
  for (let i = 0; i < 5; i++) await page.getByRole('button', { name: 'Zoom in' }).click();
  await page.locator('.word').nth(40).click();
  await page.getByRole('searchbox', { name: 'Search' }).fill('recording');
  await page.evaluate(() => {
    document.activeElement.blur();
    scrollTo(0, 0);
  });
  await shoot(page, 'long');
  await page.context().close();
});
