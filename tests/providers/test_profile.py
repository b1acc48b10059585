"""The provider table is valid, and its promises hold for sent requests."""

import itertools
import re

from hypothesis import given
from hypothesis import strategies as st

from gateway.core.conversation import Conversation, Reasoning, Text, ToolCall, ToolResult, ToolSpec, Turn
from gateway.history.apply_profile import apply_profile
from gateway.providers.profile import NEUTRAL, Alphabet, Profile
from gateway.providers.registry import PROFILES

NAMES = st.text(min_size=1, max_size=80)
TEXTS = st.text(max_size=20)


@st.composite
def rounds(draw: st.DrawFn) -> Conversation:
    """A valid history of tool rounds, with names and ids that many providers refuse."""
    turns = [Turn("developer", (Text("Be brief."),)), Turn("user", (Text(draw(TEXTS)),))]
    for number in range(draw(st.integers(1, 3))):
        calls = [
            ToolCall(f"{number}-{position}-{draw(NAMES)}", draw(NAMES), '{"a": 1}')
            for position in range(draw(st.integers(1, 3)))
        ]
        reasoning = draw(st.sampled_from([(), (Reasoning("because"),)]))
        turns.append(Turn("assistant", (*reasoning, *calls)))
        turns.extend(Turn("tool", (ToolResult(call.id, (Text(draw(TEXTS)), Text("b"))),)) for call in calls)
        if draw(st.booleans()):
            turns.append(Turn("user", (Text(draw(TEXTS)),)))
            turns.append(Turn("user", (Text("more"),)))
    indexed = [Turn(turn.role, turn.blocks, index=index) for index, turn in enumerate(turns)]
    tools = tuple(ToolSpec(name) for name in dict.fromkeys(call.name for turn in turns for call in turn.calls))
    return Conversation(tuple(indexed), tools=tools)


def matches(identifier: str, alphabet: Alphabet) -> bool:
    long_enough = alphabet.shortest <= len(identifier) <= (alphabet.longest or len(identifier))
    letters = alphabet.characters is None or re.fullmatch(f"[{alphabet.characters}]*", identifier) is not None
    return (
        long_enough and letters and (alphabet.first is None or re.match(f"[{alphabet.first}]", identifier) is not None)
    )


@given(conversation=rounds())
def test_what_is_sent_keeps_the_providers_rules(conversation: Conversation) -> None:
    for name, profile in PROFILES.items():
        assert broken_rules(conversation, profile) == [], name


def broken_rules(conversation: Conversation, profile: Profile) -> list[str]:
    """What a provider with this profile would refuse in what it is sent."""
    profiled = apply_profile(conversation, profile).conversation
    calls = [call for turn in profiled.turns for call in turn.calls]
    answers = [result.call_id for turn in profiled.turns for result in turn.results]
    roles = [turn.role for turn in profiled.turns]
    neighbours = list(itertools.pairwise(roles))
    blocks = [block for turn in profiled.turns for block in turn.blocks]
    contents = [result.content for turn in profiled.turns for result in turn.results]
    kept = {
        "ids": all(matches(call.id, profile.call_id) for call in calls),
        "names of calls": all(matches(call.name, profile.tool_names) for call in calls),
        "names of tools": all(matches(tool.name, profile.tool_names) for tool in profiled.tools),
        "pairs": sorted(call.id for call in calls) == sorted(answers),
        "calls of tools": {call.name for call in calls} == {tool.name for tool in profiled.tools},
        "developer": profile.developer != "system" or "developer" not in roles,
        "alternation": profile.alternation != "strict" or ("user", "user") not in neighbours,
        "user after tool": profile.user_after_tool != "bridge" or ("tool", "user") not in neighbours,
        "reasoning": profile.reasoning != "drop" or not any(isinstance(block, Reasoning) for block in blocks),
        "content": profile.tool_content != "string" or all(len(content) == 1 for content in contents),
    }
    return [rule for rule, holds in kept.items() if not holds]


@given(conversation=rounds())
def test_a_fit_is_repeatable_and_leaves_what_fits(conversation: Conversation) -> None:
    for name, profile in PROFILES.items():
        profiled = apply_profile(conversation, profile)
        assert apply_profile(conversation, profile) == profiled, name
        again = apply_profile(profiled.conversation, profile)
        assert again.conversation == profiled.conversation, name
        # That arguments are written as objects is so of every request.
        assert {notice.rule for notice in again.notices} <= {"ARGUMENTS_AS_OBJECT"}, name


@given(conversation=rounds())
def test_the_neutral_profile_changes_nothing(conversation: Conversation) -> None:
    assert apply_profile(conversation, NEUTRAL).conversation is conversation


def test_the_default_profile_is_neutral() -> None:
    assert PROFILES["none"] == Profile()
