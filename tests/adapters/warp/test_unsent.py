from adapters.warp.unsent import unsent_fields
from gateway.types import Conversation, Image, Json, Text, ToolCall, ToolSpec, Turn

CACHED: dict[str, Json] = {"cache_control": {"type": "ephemeral"}}


def test_fields_without_a_place_are_named_and_counted() -> None:
    turns = (
        Turn("user", (Text("a", CACHED), Image("data:,", {"detail": "low"})), extra={"metadata": 1}),
        Turn("assistant", (ToolCall("k", "n", "{}", CACHED),)),
    )
    function: dict[str, Json] = {"name": "n", "strict": True}
    tools = (ToolSpec("n", strict=True, source={"type": "function", "function": function, **CACHED}),)
    assert [notice.detail for notice in unsent_fields(Conversation(turns, tools))] == [
        "the backend has no field for cache_control (2), detail (1), metadata (1) of messages",
        "the backend has no field for cache_control (1), strict (1) of tools",
    ]


def test_what_is_carried_for_the_backend_is_no_unsent_field() -> None:
    turns = (Turn("assistant", (ToolCall("k", "n", "{}", {"extra_content": {"warp": {"task_id": "t"}}}),)),)
    assert unsent_fields(Conversation(turns, (ToolSpec("n"),))) == []


def test_a_strict_tool_that_another_dialect_declared_is_named() -> None:
    (notice,) = unsent_fields(Conversation((), (ToolSpec("n", strict=True),)))
    assert "strict (1)" in notice.detail
