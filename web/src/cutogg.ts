// Ogg (RFC 3533) with Opus, Vorbis or FLAC: each piece gets the stream's header
// pages and some of its pages. A page's granule position counts samples.
import { ascii, bytesOf, pieceSeconds, type Cut } from './cut';

const block = 1 << 20;

/** rateOf gives what a granule position counts per second, by the stream's first packet; 0 where it is no sound that is known. */
function rateOf(packet: Uint8Array): number {
  const v = new DataView(packet.buffer, packet.byteOffset, packet.length);
  if (packet.length >= 19 && ascii(packet, 0, 8) === 'OpusHead') return 48000;
  if (packet.length >= 30 && ascii(packet, 0, 7) === '\x01vorbis') return v.getUint32(12, true);
  if (packet.length >= 51 && ascii(packet, 0, 5) === '\x7fFLAC') return v.getUint32(27) >>> 12;
  return 0;
}

export async function* cutOgg(file: Blob): AsyncGenerator<Cut> {
  const headers: Blob[] = [];
  let rate = 0, serial = -1, start = -1, first = 0, last = 0;
  for (let at = 0; at + 27 <= file.size;) {
    const b = await bytesOf(file, at, at + block), v = new DataView(b.buffer);
    let i = 0;
    while (i + 27 <= b.length && i + 27 + b[i + 26] <= b.length) {
      if (ascii(b, i, 4) !== 'OggS') { i++; continue; }
      const count = b[i + 26], flags = b[i + 5], whose = v.getUint32(i + 14, true);
      let size = 27 + count;
      for (let k = 0; k < count; k++) size += b[i + 27 + k];
      const high = v.getUint32(i + 10, true), granule = high === 0xffffffff ? -1 : high * 2 ** 32 + v.getUint32(i + 6, true);
      const page = at + i;
      if (flags & 2 && !rate) {
        rate = rateOf(b.subarray(i + 27 + count, i + size));
        if (rate) { serial = whose; headers.push(file.slice(page, page + size)); }
      } else if (rate && whose === serial) {
        if (start < 0 && granule <= 0) headers.push(file.slice(page, page + size));
        else {
          if (start < 0) { start = page; first = last = granule > 10 * rate ? granule : 0; }
          if (!(flags & 1) && last - first >= pieceSeconds * rate) { // no packet goes on from the page before
            yield { data: new Blob([...headers, file.slice(start, page)]), seconds: (last - first) / rate };
            start = page;
            first = last;
          }
          if (granule > last) last = granule;
        }
      }
      i += size;
    }
    if (i === 0) break; // what is left holds no page
    at += i;
  }
  if (start >= 0 && last > first) yield { data: new Blob([...headers, file.slice(start)]), seconds: (last - first) / rate };
}
