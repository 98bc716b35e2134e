// Streams of frames that each begin with a header that gives their length: MP3
// (ISO/IEC 11172-3, 13818-3) and AAC in ADTS (ISO/IEC 13818-7).
import { ascii, bytesOf, pieceSeconds, type Cut } from './cut';

interface Frame { size: number; seconds: number }
/** A Parser reads the header of the frame at a place; null where there is none. It needs headerSize bytes. */
type Parser = (b: Uint8Array, at: number) => Frame | null;

const headerSize = 7, block = 1 << 20;

const kbps = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320], kbpsLow = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
const mp3Rates = [44100, 48000, 32000];

const mp3: Parser = (b, i) => {
  if (b[i] !== 0xff || (b[i + 1] & 0xe6) !== 0xe2) return null; // layer III
  const version = (b[i + 1] >> 3) & 3, rateIndex = (b[i + 2] >> 2) & 3, bits = (version === 3 ? kbps : kbpsLow)[b[i + 2] >> 4];
  if (version === 1 || rateIndex === 3 || !bits) return null;
  const rate = mp3Rates[rateIndex] / (version === 3 ? 1 : version === 2 ? 2 : 4), samples = version === 3 ? 1152 : 576;
  return { size: Math.floor((samples / 8) * bits * 1000 / rate) + ((b[i + 2] >> 1) & 1), seconds: samples / rate };
};

const aacRates = [96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000, 7350];

const adts: Parser = (b, i) => {
  if (b[i] !== 0xff || (b[i + 1] & 0xf6) !== 0xf0) return null;
  const rate = aacRates[(b[i + 2] >> 2) & 15], size = (b[i + 3] & 3) << 11 | b[i + 4] << 3 | b[i + 5] >> 5;
  return rate && size > headerSize ? { size, seconds: 1024 * ((b[i + 6] & 3) + 1) / rate } : null;
};

export const cutMp3 = (file: Blob, from: number) => cutFrames(file, from, mp3);
export const cutAdts = (file: Blob, from: number) => cutFrames(file, from, adts);

async function* cutFrames(file: Blob, from: number, parse: Parser): AsyncGenerator<Cut> {
  let at = from, start = -1, seconds = 0, lost = true;
  while (at + headerSize <= file.size) {
    const b = await bytesOf(file, at, at + block);
    let i = 0;
    while (i + headerSize <= b.length) {
      const f = parse(b, i);
      // After a gap, a frame is one only if another follows it.
      if (!f || (lost && i + f.size + headerSize <= b.length && !parse(b, i + f.size))) { i++; lost = true; continue; }
      lost = false;
      if (start < 0) {
        const info = ascii(b, i, Math.min(64, b.length - i)); // a first frame that tells of the whole file has no sound
        if (parse === mp3 && /Xing|Info|VBRI/.test(info)) { i += f.size; continue; }
        start = at + i;
      }
      i += f.size;
      seconds += f.seconds;
      if (seconds >= pieceSeconds) {
        yield { data: file.slice(start, at + i), seconds };
        start = at + i;
        seconds = 0;
      }
    }
    at += Math.max(i, 1);
  }
  if (start >= 0 && seconds > 0) yield { data: file.slice(start), seconds };
}
