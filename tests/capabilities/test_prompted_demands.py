"""The prompt asks for demands that a backend cannot enforce, and a response that misses one is an error."""

import json
from typing import Final

import openai
import pydantic
import pytest

from adapters.warp.backend import WarpAdapter
from adapters.warp.backend.options import WarpOptions
from gateway.adapter import Capabilities
from gateway.core.conversation import EMPTY, Conversation, Json, JsonObject, NamedTool, Text, ToolChoice, ToolSpec, Turn
from gateway.core.errors import BackendError, Unsupported
from gateway.core.events import (
    Event,
    Finish,
    Reason,
    ResponseStart,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.exchange import Exchange
from gateway.testing.faulty import END, Connection, chunk, faulty_backend, head
from gateway.testing.gateway import running_gateway
from tests.adapters.warp.backend.script import DONE, PRELUDE, acts, add, mcp_call, output
from tests.promises.wire_gateway import wire_settings
from tests.promises.wires import WIRES, Wire
from tests.scripted import ScriptedAdapter

PROMPTS: Final = Capabilities(prompts=frozenset({"tool_choice", "response_format"}))
TOOLS: Final = (ToolSpec("f"), ToolSpec("g"))
SCHEMA: Final[Json] = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
SHAPED: Final[dict[str, Json]] = {
    "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA}}
}


def asked(choice: ToolChoice = "auto", params: JsonObject = EMPTY) -> Conversation:
    turns = (Turn("system", (Text("Be brief."),), index=0), Turn("user", (Text("hi"),), index=1))
    return Conversation(turns, TOOLS, choice, params=params)


def call(name: str) -> list[Event]:
    return [ToolCallStart(0, "k", name), ToolCallDelta(0, "{}"), ToolCallEnd(0)]


def answered(conversation: Conversation, events: list[Event], reason: Reason = "stop") -> list[Event] | str | None:
    """The events behind the start, or the code of the error."""
    script: list[list[Event]] = [[ResponseStart()], *([event] for event in events), [Finish(reason)]]
    shown: list[list[Event] | str | None] = []
    for pieces in ([b"." * len(script)], [b"."] * len(script)):
        exchange = Exchange(ScriptedAdapter(*script, capabilities=PROMPTS), conversation, Policy())
        try:
            shown.append([event for data in pieces for event in exchange.feed(data)][1:])
        except BackendError as error:
            assert error.status == 502 and not exchange.finished
            shown.append(error.code)
    assert shown[0] == shown[1]
    return shown[0]


CHOICES: Final[list[tuple[ToolChoice, list[Event], str | None]]] = [
    ("required", call("f"), None),
    ("required", [TextDelta("I look."), *call("g")], None),
    ("required", [TextDelta("No.")], "upstream_invalid_tool_call"),
    ("required", [], "upstream_invalid_tool_call"),
    (NamedTool("f"), call("f"), None),
    (NamedTool("f"), call("g"), "upstream_invalid_tool_call"),
    (NamedTool("f"), [TextDelta("f()")], "upstream_invalid_tool_call"),
    ("auto", [TextDelta("No.")], None),
]


@pytest.mark.parametrize(("choice", "said", "code"), CHOICES)
def test_a_forced_call_is_made_or_the_answer_fails(choice: ToolChoice, said: list[Event], code: str | None) -> None:
    told: Reason = "tool_calls" if len(said) >= 3 else "stop"
    assert answered(asked(choice), said) == (code or [*said, Finish(told)])


SHAPES: Final[list[tuple[str, Reason, str | None]]] = [
    ('{"n": 1}', "stop", None),
    (' {"n": 1}\n', "stop", None),
    ('{"n": "1"}', "stop", "upstream_invalid_answer"),
    ('{"n": 1} Done.', "stop", "upstream_invalid_answer"),
    ("Sure!", "stop", "upstream_invalid_answer"),
    ("", "stop", "upstream_invalid_answer"),
    ("[" * 999, "stop", "upstream_invalid_answer"),
    ('{"n": ', "length", None),
]


@pytest.mark.parametrize(("text", "reason", "code"), SHAPES)
def test_an_answer_has_the_demanded_form_or_fails(text: str, reason: Reason, code: str | None) -> None:
    pieces: list[Event] = [TextDelta(piece) for piece in (text[:3], text[3:]) if piece]
    found = answered(asked(params=SHAPED), pieces, reason)
    if code is not None or isinstance(found, str) or found is None:
        assert found == code
    else:
        assert "".join(event.text for event in found if isinstance(event, TextDelta)) == text
        assert found[-1] == Finish(reason)


def test_a_fence_around_the_demanded_form_is_left_out_and_told() -> None:
    found = answered(asked(params=SHAPED), [TextDelta('```json\n{"n": 1}\n```\n')])
    assert isinstance(found, list)
    notice, *rest = found
    assert isinstance(notice, Notice) and notice.rule == "ANSWER_UNFENCED"
    assert rest == [TextDelta('{"n": 1}'), Finish("stop")]


def test_a_call_is_an_answer_of_its_own_where_a_form_is_demanded() -> None:
    assert answered(asked(params=SHAPED), call("f")) == [*call("f"), Finish("tool_calls")]


def test_the_words_stand_behind_the_system_text_and_are_told() -> None:
    adapter = ScriptedAdapter(capabilities=PROMPTS)
    exchange = Exchange(adapter, asked(NamedTool("f"), SHAPED), Policy())
    (sent,) = adapter.encoded
    assert [turn.role for turn in sent.turns] == ["system", "system", "user"]
    assert "the function f now" in sent.turns[1].text and json.dumps(SCHEMA) in sent.turns[1].text
    assert [notice.rule for notice in exchange.notices[:2]] == ["DEMAND_IN_WORDS"] * 2
    plain = ScriptedAdapter(capabilities=PROMPTS)
    Exchange(plain, asked(params={"response_format": {"type": "text"}}), Policy())
    assert len(plain.encoded[0].turns) == 2


def test_what_cannot_be_met_is_refused() -> None:
    for choice, tools, said in ((NamedTool("h"), TOOLS, "not among the tools"), ("required", (), "no tools")):
        conversation = Conversation(asked().turns, tools, choice)  # type: ignore[arg-type]  # both are tool choices
        with pytest.raises(Unsupported, match=said):
            Exchange(ScriptedAdapter(capabilities=PROMPTS), conversation, Policy())
    with pytest.raises(Unsupported):
        Exchange(WarpAdapter(WarpOptions(), 2**20), asked("required"), Policy())
    with pytest.raises(Unsupported):
        Exchange(WarpAdapter(WarpOptions(prompted=("tool_choice",)), 2**20), asked(params=SHAPED), Policy())


class Report(pydantic.BaseModel):
    """What the official client parses an answer into."""

    n: int


@pytest.mark.parametrize("encoding", ["flatten", "structured"])
async def test_the_official_client_gets_typed_answers_and_forced_calls_from_the_protobuf_wire(encoding: str) -> None:
    said = iter(
        (
            acts(add(output('{"n": 7}'))),
            acts(add(output("I would rather not."))),
            acts(add(mcp_call(name="get_weather", args={"city": "Rome"}))),
            acts(add(output("Sunny."))),
        )
    )

    async def script(connection: Connection) -> None:
        await connection.send(head("text/event-stream"), chunk(PRELUDE + next(said) + DONE), END)

    entry: dict[str, Json] = {**WIRES["protobuf"].entry, "encoding": encoding}
    entry["prompted"] = ["tool_choice", "response_format"]
    wire = Wire(entry, WIRES["protobuf"].spoken, WIRES["protobuf"].said, b"")
    async with (
        faulty_backend(script) as backend,
        running_gateway(wire_settings(wire, {"m": backend.base_url})) as gateway,
        openai.AsyncOpenAI(api_key="k", base_url=f"{gateway.base_url}/v1", max_retries=0) as client,
    ):
        chat = client.chat.completions
        typed = await chat.parse(model="m", messages=[{"role": "user", "content": "n?"}], response_format=Report)
        assert typed.choices[0].message.parsed == Report(n=7)
        with pytest.raises(openai.InternalServerError) as missed:
            await chat.parse(model="m", messages=[{"role": "user", "content": "n?"}], response_format=Report)
        assert missed.value.code == "upstream_invalid_answer"
        forced: Json = {
            "tools": [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}],
            "tool_choice": "required",
        }
        made = await chat.create(model="m", messages=[{"role": "user", "content": "Rome?"}], extra_body=forced)
        assert made.choices[0].finish_reason == "tool_calls"
        with pytest.raises(openai.InternalServerError) as lost:
            await chat.create(model="m", messages=[{"role": "user", "content": "Rome?"}], extra_body=forced)
        assert lost.value.code == "upstream_invalid_tool_call"
