"""From a first read with many events, the first events reach the client before the others are decoded."""

from collections.abc import Callable
from typing import Any, Final

import pytest

from gateway.core.conversation import Json
from gateway.exchange import Exchange
from gateway.server.api.relay import FIRST
from gateway.server.http.response_writer import ResponseWriter
from gateway.testing.gateway import hello, running_gateway
from tests.server.backend import END, HEAD, Connection, chunk, events, faulty_backend
from tests.server.conftest import Start, settings_for
from tests.server.samples import missing

MANY: Final = 500
TEXTS: Final = [f"text {number} " for number in range(MANY)]


def spied(monkeypatch: pytest.MonkeyPatch, said: list[tuple[str, int]]) -> None:
    """Write down what is decoded and what is sent, with its size, in the order in which it happens."""

    def spy(kind: type, name: str, size: Callable[..., int]) -> None:
        method = getattr(kind, name)

        def told(self: object, *arguments: Any) -> Any:
            said.append((name, size(*arguments)))
            return method(self, *arguments)

        monkeypatch.setattr(kind, name, told)

    spy(Exchange, "feed", len)
    spy(ResponseWriter, "open", lambda status, headers, body=b"": len(body))
    spy(ResponseWriter, "write", len)
    spy(ResponseWriter, "close", len)


async def many(connection: Connection) -> None:
    await connection.send(HEAD + events("start", *TEXTS))
    await connection.send(events("finish"), END)


async def test_the_first_events_of_a_large_read_are_sent_before_the_others_are_decoded(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[tuple[str, int]] = []
    spied(monkeypatch, said)
    gateway, _ = await start(many)
    response = await gateway.chat(stream=True)
    assert response.text.count('"content":"') == MANY + 1
    # Decoded, and sent with the head; the rest of the read in one piece.
    assert [name for name, _ in said[:3]] == ["feed", "open", "feed"]
    assert said[3][0] in ("write", "close")
    assert said[0] == ("feed", FIRST)
    assert 0 < said[1][1] < said[3][1]
    assert said[2][1] > 2 * FIRST


@pytest.mark.full
async def test_what_shows_nothing_is_decoded_in_growing_pieces(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each piece costs a step, so that an answer which shows nothing for long must not be cut into equal ones."""

    async def late(connection: Connection) -> None:
        await connection.send(HEAD + events(*["start"] * 3000, "text x"), events("finish"), END)

    said: list[tuple[str, int]] = []
    spied(monkeypatch, said)
    gateway, _ = await start(late)
    response = await gateway.chat(stream=True)
    assert '"content":"x"' in response.text
    fed = [size for name, size in said if name == "feed"]
    assert sum(fed) > 3000 * len(b"data: start\n\n")
    assert fed[:3] == [FIRST, 2 * FIRST, 4 * FIRST]
    assert len(fed) < 12


async def test_a_whole_answer_and_a_small_read_are_decoded_in_one_piece(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(connection: Connection) -> None:
        await (many if b"many" in connection.body else brief)(connection)

    async def brief(connection: Connection) -> None:
        await connection.send(HEAD + events("text Hel", "text lo", "finish") + END)

    said: list[tuple[str, int]] = []
    spied(monkeypatch, said)
    gateway, _ = await start(script)
    assert (await gateway.chat(stream=True)).text.count('"content":"') == 3
    assert [name for name, _ in said] == ["feed", "open", "close"]
    said.clear()
    whole = await gateway.client.post(
        "/v1/chat/completions", json={**hello(), "messages": [{"role": "user", "content": "many"}]}
    )
    assert whole.json()["choices"][0]["message"]["content"].split() == [str(number) for number in range(MANY)]
    assert ("feed", FIRST) not in said
    assert said[0][1] > 2 * FIRST


@pytest.mark.parametrize("end", [FIRST - 40, FIRST - 1, FIRST, FIRST + 1])
async def test_what_follows_the_end_in_the_same_read_is_told_wherever_the_read_is_cut(end: int) -> None:
    """The end of the answer may be the end of the first piece, and what is late begin the second."""
    opening, ending = b'data: {"choices":[{"index":0,"delta":{"content":"', b'"}}]}\n\n'
    finish = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    padding = b"x" * (end - len(opening + ending + finish))
    body = opening + padding + ending + finish
    assert len(body) == end

    async def late(connection: Connection) -> None:
        await connection.send(HEAD + chunk(body + (opening + b"late" + ending) * 100) + END)

    async with faulty_backend(late) as backend:
        entry: dict[str, Json] = {
            "adapter": "adapters.openai_chat.backend:OpenAIChatAdapter",
            "base_url": backend.base_url,
        }
        settings: dict[str, Json] = {**settings_for(backend.base_url), "backends": {"plain": entry}}
        async with running_gateway(settings) as gateway:
            response = await gateway.chat(stream=True)
            assert response.text.endswith("data: [DONE]\n\n")
            assert padding.decode() in response.text and "late" not in response.text
            counted = (await gateway.client.get("/metrics")).text
    assert missing(counted, 'gateway_late_events_total{backend="plain"} 1') == []
