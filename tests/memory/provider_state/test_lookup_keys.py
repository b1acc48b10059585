"""An anchor survives what clients do to a turn, and differs for every other turn."""

import msgspec
import pytest

from gateway.core.conversation import Image, Text, ToolCall, ToolResult, Turn
from gateway.memory.provider_state.lookup_keys import content_key, lookup_keys, scope, state_digests

SECRET = b"s" * 32
CALL = ToolCall("call_1", "read", '{"path": "a", "lines": [1, 2]}')
TURN = Turn("assistant", (Text("Let me see."), CALL))
QUESTION = Turn("user", (Text("What is in a?"),))
FOUND = lookup_keys(TURN, QUESTION, SECRET)


@pytest.mark.parametrize(
    "arguments", ['{"lines":[1,2],"path":"a"}', '{"path": "a", "lines": [1.0, 2]}', '{\n "path": "a", "lines": [1, 2]}']
)
def test_arguments_that_a_client_has_read_and_written_again_are_the_same(arguments: str) -> None:
    again = TURN.changed(Text("Let me see."), msgspec.structs.replace(CALL, arguments=arguments))
    assert lookup_keys(again, QUESTION, SECRET) == FOUND


def test_blanks_and_the_way_in_which_text_is_cut_do_not_count() -> None:
    assert lookup_keys(TURN.changed(Text("Let me "), Text("see. "), CALL), QUESTION, SECRET) == FOUND


def test_calls_are_known_by_their_ids_whatever_else_has_changed() -> None:
    edited = lookup_keys(TURN.changed(CALL), Turn("user", (Text("other"),)), SECRET)
    assert edited.calls == FOUND.calls
    assert edited.content != FOUND.content


def test_content_is_known_behind_the_same_turn_whatever_the_ids() -> None:
    renamed = lookup_keys(TURN.changed(Text("Let me see."), msgspec.structs.replace(CALL, id="x")), QUESTION, SECRET)
    assert renamed.calls != FOUND.calls
    assert renamed.content == FOUND.content


@pytest.mark.parametrize(
    ("turn", "before"),
    [
        (TURN.changed(Text("Let me see!"), CALL), QUESTION),
        (TURN.changed(Text("Let me see."), msgspec.structs.replace(CALL, name="write")), QUESTION),
        (TURN.changed(Text("Let me see."), msgspec.structs.replace(CALL, arguments='{"path": "b"}')), QUESTION),
        (TURN.changed(Text("Let me see."), CALL, CALL), QUESTION),
        (TURN, None),
        (TURN, Turn("user", (Text("What is in b?"),))),
        (TURN, Turn("user", (Text("What is in a?"), Image("https://x/y.png")))),
        (TURN, Turn("tool", (ToolResult("c", (Text("What is in a?"),)),))),
        (TURN, Turn("assistant", (Text("What is in a?"),))),
    ],
)
def test_other_content_has_another_anchor(turn: Turn, before: Turn | None) -> None:
    assert lookup_keys(turn, before, SECRET).content != FOUND.content


def test_parts_are_not_confused_with_each_other() -> None:
    two = Turn("assistant", (ToolCall("a", "b", "{}"), ToolCall("c", "d", "{}")))
    joined = Turn("assistant", (ToolCall("ab", "{}", "c"), ToolCall("d", "{}", "")))
    assert lookup_keys(two, None, SECRET).calls != lookup_keys(joined, None, SECRET).calls


def test_ids_that_the_dialect_derived_anchor_nothing() -> None:
    derived = TURN.changed(Text("Let me see."), msgspec.structs.replace(CALL, id_derived=True))
    found = lookup_keys(derived, QUESTION, SECRET)
    assert found.calls is None
    assert found.known == (FOUND.content,)


def test_an_empty_turn_has_no_anchor() -> None:
    assert lookup_keys(Turn("assistant", ()), QUESTION, SECRET).known == ()


def test_arguments_that_are_no_json_and_broken_text_are_anchored_as_they_are() -> None:
    odd = Turn("assistant", (ToolCall("c", "n", '{"a": \ud800'),))
    assert lookup_keys(odd, None, SECRET) == lookup_keys(odd, None, SECRET)
    assert lookup_keys(odd, None, SECRET) != lookup_keys(
        Turn("assistant", (ToolCall("c", "n", '{"b": '),)), None, SECRET
    )


def test_no_digest_can_be_computed_without_the_secret() -> None:
    other = b"t" * 32
    assert lookup_keys(TURN, QUESTION, other).known != FOUND.known
    assert scope(["b", "m"], other) != scope(["b", "m"], SECRET)
    assert content_key(b"x", b"y", other) != content_key(b"x", b"y", SECRET)
    assert state_digests(["x"], other) != state_digests(["x"], SECRET)
    assert scope(["b", "m"], SECRET) != scope(["bm"], SECRET)
