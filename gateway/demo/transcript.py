"""A flattened conversation in, its turns out: read the way a model reads it, by the labels at the line starts."""

import re
from typing import Final, Literal

import msgspec

Speaker = Literal["system", "user", "assistant", "result"]

_LABEL: Final = re.compile(r"^(?:(System|User|Assistant)|Tool result \(([^)\n]*)\)):[ ]?", re.M)
_CALLS: Final = re.compile(r"^Tool calls: (Called .*)", re.M | re.S)
_CALLED: Final = re.compile(r"(?:^|; )Called (\S+) with args: ")
_QUOTE: Final = re.compile(r"^> ?", re.M)


class TextTurn(msgspec.Struct, frozen=True):
    """One turn of the text: who speaks, what, which tools it called, which call it answers."""

    speaker: Speaker
    text: str
    called: tuple[str, ...] = ()
    call_id: str = ""


def read_transcript(query: str) -> list[TextTurn]:
    """The turns; a text without labels is one user turn. Quoted bodies (`> ` before every line) are unquoted."""
    labels = list(_LABEL.finditer(query))
    if not labels:
        return [TextTurn("user", query)]
    turns = [TextTurn("system", lead)] if (lead := query[: labels[0].start()].strip()) else []
    ends = [label.start() for label in labels[1:]] + [len(query)]
    return turns + [_turn(label, query[label.end() : end]) for label, end in zip(labels, ends, strict=True)]


def _turn(label: re.Match[str], body: str) -> TextTurn:
    body = body.removesuffix("\n\n")
    who, call_id = label.groups()
    if call_id is not None:
        return TextTurn("result", _unquoted(body), call_id=call_id)
    if who == "Assistant" and (calls := _CALLS.search(body)):
        called = tuple(_CALLED.findall(calls.group(1)))
        return TextTurn("assistant", _unquoted(body[: calls.start()].removesuffix("\n")), called)
    speakers: dict[str, Speaker] = {"System": "system", "User": "user", "Assistant": "assistant"}
    return TextTurn(speakers[who], _unquoted(body))


def _unquoted(body: str) -> str:
    inner = body.removeprefix("\n")
    lines = inner.split("\n")
    return _QUOTE.sub("", inner) if all(line.startswith(">") for line in lines) else body
