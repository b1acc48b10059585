"""Runs `dragoman config check`: prints every fault of a settings file, and what it warns of."""

import argparse
import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from gateway.commands.terminal import counted

if TYPE_CHECKING:
    from gateway.adapter import Adapter
    from gateway.core.conversation import Json
    from gateway.core.errors import SettingsError
    from gateway.settings import BackendSettings, Settings
    from gateway.settings.faults import Faults

FORMAT: Final = 1


class Finding(msgspec.Struct, frozen=True):
    """One fault or warning: the path of its key and the line, where it has them, and the nearest known key."""

    message: str
    path: str | None = None
    line: int | None = None
    nearest: str | None = None


class Report(msgspec.Struct, frozen=True):
    """The report that `--json` prints."""

    format: int
    file: str
    errors: tuple[Finding, ...]
    warnings: tuple[Finding, ...]


def run(options: argparse.Namespace) -> int:
    """Prints the findings; returns 1 for errors, and with `--strict` for warnings. Raises SettingsError for a file
    that cannot be read or is not JSON."""
    from gateway.core.errors import SettingsError
    from gateway.settings.decode import decode_settings, read_text

    file = options.file or options.settings
    text = read_text(file)
    try:
        raw = decode_settings(text)
    except SettingsError as error:
        raise SettingsError(f"{file}: {error.message}") from error
    report = check(str(file), text, raw, os.environ, options.insecure_no_key)
    print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode() if options.json else _text(report))
    return 1 if report.errors or (options.strict and report.warnings) else 0


def check(file: str, text: str, raw: "Json", environ: Mapping[str, str], insecure: bool = False) -> Report:
    """Returns the findings of a settings file: its text, and the same decoded. `insecure`: a gateway without client
    keys may serve other machines."""
    from gateway.settings.faults import settings_faults

    faults = settings_faults(raw)
    errors = [*faults.errors, *_start_errors(faults, environ, insecure)]
    warnings = _warnings(faults.settings, environ)
    return Report(
        FORMAT,
        file,
        tuple(sorted((_finding(text, error.message, error) for error in errors), key=_place)),
        tuple(sorted((_finding(text, warning) for warning in warnings), key=_place)),
    )


def _place(finding: Finding) -> tuple[int, str]:
    return finding.line or 0, finding.message


def _finding(text: str, message: str, error: "SettingsError | None" = None) -> Finding:
    from gateway.core.secrets import without_secrets
    from gateway.settings.line_numbers import find_key

    path, line = find_key(text, message) or (None, None)
    correction = error.correction if error is not None else None
    # A key may stand in the place of its variable's name.
    return Finding(without_secrets(message), path, line, correction.nearest if correction is not None else None)


def _start_errors(faults: "Faults", environ: Mapping[str, str], insecure: bool) -> "Iterator[SettingsError]":
    """Yields the further errors that the start would raise: backends that cannot be built, and keys, stores and folders
    that cannot be used."""
    from gateway.commands.written_places import place_errors
    from gateway.server.media.check import media_faults

    settings = faults.settings
    for name, entry in settings.backends.items():
        if name not in faults.without_adapter:
            yield from _backend_errors(name, entry, int(settings.limits.max_event_mb * 2**20))
    yield from _key_errors(settings, environ, insecure)
    yield from place_errors(settings)
    adapters = _adapters(settings)
    yield from media_faults(settings, adapters)
    yield from _route_errors(settings, adapters)


def _route_errors(settings: "Settings", adapters: "Mapping[str, Adapter]") -> "Iterator[SettingsError]":
    """Yields what the start refuses of the routes that are passed on."""
    if not any(entry.routes for entry in settings.backends.values()):
        return
    from gateway.core.errors import SettingsError
    from gateway.registry import load_dialects
    from gateway.server.api.passed.routes import route_faults
    from gateway.server.upstream.backends import check_routes

    for name, adapter in adapters.items():
        try:
            check_routes(f"backends.{name}", settings.backends[name], adapter)
        except SettingsError as error:
            yield error
    yield from route_faults(settings.backends, load_dialects())


def _key_errors(settings: "Settings", environ: Mapping[str, str], insecure: bool) -> "Iterator[SettingsError]":
    """Yields what the start refuses about keys: those of clients, of the operator and of the store. A key that this
    command does not have may be in the environment of the gateway, which the error says."""
    from gateway.core.errors import SettingsError
    from gateway.server.access.api_keys import check_exposure, check_names, load_keys
    from gateway.server.inspect.access import InspectorAccess
    from gateway.server.state.open_store import open_store
    from gateway.server.state.state_folder import StateKeys
    from gateway.server.telemetry.metrics import Metrics

    def check_clients() -> None:
        keys = load_keys(settings.server, environ)
        check_names(settings, keys)
        check_exposure(settings.server, keys, insecure)

    state = settings.state
    checks: tuple[tuple[str | None, Callable[[], object]], ...] = (
        (settings.server.api_keys_env, check_clients),
        (settings.inspector.admin_key_env, lambda: InspectorAccess(settings, environ)),
        (state.key_env, lambda: StateKeys(state, environ).check()),
        # It connects to nothing, and makes no file, before it is used.
        (state.key_env, lambda: open_store(state, Metrics(), environ)),
    )
    found: dict[str, SettingsError] = {}
    for variable, check_part in checks:
        try:
            check_part()
        except SettingsError as error:
            unset = variable is not None and not environ.get(variable, "").strip() and variable in error.message
            error.message += f"; {_unset(variable)}" if unset and variable else ""
            found.setdefault(error.message, error)
    yield from found.values()


def _unset(variable: str) -> str:
    return f"{variable} is not set where this command runs"


def _backend_errors(name: str, entry: "BackendSettings", max_event: int) -> "Iterator[SettingsError]":
    from gateway.core.errors import SettingsError
    from gateway.diagnostics.entry_check import entry_faults
    from gateway.registry import adapter_signs
    from gateway.server.upstream.backends import check_address, check_headers, check_tls, tls_faults
    from gateway.server.upstream.credentials import check_signing

    where = f"backends.{name}"
    checks = [partial(check_address, where, entry.base_url), partial(check_headers, where, entry)]
    # One that cannot be loaded is among the faults below.
    with contextlib.suppress(SettingsError):
        if adapter_signs(f"{where}.adapter", entry.adapter):
            checks.append(partial(check_signing, where, entry))
    checks.append(partial(check_tls, where, entry))
    found = {error.message: error for error in tls_faults(where, entry)}
    for check_part in checks:
        try:
            check_part()
        except SettingsError as error:
            found.setdefault(error.message, error)
    yield from found.values()
    for message in entry_faults(name, entry, max_event):
        yield SettingsError(message)


def _warnings(settings: "Settings", environ: Mapping[str, str]) -> Iterator[str]:
    from gateway.commands.written_places import place_warnings
    from gateway.moved import moved_to
    from gateway.providers.registry import PROFILES
    from gateway.settings.compression import cut_before_summary
    from gateway.settings.unlikely_values import unlikely_values

    used = {entry.backend for entry in settings.models.values()}
    for name, entry in settings.backends.items():
        if name not in used:
            yield f"backends.{name}: no model uses this backend"
        if (new := moved_to(entry.adapter)) is not None:
            yield f"backends.{name}.adapter: {entry.adapter} is {new} now, and its old path ends with the next release"
        yield from unlikely_values(f"backends.{name}", entry)
        yield from _credential_warnings(f"backends.{name}", entry, environ)
        yield from _certificate_warnings(f"backends.{name}.tls", entry)
    for name, profile in settings.profiles.items():
        if name in PROFILES and profile is not PROFILES[name]:
            yield f"profiles.{name}: it replaces the built-in profile of this name"
    password = settings.state.password_env
    if password is not None and not environ.get(password, ""):
        yield f"state.password_env: the environment variable {_unset(password)}"
    yield from place_warnings(settings)
    yield from _state_key_warnings(settings, environ)
    yield from cut_before_summary(settings.on(_native(settings)).models)


def _state_key_warnings(settings: "Settings", environ: Mapping[str, str]) -> Iterator[str]:
    """Yields a sentence where a compaction may be opened neither by another machine nor after a restart."""
    from gateway.server.access.request_checks import is_loopback
    from gateway.server.state.state_folder import StateFolder

    variable = settings.state.key_env
    if environ.get(variable, "").strip():
        return
    unset = f"state.key_env: the environment variable {_unset(variable)}"
    shared = (settings.state.store or "memory").partition(":")[0] not in ("memory", "sqlite")
    folder = StateFolder(environ, settings.state.folder)
    if shared:
        yield f"{unset}, so that each machine seals compactions with a key of its own, and no other one opens them"
    elif not settings.state.folder and (fault := folder.fault()):
        yield f"{unset}, and no key can be kept in {folder.path} ({fault}): no compaction is opened after a restart"
    elif not folder.chosen and (settings.server.workers > 1 or not is_loopback(settings.server.host)):
        yield (
            f"{unset}, and {folder.path}, where the key is kept that seals compactions, ends with a container; set the"
            " variable to one key for all machines, or state.folder to a folder that lasts"
        )


def _credential_warnings(where: str, entry: "BackendSettings", environ: Mapping[str, str]) -> Iterator[str]:
    from gateway.core.errors import SettingsError
    from gateway.registry import adapter_signs
    from gateway.server.upstream.credentials import check_signing, credential_for, signing_key
    from gateway.settings.unlikely_values import is_placeholder

    key = "refresh.refresh_token_env" if entry.refresh is not None else "api_key_env"
    variable = entry.credential_variable
    if variable and not environ.get(variable, "").strip():
        yield f"{where}.{key}: the environment variable {_unset(variable)}"
        return
    if variable and is_placeholder(environ[variable]):
        yield f"{where}.{key}: the value of {variable} looks like a placeholder: put your own there"
        return
    # An adapter that cannot be loaded, and one that cannot sign with these keys, is an error already.
    with contextlib.suppress(SettingsError):
        signs = adapter_signs(f"{where}.adapter", entry.adapter)
        if signs:
            check_signing(where, entry)
        credential_of = signing_key if signs else credential_for
        try:
            credential_of(entry, environ)
        except SettingsError as error:
            yield f"{where}.{key}: {error.message}"


def _certificate_warnings(where: str, entry: "BackendSettings") -> Iterator[str]:
    from gateway.core.errors import SettingsError
    from gateway.server.upstream.http.tls import certificate_warnings, load_context

    if entry.tls is None:
        return
    # What cannot be used is an error already.
    with contextlib.suppress(SettingsError):
        load_context(entry.tls)
        for warning in certificate_warnings(entry.tls, datetime.now(UTC)):
            yield f"{where}.{warning}"


def _native(settings: "Settings") -> frozenset[str]:
    """Returns the names of the backends whose adapter is native, as far as it can be loaded."""
    from gateway.registry import native_backends

    return native_backends(_adapters(settings))


def _adapters(settings: "Settings") -> "dict[str, Adapter]":
    """Returns the adapters of the backends, as far as they can be loaded."""
    from gateway.core.errors import SettingsError
    from gateway.registry import load_adapter

    adapters = {}
    for name, entry in settings.backends.items():
        with contextlib.suppress(SettingsError):
            adapters[name] = load_adapter(name, entry, 2**20)
    return adapters


def lines(report: Report) -> list[str]:
    """Returns a line for each error and each warning."""
    return [*_lines("error", report.file, report.errors), *_lines("warning", report.file, report.warnings)]


def _text(report: Report) -> str:
    counts = f"{counted(len(report.errors), 'error')}, {counted(len(report.warnings), 'warning')}"
    return "\n".join([*lines(report), f"{report.file}: {counts}"])


def _lines(kind: str, file: str, findings: Iterable[Finding]) -> list[str]:
    return [f"{file}:{found.line or 1}: {kind}: {found.message}" for found in findings]
