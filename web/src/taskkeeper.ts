// The corrections that the service keeps with a task.
import { signal } from '@preact/signals';
import { api, Failure, login, nextLogin, plainly, readerOf, sleep, type Corrections } from './api';
import { corrected, type Change, type Entry, type Keeper } from './corrections';
import { confirmLeaving } from './leaving';
import type { Result } from './result';
import { t } from './texts';

/** tries is how often a change is sent before settled stops waiting for it; it is sent again after each pause, in milliseconds. */
const tries = 10,
  pause = 30000;

/** unsaved is the number of changes, of all tasks, that the service does not have yet. */
const unsaved = signal(0);
confirmLeaving(() => unsaved.value > 0);

/** taskKeeper keeps the corrections of a task; start are the corrections that the service has. Changes go one after the other. */
export function taskKeeper(task: string, result: Result, start: Corrections): Keeper {
  const log = signal<Entry[]>(start.corrections),
    problem = signal(''),
    reader = readerOf(login.value);
  let stored = start,
    pending: Change[] = [],
    last = Promise.resolve();

  /** wait changes the pending changes. */
  const wait = (to: Change[]) => {
    unsaved.value += to.length - pending.length;
    pending = to;
  };

  /** show numbers pending changes as the service will, unless somebody else's change comes first. */
  const show = () => {
    log.value = [...stored.corrections, ...pending.map((c, i) => ({ ...c, version: stored.version + i + 1 }))];
  };

  /** sentence is the segment that a change is about, with the corrections that the service has. */
  const sentence = (c: Change) => {
    if (!('segment' in c)) return '';
    const segments = corrected(result, stored.corrections).segments ?? [],
      i = segments.findIndex((s) => s.id === c.segment);
    return JSON.stringify(segments.slice(i, c.op === 'join' ? i + 2 : i + 1));
  };

  /** sendFirst sends the first pending change, and repeats it if somebody else's change came first and left the sentence unchanged. */
  async function sendFirst(): Promise<void> {
    for (let attempt = 0; pending.length; attempt++) {
      try {
        const made = await api.correct(task, pending[0], stored.version);
        stored = { version: made.version, corrections: [...stored.corrections, made] };
        wait(pending.slice(1));
        problem.value = '';
        return show();
      } catch (e) {
        if (!(e instanceof Failure)) throw e;
        if (e.status === 0 || e.status === 429 || e.status >= 500) {
          problem.value = plainly(e); // until the change is kept
          if (attempt >= tries) return void sleep(pause).then(send);
          await sleep(1000 * (attempt + 1));
          continue;
        }
        if (e.status === 401) {
          // the login has ended: the same reader's next one can send the change
          if (readerOf(await nextLogin()) === reader) continue;
          return wait([]);
        }
        const before = sentence(pending[0]),
          version = stored.version;
        stored = await api.corrections(task);
        if (e.status === 409 && pending[0].op !== 'undo' && sentence(pending[0]) === before) {
          renumber(version, stored.version - version);
        } else {
          // later changes may be about a segment that no longer exists
          wait([]);
          problem.value = e.status === 409 ? t('changedMeanwhile') : plainly(e);
        }
        show();
      }
    }
  }

  /** renumber updates the ids of cuts that are sent later than expected. */
  function renumber(version: number, by: number): void {
    const largest = Math.max(0, ...(result.segments ?? []).map((s) => s.id));
    const now = (id: number) => (id > largest + version ? id + by : id);
    pending = pending.map((c) => {
      if ('segment' in c) return { ...c, segment: now(c.segment) };
      if (c.op !== 'annotate' || !c.texts) return c;
      return { ...c, texts: Object.fromEntries(Object.entries(c.texts).map(([id, text]) => [now(Number(id)), text])) };
    });
  }

  /** send sends the first pending change after the changes before it. */
  const send = () => {
    last = last.then(sendFirst).catch((e) => {
      problem.value = plainly(e);
    });
  };

  return {
    log,
    change(to) {
      wait([...pending, to]);
      show();
      send();
    },
    settled: () => last,
    problem,
    where: 'keptNote',
  };
}
