"""Joins to a request what the gateway remembers: puts it into the conversation, and learns from the answer.

The endpoint asks `StateFeatures.begin` once a request. None of this runs while no feature is on for a model.
"""

from collections.abc import Sequence
from typing import Protocol

from gateway.core.conversation import Conversation
from gateway.core.errors import BackendError
from gateway.core.events import Event
from gateway.core.notices import Notice
from gateway.history.prepare import Substitution
from gateway.server.state.stores import RequestStore, Stores
from gateway.server.telemetry.metrics import Metrics
from gateway.server.telemetry.request_context import RequestContext
from gateway.server.upstream.backends import Backend
from gateway.settings import ModelSettings, Settings


class StatePart(Protocol):
    """The part of one feature in one request. The methods are called in this order; none raises.

    `refuse` or `conclude` is called at most once, neither after an answer that breaks off.
    """

    async def recall(self, conversation: Conversation) -> tuple[Conversation, Sequence[Notice]]:
        """Returns the conversation with what is remembered, and the notices of it. `conversation` is the client's,
        neither validated nor repaired. Waits for the store no longer than the store's own deadline."""
        ...

    def record(self, events: Sequence[Event]) -> Sequence[Event]:
        """Takes the next events of the answer; returns those for the client."""
        ...

    def refuse(self, error: BackendError) -> None:
        """The backend has refused the request, or its answer has failed."""
        ...

    async def conclude(self) -> Sequence[Notice]:
        """The answer is complete, and its end is not sent yet. What the next request need not have is written in the
        background. Returns what the end of the answer has to tell. Waits for the store no longer than `recall`."""
        ...


class StateFeature(Protocol):
    """One kind of thing to remember."""

    def begin(
        self,
        context: RequestContext,
        route: ModelSettings,
        backend: Backend,
        conversation: Conversation,
        store: RequestStore,
    ) -> StatePart | None:
        """Returns the part of a request; None where the settings of its model or key switch the feature off. `store` is
        what the request may use."""
        ...


class SummaryPart(StatePart, Protocol):
    """The summary of one request."""

    @property
    def fitted(self) -> Substitution | None:
        """The substitute for a part of the conversation when it is prepared; known once `recall` has run."""
        ...


class SummaryFeature(Protocol):
    """Summarises long histories."""

    def begin(
        self,
        context: RequestContext,
        route: ModelSettings,
        backend: Backend,
        conversation: Conversation,
        store: RequestStore,
        size: int,
    ) -> SummaryPart | None:
        """Returns the part of a request whose body has `size` bytes; None where nothing can be summarised."""
        ...


class RequestState:
    """The parts of one request, each applied to what the one before it returns. That of a summary comes last: it reads
    what the others have put in."""

    def __init__(self, parts: Sequence[StatePart], store: RequestStore, summary: SummaryPart | None = None) -> None:
        self._parts = parts if summary is None else (*parts, summary)
        self._store = store
        self._summary = summary
        self.notices: list[Notice] = []

    @property
    def summary(self) -> Substitution | None:
        """The substitute for a part of the conversation when it is prepared."""
        return None if self._summary is None else self._summary.fitted

    async def recall(self, conversation: Conversation) -> Conversation:
        """Returns the conversation with what is remembered; `notices` then says what was put in."""
        for part in self._parts:
            conversation, notices = await part.recall(conversation)
            self.notices += notices
        self.notices += self._store.take_notices()
        return conversation

    def record(self, events: Sequence[Event]) -> Sequence[Event]:
        """Takes the next events of the answer; returns those for the client."""
        for part in self._parts:
            events = part.record(events)
        return events

    def refuse(self, error: BackendError) -> None:
        """The backend has refused the request, or its answer has failed."""
        for part in self._parts:
            part.refuse(error)

    async def conclude(self) -> Sequence[Notice]:
        """The answer is complete. Returns the notices for its end."""
        return [notice for part in self._parts for notice in await part.conclude()]


class StateFeatures:
    """The features that are on for at least one model."""

    def __init__(
        self, features: Sequence[StateFeature], stores: Stores, summaries: SummaryFeature | None = None
    ) -> None:
        self._features = features
        self._stores = stores
        self._summaries = summaries

    def begin(
        self, context: RequestContext, route: ModelSettings, backend: Backend, conversation: Conversation, size: int
    ) -> RequestState | None:
        """Returns the state of a request that says `size` bytes; None where no feature applies to it, or nothing
        may be remembered of it. Raises InvalidRequest as `Stores.of` does."""
        store = self._stores.of(context)
        if store is None:
            return None
        begun = [feature.begin(context, route, backend, conversation, store) for feature in self._features]
        parts = [part for part in begun if part is not None]
        summary = None
        if self._summaries is not None:
            summary = self._summaries.begin(context, route, backend, conversation, store, size)
        return RequestState(parts, store, summary) if parts or summary else None


def state_features(
    settings: Settings, stores: Stores, metrics: Metrics, summaries: SummaryFeature | None = None
) -> StateFeatures | None:
    """Returns the features in the order in which they see a request; None where all of them are off."""
    features: list[StateFeature] = []
    if any(entry.keeper.enabled for entry in settings.models.values()):
        # A feature that is off costs not even its import.
        from gateway.server.state.state_cache import StateCache

        features.append(StateCache(metrics, settings.keys))
    return StateFeatures(features, stores, summaries) if features or summaries else None
