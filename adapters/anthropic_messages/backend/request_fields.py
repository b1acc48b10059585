"""Fits the fields of a request to the rules of its provider and model, which would refuse the whole request.

One pass over the fields beside the messages, whether the client or the encoder wrote them.
Source: Anthropic, the migration guides of its models; extended thinking; tool use, `tool_choice`.
"""

from collections.abc import Iterator
from typing import Final

from msgspec import UNSET

from adapters.anthropic_messages import DIALECT
from gateway.core.conversation import Conversation, Json
from gateway.core.notices import Level, Notice
from gateway.providers.messages_rules import MessagesModel, MessagesRules

_FORCED: Final = ("any", "tool")
_TOP: Final = ("top_p", "top_k")
_LEAST_TOP_P: Final = 0.95
_CLEARING: Final = "clear_thinking_"


def fit_fields(
    fields: dict[str, Json], rules: MessagesRules, model: MessagesModel | None, conversation: Conversation
) -> list[Notice]:
    """Change the fields as the provider and the model require, and return a notice for each change."""
    return [
        *_within_temperature(fields, rules, conversation),
        *([] if model is None else _fitted_to_model(fields, model, conversation)),
    ]


def without_sampling(fields: dict[str, Json], conversation: Conversation) -> Iterator[Notice]:
    """Leave out what the API refuses beside thinking: another temperature than 1, `top_k`, and a `top_p` below 0.95."""
    if _thinks(fields):
        yield from _default_sampling(fields, conversation, thinks=True)


def _within_temperature(fields: dict[str, Json], rules: MessagesRules, conversation: Conversation) -> Iterator[Notice]:
    most, given = rules.most_temperature, fields.get("temperature")
    if most is None or isinstance(given, bool) or not isinstance(given, int | float) or given <= most:
        return
    fields["temperature"] = most
    path = conversation.paths.param("temperature")
    yield _changed(f"{path} is sent as {most:g}, the highest that the provider accepts", "info")


def _fitted_to_model(fields: dict[str, Json], model: MessagesModel, conversation: Conversation) -> Iterator[Notice]:
    yield from _fitted_thinking(fields, model, conversation)
    yield from _fitted_choice(fields, model, conversation)
    if model.sampling == "default":
        yield from _default_sampling(fields, conversation, thinks=False)
        return
    yield from without_sampling(fields, conversation)
    if model.sampling == "one" and fields.get("temperature") is not None and fields.get("top_p") is not None:
        del fields["top_p"]
        path = conversation.paths.param("top_p")
        yield _dropped(path, f"the model accepts it only without {conversation.paths.param('temperature')}")


def _fitted_thinking(fields: dict[str, Json], model: MessagesModel, conversation: Conversation) -> Iterator[Notice]:
    thinking = fields.get("thinking")
    if not isinstance(thinking, dict) or thinking.get("type") not in model.refused_thinking:
        return
    path = _thinking_path(conversation)
    if thinking["type"] == "disabled":
        del fields["thinking"]
        yield _dropped(path, "the model always thinks", "warning", "thinking")
        return
    rest = {name: value for name, value in thinking.items() if name != "budget_tokens"}
    fields["thinking"] = {**rest, "type": "adaptive"}
    yield _changed(f"{path} is sent as thinking of the type adaptive: the model accepts no budget", "info", "thinking")


def _fitted_choice(fields: dict[str, Json], model: MessagesModel, conversation: Conversation) -> Iterator[Notice]:
    choice = fields.get("tool_choice")
    if not isinstance(choice, dict) or choice.get("type") not in _FORCED:
        return
    path = conversation.paths.param("tool_choice")
    if model.forced_tools == "never":
        rest = {name: value for name, value in choice.items() if name not in ("type", "name")}
        fields["tool_choice"] = {"type": "auto", **rest}
        yield _changed(f"{path} is sent as auto: the model accepts no forced call", "warning", "tool_choice")
    elif model.forced_tools == "without_thinking" and _thinks(fields):
        del fields["thinking"]
        reason = f"the model accepts none beside a forced call, {path}"
        yield _dropped(_thinking_path(conversation), reason, "warning", "thinking")
        yield from _without_clearing(fields)


def _without_clearing(fields: dict[str, Json]) -> Iterator[Notice]:
    """Leave out the edits that the API refuses without thinking: "`clear_thinking_20251015` strategy requires
    `thinking` to be enabled or adaptive"."""
    management = fields.get("context_management")
    edits = management.get("edits") if isinstance(management, dict) else None
    if not isinstance(management, dict) or not isinstance(edits, list):
        return
    kept = [one for one in edits if not (isinstance(one, dict) and str(one.get("type")).startswith(_CLEARING))]
    if len(kept) == len(edits):
        return
    if kept:
        fields["context_management"] = {**management, "edits": kept}
    else:
        del fields["context_management"]
    yield _dropped("context_management.edits of thinking", "the model does not think in this request")


def _default_sampling(fields: dict[str, Json], conversation: Conversation, *, thinks: bool) -> Iterator[Notice]:
    refused = [name for name in _TOP if fields.get(name) is not None and not (thinks and _is_high(name, fields))]
    if fields.get("temperature") not in (None, 1):
        refused.insert(0, "temperature")
    for name in refused:
        del fields[name]
        path = conversation.paths.param(name)
        if thinks:
            detail = f"the backend accepts no {path} while the model thinks"
            yield Notice("encode", "dropped", "FIELD_NOT_SENT", detail)
        else:
            yield _dropped(path, "the model accepts no sampling but the default")


def _is_high(name: str, fields: dict[str, Json]) -> bool:
    """Returns whether a field is a `top_p` that thinking permits: 0.95 to 1 ("Extended thinking", "Feature
    compatibility")."""
    value = fields[name]
    return name == "top_p" and isinstance(value, int | float) and _LEAST_TOP_P <= value <= 1


def _thinks(fields: dict[str, Json]) -> bool:
    thinking = fields.get("thinking")
    return isinstance(thinking, dict) and thinking.get("type") != "disabled"


def _thinking_path(conversation: Conversation) -> str:
    """Returns the path of the field that asks for thinking, as the client knows it."""
    own = None if conversation.source is None else conversation.source.in_dialect(DIALECT)
    return "thinking" if own is not None else conversation.paths.param("reasoning_effort")


def _changed(detail: str, level: Level, lost: str | None = None) -> Notice:
    """Returns the notice that a field is sent with another value; `lost` is the field whose meaning is."""
    fields = UNSET if lost is None else (lost,)
    return Notice("profile", "changed", "REQUEST_FIELD_CHANGED", detail, level=level, fields=fields)


def _dropped(path: str, reason: str, level: Level = "info", lost: str | None = None) -> Notice:
    """Returns the notice of a field that is not sent; `lost` is the field whose meaning is."""
    fields = UNSET if lost is None else (lost,)
    detail = f"{path} is not sent: {reason}"
    return Notice("profile", "dropped", "REQUEST_FIELD_DROPPED", detail, level=level, fields=fields)
