"""What is told of directives that are applied, what a removed tool leaves, and which choices a removal contradicts."""

from typing import Any, Final

import msgspec
import pytest

from gateway.adapter import Capabilities
from gateway.core.conversation import (
    Conversation,
    Directive,
    EffortChange,
    FormatChange,
    NamedTool,
    Text,
    ToolAddition,
    ToolChoice,
    ToolRemoval,
    ToolSpec,
    Turn,
    TurnScope,
)
from gateway.core.errors import InvalidRequest
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.exchange import Exchange
from gateway.history.directives import described, in_force, with_messages, with_unsent, without_cleared
from gateway.history.prepare import Substitution
from tests.scripted import ScriptedAdapter

LOOK: Final = ToolSpec("look")
READ: Final = ToolSpec("read")


def system(index: int, text: str = "") -> Turn:
    return Turn("system", (Text(text),) if text else (), index=index)


def asked(*directives: Directive, last: int = 3, **fields: Any) -> Conversation:
    """A question, its answer, the message with the directives, and the next question."""
    turns = (
        Turn("user", (Text("one"),), index=0),
        Turn("assistant", (Text("two"),), index=1),
        *[system(index) for index in range(2, last)],
        Turn("user", (Text("three"),), index=last),
    )
    return Conversation(turns, (LOOK, READ), directives=directives, **fields)


def told(conversation: Conversation) -> list[tuple[str, str, int | None]]:
    capabilities = Capabilities(supported_params=frozenset({"reasoning_effort", "response_format"}))
    exchange = Exchange(ScriptedAdapter(capabilities=capabilities), conversation, Policy())
    return [(notice.rule, notice.detail, notice.index) for notice in exchange.notices]


@pytest.mark.parametrize(
    ("directive", "told_as"),
    [
        (EffortChange(2, "low"), "the effort low"),
        (FormatChange(2, {"type": "json_object"}, {}), "the format json_object"),
        (FormatChange(2, None, {}), "the format text"),
        (ToolAddition(2, "look", {"name": "look"}), "the tool 'look' from there on, which it defines"),
    ],
)
def test_what_is_asked_for_in_the_fields_is_told(directive: Directive, told_as: str) -> None:
    detail = f"the message asks for {told_as}: it is asked for in the request"
    assert described(directive) == told_as
    assert ("DIRECTIVE_APPLIED", detail, 2) in told(asked(directive))


def test_a_change_that_another_replaces_is_not_told() -> None:
    found = told(asked(EffortChange(2, "low"), EffortChange(3, "high"), last=4))
    assert [index for rule, _, index in found if rule == "DIRECTIVE_APPLIED"] == [3]


def test_a_removed_tool_that_stays_declared_is_told() -> None:
    found = told(asked(ToolRemoval(2, "look")))
    detail = (
        "the message removes the tool 'look': it stays declared, with a note at the place of the message, and a call "
    )
    assert ("TOOL_REMOVED", f"{detail}of it is refused", 2) in found


def test_a_cleared_text_is_told() -> None:
    conversation = asked(TurnScope(2))
    cleared = msgspec.structs.replace(
        conversation, turns=(*conversation.turns[:2], system(2, "Now."), conversation.turns[3])
    )
    detail = "text that was for one turn is not sent any more; messages: 1"
    assert ("MESSAGE_CLEARED", detail, 2) in told(cleared)


class Summary(msgspec.Struct, frozen=True):
    """Stands for the turns before the last one."""

    def substitute(self, conversation: Conversation) -> tuple[Conversation, tuple[Notice, ...]]:
        stands_in = Turn("user", (Text("Until now."),), synthesized=True, summary=True)
        return msgspec.structs.replace(conversation, turns=(stands_in, conversation.turns[-1])), ()


@pytest.mark.parametrize(
    ("summary", "declared"), [(None, ["look", "read"]), (Summary(), ["read"])], ids=["all", "summary"]
)
def test_a_removed_tool_goes_from_the_declaration_with_the_next_summary(
    summary: Substitution | None, declared: list[str]
) -> None:
    conversation = asked(ToolRemoval(2, "look"))
    exchange = Exchange(ScriptedAdapter(), conversation, Policy(), summary)
    assert [tool.name for tool in exchange.conversation.tools] == declared
    texts = [turn.text for turn in exchange.conversation.turns]
    assert ("The tool `look` is no longer available." in texts) is (summary is None)


def test_a_tool_that_comes_back_stays_declared_behind_a_summary() -> None:
    conversation = asked(ToolRemoval(2, "look"), ToolAddition(3, "look"), last=4)
    exchange = Exchange(ScriptedAdapter(), conversation, Policy(), Summary())
    assert exchange.conversation.tools == (LOOK, READ)


@pytest.mark.parametrize(
    ("choice", "removed", "refused"),
    [
        (NamedTool("look"), ["look"], "tool_choice names a tool that messages[2] removes."),
        (NamedTool("read"), ["look"], None),
        ("required", ["look"], None),
        ("required", ["look", "read"], "tool_choice requires a call, but the messages remove every tool."),
        ("auto", ["look", "read"], None),
        ("none", ["look", "read"], None),
    ],
)
def test_a_choice_that_a_removal_leaves_nothing_for_is_refused(
    choice: ToolChoice, removed: list[str], refused: str | None
) -> None:
    conversation = asked(*[ToolRemoval(2, name) for name in removed], tool_choice=choice)
    state = in_force(conversation)
    if refused is None:
        assert with_messages(conversation, conversation, state)
        return
    with pytest.raises(InvalidRequest) as failed:
        with_messages(conversation, conversation, state)
    assert (str(failed.value), failed.value.param) == (refused, "tool_choice")


def test_a_conversation_without_directives_has_nothing_in_force() -> None:
    state = in_force(asked())
    assert state.effort is None and state.form is None
    assert not state.removed and not state.cleared


def test_text_that_was_for_one_turn_is_left_out_of_what_a_summary_is_written_from() -> None:
    conversation = asked(TurnScope(2), last=4)
    turns = [system(turn.index or 0, f"{turn.index}") if turn.role == "system" else turn for turn in conversation.turns]
    repaired = msgspec.structs.replace(conversation, turns=tuple(turns))
    assert [turn.text for turn in without_cleared(repaired).turns] == ["one", "two", "", "3", "three"]
    assert without_cleared(asked()) == asked()


def test_of_many_directives_that_are_not_sent_only_those_in_force_are_told() -> None:
    """A long session has hundreds, and each of its requests would tell them all."""
    changes = [one for index in range(2, 40) for one in (EffortChange(index, "low"), ToolRemoval(index, "look"))]
    conversation = asked(*changes, last=40)
    behind = msgspec.structs.replace(conversation, turns=conversation.turns[-1:])
    sent, notices = with_unsent(behind, conversation)
    assert [(notice.rule, notice.index) for notice in notices] == [("DIRECTIVE_APPLIED", 39), ("DIRECTIVE_APPLIED", 39)]
    assert [tool.name for tool in sent.tools] == ["read"] and sent.params["reasoning_effort"] == "low"
