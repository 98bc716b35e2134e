// Uploads in progress and the list of tasks.
import { effect, signal, untracked } from '@preact/signals';
import {
  api,
  bodyOf,
  Failure,
  login,
  maxFile,
  plainly,
  randomKey,
  send,
  sleep,
  type Submission,
  type Task,
} from './api';
import { follow, type TaskState } from './follow';
import { confirmLeaving } from './leaving';
import { t } from './texts';

export interface Upload {
  id: string;
  file: File;
  submission: Submission;
  state: 'waiting' | 'reading' | 'sending' | 'failed';
  share: number;
  /** error returns what went wrong, in the page's current language. */
  error: (() => string) | null;
  /** hopeless is true for a file that no further attempt could send. */
  hopeless: boolean;
  stop: AbortController;
}

/** uploads are the files that are not yet tasks. */
export const uploads = signal<Upload[]>([]);
/** recordings are the reader's own files by task, for listening; they are forgotten with the tab. */
export const recordings = new Map<string, File>();

export const list = signal<{ tasks: Task[]; total: number; page: number } | null>(null);
export const listProblem = signal('');
export const page = signal(1);
export const filter = signal('');
/** states are the latest reported states of the tasks that are not final. */
export const states = signal<Record<string, TaskState>>({});
/** reasons are the error messages of failed tasks; the list does not carry them. */
export const reasons = signal<Record<string, string>>({});

function change(u: Upload, to: Partial<Upload>) {
  uploads.value = uploads.value.map((x) => (x.id === u.id ? { ...x, ...to } : x));
}

export function add(files: Iterable<File>, submission: Submission): void {
  const fresh = [...files].map((file): Upload => {
    const error =
      file.size > maxFile
        ? () => t('eTooLarge', { size: t('bytes', { n: Math.round(file.size / 1e6) }) })
        : file.size < 1024
          ? () => t('eTooSmall')
          : null;
    return {
      id: randomKey(),
      file,
      submission,
      state: error ? 'failed' : 'waiting',
      share: 0,
      error,
      hopeless: !!error,
      stop: new AbortController(),
    };
  });
  uploads.value = [...uploads.value, ...fresh];
  void work();
}

export function drop(u: Upload): void {
  u.stop.abort(new Error('cancelled'));
  uploads.value = uploads.value.filter((x) => x.id !== u.id);
}

export function again(u: Upload): void {
  if (u.hopeless) return;
  change(u, { state: 'waiting', error: null, share: 0 });
  void work();
}

confirmLeaving(() => uploads.value.some((u) => u.state !== 'failed'));

let working = false;
/** work sends the waiting files, one after the other. */
async function work(): Promise<void> {
  if (working) return;
  working = true;
  try {
    for (let u; (u = uploads.value.find((x) => x.state === 'waiting')) && login.value;) {
      const { id, file, submission, stop } = u;
      const mine = () => uploads.value.some((x) => x.id === id);
      try {
        // A large file is sent only when there is room for its task.
        while (!submission.batch_mode && mine() && (await api.account()).available_concurrency < 1) await sleep(3000);
        if (!mine()) continue;
        change(u, { state: 'reading' });
        const body = await bodyOf(file, submission, (share) => change(u!, { share }), stop.signal);
        for (let attempt = 0; ; attempt++) {
          change(u, { state: 'sending', share: 0 });
          try {
            const task = await send(body, id, (share) => change(u!, { share }), stop.signal);
            recordings.set(task.id, file);
            uploads.value = uploads.value.filter((x) => x.id !== id);
            void refresh();
            break;
          } catch (e) {
            if (
              !(e instanceof Failure) ||
              !['concurrency_limit_exceeded', 'rate_limited'].includes(e.code) ||
              attempt >= 100
            )
              throw e;
            change(u, { state: 'waiting' });
            await sleep(Math.max(3, e.retryAfter) * 1000);
            if (!mine()) break;
          }
        }
      } catch (e) {
        if (mine()) change(u, { state: 'failed', error: () => plainly(e) });
      }
    }
  } finally {
    working = false;
  }
}

let asking = 0;
/** refresh requests the list of tasks. */
export async function refresh(): Promise<void> {
  if (!login.value) return;
  const mine = ++asking;
  try {
    const got = await api.tasks(page.value, filter.value);
    if (mine !== asking) return; // a later request was sent
    list.value = got;
    listProblem.value = '';
    for (const task of got.tasks) {
      if (
        (task.status === 'failed' || task.status === 'abandoned') &&
        reasons.value[task.id + task.updated_at] === undefined
      ) {
        const full = await api.task(task.id);
        reasons.value = { ...reasons.value, [task.id + task.updated_at]: full.error_message ?? '' };
      }
    }
  } catch (e) {
    if (mine === asking && login.value) listProblem.value = plainly(e);
  }
}

const open = (task: Task) => task.status === 'processing' || (task.status === 'failed' && !task.finished_at);

/** most is how many tasks are followed at the same time: a browser has few connections to one server. */
const most = 3;
const followed = new Map<string, AbortController>();

/** followSome follows the tasks that end first: the oldest ones that are not final. */
function followSome(): void {
  const wanted = (list.value?.tasks ?? [])
    .filter(open)
    .slice(-most)
    .map((task) => task.id);
  for (const [id, stop] of followed) if (!wanted.includes(id)) stop.abort();
  for (const id of wanted) if (!followed.has(id)) void followOne(id);
}

async function followOne(id: string): Promise<void> {
  const stop = new AbortController();
  followed.set(id, stop);
  if (!(await follow(id, tell, stop.signal)) && !stop.signal.aborted) await sleep(5000); // meanwhile the list is polled
  followed.delete(id);
  states.value = Object.fromEntries(Object.entries(states.value).filter(([of]) => of !== id));
}

/** tell stores a task's new state, and requests the list when a task has ended: another may have begun. */
function tell(state: TaskState): void {
  states.value = { ...states.value, [state.task_id]: state };
  const { status, updated_at, finished_at, error_message } = state;
  const known = list.value?.tasks.find((x) => x.id === state.task_id);
  if (!known || (known.status === status && known.finished_at === finished_at)) return;
  if (error_message) reasons.value = { ...reasons.value, [state.task_id + updated_at]: error_message };
  list.value = {
    ...list.value!,
    tasks: list.value!.tasks.map((x) => (x === known ? { ...x, status, updated_at, finished_at } : x)),
  };
  if (state.final) void refresh();
}

/** watch keeps the list up to date while it is shown. */
export function watch(): () => void {
  let timer = 0,
    over = false;
  const next = async () => {
    if (!document.hidden) await refresh();
    if (over) return;
    const unheard = list.value?.tasks.some((x) => open(x) && !states.value[x.id]);
    timer = window.setTimeout(next, listProblem.value ? 10000 : unheard ? 3000 : 15000);
  };
  void next();
  const shown = () => {
    if (!document.hidden) {
      clearTimeout(timer);
      void next();
    }
  };
  document.addEventListener('visibilitychange', shown);
  let first = true; // next has requested the list already
  const stop = effect(() => {
    void page.value;
    void filter.value;
    if (!first) void refresh();
    first = false;
  });
  const stopFollowing = effect(() => {
    void list.value;
    untracked(followSome);
  });
  return () => {
    over = true;
    clearTimeout(timer);
    stop();
    stopFollowing();
    for (const [, stop] of followed) stop.abort();
    document.removeEventListener('visibilitychange', shown);
  };
}

// Nothing of one login is shown to the next.
effect(() => {
  if (login.value) return;
  for (const u of uploads.peek()) u.stop.abort();
  uploads.value = [];
  recordings.clear();
  list.value = null;
  reasons.value = {};
});
