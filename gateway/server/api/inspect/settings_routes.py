"""Adds the routes below /inspect/api that show the settings: those that the page needs, the values in use for
`dragoman config show --running`, and the origin of each value: a line of the file, an option, a default.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from fastapi import FastAPI
from starlette.datastructures import URL
from starlette.requests import Request
from starlette.responses import Response

from gateway.core.errors import SettingsError
from gateway.registry import native_backends
from gateway.server.api.gateway_state import GatewayState
from gateway.server.api.inspect.responses import API, json_response, redacted_response
from gateway.server.inspect.inspector import Inspector
from gateway.server.upstream.transport import gateway_version
from gateway.settings import Settings, parse_settings, with_place
from gateway.settings.decode import decode_settings, read_text
from gateway.settings.flat_values import flat_values
from gateway.settings.origins import DEFAULT, EffectiveValue, Origin, OriginalFile, effective_values
from gateway.settings.source import SettingsSource

OPTION: Final = "an option or a variable"
NO_FILE: Final = "the program"
REFUSED: Final = "the file as it was before, an option or a variable"
WAITS: Final = "the file has another value, which waits for a restart"
NOT_READ: Final = "the file has another value, which is not read yet, or refused: the log says why"


class SettingRow(msgspec.Struct, frozen=True):
    """A setting in use. `origin` is what sets it, `over` what it overrides, and `file` the other value that the file
    has now, if `differs`. (Any: JSON.)"""

    path: str
    value: Any
    origin: str
    over: tuple[Origin, ...] = ()
    differs: bool = False
    file: Any = None


class SettingsView(msgspec.Struct, frozen=True):
    """All settings in use. `file` is the name of their file, empty where there is none, and `fault` what is wrong with
    it now."""

    file: str
    fault: str
    rows: tuple[SettingRow, ...]


class _File(msgspec.Struct, frozen=True):
    """The present contents of the file: the values that the start would use, and those of the file with where they come
    from."""

    wanted: Mapping[str, Any]
    origins: Mapping[str, EffectiveValue]


def settings_view(state: GatewayState) -> SettingsView:
    """Returns the settings in use by this process. It reads the file."""
    native = native_backends(state.backends.adapters)
    source, running = state.source, flat_values(state.settings.on(native))
    if source is None:
        return SettingsView("", "", tuple(_rows_without_file(running, NO_FILE)))
    try:
        found = _read(source, native)
    except SettingsError as error:
        fault = with_place(source.path, error.message)
        return SettingsView(source.path.name, fault, tuple(_rows_without_file(running, REFUSED)))
    return SettingsView(source.path.name, "", tuple(_rows(running, found, state.waiting)))


def _read(source: SettingsSource, native: frozenset[str]) -> _File:
    """Raises SettingsError."""
    text = read_text(source.path)
    settings, raw = parse_settings(text), decode_settings(text)
    file = OriginalFile(source.path.name, text, raw if isinstance(raw, dict) else {})
    origins = {one.path: one for one in effective_values(file, settings, {}, native)}
    return _File(flat_values(source.load().on(native)), origins)


def _rows_without_file(running: Mapping[str, Any], origin: str) -> Iterator[SettingRow]:
    """Yields the rows where no file says what sets a value; `origin` does of those that are no defaults."""
    defaults = flat_values(Settings())
    for path, value in running.items():
        yield SettingRow(path, value, DEFAULT if defaults.get(path) == value else origin)


def _rows(running: Mapping[str, Any], found: _File, waiting: tuple[str, ...]) -> Iterator[SettingRow]:
    for path, value in running.items():
        wanted, origin = found.wanted.get(path), found.origins.get(path)
        if wanted != value:
            waits = any(f"{path}.".startswith(f"{one}.") for one in waiting)
            yield SettingRow(path, value, WAITS if waits else NOT_READ, (), True, wanted)
        elif origin is None or origin.value != value:
            yield SettingRow(path, value, OPTION, _over(origin))
        else:
            yield SettingRow(path, value, origin.origin, origin.over)


def _over(overridden: EffectiveValue | None) -> tuple[Origin, ...]:
    return () if overridden is None else (Origin(overridden.value, overridden.origin), *overridden.over)


class RunningSettings(msgspec.Struct, frozen=True):
    """The values in use by their paths, and the keys whose values in the file wait for a restart. `reloads`: a change
    of the file is read while the gateway runs."""

    version: str
    values: dict[str, Any]  # JSON
    waiting: tuple[str, ...]
    reloads: bool


def running_settings(gateway_state: GatewayState) -> RunningSettings:
    """Returns the settings in use by this process."""
    settings = gateway_state.settings.on(native_backends(gateway_state.backends.adapters))
    return RunningSettings(gateway_version(), flat_values(settings), gateway_state.waiting, settings.server.reload)


class Workers(msgspec.Struct, frozen=True):
    """How many workers there are, and of how many the page shows the requests."""

    seen: int
    total: int


class ShownSettings(msgspec.Struct, frozen=True):
    """The settings of the inspector, the names that a filter may use, and a command that makes a request. `admin_key`:
    one is asked for. `redacted`: the words were replaced when it was recorded, so that there are none to reveal."""

    version: str
    workers: Workers
    enabled: str
    contents: str
    reveal: bool
    redacted: bool
    admin_key: bool
    keep: int
    keep_mb: float
    request_mb: float
    models: Sequence[str]
    profiles: Sequence[str]
    example: str
    send: bool


async def shown_settings(gateway_state: GatewayState, inspector: Inspector, base_url: URL) -> ShownSettings:
    """Returns the settings. `base_url` is the address by which the page knows the gateway."""
    settings = gateway_state.settings
    known, models = settings.inspector, [*settings.models]
    redacted = inspector.shown_level == "none"
    return ShownSettings(
        version=gateway_version(),
        workers=Workers(await inspector.requests.seen(), settings.server.workers),
        enabled=known.enabled,
        contents=known.contents,
        reveal=known.reveal and not redacted,
        redacted=redacted,
        admin_key=bool(inspector.access.key),
        keep=known.keep,
        keep_mb=known.keep_mb,
        request_mb=known.request_mb,
        models=models,
        profiles=[*settings.profiles],
        send=inspector.sent.allowed,
        example=_example(str(base_url).rstrip("/"), models[0] if models else "MODEL", bool(gateway_state.keys)),
    )


def _example(base_url: str, model: str, keys: bool) -> str:
    body = msgspec.json.encode({"model": model, "messages": [{"role": "user", "content": "Hello"}]}).decode()
    key = ' -H "Authorization: Bearer $DRAGOMAN_KEY"' if keys else ""
    quoted = body.replace("'", "'\\''")
    return f"curl {base_url}/v1/chat/completions -H 'Content-Type: application/json'{key} -d '{quoted}'"


def add_settings_routes(app: FastAPI, gateway_state: GatewayState, inspector: Callable[[], Inspector]) -> None:
    """Adds the routes."""

    @app.get(f"{API}/settings", include_in_schema=False)
    async def settings(request: Request) -> Response:
        """The facts of the gateway that the page needs."""
        return json_response(await shown_settings(gateway_state, inspector(), request.base_url))

    @app.get(f"{API}/running-settings", include_in_schema=False)
    async def running() -> Response:
        """The settings in use, without secrets."""
        return redacted_response(running_settings(gateway_state), gateway_state.redact)

    @app.get(f"{API}/effective-settings", include_in_schema=False)
    async def effective() -> Response:
        """The settings in use, without secrets, and what sets each."""
        return redacted_response(await asyncio.to_thread(settings_view, gateway_state), gateway_state.redact)
