"""A notice shows the values that it is about: of an added result that result, not what else became of its message."""

from typing import Any, Final

import pytest

from gateway.core.conversation import Json
from gateway.testing.gateway import running_gateway
from tests.server.api.inspect.test_routes import settings

ADDED: Final = "CALLS_UNANSWERED"


async def changes_of(*ids: str) -> list[tuple[str, list[dict[str, Json]]]]:
    """The rules and the changes of the notices about a request whose calls have these ids and no results."""
    calls: Json = [{"id": one, "type": "function", "function": {"name": "f", "arguments": "{}"}} for one in ids]
    messages: list[Json] = [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Wait.", "tool_calls": calls},
        {"role": "user", "content": "Go on"},
    ]
    async with running_gateway(settings()) as gateway:
        answer = await gateway.chat(model="demo-chat", messages=messages)
        shown: Any = (await gateway.client.get(f"/inspect/api/requests/{answer.headers['x-request-id']}")).json()
    return [(notice["rule"], notice["changes"]) for notice in shown["notices"] if notice["changes"]]


@pytest.mark.parametrize(
    ("ids", "rule", "changed"),
    [(("a", "a"), "CALL_ID_DUPLICATE", ["calls[1].id"]), (("", ""), "CALL_ID_MISSING", ["calls[0].id", "calls[1].id"])],
)
async def test_an_added_result_is_the_change_of_its_notice(ids: tuple[str, str], rule: str, changed: list[str]) -> None:
    found = await changes_of(*ids)
    fields = {name: [change["field"] for change in changes] for name, changes in found}
    assert fields == {rule: changed, ADDED: ["message"]}
    for name, changes in found:
        if name == ADDED:
            (change,) = changes
            assert change["was"] is None
            assert "no result" in str(change["now"])
