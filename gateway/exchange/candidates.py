"""Compares the models that may answer one request by what their plans lose, and says whether a failed try may go on
with another one: values in, values out.

The order of losses (docs/candidates.md):

1. whether the prompt is estimated to be larger than the context of the model,
2. how many words of `gateway.core.requirements` are broken,
3. which ones, the heaviest first,
4. how many notices tell of something lost,
5. the order of the settings.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Final, Literal, TypeAlias

import msgspec

from gateway.adapter import Adapter
from gateway.core.context_length import Overflow
from gateway.core.conversation import Conversation, File, Json, JsonObject, ToolResult
from gateway.core.errors import BackendError, BackendTimeout, BackendUnavailable, GatewayError, InvalidRequest
from gateway.core.notices import Action, Notice
from gateway.core.policy import Policy
from gateway.core.requirements import REQUIREMENTS, Requirement, breaches
from gateway.core.tokens import prompt_tokens
from gateway.exchange.plan import plan_request
from gateway.history.own_state import has_unlabelled_state

# A request is tried so often.
MOST_TRIES: Final = 3
# Why a request goes on with another model. `circuit_open`: its own was not asked, after failures of other requests;
# `weight`: both would answer alike.
Cause: TypeAlias = Literal[
    "connect", "timeout", "rate_limit", "overloaded", "server_error", "context_length", "circuit_open", "weight"
]
# These say that the backend itself is in trouble, whatever it was asked.
TROUBLES: Final[frozenset[Cause]] = frozenset({"connect", "timeout", "rate_limit", "overloaded", "server_error"})

# Of a rate limit, and of an account without credit.
_LIMITS: Final = (402, 429)
# Words that refer to something at the provider, which knows it for one account alone.
_REFERENCES: Final = frozenset(
    {
        "cachedContent",
        "cached_content",
        "container",
        "container_id",
        "conversation",
        "file_id",
        "file_ids",
        "fileUri",
        "file_uri",
        "vector_store_ids",
    }
)
# Objects that are such a reference where they have an `id`: of the chat API, the audio of an earlier answer.
_WITH_ID: Final = frozenset({"audio"})
# What stands below these is the client's own, in its own words.
_FREE: Final = frozenset(
    {"arguments", "args", "function", "input", "input_schema", "metadata", "parameters", "response", "schema"}
)
_LOST: Final[frozenset[Action]] = frozenset({"dropped", "shortened"})


class Model(msgspec.Struct, frozen=True):
    """One model that may answer: its name in the settings, its name at the backend, and what a plan is made of. The
    `label` is that of its backend's opaque state. `weight` is its share of the conversations that several models would
    answer alike; None: it has none."""

    name: str
    sent: str
    backend: str
    adapter: Adapter
    policy: Policy
    label: str
    window: int | None
    weight: float | None = None


class Loss(msgspec.Struct, frozen=True, order=True):
    """What a plan loses, in the order in which it counts: the smaller one loses less. `words` has a number for each of
    `REQUIREMENTS`, 1 where it is broken."""

    over_window: bool
    broken: int
    words: tuple[int, ...]
    losses: int

    @property
    def names(self) -> tuple[Requirement, ...]:
        """The broken words."""
        return tuple(word for word, found in zip(REQUIREMENTS, self.words, strict=True) if found)


class Considered(msgspec.Struct, frozen=True):
    """A model with what its plan loses; None where it cannot answer, and `refusal` then says why."""

    model: Model
    loss: Loss | None = None
    refusal: str = ""


def consider(
    model: Model,
    conversation: Conversation,
    account: str,
    bound: str | None,
    required: frozenset[Requirement] = frozenset(),
) -> Considered:
    """Plans the request for a model. `account` is the label of the model that the client has named, `bound` what of the
    request its account alone may see (`bound_to_account`), and `required` what the request may not lose."""
    if bound is not None and model.label != account:
        return Considered(model, refusal=f"{bound} is for another account")
    conversation = msgspec.structs.replace(conversation, model=model.sent)
    try:
        plan = plan_request(model.adapter, conversation, model.policy, None, model.label, model.window)
    except InvalidRequest as error:
        return Considered(model, refusal=error.message)
    over = model.window is not None and prompt_tokens(plan.conversation) > model.window
    loss = loss_of(plan.notices, over_window=over)
    broken = [word for word in loss.names if word in required]
    return Considered(model, refusal=f"it loses {', '.join(broken)}") if broken else Considered(model, loss)


def loss_of(notices: Sequence[Notice], *, over_window: bool = False) -> Loss:
    """Returns what these notices of a plan lose."""
    broken = breaches(notices)
    telling = {id(notice) for told in broken.values() for notice in told}
    lost = telling | {id(notice) for notice in notices if notice.action in _LOST}
    return Loss(over_window, len(broken), tuple([int(word in broken) for word in REQUIREMENTS]), len(lost))


def by_least_loss(considered: Iterable[Considered]) -> list[tuple[Loss, Model]]:
    """Returns the models that can answer, the one that loses least first; of equal ones the order stays."""
    able = [(one.loss, one.model) for one in considered if one.loss is not None]
    return sorted(able, key=lambda one: one[0])


def longer_than(considered: Iterable[Considered], window: int | None, longer: str | None) -> list[Considered]:
    """Returns the models for a prompt that is too long for this window: the one of this name alone if it can answer,
    else those whose window is not known to be as small."""
    able = [one for one in considered if one.loss is not None]
    named = [one for one in able if one.model.name == longer]
    return named or [one for one in able if window is None or one.model.window is None or one.model.window > window]


def chosen_by_weight(considered: Iterable[Considered], conversation: bytes) -> tuple[Loss, Model] | None:
    """Returns the model for a conversation among those with a weight that lose least; None: there is none. The same
    conversation gets the same one as long as that is among them, and when one comes or goes only its own conversations
    move (weighted rendezvous hashing: Schindelhauer and Schomaker 2005, "Weighted distributed hash tables")."""
    able = by_least_loss(one for one in considered if one.model.weight is not None)
    alike = [(loss, model) for loss, model in able if loss == able[0][0]]
    return max(alike, key=lambda one: _score(one[1], conversation), default=None)


def _score(model: Model, conversation: bytes) -> float:
    digest = blake2b(conversation, key=model.name.encode("utf-8", "replace")[:64], digest_size=8).digest()
    # Between 0 and 1, neither of them: of more bits the largest would be rounded to 1.
    drawn = ((int.from_bytes(digest, "big") >> 12) + 0.5) / 2**52
    return -(model.weight or 0.0) / math.log(drawn)


def switch_cause(error: GatewayError) -> Cause | None:
    """Returns why a request that has failed with this error may go on with another model; None: it may not, because
    another one would fail as well, or only the operator can help. `overloaded` is also the code of a backend whose
    `max_concurrent` is reached."""
    match error:
        case BackendError(too_long=Overflow()):
            return "context_length"
        case BackendUnavailable():
            return "connect"
        case BackendTimeout():
            return "timeout"
        case BackendError() if error.status in _LIMITS:
            return "rate_limit"
        case BackendError() if error.status == 503:
            return "overloaded"
        case BackendError() if error.transient:
            return "server_error"
        case _ if error.code == "overloaded":
            return "overloaded"
        case _:
            return None


def error_to_report(errors: Sequence[GatewayError]) -> GatewayError:
    """Returns the error of several tries on which a client can act: the first after which the same request may succeed,
    else the first. It is about the model that the client has named, whose window and limits its next request meets."""
    return next((error for error in errors if error.transient), errors[0])


def bound_to_account(conversation: Conversation) -> str | None:
    """Returns what of the request only the account of the model that the client has named may see or has; None: there
    is no such thing. (Labelled state goes to its own backend in any case: `gateway.history.own_state`.)"""
    if has_unlabelled_state(conversation):
        return "state without a label"
    source = conversation.source
    found = _reference(conversation.params if source is None else source.value)
    if found is None:
        found = next(filter(None, map(_reference, _client_values(conversation))), None)
    return None if found is None else f"what {found} refers to"


def _client_values(conversation: Conversation) -> Iterator["Json | JsonObject"]:
    """Yields what of messages is kept as the client wrote it."""
    for turn in conversation.turns:
        yield turn.extra
        if turn.source is not None:
            # An item that the gateway does not read stands there alone.
            yield from turn.source.value.values()
        for block in turn.blocks:
            parts = block.content if isinstance(block, ToolResult) else (block,)
            yield from (part.part for part in parts if isinstance(part, File))


def _reference(value: "Json | JsonObject") -> str | None:
    """Returns the first word of a reference within a value of a wire."""
    if isinstance(value, list):
        return next((name for one in value if (name := _reference(one))), None)
    if not isinstance(value, Mapping):
        return None
    for name, below in value.items():
        if below and (name in _REFERENCES or (name in _WITH_ID and isinstance(below, Mapping) and "id" in below)):
            return name
        if name not in _FREE and (found := _reference(below)) is not None:
            return found
    return None
