"""Describes, as data, which state of an answer must return to its maker, and for which a client has a place."""

from typing import Final, Literal

import msgspec


class StateRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a provider expects back of its own answers, and where.

    - `provider`: the name below `extra_content` under which blocks carry state that only their maker reads.
    - `reasoning`: `plain` where the text of the reasoning must return, an empty one too; `signed` where those pieces of
      it must that have state of `provider`, in their order.
    - `calls`: whether calls carry state of `provider`.
    - `fields`: the fields of the message that must return unchanged.
    - `turns`: where: in every turn with calls, in those of the running loop (behind the last question), or in all turns
      of the assistant.
    - `required`: whether the provider refuses a request in which it is absent: always, never, or where the request asks
      for thinking.
    - `scope`: how far it is valid: for the model that made it, or for every model of the same credential. It is never
      valid for another backend or credential.
    """

    provider: str | None = None
    reasoning: Literal["none", "plain", "signed"] = "none"
    calls: bool = False
    fields: tuple[str, ...] = ()
    turns: Literal["calls", "loop", "all"] = "calls"
    required: Literal["always", "thinking", "never"] = "never"
    scope: Literal["model", "credential"] = "model"

    def __post_init__(self) -> None:
        """Raises ValueError for state without the provider that reads it."""
        if self.provider is None and (self.calls or self.reasoning == "signed"):
            raise ValueError("provider is missing: state of calls or of signed reasoning stands below its name")


class HeldState(msgspec.Struct, frozen=True):
    """The state of an answer for which a client's dialect has a place: the providers whose state its reasoning and its
    calls carry. None: those of every provider."""

    reasoning: frozenset[str] | None = None
    calls: frozenset[str] | None = None


ALL_STATE: Final = HeldState()
NO_STATE: Final = HeldState(frozenset(), frozenset())
