"""Answers a request whose model has candidates: asks another model where one fails before its answer has begun
(docs/candidates.md)."""

import asyncio
import math
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Final, TypeAlias

import msgspec

from gateway.core.backend_status import NO_RETRY
from gateway.core.conversation import Conversation
from gateway.core.errors import BackendError, GatewayError, InvalidRequest
from gateway.core.events import Event, UsageReport
from gateway.core.notices import Notice
from gateway.exchange.candidates import MOST_TRIES, TROUBLES, Cause, Model, error_to_report, switch_cause
from gateway.server.api.candidate_models import CandidateModels, Choice
from gateway.server.api.compacting import compacts_itself
from gateway.server.api.gateway_state import GatewayState
from gateway.server.api.held_responder import HeldResponder
from gateway.server.api.responders import Responder, StoredAnswer
from gateway.server.api.served_request import Answer, Begun, ServedRequest
from gateway.server.telemetry.request_context import FailedTry
from gateway.server.upstream.deadlines import total_timeout

# Returns where an answer is stored; the notices say where it cannot be.
Kept: TypeAlias = Callable[[ServedRequest, list[Notice]], StoredAnswer | None]

_WORDS: Final[dict[Cause, str]] = {
    "connect": "its backend could not be reached",
    "timeout": "its backend did not begin to answer in time",
    "rate_limit": "its backend accepts no more requests at the moment",
    "overloaded": "its backend is overloaded",
    "server_error": "its backend failed",
    "context_length": "the request is too long for it",
    "circuit_open": "its backend has failed several times in a row",
    "weight": "both would answer alike, and share the conversations",
}


class Candidates:
    """Asks for the answers of models that have candidates. `answer` asks one model, and `kept` says where an answer is
    stored."""

    def __init__(self, state: GatewayState, answer: Answer, kept: Kept) -> None:
        self._state = state
        self._answer = answer
        self._kept = kept

    async def answer(
        self, served: ServedRequest, conversation: Conversation, told: Sequence[Notice], begun: Begun | None
    ) -> None:
        """Sends the answer of the model that the client has named, or of one of its candidates. An answer that has
        begun, and one that is a compaction of the backend, are that model's own."""
        compacts = served.request.compacts is not None and compacts_itself(conversation, served.route, served.backend)
        if begun is not None or compacts:
            await self._answer(served, conversation, told, begun)
            return
        context = served.context
        # What an observer has noticed of the request as it came; the response begins with it.
        context.note(context.notices)
        done = [*told]
        kept = self._kept(served, done)
        with served.responder(self._state.settings.server, kept) as writer:
            # Each try would say again where the answer is stored.
            request = msgspec.structs.replace(served.request, to_store=None)
            served = served._replace(request=request, texts={})
            await _Tries(self._state, self._answer, served, conversation, done, writer).run()


class _Tries:
    """The tries of one request, whose answer goes to one writer. `told` is what each try tells first."""

    def __init__(
        self,
        state: GatewayState,
        answer: Answer,
        served: ServedRequest,
        conversation: Conversation,
        told: list[Notice],
        writer: Responder,
    ) -> None:
        self._state = state
        self._answer = answer
        self._served = served
        self._conversation = conversation
        self._told = told
        self._writer = writer
        self._models = CandidateModels(state, served, conversation)
        context = self._context = served.context
        # What was noticed before the first try; the notices of a try are those of its plan.
        self._notices, self._changes = context.notices, {**context.changes}
        self._failed: list[FailedTry] = []

    async def run(self) -> None:
        """Sends the answer. Raises GatewayError where no model has begun one."""
        model, choice = self._models.named, await self._models.first()
        if choice is not None:
            model = self._switch(model, choice)
        while (failed := await self._try(model)) is not None:
            self._failed.append(failed)
            choice = await self._following(model, choice)
            if choice is None:
                raise self._reported()
            self._context.fail_try(failed)
            model = self._switch(model, choice)

    async def _following(self, model: Model, before: Choice | None) -> Choice | None:
        """Returns the model that is asked behind the last one, which has failed; None: the request has."""
        error = self._failed[-1].error
        # What another model refuses before it is asked says nothing of the one before it.
        refused = before is not None and isinstance(error, InvalidRequest) and not self._context.is_sent
        cause = before.cause if before is not None and refused else switch_cause(error)
        late = monotonic() >= self._served.deadlines.total_due
        if cause is None or late or len(self._failed) >= MOST_TRIES:
            return None
        unreached = {one.backend for one in self._failed if switch_cause(one.error) == "connect"}
        return await self._models.following(model, cause, [one.model for one in self._failed], unreached)

    async def _try(self, model: Model) -> FailedTry | None:
        """Asks a model. Returns how it failed before its answer had begun; None: its answer is sent."""
        context, deadlines = self._context, self._served.deadlines
        route, backend = self._models.route(model)
        circuit = self._models.circuit(model)
        circuit.ask()

        def begin() -> None:
            circuit.answer()
            self._state.metrics.candidate_tries.inc(model.backend, "answered")

        held = HeldResponder(self._writer, context, begin, whole=not self._conversation.stream)
        required = self._models.required(model)
        served = self._served._replace(model=model.name, route=route, backend=backend, required=required)
        try:
            await self._answer(served, self._conversation, self._told, Begun(held, ()))
        except asyncio.CancelledError:
            error: GatewayError | None = None if held.begun else deadlines.resume()
            if error is None:
                raise
            if context.is_sent:
                # The backend may still work on the request: a second one would cost as much again.
                error.headers = NO_RETRY
        except GatewayError as failure:
            # An interruption comes with the next wait.
            if held.begun or deadlines.reason is not None:
                raise
            error = failure
        else:
            return None
        # The wait of this try is over; the time of the request is not.
        deadlines.expect(math.inf, total_timeout)
        cause = switch_cause(error)
        # A backend that has no place left was not asked.
        if cause in TROUBLES and isinstance(error, BackendError):
            circuit.fail()
        self._state.metrics.candidate_tries.inc(model.backend, cause or "refused")
        self._give_up(held.drop())
        return FailedTry(error, model.name, model.backend, context.phase, context.backend_status, monotonic())

    def _give_up(self, events: Sequence[Event]) -> None:
        """Records what a try has told and cost although its answer is not sent."""
        context = self._context
        # What the next try tells as well is told once.
        context.note([event for event in events if isinstance(event, Notice) and event not in self._told])
        for event in events:
            if isinstance(event, UsageReport):
                for observe in context.observers.usage:
                    observe(context, event)

    def _switch(self, before: Model, choice: Choice) -> Model:
        """Lets another model than the one before answer. Returns it."""
        context = self._context
        self._state.metrics.model_switches.inc(before.backend, choice.cause)
        self._told = [*self._told, _notice(before, choice)]
        context.notices, context.changes = self._notices, {**self._changes}
        context.route_to(*self._models.route(choice.model))
        return choice.model

    def _reported(self) -> GatewayError:
        """Returns the error of the tries that the client gets; the request's context is then that of its try."""
        context = self._context
        # That of the model that the client has named comes first, which may have been asked last.
        ordered = sorted(self._failed, key=lambda one: one.model != self._models.named.name)
        error = error_to_report([one.error for one in ordered])
        last = self._failed[-1]
        if error is not last.error:
            context.fail_try(last)
            of = next(one for one in self._failed if one.error is error)
            context.backend, context.phase, context.backend_status = of.backend, of.phase, of.status
        context.note(self._told)
        return error


def _notice(before: Model, choice: Choice) -> Notice:
    loss, cause = choice.loss, choice.cause
    lost = f"which loses {', '.join(loss.names)}" if loss.names else "which breaks no requirement"
    detail = (
        f"{before.name!r} was to answer: {_WORDS[cause]}. {choice.model.name!r} is asked, {lost} ({loss.losses} losses)"
    )
    return Notice("backend", "changed", "MODEL_SWITCHED", detail, level="info" if cause == "weight" else "warning")
