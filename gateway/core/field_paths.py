"""Defines how a client knows the places of its request: by which paths and terms an error or a notice names them."""

from collections.abc import Mapping
from typing import Final

import msgspec


class FieldPaths(msgspec.Struct, frozen=True, kw_only=True):
    """The paths and terms of one dialect, as templates. Raises ValueError for a template with an unknown field.

    Paths. `{turn}` is the turn's `index`; `{item}` the position of a call, a result or a part as the client knows it
    (`gateway.core.conversation.item_of`); `{part}` a part's position in the content of a result; `{tool}` the position
    of a tool.

    - `turn`: a whole turn; `role`: what says whose turn it is; `part`: a part of its content.
    - `calls`: the calls of a turn, of which that at `{item}` is at fault; `call_id`: the id of one.
    - `result`: what makes a result a result; `result_call_id`: the id of the call that it answers; `result_name`: the
      name by which it answers a call without an id; `result_part`: a part of its content.
    - `tool_schema`: the parameters of a tool.
    - `params`: every other field whose name differs from the canonical one, which is that of chat completions:
      `response_format` -> `text.format`.

    Terms. `calls_term`: what holds the calls of a turn (`tool_calls`, `tool_use blocks`); `result_term`: one that
    holds a result, a word whose plural ends in s; `call_id_term`: the field with the id of the answered call;
    `unnamed_call_term`: a call without an id.
    """

    turn: str
    role: str
    part: str
    calls: str
    call_id: str
    result: str
    result_call_id: str
    result_name: str
    result_part: str
    tool_schema: str
    params: Mapping[str, str] = {}
    calls_term: str
    result_term: str
    call_id_term: str
    unnamed_call_term: str

    def __post_init__(self) -> None:
        """Fills every template once, so that a wrong one is found with the dialect and not with a client's mistake."""
        for name in self.__struct_fields__:
            if isinstance(template := getattr(self, name), str):
                try:
                    template.format(turn=0, item=0, part=0, tool=0)
                except (KeyError, IndexError) as error:
                    raise ValueError(f"{name} has an unknown field: {template}") from error

    def param(self, name: str) -> str:
        """Returns the path of the field with this canonical name."""
        return self.params.get(name, name)

    def worded(self, text: str) -> str:
        """Returns a sentence with `{calls}`, `{result}`, `{results}` and `{call_id}` in the terms of the client."""
        return text.format(
            calls=self.calls_term,
            result=self.result_term,
            results=f"{self.result_term}s",
            call_id=self.call_id_term,
        )


CANONICAL_PATHS: Final = FieldPaths(
    turn="messages[{turn}]",
    role="messages[{turn}].role",
    part="messages[{turn}].content[{item}]",
    calls="messages[{turn}].tool_calls",
    call_id="messages[{turn}].tool_calls[{item}].id",
    result="messages[{turn}].role",
    result_call_id="messages[{turn}].tool_call_id",
    result_name="messages[{turn}].name",
    result_part="messages[{turn}].content[{part}]",
    tool_schema="tools[{tool}].function.parameters",
    calls_term="tool_calls",
    result_term="tool message",
    call_id_term="tool_call_id",
    unnamed_call_term="function_call",
)
