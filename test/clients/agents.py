"""agents.py URL KEY WAV...: runs the speech-to-text services of LiveKit and Pipecat, unchanged, against a server.

It prints a JSON object for each recording (24 kHz, mono, 16 bits), with the texts by client. Run it with python -P:
this folder has files with the names of clients.
"""

import asyncio
import json
import sys
import wave

import aiohttp
from livekit import rtc
from livekit.agents import APIConnectOptions
from livekit.agents.stt import SpeechEventType
from livekit.plugins import deepgram as livekit_deepgram
from livekit.plugins import openai as livekit_openai
from loguru import logger
from pipecat.frames.frames import (
    EndFrame,
    ErrorFrame,
    InputAudioRawFrame,
    TranscriptionFrame,
    VADUserStartedSpeakingFrame,
    VADUserStoppedSpeakingFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.worker import PipelineParams, PipelineWorker
from pipecat.processors.frame_processor import FrameProcessor
from pipecat.services.deepgram.stt import DeepgramSTTService
from pipecat.services.openai.stt import OpenAIRealtimeSTTService
from pipecat.workers.runner import WorkerRunner

RATE = 24000
PIECE = RATE * 2 // 20  # bytes: 50 ms
SILENCE = bytes(RATE * 2 * 2)


def pieces(sound):
    return [sound[at : at + PIECE] for at in range(0, len(sound), PIECE)]


async def livekit(stt, sound, words):
    """Returns the final texts of a stream, until they have as many words as the recording."""
    texts, interims = [], 0
    stream = stt.stream(conn_options=APIConnectOptions(max_retry=0))
    for piece in pieces(sound + SILENCE):
        stream.push_frame(rtc.AudioFrame(piece, RATE, 1, len(piece) // 2))
    async for event in stream:
        interims += event.type == SpeechEventType.INTERIM_TRANSCRIPT
        if event.type == SpeechEventType.FINAL_TRANSCRIPT:
            texts.append(event.alternatives[0].text)
        if len(" ".join(texts).split()) >= words:
            break
    await stream.aclose()
    return {"text": " ".join(texts), "interims": interims}


class Texts(FrameProcessor):
    """Texts collects the final texts and the errors of a service."""

    def __init__(self, words):
        super().__init__()
        self.texts, self.errors, self.words, self.over = [], [], words, asyncio.Event()

    async def process_frame(self, frame, direction):
        await super().process_frame(frame, direction)
        if isinstance(frame, TranscriptionFrame):
            self.texts.append(frame.text)
            if len(" ".join(self.texts).split()) >= self.words:
                self.over.set()
        await self.push_frame(frame, direction)


async def pipecat(service, sound, words):
    """Returns the texts and errors of a service in a pipeline."""
    texts = Texts(words)

    @service.event_handler("on_error")
    async def failed(_, frame: ErrorFrame):
        texts.errors.append(frame.error)
        texts.over.set()

    worker = PipelineWorker(Pipeline([service, texts]), params=PipelineParams(audio_in_sample_rate=RATE))
    runner = WorkerRunner(handle_sigint=False)

    async def send():
        await worker.queue_frame(VADUserStartedSpeakingFrame())
        for piece in pieces(sound + SILENCE):
            await worker.queue_frame(InputAudioRawFrame(audio=piece, sample_rate=RATE, num_channels=1))
        await worker.queue_frame(VADUserStoppedSpeakingFrame())
        await texts.over.wait()
        await worker.queue_frame(EndFrame())

    await runner.add_workers(worker)
    await asyncio.gather(runner.run(), send())
    return {"text": " ".join(texts.texts), "errors": texts.errors}


async def main(url, key, paths):
    logger.remove()
    logger.add(sys.stderr, level="WARNING")
    web = url.replace("http", "ws", 1)
    for argument in paths:
        path, words = argument.rsplit("=", 1)
        with wave.open(path) as file:
            sound = file.readframes(file.getnframes())
        out = {"recording": path}
        async with aiohttp.ClientSession() as http:
            livekit_realtime = livekit_openai.STT(base_url=url + "/v1", api_key=key, use_realtime=True)
            livekit_realtime._session = http
            out["livekit_openai"] = await livekit(livekit_realtime, sound, int(words))
            stt = livekit_deepgram.STT(base_url=url + "/v1/listen", api_key=key, http_session=http)
            out["livekit_deepgram"] = await livekit(stt, sound, int(words))
        service = OpenAIRealtimeSTTService(api_key=key, base_url=web + "/v1/realtime")
        out["pipecat_openai"] = await pipecat(service, sound, int(words))
        out["pipecat_deepgram"] = await pipecat(DeepgramSTTService(api_key=key, base_url=url), sound, int(words))
        print(json.dumps(out), flush=True)


asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
