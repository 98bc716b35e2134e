// The callback tester: the service itself sends a signed message to an address
// of the reader's choice, because a sample recording is submitted with that
// address. A command for a terminal does the same.
import { useEffect, useRef, useState } from 'preact/hooks';
import { api, bodyOf, Failure, plainly, randomKey, send, sleep, type Pricing, type Submission, type Task } from './api';
import { refresh } from './queue';
import { money, t } from './texts';
import { wavOf } from './wav';

/** sample returns a second of tone as a WAV file, or a file that is no recording, so that its task fails at no cost. */
export function sample(fails: boolean): File {
  const rate = 8000;
  if (fails) return new File([' '.repeat(2 * rate)], 'callback sample (fails).wav', { type: 'audio/wav' });
  const tone = Int16Array.from({ length: rate }, (_, i) => Math.round(6000 * Math.sin((2 * Math.PI * 440 * i) / rate)));
  return wavOf([tone], rate, 'callback sample.wav');
}

/** The cheapest task: text alone, in the optimized tier. */
const cheapest = { enable_diarize: false, enable_audio_events: false, optimize: true, asr_language: 'en' };

/** messageOf is the body of a task's callback, byte by byte as the service writes it. */
export function messageOf(task: Pick<Task, 'id' | 'status' | 'created_at' | 'finished_at' | 'error_message'>): string {
  const body = {
    task_id: task.id,
    status: task.status,
    created_at: task.created_at,
    finished_at: task.finished_at ?? null,
    error_message: task.error_message ?? null,
  };
  return JSON.stringify(body).replace(
    /[<>&\u2028\u2029]/g,
    (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'),
  );
}

/** signatureOf is the X-Signature of a body; null if the browser can't compute it or there is no secret. */
export async function signatureOf(body: string, secret: string): Promise<string | null> {
  if (!secret || !globalThis.crypto?.subtle) return null;
  const text = new TextEncoder();
  const key = await crypto.subtle.importKey('raw', text.encode(secret), { name: 'HMAC', hash: 'SHA-256' }, false, [
    'sign',
  ]);
  const mac = new Uint8Array(await crypto.subtle.sign('HMAC', key, text.encode(body)));
  return 'sha256=' + Array.from(mac, (b) => b.toString(16).padStart(2, '0')).join('');
}

/** quoted quotes a text as one word for a POSIX shell. */
const quoted = (text: string) => `'${text.replace(/'/g, `'\\''`)}'`;

/** command is a curl command that sends a callback signed as the service signs it. */
async function command(url: string, secret: string, fails: boolean): Promise<string> {
  const now = new Date().toISOString();
  const body = messageOf({
    id: '00000000-0000-4000-8000-000000000000',
    status: fails ? 'failed' : 'done',
    created_at: now,
    finished_at: now,
    error_message: fails ? 'not a recording' : null,
  });
  const signature = await signatureOf(body, secret);
  return [
    'curl',
    '-X',
    'POST',
    quoted(url),
    '-H',
    quoted('Content-Type: application/json'),
    ...(signature ? ['-H', quoted('X-Signature: ' + signature)] : []),
    '--data-binary',
    quoted(body),
  ].join(' ');
}

interface Outcome {
  url: string;
  body: string;
  signature: string | null;
  signed: boolean;
  cost: string;
}

/** onCharge is called when a sample's task has ended. */
export function CallbackTester({ prices, onCharge }: { prices: Pricing | null; onCharge: () => void }) {
  const [url, setUrl] = useState('');
  const [secret, setSecret] = useState('');
  const [fails, setFails] = useState(false);
  const [busy, setBusy] = useState(false);
  const [note, setNote] = useState('');
  const [problem, setProblem] = useState('');
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const [shell, setShell] = useState('');
  const stop = useRef(new AbortController());
  useEffect(() => () => stop.current.abort(new Error('left')), []);
  const able = !!globalThis.crypto?.subtle;
  const minute = (perHour: number) => money(Math.round((perHour / 60) * 1e4) / 1e4);
  const cost = prices
    ? [...new Set([minute(prices.zh_lite_price_per_hour), minute(prices.standard_price_per_hour)])].join(' – ')
    : '…';

  const deliver = async () => {
    const signal = stop.current.signal,
      to = url.trim(),
      signedWith = secret;
    setBusy(true);
    setProblem('');
    setOutcome(null);
    setShell('');
    setNote(t('testerWorking'));
    try {
      const submission: Submission = {
        options: cheapest,
        callback_url: to,
        ...(signedWith ? { callback_secret: signedWith } : {}),
      };
      const body = await bodyOf(sample(fails), submission, () => {}, signal),
        key = randomKey();
      let task: Task | null = null;
      while (!task) {
        try {
          task = await send(body, key, () => {}, signal);
        } catch (e) {
          // other tasks run; the sample waits
          if (!(e instanceof Failure) || !['concurrency_limit_exceeded', 'rate_limited'].includes(e.code)) throw e;
          setNote(e.plain());
          await sleep(Math.max(3, e.retryAfter) * 1000);
          if (signal.aborted) return;
        }
      }
      for (;;) {
        task = await api.task(task.id);
        if (signal.aborted) return;
        if (task.status === 'done' || task.status === 'abandoned' || (task.status === 'failed' && task.finished_at))
          break;
        setNote(
          task.status === 'failed' ? t('testerWaits', { message: task.error_message ?? '' }) : t('testerWorking'),
        );
        await sleep(1500);
      }
      const paid = task.status === 'done' ? (await api.result(task.id)).billing : undefined;
      const message = messageOf(task);
      setOutcome({
        url: to,
        body: message,
        signature: await signatureOf(message, signedWith),
        signed: !!signedWith,
        cost: money(paid?.amount ?? 0),
      });
      void refresh();
      onCharge();
    } catch (e) {
      if (!signal.aborted) setProblem(plainly(e));
    } finally {
      setBusy(false);
      setNote('');
    }
  };

  return (
    <section class="card pad tester">
      <h2>{t('tester')}</h2>
      <p class="muted">{t('testerHelp')}</p>
      <form
        class="pairs"
        onSubmit={(e) => {
          e.preventDefault();
          void deliver();
        }}
      >
        <div>
          <label for="tester-url">{t('testerUrl')}</label>
          <div id="tester-url-hint" class="muted hint-line">
            {t('testerUrlHint')}
          </div>
        </div>
        <input
          id="tester-url"
          type="url"
          required
          placeholder="https://"
          value={url}
          aria-describedby="tester-url-hint"
          onInput={(e) => setUrl(e.currentTarget.value)}
        />
        <div>
          <label for="tester-secret">{t('secret')}</label>
          <div id="tester-secret-hint" class="muted hint-line">
            {t('testerSecretHint')}
          </div>
        </div>
        <input
          id="tester-secret"
          type="password"
          autocomplete="off"
          value={secret}
          aria-describedby="tester-secret-hint"
          onInput={(e) => setSecret(e.currentTarget.value)}
        />
        <label for="tester-kind">{t('testerKind')}</label>
        <select
          id="tester-kind"
          value={fails ? 'failed' : 'done'}
          onChange={(e) => setFails(e.currentTarget.value === 'failed')}
        >
          <option value="done">{t('testerDone', { amount: cost })}</option>
          <option value="failed">{t('testerFailed')}</option>
        </select>
        <span />
        <span class="group">
          <button type="submit" class="primary" disabled={busy}>
            {t('testerSend')}
          </button>
          <button
            type="button"
            disabled={!url.trim() || (!able && !!secret)}
            onClick={() =>
              void command(url.trim(), secret, fails).then((c) => {
                setOutcome(null);
                setProblem('');
                setShell(c);
              })
            }
          >
            {t('testerMake')}
          </button>
        </span>
      </form>
      {!able && <p class="muted small">{t('testerHttps')}</p>}
      {problem && (
        <p class="error" role="alert">
          {problem}
        </p>
      )}
      <div role="status">
        {note && (
          <>
            <p>{note}</p>
            <progress aria-label={note} />
          </>
        )}
        {outcome && (
          <>
            <p class="good">
              {t('testerSent', { url: outcome.url })} {t('testerCost', { amount: outcome.cost })}
            </p>
            <p class="small">
              {t('testerAgain')} <a href="#/">{t('testerList')}</a>
            </p>
            <p class="small">{t(outcome.signed ? 'testerCompare' : 'testerUnsigned')}</p>
          </>
        )}
      </div>
      {outcome && (
        <pre tabIndex={0} aria-label={t('testerCompare')}>
          {outcome.signature && `X-Signature: ${outcome.signature}\n\n`}
          {outcome.body}
        </pre>
      )}
      {shell && (
        <>
          <p class="small">{t('testerCommand')}</p>
          <pre tabIndex={0} aria-label={t('testerMake')}>
            {shell}
          </pre>
        </>
      )}
    </section>
  );
}
