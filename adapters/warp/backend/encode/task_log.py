"""Encodes turns as the message log of a Warp task; the same turns always get the same ids."""

from collections.abc import Sequence

from adapters.warp import multi_agent_pb2 as pb
from adapters.warp.backend.encode.indexed_turn import IndexedTurn
from adapters.warp.backend.encode.request import write_images, write_query
from adapters.warp.backend.encode.results import write_call, write_result
from adapters.warp.backend.provider_state import ProviderState, read_provider_state
from gateway.core.conversation import EMPTY, JsonObject, Reasoning
from gateway.core.notices import Notice


def write_log(task: pb.Task, turns: Sequence[IndexedTurn]) -> list[Notice]:
    """Append every turn to the task's messages. Raises InvalidRequest or Unsupported for content that a log cannot
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
        if indexed.asks:
            query = self._message(indexed.turn.extra).user_query
            write_query(query, indexed.turn.text)
            if indexed.shows:
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
    """Restore the provider state that the backend sent with this message, byte for byte."""
    if state.message_id:
        message.id = state.message_id
    if state.request_id:
        message.request_id = state.request_id
    if state.server_message_data:
        message.server_message_data = state.server_message_data
