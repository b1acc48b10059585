"""The table of scenarios that each public service passes in each dialect."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from gateway.core.conversation import (
    Conversation,
    JsonObject,
    NamedTool,
    Sampling,
    Text,
    ToolCall,
    ToolChoice,
    ToolResult,
    ToolSpec,
    Turn,
)
from tests.adapters.proto.public_services.service import Called, Reply, Said

_CITY: Final[JsonObject] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
WEATHER: Final = ToolSpec("weather", "Says what the weather is like.", _CITY)
CLOCK: Final = ToolSpec("clock", "Says how late it is.", {"type": "object", "properties": {"zone": {"type": "string"}}})
SYSTEM: Final = Turn("system", (Text("Be brief."),))
_IN_KYIV: Final[tuple[str, JsonObject]] = ("weather", {"city": "Київ", "days": 3})
_IN_OSLO: Final[tuple[str, JsonObject]] = ("weather", {"city": "Oslo"})
_NOW: Final[tuple[str, JsonObject]] = ("clock", {"zone": "EET"})


def asked(text: str) -> Turn:
    return Turn("user", (Text(text),))


class Step(msgspec.Struct, frozen=True):
    """A reply of the model, and what its calls give. `failed`: the tool has failed."""

    reply: Reply
    results: tuple[str, ...] = ()
    failed: bool = False


class Scenario(msgspec.Struct, frozen=True):
    """A conversation, its tools, and its steps: after each but the last, the client sends the results of the calls.

    `needs` and `without`: the choices that the service must have, and those that it must lack. `most_calls`: the number
    of calls that one of its answers must hold. `lacks`: of what a dialect must lack nothing. `refused`: a word of the
    error where the request is refused before it is sent. `error`: the HTTP status and a word of the error with which
    the last step ends.
    """

    steps: tuple[Step, ...]
    turns: tuple[Turn, ...] = (asked("Good morning."),)
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice = "auto"
    sampling: Sampling = Sampling()
    needs: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()
    lacks: frozenset[str] = frozenset()
    refused: str = ""
    error: tuple[int, str] | None = None
    most_calls: int = 1

    def conversation(self, *, stream: bool) -> Conversation:
        """Returns the first request."""
        return Conversation(
            self.turns,
            self.tools,
            self.tool_choice,
            model="m",
            sampling=self.sampling,
            stream=stream,
            include_usage=stream,
        )


_HELLO: Final = Reply(("Good ", "morning, ", "日本."))
_TOOLS: Final = (WEATHER, CLOCK)
_CALLS: Final = frozenset({"tools"})
SCENARIOS: Final[Mapping[str, Scenario]] = {
    "plain": Scenario((Step(_HELLO),), sampling=Sampling(temperature=0.5, max_tokens=64)),
    "system": Scenario((Step(_HELLO),), (SYSTEM, asked("Good morning.")), lacks=frozenset({"system"})),
    "one tool": Scenario(
        (
            Step(Reply(("I look. ",), (_IN_KYIV,)), ("It rains.",)),
            Step(Reply(("Take ", "an umbrella."))),
        ),
        (SYSTEM, asked("How is the weather?")),
        _TOOLS,
        lacks=_CALLS,
    ),
    "parallel tools": Scenario(
        (Step(Reply((), (_IN_KYIV, _IN_OSLO, _NOW)), ("It rains.", "It snows.", "Noon.")), Step(_HELLO)),
        (asked("How is the weather?"),),
        _TOOLS,
        most_calls=3,
        lacks=_CALLS,
    ),
    "parallel calls of another model": Scenario(
        (Step(_HELLO),),
        (
            asked("How is the weather?"),
            Turn(
                "assistant",
                (
                    Text("I look."),
                    ToolCall("call_1", "weather", '{"city": "Oslo"}'),
                    ToolCall("call_2", "clock", '{"zone": "EET"}'),
                ),
            ),
            Turn("tool", (ToolResult("call_1", (Text("It snows."),)),)),
            Turn("tool", (ToolResult("call_2", (Text("Noon."),)),)),
            asked("And now?"),
        ),
        _TOOLS,
        lacks=_CALLS,
    ),
    "five steps": Scenario(
        (
            *[Step(Reply((), (call,)), (f"result {n}",)) for n, call in enumerate((_IN_KYIV, _NOW, _IN_OSLO, _NOW))],
            Step(Reply(("Done.",))),
        ),
        (SYSTEM, asked("Do it in five steps.")),
        _TOOLS,
        lacks=_CALLS,
    ),
    "tool error": Scenario(
        (Step(Reply((), (_NOW,)), ("no such zone",), failed=True), Step(Reply(("I do not know.",)))),
        (asked("How late is it?"),),
        _TOOLS,
        lacks=_CALLS,
    ),
    "choice none": Scenario(
        (Step(_HELLO),),
        tools=_TOOLS,
        tool_choice="none",
        lacks=frozenset({"tools", "tool_choice none"}),
    ),
    "choice required": Scenario(
        (Step(Reply((), (_NOW,))),),
        tools=_TOOLS,
        tool_choice="required",
        needs=frozenset({"required"}),
        lacks=frozenset({"tools", "tool_choice"}),
    ),
    "choice required, refused by name": Scenario(
        (),
        tools=_TOOLS,
        tool_choice="required",
        without=frozenset({"required"}),
        refused="required",
        lacks=frozenset({"tools", "tool_choice"}),
    ),
    "choice of one tool": Scenario(
        (Step(Reply((), (_NOW,))),),
        tools=_TOOLS,
        tool_choice=NamedTool("clock"),
        needs=frozenset({"named"}),
        lacks=frozenset({"tools", "tool_choice named"}),
    ),
    "length": Scenario((Step(Reply(("Good ", "mor"), finish="length")),), sampling=Sampling(max_tokens=2)),
    "filter": Scenario((Step(Reply(("I cannot ", "say."), finish="content_filter")),)),
    "error": Scenario((Step(Reply(status=(8, "the quota is used up"))),), error=(429, "quota")),
    "error in the stream": Scenario(
        (Step(Reply(("Good ", "mor"), status=(14, "the service goes down"))),), error=(503, "overloaded")
    ),
}


def history_of(conversation: Conversation) -> tuple[Said | Called, ...]:
    """Returns what a service must understand of a conversation: the leading system messages first, and each call with
    its result."""
    results = {result.call_id: result for turn in conversation.turns for result in turn.results}
    return tuple(_said(conversation.turns, results))


def _said(turns: tuple[Turn, ...], results: Mapping[str, ToolResult]) -> Iterator[Said | Called]:
    for turn in turns:
        if turn.text and not turn.results:
            yield Said(turn.role, turn.text)
        for call in turn.calls:
            yield Called(call.name, _arguments(call), results[call.id].text)


def _arguments(call: ToolCall) -> JsonObject:
    value: Any = msgspec.json.decode(call.arguments or "{}")
    return dict(value)
