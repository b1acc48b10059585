"""Writes the first settings file: a backend for each server, and the models that it lists."""

import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import PureWindowsPath
from typing import Final

import msgspec

from gateway.core.conversation import Json
from gateway.discovery.identify import Server
from gateway.providers.provider import HostedKind, ServerKind
from gateway.settings.model_names import ANY, is_pattern

SCHEMA: Final = "./settings.schema.json"
DEFAULT_PORT: Final = 8000
# More would hide the rest of the file; a pattern serves them as well.
MOST_MODELS: Final = 20
# Models that hold no conversation.
_NO_CHAT: Final = ("embed", "rerank")


class NewBackend(msgspec.Struct, frozen=True):
    """An entry of `backends`, its name, and the names of its models."""

    name: str
    entry: Mapping[str, Json]
    models: tuple[str, ...] = ()


def local_backend(kind: ServerKind, url: str, models: Sequence[str] = (), locked: bool = False) -> NewBackend:
    """Returns the backend for a server at an address without a path."""
    entry: dict[str, Json] = {"adapter": "openai_chat", "base_url": f"{url}/v1"}
    if kind.profile is not None:
        entry["profile"] = kind.profile
    if kind.counter is not None:
        entry["counter"] = kind.counter
    if locked:
        entry["api_key_env"] = f"{kind.name.upper().replace('-', '_')}_API_KEY"
    return NewBackend(kind.name, entry, chat_models(models)[:MOST_MODELS])


def server_backend(server: Server) -> NewBackend | None:
    """Returns the backend for a server that was found; None where it is not known."""
    if server.kind is None:
        return None
    return local_backend(server.kind, server.url, server.models, server.locked)


def hosted_backend(kind: HostedKind, base_url: str | None = None) -> NewBackend:
    """Returns the backend for a provider."""
    entry: dict[str, Json] = {"adapter": kind.adapter, "base_url": base_url or kind.base_url}
    entry["api_key_env"] = kind.api_key_env
    if kind.api_key_header is not None:
        entry["api_key_header"] = kind.api_key_header
    if kind.profile is not None:
        entry["profile"] = kind.profile
    return NewBackend(kind.name, entry)


def chat_models(names: Sequence[str]) -> tuple[str, ...]:
    """Returns the names of models that a person may talk to; a name that would be a pattern is left out."""
    return tuple(name for name in names if not is_pattern(name) and not any(word in name.lower() for word in _NO_CHAT))


def new_settings(backends: Sequence[NewBackend], port: int) -> str:
    """Returns the text of a settings file; the first backend serves every name that no entry has."""
    backends = _named_apart(backends)
    models: dict[str, dict[str, Json]] = {}
    for backend in backends:
        for model in backend.models:
            name = _short_name(model)
            if name in models:
                name = f"{backend.name}/{name}"
            models[name] = {"backend": backend.name}
            if name != model:
                models[name]["name"] = model
    models[ANY] = {"backend": backends[0].name}
    parts = [f'  "$schema": {json.dumps(SCHEMA)}']
    if port != DEFAULT_PORT:
        parts.append(f'  "server": {json.dumps({"port": port})}')
    parts += [_lines("backends", {backend.name: backend.entry for backend in backends}), _lines("models", models)]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _named_apart(backends: Sequence[NewBackend]) -> list[NewBackend]:
    """Two servers may be of one kind: the second one is NAME-2."""
    found: dict[str, NewBackend] = {}
    for backend in backends:
        names = itertools.chain([backend.name], (f"{backend.name}-{number}" for number in itertools.count(2)))
        name = next(name for name in names if name not in found)
        found[name] = msgspec.structs.replace(backend, name=name)
    return list(found.values())


def _short_name(model: str) -> str:
    """Returns the name of a model for clients: of the path of a file, by which llama.cpp names it, the name of the
    file."""
    path = PureWindowsPath(model)
    file = path.stem if path.suffix == ".gguf" else path.name
    return file if path.root and file else model


def _lines(name: str, entries: Mapping[str, Mapping[str, Json]]) -> str:
    """Returns a member of the file with one line for each entry."""
    rows = [f"    {json.dumps(key, ensure_ascii=False)}: {json.dumps(entry)}" for key, entry in entries.items()]
    return f'  "{name}": {{\n' + ",\n".join(rows) + "\n  }"
