"""Encodes a conversation as the Warp wire's own history: a task's message log, and the client's new input.

The turns up to the model's last turn are the log, in which the same turns always get the same ids; the turns after it
(results, questions) are the input.
"""

import hashlib
from collections.abc import Sequence

from adapters.warp import multi_agent_pb2 as pb
from adapters.warp.backend.encode.indexed_turn import IndexedTurn, index_turns
from adapters.warp.backend.encode.request import attach_system, write_images, write_query
from adapters.warp.backend.encode.results import write_call, write_result
from adapters.warp.backend.provider_state import ProviderState, read_provider_state
from gateway.core.conversation import EMPTY, Conversation, JsonObject, Reasoning, is_system
from gateway.core.notices import Notice


def write_structured(request: pb.Request, conversation: Conversation) -> list[Notice]:
    """Fills the task context and the input. Raises InvalidRequest or Unsupported for content that the wire cannot
    hold."""
    notices: list[Notice] = []
    turns = index_turns(conversation)
    for indexed in turns:
        indexed.check()
    history, news = _parted(turns)
    notices += _write_history(request, history)
    notices += _write_inputs(request.input, news)
    _write_system(request, turns)
    return [*notices, *_names_left_out(turns)]


def history_task(conversation: Conversation) -> str | None:
    """Returns the id of the task that the request carries as its history, or None when there is no history."""
    history, _ = _parted(index_turns(conversation))
    return _task_id(history) if history else None


def _parted(turns: Sequence[IndexedTurn]) -> tuple[list[IndexedTurn], list[IndexedTurn]]:
    """Splits the dialogue into the turns up to the model's last turn and the turns after it."""
    dialogue = [indexed for indexed in turns if not is_system(indexed.turn)]
    answered = 1 + max((n for n, indexed in enumerate(dialogue) if indexed.turn.role == "assistant"), default=-1)
    return dialogue[:answered], dialogue[answered:]


def _write_history(request: pb.Request, turns: Sequence[IndexedTurn]) -> list[Notice]:
    if not turns:
        return []
    state = _newest_state(turns)
    if state.conversation_id:
        request.metadata.conversation_id = state.conversation_id
    return write_log(request.task_context.tasks.add(id=_task_id(turns)), turns)


def _task_id(turns: Sequence[IndexedTurn]) -> str:
    return _newest_state(turns).task_id or _derived_id(turns)


def _newest_state(turns: Sequence[IndexedTurn]) -> ProviderState:
    """Returns the newest provider state of the conversation, because each turn starts where the one before ended."""
    for indexed in reversed(turns):
        for extra in (*(call.extra for call in reversed(indexed.turn.calls)), indexed.turn.extra):
            state = read_provider_state(extra)
            if state.conversation_id:
                return state
    return ProviderState()


def _derived_id(turns: Sequence[IndexedTurn]) -> str:
    """Derives an id from the first turn, so that it is deterministic and differs between conversations."""
    opening = turns[0].turn
    return "task-" + hashlib.sha256(f"{opening.role}\n{opening.text}".encode()).hexdigest()[:16]


def _write_inputs(target: pb.Input, turns: Sequence[IndexedTurn]) -> list[Notice]:
    """Writes results and questions in order. With neither, asks the model to continue its response."""
    notices: list[Notice] = []
    inputs = target.user_inputs.inputs
    for indexed in turns:
        for position, result in enumerate(indexed.turn.results):
            written = inputs.add().tool_call_result
            written.tool_call_id = result.call_id
            notices += write_result(written.call_mcp_tool, result, indexed, position)
        if indexed.has_question:
            write_query(inputs.add().user_query, indexed.turn.text)
        if indexed.has_image:
            write_images(target.context, indexed)
    if not inputs:
        target.resume_conversation.SetInParent()
    return notices


def _write_system(request: pb.Request, turns: Sequence[IndexedTurn]) -> None:
    """Attaches the system text to the newest question on every request, including one that carries only results."""
    system = [indexed.turn.text for indexed in turns if is_system(indexed.turn)]
    if text := "\n\n".join(filter(None, system)):
        attach_system(request, text)


def _names_left_out(turns: Sequence[IndexedTurn]) -> list[Notice]:
    detail = "the log cannot represent the name of the speaker"
    return [
        Notice("encode", "dropped", "TURN_NAME_NOT_SENT", detail, index=indexed.index, level="debug")
        for indexed in turns
        if indexed.turn.name is not None
    ]


def write_log(task: pb.Task, turns: Sequence[IndexedTurn]) -> list[Notice]:
    """Appends every turn to the task's messages. Raises InvalidRequest or Unsupported for content that a log cannot
    hold."""
    log = _Log(task)
    for indexed in turns:
        if indexed.turn.role == "assistant":
            log.add_answer(indexed)
        else:
            log.add_question(indexed)
    return log.notices


class _Log:
    """A task under construction. Ids count the messages, so that a longer history keeps the ids of the shorter one."""

    def __init__(self, task: pb.Task) -> None:
        self._task = task
        self.notices: list[Notice] = []

    def add_answer(self, indexed: IndexedTurn) -> None:
        turn = indexed.turn
        for block in turn.blocks:
            if isinstance(block, Reasoning):
                self._message(block.extra).agent_reasoning.reasoning = block.text
        if turn.text:
            self._message(turn.extra).agent_output.text = turn.text
        for call in turn.calls:
            self.notices += write_call(self._message(call.extra).tool_call, call, indexed.index)
        self._add_results(indexed)

    def add_question(self, indexed: IndexedTurn) -> None:
        self._add_results(indexed)
        if indexed.has_question:
            query = self._message(indexed.turn.extra).user_query
            write_query(query, indexed.turn.text)
            if indexed.has_image:
                write_images(query.context, indexed)

    def _add_results(self, indexed: IndexedTurn) -> None:
        for position, result in enumerate(indexed.turn.results):
            written = self._message().tool_call_result
            written.tool_call_id = result.call_id
            self.notices += write_result(written.call_mcp_tool, result, indexed, position)

    def _message(self, extra: JsonObject = EMPTY) -> pb.Message:
        message = self._task.messages.add(id=f"{self._task.id}-{len(self._task.messages)}", task_id=self._task.id)
        if extra:
            _restore(message, read_provider_state(extra))
        return message


def _restore(message: pb.Message, state: ProviderState) -> None:
    """Restores the provider state that the backend sent with this message, byte for byte."""
    if state.message_id:
        message.id = state.message_id
    if state.request_id:
        message.request_id = state.request_id
    if state.server_message_data:
        message.server_message_data = state.server_message_data
