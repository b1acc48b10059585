"""Knows the models that may answer one request: their routes, plans and circuits, and which of them is asked next."""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

import msgspec

from gateway.core.conversation import Conversation
from gateway.core.requirements import Requirement
from gateway.core.session import read_session
from gateway.exchange.candidates import (
    Cause,
    Considered,
    Loss,
    Model,
    bound_to_account,
    by_least_loss,
    chosen_by_weight,
    consider,
    longer_than,
)
from gateway.inspector.summary import conversation_session
from gateway.server.api.gateway_state import GatewayState
from gateway.server.api.required_words import RequiredWords
from gateway.server.api.served_request import ServedRequest
from gateway.server.upstream.backends import Backend
from gateway.server.upstream.circuit import Circuit
from gateway.settings import ModelSettings


class Choice(NamedTuple):
    """The model that is asked in the place of another one, what its plan loses, and why."""

    model: Model
    loss: Loss
    cause: Cause


class CandidateModels:
    """The models that may answer a request, all of which its key allows. `named` is that of the client."""

    def __init__(self, state: GatewayState, served: ServedRequest, conversation: Conversation) -> None:
        self._state = state
        self._served = served
        self._conversation = conversation
        self._routes: dict[str, tuple[ModelSettings, Backend]] = {}
        shares = any(one.weight is not None for one in served.route.candidates)
        self.named = self._model(served.model, served.route, served.backend, 1.0 if shares else None)
        self._models = [self.named, *self._others()]
        self._considered: list[Considered] | None = None

    def route(self, model: Model) -> tuple[ModelSettings, Backend]:
        """Returns the entry and the backend of a model."""
        return self._routes[model.name]

    def required(self, model: Model) -> RequiredWords | None:
        """Returns what the request may not lose, with what no request to this model may; None: nothing."""
        required, own = self._served.required, self._routes[model.name][0].require
        if required is None:
            return RequiredWords(frozenset(own), self._served.context.paths) if own else None
        return required._replace(words=required.words.union(own))

    def circuit(self, model: Model) -> Circuit:
        """Returns the circuit of the backend of a model."""
        return self._state.circuits.of(model.backend)

    async def first(self) -> Choice | None:
        """Returns the model that is asked first; None: the one that the client has named."""
        named, longer = self.named, self._served.route.longer
        if named.weight is not None or (longer is not None and named.window is not None):
            considered = await self._consider()
            if (loss := considered[0].loss) is None:
                # It refuses the request, and says why.
                return None
            if loss.over_window:
                able = self._able(one for one in considered if one.model.name == longer)
                if able and not able[0][0].over_window:
                    return _choice(able[0], "context_length")
            alike = [one for one in considered if one.loss == loss and self._lets_through(one)]
            weighed = chosen_by_weight(alike, self._session())
            if weighed is not None:
                cause: Cause = "weight" if self.circuit(named).lets_through else "circuit_open"
                return None if weighed[1] == named else _choice(weighed, cause)
        if self.circuit(named).lets_through:
            return None
        candidates = self._candidates(await self._consider())
        others = self._able(one for one in candidates if one.model.name != named.name)
        return _choice(others[0], "circuit_open") if others else None

    async def following(
        self, failed: Model, cause: Cause, tried: Sequence[str], unreached: Collection[str]
    ) -> Choice | None:
        """Returns the model that is asked behind one that has failed; `tried` are the names of all that were asked, and
        `unreached` the backends that could not be reached. None: there is no other."""
        considered = await self._consider()
        if cause == "context_length":
            left = longer_than(considered, failed.window, self._served.route.longer)
        else:
            left = self._candidates(considered)
        left = [one for one in left if one.model.backend not in unreached and one.model.name not in tried]
        # The model of the client is asked all the same where no other is left.
        able = self._able(left) or by_least_loss(one for one in left if one.model.name == self.named.name)
        return _choice(able[0], cause) if able else None

    def _others(self) -> Iterable[Model]:
        """Yields the other models in the order of the settings."""
        served = self._served
        weights = {one.model: one.weight for one in served.route.candidates}
        if served.route.longer is not None:
            weights.setdefault(served.route.longer, None)
        for name, weight in weights.items():
            # A reload may have removed it.
            found = self._state.backends.find(name)
            if found is not None and self._state.admission.allows(served.context.key, name):
                route, backend = found
                # What is recorded of the request must say the name that was sent, which is none of the client's.
                yield self._model(name, msgspec.structs.replace(route, name=route.name or name), backend, weight)

    def _model(self, name: str, route: ModelSettings, backend: Backend, weight: float | None) -> Model:
        self._routes[name] = route, backend
        sent, label, window = route.name or name, backend.state_label, route.context_length
        return Model(name, sent, backend.name, backend.adapter, route.policy, label, window, weight)

    def _candidates(self, considered: Sequence[Considered]) -> list[Considered]:
        """Returns these models without one that is there for long requests alone."""
        names = {self._served.model, *[one.model for one in self._served.route.candidates]}
        return [one for one in considered if one.model.name in names]

    def _able(self, considered: Iterable[Considered]) -> list[tuple[Loss, Model]]:
        """Returns the models of these that may be asked now, the one that loses least first."""
        return by_least_loss(filter(self._lets_through, considered))

    def _lets_through(self, considered: Considered) -> bool:
        return self.circuit(considered.model).lets_through

    async def _consider(self) -> list[Considered]:
        """Returns the plan of each model; they are made once."""
        if self._considered is None:
            self._considered = await asyncio.to_thread(self._plans) if self._served.large else self._plans()
        return self._considered

    def _plans(self) -> list[Considered]:
        bound = bound_to_account(self._conversation)
        conversation, account = self._conversation, self.named.label
        return [consider(model, conversation, account, bound, self._words(model)) for model in self._models]

    def _words(self, model: Model) -> frozenset[Requirement]:
        required = self.required(model)
        return frozenset() if required is None else required.words

    def _session(self) -> bytes:
        """Returns a name of the conversation, the same for each of its requests."""
        context = self._served.context
        named = read_session(context.headers, self._served.body).session
        session = named or conversation_session(self._conversation.turns)
        said = ("", "") if session is None else (session.id, session.agent)
        return "\0".join((context.key, *said)).encode("utf-8", "replace")


def _choice(able: tuple[Loss, Model], cause: Cause) -> Choice:
    loss, model = able
    return Choice(model, loss, cause)
