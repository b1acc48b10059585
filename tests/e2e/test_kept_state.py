"""A client that drops the state of answers works through a tool loop, in every dialect, with every provider that wants
that state back; over real sockets, with backends that refuse a history without it."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack
from itertools import count
from typing import Final

import msgspec
import pytest
import pytest_asyncio

from gateway.core.conversation import Conversation, Json, Text, ToolCall, Turn
from gateway.demo.serve import serve_demo
from gateway.testing.dialect_case import ClientAnswer, DialectCase
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.dialects.cases import CASES
from tests.e2e.dialect_wires import Response, Wire, WireGateway
from tests.e2e.test_dialects import WEATHER, results, user
from tests.tiers import sample

pytestmark = pytest.mark.asyncio(loop_scope="module")

WIRES: Final[Mapping[str, Wire]] = {
    "chat": Wire("chat", "chat", {"adapter": "openai_chat", "profile": "bare"}, "", {}),
    "responses": Wire("responses", "responses", {"adapter": "openai_responses"}, "", {}),
    "messages": Wire("messages", "messages", {"adapter": "anthropic_messages"}, "", {}),
    "gemini": Wire("gemini", "gemini", {"adapter": "gemini"}, "", {}),
}
# Their requests have no calls.
TOOLLESS: Final = frozenset({"openai_completions"})
DIALECTS: Final = [case for case in CASES if str(case) not in TOOLLESS]
# The word lets every demo model think, also that which no field of the request reaches. The ids of its calls depend on
# the question: a question of its own for each test, since the same calls twice, of other answers, are ambiguous.
QUESTION: Final = "Think: weather in Rome{number}, then weather in Paris{number}?"
_NUMBERS: Final = count()


@pytest_asyncio.fixture(loop_scope="module", scope="module", params=[True, False], ids=["kept", "not kept"])
async def gateway(request: pytest.FixtureRequest) -> AsyncIterator[tuple[bool, WireGateway]]:
    async with AsyncExitStack() as stack:
        backends = {name: await stack.enter_async_context(serve_demo(wire.demo)) for name, wire in WIRES.items()}
        settings: dict[str, Json] = {
            "keeper": {"enabled": request.param},
            # A busy machine must not look like a slow store.
            "state": {"deadline_ms": 5000},
            # Without the stand-in for lost reasoning.
            "profiles": {"bare": {"base": "deepseek-thinking", "reasoning_missing": None}},
            "backends": {name: {**wire.entry, "base_url": backends[name].base_url} for name, wire in WIRES.items()},
            "models": {name: {"backend": name, "name": f"demo-{name}-strict"} for name in WIRES},
        }
        running: RunningGateway = await stack.enter_async_context(running_gateway(settings))
        yield request.param, WireGateway(running, backends)


async def asked(gateway: WireGateway, case: DialectCase, wire: Wire, stream: bool, turns: list[Turn]) -> Response:
    conversation = Conversation(tuple(turns), model=wire.name, tools=(WEATHER,), stream=stream)
    return await gateway.ask(case, conversation)


async def loop(gateway: WireGateway, case: DialectCase, wire: Wire, stream: bool) -> list[ClientAnswer]:
    """The answers until one has no calls, or is an error. Of each, the client sends text and calls back."""
    turns, answers = [user(QUESTION.format(number=next(_NUMBERS)))], list[ClientAnswer]()
    while True:
        response = await asked(gateway, case, wire, stream, turns)
        answers.append(response.answer)
        if response.status != 200 or not response.answer.calls:
            return answers
        calls = [ToolCall(call.id, call.name, call.arguments) for call in response.answer.calls]
        said = [Text(response.answer.text)] if response.answer.text else []
        turns += [Turn("assistant", (*said, *calls)), results(*[(call, "sunny") for call in calls])]


def objects(value: Json) -> Iterator[dict[str, Json]]:
    """All objects in a body."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from objects(inner)


# The fields in which the providers' state is sent, and what refuses its absence.
STATES: Final[Mapping[str, str]] = {
    "chat": "reasoning_content",
    "responses": "encrypted_content",
    "messages": "signature",
    "gemini": "thoughtSignature",
}
WORDS: Final[Mapping[str, str]] = {
    "chat": "The reasoning_content in the thinking mode must be passed back to the API.",
    "responses": "was provided without its required 'reasoning' item",
    "gemini": "is missing a thought_signature",
}


@sample()
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)
@pytest.mark.parametrize("case", DIALECTS, ids=str)
async def test_a_tool_loop_of_a_client_that_drops_the_state(
    gateway: tuple[bool, WireGateway], case: DialectCase, wire: Wire, stream: bool
) -> None:
    kept, wires = gateway
    answers = await loop(wires, case, wire, stream)
    body = msgspec.json.decode(wires.backend(wire).requests[-1].body)
    sent = [found[STATES[wire.name]] for found in objects(body) if STATES[wire.name] in found]
    if kept:
        assert answers[-1].error is None
        assert len(answers) == 3
        assert answers[-1].text.count("sunny") == 2
        assert len(sent) == 2 and all(sent)
    elif wire.name == "messages":
        # Without thinking in the request the API demands none.
        assert sent == []
    else:
        assert len(answers) == 2
        assert WORDS[wire.name] in str(answers[-1].error)


@pytest.mark.parametrize("enabled", [True, False])
async def test_the_agent_gets_the_state_of_its_calls_back(enabled: bool) -> None:
    async with serve_demo("agent") as agent:
        settings: dict[str, Json] = {
            "keeper": {"enabled": enabled},
            "state": {"deadline_ms": 5000},
            "backends": {"a": {"adapter": "warp", "encoding": "structured", "base_url": agent.base_url}},
            "models": {"a": {"backend": "a", "name": "auto"}},
        }
        tool: Json = {
            "type": "function",
            "function": {
                "name": WEATHER.name,
                "description": WEATHER.description,
                "parameters": dict(WEATHER.parameters),
            },
        }
        async with running_gateway(settings) as gateway:
            messages: list[Json] = [{"role": "user", "content": "Weather in Rome?"}]
            first = (await gateway.chat(model="a", messages=messages, tools=[tool])).json()
            (call,) = first["choices"][0]["message"]["tool_calls"]
            state = call.pop("extra_content")["warp"]
            messages += [
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": call["id"], "content": "sunny"},
            ]
            answered = await gateway.chat(model="a", messages=messages, tools=[tool])
        assert answered.status_code == 200
        assert (state["message_id"] in str(agent.requests[-1].summary)) == enabled
