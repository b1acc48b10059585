"""Writes sections as text in one of three styles, each with an exact inverse (`tests/history/transcript/parse.py`).

labels  `User: ...`, `Assistant: ...`, joined by blank lines. Text that could read as a label is quoted.
json    one JSON object a line.
fenced  bodies byte for byte between fences that occur in none of them.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec

from gateway.core.conversation import Json, have_derived, kept
from gateway.core.policy import FlattenOptions, Labels, StyleName
from gateway.history.transcript.escape import guarded, needs_guard, token
from gateway.history.transcript.sections import Called, Section

CALL_SEPARATOR: Final = "; Called "


class Style(msgspec.Struct, frozen=True):
    """A style: `write` converts each section to one piece, `join` makes a text of any run of the pieces.

    `openings` are the beginnings of a line that opens a turn, if a line end alone separates the turns.
    """

    write: Callable[[Sequence[Section], Labels], list[str]]
    join: Callable[[Sequence[str]], str]
    openings: tuple[str, ...] = ()

    def render(self, sections: Sequence[Section], options: FlattenOptions) -> str:
        """Returns the text of the sections."""
        return self.join(self.write(sections, options.labels))


def _write_labels(sections: Sequence[Section], labels: Labels) -> list[str]:
    if not have_derived(sections):
        return [_block(section, labels) for section in sections]
    write = partial(_block, labels=labels)
    return [kept(section, labels, write) for section in sections]


def _block(section: Section, labels: Labels) -> str:
    if section.call_id is not None:
        return result_line(section.call_id, section.text, labels)
    block = f"{getattr(labels, section.speaker)}: {guarded(section.text, labels)}"
    return f"{block}\n{calls_line(section.calls, labels)}" if section.calls else block


def result_line(call_id: str, text: str, labels: Labels) -> str:
    """Returns a result in the `labels` style. No text in it can forge a turn."""
    return f"{labels.tool_result} ({token(call_id)}): {guarded(text, labels)}"


def calls_line(calls: Sequence[Called], labels: Labels) -> str:
    """Returns the calls of one turn in the `labels` style."""
    return f"{labels.tool_calls}: {'; '.join(_call(call, labels) for call in calls)}"


def _call(call: Called, labels: Labels) -> str:
    return f"Called {token(call.name)} with args: {_arguments(call.arguments, labels)}"


def _arguments(arguments: str, labels: Labels) -> str:
    """Returns the arguments unchanged, or as a JSON string when they could be mistaken for text beside arguments."""
    if arguments.startswith('"') or CALL_SEPARATOR in arguments or needs_guard(arguments, labels):
        return one_line(arguments)
    return arguments


_UNSEEN: Final = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def one_line(value: Json) -> str:
    """Returns JSON on one line by every definition of a line boundary; readable characters stay unescaped."""
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", written)


def _write_json(sections: Sequence[Section], labels: Labels) -> list[str]:
    return [one_line(_object(section)) for section in sections]


def _object(section: Section) -> dict[str, Json]:
    written: dict[str, Json] = {"role": section.speaker}
    if section.call_id is not None:
        written["tool_call_id"] = section.call_id
    written["content"] = section.text
    if section.calls:
        written["tool_calls"] = [
            {"id": call.id, "name": call.name, "arguments": call.arguments} for call in section.calls
        ]
    return written


def _write_fenced(sections: Sequence[Section], labels: Labels) -> list[str]:
    fence = _fence(sections)
    return ["\n".join(f"<<{fence} {head}>>\n{body}" for head, body in _fenced(section)) for section in sections]


def _fenced(section: Section) -> Iterator[tuple[str, str]]:
    answers = "" if section.call_id is None else f" id={one_line(section.call_id)}"
    yield section.speaker + answers, section.text
    for call in section.calls:
        yield f"call id={one_line(call.id)} name={one_line(call.name)}", call.arguments


def _join_fenced(pieces: Sequence[str]) -> str:
    """Appends the fence after the last body; every other body ends at the fence that opens the next."""
    return "\n".join([*pieces, f"{pieces[0].partition(' ')[0]} end>>"]) if pieces else ""


def _fence(sections: Sequence[Section]) -> str:
    """Returns a word that no section contains.

    It is derived from the first section alone, so that a growing conversation keeps its prefix; only when a section
    contains that word, it is derived from all sections, so that no body can contain it in advance.
    """
    bodies = [piece for section in sections for piece in _pieces(section)]
    fence = _digest(sections[0].text if sections else "")
    salt = 0
    while any(fence in body for body in bodies):
        salt += 1
        fence = _digest("\0".join([str(salt), *bodies]))
    return fence


def _pieces(section: Section) -> Iterator[str]:
    yield section.text
    yield section.call_id or ""
    for call in section.calls:
        yield from (call.id, call.name, call.arguments)


def _digest(text: str) -> str:
    return "T-" + hashlib.blake2s(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


STYLES: Final[Mapping[StyleName, Style]] = {
    "labels": Style(_write_labels, "\n\n".join),
    "json": Style(_write_json, "\n".join, ('{"role":"',)),
    "fenced": Style(_write_fenced, _join_fenced, ("<<T-",)),
}
