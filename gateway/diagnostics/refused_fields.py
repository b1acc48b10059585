"""Finds the fields of a request that the provider of a profile does not take as they are."""

from collections.abc import Iterator
from typing import Final

import msgspec

from gateway.adapter import Adapter
from gateway.capabilities.request_fields import refused_fields
from gateway.core.conversation import Conversation, Violation
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.providers.profile import Profile
from gateway.providers.request_rules import RequestRules
from gateway.registry import DEFAULT_DIALECT, load_adapter
from gateway.settings import BackendSettings

_MAX_EVENT: Final = 1 << 20
_RENAMED: Final = "REQUEST_FIELD_RENAMED"
_ADVICE: Final = {
    "REQUEST_FIELD_CHANGED": "Send a value that the provider accepts.",
    "REQUEST_FIELD_DROPPED": "Leave it out for this provider.",
    _RENAMED: "Send it under the provider's own name.",
    "EFFORT_CHANGED": "Send an effort that the model takes.",
}


def refused_field_violations(conversation: Conversation, profile: Profile) -> list[Violation]:
    """Returns a violation for each field beside the turns that the profile changes or that its provider refuses, in the
    order of the request. A field that has its name from another API than chat completions is no mistake."""
    rules = profile.request_rules
    if rules is None:
        return []
    # The adapter of the default dialect writes the fields that the rules are about.
    adapter = load_adapter("lint", BackendSettings(DEFAULT_DIALECT, "http://localhost"), _MAX_EVENT)
    asked = msgspec.structs.replace(conversation, turns=())
    found = [*_refused(asked, rules), *_changed(adapter, asked, profile), *_stops(asked, rules)]
    first = {violation.param: violation for violation in reversed(found)}
    places = {asked.paths.param(name): at for at, name in enumerate(asked.params)}
    return sorted(first.values(), key=lambda violation: places.get(violation.param, len(places)))


def _refused(asked: Conversation, rules: RequestRules) -> Iterator[Violation]:
    for name in refused_fields(asked, rules, asked.model):
        path = asked.paths.param(name)
        detail = f"{path}: the provider refuses it, and the answer would not be what it asks for"
        yield Violation("PARAM_REFUSED", -1, detail, path, advice="Use another model for this request.")


def _changed(adapter: Adapter, asked: Conversation, profile: Profile) -> Iterator[Violation]:
    own = asked.dialect == adapter.capabilities.passthrough
    for notice in adapter.encode(asked, Policy(profile=profile)).notices:
        if notice.rule in _ADVICE and (own or notice.rule != _RENAMED):
            yield Violation(notice.rule, -1, notice.detail, _place(notice, asked), advice=_ADVICE[notice.rule])


def _place(notice: Notice, asked: Conversation) -> str:
    """Returns the path that a notice is about: its first word, where that is a field of the request."""
    word = notice.detail.split(" ", 1)[0]
    return word if word in {asked.paths.param(name) for name in asked.params} else asked.paths.param("model")


def _stops(asked: Conversation, rules: RequestRules) -> Iterator[Violation]:
    sequences, stops = asked.sampling.stop, rules.stops_of(asked.model)
    refused = 0 if stops is None else len({*sequences}) - len(stops.accepted(sequences))
    if refused:
        path = asked.paths.param("stop")
        detail = f"{path} has {refused} sequences that the provider does not accept; the gateway applies them itself"
        yield Violation("REQUEST_FIELD_CHANGED", -1, detail, path, advice="Send fewer, shorter or no blank sequences.")
