"""deepgram.py URL KEY WAV...: runs Deepgram's client, unchanged, against a server.

It prints a JSON object for each recording (16 kHz, mono, 16 bits). Run it with
python -P: this folder has files with the names of clients.
"""

import json
import sys
import threading
import wave

from deepgram import DeepgramClient
from deepgram.core.events import EventType
from deepgram.environment import DeepgramClientEnvironment
from deepgram.listen.v1.types import ListenV1Configure

PIECE = 3200  # bytes: 0.1 s


def client(url, key):
    web = url.replace("http", "ws", 1)
    environment = DeepgramClientEnvironment(base=url, production=web, agent=web, agent_rest=url)
    return DeepgramClient(api_key=key, environment=environment)


def samples(path):
    with wave.open(path) as file:
        return file.readframes(file.getnframes())


def collect(connection, send):
    """Returns the messages and errors of a connection until the server has closed it."""
    messages, errors = [], []
    connection.on(EventType.MESSAGE, messages.append)
    connection.on(EventType.ERROR, lambda e: errors.append(repr(e)))
    listener = threading.Thread(target=connection.start_listening)
    listener.start()
    send(connection)
    listener.join(120)
    return messages, errors


def live(dg, sound):
    def send(connection):
        connection.send_configure(ListenV1Configure(keyterms=["Otograph"]))
        for at in range(0, len(sound), PIECE):
            connection.send_media(sound[at : at + PIECE])
        connection.send_keep_alive()
        connection.send_finalize()
        connection.send_close_stream()

    extras = dict(interim_results="true", vad_events="true", diarize="true", smart_format="true")
    with dg.listen.v1.connect(
        model="nova-3", language="en", encoding="linear16", sample_rate=16000, **extras
    ) as connection:
        messages, errors = collect(connection, send)
    kinds = [m.type for m in messages]
    finals = [m for m in messages if m.type == "Results" and m.is_final]
    best = [m.channel.alternatives[0] for m in finals]
    return {
        "text": " ".join(b.transcript for b in best if b.transcript),
        "words": sum(len(b.words) for b in best),
        "kinds": kinds,
        "errors": errors,
        "finalized": any(m.from_finalize for m in finals),
    }


def flux(dg, sound):
    def send(connection):
        for at in range(0, len(sound), PIECE):
            connection.send_media(sound[at : at + PIECE])
        connection.send_configure({"type": "Configure", "thresholds": {"eot_threshold": 0.8}})
        connection.send_force_end_turn()
        connection.send_close_stream()

    with dg.listen.v2.connect(
        model="flux-general-en", encoding="linear16", sample_rate=16000, eot_threshold=0.7
    ) as connection:
        messages, errors = collect(connection, send)
    turns = [m for m in messages if m.type == "TurnInfo"]
    return {
        "text": " ".join(m.transcript for m in turns if m.event == "EndOfTurn"),
        "kinds": [m.type for m in messages if m.type != "TurnInfo"],
        "events": [m.event for m in turns],
        "errors": errors,
        "sequence": [m.sequence_id for m in messages],
    }


def recording(dg, path):
    with open(path, "rb") as file:
        answer = dg.listen.v1.media.transcribe_file(request=file.read(), model="nova-3", language="en", utterances=True)
    best = answer.results.channels[0].alternatives[0]
    return {
        "text": best.transcript,
        "words": len(best.words),
        "utterances": len(answer.results.utterances),
        "duration": answer.metadata.duration,
    }


def main(url, key, paths):
    dg = client(url, key)
    for path in paths:
        sound = samples(path)
        out = {"live": live(dg, sound), "flux": flux(dg, sound), "recording": recording(dg, path)}
        print(json.dumps(out), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
