import itertools
from collections.abc import Sequence
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.adapter import Capabilities
from gateway.capabilities.held_tools import HeldTools, hold_tools
from gateway.core.conversation import (
    Conversation,
    DeferredTools,
    Json,
    NamedTool,
    ToolSpec,
    Turn,
)
from gateway.core.policy import Policy
from tests.sixty_tools import ASKED, AT_ONCE, ON_DEMAND, SIXTY, TASKS, called, prompt_tokens

SMALL: Final = tuple([ToolSpec(f"tool_{at}", f"Does {at}", {"type": "object"}) for at in range(4)])


def asking(*turns: Turn, tools: Sequence[ToolSpec] = SIXTY, **fields: Any) -> Conversation:
    return Conversation((ASKED, *turns), tuple(tools), "auto", model="m", **fields)


def offered(conversation: Conversation, policy: Policy = ON_DEMAND, **kinds: Any) -> list[str]:
    sent, _, _ = hold_tools(conversation, conversation.turns, policy, Capabilities(**kinds))
    return [tool.name for tool in sent.tools]


def held(conversation: Conversation, policy: Policy = ON_DEMAND) -> HeldTools:
    _, found, _ = hold_tools(conversation, conversation.turns, policy, Capabilities())
    assert found is not None
    return found


def test_every_function_waits_for_a_search_on_demand() -> None:
    assert offered(asking()) == ["tool_search"]
    assert [tool.name for tool in held(asking()).tools] == [tool.name for tool in SIXTY]


def test_the_search_has_one_line_for_each_function() -> None:
    search = held(asking()).search
    assert search is not None
    lines = search.description.splitlines()[1:]
    assert [line.partition(":")[0] for line in lines] == [f"- {tool.name}" for tool in SIXTY]
    assert max(map(len, lines)) <= 100


def test_what_the_history_calls_is_offered_behind_the_search_in_its_order() -> None:
    turns = (*called("s3_list_buckets", 1), *called("mail_send", 3), *called("s3_list_buckets", 5))
    assert offered(asking(*turns)) == ["tool_search", "s3_list_buckets", "mail_send"]


@given(st.lists(st.sampled_from([tool.name for tool in SIXTY]), max_size=8))
def test_what_is_offered_begins_as_it_did_before(names: list[str]) -> None:
    rounds = [called(name, 1 + 2 * at) for at, name in enumerate(names)]
    offers = [offered(asking(*itertools.chain(*rounds[:count]))) for count in range(len(rounds) + 1)]
    for shorter, longer in itertools.pairwise(offers):
        assert longer[: len(shorter)] == shorter


def test_the_search_is_the_same_whatever_is_loaded() -> None:
    assert held(asking()).search == held(asking(*called("mail_send", 1))).search


def test_functions_stay_where_a_search_would_not_make_the_prompt_shorter() -> None:
    assert offered(asking(tools=SMALL)) == [tool.name for tool in SMALL]


@pytest.mark.parametrize("searches", [frozenset[str](), frozenset({"tool_search"})])
def test_what_a_client_defers_waits_whatever_it_saves(searches: frozenset[str]) -> None:
    deferred = DeferredTools(frozenset({"tool_1", "tool_2"}), ((3, "tool_2"),), searches)
    names = offered(asking(tools=SMALL, deferred=deferred), AT_ONCE)
    assert names == ["tool_0", "tool_3", *(["tool_search"] if searches else []), "tool_2"]


def test_loads_of_the_client_and_calls_stand_in_the_order_of_the_history() -> None:
    deferred = DeferredTools(frozenset({"tool_1", "tool_2", "tool_3"}), ((4, "tool_1"),))
    turns = (*called("tool_3", 1), *called("tool_2", 7))
    assert offered(asking(*turns, tools=SMALL, deferred=deferred), AT_ONCE) == ["tool_0", "tool_3", "tool_1", "tool_2"]


def test_a_forced_function_is_offered() -> None:
    asked = msgspec.structs.replace(asking(), tool_choice=NamedTool("mail_send"))
    assert offered(asked) == ["tool_search", "mail_send"]


@pytest.mark.parametrize(("kind", "waits"), [("json_object", False), ("json_schema", False), ("text", True)])
def test_an_answer_in_json_has_no_rounds(kind: str, waits: bool) -> None:
    asked = asking(params={"response_format": {"type": kind}})
    assert (offered(asked) == ["tool_search"]) == waits
    assert len(offered(asked)) in (1, 60)


def test_a_function_that_is_loaded_has_no_mark_of_the_client() -> None:
    tools = [msgspec.structs.replace(tool, extra={"defer_loading": True, "cache_control": {}}) for tool in SMALL]
    deferred = DeferredTools(frozenset(tool.name for tool in tools), ((0, "tool_1"),))
    conversation = asking(tools=tools, deferred=deferred)
    sent, _, _ = hold_tools(conversation, conversation.turns, AT_ONCE, Capabilities())
    assert [tool.extra for tool in sent.tools] == [{"cache_control": {}}]


def test_a_client_of_the_same_api_defers_by_itself() -> None:
    deferred = DeferredTools(frozenset({"tool_1"}), (), frozenset({"tool_search"}))
    conversation = asking(tools=SMALL, deferred=deferred, dialect="own", params={"tools": []})
    for kinds in ({}, {"passes_tools": True}):
        assert offered(conversation, AT_ONCE, passthrough="own", **kinds) == [tool.name for tool in SMALL]
    assert len(offered(asking(dialect="own", params={"tools": []}), passthrough="own", passes_tools=True)) == 60


def test_the_own_fields_of_a_client_hold_what_is_offered() -> None:
    entries: list[Json] = [
        {"type": "function", "function": {"name": tool.name, "description": "as written", "strict": True}}
        for tool in SIXTY
    ]
    other: Json = {"type": "web_search"}
    conversation = asking(*called("mail_send", 1), dialect="chat", params={"tools": [other, *entries], "seed": 1})
    sent, found, _ = hold_tools(conversation, conversation.turns, ON_DEMAND, Capabilities(passthrough="chat"))
    assert found is not None and found.search is not None
    assert sent.params["seed"] == 1
    tools: Any = sent.params["tools"]
    assert [tools[0], tools[2]] == [other, entries[10]]
    assert tools[1]["function"]["name"] == "tool_search" and len(tools) == 3


def test_the_notice_says_how_many_wait_and_what_that_saves() -> None:
    conversation = asking(*called("mail_send", 1))
    _, _, notices = hold_tools(conversation, conversation.turns, ON_DEMAND, Capabilities())
    first, second = notices
    assert first.rule == "TOOLS_HELD_BACK"
    assert first.detail.startswith("59 of 60 tools are held back until a search names them: about ")
    assert (second.rule, second.level) == ("TOOLS_LOADED", "debug")
    assert second.detail == "the history names or calls 'mail_send', loaded again"


def test_sixty_functions_of_which_two_are_used_take_a_quarter_of_the_prompt() -> None:
    assert prompt_tokens(ON_DEMAND) * 4 <= prompt_tokens(AT_ONCE)


def test_every_task_has_a_function() -> None:
    assert len(SIXTY) == 60 and len(TASKS) == 20
    assert set(TASKS.values()) <= {tool.name for tool in SIXTY}
