"""Reads steps as turns, and writes a turn as steps.

Neighbouring thoughts, outputs and calls of the model are one turn of the assistant; every result of a function is a
turn of its own. A step of a tool that Google runs is left out with a notice: no other API has it.
"""

from collections.abc import Iterator, Sequence
from typing import Final, assert_never

from adapters.gemini import PROVIDER
from adapters.gemini.parts import STATE_SIGNATURE
from adapters.gemini_interactions.client.contents import encode_contents, read_contents
from adapters.gemini_interactions.client.own_steps import CALL, MODEL, RESULT, THOUGHT, USER, OwnStep, Step
from adapters.gemini_interactions.table import INPUT
from gateway.core.call_arguments import as_object
from gateway.core.conversation import (
    EMPTY,
    Block,
    File,
    Image,
    Json,
    JsonObject,
    Reasoning,
    Role,
    Text,
    ToolCall,
    ToolResult,
    Turn,
    is_system,
)
from gateway.core.notices import Level, Notice, NoticeRule, Reported
from gateway.core.provider_state import provider_state, with_provider_state
from gateway.dialects.content_parts import Part
from gateway.dialects.derived_ids import derive_ids
from gateway.dialects.document import kind_of
from gateway.dialects.faults import Faults
from gateway.framing.json_text import encode_json

SIGNATURE: Final = "signature"
_UNNAMED: Final = "unknown"
# The fields of a step that the gateway reads, or that say nothing to another API.
_FIELDS: Final = {
    USER: frozenset({"type", "content", "role"}),
    MODEL: frozenset({"type", "content", "role"}),
    THOUGHT: frozenset({"type", "summary", SIGNATURE}),
    CALL: frozenset({"type", "id", "name", "arguments", SIGNATURE}),
    RESULT: frozenset({"type", "call_id", "name", "result", "is_error"}),
}
# Those of them whose value is lost where it has another type.
_TYPES: Final[dict[str, tuple[tuple[str, type], ...]]] = {
    USER: (),
    MODEL: (),
    THOUGHT: (("summary", list), (SIGNATURE, str)),
    CALL: (("id", str), (SIGNATURE, str)),
    RESULT: (("call_id", str), ("is_error", bool)),
}


def read_steps(
    stored: Sequence[Step], own: Sequence[OwnStep], faults: Faults, notices: list[Notice]
) -> tuple[Turn, ...]:
    """Returns the turns of the stored steps and of those of the request behind them; `faults.earlier` is the number of
    the first. `notices` receives what no other API has."""
    reader = _Reader(faults, notices)
    odd: list[tuple[int, Json]] = []
    for position, step in (*enumerate(stored), *[(len(stored) + place, step) for place, step in own]):
        if isinstance(step, dict):
            reader.read(step, position)
        else:
            odd.append((position, step))
    if odd:
        faults.add_each(
            "NOT_OBJECT",
            len(odd),
            lambda n: (odd[n][0], "", f"the step is {kind_of(odd[n][1])}, not an object"),
            "steps are not objects",
        )
    return reader.finish()


class _Reader:
    """Reads steps in order; the model's are collected until another one begins a turn. `position` is the place of a
    step behind the stored ones, which `Faults` takes; the client knows it by its `_index`."""

    def __init__(self, faults: Faults, notices: list[Notice]) -> None:
        self._faults = faults
        self._notices = notices
        self._reported = Reported()
        self._turns: list[Turn] = []
        self._said: list[Block] = []
        self._first = 0
        self._derives = False

    def read(self, step: Step, position: int) -> None:
        kind = self._type(step, position)
        if kind not in _FIELDS:
            detail = f"no other API has a step of type {kind[:40]!r}"
            self._notice("ITEM_NOT_SENT", detail, position, "warning")
            return
        self._report(step, kind, position)
        if kind == USER:
            self._turn("user", read_contents(step.get("content"), position, "content", self._faults), position)
        elif kind == MODEL:
            # The published type has outputs without content.
            if (contents := step.get("content")) not in (None, []):
                self._say(read_contents(contents, position, "content", self._faults), position)
        elif kind == THOUGHT:
            self._say(self._thought(step, position), position)
        elif kind == CALL:
            self._say((self._call(step, position),), position)
        else:
            self._result(step, position)

    def finish(self) -> tuple[Turn, ...]:
        """Returns all turns."""
        self._end_model()
        return derive_ids(self._turns).turns if self._derives else tuple(self._turns)

    def _index(self, position: int) -> int:
        return position - self._faults.earlier

    def _type(self, step: Step, position: int) -> str:
        kind = step.get("type")
        if isinstance(kind, str):
            return kind
        said = "the step has no type" if kind is None else f"the type is {kind_of(kind)}, not text"
        self._faults.add("ROLE_TYPE", position, ".type", f"{said}; read as {USER}")
        return USER

    def _report(self, step: Step, kind: str, position: int) -> None:
        """Tells which fields of a step are lost, each once in a request."""
        for name, of in _TYPES[kind]:
            value = step.get(name)
            if value is not None and not isinstance(value, of) and self._reported.is_new((kind, name)):
                path = self._path(name, position)
                self._notice("FIELD_NOT_SENT", f"{path!r} is {kind_of(value)} and is not read", position, "warning")
        if step.keys() <= _FIELDS[kind]:
            return
        for name, value in step.items():
            if name not in _FIELDS[kind] and value is not None and self._reported.is_new((kind, name)):
                path = self._path(name[:80], position)
                self._notice("FIELD_NOT_SENT", f"no other API has a field for {path!r}", position, "debug")

    def _path(self, name: str, position: int) -> str:
        return f"{INPUT}[{self._index(position)}].{name}"

    def _notice(self, rule: NoticeRule, detail: str, position: int, level: Level) -> None:
        self._notices.append(Notice("decode", "dropped", rule, detail, index=self._index(position), level=level))

    def _say(self, blocks: Sequence[Block], position: int) -> None:
        """Adds blocks to the model's turn."""
        if not self._said:
            self._first = self._index(position)
        self._said += blocks

    def _end_model(self) -> None:
        if self._said:
            self._turns.append(Turn("assistant", tuple(self._said), index=self._first))
            self._said = []

    def _turn(self, role: Role, blocks: tuple[Block, ...], position: int, name: str | None = None) -> None:
        self._end_model()
        self._turns.append(Turn(role, blocks, name=name, index=self._index(position)))

    def _thought(self, step: Step, position: int) -> tuple[Reasoning, ...]:
        """Returns the reasoning in a thought; none in one without summary and signature. A stream brings the summary in
        pieces."""
        summary = step.get("summary")
        pieces = summary if isinstance(summary, list) else []
        texts = [text for piece in pieces if isinstance(piece, dict) and isinstance(text := piece.get("text"), str)]
        if (lost := len(pieces) - len(texts)) and self._reported.is_new((THOUGHT, "pieces")):
            detail = f"{lost} of the pieces of {self._path('summary', position)!r} have no text"
            self._notice("FIELD_NOT_SENT", detail, position, "warning")
        text, state = "".join(texts), _state(step)
        return (Reasoning(text, extra=state),) if text or state else ()

    def _call(self, step: Step, position: int) -> ToolCall:
        identity, name = _text(step, "id"), _text(step, "name")
        if not name:
            self._faults.add("CALL_NAME", position, ".name", "a function call has no name", identity or None)
        self._derives |= not identity
        arguments = self._arguments(step.get("arguments"), position, identity)
        state = _state(step)
        return ToolCall(identity, name or _UNNAMED, arguments, state, not identity, self._index(position))

    def _arguments(self, arguments: Json, position: int, identity: str) -> str:
        """Returns an object as JSON text, and nothing as `{}`. Text in its place is most likely JSON text."""
        if arguments is None:
            return "{}"
        if not isinstance(arguments, dict):
            detail = f"arguments is {kind_of(arguments)}, not an object"
            self._faults.add("CALL_ARGS_TYPE", position, ".arguments", detail, identity or None)
        return arguments if isinstance(arguments, str) else encode_json(arguments)

    def _result(self, step: Step, position: int) -> None:
        identity, name = _text(step, "call_id"), _text(step, "name")
        if not identity and not name:
            detail = "a function result has neither call_id nor name"
            self._faults.add("TOOL_ID_MISSING", position, ".call_id", detail)
        derived = not identity and bool(name)
        self._derives |= derived
        result = ToolResult(
            identity,
            read_contents(_contents_of(step.get("result")), position, "result", self._faults),
            step.get("is_error") is True,
            id_derived=derived,
            item=self._index(position),
        )
        self._turn("tool", (result,), position, name if derived else None)


def _contents_of(result: Json) -> Json:
    """Returns the result of a function as contents: an object is JSON text, whatever its fields mean to the function.
    Source: google-genai 3.6.1, `FunctionResultStep`."""
    return encode_json(result) if isinstance(result, dict) else result


def _text(step: Step, name: str) -> str:
    """Returns a text that a step must have; empty where it has none."""
    value = step.get(name)
    return value if isinstance(value, str) and value.strip() else ""


def _state(step: Step) -> JsonObject:
    """Returns the `extra` of a block with the step's signature, which only the provider that made it can read."""
    said = step.get(SIGNATURE)
    return with_provider_state(PROVIDER, {STATE_SIGNATURE: said}) if isinstance(said, str) and said else EMPTY


def signature(extra: JsonObject) -> dict[str, Json]:
    """Returns the field with the state that `extra` holds of this provider, if there is one."""
    said = provider_state(extra, PROVIDER).get(STATE_SIGNATURE) if extra else None
    return {SIGNATURE: said} if isinstance(said, str) and said else {}


def call_step(id: str, name: str, arguments: str, extra: JsonObject = EMPTY) -> Step:
    """Returns the step of a call. Arguments that are no object stand in one. Google writes the signature of a call
    beside the fields of the published type."""
    return {"type": CALL, "id": id, "name": name, "arguments": as_object(arguments), **signature(extra)}


def thought_step(text: str, extra: JsonObject) -> Step:
    """Returns the step of a piece of reasoning."""
    summary: dict[str, Json] = {"summary": [{"type": "text", "text": text}]} if text else {}
    return {"type": THOUGHT, **signature(extra), **summary}


def encode_turn(turn: Turn) -> list[JsonObject]:
    """Returns the steps of a turn; nothing for a system turn, which stands in `system_instruction`."""
    return [] if is_system(turn) else list(_steps(turn))


def _steps(turn: Turn) -> Iterator[JsonObject]:
    kind = MODEL if turn.role == "assistant" else USER
    contents: list[Part] = []
    for block in turn.blocks:
        match block:
            case Text() | Image() | File():
                contents.append(block)
                continue
            case Reasoning() | ToolCall() | ToolResult():
                if contents:
                    yield {"type": kind, "content": encode_contents(tuple(contents))}
                    contents = []
                yield _step(block)
            case _:
                assert_never(block)
    if contents:
        yield {"type": kind, "content": encode_contents(tuple(contents))}


def _step(block: Reasoning | ToolCall | ToolResult) -> Step:
    match block:
        case Reasoning():
            return thought_step(block.text, block.extra)
        case ToolCall():
            return call_step(block.id, block.name, block.arguments, block.extra)
        case ToolResult():
            failed: dict[str, Json] = {"is_error": True} if block.is_error else {}
            return {"type": RESULT, "call_id": block.call_id, "result": encode_contents(block.content), **failed}
        case _:
            assert_never(block)
