"""Sections -> text in one of three styles, each with an exact inverse in `gateway.conversation.parse`.

labels  `User: ...`, `Assistant: ...`, joined by blank lines. What could read as a label is quoted.
json    one JSON object a line.
fenced  bodies byte for byte between fences that occur in none of them.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from typing import Final

from gateway.conversation.guard import guarded, reads_as_label, token
from gateway.conversation.sections import Called, Section
from gateway.policy import FlattenOptions, Labels
from gateway.types import Json

CALL_SEPARATOR: Final = "; Called "


def render_labels(sections: Sequence[Section], options: FlattenOptions) -> str:
    """`LABEL: body` blocks joined by blank lines."""
    return "\n\n".join(_block(section, options.labels) for section in sections)


def _block(section: Section, labels: Labels) -> str:
    body = guarded(section.text, labels)
    if section.call_id is not None:
        return f"{labels.tool_result} ({token(section.call_id)}): {body}"
    block = f"{getattr(labels, section.speaker)}: {body}"
    if section.calls:
        calls = "; ".join(_call(call, labels) for call in section.calls)
        block += f"\n{labels.tool_calls}: {calls}"
    return block


def _call(call: Called, labels: Labels) -> str:
    return f"Called {token(call.name)} with args: {_arguments(call.arguments, labels)}"


def _arguments(arguments: str, labels: Labels) -> str:
    """The arguments as they are, or as a JSON string when they could be taken for something beside arguments."""
    if arguments.startswith('"') or CALL_SEPARATOR in arguments or reads_as_label(arguments, labels):
        return one_line(arguments)
    return arguments


_UNSEEN: Final = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def one_line(value: Json) -> str:
    """JSON on one line by anybody's idea of a line, everything readable left readable."""
    written = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", written)


def render_json(sections: Sequence[Section], options: FlattenOptions) -> str:
    """One JSON object a line, with the keys of a chat message."""
    return "\n".join(one_line(_object(section)) for section in sections)


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


def render_fenced(sections: Sequence[Section], options: FlattenOptions) -> str:
    """`<<FENCE speaker>>`, the body on lines of its own, and so on up to `<<FENCE end>>`."""
    if not sections:
        return ""
    fence = _fence(sections)
    parts = [f"<<{fence} {head}>>\n{body}" for head, body in _fenced(sections)]
    return "\n".join([*parts, f"<<{fence} end>>"])


def _fenced(sections: Sequence[Section]) -> Iterator[tuple[str, str]]:
    for section in sections:
        answers = "" if section.call_id is None else f" id={one_line(section.call_id)}"
        yield section.speaker + answers, section.text
        for call in section.calls:
            yield f"call id={one_line(call.id)} name={one_line(call.name)}", call.arguments


def _fence(sections: Sequence[Section]) -> str:
    """A word that no section contains.

    It follows from the first section alone, so that a growing conversation keeps its prefix; only when somebody
    wrote that word down, it follows from the whole, which nobody can contain in advance.
    """
    bodies = [piece for section in sections for piece in _pieces(section)]
    fence = _digest(sections[0].text)
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
