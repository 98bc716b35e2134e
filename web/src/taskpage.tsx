// One finished recording of the service.
import { useEffect, useState } from 'preact/hooks';
import { api, plainly, sleep, type Task } from './api';
import { recordings } from './queue';
import type { Result } from './result';
import { ResultView } from './resultview';
import { lang, t, when, type TextKey } from './texts';

export function TaskPage({ id }: { id: string }) {
  const [task, setTask] = useState<Task | null>(null);
  const [result, setResult] = useState<Result | null>(null);
  const [problem, setProblem] = useState('');
  const [audio, setAudio] = useState<File | undefined>(recordings.get(id));
  useEffect(() => {
    let current = true;
    setTask(null); setResult(null); setProblem(''); setAudio(recordings.get(id));
    void (async () => {
      try {
        for (;;) {
          const now = await api.task(id);
          if (!current) return;
          setTask(now);
          if (now.status === 'done') {
            const got = await api.result(id);
            if (current) setResult(got);
            return;
          }
          if (now.status === 'abandoned' || (now.status === 'failed' && now.finished_at)) return;
          await sleep(3000);
          if (!current) return;
        }
      } catch (e) { if (current) setProblem(plainly(e)); }
    })();
    return () => { current = false; };
  }, [id]);
  const [sounds, setSounds] = useState<Record<string, string>>({});
  const chinese = lang.value === 'zh';
  useEffect(() => { // the service knows the sounds' Chinese names
    if (!chinese) return setSounds({});
    let current = true;
    api.soundClasses().then((all) => { if (current) setSounds(Object.fromEntries(all.map((c) => [c.display_name, c.zh_name]))); }, () => { /* the English names stay */ });
    return () => { current = false; };
  }, [chinese]);
  useEffect(() => { if (task) document.title = `${task.audio_filename} · Otograph`; return () => { document.title = 'Otograph'; }; }, [task]);

  return (
    <>
      <p><a href="#/">← {t('back')}</a></p>
      {problem && <p class="error" role="alert">{problem}</p>}
      {!problem && !result && (
        <div class="card pad" role="status">
          {task && <h1 dir="auto">{task.audio_filename}</h1>}
          <p>{task && task.status !== 'done' ? t(task.status as TextKey) : t('resultLoading')}</p>
          {task?.error_message && <p class="error">{t('said', { message: task.error_message })}</p>}
          {(!task || task.status === 'processing') && <progress aria-label={t('loading')} />}
        </div>
      )}
      {task && result && (
        <ResultView name={task.audio_filename} result={result} audio={audio} memory={id} reader={lang.value} sounds={sounds}
          onAudio={(f) => { recordings.set(id, f); setAudio(f); }}>
          <p class="muted small">{when(task.created_at)}</p>
        </ResultView>
      )}
    </>
  );
}
