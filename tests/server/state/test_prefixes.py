"""The beginnings of conversations are kept apart, within their bound, and until their key is forgotten."""

import gc
import json
import threading
import tracemalloc
from collections.abc import Sequence
from typing import Any, Final

import pytest

from adapters.openai_chat.client.dialect import OpenAIChatDialect
from gateway.core.conversation import Json, have_derived
from gateway.dialect import ClientRequest, RequestHead
from gateway.dialects import prefix as prefix_module
from gateway.dialects.prefix import Prefix, Reading
from gateway.server.state import prefixes as prefixes_module
from gateway.server.state.prefixes import LEAST, Prefixes, RequestPrefix
from gateway.server.telemetry.metrics import Metrics
from gateway.server.telemetry.request_context import CHAT, Observers, RequestContext
from gateway.settings import read_settings
from gateway.testing.gateway import running_gateway
from tests.server.backend import END, HEAD, Connection, events, faulty_backend
from tests.server.conftest import settings_for
from tests.tiers import sample

DIALECT: Final = OpenAIChatDialect()
LONG: Final = "The service reads its settings from three files, in this order. " * 40


def talk(name: str, turns: int) -> bytes:
    """The body of a conversation with so many questions, with an answer between each."""
    said: list[Json] = [{"role": "user", "content": f"{name}. {LONG}"}]
    for number in range(1, turns):
        said.append({"role": "assistant", "content": f"{name} {number}. {LONG}"})
        said.append({"role": "user", "content": f"Why {name} {number}? {LONG}"})
    return json.dumps({"model": "m", "messages": said}).encode()


class Worker:
    """The beginnings that one worker keeps."""

    def __init__(self, most_bytes: int = 1 << 24) -> None:
        self.epochs: dict[str, float] = {}
        self.looks: list[Sequence[str]] = []
        self.metrics = Metrics()
        self.refused: set[str] = set()
        self.prefixes = Prefixes(
            most_bytes,
            self.metrics,
            lambda context: context.key not in self.refused,
            self.read_epochs,
        )

    def read_epochs(self, keys: Sequence[str]) -> list[float]:
        self.looks.append(keys)
        return [self.epochs.get(key, 0.0) for key in keys]

    def begin(self, key: str = "alice", size: int = LEAST) -> RequestPrefix | None:
        context = RequestContext("POST", "/", CHAT, {}, Observers())
        context.key = key
        return self.prefixes.of(context, DIALECT, size)

    def begun(self, name: str, turns: int, key: str = "alice") -> None:
        """Serves a conversation until it is kept."""
        for _ in range(2):
            self.serve(talk(name, turns), key)

    @property
    def kept(self) -> list[Prefix]:
        return [*self.prefixes._by_age]

    def read(self, body: bytes) -> ClientRequest:
        prefix = self.begin()
        assert prefix is not None
        prefix.is_known(body, LEAST)
        request = prefix.settled(DIALECT.decode(prefix.document(body), RequestHead("")))
        prefix.keep()
        return request

    def serve(self, body: bytes, key: str = "alice") -> int:
        """Reads a request, and returns how many of its messages were known."""
        prefix = self.begin(key)
        assert prefix is not None
        document = prefix.document(body)
        request = prefix.settled(DIALECT.decode(document, RequestHead("")))
        assert request == DIALECT.decode(prefix.document(body), RequestHead(""))
        prefix.keep()
        return len(document.known)

    @property
    def bytes(self) -> int:
        return int(sum(sample.value for sample in self.metrics.prefix_bytes.samples()))


def test_the_next_request_of_a_conversation_is_known() -> None:
    worker = Worker()
    # The second one is the first that is kept.
    assert [worker.serve(talk("a", turns)) for turns in (2, 3, 5)] == [0, 0, 5]
    assert worker.serve(talk("b", 2)) == 0
    assert worker.serve(talk("a", 6)) == 9


def test_a_conversation_is_kept_once() -> None:
    worker = Worker()
    for turns in range(2, 9):
        worker.serve(talk("a", turns))
    twice = Worker()
    twice.serve(talk("a", 7))
    twice.serve(talk("a", 8))
    assert worker.bytes == pytest.approx(twice.bytes, rel=0.1)


def test_nothing_is_kept_of_a_first_request_but_a_digest() -> None:
    worker = Worker()
    first = [worker.read(talk(name, 8)) for name in "abc"]
    assert not any(have_derived(request.conversation.turns) for request in first)
    assert not worker.kept
    assert worker.bytes == 0
    # What is derived of the second one is kept with its turns, which the third one has.
    second = worker.read(talk("b", 9))
    assert have_derived(second.conversation.turns)
    assert second.conversation.turns[0] is not first[1].conversation.turns[0]
    assert worker.read(talk("b", 11)).conversation.turns[16] is second.conversation.turns[16]
    assert len(worker.kept) == 1


@pytest.mark.parametrize("more", range(1, 9))
def test_a_second_request_is_known_for_one_whatever_it_adds(more: int) -> None:
    for turns in range(2, 20):
        worker = Worker()
        worker.serve(talk("a", turns))
        worker.serve(talk("a", min(turns + more, 2 * turns)))
        assert len(worker.kept) == 1, turns


def test_a_digest_says_nothing_to_another_key_and_is_forgotten() -> None:
    worker = Worker()
    worker.serve(talk("a", 4), "alice")
    worker.serve(talk("a", 5), "bob")
    assert not worker.kept
    worker.epochs["alice"] = 1.0
    worker.prefixes.check_epochs()
    worker.serve(talk("a", 6), "alice")
    assert not worker.kept
    worker.serve(talk("a", 7), "alice")
    assert len(worker.kept) == 1
    worker.serve(talk("a", 6), "bob")
    assert len(worker.kept) == 2


def test_the_epochs_of_those_keys_are_looked_up_of_which_something_is_kept_in_one_look() -> None:
    worker = Worker(most_bytes=1 << 20)
    for number in range(100):
        worker.begun("a", 6, f"key {number}")
    gone = worker.begin("gone")
    assert gone is not None
    worker.serve(talk("b", 4), "digest")
    worker.looks.clear()
    worker.prefixes.check_epochs()
    (looked,) = worker.looks
    kept = {owner.key for owner in worker.prefixes._kept}
    digested = {*worker.prefixes._digests.values()}
    assert {*looked} == kept | digested == {*worker.prefixes._epochs}
    # A request that began before is kept nevertheless, unless its key was forgotten.
    gone.settled(DIALECT.decode(gone.document(talk("c", 4)), RequestHead("")))
    gone.keep()
    assert "gone" in worker.prefixes.keys


def test_two_workers_make_different_digests_of_one_message() -> None:
    digests: list[bytes] = []
    for _ in range(2):
        worker = Worker()
        worker.serve(talk("a", 4))
        digests += worker.prefixes._digests
    assert len({*digests}) == 2


def test_digests_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefixes_module, "_MOST_DIGESTS", 3)
    worker = Worker()
    for number in range(9):
        worker.serve(talk(str(number), 4))
    assert len(worker.prefixes._digests) == 3


# Bodies of JSON values that take much more memory than their text.
WIDE: Final[dict[str, Any]] = {
    "empty arrays": [[]] * 20_000,
    "empty objects": [{}] * 20_000,
    "nested": [[[[[[[{"a": 1}]]]]]]] * 4_000,
    "numbers": [1.5] * 20_000,
    "short texts": ["ab"] * 20_000,
    "one wide character": "x" * 60_000 + "\U0001f600",
    "wide texts": ["\u4e2d" * 5, "\U0001f600"] * 9_000,
    "commas in a text": "a,b," * 20_000,
    "text": "x" * 80_000,
    "keys": {f"key {number}": number for number in range(9_000)},
}


@sample("place")
@pytest.mark.parametrize("shape", WIDE)
@pytest.mark.parametrize("place", ["message", "tools"])
def test_the_memory_that_is_counted_is_not_less_than_it_is(shape: str, place: str) -> None:
    def written(name: str) -> bytes:
        more = WIDE[shape]
        fields = {"x": more} if place == "message" else {}
        said = [{"role": "user", "content": name}, {"role": "assistant", "content": "Yes.", **fields}]
        function = {"type": "function", "function": {"name": "f", "parameters": {"enum": more}}}
        offered = {"tools": [function]} if place == "tools" else {}
        return json.dumps({"model": "m", "messages": said * 4, **offered}, ensure_ascii=False).encode()

    worker = Worker(most_bytes=1 << 30)
    worker.read(written("a"))
    bodies = [written(name) for name in "bcde"]
    for body in bodies:
        worker.read(body)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for body in bodies:
            worker.read(body)
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    # The bodies themselves are those of the test.
    assert len(worker.kept) == 4
    # Commas in the texts of tools count as if they parted values.
    times = 30 if (shape, place) == ("commas in a text", "tools") else 9
    assert taken <= worker.bytes - sum(map(len, bodies)) <= times * taken


def test_a_body_with_a_byte_order_mark_is_served_and_not_kept() -> None:
    worker = Worker()
    for turns in (4, 5, 6):
        assert worker.serve(b"\xef\xbb\xbf" + talk("a", turns)) == 0
    assert not worker.kept


def test_a_body_that_would_take_too_much_is_not_looked_up() -> None:
    worker = Worker(most_bytes=1 << 20)
    assert worker.begin(size=1 << 15) is not None
    assert worker.begin(size=1 << 16) is None


def test_a_key_knows_nothing_of_another() -> None:
    worker = Worker()
    worker.begun("a", 4, "alice")
    assert worker.serve(talk("a", 5), "bob") == 0
    assert worker.serve(talk("a", 5), "bob") == 0
    assert worker.serve(talk("a", 5), "alice") == 7


def test_the_oldest_go_first_within_the_bound() -> None:
    worker = Worker(most_bytes=1 << 20)
    for number in range(100):
        worker.begun(str(number), 4, f"key{number % 3}")
        assert 0 < worker.bytes <= 1 << 20
    assert worker.serve(talk("99", 5), "key0") == 7
    assert worker.serve(talk("0", 5), "key0") == 0


def test_one_key_does_not_take_the_place_of_all() -> None:
    worker = Worker(most_bytes=1 << 20)
    for name in "ab":
        worker.begun(name, 6, name)
    for number in range(100):
        worker.begun(f"c {number}", 6, "c")
    assert worker.bytes <= 1 << 20
    assert [worker.serve(talk(name, 7), name) for name in ("a", "b", "c")] == [11, 11, 0]
    # Nor does it keep its place against all others.
    for number in range(100):
        worker.begun("d", 6, f"d {number}")
    assert worker.serve(talk("c 99", 7), "c") == 0
    assert worker.bytes <= 1 << 20


def test_one_conversation_does_not_take_the_place_of_all() -> None:
    worker = Worker(most_bytes=1 << 20)
    worker.begun("a", 4)
    worker.begun("b", 14)
    assert worker.serve(talk("b", 14)) == 0
    assert worker.serve(talk("a", 5)) == 7


def test_nothing_is_kept_where_nothing_may_be() -> None:
    worker = Worker()
    worker.refused.add("alice")
    assert worker.begin("alice") is None
    assert Worker(most_bytes=0).begin() is None
    small = RequestContext("POST", "/", CHAT, {}, Observers())
    assert worker.prefixes.of(small, DIALECT, LEAST - 1) is None


def test_what_is_forgotten_is_gone() -> None:
    worker = Worker()
    worker.begun("a", 4, "alice")
    worker.begun("a", 4, "bob")
    begun = worker.begin("alice")
    assert begun is not None
    begun.settled(DIALECT.decode(begun.document(talk("a", 5)), RequestHead("")))
    first = worker.begin("alice")
    assert first is not None
    first.settled(DIALECT.decode(first.document(talk("c", 5)), RequestHead("")))
    both = worker.bytes
    worker.epochs["alice"] = 1.0
    worker.prefixes.check_epochs()
    assert worker.bytes == both / 2
    # What has begun before is not kept after it.
    begun.keep()
    first.keep()
    assert worker.bytes == both / 2
    assert "alice" not in worker.prefixes._digests.values()
    assert worker.serve(talk("a", 5), "alice") == 0
    assert worker.serve(talk("a", 5), "bob") == 7


def test_a_request_that_is_no_object_of_messages_is_not_kept() -> None:
    worker = Worker()
    whole = talk("a", 4)
    for body in (whole.replace(b'"messages": [', b'"input": ['), whole.replace(b'{"role"', b'7, {"role"', 1)):
        prefix = worker.begin()
        assert prefix is not None
        prefix.document(body)
        prefix.keep()
    assert worker.bytes == 0


async def answer(connection: Connection) -> None:
    await connection.send(HEAD, events("text Hello", "finish"), END)


async def test_a_gateway_reads_the_next_request_from_where_it_is_new() -> None:
    async with faulty_backend(answer) as backend, running_gateway(settings_for(backend.base_url)) as gateway:
        state = gateway.app.gateway_state

        async def ask(turns: int, **headers: str) -> bytes:
            sent = {"content-type": "application/json", **headers}
            response = await gateway.client.post("/v1/chat/completions", content=talk("a", turns), headers=sent)
            assert response.status_code == 200
            return backend.seen[-1][1]

        def counted() -> dict[str, float]:
            return {sample.labels[0]: sample.value for sample in state.metrics.prefix_requests.samples()}

        received = [await ask(turns) for turns in (5, 6, 7)]
        assert counted() == {"new": 2, "known": 1}
        off = {"x-dragoman-state": "off"}
        assert [await ask(turns, **off) for turns in (5, 6, 7)] == received
        assert counted() == {"new": 2, "known": 1}
        state.state_keys.folder.begin()
        state.state_keys.folder.forget("-")
        state.tick()
        assert not sum(sample.value for sample in state.metrics.prefix_bytes.samples())
        assert await ask(7) == received[-1]
        assert counted() == {"new": 3, "known": 1}
        assert [await ask(turns) for turns in (7, 7)] == [received[-1]] * 2
        assert counted() == {"new": 4, "known": 2}
        # Other settings read the same words anew.
        await state.change(read_settings({**settings_for(backend.base_url), "max_tool_results": 3}))
        assert await ask(7) == received[-1]
        assert counted() == {"new": 5, "known": 2}


async def test_the_turns_of_a_stored_answer_are_not_kept() -> None:
    async with faulty_backend(answer) as backend, running_gateway(settings_for(backend.base_url)) as gateway:
        state = gateway.app.gateway_state
        said: list[Json] = [{"role": "user", "content": f"{number}. {LONG}"} for number in range(12)]
        first = await gateway.client.post("/v1/responses", json={"model": "m", "input": said})
        assert first.status_code == 200
        following = {"model": "m", "input": said, "previous_response_id": first.json()["id"]}
        for _ in range(3):
            response = await gateway.client.post("/v1/responses", json=following)
            assert response.status_code == 200, response.text
        assert not sum(sample.value for sample in state.metrics.prefix_bytes.samples())
        assert sum(sample.value for sample in state.metrics.prefix_requests.samples()) == 1


async def test_a_large_body_that_cannot_be_read_behind_a_known_one_is_read_in_a_thread() -> None:
    async with faulty_backend(answer) as backend, running_gateway(settings_for(backend.base_url)) as gateway:
        threads: list[str] = []
        read = prefix_module.read_whole

        def read_whole(field: str, body: bytes) -> Reading:
            threads.append(threading.current_thread().name)
            return read(field, body)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(prefixes_module, "read_whole", read_whole)
            whole = talk("a", 60)
            # Another model comes behind the messages, which are known.
            for model in (b"m", b"m", b"m", b"n"):
                body = whole[: whole.index(b'"model": "m", ')] + whole[whole.index(b'"messages"') :]
                body = body[:-1] + b', "model": "%b"}' % model
                response = await gateway.client.post(
                    "/v1/chat/completions", content=body, headers={"content-type": "application/json"}
                )
                assert response.status_code == 200, response.text
        assert len(threads) == 3
        assert threading.main_thread().name not in threads
