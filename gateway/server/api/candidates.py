"""Answers a request whose model has candidates: asks another model where one fails before its answer has begun, and
chooses among those that would answer alike (docs/candidates.md)."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from time import monotonic
from typing import Final

import msgspec

from gateway.core.backend_status import NO_RETRY
from gateway.core.conversation import Conversation
from gateway.core.errors import GatewayError, InvalidRequest
from gateway.core.events import Event, UsageReport
from gateway.core.notices import Notice
from gateway.core.session import read_session
from gateway.exchange.candidates import (
    MOST_TRIES,
    TROUBLES,
    Cause,
    Considered,
    Loss,
    Model,
    bound_to_account,
    by_least_loss,
    chosen_by_weight,
    consider,
    error_to_report,
    longer_than,
    switch_cause,
)
from gateway.inspector.summary import conversation_session
from gateway.server.api.compacting import compacts_itself
from gateway.server.api.gateway_state import GatewayState
from gateway.server.api.held_responder import HeldResponder
from gateway.server.api.responders import Responder, StoredAnswer
from gateway.server.api.served_request import Answer, Begun, ServedRequest
from gateway.server.telemetry.request_context import FailedTry, RequestContext
from gateway.server.upstream.backends import Backend
from gateway.server.upstream.circuit import Circuit
from gateway.settings import ModelSettings

# Returns where an answer is stored; the notices say where it cannot be.
Kept = Callable[[ServedRequest, list[Notice]], StoredAnswer | None]

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
            tries = _Tries(self._state, self._answer, served._replace(request=request), conversation, done, writer)
            await tries.run()


class _Tries:
    """The tries of one request. `_models` are all that its key allows, the one that the client has named first."""

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
        self._context: RequestContext = served.context
        self._conversation = conversation
        self._told = told
        self._writer = writer
        self._notices, self._changes = self._context.notices, self._context.changes
        self._routes: dict[str, tuple[ModelSettings, Backend]] = {served.model: (served.route, served.backend)}
        self._models = self._allowed()
        self._considered: list[Considered] | None = None
        self._tried: list[str] = []
        self._failed: list[FailedTry] = []
        self._cause: Cause | None = None

    async def run(self) -> None:
        """Sends the answer. Raises GatewayError where no model has begun one."""
        model = await self._first()
        while (failed := await self._try(model)) is not None:
            self._failed.append(failed)
            following = await self._following(model, failed.error)
            if following is None:
                raise self._reported()
            self._context.fail_try(failed)
            assert self._cause is not None  # whatever is followed has one
            model = self._switch(model, *following, self._cause)

    def _allowed(self) -> list[Model]:
        """Returns the models that may answer, in the order of the settings."""
        served, key = self._served, self._context.key
        shares = any(one.weight is not None for one in served.route.candidates)
        models = [_model(served.model, served.route, served.backend, 1.0 if shares else None)]
        weights = {one.model: one.weight for one in served.route.candidates}
        if served.route.longer is not None:
            weights.setdefault(served.route.longer, None)
        for name, weight in weights.items():
            # A reload may have removed it.
            found = self._state.backends.find(name)
            if found is not None and self._state.admission.allows(key, name):
                route, backend = found
                # What is recorded of the request must say the name that was sent, which is none of the client's.
                route = msgspec.structs.replace(route, name=route.name or name)
                self._routes[name] = route, backend
                models.append(_model(name, route, backend, weight))
        return models

    async def _first(self) -> Model:
        """Returns the model that is asked first, which need not be the one that the client has named."""
        named, longer = self._models[0], self._served.route.longer
        if named.weight is not None or (longer is not None and named.window is not None):
            considered = await self._consider()
            loss = considered[0].loss
            if loss is None:
                # It refuses the request, and says why.
                return named
            if loss.over_window and longer is not None:
                able = self._able(one for one in considered if one.model.name == longer)
                if able and not able[0][0].over_window:
                    return self._switch(named, *able[0], "context_length")
            weighed = chosen_by_weight(filter(self._lets_through, considered), self._session())
            if weighed is not None and weighed[1] != named:
                return self._switch(named, *weighed, "weight")
            if weighed is not None:
                return named
        if not self._circuit(named).lets_through:
            others = self._able(self._candidates(await self._consider()), besides=[named.name])
            if others:
                return self._switch(named, *others[0], "circuit_open")
        return named

    async def _try(self, model: Model) -> FailedTry | None:
        """Asks a model. Returns how it failed before its answer had begun; None: its answer is sent."""
        context, deadlines = self._context, self._served.deadlines
        route, backend = self._routes[model.name]
        circuit = self._circuit(model)
        circuit.ask()
        self._tried.append(model.name)

        def begin() -> None:
            circuit.answer()
            self._state.metrics.candidate_tries.inc(backend.name, "answered")

        held = HeldResponder(self._writer, context, begin, whole=not self._conversation.stream)
        served = self._served._replace(model=model.name, route=route, backend=backend)
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
        cause = switch_cause(error)
        if cause in TROUBLES:
            circuit.fail()
        self._state.metrics.candidate_tries.inc(backend.name, cause or "refused")
        self._give_up(held.drop())
        return FailedTry(error, model.name, context.backend, context.phase, context.backend_status, monotonic())

    def _give_up(self, events: Sequence[Event]) -> None:
        """Records what a try has told and cost although its answer is not sent."""
        context = self._context
        # What the next try tells as well is told once.
        context.note([event for event in events if isinstance(event, Notice) and event not in self._told])
        for event in events:
            if isinstance(event, UsageReport):
                for observe in context.observers.usage:
                    observe(context, event)

    async def _following(self, model: Model, error: GatewayError) -> tuple[Loss, Model] | None:
        """Returns the model that is asked next; None: the request has failed."""
        # What another model refuses says nothing of the one before it.
        refused = isinstance(error, InvalidRequest) and len(self._tried) > 1
        self._cause = cause = self._cause if refused else switch_cause(error)
        if cause is None or len(self._tried) >= MOST_TRIES or monotonic() >= self._served.deadlines.total_due:
            return None
        considered = await self._consider()
        if cause == "context_length":
            left = longer_than(considered, model.window, self._served.route.longer)
        else:
            left = self._candidates(considered)
        if cause == "connect":
            left = [one for one in left if one.model.backend != model.backend]
        return next(iter(self._able(left, besides=self._tried)), None)

    def _candidates(self, considered: Sequence[Considered]) -> list[Considered]:
        """Returns these models without one that is there for long requests alone."""
        names = {self._served.model, *[one.model for one in self._served.route.candidates]}
        return [one for one in considered if one.model.name in names]

    def _able(self, considered: Iterable[Considered], besides: Sequence[str] = ()) -> list[tuple[Loss, Model]]:
        """Returns the models of these that may be asked now, the one that loses least first."""
        left = (one for one in considered if one.model.name not in besides)
        return by_least_loss(filter(self._lets_through, left))

    def _lets_through(self, considered: Considered) -> bool:
        return self._circuit(considered.model).lets_through

    def _circuit(self, model: Model) -> Circuit:
        return self._state.circuits.of(model.backend)

    async def _consider(self) -> list[Considered]:
        """Returns the plan of each model; they are made once."""
        if self._considered is None:
            served = self._served
            self._considered = await asyncio.to_thread(self._plans) if served.large else self._plans()
        return self._considered

    def _plans(self) -> list[Considered]:
        bound, account = bound_to_account(self._conversation), self._models[0].label
        return [consider(model, self._conversation, account, bound) for model in self._models]

    def _session(self) -> bytes:
        """Returns a name of the conversation, the same for each of its requests."""
        context = self._context
        named = read_session(context.headers, self._served.body).session
        session = named or conversation_session(self._conversation.turns)
        said = ("", "") if session is None else (session.id, session.agent)
        return "\0".join((context.key, *said)).encode("utf-8", "replace")

    def _switch(self, before: Model, loss: Loss, model: Model, cause: Cause) -> Model:
        """Lets another model than the one before answer. Returns it."""
        context = self._context
        self._state.metrics.model_switches.inc(before.backend, cause)
        self._told = [*self._told, _notice(before, model, loss, cause)]
        context.notices, context.changes = self._notices, self._changes
        context.route_to(*self._routes[model.name])
        return model

    def _reported(self) -> GatewayError:
        """Returns the error of the tries that the client gets; the request's context is that of its try."""
        error = error_to_report([one.error for one in self._failed])
        *_, last = self._failed
        if error is not last.error:
            self._context.fail_try(last)
            of = next(one for one in self._failed if one.error is error)
            self._context.backend, self._context.phase, self._context.backend_status = of.backend, of.phase, of.status
        self._context.note(self._told)
        return error


def _model(name: str, route: ModelSettings, backend: Backend, weight: float | None) -> Model:
    return Model(
        name,
        route.name or name,
        backend.name,
        backend.adapter,
        route.policy,
        backend.state_label,
        route.context_length,
        weight,
    )


def _notice(before: Model, model: Model, loss: Loss, cause: Cause) -> Notice:
    lost = f"which loses {', '.join(loss.names)}" if loss.names else "which breaks no requirement"
    detail = f"{before.name!r} was to answer: {_WORDS[cause]}. {model.name!r} is asked, {lost} ({loss.losses} losses)"
    return Notice("backend", "changed", "MODEL_SWITCHED", detail, level="info" if cause == "weight" else "warning")
