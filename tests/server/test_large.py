"""Large requests are read in a thread, small ones where they came in."""

import threading

import pytest

from gateway.policy import Policy
from gateway.server import chat
from gateway.types import Conversation, Json
from tests.server.conftest import Start
from tests.server.plain import PlainAdapter
from tests.server.test_chat import well


@pytest.mark.parametrize(("size", "aside"), [(10, False), (chat.LARGE, True)])
async def test_where_a_request_is_prepared(
    size: int, aside: bool, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []
    encode = PlainAdapter.encode

    def watched(self: PlainAdapter, conversation: Conversation, policy: Policy) -> object:
        threads.append(threading.current_thread())
        return encode(self, conversation, policy)

    monkeypatch.setattr(PlainAdapter, "encode", watched)
    gateway, backend = await start(well)
    messages: list[Json] = [{"role": "user", "content": "x" * size}]
    response = await gateway.chat(messages=messages)
    assert response.status_code == 200
    assert backend.seen[0][1] == b"inner\n" + b"x" * size
    assert [thread is not threading.current_thread() for thread in threads] == [aside]


async def test_what_is_wrong_with_a_large_request_is_told_as_of_a_small_one(start: Start) -> None:
    gateway, backend = await start(well)
    response = await gateway.chat(messages=[{"role": "user", "content": "x" * chat.LARGE}], temperature="warm")
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "temperature"
    assert not backend.seen
