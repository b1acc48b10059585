"""Checks the first message after the system messages: some providers accept only a user message there."""

from collections.abc import Sequence
from typing import Final

from gateway.core.conversation import Text, Turn, is_system
from gateway.providers.profile import Profile

# This text asks for nothing, so that it does not change the response.
OPENING: Final = "(The assistant speaks first.)"


def wrong_first_turn(turns: Sequence[Turn], profile: Profile) -> int | None:
    """Returns the position of a first turn that the provider refuses; None: the first turn is acceptable."""
    if profile.first_turn == "any":
        return None
    first = first_turn(turns)
    return None if first is None or turns[first].role == "user" else first


def first_turn(turns: Sequence[Turn]) -> int | None:
    """Returns the position of the first turn that is no system turn."""
    return next((position for position, turn in enumerate(turns) if not is_system(turn)), None)


def opened(turns: tuple[Turn, ...], position: int) -> tuple[Turn, ...]:
    """Returns the turns with a user turn before the one at `position`."""
    return (*turns[:position], Turn("user", (Text(OPENING),), synthesized=True), *turns[position:])
