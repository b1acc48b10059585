"""Finds the request template of a mapping. The conversation may be one text, a list of turns, or OpenAI's JSON; the
form that leaves the least open is proposed."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from adapters.proto.backend.conversation_values import TemplateUse, conversation_values
from adapters.proto.backend.openai_json import request_json
from adapters.proto.backend.schema import Method
from adapters.proto.backend.template_names import FIELD, OPENAI, STRUCTURED, TEXT, Scope
from adapters.proto.learn.exchange import RecordedExchange
from adapters.proto.learn.learned import Learned
from adapters.proto.learn.samples import Sample
from adapters.proto.learn.spots import numbers
from adapters.proto.learn.template_search import find_message
from adapters.text.backend import TextAdapter, TextOptions
from adapters.text.backend.request_template import names_in
from gateway.core.conversation import Image
from gateway.core.errors import InvalidRequest, SettingsError

_LIMIT: Final = "$max_tokens"
_SHOWN: Final = 3
_NOWHERE: Final = (
    "no field of the recorded requests holds the conversation: not as turns, not as the text that the gateway writes,"
    " and not as OpenAI's JSON"
)
_TOO_FEW: Final = (
    "one conversation is too few to tell where it stands in the recorded requests: add an exchange with other texts,"
    " one with an earlier turn of the assistant, and one with its text beside calls"
)
_WIRE: Final = {"path": "", "request": {"text": "$prompt"}, "framing": "text", "ends": "close"}


class RequestForm(msgspec.Struct, frozen=True):
    """One form of the conversation: its names, one of which must be in the template, and the values of the exchanges.
    (Any: a value may be a list of mappings.)"""

    scope: Scope
    needed: frozenset[str]
    values: tuple[dict[str, Any], ...]
    turn_stops: bool = False


class LearnedRequest(msgspec.Struct, frozen=True):
    """The template, and the limit that is sent for a client that sets none. `turn_stops`: the stop sequences are also
    those of other turns, which are sent only where a rule reads the one that was met."""

    learned: Learned
    max_tokens: int | None = None
    turn_stops: bool = False


def find_request_template(
    method: Method, exchanges: Sequence[RecordedExchange], messages: Sequence[Any]
) -> LearnedRequest:
    """Returns the template of the request's messages. Raises SettingsError where no field of them holds the
    conversation in a form that a template can write, with what comes nearest."""
    found: list[LearnedRequest] = []
    nearest = Learned()
    for form in request_forms(method, exchanges):
        limit = _default_limit(form.values, messages)
        values = [{**one, _LIMIT: one.get(_LIMIT) or limit} for one in form.values]
        samples = [Sample(one, message) for one, message in zip(values, messages, strict=True)]
        learned = find_message(method.request, form.scope, samples, "request")
        names = {*names_in(learned.template)}
        if form.needed & names:
            found.append(LearnedRequest(learned, limit, turn_stops=form.turn_stops and "$stop" in names))
        nearest = max(nearest, learned, key=lambda one: one.evidence)
    if not found:
        rest = [f"{doubt.place}: {doubt.reason}" for doubt in nearest.doubts if doubt.kind == "open"]
        few = len({repr(one.conversation.turns) for one in exchanges}) == 1
        raise SettingsError("; ".join([_TOO_FEW if few else _NOWHERE, *rest[:_SHOWN]]))
    return min(found, key=lambda one: (one.learned.open, -one.learned.evidence))


def request_forms(method: Method, exchanges: Sequence[RecordedExchange]) -> Iterator[RequestForm]:
    """Yields the forms that a conversation may have in the requests of a method."""
    streams = method.streams_responses
    documents = [request_json(one.conversation, one.policy, streams=streams)[0] for one in exchanges]
    openai: list[dict[str, Any]] = [
        {"$openai": document, "$model": one.conversation.model or None}
        for document, one in zip(documents, exchanges, strict=True)
    ]
    yield RequestForm(OPENAI, frozenset({"$openai"}), tuple(openai))
    for stopped_by in ({}, {"stopped_by": "stopped_by"}):
        text = TextAdapter(TextOptions({**_WIRE, **stopped_by}), 1 << 20)
        try:
            prompts = tuple(
                _with_fields(text.request_values(one.conversation, one.policy)[1], one) for one in exchanges
            )
        except InvalidRequest:
            break
        yield RequestForm(TEXT, frozenset({"$prompt", "$transcript"}), prompts, turn_stops=bool(stopped_by))
    for apart in (True, False):
        for in_parts in (True, False):
            yield RequestForm(STRUCTURED, frozenset({"$turns"}), tuple(_turns(exchanges, apart, in_parts)))


def _with_fields(values: dict[str, Any], exchange: RecordedExchange) -> dict[str, Any]:
    return {**values, **{f"{FIELD}{name}": value for name, value in exchange.conversation.params.items()}}


def _turns(exchanges: Sequence[RecordedExchange], apart: bool, in_parts: bool) -> Iterator[dict[str, Any]]:
    for exchange in exchanges:
        fields = frozenset(f"{FIELD}{name}" for name in exchange.conversation.params)
        use = TemplateUse(
            names=fields,
            max_tokens=None,
            max_stops=None,
            provider="",
            field="",
            speakers=frozenset({"system", "user", "assistant"}),
            details=None,
            formats=False,
            system_apart=apart,
            results_in_parts=in_parts,
            reasoning=True,
            one_state=False,
            call_ids=True,
            result_ids=True,
            image_urls=False,
            image_bytes=_has_image_bytes(exchange),
        )
        yield conversation_values(exchange.conversation, use)


def _has_image_bytes(exchange: RecordedExchange) -> bool:
    images = (block for turn in exchange.conversation.turns for block in turn.blocks if isinstance(block, Image))
    return all(image.url.startswith("data:") for image in images)


def _default_limit(values: Sequence[dict[str, Any]], messages: Sequence[Any]) -> int | None:
    """Returns the number that stands at the place of the limit where the client set none."""
    limits = [one.get(_LIMIT) for one in values]
    if None not in limits or all(limit is None for limit in limits):
        return None
    found = [numbers(message) for message in messages]
    for path in set.intersection(*map(set, found)) if found else ():
        own = {one[path] for one, limit in zip(found, limits, strict=True) if limit is None}
        if len(own) == 1 and all(limit in (None, one[path]) for one, limit in zip(found, limits, strict=True)):
            number = own.pop()
            return number if isinstance(number, int) else None
    return None
