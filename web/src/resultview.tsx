// One result: to listen to, read, correct and save.
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { asText, save, stem, write, type Format, type GivenFormat } from './formats';
import { corrected, effective, namesOf, type Keeper } from './corrections';
import { languageName } from './languages';
import { Player } from './player';
import type { Result } from './result';
import { indexAt, missingOf, soundsOf, speakersOf } from './result';
import { undos } from './rows';
import { clock, money, t } from './texts';
import { voice } from './theme';
import { Timeline } from './timeline';
import { Transcript } from './transcript';
import { VirtualList } from './virtuallist';

const noNames: Record<string, string> = {};
const formats: Format[] = ['txt', 'srt', 'vtt', 'json', 'rttm'];

export interface ResultProps {
  name: string;
  result: Result;
  /** audio is the recording, if it is loaded. */
  audio?: Blob;
  /** opening is true while the recording is being loaded. */
  opening?: boolean;
  /** peaks are the recording's peaks, from 0 to 1, if they are known already. */
  peaks?: Float32Array;
  /** onAudio is called with a recording that the reader opened. */
  onAudio?: (file: File) => void;
  /** keeper keeps the reader's names and corrections. */
  keeper: Keeper;
  /** given fetches a file that the page does not write itself, with the reader's names. */
  given: (format: GivenFormat, speakers: string[], names: (speaker: string) => string) => Promise<Blob>;
  /** uncorrected is true if those files lack the reader's corrections. */
  uncorrected?: boolean;
  /** more is a menu of further files. */
  more?: ComponentChildren;
  /** load fetches the recording that the service keeps, of size bytes. */
  load?: { size: number; begin: () => void };
  reader: string;
  /** sounds are names of the sounds in the reader's language, by their English ones. */
  sounds?: Record<string, string>;
  children?: ComponentChildren;
}

export function ResultView({
  name,
  result: original,
  audio,
  opening,
  peaks,
  onAudio,
  keeper,
  given,
  uncorrected,
  more,
  load,
  reader,
  sounds = noNames,
  children,
}: ResultProps) {
  const player = useMemo(() => new Player(original.audio_duration), [original]);
  const log = keeper.log.value,
    speakerNames = useMemo(() => namesOf(log), [log]),
    result = useMemo(() => corrected(original, log), [original, log]);
  useEffect(() => () => player.close(), [player]);
  useEffect(() => {
    if (audio && player.source.peek() !== audio) player.open(audio);
  }, [audio, player]);

  const speakers = useMemo(() => speakersOf(result), [result]);
  const names = (s: string) => speakerNames[s]?.trim() || s;
  const rename = (s: string, to: string) => {
    const name = to.trim();
    if (name !== names(s)) keeper.change({ op: 'annotate', speakers: { [s]: name && name !== s ? name : null } });
  };
  const undo = () => {
    for (let n = undos(original, log); n > 0; n--) keeper.change({ op: 'undo' });
  };
  const undone = effective(log).length ? undo : undefined;
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    const text = asText(result, original, names, false);
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      copyOldWay(text);
    }
    setCopied(true);
    setTimeout(() => setCopied(false), 2000);
  };
  const problem = useSignal('');
  const take = async (f: Format) => {
    problem.value = '';
    try {
      const file = f === 'txt' || f === 'json' ? write(f, result, original, names) : await given(f, speakers, names);
      save(`${stem(name)}.${f}`, file);
    } catch (e) {
      problem.value = e instanceof Error ? e.message : String(e);
    }
  };
  const warning = useSignal('');
  const attach = (file: File | undefined) => {
    if (!file) return;
    warning.value = '';
    player.open(file);
    onAudio?.(file);
    player.element.addEventListener(
      'loadedmetadata',
      () => {
        const d = player.element.duration;
        if (isFinite(d) && Math.abs(d - result.audio_duration) > Math.max(1, result.audio_duration * 0.01))
          warning.value = t('otherAudio', { a: clock(d), b: clock(result.audio_duration) });
      },
      { once: true },
    );
  };

  const searchId = 'search-in-transcript';
  useKeys((key, e) => {
    const time = player.time.value;
    if (key === ' ') player.toggle();
    else if (key === 'ArrowLeft') player.seek(time - 5);
    else if (key === 'ArrowRight') player.seek(time + 5);
    else if (key === ',' || key === '.') {
      const words = (result.segments ?? []).flatMap((s): { start: number }[] => s.words ?? [s]);
      const i = indexAt(words, time + 0.001) + (key === '.' ? 1 : -1);
      if (words[i]) player.seek(words[i].start);
    } else if (key === 'undo') undone?.();
    else if (key === '/') document.getElementById(searchId)?.focus();
    else return;
    e.preventDefault();
  });

  const has = !!player.source.value;
  return (
    <div class="result">
      <header class="result-head">
        <h1 dir="auto">{name}</h1>
        <p class="muted facts">
          <span>{clock(result.audio_duration)}</span>
          {result.language && (
            <span>
              {languageName(result.language, reader)}
              {result.language_probability !== undefined && result.language_probability < 0.9
                ? ` (${Math.round(result.language_probability * 100)} %)`
                : ''}
            </span>
          )}
          {result.num_speakers !== undefined && (
            <span>
              {result.num_speakers === 1 ? t('speakerFound') : t('speakersFound', { n: result.num_speakers })}
            </span>
          )}
          {!!result.billing?.amount && (
            <span>
              {t('charged', { amount: money(result.billing.amount), minutes: result.billing.billable_minutes })}
            </span>
          )}
        </p>
        {missingOf(result).map((reason) => (
          <p class="warn" role="note">
            {reason}
          </p>
        ))}
        {children}
      </header>

      <div class="card player">
        {speakers.length > 0 && <Speakers speakers={speakers} names={names} rename={rename} />}
        <Timeline result={result} player={player} speakers={speakers} names={names} called={sounds} peaks={peaks} />
        {!has && !opening && (
          <div class="attach">
            <span>{load ? t('keptAudio', { size: t('bytes', { n: Math.ceil(load.size / 1e6) }) }) : t('noAudio')}</span>
            {load && (
              <button type="button" class="primary" onClick={load.begin}>
                {t('loadAudio')}
              </button>
            )}
            <label class={load ? 'button' : 'button primary'}>
              {t('attach')}
              <input
                class="sr"
                type="file"
                accept="audio/*,video/*"
                onChange={(e) => attach(e.currentTarget.files?.[0])}
              />
            </label>
          </div>
        )}
        <Controls player={player} has={has} />
        {player.problem.value && (
          <p class="error" role="alert">
            {t('cantPlay', { why: player.problem.value })}
          </p>
        )}
        {warning.value && (
          <p class="warn" role="alert">
            {warning.value}
          </p>
        )}
      </div>

      <div class="take">
        <button type="button" onClick={copy} disabled={!result.segments?.length}>
          {copied ? t('copied') : t('copy')}
        </button>
        <span class="group" role="group" aria-label={t('download')}>
          <span class="muted">{t('download')}</span>
          {formats.map((f) => {
            const part = f === 'rttm' ? 'diarize_segments' : 'segments',
              written = uncorrected && f !== 'txt' && f !== 'json',
              lacking = written && result[part] !== original[part] ? t('uncorrected') : undefined;
            return (
              <button
                key={f}
                type="button"
                title={lacking}
                disabled={
                  !!lacking ||
                  (f === 'rttm' && !result.diarize_segments) ||
                  ((f === 'srt' || f === 'vtt') && !result.segments && !result.audio_events)
                }
                onClick={() => void take(f)}
              >
                {f.toUpperCase()}
              </button>
            );
          })}
          {more}
        </span>
      </div>
      {problem.value && (
        <p class="error" role="alert">
          {problem.value}
        </p>
      )}
      {keeper.problem.value && (
        <p class="error" role="alert">
          {t('notKept', { why: keeper.problem.value })}
        </p>
      )}

      <div class="card">
        <Transcript
          result={result}
          player={player}
          speakers={speakers}
          names={names}
          searchId={searchId}
          original={original}
          log={log}
          change={keeper.change}
          undo={undone}
        />
      </div>
      {result.audio_events && <Sounds result={original} player={player} called={sounds} />}
      <p class="muted small keys">
        {t(keeper.where)} {t('keys')} {t('rowKeys')}
      </p>
    </div>
  );
}

function copyOldWay(text: string) {
  const area = document.createElement('textarea');
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
}

/** useKeys handles the keys that are pressed outside of controls, and "undo". */
function useKeys(on: (key: string, e: KeyboardEvent) => void) {
  const latest = useRef(on);
  latest.current = on;
  useEffect(() => {
    const listen = (e: KeyboardEvent) => {
      const at = e.target as Element;
      if (at.closest('input:not([type=checkbox], [type=range]), textarea, select, [contenteditable]')) return;
      if ((e.ctrlKey || e.metaKey) && !e.altKey && !e.shiftKey && e.key === 'z') return latest.current('undo', e);
      if (e.ctrlKey || e.metaKey || e.altKey || at.closest('input')) return;
      if (e.key === ' ' && at.closest('button, a, summary, label')) return;
      latest.current(e.key, e);
    };
    document.addEventListener('keydown', listen);
    return () => document.removeEventListener('keydown', listen);
  }, []);
}

function Controls({ player, has }: { player: Player; has: boolean }) {
  const time = player.time.value;
  return (
    <div class="controls">
      <button
        type="button"
        class="round"
        disabled={!has}
        onClick={() => player.seek(time - 5)}
        aria-label={t('backward')}
        title={t('backward')}
      >
        ↺
      </button>
      <button
        type="button"
        class="round primary"
        disabled={!has}
        onClick={() => player.toggle()}
        aria-label={player.playing.value ? t('pause') : t('play')}
        title={player.playing.value ? t('pause') : t('play')}
      >
        <svg viewBox="0 0 16 16" aria-hidden="true">
          {player.playing.value ? <path d="M4 3h3v10H4zM9 3h3v10H9z" /> : <path d="M4 2.5v11l9-5.5z" />}
        </svg>
      </button>
      <button
        type="button"
        class="round"
        disabled={!has}
        onClick={() => player.seek(time + 5)}
        aria-label={t('forward')}
        title={t('forward')}
      >
        ↻
      </button>
      <input
        class="scrub"
        type="range"
        min={0}
        max={player.duration}
        step={0.1}
        value={time}
        aria-label={t('position')}
        aria-valuetext={t('of', { a: clock(time), b: clock(player.duration) })}
        onInput={(e) => player.seek(Number(e.currentTarget.value))}
      />
      <output class="clock">{t('of', { a: clock(time), b: clock(player.duration) })}</output>
      <label class="speed">
        <span class="sr">{t('speed')}</span>
        <select
          value={player.rate.value}
          title={t('speed')}
          onChange={(e) => player.setRate(Number(e.currentTarget.value))}
        >
          {[0.5, 0.75, 1, 1.25, 1.5, 2].map((r) => (
            <option key={r} value={r}>
              {r}×
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}

function Speakers({
  speakers,
  names,
  rename,
}: {
  speakers: string[];
  names: (s: string) => string;
  rename: (s: string, to: string) => void;
}) {
  const [editing, setEditing] = useState('');
  const field = useRef<HTMLInputElement>(null),
    group = useRef<HTMLDivElement>(null),
    back = useRef(-1);
  useLayoutEffect(() => {
    field.current?.select();
    if (!editing && back.current >= 0)
      group.current?.querySelectorAll<HTMLElement>('button.chip')[back.current]?.focus();
    back.current = -1;
  }, [editing]);
  const end = (i: number) => {
    back.current = i;
    setEditing('');
  };
  return (
    <div class="speakers" ref={group}>
      {speakers.map((s, i) =>
        editing === s ? (
          <form
            key={s}
            class={`chip ${voice(i)}`}
            onSubmit={(e) => {
              e.preventDefault();
              rename(s, field.current!.value);
              end(i);
            }}
          >
            <input
              ref={field}
              aria-label={t('rename', { name: names(s) })}
              defaultValue={names(s)}
              maxLength={60}
              size={14}
              onKeyDown={(e) => {
                if (e.key === 'Escape') end(i);
              }}
              onBlur={(e) => {
                if (editing === s && back.current < 0) {
                  rename(s, e.currentTarget.value);
                  setEditing('');
                }
              }}
            />
          </form>
        ) : (
          <button
            key={s}
            type="button"
            class={`chip ${voice(i)}`}
            onClick={() => setEditing(s)}
            aria-label={t('rename', { name: names(s) })}
            title={t('rename', { name: names(s) })}
          >
            <span class="dot" aria-hidden="true" />
            <span class="chip-name">{names(s)}</span>
            <span aria-hidden="true" class="pen">
              ✎
            </span>
          </button>
        ),
      )}
      <span class="muted small hint">{t('renameHint')}</span>
    </div>
  );
}

function Sounds({ result, player, called }: { result: Result; player: Player; called: Record<string, string> }) {
  const sounds = useMemo(() => soundsOf(result), [result]);
  return (
    <details class="card sounds">
      <summary>
        <h2>
          {t('sounds')} <span class="muted">({sounds.length})</span>
        </h2>
      </summary>
      {sounds.length === 0 ? (
        <p class="muted pad">{t('soundsNone')}</p>
      ) : (
        <VirtualList
          class="sound-rows"
          count={sounds.length}
          estimate={() => 34}
          label={t('sounds')}
          row={(i) => {
            const e = sounds[i];
            return (
              <div class="sound-row">
                <button
                  type="button"
                  class="time"
                  onClick={() => player.playFrom(e.start)}
                  aria-label={t('playFrom', { time: clock(e.start) })}
                >
                  {clock(e.start)}
                </button>
                <span class="sound-name">{called[e.class] ?? e.class}</span>
                <span class="muted small">
                  {clock(e.start, true)} – {clock(e.end, true)}
                </span>
                <span class="muted small">{Math.round(e.confidence * 100)} %</span>
              </div>
            );
          }}
        />
      )}
    </details>
  );
}
