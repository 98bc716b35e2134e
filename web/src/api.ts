// A client of the service's API as specified. Keys and tokens travel in headers
// only.
import { signal } from '@preact/signals';
import type { Change, Entry } from './corrections';
import type { Result } from './result';
import { t } from './texts';

const base = document.querySelector<HTMLMetaElement>('meta[name=otograph-api]')?.content || './v1';

export type Login = { key: string } | { token: string; until: number };

/** login is who the reader is; it is kept in the tab's session storage. */
export const login = signal<Login | null>(recall());

function recall(): Login | null {
  try {
    const l = JSON.parse(sessionStorage.getItem('otograph.login') ?? 'null') as Login | null;
    if (l && 'until' in l && l.until < Date.now()) return null;
    return l && ('key' in l || 'token' in l) ? l : null;
  } catch {
    return null;
  }
}

/** expired is true once the service has refused the login. */
export const expired = signal(false);

export function setLogin(l: Login | null, byService = false): void {
  expired.value = byService && !l;
  login.value = l;
  if (l) sessionStorage.setItem('otograph.login', JSON.stringify(l));
  else sessionStorage.clear();
}

/** readerOf identifies the reader of a login, also after the next one: a key, or the user of a token. */
export function readerOf(l: Login | null): string {
  if (!l) return '';
  if ('key' in l) return l.key;
  return (JSON.parse(atob(l.token.split('.')[1].replace(/-/g, '+').replace(/_/g, '/'))) as { sub: string }).sub;
}

/** nextLogin waits until somebody is logged in. */
export const nextLogin = () =>
  new Promise<Login>((go) => {
    const stop = login.subscribe((l) => {
      if (!l) return;
      go(l);
      setTimeout(() => stop());
    });
  });

function credentials(l: Login | null): Record<string, string> {
  if (!l) return {};
  return 'key' in l ? { 'X-API-Key': l.key } : { Authorization: `Bearer ${l.token}` };
}

/** Failure is an error with a message for the reader. */
export class Failure extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly said: string,
    readonly retryAfter = 0,
  ) {
    super(said || code);
  }

  /** plain returns the message in the page's language. */
  plain(): string {
    switch (this.code) {
      case 'unauthorized':
        return t('eUnauthorized');
      case 'insufficient_balance':
        return t('eBalance');
      case 'forbidden':
        return t('eForbidden');
      case 'not_found':
        return t('eNotFound');
      case 'conflict':
        return t('eConflict');
      case 'concurrency_limit_exceeded':
        return t('eConcurrency');
      case 'rate_limited':
        return t('eRate');
      case 'payload_too_large':
        return t('ePayload');
      case 'network':
        return t('eNetwork');
      case 'internal':
        return t('eInternal');
    }
    return this.status >= 500
      ? t('eInternal')
      : t('eInvalid', { message: this.said.replace(/^(audio_url|callback_url): (address refused: )?/, '') });
  }
}

export const plainly = (e: unknown): string =>
  e instanceof Failure ? e.plain() : e instanceof Error ? e.message : String(e);

/** bare maps statuses to error codes, for responses without one: a proxy's, and responses to HEAD, which have no body. */
const bare: Record<number, string> = {
  401: 'unauthorized',
  404: 'not_found',
  413: 'payload_too_large',
  429: 'rate_limited',
};

function failure(status: number, body: string, retryAfter: string | null): Failure {
  let code = '',
    said = '';
  try {
    const parsed = JSON.parse(body) as { error?: unknown; error_code?: unknown };
    if (typeof parsed.error === 'string') said = parsed.error;
    if (typeof parsed.error_code === 'string') code = parsed.error_code;
  } catch {
    /* a proxy's response, not the service's */
  }
  return new Failure(
    status,
    code || bare[status] || (status >= 500 ? 'internal' : ''),
    said || `HTTP ${status}`,
    Number(retryAfter) || 0,
  );
}

// The service counts requests per second; the page spaces its own, so that it
// rarely receives a 429.
let perSecond = 2,
  burst = 4,
  tokens = 4,
  filled = performance.now();

/** pace sets the account's request rates. */
export function pace(tps: number, most: number): void {
  perSecond = Math.max(0.2, tps);
  burst = Math.max(1, most);
}

async function turn(): Promise<void> {
  const now = performance.now();
  tokens = Math.min(burst, tokens + ((now - filled) / 1000) * perSecond) - 1;
  filled = now;
  if (tokens < 0) await sleep((-tokens / perSecond) * 1000);
}

export const sleep = (ms: number) => new Promise<void>((go) => setTimeout(go, ms));

/** call sends a request and returns the JSON of the response. */
async function call<T>(method: string, path: string, body?: unknown, who: Login | null = login.value): Promise<T> {
  const answer = await request(method, path, { body, who });
  try {
    return (await answer.json()) as T;
  } catch {
    throw new Failure(0, 'network', 'network'); // the connection ended early
  }
}

interface Sent {
  body?: unknown;
  who?: Login | null;
  headers?: Record<string, string>;
  signal?: AbortSignal;
}

/** request sends a request, and repeats it after a 429; it throws a Failure unless the status is 2xx. */
async function request(
  method: string,
  path: string,
  { body, who = login.value, headers = {}, signal }: Sent = {},
): Promise<Response> {
  for (let attempt = 0; ; attempt++) {
    await turn();
    let answer: Response, text: string;
    try {
      answer = await fetch(base + path, {
        method,
        cache: 'no-store',
        credentials: 'omit',
        redirect: 'error',
        referrerPolicy: 'no-referrer',
        headers: {
          ...credentials(who),
          ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
          ...headers,
        },
        signal,
        body: body === undefined ? undefined : JSON.stringify(body),
      });
      if (answer.ok) return answer;
      text = await answer.text();
    } catch {
      throw new Failure(0, 'network', 'network');
    }
    const f = failure(answer.status, text, answer.headers.get('Retry-After'));
    if (f.code === 'rate_limited' && attempt < 4 && path !== '/auth/login') {
      await sleep(Math.min(30, Math.max(1, f.retryAfter)) * 1000 * (1 + attempt / 2));
      continue;
    }
    if (f.status === 401 && who && who === login.value && path !== '/auth/login') setLogin(null, true);
    throw f;
  }
}

export type Status = 'processing' | 'done' | 'failed' | 'abandoned';
export interface Task {
  id: string;
  status: Status;
  audio_filename: string;
  audio_source_type: string;
  created_at: string;
  updated_at: string;
  finished_at?: string | null;
  error_message?: string | null;
  audio_duration?: number;
  language?: string;
  num_speakers?: number;
  amount?: number;
}
/** Corrections holds a task's corrections, in order, and the version of the last one. */
export interface Corrections {
  version: number;
  corrections: Entry[];
}
export interface KnownVoice {
  id: string;
  name: string;
  consent: string;
  recordings: number;
  added_at: string;
}
export interface Key {
  id: string;
  key?: string;
  hint: string;
  read_only: boolean;
  created_at: string;
  expires_at: string | null;
  revoked_at: string | null;
}
export interface Account {
  balance: number;
  held_amount: number;
  resource_pack_equivalent: number;
  available_balance: number;
  tier: number;
  concurrency_limit: number;
  active_tasks: number;
  available_concurrency: number;
  waiting_batch_tasks: number;
  tps_limit: number;
  tps_burst: number;
}
export interface Pricing {
  standard_price_per_hour: number;
  zh_lite_price_per_hour: number;
  diarize_price_per_hour: number;
  audio_events_price_per_hour: number;
  live_price_per_hour?: number;
  batch_discount: number;
  updated_at: string;
}

/** sells reports whether anything has a price; an operator who sells nothing sets all prices to 0. */
export const sells = (p: Pricing): boolean =>
  !!(
    p.standard_price_per_hour ||
    p.zh_lite_price_per_hour ||
    p.diarize_price_per_hour ||
    p.live_price_per_hour ||
    p.audio_events_price_per_hour
  );

export interface Transaction {
  id: string;
  task_id: string | null;
  type: 'deduction' | 'recharge' | 'refund';
  amount: string;
  balance_before: string;
  balance_after: string;
  description: string;
  created_at: string;
}
export type UsageGroup = 'key' | 'model' | 'kind';
export interface UsageQuery {
  period: 'month' | 'day';
  timezone: string;
  by: UsageGroup[];
}
/** UsageSums adds up charged tasks: decoded seconds, and the amount, packs' share included. */
interface UsageSums {
  tasks: number;
  seconds: number;
  amount: number;
}
export interface Usage {
  usage: (UsageSums & { period: string } & Partial<Record<UsageGroup, string>>)[];
  total: UsageSums;
}
export interface SoundClass {
  display_name: string;
  zh_name: string;
}
export interface Submission {
  options?: Record<string, unknown>;
  callback_url?: string;
  callback_secret?: string;
  batch_mode?: boolean;
  allow_training?: boolean;
}

const id = encodeURIComponent;
const usagePath = (q: UsageQuery) =>
  `/usage?period=${q.period}&timezone=${id(q.timezone)}${q.by.length ? `&by=${q.by.join()}` : ''}`;
export const api = {
  tasks: (page: number, status = '') =>
    call<{ tasks: Task[]; total: number; page: number; page_size: number }>(
      'GET',
      `/tasks?page=${page}&page_size=20&details=true${status ? `&status=${id(status)}` : ''}`,
    ),
  task: (task: string) => call<Task>('GET', `/tasks/${id(task)}`),
  /** result returns a result without corrections. */
  result: (task: string) => call<Result>('GET', `/tasks/${id(task)}/result?original=true`),
  /** waveform returns the recording's peaks, 50 a second, a byte each, or undefined if the worker stored none. */
  waveform: async (task: string): Promise<Uint8Array | undefined> => {
    try {
      return new Uint8Array(await (await request('GET', `/tasks/${id(task)}/waveform`)).arrayBuffer());
    } catch (e) {
      if (e instanceof Failure && e.code === 'not_found') return undefined;
      throw e;
    }
  },
  /** events opens the stream of a task's events; last is the id of the last event that was read. */
  events: (task: string, last: string, signal: AbortSignal) =>
    request('GET', `/tasks/${id(task)}/events`, { headers: last ? { 'Last-Event-ID': last } : {}, signal }),
  corrections: (task: string) => call<Corrections>('GET', `/tasks/${id(task)}/corrections`),
  correct: (task: string, change: Change, version: number) =>
    call<Entry>('POST', `/tasks/${id(task)}/corrections`, { ...change, version }),
  /** transcript returns a result as a file, with the reader's names and corrections. */
  transcript: async (task: string, format: string) =>
    (await request('GET', `/tasks/${id(task)}/transcript?format=${id(format)}`)).blob(),
  /** audioSize returns the size in bytes of the recording that the service keeps, or undefined if it keeps none. */
  audioSize: async (task: string): Promise<number | undefined> => {
    try {
      return Number((await request('HEAD', `/tasks/${id(task)}/audio`)).headers.get('Content-Length'));
    } catch (e) {
      if (e instanceof Failure && e.status === 404) return undefined;
      throw e;
    }
  },
  audio: async (task: string) => (await request('GET', `/tasks/${id(task)}/audio`)).blob(),
  keys: () => call<{ keys: Key[] }>('GET', '/account/keys'),
  makeKey: () => call<Key>('POST', '/account/keys'),
  revokeKey: (key: string) => call<{ message: string }>('DELETE', `/account/keys/${id(key)}`),
  voices: () => call<{ voices: KnownVoice[] }>('GET', '/voices'),
  rememberVoice: (voice: { name: string; consent: string; task_id: string; speaker: string }) =>
    call<KnownVoice>('POST', '/voices', voice),
  denyVoice: (voice: { name: string; denied: true; task_id: string; speaker: string }) =>
    call<KnownVoice>('POST', '/voices', voice),
  forgetVoice: (voice: string) => call<{ message: string }>('DELETE', `/voices/${id(voice)}`),
  cancel: (task: string) => call<Task>('POST', `/tasks/${id(task)}/cancel`),
  remove: (task: string) => call<{ message: string }>('DELETE', `/tasks/${id(task)}`),
  account: async (who?: Login) => {
    const a = await call<Account>('GET', '/account', undefined, who ?? login.value);
    pace(a.tps_limit, a.tps_burst);
    return a;
  },
  soundClasses: () => call<SoundClass[]>('GET', '/audio-event-classes'),
  pricing: () => call<Pricing>('GET', '/pricing', undefined, null),
  transactions: (page: number) =>
    call<{ transactions: Transaction[]; total: number; page: number; page_size: number }>(
      'GET',
      `/billing/transactions?page=${page}&page_size=20`,
    ),
  usage: (q: UsageQuery) => call<Usage>('GET', usagePath(q)),
  /** usageTable returns the usage as a CSV file. */
  usageTable: async (q: UsageQuery) => (await request('GET', usagePath(q) + '&format=csv')).blob(),
  submitUrl: (url: string, s: Submission) => call<Task>('POST', '/tasks', { audio_url: url, ...s }),
  submitBatch: (urls: string[], s: Submission) =>
    call<{ results: { index: number; audio_url: string; success: boolean; task?: Task; error?: string }[] }>(
      'POST',
      '/tasks/batch',
      { audio_url: urls, ...s },
    ),
  /** live opens the WebSocket of a live session, with a secret for it alone. */
  live: async (): Promise<WebSocket> => {
    const { value } = await call<{ value: string }>('POST', '/realtime/client_secrets', {});
    await turn();
    const url = new URL(base + '/realtime?intent=transcription', document.baseURI);
    url.protocol = url.protocol.replace('http', 'ws');
    return new WebSocket(url, ['realtime', 'openai-insecure-api-key.' + value]);
  },
  logIn: (username: string, password: string) =>
    call<{ access_token: string; expires_in: number }>('POST', '/auth/login', { username, password }, null),
};

/** The largest file that fits a request of 200 MB as Base64. */
export const maxFile = 149e6;

/** bodyOf writes a file into the body of POST /tasks, piece by piece; told gets the written share. */
export async function bodyOf(
  file: File,
  s: Submission,
  told: (share: number) => void,
  stop: AbortSignal,
): Promise<Blob> {
  const head = JSON.stringify({ audio_filename: file.name, ...s });
  const parts: BlobPart[] = [head.slice(0, -1), ',"audio_base64":"'];
  const step = 3 << 20; // a multiple of 3 bytes, so that the pieces can be joined
  for (let at = 0; at < file.size; at += step) {
    stop.throwIfAborted();
    const url = await new Promise<string>((go, fail) => {
      const reader = new FileReader();
      reader.onload = () => go(reader.result as string);
      reader.onerror = () => fail(reader.error ?? new Error('unreadable'));
      reader.readAsDataURL(file.slice(at, at + step));
    });
    parts.push(url.slice(url.indexOf(',') + 1));
    told(Math.min(1, (at + step) / file.size));
  }
  parts.push('"}');
  return new Blob(parts, { type: 'application/json' });
}

/** send posts the body of POST /tasks; told is called with the share that has been sent. */
export async function send(body: Blob, key: string, told: (share: number) => void, stop: AbortSignal): Promise<Task> {
  await turn();
  return new Promise((go, fail) => {
    const x = new XMLHttpRequest();
    x.open('POST', base + '/tasks');
    for (const [name, value] of Object.entries({
      ...credentials(login.value),
      'Content-Type': 'application/json',
      'Idempotency-Key': key,
    }))
      x.setRequestHeader(name, value);
    x.upload.onprogress = (e) => {
      if (e.lengthComputable) told(e.loaded / e.total);
    };
    x.onload = () => {
      if (x.status === 201) return go(JSON.parse(x.responseText) as Task);
      const f = failure(x.status, x.responseText, x.getResponseHeader('Retry-After'));
      if (f.status === 401) setLogin(null, true);
      fail(f);
    };
    x.onerror = () => fail(new Failure(0, 'network', 'network'));
    x.onabort = () => fail(stop.reason ?? new Error('aborted'));
    stop.addEventListener('abort', () => x.abort(), { once: true });
    x.send(body);
  });
}

/** randomKey is a key for one submission, so that sending it twice makes one task. */
export const randomKey = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, '0')).join('');
