"""A provider that refuses a last message of the assistant gets a user turn behind it, and no other one does."""

import json
from typing import Any

import pytest

from adapters.openai_chat.backend import OpenAIChatAdapter, OpenAIChatOptions
from gateway.core.conversation import Conversation
from gateway.core.policy import Policy
from gateway.exchange import Exchange
from gateway.history.apply_profile.roles import CONTINUE
from gateway.providers.profile import Profile
from gateway.providers.registry import PROFILES
from tests.history.strategies import assistant, calling, conversation, result, system, user

WANTED = Policy(profile=Profile(last_turn="user"))
PROVIDERS = [name for name, profile in PROFILES.items() if profile.last_turn == "user"]
BEGUN = conversation(user(), assistant("It is"))
# Repair moves the second result behind its call, so that the assistant has the last word.
LATE = conversation(user(), calling("a", "b"), result("a"), assistant("One is here."), result("b"))


def sent(asked: Conversation, policy: Policy) -> tuple[list[dict[str, Any]], list[str]]:
    """The messages that the native adapter writes, and what was done to turns."""
    exchange = Exchange(OpenAIChatAdapter(OpenAIChatOptions(), 1 << 20), asked, policy)
    messages: list[dict[str, Any]] = json.loads(exchange.request.body)["messages"]  # Any: read with json
    return messages, [notice.rule for notice in exchange.notices if notice.rule == "USER_TURN_ADDED"]


@pytest.mark.parametrize("asked", [BEGUN, LATE, conversation(user(), assistant(), system())])
@pytest.mark.parametrize("repair", ["repair", "off"])
def test_a_user_turn_is_put_behind_a_last_message_of_the_assistant(asked: Conversation, repair: Any) -> None:
    policy = Policy(profile=WANTED.profile, repair=repair)
    messages, told = sent(asked, policy)
    if asked is LATE and repair == "off":
        assert messages[-1]["role"] == "tool" and told == []
    else:
        assert messages[-1] == {"role": "user", "content": CONTINUE} and told == ["USER_TURN_ADDED"]
    assert len(sent(asked, Policy(repair=repair))[0]) == len(messages) - len(told)


@pytest.mark.parametrize(
    "asked", [conversation(user()), conversation(user(), calling("a"), result("a")), conversation(system())]
)
def test_any_other_end_stays(asked: Conversation) -> None:
    assert sent(asked, WANTED) == sent(asked, Policy())


def test_calls_without_results_stay_last_where_nothing_is_repaired() -> None:
    messages, told = sent(conversation(user(), calling("a")), Policy(profile=WANTED.profile, repair="off"))
    assert messages[-1]["role"] == "assistant" and told == []


@pytest.mark.parametrize("name", PROVIDERS)
def test_it_holds_under_every_profile_of_such_a_provider(name: str) -> None:
    assert sent(LATE, Policy(profile=PROFILES[name]))[0][-1]["role"] == "user"
    assert {"anthropic-compat", "bedrock", "gemini"} <= set(PROVIDERS)
