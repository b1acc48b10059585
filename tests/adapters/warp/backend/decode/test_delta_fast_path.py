import pytest
from google.protobuf.unknown_fields import UnknownFieldSet
from hypothesis import given
from hypothesis import strategies as st

from adapters.warp.backend.decode.decoder import WarpDecoder
from adapters.warp.backend.decode.delta_fast_path import DeltaFastPath, Growth, Target
from adapters.warp.multi_agent_pb2 import ClientAction, Message, ResponseEvent
from gateway.core.errors import BackendError
from gateway.core.events import Event
from gateway.testing.events import fold
from tests.adapters.warp.backend.script import (
    BEGIN,
    COMMIT,
    DONE,
    PRELUDE,
    ROLLBACK,
    acts,
    add,
    append,
    decoder,
    mcp_call,
    more,
    move,
    output,
    reasoning,
    task,
    update,
)


def event(*actions: ClientAction) -> ResponseEvent:
    return ResponseEvent(client_actions={"actions": actions})


def think(text: str) -> ClientAction:
    return append(reasoning(text), "agent_reasoning.reasoning")


def growth(text: str, kind: str = "agent_output", key: str = "m1") -> Growth:
    return Target(key, kind, "t1"), text, ()


def read_after(first: ResponseEvent, second: bytes) -> Growth | None:
    template = DeltaFastPath()
    assert template.read(first.SerializeToString()) is None
    template.learn(first.SerializeToString(), first)
    return template.read(second)


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        (more("lo"), more("ab"), growth("ab")),
        (more("!!"), more("??"), growth("??")),
        (more("é"), more("ab"), growth("ab")),
        (more("abc"), more("日"), growth("日")),
        (more("t"), more("m"), growth("m")),
        (more("lo"), more("long"), growth("long")),
        (more("x" * 128), more("y" * 128), growth("y" * 128)),
        *((more("lo"), more("x" * size), growth("x" * size)) for size in (1, *range(60, 130), 16_383, 16_384)),
        (think("hm"), think("ah"), growth("ah", "agent_reasoning", "m0")),
    ],
)
def test_a_message_with_another_text_is_known(first: ClientAction, second: ClientAction, found: Growth) -> None:
    assert read_after(event(first), event(second).SerializeToString()) == found


@pytest.mark.parametrize("second", [more("ab", "m2"), think("ab"), more("ab", ""), more("")])
def test_a_message_that_differs_in_more_is_not(second: ClientAction) -> None:
    assert read_after(event(more("lo")), event(second).SerializeToString()) is None


def test_bytes_that_are_no_text_are_not() -> None:
    written = event(more("lo")).SerializeToString()
    assert read_after(event(more("lo")), written.replace(b"lo", b"\xff\xfe")) is None


@pytest.mark.parametrize(
    "actions",
    [
        (),
        (BEGIN,),
        (more("a"), more("b")),
        (more(""),),
        (append(output("a"), "agent_output"),),
        (append(output("a"), "agent_output.text", "mood"),),
        (append(reasoning("a"), "agent_output.text"),),
        (update(output("a"), "agent_output.text"),),
        # The id is written like the text, and stands before it.
        (more("m1"),),
    ],
)
def test_messages_that_do_more_or_something_else_are_never_learned(actions: tuple[ClientAction, ...]) -> None:
    assert read_after(event(*actions), event(*actions).SerializeToString()) is None


def test_what_the_schema_does_not_know_is_a_part_of_what_must_be_the_same() -> None:
    known = event(more("lo"))
    known.MergeFromString(b"\xfa\x01\x02hi")
    assert len(UnknownFieldSet(known)) == 1
    assert read_after(known, known.SerializeToString().replace(b"lo", b"ab")) == growth("ab")
    assert read_after(known, known.SerializeToString().replace(b"hi", b"ho")) is None


def test_a_backend_that_never_repeats_itself_is_given_up() -> None:
    template = DeltaFastPath()
    for number in range(100):
        changing = event(more("lo", f"m{number}"))
        template.learn(changing.SerializeToString(), changing)
    last = event(more("lo", "m99")).SerializeToString()
    assert template.read(last) is None


MESSAGES = st.sampled_from(("m1", "m2", "lo", ""))
TEXTS = st.text(st.sampled_from("lom!?é\n"), max_size=3)
ACTIONS: st.SearchStrategy[ClientAction] = (
    st.builds(more, TEXTS, MESSAGES)
    | st.builds(more, st.just("lo"), MESSAGES)
    | st.builds(think, TEXTS)
    | st.builds(more, TEXTS, MESSAGES, st.just("t2"))
    | st.builds(lambda text: append(reasoning(text), "agent_reasoning.reasoning", task_id="t2"), TEXTS)
    | st.builds(lambda key: move(key, key, 1, output("a summary", "lo")), MESSAGES)
    | st.builds(lambda text, key: add(output(text, key)), TEXTS, MESSAGES)
    | st.sampled_from(
        (
            BEGIN,
            COMMIT,
            ROLLBACK,
            add(reasoning("r", "m1")),
            add(reasoning("r")),
            add(mcp_call("k1", message_id="m2")),
            update(reasoning("s", "m2"), "agent_reasoning"),
            update(output("zz"), "agent_output"),
            task("t2", "t1", [Message(id="lo", task_id="t2", agent_output={"text": "no"})]),
        )
    )
)


@given(st.lists(ACTIONS, max_size=25), st.sampled_from(("buffer", "stream")))
def test_an_answer_is_the_same_when_every_message_is_read_in_full(script: list[ClientAction], rollback: str) -> None:
    wire = [PRELUDE, *map(acts, script), DONE]
    quick, full = decoder(rollback=rollback), decoder(rollback=rollback)
    full._frames._fast_path.is_due = lambda: False  # type: ignore[method-assign]  # nothing is ever learned
    assert _played(quick, wire) == _played(full, wire)
    assert quick.progress == full.progress


@pytest.mark.parametrize("task_id", ["t1", "t2"])
def test_a_message_that_was_moved_is_read_fast_and_in_full_alike(task_id: str) -> None:
    script = [add(output("One.")), more(" aaa"), move("m1", "m1", 1, output("a summary", "r1"))]
    wire = [PRELUDE, *map(acts, [*script, *(more(f" {letter * 3}", task_id=task_id) for letter in "bcd")]), DONE]
    quick, full = decoder(), decoder()
    full._frames._fast_path.is_due = lambda: False  # type: ignore[method-assign]  # nothing is ever learned
    events, _ = _played(quick, wire)
    assert (fold(events).text, (events, "")) == ("One. aaa bbb ccc ddd", _played(full, wire))


def _played(decoder: WarpDecoder, wire: list[bytes]) -> tuple[list[Event], str]:
    events: list[Event] = []
    try:
        for data in wire:
            events += decoder.feed(data)
    except BackendError as error:
        return [*events, *error.events], error.message
    return events, ""
