"""A backend gets its own state without the label, and a history otherwise as the client wrote it."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.conversation import Conversation, File, Json, JsonObject, Reasoning, Text, ToolCall, Turn
from gateway.core.provider_state import state_label
from gateway.core.sealed_compaction import MARK
from gateway.dialect import RequestHead
from gateway.dialects.document import read_document
from gateway.history.own_state import SEALED, UNREADABLE, with_own_state
from gateway.registry import load_dialect

OWN: Final = state_label("adapter", "host", "KEY")
OTHER: Final = state_label("adapter", "host", "OTHER_KEY")
FUNCTION: Final[Json] = {"name": "f", "arguments": "{}"}


def request(dialect: str, states: Iterator[str]) -> tuple[str, dict[str, Any]]:
    """A request of a dialect with states, and with text that looks like one."""
    said = OTHER + "dGV4dA=="
    match dialect:
        case "openai_chat":
            signed = {"extra_content": {"google": {"thought_signature": next(states)}, "mine": [1]}}
            call = {"id": "k", "type": "function", "function": FUNCTION, **signed}
            first = {"role": "assistant", "content": said, "tool_calls": [call], "odd": {"a": None}}
            return "/v1/chat/completions", {
                "model": "m",
                "messages": [
                    {"role": "user", "content": said},
                    first,
                    {"role": "tool", "tool_call_id": "k", "content": said},
                ],
            }
        case "anthropic_messages":
            blocks = [
                {"type": "thinking", "thinking": said, "signature": next(states), "odd": 1},
                {"type": "redacted_thinking", "data": next(states)},
                {"type": "text", "text": said, "signature": said},
                {"type": "tool_use", "id": "k", "name": "f", "input": {"signature": said, "data": said}},
            ]
            result = {"type": "tool_result", "tool_use_id": "k", "content": said}
            return "/v1/messages", {
                "model": "m",
                "max_tokens": 9,
                "messages": [
                    {"role": "user", "content": said},
                    {"role": "assistant", "content": blocks},
                    {"role": "user", "content": [result]},
                ],
            }
        case "openai_responses":
            return "/v1/responses", {
                "model": "m",
                "input": [
                    {"role": "user", "content": said},
                    {"type": "compaction", "encrypted_content": next(states)},
                    {"type": "web_search_call", "id": "ws", "encrypted_content": said},
                    {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": next(states)},
                    {"type": "function_call", "call_id": "k", "name": "f", "arguments": "{}"},
                    {"type": "function_call_output", "call_id": "k", "output": said},
                ],
            }
        case _:
            called: Json = {"id": "k", "name": "f", "args": {"thoughtSignature": said}}
            parts: list[Json] = [
                {"text": said, "thought": True, "thoughtSignature": next(states)},
                {"text": said, "thoughtSignature": next(states)},
                {"inlineData": {"data": said, "mimeType": "image/png"}, "thoughtSignature": next(states)},
                {"executableCode": {"code": said}, "thoughtSignature": next(states)},
                {"functionCall": called, "thoughtSignature": next(states)},
                {"text": "", "thoughtSignature": next(states)},
            ]
            returned: Json = {"id": "k", "name": "f", "response": {"output": said}}
            return "/v1beta/models/m:generateContent", {
                "contents": [
                    {"role": "user", "parts": [{"text": said}]},
                    {"role": "model", "parts": parts},
                    {"role": "user", "parts": [{"functionResponse": returned}]},
                ]
            }


DIALECTS: Final = ("openai_chat", "anthropic_messages", "openai_responses", "gemini")


def decoded(dialect: str, states: Iterator[str]) -> Conversation:
    path, body = request(dialect, states)
    written = read_document(msgspec.json.encode(body))
    return load_dialect(dialect).decode(written, RequestHead(path)).conversation


def sources(conversation: Conversation) -> list[Any]:
    return [None if turn.source is None else turn.source.value for turn in conversation.turns]


def forever(state: str) -> Iterator[str]:
    while True:
        yield state


@pytest.mark.parametrize("dialect", DIALECTS)
# The beginning of a mark is one that was cut.
@given(st.text(min_size=1).filter(lambda state: not state.startswith("Dragoman") and not MARK.startswith(state)))
def test_taking_the_label_off_is_the_inverse_of_setting_it(dialect: str, state: str) -> None:
    """In the client's message and in the values that are read from it: both are as if there had been no label."""
    plain = decoded(dialect, forever(state))
    kept, notices = with_own_state(decoded(dialect, forever(OWN + state)), OWN, passes=True)
    assert kept == plain
    assert notices == []
    assert with_own_state(plain, OWN, passes=True) == (plain, [])


@pytest.mark.parametrize("dialect", DIALECTS)
def test_state_of_another_backend_goes_alone(dialect: str) -> None:
    kept, notices = with_own_state(decoded(dialect, forever(OTHER + "c3RhdGU=")), OWN, passes=True)
    written = msgspec.json.encode([sources(kept), kept.turns]).decode()
    assert "c3RhdGU=" not in written
    # What only looks like state, in text, arguments and results, is as it was.
    assert OTHER + "dGV4dA==" in written
    assert {notice.rule for notice in notices} - {"COMPACTION_UNREADABLE"} == {"STATE_FOREIGN"}
    assert all(turn.source is not None or turn.compaction for turn in kept.turns)


def test_what_says_nothing_without_its_state_goes_with_it() -> None:
    messages, _ = with_own_state(decoded("anthropic_messages", forever(OTHER + "x")), OWN, passes=True)
    assert [block["type"] for block in sources(messages)[1]["content"]] == ["text", "tool_use"]
    gemini, _ = with_own_state(decoded("gemini", forever(OTHER + "x")), OWN, passes=True)
    names = [next(iter(part)) for part in sources(gemini)[1]["parts"]]
    assert names == ["text", "inlineData", "executableCode", "functionCall"]
    responses, notices = with_own_state(decoded("openai_responses", forever(OTHER + "x")), OWN, passes=True)
    (note,) = (turn for turn in responses.turns if turn.source is None)
    own = Conversation(tuple(turn for turn in responses.turns if turn is not note))
    items = [item.get("type", "message") for source in sources(own) for item in source["input"]]
    assert items == ["message", "web_search_call", "function_call", "function_call_output"]
    # With the compaction the messages are lost that it stands for: a note says so, which is not the user's.
    assert (note.text, note.role, note.synthesized, note.compaction) == (UNREADABLE, "user", True, True)
    assert {(notice.rule, notice.action, notice.level) for notice in notices} == {
        ("STATE_FOREIGN", "dropped", "info"),
        ("COMPACTION_UNREADABLE", "changed", "warning"),
    }


def test_a_part_that_looks_like_a_compaction_is_none() -> None:
    """It stands in no place of a compaction, so that it covers nothing: the backend refuses it as any other part."""
    part = File("compaction", {"type": "compaction", "encrypted_content": "gAAAA"})
    asked = Conversation((Turn("user", (Text("Hi"), part)),))
    assert with_own_state(asked, OWN, passes=False) == (asked, [])


@pytest.mark.parametrize("passes", [False, True])
def test_a_compaction_of_the_gateway_that_nobody_opened_is_a_note(passes: bool) -> None:
    item: JsonObject = {"type": "compaction", "encrypted_content": f"{MARK}AAAA"}
    asked = Conversation((Turn("user", (Text("Hi"),)), Turn("user", (File("compaction", item),), compaction=True)))
    kept, [notice] = with_own_state(asked, OWN, passes=passes)
    assert [turn.text for turn in kept.turns] == ["Hi", SEALED]
    assert (kept.turns[1].synthesized, kept.turns[1].compaction) == (True, True)
    assert (notice.rule, notice.action, notice.level) == ("COMPACTION_OPENED", "changed", "info")


def test_a_turn_of_nothing_but_foreign_reasoning_is_left_out() -> None:
    extra: JsonObject = {"extra_content": {"anthropic": {"data": OTHER + "x"}}}
    turns = (Turn("user", (Text("a"),)), Turn("assistant", (Reasoning("", extra=extra),), index=1))
    kept, notices = with_own_state(Conversation(turns), OWN, passes=False)
    assert kept.turns == turns[:1]
    assert [(notice.rule, notice.index) for notice in notices] == [("STATE_FOREIGN", 1)]


STATED: Final[Mapping[str, str]] = {"own": OWN + "x", "other": OTHER + "x", "none": "x"}


@pytest.mark.parametrize("whose", STATED)
def test_a_backend_of_another_api_reads_the_text_of_reasoning_and_its_own_state(whose: str) -> None:
    extra: JsonObject = {"extra_content": {"google": {"thought_signature": STATED[whose]}}}
    blocks = (Reasoning("hm", extra=extra), ToolCall("k", "f", "{}", extra))
    kept, notices = with_own_state(Conversation((Turn("assistant", blocks),)), OWN, passes=False)
    found = [(type(block), block.extra) for block in kept.turns[0].blocks if isinstance(block, Reasoning | ToolCall)]
    state = {"extra_content": {"google": {"thought_signature": "x"}}} if whose == "own" else {}
    assert found == [(Reasoning, state), (ToolCall, state)]
    rules = {"own": [], "other": ["STATE_FOREIGN"], "none": ["STATE_UNLABELLED"]}
    assert [notice.rule for notice in notices] == rules[whose]


def test_a_history_without_state_is_the_same_object() -> None:
    plain = Conversation((Turn("user", (Text("a"),)), Turn("assistant", (Reasoning("hm"), ToolCall("k", "f", "{}")))))
    assert with_own_state(plain, OWN, passes=True)[0] is plain
    assert with_own_state(plain, OWN, passes=False)[0] is plain


@pytest.mark.parametrize("kind", [["thinking"], {"a": 1}, 7, None])
def test_a_type_that_is_no_text_is_no_type(kind: Json) -> None:
    body = {"contents": [{"role": "model", "parts": [{"type": kind, "text": "a", "thoughtSignature": OTHER + "x"}]}]}
    read = load_dialect("gemini").decode(
        read_document(msgspec.json.encode(body)), RequestHead("/v1beta/models/m:generateContent")
    )
    kept, _ = with_own_state(read.conversation, OWN, passes=True)
    assert sources(kept)[0]["parts"] == [{"type": kind, "text": "a"}]


def test_the_label_of_a_gateway_behind_this_one_stays() -> None:
    extra: JsonObject = {"extra_content": {"google": {"thought_signature": OWN + OTHER + "x"}}}
    turn = Turn("assistant", (ToolCall("k", "f", "{}", extra),))
    kept, _ = with_own_state(Conversation((turn,)), OWN, passes=True)
    assert kept.turns[0].calls[0].extra == {"extra_content": {"google": {"thought_signature": OTHER + "x"}}}


def test_a_list_that_another_api_calls_contents_stays_as_it_is() -> None:
    said: dict[str, Any] = {
        "role": "assistant",
        "content": "Yes.",
        "contents": ["keep me", {"a": 1}],
        "extra_content": {"google": {"thought_signature": OWN + "x"}},
    }
    asked = {"model": "m", "messages": [{"role": "user", "content": "Hi"}, said, {"role": "user", "content": "Go"}]}
    conversation = (
        load_dialect("openai_chat")
        .decode(read_document(msgspec.json.encode(asked)), RequestHead("/v1/chat/completions"))
        .conversation
    )
    kept, _ = with_own_state(conversation, OWN, passes=True)
    source = kept.turns[1].source
    assert source is not None and source.value["contents"] == ["keep me", {"a": 1}]
