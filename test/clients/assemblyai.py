"""assemblyai.py URL KEY WAV...: runs AssemblyAI's client, unchanged, against a server.

It prints a JSON object for each recording (16 kHz, mono, 16 bits). Run it with
python -P: this folder has files with the names of clients.
"""

import json
import sys
import threading
import wave

from assemblyai.streaming.v3 import (
    RealTimeEvents,
    RealTimeParameters,
    RealTimeSessionParameters,
    RealTimeTranscriber,
    RealTimeTranscriberOptions,
)

PIECE = 3200  # bytes: 0.1 s


def live(url, key, path):
    with wave.open(path) as file:
        sound = file.readframes(file.getnframes())
    events, errors, done = [], [], threading.Event()
    host = url.replace("http", "ws", 1)
    transcriber = RealTimeTranscriber(
        RealTimeTranscriberOptions(api_host=host, api_key=key, connect_timeout=30, terminate_timeout=120)
    )
    for kind in (RealTimeEvents.Begin, RealTimeEvents.SpeechStarted, RealTimeEvents.Turn, RealTimeEvents.Termination):
        transcriber.on(kind, lambda _, event: events.append(event))
    transcriber.on(RealTimeEvents.Termination, lambda _, event: done.set())
    transcriber.on(RealTimeEvents.Error, lambda _, error: errors.append(str(error)))
    transcriber.connect(
        RealTimeParameters(
            sample_rate=16000,
            speech_model="universal-streaming-english",
            format_turns=True,
            speaker_labels=True,
            keyterms_prompt=["Otograph"],
        )
    )
    transcriber.set_params(RealTimeSessionParameters(min_turn_silence=500))
    transcriber.stream(sound[at : at + PIECE] for at in range(0, len(sound), PIECE))
    transcriber.keep_alive()
    transcriber.force_endpoint()
    transcriber.disconnect(terminate=True)
    turns = [e for e in events if e.type == "Turn"]
    return {
        "text": " ".join(t.transcript for t in turns if t.end_of_turn),
        "kinds": [e.type for e in events],
        "words": sum(len(t.words) for t in turns if t.end_of_turn),
        "terminated": done.is_set(),
        "errors": errors,
    }


def main(url, key, paths):
    for path in paths:
        print(json.dumps(live(url, key, path)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
