// Cuts a long recording into pieces that a browser can decode one by one, so
// that hours need no more memory than minutes.
import { cutFlac } from './cutflac';
import { cutAdts, cutMp3 } from './cutframes';
import { cutMatroska } from './cutmatroska';
import { cutMp4 } from './cutmp4';
import { cutOgg } from './cutogg';
import { cutWav } from './cutwav';

/** A Cut is a piece that can be decoded as if it were a file, and how long it lasts in the recording, in seconds. */
export interface Cut { data: Blob; seconds: number }

/** pieceSeconds is about how long a piece is. */
export const pieceSeconds = 60;

/** bytesOf reads a part of a file; it is shorter where the file ends. */
export const bytesOf = async (file: Blob, from: number, to: number) => new Uint8Array(await file.slice(from, to).arrayBuffer());

/** ascii reads n bytes as text. */
export const ascii = (b: Uint8Array, at: number, n: number) => String.fromCharCode(...b.subarray(at, at + n));

/** cut gives the pieces of a recording in order; null where its container is not one that can be cut here. */
export async function cut(file: Blob): Promise<AsyncGenerator<Cut> | null> {
  let from = 0, b = await bytesOf(file, 0, 16);
  if (b.length < 16) return null;
  if (ascii(b, 0, 3) === 'ID3') { // tags before the sound; their size has seven bits to a byte
    from = 10 + ((b[6] & 127) << 21 | (b[7] & 127) << 14 | (b[8] & 127) << 7 | (b[9] & 127)) + (b[5] & 16 ? 10 : 0);
    b = await bytesOf(file, from, from + 16);
    if (b.length < 16) return null;
  }
  const mark = ascii(b, 0, 4);
  if ((mark === 'RIFF' || mark === 'RF64') && ascii(b, 8, 4) === 'WAVE') return cutWav(file);
  if (mark === 'fLaC') return cutFlac(file, from);
  if (mark === 'OggS') return cutOgg(file);
  if (ascii(b, 4, 4) === 'ftyp') return cutMp4(file);
  if (mark === '\x1a\x45\xdf\xa3') return cutMatroska(file);
  if (b[0] === 0xff && (b[1] & 0xf6) === 0xf0) return cutAdts(file, from);
  if ((b[0] === 0xff && (b[1] & 0xe6) === 0xe2) || from) return cutMp3(file, from);
  return null;
}
