// The parts of the specification's Task result that the page uses.
export interface Word {
  word: string;
  start: number;
  end: number;
  probability: number;
  /** The times were not measured but interpolated by letters. */
  interpolated?: true;
}
export interface Segment {
  id: number;
  start: number;
  end: number;
  text: string;
  speaker?: string;
  language?: string;
  words?: Word[];
}
export interface Turn {
  start: number;
  end: number;
  speaker: string;
}
export interface SoundEvent {
  start: number;
  end: number;
  class: string;
  confidence: number;
}
/** Billing is the price of a task, with the parts that it has. */
export interface Billing {
  mode: string;
  billable_minutes: number;
  amount: number;
  balance: number;
  detail?: Partial<
    Record<
      | 'base_price_per_hour'
      | 'base_amount'
      | 'diarize_price_per_hour'
      | 'diarize_amount'
      | 'events_price_per_hour'
      | 'events_amount'
      | 'subtotal'
      | 'batch_discount'
      | 'total',
      number
    >
  >;
}
export interface Result {
  task_id?: string;
  audio_duration: number;
  audio_md5: string;
  language?: string;
  language_probability?: number;
  segments?: Segment[];
  vad_segments?: { start: number; end: number }[];
  num_speakers?: number;
  diarize_segments?: Turn[];
  speaker_embeddings?: { speaker_id: string }[];
  audio_events?: SoundEvent[];
  /** Speakers who are, or may be, known voices of the account. */
  voices?: { speaker: string; name: string; probability?: number; suggested?: true }[];
  /** The parts of the recording that are missing (option "audio"), and options without effect. */
  warnings?: { option: string; reason: string }[];
  billing?: Billing;
}

/** missingOf lists the missing parts of the recording. */
export const missingOf = (r: Result): string[] =>
  (r.warnings ?? []).filter((w) => w.option === 'audio').map((w) => w.reason);

/** speakersOf lists the speakers of a result, in the order of their numbers. */
export function speakersOf(r: Result): string[] {
  const found = new Set<string>();
  for (const d of r.diarize_segments ?? []) found.add(d.speaker);
  for (const s of r.segments ?? []) if (s.speaker) found.add(s.speaker);
  return [...found].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
}

export interface Span {
  start: number;
  end: number;
}

/** crowdOf lists the stretches in which more than one speaker talks, in order of time. */
export function crowdOf(r: Result): Span[] {
  const out: Span[] = [];
  let reach = 0;
  for (const turn of [...(r.diarize_segments ?? [])].sort((a, b) => a.start - b.start)) {
    const end = Math.min(reach, turn.end),
      last = out[out.length - 1];
    if (turn.start < end) {
      if (last && turn.start <= last.end) last.end = Math.max(last.end, end);
      else out.push({ start: turn.start, end });
    }
    reach = Math.max(reach, turn.end);
  }
  return out;
}

/** crowded reports whether more than one speaker talks during at least half of a stretch. */
export function crowded(crowd: readonly Span[], start: number, end: number): boolean {
  let inside = 0;
  for (let i = Math.max(0, indexAt(crowd, start)); i < crowd.length && crowd[i].start < end; i++)
    inside += Math.max(0, Math.min(end, crowd[i].end) - Math.max(start, crowd[i].start));
  return inside > 0 && inside >= (end - start) / 2;
}

/** soundsOf lists the sound events worth showing, as the service's files do. */
export function soundsOf(r: Result): SoundEvent[] {
  return (r.audio_events ?? []).filter((e) => isSound(e.class, !!r.segments));
}

/** isSound reports whether a class is shown: silence is no sound, and a transcript shows who spoke better than "Speech" does. */
export const isSound = (name: string, transcribed: boolean) =>
  name !== 'Silence' && !(transcribed && name === 'Speech');

export interface Piece {
  text: string;
  at: number;
  word?: number;
}

/** pieces cuts a segment's text into its words and the text between them, so that all of the text is shown. */
export function pieces(s: Segment): Piece[] {
  const out: Piece[] = [];
  let at = 0;
  (s.words ?? []).forEach((w, i) => {
    const text = w.word.trim();
    const found = text ? s.text.indexOf(text, at) : -1;
    if (found < 0) return; // the text does not contain the word, so it has no place to be shown
    if (found > at) out.push({ text: s.text.slice(at, found), at });
    out.push({ text, at: found, word: i });
    at = found + text.length;
  });
  if (at < s.text.length) out.push({ text: s.text.slice(at), at });
  return out;
}

/** indexAt finds the last item that starts at or before a time; -1 when there is none. Items are in order of start. */
export function indexAt(items: readonly { start: number }[], time: number): number {
  let low = 0,
    high = items.length;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (items[mid].start <= time) low = mid + 1;
    else high = mid;
  }
  return low - 1;
}

export interface Hit {
  segment: number;
  from: number;
  to: number;
}

/** find lists where a text occurs in the segments, without regard to case. */
export function find(segments: readonly Segment[], query: string): Hit[] {
  const q = query.trim().toLowerCase();
  const hits: Hit[] = [];
  if (!q) return hits;
  segments.forEach((s, segment) => {
    const text = s.text.toLowerCase();
    for (let from = text.indexOf(q); from >= 0; from = text.indexOf(q, from + q.length))
      hits.push({ segment, from, to: from + q.length });
  });
  return hits;
}

const unseparated = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\u3000-\u303f\uff00-\uffef]/u;

/** joinedText returns the joined text of two segments. */
export function joinedText(before: string, next: string): string {
  if (!before || !next) return before + next;
  const together = unseparated.test([...before].pop()!) && unseparated.test([...next][0]);
  return before + (together ? '' : ' ') + next;
}

/** joined returns two segments as one, with the id and the speaker of the first one. */
export const joined = (a: Segment, b: Segment): Segment => ({
  ...a,
  end: Math.max(a.end, b.end),
  text: joinedText(a.text, b.text),
  words: a.words || b.words ? [...(a.words ?? []), ...(b.words ?? [])] : undefined,
});
