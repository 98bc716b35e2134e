"""fasterwhisper_json.py MODEL SOUND

Transcribes with faster-whisper in int8, beam 5 and word times, and prints
JSON, as `otograph bench --cmd` reads it.
"""

import json
import sys

from faster_whisper import WhisperModel

folder, sound = sys.argv[1:]
model = WhisperModel(folder, device="cpu", compute_type="int8", cpu_threads=2)
segments, info = model.transcribe(sound, beam_size=5, word_timestamps=True)
sentences = [
    {
        "start": s.start,
        "end": s.end,
        "text": s.text,
        "words": [{"word": w.word, "start": w.start, "end": w.end} for w in s.words],
    }
    for s in segments
]
json.dump({"language": info.language, "duration": info.duration, "segments": sentences}, sys.stdout)
