"""Escapes the marks of calls in a text of the history, so that no parser reads a call in it.

A model takes text in its own turns for its own actions: a call that was only mentioned must not look like a real one.
"""

import functools
import re
from collections.abc import Sequence

from gateway.core.errors import BackendError
from gateway.core.events import Event, ToolCallStart
from gateway.core.notices import Notice
from gateway.tool_calls.parsers.declared_tools import Declared
from gateway.tool_calls.parsers.mark import Mark
from gateway.tool_calls.parsers.parser import ToolCallParser


def escaped(text: str, marks: Sequence[Mark], tools: Declared) -> str:
    """The text, with a backslash before each of the marks when a parser would read a call in it, be it of a tool that
    is not among these or only the beginning of one."""
    if not any(mark.text in text for mark in marks) or not _calls(text, marks, tools):
        return text
    return _pattern(tuple((mark.text, mark.is_read) for mark in marks)).sub(r"\g<lead>\\\g<mark>\g<part>", text)


def _calls(text: str, marks: Sequence[Mark], tools: Declared) -> bool:
    parser = ToolCallParser(marks, tools, "")
    try:
        return any(map(_is_call, [*parser.feed(text), *parser.close()]))
    except BackendError:
        return True


def _is_call(event: Event) -> bool:
    return isinstance(event, ToolCallStart) or (isinstance(event, Notice) and event.rule == "TEXT_CALL_UNKNOWN")


@functools.cache
def _pattern(marks: tuple[tuple[str, bool], ...]) -> re.Pattern[str]:
    """A mark that is part of the call itself, like a brace, counts at the beginning of a line only."""
    written = "|".join(re.escape(text) for text, is_read in marks if not is_read) or "(?!)"
    parts = "|".join(re.escape(text) for text, is_read in marks if is_read) or "(?!)"
    return re.compile(rf"(?P<lead>\A[ \t\r\n]*+|(?<=\n))(?P<part>{parts})|(?P<mark>{written})")
