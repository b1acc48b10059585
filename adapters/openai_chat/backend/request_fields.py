"""Fits the fields of a request to the rules of its provider, which would refuse the whole request.

One pass over the body as it is sent, whether the client or the encoder wrote its fields.
"""

from collections.abc import Iterator
from typing import Final

from msgspec import UNSET

from adapters.openai_chat.backend.thinking import EFFORT, fit_thinking
from adapters.openai_chat.backend.tool_choice import Body, changed
from gateway.core.conversation import Conversation
from gateway.core.field_paths import FieldPaths
from gateway.core.notices import Level, Notice
from gateway.providers.request_rules import OFF, FieldRules, ModelRules, Range, RequestRules

_LIMITS: Final = ("max_tokens", "max_completion_tokens")
# The fields with functions, the choice among them, and what else a provider accepts only beside them.
_TOOLS: Final = ("tools", "functions")
_BESIDE_TOOLS: Final = ("tool_choice", "function_call", "parallel_tool_calls")
_ALL_MODELS: Final = ModelRules("")


def fit_fields(body: Body, rules: RequestRules, model: str, conversation: Conversation) -> list[Notice]:
    """Changes the fields of a body beside its messages as the provider requires, and returns a notice for each. `model`
    is the name by which the rules for models go."""
    paths = conversation.paths
    of_model = rules.of_model(model) or _ALL_MODELS
    return [
        *_limited(body, rules, conversation),
        *_renamed(body, rules, paths),
        *_without_empty_tools(body, rules, paths),
        *fit_thinking(body, rules, of_model, conversation),
        *_without_refused(body, rules, paths, "provider", "debug"),
        *_without_other_values(body, rules, paths),
        *_within(body, rules, paths),
        *_fitted_to_model(body, of_model, paths),
        # What is not sent cannot stand beside anything.
        *_without_lonely(body, rules, paths),
    ]


def _limited(body: Body, rules: RequestRules, conversation: Conversation) -> Iterator[Notice]:
    if rules.limit is None:
        return
    for other in _LIMITS:
        if other == rules.limit or other not in body:
            continue
        del body[other]
        if conversation.sampling.max_tokens is None:
            yield _dropped(conversation.paths.param(other), f"the provider refuses {other!r}")
        else:
            body[rules.limit] = conversation.sampling.max_tokens
            yield _renamed_to(conversation.paths.param(other), rules.limit)


def _renamed(body: Body, rules: RequestRules, paths: FieldPaths) -> Iterator[Notice]:
    for name, new in rules.renamed.items():
        if name in body:
            value = body.pop(name)
            if new in body:
                yield _dropped(paths.param(name), f"the request has {new!r}")
            else:
                body[new] = value
                yield _renamed_to(paths.param(name), new)


def _without_empty_tools(body: Body, rules: RequestRules, paths: FieldPaths) -> Iterator[Notice]:
    """A choice that forces a call stays: without it, the answer would not be what the client demands."""
    if rules.no_tools != "absent" or any(body.get(name) for name in _TOOLS):
        return
    for name in (*_TOOLS, *_BESIDE_TOOLS):
        if name in body and (name not in ("tool_choice", "function_call") or body[name] in ("auto", "none", None)):
            del body[name]
            yield _dropped(paths.param(name), "the provider refuses it in a request without functions")


def _without_refused(body: Body, rules: FieldRules, paths: FieldPaths, who: str, level: Level) -> Iterator[Notice]:
    for name in rules.refused:
        if name in body:
            del body[name]
            yield _dropped(paths.param(name), f"the {who} refuses a field of this name", level, lost=name)
    for name, other in rules.exclusive:
        if body.get(name) is not None and body.get(other) is not None:
            del body[other]
            yield _dropped(paths.param(other), f"the {who} refuses it beside {name!r}", level, lost=other)


def _without_other_values(body: Body, rules: RequestRules, paths: FieldPaths) -> Iterator[Notice]:
    for name, values in rules.values.items():
        if body.get(name) is not None and body[name] not in values:
            del body[name]
            yield _dropped(paths.param(name), f"the provider accepts {', '.join(values)}", lost=name)


def _within(body: Body, rules: FieldRules, paths: FieldPaths) -> Iterator[Notice]:
    for name, limits in rules.ranges.items():
        for field in _LIMITS if name == "max_tokens" else (name,):
            value = body.get(field)
            if isinstance(value, bool) or not isinstance(value, int | float):
                continue
            if field in _LIMITS and value < 1 and limits.least is not None and value < limits.least:
                del body[field]
                yield _dropped(paths.param(field), f"a limit of {value} is none", level="info")
            elif (nearest := _nearest(value, limits)) != value:
                body[field] = nearest
                yield changed(
                    f"{paths.param(field)} {value} is sent as {nearest}: the provider accepts no other", "info"
                )


def _nearest(value: float, limits: Range) -> float:
    if limits.least is not None and value < limits.least:
        return limits.least
    return limits.greatest if limits.greatest is not None and value > limits.greatest else value


def _fitted_to_model(body: Body, rules: ModelRules, paths: FieldPaths) -> Iterator[Notice]:
    only = rules.effort_beside_tools
    if only is not None and any(body.get(name) for name in _TOOLS) and body.get(EFFORT) != only:
        body[EFFORT] = only
        detail = f"{paths.param(EFFORT)} is sent as {only!r}: beside tools, this API accepts no other one of the model"
        yield changed(detail, "warning", EFFORT)
    effort = body.get(EFFORT)
    reasons = (rules.default_effort if effort is None else effort) != OFF
    yield from _without_refused(body, rules, paths, "model", "info")
    for name in rules.refused_while_reasoning if reasons else ():
        if name in body:
            del body[name]
            yield _dropped(paths.param(name), "the model refuses a field of this name", level="info", lost=name)
    for name, value in {**rules.fixed, **(rules.fixed_while_reasoning if reasons else {})}.items():
        if body.get(name) is not None and body[name] != value:
            del body[name]
            yield _dropped(paths.param(name), f"the model accepts only {value:g}", level="info", lost=name)
    yield from _within(body, rules, paths)


def _without_lonely(body: Body, rules: RequestRules, paths: FieldPaths) -> Iterator[Notice]:
    for name, other in rules.beside.items():
        if body.get(name) is not None and body.get(other) is not True:
            del body[name]
            yield _dropped(paths.param(name), f"the provider accepts it only where {other!r} is true", lost=name)


def _dropped(path: str, reason: str, level: Level = "debug", lost: str | None = None) -> Notice:
    """Returns the notice of a field that is not sent; `lost` is its name where something asked for it."""
    detail = f"{path} is not sent: {reason}"
    fields = UNSET if lost is None else (lost,)
    return Notice("profile", "dropped", "REQUEST_FIELD_DROPPED", detail, level=level, fields=fields)


def _renamed_to(path: str, name: str) -> Notice:
    return Notice("profile", "changed", "REQUEST_FIELD_RENAMED", f"{path} is sent as {name!r}", level="debug")
