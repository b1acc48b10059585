"""A conversation in, the request of a wire out."""

from collections.abc import Mapping
from typing import Final

import msgspec

from adapters.text.calling import Calling, calling_of, writes_raw
from adapters.text.options import TextOptions
from adapters.text.prompt import write_prompt
from adapters.text.template import render
from adapters.text.wire import FIELD, MEDIA, Wire
from gateway.adapter import BackendRequest
from gateway.conversation.turn_guard import turn_markers
from gateway.errors import InvalidRequest, Unsupported
from gateway.policy import Policy
from gateway.tools.prompted.format import ToolFormat
from gateway.types import Conversation, Json

_ANY_JSON: Final[dict[str, Json]] = {"type": "object"}


def encode_request(
    conversation: Conversation, policy: Policy, options: TextOptions, wire: Wire, tool_format: ToolFormat
) -> BackendRequest:
    """The same bytes for the same conversation. Raises InvalidRequest, Unsupported among it."""
    calling = calling_of(conversation, wire, tool_format)
    if calling.forced and options.force_tools == "constrain" and not (calling.constraint and wire.constrains):
        raise Unsupported("tool_choice cannot be made sure here for so many tools.", param="tool_choice")
    prompt = write_prompt(conversation, policy, tool_format, calling)
    values: dict[str, Json] = {
        "$prompt": prompt.text,
        "$system": prompt.system or None,
        "$transcript": prompt.transcript,
        "$model": conversation.model or None,
        "$schema": _schema(conversation, calling),
        "$stop": _stops(conversation, policy, options, wire, tool_format, calling) or None,
        **_sampling(conversation, wire),
        **{name: (conversation.source or {}).get(name.removeprefix(FIELD)) for name in wire.names if FIELD in name},
    }
    accepts = wire.accepts or MEDIA[wire.framing]
    headers = {"content-type": "application/json", "accept": accepts[0], "accept-encoding": "identity"}
    return BackendRequest(wire.path, headers, _body(wire, values), accepts, prompt.notices)


def _body(wire: Wire, values: Mapping[str, Json]) -> bytes:
    try:
        return msgspec.json.encode(render(dict(wire.request), values))
    except UnicodeEncodeError as error:
        raise InvalidRequest("The request holds half a surrogate pair, which is no character.") from error


def _sampling(conversation: Conversation, wire: Wire) -> dict[str, Json]:
    said = conversation.sampling
    greedy = said.temperature is not None and said.temperature <= 0
    return {
        "$max_tokens": wire.max_tokens if said.max_tokens is None else said.max_tokens,
        "$temperature": said.temperature,
        "$temperature_above_0": None if greedy else said.temperature,
        "$samples": False if greedy else None,
        "$top_p": said.top_p,
        "$top_p_below_1": None if said.top_p is None or said.top_p >= 1 else said.top_p,
        "$seed": said.seed,
    }


def _schema(conversation: Conversation, calling: Calling) -> Json:
    """What the answer is held to: one call, or the shape that the client asked for."""
    if calling.constraint is not None:
        return dict(calling.constraint.schema)
    shape = (conversation.source or {}).get("response_format")
    if not isinstance(shape, dict) or shape.get("type") in (None, "text"):
        return None
    if calling.tools:
        raise Unsupported("response_format cannot be kept here while tools may be called.", param="response_format")
    described = shape.get("json_schema")
    schema = described.get("schema") if isinstance(described, dict) else None
    return schema if isinstance(schema, dict) else _ANY_JSON


def _stops(
    conversation: Conversation,
    policy: Policy,
    options: TextOptions,
    wire: Wire,
    tool_format: ToolFormat,
    calling: Calling,
) -> list[Json]:
    """The client's own, unless calls may be written, in whose arguments they may stand; then those of other turns."""
    stops: list[str] = [] if calling.tools else [stop for stop in conversation.sampling.stop if stop]
    if calling.constraint is not None:
        stops += calling.constraint.stop
    if calling.tools:
        stops += tool_format.stops
    if options.turn_stops and not (calling.tools and writes_raw(tool_format)):
        stops += [f"\n{marker}" for marker in turn_markers(policy.flatten)]
    sent: list[Json] = [*dict.fromkeys(stops)]
    return sent[: wire.max_stops]
