// Shared by the tests: the built binary as a service, and a browser.
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { AxeBuilder } from '@axe-core/playwright';
import { chromium } from 'playwright-core';

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
/** binary is the otograph that is tested; OTOGRAPH_BINARY names another one. */
process.env.OTOGRAPH_DEMO = 'true';
export const binary = process.env.OTOGRAPH_BINARY || path.join(root, 'bin', 'otograph');
export const recording = path.join(root, 'testdata', 'conversation.flac');

/** patience is the longest wait for anything, in milliseconds: far longer than needed, so that no test fails on a slow machine. */
export const patience = Number(process.env.OTOGRAPH_WEB_PATIENCE || 240000);

/** within returns a promise's value, or throws if it takes longer than patience; what names the value. */
export function within(promise, what) {
  let timer;
  const late = new Promise((_, fail) => {
    timer = setTimeout(() => fail(new Error(`${what} did not come in ${patience / 1000} s`)), patience);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** eventually repeats claim until it does not throw; after patience it throws the last error. */
export async function eventually(claim) {
  for (const end = Date.now() + patience; ;) {
    try {
      return await claim();
    } catch (e) {
      if (Date.now() > end) throw e;
      await new Promise((go) => setTimeout(go, 50));
    }
  }
}

/** folder creates a folder that is removed when the process ends. */
export function folder() {
  const dir = mkdtempSync(path.join(tmpdir(), 'otograph-web-'));
  process.on('exit', () => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** service starts `otograph serve` on empty data, with the demo models; flags are added to serve's. */
export async function service(...flags) {
  const data = folder();
  const env = { ...process.env, XDG_DATA_HOME: path.join(data, 'home') };
  delete env.OTOGRAPH_MODELS;
  const child = spawn(binary, ['serve', '--data', data, '--addr', '127.0.0.1:0', '--grace', '2s', ...flags], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let log = '';
  child.stderr.on('data', (d) => {
    log += d;
  });
  const ended = new Promise((go) => child.on('exit', go));
  await new Promise((go, fail) => {
    const look = setInterval(() => {
      if (/"listening"/.test(log)) {
        clearInterval(look);
        go();
      }
    }, 50);
    child.on('exit', (code) => {
      clearInterval(look);
      fail(new Error(`serve ended with ${code}: ${log}`));
    });
    setTimeout(() => {
      clearInterval(look);
      fail(new Error(`serve did not start: ${log}`));
    }, patience).unref();
  });
  const key = readFileSync(path.join(data, 'first-api-key'), 'utf8').trim();
  const url = new URL(/http:\/\/[\w.:[\]]+\/v1/.exec(log)[0]).origin;
  const ask = async (path) => {
    for (;;) {
      const r = await fetch(`${url}/v1${path}`, { headers: { 'X-API-Key': key } });
      if (r.status !== 429) return r.json();
      await new Promise((go) => setTimeout(go, 500));
    }
  };
  return {
    url,
    key,
    data,
    log: () => log,
    /** ask returns the response to a GET of the API, and repeats the request after a 429. */
    ask,
    /** notes returns the names and texts that the service stores with a task, and the version of its corrections. */
    notes: async (task) => {
      const { version, corrections } = await ask(`/tasks/${task}/corrections`),
        all = (of) => Object.fromEntries(corrections.flatMap((c) => Object.entries(c[of] ?? {})));
      const kept = (of) => Object.fromEntries(Object.entries(all(of)).filter(([, text]) => text !== null));
      return { version, speakers: kept('speakers'), texts: kept('texts') };
    },
    otograph: (...args) => execFileSync(binary, [...args, '--data', data], { env, encoding: 'utf8' }),
    stop: async () => {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

/** browser starts a headless Chromium without its background requests; flags are additional ones. */
export const browser = (...flags) =>
  chromium.launch({
    executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
    timeout: patience,
    args: [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-dev-shm-usage',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--no-first-run',
      '--autoplay-policy=no-user-gesture-required',
      ...flags,
    ],
  });

/** microphone lists the flags of a Chromium whose microphone plays the beginning of the recording repeatedly. */
export function microphone() {
  const wav = path.join(folder(), 'spoken.wav');
  execFileSync('ffmpeg', ['-v', 'error', '-i', recording, '-t', '9', '-af', 'apad=pad_dur=2', '-ar', '48000', wav]);
  return [
    '--use-fake-ui-for-media-stream',
    '--use-fake-device-for-media-stream',
    `--use-file-for-fake-audio-capture=${wav}`,
  ];
}

/**
 * open returns a page that collects its faults in wrong: script errors, violations of the policy, requests to other
 * hosts. Playback starts again at the end, so that a test has enough time; window.played lists where it began.
 * OTOGRAPH_WEB_SLOWDOWN=6 makes the page's processor that many times slower.
 */
export async function open(b, { origin, ...options } = {}) {
  const context = await b.newContext({
    viewport: { width: 1280, height: 860 },
    locale: 'en-GB',
    reducedMotion: 'reduce',
    ...options,
  });
  context.setDefaultTimeout(patience);
  await context.addInitScript(() => {
    const play = HTMLMediaElement.prototype.play;
    window.played = [];
    HTMLMediaElement.prototype.play = function () {
      this.loop = window.endless !== false;
      window.played.push(this.currentTime);
      return play.call(this);
    };
  });
  const page = await context.newPage();
  if (process.env.OTOGRAPH_WEB_SLOWDOWN)
    await (
      await context.newCDPSession(page)
    ).send('Emulation.setCPUThrottlingRate', { rate: Number(process.env.OTOGRAPH_WEB_SLOWDOWN) });
  const wrong = [],
    urls = [];
  page.on('pageerror', (e) => wrong.push(`error: ${e.message}`));
  page.on('console', (m) => {
    if (m.type() === 'error' && !/Failed to load resource/.test(m.text())) wrong.push(`console: ${m.text()}`);
  });
  page.on('request', (r) => {
    urls.push(r.url());
    if (!/^(data|blob):/.test(r.url()) && new URL(r.url()).origin !== origin) wrong.push(`stranger: ${r.url()}`);
  });
  page.wrong = wrong;
  page.urls = urls;
  return page;
}

/** logIn logs in with an API key. */
export async function logIn(page, s) {
  await page.goto(s.url);
  await page.getByLabel('API key', { exact: true }).last().fill(s.key);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('heading', { name: 'New transcript' }).waitFor();
}

/** working makes the list show the named task as running until the returned function is called. */
export async function working(page, s, name) {
  const lists = `${s.url}/v1/tasks?*`;
  const tell = async (route) => {
    const response = await route.fetch(),
      body = await response.json();
    for (const task of body.tasks ?? [])
      if (task.audio_filename === name) Object.assign(task, { status: 'processing', finished_at: null });
    await route.fulfill({ response, json: body });
  };
  const events = `${s.url}/v1/tasks/*/events`,
    silence = (route) => route.fulfill({ status: 204 });
  await page.route(lists, tell);
  await page.route(events, silence);
  return async () => {
    await page.unroute(lists, tell);
    await page.unroute(events, silence);
  };
}

/** at moves a paused player to a time in seconds. */
export async function at(page, seconds) {
  await page.getByRole('button', { name: /^(Play|播放)$/ }).waitFor();
  await page.locator('.scrub').fill(String(seconds));
  await page.waitForFunction((t) => Math.abs(document.querySelector('.scrub').value - t) < 0.06, seconds);
}

/** repeated finds a word of at least four letters that occurs in several segments, and returns these with its number of occurrences. */
export function repeated(segments) {
  for (const [word] of segments
    .map((x) => x.text.toLowerCase())
    .join(' ')
    .matchAll(/[a-z]{4,}/g)) {
    const hits = segments
      .map((x) => ({ start: x.start, end: x.end, times: x.text.toLowerCase().split(word).length - 1 }))
      .filter((x) => x.times);
    if (hits.length > 1) return { word, hits, total: hits.reduce((n, x) => n + x.times, 0) };
  }
  throw new Error(`no word is said twice: ${segments.map((x) => x.text)}`);
}

/** forge makes a page's requests return a made-up task and result; peaks are its waveform, a byte each. */
export async function forge(page, s, { id = '11111111-2222-4333-8444-555555555555', name, result, peaks }) {
  const task = {
    id,
    status: 'done',
    audio_filename: name,
    audio_source_type: 'base64',
    audio_size: 1,
    audio_md5: '0'.repeat(32),
    allow_training: false,
    error_message: null,
    options: {},
    created_at: '2026-03-01T10:00:00.000Z',
    updated_at: '2026-03-01T10:00:00.000Z',
    finished_at: '2026-03-01T10:00:00.000Z',
  };
  const json = (body) => ({ status: 200, contentType: 'application/json', body: JSON.stringify(body) });
  await page.route(`${s.url}/v1/tasks?*`, (r) => r.fulfill(json({ tasks: [task], total: 1, page: 1, page_size: 20 })));
  await page.route(`${s.url}/v1/tasks/${id}`, (r) => r.fulfill(json(task)));
  await page.route(`${s.url}/v1/tasks/${id}/result?*`, (r) => r.fulfill(json({ task_id: id, ...result })));
  const missing = { ...json({ error: 'it is not here', error_code: 'not_found' }), status: 404 };
  await page.route(`${s.url}/v1/tasks/${id}/audio`, (r) => r.fulfill(missing));
  const corrections = [];
  await page.route(`${s.url}/v1/tasks/${id}/corrections`, (r) => {
    const change = r.request().postDataJSON();
    if (!change) return r.fulfill(json({ version: corrections.length, corrections }));
    corrections.push({ ...change, version: corrections.length + 1, author: '', made_at: task.created_at });
    return r.fulfill({ ...json(corrections.at(-1)), status: 201 });
  });
  await page.route(`${s.url}/v1/tasks/${id}/waveform`, (r) =>
    r.fulfill(peaks ? { status: 200, contentType: 'application/octet-stream', body: Buffer.from(peaks) } : missing),
  );
  return id;
}

/** forgeSession answers a page's WebSocket with a made-up session: play gets a function that sends an event, and the connection. */
export async function forgeSession(page, play, id = '11111111-2222-4333-8444-555555555555') {
  const got = [];
  await page.routeWebSocket(/\/v1\/realtime/, (ws) => {
    const tell = (type, fields = {}) => ws.send(JSON.stringify({ type, ...fields }));
    let begun = false;
    ws.onMessage((data) => {
      const event = JSON.parse(data);
      got.push(event);
      if (event.type === 'session.update') tell('session.updated');
      if (event.type === 'input_audio_buffer.append' && !begun) {
        begun = true;
        play(tell, ws);
      }
    });
    tell('session.created', { session: { id: `sess_${id}` } });
  });
  return got;
}

/** say sends the events of a finished utterance, sentences by speaker. */
export function say(tell, item, start, sentences, end = start + 1) {
  const of = { item_id: item, content_index: 0 },
    kind = 'conversation.item.input_audio_transcription.';
  tell('input_audio_buffer.speech_started', { item_id: item, audio_start_ms: 1000 * start });
  tell(kind + 'delta', { ...of, delta: sentences.map((x) => x[1]).join(' ') });
  tell('input_audio_buffer.speech_stopped', { item_id: item, audio_end_ms: 1000 * end });
  tell('input_audio_buffer.committed', { item_id: item });
  for (const [speaker, text] of sentences) tell(kind + 'segment', { ...of, speaker, text, start, end: start + 1 });
  tell(kind + 'completed', { ...of, transcript: sentences.map((x) => x[1]).join(' ') });
}

/** serious lists axe-core's serious and critical findings. */
export async function serious(page) {
  const { violations } = await new AxeBuilder({ page }).analyze();
  return violations
    .filter((v) => ['serious', 'critical'].includes(v.impact))
    .map(
      (v) =>
        `${v.id}: ${v.nodes
          .map((n) => `${n.html.slice(0, 160)} ${n.any.map((a) => a.message).join('; ')}`)
          .slice(0, 3)
          .join(' | ')}`,
    );
}
