"""Compresses one request: finds its summary, fits it into the window, and afterwards has the next one considered."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from gateway.capabilities.held_tools import with_offered
from gateway.core.context_length import CONTEXT_LENGTH_EXCEEDED
from gateway.core.conversation import Conversation
from gateway.core.errors import BackendError, InvalidRequest
from gateway.core.events import Event, UsageReport
from gateway.core.notices import HIDDEN_ROUNDS, Notice
from gateway.history.prepare import repaired
from gateway.memory.summaries.substitution import FittedHistory, ResultLimits, fit
from gateway.server.state.stores import RequestStore
from gateway.server.summaries.recall import Recalled, recall
from gateway.server.upstream.completion import RoutedModel

if TYPE_CHECKING:
    from gateway.server.summaries.summaries import Summaries

# A body of so many bytes is looked through in a thread.
LARGE: Final = 128 * 1024
# The fewest bytes of a body for a token of its history, of any text: base64, with what JSON writes around it.
LEAST_BYTES_A_TOKEN: Final = 1.3


class RequestSummary:
    """The part of one request (`StatePart`). `store` is what it may use, `window` the context of its model in tokens,
    and `size` the number of bytes of its body.

    `result_limits` are those with which it fits the window (None: it does without), `sizes` the estimates of its turns,
    as far as they were needed for this, with 0 for the others (None: none were). After the response, `prompt_tokens`
    are those that the backend reported for it, and `refused` says that it refused the request because of its length.
    """

    def __init__(
        self,
        summaries: "Summaries",
        store: RequestStore,
        request_id: str,
        model: RoutedModel,
        window: int,
        size: int,
    ) -> None:
        self._summaries = summaries
        self.store = store
        self.request_id = request_id
        self.model = model
        self._window = window
        self._size = size
        self.recalled: Recalled | None = None
        self.result_limits: ResultLimits | None = None
        self.sizes: Sequence[int] | None = None
        self.prompt_tokens: int | None = None
        self._repeated = False
        self.refused = False

    @property
    def fitted(self) -> FittedHistory | None:
        """The substitution when the request is prepared, once `recall` has found it; None: it is sent as it is."""
        applied = None if self.recalled is None else self.recalled.applied
        if applied is None and self.result_limits is None:
            return None
        return FittedHistory(applied, self.result_limits)

    async def recall(self, conversation: Conversation) -> tuple[Conversation, Sequence[Notice]]:
        """Finds the summary of a conversation, which stays as it is: the summary is put in when it is prepared."""
        policy, large = self.model.route.policy, self._size >= LARGE
        sent = with_offered(conversation, policy, self.model.backend.adapter.capabilities)
        self.recalled = await recall(self.store, sent, policy, large)
        if self._size >= LEAST_BYTES_A_TOKEN * self._window:
            if large:
                await asyncio.to_thread(self._fit, sent)
            else:
                self._fit(sent)
        return conversation, ()

    def _fit(self, conversation: Conversation) -> None:
        """Finds the limits of results, also where no summary can be looked for."""
        recalled, calibration = self.recalled, self._summaries.calibration(self.model)
        if recalled is not None:
            record = None if recalled.applied is None else recalled.applied.record
            self.sizes, self.result_limits = fit(recalled.conversation, self._window, calibration, record)
            return
        try:
            history = repaired(conversation, self.model.route.policy)
        except InvalidRequest:
            # The client gets this error when the request is prepared.
            return
        _, self.result_limits = fit(history, self._window, calibration)

    def record(self, events: Sequence[Event]) -> Sequence[Event]:
        """Takes the reported tokens from the events."""
        for event in events:
            if type(event) is Notice:
                # The counts are then those of several prompts, and say nothing of this one's estimate.
                self._repeated = self._repeated or (event.rule, event.action) in HIDDEN_ROUNDS
            elif type(event) is UsageReport and not event.estimated:
                self.prompt_tokens = None if self._repeated else event.prompt_tokens
        return events

    def refuse(self, error: BackendError) -> None:
        """Has a summary considered where the history was too long."""
        if error.code == CONTEXT_LENGTH_EXCEEDED:
            self.refused = True
            self._summaries.consider(self)

    async def conclude(self) -> Sequence[Notice]:
        """Has a summary considered."""
        self._summaries.consider(self)
        return ()
