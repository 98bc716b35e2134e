// How the page follows a running task: by the service's events, or by polling
// without events.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { browser, eventually, logIn, open, recording, serious, service } from './world.mjs';

let s, b;
before(async () => {
  [s, b] = await Promise.all([service(), browser()]);
});
after(async () => {
  await b?.close();
  await s?.stop();
});

const file = (name) => ({ name, mimeType: 'audio/flac', buffer: readFileSync(recording) });
const choose = (page, name) => page.getByLabel('Choose files').setInputFiles(file(name));

test('an event marks a recording as done, without a request for the list', async () => {
  const page = await open(b, { origin: s.url });
  await logIn(page, s);
  await page.getByText('No recordings yet').waitFor();
  let shown = false;
  await page.route(`${s.url}/v1/tasks?*`, (route) => {
    if (shown) return; // never answered again
    shown = true;
    return route.continue();
  });
  await choose(page, 'told.flac');
  await page.getByRole('link', { name: 'Open: told.flac' }).waitFor();
  const seen = Date.now();
  const { tasks } = await s.ask('/tasks');
  console.log(`shown as done ${seen - Date.parse(tasks[0].finished_at)} ms after its end`);
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test('without an event stream the page polls the list', async () => {
  const page = await open(b, { origin: s.url });
  await page.route(`${s.url}/v1/tasks/*/events`, (route) => route.abort());
  await logIn(page, s);
  await choose(page, 'asked.flac');
  await page.getByRole('link', { name: 'Open: asked.flac' }).waitFor();
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test('the list and the task’s page show stage and percentage, and the result when the task is done', async () => {
  const page = await open(b, { origin: s.url });
  const { tasks } = await s.ask('/tasks');
  const task = { ...(await s.ask(`/tasks/${tasks[0].id}`)), status: 'processing', finished_at: null };
  const state = (more) => ({
    task_id: task.id,
    status: 'processing',
    final: false,
    stage: null,
    percent: null,
    error_message: null,
    updated_at: task.updated_at,
    finished_at: null,
    ...more,
  });
  const json = (body) => ({ status: 200, contentType: 'application/json', body: JSON.stringify(body) });
  const asked = [];
  let end = false,
    begun = false;
  await page.route(`${s.url}/v1/tasks?*`, (r) => r.fulfill(json({ tasks: [task], total: 1, page: 1, page_size: 20 })));
  await page.route(`${s.url}/v1/tasks/${task.id}`, (r) => r.fulfill(json(task)));
  await page.route(`${s.url}/v1/tasks/${task.id}/events`, (r) => {
    asked.push(r.request().headers()['last-event-id']);
    const event = (id, data) => `event: task\nid: ${id}\ndata: ${JSON.stringify(data)}\n\n`;
    const now = end
      ? event('end', state({ status: 'done', final: true, percent: 100, finished_at: tasks[0].finished_at }))
      : !begun
        ? event('queued', state({ stage: null, percent: null }))
        : event('begun', state({ stage: 'decode', percent: 3 })) +
          ': still working\n\n' +
          event('half', state({ stage: 'transcribe', percent: 42 }));
    return r.fulfill({ status: 200, contentType: 'text/event-stream', body: 'retry: 1000\n\n' + now });
  });
  await logIn(page, s);
  const row = page.locator('.task', { hasText: tasks[0].audio_filename });
  await row.getByText('Queued', { exact: true }).waitFor(); // no worker has reported it yet
  begun = true;
  await row.getByText('Transcribing speech, 42 %').waitFor();
  assert.equal(await row.getByRole('progressbar').getAttribute('value'), '42');
  begun = false;
  await page.goto(`${s.url}/#/task/${task.id}`);
  await page.getByText('Queued', { exact: true }).waitFor();
  begun = true;
  await page.getByText('Transcribing speech, 42 %').waitFor();
  end = true;
  await page.locator('.segment').first().waitFor();
  assert.equal(asked[0], undefined);
  assert.ok(asked.includes('half'), `a stream that broke off is taken up where it was: ${asked}`);
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test('recordings behind one that waits are shown as waiting', async () => {
  const page = await open(b, { origin: s.url });
  const { tasks } = await s.ask('/tasks');
  const ids = Array.from({ length: 5 }, (_, i) => `${tasks[0].id.slice(0, -1)}${i}`); // the oldest three are followed
  const made = ids.map((id) => ({ ...tasks[0], id, audio_filename: id, status: 'processing', finished_at: null }));
  const body = JSON.stringify({ tasks: made, total: 5, page: 1, page_size: 20 });
  await page.route(`${s.url}/v1/tasks?*`, (r) => r.fulfill({ status: 200, contentType: 'application/json', body }));
  await page.route(`${s.url}/v1/tasks/*/events`, (r) => {
    const id = r.request().url().split('/').at(-2),
      stage = id === ids[4] ? 'transcribe' : null;
    const data = { task_id: id, status: 'processing', final: false, stage, percent: stage && 42, error_message: null };
    const event = `event: task\nid: 1\ndata: ${JSON.stringify(data)}\n\n`;
    return r.fulfill({ status: 200, contentType: 'text/event-stream', body: event });
  });
  await logIn(page, s);
  await eventually(async () =>
    assert.deepEqual(await page.locator('.task .state').allInnerTexts(), [
      ...Array(4).fill('Queued'),
      'Transcribing …',
    ]),
  );
  await page.context().close();
});

test('a running task’s text is shown as it arrives, and starts again with a new attempt', async () => {
  const page = await open(b, { origin: s.url });
  const { tasks } = await s.ask('/tasks');
  const task = { ...(await s.ask(`/tasks/${tasks[0].id}`)), status: 'processing', finished_at: null };
  const json = (body) => ({ status: 200, contentType: 'application/json', body: JSON.stringify(body) });
  const sentence = (attempt, index, text) => {
    const data = { task_id: task.id, attempt, index, start: 65 * index, end: 65 * index + 3, text };
    return `event: segment\ndata: ${JSON.stringify(data)}\n\n`;
  };
  const state = (id, more) =>
    `event: task\nid: ${id}\ndata: ${JSON.stringify({
      task_id: task.id,
      status: 'processing',
      final: false,
      stage: 'transcribe',
      percent: 42,
      error_message: null,
      updated_at: task.updated_at,
      finished_at: null,
      ...more,
    })}\n\n`;
  let now = sentence(1, 0, 'Good morning.') + state('begun');
  await page.route(`${s.url}/v1/tasks?*`, (r) => r.fulfill(json({ tasks: [task], total: 1, page: 1, page_size: 20 })));
  await page.route(`${s.url}/v1/tasks/${task.id}`, (r) => r.fulfill(json(task)));
  await page.route(`${s.url}/v1/tasks/${task.id}/events`, (r) =>
    r.fulfill({ status: 200, contentType: 'text/event-stream', body: now }),
  );
  await logIn(page, s);
  await page.getByRole('link', { name: task.audio_filename, exact: true }).click();
  const rows = page.getByRole('region', { name: 'Text so far' }).getByRole('listitem');
  const shown = async (...want) => {
    await eventually(async () => assert.deepEqual(await rows.allInnerTexts(), want));
  };
  await shown('0:00\nGood morning.');
  assert.equal(await page.locator('[role=status]', { hasText: 'Good morning.' }).count(), 0, 'it would be read anew');

  now = sentence(1, 0, 'Good morning.') + sentence(1, 1, 'Who is there?') + state('more');
  await shown('0:00\nGood morning.', '1:05\nWho is there?');
  assert.deepEqual(await serious(page), []);

  now = sentence(2, 0, 'Good evening.') + state('again');
  await shown('0:00\nGood evening.');
  now = sentence(1, 0, 'Late.') + sentence(2, 1, 'Nobody.') + state('late');
  await shown('0:00\nGood evening.', '1:05\nNobody.');

  now = state('broken', { status: 'failed', stage: null, percent: null, error_message: 'the worker died' });
  await shown();
  now = sentence(3, 0, 'At last.') + state('third');
  await shown('0:00\nAt last.');
  now = state('end', { status: 'done', final: true, percent: 100, finished_at: tasks[0].finished_at });
  await page.locator('.segment').first().waitFor();
  assert.equal(await rows.count(), 0);
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test('a failed task shows its error immediately', async () => {
  const page = await open(b, { origin: s.url });
  await logIn(page, s);
  await page
    .getByLabel('Choose files')
    .setInputFiles({ name: 'notes.mp3', mimeType: 'audio/mpeg', buffer: Buffer.alloc(5000, 'text ') });
  await page.locator('.task.failed', { hasText: 'notes.mp3' }).locator('.error').waitFor();
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});
