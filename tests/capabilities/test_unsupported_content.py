"""Undeclared content never reaches an adapter, and is rejected or reported."""

import json

import msgspec
import pytest

from adapters.openai_chat.client.decode import decode
from adapters.text.backend import TextAdapter, TextOptions
from gateway.adapter import Capabilities
from gateway.capabilities.unsupported_content import dropped_fields, keep_to
from gateway.core.conversation import (
    Conversation,
    File,
    Image,
    Json,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
)
from gateway.core.errors import Unsupported
from gateway.core.policy import Policy
from gateway.exchange import Exchange
from gateway.providers.profile import Profile
from tests.scripted import ScriptedAdapter

REMOTE = Image("https://host/a.png")
INLINE = Image("data:image/png;base64,iVBORw0KGgo=")
AUDIO = File("input_audio", {"type": "input_audio"})
PAPER = File("document", {"type": "document"}, 2, "data:application/pdf;base64,JVBERg==", "paper.pdf")
REMOTE_PAPER = File("document", {"type": "document"}, 2, "https://host/a.pdf")
PDFS = frozenset({"application/pdf"})
PLACEHOLDER = Policy(images="placeholder")
EYES = Capabilities(images=True)


def written(file: File) -> File:
    return msgspec.structs.replace(file, part={})


CACHED: dict[str, Json] = {"cache_control": {"type": "ephemeral"}}


def test_fields_without_a_place_are_named_and_counted() -> None:
    turns = (
        Turn("user", (Text("a", CACHED), Image("data:,", {"detail": "low"})), extra={"metadata": 1}),
        Turn("assistant", (ToolCall("k", "n", "{}", CACHED),)),
    )
    tools = (ToolSpec("n", strict=True, extra={"function": {"x": 1}, **CACHED}),)
    assert [notice.detail for notice in dropped_fields(Conversation(turns, tools), Capabilities())] == [
        "the backend has no field for cache_control (2), detail (1), metadata (1) of messages",
        "the backend has no field for cache_control (1), strict (1), x (1) of tools",
    ]


WARP = Capabilities(carries=frozenset({"extra_content.warp"}))


def test_what_is_carried_for_the_backend_is_no_unsent_field() -> None:
    turns = (Turn("assistant", (ToolCall("k", "n", "{}", {"extra_content": {"warp": {"task_id": "t"}}}),)),)
    assert dropped_fields(Conversation(turns, (ToolSpec("n"),)), WARP) == []


def test_a_strict_tool_that_another_dialect_declared_is_named() -> None:
    (notice,) = dropped_fields(Conversation((), (ToolSpec("n", strict=True),)), Capabilities())
    assert "strict (1)" in notice.detail


def test_the_state_of_reasoning_is_named_where_nothing_carries_it() -> None:
    turns = (Turn("assistant", (Reasoning("hm", extra={"extra_content": {"google": {}}}), Text("ok"))),)
    (notice,) = dropped_fields(Conversation(turns), Capabilities())
    assert notice.detail == "the backend has no field for extra_content.google (1) of messages"
    assert dropped_fields(Conversation(turns), Capabilities(carries=frozenset({"extra_content.google"}))) == []


def test_the_state_of_another_provider_is_named() -> None:
    states: dict[str, Json] = {"warp": {"task_id": "t"}, "anthropic": {"signature": "s"}}
    turns = (Turn("assistant", (ToolCall("k", "n", "{}", {"extra_content": states}),)),)
    (notice,) = dropped_fields(Conversation(turns), WARP)
    assert notice.detail == "the backend has no field for extra_content.anthropic (1) of messages"


def test_a_failure_of_a_call_is_named_where_nothing_carries_it() -> None:
    failed, filled = ToolResult("k", (Text("no"),), is_error=True), ToolResult("l", (), True, synthesized=True)
    asked = Conversation((Turn("tool", (failed,)), Turn("tool", (filled,))))
    (notice,) = dropped_fields(asked, Capabilities())
    assert notice.detail == "the backend has no field for is_error (1) of messages"
    assert dropped_fields(asked, Capabilities(carries=frozenset({"is_error"}))) == []


def test_fields_inside_a_result_are_named_too() -> None:
    turn = Turn("tool", (ToolResult("k", (Text("a", CACHED), Image("data:,", {"detail": "low"}))),))
    (notice,) = dropped_fields(Conversation((turn,)), Capabilities())
    assert notice.detail == "the backend has no field for cache_control (1), detail (1) of messages"


def test_a_refusal_is_text_and_no_field_that_the_client_never_sent() -> None:
    messages: list[Json] = [
        {"role": "assistant", "content": "x", "refusal": "no", "audio": {"id": "a"}},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "no", "x": 1}]},
    ]
    (notice,) = dropped_fields(decode(json.dumps({"model": "m", "messages": messages}).encode()), Capabilities())
    assert notice.detail == "the backend has no field for audio (1), x (1) of messages"


def test_a_text_backend_tells_the_fields_of_messages_that_it_cannot_carry() -> None:
    turn = Turn("user", (Text("hi", CACHED),), index=0, extra={"metadata": 1})
    exchange = Exchange(TextAdapter(TextOptions(), 1 << 20), Conversation((turn,)), Policy())
    told = [notice.detail for notice in exchange.notices if notice.rule == "FIELD_NOT_SENT"]
    assert told == ["the backend has no field for cache_control (1), metadata (1) of messages"]


def results(*content: Text | Image | File) -> tuple[Turn, ...]:
    called = Turn("assistant", (ToolCall("k", "look", "{}"),), index=1)
    return (called, Turn("tool", (ToolResult("k", content),), index=2))


REFUSED: list[tuple[Capabilities, Turn, str]] = [
    (Capabilities(), Turn("user", (Text("see"), REMOTE), index=7), "messages[7].content[1]"),
    (Capabilities(), Turn("user", (Text("see"), REMOTE)), "messages[0].content[1]"),
    (Capabilities(), results(Text("see"), INLINE)[1], "messages[2].content[1]"),
    (Capabilities(), results(Text("see"), Image("data:,", item=4))[1], "messages[2].content[4]"),
    (EYES, Turn("user", (AUDIO,), index=0), "messages[0].content[0]"),
    (EYES, results(AUDIO)[1], "messages[2].content[0]"),
    (Capabilities(images=True, remote_images=False), Turn("user", (REMOTE,), index=0), "messages[0].content[0]"),
    (
        Capabilities(images=True, image_roles=frozenset({"user"})),
        Turn("assistant", (INLINE,), index=0),
        "messages[0].content[0]",
    ),
]


@pytest.mark.parametrize(("capabilities", "turn", "param"), REFUSED)
def test_a_part_that_is_not_declared_is_refused_by_its_path_or_becomes_a_placeholder(
    capabilities: Capabilities, turn: Turn, param: str
) -> None:
    with pytest.raises(Unsupported) as caught:
        keep_to(Conversation((turn,)), capabilities, Policy())
    assert caught.value.param == param
    changed, told = keep_to(Conversation((turn,)), capabilities, PLACEHOLDER)
    (kept,) = changed.turns
    assert [(notice.rule, notice.action) for notice in told] == [("PART_NOT_SENT", "changed")]
    blocks = [part for block in kept.blocks for part in (block.content if isinstance(block, ToolResult) else [block])]
    assert not any(isinstance(part, Image | File) for part in blocks)
    assert kept.source is None


@pytest.mark.parametrize(
    ("capabilities", "turn"),
    [
        (EYES, Turn("user", (REMOTE, INLINE))),
        (EYES, results(REMOTE)[1]),
        (Capabilities(images=True, remote_images=False), Turn("user", (INLINE,))),
        (Capabilities(files=PDFS, remote_files=True), Turn("user", (written(PAPER), written(REMOTE_PAPER)))),
    ],
)
def test_a_part_that_is_declared_reaches_the_adapter(capabilities: Capabilities, turn: Turn) -> None:
    conversation = Conversation((turn,))
    assert keep_to(conversation, capabilities, Policy()) == (conversation, [])


def test_a_file_is_written_anew_with_its_url_in_one_form() -> None:
    turn = Turn("user", (File("document", PAPER.part, 2, "DATA:application/pdf;base64,JVBERg", "paper.pdf"),))
    changed, told = keep_to(Conversation((turn,)), Capabilities(files=PDFS), Policy())
    assert (changed.turns[0].blocks, told) == ((written(PAPER),), [])


@pytest.mark.parametrize(
    ("capabilities", "profile"),
    [(Capabilities(), Profile(files=("application/pdf",))), (Capabilities(files=PDFS), Profile())],
)
def test_the_profile_says_which_files_a_provider_takes_where_it_says_anything(
    capabilities: Capabilities, profile: Profile
) -> None:
    asked = Conversation((Turn("user", (PAPER,)),))
    assert keep_to(asked, capabilities, Policy(profile=profile))[1] == []
    none = msgspec.structs.replace(PLACEHOLDER, profile=Profile(files=()))
    assert [notice.rule for notice in keep_to(asked, capabilities, none)[1]] == ["PART_NOT_SENT"]


ROLES: tuple[Role, ...] = ("system", "user", "assistant")


@pytest.mark.parametrize("role", ROLES)
def test_an_adapter_without_images_never_sees_one(role: Role) -> None:
    adapter = ScriptedAdapter()
    asked = Conversation((Turn("user", (Text("hi"),), index=0), Turn(role, (Text("see"), REMOTE, AUDIO), index=1)))
    with pytest.raises(Unsupported):
        Exchange(adapter, asked, Policy())
    assert adapter.encoded == []
    Exchange(adapter, asked, PLACEHOLDER)
    assert adapter.encoded[0].turns[1].text == "see\n[image]\n[input_audio]"


def test_an_adapter_without_tools_and_transcripts_never_sees_a_call() -> None:
    adapter = ScriptedAdapter(capabilities=Capabilities(tools=False))
    asked = Conversation((Turn("user", (Text("hi"),), index=0), *results(Text("a cat"))))
    exchange = Exchange(adapter, asked, Policy())
    (sent,) = adapter.encoded
    assert not any(turn.calls or turn.results for turn in sent.turns)
    assert "look" in sent.turns[1].text and "a cat" in sent.turns[2].text
    assert [notice.rule for notice in exchange.notices].count("TOOL_TURN_AS_TEXT") == 2


def test_an_adapter_that_passes_every_field_on_is_given_every_part() -> None:
    adapter = ScriptedAdapter(capabilities=Capabilities(passthrough="chat", tools=False))
    turns = (Turn("user", (Text("hi", CACHED), REMOTE, AUDIO), index=0, extra={"metadata": 1}), *results(Text("a")))
    exchange = Exchange(adapter, Conversation(turns, dialect="chat"), Policy())
    assert adapter.encoded[0].turns == turns
    assert not {"FIELD_NOT_SENT", "PART_NOT_SENT"} & {notice.rule for notice in exchange.notices}


SHOWN: dict[str, Turn] = {
    "in a result": Turn("tool", (ToolResult("k", (Text("seen"), INLINE)),), index=2),
    "behind results": Turn("user", (Text("Attached media from tool result:"), INLINE), index=3),
}


@pytest.mark.parametrize("place", SHOWN)
@pytest.mark.parametrize("later", [False, True], ids=["in the loop", "after the loop"])
def test_a_picture_that_a_tool_shows_does_not_end_the_job(place: str, later: bool) -> None:
    calling = Turn("assistant", (ToolCall("k", "read", "{}"),), index=1)
    plain = Turn("tool", (ToolResult("k", (Text("seen"),)),), index=2)
    shown = SHOWN[place]
    turns = [Turn("user", (Text("Look."),), index=0), calling, *([plain] if shown.role == "user" else []), shown]
    if later:
        turns += [Turn("assistant", (Text("Done."),), index=4), Turn("user", (Text("And now?"),), index=5)]
    exchange = Exchange(ScriptedAdapter(capabilities=Capabilities(tools=True)), Conversation(tuple(turns)), Policy())
    assert Image not in {type(block) for turn in exchange.conversation.turns for block in _all_blocks(turn)}
    told = [(n.stage, n.action, n.level, n.index) for n in exchange.notices if n.rule == "PART_NOT_SENT"]
    assert told == [("encode", "changed", "warning", shown.index)]


def _all_blocks(turn: Turn) -> list[object]:
    return [*turn.blocks, *(part for result in turn.results for part in result.content)]


@pytest.mark.parametrize("answered", [False, True])
def test_a_picture_in_a_turn_that_asks_is_refused(answered: bool) -> None:
    before = [Turn("user", (Text("Look."),), index=0), Turn("assistant", (Text("At what?"),), index=1)] * answered
    asked = Conversation((*before, Turn("user", (INLINE,), index=2)))
    with pytest.raises(Unsupported) as caught:
        Exchange(ScriptedAdapter(capabilities=Capabilities(tools=True)), asked, Policy())
    assert caught.value.param == "messages[2].content[0]"


def test_a_picture_behind_results_stays_none_where_the_profile_joins_it_with_the_question() -> None:
    """The round between them is left out, so that they are neighbours."""
    rounds = [
        turn
        for n in range(4)
        for turn in (
            Turn("assistant", (ToolCall(f"k{n}", "read", "{}"),), index=3 * n + 1),
            Turn("tool", (ToolResult(f"k{n}", (Text("seen"),)),), index=3 * n + 2),
            Turn("user", (INLINE,), index=3 * n + 3),
        )
    ]
    policy = Policy(profile=Profile(alternation="strict"), max_history_messages=4)
    asked = Conversation((Turn("user", (Text("Look."),), index=0), *rounds))
    exchange = Exchange(ScriptedAdapter(capabilities=Capabilities(tools=True)), asked, policy)
    assert exchange.conversation.turns[0].text.startswith("Look.\n[image]")


def test_a_picture_that_the_profile_gives_to_the_user_is_not_replaced() -> None:
    asked = Conversation((Turn("user", (Text("Look."),), index=0), *results(Text("seen"), INLINE)))
    eyes = Capabilities(tools=True, images=True, image_roles=frozenset({"user"}))
    policy = Policy(profile=Profile(result_media="user"))
    exchange = Exchange(ScriptedAdapter(capabilities=eyes), asked, policy)
    assert [type(block) for block in exchange.conversation.turns[-1].blocks] == [Text, Image]
    exchange = Exchange(ScriptedAdapter(capabilities=eyes), asked, Policy())
    assert exchange.conversation.turns[-1].results[0].text == "seen\n[image]"
