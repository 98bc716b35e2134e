"""Made-up sound that is small enough for a test: pulsed harmonic tones represent voices, noise
everything else."""

import json
from pathlib import Path

import numpy as np

RATE = 16000
TEXTS = {
    "en": ["Good morning.", "See you on Monday."],
    "es": ["Buenos días.", "Hasta mañana."],
    "fr": ["Bonjour.", "À demain."],
    "pt": ["Bom dia.", "Até amanhã."],
    "de": ["Guten Morgen.", "Bis morgen."],
    "zh": ["早上好。", "明天见。"],
}


def voice(r: np.random.Generator, pitch: float, seconds: float) -> np.ndarray:
    """A tone with harmonics whose loudness varies like syllables."""
    t = np.arange(int(seconds * RATE)) / RATE
    x = sum(np.sin(2 * np.pi * pitch * k * t) / k for k in range(1, 9))
    x = x * (0.55 + 0.45 * np.sin(2 * np.pi * 4 * t + r.uniform(0, 6))) + 0.01 * r.standard_normal(len(t))
    return (x / np.abs(x).max() * 12000).astype(np.int16)


def clips(prefix: Path, count: int) -> None:
    """Sentences as synth writes them, `count` of each language."""
    r, at = np.random.default_rng(3), 0
    prefix.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{prefix}.raw", "wb") as raw, open(f"{prefix}.jsonl", "w", encoding="utf-8") as index:
        for lang, texts in TEXTS.items():
            for k in range(count):
                x = voice(r, 100 + 30 * k, r.uniform(0.9, 1.6))
                raw.write(x.tobytes())
                line = dict(
                    o=at, n=len(x), lang=lang, text=texts[k % 2], voice=("pico:en-US" if k % 3 else "espeak:en")
                )
                index.write(json.dumps(line, ensure_ascii=False) + "\n")
                at += len(x)


def words(folder: Path, recordings: int) -> None:
    """Recordings with word times as tools/wordset and align's TestWriteTrainingData write them."""
    r, manifest, dump = np.random.default_rng(4), [], []
    folder.mkdir(parents=True, exist_ok=True)
    for k in range(recordings):
        said = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
        starts = np.cumsum(r.uniform(0.3, 0.6, len(said)))
        manifest.append(dict(file=f"{k}.wav", words=[dict(word=w, start=s) for w, s in zip(said, starts)]))
        heard = [dict(Text=w, First=s + 0.2, Last=s + 0.3, Fresh=i == 0) for i, (w, s) in enumerate(zip(said, starts))]
        dump.append(dict(words=heard, speech=[[float(starts[0]), float(starts[-1] + 0.4)]]))
        bands = r.standard_normal((int(starts[-1] * 100) + 80, 24)).astype("<f4")
        for s in starts:
            bands[int(s * 100) :] += 0.5
        bands.tofile(folder / f"{k}.wav.fb")
    for name, lines in ("manifest", manifest), ("dump", dump):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
