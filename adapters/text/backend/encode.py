"""Encodes a conversation as the request of a text wire."""

from collections.abc import Mapping
from typing import Final

import msgspec

from adapters.text.backend.options import TextOptions
from adapters.text.backend.prompt import Prompt, write_prompt
from adapters.text.backend.request_template import render
from adapters.text.backend.tool_choice import ToolChoicePlan, plan_tool_choice
from adapters.text.backend.wire import FIELD, MEDIA, Wire
from gateway.adapter import BackendRequest, SentText
from gateway.core.conversation import Conversation, Json
from gateway.core.errors import InvalidRequest, Unsupported
from gateway.core.policy import Policy
from gateway.response.role_marker_filter import turn_stops
from gateway.tool_calls.parsers.format import ToolFormat

_ANY_JSON: Final[dict[str, Json]] = {"type": "object"}


def encode_request(
    conversation: Conversation, policy: Policy, options: TextOptions, wire: Wire, tool_format: ToolFormat
) -> BackendRequest:
    """Encodes the request; the same conversation gives the same bytes. Raises InvalidRequest, including Unsupported."""
    prompt, values = request_values(conversation, policy, options, wire, tool_format)
    accepts = wire.accepts or MEDIA[wire.framing]
    headers = {"content-type": "application/json", "accept": accepts[0], "accept-encoding": "identity"}
    return BackendRequest(
        wire.path,
        headers,
        _body(wire, values),
        accepts=accepts,
        notices=prompt.notices,
        sent_text=sent_text(prompt, wire),
    )


def request_values(
    conversation: Conversation, policy: Policy, options: TextOptions, wire: Wire, tool_format: ToolFormat
) -> tuple[Prompt, dict[str, Json]]:
    """Returns the prompt, and the value of each name that a template may use; None: the name has no value. Raises
    InvalidRequest, including Unsupported."""
    calling = plan_tool_choice(conversation, wire, tool_format)
    if calling.forced and options.force_tools == "constrain" and not (calling.constraint and wire.constrains):
        param = conversation.paths.param("tool_choice")
        raise Unsupported(f"{param} cannot be enforced for so many tools.", param=param)
    prompt = write_prompt(conversation, policy, tool_format, calling)
    values: dict[str, Json] = {
        "$prompt": prompt.text,
        "$system": prompt.system or None,
        "$transcript": prompt.transcript if "$transcript" in wire.names else None,
        "$model": conversation.model or None,
        "$request_id": conversation.request_id,
        "$schema": schema_of(conversation, calling),
        "$stop": _stops(conversation, policy, options, wire, calling) or None,
        **sampling_values(conversation, wire.max_tokens),
        **{name: conversation.params.get(name.removeprefix(FIELD)) for name in wire.names if FIELD in name},
    }
    return prompt, values


def sent_text(prompt: Prompt, wire: Wire) -> SentText:
    """Returns the text in the request, for a diagnosis."""
    if wire.has_cue:
        return SentText(prompt.text, prompt.system)
    return SentText(prompt.transcript, prompt.system if "$system" in wire.names else "", apart=True)


def _body(wire: Wire, values: Mapping[str, Json]) -> bytes:
    try:
        return msgspec.json.encode(render(dict(wire.request), values))
    except UnicodeEncodeError as error:
        raise InvalidRequest("The request contains half of a surrogate pair, which is not a character.") from error


def sampling_values(conversation: Conversation, max_tokens: int | None) -> dict[str, Json]:
    """Returns the values of the names for sampling. `max_tokens` is the limit for a client that sets none."""
    sampling = conversation.sampling
    greedy = sampling.temperature is not None and sampling.temperature <= 0
    return {
        "$max_tokens": max_tokens if sampling.max_tokens is None else sampling.max_tokens,
        "$temperature": sampling.temperature,
        "$temperature_above_0": None if greedy else sampling.temperature,
        "$samples": False if greedy else None,
        "$top_p": sampling.top_p,
        "$top_p_below_1": None if sampling.top_p is None or sampling.top_p >= 1 else sampling.top_p,
        "$seed": sampling.seed,
    }


def schema_of(conversation: Conversation, calling: ToolChoicePlan) -> Json:
    """Returns the schema that constrains the response: one call, or the shape that the client requested. Raises
    Unsupported for a shape while tools may be called."""
    if calling.constraint is not None:
        return dict(calling.constraint.schema)
    schema = requested_schema(conversation)
    if schema is not None and calling.tools:
        param = conversation.paths.param("response_format")
        raise Unsupported(f"{param} cannot be enforced while tools may be called.", param=param)
    return schema


def requested_schema(conversation: Conversation) -> Json:
    """Returns the schema of the shape that the client requested for the text of the response; None: any text."""
    shape = conversation.params.get("response_format")
    if not isinstance(shape, dict) or shape.get("type") in (None, "text"):
        return None
    described = shape.get("json_schema")
    schema = described.get("schema") if isinstance(described, dict) else None
    return schema if isinstance(schema, dict) else _ANY_JSON


def _stops(
    conversation: Conversation, policy: Policy, options: TextOptions, wire: Wire, calling: ToolChoicePlan
) -> list[Json]:
    """Returns the client's own stop sequences, then those of other turns. Returns none while calls may be written,
    because any of them may occur in the arguments. A backend that does not report which one it met would end a turn
    without a notice; for such a backend only the turn guard checks."""
    if calling.tools:
        return []
    stops = [stop for stop in conversation.sampling.stop if stop]
    if options.turn_stops and (wire.stopped_by is not None or not options.turn_guard):
        stops += turn_stops(policy.flatten)
    sent: list[Json] = [*dict.fromkeys(stops)]
    return sent[: wire.max_stops]
