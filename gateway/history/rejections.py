"""Maps a provider's error text about a refused history or request field to a rule code, a place and the likely fix.

The texts are those that providers send (`refusals` of a `Provider`), and those that several of them have in common.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import Final, Literal

import msgspec

from gateway.core.conversation import Conversation, Turn
from gateway.core.errors import IMAGE_REFUSED, BackendError
from gateway.core.field_paths import CANONICAL_PATHS
from gateway.core.notices import Notice, NoticeRule
from gateway.providers.refusals import COMMON_REFUSALS, REFUSALS, Refusal
from gateway.providers.registry import PROVIDERS


class Rejection(msgspec.Struct, frozen=True):
    """A classified rejection. `advice` is a template of `FieldPaths.worded`.

    `about` says what was refused, as in `Refusal`. `index` counts the client's messages; None when it is unknown.
    """

    rule: NoticeRule
    advice: str
    about: Literal["history", "request"]
    index: int | None = None
    tool_call_id: str | None = None


# A provider that finds no model for an image answers 404, which clients read as another fault.
_IMAGE_STATUSES: Final = frozenset({404, 422})
_INDEX: Final = re.compile(r"messages?(?:\.\[|\[|\.| at index |\s+index\s+)(\d+)")
_FIELD: Final = re.compile(r"[.\[]")
_TOKEN: Final = re.compile(r"[\w:.-]*[\w:-]")


@cache
def _texts() -> tuple[tuple[re.Pattern[str], Refusal], ...]:
    """Returns the known texts in the order of their meanings. Most processes never see one."""
    spoken = (COMMON_REFUSALS, *(provider.refusals for provider in PROVIDERS))
    return tuple(
        (re.compile(texts[refusal], re.DOTALL), refusal) for refusal in REFUSALS for texts in spoken if refusal in texts
    )


def classify_rejection(text: str, param: str | None, sent: Sequence[Turn]) -> Rejection | None:
    """Returns the meaning of an error text, or None for an unknown text.

    `sent` are the turns that were sent, one message each; they map the provider's index to the client's.
    """
    for pattern, refusal in _texts():
        if pattern.search(text):
            index = _index(f"{param or ''} {text}", sent)
            return Rejection(refusal.rule, refusal.advice, refusal.about, index, _call_id(text, sent))
    return None


def explained(error: BackendError, sent: Conversation) -> BackendError:
    """Returns the same error; for a known rejection with rule, index, id and advice in the error object.

    `sent` is the conversation as it was sent; its client knows the places by its own paths.
    """
    refused = 400 <= error.status < 500 and error.too_long is None
    found = classify_rejection(error.message, error.param, sent.turns) if refused else None
    error.param = client_param(error.param, sent)
    if found is not None:
        error.extra = {
            **error.extra,
            "rule": found.rule,
            "index": found.index,
            "tool_call_id": found.tool_call_id,
            "advice": sent.paths.worded(found.advice),
        }
        if found.rule == IMAGE_REFUSED and error.status in _IMAGE_STATUSES:
            error.status, error.code = 400, "invalid_value"
        notice = Notice(
            "backend",
            "failed",
            "REQUEST_REFUSED" if found.about == "request" else "HISTORY_REFUSED",
            f"the backend refused the {found.about}: {found.rule}",
            index=found.index,
            tool_call_id=found.tool_call_id,
            level="error",
        )
        error.notices = (*error.notices, notice)
    return error


def client_param(param: str | None, sent: Conversation) -> str | None:
    """Returns the `param` of a backend's error as the client knows it.

    A backend names its fields by their canonical names, and a message by its position among those that were sent. A
    client with other paths gets its own turn or field; what stands inside has no common form.
    """
    if param is None or sent.paths == CANONICAL_PATHS:
        return param
    index = _index(param, sent.turns)
    if index is not None:
        return sent.paths.turn.format(turn=index)
    return sent.paths.param(_FIELD.split(param, 1)[0])


def _index(text: str, sent: Sequence[Turn]) -> int | None:
    match = _INDEX.search(text)
    if match is None or int(match[1]) >= len(sent):
        return None
    return sent[int(match[1])].index


def _call_id(text: str, sent: Sequence[Turn]) -> str | None:
    known = {call.id for turn in sent for call in turn.calls} | {
        result.call_id for turn in sent for result in turn.results
    }
    return next((token for token in _TOKEN.findall(text) if token in known), None)
