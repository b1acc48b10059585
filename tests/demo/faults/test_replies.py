"""What the model does wrong, as a client of the gateway sees it through each wire."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

import pytest

from gateway.core.conversation import Json
from gateway.demo.faults.replies import REPLIES
from gateway.demo.serve import KINDS
from gateway.testing.gateway import RunningGateway
from tests.demo.faults.gateway import SOUND, gateway_of
from tests.demo.faults.requests import TOOLS

# Any: a message of a response is JSON.
Message: TypeAlias = dict[str, Any]
Ask: TypeAlias = Callable[..., Awaitable[Message]]

CLOCK: Final[Json] = {"type": "function", "function": {"name": "clock", "description": "Tells the time"}}
BOTH: Final = [*TOOLS, CLOCK]
CASES: Final = [(name, kind) for name, defect in REPLIES.items() for kind in defect.wires]


def asking(gateway: RunningGateway, model: str) -> Ask:
    """Return what asks a model a question, and returns its message, or the error in place of one."""

    async def ask(question: str, *after: Json, **fields: Json) -> Message:
        user: Json = {"role": "user", "content": question}
        response = await gateway.chat(model=model, messages=[user, *after], **fields)
        body: Any = response.json()
        message: Message = body["choices"][0]["message"] if response.status_code == 200 else {"error": body["error"]}
        return message

    return ask


def calls_of(message: Message) -> list[Message]:
    calls: list[Message] = message.get("tool_calls") or []
    return calls


def names_of(message: Message) -> list[str]:
    return [call["function"]["name"] for call in calls_of(message)]


def ids_of(message: Message) -> list[str]:
    return [call["id"] for call in calls_of(message)]


async def _two(ask: Ask) -> Message:
    return await ask("What is the weather in Paris and Rome?", tools=TOOLS)


async def _offered(ask: Ask) -> object:
    """Whether it calls the tool that it was offered."""
    return set(names_of(await _two(ask))) == {"get_weather"}


async def _count(ask: Ask) -> object:
    return len(calls_of(await _two(ask)))


async def _short(ask: Ask) -> object:
    return all(len(call_id) <= 64 for call_id in ids_of(await _two(ask)))


async def _plain(ask: Ask) -> object:
    return not any(":" in call_id for call_id in ids_of(await _two(ask)))


async def _again(ask: Ask) -> object:
    """Whether the ids of the calls of two answers differ."""
    first = ids_of(await ask("What is the weather in Paris?", tools=TOOLS))
    second = ids_of(await ask("What is the weather in Rome?", tools=TOOLS))
    return len({*first, *second}) == 2


async def _none(ask: Ask) -> object:
    return names_of(await ask("What is the weather in Rome?", tools=TOOLS, tool_choice="none"))


async def _required(ask: Ask) -> object:
    return len(calls_of(await ask("Hello", tools=BOTH, tool_choice="required")))


async def _named(ask: Ask) -> object:
    choice: Json = {"type": "function", "function": {"name": "clock"}}
    return names_of(await ask("What is the weather in Rome?", tools=BOTH, tool_choice=choice))


async def _answered(ask: Ask) -> object:
    """Whether a result ends the calls."""
    called = await ask("What is the weather in Rome?", tools=TOOLS)
    results: list[Json] = [{"role": "tool", "tool_call_id": one, "content": "sunny"} for one in ids_of(called)]
    said = await ask("What is the weather in Rome?", called, *results, tools=TOOLS)
    return "sunny" in (said.get("content") or "")


async def _thoughts(ask: Ask) -> object:
    return "<think>" in (await ask("Hello", reasoning_effort="high"))["content"]


async def _text(ask: Ask) -> object:
    return bool((await ask("Hello")).get("content"))


async def _recalled(ask: Ask) -> object:
    """Whether it reads the beginning of a long question."""
    return "falcon" in (await ask('Repeat "falcon". ' + "and on " * 1000))["content"]


async def _same(ask: Ask) -> object:
    first, second = [(await ask("Hello", seed=7, temperature=0))["content"] for _ in range(2)]
    return first == second


# What to look at, what the sound backend shows there, and what the wrong one does.
LOOKS: Final[Mapping[str, tuple[Callable[[Ask], Awaitable[object]], object, object]]] = {
    "name_changed": (_offered, True, False),
    "one_of_two_calls": (_count, 2, 1),
    "ids_too_long": (_short, True, False),
    "ids_repeated": (_again, True, False),
    "ids_with_colons": (_plain, True, False),
    "ignores_choice_none": (_none, [], ["get_weather"]),
    "ignores_choice_required": (_required, 1, 0),
    "ignores_choice_named": (_named, ["clock"], ["get_weather"]),
    "ignores_results": (_answered, True, False),
    "calls_as_text": (_count, 2, 0),
    "thoughts_as_text": (_thoughts, False, True),
    "empty_answer": (_text, True, False),
    "context_cut": (_recalled, True, False),
    "ignores_seed": (_same, True, False),
}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_client_sees_each_difference(kind: str) -> None:
    looks = {name: LOOKS[name] for name, defect in REPLIES.items() if kind in defect.wires}
    async with gateway_of(kind, looks) as gateway:
        sound = {name: await look(asking(gateway, SOUND)) for name, (look, _, _) in looks.items()}
        wrong = {name: await look(asking(gateway, name)) for name, (look, _, _) in looks.items()}
    assert sound == {name: expected for name, (_, expected, _) in looks.items()}
    assert wrong == {name: expected for name, (_, _, expected) in looks.items()}
