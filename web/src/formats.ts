// The files as which a result can be saved.
import type { Result } from './result';
import { missingOf, soundsOf } from './result';
import { rowsOf } from './rows';

/** The formats that the page writes. */
export type OwnFormat = 'txt' | 'json';
/** The formats that the service or the command writes for the page. */
export type GivenFormat = 'srt' | 'vtt' | 'rttm';
export type Format = OwnFormat | GivenFormat;
type Names = (speaker: string) => string;

/** An invisible word joiner breaks up text that a SubRip player would take for a tag or an arrow. */
const plain = (text: string) =>
  text
    .replace(/-->/g, '-\u2060->')
    .replace(/<(?=[a-z/])/gi, '<\u2060')
    .replace(/\{(?=\\)/g, '{\u2060');
const escaped = (text: string) => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
const oneLine = (text: string) => text.replace(/\s+/g, ' ').trim();

/** asText writes one line for each sentence of a corrected result, sounds on lines of their own. */
export function asText(r: Result, original: Result, names: Names, sounds = true): string {
  const lines: { start: number; text: string }[] = [];
  for (const s of rowsOf(r, original))
    lines.push({ start: s.start, text: (s.speaker ? `[${oneLine(names(s.speaker))}] ` : '') + oneLine(s.text) });
  if (sounds) for (const e of soundsOf(r)) lines.push({ start: e.start, text: `[${e.class}]` });
  return lines
    .sort((a, b) => a.start - b.start)
    .map((l) => l.text + '\n')
    .join('');
}

/** write returns the content of a file that the page itself writes. */
export function write(format: OwnFormat, r: Result, original: Result, names: Names): Blob {
  if (format === 'json') return fileOf(JSON.stringify(r, null, 2) + '\n', 'application/json');
  return fileOf(
    asText(r, original, names) +
      missingOf(r)
        .map((reason) => `\nWARNING: ${reason}\n`)
        .join(''),
    'text/plain',
  );
}

/** field returns a name as RTTM writes it. */
const field = (name: string) => name.replace(/ /g, '_') || '<NA>';

/** renamed replaces the speakers' names in a file that the command wrote with the reader's names. */
export function renamed(format: GivenFormat, text: string, speakers: string[], names: Names): Blob {
  /** as returns the new name for a name in the file; form is how the format writes a name. */
  const as = (form: (name: string) => string, written: string) => {
    const speaker = speakers.find((s) => form(oneLine(s)) === written);
    return speaker === undefined ? written : form(oneLine(names(speaker)));
  };
  switch (format) {
    case 'srt':
      text = text.replace(/^(- )?\[(.*?)\] /gm, (_, dash = '', s: string) => `${dash}[${as(plain, s)}] `);
      return fileOf(text, 'application/x-subrip');
    case 'vtt':
      text = text.replace(/^<v (.*?)>/gm, (_, s: string) => `<v ${as(escaped, s)}>`);
      return fileOf(text, 'text/vtt');
    case 'rttm':
      text = text.replace(/^(SPEAKER (?:\S+ ){6})(\S+)/gm, (_, before: string, s: string) => before + as(field, s));
      return fileOf(text, 'text/plain');
  }
}

/** fileOf returns a text as a file. */
const fileOf = (text: string, type: string) => new Blob([text], { type: type + ';charset=utf-8' });

/** save hands a file to the browser's downloads. */
export function save(name: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  const a = document.createElement('a');
  a.href = url;
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** stem returns a file name without its last extension, safe as a name to save under. */
export function stem(name: string): string {
  // eslint-disable-next-line no-control-regex -- removes control characters
  return name.replace(/\.[^.]*$/, '').replace(/[\\/:*?"<>|\u0000-\u001f]/g, '_') || 'transcript';
}
