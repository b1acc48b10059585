"""Says what would have been sent for a captured request under other rules. Nothing is sent."""

from collections.abc import Sequence

import msgspec

from gateway.core.conversation import JsonObject
from gateway.core.errors import InvalidRequest, SettingsError
from gateway.core.policy import Policy
from gateway.inspector.views.detail import NoticeView, notice_views
from gateway.inspector.views.remade import remake
from gateway.inspector.views.rows import MessageRow, message_rows
from gateway.recording.recording import Interaction
from gateway.recording.route import policy_fields, policy_of
from gateway.settings import Settings, override_policy


class Rules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The other rules for the request `id`; what is absent stays."""

    id: str
    profile: str | None = None
    max_tool_results: int | msgspec.UnsetType | None = msgspec.UNSET
    max_history_messages: int | msgspec.UnsetType | None = msgspec.UNSET


class WhatIf(msgspec.Struct, frozen=True):
    """The messages at every stage, and the notices about them. `refusal`: what the client would be told instead."""

    rows: Sequence[MessageRow]
    notices: Sequence[NoticeView]
    refusal: str | None


def changed_policy(policy: Policy, rules: Rules, settings: Settings) -> Policy:
    """Returns a policy with other rules. Raises InvalidRequest for rules that are none."""
    limits = {"max_tool_results": rules.max_tool_results, "max_history_messages": rules.max_history_messages}
    changes: JsonObject = {
        **{name: value for name, value in limits.items() if value is not msgspec.UNSET},
        **({} if rules.profile is None else {"profile": rules.profile}),
    }
    try:
        return override_policy(policy, changes, settings.profiles)
    except SettingsError as error:
        raise InvalidRequest(error.message) from error


def with_rules(interaction: Interaction, rules: Rules, settings: Settings) -> Interaction:
    """Returns a request as if its route had other rules. Raises InvalidRequest for one without a route."""
    route = interaction.route
    if route is None:
        raise InvalidRequest("The request was refused before a backend was chosen: no rules apply to it.")
    policy = policy_fields(changed_policy(policy_of(route), rules, settings))
    return msgspec.structs.replace(interaction, route=msgspec.structs.replace(route, policy=policy))


def what_if(interaction: Interaction, settings: Settings) -> WhatIf:
    """Returns the request that would be sent to the backend. Raises InvalidRequest where its body is not here."""
    # Nothing came of it yet: an answer would be that to other messages.
    remade = remake(msgspec.structs.replace(interaction, sent=None, steps=(), notice_lines=(), end=None), settings)
    run = remade.run
    if run is None:
        raise InvalidRequest(remade.absent, status=404, code="unknown_request")
    exchange = run.exchange
    refusal = run.error.message if exchange is None and run.error is not None else None
    made = run.notices if exchange is None else tuple(exchange.notices)
    rows = message_rows(remade, made)
    return WhatIf(rows, notice_views(remade, made), refusal)
