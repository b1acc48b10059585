"""Large requests are decoded in a thread, small ones in the event loop."""

import threading

import pytest

from gateway.core.conversation import Conversation, Json
from gateway.core.policy import Policy
from gateway.core.tokens import prompt_tokens
from gateway.server.api import endpoint as chat
from gateway.server.api.relay import LARGE
from tests.server.api.test_endpoint import well
from tests.server.backend import END, HEAD, Connection, events
from tests.server.conftest import Start
from tests.server.plain import PlainAdapter


@pytest.mark.parametrize(
    ("content", "aside"),
    [
        ("x" * 10, False),
        ("x" * chat.LARGE, True),
        ("," * chat.MANY, False),
        ("," * chat.SOME, True),
        ("." * chat.SOME, False),
    ],
    ids=["small", "large", "many in little", "many", "some"],
)
async def test_where_a_request_is_prepared(
    content: str, aside: bool, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its size, and by how many values it may have."""
    threads: list[threading.Thread] = []
    encode = PlainAdapter.encode

    def watched(self: PlainAdapter, conversation: Conversation, policy: Policy) -> object:
        threads.append(threading.current_thread())
        return encode(self, conversation, policy)

    monkeypatch.setattr(PlainAdapter, "encode", watched)
    gateway, backend = await start(well)
    messages: list[Json] = [{"role": "user", "content": content}]
    response = await gateway.chat(messages=messages)
    assert response.status_code == 200
    assert backend.seen[0][1] == b"inner\n" + content.encode()
    assert [thread is not threading.current_thread() for thread in threads] == [aside]


@pytest.mark.parametrize(("size", "counts", "aside"), [(10, False, [False]), (LARGE, False, [True]), (LARGE, True, [])])
async def test_the_tokens_of_a_long_prompt_are_estimated_in_a_thread_where_no_backend_counts_them(
    size: int, counts: bool, aside: list[bool], start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []

    def counted(conversation: Conversation) -> int:
        threads.append(threading.current_thread())
        return prompt_tokens(conversation)

    monkeypatch.setattr("gateway.exchange.prompt_tokens", counted)

    async def answered(connection: Connection) -> None:
        usage = ["usage 7 2"] if counts else []
        await connection.send(HEAD, events("text two words", *usage, "finish"), END)

    gateway, _ = await start(answered)
    response = await gateway.chat(messages=[{"role": "user", "content": "x" * size}])
    assert response.json()["usage"]["completion_tokens"] == 2
    assert [thread is not threading.current_thread() for thread in threads] == aside


async def test_what_is_wrong_with_a_large_request_is_told_as_of_a_small_one(start: Start) -> None:
    gateway, backend = await start(well)
    response = await gateway.chat(messages=[{"role": "user", "content": "x" * chat.LARGE}], temperature="warm")
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "temperature"
    assert not backend.seen
