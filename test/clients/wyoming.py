"""wyoming.py URI WAV...: runs the official Wyoming client, unchanged, against a server.

It prints a JSON object for each recording (16 kHz, mono, 16 bits). Run it with
python -P: this folder has files with the names of clients.
"""

import asyncio
import json
import sys
import wave

from wyoming.asr import Transcribe, Transcript
from wyoming.audio import AudioChunk, AudioStart, AudioStop
from wyoming.client import AsyncClient
from wyoming.info import Describe, Info

PIECE = 3200  # bytes: 0.1 s


async def transcribe(uri, path):
    with wave.open(path) as file:
        sound = file.readframes(file.getnframes())
    async with AsyncClient.from_uri(uri) as client:
        await client.write_event(Describe().event())
        info = Info.from_event(await client.read_event())
    kinds, chunks, text = [], "", None
    async with AsyncClient.from_uri(uri, read_timeout=120) as client:
        await client.write_event(Transcribe(language="en").event())
        await client.write_event(AudioStart(rate=16000, width=2, channels=1).event())
        for at in range(0, len(sound), PIECE):
            chunk = AudioChunk(rate=16000, width=2, channels=1, audio=sound[at : at + PIECE])
            await client.write_event(chunk.event())
        await client.write_event(AudioStop().event())
        while event := await client.read_event():
            kinds.append(event.type)
            if event.type == "transcript-chunk":
                chunks += event.data["text"]
            if Transcript.is_type(event.type):
                text = Transcript.from_event(event).text
    program = info.asr[0]
    languages = program.models[0].languages
    return {"text": text, "chunks": chunks, "kinds": kinds, "program": program.name, "languages": languages}


async def main(uri, paths):
    for path in paths:
        print(json.dumps(await transcribe(uri, path)), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
