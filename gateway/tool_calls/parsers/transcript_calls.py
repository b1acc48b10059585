"""Defines the marks of calls in the notation of the transcript: `Tool calls: Called NAME with args: {...}`.

Models that read a flattened history may continue its notation instead of calling. Text that names no declared tool, or
stands in the middle of a line, is a description of a call, and stays text.
"""

from typing import Final

from gateway.core.policy import Labels
from gateway.tool_calls.parsers.declared_tools import Declared
from gateway.tool_calls.parsers.labelled_call import LabelledReader
from gateway.tool_calls.parsers.mark import Mark

_LABEL: Final = "with args:"


def prose_marks(labels: Labels) -> tuple[Mark, ...]:
    """Returns the marks for a format's parser (`also`). Further calls follow the first one after a semicolon."""
    return (
        Mark(f"{labels.tool_calls}: Called ", read_call, anchor="line", doubtful=True),
        Mark("; Called ", read_call, anchor="first", doubtful=True),
    )


def read_call(declared: Declared) -> LabelledReader:
    return LabelledReader(declared, " ", _LABEL, doubtful=True)
