"""If the client requests token counts and the backend reports none, they are estimated and marked as an estimate."""

import json
from collections.abc import Mapping
from typing import Final

import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam

from gateway.core.conversation import (
    Conversation,
    Json,
    Reasoning,
    Sampling,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
)
from gateway.core.events import Event, Finish, ReasoningDelta, ResponseStart, TextDelta, UsageReport
from gateway.core.grammar import Grammar
from gateway.core.policy import Policy
from gateway.core.tokens import estimate_text, estimate_view
from gateway.exchange import Exchange
from gateway.response.usage_estimate import answer_tokens
from gateway.testing.faulty import END, Connection, Script, chunk, faulty_backend, head
from gateway.testing.gateway import running_gateway
from tests.promises.wire_gateway import wire_settings
from tests.promises.wires import WIRES, Wire
from tests.scripted import ScriptedAdapter
from tests.server.samples import value_of

ASKED: Final = Turn("user", (Text("12345678"),), index=0)


def test_all_that_is_asked_and_said_is_counted() -> None:
    turns = (
        Turn("system", (Text("é" * 4),)),
        Turn("assistant", (Reasoning("r" * 8), ToolCall("k", "f123", '{"a":1} '))),
        Turn("tool", (ToolResult("k", (Text("t" * 5),)),)),
    )
    tool = ToolSpec("g", "dddddd", {"type": "object"})
    asked = Conversation(turns, (tool,))
    exchange = Exchange(ScriptedAdapter(*SCRIPT), asked, Policy())
    for _ in SCRIPT:
        exchange.feed(b".")
    prompt, said = estimate_view(exchange.conversation), estimate_text("hmone two")
    assert prompt > estimate_view(Conversation(turns))
    _, usage = exchange.estimate()
    assert isinstance(usage, UsageReport) and usage.estimated
    assert usage.prompt_tokens is not None and abs(usage.prompt_tokens - prompt) <= len(turns) + 3
    assert (usage.completion_tokens, usage.total_tokens) == (said, usage.prompt_tokens + said)


SCRIPT: Final[list[list[Event]]] = [[ResponseStart()], [ReasoningDelta("hm")], [TextDelta("one two")], [Finish("stop")]]


@pytest.mark.parametrize(
    ("asked", "reported", "estimated"),
    [
        (Conversation((ASKED,)), None, True),
        (Conversation((ASKED,), stream=True, include_usage=True), None, True),
        (Conversation((ASKED,), stream=True), None, False),
        (Conversation((ASKED,)), UsageReport(), True),
        (Conversation((ASKED,)), UsageReport(1, 2, 3), False),
        (Conversation((ASKED,)), UsageReport(completion_tokens=0), False),
        (Conversation((ASKED,)), UsageReport(total_tokens=3), False),
    ],
)
@pytest.mark.parametrize("at_once", [True, False])
def test_who_is_told_an_estimate(
    asked: Conversation, reported: UsageReport | None, estimated: bool, at_once: bool
) -> None:
    last: list[Event] = [*SCRIPT[-1], *([reported] if reported else [])]
    script = [*SCRIPT[:-1], last]
    exchange = Exchange(ScriptedAdapter(*script), asked, Policy())
    events = [event for data in ([b"...."] if at_once else [b"."] * 4) for event in exchange.feed(data)]
    added = exchange.estimate()
    grammar = Grammar()
    grammar.check([*events, *added])
    grammar.close()
    assert added[1:] == ((UsageReport(7, 2, 9, estimated=True),) if estimated else ())


def test_what_is_not_shown_is_not_counted() -> None:
    asked = Conversation((ASKED,), sampling=Sampling(stop=("STOP",)))
    script: list[list[Event]] = [[ResponseStart(), TextDelta("1234STOP" + "x" * 99)], [Finish("stop"), UsageReport(1)]]
    exchange = Exchange(ScriptedAdapter(*script), asked, Policy())
    exchange.feed(b".")
    assert (exchange.done, exchange.estimate()[1:]) == (True, (UsageReport(7, 2, 9, estimated=True),))


def test_a_long_answer_is_measured_as_it_grows() -> None:
    pieces: list[Event] = [TextDelta("word ")] * 3000
    script: list[list[Event]] = [[ResponseStart()], *([piece] for piece in pieces), [Finish("stop")]]
    exchange = Exchange(ScriptedAdapter(*script), Conversation((ASKED,), stream=True, include_usage=True), Policy())
    waiting = [0]
    for _ in script:
        exchange.feed(b".")
        waiting.append(len(exchange._uncounted))
    assert max(waiting) < 600
    assert exchange.estimate()[1:] == (UsageReport(7, 3000, 3007, estimated=True),)
    assert answer_tokens(pieces) == 3000


def _events(*events: Json, done: bool = False) -> Script:
    body = b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in events)

    async def script(connection: Connection) -> None:
        await connection.send(head("text/event-stream"), chunk(body), END)

    return script


def _text(*pieces: str) -> list[Json]:
    return [{"content": piece, "stop": False} for piece in pieces]


LLAMA: Final[dict[str, Json]] = {"adapter": "adapters.text.backend:TextAdapter", "wire": "llama_cpp"}
COUNTED: Final[Json] = {
    "content": "",
    "stop": True,
    "stop_type": "eos",
    "tokens_evaluated": 3,
    "tokens_predicted": 5,
}
CALL: Final = '<tool_call>{"name": "f", "arguments": {}}</tool_call>\n'
TOOLS: Final[Json] = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
# What ends the answer -> the backend's entry, its events and the client's fields.
ENDS: Final[Mapping[str, tuple[dict[str, Json], list[Json], dict[str, Json]]]] = {
    "an emulated stop sequence": (LLAMA, [*_text("one END two"), COUNTED], {"stop": ["END"], "tools": TOOLS}),
    "one call only": (LLAMA, [*_text(CALL, CALL), COUNTED], {"parallel_tool_calls": False, "tools": TOOLS}),
    "an invented turn": (LLAMA, [*_text("one\n\nUser: two\n\nUser: three\n"), COUNTED], {}),
    "a wire without counts": (
        {**LLAMA, "wire": "koboldcpp"},
        [{"token": "one"}, {"token": "", "finish_reason": "stop"}],
        {},
    ),
    "a native backend that does not count": (
        {"adapter": "adapters.openai_chat.backend:OpenAIChatAdapter"},
        [{"choices": [{"index": 0, "delta": {"content": "one"}, "finish_reason": "stop"}]}],
        {},
    ),
}


MESSAGES: Final[list[ChatCompletionMessageParam]] = [{"role": "user", "content": "Hello"}]


@pytest.mark.parametrize("end", ENDS)
async def test_the_official_client_always_finds_counts(end: str) -> None:
    entry, events, fields = ENDS[end]
    # Of the wire only the entry is read here.
    wire = Wire(entry, WIRES["text"].spoken, WIRES["text"].said, b"")
    async with (
        faulty_backend(_events(*events)) as backend,
        running_gateway(wire_settings(wire, {"m": backend.base_url})) as gateway,
        openai.AsyncOpenAI(
            api_key="k", base_url=f"{gateway.base_url}/v1", max_retries=0, _strict_response_validation=True
        ) as client,
    ):
        ask = client.chat.completions.create
        whole = await ask(model="m", messages=MESSAGES, extra_body=fields)
        counted = {"include_usage": True}
        stream = await ask(model="m", messages=MESSAGES, extra_body={**fields, "stream_options": counted}, stream=True)
        chunks = [piece async for piece in stream]
        plain = [piece async for piece in await ask(model="m", messages=MESSAGES, extra_body=fields, stream=True)]
        spent = value_of(gateway.app.gateway_state.metrics, "gateway_tokens_total", "m", "-", "completion")
    for usage, extra in ((whole.usage, whole.model_extra), (chunks[-1].usage, chunks[-1].model_extra)):
        assert usage is not None and usage.prompt_tokens > 0 and usage.completion_tokens > 0
        assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
        assert extra is not None and extra["dragoman"] == {"usage": "estimated"}
    assert all(piece.usage is None for piece in plain)
    assert spent == 0
