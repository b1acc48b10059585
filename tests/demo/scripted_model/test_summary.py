"""Tests the summaries of the scripted model."""

import json
from typing import Any

import pytest

from gateway.demo.scripted_model.dialogue import Dialogue
from gateway.demo.scripted_model.reply import reply
from gateway.demo.scripted_model.summary import LONGEST, MOST_ITEMS, summary


def lines(*turns: dict[str, Any]) -> str:
    return "\n".join(json.dumps({"n": number, **turn}) for number, turn in enumerate(turns, 1))


CALL = {"name": "run", "arguments": '{"path": "/srv/app/main.py"}'}
HISTORY = lines(
    {"role": "user", "text": "Repair the build. Never touch the folder vendor/."},
    {"role": "assistant", "text": "I look.", "calls": [CALL]},
    {"role": "tool", "results": [{"tool": "run", "outcome": "ok", "text": "ok\nError: no module named six\nend"}]},
    {"role": "user", "text": "Cancel the upgrade of Python, please."},
)


def test_what_was_asked_forbidden_cancelled_and_failed_is_told_with_its_turn() -> None:
    written = summary(HISTORY)
    assert written is not None
    told = json.loads(written)
    assert told["goal"] == [{"text": "Repair the build. Never touch the folder vendor/.", "from": [1]}]
    assert told["constraints"] == [{"text": "Never touch the folder vendor/.", "from": [1]}]
    assert told["open"] == [
        {"text": "Cancelled, not to be resumed: Cancel the upgrade of Python, please.", "from": [4]}
    ]
    assert told["errors"] == [{"text": "Error: no module named six", "from": [3]}]
    assert told["tools"] == [{"text": "Called run 1 times.", "from": [2]}]
    assert "/srv/app/main.py" in told["files"][0]["text"]
    assert reply(Dialogue(HISTORY)).text == written


def test_the_summary_of_earlier_turns_is_carried_over() -> None:
    item = {"kind": "constraints", "text": "Never push.", "from": [2]}
    first = json.dumps({"summary_of_turns": [1, 9], "items": [item]})
    written = summary(f"{first}\n{json.dumps({'n': 10, 'role': 'user', 'text': 'Go on.'})}")
    assert written is not None
    assert json.loads(written)["constraints"] == [{"text": "Never push.", "from": [2]}]


def test_a_long_history_has_a_short_summary() -> None:
    text = "You must not stop. " * 500
    written = summary(lines(*[{"role": "user", "text": text}] * 50))
    assert written is not None
    for items in json.loads(written).values():
        assert len(items) <= MOST_ITEMS
        assert all(len(item["text"]) <= LONGEST for item in items)


@pytest.mark.parametrize("question", ["", "Hello", "{}", '{"a": 1}\n{"n": 1, "role": "user"}', "[1]", '{"n": 1'])
def test_another_question_is_none(question: str) -> None:
    assert summary(question) is None
