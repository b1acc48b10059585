"""Runs `dragoman doctor`: checks the settings, this machine and the backends, and prints what to do."""

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gateway.commands.parser import add_settings

if TYPE_CHECKING:
    from gateway.diagnostics.doctor.finding import Section
    from gateway.diagnostics.doctor.probe import Probe
    from gateway.server.doctor.examine_backend import Examined
    from gateway.settings import BackendSettings, Settings

HELP: Final = "check the settings, this machine and the backends, by short questions"
# What a short question costs on average, with its answer.
_TOKENS: Final = 150


def add_arguments(parser: argparse.ArgumentParser, environ: Mapping[str, str]) -> None:
    """Adds the arguments of the command."""
    parser.add_argument("backend", metavar="BACKEND", nargs="?", help="only this backend (default all)")
    add_settings(parser, environ)
    parser.add_argument("--model", help="the model to ask, by its name in the settings (default the first)")
    parser.add_argument("--offline", action="store_true", help="ask no backend anything")
    parser.add_argument("--slow", action="store_true", help="try what takes longer or asks more, too")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="ID",
        type=str.upper,
        help="only the checks whose id begins so, like D22 (repeatable)",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask before questions that may cost money")
    parser.add_argument("--verbose", action="store_true", help="list every check, also those in order")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parser.add_argument("--strict", action="store_true", help="exit with status 1 for a todo, too")
    parser.add_argument("--report", metavar="FILE", type=Path, help="save what was sent and received, redacted")
    parser.add_argument("--write", action="store_true", help="change the settings file as suggested, and keep FILE.bak")


def run(options: argparse.Namespace) -> int:
    """Prints the report. Raises SettingsError for a file that cannot be read, for a backend that is not in it, and for
    a recording that exists or cannot be written."""
    import msgspec

    from gateway.commands.doctor_report import report_text, write_suggestions
    from gateway.diagnostics.doctor.finding import FORMAT, Report
    from gateway.server.upstream.transport import gateway_version

    if options.report is not None:
        _check_new(options.report)
    text, settings, offline = _offline(options)
    probes = _probes(options)
    chosen = _chosen(options, settings) if probes and not options.offline else {}
    if chosen and not _agreed(options, chosen, probes):
        return 2
    examined = asyncio.run(_examine(options, settings, chosen, probes)) if chosen else []
    sections = (*([offline] if offline.findings else ()), *(one.section for one in examined))
    report = Report(FORMAT, gateway_version(), sections)
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    else:
        print(report_text(report, text, options.settings.name, verbose=options.verbose))
    if options.report is not None:
        _save(options.report, examined, settings)
    if options.write:
        write_suggestions(options.settings, text, report)
    return report.status(options.strict)


def _check_new(path: Path) -> None:
    """Raises SettingsError for a recording that could not be saved after all questions."""
    from gateway.core.errors import SettingsError

    if path.exists():
        raise SettingsError(f"{path} exists: nothing was asked, since a recording replaces no file")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise SettingsError(f"{path.parent} is no folder, or cannot be written: nothing was asked")


def _offline(options: argparse.Namespace) -> "tuple[str, Settings, Section]":
    """Returns the text of the file, its settings as far as they can be read, and the findings without any backend."""
    import msgspec

    from gateway.commands.config_check import check
    from gateway.commands.doctor_offline import Offline, examine_offline
    from gateway.settings.decode import decode_settings, read_text
    from gateway.settings.faults import settings_faults

    text = read_text(options.settings)
    raw = decode_settings(text)
    settings = settings_faults(raw).settings
    file = options.settings.name
    section = examine_offline(Offline(file, check(file, text, raw, os.environ), settings, os.environ))
    if options.only:
        kept = tuple(one for one in section.findings if one.id.startswith(tuple(options.only)))
        section = msgspec.structs.replace(section, findings=kept)
    return text, settings, section


def _probes(options: argparse.Namespace) -> "tuple[Probe, ...]":
    from gateway.commands.doctor_offline import CHECKS
    from gateway.core.errors import SettingsError
    from gateway.diagnostics.doctor.examination import PROBES, chosen

    known = [*(check_id for check_id, _, _ in CHECKS), *(probe.id for probe in PROBES)]
    for wanted in options.only:
        if not any(one.startswith(wanted) for one in known):
            raise SettingsError(f"there is no check whose id begins with {wanted}: docs/doctor.md lists them")
    return chosen(options.slow, options.only)


def _chosen(options: argparse.Namespace, settings: "Settings") -> "dict[str, BackendSettings]":
    """Returns the backend that is named, that of the model that is named, or all."""
    from gateway.core.errors import SettingsError
    from gateway.settings import nearest

    name = options.backend
    if options.model is not None:
        entry = settings.route(options.model)
        if entry is None:
            raise SettingsError(f"there is no model {options.model!r}{nearest(options.model, settings.models)}")
        if name not in (None, entry.backend):
            raise SettingsError(f"the model {options.model!r} is of the backend {entry.backend!r}, not of {name!r}")
        name = entry.backend
    if name is None:
        return dict(settings.backends)
    if name not in settings.backends:
        raise SettingsError(f"there is no backend {name!r}{nearest(name, settings.backends)}")
    return {name: settings.backends[name]}


def _agreed(options: argparse.Namespace, chosen: "Mapping[str, BackendSettings]", probes: "Sequence[Probe]") -> bool:
    """Tells the price of backends that are not on this machine, and asks whether to go on."""
    from gateway.commands.terminal import counted, is_agreed

    paid = [name for name, entry in chosen.items() if not _is_local(entry.base_url)]
    questions = len(paid) * sum(probe.questions for probe in probes)
    tokens = len(paid) * sum(probe.tokens or probe.questions * _TOKENS for probe in probes)
    if options.yes or not questions:
        return True
    price = f"{', '.join(paid)}: at most {counted(questions, 'question')}, about {tokens:,} tokens."
    if not sys.stdin.isatty():
        print(f"dragoman: {price} Without a terminal this needs --yes.", file=sys.stderr)
        return False
    return is_agreed(f"{price} Go on?")


def _is_local(base_url: str) -> bool:
    from urllib.parse import urlsplit

    from gateway.server.access.request_checks import is_loopback
    from gateway.server.upstream.backends import DEMO

    return base_url.startswith(DEMO) or is_loopback(urlsplit(base_url).hostname or "")


async def _examine(
    options: argparse.Namespace,
    settings: "Settings",
    chosen: "Mapping[str, BackendSettings]",
    probes: "Sequence[Probe]",
) -> "list[Examined]":
    import msgspec

    from gateway.server.doctor.examine_backend import examine_backend, unusable
    from gateway.server.upstream.backends import Backends
    from gateway.server.upstream.demo_backends import DemoBackends
    from gateway.server.upstream.fd_limits import last_for_clients
    from gateway.server.upstream.transport import Transport

    examined: list[Examined] = []
    show = _progress(options)
    most = int(settings.limits.max_response_mb * 2**20)
    async with DemoBackends() as demo_backends, Transport(most, last_for_clients()) as transport:
        for name, entry in chosen.items():
            if (reason := _reason(name, entry)) is not None:
                examined.append(unusable(name, entry, reason))
                continue
            models = {model: route for model, route in settings.models.items() if route.backend == name}
            backends = Backends(msgspec.structs.replace(settings, backends={name: entry}, models=models))
            await backends.start(demo_backends)
            backend = backends.known(name)
            assert backend is not None
            model = options.model or ""
            tell = partial(_tell, show, name)
            examined.append(await examine_backend(settings, backend, model, transport, probes, tell))
    show("")
    return examined


def _reason(name: str, entry: "BackendSettings") -> str | None:
    """Returns why a backend cannot be built, None for one that can."""
    from gateway.core.errors import SettingsError
    from gateway.server.upstream.backends import Backend

    try:
        Backend(name, entry, 2**20)
    except SettingsError as error:
        return error.message
    return None


def _tell(show: "Callable[[str], None]", name: str, probe: "Probe") -> None:
    show(f"{name}: {probe.id} {probe.name}")


def _progress(options: argparse.Namespace) -> "Callable[[str], None]":
    """Returns the progress display for a person at a terminal; an empty text removes it."""
    if options.json or not sys.stderr.isatty():
        return lambda said: None
    return lambda said: print(f"\r\033[K{said}", end="", file=sys.stderr, flush=True)


def _save(path: Path, examined: "Sequence[Examined]", settings: "Settings") -> None:
    """Saves the requests as a recording, redacted."""
    import secrets

    from gateway.recording.files import save_recording
    from gateway.recording.redact.redact import redact
    from gateway.server.inspect.folder import new_recording

    interactions = [one for each in examined for one in each.interactions]
    if not interactions:
        print(f"No request was sent: {path} is not written.", file=sys.stderr)
        return
    known = [secret for each in examined for secret in each.secrets if secret]
    seed = secrets.token_bytes(16)
    redacted = redact(new_recording(interactions), "shape", seed, known, settings=settings, search=False)
    size = save_recording(path, redacted.recording)
    print(f"{len(interactions)} requests, {size} bytes in {path}.", file=sys.stderr)
