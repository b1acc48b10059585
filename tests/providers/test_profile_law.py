"""A request that is sent under a profile satisfies every field of it, for any history: the law of profiles."""

import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from adapters.openai_chat.backend import OpenAIChatAdapter, OpenAIChatOptions
from adapters.openai_chat.client.decode import decode
from gateway.core.conversation import Json
from gateway.core.errors import InvalidRequest
from gateway.core.policy import LoopGuard, Policy, RecentToolResults
from gateway.exchange import Exchange
from gateway.history.validate import validate
from gateway.providers.profile import Alphabet, Profile
from gateway.providers.registry import PROFILES
from gateway.testing.profile_checks import DEMANDS, Sent, broken_demands
from tests.fuzz.strategies import requests as wild_requests
from tests.histories import ANY_PROFILE, HISTORIES, requests

ADAPTER: Final = OpenAIChatAdapter(OpenAIChatOptions(), 1 << 20)
POLICIES: Final = st.builds(
    Policy,
    profile=ANY_PROFILE,
    max_history_messages=st.sampled_from([None, None, 0, 2, 4]),
    max_tool_results=st.sampled_from([None, None, 1]),
    tool_result_overflow=st.sampled_from(["elide", "drop"]),
    trim_step=st.integers(1, 3),
    orphaned_results=st.sampled_from(["note", "drop"]),
    recent_tool_results=st.sampled_from([RecentToolResults(), RecentToolResults(enabled=True)]),
    loop_guard=st.sampled_from([LoopGuard(), LoopGuard(1, "nudge"), LoopGuard(1, "no_tools")]),
)
# The other ones are of any JSON at all.
REQUESTS: Final[st.SearchStrategy[Any]] = requests() | requests() | wild_requests()


def sent_under(request: dict[str, Json], policy: Policy) -> dict[str, Json] | None:
    """What the native adapter writes; None where the request is refused."""
    try:
        exchange = Exchange(ADAPTER, decode(json.dumps(request).encode()), policy)
    except InvalidRequest:
        return None
    written: dict[str, Json] = json.loads(exchange.request.body)
    return written


def test_each_field_of_a_profile_has_its_demand() -> None:
    # A client of the wire itself may write any file; what the keeper puts back shows in no single request, how an
    # answer ends in none, and the wire of the Messages API is another one.
    assert (*DEMANDS, "files", "messages", "state", "finish_reason") == Profile.__struct_fields__


@given(requests(), POLICIES)
def test_what_is_sent_keeps_the_providers_demands(request: dict[str, Json], policy: Policy) -> None:
    for name, profile in PROFILES.items():
        body = sent_under(request, msgspec.structs.replace(policy, profile=profile))
        assert body is None or broken_demands(Sent(request, body), profile) == [], name


@given(REQUESTS, POLICIES)
def test_what_is_sent_keeps_the_demands_of_a_profile_of_ones_own(request: dict[str, Json], policy: Policy) -> None:
    body = sent_under(request, policy)
    assert body is None or broken_demands(Sent(request, body), policy.profile) == []


@given(requests(HISTORIES), POLICIES)
def test_without_repair_only_the_protocol_is_the_clients_own_matter(request: dict[str, Json], policy: Policy) -> None:
    """Ids that name two calls are broken rules of the protocol."""
    unrepaired = msgspec.structs.replace(policy, repair="off")
    body = sent_under(request, unrepaired)
    kept = msgspec.structs.replace(unrepaired.profile, reused_ids="keep", call_id=Alphabet(shortest=0))
    assert body is None or broken_demands(Sent(request, body), kept) == []


@given(requests(), POLICIES)
def test_what_is_sent_is_itself_a_history_without_faults(request: dict[str, Json], policy: Policy) -> None:
    body = sent_under(request, policy)
    if body is None:
        return
    found = {one.rule for one in validate(decode(json.dumps(body).encode()), policy.profile)}
    allowed = {"TOOLS_COUNT", "TOOLS_NAME"} | ({"CALL_ARGS_TYPE"} if policy.profile.arguments == "object" else set())
    assert found <= allowed


@given(requests(), POLICIES)
def test_names_are_all_that_changes_beside_the_messages(request: dict[str, Json], policy: Policy) -> None:
    """Each name as it was, or as what the answer is translated back from; everything else as the client wrote it, where
    the provider has no rules for schemas and fields."""
    profile = msgspec.structs.replace(policy.profile, tool_rules=None, request_rules=None)
    policy = msgspec.structs.replace(policy, profile=profile)
    try:
        asked = decode(json.dumps(request).encode())
        exchange = Exchange(ADAPTER, asked, msgspec.structs.replace(policy, loop_guard=LoopGuard()))
    except InvalidRequest:
        return
    own = {sent: name for name, sent in exchange.profiled.identifiers.names.items()}
    body = json.loads(exchange.request.body)
    assert _restored({**body, "messages": []}, own) == {**request, "messages": []}


def _restored(value: Json, own: Mapping[str, str]) -> Json:
    match value:
        case str():
            return own.get(value, value)
        case list():
            return [_restored(entry, own) for entry in value]
        case dict():
            return {key: _restored(entry, own) for key, entry in value.items()}
        case _:
            return value
