"""What a backend received first is a prefix of what it receives when the client's request has grown.

The prompt caches of providers compare a request with the one before from its first byte, and a signed block of thinking
is valid only behind the messages with which it was made (Anthropic, "Prompt caching", "Extended thinking"). The
exceptions are those of docs/promises.md. The answer of the backend follows each request, so that no message is still
open at the end of the shorter one.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.adapter import Adapter
from gateway.core.conversation import Conversation, Json, Text, ToolCall, ToolResult, ToolSpec, Turn
from gateway.core.policy import FlattenOptions, Policy
from gateway.exchange import Exchange
from gateway.providers.profile import NEUTRAL, Profile
from gateway.providers.registry import PROFILES
from gateway.registry import load_adapter
from gateway.settings import BackendSettings
from gateway.testing.dialect_case import DialectCase
from tests.dialects.cases import CASES
from tests.tiers import sample

TOOL: Final = ToolSpec("look", "Looks", {"type": "object", "properties": {"at": {"type": "string"}}})
UNLIMITED: Final = Policy(max_tool_results=None, max_history_messages=None)


class Received(msgspec.Struct, frozen=True):
    """What a backend reads: its system text, and the pieces of the conversation in their order."""

    system: Json
    pieces: Sequence[Json]

    def begins(self, longer: "Received") -> bool:
        """Whether the longer one begins with this one."""
        return self.system == longer.system and list(longer.pieces[: len(self.pieces)]) == list(self.pieces)


def listed(name: str, system: str = "") -> Callable[[Any], Received]:
    """A reader of a body with a list of messages, and with the system text in a field of its own."""
    return lambda body: Received(body.get(system), body[name])


def task_log(body: Any) -> Received:
    """A reader of a Warp request: the log of the task and the new input are one conversation. The system text stands
    beside the newest question by the wire's own form."""
    tasks = body.get("task_context", {}).get("tasks", [])
    logged = [message for task in tasks for message in task["messages"]]
    given = body["input"].get("user_inputs", {}).get("inputs", [])
    system: list[Json] = []
    pieces = [_said(message, system) for message in (*logged, *given)]
    return Received(system, pieces)


def _said(message: Any, system: list[Json]) -> Json:
    said = {key: value for key, value in message.items() if key not in ("id", "task_id", "user_query")}
    query = message.get("user_query")
    if isinstance(query, dict):
        system += [query["referenced_attachments"]] if "referenced_attachments" in query else []
        said["query"] = query.get("query")
    return said


def one_text(body: Any) -> Received:
    """A reader of a completion: the prompt without the label of the answer, which only the last turn has."""
    prompt = body["prompt"]
    text = prompt.removesuffix("Assistant:").rstrip()
    return Received(None, [*text.removesuffix(f"User: {FlattenOptions().continuation}").rstrip()])


class Wire(msgspec.Struct, frozen=True):
    """An adapter with its options, the reader of its requests, and the name of a model that may have its own rules."""

    name: str
    adapter: str
    read: Callable[[Any], Received]
    options: Mapping[str, Json] = {}
    profiles: tuple[str, ...] = ("none",)
    model: str = "model"

    def load(self) -> Adapter:
        entry = BackendSettings(adapter=self.adapter, base_url="http://host", options=dict(self.options))
        return load_adapter(self.adapter, entry, 1 << 20)


WIRES: Final = (
    Wire("chat", "openai_chat", listed("messages"), profiles=tuple(PROFILES)),
    Wire("Responses", "openai_responses", listed("input", system="instructions"), profiles=("none", "openai")),
    Wire("Messages", "anthropic_messages", listed("messages", system="system"), profiles=("none", "deepseek")),
    Wire("Messages, system", "anthropic_messages", listed("messages", system="system"), model="claude-opus-4-8"),
    Wire("Messages, older", "anthropic_messages", listed("messages", system="system"), model="claude-opus-4-1"),
    Wire("generateContent", "gemini", listed("contents", system="systemInstruction"), profiles=("none", "gemini")),
    Wire("Warp, structured", "warp", task_log, {"encoding": "structured"}),
    Wire("text", "text", one_text, {"wire": "llama_cpp"}),
    Wire("gRPC", "proto", listed("turns", system="system"), {"preset": "demo"}),
    Wire("gRPC, Gemini", "proto", listed("contents", system="system_instruction"), {"preset": "gemini_grpc"}),
)
ADAPTERS: Final = {wire.name: wire.load() for wire in WIRES}
# A request for a completion has one turn.
CLIENTS: Final = [case for case in CASES if str(case) != "openai_completions"]
PAIRS: Final = [(wire, name, case) for wire in WIRES for name in wire.profiles for case in CLIENTS]


@st.composite
def histories(draw: st.DrawFn) -> tuple[Turn, ...]:
    """Rounds of calls and of talk, with system and developer messages anywhere. The last turn is the assistant's."""
    turns = [Turn("system", (Text("Be brief."),))] if draw(st.booleans()) else []
    turns.append(Turn("user", (Text("Begin."),)))
    for number in range(draw(st.integers(1, 4))):
        if draw(st.booleans()):
            calls = [ToolCall(f"c{number}{call}", "look", '{"at":"sky"}') for call in range(draw(st.integers(1, 2)))]
            turns.append(Turn("assistant", tuple(calls)))
            turns += [Turn("tool", (ToolResult(call.id, (Text(f"seen {call.id}"),)),)) for call in calls]
        else:
            turns.append(Turn("assistant", (Text(f"answer {number}"),)))
            turns.append(Turn("user", (Text(f"question {number}"),)))
        if draw(st.booleans()):
            turns.append(Turn(draw(st.sampled_from(["system", "developer"])), (Text(f"notice {number}"),)))
    return (*turns, Turn("assistant", (Text("done"),)), Turn("user", (Text("last"),)))


def received(wire: Wire, profile: Profile, case: DialectCase, turns: Sequence[Turn]) -> Received:
    """What the backend receives when a client of this dialect sends the turns."""
    if "later system" in case.lacks:
        turns = [turn for at, turn in enumerate(turns) if at == 0 or turn.role not in ("system", "developer")]
    written = Conversation(tuple(turns), (TOOL,), model="model")
    decoded = case.decode(case.write(written), written).conversation
    adapter = ADAPTERS[wire.name]
    named = msgspec.structs.replace(decoded, model=wire.model)
    exchange = Exchange(adapter, named, msgspec.structs.replace(UNLIMITED, profile=profile))
    sent = wire.read(adapter.describe(exchange.request.body))
    if profile.reasoning != "echo_in_tool_loop":
        return sent
    # The provider's rule takes this reasoning out at a new question.
    return Received(sent.system, [without_reasoning(piece) for piece in sent.pieces])


def without_reasoning(message: Any) -> Json:
    return {name: value for name, value in message.items() if name != "reasoning_content"}


@sample()
@pytest.mark.parametrize(
    ("wire", "profile", "case"), PAIRS, ids=[f"{wire.name}-{name}-{case}" for wire, name, case in PAIRS]
)
@settings(max_examples=settings().max_examples // 5)
@given(turns=histories())
def test_a_request_that_grows_keeps_its_beginning(
    wire: Wire, profile: str, case: DialectCase, turns: tuple[Turn, ...]
) -> None:
    answered = [at for at, turn in enumerate(turns) if turn.role == "assistant"]
    requests = [received(wire, PROFILES[profile], case, turns[:at]) for at in (*answered, len(turns))]
    for shorter, longer in itertools.pairwise(requests):
        assert shorter.begins(longer), f"{shorter}\n{longer}"


def test_the_neutral_profile_is_among_them() -> None:
    assert PROFILES["none"] == NEUTRAL
