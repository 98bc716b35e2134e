// Why a recording failed, in words for the reader.
import { t, type TextKey } from './texts';

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
