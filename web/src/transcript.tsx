// The text: speakers in their colors, the current word, search.
import { useComputed, useSignalEffect } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { cutNear, madeOf, type Change, type Entry } from './corrections';
import type { Player } from './player';
import type { Hit, Piece, Result, Segment } from './result';
import { crowded, crowdOf, find, indexAt, pieces } from './result';
import { onRow, rowsOf, type Row } from './rows';
import { clock, t, when } from './texts';
import { voice } from './theme';
import { VirtualList, type ListHandle } from './virtuallist';

/** Words with a lower probability are marked. */
const doubtful = 0.5;

interface Place {
  segment: number;
  word: number;
}

/** placeAt returns the segment and word at a time; -1 if there is none. */
export function placeAt(segments: readonly Segment[], time: number): Place {
  const segment = indexAt(segments, time);
  if (segment < 0 || time > segments[segment].end + 0.3) return { segment: -1, word: -1 };
  const words = segments[segment].words;
  return { segment, word: words ? indexAt(words, time) : -1 };
}

/** marked shows a piece of text, the search's hits in it as marks. */
function marked(p: Piece, hits: Hit[], chosen: Hit | undefined): ComponentChildren {
  const inside = hits.filter((h) => h.from < p.at + p.text.length && h.to > p.at);
  if (!inside.length) return p.text;
  const out: ComponentChildren[] = [];
  let at = 0;
  for (const h of inside) {
    const from = Math.max(0, h.from - p.at),
      to = Math.min(p.text.length, h.to - p.at);
    out.push(p.text.slice(at, from), <mark class={h === chosen ? 'chosen' : ''}>{p.text.slice(from, to)}</mark>);
    at = to;
  }
  out.push(p.text.slice(at));
  return out;
}

export interface TranscriptProps {
  result: Result;
  player: Player;
  speakers: string[];
  names: (s: string) => string;
  searchId: string;
  /** original is the result before its corrections. */
  original: Result;
  log: readonly Entry[];
  change: (to: Change) => void;
  /** undo reverts the last correction, if there is one. */
  undo?: () => void;
}

export function Transcript(props: TranscriptProps) {
  const { result, player, speakers, names, searchId, original, log, undo } = props;
  const segments = useMemo(() => rowsOf(result, original), [result, original]);
  const made = useMemo(() => madeOf(log, Math.max(0, ...(original.segments ?? []).map((s) => s.id))), [log, original]);
  const crowd = useMemo(() => crowdOf(result), [result]);
  const list = useRef<ListHandle>(null);
  const [query, setQuery] = useState('');
  const [chosen, setChosen] = useState(0);
  const [doubts, setDoubts] = useState(true);
  const [editing, setEditing] = useState(-1); // the id of a segment
  const follow = useRef(true),
    back = useRef(-1),
    all = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    // after a correction by keyboard the focus is where it was before
    if (editing < 0 && back.current >= 0)
      all.current?.querySelector<HTMLElement>(`[data-segment="${back.current}"] button.edit`)?.focus();
    back.current = -1;
  }, [editing]);
  const hits = useMemo(() => find(segments, query), [segments, query]);
  const bySegment = useMemo(() => {
    const map = new Map<number, Hit[]>();
    for (const h of hits) {
      const l = map.get(h.segment);
      if (l) l.push(h);
      else map.set(h.segment, [h]);
    }
    return map;
  }, [hits]);
  const cut = useMemo(() => new Map<number, Piece[]>(), [segments]);
  const piecesOf = (i: number) => cut.get(i) ?? (cut.set(i, pieces(segments[i])), cut.get(i)!);
  const hasWords = useMemo(() => segments.some((s) => s.words?.length), [segments]);

  // Only a change of the word draws the rows again, not each tick of the clock.
  const key = useComputed(() => {
    const p = placeAt(segments, player.time.value);
    return `${p.segment}:${p.word}`;
  });
  const [nowSegment, nowWord] = key.value.split(':').map(Number);
  const nowOnly = useComputed(() => Number(key.value.split(':')[0]));
  useSignalEffect(() => {
    const at = nowOnly.value;
    if (at < 0 || !follow.current || !list.current || !player.playing.peek()) return;
    const [first, last] = list.current.visible();
    if (at < first || at > last) list.current.show(at);
  });

  const go = (step: number) => {
    if (!hits.length) return;
    const next = (chosen + step + hits.length) % hits.length;
    setChosen(next);
    list.current?.show(hits[next].segment);
  };
  const onSearch = (text: string) => {
    setQuery(text);
    const found = find(segments, text),
      time = player.time.peek();
    const from = Math.max(
      0,
      found.findIndex((h) => segments[h.segment].end > time),
    ); // the first hit from here on, or else of all
    setChosen(from);
    if (found.length) list.current?.show(found[from].segment);
  };
  const onClick = (e: MouseEvent) => {
    if (getSelection()?.isCollapsed === false) return; // text is being selected
    const target = e.target as Element,
      row = target.closest<HTMLElement>('[data-segment]');
    if (!row || target.closest('button, textarea')) return;
    const s = segments[Number(row.dataset.segment)],
      word = target.closest<HTMLElement>('[data-word]');
    if (word) player.playFrom(s.words![Number(word.dataset.word)].start);
    else if (target.closest('.text')) player.playFrom(s.start);
  };

  /** correct changes a row. */
  const correct = (i: number, to: Change) => onRow(segments[i], to, segments[i + 1]).forEach(props.change);
  /** stay focuses the button of a row once the row is drawn. */
  const stay = (i: number) => {
    list.current?.show(i, 'auto');
    setTimeout(() => all.current?.querySelector<HTMLElement>(`[data-segment="${i}"] button.edit`)?.focus());
  };
  const onKey = (e: KeyboardEvent) => {
    const target = e.target as Element,
      row = target.closest<HTMLElement>('[data-segment]');
    if (!row || target.closest('.editor') || e.ctrlKey || e.metaKey || e.altKey) return;
    const i = Number(row.dataset.segment),
      s = segments[i];
    if (/^[1-9]$/.test(e.key) && Number(e.key) <= speakers.length) {
      const speaker = speakers[Number(e.key) - 1];
      if (speaker !== s.speaker) correct(i, { op: 'assign', segment: s.id, speaker });
    } else if (e.key === '0') correct(i, { op: 'assign', segment: s.id, speaker: newSpeaker(speakers) });
    else if (e.key === 'j' && segments[i + 1]) correct(i, { op: 'join', segment: s.id });
    else if (e.key === 'ArrowDown' && segments[i + 1]) stay(i + 1);
    else if (e.key === 'ArrowUp' && i > 0) stay(i - 1);
    else return;
    e.preventDefault();
  };
  /** ended applies the result of a row's editor. */
  const ended = (i: number, edit: Edit) => {
    const s = segments[i];
    if (edit.typed) back.current = i;
    setEditing(-1);
    const texts = edit.text !== undefined && edit.text !== s.text && { [s.id]: edit.text };
    if (texts) correct(i, { op: 'annotate', texts });
    if (edit.then) onRow(texts ? { ...s, parts: [s] } : s, edit.then, segments[i + 1]).forEach(props.change);
  };

  const row = (i: number) => {
    const s = segments[i],
      who = s.speaker ? speakers.indexOf(s.speaker) : -1;
    const found = bySegment.get(i) ?? [],
      pick = hits[chosen];
    return (
      <div class={`segment ${voice(who)} ${i === nowSegment ? 'now' : ''}`} data-segment={i}>
        <button
          type="button"
          class="time"
          onClick={() => player.playFrom(s.start)}
          aria-label={t('playFrom', { time: clock(s.start) })}
        >
          {clock(s.start)}
        </button>
        {s.speaker && (
          <span class="who" title={names(s.speaker)} dir="auto">
            {names(s.speaker)}
          </span>
        )}
        {editing === s.id ? (
          <Editor
            s={s}
            last={i + 1 === segments.length}
            caret={i === nowSegment ? piecesOf(i).find((p) => p.word === nowWord)?.at : undefined}
            speakers={speakers}
            names={names}
            change={(to) => correct(i, to)}
            onDone={(edit) => ended(i, edit)}
          />
        ) : (
          <p class="text" lang={s.language ?? result.language} dir="auto">
            {piecesOf(i).map((p, k) => {
              if (p.word === undefined) return <span key={k}>{marked(p, found, pick)}</span>;
              const w = s.words![p.word],
                unsure = doubts && w.probability < doubtful,
                together = crowded(crowd, w.start, w.end);
              const title = [
                unsure && t('unsure', { percent: Math.round(w.probability * 100) }),
                together && t('together'),
                w.interpolated && t('interpolated'),
              ].filter(Boolean);
              return (
                <span
                  key={k}
                  data-word={p.word}
                  class={`word ${unsure ? 'unsure' : ''} ${together ? 'together' : ''} ${i === nowSegment && p.word === nowWord ? 'now' : ''}`}
                  title={title.length ? title.join(' · ') : undefined}
                >
                  {marked(p, found, pick)}
                </span>
              );
            })}
            {s.edited && (
              <span class="muted small edited" title={whoMade(made.get(s.id))}>
                {' '}
                · {t('edited')}
              </span>
            )}
          </p>
        )}
        <button
          type="button"
          class="edit"
          onClick={() => setEditing(s.id)}
          title={t('edit')}
          aria-label={t('editTitle', { time: clock(s.start) })}
        >
          ✎
        </button>
      </div>
    );
  };

  return (
    <section class="transcript" ref={all} aria-label={t('transcript')} onKeyDown={onKey}>
      <div class="bar">
        <h2>{t('transcript')}</h2>
        <div class="search" role="search">
          <input
            id={searchId}
            type="search"
            value={query}
            placeholder={t('search')}
            aria-label={t('search')}
            onInput={(e) => onSearch(e.currentTarget.value)}
            onKeyDown={(e) => {
              if (e.key === 'Enter') {
                e.preventDefault();
                go(e.shiftKey ? -1 : 1);
              }
              if (e.key === 'Escape') {
                onSearch('');
                e.currentTarget.blur();
              }
            }}
          />
          <span class="small muted" role="status">
            {query.trim() ? (hits.length ? t('searchCount', { i: chosen + 1, n: hits.length }) : t('searchNone')) : ''}
          </span>
          {hits.length > 1 && (
            <>
              <button type="button" class="small" onClick={() => go(-1)} aria-label={t('prev')}>
                ↑
              </button>
              <button type="button" class="small" onClick={() => go(1)} aria-label={t('next')}>
                ↓
              </button>
            </>
          )}
        </div>
        {hasWords && (
          <label class="check small">
            <input type="checkbox" checked={doubts} onChange={(e) => setDoubts(e.currentTarget.checked)} />
            {t('unsureShow')}
          </label>
        )}
        <label class="check small">
          <input
            type="checkbox"
            defaultChecked
            onChange={(e) => {
              follow.current = e.currentTarget.checked;
            }}
          />
          {t('follow')}
        </label>
        {(undo || result !== original) && (
          <button type="button" class="small" disabled={!undo} onClick={undo} title={t('undoTitle')}>
            ↶ {t('undo')}
          </button>
        )}
      </div>
      {hasWords && crowd.length > 0 && (
        <p class="legend small muted">
          <span class="word together">{t('togetherWord')}</span>: {t('together')}
        </p>
      )}
      {segments.length === 0 ? (
        <p class="muted pad">{t(result.segments ? 'noText' : 'textOff')}</p>
      ) : (
        <VirtualList
          class="transcript-rows"
          count={segments.length}
          estimate={(i) => 35 + 24 * Math.floor(segments[i].text.length / 85)}
          row={row}
          label={t('transcript')}
          handle={list}
          onClick={onClick}
        />
      )}
    </section>
  );
}

/** whoMade returns who made a change and when, if the service states it. */
const whoMade = (e: Entry | undefined) => e?.author && e.made_at && `${e.author}, ${when(e.made_at)}`;

/** newSpeaker names a speaker whom a result does not have. */
function newSpeaker(speakers: readonly string[]): string {
  let n = speakers.length;
  while (speakers.includes(`SPEAKER_${n}`)) n++;
  return `SPEAKER_${n}`;
}

/** An Edit is the result of an editor. */
interface Edit {
  text?: string;
  /** then is a further change. */
  then?: Change;
  /** typed is true if a key or a button of the editor ended it. */
  typed: boolean;
}

interface EditorProps {
  s: Row;
  last: boolean;
  /** caret is the first position of the cursor in the text. */
  caret?: number;
  speakers: string[];
  names: (s: string) => string;
  change: (to: Change) => void;
  onDone: (edit: Edit) => void;
}

/** Editor corrects one segment: its text and its speaker; it cuts it, and joins it with the next one. */
function Editor({ s, last, caret, speakers, names, change, onDone }: EditorProps) {
  const field = useRef<HTMLTextAreaElement>(null),
    over = useRef(false);
  useLayoutEffect(() => {
    field.current?.focus();
    if (caret !== undefined) field.current?.setSelectionRange(caret, caret);
  }, []);
  const textOf = (value: string) => value.replace(/\s+/g, ' ').trim();
  const end = (typed: boolean, then?: Change, keep = true) => {
    if (over.current) return; // a removed field loses the focus as well
    over.current = true;
    onDone({ text: (keep && textOf(field.current!.value)) || undefined, then, typed });
  };
  const leave = useRef(end);
  leave.current = end;
  useLayoutEffect(() => () => leave.current(false), []); // the reader has left the page, or scrolled on
  const split = () => {
    const { value, selectionStart } = field.current!,
      before = value.slice(0, selectionStart).replace(/\s+/g, ' ').trimStart(),
      text = textOf(value) || s.text,
      at = cutNear({ ...s, text }, [...before].length);
    if (at) end(true, { op: 'split', segment: s.id, at });
  };
  return (
    <div
      class="text editor"
      onFocusOut={(e) => {
        if (!e.currentTarget.contains(e.relatedTarget as Node | null)) end(false);
      }}
      onKeyDown={(e) => {
        if (e.key === 'Escape') end(true, undefined, false);
        else if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) split();
        else if (e.key === 'Enter' && !e.shiftKey && !e.isComposing && e.target === field.current) end(true);
        else return;
        e.preventDefault();
      }}
    >
      <textarea
        ref={field}
        dir="auto"
        rows={2}
        defaultValue={s.text}
        aria-label={t('editTitle', { time: clock(s.start) })}
      />
      <div class="tools">
        {/* a press on a button leaves the cursor where it is */}
        <button type="button" class="small" onMouseDown={(e) => e.preventDefault()} onClick={split}>
          {t('split')}
        </button>
        <button
          type="button"
          class="small"
          disabled={last}
          onMouseDown={(e) => e.preventDefault()}
          onClick={() => end(true, { op: 'join', segment: s.id })}
        >
          {t('join')}
        </button>
        <label class="small">
          {t('speaker')}{' '}
          <select
            value={s.speaker ?? ''}
            onChange={(e) => change({ op: 'assign', segment: s.id, speaker: e.currentTarget.value })}
          >
            {!s.speaker && <option value="" />}
            {speakers.map((speaker) => (
              <option key={speaker} value={speaker}>
                {names(speaker)}
              </option>
            ))}
            <option value={newSpeaker(speakers)}>{t('newSpeaker')}</option>
          </select>
        </label>
      </div>
      <span class="muted small">{t('editHint')}</span>
    </div>
  );
}
