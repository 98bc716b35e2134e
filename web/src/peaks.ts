// What the waveform shows: the recording's own peaks where it is short enough to
// be decoded here, otherwise where there is speech.
import type { Result } from './result';

/** Longer recordings (seconds) are not decoded: the samples would fill the memory. */
const longest = 30 * 60;
/** The waveform keeps this many peaks per second, at most maxPeaks in all. */
const perSecond = 50, maxPeaks = 60000;

/** speechBand is a waveform that is high where there is speech. */
export function speechBand(r: Result): Float32Array {
  const n = Math.max(200, Math.min(20000, Math.ceil(r.audio_duration * 10)));
  const out = new Float32Array(n).fill(0.02);
  for (const s of r.vad_segments ?? r.diarize_segments ?? []) {
    const from = Math.floor((s.start / r.audio_duration) * n), to = Math.ceil((s.end / r.audio_duration) * n);
    out.fill(0.45, Math.max(0, from), Math.min(n, to));
  }
  return out;
}

/** decodePeaks decodes a recording and gives its peaks; null when it is too long or the browser can't. */
export async function decodePeaks(file: Blob, seconds: number): Promise<Float32Array | null> {
  if (!(seconds <= longest) || file.size > 200e6) return null;
  try {
    const decoded = await new OfflineAudioContext(1, 1, 8000).decodeAudioData(await file.arrayBuffer());
    const n = Math.max(200, Math.min(maxPeaks, Math.ceil(decoded.duration * perSecond)));
    const out = new Float32Array(n);
    let loudest = 0;
    const channels = Array.from({ length: decoded.numberOfChannels }, (_, c) => decoded.getChannelData(c));
    for (let i = 0; i < n; i++) {
      const from = Math.floor((i * decoded.length) / n), to = Math.floor(((i + 1) * decoded.length) / n);
      let peak = 0;
      for (const samples of channels) for (let k = from; k < to; k++) peak = Math.max(peak, Math.abs(samples[k]));
      out[i] = peak;
      loudest = Math.max(loudest, peak);
      if (i % 2000 === 1999) await new Promise((go) => setTimeout(go)); // let the page breathe
    }
    if (loudest > 0) for (let i = 0; i < n; i++) out[i] /= loudest;
    return out;
  } catch {
    return null; // not decodable here; the player says whether it can be played
  }
}
