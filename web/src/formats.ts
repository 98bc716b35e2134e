// The files that a result can be taken along as.
import type { Result, Segment } from './result';
import { missingOf, soundsOf } from './result';

export type Format = 'txt' | 'srt' | 'vtt' | 'json' | 'rttm';
type Names = (speaker: string) => string;

const maxColumns = 42,
  maxSeconds = 7,
  longPause = 2;

/** What a file says of a result that demonstration models found, word for word as the command does. */
const demoNote = 'Made by demo models for synthetic voices; not a real transcript.';
const demoSeconds = 5;
/** What a file with comments says of words whose times were not measured, word for word as the command does. */
const estimateNote = 'Some word times are estimated by letters, not measured.';

interface Cue {
  start: number;
  end: number;
  speaker?: string;
  text: string;
  sound?: boolean;
}
interface Atom {
  text: string;
  space: boolean;
  start: number;
  end: number;
}

/** columns is the width of a text, East Asian characters being two wide. */
function columns(text: string): number {
  let n = 0;
  for (const c of text)
    n +=
      /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Extended_Pictographic}/u.test(
        c,
      )
        ? 2
        : /\p{M}/u.test(c)
          ? 0
          : 1;
  return n;
}

/** atoms cuts a segment where a line may be broken; each piece has a time, its word's or by its place in the text. */
function atoms(s: Segment): Atom[] {
  const out: Atom[] = [];
  const text = s.text.replace(/\s+/g, ' ').trim();
  const parts =
    text.match(
      /[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\u3000-\u30ff][。，、！？；：」』）》]*|[^\s\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\u3000-\u30ff]+|\s/gu,
    ) ?? [];
  let at = 0,
    space = false,
    word = 0,
    wordEnd = 0;
  const words = s.words ?? [];
  const place = (i: number) => s.start + ((s.end - s.start) * i) / Math.max(1, text.length);
  for (const p of parts) {
    if (p === ' ') {
      space = true;
      at += 1;
      continue;
    }
    let start = place(at),
      end = place(at + p.length);
    if (words.length) {
      // the word whose text begins nearest at or before this piece
      while (word < words.length && wordEnd <= at) {
        const found = text.indexOf(words[word].word.trim(), wordEnd);
        if (found < 0) {
          word++;
          continue;
        }
        if (found > at) break;
        wordEnd = found + words[word].word.trim().length;
        if (wordEnd <= at) {
          word++;
          continue;
        }
        break;
      }
      const w = words[Math.min(word, words.length - 1)];
      start = w.start;
      end = w.end;
      if (wordEnd <= at + p.length) word++;
    }
    out.push({ text: p, space, start, end });
    space = false;
    at += p.length;
  }
  return out;
}

/** wrap sets atoms into one line or two that are as narrow as can be; null when they do not fit. */
function wrap(list: Atom[], lead: number): string[] | null {
  const line = (a: Atom[]) => a.map((x, i) => (i && x.space ? ' ' : '') + x.text).join('');
  const whole = line(list);
  if (lead + columns(whole) <= maxColumns || list.length === 1) return [whole];
  let best: string[] | null = null,
    least = Infinity;
  for (let i = 1; i < list.length; i++) {
    const a = line(list.slice(0, i)),
      b = line(list.slice(i));
    const wa = lead + columns(a),
      wb = columns(b);
    if (wa > maxColumns || wb > maxColumns) continue;
    if (Math.max(wa, wb) <= least) {
      least = Math.max(wa, wb);
      best = [a, b];
    }
  }
  return best;
}

function cues(r: Result, names: Names, prefix: boolean): (Cue & { lines: string[] })[] {
  const out: (Cue & { lines: string[] })[] = [];
  for (const s of r.segments ?? []) {
    const speaker = s.speaker ? names(s.speaker) : undefined;
    const lead = speaker && prefix ? Math.min(columns(speaker) + 3, maxColumns / 2) : 0;
    const all = atoms(s);
    for (let from = 0; from < all.length;) {
      let n = 1;
      while (
        from + n < all.length &&
        wrap(all.slice(from, from + n + 1), lead) &&
        all[from + n].end - all[from].start <= maxSeconds &&
        all[from + n].start - all[from + n - 1].end < longPause
      )
        n++;
      if (from + n < all.length) {
        // back to the end of a sentence or clause, where the page stays long enough
        cut: for (const marks of ['.?!。？！…', ',;:，；：、']) {
          for (let k = n; k > n / 2; k--)
            if (marks.includes(all[from + k - 1].text.slice(-1))) {
              n = k;
              break cut;
            }
        }
      }
      const page = all.slice(from, from + n),
        last = from + n >= all.length;
      const next = last ? Infinity : all[from + n].start;
      const ended = page[page.length - 1].end;
      const lines = wrap(page, lead) ?? [page.map((x, i) => (i && x.space ? ' ' : '') + x.text).join('')];
      out.push({
        start: from ? page[0].start : s.start,
        end: last ? s.end : next - ended < longPause ? next : ended,
        speaker,
        text: lines.join(' '),
        lines,
      });
      from += n;
    }
  }
  for (const e of soundsOf(r))
    out.push({ start: e.start, end: e.end, text: e.class, sound: true, lines: [`[${e.class}]`] });
  return out.filter((c) => c.end > c.start).sort((a, b) => a.start - b.start);
}

/** vttNote is the comment before the cues, empty if there is nothing to say. */
function vttNote(r: Result): string {
  const notes = [
    r.demo && demoNote,
    r.segments?.some((s) => s.words?.some((w) => w.interpolated)) && estimateNote,
    ...missingOf(r),
  ].filter(Boolean);
  return notes.length ? `NOTE ${notes.join(' ')}\n\n` : '';
}

/** demoCue is demoNote as the first subtitle, of the speaker DEMO. */
function demoCue(duration: number): Cue & { lines: string[] } {
  const end = Math.min(duration, demoSeconds),
    speaker = 'DEMO';
  const lead = columns(speaker) + 3;
  const lines = wrap(atoms({ id: 0, start: 0, end, text: demoNote }), lead) ?? [demoNote];
  return { start: 0, end, speaker, text: demoNote, lines };
}

function stamp(seconds: number, mark: string): string {
  const ms = Math.round(seconds * 1000);
  const two = (n: number) => String(n).padStart(2, '0');
  return `${two(Math.floor(ms / 3600000))}:${two(Math.floor(ms / 60000) % 60)}:${two(Math.floor(ms / 1000) % 60)}${mark}${String(ms % 1000).padStart(3, '0')}`;
}

/** What a SubRip player would take for a tag or an arrow is parted by an invisible word joiner. */
const plain = (text: string) =>
  text
    .replace(/-->/g, '-\u2060->')
    .replace(/<(?=[a-z/])/gi, '<\u2060')
    .replace(/\{(?=\\)/g, '{\u2060');
const escaped = (text: string) => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
const oneLine = (text: string) => text.replace(/\s+/g, ' ').trim();

/** asText writes one line for each run of a speaker, sounds on lines of their own. */
export function asText(r: Result, names: Names, sounds = true): string {
  const lines: { start: number; text: string }[] = [];
  for (const s of r.segments ?? [])
    lines.push({ start: s.start, text: (s.speaker ? `[${oneLine(names(s.speaker))}] ` : '') + oneLine(s.text) });
  if (sounds) for (const e of soundsOf(r)) lines.push({ start: e.start, text: `[${e.class}]` });
  return lines
    .sort((a, b) => a.start - b.start)
    .map((l) => l.text + '\n')
    .join('');
}

/** write gives the content of a file and its media type; file names the recording in RTTM. */
export function write(format: Format, r: Result, names: Names, file: string): { text: string; type: string } {
  switch (format) {
    case 'txt':
      return {
        text:
          (r.demo ? `DEMO: ${demoNote}\n\n` : '') +
          asText(r, names) +
          missingOf(r)
            .map((reason) => `\nWARNING: ${reason}\n`)
            .join(''),
        type: 'text/plain',
      };
    case 'srt':
      return {
        type: 'application/x-subrip',
        text: (r.demo ? [demoCue(r.audio_duration), ...cues(r, names, true)] : cues(r, names, true))
          .map(
            (c, i) =>
              `${i + 1}\n${stamp(c.start, ',')} --> ${stamp(c.end, ',')}\n${c.speaker ? `[${plain(oneLine(c.speaker))}] ` : ''}${c.lines.map(plain).join('\n')}\n\n`,
          )
          .join(''),
      };
    case 'vtt':
      return {
        type: 'text/vtt',
        text:
          'WEBVTT\n\n' +
          vttNote(r) +
          cues(r, names, false)
            .map(
              (c) =>
                `${stamp(c.start, '.')} --> ${stamp(c.end, '.')}\n${c.speaker ? `<v ${escaped(oneLine(c.speaker))}>` : ''}${c.lines.map(escaped).join('\n')}\n\n`,
            )
            .join(''),
      };
    case 'json':
      return { text: JSON.stringify(r, null, 2) + '\n', type: 'application/json' };
    case 'rttm': {
      const field = (text: string) => text.trim().replace(/\s+/g, '_') || '<NA>';
      return {
        type: 'text/plain',
        text:
          [...(r.demo ? [demoNote] : []), ...missingOf(r)].map((note) => `;; ${note}\n`).join('') +
          (r.diarize_segments ?? [])
            .filter((d) => d.end > d.start)
            .map(
              (d) =>
                `SPEAKER ${field(file)} 1 ${d.start.toFixed(3)} ${(d.end - d.start).toFixed(3)} <NA> <NA> ${field(names(d.speaker))} <NA> <NA>\n`,
            )
            .join(''),
      };
    }
  }
}

/** fileOf makes written content a file. */
export const fileOf = ({ text, type }: { text: string; type: string }) =>
  new Blob([text], { type: type + ';charset=utf-8' });

/** save hands a file to the browser's downloads. */
export function save(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const a = document.createElement('a');
  a.href = url;
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** stem is a file name without its last extension, safe as a name to save under. */
export function stem(name: string): string {
  // eslint-disable-next-line no-control-regex -- control characters are what is taken out
  return name.replace(/\.[^.]*$/, '').replace(/[\\/:*?"<>|\u0000-\u001f]/g, '_') || 'transcript';
}
