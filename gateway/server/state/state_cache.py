"""Caches the opaque state of complete answers, and puts it back where a client left it out.

The client's own copy comes first. A cached state returns only to the backend, the credential and, where the provider
binds it so, the model that made it; where two answers look the same, neither state is put back.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from gateway.core.conversation import Conversation, Turn
from gateway.core.errors import BackendError
from gateway.core.events import Event
from gateway.core.notices import Notice
from gateway.core.state_rule import ALL_STATE, HeldState, StateRule
from gateway.memory.provider_state.answer_state import StateReader, has_state
from gateway.memory.provider_state.cached_state import (
    LookupResult,
    TurnState,
    Variant,
    cached_states,
    encode_state,
    lookup_result,
)
from gateway.memory.provider_state.lookup_keys import content_key, lookup_keys, scope, state_digests
from gateway.memory.provider_state.restore import (
    Outcome,
    StateRestorer,
    is_required,
    kind_of,
    report,
    turns_in_reach,
)
from gateway.response.provider_state import STATE_NOT_SHOWN, STATEFUL, StoredStateFilter, is_lost
from gateway.server.access.api_keys import DEFAULT_CLIENT
from gateway.server.state.cached_states import RequestStates
from gateway.server.state.store import StoreUnavailable
from gateway.server.state.stores import RequestStore
from gateway.server.telemetry.metrics import Metrics
from gateway.server.telemetry.request_context import RequestContext
from gateway.server.upstream.backends import Backend
from gateway.settings import KeySettings, ModelSettings

# The bounds of one state, and of all that is put into one request; the newest are put in first.
MOST_ENTRY: Final = 256 * 1024
MOST_CHAT: Final = 4 * 2**20
# The lookup keys of more turns are computed in a thread.
MANY: Final = 64
DEFAULT_FIELD: Final = "reasoning_content"
# A refusal of state that was sent, in contrast to one for state that is absent.
REFUSED: Final = "STATE_INVALID"


class StateCache:
    """The feature. `keys` are the settings of client keys."""

    def __init__(self, metrics: Metrics, keys: Mapping[str, KeySettings]) -> None:
        self._metrics = metrics
        self._keys = keys
        self._writing = Counter[str]()

    def begin(
        self,
        context: RequestContext,
        route: ModelSettings,
        backend: Backend,
        conversation: Conversation,
        store: RequestStore,
    ) -> "StateCachePart | None":
        """Returns the part of a request; None where it is off or the provider wants nothing back."""
        key = self._keys.get(context.key) or self._keys.get(DEFAULT_CLIENT)
        capabilities = backend.adapter.capabilities
        rule = route.policy.profile.state or capabilities.state
        if rule is None or not route.keeper.enabled or (key is not None and not key.keeper):
            return None
        field = route.policy.profile.reasoning_field or DEFAULT_FIELD
        passes = conversation.dialect == capabilities.passthrough
        shown = StoredStateFilter(conversation, passes=passes)
        valid_for = (backend.name, backend.settings.base_url, *backend.account)
        if rule.scope == "model":
            valid_for = (*valid_for, conversation.model)
        return StateCachePart(
            RequestStates(store, route.keeper.ttl_s, self._writing, self._metrics, (backend.name, kind_of(rule))),
            rule,
            field,
            valid_for,
            shown,
            ALL_STATE if passes else conversation.holds,
        )


class _Put(msgspec.Struct, frozen=True):
    """A state that was put into the turn with this index."""

    index: int | None
    lookup_keys: tuple[bytes, ...]
    variant: Variant


class StateCachePart:
    """See `StatePart`. `valid_for` says for whom the state counts, `shown` what of it the client gets, and `holds` what
    of that has a place in its dialect."""

    def __init__(
        self,
        states: RequestStates,
        rule: StateRule,
        field: str,
        valid_for: tuple[str, ...],
        shown: StoredStateFilter,
        holds: HeldState,
    ) -> None:
        self._states = states
        self._rule = rule
        self._field = field
        self._valid_for = valid_for
        self._shown = shown
        self._holds = holds
        self._lost: list[Event] = []
        self._answer = StateReader(rule)
        self._before: Turn | None = None
        self._put: list[_Put] = []
        self._required = False
        self._outcomes: list[Outcome] = []

    async def recall(self, conversation: Conversation) -> tuple[Conversation, Sequence[Notice]]:
        """Returns the conversation with the state that it lacks, and what became of the state of each turn."""
        self._before = conversation.turns[-1] if conversation.turns else None
        self._required = is_required(self._rule, conversation)
        asking = msgspec.structs.replace(conversation, keeps=self._rule, reads=conversation.reads | {"reasoning"})
        reach = turns_in_reach(conversation.turns, self._rule)
        secret = await self._states.secret() if reach else None
        if secret is None:
            return asking, ()
        turns, outcomes = await self._recalled(asking, reach, secret)
        self._outcomes = [*outcomes.values()]
        notices = [report(outcomes[at], self._rule, turns[at]) for at in sorted(outcomes)]
        return msgspec.structs.replace(asking, turns=tuple(turns)), notices

    def record(self, events: Sequence[Event]) -> Sequence[Event]:
        """Reads the events; returns them without the state that only the gateway asked for."""
        self._count_outcomes()
        self._answer.feed(events)
        shown = self._shown.feed(events)
        if not STATEFUL.isdisjoint(map(type, shown)):
            self._lost += [event for event in shown if is_lost(event, self._holds)]
        return shown

    async def conclude(self) -> Sequence[Notice]:
        """Stores the state of a complete answer, and extends the time to live of the state that was put in. Where the
        provider refuses a request without its state, the client may send that request to another worker at once: the
        state is written before the answer ends. Returns a notice of state that is neither stored nor in the client's
        copy of the answer."""
        if self._put:
            used = [key for put in self._put for key in (*put.lookup_keys, put.variant.state) if key is not None]
            self._states.later(lambda: self._states.cache.extend(used))
        lost = (STATE_NOT_SHOWN,) if self._lost else ()
        # The answer to a message that the client began is a part of a turn.
        begun = self._before is not None and self._before.role == "assistant"
        if not self._answer.complete or begun or not (state := self._answer.state):
            return lost
        data = encode_state(state)
        if len(data) > MOST_ENTRY:
            self._states.count("oversize")
            return lost
        notices = () if all([has_state(self._rule, event) for event in self._lost]) else lost

        async def write() -> None:
            await self._write(self._answer.turn, state, data)

        if not self._required:
            return notices if self._states.later(write) else lost
        failure = await self._states.now(write)
        return notices if failure is None else (*notices, unconfirmed(self._rule, failure))

    def refuse(self, error: BackendError) -> None:
        """Deletes the states that the provider has refused, so that the next request does not send them again."""
        self._count_outcomes()
        if error.extra.get("rule") != REFUSED:
            return
        index = error.extra.get("index")
        for put in self._put:
            if index is None or index == put.index:
                self._states.count("refused")
                self._delete(put)

    async def _recalled(
        self, conversation: Conversation, reach: Sequence[int], secret: bytes
    ) -> tuple[list[Turn], dict[int, Outcome]]:
        turns = list(conversation.turns)
        restorer = StateRestorer(self._rule, self._field, secret)
        choices = await self._choices(turns, reach, secret)
        states = await self._states.cache.states(
            key for at, choice in choices.items() if restorer.lacks(turns[at]) for key in _state_of(choice)
        )
        outcomes: dict[int, Outcome] = {}
        left = MOST_CHAT
        for at in reversed(reach):
            choice = choices[at]
            state = next((states[key] for key in _state_of(choice) if key in states), None)
            size = 0 if state is None else len(encode_state(state))
            turn, outcome = restorer.restore(
                turns[at], choice, state if size <= left else None, required=self._required
            )
            if outcome == "restored" and choice.variant is not None:
                left -= size
                self._put.append(_Put(turn.index, choice.keys, choice.variant))
            if outcome is not None:
                turns[at], outcomes[at] = turn, outcome
        return turns, outcomes

    async def _choices(self, turns: Sequence[Turn], reach: Sequence[int], secret: bytes) -> dict[int, LookupResult]:
        if len(reach) > MANY:
            found = await asyncio.to_thread(_lookup_keys, turns, reach, secret)
        else:
            found = _lookup_keys(turns, reach, secret)
        known = await self._states.cache.variants(key for of_turn in found.values() for key in of_turn)
        valid = scope(self._valid_for, secret)
        return {at: lookup_result([(key, known[key]) for key in of_turn], valid) for at, of_turn in found.items()}

    def _count_outcomes(self) -> None:
        """Counts what became of the turns, once the backend has got them."""
        while self._outcomes:
            self._states.count(self._outcomes.pop())

    async def _write(self, turn: Turn, state: TurnState, data: bytes) -> None:
        secret = await self._states.epoch()
        valid = scope(self._valid_for, secret)
        known_by = state_digests(cached_states(state, self._rule), secret)
        variant = Variant(valid, content_key(data, valid, secret), tuple(sorted(known_by)))
        await self._states.cache.add(lookup_keys(turn, self._before, secret).known, variant, data)
        self._states.count("kept")

    def _delete(self, put: _Put) -> None:
        self._states.later(lambda: self._states.cache.delete(put.lookup_keys, put.variant))


def unconfirmed(rule: StateRule, failure: StoreUnavailable) -> Notice:
    """Returns the notice of an answer that ends before its state is known to be stored."""
    detail = f"the {kind_of(rule)} of this answer may be missing from a request that follows at once: {failure}"
    return Notice("state", "failed", "STATE_UNCONFIRMED", detail, level="warning")


def _lookup_keys(turns: Sequence[Turn], reach: Sequence[int], secret: bytes) -> dict[int, tuple[bytes, ...]]:
    return {at: lookup_keys(turns[at], turns[at - 1] if at else None, secret).known for at in reach}


def _state_of(choice: LookupResult) -> Iterator[bytes]:
    if choice.variant is not None and choice.variant.state is not None:
        yield choice.variant.state
