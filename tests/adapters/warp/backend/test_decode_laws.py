"""Tests the laws of the Warp decoder for any response, however it is cut, truncated or damaged."""

import base64
from typing import Any

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

from adapters.warp.multi_agent_pb2 import ClientAction, ResponseEvent
from gateway.core.errors import BackendError, BackendTruncated
from gateway.core.events import Event
from gateway.testing.events import content, fold, join
from gateway.testing.replay import cut, cuttings, replay
from gateway.testing.strategies import damaged, pieces
from tests.adapters.warp.backend.script import (
    BEGIN,
    COMMIT,
    DONE,
    PRELUDE,
    ROLLBACK,
    TITLE,
    acts,
    add,
    append,
    decode,
    decoder,
    finished,
    golden,
    init,
    mcp_call,
    more,
    output,
    reasoning,
    task,
    update,
)
from tests.tiers import sample

TEXT = acts(BEGIN) + acts(add(output("Hé"))) + acts(more("l\u2028lo")) + acts(more("\U0001f468")) + acts(COMMIT)
CALLS = acts(add(mcp_call("k1", args={"n": 5}), mcp_call("k2", args={"s": "日本"})))
TOTALS = {"warp_token_usage": {"a": {"total_tokens": 5}}}
WIRES: dict[str, bytes] = {
    "golden": golden("init", "create_task", "begin", "add", "append", "call", "commit", "done"),
    "text": PRELUDE + TEXT + TITLE + finished(done={}, conversation_usage_metadata=TOTALS),
    "calls": PRELUDE + TEXT + CALLS + DONE,
    "reasoning": PRELUDE
    + acts(add(reasoning("a")))
    + acts(append(reasoning("b"), "agent_reasoning.reasoning"))
    + TEXT
    + DONE,
    "rollback": PRELUDE
    + acts(BEGIN)
    + acts(add(reasoning("no", "m7"), mcp_call("k7")))
    + acts(ROLLBACK)
    + TEXT
    + CALLS
    + DONE,
    "rewritten": PRELUDE
    + acts(BEGIN, add(output("no", "m7")))
    + acts(update(output("nose", "m7"), "agent_output"))
    + DONE,
    "subtask": PRELUDE + acts(task("t2", "t1", [output("no", "m7")])) + TEXT + finished(),
    "skipped": PRELUDE + acts(append(output("x", "m7"), "agent_output.text"), update(output("y", "m8"))) + TEXT + DONE,
}
OPTIONS: list[dict[str, Any]] = [{}, {"rollback": "stream", "encoding": "structured", "accept_hex": True}]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", WIRES)
def test_cuts_change_nothing(name: str, options: dict[str, Any]) -> None:
    whole = join(decode(WIRES[name], **options))
    for cutting in cuttings(WIRES[name]):
        assert join(replay(decoder(**options), cutting)) == whole


@given(data=st.data(), name=st.sampled_from(list(WIRES)))
def test_random_cuts_change_nothing(data: st.DataObject, name: str) -> None:
    assert join(replay(decoder(), data.draw(pieces(WIRES[name])))) == join(decode(WIRES[name]))


@sample()
@pytest.mark.parametrize("options", [*OPTIONS, {"strict_frames": False}])
@pytest.mark.parametrize("name", WIRES)
def test_a_shortened_answer_is_truncated_or_complete(name: str, options: dict[str, Any]) -> None:
    wire, complete = WIRES[name], content(decode(WIRES[name], **options))
    for end in range(len(wire)):
        try:
            assert content(decode(wire[:end], **options)) == complete
        except BackendTruncated:
            continue
        assert wire.rstrip(b"\n=").startswith(wire[:end].rstrip(b"\n=")) and end > len(wire) - 8


@given(data=st.data(), name=st.sampled_from(list(WIRES)), options=st.sampled_from([*OPTIONS, {"strict_frames": False}]))
def test_damaged_bytes_give_ordered_events_or_a_backend_error(
    data: st.DataObject, name: str, options: dict[str, Any]
) -> None:
    wire = data.draw(damaged(WIRES[name]) | st.binary(max_size=100))
    places = data.draw(st.sets(st.integers(0, 400), max_size=4))
    try:
        replay(decoder(**options), cut(wire, places))
    except BackendError as error:
        assert 400 <= error.status < 600


FRAGMENTS = [
    BEGIN,
    COMMIT,
    ROLLBACK,
    add(output("a")),
    add(output("b", "m2")),
    add(output("", "")),
    add(mcp_call("k1", args={"n": 1})),
    add(mcp_call("", message_id="m1")),
    add(reasoning("r", "m1")),
    more("c"),
    more("d", "m2"),
    update(output("ab"), "agent_output.text"),
    update(output("zz", "m2"), "agent_output"),
    update(mcp_call("k2", message_id="m1"), "tool_call", "id"),
    update(reasoning("s", "m2"), "agent_reasoning"),
    append(reasoning("t", "m1"), "agent_reasoning.reasoning", "mood"),
    task("t2", "t1"),
    add(output("hidden", "m9"), task_id="t2"),
    ClientAction(),
    ClientAction(show_suggestions={}),
]


@given(
    script=st.lists(st.sampled_from(FRAGMENTS), max_size=14),
    rollback=st.sampled_from(["buffer", "stream"]),
    ended=st.booleans(),
)
def test_actions_in_any_order_give_ordered_events_or_a_backend_error(
    script: list[ClientAction], rollback: str, ended: bool
) -> None:
    wire = PRELUDE + b"".join(acts(action) for action in script) + (DONE if ended else b"")
    outcomes: list[list[Event] | str | None] = []
    for cutting in ([wire], [bytes([byte]) for byte in wire]):
        try:
            outcomes.append(join(replay(decoder(rollback=rollback), cutting)))
        except BackendError as error:
            outcomes.append(error.code)
    assert outcomes[0] == outcomes[1]
    assert ended or isinstance(outcomes[0], str)


@given(script=st.lists(st.sampled_from(FRAGMENTS), max_size=10))
def test_what_is_rolled_back_leaves_no_trace(script: list[ClientAction]) -> None:
    kept = [action for action in script if action not in (BEGIN, COMMIT, ROLLBACK)]
    plain = PRELUDE + acts(add(output("first")))
    undone = plain + acts(BEGIN, *kept, ROLLBACK)
    assert content(decode(undone + TEXT + DONE)) == content(decode(plain + TEXT + DONE))


@given(fields=st.binary(max_size=60))
def test_any_event_that_parses_is_survived(fields: bytes) -> None:
    try:
        event = ResponseEvent.FromString(fields)
    except DecodeError:
        return
    wire = b"data:" + base64.b64encode(event.SerializeToString()) + b"\n\n"
    try:
        decode(wire)
    except BackendError as error:
        assert 400 <= error.status < 600


@st.composite
def interleaved(draw: st.DrawFn) -> tuple[str, bytes]:
    """The root's text, and a wire on which a subtask says the same and other things under the same ids, at any time."""
    words = draw(st.lists(st.text("ab", min_size=1, max_size=2), min_size=1, max_size=12))
    mine = [task(), add(output(words[0])), *(more(word) for word in words[1:])]
    noise = st.sampled_from(
        [
            *(add(output("X", key), task_id="t2") for key in ("m1", "m2")),
            *(append(output("X" * n), "agent_output.text", task_id="t2") for n in (1, 2)),
            update(output("X"), "agent_output.text", task_id="t2"),
        ]
    )
    theirs = draw(st.lists(noise, max_size=12))
    theirs.insert(draw(st.integers(0, len(theirs))), task("t2", "t1"))
    order = draw(st.permutations([True] * len(mine) + [False] * len(theirs)))
    actions = [(mine if own else theirs).pop(0) for own in order]
    return "".join(words), init() + b"".join(acts(action) for action in actions) + DONE


@given(interleaved())
def test_no_word_of_a_subtask_is_part_of_the_answer(said: tuple[str, bytes]) -> None:
    text, wire = said
    assert fold(decode(wire)).text == text
