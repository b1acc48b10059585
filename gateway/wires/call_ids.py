"""Gives every call of one response an id of its own, whatever ids the backend sends; every change is a notice."""

from collections.abc import Iterable

from gateway.core.notices import Level, Notice


class CallIds:
    """The ids of the calls of one response so far.

    A missing id is derived from the call's number, and one that another call has is extended by it. `seed` makes
    derived ids differ from those of earlier responses in a conversation; the same response gets the same ids. `taken`
    are the ids of other calls, where the backend's ids must differ from them as well. `optional`: the wire's calls need
    no id, so that a missing one is no mistake of the backend.
    """

    def __init__(self, seed: int, taken: Iterable[str] = (), *, optional: bool = False) -> None:
        self._seed = seed
        self._taken = {*taken}
        self._missing: Level = "debug" if optional else "warning"
        # Maps each stem to the first and the end of a range of used numbers.
        self._numbers: dict[str, tuple[int, int]] = {}

    def take(self, sent: object, index: int) -> tuple[str, tuple[Notice, ...]]:
        """Returns the id of the call with this number, and a notice if it is not the one that the backend sent. What is
        no text is no id."""
        if not isinstance(sent, str) or not sent:
            made = self._derive("call", index)
            detail = "the backend gave a call no id"
            return made, (Notice("backend", "added", "CALL_ID_ADDED", detail, tool_call_id=made, level=self._missing),)
        if sent not in self._taken:
            self._taken.add(sent)
            return sent, ()
        made = self._derive(sent, index)
        detail = f"the backend gave a call the id {sent[:80]!r}, which another call has"
        return made, (Notice("backend", "changed", "CALL_ID_RENAMED", detail, tool_call_id=made, level="warning"),)

    def _derive(self, stem: str, index: int) -> str:
        begin, end = self._numbers.get(stem, (0, 0))
        number = first = index
        if begin <= number < end:
            number, first = end, begin
        while (derived := f"{stem}_{self._seed}_{number}") in self._taken:
            number += 1
        self._numbers[stem] = (first, number + 1)
        self._taken.add(derived)
        return derived
