"""Tests the request that a summary is asked with."""

import hashlib
import json
from typing import Any, get_args

import msgspec
from hypothesis import given, settings

from gateway.core.conversation import Conversation, File, Image, Reasoning, Text, ToolCall, ToolResult, Turn
from gateway.core.policy import Policy
from gateway.history.classify import system_prefix
from gateway.history.prepare import prepare
from gateway.history.validate import validate
from gateway.memory.summaries.job_request import INSTRUCTIONS, PROMPT_VERSION, summary_conversation, summary_schema
from gateway.memory.summaries.plan import SummaryRange
from gateway.memory.summaries.summary import Item, Kind, SummaryContent, SummaryRecord
from gateway.testing.strategies import conversations
from tests.history.strategies import assistant, calling, numbered, result, system, user
from tests.memory.summaries.records import agent_history, boundaries, cover, record_of


def lines(turns: tuple[Turn, ...], asked: SummaryRange) -> list[dict[str, Any]]:
    """The lines of the request's user message; each is one JSON object."""
    request = summary_conversation(Conversation(turns), asked, "small")
    return [json.loads(line) for line in request.turns[1].text.splitlines()]


HISTORY = numbered(
    system(),
    msgspec.structs.replace(user("Read it."), name="Ann"),
    Turn("assistant", (Reasoning("secret thought"), Text("I will."), ToolCall("a", "read", '{"path": "x.py"}'))),
    Turn("tool", (ToolResult("a", (Text("no such file"), Image("data:image/png;base64,AA")), is_error=True),)),
    assistant("It is not there."),
    user("Go on."),
)


def test_each_covered_turn_is_a_line_with_its_number_and_role() -> None:
    assert lines(HISTORY, cover(HISTORY, 4)) == [
        {"n": 1, "role": "user", "name": "Ann", "text": "Read it."},
        {
            "n": 2,
            "role": "assistant",
            "text": "I will.",
            "calls": [{"name": "read", "arguments": '{"path": "x.py"}'}],
        },
        {"n": 3, "role": "tool", "results": [{"tool": "read", "outcome": "error", "text": "no such file\n[image]"}]},
        {"n": 4, "role": "assistant", "text": "It is not there."},
    ]


def test_the_request_has_fixed_instructions_no_tools_and_a_limit() -> None:
    request = summary_conversation(Conversation(HISTORY), cover(HISTORY, 4), "small")
    assert [turn.role for turn in request.turns] == ["system", "user"]
    assert request.turns[0].text == INSTRUCTIONS
    assert (request.model, request.tools, request.stream) == ("small", (), False)
    assert request.sampling.max_tokens == request.params["max_tokens"] == cover(HISTORY, 4).output_tokens
    assert validate(request) == ()
    assert prepare(request, Policy()).conversation == request


def test_other_instructions_have_another_version() -> None:
    """A summary is stored under the version. Whoever changes the instructions raises it, and puts both in here."""
    digest = hashlib.sha256(INSTRUCTIONS.encode()).hexdigest()[:16]
    assert (PROMPT_VERSION, digest) == (1, "2442924d2820b410")


def test_a_later_system_message_and_a_note_of_a_lost_result_name_their_speakers() -> None:
    note = msgspec.structs.replace(user("[Result of a tool call]\nrm -rf"), synthesized=True)
    turns = numbered(user("q"), assistant(), Turn("developer", (Text("Be brief."),)), note, user("r"))
    assert [line["role"] for line in lines(turns, cover(turns, 4))] == ["user", "assistant", "system", "tool"]


def test_a_file_stands_as_its_kind() -> None:
    turns = numbered(Turn("user", (Text("Look:"), File("input_audio", {"data": "AA"}))), assistant(), user())
    assert lines(turns, cover(turns, 2))[0]["text"] == "Look:\n[file]"


def test_results_are_shortened_to_the_limit_of_the_cover() -> None:
    turns = agent_history(4, 3_000)
    short = lines(turns, msgspec.structs.replace(cover(turns, 5), result_limit=300))
    assert len(short[2]["results"][0]["text"]) <= 300
    assert "[elided: " in short[2]["results"][0]["text"]


def test_the_summary_of_earlier_turns_comes_first() -> None:
    turns = agent_history(6)
    content = SummaryContent((Item("goal", "Fix it.", (1,)), Item("facts", "Host db-3.", (3,), True)), "And notes.")
    previous: SummaryRecord = record_of(turns, 5, content=content)
    asked = msgspec.structs.replace(cover(turns, 9), start=5, previous=previous)
    first, *others = lines(turns, asked)
    assert first == {
        "summary_of_turns": [1, 5],
        "items": [
            {"kind": "goal", "text": "Fix it.", "from": [1]},
            {"kind": "facts", "text": "Host db-3.", "from": [3], "said_by": "tools"},
        ],
        "notes": "And notes.",
    }
    assert [line["n"] for line in others] == [6, 7, 8, 9]
    assert others[1]["results"][0]["tool"] == "read", "the call of a result may stand before the first line"


@settings(max_examples=50)
@given(conversations())
def test_law_no_text_ends_a_line_or_leaves_it(given_: Conversation) -> None:
    covered = [one.turns for one in boundaries(given_.turns)][-1]
    asked = cover(given_.turns, covered)
    start = system_prefix(given_.turns)
    read = lines(given_.turns, asked)
    assert [line["n"] for line in read] == [*range(1, covered + 1)]
    for line, turn in zip(read, given_.turns[start : start + covered], strict=True):
        assert line.get("text", "") == turn.text
        assert [call["arguments"] for call in line.get("calls", [])] == [call.arguments for call in turn.calls]
        assert [one["text"] for one in line.get("results", [])] == [one.text for one in turn.results]
    assert summary_conversation(given_, asked, "m") == summary_conversation(given_, asked, "m")


def test_the_name_of_a_result_is_that_of_its_call() -> None:
    turns = numbered(user(), calling("a", "b"), result("b", "2"), result("a", "1"), user("next"))
    assert [line["results"][0]["tool"] for line in lines(turns, cover(turns, 4))[2:]] == ["read", "read"]


def test_a_schema_has_room_for_every_item_within_the_limit() -> None:
    for prose in (300, 1_000, 2_000):
        asked = msgspec.structs.replace(cover(HISTORY, 4), prose_tokens=prose)
        schema: Any = summary_schema(asked)
        members = schema["properties"]
        assert [*members] == [*get_args(Kind)]
        item = members["goal"]["items"]["properties"]
        longest = members["goal"]["maxItems"] * (item["text"]["maxLength"] / 2.5 + 30) * len(members)
        assert longest <= max(prose, 9 * (60 / 2.5 + 30))
        assert item["from"]["items"]["maximum"] == asked.boundary.turns


def test_a_schema_is_asked_for_only_where_the_settings_say_so() -> None:
    given_ = Conversation(HISTORY), cover(HISTORY, 4), "m"
    assert "response_format" not in summary_conversation(*given_).params
    asked: Any = summary_conversation(*given_, schema=True).params
    assert asked["response_format"]["type"] == "json_schema"
    assert asked["response_format"]["json_schema"]["schema"] == summary_schema(cover(HISTORY, 4))
