"""Reads each content as turns; every repaired fault names its rule.

A content becomes one turn, and contents of the model that follow one another are one. Each function response becomes a
turn of its own, and the other parts beside them are the user's next words.
"""

from collections.abc import Iterator, Sequence
from typing import Final, TypeGuard

from adapters.gemini import DIALECT
from adapters.gemini.client.calls import CallReader
from adapters.gemini.client.joined_turns import joined_turns
from adapters.gemini.parts import Part, read_part
from adapters.gemini.table import ROLES
from gateway.core.conversation import EMPTY, Block, Json, JsonObject, Role, Source, Text, Turn
from gateway.core.notices import Notice
from gateway.dialects.derived_ids import derive_ids
from gateway.dialects.document import kind_of
from gateway.dialects.faults import Faults
from gateway.framing.json_text import encode_json

_KEYS: Final = frozenset({"role", "parts"})


def read_turns(contents: Sequence[Json], faults: Faults, notices: list[Notice], own: list[str]) -> tuple[Turn, ...]:
    """Returns the turns of every content that is an object. `faults` collects the violations, `notices` what only a
    backend of the same API reads, and `own` the paths of what no other can answer."""
    turns: list[Turn] = []
    odd: list[int] = []
    reader = _Reader(CallReader(faults, notices, own), faults, contents)
    for index, content in enumerate(contents):
        match content:
            # Most contents are nothing but a role and a text.
            case dict() if (text := _plain_text(content)) is not None:
                role = ROLES.values[str(content["role"])]
                turns.append(Turn(role, (Text(text, EMPTY),), index=index, source=Source(DIALECT, content)))
            case dict():
                turns += reader.turns(content, index)
            case _:
                odd.append(index)
    if odd:
        faults.add_each(
            "NOT_OBJECT",
            len(odd),
            lambda n: (odd[n], "", f"the content is {kind_of(contents[odd[n]])}, not an object"),
            "contents are not objects",
        )
    turns = joined_turns(turns)
    return derive_ids(turns).turns if reader.derives else tuple(turns)


class _Reader:
    """Reads single contents. `derives`: a call or a response has no id."""

    def __init__(self, calls: CallReader, faults: Faults, contents: Sequence[Json]) -> None:
        self.derives = False
        self._calls = calls
        self._faults = faults
        self._contents = contents
        # The next calls that are pieces of one that is read.
        self._pieces = 0

    def turns(self, content: Part, index: int) -> list[Turn]:
        """Returns the turns of one content: the results before what the user says beside them."""
        blocks: list[Block] = []
        said: list[Json] = []
        turns: list[Turn] = []
        extra = {name: value for name, value in content.items() if name not in _KEYS and value is not None} or EMPTY
        parts = self._parts(content, index)
        for position, part in enumerate(parts):
            if isinstance(part, dict) and "functionResponse" in part:
                result, name = self._calls.response(part, index, position)
                self.derives |= result.id_derived
                turns.append(
                    Turn("tool", (result,), name=name, index=index, extra=extra, source=_source(content, [part]))
                )
            else:
                said.append(part)
                if self._pieces and isinstance(part, dict) and "functionCall" in part:
                    self._pieces -= 1
                else:
                    blocks.append(self._block(part, index, position))
        role = self._role(content, parts, index)
        if said or not turns:
            turn = Turn(role, tuple(blocks), index=index, extra=extra, source=_source(content, said))
            turns.insert(0 if role == "assistant" else len(turns), turn)
        return turns

    def _parts(self, content: Part, index: int) -> list[Json]:
        parts = content.get("parts")
        match parts:
            case None:
                self._faults.add("CONTENT_MISSING", index, ".parts")
                return []
            case dict():
                # The API takes one value for a list of one.
                return [parts]
            case list():
                if not parts:
                    self._faults.add("CONTENT_EMPTY_ARRAY", index, ".parts")
                return parts
            case _:
                detail = f"parts is {kind_of(parts)}, not an array"
                self._faults.add("CONTENT_TYPE", index, ".parts", detail)
                return [{"text": parts if isinstance(parts, str) else encode_json(parts)}]

    def _block(self, part: Json, index: int, position: int) -> Block:
        if isinstance(part, dict):
            if "functionCall" in part:
                call, self._pieces = self._calls.call(part, self._calls_behind(index, position), index, position)
                self.derives |= call.id_derived
                return call
            if (block := read_part(part, position)) is not None:
                return block
        detail = "" if isinstance(part, dict) else f"a part is {kind_of(part)}, not an object"
        self._faults.add("PART_TYPE", index, f".parts[{position}]", detail)
        return Text(part if isinstance(part, str) else encode_json(part))

    def _calls_behind(self, index: int, position: int) -> Iterator[JsonObject]:
        """Yields the calls behind a part, up to the next content that has none. Only the first few are asked for."""
        first = position + 1
        for at in range(index, len(self._contents)):
            content = self._contents[at]
            parts = content.get("parts") if isinstance(content, dict) else None
            listed = parts if isinstance(parts, list) else [parts]
            none = True
            for n in range(first, len(listed)):
                if _has_call(part := listed[n]):
                    none = False
                    yield call if isinstance(call := part["functionCall"], dict) else {}
            if none and not first:
                return
            first = 0

    def _role(self, content: Part, parts: Sequence[Json], index: int) -> Role:
        """Returns the role of a content; without one, or with one that is unknown, its parts decide."""
        role = content.get("role")
        calling = any(map(_has_call, parts))
        read: Role = "assistant" if calling else "user"
        if role is None:
            return read
        if not isinstance(role, str):
            self._faults.add("ROLE_TYPE", index, ".role", f"the role is {kind_of(role)}, not text")
            return read
        known = ROLES.values.get(role)
        if known is None:
            self._faults.add("ROLE_UNKNOWN", index, ".role", f"the role {role[:40]!r} is unknown; read as {read}")
        elif calling and known == "user":
            detail = f"a content with function calls has the role {role!r}; read as model"
            self._faults.add("ROLE_UNKNOWN", index, ".role", detail)
        return "assistant" if calling else known or read


def _has_call(part: Json) -> TypeGuard[Part]:
    return isinstance(part, dict) and "functionCall" in part


def _plain_text(content: Part) -> str | None:
    """Returns the text of a content with a role and one text; None for any other content."""
    match content:
        case {"role": "user" | "model", "parts": [{"text": str(text), **others}], **fields} if not (others or fields):
            return text
        case _:
            return None


def _source(content: Part, parts: list[Json]) -> Source:
    """`parts` are those of the content that belong to the turn."""
    return Source(DIALECT, content if content.get("parts") == parts else {**content, "parts": parts})
