"""Public paths that have moved: the old one imports for one release, with a DeprecationWarning.

An adapter or dialect of another package, or an import string in settings.json, may have them. `gateway` and `adapters`
install the finder when they are imported.
"""

import importlib
import re
import sys
import warnings
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from types import ModuleType
from typing import Final

# Old path -> new one, of a module, or of a package and all modules in it.
MODULES: Final = {
    "adapters.anthropic_messages": "adapters.anthropic_messages.backend",
    "adapters.call_ids": "gateway.wires.call_ids",
    "adapters.call_tracker": "gateway.wires.call_tracker",
    "adapters.gemini": "adapters.gemini.backend",
    "adapters.json_body": "gateway.wires.json_body",
    "adapters.openai_chat": "adapters.openai_chat.backend",
    "adapters.openai_errors": "adapters.openai.backend_errors",
    "adapters.openai_responses": "adapters.openai_responses.backend",
    "adapters.proto": "adapters.proto.backend",
    "adapters.protobuf_values": "gateway.protobuf",
    "adapters.response_schema": "gateway.wires.response_schema",
    "adapters.service_tier": "gateway.wires.service_tier",
    "adapters.stream_or_json": "gateway.wires.event_stream",
    "adapters.text": "adapters.text.backend",
    "adapters.token_count": "gateway.wires.token_count",
    "adapters.warp": "adapters.warp.backend",
    "adapters.whole_response": "gateway.wires.event_stream",
    "gateway.core.messages_rules": "gateway.providers.messages_rules",
    "gateway.core.profiles": "gateway.providers.profile",
    "gateway.core.request_rules": "gateway.providers.request_rules",
    "gateway.core.tool_rules": "gateway.providers.tool_rules",
    "gateway.dialects.allowed_tools": "gateway.dialects.offered_functions",
    "gateway.dialects.anthropic_messages": "adapters.anthropic_messages.client",
    "gateway.dialects.base": "gateway.dialect",
    "gateway.dialects.gemini": "adapters.gemini.client",
    "gateway.dialects.ollama": "adapters.ollama.client",
    "gateway.dialects.openai_chat": "adapters.openai_chat.client",
    "gateway.dialects.openai_completions": "adapters.openai_completions.client",
    "gateway.dialects.openai_errors": "adapters.openai.client_errors",
    "gateway.dialects.openai_fields": "adapters.openai.fields",
    "gateway.dialects.openai_models": "adapters.openai.models",
    "gateway.dialects.openai_responses": "adapters.openai_responses.client",
    "gateway.dialects.openai_usage": "adapters.openai.usage",
    "gateway.dialects.tool_names": "gateway.dialects.offered_functions",
    "gateway.framing.listed_models": "gateway.wires.listed_models",
    "gateway.framing.utf8": "gateway.framing.json_text",
    "gateway.history.call_arguments": "gateway.core.call_arguments",
    "gateway.history.rules": "gateway.core.rules",
    "gateway.history.thoughts": "gateway.core.thoughts",
    "gateway.history.transcript.call_order": "gateway.history.transcript.render",
    "gateway.history.violation_error": "gateway.core.rules",
    "gateway.response.forced_call": "gateway.response.tool_choice",
    "gateway.response.lost_state": "gateway.response.provider_state",
    "gateway.response.single_call": "gateway.response.tool_choice",
    "gateway.response.state_labels": "gateway.response.provider_state",
    "gateway.testing.golden_format": "gateway.testing.golden_runner",
    "gateway.tool_calls.parsers.arguments": "gateway.tool_calls.parsers.reader",
    "gateway.tool_calls.parsers.coerce": "gateway.tool_calls.parsers.declared_tools",
    "gateway.tool_calls.parsers.prompt_text": "gateway.tool_calls.parsers.format",
    "gateway.tool_calls.parsers.transcript_calls": "gateway.tool_calls.parsers.labelled_call",
}
# Old path -> new one, of a name in a module.
NAMES: Final = {"gateway.testing.faults:Spoken": "gateway.testing.faults:ResponseEvents"}


_SIDE: Final = re.compile(r"\.(?:client|backend)\.")
_NEW: Final = re.compile(r"adapters\.\w+\.(?:client|backend|demo)\b")


class MovedModules:
    """Finds a module by its old path, and gives the module at the new path, of which there is one alone."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Returns the spec of a module with an old path, whose new path has a module; None for any other."""
        if moved_to(name) is None or (_has_own_parent(name) and _is_here(name, path)):
            return None
        found = _found(name)
        if found is None:
            return None
        is_package = found.submodule_search_locations is not None
        # The stub wants an abstract base of loaders; Python itself asks for the two methods alone.
        return ModuleSpec(name, self, loader_state=found, is_package=is_package)  # type: ignore[arg-type]  # the stub

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Returns the module at the new path, with a DeprecationWarning."""
        new: ModuleSpec = spec.loader_state
        _warn(spec.name, new.name, 3)
        return importlib.import_module(new.name)

    def exec_module(self, module: ModuleType) -> None:
        """Gives the module its own spec back: it has been executed at its new path."""
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state


def install() -> None:
    """Adds the finder in front of those of Python, once: they would find a module below a moved package again."""
    if not any(isinstance(finder, MovedModules) for finder in sys.meta_path):
        sys.meta_path.insert(0, MovedModules())


def moved_name(package: str, name: str) -> object:
    """Returns what `package` held by this name before it moved into the package's new path, with a DeprecationWarning.
    Raises AttributeError for any other name."""
    new = importlib.import_module(MODULES[package])
    if name not in getattr(new, "__all__", ()):
        raise AttributeError(f"module {package!r} has no attribute {name!r}")
    _warn(f"{package}:{name}", f"{new.__name__}:{name}", 4)
    return getattr(new, name)


def renamed(module: str, name: str) -> object:
    """Returns the value in `module` that had this name, with a DeprecationWarning. Raises AttributeError for any other
    name."""
    old = f"{module}:{name}"
    if old not in NAMES:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    _warn(old, NAMES[old], 4)
    path, _, renamed_to = NAMES[old].partition(":")
    return getattr(importlib.import_module(path), renamed_to)


def _warn(old: str, new: str, level: int) -> None:
    warnings.warn(f"{old} is {new} now, and its old path ends with the next release", DeprecationWarning, level)


def _is_here(name: str, path: Sequence[str] | None) -> bool:
    """Returns whether the old path still has a module. A folder without sources, as a checkout leaves it behind, has
    none."""
    found = PathFinder.find_spec(name, path)
    return found is not None and found.origin is not None


def _has_own_parent(name: str) -> bool:
    """Returns whether the package that the module is imported from is not a moved one."""
    parent = name.rpartition(".")[0]
    return parent in sys.modules and sys.modules[parent].__name__ == parent


def _found(name: str) -> ModuleSpec | None:
    """Returns the spec of the module at the new path; what both sides of a wire use stands beside them."""
    new = moved_to(name)
    assert new is not None
    for path in (new, _SIDE.sub(".", new, count=1)):
        if path == name:
            break
        try:
            if (found := find_spec(path)) is not None:
                return found
        except ModuleNotFoundError:  # of its package
            continue
    return None


def moved_to(name: str) -> str | None:
    """Returns the new path of a module, of `MODULE:Class` or of a module in a package, by its old one; None for a path
    that is no old one."""
    old = name
    while old and old not in MODULES:
        old = old.rpartition(":" if ":" in old else ".")[0]
    if not old or _NEW.match(name):
        return None
    return MODULES[old] + name.removeprefix(old)
