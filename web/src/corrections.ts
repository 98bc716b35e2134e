// Corrections of a result by hand, applied as the service applies them (internal/service/corrections).
import { signal, type ReadonlySignal } from '@preact/signals';
import { joined, type Result, type Segment, type Turn, type Word } from './result';
import type { TextKey } from './texts';

type Entries = Record<string, string | null>;

/** A Change is one correction; null in annotate removes an entry. */
export type Change =
  | { op: 'annotate'; speakers?: Entries; texts?: Entries }
  | { op: 'assign'; segment: number; speaker: string }
  | { op: 'split'; segment: number; at: number }
  | { op: 'join'; segment: number }
  | { op: 'undo' };

/** An Entry is a change in the log of a result. */
export type Entry = Change & { version: number; author?: string; made_at?: string };

/** A Keeper keeps the corrections of one result. */
export interface Keeper {
  log: ReadonlySignal<Entry[]>;
  change(to: Change): void;
  /** settled waits until every change is kept. */
  settled(): Promise<void>;
  /** problem is the reason why the last change is not kept; empty if it is. */
  problem: ReadonlySignal<string>;
  /** where is a text for the reader on where corrections are kept. */
  where: TextKey;
}

/** effective lists the changes that are not undone. */
export function effective(log: readonly Entry[]): Exclude<Entry, { op: 'undo' }>[] {
  const out: Exclude<Entry, { op: 'undo' }>[] = [];
  for (const e of log)
    if (e.op === 'undo') out.pop();
    else out.push(e);
  return out;
}

/** namesOf returns the names of speakers. */
export function namesOf(log: readonly Entry[]): Record<string, string> {
  const names: Entries = {};
  for (const e of effective(log)) if (e.op === 'annotate') Object.assign(names, e.speakers);
  return Object.fromEntries(Object.entries(names).filter((n): n is [string, string] => n[1] !== null));
}

/** madeOf returns the last change of each corrected segment, by id; largest is the largest id before corrections. */
export function madeOf(log: readonly Entry[], largest: number): Map<number, Entry> {
  const made = new Map<number, Entry>();
  for (const e of effective(log)) {
    if (e.op === 'annotate') for (const id of Object.keys(e.texts ?? {})) made.set(Number(id), e);
    else made.set(e.segment, e);
    if (e.op === 'split') made.set(largest + e.version, e);
  }
  return made;
}

/** placesOf returns the offsets of words in a text, in their order; -1 for a word that the text does not contain. */
function placesOf(text: string, words: readonly Word[]): number[] {
  let at = 0;
  return words.map((w) => {
    const word = w.word.trim(),
      found = word ? text.indexOf(word, at) : -1;
    if (found >= 0) at = found + word.length;
    return found;
  });
}

const unspaced =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\p{Script=Tibetan}]/u;
const ofWord = (c: string | undefined) => !!c && /[\p{L}\p{N}]/u.test(c) && !unspaced.test(c);

/** parted cuts a segment after a number of characters; undefined if it cannot be cut there. */
function parted(s: Segment, at: number, id: number): [Segment, Segment] | undefined {
  const letters = [...s.text],
    cut = letters.slice(0, at).join('').length,
    [left, right] = [s.text.slice(0, cut).trim(), s.text.slice(cut).trim()];
  if (!left || !right || (ofWord(letters[at - 1]) && ofWord(letters[at]))) return;
  const words = s.words ?? [],
    places = placesOf(s.text, words);
  if (places.some((p, k) => p >= 0 && p < cut && p + words[k].word.trim().length > cut)) return;
  const found = places.findIndex((p) => p >= cut),
    first = found < 0 ? words.length : found,
    before = words[first - 1]?.end,
    after = words[first]?.start,
    [l, r] = [[...left].length, [...right].length],
    between = Math.round((s.start + ((s.end - s.start) * l) / (l + r)) * 100) / 100;
  return [
    { ...s, text: left, end: before ?? after ?? between, words: s.words && words.slice(0, first) },
    { ...s, id, text: right, start: after ?? before ?? between, words: s.words && words.slice(first) },
  ];
}

/** cutNear returns the nearest number of characters after which a segment can be cut; 0 if there is none. */
export function cutNear(s: Segment, wanted: number): number {
  const n = [...s.text].length;
  for (let away = 0; away < n; away++)
    for (const at of [wanted - away, wanted + away]) if (at > 0 && at < n && parted(s, at, 0)) return at;
  return 0;
}

/** moved returns turns in which a segment's time belongs to its speaker instead of another one. */
function moved(turns: readonly Turn[], segments: readonly Segment[], s: Segment, old: string | undefined): Turn[] {
  let { start, end } = s;
  const left: Turn[] = [];
  for (const turn of turns) {
    if (turn.speaker !== old || turn.end <= s.start || turn.start >= s.end) {
      left.push(turn);
      continue;
    }
    for (const rest of [
      { ...turn, end: s.start },
      { ...turn, start: s.end },
    ]) {
      if (rest.end <= rest.start) continue;
      if (segments.some((o) => o.speaker === old && o.start < rest.end && o.end > rest.start)) left.push(rest);
      else [start, end] = [Math.min(start, rest.start), Math.max(end, rest.end)];
    }
  }
  const others = left.filter((turn) => {
    if (turn.speaker !== s.speaker || turn.start > end || turn.end < start) return true;
    [start, end] = [Math.min(start, turn.start), Math.max(end, turn.end)];
    return false;
  });
  const at = others.findIndex((turn) => turn.start > start);
  others.splice(at < 0 ? others.length : at, 0, { start, end, speaker: s.speaker! });
  return others;
}

/** corrected returns a result with corrections; segments without a change stay the same objects. */
export function corrected(r: Result, log: readonly Entry[]): Result {
  const live = effective(log).filter((c) => c.op !== 'annotate' || Object.keys(c.texts ?? {}).length);
  if (!r.segments || !live.length) return r;
  const segments = [...r.segments],
    largest = Math.max(0, ...segments.map((s) => s.id)),
    recognized = new Map<number, Segment>();
  let turns = r.diarize_segments;
  const assign = (i: number, speaker: string) => {
    const old = segments[i].speaker;
    if (old === speaker) return;
    segments[i] = { ...segments[i], speaker };
    if (turns) turns = moved(turns, segments, segments[i], old);
  };
  for (const c of live) {
    if (c.op === 'annotate') {
      segments.forEach((s, i) => {
        const text = c.texts?.[s.id];
        if (text === undefined) return;
        const first = recognized.get(s.id) ?? s;
        recognized.set(s.id, first);
        const same = text === null || text === first.text,
          places = placesOf(text ?? '', first.words ?? []);
        const words = same ? first.words : first.words?.filter((_, k) => places[k] >= 0);
        segments[i] = { ...first, speaker: s.speaker, text: text ?? first.text, words };
        if (same && s.speaker === first.speaker) segments[i] = first;
      });
      continue;
    }
    const i = segments.findIndex((s) => s.id === c.segment),
      s = segments[i],
      next = segments[i + 1];
    if (!s) continue;
    if (c.op === 'assign') assign(i, c.speaker);
    else if (c.op === 'split') {
      const parts = parted(s, c.at, largest + c.version);
      if (!parts) continue;
      recognized.delete(s.id);
      segments[i] = parts[0];
      let at = i + 1;
      while (at < segments.length && segments[at].start < parts[1].start) at++;
      segments.splice(at, 0, parts[1]);
    } else if (next) {
      if (s.speaker && next.speaker !== s.speaker) assign(i + 1, s.speaker);
      recognized.delete(s.id);
      segments.splice(i, 2, { ...joined(s, next), speaker: s.speaker || next.speaker });
    }
  }
  const speakers = new Set([...(turns ?? []), ...segments].flatMap((x) => x.speaker ?? []));
  const structural = live.some((c) => c.op === 'assign' || c.op === 'join');
  return {
    ...r,
    segments,
    ...(turns && structural ? { diarize_segments: turns, num_speakers: speakers.size } : {}),
  };
}

/** tabKeeper keeps corrections while the tab is open; a file:// page may have no storage. */
export function tabKeeper(name: string): Keeper {
  const place = `otograph.corrections.${name}`,
    log = signal<Entry[]>([]);
  try {
    log.value = JSON.parse(sessionStorage.getItem(place) ?? '[]') as Entry[];
  } catch {
    /* there are none */
  }
  return {
    log,
    change(to) {
      log.value = [...log.value, { ...to, version: log.value.length + 1 }];
      try {
        sessionStorage.setItem(place, JSON.stringify(log.value));
      } catch {
        /* the correction lasts as long as the page */
      }
    },
    settled: () => Promise.resolve(),
    problem: signal(''),
    where: 'editedNote',
  };
}
