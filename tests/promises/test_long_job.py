"""Law: whatever limits remove, the task of a job is in what is sent: from every dialect, to text and protobuf backends.

The histories are those of agents: what a client writes as the user may be the task, its own instructions, a picture
that a tool has shown, a reminder beside a result, or another wish of the user. Which turns are pinned is found here
again, by their place alone.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.proto.backend import ProtoAdapter, ProtoOptions
from adapters.text.backend import TextAdapter, TextOptions
from adapters.warp.backend import WarpAdapter
from adapters.warp.backend.options import WarpOptions
from gateway.adapter import Adapter
from gateway.core.conversation import Conversation, Image, Text, ToolCall, ToolResult, Turn
from gateway.core.policy import Policy
from gateway.exchange import Exchange
from gateway.history.pinned import PINNED_CHARS
from gateway.settings import check_options
from gateway.testing.dialect_case import GREETING, DialectCase
from tests.adapters.proto.backend.mappings import DELTAS, PARTS, TALK
from tests.dialects.cases import CASES
from tests.tiers import sample

LIMIT: Final = 1 << 20
MAPPED: Final = {"mapped turns": DELTAS, "mapped parts": PARTS, "mapped prompt": TALK}
WIRES: Final[Mapping[str, Adapter]] = {
    "text": TextAdapter(TextOptions(wire="plain"), LIMIT),
    "warp": WarpAdapter(WarpOptions(), LIMIT),
    "warp, structured": WarpAdapter(WarpOptions(encoding="structured"), LIMIT),
    **{name: ProtoAdapter(check_options(entry, ProtoOptions, "options"), LIMIT) for name, entry in MAPPED.items()},
}
CLIENTS: Final = [case for case in CASES if str(case) != "openai_completions"]
PIXEL: Final = Image("data:image/png;base64,iVBORw0KGgoAAAANSUhEUg==")


def user(number: int, length: int = 0) -> Turn:
    return Turn("user", (Text(f"begin{number}. {'x' * length} end{number}."),))


def answer() -> Turn:
    return Turn("assistant", (Text("Done."),))


def round_of(*ids: str) -> list[Turn]:
    calling = Turn("assistant", tuple(ToolCall(call_id, "f", '{"n":1}') for call_id in ids))
    return [calling, *[Turn("tool", (ToolResult(call_id, (Text("seen"),)),), name="f") for call_id in ids]]


@st.composite
def jobs(draw: st.DrawFn) -> tuple[Turn, ...]:
    """Up to two tasks of the user, then rounds, answers and turns in the place of the user, in any order."""
    turns = [user(n, draw(st.sampled_from([0, 0, 9_000]))) for n in range(draw(st.integers(1, 2)))]
    for kind in draw(st.lists(st.sampled_from("rrrrua"), max_size=14)):
        number = len(turns)
        if kind == "r":
            turns += round_of(*(f"call_{number}_{n}" for n in range(draw(st.integers(1, 2)))))
        elif kind == "u":
            turns.append(user(number, draw(st.sampled_from([0, 0, 9_000]))))
        elif turns[-1].role != "assistant":
            turns.append(answer())
    return tuple(turns)


def written(case: DialectCase, turns: tuple[Turn, ...]) -> bytes:
    """The request as a client writes it: one of the Messages API puts what the user says beside the results."""
    body = case.write(Conversation(turns, model="m"))
    if str(case) != "anthropic_messages":
        return body
    request: dict[str, Any] = json.loads(body)
    joined: list[dict[str, Any]] = []
    for message in request["messages"]:
        content = message["content"]
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        if joined and joined[-1]["content"][-1]["type"] == "tool_result" and message["role"] == "user":
            joined[-1]["content"] += blocks
        else:
            joined.append({"role": message["role"], "content": blocks})
    return json.dumps({**request, "messages": joined}).encode()


def pinned(turns: tuple[Turn, ...]) -> set[int]:
    """All user turns before the first assistant turn, the one that opened the running loop, and the newest."""
    users = [at for at, turn in enumerate(turns) if turn.role == "user"]
    first = next((at for at, turn in enumerate(turns) if turn.role == "assistant"), len(turns))
    opening = [
        at for at in users if not (before := [t for t in turns[:at] if t.role != "user"]) or _answers(before[-1])
    ]
    return {*(at for at in users if at < first), *opening[-1:], *users[-1:]}


def _answers(turn: Turn) -> bool:
    return turn.role == "assistant" and not turn.calls


POLICIES: Final = st.builds(
    Policy,
    max_tool_results=st.integers(0, 3),
    max_history_messages=st.integers(0, 6),
    trim_step=st.integers(1, 3),
    tool_result_overflow=st.sampled_from(["elide", "drop"]),
)


@pytest.mark.parametrize("case", CLIENTS, ids=str)
@given(turns=jobs(), policy=POLICIES)
def test_law_the_words_of_pinned_turns_are_in_what_is_sent(
    case: DialectCase, turns: tuple[Turn, ...], policy: Policy
) -> None:
    request = case.decode(written(case, turns), GREETING)
    for name, adapter in WIRES.items():
        body = Exchange(adapter, request.conversation, policy).request.body
        for at in pinned(turns):
            assert turns[at].text[: PINNED_CHARS // 4].strip("x ").encode() in body, name
            assert turns[at].text[-PINNED_CHARS // 4 :].strip("x ").encode() in body, name


TASK: Final = "Make the tests of the parser pass."
MEDIA: Final = "Attached media from tool result:"
REMINDER: Final = "<system-reminder>The list of todos is empty.</system-reminder>"
STOP: Final = "Stop, do Z instead."
# What the client puts behind the results of a round.
EVENTS: Final[Mapping[int, Turn]] = {
    10: Turn("user", (Text(MEDIA), PIXEL)),
    20: Turn("user", (Text(REMINDER),)),
    60: Turn("user", (Text(STOP),)),
}
ROUNDS: Final = 125


def job(rounds: int) -> tuple[Turn, ...]:
    """The history of one job after so many rounds."""
    turns = [Turn("user", (Text("AGENTS.md says: be brief."),)), Turn("user", (Text(TASK),))]
    for n in range(1, rounds + 1):
        turns += [*round_of(f"call_{n}"), *([EVENTS[n]] if n in EVENTS else [])]
    return tuple(turns)


@sample()
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("case", CLIENTS, ids=str)
def test_a_job_of_125_rounds_keeps_its_task_its_picture_its_reminder_and_the_new_word(
    case: DialectCase, wire: str
) -> None:
    for rounds in (*range(9, ROUNDS, 9), ROUNDS):
        request = case.decode(written(case, job(rounds)), GREETING)
        exchange = Exchange(WIRES[wire], request.conversation, Policy())
        said = [TASK, *(turn.text for at, turn in EVENTS.items() if at <= rounds)]
        for text in said:
            assert text.encode() in exchange.request.body, (rounds, text)
        shown = b"iVBORw0KGgo" in exchange.request.body or b"[image]" in exchange.request.body
        assert shown == (rounds >= 10)
        assert len(exchange.conversation.turns) < 110
