"""Makes the stages of a captured request again, when somebody looks at them: nothing between the bytes is captured."""

from typing import Any

import msgspec

from gateway.diagnostics.explain import Explanation, explain
from gateway.recording.offline_run import run_offline
from gateway.recording.outcome import Check, compare_to_recorded
from gateway.recording.recording import Interaction
from gateway.recording.route import adapter_of, policy_of
from gateway.registry import load_dialect
from gateway.settings import Settings


class ReadEvents(msgspec.Struct, frozen=True):
    """The events that one read of the backend's response became; `read` counts from 0, and is -1 for the end of the
    body."""

    read: int
    events: tuple[dict[str, Any], ...]  # Any: the fields of an event, as JSON


class Stages(msgspec.Struct, frozen=True):
    """The stages of one request. `request` has those up to what was sent (None: no backend was chosen), `events` those
    of the response, `chunks` what the client gets. `checks` compares them with what was captured: a difference is a
    defect of the gateway."""

    request: Explanation | None
    events: tuple[ReadEvents, ...]
    chunks: tuple[str, ...]
    checks: tuple[Check, ...]


def stages_of(interaction: Interaction, settings: Settings) -> Stages:
    """Returns the stages of one request. Raises RecordingError where its contents are not enough for that."""
    run = run_offline(interaction, settings)
    route = interaction.route
    request = None
    if run.conversation is not None and route is not None:
        conversation = msgspec.structs.replace(run.conversation, model=route.name or run.conversation.model)
        dialect = load_dialect(interaction.request.dialect)
        request = explain(conversation, policy_of(route), adapter_of(route, settings), route.backend, dialect)
    count = len(interaction.reads)
    events = tuple(
        ReadEvents(at if at < count else -1, tuple(_shown(event) for event in found))
        for at, found in enumerate(run.events)
        if found
    )
    chunks = tuple(data.decode("utf-8", "replace") for data in run.writes)
    return Stages(request, events, chunks, compare_to_recorded(interaction, run))


def _shown(event: msgspec.Struct) -> dict[str, Any]:
    return {"event": type(event).__name__, **msgspec.to_builtins(event)}
