"""Explains a request of a recording: by the policy and the adapter that it was sent by, with what came of it."""

import msgspec

from gateway.core.errors import InvalidRequest
from gateway.core.policy import Policy
from gateway.diagnostics.explain_request import explain_routed
from gateway.diagnostics.explanation import Explanation
from gateway.diagnostics.routed_request import RoutedRequest
from gateway.dialects.document import Document, read_document
from gateway.recording.recording import Interaction, Recording
from gateway.recording.route import adapter_of, policy_of, request_head
from gateway.registry import load_dialect
from gateway.settings import Settings


def chosen_request(recording: Recording, request_id: str | None = None) -> Interaction:
    """Returns the request with this id; None: the last one that failed, else the last one. Raises InvalidRequest where
    there is none."""
    interactions = recording.interactions()
    if request_id is not None:
        found = next((one for one in interactions if one.request.id == request_id), None)
        if found is None:
            known = ", ".join(one.request.id for one in interactions)
            raise InvalidRequest(f"The recording has no request {request_id!r}; there are {known or 'none'}.")
        return found
    if not interactions:
        raise InvalidRequest("The recording has no request.")
    failed = [one for one in interactions if _failed(one)]
    return (failed or interactions)[-1]


def _failed(interaction: Interaction) -> bool:
    return interaction.end is not None and (interaction.end.status >= 400 or interaction.end.code != "")


def recorded_document(interaction: Interaction) -> Document:
    """Returns the request of the client. Raises InvalidRequest where the recording lacks its body."""
    if interaction.body is None:
        request = interaction.request
        raise InvalidRequest(f"The body of the request {request.id} is not in the recording: {request.absent}.")
    return read_document(interaction.body)


def explain_recorded(interaction: Interaction, settings: Settings | None = None) -> Explanation:
    """Explains the request as it was sent. `settings` are for an adapter that is not built in. Raises InvalidRequest
    for a request that cannot be read, and SettingsError for an adapter that must be named."""
    dialect = load_dialect(interaction.request.dialect)
    conversation = dialect.decode(recorded_document(interaction), request_head(interaction)).conversation
    route = interaction.route
    if route is None:
        return explain_routed(RoutedRequest(conversation.model, conversation, Policy()), dialect)
    sent = msgspec.structs.replace(conversation, model=route.name or conversation.model)
    routed = RoutedRequest(
        conversation.model,
        sent,
        policy_of(route),
        adapter_of(route, settings),
        route.backend,
        route.label or None,
        route.context_length,
    )
    return explain_routed(routed, dialect)


def recorded_outcome(interaction: Interaction, recording: Recording) -> str:
    """Returns one line: which request of the recording it is, and how it ended, in the words of its failure."""
    interactions = recording.interactions()
    number = next(at for at, one in enumerate(interactions, 1) if one.x == interaction.x)
    which = f"request {interaction.request.id}, {number} of {len(interactions)}"
    end = interaction.end
    if end is None:
        return f"{which}: its end is not in the recording"
    failure = "" if end.failure is None else f": {end.failure.message}"
    return f"{which}: {end.status} {end.code}".rstrip() + failure
