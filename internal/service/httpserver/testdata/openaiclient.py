"""Calls a service with OpenAI's official Python client, with strict validation: every
parameter of its types, every format, streams and errors. The service's engine is that of
the tests of httpapi, which start this program."""

import base64
import io
import sys

import openai
from openai.types.audio import (
    Transcription,
    TranscriptionDiarized,
    TranscriptionVerbose,
)

url, key, broke = sys.argv[1:4]
calls = 0


def count(request):
    global calls
    calls += 1


def client(api_key):
    http = openai.DefaultHttpxClient(event_hooks={"request": [count]})
    return openai.OpenAI(
        api_key=api_key,
        base_url=url + "/v1",
        max_retries=0,
        http_client=http,
        _strict_response_validation=True,
    )


def wav(seconds=2):
    head = bytes.fromhex(
        "52494646a43e000057415645666d74201000000001000100401f0000401f00000100080064617461803e0000"
    )
    return head + b"\x80" * (8000 * seconds)


c = client(key)
TEXT = "Hello there. Good <b>day</b> & bye."


def ask(name="a.wav", model="whisper-1", **more):
    return c.audio.transcriptions.create(
        file=(name, io.BytesIO(wav())), model=model, **more
    )


def refused(kind, field, call):
    try:
        for _ in call() or []:
            pass
    except kind as e:
        assert e.param == field, (field, e.param, e.message)
        assert e.type and e.code is not None, e.body
        return e
    raise AssertionError(f"{field} was not refused")


def formats():
    plain = ask()
    assert isinstance(plain, Transcription) and plain.text == TEXT, plain
    assert [x.code for x in plain.languages] == [
        "en"
    ] and plain.usage.type == "duration"
    assert ask(response_format="text") == TEXT + "\n"
    assert ask(response_format="srt").startswith("1\n00:00:")
    assert ask(response_format="vtt").startswith("WEBVTT")
    for model in ("otograph-standard", "otograph-optimized"):
        verbose = ask(model=model, response_format="verbose_json")
        assert isinstance(verbose, TranscriptionVerbose) and len(verbose.segments) == 2
    words = ask(
        response_format="verbose_json", timestamp_granularities=["word", "segment"]
    )
    assert len(words.words) == 3 and len(words.segments) == 2
    assert ask(timestamp_granularities=["word"]).text == TEXT, "ignored, as by OpenAI"
    diarized = ask(
        model="gpt-4o-transcribe-diarize",
        response_format="diarized_json",
        chunking_strategy="auto",
    )
    assert (
        isinstance(diarized, TranscriptionDiarized)
        and diarized.segments[0].speaker == "SPEAKER_0"
    )


def parameters():
    for model in (
        "gpt-transcribe",
        "gpt-4o-transcribe",
        "gpt-4o-mini-transcribe",
        "gpt-4o-mini-transcribe-2025-12-15",
        "gpt-4o-transcribe-diarize",
    ):
        assert ask(model=model).text == TEXT
    assert (
        ask(language="en", prompt="A talk.", temperature=0.2, stream=False).text == TEXT
    )
    assert (
        ask(
            model="gpt-transcribe",
            keywords=["Otograph", "Doe, John"],
            languages=["en", "de"],
        ).text
        == TEXT
    )
    assert len(ask(include=["logprobs"]).logprobs) == 3
    vad = {
        "type": "server_vad",
        "threshold": 0.4,
        "silence_duration_ms": 200,
        "prefix_padding_ms": 50,
    }
    assert ask(chunking_strategy=vad).text == TEXT
    known = "data:audio/wav;base64," + base64.b64encode(wav()).decode()
    named = ask(
        model="gpt-4o-transcribe-diarize",
        response_format="diarized_json",
        known_speaker_names=["Ann"],
        known_speaker_references=[known],
    )
    assert named.segments[0].speaker == "Ann"


def streams():
    for more in ({}, {"include": ["logprobs"]}, {"response_format": "text"}):
        events = list(ask(model="gpt-4o-mini-transcribe", stream=True, **more))
        said = "".join(e.delta for e in events if e.type == "transcript.text.delta")
        assert (
            said == TEXT
            and events[-1].type == "transcript.text.done"
            and events[-1].text == TEXT
        ), events
        assert [x.code for x in events[-1].languages] == ["en"]
    events = list(
        ask(
            model="gpt-4o-transcribe-diarize",
            response_format="diarized_json",
            stream=True,
        )
    )
    assert [e.type for e in events].count("transcript.text.segment") == 2, events


def others():
    for form in ("json", "verbose_json", "text", "srt", "vtt"):
        english = c.audio.translations.create(
            file=("a.wav", wav()),
            model="whisper-1",
            response_format=form,
            prompt="A talk.",
            temperature=0,
        )
        assert "In English." in getattr(english, "text", english), english
    models = list(c.models.list())
    assert {"whisper-1", "gpt-transcribe"} <= {m.id for m in models}
    assert c.models.retrieve("whisper-1").object == "model"


def errors():
    bad = openai.BadRequestError
    refused(bad, "response_format", lambda: ask(response_format="xml"))
    refused(bad, "language", lambda: ask(language="klingon"))
    refused(bad, "languages[]", lambda: ask(languages=["klingon"]))
    refused(bad, "keywords[]", lambda: ask(keywords=["<b>"]))
    refused(bad, "temperature", lambda: ask(temperature=3))
    refused(bad, "include[]", lambda: ask(include=["everything"]))
    refused(bad, "chunking_strategy", lambda: ask(chunking_strategy={"type": "client"}))
    refused(bad, "known_speaker_names[]", lambda: ask(known_speaker_names=["Ann"]))
    verbose = {"response_format": "verbose_json", "timestamp_granularities": ["letter"]}
    refused(bad, "timestamp_granularities[]", lambda: ask(**verbose))
    refused(
        bad,
        "file",
        lambda: c.audio.transcriptions.create(file=("a.wav", b""), model="whisper-1"),
    )
    refused(bad, "file", lambda: ask(name="broken.wav"))
    refused(openai.NotFoundError, "model", lambda: ask(model="whisper-9"))
    refused(openai.NotFoundError, "model", lambda: c.models.retrieve("whisper-9"))
    refused(openai.AuthenticationError, None, lambda: client("sk-none").models.list())
    try:
        list(ask(name="broken.wav", stream=True))
        raise AssertionError("a stream that breaks off has no error")
    except openai.APIError as e:
        assert "longer than 5 hours" in e.message, e
    try:
        client(broke).audio.transcriptions.create(
            file=("a.wav", wav()), model="whisper-1"
        )
        raise AssertionError("no money was not refused")
    except openai.APIStatusError as e:
        assert (e.status_code, e.code) == (402, "insufficient_quota"), e


for part in (formats, parameters, streams, others, errors):
    part()
print(f"{calls} calls of the official Python client {openai.__version__}")
