// Why a recording failed, in words for the reader.
import { t, type TextKey } from './texts';

/** plain are the page's words for the service's errors about a recording. */
const plain: [string, TextKey][] = [
  ['unsupported audio format', 'eUnsupported'],
  ['audio file too small', 'eTooSmall'],
  ['no audio in the file', 'eNoAudio'],
  ['canceled by its owner', 'eWithdrawn'],
  ['damaged or incomplete recording', 'eDamaged'],
];

/** reasonOf is a task's error message as the page says it. */
export function reasonOf(message: string): string {
  const known = plain.find(([said]) => message.includes(said));
  return known ? t(known[1]) : t('said', { message });
}
