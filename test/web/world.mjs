// What the tests share: the built binary as a service, and a browser.
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
/** binary is the otograph that is tested; OTOGRAPH_BINARY names another one. */
export const binary = process.env.OTOGRAPH_BINARY || path.join(root, 'bin', 'otograph');
export const recording = path.join(root, 'testdata', 'conversation.flac');

/** folder is a new folder that goes when the process ends. */
export function folder() {
  const dir = mkdtempSync(path.join(tmpdir(), 'otograph-web-'));
  process.on('exit', () => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** service starts `otograph serve` on empty data, with the demo models; flags are further ones of serve. */
export async function service(...flags) {
  const data = folder();
  const env = { ...process.env, XDG_DATA_HOME: path.join(data, 'home') };
  delete env.OTOGRAPH_MODELS;
  const child = spawn(binary, ['serve', '--data', data, '--addr', '127.0.0.1:0', '--grace', '2s', ...flags], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let out = '', log = '';
  child.stderr.on('data', (d) => { log += d; });
  const ended = new Promise((go) => child.on('exit', go));
  await new Promise((go, fail) => {
    child.stdout.on('data', (d) => { out += d; });
    const look = setInterval(() => { if (/asr_\w{40}/.test(out) && /listening/.test(log)) { clearInterval(look); go(); } }, 50);
    child.on('exit', (code) => { clearInterval(look); fail(new Error(`serve ended with ${code}: ${log}`)); });
    setTimeout(() => { clearInterval(look); fail(new Error(`serve did not start: ${log}`)); }, 60000).unref();
  });
  const key = /asr_\w{40}/.exec(out)[0];
  const url = new URL(/http:\/\/[\w.:[\]]+\/v1/.exec(out)[0]).origin;
  return {
    url, key, data, log: () => log,
    otograph: (...args) => execFileSync(binary, [...args, '--data', data], { env, encoding: 'utf8' }),
    stop: async () => { child.kill('SIGTERM'); await ended; },
  };
}

/** browser starts a headless Chromium that talks to nobody of its own accord. */
export const browser = () => chromium.launch({
  executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
  args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run', '--autoplay-policy=no-user-gesture-required'],
});

/** open gives a page that keeps what went wrong in it: script errors, broken policy, requests to strangers. */
export async function open(b, { origin, ...options } = {}) {
  const context = await b.newContext({ viewport: { width: 1280, height: 860 }, locale: 'en-GB', reducedMotion: 'reduce', ...options });
  const page = await context.newPage();
  const wrong = [], urls = [];
  page.on('pageerror', (e) => wrong.push(`error: ${e.message}`));
  page.on('console', (m) => { if (m.type() === 'error' && !/Failed to load resource/.test(m.text())) wrong.push(`console: ${m.text()}`); });
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

/** forge puts a result of our own making behind the API that a page talks to. */
export async function forge(page, s, { id = '11111111-2222-4333-8444-555555555555', name, result }) {
  const task = { id, status: 'done', audio_filename: name, audio_source_type: 'base64', audio_size: 1, audio_md5: '0'.repeat(32), allow_training: false, error_message: null, options: {}, created_at: '2026-03-01T10:00:00.000Z', updated_at: '2026-03-01T10:00:00.000Z', finished_at: '2026-03-01T10:00:00.000Z' };
  const json = (body) => ({ status: 200, contentType: 'application/json', body: JSON.stringify(body) });
  await page.route(`${s.url}/v1/tasks?*`, (r) => r.fulfill(json({ tasks: [task], total: 1, page: 1, page_size: 20 })));
  await page.route(`${s.url}/v1/tasks/${id}`, (r) => r.fulfill(json(task)));
  await page.route(`${s.url}/v1/tasks/${id}/result`, (r) => r.fulfill(json({ task_id: id, ...result })));
  return id;
}
