"""Turns into the message log of a Warp task; the same turns always get the same ids."""

from collections.abc import Sequence

from adapters.warp import multi_agent_pb2 as pb
from adapters.warp.opaque import Opaque, read_opaque
from adapters.warp.placed import Placed
from adapters.warp.request import write_images, write_query
from adapters.warp.results import write_call, write_result
from gateway.notices import Notice
from gateway.types import EMPTY, JsonObject, Reasoning


def write_log(task: pb.Task, turns: Sequence[Placed]) -> list[Notice]:
    """Append every turn to the task's messages. Raises InvalidRequest or Unsupported for what a log cannot hold."""
    log = _Log(task)
    for placed in turns:
        if placed.turn.role == "assistant":
            log.add_answer(placed)
        else:
            log.add_question(placed)
    return log.notices


class _Log:
    """A task being filled. Ids count the messages, so that a longer history keeps those of the shorter one."""

    def __init__(self, task: pb.Task) -> None:
        self._task = task
        self.notices: list[Notice] = []

    def add_answer(self, placed: Placed) -> None:
        turn = placed.turn
        for block in turn.blocks:
            if isinstance(block, Reasoning):
                self._message().agent_reasoning.reasoning = block.text
        if turn.text:
            self._message(turn.extra).agent_output.text = turn.text
        for call in turn.calls:
            self.notices += write_call(self._message(call.extra).tool_call, call, placed.index)
        self._add_results(placed)

    def add_question(self, placed: Placed) -> None:
        self._add_results(placed)
        if placed.asks:
            query = self._message(placed.turn.extra).user_query
            write_query(query, placed.turn.text)
            if placed.shows:
                write_images(query.context, placed)

    def _add_results(self, placed: Placed) -> None:
        for result in placed.turn.results:
            written = self._message().tool_call_result
            written.tool_call_id = result.call_id
            self.notices += write_result(written.call_mcp_tool, result, placed.index)

    def _message(self, extra: JsonObject = EMPTY) -> pb.Message:
        message = self._task.messages.add(id=f"{self._task.id}-{len(self._task.messages)}", task_id=self._task.id)
        if extra:
            _restore(message, read_opaque(extra))
        return message


def _restore(message: pb.Message, opaque: Opaque) -> None:
    """Give the backend back what it sent with this message, byte for byte."""
    if opaque.message_id:
        message.id = opaque.message_id
    if opaque.request_id:
        message.request_id = opaque.request_id
    if opaque.server_message_data:
        message.server_message_data = opaque.server_message_data
