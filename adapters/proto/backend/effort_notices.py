"""Tells which reasoning efforts a template sends as another one, or not at all."""

import json
from collections.abc import Mapping, Sequence

from gateway.core.conversation import Json
from gateway.core.notices import Notice
from gateway.providers.request_rules import EFFORTS, OFF


class EffortNotices:
    """The notices of one template. `cases` are the values of each of its fields by effort."""

    def __init__(self, cases: Sequence[Mapping[str, Json]]) -> None:
        self._known = frozenset(effort for case in cases for effort in case)
        self._joined = _joined_efforts(cases)

    def of(self, effort: Json) -> Notice | None:
        """Returns the notice of a request with this effort; None: it is sent as it is, or there is none."""
        if isinstance(effort, str) and effort in self._known:
            return self._joined.get(effort)
        return None if effort is None else _no_effort(effort)


def _joined_efforts(cases: Sequence[Mapping[str, Json]]) -> dict[str, Notice]:
    """Returns a notice for each effort that has the values of another one in all fields: none for the one nearest to
    `medium`, as which the others are sent, unless `none` is among them."""
    joined: dict[str, list[str]] = {}
    for effort in EFFORTS:
        if any(effort in case for case in cases):
            joined.setdefault(json.dumps([case.get(effort) for case in cases], sort_keys=True), []).append(effort)
    told: dict[str, Notice] = {}
    for efforts in joined.values():
        middle = min(efforts, key=lambda effort: abs(EFFORTS.index(effort) - EFFORTS.index("medium")))
        told |= {effort: _joined_effort(effort, middle) for effort in efforts if effort != middle}
        if OFF in efforts and middle != OFF:
            told[middle] = _joined_effort(middle, OFF)
    return told


def _joined_effort(effort: str, other: str) -> Notice:
    detail = f"the reasoning effort {effort!r} is sent with the value of {other!r}"
    return Notice("encode", "changed", "EFFORT_CHANGED", detail, level="debug")


def _no_effort(word: Json) -> Notice:
    detail = f"the backend has no value for the reasoning effort {str(word)[:40]!r}"
    return Notice("encode", "dropped", "FIELD_NOT_SENT", detail, level="warning")
