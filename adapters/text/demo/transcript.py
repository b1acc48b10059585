"""Parses the turns of a flattened conversation by the labels at the line starts, as a model reads them."""

import re
from typing import Final, Literal

import msgspec

Speaker = Literal["system", "user", "assistant", "result"]

_LABEL: Final = re.compile(r"^(?:(System|User|Assistant)|Tool result \((.*?)\)):[ ]?", re.M)
_CALLS: Final = re.compile(r"^Tool calls: (Called .*)", re.M | re.S)
_CALLED: Final = re.compile(r"(?:^|; )Called (\S+) with args: ")
_QUOTE: Final = "> "


_FENCE: Final = re.compile(r"<<(\S+) (?:system|user|assistant|tool)\b.*>>$", re.M)
_SPEAKERS: Final[dict[str, Speaker]] = {"system": "system", "user": "user", "assistant": "assistant", "tool": "result"}


class TextTurn(msgspec.Struct, frozen=True):
    """One turn of the text: its speaker, its text, the tools that it called, and the call that it is a result of."""

    speaker: Speaker
    text: str
    called: tuple[str, ...] = ()
    call_id: str = ""


class _Named(msgspec.Struct):
    name: str


class _JsonTurn(msgspec.Struct):
    role: str
    content: str = ""
    tool_calls: tuple[_Named, ...] = ()
    tool_call_id: str = ""


def read_transcript(query: str) -> list[TextTurn]:
    """Parses the turns; a text without labels is one user turn. Quoted bodies (`> ` before every line) are unquoted."""
    return read_json_lines(query) or read_fenced(query) or read_labels(query)


def read_labels(query: str) -> list[TextTurn]:
    """Parses `User: ...` and so on, joined by blank lines."""
    labels = list(_LABEL.finditer(query))
    if not labels:
        return [TextTurn("user", query)]
    turns = [TextTurn("system", lead)] if (lead := query[: labels[0].start()].strip()) else []
    ends = [label.start() for label in labels[1:]] + [len(query)]
    return turns + [_turn(label, query[label.end() : end]) for label, end in zip(labels, ends, strict=True)]


def read_json_lines(query: str) -> list[TextTurn]:
    """Parses one JSON object per line with the keys of a chat message; empty when the text has another form."""
    turns: list[TextTurn] = []
    for line in query.split("\n"):
        try:
            turns.append(_text_turn(msgspec.json.decode(line, type=_JsonTurn)))
        except (msgspec.DecodeError, KeyError):
            return []
    return turns


def _text_turn(turn: "_JsonTurn") -> TextTurn:
    called = tuple(call.name for call in turn.tool_calls)
    return TextTurn(_SPEAKERS[turn.role], turn.content, called, turn.tool_call_id)


def read_fenced(query: str) -> list[TextTurn]:
    """Parses bodies between fences, `<<FENCE speaker>>`, up to `<<FENCE end>>`; empty when the text has another
    form."""
    if (opening := _FENCE.match(query)) is None:
        return []
    parts = re.split(rf"^<<{re.escape(opening.group(1))} (.*)>>$", query, flags=re.M)
    turns: list[TextTurn] = []
    for head, body in zip(parts[1::2], parts[2::2], strict=True):
        speaker, _, rest = head.partition(" ")
        if speaker == "call" and turns:
            name = re.search(r"name=\"([^\"]*)\"", rest)
            turns[-1] = msgspec.structs.replace(turns[-1], called=(*turns[-1].called, name.group(1) if name else ""))
        elif speaker in _SPEAKERS:
            turns.append(TextTurn(_SPEAKERS[speaker], body.removeprefix("\n").removesuffix("\n"), call_id=rest))
    return turns


def _turn(label: re.Match[str], body: str) -> TextTurn:
    body = body.removesuffix("\n\n")
    who, call_id = label.groups()
    if call_id is not None:
        return TextTurn("result", _unquoted(body), call_id=call_id)
    if who == "Assistant" and (calls := _CALLS.search(body)):
        called = tuple(_CALLED.findall(calls.group(1)))
        return TextTurn("assistant", _unquoted(body[: calls.start()].removesuffix("\n")), called)
    return TextTurn(_SPEAKERS[who.lower()], _unquoted(body))


def _unquoted(body: str) -> str:
    # A body is quoted at every line boundary that Unicode defines.
    lines = body.splitlines(keepends=True)
    quoted = bool(lines) and all(line.startswith(_QUOTE) for line in lines)
    return "".join(line.removeprefix(_QUOTE) for line in lines) if quoted else body
