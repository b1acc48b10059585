"""Combines judges of a message: the first of them, of each item, under a condition, of the document in a field."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from adapters.proto.backend.field_getters import Condition, Getter
from adapters.proto.backend.json_places import read_document
from gateway.core.errors import BackendError

# The error that a message reports, or None. (Any: a message whose class exists only at run time.)
Judge: TypeAlias = Callable[[Any], BackendError | None]


def judge_first(judges: Sequence[Judge]) -> Judge:
    """Returns one judge for several, whose errors come in their order."""
    if len(judges) == 1:
        return judges[0]
    return lambda message: next((error for judge in judges if (error := judge(message)) is not None), None)


def judge_each(items: Getter, judge: Judge) -> Judge:
    """Returns the judge of the items of a message."""
    return lambda message: next((error for item in items(message) if (error := judge(item)) is not None), None)


def judge_if(holds: Condition, judge: Judge) -> Judge:
    """Returns the judge of the messages for which the condition holds."""
    return lambda message: judge(message) if holds(message) else None


def judge_first_choice(number: Getter, judge: Judge) -> Judge:
    """Returns the judge of the first choice, 0."""
    return lambda message: None if number(message) else judge(message)


def judge_inside(get: Getter, judge: Judge) -> Judge:
    """Returns the judge of the JSON document in a field of a message, where there is one."""

    def judge_document(message: Any) -> BackendError | None:
        document = read_document(written) if (written := get(message)) else None
        return None if document is None else judge(document)

    return judge_document
