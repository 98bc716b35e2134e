// FLAC (RFC 9639): frames are found by their headers, whose check sum tells them
// from chance; each piece gets a STREAMINFO of its own.
import { bytesOf, pieceSeconds, type Cut } from './cut';

const block = 1 << 18;

const crcTable = Uint8Array.from({ length: 256 }, (_, n) => {
  for (let k = 0; k < 8; k++) n = n & 128 ? (n << 1) ^ 0x07 : n << 1;
  return n & 255;
});

/** numberOf reads the frame's or sample's number in the frame header at i; -1 where there is no header. */
function numberOf(b: Uint8Array, i: number, variable: number): number {
  if (b[i] !== 0xff || b[i + 1] !== (0xf8 | variable) || b[i + 3] & 1) return -1;
  const sizeCode = b[i + 2] >> 4, rateCode = b[i + 2] & 15;
  if (sizeCode === 0 || rateCode === 15 || b[i + 3] >> 4 > 10) return -1;
  const lead = b[i + 4], more = lead < 0x80 ? 0 : Math.clz32((~lead & 0xff) << 24) - 1; // as UTF-8 does it, up to 36 bits
  if (more < 0 || more > 6 || (lead >= 0x80 && more === 0)) return -1;
  let number = more ? lead & (0x3f >> more) : lead;
  for (let k = 1; k <= more; k++) {
    if ((b[i + 4 + k] & 0xc0) !== 0x80) return -1;
    number = number * 64 + (b[i + 4 + k] & 63);
  }
  let end = i + 5 + more;
  end += sizeCode === 6 ? 1 : sizeCode === 7 ? 2 : 0;
  end += rateCode === 12 ? 1 : rateCode > 12 ? 2 : 0;
  if (end >= b.length) return -1;
  let crc = 0;
  for (let k = i; k < end; k++) crc = crcTable[crc ^ b[k]];
  return crc === b[end] ? number : -1;
}

export async function* cutFlac(file: Blob, from: number): AsyncGenerator<Cut> {
  const info = await bytesOf(file, from + 8, from + 42);
  if (info.length < 34) return;
  const v = new DataView(info.buffer), blockSize = v.getUint16(2), rate = v.getUint32(10) >>> 12;
  const total = (info[13] & 15) * 2 ** 32 + v.getUint32(14);
  if (!rate || !blockSize) return;
  let at = from + 4;
  for (let last = false; !last;) { // over the metadata
    const b = await bytesOf(file, at, at + 4);
    if (b.length < 4) return;
    last = b[0] >= 128;
    at += 4 + (b[1] << 16 | b[2] << 8 | b[3]);
  }
  const opening = await bytesOf(file, at, at + 32);
  const variable = numberOf(opening, 0, 0) >= 0 ? 0 : numberOf(opening, 0, 1) >= 0 ? 1 : -1;
  if (variable < 0) return;
  const sampleOf = (number: number) => (variable ? number : number * blockSize);
  const step = total ? Math.min(16e6, Math.max(1 << 16, Math.floor(((file.size - at) * pieceSeconds * rate) / total))) : 4e6;

  /** frameAfter finds the next frame from a place on; its sample comes after that of the last one. */
  const frameAfter = async (from: number, sample: number) => {
    for (let look = from; look < file.size; look += block - 32) {
      const b = await bytesOf(file, look, look + block);
      for (let i = 0; i + 17 < b.length; i++) {
        if (b[i] !== 0xff) continue;
        const n = numberOf(b, i, variable), s = sampleOf(n);
        if (n >= 0 && s > sample && (total ? s < total : s < sample + 3600 * rate)) return { end: look + i, next: s };
      }
    }
    return null;
  };

  let sample = sampleOf(numberOf(opening, 0, variable));
  while (at < file.size) {
    let end = file.size, next = total || sample;
    // Silence takes next to no bytes: where a step is minutes, a shorter one is taken.
    for (let bytes = step; ; bytes = Math.floor(bytes / 4)) {
      const found = await frameAfter(at + bytes, sample);
      if (found) ({ end, next } = found);
      if (next - sample <= 2 * pieceSeconds * rate || bytes < 4096) break;
    }
    const length = Math.max(0, next - sample);
    yield { data: new Blob([head(info, length), file.slice(at, end)]), seconds: length / rate };
    at = end;
    sample = next;
  }
}

/** head is the beginning of a FLAC stream of so many samples. */
function head(info: Uint8Array, samples: number): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(42);
  out.set([0x66, 0x4c, 0x61, 0x43, 0x80, 0, 0, 34]);
  out.set(info, 8);
  out[21] = (out[21] & 0xf0) | (Math.floor(samples / 2 ** 32) & 15);
  new DataView(out.buffer).setUint32(22, samples % 2 ** 32);
  out.fill(0, 26); // the sum of the whole is not that of a piece
  return out;
}
