// The waveform: the recording's peaks as the service measured them, or, without
// peaks, where there is speech.
import type { Result } from './result';

/** The band has this many places per second, and at most maxBand in all. */
const perSecond = 50,
  maxBand = 360000;

/** speechBand is a waveform that is high where there is speech. */
export function speechBand(r: Result): Float32Array {
  const n = Math.max(200, Math.min(maxBand, Math.ceil(r.audio_duration * perSecond)));
  const out = new Float32Array(n).fill(0.02);
  for (const s of r.vad_segments ?? r.diarize_segments ?? []) {
    const from = Math.floor((s.start / r.audio_duration) * n),
      to = Math.ceil((s.end / r.audio_duration) * n);
    out.fill(0.45, Math.max(0, from), Math.min(n, to));
  }
  return out;
}

/** scaleOf returns the peak that fills the height: the loudest except for a few clicks, which would flatten all else. */
function scaleOf(peaks: Uint8Array): number {
  const levels = new Uint32Array(256);
  for (const p of peaks) levels[p]++;
  let level = 255;
  for (let left = Math.floor(peaks.length / 500); level > 1 && (left -= levels[level]) >= 0;) level--;
  return level;
}

/** peaksOf converts stored peaks, one byte each, to a waveform from 0 to 1. */
export function peaksOf(stored: Uint8Array): Float32Array {
  const scale = scaleOf(stored);
  return Float32Array.from(stored, (p) => Math.min(1, p / scale));
}
