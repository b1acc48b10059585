import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from gateway.inspector.filter import Word, holds
from gateway.server.inspect.capture import Capture
from gateway.server.inspect.own_requests import OwnRequests
from gateway.server.inspect.serial_thread import SerialThread
from gateway.testing.gateway import running_gateway
from tests.server.api.inspect.test_request_routes import asked
from tests.server.api.inspect.test_routes import settings
from tests.server.inspect.test_recent_requests import recent_of, serve

SECRET = "sk-abcdefghijklmnop"


@pytest.mark.parametrize(
    ("text", "word", "expected"),
    [
        (b"The Cosmodrome", "cosmodrome", True),
        (b"The Cosmodrome", "rocket", False),
        ("Über Köln".encode(), "Köln", True),
        (b'{"content": "K\\u00f6ln"}', "Köln", True),
        (b'{"content": "a \\"b\\""}', 'a "b"', True),
        (b"\xff\xfe Moon", "moon", True),
    ],
)
def test_a_word_is_found_in_either_case_and_as_json_writes_it(text: bytes, word: str, expected: bool) -> None:
    assert holds([b"", text], [Word(word)], ()) is expected
    assert holds([b"", text], [Word(word, absent=True)], ()) is not expected


def test_every_word_must_be_there_but_not_in_one_text() -> None:
    assert holds([b"one", b"two"], [Word("one"), Word("two")], ())
    assert not holds([b"one", b"two"], [Word("one"), Word("two", absent=True)], ())


@pytest.mark.parametrize("part", [SECRET, SECRET[:8], "configured-17", "configured"])
def test_no_part_of_a_secret_is_found(part: str) -> None:
    assert not holds([f"key {SECRET} configured-17".encode()], [Word(part)], ["configured-17"])


async def test_the_list_is_searched() -> None:
    async with running_gateway(settings()) as gateway:
        first = await asked(gateway, "demo-chat")
        await asked(gateway, "demo-chat", [{"role": "user", "content": "Something else"}])
        for text, expected in (("kassel", [first]), ("Kassel -regen", []), ('"Wetter in" model:demo-*', [first])):
            answer = await gateway.client.get("/inspect/api/requests", params={"filter": text})
            assert [one["id"] for one in answer.json()["requests"]] == expected
            assert (answer.json()["matching"], answer.json()["total"]) == (len(expected), 2)
            assert answer.json()["words"] == [word for word in ("kassel", "Kassel", "Wetter in") if word in text]


async def test_nobody_searches_words_that_nobody_may_see() -> None:
    async with running_gateway(settings(reveal=False)) as gateway:
        await asked(gateway, "demo-chat")
        answer = await gateway.client.get("/inspect/api/requests", params={"filter": "Kassel"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "not_revealed")


@pytest.mark.full
@pytest.mark.parametrize("filter", ["x", "-y", "live:no", "model:nothing", "live:no x"])
async def test_others_are_served_while_ten_thousand_requests_are_searched(
    filter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recent = recent_of(keep=10_000, contents="always")
    for number in range(10_000):
        serve(recent, f"r{number}")
    steps = 0

    def counted(work: Callable[..., Any]) -> Callable[..., Any]:
        def count(*args: Any) -> Any:
            nonlocal steps
            steps += 1
            return work(*args)

        return count

    monkeypatch.setattr(recent, "_summary", counted(recent._summary))
    monkeypatch.setattr(Capture, "texts", counted(Capture.texts))
    turns: list[int] = []

    async def take_turns() -> None:
        while True:
            turns.append(steps)
            await asyncio.sleep(0)

    others = asyncio.create_task(take_turns())
    found = await OwnRequests(recent, SerialThread(), list, lambda: None).listed(filter, None, 200)
    others.cancel()
    assert (found.matching, found.total) == (0 if filter == "model:nothing" else 10_000, 10_000)
    assert steps >= 10_000
    assert max(after - before for before, after in pairwise([*turns, steps])) <= 1000
