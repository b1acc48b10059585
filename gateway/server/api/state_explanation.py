"""Explains what the gateway remembers of a request. Nothing is written or sent."""

from collections.abc import Sequence

import msgspec

from gateway.core.notices import Notice
from gateway.core.tokens import prompt_size
from gateway.diagnostics.explanation import StateExplanation
from gateway.diagnostics.routed_request import RoutedRequest
from gateway.history.prepare import Substitution
from gateway.server.api.gateway_state import GatewayState
from gateway.server.telemetry.request_context import RequestContext


class Remembered(msgspec.Struct, frozen=True):
    """The request with what a feature has put into it, and the notices of that; the summary that it would be sent with,
    and what is known besides."""

    routed: RoutedRequest
    notices: Sequence[Notice] = ()
    summary: Substitution | None = None
    state: StateExplanation | None = None


async def remembered(gateway_state: GatewayState, context: RequestContext, routed: RoutedRequest) -> Remembered:
    """Returns a request with all that is remembered of it, and the compactions in it opened. Raises InvalidRequest for
    one that cannot be."""
    notices: list[Notice] = []
    if any(turn.compaction for turn in routed.conversation.turns):
        opened = await gateway_state.opened(context.key, routed.conversation)
        routed = msgspec.structs.replace(routed, conversation=opened.conversation)
        notices += opened.notices
    if routed.adapter is None:
        return Remembered(routed, notices)
    name = gateway_state.backends.listed_name(routed.model)
    route, backend = gateway_state.backends.route(name)
    # The request may bring a policy of its own.
    route = msgspec.structs.replace(route, policy=routed.policy)
    # Loaded with the first explanation.
    from gateway.server.api.compacting import without_request

    conversation = without_request(gateway_state, routed.conversation, route, backend)
    media, features = gateway_state.media, gateway_state.features
    read = None if media is None else await media.begin(context, route, backend, conversation, large=True)
    if read is not None:
        conversation, told = await read.known()
        notices += told
    routed = msgspec.structs.replace(routed, conversation=conversation)
    if features is None:
        return Remembered(routed, notices)
    begun = features.begin(context, route, backend, routed.conversation, prompt_size(routed.conversation))
    if begun is not None:
        routed = msgspec.structs.replace(routed, conversation=await begun.recall(routed.conversation))
        notices += begun.notices
    if gateway_state.summaries is None or not route.compress.enabled:
        return Remembered(routed, notices)
    # Loaded with compression.
    from gateway.server.summaries.explain import explain_compression

    store = gateway_state.stores.of(context)
    summary, state = await explain_compression(gateway_state.summaries, store, routed, name, route, backend)
    return Remembered(routed, notices, summary, StateExplanation(state))
