"""Defines scenarios of the newer wire: messages that move to a new task, citations, charges, newer built-in tools."""

from collections.abc import Iterable
from typing import Final

from adapters.warp import multi_agent_pb2 as pb
from adapters.warp.demo import actions
from adapters.warp.demo.framing_options import Frame
from adapters.warp.demo.scenario import Expect, WarpScenario, failure
from adapters.warp.demo.scenarios.text import HELLO
from adapters.warp.demo.steps import (
    BEGIN,
    COMMIT,
    PRELUDE,
    ROLLBACK,
    ScenarioState,
    Step,
    act,
    finish,
    text_message,
)

_HEAD: Final = (*PRELUDE, BEGIN)
_BEFORE: Final = text_message("Before the move, ")
_AFTER: Final = text_message("and after it.")
_WHOLE: Final = "Before the move, and after it."


def _move(first: str, last: str, count: int, source: str = "") -> Step:
    """Moves the messages from the first to the last one, whose ids end in these words, to a subtask with a summary."""

    def build(state: ScenarioState) -> pb.ClientAction:
        task, request = state.ids.task, state.ids.request
        subtask = f"{task}-earlier"
        started = actions.call_native(state.new_message(), task, state.call_id(9), "subagent")
        summary = actions.output(state.new_message(), task, "A summary that is not content")
        return actions.move(source or task, subtask, f"{request}-{first}", f"{request}-{last}", count, started, summary)

    return act(build)


# The prelude has the messages m1 (of the server) and m2 (the echo); the next one is the text.
_MOVED: Final = _move("m1", "m3", 3)


def _cited(state: ScenarioState) -> Iterable[Frame]:
    said = actions.output(state.new_message(), state.ids.task, HELLO)
    said.citations.add(document_id="https://example.com/manual", document_type=pb.DOCUMENT_WEB_PAGE)
    said.citations.add(document_id="rule-1", document_type=pb.DOCUMENT_RULE)
    said.fetched_memories.add()
    yield actions.actions_event(actions.add(state.ids.task, said))


def _newer_calls(state: ScenarioState) -> Iterable[Frame]:
    task = state.ids.task
    for position, tool in enumerate(("wait_for_events", "start_recording", "stop_recording"), 1):
        made = actions.call_native(state.new_message(), task, state.call_id(position), tool)
        yield actions.actions_event(actions.add(task, made))


def _counted() -> pb.StreamFinished:
    finished = pb.StreamFinished(done=pb.StreamFinished.Done())
    charged = finished.request_charges.usage_by_category["primary_agent"].direct_api_inference_usage["auto"]
    charged.token_count.MergeFrom(pb.StreamFinished.TokenCount(input=20, output=12, input_cache_read=10))
    counted = finished.conversation_usage_metadata
    counted.context_window_usage, counted.summarized, counted.total_input_tokens = 0.25, True, 30
    segments = {"SEGMENT_SYSTEM_PROMPT": 12, "SEGMENT_CONVERSATION_HISTORY": 10, "SEGMENT_LATEST_INPUT": 8}
    for kind, tokens in segments.items():
        counted.context_window_segments.add(segment_type=kind, token_count=tokens)
    return finished


MOVES: Final[dict[str, WarpScenario]] = {
    "moved": WarpScenario(
        about="text whose message moves to a new task, where a summary takes its place, then more text",
        turns=((*_HEAD, _BEFORE, COMMIT, _MOVED, BEGIN, _AFTER, COMMIT, finish()),),
        expect=Expect(text=_WHOLE),
    ),
    "moved_in_transaction": WarpScenario(
        about="the same inside of one transaction",
        turns=((*_HEAD, _BEFORE, _MOVED, _AFTER, COMMIT, finish()),),
        expect=Expect(text=_WHOLE),
    ),
    "moved_back": WarpScenario(
        about="a move that is rolled back, then the same move",
        turns=((*_HEAD, _BEFORE, COMMIT, BEGIN, _MOVED, ROLLBACK, BEGIN, _MOVED, _AFTER, COMMIT, finish()),),
        expect=Expect(text=_WHOLE),
    ),
    "moved_range_unknown": WarpScenario(
        about="a move of messages that were never sent, between text",
        turns=((*_HEAD, _BEFORE, _move("m8", "m9", 2), _AFTER, COMMIT, finish()),),
        expect=Expect(text=_WHOLE),
    ),
    "moved_task_unknown": WarpScenario(
        about="a move from a task that does not exist",
        turns=((*_HEAD, _BEFORE, _move("m1", "m3", 3, source="task-unknown"), _AFTER, COMMIT, finish()),),
        expect=failure("", 502, "upstream_invalid_event"),
    ),
    "cited": WarpScenario(
        about="text that cites a web page and a rule",
        turns=((*_HEAD, _cited, COMMIT, finish()),),
        expect=Expect(text=HELLO),
    ),
    "context_window": WarpScenario(
        about="the charges of this turn (30 in, 10 of them cached, 12 out) and how full the context window is",
        turns=((*_HEAD, text_message(HELLO), COMMIT, finish(_counted())),),
        expect=Expect(text=HELLO),
    ),
    "newer_native_tools": WarpScenario(
        about="text, and calls of newer built-in tools",
        turns=((*_HEAD, text_message(HELLO), _newer_calls, COMMIT, finish()),),
        expect=Expect(text=HELLO),
    ),
}
