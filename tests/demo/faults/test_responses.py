"""The forms of a response: its media type, its end, its fields."""

import json
from typing import Any, Final

import httpx
import pytest

from tests.demo.faults.requests import TOOLS, TOOLS_OF, Body, answer, body_of

_JSON: Final = ("chat", "messages", "responses", "gemini", "text")
_CHAT: Final[Body] = {**body_of("chat", "What is the weather in Rome?"), "tools": TOOLS}
_EMPTY: Final[Body] = {
    **body_of("chat", "Use the clock."),
    "tools": [{"type": "function", "function": {"name": "clock", "parameters": {"type": "object", "properties": {}}}}],
}
_USAGE: Final = ("usage", "usageMetadata")


def events_of(response: httpx.Response) -> list[Any]:
    """The JSON of a response: that of each event, or of the only object."""
    if not response.headers["content-type"].startswith("text/event-stream"):
        return [response.json()]
    lines = [line for line in response.text.replace("\r", "").split("\n") if line.startswith("data: {")]
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def said(response: httpx.Response) -> list[Any]:
    """The deltas, or the message, of a response of Chat Completions."""
    choices = [choice for event in events_of(response) for choice in event["choices"]]
    return [choice.get("delta", choice.get("message")) for choice in choices]


def calls_of(response: httpx.Response) -> list[Any]:
    """The calls, or their pieces."""
    return [call for one in said(response) for call in one.get("tool_calls") or ()]


both_forms = pytest.mark.parametrize("stream", [True, False])


@both_forms
@pytest.mark.parametrize("kind", _JSON)
async def test_an_error_with_status_200(kind: str, stream: bool) -> None:
    sound = await answer(kind, None, body_of(kind), stream=stream)
    assert sound.status_code == 200 and "overloaded" not in sound.text
    wrong = await answer(kind, "error_in_200", body_of(kind), stream=stream)
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (200, "overloaded")


@both_forms
@pytest.mark.parametrize("kind", _JSON)
async def test_the_wrong_media_type_with_the_right_body(kind: str, stream: bool) -> None:
    sound = await answer(kind, None, body_of(kind), stream=stream)
    wrong = await answer(kind, "wrong_content_type", body_of(kind), stream=stream)
    assert sound.headers["content-type"] != wrong.headers["content-type"] == "text/plain"
    assert sound.content == wrong.content


@both_forms
@pytest.mark.parametrize("kind", ["chat", "messages", "responses", "gemini"])
async def test_no_token_counts(kind: str, stream: bool) -> None:
    body = body_of(kind) | ({"stream_options": {"include_usage": True}} if kind == "chat" else {})
    sound = await answer(kind, None, body, stream=stream)
    wrong = await answer(kind, "no_usage", body, stream=stream)
    assert any(name in sound.text for name in _USAGE) and not any(name in wrong.text for name in _USAGE)
    assert len(events_of(wrong)) == len(events_of(sound)) - (kind == "chat" and stream)


@both_forms
@pytest.mark.parametrize("kind", _JSON)
async def test_unknown_fields(kind: str, stream: bool) -> None:
    sound = events_of(await answer(kind, None, body_of(kind), stream=stream))
    wrong = events_of(await answer(kind, "unknown_fields", body_of(kind), stream=stream))
    assert wrong == [{**event, "x_demo": {"kept": True}, "provider": "demo"} for event in sound]


async def test_no_done() -> None:
    sound = await answer("chat", None, _CHAT, stream=True)
    wrong = await answer("chat", "no_done", _CHAT, stream=True)
    assert sound.text == f"{wrong.text}data: [DONE]\n\n"


@both_forms
async def test_token_counts_of_null(stream: bool) -> None:
    body = {**_CHAT, "stream_options": {"include_usage": True}}
    sound = events_of(await answer("chat", None, body, stream=stream))
    wrong = events_of(await answer("chat", "usage_null", body, stream=stream))
    assert sound[-1]["usage"]["total_tokens"] and {event["usage"] for event in wrong} == {None}


@both_forms
async def test_fields_of_null(stream: bool) -> None:
    sound = said(await answer("chat", None, _CHAT, stream=stream))
    wrong = said(await answer("chat", "null_fields", _CHAT, stream=stream))
    assert not any("function_call" in one for one in sound) and all(one["function_call"] is None for one in wrong)
    without = [{name: value for name, value in one.items() if value is not None} for one in wrong]
    assert without == [{name: value for name, value in one.items() if value is not None} for one in sound]


@both_forms
async def test_arguments_as_an_object(stream: bool) -> None:
    sound = calls_of(await answer("chat", None, _CHAT, stream=stream))
    (wrong,) = calls_of(await answer("chat", "arguments_object", _CHAT, stream=stream))
    text = "".join(call["function"]["arguments"] for call in sound)
    assert json.loads(text) == wrong["function"]["arguments"] == {"city": "Rome"}


@both_forms
async def test_arguments_as_an_empty_text(stream: bool) -> None:
    sound = calls_of(await answer("chat", None, _EMPTY, stream=stream))
    (wrong,) = calls_of(await answer("chat", "empty_arguments", _EMPTY, stream=stream))
    assert "".join(call["function"]["arguments"] for call in sound) == "{}"
    assert (wrong["function"]["name"], wrong["function"]["arguments"]) == ("clock", "")
    (other,) = calls_of(await answer("chat", "empty_arguments", _CHAT, stream=stream))
    assert json.loads(other["function"]["arguments"]) == {"city": "Rome"}


async def test_calls_without_an_index() -> None:
    sound = calls_of(await answer("chat", None, _CHAT, stream=True))
    wrong = calls_of(await answer("chat", "no_call_index", _CHAT, stream=True))
    assert all("index" in call for call in sound) and not any("index" in call for call in wrong)


@both_forms
async def test_the_finish_reason_beside_calls(stream: bool) -> None:
    sound = events_of(await answer("chat", None, _CHAT, stream=stream))
    wrong = events_of(await answer("chat", "calls_end_with_stop", _CHAT, stream=stream))
    assert sound[-1]["choices"][0]["finish_reason"] == "tool_calls"
    assert wrong[-1]["choices"][0]["finish_reason"] == "stop"


CASES: Final = [
    *[(name, kind) for name in ("error_in_200", "wrong_content_type", "unknown_fields") for kind in _JSON],
    *[("no_usage", kind) for kind in TOOLS_OF],
    *[
        (name, "chat")
        for name in (
            "no_done",
            "usage_null",
            "null_fields",
            "arguments_object",
            "empty_arguments",
            "no_call_index",
            "calls_end_with_stop",
        )
    ],
]
