"""Decides what becomes of the state of one turn, and says so."""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

import msgspec

from gateway.core.conversation import Conversation, Turn
from gateway.core.notices import Action, Level, Notice
from gateway.core.state_rule import StateRule
from gateway.history.kept_state.anchors import marks
from gateway.history.kept_state.restore import lacks_required, lacks_state, restore, without_foreign
from gateway.history.kept_state.turn_state import TurnState, carried_states
from gateway.history.kept_state.variants import Choice

# `present`: the client sends the state itself; `foreign`: what it sends is of another model, backend or credential.
Outcome: TypeAlias = Literal["present", "restored", "missing", "ambiguous", "foreign"]


class _Report(msgspec.Struct, frozen=True):
    action: Action
    rule: str
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


class Recaller(msgspec.Struct, frozen=True):
    """The rule of a provider, the field of its plain reasoning, and the key of the digests."""

    rule: StateRule
    field: str
    secret: bytes

    def lacks(self, turn: Turn) -> bool:
        """Returns whether the turn lacks anything that may be kept."""
        return lacks_state(turn, self.rule, self.field)

    def recall(
        self, turn: Turn, choice: Choice, state: TurnState | None, *, required: bool
    ) -> tuple[Turn, Outcome | None]:
        """Returns the turn as it is sent, and what became of its state; None: it had none that is known. `state` is the
        one of the choice, if it is still there."""
        if self._is_foreign(turn, choice):
            assert self.rule.provider is not None  # only its state has marks
            return without_foreign(turn, self.rule.provider), "foreign"
        if not self.lacks(turn):
            return turn, "present"
        if state is not None and (whole := restore(turn, state, self.rule, self.field)) is not turn:
            return whole, "restored"
        if not lacks_required(turn, self.rule, self.field):
            return turn, "present"
        if choice.ambiguous:
            return turn, "ambiguous"
        known = choice.variant is not None or choice.elsewhere
        return turn, "missing" if known or required else None

    def _is_foreign(self, turn: Turn, choice: Choice) -> bool:
        return bool(choice.foreign) and not choice.foreign.isdisjoint(
            marks(carried_states(turn, self.rule), self.secret)
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
    return Notice("state", found.action, found.rule, detail, turn.index, level=found.level)
