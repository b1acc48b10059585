"""What the doctor says of answers that no demo backend gives, over a real socket."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from gateway.core.errors import BackendTimeout
from gateway.core.events import Event
from gateway.diagnostics.doctor.accepting import failure
from gateway.diagnostics.doctor.examination import PROBES
from gateway.diagnostics.doctor.finding import Checked, Finding
from gateway.diagnostics.doctor.question import Answer
from gateway.exchange import Exchange
from gateway.server.doctor import live_backend
from gateway.server.doctor.examine_backend import _features
from gateway.server.upstream.backends import Backend
from gateway.server.upstream.completion import complete
from gateway.server.upstream.transport import Transport
from tests.server.backend import END, HEAD, Connection, Script, answer, chunk, faulty_backend
from tests.server.doctor.examined import examined, findings

# Any: JSON.
JSON = b"content-type: application/json"


def choice(index: int, text: str, said: str) -> dict[str, Any]:
    return {"index": index, said: {"role": "assistant", "content": text}, "finish_reason": "stop"}


def stream(text: str = "Hello.") -> bytes:
    """A whole stream of chat completions."""
    event = {"id": "a", "object": "chat.completion.chunk", "choices": [choice(0, text, "delta")]}
    return HEAD + chunk(b"data: " + json.dumps(event).encode() + b"\n\ndata: [DONE]\n\n") + END


def completion(*choices: dict[str, Any], indent: int | None = None) -> bytes:
    """One object of chat completions; with `indent` on several lines."""
    listed = list(choices) or [choice(0, "Hello.", "message")]
    body = {"id": "a", "object": "chat.completion", "created": 1, "model": "m", "choices": listed}
    return answer("200 OK", json.dumps(body, indent=indent).encode(), JSON)


async def found(script: Script, *only: str) -> dict[str, Finding]:
    async with faulty_backend(script) as backend:
        return findings((await examined("chat", backend.base_url, only=only)).section)


async def in_both_forms(connection: Connection) -> None:
    asked = json.loads(connection.body)
    await connection.send(stream() if asked.get("stream") else completion())


async def always_a_stream(connection: Connection) -> None:
    await connection.send(stream())


@pytest.mark.parametrize(
    ("script", "remark"),
    [
        (in_both_forms, ""),
        (always_a_stream, "one object is asked for, and a stream comes; clients get one object"),
    ],
)
async def test_a_stream_in_place_of_one_object_is_a_remark(script: Script, remark: str) -> None:
    finding = (await found(script, "D229"))["D229"]
    assert (finding.verdict, finding.remark) == ("ok", bool(remark))
    assert remark in finding.detail


async def refuses_every_bound(connection: Connection) -> None:
    words = b'{"error": {"message": "Unsupported parameters: max_tokens, max_completion_tokens"}}'
    await connection.send(answer("400 Bad Request", words, JSON))


async def thinks_for_ever(connection: Connection) -> None:
    cut = {**choice(0, "", "message"), "finish_reason": "length"}
    await connection.send(completion(cut))


async def test_a_backend_whose_answers_cannot_be_bounded_is_broken() -> None:
    finding = (await found(refuses_every_bound, "D220"))["D220"]
    assert (finding.verdict, finding.detail) == ("broken", "max_tokens is refused, and so is max_completion_tokens")


async def test_a_model_that_thinks_to_its_bound_is_not_called_silent() -> None:
    finding = (await found(thinks_for_ever, "D221"))["D221"]
    assert (finding.verdict, finding.detail) == ("todo", "a whole answer has no text within 1,024 tokens")


@pytest.mark.parametrize("indent", [None, 2])
async def test_a_backend_that_gives_several_choices_is_asked_for_two(indent: int | None) -> None:
    async def several_choices(connection: Connection) -> None:
        asked = json.loads(connection.body)
        choices = [choice(at, f"{at}", "message") for at in range(asked.get("n", 1))]
        await connection.send(completion(*choices, indent=indent))

    finding = (await found(several_choices, "D277"))["D277"]
    assert (finding.verdict, finding.remark) == ("ok", False)
    assert finding.detail == "two choices; clients get one, since the gateway never sends n"


def silent_about_tools(forced: str) -> Script:
    """A backend that calls a tool only where that is forced (`call`), or never (`prose`)."""

    async def script(connection: Connection) -> None:
        asked = json.loads(connection.body or b"{}")
        choice_of = asked.get("tool_choice", "auto")
        if forced == "call" and choice_of not in ("auto", "none"):
            name = choice_of["function"]["name"] if isinstance(choice_of, dict) else "get_weather"
            await connection.send(calls(name))
        else:
            await connection.send(stream() if asked.get("stream") else completion())

    return script


def calls(name: str) -> bytes:
    function = {"name": name, "arguments": '{"city": "Paris"}'}
    delta = {"role": "assistant", "tool_calls": [{"index": 0, "id": "c", "type": "function", "function": function}]}
    made = {"index": 0, "delta": delta, "finish_reason": "tool_calls"}
    event = {"id": "a", "object": "chat.completion.chunk", "choices": [made]}
    return HEAD + chunk(b"data: " + json.dumps(event).encode() + b"\n\ndata: [DONE]\n\n") + END


@pytest.mark.parametrize(
    ("forced", "verdict", "can", "cannot"),
    [
        ("call", "ok", {"forced choice", "named choice"}, {"tools"}),
        ("prose", "todo", set(), {"tools", "forced choice", "named choice"}),
    ],
)
async def test_forcing_is_tried_although_the_model_calls_no_tool_by_itself(
    forced: str, verdict: str, can: set[str], cannot: set[str]
) -> None:
    async with faulty_backend(silent_about_tools(forced)) as backend:
        section = (await examined("chat", backend.base_url, only=("D22", "D23"))).section
    found = findings(section)
    assert (found["D231"].verdict, found["D238"].verdict, found["D239"].verdict) == ("todo", verdict, verdict)
    assert can <= set(section.can) and cannot <= set(section.cannot) and not can & set(section.cannot)


def test_a_question_that_is_not_answered_in_time_says_nothing_of_what_the_model_can() -> None:
    finding = failure(Answer(error=BackendTimeout("The backend did not finish in time (timeouts.total).")))
    assert finding is not None and (finding.verdict, finding.undecided) == ("todo", True)
    assert "no answer in time" in finding.detail and "timeouts.first_byte" in finding.advice
    probe = next(one for one in PROBES if one.id == "D231")
    assert _features([probe], [Checked("D231", "call", finding)], "todo") == ()


async def test_a_server_that_is_silent_about_functions_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[tuple[bool, float]] = []

    async def noted(
        transport: Transport, backend: Backend, exchange: Exchange, limit_s: float, watch: Callable[..., Any]
    ) -> list[Event]:
        has_tools = b'"tools"' in exchange.request.body
        waited.append((has_tools, limit_s))
        return await complete(transport, backend, exchange, 0.05 if has_tools else limit_s, watch)

    async def silent(connection: Connection) -> None:
        if b'"tools"' in connection.body:
            await connection.gone()
        else:
            await in_both_forms(connection)

    monkeypatch.setattr(live_backend, "complete", noted)
    finding = (await found(silent, "D22", "D23", "D24"))["D231"]
    assert (finding.verdict, finding.undecided) == ("todo", True)
    with_tools = [limit for has_tools, limit in waited if has_tools]
    assert with_tools[0] == live_backend.LIMIT_S
    assert with_tools[1:] and {*with_tools[1:]} == {live_backend.REPEATED_S}
    assert {limit for has_tools, limit in waited if not has_tools} == {live_backend.LIMIT_S}
