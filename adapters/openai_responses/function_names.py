"""Names every tool that the client runs as one function, and finds the client's tool behind the name of a called one.

Backends know functions alone, each by one name. The client has tools of several kinds, and functions inside namespaces:
the function `search` of the namespace `mcp__docs` becomes `mcp__docs__search`. The client gets its own kind, name and
namespace back: it does not run a call of another kind or of a joined name.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias

import msgspec

ToolKind: TypeAlias = Literal["function", "custom", "tool_search", "local_shell", "shell", "apply_patch"]

SEPARATOR: Final = "__"
# Of a function's name, by OpenAI's reference.
LONGEST: Final = 64
_DIGEST: Final = 8
_OTHER_CHARACTERS: Final = re.compile(r"[^A-Za-z0-9_-]")


class ClientTool(msgspec.Struct, frozen=True):
    """A tool as the client knows it. Only functions and custom tools have a name and a namespace of their own; the
    name of any other tool is its kind."""

    kind: ToolKind
    name: str
    namespace: str | None = None


class ToolNames:
    """The names of one request, in both directions.

    `tools` holds what a backend calls by another name than the client, or what is no function; it may be stored and
    given to the constructor again. `hosted` are the kinds of tools that the request leaves to OpenAI.
    """

    def __init__(self, tools: Mapping[str, ClientTool] = {}) -> None:
        self.tools = dict(tools)
        self.hosted: set[ToolKind] = set()
        self._plain: set[str] = set()
        self._names = {tool: name for name, tool in self.tools.items()}

    def add(self, tools: Iterable[ClientTool]) -> None:
        """Names these tools. A plain function keeps its name; any other tool with that name gets a longer one."""
        known = list(tools)
        taken = self._plain
        taken |= {tool.name for tool in known if _is_plain(tool)}
        for tool in known:
            if not _is_plain(tool) and tool not in self._names:
                name = _joined(tool)
                if name in taken or name in self.tools:
                    name = _shortened(name, tool)
                self.tools[name] = tool
                self._names[tool] = name

    def name(self, tool: ClientTool) -> str:
        """Returns the name of a tool as a function, also of one that the request does not offer. OpenAI calls a plain
        function that its search has found with its name as the namespace."""
        if _is_plain(tool):
            return tool.name
        known = self._names.get(tool)
        if known is None and tool.namespace is not None and tool.name in self._plain:
            return tool.name
        return known or _joined(tool)

    def knows(self, tool: ClientTool) -> bool:
        """Returns whether the request offers this tool, which is no plain function."""
        return tool in self._names

    def tool(self, name: str) -> ClientTool:
        """Returns the tool with this name as a function."""
        return self.tools.get(name) or ClientTool("function", name)


def stored_names(tools: Mapping[str, object]) -> ToolNames:
    """Returns the names whose `tools` were stored as JSON."""
    return ToolNames(msgspec.convert(tools, dict[str, ClientTool]))


def _is_plain(tool: ClientTool) -> bool:
    return tool.kind == "function" and tool.namespace is None


def _joined(tool: ClientTool) -> str:
    if tool.namespace is None:
        return tool.name
    separator = "" if tool.namespace.endswith(SEPARATOR) else SEPARATOR
    joined = _OTHER_CHARACTERS.sub("_", f"{tool.namespace}{separator}{tool.name}")
    return joined if len(joined) <= LONGEST else _shortened(joined, tool)


def _shortened(name: str, tool: ClientTool) -> str:
    """Returns a name of its own: the beginning of this one and a digest of the tool, the same in every request."""
    digest = hashlib.sha256(msgspec.json.encode(tool)).hexdigest()[:_DIGEST]
    return f"{name[: LONGEST - _DIGEST - 1]}_{digest}"
