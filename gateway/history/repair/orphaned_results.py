"""Rewrites a tool result without its call as a user's note, so that its content is not lost."""

import msgspec

from gateway.core.conversation import Text, ToolResult, Turn


def note(turn: Turn, result: ToolResult) -> Turn:
    """Returns the result as user text under a heading that names it as a tool result.

    It is no tool turn, because every provider refuses one without its call. It is no assistant or system text, because
    foreign text must not gain authority.
    """
    content = result.content
    first = content[0] if content else None
    heading = _heading(turn, result)
    if isinstance(first, Text):
        content = (msgspec.structs.replace(first, text=f"{heading}\n{first.text}"), *content[1:])
    else:
        content = (Text(heading), *content)
    return msgspec.structs.replace(turn, role="user", blocks=content, name=None, source=None, synthesized=True)


def _heading(turn: Turn, result: ToolResult) -> str:
    kind = "Error result" if result.is_error else "Result"
    name = f" of {turn.name}" if turn.name else ""
    identity = f" (id {result.call_id})" if result.call_id and not result.id_derived else ""
    return f"[{kind} of a tool call{name} that is not in this conversation{identity}]"
