"""A feature sees each request before it is prepared and each event before it is sent; over real sockets."""

from collections.abc import Sequence

import msgspec
import pytest

from gateway.core.conversation import Conversation, Text, Turn
from gateway.core.errors import BackendError
from gateway.core.events import Event, Finish, TextDelta
from gateway.core.notices import Notice
from gateway.server.state.request_state import RequestState, StateFeatures
from gateway.server.state.stores import RequestStore
from gateway.server.telemetry.request_context import RequestContext
from gateway.server.upstream.backends import Backend
from gateway.settings import ModelSettings
from tests.server.backend import END, HEAD, Connection, answer, events
from tests.server.conftest import Start
from tests.server.state.faulty_store import FaultyStore, guarded

RECALLED = Notice("state", "added", "STATE_RESTORED", "one turn was remembered", level="info")


class Memory:
    """Remembers one turn for each request, and shouts; switched off for the model `n`."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.texts: list[str] = []

    def begin(
        self,
        context: RequestContext,
        route: ModelSettings,
        backend: Backend,
        conversation: Conversation,
        store: RequestStore,
    ) -> "Memory | None":
        self.done.append(f"begin {context.key} {route.name} {backend.name} {conversation.model}")
        return None if context.model == "n" else self

    async def recall(self, conversation: Conversation) -> tuple[Conversation, Sequence[Notice]]:
        remembered = Turn("user", (Text("remembered"),))
        return msgspec.structs.replace(conversation, turns=(remembered, *conversation.turns)), (RECALLED,)

    def record(self, events: Sequence[Event]) -> Sequence[Event]:
        self.texts += [event.text for event in events if isinstance(event, TextDelta)]
        self.done += ["finish" for event in events if isinstance(event, Finish)]
        return [TextDelta(event.text.upper()) if isinstance(event, TextDelta) else event for event in events]

    def refuse(self, error: BackendError) -> None:
        self.done.append(f"refuse {error.status}")

    async def conclude(self) -> Sequence[Notice]:
        self.done.append("conclude")
        return ()


async def well(connection: Connection) -> None:
    await connection.send(HEAD, events("text Hel"), events("text lo", "finish"), END)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_feature_changes_the_request_and_reads_the_answer(start: Start, stream: bool) -> None:
    gateway, backend = await start(well)
    memory = Memory()
    state = gateway.app.gateway_state
    state.features = StateFeatures([memory], state.stores)
    response = await gateway.chat(stream=stream)
    assert response.status_code == 200
    assert backend.seen[0][1] == b"inner\nremembered\nHello"
    assert "state=1" in response.headers["x-dragoman-changes"].split("; ")
    assert "LO" in response.text
    assert "".join(memory.texts) == "Hello"
    assert memory.done == ["begin - inner plain inner", "finish", "conclude"]


async def test_a_model_without_the_feature_and_a_client_that_wants_none_are_left_alone(start: Start) -> None:
    gateway, backend = await start(well)
    memory = Memory()
    state = gateway.app.gateway_state
    state.features = StateFeatures([memory], state.stores)
    assert (await gateway.chat(model="n")).json()["choices"][0]["message"]["content"] == "Hello"
    gateway.client.headers["x-dragoman-state"] = "off"
    assert (await gateway.chat()).json()["choices"][0]["message"]["content"] == "Hello"
    gateway.client.headers["x-dragoman-state"] = "of"
    refused = await gateway.chat()
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "x-dragoman-state")
    assert [body for _, body in backend.seen] == [b"n\nHello", b"inner\nHello"]
    assert memory.done == ["begin - None plain n"]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_refusal_is_told_and_a_broken_answer_is_never_concluded(start: Start, stream: bool) -> None:
    async def refusing(connection: Connection) -> None:
        await connection.send(answer("400 x", b"no"))

    async def breaking(connection: Connection) -> None:
        await connection.send(HEAD, events("text Hel"))
        connection.writer.close()

    for script, status in ((refusing, 400), (breaking, 502)):
        gateway, _ = await start(script)
        memory = Memory()
        state = gateway.app.gateway_state
        state.features = StateFeatures([memory], state.stores)
        response = await gateway.chat(stream=stream)
        assert "error" in response.text
        assert memory.done[1:] == [f"refuse {status}"]


async def test_each_part_gets_what_the_one_before_it_returns() -> None:
    first, second = Memory(), Memory()
    state = RequestState([first, second], RequestStore(guarded(FaultyStore()), "-", 1))
    conversation = await state.recall(Conversation((Turn("user", (Text("Hello"),)),)))
    assert [turn.text for turn in conversation.turns] == ["remembered", "remembered", "Hello"]
    assert state.notices == [RECALLED, RECALLED]
    state.record([TextDelta("a")])
    assert (first.texts, second.texts) == (["a"], ["A"])
