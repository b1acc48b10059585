"""Broken or hostile requests to a running gateway: each gets its own error, and the gateway still works."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from itertools import chain
from typing import Final

import msgspec
import pytest

from tests.hostile import (
    bodies,
    gemini,
    heads,
    interactions,
    messages,
    odd_bodies,
    odd_heads,
    ollama,
    passed,
    responses,
    routes,
    websockets,
)
from tests.hostile.attacked_gateway import AttackedGateway, attacked_gateway
from tests.hostile.wire import Hostile, HostileSocket
from tests.tiers import sample

CHAT: Final = b"/v1/chat/completions"
EXPLAIN: Final = b"/v1/explain"

Tables = dict[str, Callable[[], Iterable[Hostile]]]

REFUSED: Final[Tables] = {
    "request lines": heads.request_lines,
    "header lines": heads.header_lines,
    "framings": heads.framings,
    "crossed": heads.crossed,
    "routes": routes.routes,
    "protocols": odd_heads.protocols,
    "targets": odd_heads.targets,
    "odd heads": odd_heads.heads,
    "odd bodies": odd_bodies.refused,
    "doors": routes.doors,
    "media types": routes.media,
    "documents": lambda: chain(bodies.documents(CHAT), bodies.documents(EXPLAIN)),
    "wrapper_tools": bodies.wrapper_tools,
    "sizes": bodies.sizes,
    "responses": responses.refused,
    "messages": messages.refused,
    "ollama and completions": ollama.refused,
    "gemini": gemini.refused,
    "passed routes": passed.refused,
    "interactions": interactions.refused,
    "upgrades": websockets.upgrades,
    "histories in strict mode": lambda: bodies.histories("strict", (400,)),
}
# A fault of a message is mended, and the request is served.
MENDED: Final[Tables] = {
    "odd bodies": odd_bodies.served,
    "items of responses": responses.served,
    "blocks of messages": messages.served,
    "messages of ollama": ollama.served,
    "contents of gemini": gemini.served,
    "steps of interactions": interactions.served,
    "histories to a text wire": lambda: bodies.histories("m", (200, 400)),
    "histories to a protobuf wire": lambda: bodies.histories("agent", (200, 400)),
    "histories to a JSON wire": lambda: bodies.histories("chat", (200, 400)),
    "histories to a gRPC wire": lambda: bodies.histories("g", (200, 400)),
    "items of responses to a gRPC wire": lambda: to_grpc(responses.served()),
    "blocks of messages to a gRPC wire": lambda: to_grpc(messages.served()),
    "messages of ollama to a gRPC wire": lambda: to_grpc(ollama.served()),
    "contents of gemini to a gRPC wire": lambda: to_grpc(gemini.served()),
    "steps of interactions to a gRPC wire": lambda: to_grpc(interactions.served()),
}


def to_grpc(requests: Iterable[Hostile]) -> Iterator[Hostile]:
    """The same requests to the model `g`, whose name is as long as that of `m`."""
    for found in requests:
        sent = found.sent.replace(b'"model": "m"', b'"model": "g"').replace(b"/models/m:", b"/models/g:")
        assert sent != found.sent
        yield msgspec.structs.replace(found, sent=sent)


@pytest.fixture
async def attacked(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[AttackedGateway]:
    async with attacked_gateway(monkeypatch) as opened:
        yield opened


@pytest.mark.parametrize("group", REFUSED)
async def test_every_hostile_request_is_refused(attacked: AttackedGateway, group: str) -> None:
    assert await attacked.attack(REFUSED[group]()) == {}
    assert len(attacked.backend.seen) == 1  # the greeting that asked for its health


@pytest.mark.parametrize("table", [websockets.frames, websockets.events])
async def test_all_that_is_hostile_over_a_websocket_is_an_error(
    attacked: AttackedGateway, table: Callable[[], Iterable[HostileSocket]]
) -> None:
    assert await attacked.attack_sockets(table()) == {}
    assert len(attacked.backend.seen) == 1


# Each case takes seconds.
@sample(lambda group: "gRPC" in group)
@pytest.mark.parametrize("group", MENDED)
async def test_every_hostile_history_is_served_or_refused(attacked: AttackedGateway, group: str) -> None:
    assert await attacked.attack(MENDED[group]()) == {}


def test_the_tables_are_long() -> None:
    tables = (table() for table in (*REFUSED.values(), *MENDED.values()))
    assert len(list(chain.from_iterable(tables))) > 1000
