"""Asks for a client's demands in the prompt, where no field of the backend enforces them, and checks the response.

A response that does not meet them is an error, never a success.
"""

import json
import re
from typing import Final

import msgspec

from gateway.core.conversation import Conversation, Json, NamedTool, Text, ToolChoice, Turn
from gateway.core.errors import BackendProtocolError, InvalidToolCall, Unsupported
from gateway.core.events import Event, Finish, TextDelta, ToolCallStart
from gateway.core.field_paths import FieldPaths
from gateway.core.json_schema import fits
from gateway.core.notices import Notice
from gateway.framing.json_text import NotJson, decode_json
from gateway.history.classify import system_prefix
from gateway.tool_calls.parsers.format import when_to_call

_ANY_OBJECT: Final[dict[str, Json]] = {"type": "object"}
_FENCED: Final = re.compile(r"```(?:json)?[ \t]*\r?\n(.*)\n[ \t]*```", re.DOTALL)


class Demands(msgspec.Struct, frozen=True):
    """`choice`: the tool call that the response must make, None for none. `schema`: the schema of its text."""

    choice: ToolChoice | None = None
    schema: Json = None

    @property
    def words(self) -> str:
        """Returns the instruction for the model."""
        instructions = [] if self.choice is None else [when_to_call(self.choice)]
        if self.schema is not None:
            instructions.append(
                "Answer with one JSON value that fits this JSON Schema, and write nothing else, no prose and no code "
                f"fence:\n{json.dumps(self.schema, ensure_ascii=False)}"
            )
        return "\n\n".join(instructions)


def find_demands(conversation: Conversation, prompts: frozenset[str]) -> Demands | None:
    """Returns the demands that the prompt must state. Raises Unsupported for a choice that cannot be met."""
    demands = Demands(
        _forced(conversation) if "tool_choice" in prompts else None,
        _schema(conversation) if "response_format" in prompts else None,
    )
    return None if demands == Demands() else demands


def _forced(conversation: Conversation) -> ToolChoice | None:
    choice = conversation.tool_choice
    if choice in ("auto", "none"):
        return None
    names = [tool.name for tool in conversation.tools]
    param = conversation.paths.param("tool_choice")
    if not names:
        raise Unsupported(f"{param} requires a tool call, but the request has no tools.", param=param)
    if isinstance(choice, NamedTool) and choice.name not in names:
        raise Unsupported(f"{param} names a function that is not among the tools.", param=param)
    return choice


def _schema(conversation: Conversation) -> Json:
    shape = conversation.params.get("response_format")
    if not isinstance(shape, dict) or shape.get("type") in (None, "text"):
        return None
    described = shape.get("json_schema")
    schema = described.get("schema") if isinstance(described, dict) else None
    return schema if isinstance(schema, dict) else _ANY_OBJECT


def with_words(conversation: Conversation, demands: Demands) -> tuple[Conversation, list[Notice]]:
    """Returns the conversation with the instruction after its leading system text, and the notices about it."""
    turns = conversation.turns
    at = system_prefix(turns)
    instruction = Turn("system", (Text(demands.words),), synthesized=True)
    fields = [("tool_choice", demands.choice), ("response_format", demands.schema)]
    notices = [_in_words(conversation, name) for name, demanded in fields if demanded is not None]
    return msgspec.structs.replace(conversation, turns=(*turns[:at], instruction, *turns[at:])), notices


def _in_words(conversation: Conversation, name: str) -> Notice:
    detail = f"{conversation.paths.param(name)} is requested in the prompt, and the response is checked"
    return Notice("encode", "changed", "DEMAND_IN_WORDS", detail, fields=(name,))


class DemandCheck:
    """Filters the events of one response. Text is held back until the response is certain to meet the demands.

    `paths` name the demands for the client.
    """

    def __init__(self, demands: Demands, paths: FieldPaths) -> None:
        self._demands = demands
        self._choice = paths.param("tool_choice")
        self._format = paths.param("response_format")
        self._held: list[Event] = []
        self._called = False

    def feed(self, events: list[Event]) -> list[Event]:
        """Returns the events that are certain.

        Raises InvalidToolCall for a call other than the demanded one or for none, and BackendProtocolError for text
        that does not fit the schema.
        """
        shown: list[Event] = []
        try:
            for event in events:
                self._filter(event, shown)
        except (InvalidToolCall, BackendProtocolError) as error:
            error.keep(shown)
            raise
        return shown

    def _filter(self, event: Event, shown: list[Event]) -> None:
        if type(event) is TextDelta and (self._waits or self._demands.schema is not None):
            self._held.append(event)
            return
        if type(event) is ToolCallStart:
            self._check_call(event)
            self._called = True
            if self._demands.schema is None:
                shown += self._held
                self._held = []
        elif type(event) is Finish:
            self._finish(event, shown)
        shown.append(event)

    @property
    def _waits(self) -> bool:
        return self._demands.choice is not None and not self._called

    def _check_call(self, call: ToolCallStart) -> None:
        choice = self._demands.choice
        if isinstance(choice, NamedTool) and call.name != choice.name:
            raise InvalidToolCall(f"The model called another function than {self._choice} requires.")

    def _finish(self, finish: Finish, shown: list[Event]) -> None:
        if self._waits:
            raise InvalidToolCall(f"The model responded without the tool call that {self._choice} requires.")
        # The finish reason marks a cut response as such, and a response of tool calls needs no text.
        if self._demands.schema is None or self._called or finish.reason in ("length", "content_filter"):
            shown += self._held
        else:
            shown += self._checked("".join([event.text for event in self._held if type(event) is TextDelta]))
        self._held = []

    def _checked(self, text: str) -> list[Event]:
        written = text.strip()
        fenced = _FENCED.fullmatch(written)
        try:
            fit = fits(decode_json((fenced[1] if fenced else written).encode()), self._demands.schema)
        except (NotJson, UnicodeEncodeError):
            message = f"The model responded with text that is not the JSON that {self._format} requires."
            raise _missed(message) from None
        if not fit:
            raise _missed(f"The model responded with JSON that does not fit the schema of {self._format}.")
        if fenced is None:
            return [TextDelta(text)]
        detail = f"a code fence around the JSON that {self._format} requires was removed"
        return [Notice("backend", "dropped", "ANSWER_UNFENCED", detail), TextDelta(fenced[1])]


def _missed(message: str) -> BackendProtocolError:
    return BackendProtocolError(message, code="upstream_invalid_answer")
