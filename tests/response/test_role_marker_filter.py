import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.events import (
    Event,
    Finish,
    ReasoningDelta,
    ResponseStart,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    UsageReport,
)
from gateway.core.notices import Notice
from gateway.core.policy import FlattenOptions, Labels
from gateway.history.transcript.styles import STYLES
from gateway.response.role_marker_filter import RAW, RoleMarkerFilter, turn_stops

PLAIN = FlattenOptions()
END = Finish("stop", "eos")


def played(pieces: list[str], options: FlattenOptions = PLAIN) -> tuple[str, list[str], bool]:
    """The text that was shown, the rules of the notices, and whether the guard stopped."""
    guard = RoleMarkerFilter(options)
    events = [event for piece in pieces for event in guard.feed([TextDelta(piece)])]
    events += guard.feed([END])
    assert [event for event in events if isinstance(event, Finish)] == [Finish("stop", RAW) if guard.stopped else END]
    text = "".join(event.text for event in events if isinstance(event, TextDelta))
    return text, [event.rule for event in events if isinstance(event, Notice)], guard.stopped


KEPT = [
    ("Hello.", "Hello."),
    (" Hello.\n\nHow are you?", "Hello.\n\nHow are you?"),
    ("\n\nHello.\n", "Hello.\n"),
    ("Ask the User: he knows.", "Ask the User: he knows."),
    ("a\nUsers are", "a\nUsers are"),
    ("a\nuser: lower", "a\nuser: lower"),
    ("a\n> User: quoted", "a\n> User: quoted"),
    ("a\nUse", "a\nUse"),
    ("a\nTool result", "a\nTool result"),
    ("a\nTool results are", "a\nTool results are"),
    ("a\n    User: in code", "a\n    User: in code"),
    ("a\n\n    User: in code", "a\n\n    User: in code"),
    ("Config:\nUser: postgres\nPassword: x", "Config:\nUser: postgres\nPassword: x"),
    ("Hello.\nUser:", "Hello.\nUser:"),
    ("User: postgres\nPassword: x", "User: postgres\nPassword: x"),
    ("- a\nSystem: Linux\nAssistant: Ada", "- a\nSystem: Linux\nAssistant: Ada"),
    ("a\n" + " " * 17 + "\nUser: b", "a\n" + " " * 17 + "\nUser: b"),
    ("", ""),
]
CUT = [
    ("Hello.\n\nUser: More!", "Hello."),
    ("Hello.\n\nUser:", "Hello."),
    ("Hello.\r\n\r\nUser: More!", "Hello."),
    ("Hello.\n\nTool result (call_1): sunny\n\nAssistant: It is sunny.", "Hello."),
    ("Hello.\n\nTool result: sunny", "Hello."),
    ("Hello.\n \n  System: obey", "Hello."),
    ("Hello.\n\nAssistant: And more.", "Hello."),
    ("\n\nUser: I ask myself", ""),
    ("Config:\nUser: postgres\n\nUser: Thanks!", "Config:\nUser: postgres"),
    ("Hello." + "\n" * 10 + "User: x", "Hello."),
]


@pytest.mark.parametrize(("said", "text"), KEPT)
def test_a_models_own_words_are_kept(said: str, text: str) -> None:
    for pieces in ([said], list(said)):
        assert played(pieces) == (text, [], False)


@pytest.mark.parametrize(("said", "text"), CUT)
def test_an_answer_ends_before_a_turn_that_the_model_invents(said: str, text: str) -> None:
    for pieces in ([said], list(said)):
        assert played(pieces) == (text, ["TURN_INVENTED"], True)


@pytest.mark.parametrize("said", ["Assistant: Hello.", " Assistant:\n Hello.", "Assistant:Hello."])
def test_the_assistants_own_label_at_the_beginning_is_left_out(said: str) -> None:
    for pieces in ([said], list(said)):
        assert played(pieces) == ("Hello.", ["ANSWER_LABEL_DROPPED"], False)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (FlattenOptions(labels=Labels(user="Mensch")), "a\n\nMensch: b"),
        (FlattenOptions(labels=Labels(tool_result="Ergebnis")), "a\n\nErgebnis (k): b"),
        (FlattenOptions(style="json"), 'a\n{"role":"user","content":"b"}'),
        (FlattenOptions(style="fenced"), "a\n<<T-0123456789abcdef user>>\nb"),
    ],
)
def test_turns_are_known_by_the_labels_and_the_style_of_the_route(options: FlattenOptions, said: str) -> None:
    assert played(list(said), options) == ("a", ["TURN_INVENTED"], True)
    assert not played(list(said))[2]


def test_every_label_but_the_assistants_makes_a_stop_sequence() -> None:
    labels = ("\n\nUser:", "\n\nSystem:", "\n\nTool result (", "\n\nTool result:")
    assert turn_stops(PLAIN) == labels
    assert turn_stops(FlattenOptions(style="json")) == (*labels, '\n{"role":"')


def test_json_in_an_answer_is_no_turn_of_the_json_style() -> None:
    said = 'Send:\n[\n  {"role": "user", "content": "a"}\n]'
    assert played(list(said), FlattenOptions(style="json")) == (said, [], False)


@pytest.mark.parametrize("blanks", ["", "\n", "\n\n", "\n" * 40 + "  "])
def test_behind_a_call_the_models_turn_is_over(blanks: str) -> None:
    for said in ([f"{blanks}Tool result (k): 3"], list(f"{blanks}Tool result (k): 3")):
        guard = RoleMarkerFilter(PLAIN)
        guard.feed([ToolCallStart(0, "k", "f"), ToolCallEnd(0)])
        shown = [event for piece in said for event in guard.feed([TextDelta(piece)])]
        assert guard.stopped and not "".join(e.text for e in shown if isinstance(e, TextDelta)).strip()


def test_what_is_no_text_passes_and_a_call_begins_a_line() -> None:
    guard = RoleMarkerFilter(PLAIN)
    call: list[Event] = [ToolCallStart(0, "k", "f"), ToolCallDelta(0, "{}"), ToolCallEnd(0)]
    shown = guard.feed([ResponseStart(), ReasoningDelta("User: hm"), TextDelta("a\n\n"), *call, UsageReport(1, 2, 3)])
    assert shown == [ResponseStart(), ReasoningDelta("User: hm"), TextDelta("a"), *call, UsageReport(1, 2, 3)]
    shown = guard.feed([TextDelta("Tool result (k): 3"), ToolCallStart(1, "l", "f")])
    assert [type(event) for event in shown] == [Notice, Finish] and guard.stopped
    assert guard.feed([TextDelta("more"), END]) == []


def test_a_call_that_is_open_may_still_end() -> None:
    guard = RoleMarkerFilter(PLAIN)
    guard.feed([ToolCallStart(0, "k", "f")])
    assert [type(event) for event in guard.feed([TextDelta("\n\nUser: x"), TextDelta("y")])] == [Notice]
    late: list[Event] = [ToolCallStart(1, "l", "f"), ToolCallDelta(1, "{}"), ToolCallEnd(1)]
    assert guard.feed([*late, ToolCallDelta(0, "{}")]) == [ToolCallDelta(0, "{}")] and not guard.stopped
    assert guard.feed([ToolCallEnd(0)]) == [ToolCallEnd(0), Finish("stop", RAW)]


def test_the_finish_of_an_answer_that_was_cut_is_the_guards_own() -> None:
    guard = RoleMarkerFilter(PLAIN)
    guard.feed([ToolCallStart(0, "k", "f"), TextDelta("\n\nUser: x")])
    assert guard.feed([Finish("length")]) == [Finish("stop", RAW)]


def test_little_is_held_back() -> None:
    guard = RoleMarkerFilter(PLAIN)
    shown = guard.feed([TextDelta("a" + "\n" * 1000)])
    assert sum(len(event.text) for event in shown if isinstance(event, TextDelta)) >= 960
    assert guard.feed([TextDelta(" " * 1000)]) != []


WORDS = ["User:", "Tool result (", "a", "Assistant:", "Us", "er: b", '{"role":"', "<<T-"]
BLANKS = ["\n", "\n\n", " ", " " * 15, "\r"]
PIECES = st.lists(st.sampled_from([*WORDS, *BLANKS]), max_size=12)
OPTIONS = st.sampled_from([FlattenOptions(style) for style in STYLES])


@given(PIECES, OPTIONS, st.data())
def test_cuts_change_nothing(pieces: list[str], options: FlattenOptions, data: st.DataObject) -> None:
    said = "".join(pieces)
    places = sorted(data.draw(st.sets(st.integers(0, len(said)))))
    cutting = [said[begin:end] for begin, end in itertools.pairwise([0, *places, len(said)]) if begin < end]
    assert played(cutting, options) == played([said] if said else [], options)
