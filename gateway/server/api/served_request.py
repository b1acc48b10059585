"""A request that is being served: what the steps of its answer need of it."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from gateway.core.conversation import Conversation
from gateway.core.events import Event
from gateway.core.notices import Notice
from gateway.dialect import ClientRequest, Dialect, RequestHead
from gateway.server.api.client_response import ClientResponse
from gateway.server.api.responders import Responder, StoredAnswer, StreamResponder, WholeResponder
from gateway.server.state.answer_store import AnswerStore
from gateway.server.telemetry.request_context import RequestContext
from gateway.server.upstream.backends import Backend
from gateway.server.upstream.deadlines import Deadlines
from gateway.settings import ModelSettings, ServerSettings

if TYPE_CHECKING:
    from gateway.core.data_url import DataUrl
    from gateway.server.api.answer_steering import AnswerSteering
    from gateway.server.api.required_words import RequiredWords
    from gateway.server.media.read_text import ReadText
    from gateway.server.state.connection_answers import ConnectionAnswers


class ServedRequest(NamedTuple):
    """The decoded request with its body, and where its answer goes. `model` is the name that the settings know, with
    its entry and backend. `large`: it is worked on in threads. `answers`: where stored answers are; None: nowhere.
    `connected`: those of a connection which remembers its answers. `steering`: that of an answer which may be
    steered. `required`: what the request may not lose. `texts`: what its tries have read of pictures and PDFs."""

    context: RequestContext
    response: ClientResponse
    deadlines: Deadlines
    dialect: Dialect
    head: RequestHead
    body: bytes
    request: ClientRequest
    model: str
    route: ModelSettings
    backend: Backend
    large: bool
    answers: AnswerStore | None
    connected: "ConnectionAnswers | None" = None
    steering: "AnswerSteering | None" = None
    required: "RequiredWords | None" = None
    texts: "dict[DataUrl, ReadText] | None" = None

    def responder(
        self, settings: ServerSettings, keeps: StoredAnswer | None = None
    ) -> StreamResponder | WholeResponder:
        """Returns what sends the answer as the client reads it."""
        kind = StreamResponder if self.request.conversation.stream else WholeResponder
        return kind(self.context, self.response, self.deadlines, self.dialect, self.request, settings, keeps)


class Begun(NamedTuple):
    """An answer that has begun before its backend is asked: its responder, and the events that stand before those of
    the backend."""

    writer: Responder
    events: Sequence[Event]


# Asks the backend of a request, for this conversation, and sends its answer. The notices are of what was done before.
Answer: TypeAlias = Callable[[ServedRequest, Conversation, Sequence[Notice], Begun | None], Awaitable[None]]
