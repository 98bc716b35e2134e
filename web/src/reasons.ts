// Why a recording failed, and what was charged, in words for the reader.
import { lang, t, type TextKey } from './texts';

/**
 * plain are the page's words for the service's errors about a recording. Errors with more to say, such as the tracks
 * to choose from or a remedy, are shown as they are.
 */
const plain: [RegExp, TextKey][] = [
  [/": unsupported audio format: its content is not/, 'eUnsupported'],
  [/": audio file too small: /, 'eTooSmall'],
  [/": no audio in the file: (?!audio track)/, 'eNoAudio'],
  [/^canceled by its owner$/, 'eWithdrawn'],
  [/": damaged or incomplete recording: /, 'eDamaged'],
];

/** canceled reports whether an error message means that the owner or the operator canceled a task. */
export const canceled = (message = '') => message.startsWith('canceled by ');

/** reasonOf returns a task's error message in the page's words. */
export function reasonOf(message: string): string {
  const known = plain.find(([said]) => said.test(message));
  return known ? t(known[1]) : t('said', { message });
}

/** charged are the Chinese words for the parts of the service's descriptions of charges. */
const charged: [RegExp, string][] = [
  [/^Transcription, standard, (\d+) min/, '转写（标准），$1 分钟'],
  [/^Transcription, optimized, (\d+) min/, '转写（快速），$1 分钟'],
  [/, batch(?=[,;]|$)/, '，批量模式'],
  [/, decoded part of a cut or damaged recording/, '，截断或损坏录音中可解码的部分'],
  [/; ([\d.]+) of ([\d.]+) covered by resource packs$/, '；资源包支付 $2 中的 $1'],
  [/; ([\d.]+) covered by resource packs$/, '；资源包支付 $1'],
];

/** chargeOf returns the description of a transaction in the page's language; an operator's own text stays. */
export const chargeOf = (description: string) =>
  lang.value === 'zh' && charged.slice(0, 2).some(([said]) => said.test(description))
    ? charged.reduce((text, [said, words]) => text.replace(said, words), description)
    : description;
