"""Encodes what a client of another API asks of thinking as the field `reasoning`: an effort that the model takes, and
the thoughts as a summary.

Source: OpenAI, API reference, `reasoning` of `POST /v1/responses`. The efforts of a model are those of chat
completions, but for `max`, which newer models have here alone.
"""

import re
from typing import Final

from gateway.core.conversation import Conversation, Json
from gateway.core.notices import Notice
from gateway.providers.openai import REQUEST_RULES
from gateway.providers.request_rules import EFFORTS, OFF, nearest_effort

THINKING: Final = "thinking"
_MAX: Final = re.compile(r"(.*/)?gpt-6(?![0-9]).*")


def reasoning_field(conversation: Conversation, model: str, notices: list[Notice]) -> Json:
    """Returns the field, None without one. `model` is the name by which the rules for models go.

    A field `thinking` of the type `disabled` counts as the effort `none`; of another type it asks for the thoughts,
    unless its `display` says that their text is not read.
    """
    thinking = conversation.params.get(THINKING)
    kind = thinking.get("type") if isinstance(thinking, dict) else None
    name = THINKING if kind == "disabled" else "reasoning_effort"
    asked = OFF if kind == "disabled" else conversation.params.get("reasoning_effort")
    efforts = _efforts(model)
    path = conversation.paths.param
    if thinking is not None and (kind is None or (kind != "disabled" and efforts == ())):
        detail = f"the backend has no field for {path(THINKING)!r}"
        notices.append(Notice("encode", "dropped", "FIELD_NOT_SENT", detail, level="debug", fields=(THINKING,)))
    effort = _effort(asked, efforts)
    if effort is None and asked is not None and kind != "disabled":
        detail = f"the backend gets no {path(name)}: the model does not reason"
        notices.append(Notice("encode", "dropped", "EFFORT_NOT_SENT", detail, level="warning"))
    elif effort not in (None, asked):
        said = kind if kind == "disabled" else asked
        detail = f"{path(name)} {said} is sent as reasoning.effort {effort}, the nearest that the model takes"
        notices.append(Notice("encode", "changed", "EFFORT_CHANGED", detail, level="debug"))
    fields: dict[str, Json] = {} if effort is None else {"effort": effort}
    shown = isinstance(thinking, dict) and thinking.get("display") != "omitted"
    if shown and kind not in (None, "disabled") and efforts != ():
        fields["summary"] = "auto"
    return fields or None


def _efforts(model: str) -> tuple[str, ...] | None:
    """Returns the efforts that the model takes; None where nothing is known of it."""
    rules = REQUEST_RULES.of_model(model)
    efforts = None if rules is None or rules.thinking is None else rules.thinking.efforts
    return (*efforts, "max") if efforts and _MAX.fullmatch(model) else efforts


def _effort(asked: Json, efforts: tuple[str, ...] | None) -> Json:
    if efforts is None or not isinstance(asked, str) or asked not in EFFORTS:
        return asked
    return nearest_effort(asked, efforts) if efforts else None
