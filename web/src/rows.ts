// The rows of a transcript: a sentence each, as the command's text has it (cmd/otograph/text.go).
import { corrected, effective, namesOf, type Change, type Entry } from './corrections';
import { joined, type Result, type Segment } from './result';

/** A Row is one or more segments that are shown as one; its id is the first segment's. */
export interface Row extends Segment {
  parts: readonly Segment[];
  /** edited is true if a correction changed the row. */
  edited: boolean;
}

/** longestPause is the longest pause within a row, in seconds. */
const longestPause = 1.5;

/** Abbreviations that end with a period and do not end a sentence. */
const titles = new Set('mr mrs ms dr prof st jr sr vs no sra mme hr fr z.b d.h bzw e.g i.e'.split(' '));

/** endsSentence reports whether a sentence ends between two texts. */
export function endsSentence(before: string, next: string): boolean {
  const text = before.trim().replace(/[\p{Pe}\p{Pf}"']+$/u, ''),
    first = /[\p{L}\p{Nd}]/u.exec(next)?.[0] ?? '';
  if (/\p{Ll}/u.test(first) || !/[。！？!?؟।॥።។։.…｡]$/u.test(text)) return false;
  const [word] = /\S*$/.exec(text)!,
    stem = word.replace(/\.*.$/u, '').replace(/^[^\p{L}\p{Nd}]+/u, '');
  if (!/[.…｡]$/u.test(word)) return true;
  return !titles.has(stem.toLowerCase()) && !(/^\p{L}$/u.test(stem) && /\p{Lu}/u.test(first)); // "Dr. Smith", "J. Smith"
}

/** rowsOf returns the rows of a corrected result. A segment that somebody corrected is a row of its own. */
export function rowsOf(r: Result, original: Result): Row[] {
  const untouched = new Set(original.segments),
    rows: Row[] = [];
  for (const s of r.segments ?? []) {
    const last = rows[rows.length - 1];
    if (
      last &&
      s.speaker === last.speaker &&
      s.language === last.language &&
      s.start - last.end < longestPause &&
      !endsSentence(last.text, s.text) &&
      !last.edited &&
      untouched.has(s)
    )
      rows[rows.length - 1] = { ...joined(last, s), parts: [...last.parts, s], edited: false };
    else rows.push({ ...s, parts: [s], edited: !untouched.has(s) });
  }
  return rows;
}

/** onRow returns the changes that join a row's segments and then change the row; "join" includes all of the next row. */
export function onRow(row: Row, change: Change, next?: Row): Change[] {
  const joins = row.parts.length - 1 + (change.op === 'join' && next ? next.parts.length - 1 : 0);
  return [...Array.from({ length: joins }, (): Change => ({ op: 'join', segment: row.id })), change];
}

/** undos counts the changes that the reader sees as the last one: it includes the joins that it needed. */
export function undos(original: Result, log: readonly Entry[]): number {
  const live = effective(log),
    look = (n: number) => {
      const left = live.slice(0, live.length - n),
        rows = rowsOf(corrected(original, left), original);
      return JSON.stringify([namesOf(left), rows.map((s) => [s.start, s.end, s.speaker, s.text])]);
    };
  let n = 1;
  for (const now = look(0); n < live.length && look(n) === now;) n++;
  for (const then = look(n); n < live.length && live[live.length - n - 1].op === 'join' && look(n + 1) === then;) n++;
  return n;
}
