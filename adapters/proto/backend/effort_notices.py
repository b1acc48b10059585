"""Tells which reasoning efforts a template sends as another one, or not at all."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

from gateway.core.conversation import Json
from gateway.core.notices import Notice
from gateway.providers.request_rules import EFFORTS, OFF

# A value, as JSON, that means no reasoning: a word of an enum, such as `EFFORT_NONE`, false, or a budget of 0.
_MEANS_OFF: Final = re.compile(r"(?i)(\b|_)(none|off|disabled|false|0)\b(?!\.)")


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
    """Returns a notice for each effort that has the values of another one in all fields: none for the one as which the
    others are sent. That is `none` if it is among them and its values mean that the model does not reason, else the one
    nearest to `medium`."""
    joined: dict[str, list[str]] = {}
    for effort in EFFORTS:
        if any(effort in case for case in cases):
            joined.setdefault(json.dumps([case.get(effort) for case in cases], sort_keys=True), []).append(effort)
    told: dict[str, Notice] = {}
    for values, efforts in joined.items():
        middle = min(efforts, key=lambda effort: abs(EFFORTS.index(effort) - EFFORTS.index("medium")))
        sent = OFF if OFF in efforts and _MEANS_OFF.search(values) else middle
        told |= {effort: _joined_effort(effort, sent) for effort in efforts if effort != sent}
    return told


def _joined_effort(effort: str, other: str) -> Notice:
    detail = f"the reasoning effort {effort!r} is sent with the value of {other!r}"
    return Notice("encode", "changed", "EFFORT_CHANGED", detail, level="debug")


def _no_effort(word: Json) -> Notice:
    detail = f"the backend has no value for the reasoning effort {str(word)[:40]!r}"
    return Notice("encode", "dropped", "FIELD_NOT_SENT", detail, level="warning", fields=("reasoning_effort",))
