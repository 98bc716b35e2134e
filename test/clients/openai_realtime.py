"""Transcribes recordings live with OpenAI's client, unchanged, and checks every event strictly.

usage: openai_realtime.py BASE_URL KEY RECORDING.s16le [RECORDING.s16le ...]

The recordings are raw samples, mono, 24 kHz, 16 bit. The output is a line of JSON for each
recording, with the texts by who ends the turns, and a line for the refused requests.
"""

import asyncio
import base64
import json
import sys

import openai
import pydantic
from openai import AsyncOpenAI
from openai.types.realtime import realtime_server_event

events = pydantic.TypeAdapter(realtime_server_event.RealtimeServerEvent)
PIECE = 24000 * 2 // 20  # 50 ms


def check(event):
    """Parses an event strictly: unknown types and missing fields are errors."""
    data = event.to_dict()
    events.validate_python(data)
    return data


async def session(client, sound, detection, model="gpt-4o-transcribe", secret=None):
    """Returns the transcripts and the kinds of events of one recording."""
    if secret:
        client = client.with_options(api_key=secret)
    texts, deltas, kinds = [], {}, []
    async with client.realtime.connect(extra_query={"intent": "transcription"}) as connection:
        first = check(await connection.recv())
        assert first["type"] == "session.created", first
        await connection.session.update(session={
            "type": "transcription",
            "audio": {"input": {
                "format": {"type": "audio/pcm", "rate": 24000},
                "transcription": {"model": model, "language": "en"},
                "turn_detection": detection,
            }},
            "include": ["item.input_audio_transcription.logprobs"],
        })
        updated = check(await connection.recv())
        assert updated["type"] == "session.updated", updated

        async def send():
            for at in range(0, len(sound), PIECE):
                await connection.input_audio_buffer.append(audio=base64.b64encode(sound[at:at + PIECE]).decode())
            if detection is None:
                await connection.input_audio_buffer.commit()
            else:
                await connection.input_audio_buffer.append(audio=base64.b64encode(bytes(2 * 24000 * 2)).decode())
                await connection.input_audio_buffer.commit()

        sender = asyncio.create_task(send())
        open_items, last = set(), False
        while open_items or not last:
            event = check(await asyncio.wait_for(connection.recv(), 300))
            kind = event["type"].split(".")[-1]
            kinds.append(kind)
            if event["type"] == "error":
                raise SystemExit(f"an error event: {event}")
            if kind == "delta":
                deltas[event["item_id"]] = deltas.get(event["item_id"], "") + event["delta"]
            if kind == "committed":
                open_items.add(event["item_id"])
            if kind == "completed":
                assert event["transcript"] == deltas.get(event["item_id"], ""), (event, deltas)
                open_items.remove(event["item_id"])
                if event["transcript"]:
                    texts.append(event["transcript"])
                # without turn detection there is one commit; with it, the last item is the silence
                last = last or detection is None or not event["transcript"]
        await sender
    return {"texts": texts, "kinds": sorted(set(kinds))}


async def refused(client, **query):
    try:
        async with client.realtime.connect(extra_query=query):
            return "accepted"
    except Exception as e:  # the client's WebSocket library has its own classes
        response = getattr(e, "response", None)
        body = json.loads(response.body) if response is not None else {}
        return [getattr(response, "status_code", repr(e)), body.get("error", {}).get("code")]


async def main(base, key, paths):
    client = AsyncOpenAI(base_url=base, api_key=key)
    for path in paths:
        with open(path, "rb") as f:
            sound = f.read()
        secret = await client.realtime.client_secrets.create(
            expires_after={"anchor": "created_at", "seconds": 60},
            session={"type": "transcription"},
        )
        assert secret.value.startswith("ek_"), secret
        out = {
            "manual": await session(client, sound, None),
            "server_vad": await session(client, sound, {"type": "server_vad", "silence_duration_ms": 500}),
            "live": await session(client, sound, None, "gpt-live-transcribe", secret.value),
        }
        print(json.dumps({"recording": path, **out}), flush=True)
    print(json.dumps({
        "bad_key": await refused(client.with_options(api_key="asr_wrong"), intent="transcription"),
        "conversation": await refused(client, model="gpt-realtime"),
        "version": openai.__version__,
    }))


asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
