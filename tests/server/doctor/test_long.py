"""What the doctor says of long silences and long prompts, over a real socket."""

import asyncio
import json
import re
from functools import partial

import pytest

from gateway.diagnostics.doctor.finding import Finding
from gateway.diagnostics.doctor.long_probes import NEEDLE, context, silence
from gateway.diagnostics.doctor.probe import Probe
from tests.server.backend import Connection, Script, answer, faulty_backend
from tests.server.doctor.examined import examined, findings
from tests.server.doctor.test_odd_answers import JSON, choice, completion, stream

SILENT_S = 0.2


async def found(script: Script, probe: Probe) -> Finding:
    async with faulty_backend(script) as backend:
        return findings((await examined("chat", backend.base_url, probes=[probe])).section)[probe.id]


async def silent(script: Script, seconds: float) -> Finding:
    return await found(script, Probe("D283", "silence", "?", partial(silence, seconds)))


async def writes_silently(connection: Connection, seconds: float = SILENT_S) -> None:
    if json.loads(connection.body).get("stream"):
        return await connection.send(stream("1 2 3"))
    await asyncio.sleep(seconds)
    await connection.send(completion())


async def cuts_silence(connection: Connection) -> None:
    if json.loads(connection.body).get("stream"):
        return await connection.send(stream("1 2 3"))
    await asyncio.sleep(SILENT_S)
    connection.reset()


async def test_a_silence_that_was_long_enough_is_in_order() -> None:
    finding = await silent(writes_silently, SILENT_S)
    assert finding.verdict == "ok"
    assert re.fullmatch(r"complete after \d+\.\d s of silence", finding.detail)


async def test_a_shorter_silence_is_told_as_such() -> None:
    # As many times as may still count: a busy machine is silent for seconds longer.
    finding = await silent(partial(writes_silently, seconds=1), 9)
    assert (finding.verdict, finding.detail.partition("; ")[2]) == ("ok", "a longer silence could not be had")


async def test_an_answer_without_silence_shows_nothing() -> None:
    finding = await silent(writes_silently, SILENT_S * 1000)
    assert (finding.verdict, finding.detail.partition(", ")[2]) == ("skipped", "too soon to show anything")


async def test_a_connection_that_is_cut_while_it_is_silent_is_found() -> None:
    finding = await silent(cuts_silence, SILENT_S)
    assert finding.verdict == "todo"
    assert re.match(r"an answer that is silent fails after \d+\.\d s: ", finding.detail)


def refusing(above: int, error: str) -> Script:
    """A backend that repeats the word, and refuses a longer prompt with this error object."""

    async def script(connection: Connection) -> None:
        prompt = json.loads(connection.body)["messages"][-1]["content"]
        if len(prompt.split()) > above:
            return await connection.send(answer("400 Bad Request", error.encode(), JSON))
        await connection.send(completion(choice(0, NEEDLE, "message")))

    return script


@pytest.mark.parametrize(
    ("error", "verdict", "detail"),
    [
        (
            '{"error": {"message": "This model has a context of 4096 tokens.", "code": "context_length_exceeded"}}',
            "ok",
            "a prompt of 8,000 words is refused as too long; one of 2,000 is accepted",
        ),
        (
            '{"error": {"message": "No."}}',
            "todo",
            "a prompt of 8,000 words is refused, in words that the gateway does not know; one of 2,000 is accepted",
        ),
    ],
)
async def test_a_prompt_that_is_too_long_is_refused_clearly_or_not(error: str, verdict: str, detail: str) -> None:
    finding = await found(refusing(4096, error), Probe("D284", "context", "?", context))
    assert (finding.verdict, finding.detail) == (verdict, detail)


async def test_a_model_that_cannot_repeat_a_word_shows_only_what_is_accepted() -> None:
    async def script(connection: Connection) -> None:
        await connection.send(completion(choice(0, "I do not know.", "message")))

    finding = await found(script, Probe("D284", "context", "?", context))
    assert finding.verdict == "skipped"
    assert finding.detail.startswith("prompts of up to 32,000 words are accepted; the model repeats no word")
