"""Tests which changes of a client keep a digest, and which do not."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.conversation import File, Image, Reasoning, Text, ToolCall, ToolResult, Turn
from gateway.history.classify import system_prefix
from gateway.history.groups import groups
from gateway.memory.history_digest import Boundary, history_digests, root
from tests.history.strategies import assistant, calling, numbered, result, system, user, valid_turns

SECRET = b"secret of the state"


def digests(*turns: Turn, secret: bytes = SECRET, tenant: str = "team") -> list[bytes]:
    return [boundary.digest for boundary in history_digests(turns, secret, tenant)]


HISTORY = (user("one"), assistant("two"), user("three"), calling("a", "b"), result("a", "x"), result("b", "y"))


def test_boundaries_are_the_ends_of_groups_behind_the_system_run() -> None:
    turns = (system(), system("More."), *HISTORY, assistant("done"), user("next"))
    found = history_digests(turns, SECRET, "team")
    assert [boundary.turns for boundary in found] == [1, 2, 3, 7, 8]
    assert [boundary.answered for boundary in found] == [False, True, True, True, True]
    assert {len(boundary.digest) for boundary in found} == {16}
    assert root(found) == found[1]
    assert system_prefix(turns) == 2


def test_the_root_of_an_agent_loop_stands_behind_the_first_round() -> None:
    found = history_digests((user(), calling("a"), result("a"), calling("b"), result("b")), SECRET, "team")
    assert root(found) == found[1]
    assert found[1].turns == 3


def test_boundaries_behind_a_compaction_of_a_provider_are_marked() -> None:
    compaction = msgspec.structs.replace(user("opaque"), compaction=True)
    found = history_digests((user(), assistant(), compaction, user(), assistant()), SECRET, "team")
    assert [boundary.compacted for boundary in found] == [False, False, True, True, True]


def test_a_conversation_without_an_answer_has_no_root() -> None:
    assert root(history_digests((system(), user()), SECRET, "team")) is None
    assert history_digests((system(),), SECRET, "team") == ()


def thinking(turn: Turn) -> Turn:
    return turn.changed(Reasoning("hm"), *turn.blocks)


def renamed(turn: Turn) -> Turn:
    """The turn with other ids for its calls and results."""
    return turn.changed(
        *(
            msgspec.structs.replace(block, id=f"other_{block.id}")
            if isinstance(block, ToolCall)
            else msgspec.structs.replace(block, call_id=f"other_{block.call_id}")
            if isinstance(block, ToolResult)
            else block
            for block in turn.blocks
        )
    )


def cached(turn: Turn) -> Turn:
    """The turn with fields that a client adds and removes from request to request."""
    blocks = [
        msgspec.structs.replace(block, extra={"cache_control": {"type": "ephemeral"}})
        if isinstance(block, Text)
        else block
        for block in turn.blocks
    ]
    return msgspec.structs.replace(turn, blocks=tuple(blocks), extra={"refusal": None}, index=None, source=None)


@pytest.mark.parametrize("change", [thinking, renamed, cached])
def test_what_clients_change_from_request_to_request_keeps_the_digest(change: object) -> None:
    assert callable(change)
    assert digests(*map(change, numbered(*HISTORY))) == digests(*HISTORY)


def test_trailing_blanks_and_the_division_into_parts_keep_the_digest() -> None:
    assert digests(user("one\n ")) == digests(user("one"))
    assert digests(Turn("user", (Text("one"), Text("two")))) == digests(user("one\ntwo"))


@pytest.mark.parametrize(
    "other",
    [
        (user("One"), *HISTORY[1:]),
        (assistant("one"), *HISTORY[1:]),
        (msgspec.structs.replace(HISTORY[0], name="Ann"), *HISTORY[1:]),
        (HISTORY[0].changed(Text("one"), Image("data:image/png;base64,AA")), *HISTORY[1:]),
        (HISTORY[0].changed(Text("one"), File("input_audio", {"data": "AA"})), *HISTORY[1:]),
        (user("on"), assistant("etwo"), *HISTORY[2:]),
        (*HISTORY[1:],),
        (*HISTORY[:4], result("a", "y"), result("b", "x")),
        (*HISTORY[:4], result("b", "x"), result("a", "y")),
        (*HISTORY[:3], Turn("assistant", tuple(ToolCall(n, "write", '{"n": 0}') for n in "ab")), *HISTORY[4:]),
        (*HISTORY[:3], Turn("assistant", tuple(ToolCall(n, "read", '{"n": 9}') for n in "ab")), *HISTORY[4:]),
    ],
)
def test_what_changes_the_conversation_changes_the_digest(other: tuple[Turn, ...]) -> None:
    assert digests(*other)[-1] != digests(*HISTORY)[-1]


def test_an_image_is_told_from_another_and_a_file_by_its_content() -> None:
    def shown(block: Image | File) -> bytes:
        return digests(Turn("user", (block,)))[-1]

    assert len({shown(Image("https://a/1.png")), shown(Image("https://a/2.png"))}) == 2
    assert shown(File("file", {"a": 1, "b": 2})) == shown(File("file", {"b": 2, "a": 1}))
    assert digests(calling("a"), Turn("tool", (ToolResult("a", (Image("https://a/1.png"),)),))) != digests(
        calling("a"), Turn("tool", (ToolResult("a", (Image("https://a/2.png"),)),))
    )


def test_another_key_or_secret_shares_nothing() -> None:
    assert set(digests(*HISTORY)).isdisjoint(digests(*HISTORY, tenant="other"))
    assert set(digests(*HISTORY)).isdisjoint(digests(*HISTORY, secret=b"other"))


def test_half_a_character_has_a_digest() -> None:
    assert digests(user("\ud83d"))[0] != digests(user("\ud83e"))[0]


@given(valid_turns(), st.data())
def test_law_a_shorter_history_has_the_boundaries_of_its_whole_groups(
    turns: tuple[Turn, ...], data: st.DataObject
) -> None:
    end = data.draw(st.sampled_from([0, *(group.stop for group in groups(turns))]))
    whole = history_digests(turns, SECRET, "team")
    assert history_digests(turns[:end], SECRET, "team") == tuple(
        one for one in whole if one.turns <= end - system_prefix(turns)
    )


@given(valid_turns(), valid_turns())
def test_law_equal_digests_mean_equal_turns(one: tuple[Turn, ...], other: tuple[Turn, ...]) -> None:
    shared = set(digests(*one)) & set(digests(*other))
    for boundary in [found for found in history_digests(one, SECRET, "team") if found.digest in shared]:
        twin = next(found for found in history_digests(other, SECRET, "team") if found.digest == boundary.digest)
        assert said(one, boundary) == said(other, twin)


def said(turns: tuple[Turn, ...], boundary: Boundary) -> list[tuple[str, str, list[str]]]:
    start = system_prefix(turns)
    return [
        (turn.role, turn.text, [call.arguments for call in turn.calls] + [answer.text for answer in turn.results])
        for turn in turns[start : start + boundary.turns]
    ]
