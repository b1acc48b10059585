"""Combines readers of a message: all of them, of each item, under a condition, below a message that may be missing."""

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter, methodcaller
from typing import Any, TypeAlias

from adapters.proto.backend.answer_writer import AnswerWriter
from adapters.proto.backend.arguments_reader import ArgumentsReader
from adapters.proto.backend.field_getters import Condition, Getter
from adapters.proto.backend.options import Path
from adapters.proto.backend.places import Kind, single_message

# Any: a message whose class exists only at run time.
Reader: TypeAlias = Callable[[Any, AnswerWriter, ArgumentsReader], None]


def read_all(readers: Sequence[Reader]) -> Reader:
    """Returns one reader for several, in their order."""
    if len(readers) == 1:
        return readers[0]

    def read(message: Any, writer: AnswerWriter, arguments: ArgumentsReader) -> None:
        for reader in readers:
            reader(message, writer, arguments)

    return read


def read_each(items: Getter, reader: Reader) -> Reader:
    """Returns the reader of the items of a message."""

    def read(message: Any, writer: AnswerWriter, arguments: ArgumentsReader) -> None:
        for item in items(message):
            reader(item, writer, arguments)

    return read


def read_if(holds: Condition, reader: Reader) -> Reader:
    """Returns the reader of the messages for which the condition holds."""

    def read(message: Any, writer: AnswerWriter, arguments: ArgumentsReader) -> None:
        if holds(message):
            reader(message, writer, arguments)

    return read


def read_first_choice(number: Getter, reader: Reader) -> Reader:
    """Returns the reader of the first choice, 0. Any other one is reported."""

    def read(message: Any, writer: AnswerWriter, arguments: ArgumentsReader) -> None:
        if number(message):
            writer.other_choice()
        else:
            reader(message, writer, arguments)

    return read


def read_if_there(paths: Iterable[Path | None], kind: Kind, reader: Reader) -> Reader:
    """Asks first for the message below which all these paths lead, if there is one: most messages lack it."""
    holders = {None if path is None else single_message(path, kind) for path in paths}
    holder = holders.pop() if len(holders) == 1 else None
    return reader if holder is None else read_if(methodcaller("HasField", holder), reader)


def read_within(name: str, reader: Reader) -> Reader:
    """Returns the reader of the message in a field, where it is there."""
    get = attrgetter(name)

    def read(message: Any, writer: AnswerWriter, arguments: ArgumentsReader) -> None:
        if message.HasField(name):
            reader(get(message), writer, arguments)

    return read


def read_inside(get: Getter, key: str, reader: Reader) -> Reader:
    """Returns the reader of the JSON document in a field of a message, where there is one. `key` tells the documents of
    one rule from others."""

    def read(message: Any, writer: AnswerWriter, arguments: ArgumentsReader) -> None:
        if (written := get(message)) and (document := writer.document(key, written)) is not None:
            reader(document, writer, arguments)

    return read
