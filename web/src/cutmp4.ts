// MP4, M4A and MOV (ISO/IEC 14496-12) with AAC: the tables in the file say where
// each frame lies; in front of each goes an ADTS header.
import { ascii, bytesOf, pieceSeconds, type Cut } from './cut';

/** boxes lists the boxes between two places: name, where the content begins, where it ends. */
function boxes(b: Uint8Array, from: number, to: number): { name: string; from: number; to: number }[] {
  const v = new DataView(b.buffer, b.byteOffset, b.length), out = [];
  for (let at = from; at + 8 <= to;) {
    let size = v.getUint32(at), head = 8;
    if (size === 1 && at + 16 <= to) { size = v.getUint32(at + 8) * 2 ** 32 + v.getUint32(at + 12); head = 16; }
    if (size === 0) size = to - at;
    if (size < head || at + size > to) break;
    out.push({ name: ascii(b, at + 4, 4), from: at + head, to: at + size });
    at += size;
  }
  return out;
}

/** movie reads the box that holds the tables, wherever in the file it stands. */
async function movie(file: Blob): Promise<Uint8Array | null> {
  for (let at = 0; at + 8 <= file.size;) {
    const b = await bytesOf(file, at, at + 16), v = new DataView(b.buffer);
    let size = v.getUint32(0), head = 8;
    if (size === 1 && b.length === 16) { size = v.getUint32(8) * 2 ** 32 + v.getUint32(12); head = 16; }
    if (size === 0) size = file.size - at;
    if (size < head) return null;
    if (ascii(b, 4, 4) === 'moov') return size < 256e6 ? bytesOf(file, at + head, at + size) : null;
    at += size;
  }
  return null;
}

/** codecOf reads the two bytes of an AudioSpecificConfig (ISO/IEC 14496-3) out of an esds box. */
function codecOf(b: Uint8Array, from: number, to: number): { profile: number; rate: number; channels: number } | null {
  let at = from + 4; // version and flags
  while (at < to) { // descriptors: tag, length of seven bits to a byte
    const tag = b[at++];
    let size = 0;
    for (let k = 0; k < 4 && at < to; k++) { const c = b[at++]; size = size << 7 | (c & 127); if (c < 128) break; }
    if (tag === 3) at += 3; // ES: id, flags
    else if (tag === 4) at += 13; // decoder's own fields
    else if (tag === 5 && size >= 2) {
      const rate = (b[at] & 7) << 1 | b[at + 1] >> 7;
      let type = b[at] >> 3;
      const channels = (b[at + 1] >> 3) & 15;
      if (type === 5 || type === 29) type = 2; // what high efficiency adds to the low complexity stream is found again by the decoder
      return type >= 1 && type <= 4 && rate < 13 && channels > 0 && channels < 8 ? { profile: type - 1, rate, channels } : null;
    } else at += size;
  }
  return null;
}

interface Track { scale: number; codec: { profile: number; rate: number; channels: number }; times: number[][]; chunks: number[][]; sizes: (i: number) => number; count: number; places: (i: number) => number; placed: number }

/** trackOf reads the tables of a track of AAC; null where it is none. */
function trackOf(b: Uint8Array, from: number, to: number): Track | null {
  const v = new DataView(b.buffer, b.byteOffset, b.length);
  const inside = (list: ReturnType<typeof boxes>, name: string) => list.find((x) => x.name === name);
  const media = inside(boxes(b, from, to), 'mdia');
  if (!media) return null;
  const parts = boxes(b, media.from, media.to), handler = inside(parts, 'hdlr'), header = inside(parts, 'mdhd'), information = inside(parts, 'minf');
  if (!handler || !header || !information || ascii(b, handler.from + 8, 4) !== 'soun') return null;
  const scale = v.getUint32(header.from + (b[header.from] ? 20 : 12)), table = inside(boxes(b, information.from, information.to), 'stbl');
  if (!scale || !table) return null;
  const tables = boxes(b, table.from, table.to), box = (name: string) => inside(tables, name);
  const entry = box('stsd') && boxes(b, box('stsd')!.from + 8, box('stsd')!.to)[0], stts = box('stts'), stsc = box('stsc'), stsz = box('stsz'), stco = box('stco'), co64 = box('co64');
  if (!entry || entry.name !== 'mp4a' || !stts || !stsc || !stsz || !(stco || co64)) return null;
  const fixed = [28, 44, 64][v.getUint16(entry.from + 8)] ?? 28; // QuickTime's later versions have more fields
  const within = boxes(b, entry.from + fixed, entry.to), wave = inside(within, 'wave');
  const esds = inside(within, 'esds') ?? (wave && inside(boxes(b, wave.from, wave.to), 'esds')), codec = esds && codecOf(b, esds.from, esds.to);
  if (!codec) return null;
  const rows = (x: { from: number; to: number }, width: number) => Array.from({ length: Math.min(v.getUint32(x.from + 4), Math.floor((x.to - x.from - 8) / (4 * width))) }, (_, r) => Array.from({ length: width }, (_, c) => v.getUint32(x.from + 8 + 4 * (r * width + c))));
  const each = v.getUint32(stsz.from + 4), count = v.getUint32(stsz.from + 8), place = (stco ?? co64)!;
  return {
    scale, codec, times: rows(stts, 2), chunks: rows(stsc, 3), count: each ? count : Math.min(count, Math.floor((stsz.to - stsz.from - 12) / 4)),
    sizes: (i) => each || v.getUint32(stsz.from + 12 + 4 * i), placed: Math.min(v.getUint32(place.from + 4), Math.floor((place.to - place.from - 8) / (stco ? 4 : 8))),
    places: (i) => (stco ? v.getUint32(place.from + 8 + 4 * i) : v.getUint32(place.from + 8 + 8 * i) * 2 ** 32 + v.getUint32(place.from + 12 + 8 * i)),
  };
}

/** A piece has no more frames than this: of 1024 samples at 96 kHz, and as many again. */
const mostFrames = (2 * pieceSeconds * 96000) / 1024;

export async function* cutMp4(file: Blob): AsyncGenerator<Cut> {
  const b = await movie(file);
  if (!b) return;
  let track: Track | null = null;
  for (const x of boxes(b, 0, b.length)) if (x.name === 'trak') track ??= trackOf(b, x.from, x.to);
  if (!track) return;
  const { scale, codec, times, chunks } = track;
  let sample = 0, seconds = 0, frames = 0, runs: Run[] = [], timeRow = 0, timeLeft = times[0]?.[0] ?? 0, chunkRow = 0;
  for (let chunk = 0; chunk < track.placed && sample < track.count; chunk++) {
    while (chunkRow + 1 < chunks.length && chunks[chunkRow + 1][0] <= chunk + 1) chunkRow++;
    let place = track.places(chunk), run = runs.at(-1);
    if (run?.to !== place) runs.push(run = { from: place, to: place, sizes: [] });
    for (let k = chunks[chunkRow]?.[1] ?? 0; k > 0 && sample < track.count; k--, sample++) {
      const size = track.sizes(sample);
      if (++frames > mostFrames) return; // tables that can't be
      run.sizes.push(size);
      run.to = place += size;
      while (!timeLeft && timeRow + 1 < times.length) timeLeft = times[++timeRow][0];
      if (timeLeft) { seconds += times[timeRow][1] / scale; timeLeft--; }
      if (seconds >= pieceSeconds) {
        yield { data: await adts(file, codec, runs), seconds };
        runs = [run = { from: place, to: place, sizes: [] }];
        seconds = frames = 0;
      }
    }
  }
  if (seconds > 0) yield { data: await adts(file, codec, runs), seconds };
}

/** A Run is frames that lie one after the other. */
interface Run { from: number; to: number; sizes: number[] }

/** adts reads frames and puts a header (ISO/IEC 13818-7) in front of each. */
async function adts(file: Blob, c: { profile: number; rate: number; channels: number }, runs: Run[]): Promise<Blob> {
  const out = new Uint8Array(runs.reduce((n, r) => n + r.to - r.from + 7 * r.sizes.length, 0));
  let at = 0;
  for (const r of runs) {
    const b = await bytesOf(file, r.from, r.to);
    let from = 0;
    for (const size of r.sizes) {
      const n = size + 7;
      out.set([0xff, 0xf1, c.profile << 6 | c.rate << 2 | c.channels >> 2, (c.channels & 3) << 6 | n >> 11, (n >> 3) & 255, (n & 7) << 5 | 31, 0xfc], at);
      out.set(b.subarray(from, from + size), at + 7);
      from += size;
      at += n;
    }
  }
  return new Blob([out]);
}
