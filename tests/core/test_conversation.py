import inspect

import msgspec
import pytest

from gateway.core import conversation as types
from gateway.core import events
from gateway.core.conversation import Conversation, File, Image, Reasoning, Source, Text, ToolCall, ToolResult, Turn

CALL = ToolCall("k1", "f", "{}")
RESULT = ToolResult("k1", (Text("one"), Image("data:image/png;base64,"), Text("two")))
SOURCE = Source("chat", {"role": "assistant"})
TURN = Turn("assistant", (Reasoning("hm"), Text("a"), CALL, Text("b")), index=4, source=SOURCE)


@pytest.mark.parametrize("module", [types, events])
def test_every_value_is_frozen(module: object) -> None:
    kinds = [kind for _, kind in inspect.getmembers(module, inspect.isclass) if issubclass(kind, msgspec.Struct)]
    assert kinds
    assert all(kind.__struct_config__.frozen for kind in kinds)


@pytest.mark.parametrize("module", [types, events])
def test_every_value_says_what_it_is(module: object) -> None:
    kinds = [kind for _, kind in inspect.getmembers(module, inspect.isclass) if issubclass(kind, msgspec.Struct)]
    assert all(inspect.getdoc(kind) for kind in kinds)


def test_the_text_of_a_turn_is_its_text_blocks() -> None:
    assert TURN.text == "a\nb"
    assert Turn("user", ()).text == ""
    assert Turn("user", (Image("https://host/a.png"), File("file", {}))).text == ""


def test_a_turn_knows_its_calls_and_results() -> None:
    assert TURN.calls == (CALL,)
    assert TURN.results == ()
    assert Turn("tool", (RESULT,)).results == (RESULT,)


def test_the_text_of_a_result_is_its_text_parts() -> None:
    assert RESULT.text == "one\ntwo"


def test_a_changed_turn_is_no_longer_what_the_client_wrote() -> None:
    changed = TURN.changed(Text("c"))
    assert changed == Turn("assistant", (Text("c"),), index=4)
    assert changed.source is None
    assert TURN.source is SOURCE and TURN.text == "a\nb"


def test_a_source_is_read_in_its_own_dialect_only() -> None:
    assert SOURCE.in_dialect("chat") is SOURCE.value
    assert SOURCE.in_dialect("messages") is None


def test_a_conversation_asks_for_nothing_by_itself() -> None:
    conversation = Conversation((TURN,))
    assert conversation.tools == () and conversation.tool_choice == "auto"
    assert conversation.sampling == types.Sampling()
    assert not conversation.stream and not conversation.include_usage
