"""Compresses one request: finds its summary, and afterwards has the next one considered."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from gateway.core.backend_status import CONTEXT_LENGTH_EXCEEDED
from gateway.core.conversation import Conversation
from gateway.core.errors import BackendError
from gateway.core.events import Event, UsageReport
from gateway.core.notices import Notice
from gateway.history.compress.substitute import AppliedSummary
from gateway.server.state.request_store import RequestStore
from gateway.server.summaries.job import RoutedModel
from gateway.server.summaries.recall import Recalled, recall

if TYPE_CHECKING:
    from gateway.server.summaries.summaries import Summaries

# A body of so many bytes is looked through in a thread.
LARGE: Final = 128 * 1024


class RequestSummary:
    """The part of one request (`StatePart`). `store` is what it may use, and `size` the number of bytes of its body.

    After the response, `prompt_tokens` are those that the backend reported for it, and `refused` says that it refused
    the request because of its length.
    """

    def __init__(
        self, summaries: "Summaries", store: RequestStore, request_id: str, model: RoutedModel, size: int
    ) -> None:
        self._summaries = summaries
        self.store = store
        self.request_id = request_id
        self.model = model
        self._large = size >= LARGE
        self.recalled: Recalled | None = None
        self.prompt_tokens: int | None = None
        self.refused = False

    @property
    def applied(self) -> AppliedSummary | None:
        """The summary that the request uses, once `recall` has found it."""
        return None if self.recalled is None else self.recalled.applied

    async def recall(self, conversation: Conversation) -> tuple[Conversation, Sequence[Notice]]:
        """Finds the summary of a conversation, which stays as it is: the summary is put in when it is prepared."""
        self.recalled = await recall(self.store, conversation, self.model.route.policy, self._large)
        return conversation, ()

    def record(self, events: Sequence[Event]) -> Sequence[Event]:
        """Takes the reported tokens from the events."""
        for event in events:
            if type(event) is UsageReport and not event.estimated:
                self.prompt_tokens = event.prompt_tokens
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
