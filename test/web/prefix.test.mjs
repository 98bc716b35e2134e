// The page behind a proxy that serves it under a path of its own, with a
// currency: the list's facts, Cancel, and a service without prices.
import assert from 'node:assert/strict';
import http from 'node:http';
import { after, before, test } from 'node:test';
import { browser, eventually, logIn, open, recording, service, serious } from './world.mjs';

let s, b, page, proxy, home;
before(async () => {
  [s, b] = await Promise.all([service('--currency', 'EUR'), browser()]);
  proxy = http.createServer((request, response) => {
    if (!request.url.startsWith('/stt/')) return response.writeHead(404).end();
    const { method, headers } = request;
    const to = http.request(s.url + request.url.slice('/stt'.length), { method, headers }, (from) => {
      response.writeHead(from.statusCode, from.headers);
      from.pipe(response);
    });
    to.on('error', () => response.destroy());
    response.on('close', () => to.destroy());
    request.pipe(to);
  });
  await new Promise((go) => proxy.listen(0, '127.0.0.1', go));
  const origin = `http://127.0.0.1:${proxy.address().port}`;
  home = `${origin}/stt/`;
  page = await open(b, { origin });
});
after(async () => {
  await b?.close();
  proxy?.closeAllConnections();
  proxy?.close();
  await s?.stop();
});

/** noise is a WAV file with minutes of noise, so that its task runs for a while and has no text. */
function noise(minutes) {
  const samples = Buffer.alloc(minutes * 60 * 8000);
  for (let i = 0, x = 1; i < samples.length; i++) samples[i] = (x = (x * 48271) % 2147483647) % 256;
  const head = Buffer.from('RIFF....WAVEfmt ....................data....');
  head.writeUInt32LE(36 + samples.length, 4);
  head.writeUInt32LE(16, 16);
  [7, 1].forEach((v, i) => head.writeUInt16LE(v, 20 + 2 * i)); // μ-law, one channel
  [8000, 8000].forEach((v, i) => head.writeUInt32LE(v, 24 + 4 * i));
  [1, 8].forEach((v, i) => head.writeUInt16LE(v, 32 + 2 * i));
  head.writeUInt32LE(samples.length, 40);
  return Buffer.concat([head, samples]);
}

test('a running task is canceled', async () => {
  await logIn(page, { url: home, key: s.key });
  await page.getByText(/About .* EUR per hour of audio/).waitFor();
  await page.locator('.drop input').setInputFiles([{ name: 'noise.wav', mimeType: 'audio/wav', buffer: noise(30) }]);
  const row = page.locator('.task', { hasText: 'noise.wav' });
  await row.getByRole('progressbar', { name: 'Transcribing' }).waitFor();
  await row.getByRole('button', { name: 'Cancel: noise.wav' }).click();
  await eventually(async () => {
    const { tasks } = await s.ask('/tasks');
    assert.equal(tasks[0].status, 'failed');
  });
  await row.getByText('Canceled. Nothing was charged.').waitFor();
  await row.getByText('Canceled', { exact: true }).waitFor();
  await row.getByRole('button', { name: 'Delete: noise.wav' }).waitFor();
  const { balance } = await s.ask('/account');
  assert.equal(balance, 1000, 'nothing is charged');
});

test('the list shows length, language, number of speakers and price', async () => {
  await page.getByLabel('Accuracy').selectOption('words');
  await page.locator('.drop input').setInputFiles(recording);
  await page.getByRole('link', { name: 'Open: conversation.flac' }).waitFor({ timeout: 600000 });
  const row = page.locator('.task', { hasText: 'conversation.flac' });
  await row.getByText(/ · \d:\d\d · English · \d speakers? · Charged \d\.\d{2,4} EUR$/).waitFor();
  if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/list.png`, fullPage: true });
  assert.deepEqual(await serious(page), []);
});

test('the result’s toolbar stays on one line, also while searching', async () => {
  await page.getByRole('link', { name: 'Open: conversation.flac' }).click();
  await page.getByLabel('Search').fill('e');
  await page.getByText(/^1 of \d+$/).waitFor();
  if (process.env.PICTURES) await page.screenshot({ path: `${process.env.PICTURES}/result.png`, fullPage: true });
  const top = (e) => e.evaluate((x) => x.getBoundingClientRect().top + x.getBoundingClientRect().height / 2);
  const heading = await top(page.locator('.transcript h2'));
  assert.ok(Math.abs((await top(page.getByLabel('Follow playback'))) - heading) < 20, 'one line at 1280 pixels');
});

test('a service without prices shows none', async () => {
  await page.goto(`${home}#/account`);
  await page.getByRole('heading', { name: 'Balance' }).waitFor();
  const prices = await s.ask('/pricing');
  for (const name of Object.keys(prices)) if (name.endsWith('_price_per_hour')) prices[name] = 0;
  await page.route('**/v1/pricing', (r) => r.fulfill({ json: prices }));
  await page.reload();
  await page.getByRole('heading', { name: 'Limits' }).waitFor();
  for (const name of ['Balance', 'Prices', 'Transactions'])
    await page.getByRole('heading', { name }).waitFor({ state: 'detached' });
});

test('the API document is served below the prefix', async () => {
  await page.goto(`${home}docs`);
  await page.getByRole('heading', { level: 1 }).first().waitFor();
});

test('the page logged no error and sent no request outside the prefix', () => {
  assert.deepEqual(page.wrong, []);
  assert.deepEqual(
    page.urls.filter((url) => !url.startsWith(home) && !/^(data|blob):/.test(url)),
    [],
  );
});
