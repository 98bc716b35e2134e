// The live session: a microphone, captions as people speak, the result at the
// end; and the messages when a session ends early.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { browser, eventually, forgeSession, logIn, microphone, open, say, serious, service } from './world.mjs';

let s, b;
before(async () => {
  [s, b] = await Promise.all([service(), browser(...microphone())]);
});
after(async () => {
  await b?.close();
  await s?.stop();
});

/** live opens the page of live sessions. */
async function live(options = {}) {
  const page = await open(b, { origin: s.url, ...options });
  await page.addInitScript(() => {
    window.blobs = [];
    const make = URL.createObjectURL;
    URL.createObjectURL = (blob) => {
      window.blobs.push({ size: blob.size, type: blob.type });
      return make(blob);
    };
  });
  await logIn(page, s);
  await page.getByRole('link', { name: 'Transcribe live' }).click();
  return page;
}
const begin = (page) => page.getByRole('button', { name: 'Start the microphone' });
const status = (page, text) => page.getByRole('status').getByText(text).waitFor();
const log = (page) => page.getByRole('log', { name: 'Captions' });
const plain = (text) => text.toLowerCase().replace(/[^a-z]+/g, ' ');

test('captions appear while people speak; after the session, the result has the recorded sound', async () => {
  const page = await live();
  const sent = [];
  page.on('websocket', (ws) => ws.on('framesent', ({ payload }) => sent.push(JSON.parse(payload))));
  await begin(page).focus();
  await page.keyboard.press('Enter');
  await status(page, 'Listening');
  await eventually(async () => assert.ok((await log(page).locator('.caption').count()) > 1));
  await eventually(async () => assert.ok((await page.getByRole('meter').evaluate((e) => e.value)) > 0.3));
  assert.deepEqual(await serious(page), []);

  // a pause turns the microphone off: nothing is sent or recorded meanwhile
  await page.getByRole('button', { name: 'Pause' }).press('Space');
  await status(page, 'Paused');
  await eventually(() => assert.equal(sent.at(-1).type, 'input_audio_buffer.commit'));
  const count = sent.length;
  await page.waitForTimeout(700);
  assert.equal(sent.length, count);
  await page.getByRole('button', { name: 'Continue' }).click();
  await status(page, 'Listening');
  await eventually(() => assert.ok(sent.length > count + 10));

  const other = page.getByLabel('Microphone', { exact: true });
  await eventually(async () => assert.ok((await other.locator('option').count()) > 1));
  await other.selectOption({ index: 1 });
  const changed = sent.length;
  await eventually(() => assert.ok(sent.length > changed + 10));
  await status(page, 'Listening');

  // the session goes on while another page is shown
  await page.getByRole('link', { name: 'Account' }).click();
  await page.getByRole('link', { name: /Live.*a live session is running/ }).click();
  await status(page, 'Listening');
  const captions = await log(page).locator('.text').allInnerTexts();
  await page.getByRole('button', { name: 'Stop and open the result' }).click();
  await page.locator('.segment').first().waitFor();
  const id = /#\/task\/(.+)/.exec(page.url())[1];
  const result = await s.ask(`/tasks/${id}/result`);
  const text = plain(result.segments.map((x) => x.text).join(' '));
  for (const caption of captions.filter((c) => !c.startsWith('['))) {
    // captions only grow: one may keep a word that its final sentences do not have
    const words = plain(caption).trim().split(' ');
    const without = (i) => words.filter((_, k) => k !== i).join(' ');
    assert.ok(
      [-1, ...words.keys()].some((i) => text.includes(without(i))),
      `${caption}: ${text}`,
    );
  }
  assert.ok(result.num_speakers >= 1);
  assert.ok(result.audio_events);

  const bytes = sent
    .filter((e) => e.type === 'input_audio_buffer.append')
    .reduce((n, e) => n + Buffer.from(e.audio, 'base64').length, 0);
  assert.ok(Math.abs(bytes / 32000 - result.audio_duration) < 0.02, `${bytes} bytes, ${result.audio_duration} s`);
  await page.getByRole('button', { name: 'Play', exact: true }).click();
  await page.getByRole('button', { name: 'Pause', exact: true }).waitFor();
  assert.deepEqual(await page.evaluate(() => window.blobs.at(-1)), { size: 44 + bytes, type: 'audio/wav' });
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test('captions show speakers and sounds; the large captions show the last two lines', async () => {
  const page = await live();
  const got = await forgeSession(page, (tell) => {
    say(tell, 'a', 0, [
      ['SPEAKER_0', 'Good morning.'],
      ['SPEAKER_0', 'Shall we begin?'],
      ['SPEAKER_1', 'Yes, please.'],
    ]);
    for (const label of ['Speech', 'Applause', 'Silence'])
      tell('conversation.item.sound_detection', { item_id: 'a', start: 3, end: 4, detections: [{ label }] });
    say(tell, 'b', 65, [['SPEAKER_1', '<img src=x onerror=window.harmed=1> '.repeat(20)]]);
    tell('input_audio_buffer.speech_started', { item_id: 'c', audio_start_ms: 70000 });
    tell('conversation.item.input_audio_transcription.delta', { item_id: 'c', delta: 'And now' });
  });
  await page.getByLabel('Names and special words').fill('Ferreira, Otograph');
  await page.getByLabel('Language spoken').selectOption('en');
  await begin(page).click();
  await page.locator('.caption.growing').getByText('And now').waitFor();
  const { session } = got.find((e) => e.type === 'session.update');
  assert.deepEqual(session.audio.input.transcription, {
    model: '',
    language: 'en',
    prompt: '',
    keywords: ['Ferreira', 'Otograph'],
  });
  assert.deepEqual(session.include, ['otograph.speakers', 'otograph.sounds']);
  assert.equal(session.otograph.store, true);
  const lines = (await log(page).locator('.caption').allInnerTexts()).map((x) => x.split('\n'));
  assert.deepEqual(lines.slice(0, 3), [
    ['0:00', 'SPEAKER_0', 'Good morning. Shall we begin?'],
    ['0:00', 'SPEAKER_1', 'Yes, please.'],
    ['0:03', '[Applause]'],
  ]);
  assert.equal(lines[3].length, 2, 'the same speaker again');
  assert.equal(await page.evaluate(() => window.harmed), undefined);
  assert.equal(await log(page).getByText('And now').count(), 0, 'a screen reader reads finished captions alone');

  await page.getByRole('button', { name: 'Large captions' }).click();
  const large = page.locator('.projector');
  await large.waitFor();
  await eventually(async () => {
    const [box, last, size, height] = await large.evaluate((e) => {
      const lines = e.querySelector('.two-lines'),
        style = getComputedStyle(e);
      return [
        lines.getBoundingClientRect().bottom,
        lines.querySelector('p:last-child').getBoundingClientRect().bottom,
        parseFloat(style.fontSize),
        lines.clientHeight / parseFloat(style.lineHeight),
      ];
    });
    assert.ok(Math.abs(box - last) < 2, 'the last line is shown');
    assert.ok(size >= 32);
    assert.ok(Math.abs(height - 2) < 0.1, `${height} lines`);
  });
  assert.deepEqual(await serious(page), []);
  await page.keyboard.press('Escape');
  await large.waitFor({ state: 'detached' });
  await page.getByRole('button', { name: '中文' }).click();
  await page.getByText('[鼓掌]').or(page.getByText('[掌声]')).waitFor();
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test('a paused session stays paused while another microphone is opened', async () => {
  const page = await live();
  const got = await forgeSession(page, () => {});
  await begin(page).click();
  await eventually(() => assert.equal(got.at(-1)?.type, 'input_audio_buffer.append'));
  await page.evaluate(() => {
    const open = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
    navigator.mediaDevices.getUserMedia = async (...args) => {
      await new Promise((go) => {
        window.release = go;
      });
      const stream = await open(...args);
      window.track = stream.getTracks()[0];
      return stream;
    };
  });
  await page.getByLabel('Microphone', { exact: true }).selectOption({ index: 1 });
  await page.getByRole('button', { name: 'Pause' }).click();
  await eventually(() => assert.equal(got.at(-1).type, 'input_audio_buffer.commit'));
  await page.evaluate(() => window.release());
  await page.waitForFunction(() => window.track?.readyState === 'ended');
  await status(page, 'Paused');
  assert.equal(got.at(-1).type, 'input_audio_buffer.commit', 'nothing is sent');

  await page.getByRole('button', { name: 'Continue' }).click();
  await page.evaluate(() => window.release());
  await status(page, 'Listening');
  await eventually(() => assert.equal(got.at(-1).type, 'input_audio_buffer.append'));
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test('each cause of a session’s end is shown as a sentence, and the sound can be saved', async () => {
  const page = await live();
  for (const [code, error, words] of [
    [1008, { code: 'insufficient_quota', message: 'the balance is used up' }, /balance is too low/],
    [1008, { code: 'invalid_value', message: 'canceled by an operator' }, /ended the session: canceled by an operator/],
    [4000, null, /connection was lost/],
  ]) {
    await forgeSession(page, (tell, ws) => {
      say(tell, 'a', 0, [['SPEAKER_0', 'Good morning.']]);
      if (error) tell('error', { error });
      void ws.close({ code });
    });
    await begin(page).click();
    await page.getByRole('alert').getByText(words).waitFor();
    assert.deepEqual(await log(page).locator('.text').allInnerTexts(), ['Good morning.'], 'captions stay');
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Save the recording' }).click(),
    ]);
    assert.equal(download.suggestedFilename(), 'live.wav');
  }
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test('after a lost connection the captions stay, and sound without final text is sent again', async () => {
  const page = await live();
  const ids = ['11111111-2222-4333-8444-555555555555', '22222222-2222-4333-8444-555555555555'];
  const bytes = [];
  let tries = 0;
  await page.routeWebSocket(/\/v1\/realtime/, (ws) => {
    const tell = (type, fields = {}) => ws.send(JSON.stringify({ type, ...fields }));
    if (++tries === 2) return void ws.close({ code: 1013 });
    const n = bytes.push(0) - 1;
    ws.onMessage((data) => {
      const event = JSON.parse(data);
      if (event.type === 'session.update') tell('session.updated');
      if (event.type === 'input_audio_buffer.commit') tell('input_audio_buffer.committed', {});
      if (event.type !== 'input_audio_buffer.append') return;
      const before = bytes[n];
      bytes[n] += Buffer.from(event.audio, 'base64').length;
      const passes = (seconds) => before < 32000 * seconds && bytes[n] >= 32000 * seconds;
      if (!passes(2)) return;
      if (n) return say(tell, 'c', 1, [['SPEAKER_0', 'Good evening.']]);
      say(tell, 'a', 0, [['SPEAKER_0', 'Good morning.']]);
      tell('input_audio_buffer.speech_started', { item_id: 'b', audio_start_ms: 1500 });
      tell('conversation.item.input_audio_transcription.delta', { item_id: 'b', delta: 'Unfinished' });
      void ws.close({ code: 1011 });
    });
    tell('session.created', { session: { id: `sess_${ids[n]}` } });
  });
  await begin(page).click();
  await status(page, /models have failed.*Connecting again/);
  await status(page, 'Listening');
  await log(page).getByText('Good evening.').waitFor();
  assert.deepEqual(await log(page).locator('.text').allInnerTexts(), [
    'Good morning.',
    '[Connected again. Speakers are numbered anew from here.]',
    'Good evening.',
  ]);
  assert.equal(await log(page).locator('.caption').last().locator('.small').innerText(), '0:02', 'times go on');
  assert.equal(await page.getByText('Unfinished').count(), 0, 'it is heard again');
  assert.deepEqual(await serious(page), []);
  await page.getByRole('button', { name: 'Stop and open the result' }).click();
  await page
    .getByRole('alert')
    .getByText(/several parts/)
    .waitFor();
  const links = page.getByRole('link', { name: 'Open the transcript' });
  assert.deepEqual(
    await links.evaluateAll((list) => list.map((a) => a.hash)),
    ids.map((id) => `#/task/${id}`),
  );
  await page.getByRole('button', { name: 'Save the recording' }).click();
  const { size } = await page.evaluate(() => window.blobs.at(-1));
  assert.ok(Math.abs(size - 44 - (32000 + bytes[1])) <= 3200, `${size} bytes; ${bytes} were sent`);
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test('a session that cannot begin shows the reason', async () => {
  const page = await live();
  const json = (status, body) => ({ status, contentType: 'application/json', body: JSON.stringify(body) });
  const refused = async (words) => {
    await begin(page).click();
    await page.getByRole('alert').getByText(words).waitFor();
    assert.equal(await page.getByRole('button', { name: 'Save the recording' }).count(), 0);
  };
  await page.routeWebSocket(/\/v1\/realtime/, (ws) => void ws.close({ code: 1006 }));
  const account = await s.ask('/account');
  for (const [fields, words] of [
    [{ available_concurrency: 0 }, /limit of parallel tasks/],
    [{ available_balance: 0 }, /balance is too low/],
    [{}, /proxy in front of the service/],
  ]) {
    await page.route(`${s.url}/v1/account`, (r) => r.fulfill(json(200, { ...account, ...fields })));
    await refused(words);
  }
  const gone = { error: 'live sessions are not served here', error_code: 'not_found' };
  await page.route(`${s.url}/v1/realtime/client_secrets`, (r) => r.fulfill(json(404, gone)));
  await refused(/does not transcribe live/);
  for (const [name, words] of [
    ['NotAllowedError', /does not allow this page/],
    ['NotFoundError', /No microphone was found/],
    ['NotReadableError', /Another program/],
  ]) {
    await page.evaluate((name) => {
      navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException('no', name));
    }, name);
    await refused(words);
  }
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});
