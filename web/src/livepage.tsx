// The page of the live session: the microphone, captions as people speak, and a
// view of them for a projector.
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { api, sells } from './api';
import { save } from './formats';
import { languageChoices } from './languages';
import {
  active,
  captions,
  choose,
  device,
  devices,
  finish,
  growing,
  late,
  level,
  parts,
  pause,
  phase,
  problem,
  reconnecting,
  recording,
  reset,
  resume,
  seconds,
  silent,
  speakers,
  start,
  type Caption,
} from './live';
import { able } from './microphone';
import { MicrophoneIcon } from './microphoneicon';
import { useSoundNames } from './soundnames';
import { choices, listOf, set } from './submit';
import { clock, lang, t, type TextKey } from './texts';
import { voice } from './theme';

/** begin starts a session with the options of the form for recordings. */
function begin() {
  const c = choices.value;
  start({
    language: c.language,
    hotwords: listOf(c.hotwords),
    prompt: c.prompt.trim(),
    speakers: c.diarize,
    sounds: c.events,
    model: { auto: '', words: 'otograph-standard', fast: 'otograph-optimized' }[c.quality],
  });
}

export function LivePage() {
  const [projected, setProjected] = useState(false);
  const running = active();
  useEffect(() => {
    if (!running) setProjected(false);
  }, [running]);
  const on = phase.value;
  useEffect(() => {
    if (on !== 'ended' || problem.value || parts.value.length !== 1) return;
    const [{ id }] = parts.value;
    reset();
    location.hash = `/task/${id}`;
  }, [on]);
  return (
    <>
      <h1>{t('liveTitle')}</h1>
      {!able && (
        <p class="warn" role="alert">
          {t('micInsecure')}
        </p>
      )}
      {(problem.value || parts.value.length > 1) && (
        <div class={problem.value ? 'error' : 'warn'} role="alert">
          {problem.value?.() ?? t('liveParts')}
          {on === 'ended' && recording.value && (
            <p class="group">
              {parts.value.map((p) => (
                <a key={p.id} class="button small" href={`#/task/${p.id}`}>
                  {t('liveOpen')} {parts.value.length > 1 && clock(p.start)}
                </a>
              ))}
              <button type="button" class="small" onClick={() => save('live.wav', recording.value!)}>
                {t('liveSave')}
              </button>
            </p>
          )}
        </div>
      )}
      <section class="card pad live" aria-label={t('liveTitle')}>
        {active() ? <Running project={() => setProjected(true)} /> : <Settings />}
      </section>
      {(active() || captions.value.length > 0) && <Captions />}
      {projected && active() && <Projector close={() => setProjected(false)} />}
    </>
  );
}

function Devices() {
  return (
    <>
      <label for="l-device">{t('microphone')}</label>
      <select id="l-device" value={device.value} disabled={!able} onChange={(e) => choose(e.currentTarget.value)}>
        <option value="">{t('micUsual')}</option>
        {devices.value
          .filter((d) => d.deviceId !== 'default' && d.label)
          .map((d) => (
            <option key={d.deviceId} value={d.deviceId}>
              {d.label}
            </option>
          ))}
      </select>
    </>
  );
}

function Settings() {
  const c = choices.value;
  const [charged, setCharged] = useState(false);
  const again = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => {
    if (phase.value === 'ended') again.current?.focus(); // the session's buttons are gone
  }, []);
  useEffect(() => {
    api.pricing().then(
      (p) => setCharged(sells(p)),
      () => {
        /* the sentence is left out */
      },
    );
  }, []);
  return (
    <>
      <p class="muted">
        {t('liveHelp')} {charged && t('liveCharged')}
      </p>
      <div class="pairs">
        <Devices />
        <label for="l-language">{t('spoken')}</label>
        <select id="l-language" value={c.language} onChange={(e) => set({ language: e.currentTarget.value })}>
          <option value="">{t('auto')}</option>
          {languageChoices(lang.value).map(({ code, name }) => (
            <option key={code} value={code}>
              {name}
            </option>
          ))}
        </select>
        <label for="l-hotwords">{t('hotwords')}</label>
        <input
          id="l-hotwords"
          value={c.hotwords}
          placeholder={t('hotwordsHint')}
          onInput={(e) => set({ hotwords: e.currentTarget.value })}
        />
      </div>
      <label class="check">
        <input type="checkbox" checked={c.diarize} onChange={(e) => set({ diarize: e.currentTarget.checked })} />
        {t('diarize')}
      </label>
      <label class="check">
        <input type="checkbox" checked={c.events} onChange={(e) => set({ events: e.currentTarget.checked })} />
        {t('events')}
      </label>
      <button type="button" ref={again} class="primary" disabled={!able} onClick={begin}>
        <MicrophoneIcon />
        {t('liveStart')}
      </button>
    </>
  );
}

/** The states of a running session, in words. */
const states: Record<string, TextKey> = {
  starting: 'liveStarting',
  listening: 'liveListening',
  paused: 'livePaused',
  ending: 'liveEnding',
};

function Running({ project }: { project: () => void }) {
  const on = phase.value,
    stop = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => stop.current?.focus(), []); // the button that was pressed is gone
  return (
    <>
      <div class="live-state">
        <span class={`state ${on === 'listening' ? 'failed' : 'waiting'}`} role="status">
          {t(states[on])}
        </span>
        <span class="clock">{clock(seconds.value)}</span>
        <meter class="level" min={0} max={1} value={level.value} aria-label={t('liveLevel')} title={t('liveLevel')} />
      </div>
      <div class="live-buttons">
        {on === 'paused' ? (
          <button type="button" onClick={resume}>
            {t('liveResume')}
          </button>
        ) : (
          <button type="button" disabled={on !== 'listening'} onClick={pause}>
            {t('pause')}
          </button>
        )}
        <button type="button" ref={stop} class="primary" disabled={on === 'ending'} onClick={finish}>
          {t(on === 'starting' ? 'cancel' : 'liveStop')}
        </button>
        <button type="button" onClick={project}>
          {t('liveProject')}
        </button>
      </div>
      <div class="pairs">
        <Devices />
      </div>
      {reconnecting.value && (
        <p class="warn" role="status">
          {reconnecting.value()} {t('liveAgain')}
        </p>
      )}
      {silent.value && <p class="warn">{t('liveSilent')}</p>}
      {late.value && <p class="warn">{t('liveLate')}</p>}
    </>
  );
}

/** Lines are the finished captions; a screen reader reads each as it is added. */
function Lines({ label }: { label: string }) {
  const called = useSoundNames(),
    list = captions.value;
  return (
    <div role="log" aria-label={label}>
      {list.map((c, i) => (
        <p key={i} class={`caption ${colour(c)}`}>
          <span class="muted small" aria-hidden="true">
            {clock(c.start)}
          </span>
          {c.speaker && c.speaker !== before(list, i) && <strong class="who">{c.speaker} </strong>}
          <span class="text" dir="auto">
            {textOf(c, called)}
          </span>
        </p>
      ))}
    </div>
  );
}

const colour = (c: Caption) =>
  c.sound || c.missing !== undefined ? 'sound' : voice(speakers.value.indexOf(c.speaker ?? ''));
const textOf = (c: Caption, called: Record<string, string>) => {
  if (c.missing !== undefined) return c.missing ? t('liveMissing', { s: Math.ceil(c.missing) }) : t('liveBack');
  return c.sound ? `[${called[c.text] ?? c.text}]` : c.text;
};

/** before returns the speaker of the text before a caption. */
function before(list: Caption[], i: number): string | undefined {
  while (list[--i]?.sound);
  return list[i]?.speaker;
}

function Captions() {
  const box = useRef<HTMLDivElement>(null),
    below = useRef(true);
  useLayoutEffect(() => {
    if (below.current) box.current!.scrollTop = box.current!.scrollHeight;
  }, [captions.value, growing.value]);
  return (
    <section class="card" aria-labelledby="captions-title">
      <div class="bar">
        <h2 id="captions-title">{t('liveCaptions')}</h2>
      </div>
      <div
        class="captions"
        ref={box}
        tabIndex={0}
        role="group"
        aria-labelledby="captions-title"
        onScroll={(e) => {
          const { scrollTop, scrollHeight, clientHeight } = e.currentTarget;
          below.current = scrollHeight - scrollTop - clientHeight < 40;
        }}
      >
        <Lines label={t('liveCaptions')} />
        {growing.value
          .filter((u) => u.text)
          .map((u) => (
            <p key={u.id} class="caption growing">
              <span class="muted small" aria-hidden="true">
                {clock(u.start)}
              </span>
              <span class="text" dir="auto">
                {u.text}
              </span>
            </p>
          ))}
        {!captions.value.length && !growing.value.length && <p class="muted empty">{t('liveEmpty')}</p>}
      </div>
    </section>
  );
}

/** Projector is the last two lines, large; Escape closes it. */
function Projector({ close }: { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null),
    called = useSoundNames();
  useEffect(() => {
    let over = false;
    const left = () => {
      if (!document.fullscreenElement) close();
    };
    const whole = document.documentElement.requestFullscreen?.() ?? Promise.reject();
    void whole
      .then(() => (over ? document.exitFullscreen() : document.addEventListener('fullscreenchange', left)))
      .catch(() => {
        /* the window is enough */
      })
      .then(() => {
        if (!over) dialog.current?.showModal();
      });
    return () => {
      over = true;
      document.removeEventListener('fullscreenchange', left);
      if (document.fullscreenElement) void document.exitFullscreen();
    };
  }, []);
  const last = captions.value.slice(-4);
  return (
    <dialog ref={dialog} class="projector" aria-label={t('liveCaptions')} onClose={close}>
      <div class="two-lines" aria-hidden="true">
        <div>
          {last.map((c, i) => (
            <p key={captions.value.length - last.length + i} class={colour(c)} dir="auto">
              {c.speaker && speakers.value.length > 1 && c.speaker !== before(last, i) && (
                <span class="who">{c.speaker}: </span>
              )}
              {textOf(c, called)}
            </p>
          ))}
          {growing.value
            .filter((u) => u.text)
            .map((u) => (
              <p key={u.id} dir="auto">
                {u.text}
              </p>
            ))}
        </div>
      </div>
      <div class="sr">
        <Lines label={t('liveCaptions')} />
      </div>
      <button type="button" onClick={close}>
        {t('liveProjectEnd')}
      </button>
    </dialog>
  );
}
