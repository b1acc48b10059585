"""The vocabulary of agent scenarios: each word is a step, and a step says which frames come next."""

import hashlib
from collections.abc import Callable, Iterable
from typing import Final, Literal, TypeAlias

from adapters.warp import multi_agent_pb2 as pb
from gateway.demo import actions
from gateway.demo.actions import Ids
from gateway.demo.agent_read import AgentRequest
from gateway.demo.framing import Frame, Framed, Knobs, Raw
from gateway.demo.playback import FOREVER, Cut, Wait
from gateway.demo.words import pieces
from gateway.types import JsonObject


class Stage:
    """What the steps of one answer share: the request, the ids, and which message is being written."""

    def __init__(self, request: AgentRequest, number: int) -> None:
        # Told from the question and the count: never random, and never the same for two answers.
        digest = hashlib.sha256(f"{number}\0{request.asked}".encode("utf-8", "surrogatepass")).hexdigest()
        conversation = request.conversation_id or f"conversation-{digest[:12]}"
        self.request = request
        self.ids = Ids(conversation, f"request-{digest[:12]}", f"task-{digest[12:24]}")
        self.message = ""
        self._messages = 0

    def new_message(self) -> str:
        self._messages += 1
        self.message = f"{self.ids.request}-m{self._messages}"
        return self.message

    def call_id(self, position: int = 1) -> str:
        return f"{self.ids.request}-k{position}"


Step: TypeAlias = Callable[[Stage], Iterable[Frame]]


def act(build: Callable[[Stage], pb.ClientAction]) -> Step:
    """A step that is one event with one action."""
    return lambda stage: (actions.actions_event(build(stage)),)


INIT: Final[Step] = lambda stage: (actions.init_event(stage.ids),)  # noqa: E731 # a table of steps, not functions
CREATE_TASK: Final = act(lambda stage: actions.create_task(stage.ids.task))
SERVER_EVENT: Final = act(
    lambda stage: actions.add(stage.ids.task, actions.server_event(stage.new_message(), stage.ids.task, "IgA="))
)
USER_ECHO: Final = act(lambda stage: actions.add(stage.ids.task, _echo(stage, stage.new_message())))
SERVER_DATA: Final = act(
    lambda stage: actions.update(stage.ids.task, "server_message_data", _echo(stage, stage.message, "b3BhcXVl"))
)
BEGIN: Final = act(lambda stage: actions.begin())
COMMIT: Final = act(lambda stage: actions.commit())
ROLLBACK: Final = act(lambda stage: actions.rollback())

PRELUDE: Final[tuple[Step, ...]] = (INIT, CREATE_TASK, SERVER_EVENT, USER_ECHO, SERVER_DATA)
NEXT_PRELUDE: Final[tuple[Step, ...]] = (INIT, SERVER_EVENT, USER_ECHO, SERVER_DATA)


def say(text: str) -> Step:
    """A new message of the model's, with its first words."""
    return act(lambda stage: actions.add(stage.ids.task, actions.output(stage.new_message(), stage.ids.task, text)))


def more(text: str) -> Step:
    """More words for the same message."""
    return act(
        lambda stage: actions.append(
            stage.ids.task, "agent_output.text", actions.output(stage.message, stage.ids.task, text)
        )
    )


def tell(text: str) -> Step:
    """A whole text, word by word."""
    words = pieces(text) or [""]
    return together(say(words[0]), *(more(word) for word in words[1:]))


def think(text: str, seconds: int = 1) -> Step:
    """A whole thought, word by word, and how long it took."""
    words = pieces(text)

    def frames(stage: Stage) -> Iterable[Frame]:
        task, message = stage.ids.task, stage.new_message()
        yield actions.actions_event(actions.add(task, actions.reasoning(message, task, words[0])))
        for word in words[1:]:
            thought = actions.reasoning(message, task, word)
            yield actions.actions_event(actions.append(task, "agent_reasoning.reasoning", thought))
        done = actions.reasoning(message, task, text, seconds)
        yield actions.actions_event(actions.update(task, "agent_reasoning.finished_duration", done))

    return frames


def call(name: str, args: JsonObject | None, *, call_id: str | None = None, position: int = 1) -> Step:
    """One call, whole. The id is made from the answer's unless given; an empty one is left away."""
    return calls((name, args), first=position, call_id=call_id)


def calls(*named: tuple[str, JsonObject | None], first: int = 1, call_id: str | None = None) -> Step:
    """Several calls in one action; `call_id` gives all of them the same id."""

    def build(stage: Stage) -> pb.ClientAction:
        made = (
            actions.mcp_call(
                stage.new_message(), stage.ids.task, stage.call_id(at) if call_id is None else call_id, name, args
            )
            for at, (name, args) in enumerate(named, first)
        )
        return actions.add(stage.ids.task, *made)

    return act(build)


def title(text: str) -> Step:
    """The conversation's title, which is no part of the answer."""
    return act(lambda stage: actions.describe(stage.ids.task, text))


def finish(finished: pb.StreamFinished | None = None) -> Step:
    """The last event; done unless told otherwise."""
    event = pb.ResponseEvent(
        finished=pb.StreamFinished(done=pb.StreamFinished.Done()) if finished is None else finished
    )
    return lambda stage: (event,)


def together(*steps: Step) -> Step:
    """Several steps as one."""
    return lambda stage: (frame for step in steps for frame in step(stage))


def framed(knobs: Knobs, step: Step) -> Step:
    """A step whose events have a framing of their own."""
    return lambda stage: (
        Framed(frame, knobs) if isinstance(frame, pb.ResponseEvent) else frame for frame in step(stage)
    )


def raw(data: bytes) -> Step:
    """An event with exactly this data."""
    return lambda stage: (Raw(data),)


def cut(how: Literal["reset", "fin", "end"]) -> Step:
    """The end of the connection."""
    return lambda stage: (Cut(how),)


def silence(seconds: float = FOREVER) -> Step:
    """Nothing for a while."""
    return lambda stage: (Wait(seconds),)


def _echo(stage: Stage, message: str, opaque: str = "") -> pb.Message:
    echo = actions.user_echo(message, stage.ids.task, stage.request.asked)
    if opaque:
        echo.server_message_data = opaque
    return echo
