// The recordings that are being sent or processed, are done, or failed.
import { useEffect, useState } from 'preact/hooks';
import { api, Failure, plainly, type Task } from './api';
import { languageName } from './languages';
import {
  again,
  drop,
  filter,
  list,
  listProblem,
  page,
  reasons,
  recordings,
  refresh,
  states,
  uploads,
  watch,
  type Upload,
} from './queue';
import { canceled, reasonOf } from './reasons';
import { clock, lang, money, t, when, type TextKey } from './texts';
import { queued, Working } from './working';

export function Worklist() {
  useEffect(watch, []);
  const l = list.value,
    pending = uploads.value;
  const pages = l ? Math.max(1, Math.ceil(l.total / 20)) : 1;
  return (
    <section class="card queue" aria-labelledby="queue-title">
      <div class="bar">
        <h2 id="queue-title">{t('queue')}</h2>
        <label class="small">
          {t('filter')}{' '}
          <select
            value={filter.value}
            onChange={(e) => {
              page.value = 1;
              filter.value = e.currentTarget.value;
            }}
          >
            <option value="">{t('all')}</option>
            {(['processing', 'done', 'failed', 'abandoned'] as const).map((s) => (
              <option key={s} value={s}>
                {t(s)}
              </option>
            ))}
          </select>
        </label>
      </div>
      {listProblem.value && (
        <p class="error" role="alert">
          {listProblem.value}
        </p>
      )}
      <p class="sr" role="status">
        {announce(l?.tasks ?? [])}
      </p>
      {!l && !listProblem.value && <p class="muted pad">{t('loading')}</p>}
      {l && l.tasks.length === 0 && pending.length === 0 && <p class="muted pad empty">{t('empty')}</p>}
      <ul class="tasks">
        {pending.map((u) => (
          <UploadRow key={u.id} u={u} />
        ))}
        {l?.tasks.map((task) => (
          <TaskRow key={task.id} task={task} />
        ))}
      </ul>
      {pages > 1 && (
        <div class="pager">
          <button
            type="button"
            disabled={page.value <= 1}
            onClick={() => {
              page.value--;
            }}
          >
            {t('newer')}
          </button>
          <span class="muted small">{t('pageOf', { page: page.value, pages })}</span>
          <button
            type="button"
            disabled={page.value >= pages}
            onClick={() => {
              page.value++;
            }}
          >
            {t('older')}
          </button>
        </div>
      )}
    </section>
  );
}

/** announce is the newest recording's state, for screen readers. */
const announce = (tasks: Task[]) => (tasks.length ? `${tasks[0].audio_filename}: ${stateText(tasks[0])}` : '');

/** reasonFor returns the error message of a failed task, once it is known. */
const reasonFor = (task: Task) => reasons.value[task.id + task.updated_at];

/** behind reports that a running or waiting task whose state is not followed is newer than one that waits. */
function behind(task: Task): boolean {
  const tasks = list.value?.tasks ?? [];
  return (
    task.status === 'processing' &&
    !states.value[task.id] &&
    tasks.slice(tasks.indexOf(task) + 1).some((older) => queued(older, states.value[older.id]))
  );
}

function stateText(task: Task): string {
  if (task.status === 'failed' && !task.finished_at) return t('retrying');
  if (canceled(reasonFor(task))) return t('canceled');
  if (queued(task, states.value[task.id]) || behind(task)) return t('waiting');
  return t(task.status as TextKey);
}

function UploadRow({ u }: { u: Upload }) {
  const text =
    u.state === 'failed'
      ? t('failed')
      : u.state === 'sending'
        ? u.share >= 1
          ? t('sent')
          : t('sending', { percent: Math.floor(u.share * 100) })
        : t(u.state);
  return (
    <li class={`task ${u.state}`}>
      <div class="task-name">
        <strong dir="auto">{u.file.name}</strong>
        {u.error && (
          <p class="error small" role="alert">
            {u.error()}
          </p>
        )}
        {u.state === 'sending' || u.state === 'reading' ? <progress max={1} value={u.share} aria-label={text} /> : null}
      </div>
      <span class={`state ${u.state === 'failed' ? 'failed' : 'processing'}`}>{text}</span>
      <span class="task-actions">
        {u.state === 'failed' && !u.hopeless && (
          <button type="button" class="small" onClick={() => again(u)}>
            {t('again')}
          </button>
        )}
        <button type="button" class="small" onClick={() => drop(u)}>
          {t(u.state === 'failed' ? 'dismiss' : 'cancel')}
        </button>
      </span>
    </li>
  );
}

/** factsOf lists length, language, speakers and price of a finished recording, if known. */
function factsOf(task: Task): string[] {
  const facts: string[] = [];
  if (task.audio_duration !== undefined) facts.push(clock(task.audio_duration));
  if (task.language) facts.push(languageName(task.language, lang.value));
  if (task.num_speakers !== undefined)
    facts.push(task.num_speakers === 1 ? t('speakerFound') : t('speakersFound', { n: task.num_speakers }));
  if (task.amount) facts.push(t('amountCharged', { amount: money(task.amount) }));
  return facts;
}

function TaskRow({ task }: { task: Task }) {
  const [problem, setProblem] = useState('');
  const [asked, setAsked] = useState(false);
  const reason = reasonFor(task);
  const remove = async () => {
    setAsked(false);
    try {
      await api.remove(task.id);
      recordings.delete(task.id);
      await refresh();
    } catch (e) {
      setProblem(plainly(e));
    }
  };
  const cancel = async () => {
    setProblem('');
    try {
      await api.cancel(task.id);
      await refresh();
    } catch (e) {
      setProblem(e instanceof Failure && e.status === 409 ? t('tooLate') : plainly(e));
    }
  };
  const waiting = task.status === 'failed' && !task.finished_at;
  return (
    <li class={`task ${task.status}`}>
      <div class="task-name">
        <a href={`#/task/${task.id}`} dir="auto">
          <strong>{task.audio_filename}</strong>
        </a>
        <span class="muted small">{[when(task.created_at), ...factsOf(task)].join(' · ')}</span>
        {(problem || reason) && <p class={`small ${waiting ? 'warn' : 'error'}`}>{problem || reasonOf(reason)}</p>}
        {task.status === 'processing' && <Working state={states.value[task.id]} />}
      </div>
      <span class={`state ${waiting ? 'waiting' : task.status}`}>{stateText(task)}</span>
      <span class="task-actions">
        {asked ? (
          <>
            <span class="small" role="alert">
              {t('removeAsk', { name: task.audio_filename })}
            </span>
            <button type="button" class="small danger" onClick={() => void remove()}>
              {t('remove')}
            </button>
            <button type="button" class="small" onClick={() => setAsked(false)}>
              {t('cancel')}
            </button>
          </>
        ) : (
          <>
            {task.status === 'done' && (
              <a
                class="button small primary"
                href={`#/task/${task.id}`}
                aria-label={`${t('open')}: ${task.audio_filename}`}
              >
                {t('open')}
              </a>
            )}
            {task.status === 'processing' && (
              <button
                type="button"
                class="small"
                aria-label={`${t('cancel')}: ${task.audio_filename}`}
                onClick={() => void cancel()}
              >
                {t('cancel')}
              </button>
            )}
            {task.status !== 'processing' && (
              <button
                type="button"
                class="small"
                aria-label={`${t('remove')}: ${task.audio_filename}`}
                onClick={() => setAsked(true)}
              >
                {t('remove')}
              </button>
            )}
          </>
        )}
      </span>
    </li>
  );
}
