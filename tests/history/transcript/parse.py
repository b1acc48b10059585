"""Parses a transcript into sections: the exact inverse of every style, which proves that no content forges a turn."""

import functools
import json
import re
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from gateway.core.policy import FlattenOptions, Labels, StyleName
from gateway.history.transcript.escape import QUOTE
from gateway.history.transcript.sections import Called, Section, Speaker
from gateway.history.transcript.styles import CALL_SEPARATOR


def parse(text: str, options: FlattenOptions) -> tuple[Section, ...]:
    """Returns the sections that were rendered with these options. Raises ValueError for any other text."""
    return PARSERS[options.style](text, options)


def parse_labels(text: str, options: FlattenOptions) -> tuple[Section, ...]:
    """Inverts the `labels` style, which does not write the ids of calls."""
    if not text:
        return ()
    heads = list(_head(options.labels).finditer(text))
    if not heads or heads[0].start():
        raise ValueError("the text does not begin with a label")
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return tuple(_section(head, text[head.end() : end], options.labels) for head, end in zip(heads, ends, strict=True))


_TOKEN: Final = r'"(?:[^"\\]|\\.)*+"|[^\s"]\S*?'


@functools.lru_cache(maxsize=64)
def _head(labels: Labels) -> re.Pattern[str]:
    speakers = "|".join(
        f"(?P<{speaker}>{re.escape(getattr(labels, speaker))})"
        for speaker in ("system", "user", "assistant", "summary")
    )
    return re.compile(rf"(?:\A|\n\n)(?:(?:{speakers}): |{re.escape(labels.tool_result)} \((?P<id>{_TOKEN})\): )")


def _section(head: re.Match[str], rest: str, labels: Labels) -> Section:
    call_id = head["id"]
    if call_id is not None:
        return Section("tool", unguarded(rest), (), untoken(call_id))
    speaker = msgspec.convert(head.lastgroup, Speaker)
    body, separator, calls = rest.partition(f"\n{labels.tool_calls}: Called ")
    return Section(speaker, unguarded(body), _calls(calls) if separator else ())


_LITERAL: Final = re.compile(r'"(?:[^"\\]|\\.)*+"')
_CALL: Final = re.compile(rf"(?:\A|; Called )(?P<name>{_TOKEN}) with args: ")


def _calls(written: str) -> tuple[Called, ...]:
    calls: list[Called] = []
    position = 0
    while not calls or position < len(written):
        head = _CALL.match(written, position)
        if head is None:
            raise ValueError("a list of calls is broken")
        literal = _LITERAL.match(written, head.end())
        end = written.find(CALL_SEPARATOR, literal.end() if literal else head.end())
        position = len(written) if end < 0 else end
        calls.append(Called(untoken(head["name"]), untoken(written[head.end() : position])))
    return tuple(calls)


def unguarded(body: str) -> str:
    """Returns the original of a `guarded` body."""
    if not body.startswith(QUOTE):
        return body
    return "".join([line.removeprefix(QUOTE) for line in body.splitlines(keepends=True)])


def untoken(written: str) -> str:
    """Inverts `token`. Raises ValueError for text that `token` never writes."""
    return str(json.loads(written)) if written.startswith('"') else written


class _WrittenCall(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    name: str
    arguments: str


class _Written(msgspec.Struct, forbid_unknown_fields=True):
    role: Speaker
    content: str
    tool_call_id: str | None = None
    tool_calls: list[_WrittenCall] = []


def parse_json(text: str, options: FlattenOptions) -> tuple[Section, ...]:
    """Inverts the `json` style."""
    return tuple(_written(line) for line in text.split("\n")) if text else ()


def _written(line: str) -> Section:
    # json and not msgspec's own decoder, which refuses the lone surrogates that a client's text may hold.
    written = msgspec.convert(json.loads(line), _Written)
    calls = tuple(Called(call.name, call.arguments, call.id) for call in written.tool_calls)
    return Section(written.role, written.content, calls, written.tool_call_id)


_FENCE: Final = re.compile(r"<<(T-[0-9a-f]{16}) ")
_FENCED_CALL: Final = re.compile(r'call id=(?P<id>"(?:[^"\\]|\\.)*+") name=(?P<name>"(?:[^"\\]|\\.)*+")')


def parse_fenced(text: str, options: FlattenOptions) -> tuple[Section, ...]:
    """Inverts the `fenced` style."""
    if not text:
        return ()
    opening = _FENCE.match(text)
    if opening is None:
        raise ValueError("the text does not begin with a fence")
    *parts, end = text[opening.end() :].split(f"\n<<{opening[1]} ")
    if end != "end>>":
        raise ValueError("the text does not end with a fence")
    sections: list[Section] = []
    for part in parts:
        head, _, body = part.partition(">>\n")
        if call := _FENCED_CALL.fullmatch(head):
            called = Called(json.loads(call["name"]), body, json.loads(call["id"]))
            sections[-1] = msgspec.structs.replace(sections[-1], calls=(*sections[-1].calls, called))
        else:
            speaker, answers, call_id = head.partition(" id=")
            sections.append(
                Section(msgspec.convert(speaker, Speaker), body, (), json.loads(call_id) if answers else None)
            )
    return tuple(sections)


PARSERS: Final[Mapping[StyleName, Callable[[str, FlattenOptions], tuple[Section, ...]]]] = {
    "labels": parse_labels,
    "json": parse_json,
    "fenced": parse_fenced,
}
