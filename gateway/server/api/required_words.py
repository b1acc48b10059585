"""Holds a request to the words of what it may not lose: refuses one that would, and ends an answer that has.

The words are those of the header `x-dragoman-require`, of the client's key and of the model's entry, all together.
`gateway.core.requirements` says which notice breaks which word.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from gateway.core.backend_status import NO_RETRY
from gateway.core.conversation import Json
from gateway.core.errors import InvalidRequest, RequirementNotMet
from gateway.core.events import Event
from gateway.core.field_paths import FieldPaths
from gateway.core.notices import Notice
from gateway.core.requirements import REQUIREMENTS, Requirement, broken
from gateway.core.rules import LISTED
from gateway.diagnostics.routed_request import RoutedRequest
from gateway.dialect import AskedCompaction
from gateway.exchange import Exchange
from gateway.server.access.request_checks import REQUIRE
from gateway.server.api.gateway_state import GatewayState
from gateway.server.api.responders import Responder
from gateway.server.telemetry.request_context import RequestContext

if TYPE_CHECKING:
    from gateway.server.api.served_request import ServedRequest

_SHOWN: Final = 40


def required_words(context: RequestContext, *settings: Iterable[Requirement]) -> "RequiredWords | None":
    """Returns the words of a request's header and of these settings; None: there are none. Raises InvalidRequest for an
    unknown word. The header is a list of RFC 9110, section 5.6.1: empty elements say nothing. Case does not matter."""
    words = {word for required in settings for word in required}
    for element in context.headers.get(REQUIRE, b"").decode("latin-1").split(","):
        if word := element.strip(" \t").lower():
            words.add(_known(word))
    return RequiredWords(frozenset(words), context.paths) if words else None


def _known(written: str) -> Requirement:
    for word in REQUIREMENTS:
        if word == written:
            return word
    name = REQUIRE.decode()
    message = f"The header {name} has the unknown word {written[:_SHOWN]!r}. It may have {', '.join(REQUIREMENTS)}."
    raise InvalidRequest(message, param=name)


class _Loss(NamedTuple):
    word: Requirement
    notice: Notice


class RequiredWords(NamedTuple):
    """What one request may not lose. `paths` are those of its client's dialect."""

    words: frozenset[Requirement]
    paths: FieldPaths

    def breaks(self, notice: Notice) -> bool:
        """Returns whether a notice tells of a loss that the request may not have."""
        return not self.words.isdisjoint(broken(notice))

    def check(self, notices: Iterable[Notice]) -> None:
        """Raises RequirementNotMet for the losses of a request that is not sent yet."""
        losses = [_Loss(word, notice) for notice in notices for word in broken(notice) if word in self.words]
        if losses:
            raise self._refusal("The request would lose", "Nothing was sent.", losses)

    async def check_request(self, state: GatewayState, served: "ServedRequest") -> None:
        """Does the same before a description of a picture or a compaction is asked for, which cost a request of their
        own: the whole request is planned without them. Any other request is planned but once."""
        request, context = served.request, served.context
        planned: Sequence[Notice] = ()
        made = _compaction(served)
        if made is not None and made.alone:
            planned = request.conversation.notices
        elif made is not None or state.media is not None:
            planned = await self._planned(state, served)
        if any(map(self.breaks, planned)):
            context.notices = [*context.notices, *planned]
            context.note(context.notices)
            self.check(planned)

    async def _planned(self, state: GatewayState, served: "ServedRequest") -> Sequence[Notice]:
        """Returns the notices of a request as it would be sent."""
        # Loaded with the first explanation.
        from gateway.server.api.state_explanation import remembered

        asked, route, backend = served.request.conversation, served.route, served.backend
        sent = msgspec.structs.replace(asked, model=route.name or served.model)
        routed = RoutedRequest(asked.model, sent, route.policy, backend.adapter, backend.name)
        found = await remembered(state, served.context, routed)
        plan = (found.routed.conversation, route.policy, found.summary, backend.state_label, route.context_length)
        exchange = await asyncio.to_thread(Exchange, backend.adapter, *plan)
        return [*found.notices, *exchange.notices]

    def responder(self, responder: Responder) -> "RequiringResponder":
        """Returns what ends an answer that has lost something."""
        return RequiringResponder(responder, self)

    def lost(self, notice: Notice) -> RequirementNotMet:
        """Returns the error that ends an answer with this notice."""
        losses = [_Loss(word, notice) for word in broken(notice) if word in self.words]
        return self._refusal("The answer has lost", "It ends here.", losses)

    def _refusal(self, said: str, consequence: str, losses: Sequence[_Loss]) -> RequirementNotMet:
        word, notice = losses[0]
        place = None if notice.index is None else self.paths.turn.format(turn=notice.index)
        where = "" if place is None else f" {place}:"
        call = f" (tool call id {notice.tool_call_id!r})" if notice.tool_call_id else ""
        others = "" if len(losses) == 1 else f" It is the first of {len(losses)} losses."
        message = (
            f"{said} {word}, which it requires:{where} {notice.rule}{call}: {notice.detail.rstrip('.')}."
            f"{others} {consequence} Ask another model, send it without that, or do not require {word}."
        )
        listed: list[Json] = [_entry(loss) for loss in losses[:LISTED]]
        extra: dict[str, Json] = {**_entry(losses[0]), "losses": listed, "loss_count": len(losses)}
        return RequirementNotMet(message, param=place, headers=NO_RETRY, extra=extra)


def _compaction(served: "ServedRequest") -> AskedCompaction | None:
    """Returns the compaction that is asked for; None: none, or its backend makes it itself and gets all that its own
    API has."""
    if (asked := served.request.compacts) is None:
        return None
    # Loaded with the first compaction.
    from gateway.server.api.compacting import compacts_itself

    return None if compacts_itself(served.request.conversation, served.route, served.backend) else asked


def _entry(loss: _Loss) -> dict[str, Json]:
    notice = loss.notice
    return {
        "requirement": loss.word,
        "rule": notice.rule,
        "index": notice.index,
        "tool_call_id": notice.tool_call_id,
        "detail": notice.detail,
    }


class RequiringResponder:
    """Sends the events of an answer by another responder, up to the notice of a loss that the request may not have."""

    def __init__(self, responder: Responder, required: RequiredWords) -> None:
        self._responder = responder
        self._required = required

    @property
    def opening(self) -> bool:
        return self._responder.opening

    async def send(self, events: Sequence[Event]) -> None:
        """Raises RequirementNotMet behind such a notice, which is sent."""
        await self._check(events)
        await self._responder.send(events)

    async def finish(self, events: Sequence[Event]) -> None:
        """Raises RequirementNotMet behind such a notice, which is sent."""
        await self._check(events)
        await self._responder.finish(events)

    async def rescue(self, events: Sequence[Event], *, opens: bool) -> None:
        await self._responder.rescue(events, opens=opens)

    async def _check(self, events: Sequence[Event]) -> None:
        if Notice not in map(type, events):
            return
        for at, event in enumerate(events):
            if type(event) is Notice and self._required.breaks(event):
                await self._responder.send(events[: at + 1])
                raise self._required.lost(event)
