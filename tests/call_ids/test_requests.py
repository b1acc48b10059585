"""Each tool result arrives at the backend with the id of its own call, whatever ids the client has sent.

A backend binds by id alone. The client binds by id, and where the id is missing by the order of the calls, as
`gateway.history.pairing` says. Each call and its result hold the same mark, by which the test knows them again. What an
API demands of an id: Anthropic, errors of `tool_use.id` ("String should match pattern '^[a-zA-Z0-9_-]+$'") and of
`messages` ("`tool_use` ids must be unique"); for the others the profile.
"""

import re
from collections.abc import Sequence
from typing import Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core.events import ToolCallStart
from gateway.core.policy import Policy
from gateway.exchange import Exchange
from gateway.providers.profile import Alphabet
from gateway.providers.registry import PROFILES
from tests.call_ids.clients import CLIENTS, Named, Round
from tests.call_ids.wires import ADAPTERS, WIRES, Piece, holds, sent
from tests.tiers import sample

# Ids that clients have sent: of other gateways, of Kimi, of Codex, longer than any limit, and of nothing but blanks.
ODD: Final = ("a|b", "a_b", "functions.f:4", "call|fc_1", "call_1", "x" * 300, "日本", " k ", "call_1_2", "toolu_01")
UNLIMITED: Final = Policy(max_tool_results=None, max_history_messages=None)
PAIRS: Final = [(wire, profile, client) for wire in WIRES for profile in WIRES[wire].profiles for client in CLIENTS]


@st.composite
def rounds(draw: st.DrawFn) -> tuple[Round, ...]:
    """Generate rounds in which the id of a call may be odd, missing, or that of another call. The result of a call with
    an id may have none, and that of a call without one an id that no call has. Results whose ids do not tell their call
    stand in the order of the calls."""
    made: list[Round] = []
    for number in range(draw(st.integers(1, 3))):
        calls = [
            Named(draw(st.none() | st.sampled_from(ODD)), draw(st.sampled_from("fg")), f"mark{number}{call}")
            for call in range(draw(st.integers(1, 3)))
        ]
        own = [call.id for call in calls if call.id]
        if draw(st.booleans()):
            results = [msgspec.structs.replace(call, id=call.id or f"lost-{call.mark}") for call in calls]
        elif len({*own}) < len(own):
            results = calls
        else:
            results = [msgspec.structs.replace(call, id=draw(st.sampled_from([call.id, None]))) for call in calls]
        if len({*own}) == len(own) and draw(st.booleans()):
            named = draw(st.permutations([result for result in results if result.id in own]))
            results = [*named, *[result for result in results if result.id not in own]]
        made.append(Round(calls, results))
    return tuple(made)


def accepted(alphabet: Alphabet) -> str:
    """The regular expression of the ids that a provider takes."""
    one = "." if alphabet.characters is None else f"[{alphabet.characters}]"
    return f"{one}{{{alphabet.shortest},{alphabet.longest or ''}}}"


def received(wire: str, profile: str, client: str, made: Sequence[Round]) -> list[Piece]:
    """What the backend receives when a client of this dialect sends the rounds."""
    policy = msgspec.structs.replace(UNLIMITED, profile=PROFILES[profile])
    return sent(wire, Exchange(ADAPTERS[wire], CLIENTS[client].request(made).conversation, policy))


@sample("wire", "client")
@pytest.mark.parametrize(("wire", "profile", "client"), PAIRS, ids=["-".join(pair) for pair in PAIRS])
@settings(max_examples=settings().max_examples)
@given(made=rounds())
def test_each_result_arrives_with_the_id_of_its_call(
    wire: str, profile: str, client: str, made: tuple[Round, ...]
) -> None:
    rules = PROFILES[profile]
    found = received(wire, profile, client, made)
    holds(found, made, WIRES[wire], reused=rules.reused_ids == "keep", own=wire == client == "generateContent")
    assert all(re.fullmatch(accepted(rules.call_id), piece.id, re.DOTALL) for piece in found if piece.id)


def _round(calls: Sequence[str | None], results: Sequence[str | None], number: int = 0) -> Round:
    marks = [f"mark{number}{at}" for at in range(len(calls))]
    return Round(
        [Named(id, "f", mark) for id, mark in zip(calls, marks, strict=True)],
        [Named(id, "f", mark) for id, mark in zip(results, marks, strict=True)],
    )


HISTORIES: Final = {
    "a bar": [_round(["a|b"], ["a|b"])],
    "two that differ in a bar": [_round(["a|b", "a_b"], ["a|b", "a_b"])],
    "Kimi": [_round(["functions.f:4"], ["functions.f:4"])],
    "Codex": [_round(["call|fc_1"], ["call|fc_1"])],
    "too long": [_round(["x" * 300, "x" * 301], ["x" * 300, "x" * 301])],
    "again in the next round": [_round(["a"], ["a"]), _round(["a"], ["a"], 1)],
    "twice in a round": [_round(["a", "a"], ["a", "a"])],
    "twice in a round, results without": [_round(["a", "a"], [None, None])],
    "one named, one not": [_round(["a", "b"], [None, "b"])],
    "the first named behind the other": [
        Round(
            [Named("a", "f", "mark00"), Named("b", "f", "mark01")],
            [Named(None, "f", "mark01"), Named("a", "f", "mark00")],
        )
    ],
    "one named, and a call without an id": [_round([None, "b", None], [None, "b", None])],
    "one named, used before": [_round(["a"], ["a"]), _round(["b", "a"], [None, "a"], 1)],
    "none in a call, one in its result": [_round([None], ["call_9"])],
}


@sample()
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("history", HISTORIES)
def test_histories_with_odd_ids_arrive_whole(wire: str, client: str, history: str) -> None:
    made = HISTORIES[history]
    found = received(wire, "none", client, made)
    holds(found, made, WIRES[wire], reused=False, own=wire == client == "generateContent")


@pytest.mark.parametrize("wire", WIRES)
def test_a_tool_message_answers_the_function_call_before_it(wire: str) -> None:
    messages = [
        {"role": "user", "content": "Begin."},
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": '{"at": "mark00"}'}},
        {"role": "tool", "tool_call_id": "call_9", "content": "mark00"},
    ]
    exchange = Exchange(ADAPTERS[wire], CLIENTS["chat"].asks(messages).conversation, UNLIMITED)
    holds(sent(wire, exchange), HISTORIES["none in a call, one in its result"], WIRES[wire], reused=False, own=False)
    (told,) = [notice for notice in exchange.notices if notice.rule == "TOOL_ID_UNKNOWN"]
    assert "'call_9'" in told.detail and "the function_call of 'f', which has no id" in told.detail


@pytest.mark.parametrize("client", CLIENTS)
def test_an_id_that_an_api_refuses_is_told_and_restored(client: str) -> None:
    made = HISTORIES["a bar"]
    exchange = Exchange(ADAPTERS["Messages"], CLIENTS[client].request(made).conversation, UNLIMITED)
    (told,) = [notice for notice in exchange.notices if notice.rule == "CALL_ID_RENAMED"]
    (called, _) = sent("Messages", exchange)
    assert told.detail == f"tool call id 'a|b' sent as {called.id!r} and restored in the response"
    (restored,) = exchange.profiled.identifiers.restore([ToolCallStart(0, called.id, "f")])
    assert restored == ToolCallStart(0, "a|b", "f")


def test_ids_that_have_a_meaning_for_the_provider_pass_the_rule_of_the_wire() -> None:
    found = received("Messages", "kimi-thinking", "Messages", HISTORIES["Kimi"])
    assert [piece.id for piece in found] == ["functions.f:4", "functions.f:4"]
