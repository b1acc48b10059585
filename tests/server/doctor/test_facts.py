"""What the doctor finds of a model becomes keys of its entry: what clients are told of it."""

import json
from typing import Final

import pytest

from gateway.core.conversation import Json
from gateway.core.model_facts import ModelFacts
from gateway.diagnostics.doctor.finding import Checked, Suggestion, ok
from gateway.diagnostics.doctor.long_probes import context
from gateway.diagnostics.doctor.probe import Probe
from gateway.diagnostics.doctor.suggestion import told_facts
from gateway.settings import ModelSettings, read_settings
from tests.server.backend import Connection, Script, answer, faulty_backend
from tests.server.doctor.examined import examined
from tests.server.doctor.test_odd_answers import completion, stream

LENGTH: Final = ("models", "m", "context_length")
TOO_LONG: Final = (
    "This model's maximum context length is 4096 tokens. However, you requested 9000 tokens (9000 in the messages, 0 "
    "in the completion). Please reduce the length of the messages or completion."
)


async def suggested(script: Script, *only: str, probes: tuple[Probe, ...] | None = None) -> tuple[Suggestion, ...]:
    async with faulty_backend(script) as backend:
        found = await examined("chat", backend.base_url, only=only, probes=probes, model="inner")
    return found.section.suggestions


def refusing(is_refused: str, words: str) -> Script:
    """A backend that lists its model with its context, and refuses requests with a text in them."""

    async def script(connection: Connection) -> None:
        if not connection.body:
            listed = {"data": [{"id": "other", "max_model_len": 1}, {"id": "inner", "max_model_len": 8192}]}
            return await connection.send(answer("200 OK", json.dumps(listed).encode()))
        if is_refused in connection.body.decode():
            return await connection.send(answer("400 Bad Request", json.dumps({"error": {"message": words}}).encode()))
        await connection.send(stream("Hello") if json.loads(connection.body).get("stream") else completion())

    return script


async def test_the_context_in_the_list_of_models_is_suggested() -> None:
    assert Suggestion(LENGTH, 8192) in await suggested(refusing("nothing", ""), "D201", "D202", "D211", "D212")


async def test_images_that_are_refused_are_not_offered() -> None:
    found = await suggested(refusing("image_url", "I read no images"), "D201", "D202", "D211", "D22", "D276")
    assert Suggestion(("models", "m", "facts", "images"), False) in found


async def test_the_context_in_the_words_of_a_refusal_is_suggested() -> None:
    found = await suggested(refusing("the sun is warm", TOO_LONG), probes=(Probe("D284", "context", "?", context),))
    assert found == (Suggestion(LENGTH, 4096),)


async def test_a_model_that_makes_one_call_at_once_is_said_to() -> None:
    found = await examined("chat", "demo:chat?defect=one_of_two_calls", only=("D201", "D202", "D22", "D231", "D232"))
    assert Suggestion(("models", "m", "facts", "parallel_calls"), False) in found.section.suggestions


@pytest.mark.parametrize(
    ("entry", "expected"),
    [({}, 8192), ({"context_length": 8192}, None), ({"context_length": 4096}, None), ({"context_length": 9000}, 8192)],
)
def test_a_key_that_is_set_stays_unless_it_promises_too_much(entry: dict[str, Json], expected: int | None) -> None:
    backends: Json = {"b": {"adapter": "openai_chat", "base_url": "http://x"}}
    model = read_settings({"backends": backends, "models": {"m": {"backend": "b", **entry}}}).models["m"]
    found = told_facts("m", model, [Checked("D212", "models", ok("", {"context_length": 8192}))])
    assert found == (() if expected is None else (Suggestion(LENGTH, expected),))


def test_a_fact_of_the_settings_stays() -> None:
    finding = Checked("D276", "image", ok("", {"facts.images": False}))
    entry = ModelSettings("b", None, read_settings({}).policy, facts=ModelFacts(images=True))
    assert told_facts("m", entry, [finding]) == ()
