"""Large requests are decoded in a thread, small ones in the event loop."""

import threading

import pytest

from gateway.core.conversation import Conversation, Json
from gateway.core.policy import Policy
from gateway.core.tokens import PromptSample, prompt_sample
from gateway.server.api import endpoint as chat
from tests.server.api.test_endpoint import well
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
    """By its size, and by how many values it may have. What its tokens are estimated from is counted there as well."""
    threads: list[threading.Thread] = []
    encode = PlainAdapter.encode

    def watched(self: PlainAdapter, conversation: Conversation, policy: Policy) -> object:
        threads.append(threading.current_thread())
        return encode(self, conversation, policy)

    def counted(conversation: Conversation) -> PromptSample:
        threads.append(threading.current_thread())
        return prompt_sample(conversation)

    monkeypatch.setattr(PlainAdapter, "encode", watched)
    monkeypatch.setattr("gateway.exchange.prompt_sample", counted)
    gateway, backend = await start(well)
    messages: list[Json] = [{"role": "user", "content": content}]
    response = await gateway.chat(messages=messages)
    assert response.status_code == 200
    assert backend.seen[0][1] == b"inner\n" + content.encode()
    assert [thread is not threading.current_thread() for thread in threads] == [aside] * len(threads)
    assert threads


async def test_what_is_wrong_with_a_large_request_is_told_as_of_a_small_one(start: Start) -> None:
    gateway, backend = await start(well)
    response = await gateway.chat(messages=[{"role": "user", "content": "x" * chat.LARGE}], temperature="warm")
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "temperature"
    assert not backend.seen
