"""Tests the events that a watcher of the event bus receives: every field of a request, and nothing from before."""

import json

from gateway.core.conversation import Json
from gateway.core.notices import Notice
from gateway.server.telemetry.event_bus import EventBus
from gateway.server.telemetry.request_context import Observers, RequestContext


async def test_a_watcher_receives_notices_and_outcomes() -> None:
    bus = EventBus(lambda text: text.replace("secret", "[redacted]"))
    context = RequestContext("POST", "/x", "other", {b"x-request-id": b"r1"}, Observers(bus))
    context.note([Notice("trim", "dropped", "HISTORY_LIMITED", "nobody watches yet")])
    watch = bus.watch()
    begun = anext(watch)
    bus.show_first("partial", {"worker": 1})
    assert await begun == {"event": "partial", "data": '{"worker":1}'}
    context.note([Notice("repair", "added", "CALL_ID_ADDED", "a secret", index=3, tool_call_id="call_1")])
    context.conclude(404)
    bus.close()
    told: list[tuple[str, dict[str, Json]]] = [(one["event"], json.loads(one["data"])) async for one in watch]
    notice: dict[str, Json] = {
        "request": "r1",
        "stage": "repair",
        "action": "added",
        "rule": "CALL_ID_ADDED",
        "detail": "a [redacted]",
        "index": 3,
        "tool_call_id": "call_1",
        "level": "info",
    }
    assert told[0] == ("notice", notice)
    kind, outcome = told[1]
    assert isinstance(outcome.pop("ms"), float)
    expected: dict[str, Json] = {
        "request": "r1",
        "method": "POST",
        "path": "/x",
        "key": "-",
        "model": "-",
        "backend": "-",
        "status": 404,
        "code": "-",
        "changes": "trim=1; repair=1",
    }
    assert (kind, outcome) == ("request", expected)
    assert len(told) == 2 and not bus.watchers
