"""How the inspector compares what was sent for two requests, and what it says of a provider's cache."""

from typing import Any, Final

import pytest

from gateway.core.conversation import Json
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.server.api.inspect.test_request_routes import HISTORY, asked, shown
from tests.server.api.inspect.test_routes import settings

FIRST: Final[list[Json]] = HISTORY[:2]
ANSWERED: Final[list[Json]] = [
    *FIRST,
    {"role": "assistant", "content": "Sonne."},
    {"role": "user", "content": "Danke."},
]


async def compared(gateway: RunningGateway, later: Json, **fields: Json) -> dict[str, Any]:
    """Returns the difference of a request from FIRST."""
    first = await asked(gateway, "demo-chat", FIRST)
    second = await asked(gateway, "demo-chat", later, **fields)
    found = await shown(gateway, f"{second}/diff", reveal=1)
    assert found["against"] == first
    return found


def spans(found: dict[str, Any], op: str) -> list[str]:
    return [span["text"] for one in found["changed"] for span in one["spans"] if span["op"] == op]


async def test_a_conversation_that_goes_on_keeps_the_cache() -> None:
    async with running_gateway(settings()) as gateway:
        found = await compared(gateway, ANSWERED)
        assert (found["common"], found["first_change"], found["changed"]) == (2, None, [])
        assert found["cache"]["verdict"] == "kept" and found["cache"]["cached_tokens"] is None


async def test_a_clock_in_the_system_text_breaks_it_and_is_shown() -> None:
    async with running_gateway(settings()) as gateway:
        system: Json = {"role": "system", "content": "You are terse. It is noon."}
        found = await compared(gateway, [system, *ANSWERED[1:]])
        assert (found["common"], found["first_change"], found["cache"]["verdict"]) == (0, 0, "broken")
        (changed,) = found["changed"]
        assert changed["index"] == 0 and spans(found, "+") == [" It is noon."] and spans(found, "-") == []
        assert "".join(span["text"] for span in changed["spans"]) == "You are terse. It is noon."


async def test_other_tools_and_another_model_break_it() -> None:
    async with running_gateway(settings()) as gateway:
        found = await compared(gateway, ANSWERED, tools=[])
        assert found["cache"]["verdict"] == "broken" and "tools" in found["cache"]["sentence"]
    async with running_gateway(settings()) as gateway:
        await asked(gateway, "demo-chat", FIRST)
        other = await shown(gateway, f"{await asked(gateway, 'demo-text', ANSWERED)}/diff")
        assert other["cache"]["verdict"] == "broken" and "different models" in other["cache"]["sentence"]


async def test_a_history_that_is_cut_says_where_it_differs_first() -> None:
    async with running_gateway({**settings(), "max_history_messages": 1}) as gateway:
        first = await asked(gateway, "demo-text", ANSWERED)
        longer: Json = [*ANSWERED, {"role": "assistant", "content": "Bitte."}, {"role": "user", "content": "Noch was."}]
        found = await shown(gateway, f"{await asked(gateway, 'demo-text', longer)}/diff", reveal=1)
        assert found["against"] == first and found["cache"]["verdict"] == "broken"
        assert found["common"] < 3 and found["first_change"] is not None


async def test_the_words_of_a_difference_are_replaced() -> None:
    async with running_gateway(settings()) as gateway:
        await asked(gateway, "demo-chat", FIRST)
        system: Json = {"role": "system", "content": "You are verbose."}
        found = await shown(gateway, f"{await asked(gateway, 'demo-chat', [system, *FIRST[1:]])}/diff")
        assert spans(found, "+") != ["verbose"] and [len(text) for text in spans(found, "+")] == [len("verbose")]
        assert "terse" not in str(found)


@pytest.mark.parametrize("against", ["", "?against=unknown"])
async def test_a_request_without_another_one_says_so(against: str) -> None:
    async with running_gateway(settings()) as gateway:
        request_id = await asked(gateway, "demo-chat", FIRST)
        answer = await gateway.client.get(f"/inspect/api/requests/{request_id}/diff{against}")
        assert (answer.status_code, answer.json()["error"]["code"]) == (404, "unknown_request")
