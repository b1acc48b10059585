"""Streams that end with `[DONE]` and say no reason: an answer where the profile says so, an error elsewhere.

Snowflake's chat completions end so.
"""

from typing import Final

import pytest

from adapters.openai_chat.backend import OpenAIChatAdapter, OpenAIChatOptions
from gateway.core.conversation import Conversation, Text, Turn
from gateway.core.errors import BackendTruncated, InvalidToolCall
from gateway.core.events import Event, Finish
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.exchange import Exchange
from gateway.providers.profile import Profile
from gateway.providers.registry import PROFILES
from gateway.testing.events import fold
from gateway.testing.replay import cuttings
from tests.adapters.openai_chat.backend.wires import call, chunk, sse, usage

OPTIONAL: Final = Profile(finish_reason="optional")
TEXT: Final = (chunk({"role": "assistant", "content": "Hel"}), chunk({"content": "lo"}))
CALL: Final = (chunk(call(0, "a", "f", '{"n":')), chunk(call(0, arguments="1}")))


def _read(wire: list[bytes], profile: Profile, dialect: str) -> list[Event]:
    asked = Conversation((Turn("user", (Text("hi"),)),), model="m", stream=True, dialect=dialect)
    exchange = Exchange(OpenAIChatAdapter(OpenAIChatOptions(), 1 << 20), asked, Policy(profile=profile))
    events = [event for piece in wire for event in exchange.feed(piece)]
    return [*events, *exchange.close()]


@pytest.mark.parametrize("dialect", ["openai_chat", "anthropic_messages"])
def test_a_stream_that_ends_with_its_mark_is_an_answer_where_the_profile_says_so(dialect: str) -> None:
    for cutting in cuttings(sse(*TEXT, usage())):
        events = _read(cutting, OPTIONAL, dialect)
        assert fold(events).text == "Hello"
        assert [event.reason for event in events if isinstance(event, Finish)] == ["stop"]
        assert [event.rule for event in events if isinstance(event, Notice)] == ["FINISH_REASON_MISSING"]


def test_half_a_character_at_its_end_is_told() -> None:
    half = chunk({"content": "hi (1)"})
    events = _read([sse(half).replace(b"(1)", b"\\ud83d")], OPTIONAL, "openai_chat")
    told = [event.rule for event in events if isinstance(event, Notice)]
    assert told == ["TEXT_MENDED", "FINISH_REASON_MISSING"]


@pytest.mark.parametrize("dialect", ["openai_chat", "anthropic_messages"])
def test_its_calls_are_calls(dialect: str) -> None:
    events = _read([sse(*CALL)], OPTIONAL, dialect)
    assert [(made.name, made.arguments) for made in fold(events).calls] == [("f", '{"n":1}')]
    assert [event.reason for event in events if isinstance(event, Finish)] == ["tool_calls"]


def test_a_call_that_was_cut_off_is_an_error_all_the_same() -> None:
    with pytest.raises(InvalidToolCall):
        _read([sse(CALL[0])], OPTIONAL, "openai_chat")


@pytest.mark.parametrize("wire", [sse(*TEXT, done=False), sse(), sse(*TEXT)[:-30]])
def test_a_stream_without_its_mark_or_without_an_answer_is_incomplete(wire: bytes) -> None:
    with pytest.raises(BackendTruncated):
        _read([wire], OPTIONAL, "openai_chat")


@pytest.mark.parametrize("profile", [Profile(), Profile(tool_name="drop")])
@pytest.mark.parametrize("events", [TEXT, CALL])
def test_of_any_other_provider_it_is_incomplete(events: tuple[dict[str, object], ...], profile: Profile) -> None:
    with pytest.raises(BackendTruncated, match="without a finish reason"):
        _read([sse(*events)], profile, "openai_chat")  # type: ignore[arg-type]  # both are chunks of the wire


@pytest.mark.parametrize("name", PROFILES)
def test_snowflake_alone_is_known_to_end_so(name: str) -> None:
    assert (PROFILES[name].finish_reason == "optional") is (name == "snowflake")
    if name == "snowflake":
        assert fold(_read([sse(*TEXT)], PROFILES[name], "openai_chat")).text == "Hello"
