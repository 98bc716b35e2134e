// Matroska and WebM (RFC 9559): each piece gets the file's description of its
// tracks and some of its clusters.
import { bytesOf, pieceSeconds, type Cut } from './cut';

const segment = 0x18538067, info = 0x1549a966, tracks = 0x1654ae6b, cluster = 0x1f43b675, timestamp = 0xe7, scaleId = 0x2ad7b1;
/** Children of a cluster; anything else ends one whose size is not known. */
const inCluster = new Set([0xe7, 0xa3, 0xa0, 0xa7, 0xab, 0xbf, 0xec, 0x5854, 0xaf]);

interface Element { id: number; head: number; size: number } // size -1: not known

/** elementAt reads an element's id and size. */
function elementAt(b: Uint8Array, i: number): Element | null {
  const idLength = Math.clz32(b[i]) - 23;
  if (idLength > 4 || i + idLength >= b.length) return null;
  let id = 0;
  for (let k = 0; k < idLength; k++) id = id * 256 + b[i + k];
  const at = i + idLength, length = Math.clz32(b[at]) - 23;
  if (length > 8 || at + length > b.length) return null;
  let size = b[at] & (0xff >> length), unknown = size === 0xff >> length;
  for (let k = 1; k < length; k++) { size = size * 256 + b[at + k]; unknown &&= b[at + k] === 255; }
  return { id, head: idLength + length, size: unknown ? -1 : size };
}

const uint = (b: Uint8Array, i: number, n: number) => { let x = 0; for (let k = 0; k < n && k < 8; k++) x = x * 256 + b[i + k]; return x; };

export async function* cutMatroska(file: Blob): AsyncGenerator<Cut> {
  const read = async (at: number) => { const b = await bytesOf(file, at, at + 32); return { b, e: elementAt(b, 0) }; };
  const top = await read(0);
  if (!top.e) return;
  let at = top.e.head + top.e.size;
  const body = await read(at);
  if (body.e?.id !== segment) return;
  // A segment whose size is not known may hold whatever follows.
  const lead: BlobPart[] = [file.slice(0, at), new Uint8Array([0x18, 0x53, 0x80, 0x67, 0x01, 255, 255, 255, 255, 255, 255, 255])];
  at += body.e.head;
  let scale = 1e6, start = -1, first = 0, now = 0; // nanoseconds per unit of time; units
  while (at < file.size) {
    const { b, e } = await read(at);
    if (!e) break;
    let end = at + e.head + e.size;
    if (e.id === cluster) {
      for (let i = e.head; i < b.length;) { // the time stands first, or after a check sum
        const x = elementAt(b, i);
        if (!x || x.size < 0 || i + x.head + x.size > b.length) break;
        if (x.id === timestamp) { now = uint(b, i + x.head, x.size); break; }
        i += x.head + x.size;
      }
      if (start < 0) { start = at; first = now; }
      else if (((now - first) * scale) / 1e9 >= pieceSeconds) {
        yield { data: new Blob([...lead, file.slice(start, at)]), seconds: ((now - first) * scale) / 1e9 };
        start = at;
        first = now;
      }
      if (e.size < 0) end = await endOf(file, at + e.head);
    } else if (e.size < 0) break;
    else if (e.id === info || e.id === tracks) {
      lead.push(file.slice(at, end));
      if (e.id === info && e.size < 1 << 16) {
        const all = await bytesOf(file, at + e.head, end);
        for (let i = 0; i < all.length;) {
          const x = elementAt(all, i);
          if (!x || x.size < 0) break;
          if (x.id === scaleId) scale = uint(all, i + x.head, x.size) || scale;
          i += x.head + x.size;
        }
      }
    }
    at = end;
  }
  if (start >= 0) yield { data: new Blob([...lead, file.slice(start)]), seconds: Infinity }; // to the end of the recording
}

/** endOf finds the end of a cluster whose size is not known. */
async function endOf(file: Blob, from: number): Promise<number> {
  const block = 1 << 18;
  for (let at = from; at < file.size;) {
    const b = await bytesOf(file, at, at + block);
    let i = 0;
    for (;;) {
      const e = i + 12 <= b.length || at + b.length >= file.size ? elementAt(b, i) : null;
      if (!e) break;
      if (!inCluster.has(e.id) || e.size < 0) return at + i;
      i += e.head + e.size;
      if (i >= b.length) break;
    }
    if (i === 0) return file.size;
    at += i;
  }
  return file.size;
}
