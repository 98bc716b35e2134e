// WAV: each piece gets the format's header and some of the samples.
import { ascii, bytesOf, pieceSeconds, type Cut } from './cut';

export async function* cutWav(file: Blob): AsyncGenerator<Cut> {
  let format: Uint8Array | null = null;
  for (let at = 12; ;) {
    const b = await bytesOf(file, at, at + 8);
    if (b.length < 8) return;
    const name = ascii(b, 0, 4), size = new DataView(b.buffer).getUint32(4, true);
    if (name === 'fmt ' && size >= 16 && size < 4096) format = await bytesOf(file, at + 8, at + 8 + size);
    if (name === 'data') {
      if (!format || format.length < 16) return;
      const v = new DataView(format.buffer), perSecond = v.getUint32(8, true), align = Math.max(1, v.getUint16(12, true));
      if (!perSecond) return;
      // A size that was never filled in means: to the end.
      const from = at + 8, to = size === 0 || size >= 0xfffffff0 ? file.size : Math.min(file.size, from + size);
      const step = Math.max(align, Math.floor((perSecond * pieceSeconds) / align) * align);
      for (let k = from; k < to; k += step) {
        const samples = file.slice(k, Math.min(to, k + step));
        yield { data: new Blob([head(format, samples.size), samples]), seconds: samples.size / perSecond };
      }
      return;
    }
    at += 8 + size + (size & 1);
  }
}

/** head is what stands before the samples of a WAV file. */
function head(format: Uint8Array, samples: number): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(28 + format.length), v = new DataView(out.buffer);
  const text = (at: number, s: string) => { for (let i = 0; i < 4; i++) out[at + i] = s.charCodeAt(i); };
  text(0, 'RIFF'); v.setUint32(4, 20 + format.length + samples, true); text(8, 'WAVE');
  text(12, 'fmt '); v.setUint32(16, format.length, true); out.set(format, 20);
  text(20 + format.length, 'data'); v.setUint32(24 + format.length, samples, true);
  return out;
}
