"""Defines the content of a summary: items of prose that cite turns, and what the gateway knows without a model."""

from typing import Final, Literal, TypeAlias

import msgspec

# The longest item, in characters.
MAX_ITEM: Final = 400

# What the model may write, in the order in which it is shown.
Kind: TypeAlias = Literal["goal", "constraints", "decisions", "facts", "files", "tools", "errors", "open", "unsure"]


class Item(msgspec.Struct, frozen=True):
    """One statement. `turns` are the numbers of the turns that it is drawn from: 1 is the first behind the system run.

    `reported`: only tools said it, and no user asked for it or decided it.
    """

    kind: Kind
    text: str
    turns: tuple[int, ...]
    reported: bool = False


class SummaryContent(msgspec.Struct, frozen=True):
    """What the model wrote, checked and filed. `notes` is an answer in plain text, which cites nothing.

    `dropped` counts the items that were left out because they broke a rule.
    """

    items: tuple[Item, ...] = ()
    notes: str = ""
    dropped: int = 0


class Words(msgspec.Struct, frozen=True):
    """What the user, or a later system message, said in one covered turn, verbatim."""

    turn: int
    speaker: Literal["user", "system"]
    text: str


class CallEntry(msgspec.Struct, frozen=True):
    """One covered call: its name, its arguments (shortened), whether its result is an error, and the result's size."""

    turn: int
    name: str
    arguments: str
    is_error: bool
    characters: int


class ErrorLine(msgspec.Struct, frozen=True):
    """The line of a result about an error, shortened."""

    turn: int
    text: str


class Known(msgspec.Struct, frozen=True):
    """What the gateway knows of the covered turns without a model.

    `words` are those before the model's first turn and the newest others that have room, in the order of the turns;
    `calls` and `errors` the newest ones.
    `words_left_out` and so on count the others.
    """

    words: tuple[Words, ...] = ()
    calls: tuple[CallEntry, ...] = ()
    words_left_out: int = 0
    calls_left_out: int = 0
    errors: tuple[ErrorLine, ...] = ()
    errors_left_out: int = 0
