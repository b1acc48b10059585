"""Examines one backend of the settings with one of its models."""

from collections.abc import Callable, Sequence

import msgspec

from gateway.core.secrets import without_secrets
from gateway.diagnostics.doctor.examination import examine
from gateway.diagnostics.doctor.finding import Checked, Section, broken
from gateway.diagnostics.doctor.probe import Probe
from gateway.diagnostics.doctor.suggestion import suggested, told_facts
from gateway.recording.recording import Interaction
from gateway.server.doctor.live_backend import LiveBackend
from gateway.server.doctor.text_wire import compare_text_wire
from gateway.server.upstream.backends import Backend
from gateway.server.upstream.transport import Transport
from gateway.settings import BackendSettings, ModelSettings, Settings
from gateway.settings.hidden import shown_address
from gateway.settings.model_names import exact_names


class Examined(msgspec.Struct, frozen=True):
    """The findings about a backend, the requests that were sent for them, and the secrets that may stand in these."""

    section: Section
    interactions: tuple[Interaction, ...] = ()
    secrets: tuple[str, ...] = ()


async def examine_backend(
    settings: Settings,
    backend: Backend,
    model: str,
    transport: Transport,
    probes: Sequence[Probe],
    begin: Callable[[Probe], None],
) -> Examined:
    """Tries the probes. `model` is a name in the settings; empty: the first model of the backend in the settings, or in
    its own list."""
    name = model or next((one for one in exact_names(settings.models) if _of(settings, one) == backend.name), "")
    route = _route(settings, backend, name)
    live = LiveBackend(transport, backend, route, route.name or name)
    if not live.model:
        live.model = next(iter((await live.list_models()).names), "")
    findings = await examine(live, probes, begin)
    compared = await compare_text_wire(live, backend.name, name, route, transport, findings)
    findings, wire = (findings, ()) if compared is None else ((*findings, compared.checked), compared.suggestions)
    own = settings.models.get(name)
    facts = () if own is None or own.backend != backend.name else told_facts(name, own, findings)
    place = ("models", name) if _has_own_profile(settings, backend, name) else ("backends", backend.name)
    section = Section(
        backend.name,
        f"{shown_address(backend.settings.base_url)}, {backend.settings.adapter}, model {live.model or 'unknown'}",
        findings,
        _features(probes, findings, "ok"),
        _features(probes, findings, "todo", "broken"),
        (*suggested(place, route.policy.profile, live.remedies, settings.profiles), *facts, *wire),
    )
    return Examined(section, tuple(live.interactions), backend.secrets)


def unusable(name: str, settings: BackendSettings, reason: str) -> Examined:
    """Returns the finding about a backend that cannot be built from its settings."""
    finding = broken(without_secrets(reason), "correct the settings, or set the variable")
    about = f"{shown_address(settings.base_url)}, {settings.adapter}"
    return Examined(Section(name, about, (Checked("D200", "entry", finding),)))


def _of(settings: Settings, model: str) -> str:
    return settings.models[model].backend


def _route(settings: Settings, backend: Backend, name: str) -> ModelSettings:
    """Returns the entry of a model, else any entry of the backend, else what an empty entry would be."""
    entry = settings.route(name) if name else None
    if entry is None or entry.backend != backend.name:
        entries = (one for one in settings.models.values() if one.backend == backend.name)
        entry = next(entries, None) or ModelSettings(backend.name, None, settings.policy)
    return entry.on(backend.adapter.capabilities.native)


def _has_own_profile(settings: Settings, backend: Backend, name: str) -> bool:
    """Returns whether the profile of the model is not that of its backend."""
    entry = settings.models.get(name)
    if entry is None:
        return False
    given = backend.settings.profile
    expected = settings.policy.profile if given is None else settings.profiles[given]
    return entry.policy.profile != expected


def _features(probes: Sequence[Probe], findings: Sequence[Checked], *verdicts: str) -> tuple[str, ...]:
    named = {probe.id: probe.feature for probe in probes if probe.feature}
    decided = (one for one in findings if not one.finding.undecided)
    return tuple(named[one.id] for one in decided if one.id in named and one.finding.verdict in verdicts)
