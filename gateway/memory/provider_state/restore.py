"""Puts the state of an answer back into the turn that its client made of it, only what is absent; and decides and says
what becomes of the state of one turn."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from gateway.core.conversation import UNREAD, Block, Conversation, Reasoning, ToolCall, Turn
from gateway.core.notices import Action, Level, Notice, NoticeRule
from gateway.core.provider_state import provider_state, without_state
from gateway.core.state_rule import StateRule
from gateway.core.thoughts import Thought, with_thoughts
from gateway.memory.provider_state.cached_state import LookupResult, TurnState, carried_states
from gateway.memory.provider_state.lookup_keys import state_digests


def turns_in_reach(turns: Sequence[Turn], rule: StateRule) -> tuple[int, ...]:
    """Returns the positions of the turns in which the provider wants its state back."""
    if rule.turns == "all":
        return tuple([at for at, turn in enumerate(turns) if turn.role == "assistant"])
    first = _last_question(turns) + 1 if rule.turns == "loop" else 0
    return tuple([at for at in range(first, len(turns)) if turns[at].role == "assistant" and turns[at].calls])


def _last_question(turns: Sequence[Turn]) -> int:
    """Returns the position of the last turn of the user that does not stand behind results: some wires join the two,
    and the loop then runs on."""
    for at in range(len(turns) - 1, -1, -1):
        if turns[at].role == "user" and (at == 0 or turns[at - 1].role != "tool"):
            return at
    return -1


def lacks_state(turn: Turn, rule: StateRule, field: str) -> bool:
    """Returns whether a turn lacks any state that the rule asks for. `field` is the field of plain reasoning."""
    return (
        _lacks_reasoning(turn, rule, field) or _lacks_calls(turn, rule) or any(n not in turn.extra for n in rule.fields)
    )


def lacks_required(turn: Turn, rule: StateRule, field: str) -> bool:
    """Returns whether a turn lacks reasoning or the state of its calls; the other fields do not exist in each answer.

    Where the rule asks for nothing else, it lacks all of those."""
    if rule.reasoning == "none" and not rule.calls:
        return not any(name in turn.extra for name in rule.fields)
    return _lacks_reasoning(turn, rule, field) or _lacks_calls(turn, rule)


def _lacks_reasoning(turn: Turn, rule: StateRule, field: str) -> bool:
    match rule.reasoning:
        case "none":
            return False
        case "plain":
            return not (_thoughts(turn) or isinstance(turn.extra.get(field), str))
        case "signed":
            assert rule.provider is not None  # `StateRule` says so
            return not _is_signed(turn, rule.provider)


def _lacks_calls(turn: Turn, rule: StateRule) -> bool:
    """Of parallel calls, only the first has state."""
    if not rule.calls or rule.provider is None or not turn.calls:
        return False
    return not any(provider_state(call.extra, rule.provider) for call in turn.calls)


def _is_signed(turn: Turn, provider: str) -> bool:
    extras = [turn.extra, *[block.extra for block in _thoughts(turn)]]
    return any(provider_state(extra, provider) for extra in extras)


def _thoughts(turn: Turn) -> list[Reasoning]:
    return [block for block in turn.blocks if isinstance(block, Reasoning)]


def with_missing_state(turn: Turn, state: TurnState, rule: StateRule, field: str) -> Turn:
    """Returns the turn with what it lacks of its state; the same turn where nothing of it fits, or the turn would lose
    more than it gets. `field` is the field of plain reasoning."""
    if turn.source is not None and turn.source.unread == UNREAD:
        return turn
    restored = turn
    if state.thoughts and _lacks_reasoning(turn, rule, field) and _same_text(turn, state.thoughts):
        restored = restored.changed(*with_thoughts(restored, state.thoughts, field))
    if _lacks_calls(turn, rule) and len(state.calls) == len(turn.calls):
        extras = iter(state.calls)
        restored = restored.changed(*[_with_extra(block, extras) for block in restored.blocks])
    fields = {name: value for name, value in state.fields.items() if name not in turn.extra}
    if fields:
        restored = msgspec.structs.replace(restored, extra={**restored.extra, **fields}, source=None)
    return restored


def _same_text(turn: Turn, thoughts: Sequence[Thought]) -> bool:
    """Returns whether the client's own reasoning, if it sent any, is what the state belongs to."""
    said = "".join(block.text for block in _thoughts(turn))
    return not said or "".join(said.split()) == "".join("".join(thought.text for thought in thoughts).split())


def _with_extra(block: Block, extras: Iterator[dict[str, object]]) -> Block:
    if not isinstance(block, ToolCall):
        return block
    extra = next(extras)
    return msgspec.structs.replace(block, extra={**block.extra, **extra}) if extra else block


def without_foreign(turn: Turn, provider: str) -> Turn:
    """Returns the turn without the provider's state: reasoning with such state goes with it, because its text alone is
    not what the model wrote."""
    blocks: list[Block] = []
    for block in turn.blocks:
        if isinstance(block, ToolCall):
            block = msgspec.structs.replace(block, extra=without_state(block.extra, provider))
        elif isinstance(block, Reasoning) and provider_state(block.extra, provider):
            continue
        blocks.append(block)
    return msgspec.structs.replace(turn, blocks=tuple(blocks), extra=without_state(turn.extra, provider), source=None)


# `present`: the client sends the state itself; `foreign`: what it sends is of another model, backend or credential.
Outcome: TypeAlias = Literal["present", "restored", "missing", "ambiguous", "foreign"]


class _Report(msgspec.Struct, frozen=True):
    action: Action
    rule: NoticeRule
    level: Level
    detail: str


_REPORTS: Final[Mapping[Outcome, _Report]] = {
    "present": _Report("seen", "STATE_PRESENT", "debug", "the {kind} of an earlier answer is in the request"),
    "restored": _Report("added", "STATE_RESTORED", "debug", "the {kind} of an earlier answer was put back"),
    "missing": _Report("seen", "STATE_MISSING", "warning", "the {kind} is neither in the request nor kept"),
    "ambiguous": _Report(
        "seen",
        "STATE_AMBIGUOUS",
        "warning",
        "the {kind} of two answers was kept that look the same; neither was put back",
    ),
    "foreign": _Report("dropped", "STATE_FOREIGN", "warning", "the {kind} of another model or credential is not sent"),
}


class StateRestorer(msgspec.Struct, frozen=True):
    """The rule of a provider, the field of its plain reasoning, and the key of the digests."""

    rule: StateRule
    field: str
    secret: bytes

    def lacks(self, turn: Turn) -> bool:
        """Returns whether the turn lacks anything that may be kept."""
        return lacks_state(turn, self.rule, self.field)

    def restore(
        self, turn: Turn, found: LookupResult, state: TurnState | None, *, required: bool
    ) -> tuple[Turn, Outcome | None]:
        """Returns the turn as it is sent, and what became of its state; None: it had none that is known. `state` is the
        one that was found, if it is still there."""
        if self._is_foreign(turn, found):
            assert self.rule.provider is not None  # only its state has digests
            return without_foreign(turn, self.rule.provider), "foreign"
        if not self.lacks(turn):
            return turn, "present"
        if state is not None and (whole := with_missing_state(turn, state, self.rule, self.field)) is not turn:
            return whole, "restored"
        if not lacks_required(turn, self.rule, self.field):
            return turn, "present"
        if found.ambiguous:
            return turn, "ambiguous"
        known = found.variant is not None or found.elsewhere
        return turn, "missing" if known or required else None

    def _is_foreign(self, turn: Turn, found: LookupResult) -> bool:
        return bool(found.foreign) and not found.foreign.isdisjoint(
            state_digests(carried_states(turn, self.rule), self.secret)
        )


def is_required(rule: StateRule, conversation: Conversation) -> bool:
    """Returns whether the provider refuses this request without its state."""
    effort = conversation.params.get("reasoning_effort")
    return rule.required == "always" or (rule.required == "thinking" and effort not in (None, "none"))


def kind_of(rule: StateRule) -> str:
    """Returns the word for the state in notices and metrics."""
    if rule.reasoning != "none":
        return "reasoning"
    return "signature" if rule.calls else "fields"


def report(outcome: Outcome, rule: StateRule, turn: Turn) -> Notice:
    """Returns the notice of what became of a turn's state."""
    found = _REPORTS[outcome]
    detail = found.detail.format(kind=kind_of(rule))
    return Notice("state", found.action, found.rule, detail, index=turn.index, level=found.level)
