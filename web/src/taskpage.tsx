// The page of one task: progress and text while it runs, then the result.
import { useEffect, useRef, useState } from 'preact/hooks';
import { api, plainly, sleep, type Task } from './api';
import { namesOf, type Keeper } from './corrections';
import { follow, withSentences, type Sentence, type TaskState } from './follow';
import { MoreFormats } from './moreformats';
import { peaksOf } from './peaks';
import { Price } from './price';
import { recordings } from './queue';
import type { Result } from './result';
import { ResultView } from './resultview';
import { taskKeeper } from './taskkeeper';
import { Remember } from './voices';
import { queued, Working } from './working';
import { reasonOf } from './reasons';
import { useSoundNames } from './soundnames';
import { clock, lang, t, when, type TextKey } from './texts';

/** A recording of up to this many bytes is fetched without a click. */
const loadAtOnce = 64e6;

export function TaskPage({ id }: { id: string }) {
  const [task, setTask] = useState<Task | null>(null);
  const [state, setState] = useState<TaskState | null>(null);
  const [spoken, setSpoken] = useState<Sentence[]>([]);
  const [result, setResult] = useState<Result | null>(null);
  const [peaks, setPeaks] = useState<Float32Array>();
  const [keeper, setKeeper] = useState<Keeper | null>(null);
  const [kept, setKept] = useState<number>(); // bytes of the recording that the service keeps
  const [opening, setOpening] = useState(false);
  const [problem, setProblem] = useState('');
  const [audio, setAudio] = useState<Blob | undefined>(recordings.get(id));
  const shown = useRef(id);
  shown.current = id;
  /** load fetches the recording that the service keeps. */
  const load = async () => {
    setOpening(true);
    try {
      const blob = await api.audio(id);
      if (shown.current === id) setAudio(blob);
    } catch (e) {
      if (shown.current === id) setProblem(plainly(e));
    } finally {
      setOpening(false);
    }
  };
  useEffect(() => {
    let current = true;
    const stop = new AbortController();
    setTask(null);
    setState(null);
    setSpoken([]);
    setResult(null);
    setPeaks(undefined);
    setKeeper(null);
    setKept(undefined);
    setProblem('');
    setAudio(recordings.get(id));
    void (async () => {
      try {
        for (let now = await api.task(id); current;) {
          setTask(now);
          if (now.status === 'done') {
            void api.waveform(id).then(
              (stored) => {
                if (current && stored) setPeaks(peaksOf(stored));
              },
              () => {
                /* the band stays */
              },
            );
            const [made, got] = await Promise.all([api.corrections(id), api.result(id)]);
            if (!current) return;
            setKeeper(taskKeeper(id, got, made));
            setResult(got);
            if (recordings.has(id)) return;
            const size = await api.audioSize(id);
            if (!current || !size) return;
            setKept(size);
            if (size <= loadAtOnce) void load();
            return;
          }
          if (now.status === 'abandoned' || (now.status === 'failed' && now.finished_at)) return;
          let last: TaskState | null = null;
          const told = (to: TaskState) => {
            setState((last = to));
            if (to.status === 'failed' || to.status === 'abandoned') setSpoken([]); // another attempt sends its own
          };
          const ended = await follow(id, told, stop.signal, (news) => setSpoken((all) => withSentences(all, news)));
          if (ended) now = { ...now, ...(last as TaskState | null) };
          else if (current) {
            await sleep(3000);
            now = await api.task(id);
          }
        }
      } catch (e) {
        if (current) setProblem(plainly(e));
      }
    })();
    return () => {
      current = false;
      stop.abort();
    };
  }, [id]);
  const sounds = useSoundNames();
  useEffect(() => {
    if (task) document.title = `${task.audio_filename} · Otograph`;
    return () => {
      document.title = 'Otograph';
    };
  }, [task]);

  const status = state?.status ?? task?.status,
    now = status && status !== 'done' ? (status as TextKey) : 'resultLoading',
    said = state ? state.error_message : task?.error_message;

  return (
    <>
      <p>
        <a href="#/">← {t('back')}</a>
      </p>
      {problem && (
        <p class="error" role="alert">
          {problem}
        </p>
      )}
      {!problem && !result && (
        <div class="card pad" role="status">
          {task && <h1 dir="auto">{task.audio_filename}</h1>}
          <p>{t(task && queued(task, state) ? 'waiting' : now)}</p>
          {said && <p class="error">{reasonOf(said)}</p>}
          {!task ? <progress aria-label={t('loading')} /> : status === 'processing' && <Working state={state} />}
        </div>
      )}
      {!problem && !result && spoken.length > 0 && (
        <section class="card pad sofar" aria-labelledby="sofar-title">
          <h2 id="sofar-title">{t('textSoFar')}</h2>
          <ol>
            {spoken.map((s) => (
              <li key={s.index}>
                <span class="muted small">{clock(s.start)}</span>
                <span dir="auto">{s.text}</span>
              </li>
            ))}
          </ol>
        </section>
      )}
      {task && result && keeper && (
        <ResultView
          name={task.audio_filename}
          result={result}
          audio={audio}
          peaks={peaks}
          keeper={keeper}
          given={async (format) => {
            await keeper.settled();
            return api.transcript(id, format).catch((e) => {
              throw new Error(plainly(e));
            });
          }}
          opening={opening}
          load={kept && !opening ? { size: kept, begin: () => void load() } : undefined}
          more={<MoreFormats task={id} name={task.audio_filename} result={result} keeper={keeper} />}
          reader={lang.value}
          sounds={sounds}
          onAudio={(f) => {
            recordings.set(id, f);
            setAudio(f);
          }}
        >
          <p class="muted small">{when(task.created_at)}</p>
          {result.billing && <Price billing={result.billing} />}
        </ResultView>
      )}
      {result && keeper && (
        <Remember key={id} task={id} result={result} names={(s) => namesOf(keeper.log.value)[s]?.trim() || s} />
      )}
    </>
  );
}
