"""D1: checks what `dragoman doctor` can see without asking a backend: the settings, this machine, the port."""

import asyncio
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from gateway.commands.terminal import counted
from gateway.diagnostics.doctor.finding import Checked, Finding, Section, broken, crashed, ok, skipped, todo

if TYPE_CHECKING:
    from gateway.commands.config_check import Report
    from gateway.settings import Settings

# Of these files, nobody but their owner may read anything.
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_SQLITE: Final = "sqlite:"
# For each client one for it and one for its backend, and some for everything else.
_FEW_DESCRIPTORS: Final = 1024


class Offline(msgspec.Struct, frozen=True):
    """The input of the checks: the file's name, the report about it, its settings as far as they can be read, and the
    environment."""

    file: str
    report: "Report"
    settings: "Settings"
    environ: Mapping[str, str]


Check: TypeAlias = Callable[[Offline], Finding]


def examine_offline(offline: Offline) -> Section:
    """Returns the findings of all checks. One that fails itself does not stop the others."""
    findings = tuple(Checked(check_id, name, _contained(check, offline)) for check_id, name, check in CHECKS)
    settings = offline.settings
    parts = (("backend", settings.backends), ("model", settings.models), ("key", settings.keys))
    about = ", ".join(counted(len(found), noun) for noun, found in parts)
    return Section(offline.file, about, findings)


def _contained(check: Check, offline: Offline) -> Finding:
    from gateway.core.secrets import without_secrets

    try:
        found = check(offline)
        # A key may stand in the place of its variable's name.
        return msgspec.structs.replace(found, detail=without_secrets(found.detail))
    except Exception as error:  # noqa: BLE001 (the boundary of a check: the others must still be tried)
        return crashed(error)


def _settings(offline: Offline) -> Finding:
    errors = offline.report.errors
    if not errors:
        return ok("no error")
    return broken(counted(len(errors), "error"), f"dragoman config check {offline.file}", errors[0].message)


def _variables(offline: Offline) -> Finding:
    missing = sorted({name for name in _named(offline.settings) if not offline.environ.get(name, "").strip()})
    if missing:
        return broken(f"not set: {', '.join(missing)}", "set them in the environment of the gateway")
    return ok("all that the settings name are set")


def _named(settings: "Settings") -> Iterator[str]:
    """Yields the variables without which a backend or the store cannot be used."""
    yield from (entry.credential_variable for entry in settings.backends.values() if entry.credential_variable)
    if settings.state.password_env is not None:
        yield settings.state.password_env


def _modes(offline: Offline) -> Finding:
    readable = [str(path) for path in _private(offline.settings) if path.exists() and path.stat().st_mode & _OTHERS]
    if readable:
        return todo(f"others can read {', '.join(readable)}", f"chmod 600 {' '.join(readable)}")
    return ok("files with secrets are private")


def _private(settings: "Settings") -> Iterator[Path]:
    if settings.server.api_keys_file is not None:
        yield Path(settings.server.api_keys_file)
    refreshed = (entry.refresh for entry in settings.backends.values() if entry.refresh is not None)
    yield from (Path(refresh.store) for refresh in refreshed if refresh.store)
    if (settings.state.store or "").startswith(_SQLITE):
        yield Path(str(settings.state.store).removeprefix(_SQLITE))


def _port(offline: Offline) -> Finding:
    from gateway.core.errors import SettingsError
    from gateway.discovery.identify import identify
    from gateway.discovery.server_kinds import DRAGOMAN
    from gateway.server.process.listener import bind
    from gateway.settings.local_url import local_url

    server = offline.settings.server
    where = f"{server.host}:{server.port}"
    try:
        bind(server).close()
    except SettingsError as error:
        occupant = asyncio.run(identify(local_url(server.host, server.port)))
        if occupant is not None and occupant.kind is DRAGOMAN:
            return ok(f"a gateway serves on {where}")
        answers = f": {occupant.title} answers there" if occupant is not None else ""
        return todo(f"{error.message}{answers}", "choose another server.port")
    return ok(f"{where} is free")


def _descriptors(offline: Offline) -> Finding:
    from gateway.server.upstream.fd_limits import most_descriptors, raise_limit

    raise_limit()
    most = most_descriptors()
    if most < _FEW_DESCRIPTORS:
        return todo(f"at most {most} files may be open, for {most // 2} clients", "raise the limit (ulimit -Hn)")
    return ok(f"{most} open files")


def _log(offline: Offline) -> Finding:
    from gateway.server.state.state_folder import file_fault

    file = offline.settings.log.file
    if file is None:
        return skipped("no log file is set")
    fault = file_fault(Path(file))
    return todo(f"{file}: {fault}", "correct log.file, or the rights of its folder") if fault else ok(file)


def _routes(offline: Offline) -> Finding:
    settings = offline.settings
    used = {entry.backend for entry in settings.models.values()}
    unused = sorted(settings.backends.keys() - used)
    if unused:
        return todo(f"no model uses {', '.join(unused)}", "name a model of it in models, or remove it")
    return ok("each backend has a model")


def _hosts(offline: Offline) -> Finding:
    from gateway.providers.registry import known_profile

    models = offline.settings.models.values()
    own = {model.backend for model in models if model.policy.profile != offline.settings.policy.profile}
    lacking = {
        name: profile
        for name, entry in offline.settings.backends.items()
        if entry.adapter == "openai_chat" and entry.profile is None and name not in own
        if (profile := known_profile(entry.base_url)) is not None
    }
    if lacking:
        advice = ", ".join(f'backends.{name}.profile: "{profile}"' for name, profile in lacking.items())
        return todo(f"without the profile of their provider: {', '.join(lacking)}", f"set {advice}")
    return ok("profiles fit the hosts that are known")


def _base_models(offline: Offline) -> Finding:
    from gateway.providers.registry import hides_models

    settings = offline.settings
    hidden = [
        name
        for name, model in settings.models.items()
        if hides_models(settings.backends[model.backend].base_url)
        and model.policy.base_model is None
        and (rules := model.policy.profile.request_rules) is not None
        and rules.of_model(model.name or name) is None
    ]
    if hidden:
        advice = "set " + ", ".join(f"models.{name}.base_model" for name in hidden) + " to the name of the model"
        return todo(f"the model behind a deployment is not known: {', '.join(hidden)}", advice)
    return ok("the rules for models apply")


CHECKS: Final[tuple[tuple[str, str, Check], ...]] = (
    ("D101", "settings", _settings),
    ("D102", "variables", _variables),
    ("D103", "modes", _modes),
    ("D104", "port", _port),
    ("D105", "descriptors", _descriptors),
    ("D106", "log", _log),
    ("D107", "routes", _routes),
    ("D108", "profiles", _hosts),
    ("D109", "base models", _base_models),
)
