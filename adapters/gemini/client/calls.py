"""Reads function calls and function responses. Clients may leave out the ids of both: then the ids are derived."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from adapters.gemini.client.generation import unsent
from adapters.gemini.partial_arguments import BrokenPiece, PartialArguments, is_piece
from adapters.gemini.parts import SIGNATURE, Part, read_part, unread
from gateway.core.conversation import File, Image, Json, JsonObject, Text, ToolCall, ToolResult
from gateway.core.notices import Notice, Reported
from gateway.core.rules import RuleCode
from gateway.dialects.document import kind_of
from gateway.dialects.faults import Faults
from gateway.framing.json_text import encode_json

_CALL: Final = frozenset({"functionCall", SIGNATURE})
_RESPONSE: Final = frozenset({"functionResponse"})
# Of a response that is nothing but one of these texts, the text is the result.
_RESULT_KEYS: Final = frozenset({"output", "result", "error"})
_CALL_FIELDS: Final = frozenset({"id", "name", "args", "partialArgs", "willContinue"})
_RESPONSE_FIELDS: Final = frozenset({"id", "name", "response", "parts", "willContinue"})
_UNNAMED: Final = "unknown"


class CallReader:
    """Reads single calls and responses. Those without an id get a derived one behind all of them
    (`gateway.dialects.derived_ids`). `notices` receives one notice for each field that only this API has, with the
    place of the first, and `own` the paths of what only a backend of this API can read."""

    def __init__(self, faults: Faults, notices: list[Notice], own: list[str]) -> None:
        self._faults = faults
        self._notices = notices
        self._own = own
        self._reported = Reported()

    def call(self, part: Part, following: Iterable[JsonObject], index: int, position: int) -> tuple[ToolCall, int]:
        """Returns the call in this part, with the arguments of its further pieces, and the number of these. `following`
        are the calls in the next parts. Faults: CALL_TYPE, CALL_NAME, CALL_ARGS_TYPE."""
        place = f".parts[{position}].functionCall"
        said = self._object(part["functionCall"], index, place, "CALL_TYPE")
        self._report(said, _CALL_FIELDS, index, place)
        name = self._name(said.get("name"), index, place)
        pieces = _pieces(said, following) if is_piece(said) else ()
        arguments = self._joined(pieces, index, place) if pieces else self._arguments(said.get("args"), index, place)
        identity = _identity(said)
        return ToolCall(identity, name, arguments, unread(part, _CALL), not identity, position), max(len(pieces) - 1, 0)

    def response(self, part: Part, index: int, position: int) -> tuple[ToolResult, str | None]:
        """Returns the result in this part, and the name of its function if it has no id. Faults: CONTENT_MISSING,
        CONTENT_TYPE, PART_TYPE, TOOL_ID_MISSING."""
        place = f".parts[{position}].functionResponse"
        said = self._object(part["functionResponse"], index, place, "CONTENT_TYPE")
        if said.get("willContinue"):
            self._own.append(self._path(index, f"{place}.willContinue"))
        self._report(said, _RESPONSE_FIELDS, index, place)
        self._report(part, _RESPONSE, index, f".parts[{position}]")
        identity = _identity(said)
        name = said.get("name") if not identity else None
        if not isinstance(name, str) or not name:
            name = None
            if not identity:
                detail = "a function response has neither id nor name"
                self._faults.add("TOOL_ID_MISSING", index, f"{place}.name", detail)
        text, failed = self._text(said.get("response"), index, f"{place}.response")
        shown = self._parts(said.get("parts"), index, place)
        derived = name is not None
        return ToolResult(identity, (Text(text), *shown), failed, id_derived=derived, item=position), name

    def _report(self, fields: JsonObject, read: frozenset[str], index: int, place: str) -> None:
        for name, value in fields.items():
            if name not in read and value is not None and self._reported.is_new((read, name)):
                self._notices.append(unsent(self._path(index, f"{place}.{name}")))

    def _path(self, index: int, place: str) -> str:
        return f"{self._faults.paths.turn.format(turn=index)}{place}"

    def _text(self, response: Json, index: int, place: str) -> tuple[str, bool]:
        """Returns the text of a result, and whether it is that of a failure."""
        match response:
            case dict():
                failed = response.keys() == {"error"}
                (only, *others) = response.values() or (None,)
                alone = not others and response.keys() <= _RESULT_KEYS and isinstance(only, str)
                return only if alone and isinstance(only, str) else encode_json(response), failed
            case None:
                self._faults.add("CONTENT_MISSING", index, place)
                return "", False
            case _:
                self._faults.add("CONTENT_TYPE", index, place, f"response is {kind_of(response)}, not an object")
                return response if isinstance(response, str) else encode_json(response), False

    def _parts(self, parts: Json, index: int, place: str) -> list[Image | File | Text]:
        found: list[Image | File | Text] = []
        for position, part in enumerate(parts if isinstance(parts, list) else []):
            block = read_part(part, position) if isinstance(part, dict) else None
            if isinstance(block, Image | File | Text):
                found.append(block)
            else:
                self._faults.add("PART_TYPE", index, f"{place}.parts[{position}]")
        return found

    def _object(self, value: Json, index: int, place: str, rule: RuleCode) -> JsonObject:
        if isinstance(value, dict):
            return value
        self._faults.add(rule, index, place, f"{place.rpartition('.')[2]} is {kind_of(value)}, not an object")
        return {}

    def _name(self, name: Json, index: int, place: str) -> str:
        if isinstance(name, str) and name.strip():
            return name
        self._faults.add("CALL_NAME", index, f"{place}.name", "a function call has no name")
        return _UNNAMED

    def _arguments(self, arguments: Json, index: int, place: str) -> str:
        """Returns an object as JSON text, and nothing as `{}`. Text in its place is most likely JSON text."""
        if arguments is None:
            return "{}"
        if not isinstance(arguments, dict):
            self._faults.add("CALL_ARGS_TYPE", index, f"{place}.args", f"args is {kind_of(arguments)}, not an object")
        return arguments if isinstance(arguments, str) else encode_json(arguments)

    def _joined(self, pieces: Sequence[JsonObject], index: int, place: str) -> str:
        """Returns the arguments of the pieces; of those that cannot be joined, what they set, as it was written."""
        joined = PartialArguments()
        try:
            for piece in pieces:
                joined.add(piece)
        except BrokenPiece as broken:
            self._faults.add("CALL_ARGS_TYPE", index, f"{place}.args", str(broken))
            return encode_json([value for piece in pieces for value in _written(piece)])
        return self._arguments(joined.arguments, index, place)


def _pieces(said: JsonObject, following: Iterable[JsonObject]) -> Sequence[JsonObject]:
    """Returns a call and those of the following calls that are its pieces."""
    pieces = [said]
    for call in following:
        if pieces[-1].get("willContinue") is not True or call.get("name"):
            break
        pieces.append(call)
    return pieces


def _written(piece: JsonObject) -> Iterator[Json]:
    if (whole := piece.get("args")) is not None:
        yield whole
    partial = piece.get("partialArgs")
    yield from partial if isinstance(partial, list) else ()


def _identity(said: JsonObject) -> str:
    """Returns the id of a call, or nothing."""
    identity = said.get("id")
    return identity if isinstance(identity, str) else ""
