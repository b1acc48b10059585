"""The model's reasoning before its answer is separated from the text, for any cut."""

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.text.backend.thought import TAGS, Thought
from gateway.core.conversation import Conversation, Json
from gateway.core.events import Event, ReasoningDelta
from gateway.core.notices import Notice
from gateway.testing.events import fold
from tests.adapters.text.backend import answers
from tests.adapters.text.backend.encoded_request import WEATHER, conversation, exchange

CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'
TOOLS = conversation(tools=(WEATHER,))


def split(pieces: Sequence[str], expected: bool = False) -> tuple[str, str]:
    """What was thought and what was said."""
    thought = Thought(expected)
    parts = [thought.feed(piece) if not thought.over else ("", piece) for piece in pieces]
    parts.append(thought.close())
    return "".join(thinks for thinks, _ in parts), "".join(says for _, says in parts)


def played(
    pieces: Sequence[str], asked: Conversation | None = None, stop_type: str = "eos", **options: Json
) -> list[Event]:
    asking = exchange(asked, options=options)
    return [*asking.feed(answers.llama(pieces, stop_type)), *asking.close()]


def thought_in(events: list[Event]) -> str:
    return "".join(event.text for event in events if isinstance(event, ReasoningDelta))


@pytest.mark.parametrize(
    ("said", "thought", "text"),
    [
        ("<think>hm</think>Paris.", "hm", "Paris."),
        ("\n<think>\nhm\n</think>\n\nParis.", "hm\n", "Paris."),
        ("<think>\n\n</think>\n\nParis.", "", "Paris."),
        ("<think>a</think>\n<think>b</think> c", "ab", "c"),
        ("<think>a <b> </thin </think>c", "a <b> </thin ", "c"),
        ("<think>a</think>It writes </think>.", "a", "It writes </think>."),
        ("[THINK]a[/THINK]b", "a", "b"),
        ("<thinking>a</think></thinking>b", "a</think>", "b"),
        ("<think>a", "a", ""),
        ("<think>a</thi", "a</thi", ""),
        ("<thin", "", "<thin"),
        (" \n", "", " \n"),
        ("", "", ""),
        (" So: <think>a</think>", "", " So: <think>a</think>"),
        ("a</think>b", "", "a</think>b"),
        ("\n" * 65 + "<think>a</think>", "", "\n" * 65 + "<think>a</think>"),
    ],
)
def test_a_thought_at_the_beginning_is_told_apart(said: str, thought: str, text: str) -> None:
    for pieces in ([said], list(said)):
        assert split(pieces) == (thought, text)


@pytest.mark.parametrize(
    ("said", "thought", "text"),
    [
        ("hm\n</think>\n\nParis.", "hm\n", "Paris."),
        ("<think>hm</think>Paris.", "hm", "Paris."),
        ("hm[/THINK]Paris.", "hm", "Paris."),
        ("</think>Paris.", "", "Paris."),
        ("hm", "hm", ""),
        ("", "", ""),
    ],
)
def test_of_a_thought_that_the_prompt_opened_only_the_end_arrives(said: str, thought: str, text: str) -> None:
    for pieces in ([said], list(said)):
        assert split(pieces, expected=True) == (thought, text)


WORDS = [*TAGS, *TAGS.values(), "<thi", "</th", " ", "\n", "a", "<", "\n" * 40]


@given(st.lists(st.sampled_from(WORDS), max_size=10), st.booleans(), st.data())
def test_cuts_change_nothing_and_only_tags_and_blanks_go(
    pieces: list[str], expected: bool, data: st.DataObject
) -> None:
    said = "".join(pieces)
    places = sorted(data.draw(st.sets(st.integers(0, len(said)))))
    cutting = [said[begin:end] for begin, end in itertools.pairwise([0, *places, len(said)]) if begin < end]
    thought, text = split(cutting, expected)
    assert (thought, text) == split([said], expected) and said.endswith(text)
    kept = thought + text
    for tag in (*TAGS, *TAGS.values()):
        said, kept = said.replace(tag, ""), kept.replace(tag, "")
    assert said.replace(" ", "").replace("\n", "") == kept.replace(" ", "").replace("\n", "")


def test_the_thoughts_of_an_answer_are_counted_so_that_a_flood_of_them_costs_no_more_than_its_text() -> None:
    flood = "<think>a</think>" * 200_000
    thought, text = split([flood])
    assert thought == "a" * 16 and text == flood[: -16 * 16]


def test_little_is_held_back() -> None:
    thought = Thought(False)
    assert thought.feed("<think>abc</") == ("abc", "") and thought.feed("d") == ("</d", "")
    assert thought.feed("</think>") == ("", "") and not thought.over
    assert thought.feed("x") == ("", "x") and thought.over


@pytest.mark.parametrize("wire", ["llama_cpp", "completions", "vllm", "ollama", "ollama_chat", "tgi", "koboldcpp"])
def test_tags_reach_no_content_and_a_call_inside_is_not_made(wire: str) -> None:
    write = {"ollama": answers.ollama, "ollama_chat": answers.ollama_chat, "tgi": answers.tgi}
    write |= {"koboldcpp": answers.koboldcpp, "llama_cpp": answers.llama}
    said = f"<think>\nI could write\n{CALL}\nor not.\n</think>\n\nIt is sunny."
    for pieces in ((said,), tuple(said)):
        asking = exchange(TOOLS, options={"wire": wire})
        events = asking.feed(write.get(wire, answers.completions)(pieces))
        answer = fold([*events, *asking.close()])
        assert (answer.text, answer.calls) == ("It is sunny.", ())
        assert thought_in(events) == f"I could write\n{CALL}\nor not.\n"


def test_a_call_behind_a_thought_is_made() -> None:
    answer = fold(played((f"<think>I look.</think>\n\n{CALL}",), TOOLS))
    assert [call.name for call in answer.calls] == ["get_weather"] and answer.text == ""


def test_an_answer_that_ends_inside_its_thought_is_told() -> None:
    events = played(("<think>hm",))
    assert thought_in(events) == "hm"
    assert [event.rule for event in events if isinstance(event, Notice)] == ["THOUGHT_UNCLOSED"]
    assert not [event for event in played(("<think>hm",), stop_type="limit") if isinstance(event, Notice)]


def test_the_setting_says_who_opens_the_thought() -> None:
    assert fold(played(("hm</think>Paris.",), thinking="opened")).text == "Paris."
    assert fold(played(("<think>hm</think>Paris.",), thinking="text")).text == "<think>hm</think>Paris."


def test_a_wire_with_a_place_for_thoughts_is_read_there() -> None:
    asking = exchange(options={"wire": "ollama", "thinking": "opened"})
    wire = answers.ndjson({"thinking": "hm", "response": ""}, {"response": "Paris."}, {"response": "", "done": True})
    events = asking.feed(wire)
    assert (thought_in(events), fold(events).text) == ("hm", "Paris.")


@pytest.mark.parametrize("opened", ["opened", "tagged"])
def test_an_answer_that_is_held_to_a_shape_has_no_thought(opened: str) -> None:
    forced = conversation(tools=(WEATHER,), tool_choice="required")
    (call,) = fold(played(('{"name": "get_weather", "arguments": {}}',), forced, thinking=opened)).calls
    assert call.name == "get_weather"
    shaped = conversation(params={"response_format": {"type": "json_object"}})
    assert fold(played(('{"a": 1}',), shaped, thinking=opened)).text == '{"a": 1}'
