"""fasterwhisper.py MODEL SOUND batched|sequential cold|warm

Transcribes English with faster-whisper in int8, two threads, beam 5 and word
times. Warm does it twice and prints "warm", the seconds and the processor time
of the second run.
"""

import sys
import time

from faster_whisper import BatchedInferencePipeline, WhisperModel

folder, sound, pipeline, start = sys.argv[1:]
model = WhisperModel(folder, device="cpu", compute_type="int8", cpu_threads=2)
options = {"language": "en", "beam_size": 5, "word_timestamps": True}
if pipeline == "batched":
    model = BatchedInferencePipeline(model)
    options["batch_size"] = 8
for _ in range(2 if start == "warm" else 1):
    clock, processor = time.time(), time.process_time()
    list(model.transcribe(sound, **options)[0])
if start == "warm":
    print("warm", time.time() - clock, time.process_time() - processor)
