"""Serves the requests whose history holds a compaction of the gateway, and those that ask for one."""

import asyncio
import math

import msgspec

from gateway.core.conversation import Conversation
from gateway.core.events import Finish
from gateway.core.notices import Notice
from gateway.dialect import AskedCompaction, CompactingDialect
from gateway.providers.profile import NEUTRAL
from gateway.providers.registry import provider_of
from gateway.server.api.gateway_state import GatewayState
from gateway.server.api.served_request import Answer, Begun, ServedRequest
from gateway.server.summaries.opened_history import Opened, is_due
from gateway.server.upstream.backends import Backend
from gateway.server.upstream.deadlines import total_timeout
from gateway.settings import ModelSettings


async def serve_compacting(state: GatewayState, served: ServedRequest, answer: Answer) -> None:
    """Opens the compaction that the history holds, and makes the one that is asked for, unless the backend does that
    itself; then answers. Raises InvalidRequest for one that cannot be opened."""
    request = served.request
    # The body has arrived; what is done now has limits of its own.
    served.deadlines.expect(math.inf, total_timeout)
    opened = Opened(request.conversation)
    if request.compacted:
        opened = await state.opened(served.context.key, request.conversation)
        request = msgspec.structs.replace(request, conversation=opened.conversation)
        served = served._replace(request=request)
    asked = request.compacts
    compacting = state.dialects.extensions[served.dialect.name].compacting
    if asked is None or compacting is None or compacts_itself(request.conversation, served.route, served.backend):
        await answer(served, opened.conversation, opened.notices, None)
    elif asked.above is None:
        told = (*opened.notices, *_not_sent(served))
        await answer(served, compacting.without_request(opened.conversation), told, None)
    elif not asked.above or await asyncio.to_thread(is_due, opened, asked.above):
        await _Made(state, served, asked, compacting).serve(opened, answer)
    else:
        await answer(served, compacting.without_request(opened.conversation), opened.notices, None)


def without_request(
    state: GatewayState, conversation: Conversation, route: ModelSettings, backend: Backend
) -> Conversation:
    """Returns the conversation without what asks for a compaction, unless its backend makes one itself."""
    found = state.dialects.extensions.get(conversation.dialect)
    if found is None or found.compacting is None or compacts_itself(conversation, route, backend):
        return conversation
    return found.compacting.without_request(conversation)


def compacts_itself(conversation: Conversation, route: ModelSettings, backend: Backend) -> bool:
    """Returns whether a backend of the client's own API is known to compact histories: by its profile, or where it has
    none by the host of its address."""
    capabilities = backend.adapter.capabilities
    if capabilities.passthrough != conversation.dialect:
        return False
    if route.policy.profile != NEUTRAL:
        return route.policy.profile in capabilities.compacts
    provider = provider_of(backend.settings.base_url)
    return provider is not None and any(profile in capabilities.compacts for profile in provider.profiles.values())


def _not_sent(served: ServedRequest) -> tuple[Notice, ...]:
    """Returns the notice that a backend of the client's own API does not get what asks for a compaction. Of one of
    another API the decoder has told that."""
    if served.backend.adapter.capabilities.passthrough != served.dialect.name:
        return ()
    detail = "context_management asks for a compaction, which the backend is not known to make"
    return (Notice("encode", "dropped", "FIELD_NOT_SENT", detail, level="info"),)


class _Made(msgspec.Struct, frozen=True):
    """A compaction that is made for a request."""

    state: GatewayState
    served: ServedRequest
    asked: AskedCompaction
    compacting: CompactingDialect

    async def serve(self, opened: Opened, answer: Answer) -> None:
        """Makes the compaction, and sends it: alone, or before the answer of the backend."""
        state, served, request = self.state, self.served, self.served.request
        context = served.context
        asked = state.compaction_request(context, served.model, opened)
        covered = await state.compactions.covered(asked)
        # What an observer has noticed of the request as it came; the response begins with it.
        context.note(context.notices)
        with served.responder(state.settings.server) as writer:
            # The work has a deadline of its own, and there is a compaction whatever becomes of it.
            if request.conversation.stream:
                # What keeps the client alive is then an event of its API: not every client counts anything else.
                await writer.send(self.compacting.compaction_opening(request))
            # Of the client, which is not waited for meanwhile.
            served.deadlines.expect(math.inf, total_timeout)
            made = await state.compactions.compact(asked, covered)
            events = self.compacting.compaction_events(request, made.sealed, made.summary.text)
            told = (*opened.notices, *made.notices)
            if not self.asked.alone:
                going_on = self.compacting.without_request(made.conversation)
                await answer(served, going_on, told, Begun(writer, events))
                return
            notices = (*request.conversation.notices, *told, *self._unstored())
            # Counted already: as tokens of summaries, of the backend whose model wrote this one.
            usage = made.usage
            context.prompt_tokens, context.completion_tokens = usage.prompt_tokens or 0, usage.completion_tokens or 0
            await writer.finish([*notices, *events, Finish("stop"), usage])
            context.conclude(200)

    def _unstored(self) -> tuple[Notice, ...]:
        """Returns the notice that the answer is not stored, although the client wants it to be."""
        if self.served.request.to_store is None:
            return ()
        detail = "a compaction is not stored: send its item with the next request, in the place of the history"
        return (Notice("state", "ignored", "RESPONSE_NOT_STORED", detail),)
