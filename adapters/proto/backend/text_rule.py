"""Compiles the part of a rule that reads text and reasoning."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Final

import msgspec

from adapters.proto.backend.answer_writer import AnswerWriter
from adapters.proto.backend.arguments_reader import ArgumentsReader
from adapters.proto.backend.field_getters import Leaves
from adapters.proto.backend.mapping_error import mapping_error
from adapters.proto.backend.options import Path, ReadRule, Tensor
from adapters.proto.backend.places import Kind, find_place, single_message
from adapters.proto.backend.readers import Reader, read_all, read_within

TEXT: Final[Leaves] = {"text": "text", "bytes": "bytes"}
_FLAG: Final[Leaves] = {"flag": "a bool"}


class _Text(msgspec.Struct, frozen=True):
    """A text or the reasoning: its path, the place of that in the settings, and what takes it. `hidden` is the path of
    the flag that hides it."""

    path: Path
    mode: str
    place: str
    write: Callable[[AnswerWriter, str], None]
    hidden: Path | None = None


def compile_texts(rule: ReadRule, kind: Kind, place: str) -> list[Reader]:
    """Returns the readers of one rule: the reasoning comes first. Raises OptionError."""
    texts: list[_Text] = []
    if rule.reasoning is not None:
        texts.append(_Text(rule.reasoning, rule.mode, f"{place}.reasoning", _think))
    if rule.text is not None:
        texts.append(_Text(rule.text, rule.mode, f"{place}.text", _say, rule.hidden))
    elif rule.hidden is not None:
        raise mapping_error(f"{place}.hidden", "only a rule with `text` can hide it")
    for text in texts:
        # An error names the whole path.
        find_place(text.path, kind, text.place, TEXT)
    return _readers(texts, kind, place)


# Not the methods of the class: what writes may be another one that has them.
def _say(writer: AnswerWriter, text: str) -> None:
    writer.text(text)


def _think(writer: AnswerWriter, text: str) -> None:
    writer.reasoning(text)


def _readers(texts: Sequence[_Text], kind: Kind, place: str) -> list[Reader]:
    """Returns the readers in the order of the texts. A message that holds several of them is read once, and only where
    it is there."""
    readers: list[Reader] = []
    for name, neighbours in groupby(texts, lambda text: _holder(text, kind)):
        held = list(neighbours)
        if name is None:
            readers += [_reader(text, kind, place) for text in held]
        else:
            below = [msgspec.structs.replace(text, path=str(text.path).partition(".")[2]) for text in held]
            inner = _readers(below, kind.fields_by_name[name].message_type, place)
            readers.append(read_within(name, read_all(inner)))
    return readers


def _holder(text: _Text, kind: Kind) -> str | None:
    """Returns the field with the message that holds the text, if that is not the message itself."""
    if text.hidden is not None or isinstance(text.path, Tensor) or "." not in text.path:
        return None
    return single_message(text.path, kind)


def _reader(text: _Text, kind: Kind, place: str) -> Reader:
    read = _shown(text, kind)
    if text.hidden is None:
        return read
    hidden = find_place(text.hidden, kind, f"{place}.hidden", _FLAG).get
    return lambda message, writer, arguments: None if hidden(message) else read(message, writer, arguments)


def _shown(text: _Text, kind: Kind) -> Reader:
    place, mode, write = text.place, text.mode, text.write
    found = find_place(text.path, kind, place, TEXT)
    get = found.get
    if found.leaf == "text" and mode == "delta":

        def read_piece(message: Any, writer: AnswerWriter, _: ArgumentsReader) -> None:
            if piece := get(message):
                write(writer, piece)

        return read_piece

    def read(message: Any, writer: AnswerWriter, _: ArgumentsReader) -> None:
        value = get(message)
        if found.leaf == "bytes":
            value = writer.characters(place, value, whole=mode == "total")
        if value:
            write(writer, writer.new_part(place, value) if mode == "total" else value)

    return read
