"""Proposes the mapping of a protobuf service: its request template, its rules, and what the exchanges do not decide."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from adapters.proto.backend.carriers import find_carrier
from adapters.proto.backend.schema import Method, Schema
from adapters.proto.learn.bodies import read_request, read_response
from adapters.proto.learn.exchange import RecordedExchange
from adapters.proto.learn.learned import Doubt, Learned
from adapters.proto.learn.presumed import presume
from adapters.proto.learn.read_search import find_rules
from adapters.proto.learn.request_search import LearnedRequest, find_request_template
from adapters.text.backend.request_template import names_in
from gateway.core.conversation import Json
from gateway.core.descriptor_set import DescriptorSet


class Proposal(msgspec.Struct, frozen=True):
    """The keys of a backend's entry that say how it is spoken to, and what was not decided."""

    entry: Mapping[str, Json]
    doubts: tuple[Doubt, ...]


def propose(schema: DescriptorSet, method: str, carrier: str, exchanges: Sequence[RecordedExchange]) -> Proposal:
    """Returns the mapping that the exchanges show. Raises OptionError for a method or a carrier that does not exist,
    and SettingsError for an exchange whose bytes are not those of the method and the carrier, and where no field holds
    the conversation."""
    found = Schema(schema).method(method)
    requests = [read_request(found, carrier, exchange) for exchange in exchanges]
    asked = find_request_template(found, exchanges, requests)
    return _with_rules(found, carrier, exchanges, asked)


def propose_rules(
    schema: DescriptorSet,
    method: str,
    carrier: str,
    exchanges: Sequence[RecordedExchange],
    template: Mapping[str, Json],
) -> Proposal:
    """Returns a mapping with this template of the request, and the rules that the exchanges show. Raises OptionError
    and SettingsError as `propose` does."""
    found = Schema(schema).method(method)
    return _with_rules(found, carrier, exchanges, LearnedRequest(Learned(dict(template))))


def _with_rules(found: Method, carrier: str, exchanges: Sequence[RecordedExchange], asked: LearnedRequest) -> Proposal:
    names = {*names_in(asked.learned.template)}
    responses, presumed = presume([read_response(found, carrier, exchange) for exchange in exchanges])
    reports = find_carrier(carrier, found).reports_status
    rules = find_rules(responses, calls_in_text=bool(names & {"$prompt", "$transcript"}), reports_status=reports)
    entry: dict[str, Any] = {"carrier": carrier, "method": found.path[1:], "request": asked.learned.template}
    if asked.max_tokens is not None:
        entry["max_tokens"] = asked.max_tokens
    if rules.ends != "finish":
        entry["ends"] = rules.ends
    entry["read"] = list(rules.read)
    doubts = [*asked.learned.doubts, *presumed, *rules.doubts]
    if asked.turn_stops and not any("stopped_by" in rule for rule in rules.read):
        reason = "those of other turns are sent where a rule reads `stopped_by`, and no response shows its field"
        doubts.append(Doubt("open", "request: $stop", reason))
    return Proposal(entry, tuple(doubts))
