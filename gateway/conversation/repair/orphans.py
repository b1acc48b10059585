"""A tool result without its call -> a user's note, so that its content is not lost."""

import msgspec

from gateway.types import Text, ToolResult, Turn


def note(turn: Turn, result: ToolResult) -> Turn:
    """The result as user text under a heading that says what it is.

    Not as a tool turn: every provider refuses one without its call. Not as an assistant's or the system's words:
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
    identity = f" (id {result.call_id})" if result.call_id else ""
    return f"[{kind} of a tool call{name} that is not in this conversation{identity}]"
