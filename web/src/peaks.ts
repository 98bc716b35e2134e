// What the waveform shows: the recording's own peaks as far as they have been
// decoded, elsewhere where there is speech.
import { cut, type Cut } from './cut';
import type { Result } from './result';

/** Recordings up to this length (seconds) and size (bytes) are decoded in one go, which works for every format that the browser knows. */
const short = 5 * 60, small = 60e6;
/** What can't be cut into pieces is decoded in one go up to this length: the samples must fit into memory. */
const longest = 30 * 60;
/** The waveform keeps this many peaks per second, and at most maxPeaks in all. */
const perSecond = 50, maxPeaks = 360000;
/** Peaks need no high tones: the browser decodes to this many samples per second. */
const rate = 8000;

const countFor = (seconds: number) => Math.max(200, Math.min(maxPeaks, Math.ceil(seconds * perSecond)));

/** speechBand is a waveform that is high where there is speech. */
export function speechBand(r: Result): Float32Array {
  const n = countFor(r.audio_duration);
  const out = new Float32Array(n).fill(0.02);
  for (const s of r.vad_segments ?? r.diarize_segments ?? []) {
    const from = Math.floor((s.start / r.audio_duration) * n), to = Math.ceil((s.end / r.audio_duration) * n);
    out.fill(0.45, Math.max(0, from), Math.min(n, to));
  }
  return out;
}

/** measure takes a part of the peaks, from one place to another, out of decoded sound that begins at the place zero. */
function measure(sound: AudioBuffer, peaks: Float32Array, zero: number, from: number, to: number, perPeak: number): void {
  for (let c = 0; c < sound.numberOfChannels; c++) {
    const samples = sound.getChannelData(c);
    for (let p = Math.floor(from); p < Math.min(peaks.length, Math.ceil(to)); p++) {
      const first = Math.max(0, Math.floor((p - zero) * perPeak)), end = Math.min(samples.length, Math.floor((p + 1 - zero) * perPeak));
      let peak = peaks[p];
      for (let k = first; k < end; k++) { const x = Math.abs(samples[k]); if (x > peak) peak = x; }
      peaks[p] = peak;
    }
  }
}

/** scaleOf is what the peaks before a place are drawn against: the loudest but for a few clicks, of which one would flatten all else. */
function scaleOf(peaks: Float32Array, place: number): number {
  const levels = new Uint32Array(1024);
  let loudest = 0;
  for (let i = 0; i < place; i++) if (peaks[i] > loudest) loudest = peaks[i];
  if (!loudest) return 1;
  for (let i = 0; i < place; i++) levels[Math.min(1023, Math.floor((peaks[i] / loudest) * 1024))]++;
  let level = 1023;
  for (let left = Math.floor(place / 500); level > 0 && (left -= levels[level]) >= 0;) level--;
  return (loudest * (level + 1)) / 1024;
}

/** drawn scales the peaks before a place, and shows the band from there on. */
function drawn(peaks: Float32Array, band: Float32Array, place: number): Float32Array {
  const scale = scaleOf(peaks, place), out = band.slice();
  for (let i = 0; i < place; i++) out[i] = Math.min(1, peaks[i] / scale);
  return out;
}

/** idle waits until the page has nothing else to do, or a while: decoding takes the processor from it. */
const idle = () => new Promise<void>((go) => ('requestIdleCallback' in window ? requestIdleCallback(() => go(), { timeout: 400 }) : setTimeout(go, 20)));

/**
 * decodePeaks decodes a recording of so many seconds and tells of its peaks,
 * again and again while a long one is worked on; share is the part that is done.
 * It gives false where the browser can't decode the file.
 */
export async function decodePeaks(file: Blob, seconds: number, band: Float32Array, told: (peaks: Float32Array, share: number) => void, stop: AbortSignal): Promise<boolean> {
  const n = band.length, peaks = new Float32Array(n);
  const decode = async (data: Blob) => new OfflineAudioContext(1, 1, rate).decodeAudioData(await data.arrayBuffer());
  const whole = async () => {
    const sound = await decode(file);
    for (let i = 0; i < n; i += 2000) { // the page can answer in between
      measure(sound, peaks, 0, i, i + 2000, sound.length / n);
      await new Promise((go) => setTimeout(go));
    }
    if (!stop.aborted) told(drawn(peaks, band, n), 1);
    return true;
  };
  try {
    if (seconds <= short && file.size <= small) return await whole();
    const pieces = await cut(file);
    let at = 0, good = 0, bad = 0, next = 0; // seconds; pieces; when to tell again
    for await (const piece of pieces ?? ([] as Cut[])) {
      await idle();
      if (stop.aborted) return true;
      const lasts = Math.min(piece.seconds, seconds - at), place = (at / seconds) * n, end = ((at + lasts) / seconds) * n;
      try {
        const sound = await decode(piece.data);
        measure(sound, peaks, place, place, end, (rate * seconds) / n);
        good++;
      } catch { // a damaged part of a recording does not hide the rest
        if (++bad > 3 && bad > good) break;
        for (let p = Math.floor(place); p < Math.min(n, end); p++) peaks[p] = 0;
      }
      at += lasts;
      if (performance.now() > next && at < seconds && !stop.aborted) {
        told(drawn(peaks, band, Math.floor((at / seconds) * n)), at / seconds);
        next = performance.now() + 1000;
      }
    }
    if (stop.aborted) return true;
    if (good > bad) {
      told(drawn(peaks, band, Math.min(n, Math.ceil((at / seconds) * n))), 1);
      return true;
    }
    return seconds <= longest && file.size <= 200e6 ? await whole() : false;
  } catch {
    return false; // not decodable here; the player says whether it can be played
  }
}

/** storedPeaks reads peaks of one byte each, as a file of one result carries them. */
export function storedPeaks(base64: string): Float32Array {
  const text = atob(base64), peaks = new Float32Array(text.length);
  for (let i = 0; i < text.length; i++) peaks[i] = text.charCodeAt(i) / 255;
  return drawn(peaks, peaks, peaks.length);
}
