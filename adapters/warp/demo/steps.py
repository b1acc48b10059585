"""Defines the steps of agent scenarios. A step is a function that returns the next frames."""

import hashlib
from collections.abc import Callable, Iterable
from typing import Final, Literal, TypeAlias

from adapters.warp import multi_agent_pb2 as pb
from adapters.warp.demo import actions
from adapters.warp.demo.actions import Ids
from adapters.warp.demo.framing_options import Frame, Framed, FramingOptions, Raw
from adapters.warp.demo.request import AgentRequest
from gateway.core.conversation import JsonObject
from gateway.demo.player.playback import FOREVER, Cut, Wait
from gateway.demo.scripted_model.words import pieces


class ScenarioState:
    """The state that the steps of one response share: the request, the ids, and the current message."""

    def __init__(self, request: AgentRequest, number: int) -> None:
        # Derived from the question and the count: deterministic, and different for every response.
        digest = hashlib.sha256(f"{number}\0{request.query}".encode("utf-8", "surrogatepass")).hexdigest()
        conversation = request.conversation_id or f"conversation-{digest[:12]}"
        self.request = request
        self.ids = Ids(conversation, f"request-{digest[:12]}", request.task_id or f"task-{digest[12:24]}")
        self.message = ""
        self._messages = 0

    def new_message(self) -> str:
        self._messages += 1
        self.message = f"{self.ids.request}-m{self._messages}"
        return self.message

    def call_id(self, position: int = 1) -> str:
        return f"{self.ids.request}-k{position}"


Step: TypeAlias = Callable[[ScenarioState], Iterable[Frame]]


def emit(build: Callable[[ScenarioState], pb.ResponseEvent]) -> Step:
    """A step that is one event."""
    return lambda state: (build(state),)


def act(build: Callable[[ScenarioState], pb.ClientAction]) -> Step:
    """A step that is one event with one action."""
    return emit(lambda state: actions.actions_event(build(state)))


INIT: Final = emit(lambda state: actions.init_event(state.ids))
CREATE_TASK: Final = act(lambda state: actions.create_task(state.ids.task))
SERVER_EVENT: Final = act(
    lambda state: actions.add(state.ids.task, actions.server_event(state.new_message(), state.ids.task, "IgA="))
)
USER_ECHO: Final = act(lambda state: actions.add(state.ids.task, _echo(state, state.new_message())))
SERVER_DATA: Final = act(
    lambda state: actions.update(state.ids.task, "server_message_data", _echo(state, state.message, "b3BhcXVl"))
)
BEGIN: Final = act(lambda state: actions.begin())
COMMIT: Final = act(lambda state: actions.commit())
ROLLBACK: Final = act(lambda state: actions.rollback())

PRELUDE: Final[tuple[Step, ...]] = (INIT, CREATE_TASK, SERVER_EVENT, USER_ECHO, SERVER_DATA)
NEXT_PRELUDE: Final[tuple[Step, ...]] = (INIT, SERVER_EVENT, USER_ECHO, SERVER_DATA)


def text_start(text: str) -> Step:
    """A new message of the model with its first words."""
    return act(lambda state: actions.add(state.ids.task, actions.output(state.new_message(), state.ids.task, text)))


def more_text(text: str) -> Step:
    """More words for the same message."""
    return act(
        lambda state: actions.append(
            state.ids.task, "agent_output.text", actions.output(state.message, state.ids.task, text)
        )
    )


def text_message(text: str) -> Step:
    """A whole text, word by word."""
    words = pieces(text) or [""]
    return together(text_start(words[0]), *(more_text(word) for word in words[1:]))


def reasoning_message(text: str, seconds: int = 1) -> Step:
    """A whole thought, word by word, and its duration."""
    words = pieces(text)

    def frames(state: ScenarioState) -> Iterable[Frame]:
        task, message = state.ids.task, state.new_message()
        yield actions.actions_event(actions.add(task, actions.reasoning(message, task, words[0])))
        for word in words[1:]:
            thought = actions.reasoning(message, task, word)
            yield actions.actions_event(actions.append(task, "agent_reasoning.reasoning", thought))
        done = actions.reasoning(message, task, text, seconds)
        yield actions.actions_event(actions.update(task, "agent_reasoning.finished_duration", done))

    return frames


def call(name: str, args: JsonObject | None, *, call_id: str | None = None, position: int = 1) -> Step:
    """One whole call. The id is derived from the response's unless given; an empty id is omitted."""
    return calls((name, args), first=position, call_id=call_id)


def calls(*named: tuple[str, JsonObject | None], first: int = 1, call_id: str | None = None) -> Step:
    """Several calls in one action; `call_id` gives all of them the same id."""

    def build(state: ScenarioState) -> pb.ClientAction:
        made = (
            actions.mcp_call(
                state.new_message(), state.ids.task, state.call_id(at) if call_id is None else call_id, name, args
            )
            for at, (name, args) in enumerate(named, first)
        )
        return actions.add(state.ids.task, *made)

    return act(build)


def title(text: str) -> Step:
    """The conversation's title, which is not part of the response."""
    return act(lambda state: actions.describe(state.ids.task, text))


def finish(finished: pb.StreamFinished | None = None) -> Step:
    """The last event; its reason is `done` unless given."""
    event = pb.ResponseEvent(
        finished=pb.StreamFinished(done=pb.StreamFinished.Done()) if finished is None else finished
    )
    return emit(lambda state: event)


def together(*steps: Step) -> Step:
    """Combines several steps into one."""
    return lambda state: (frame for step in steps for frame in step(state))


def framed(framing: FramingOptions, step: Step) -> Step:
    """A step whose events have their own framing options."""
    return lambda state: (
        Framed(frame, framing) if isinstance(frame, pb.ResponseEvent) else frame for frame in step(state)
    )


def raw(data: bytes) -> Step:
    """An event with exactly this data."""
    return lambda state: (Raw(data),)


def cut(how: Literal["reset", "fin", "end"]) -> Step:
    """The end of the connection."""
    return lambda state: (Cut(how),)


def silence(seconds: float = FOREVER) -> Step:
    """A pause in the response."""
    return lambda state: (Wait(seconds),)


def _echo(state: ScenarioState, message: str, opaque: str = "") -> pb.Message:
    echo = actions.user_echo(message, state.ids.task, state.request.query)
    if opaque:
        echo.server_message_data = opaque
    return echo
