"""Tests what clients do to a history, and whether a summary of it still applies: a golden case each."""

import re
from collections.abc import Callable, Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.conversation import Conversation, NamedTool, Text, ToolSpec, Turn
from gateway.core.policy import Policy
from gateway.history.classify import system_prefix
from gateway.history.prepare import prepare
from gateway.history.repair import repair
from gateway.memory.history_digest import history_digests
from gateway.memory.summaries.known_facts import known_of
from gateway.memory.summaries.substitution import applied_to
from gateway.memory.summaries.summary import SummaryContent, SummaryRecord
from tests.history.strategies import assistant, broken_turns, calling, numbered, result, system, user
from tests.history.test_laws import markers
from tests.memory.summaries.records import (
    SECRET,
    TENANT,
    agent_history,
    boundaries,
    chat_history,
    newest_match,
    record_of,
)

UNLIMITED = Policy(max_history_messages=None, max_tool_results=None)


def found(
    turns: Sequence[Turn], stored: Sequence[SummaryRecord], secret: bytes = SECRET, tenant: str = TENANT
) -> int | None:
    """The number of turns of the stored summary that a request with these turns uses; None: it uses none."""
    conversation = repair(Conversation(numbered(*turns)), Policy())[0]
    match = newest_match(history_digests(conversation.turns, secret, tenant), {record.digest for record in stored})
    if match is None:
        return None
    record = next(one for one in stored if one.digest == match.digest)
    prepared = prepare(conversation, UNLIMITED, applied_to(conversation, record))
    assert [turn.text for turn in prepared.conversation.turns if turn.summary] == [record.text]
    return record.turns


CHAT = chat_history(10, 60)
AGENT = agent_history(8, 60)
# Two generations of a chat, and one of an agent's work on one question.
STORED = (record_of(CHAT, 6), record_of(CHAT, 12, generation=2), record_of(AGENT, 9))
CHECKPOINT = user("This session continues an earlier one. Summary: the parser was ported.")


@pytest.mark.parametrize(
    ("turns", "used"),
    [
        pytest.param(CHAT, 12, id="the same request again"),
        pytest.param((*CHAT, assistant("Yes."), user("And then?")), 12, id="appends"),
        pytest.param((*AGENT, calling("x"), result("x")), 9, id="an agent appends a round"),
        pytest.param((*CHAT[:15], user("Edited."), *CHAT[16:]), 12, id="edits behind the boundary"),
        pytest.param((*CHAT[:14], assistant("Another answer."), user("Why?")), 12, id="regenerates the last answer"),
        pytest.param((*CHAT[:13], user("Fork."), assistant("Yes."), user("Go on.")), 12, id="forks behind it"),
        pytest.param((*CHAT[:9], user("An earlier fork."), assistant("Yes."), user("Go on.")), 6, id="forks before it"),
        pytest.param((*CHAT[:9], user("Edited."), *CHAT[10:]), 6, id="edits between two generations"),
        pytest.param((*CHAT[:3], user("Edited."), *CHAT[4:]), None, id="edits before every boundary"),
        pytest.param((system(), CHECKPOINT, *CHAT[15:]), None, id="compacts by itself"),
        pytest.param((CHAT[0], *CHAT[3:]), None, id="drops its oldest turns"),
        pytest.param((CHAT[0], user("Files: 1 minute ago"), *CHAT[2:]), None, id="rewrites an old turn each time"),
        pytest.param((system("It is Tuesday."), *CHAT[1:]), 12, id="changes its system text"),
        pytest.param((system(), system("Skills: none."), *CHAT[1:]), 12, id="adds system text"),
        pytest.param(CHAT[1:], 12, id="sends no system text"),
        pytest.param((*CHAT[:13], system("Environment: clean."), *CHAT[13:]), 12, id="adds a system turn behind it"),
        pytest.param((*CHAT[:5], system("Environment: clean."), *CHAT[5:]), None, id="adds a system turn before it"),
        pytest.param(CHAT[:9], 6, id="goes back in time"),
        pytest.param(CHAT[:4], None, id="goes back before every boundary"),
        pytest.param(chat_history(10, 72), None, id="is another conversation of the same beginning"),
    ],
)  # fmt: skip
def test_a_summary_applies_exactly_while_its_turns_are_the_same(turns: tuple[Turn, ...], used: int | None) -> None:
    assert found(turns, STORED) == used


def test_another_key_or_another_installation_never_meets_it() -> None:
    assert found(CHAT, STORED, tenant="other") is None
    assert found(CHAT, STORED, secret=b"other") is None


@pytest.mark.parametrize(
    "change",
    [
        {"model": "another"},
        {"tools": (ToolSpec("f"),), "tool_choice": NamedTool("f")},
        {"params": {"temperature": 0.1}},
        {"stream": True, "dialect": "anthropic_messages"},
    ],
)
def test_model_tools_and_sampling_do_not_matter(change: dict[str, object]) -> None:
    conversation = msgspec.structs.replace(Conversation(CHAT), **change)
    sent = prepare(conversation, UNLIMITED, applied_to(conversation, STORED[1])).conversation
    assert sent.turns[1].summary
    assert msgspec.structs.replace(sent, turns=CHAT) == conversation


Change = Callable[[tuple[Turn, ...]], tuple[Turn, ...]]


def _appended(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    return numbered(*turns, calling("new_call"), result("new_call"))


def _shortened(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    return turns[: len(turns) // 2]


def _edited(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    return tuple(user("<999>") if position == 1 else turn for position, turn in enumerate(turns))


@given(broken_turns(), st.data(), st.sampled_from([_appended, _shortened, _edited]))
def test_law_nothing_is_lost_but_in_a_notice(turns: tuple[Turn, ...], data: st.DataObject, change: Change) -> None:
    """Whatever a client sends: what no summary covers is sent, and so are the words of the user that one covers."""
    history = repair(Conversation(turns), Policy())[0]
    places = [boundary.turns for boundary in boundaries(history.turns)][:-1]
    if not places:
        return
    covered = data.draw(st.sampled_from(places))
    start = system_prefix(history.turns)
    room = data.draw(st.sampled_from([3, 10_000]))
    known = known_of(history.turns[start : start + covered], room, 40)
    record = record_of(history.turns, covered, content=SummaryContent(notes="Work was done."), known=known)
    later = repair(Conversation(change(history.turns)), Policy())[0]
    match = newest_match(boundaries(later.turns), {record.digest})
    if match is None or match.turns == len(later.turns) - system_prefix(later.turns):
        return
    prepared = prepare(later, UNLIMITED, applied_to(later, record))
    sent = markers(prepared.conversation.turns)
    first = system_prefix(later.turns)
    kept = (*later.turns[:first], *later.turns[first + covered :])
    assert set(markers(kept)) <= set(sent)
    words = [turn for turn in later.turns[first : first + covered] if turn.role == "user" and not turn.synthesized]
    unsaid = [turn for turn in words if not set(markers((turn,))) <= set(sent)]
    (notice,) = [one for one in prepared.notices if one.rule == "HISTORY_SUMMARIZED"]
    counted = re.search(r"the words of (\d+) of these", notice.detail)
    assert len(unsaid) <= (int(counted[1]) if counted else 0)


def test_the_same_record_gives_the_same_bytes_to_every_request() -> None:
    """A prompt cache lives as long as its prefix: a generation changes it once."""
    texts = set()
    for more in ((), (assistant("Yes."), user("And then?")), (assistant("No."), user("Why?"))):
        conversation = Conversation(numbered(*CHAT, *more))
        sent = prepare(conversation, UNLIMITED, applied_to(conversation, STORED[1])).conversation.turns
        texts.add(tuple(turn.text for turn in sent[: len(CHAT) - 12]))
    assert len(texts) == 1
    assert Text(STORED[1].text) in sent[1].blocks
