"""State of an answer reaches the client, or the state cache stores it, or a notice says that it does not."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Final

import pytest

from gateway.core.conversation import Conversation, Json, Text, Turn
from gateway.memory.provider_state.cached_state import TurnState, encode_state
from gateway.server.state import cached_states, state_cache
from gateway.testing.dialect_case import DialectCase
from gateway.testing.gateway import RunningGateway, running_gateway
from tests.dialects.cases import CASES
from tests.server.backend import Connection, FaultyBackend, answer, faulty_backend
from tests.test_lost_state import DECLINED, NOT_SHOWN, WIRES, Wire, calls, cases, request, streams, wires
from tests.tiers import sample

ADAPTERS: Final = {"messages": "anthropic_messages", "gemini": "gemini", "responses": "openai_responses"}
OFF: Final = {"x-dragoman-state": "off"}
OLLAMA: Final = next(case for case in CASES if str(case) == "ollama")
CHAT: Final = next(case for case in CASES if str(case) == "openai_chat")


class Scene:
    """A gateway with the state cache on, whose backends answer with a wire. `kept` are the states that it stored."""

    def __init__(self, kept: list[bytes]) -> None:
        self.kept = kept
        self.backend: FaultyBackend
        self.gateway: RunningGateway
        self._wire: Wire
        self._stream = False

    async def __call__(self, connection: Connection) -> None:
        kind = b"text/event-stream" if self._stream else b"application/json"
        await connection.send(answer("200 OK", self._wire.bytes(stream=self._stream), b"content-type: " + kind))

    async def ask(self, case: DialectCase, name: str, wire: Wire, *, stream: bool, off: bool = False) -> str:
        """What the client gets, with all notices."""
        self._wire, self._stream = wire, stream
        asked = Conversation((Turn("user", (Text("Look."),)),), model=name, stream=stream)
        body: dict[str, Json] = {**case.dialect().example(name)}
        if case.target(asked) == case.target(Conversation((), model=name)):
            body["stream"] = stream
        headers = {"x-dragoman-explain": "1", **(OFF if off else {})}
        response = await self.gateway.client.post(case.target(asked), json=body, headers=headers)
        assert response.status_code == 200, response.text
        return response.text


@pytest.fixture
async def scene(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    kept: list[bytes] = []

    def encode(state: TurnState) -> bytes:
        kept.append(encode_state(state))
        return kept[-1]

    monkeypatch.setattr(state_cache, "encode_state", encode)
    async with AsyncExitStack() as stack:
        scene = Scene(kept)
        scene.backend = await stack.enter_async_context(faulty_backend(scene))
        backends: dict[str, Json] = {
            name: {"adapter": adapter, "base_url": scene.backend.base_url} for name, adapter in ADAPTERS.items()
        }
        settings: dict[str, Json] = {
            "keeper": {"enabled": True},
            # A busy machine must not look like a slow store.
            "state": {"deadline_ms": 5000},
            "backends": backends,
            "models": {name: {"backend": name} for name in ADAPTERS},
        }
        scene.gateway = await stack.enter_async_context(running_gateway(settings))
        yield scene


@sample("case", "name", "call", "stream")
@cases
@wires
@calls
@streams
async def test_state_comes_is_kept_or_is_told(
    scene: Scene, case: DialectCase, name: str, *, call: bool, stream: bool
) -> None:
    if call and "calls" not in case.reads:
        pytest.skip("a call fails the answer")
    wire = WIRES[name](call=call)
    text = await scene.ask(case, name, wire, stream=stream)
    kept = b"".join(scene.kept).decode("latin-1")
    lost = [state for state in wire.states if state not in text and state not in kept]
    # What a client declines as a whole is told as that.
    declined = request(case, stream=stream).conversation.reads.isdisjoint({"reasoning", "state"})
    assert text.count(f'"{NOT_SHOWN}"') == (1 if lost and not declined else 0)
    assert not (lost and declined) or DECLINED in text


async def test_what_is_kept_is_told_where_the_keeper_is_off(scene: Scene) -> None:
    wire = WIRES["messages"](call=True)
    assert NOT_SHOWN not in await scene.ask(OLLAMA, "messages", wire, stream=False)
    assert len(scene.kept) == 1
    assert NOT_SHOWN in await scene.ask(OLLAMA, "messages", wire, stream=False, off=True)
    assert len(scene.kept) == 1
    # The client of chat completions has a copy of its own.
    assert NOT_SHOWN not in await scene.ask(CHAT, "messages", wire, stream=False, off=True)


async def test_state_for_whose_write_there_is_no_room_is_told(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached_states.RequestStates, "later", lambda *_: False)
    assert NOT_SHOWN in await scene.ask(OLLAMA, "messages", WIRES["messages"](call=True), stream=False)


async def test_state_above_the_bound_is_told(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_cache, "MOST_ENTRY", 10)
    assert NOT_SHOWN in await scene.ask(OLLAMA, "messages", WIRES["messages"](call=True), stream=False)
