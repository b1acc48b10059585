"""The ids of calls are derived from the conversation."""

from gateway.core.conversation import Conversation, Text, ToolCall, ToolResult, Turn
from gateway.tool_calls.parsers.format import id_prefix


def test_every_state_of_a_conversation_has_its_own_ids() -> None:
    turns = [
        Turn("user", (Text("Go on."),)),
        Turn("assistant", (ToolCall("a", "write", "{}"),)),
        Turn("tool", (ToolResult("a", (Text("done"),)),)),
        Turn("user", (Text("Go on."),)),
    ]
    prefixes = [id_prefix(Conversation(tuple(turns[:end]))) for end in range(5)]
    assert len(set(prefixes)) == 5
    assert prefixes[4] == id_prefix(Conversation(tuple(turns)))
    assert all(prefix.startswith("call_") and len(prefix) < 32 for prefix in prefixes)


def test_half_a_character_is_no_obstacle() -> None:
    assert id_prefix(Conversation((Turn("user", (Text("\ud83d"),)),)))
