"""Examines demo backends as `dragoman doctor` does."""

from collections.abc import Mapping, Sequence

from gateway.core.conversation import Json
from gateway.diagnostics.doctor.examination import chosen
from gateway.diagnostics.doctor.finding import Checked, Finding, Section
from gateway.diagnostics.doctor.probe import Probe
from gateway.server.doctor.examine_backend import Examined, examine_backend
from gateway.server.upstream.backends import Backends
from gateway.server.upstream.demo_backends import DemoBackends
from gateway.server.upstream.transport import Transport
from gateway.settings import read_settings

# The entry of each kind of demo backend, as an operator who read the provider's page writes it.
ENTRIES: Mapping[str, dict[str, Json]] = {
    "chat": {"adapter": "openai_chat"},
    "messages": {"adapter": "anthropic_messages", "profile": "anthropic-compat"},
    "responses": {"adapter": "openai_responses"},
    "gemini": {"adapter": "gemini"},
    "text": {"adapter": "text"},
    "grpc": {"adapter": "proto", "preset": "demo"},
    "agent": {"adapter": "warp"},
}
MODELS: Mapping[str, str] = {"agent": "auto"}


async def examined(
    kind: str,
    base_url: str = "",
    slow: bool = True,
    only: tuple[str, ...] = (),
    model: str = "",
    own_profile: Mapping[str, Json] | None = None,
    entry: Mapping[str, Json] | None = None,
    probes: Sequence[Probe] | None = None,
) -> Examined:
    """Examines one backend: a demo of this kind, or what answers at an address over the same wire. `entry` are more
    keys of it, `own_profile` a profile of the settings by its name, and `probes` those that are tried instead of the
    chosen ones."""
    settings = read_settings(
        {
            "profiles": dict(own_profile or {}),
            "backends": {"b": {**ENTRIES[kind], "base_url": base_url or f"demo:{kind}", **(entry or {})}},
            "models": {"m": {"backend": "b", "name": model or MODELS.get(kind, f"demo-{kind}")}},
        }
    )
    async with DemoBackends() as demo_backends, Transport(2**26, 10_000) as transport:
        backends = Backends(settings)
        await backends.start(demo_backends)
        backend = backends.known("b")
        assert backend is not None
        return await examine_backend(settings, backend, "", transport, probes or chosen(slow, only), _begin)


def _begin(probe: Probe) -> None:
    pass


def findings(section: Section) -> dict[str, Finding]:
    """Returns the findings by their ids."""
    return {one.id: one.finding for one in section.findings}


def turned(before: Section, after: Section) -> dict[str, str]:
    """Returns the verdicts of the findings that differ from those before. A remark is told apart from a plain ok, and
    from one about another rule."""
    known = {one.id: _verdict(one) for one in before.findings}
    return {one.id: _verdict(one) for one in after.findings if _verdict(one) != known[one.id]}


def _verdict(one: Checked) -> str:
    return f"remark {one.finding.rule}".rstrip() if one.finding.remark else one.finding.verdict
