"""Made-up sound that is small enough for a test: pulsed harmonic tones represent voices, noise
everything else."""

import json
from pathlib import Path

import numpy as np

RATE = 16000
SPLITS = {"train": 5, "held_base": 3, "held_warp": 2, "held_espeak": 2}  # voices of each
CLASSES = ["Silence", "Rain", "Knock", "Tick", "Piano", "Music"]
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


def speech(folder: Path) -> None:
    """A corpus as make_speech writes it."""
    r, index, waves, at = np.random.default_rng(1), [], [], 0
    folder.mkdir(parents=True, exist_ok=True)
    for split, voices in SPLITS.items():
        for v in range(voices):
            base = f"es{v}" if split == "held_espeak" else f"{split}{v}"
            for _ in range(3):
                x = voice(r, 90 + 25 * v, r.uniform(3.3, 3.8))
                index.append(dict(spk=f"{split}_{v}", split=split, base=base, lang="en", off=at, len=len(x), text=""))
                waves.append(x)
                at += len(x)
    np.concatenate(waves).tofile(folder / "speech.i16")
    (folder / "speech.json").write_text(json.dumps(index))


def people(folder: Path, count: int) -> None:
    """Two recordings each of a few people, in a folder of their own."""
    import soundfile

    r = np.random.default_rng(3)
    for k in range(count):
        own = folder / f"person{k}"
        own.mkdir(parents=True)
        for i in range(2):
            soundfile.write(own / f"{i}.wav", voice(r, 80 + 20 * k, 5.0), RATE)


def events(folder: Path) -> None:
    """A corpus as make_events writes it."""
    r, index, waves = np.random.default_rng(2), [], []
    folder.mkdir(parents=True, exist_ok=True)
    n = int(3.2 * RATE)
    for name in CLASSES:
        for k in range(4):
            split = "train" if k < 3 else "held"
            index.append({"class": name, "split": split, "off": n * len(waves), "len": n})
            waves.append((r.standard_normal(n) * (30 if name == "Silence" else 3000)).astype(np.int16))
    np.concatenate(waves).tofile(folder / "events.i16")
    (folder / "events.json").write_text(json.dumps(index))


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
