"""Defines scenarios with content that a reader must skip: unknown variants, odd masks, other tasks, late events."""

from typing import Final

from adapters.warp import multi_agent_pb2 as pb
from adapters.warp.demo import actions
from adapters.warp.demo.framing_options import Frame
from adapters.warp.demo.scenario import Expect, WarpScenario
from adapters.warp.demo.scenarios.text import HELLO
from adapters.warp.demo.steps import (
    BEGIN,
    COMMIT,
    PRELUDE,
    ScenarioState,
    Step,
    act,
    finish,
    text_message,
    text_start,
    together,
)
from gateway.demo.player.playback import Wait

_HEAD: Final = (*PRELUDE, BEGIN)


def _field(number: int, payload: bytes) -> bytes:
    """Encodes a length-delimited field that the project's schema does not define (numbers and lengths below 128 x
    128)."""
    return _varint(number << 3 | 2) + _varint(len(payload)) + payload


def _varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128, value >> 7])


def _unknown_event(_: ScenarioState) -> list[Frame]:
    return [pb.ResponseEvent.FromString(_field(15, b"?"))]


def _unknown_message(state: ScenarioState) -> pb.ClientAction:
    message = pb.Message.FromString(_field(90, b"?"))
    message.id, message.task_id = state.new_message(), state.ids.task
    return actions.add(state.ids.task, message)


def _unknown_scalar(state: ScenarioState) -> list[Frame]:
    event = pb.ResponseEvent.FromString(_field(77, b"more"))
    event.MergeFrom(actions.actions_event(actions.add(state.ids.task, _output(state, HELLO))))
    return [event]


def _output(state: ScenarioState, text: str) -> pb.Message:
    return actions.output(state.new_message(), state.ids.task, text)


def _appended(path: str, text: str, message: str | None = None) -> Step:
    def build(state: ScenarioState) -> pb.ClientAction:
        return actions.append(state.ids.task, path, actions.output(message or state.message, state.ids.task, text))

    return act(build)


def _replaced(text: str) -> Step:
    def build(state: ScenarioState) -> pb.ClientAction:
        return actions.update(state.ids.task, "agent_output.text", actions.output(state.message, state.ids.task, text))

    return act(build)


def _inserted(text: str) -> Step:
    return act(lambda state: actions.update(state.ids.task, "agent_output.text", _output(state, text)))


def _child(state: ScenarioState) -> list[Frame]:
    child = f"{state.ids.task}-child"
    notes = actions.output(state.new_message(), child, "The child's own notes.")
    return [
        actions.actions_event(actions.create_task(child, state.ids.task)),
        actions.actions_event(actions.add(child, notes)),
        actions.actions_event(actions.append(child, "agent_output.text", actions.output(notes.id, child, " More."))),
    ]


def _metadata(state: ScenarioState) -> list[Frame]:
    used = pb.Message(id=state.new_message(), task_id=state.ids.task)
    used.model_used.model_id = "demo-model"
    search = pb.Message(id=state.new_message(), task_id=state.ids.task, web_search=pb.NotRead())
    summary = pb.ClientAction.UpdateTaskSummary(task_id=state.ids.task, summary="A summary that is not content")
    opaque = pb.ClientAction.UpdateTaskServerData(task_id=state.ids.task, server_data="b3BhcXVl")
    return [
        actions.actions_event(actions.add(state.ids.task, used, search)),
        actions.actions_event(pb.ClientAction(update_task_summary=summary)),
        actions.actions_event(pb.ClientAction(update_task_server_data=opaque)),
        actions.actions_event(pb.ClientAction(show_suggestions=pb.NotRead())),
        pb.ResponseEvent(),
    ]


EDGES: Final[dict[str, WarpScenario]] = {
    "unknown_variant": WarpScenario(
        about="an unknown event, action, message and field",
        turns=(
            (
                *_HEAD,
                _unknown_event,
                act(lambda _: pb.ClientAction.FromString(_field(99, b"?"))),
                act(_unknown_message),
                _unknown_scalar,
                COMMIT,
                finish(),
            ),
        ),
        expect=Expect(text=HELLO),
    ),
    "mask_edge": WarpScenario(
        about="masks of unknown fields, an unknown message, an insertion, a longer and a shorter replacement",
        turns=(
            (
                *_HEAD,
                text_start("Hel"),
                _appended("agent_output.nothing", "XX"),
                _appended("agent_output.text", "YY", "m-unknown"),
                _replaced("Hello"),
                _inserted(" world"),
                COMMIT,
                _replaced(" wor"),
                finish(),
            ),
        ),
        expect=Expect(text="Hello world"),
    ),
    "subtask": WarpScenario(
        about="another task, whose text is not part of the response",
        turns=((*_HEAD, text_start("Mine"), _child, text_start(" only."), COMMIT, finish()),),
        expect=Expect(text="Mine only."),
    ),
    "metadata": WarpScenario(
        about="summary, suggestions, model name, web search and an empty event around the text",
        turns=((*_HEAD, _metadata, text_message(HELLO), COMMIT, _metadata, finish()),),
        expect=Expect(text=HELLO),
    ),
    "events_after_finish": WarpScenario(
        about="text and a second finish after the finish",
        turns=((*_HEAD, text_message(HELLO), COMMIT, finish(), text_start(" (late)"), finish()),),
        expect=Expect(text=HELLO),
    ),
    "held_open": WarpScenario(
        about="a complete response on a connection that stays open",
        turns=((*_HEAD, together(text_message(HELLO), COMMIT, finish()), lambda _: [Wait()]),),
        expect=Expect(text=HELLO),
    ),
}
