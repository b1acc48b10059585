"""Defines an explanation: what the gateway would send for a conversation, and why, stage by stage."""

from collections.abc import Mapping

import msgspec

from gateway.adapter import FieldPlace
from gateway.core.conversation import Json, JsonObject, Violation
from gateway.core.notices import Notice
from gateway.core.requirements import Requirement
from gateway.diagnostics.summary_state import SummaryState
from gateway.history.pinned import PinReason


class Classified(msgspec.Struct, frozen=True):
    """The current exchange, by positions in the client's messages."""

    last_user_index: int | None
    tool_result_ids: tuple[str, ...]
    is_continuation: bool


class Grouped(msgspec.Struct, frozen=True):
    """One atomic group of the repaired messages: `start` up to, not including, `stop`."""

    start: int
    stop: int
    tool_call_ids: tuple[str, ...]


class PinnedMessage(msgspec.Struct, frozen=True):
    """A user message that limits and summaries leave in place, and why (`gateway.history.pinned`)."""

    index: int | None
    reason: PinReason


class ExplainedDirective(msgspec.Struct, frozen=True):
    """What the message at `index` changes for the answers after it, and whether it is in force for the next one."""

    index: int
    directive: str
    in_force: bool


class SchemaFacts(msgspec.Struct, frozen=True):
    """The protobuf schema in use: the files that it comes from, and the digest of its descriptors."""

    source: str
    sha256: str


class Encoded(msgspec.Struct, frozen=True):
    """The body as it would be sent: its size, its bytes, and a readable form. Of a protobuf message that settings.json
    describes also `schema`, the place that made each field (`fields`), and the fields of the request that have no place
    in it (`unsent`)."""

    bytes: int
    hex: str
    decoded: Json
    schema: SchemaFacts | None = None
    fields: tuple[FieldPlace, ...] = ()
    unsent: tuple[str, ...] = ()


class Messages(msgspec.Struct, frozen=True):
    """The index of each listed message in the request; null: the gateway wrote it; below 0: it was stored."""

    repaired: tuple[int | None, ...] = ()
    trimmed: tuple[int | None, ...] = ()
    wire: tuple[int | None, ...] = ()


class StateExplanation(msgspec.Struct, frozen=True):
    """What the gateway remembers of earlier requests, as far as it concerns this one. `summary`: compression, where it
    is enabled for the model."""

    summary: SummaryState | None = None


class CacheExplanation(msgspec.Struct, frozen=True):
    """What a provider's prompt cache, which has another request, cannot serve of this one: in one sentence, the name of
    the `cause` (empty: it can serve all of the other one) and the `rule` of the gateway behind it, and the estimated
    tokens before the first difference (`held`) and of what is read anew behind it (`lost`)."""

    sentence: str
    cause: str = ""
    rule: str = ""
    held: int = 0
    lost: int = 0


class ExplainedCandidate(msgspec.Struct, frozen=True):
    """A model that may answer the request: whether its prompt is estimated to exceed the window, the requirements that
    its plan breaks, and how many notices tell of a loss. `refusal`: it cannot answer, and `losses` is null."""

    model: str
    backend: str
    over_window: bool = False
    broken: tuple[str, ...] = ()
    losses: int | None = None
    refusal: str = ""


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """The stages of one conversation.

    - `stored` are the messages of stored answers that stand before those of the request.
    - `directives` are what messages in mid-conversation change.
    - `pinned` are the user messages that no limit removes.
    - `repaired` and `trimmed` are messages in the client's dialect; `indexes` holds the index of each in the request.
    - `wire` is what is sent: the chat messages of the body, the text in it as one message (and its system text as
      another, where that has a separate field), or else all of the body. Without a backend it is the flattened
      conversation.
    - `error` is the error that the client of a refused request would get, in its dialect, and `refusal` the message in
      it; nothing after it is then known.
    - `text` is the text that is sent, and `system_text` the system text in it or beside it; both are empty where none
      is.
    - `token_estimate` is the estimate of `gateway.core.tokens` for the conversation as text: no tokenizer counted.
    - `losses` are the words of `x-dragoman-require` that the notices break, each with their rules.
    - `state` is what the gateway remembers; null where no feature for that is on.
    - `cache` compares the request with another one; null where none is given.
    - `candidates` are the models that may answer, the one of the request first; null where nobody asks for them.
    """

    model: str
    backend: str | None
    violations: tuple[Violation, ...]
    classification: Classified
    stored: tuple[JsonObject, ...] = ()
    directives: tuple[ExplainedDirective, ...] = ()
    groups: tuple[Grouped, ...] = ()
    pinned: tuple[PinnedMessage, ...] = ()
    repaired: tuple[JsonObject, ...] = ()
    trimmed: tuple[JsonObject, ...] = ()
    wire: tuple[JsonObject, ...] = ()
    indexes: Messages = Messages()
    text: str = ""
    system_text: str = ""
    implicit_added: bool = False
    diagnostics: tuple[Notice, ...] = ()
    logs: tuple[str, ...] = ()
    losses: Mapping[Requirement, tuple[str, ...]] = {}
    encoded: Encoded | None = None
    token_estimate: int = 0
    error: JsonObject | None = None
    refusal: str | None = None
    state: StateExplanation | None = None
    cache: CacheExplanation | None = None
    candidates: tuple[ExplainedCandidate, ...] | None = None
