"""Defines a mark: a text by which a model begins a tool call, and how the call behind it is read."""

from collections.abc import Callable
from typing import Literal

import msgspec

from gateway.tool_calls.parsers.declared_tools import Declared
from gateway.tool_calls.parsers.reader import CallReader


class Mark(msgspec.Struct, frozen=True):
    """A text by which a call begins, the reader of that call, and the mark that may close it.

    `anchor` says where it counts: after any blank, at the beginning of a line, or only where nothing but calls and
    blanks came before. `is_read`: the mark is itself the beginning of the text for the reader. `doubtful`: it often
    stands before text that is no call; such text then causes no notice.
    """

    text: str
    reader: Callable[[Declared], CallReader]
    closer: str = ""
    anchor: Literal["blank", "line", "first"] = "blank"
    is_read: bool = False
    doubtful: bool = False
