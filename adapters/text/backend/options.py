"""Defines the adapter's own keys of a backend entry in settings.json."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from adapters.text.backend.presets import find_preset
from adapters.text.backend.wire import Wire
from gateway.tool_calls.parsers.format import ToolFormat
from gateway.tool_calls.parsers.formats import DEFAULT_FORMAT, FORMATS

# An object is read by `find_preset`; the metadata here lets its keys be checked with all others of the file.
WireChoice: TypeAlias = Annotated[str | Mapping[str, Any], msgspec.Meta(extra={"keys_of": Wire, "besides": ("base",)})]


class TextOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How requests are encoded, and how tool calls and thoughts are read from the text.

    `wire` is a name, or an object that describes a wire (docs/text-backends.md). `path` replaces the wire's own.
    `tool_format` defines how tools are described and calls are written. `force_tools`: a call that the client requires
    is enforced by constraining the backend's output; `prompt` only asks for it in the prompt. `turn_stops` also sends
    the labels of other speakers as stop sequences, when the backend reports which one it met or there is no
    `turn_guard`, which ends a response that continues with another speaker's turn. `prose_calls`: a line that describes
    a call of an offered tool as transcripts do, `Tool calls: Called NAME with args: {...}`, is that call.
    `thinking`: a response that begins with `<think>` has its thought there, up to `</think>`. With `opened`, the prompt
    or the server's template opens the thought, so the response has only its end. With `text`, the tags stay in the
    text.
    """

    wire: WireChoice = "llama_cpp"
    path: str | None = None
    tool_format: str = DEFAULT_FORMAT
    force_tools: Literal["constrain", "prompt"] = "constrain"
    turn_stops: bool = True
    turn_guard: bool = True
    prose_calls: bool = True
    thinking: Literal["tagged", "opened", "text"] = "tagged"

    def __post_init__(self) -> None:
        """Raises ValueError for a wire or a format that does not exist or cannot work."""
        find_preset(self.wire)
        if self.tool_format not in FORMATS:
            raise ValueError(f"there is no tool format {self.tool_format!r}; there are {', '.join(FORMATS)}")
        if self.path is not None and self.path and not self.path.startswith("/"):
            raise ValueError(f"the path {self.path!r} must begin with /")

    @property
    def chosen_wire(self) -> Wire:
        wire = find_preset(self.wire)
        return wire if self.path is None else msgspec.structs.replace(wire, path=self.path)

    @property
    def chosen_format(self) -> ToolFormat:
        return FORMATS[self.tool_format]
