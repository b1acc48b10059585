"""The marks of calls that a model wrote as the transcript writes them: `Tool calls: Called NAME with args: {...}`.

Models that see a flattened history go on in its notation instead of calling. What names no declared tool, or stands
in the middle of a line, is a model that tells of a call, and stays text.
"""

from typing import Final

from gateway.policy import Labels
from gateway.tools.prompted.labelled_call import LabelledReader
from gateway.tools.prompted.parser import Declared, Mark

_LABEL: Final = "with args:"


def prose_marks(labels: Labels) -> tuple[Mark, ...]:
    """To be given to a format's parser as `also`. Further calls follow the first one after a semicolon."""
    return (
        Mark(f"{labels.tool_calls}: Called ", read_call, anchor="line", doubtful=True),
        Mark("; Called ", read_call, anchor="first", doubtful=True),
    )


def read_call(declared: Declared) -> LabelledReader:
    return LabelledReader(declared, " ", _LABEL)
