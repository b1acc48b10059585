"""Two prompts are compared as a provider's cache does: one that grows is no finding, on any wire, and each cause has
its words and its row on the page."""

import re
from typing import Any, Final, get_args

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from adapters.anthropic_messages.backend import AnthropicMessagesAdapter, AnthropicMessagesOptions
from gateway.core.conversation import Conversation, Image, Json, Text, ToolCall, ToolResult, ToolSpec, Turn
from gateway.core.policy import LoopGuard, Policy
from gateway.diagnostics.prompt_cache.finding import (
    UNCOUNTED,
    CacheCounts,
    Cause,
    ClientChange,
    FieldChange,
    Finding,
    Place,
    ProviderMiss,
    RouteChange,
    RuleChange,
    SummaryChange,
    Unmarked,
    compare,
)
from gateway.diagnostics.prompt_cache.prompt import Prompt, prompt_of, tokens_of
from gateway.diagnostics.prompt_cache.words import cause_name, cause_rule, finding_sentence
from gateway.exchange import Exchange
from gateway.providers.prefix_rules import IMAGES, SERVER_TOOLS, prefix_rules
from gateway.providers.registry import PROFILES
from tests.paths import ROOT
from tests.test_stable_prefix import ADAPTERS, UNLIMITED, WIRES, Wire, histories
from tests.tiers import sample

PAGE: Final = (ROOT / "docs" / "prompt-caches.md").read_text(encoding="utf-8")
MESSAGES: Final = AnthropicMessagesAdapter(AnthropicMessagesOptions(), 1 << 20)
TOOL: Final = ToolSpec("look", "Looks", {"type": "object"})
PLACE: Final = Place("messages", 2, 3)
CAUSES: Final[tuple[Cause, ...]] = (
    ClientChange(Place("tools", 1)),
    ClientChange(Place("system", 0, how="added")),
    ClientChange(Place("messages", 4, 5, "removed")),
    RuleChange(PLACE, "HISTORY_LIMITED"),
    RuleChange(Place("tools", 0, how="reordered"), ""),
    SummaryChange(Place("messages", 1)),
    RouteChange("a/m", "b/m"),
    FieldChange("thinking", "messages"),
    FieldChange("tool_choice", "messages", "LOOP_TOOLS_OFF"),
    ProviderMiss(2.5),
    Unmarked(),
)


class Sent:
    """A request to a backend, with its prompt."""

    def __init__(self, adapter: Any, conversation: Conversation, policy: Policy = UNLIMITED) -> None:
        self.exchange = Exchange(adapter, conversation, policy)
        self.prompt: Prompt = prompt_of(self.exchange, adapter.capabilities.passthrough, "b")

    def since(self, old: "Sent", counts: CacheCounts = UNCOUNTED) -> Finding | None:
        return compare(old.prompt, self.prompt, tokens_of(self.exchange.conversation), counts)


def said(*turns: Turn, **fields: Any) -> Conversation:
    numbered = tuple(Turn(turn.role, turn.blocks, index=at) for at, turn in enumerate(turns))
    return Conversation(numbered, (TOOL,), model="model", **fields)


def user(text: str) -> Turn:
    return Turn("user", (Text(text),))


@sample()
@pytest.mark.parametrize(
    ("wire", "profile"),
    [(wire, name) for wire in WIRES for name in wire.profiles if PROFILES[name].reasoning != "echo_in_tool_loop"],
    ids=lambda one: one if isinstance(one, str) else one.name,
)
@settings(max_examples=settings().max_examples // 5)
@given(turns=histories())
def test_a_prompt_that_grows_is_no_finding(wire: Wire, profile: str, turns: tuple[Turn, ...]) -> None:
    policy = Policy(max_tool_results=None, max_history_messages=None, profile=PROFILES[profile])
    adapter = ADAPTERS[wire.name]
    answered = [at for at, turn in enumerate(turns) if turn.role == "assistant"]
    before: Sent | None = None
    for at in (*answered, len(turns)):
        new = Sent(adapter, said(*turns[:at]), policy)
        found = None if before is None else new.since(before)
        # A turn of the user's may be joined to the last one, behind which nothing is lost.
        assert found is None or found.lost == 0, finding_sentence(found)
        before = new


def test_every_cause_has_words_and_a_row_on_the_page() -> None:
    names = {cause_name(cause) for cause in CAUSES}
    table = PAGE.partition("| cause |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `([a-z_]+)` \|", table, re.M)) == names
    assert {type(cause) for cause in CAUSES} == set(get_args(Cause))
    sentences = {finding_sentence(Finding(cause, 10, 1234)) for cause in CAUSES}
    assert len(sentences) == len(CAUSES) and all("1,234 tokens" in one for one in sentences)
    assert [cause_rule(cause) for cause in CAUSES if cause_rule(cause)] == ["HISTORY_LIMITED", "LOOP_TOOLS_OFF"]
    assert "a defect" in finding_sentence(Finding(CAUSES[4], 0, 1))


def test_every_field_stands_on_the_page_with_its_source() -> None:
    for api in ("anthropic_messages", "openai_chat"):
        for field in prefix_rules(api).fields:
            words = {IMAGES: "there is an image", SERVER_TOOLS: "tools of the provider"}.get(field, f"`{field}`")
            assert words in PAGE, field


def test_a_rule_of_ours_that_changes_a_field_is_named() -> None:
    """The guard against loops takes the tools away, for which the Messages API has a field."""
    call = [Turn("assistant", (ToolCall(f"c{n}", "look", "{}"),)) for n in range(3)]
    results = [Turn("tool", (ToolResult(f"c{n}", (Text("Nothing."),)),)) for n in range(3)]
    rounds = [turn for pair in zip(call, results, strict=True) for turn in pair]
    policy = Policy(
        max_tool_results=None, max_history_messages=None, loop_guard=LoopGuard(repeats=3, action="no_tools")
    )
    old = Sent(MESSAGES, said(user("Look."), *rounds[:4]), policy)
    new = Sent(MESSAGES, said(user("Look."), *rounds), policy)
    found = new.since(old)
    assert found is not None and found.cause == FieldChange("tool_choice", "messages", "LOOP_TOOLS_OFF")
    assert found.held == tokens_of(new.exchange.conversation)([0])


def test_a_first_image_ends_the_messages_of_the_messages_api() -> None:
    picture = Turn("user", (Image("data:image/png;base64,iVBORw0KGgo="),))
    old = Sent(MESSAGES, said(user("Look."), Turn("assistant", (Text("Where?"),))))
    new = Sent(MESSAGES, said(user("Look."), Turn("assistant", (Text("Where?"),)), picture))
    found = new.since(old)
    assert found is not None and found.cause == FieldChange(IMAGES, "messages") and found.lost > 0
    again = Sent(MESSAGES, said(user("Look."), Turn("assistant", (Text("Where?"),)), picture, picture))
    assert again.since(new) is None


def test_no_notice_for_a_change_of_ours_is_called_a_defect() -> None:
    turns = (Turn("system", (Text("Be brief."),)), user("Hello"), Turn("assistant", (Text("Yes"),)), user("Go on"))
    old, new = Sent(MESSAGES, said(*turns[:2])), Sent(MESSAGES, said(*turns))
    other = Sent(MESSAGES, said(Turn("system", (Text("Be long."),)), *turns[1:]))
    # What was sent changes, while the client's own request is the same.
    forged = replace(new.prompt, sent=other.prompt.sent)
    found = compare(old.prompt, forged, tokens_of(new.exchange.conversation))
    assert found is not None and found.cause == RuleChange(Place("system", 0), "")


def test_a_body_that_is_no_json_has_no_fields() -> None:
    more = (Turn("assistant", (Text("Yes"),)), user("more"))
    old, new = Sent(ADAPTERS["gRPC"], said(user("Hello"))), Sent(ADAPTERS["gRPC"], said(user("Hello"), *more))
    assert new.since(old) is None and new.prompt.fields == {}


@pytest.mark.parametrize(
    ("counts", "lost"),
    [
        (CacheCounts(), None),
        (CacheCounts(1000, None), "scaled"),
        (CacheCounts(1000, 200), "between"),
        (CacheCounts(1000, 1000), 0),
        (CacheCounts(None, 0), "all"),
    ],
)
def test_the_backend_counts_where_it_reports_cached_tokens(counts: CacheCounts, lost: Json) -> None:
    turns = [user("Read all of it, please. " * 20), Turn("assistant", (Text("Yes. " * 20),)), user("Go on.")]
    old = Sent(MESSAGES, said(Turn("system", (Text("Monday"),)), *turns[:2]))
    new = Sent(MESSAGES, said(Turn("system", (Text("Tuesday"),)), *turns))
    estimated = new.since(old)
    found = new.since(old, counts)
    assert estimated is not None and found is not None and found.cached == counts.cached
    if lost is None:
        assert found.lost == estimated.lost > 0
    elif lost == "scaled":
        assert found.held + found.lost < 1000 and found.lost / found.held == pytest.approx(
            estimated.lost / estimated.held, rel=0.05
        )
    elif lost == "all":
        assert found.lost == estimated.held + estimated.lost
    elif lost == "between":
        assert 0 < found.lost < 800
    else:
        assert found.lost == lost
