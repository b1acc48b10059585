"""Runs the conformance kit against a backend over a real connection; a check raises AssertionError for a broken rule.

The checks need only what any model with tools can do, so they may also run against a real service. The caller
pays for about ten short responses. Each check is a coroutine; `asyncio.run(check(case))` needs no pytest plugin.
"""

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime
from typing import Final, TypeAlias

import httpx
import msgspec

from gateway.adapter import Adapter, BackendRequest, SigningAdapter, UnsignedRequest
from gateway.core.conversation import EMPTY, Block, Conversation, JsonObject, Text, ToolCall, ToolResult, ToolSpec, Turn
from gateway.core.events import Event
from gateway.core.grammar import Grammar
from gateway.core.policy import Policy
from gateway.exchange import Exchange
from gateway.settings import check_options
from gateway.testing.adapter_case import MAX_EVENT, AdapterClass
from gateway.testing.events import FoldedAnswer, fold

WEATHER: Final = ToolSpec(
    "get_weather",
    "Tells the weather of a city.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
QUESTION: Final = "What is the weather in Paris? Use get_weather."


class LiveCase(msgspec.Struct, frozen=True):
    """One adapter and the address of a backend that speaks its wire. `headers` carry the credential, if any; an adapter
    that signs its requests does so with `key`."""

    adapter: AdapterClass
    base_url: str
    model: str = "auto"
    options: JsonObject = EMPTY
    policy: Policy = Policy()
    headers: Mapping[str, str] = {}
    key: str = ""
    timeout_s: float = 60

    def build(self) -> Adapter:
        """Creates the adapter, as the gateway does."""
        return self.adapter(check_options(self.options, self.adapter.Options, "options"), MAX_EVENT)


def _headers(case: LiveCase, url: str, sent: BackendRequest) -> dict[str, str]:
    """Returns the headers of a request, with its signature if the adapter makes one."""
    headers = {**sent.headers, **case.headers}
    adapter = case.build()
    if isinstance(adapter, SigningAdapter):
        target = httpx.URL(url)
        path, _, query = target.raw_path.decode("ascii").partition("?")
        host = {"host": target.netloc.decode("ascii")}
        unsigned = UnsignedRequest(sent.method, path, query, {**host, **headers}, sent.body)
        headers |= adapter.sign(unsigned, case.key, datetime.now(UTC))
    return headers


async def ask(case: LiveCase, conversation: Conversation) -> list[Event]:
    """Returns the events of one response, checked against the grammar. Raises BackendError like any exchange."""
    named = msgspec.structs.replace(conversation, model=case.model, stream=True)
    exchange = Exchange(case.build(), named, case.policy)
    grammar = Grammar()
    events: list[Event] = []
    async with httpx.AsyncClient(timeout=case.timeout_s, trust_env=False) as client:
        sent = exchange.request
        url = case.base_url.rstrip("/") + sent.path
        headers = _headers(case, url, sent)
        async with client.stream(sent.method, url, headers=headers, content=sent.body) as response:
            body = b"" if response.status_code == 200 else await response.aread()
            exchange.on_response_head(response.status_code, response.headers, body)
            async for data in response.aiter_raw():
                _check(exchange.feed(data), grammar, events)
                if exchange.done:
                    break
            _check(exchange.close(), grammar, events)
    grammar.close()
    return events


def _check(arrived: list[Event], grammar: Grammar, events: list[Event]) -> None:
    grammar.check(arrived)
    events += arrived


async def answers_a_question(case: LiveCase) -> None:
    """A question gets a response of text that ends with the finish reason `stop`."""
    answer = fold(await ask(case, _request("Say hello in one short sentence.")))
    assert answer.text.strip() and answer.calls == ()
    assert answer.finish is not None and answer.finish.reason == "stop"


async def knows_the_conversation(case: LiveCase) -> None:
    """A longer history with a system prompt is accepted."""
    turns = [
        Turn("system", (Text("You are a polite parrot."),)),
        Turn("user", (Text("My name is Aram."),)),
        Turn("assistant", (Text("Good morning, Aram."),)),
        Turn("user", (Text("What did I say my name is?"),)),
    ]
    assert fold(await ask(case, _conversation(turns))).text.strip()


async def calls_a_tool_and_reads_its_result(case: LiveCase) -> None:
    """The model calls a tool by its own name with an object, and responds to the tool's result."""
    first = fold(await ask(case, _request(QUESTION, WEATHER)))
    assert first.finish is not None and first.finish.reason == "tool_calls"
    assert first.calls and all(call.id and call.name == WEATHER.name for call in first.calls)
    assert all(isinstance(json.loads(call.arguments), dict) for call in first.calls)
    last = fold(await ask(case, _answered(first)))
    assert last.text.strip() and last.finish is not None and last.finish.reason in ("stop", "tool_calls")


async def keeps_answers_apart(case: LiveCase) -> None:
    """Concurrent responses are complete and not mixed up."""
    words = [f"parrot{number}" for number in range(4)]
    requests = (ask(case, _request(f"Repeat this word and nothing else: {word}")) for word in words)
    answers = [fold(events) for events in await asyncio.gather(*requests)]
    for word, answer in zip(words, answers, strict=True):
        assert answer.text.strip() and answer.finish is not None
        assert not any(other in answer.text for other in words if other != word), "an answer to another request"


async def refuses_what_is_no_request(case: LiveCase) -> None:
    """Bytes that are not a request get an error status, and the adapter decodes the error."""
    adapter = case.build()
    sent = msgspec.structs.replace(adapter.encode(_request("hi"), case.policy), body=b"\xff{")
    async with httpx.AsyncClient(timeout=case.timeout_s, trust_env=False) as client:
        url = case.base_url.rstrip("/") + sent.path
        headers = _headers(case, url, sent)
        response = await client.request(sent.method, url, headers=headers, content=sent.body)
    assert response.status_code != 200
    error = adapter.decode_error(response.status_code, response.headers, response.content)
    assert 400 <= error.status <= 599


def _request(question: str, *tools: ToolSpec) -> Conversation:
    return _conversation([Turn("user", (Text(question),))], *tools)


def _answered(first: FoldedAnswer) -> Conversation:
    text: tuple[Block, ...] = (Text(first.text),) if first.text else ()
    calls: tuple[ToolCall, ...] = first.calls
    results = [Turn("tool", (ToolResult(call.id, (Text("Sunny, 21 degrees."),)),)) for call in calls]
    return _conversation([Turn("user", (Text(QUESTION),)), Turn("assistant", (*text, *calls)), *results], WEATHER)


def _conversation(turns: list[Turn], *tools: ToolSpec) -> Conversation:
    numbered = (msgspec.structs.replace(turn, index=index) for index, turn in enumerate(turns))
    return Conversation(tuple(numbered), tools)


LiveCheck: TypeAlias = Callable[[LiveCase], Coroutine[None, None, None]]

LIVE_CHECKS: Final[tuple[LiveCheck, ...]] = (
    answers_a_question,
    knows_the_conversation,
    calls_a_tool_and_reads_its_result,
    keeps_answers_apart,
    refuses_what_is_no_request,
)
