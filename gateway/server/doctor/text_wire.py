"""Compares the calls that a model of a local server makes over chat completions with those over the server's text wire,
where the gateway describes the tools in the prompt and the server holds a forced call to their schemas.
"""

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from gateway.core.conversation import Json
from gateway.core.errors import BackendTimeout, SettingsError
from gateway.diagnostics.doctor.finding import Checked, Finding, Suggestion, ok, skipped, todo, untold
from gateway.diagnostics.doctor.question import Question
from gateway.diagnostics.doctor.requests import CHAT, ONE
from gateway.diagnostics.doctor.tool_probes import NAMED, REQUIRED
from gateway.discovery.identify import REMOTE_S, identify
from gateway.server.access.request_checks import is_loopback
from gateway.server.doctor.live_backend import LiveBackend
from gateway.server.upstream.backends import Backend
from gateway.server.upstream.transport import Transport
from gateway.settings import BackendSettings, ModelSettings, Settings, read_settings
from gateway.settings.model_names import exact_names

# Each question, and the tool of which a call is wanted.
_ASKED: Final[Sequence[tuple[Question, str]]] = ((ONE, "get_weather"), (REQUIRED, "get_weather"), (NAMED, "get_time"))
# What a question about calls is asked by; one of them failed.
_OF_CALLS: Final = frozenset({"D231", "D238", "D239"})
_NAME: Final = "text wire"
_ID: Final = "D268"


class Compared:
    """The finding, and the keys to set: a backend of the text wire beside the present one, and the model on it."""

    def __init__(self, finding: Finding, suggestions: tuple[Suggestion, ...] = ()) -> None:
        self.checked = Checked(_ID, _NAME, finding)
        self.suggestions = suggestions


async def compare_text_wire(
    live: LiveBackend, name: str, model: str, route: ModelSettings, transport: Transport, findings: Sequence[Checked]
) -> Compared | None:
    """Asks for three calls over both wires, of a backend and a model by their names in the settings. None: no call
    failed, or the backend is no local server of chat completions whose text wire is known and that needs no
    credential."""
    if not any(one.id in _OF_CALLS and one.finding.verdict == "todo" for one in findings):
        return None
    return await _compared(live, name, model, route, transport)


async def wire_suggestions(settings: Settings, backend: Backend, transport: Transport) -> Compared | None:
    """Compares the wires for the first model of a backend in the settings. None: as above, or it makes all calls over
    the present one."""
    names = (one for one in exact_names(settings.models) if settings.models[one].backend == backend.name)
    model = next(names, None)
    if model is None or await text_entry(backend.settings) is None:
        return None
    route = settings.models[model].on(backend.adapter.capabilities.native)
    live = LiveBackend(transport, backend, route, route.name or model)
    if await _calls(live) == len(_ASKED):
        return None
    return await _compared(live, backend.name, model, route, transport)


async def _compared(
    live: LiveBackend, name: str, model: str, route: ModelSettings, transport: Transport
) -> Compared | None:
    if (entry := await text_entry(live.settings)) is None:
        return None
    try:
        settings = read_settings({"backends": {name: entry}}).backends[name]
        backend = Backend(name, settings, 2**20)
    except SettingsError as error:
        return Compared(skipped(error.message))
    other = LiveBackend(transport, backend, route.on(backend.adapter.capabilities.native), live.model)
    present, text = await _calls(live), await _calls(other)
    if present is None or text is None:
        return Compared(untold("the calls of the two wires cannot be compared"))
    counts = f"{present} of {len(_ASKED)} calls over chat completions, {text} over the text wire"
    if text <= present:
        return Compared(ok(counts))
    new = f"{name}-text"
    keys = (Suggestion(("backends", new), entry), Suggestion(("models", model or live.model, "backend"), new))
    return Compared(todo(counts, "see the suggestion, and docs/text-backends.md"), keys)


async def text_entry(settings: BackendSettings) -> dict[str, Json] | None:
    """Returns the entry of the text wire of the server behind a backend; None where it has none that is known."""
    parts = urlsplit(settings.base_url)
    if settings.adapter != CHAT or not is_loopback(parts.hostname or "") or settings.api_key_env or settings.headers:
        return None
    server = await identify(f"{parts.scheme}://{parts.netloc}", REMOTE_S, REMOTE_S)
    if server is None or server.kind is None or server.kind.text_wire is None or server.locked:
        return None
    wire = server.kind.text_wire
    # It closes the connection after each streamed response, without a word.
    headers: dict[str, Json] = {"headers": {"connection": "close"}} if wire == "llama_cpp" else {}
    address = settings.base_url if wire == "vllm" else server.url
    return {"adapter": "text", "wire": wire, "base_url": address, **headers}


async def _calls(live: LiveBackend) -> int | None:
    """Returns how many of the wanted calls are made; None where a question was not answered in time."""
    answers = [(await live.ask(question), tool) for question, tool in _ASKED]
    if any(isinstance(answer.error, BackendTimeout) for answer, _ in answers):
        return None
    return sum(answer.error is None and [call.name for call in answer.calls][:1] == [tool] for answer, tool in answers)
