"""The adapter's own keys of a backend entry in settings.json."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from adapters.text.wire import Wire
from adapters.text.wires import find_wire
from gateway.tools.prompted.format import ToolFormat
from gateway.tools.prompted.formats import DEFAULT_FORMAT, FORMATS


class TextOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the backend is asked, and what a model that only writes text is trusted with.

    `wire` is a name, or an object that describes one (docs/text-backends.md). `path` replaces the wire's own.
    `tool_format` is how tools are told and calls are written. `force_tools`: a call that the client requires is made
    sure by constraining what the backend may write; `prompt` lets the words alone ask for it. `turn_stops` also
    gives the backend the labels of other speakers as stop sequences. `turn_guard` ends an answer that goes on with
    somebody else's turn. `prose_calls`: a line that tells a call of an offered tool as transcripts do, `Tool calls:
    Called NAME with args: {...}`, is that call. `estimate_usage` makes up token counts (a quarter of the characters),
    marked as such, where the wire has none.
    """

    wire: str | Mapping[str, Any] = "llama_cpp"
    path: str | None = None
    tool_format: str = DEFAULT_FORMAT
    force_tools: Literal["constrain", "prompt"] = "constrain"
    turn_stops: bool = True
    turn_guard: bool = True
    prose_calls: bool = True
    estimate_usage: bool = False

    def __post_init__(self) -> None:
        """Raises ValueError for a wire or a format that does not exist or cannot work."""
        find_wire(self.wire)
        if self.tool_format not in FORMATS:
            raise ValueError(f"there is no tool format {self.tool_format!r}; there are {', '.join(FORMATS)}")
        if self.path is not None and self.path and not self.path.startswith("/"):
            raise ValueError(f"the path {self.path!r} must begin with /")

    @property
    def chosen_wire(self) -> Wire:
        wire = find_wire(self.wire)
        return wire if self.path is None else msgspec.structs.replace(wire, path=self.path)

    @property
    def chosen_format(self) -> ToolFormat:
        return FORMATS[self.tool_format]
