"""Providers that require a user message first: the rule is repaired, rejected, or applied by the profile."""

import json
from typing import Any

import pytest

from adapters.openai_chat.backend import OpenAIChatAdapter, OpenAIChatOptions
from gateway.core.conversation import Conversation
from gateway.core.errors import InvalidRequest
from gateway.core.policy import Policy
from gateway.exchange import Exchange
from gateway.history.first_turn import OPENING
from gateway.history.prepare import prepare
from gateway.history.validate import validate
from gateway.providers.profile import Profile
from gateway.providers.registry import PROFILES
from tests.history.strategies import assistant, calling, conversation, result, system, user

WANTED = Profile(first_turn="user")
GREETED = conversation(system(), assistant("How can I help?"), user())
CUT = conversation(calling("a"), result("a"), user())
BEGUN = conversation(system(), user(), assistant())
PROVIDERS = [name for name, profile in PROFILES.items() if profile.first_turn == "user"]


def roles(asked: Conversation, policy: Policy) -> list[str]:
    """What the native adapter writes."""
    request = Exchange(OpenAIChatAdapter(OpenAIChatOptions(), 1 << 20), asked, policy).request
    messages: list[dict[str, Any]] = json.loads(request.body)["messages"]  # Any: read with json
    return [message["role"] for message in messages]


def told(asked: Conversation, policy: Policy) -> list[tuple[str, str, str, int | None]]:
    notices = Exchange(OpenAIChatAdapter(OpenAIChatOptions(), 1 << 20), asked, policy).notices
    return [(notice.stage, notice.action, notice.rule, notice.index) for notice in notices if "TURN" in notice.rule]


@pytest.mark.parametrize(("asked", "index"), [(GREETED, 1), (CUT, 0)])
def test_another_first_turn_breaks_a_rule_of_the_provider_alone(asked: Conversation, index: int) -> None:
    assert validate(asked) == ()
    (found,) = validate(asked, WANTED)
    assert (found.rule, found.index, found.param) == ("FIRST_TURN_ROLE", index, f"messages[{index}].role")
    assert "'assistant'" in found.detail


@pytest.mark.parametrize("asked", [BEGUN, conversation(user()), conversation(system()), Conversation(())])
def test_what_the_user_begins_and_what_nobody_begins_breaks_no_rule(asked: Conversation) -> None:
    assert "FIRST_TURN_ROLE" not in {found.rule for found in validate(asked, WANTED)}


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_user_turn_is_put_before_it(name: str) -> None:
    policy = Policy(profile=PROFILES[name])
    assert roles(GREETED, policy) == ["system", "user", "assistant", "user"]
    assert told(GREETED, policy) == [("repair", "added", "FIRST_TURN_ROLE", 1)]


def test_the_turn_that_is_put_there_counts_as_nobodys_question() -> None:
    (opening, *_) = prepare(CUT, Policy(profile=WANTED)).conversation.turns
    assert (opening.text, opening.index, opening.synthesized) == (OPENING, None, True)


@pytest.mark.parametrize("asked", [GREETED, CUT])
def test_strict_refuses_it_and_names_the_message(asked: Conversation) -> None:
    with pytest.raises(InvalidRequest) as caught:
        prepare(asked, Policy(profile=WANTED, repair="strict"))
    assert caught.value.extra["rule"] == "FIRST_TURN_ROLE"
    assert prepare(asked, Policy(repair="strict")).conversation == asked


def test_a_history_that_repair_leaves_alone_is_fitted() -> None:
    policy = Policy(profile=WANTED, repair="off")
    assert roles(GREETED, policy) == ["system", "user", "assistant", "user"]
    assert told(GREETED, policy) == [
        ("validate", "seen", "FIRST_TURN_ROLE", 1),
        ("profile", "added", "USER_TURN_ADDED", 1),
    ]


def test_a_note_that_repair_makes_of_an_orphan_is_the_users() -> None:
    asked = conversation(result("lost"), assistant(), user())
    assert roles(asked, Policy(profile=WANTED)) == ["user", "assistant", "user"]


def test_limits_keep_the_users_turn_of_the_oldest_group() -> None:
    rounds = [turn for n in range(4) for turn in (calling(f"c{n}"), result(f"c{n}"))]
    begun = conversation(assistant("Hello."), user("old"), *rounds, assistant("done"), user("now"))
    limited = Policy(profile=WANTED, max_history_messages=3)
    assert roles(begun, limited) == ["user", "assistant", "tool", "assistant", "user"]
    assert ("trim", "seen", "USER_TURN_KEPT", 1) in told(begun, limited)
