"""A conversation as the Warp wire's own history: a task's message log, and what the client adds to it now.

Everything up to the model's last turn is the log; what follows it (results, questions) is the input.
"""

import hashlib
from collections.abc import Sequence
from typing import Final

from adapters.warp import multi_agent_pb2 as pb
from adapters.warp.opaque import Opaque, read_opaque
from adapters.warp.parts import allow_placeholders
from adapters.warp.placed import Placed, place
from adapters.warp.request import attach_system, write_images, write_query
from adapters.warp.results import write_result
from adapters.warp.task_log import write_log
from gateway.notices import Notice
from gateway.policy import Policy
from gateway.types import Conversation

SYSTEM_ROLES: Final = frozenset({"system", "developer"})


def write_structured(request: pb.Request, conversation: Conversation, policy: Policy) -> list[Notice]:
    """Fill the task context and the input. Raises InvalidRequest or Unsupported for what the wire cannot hold."""
    told, notices = allow_placeholders(conversation, policy)
    turns = place(told.turns)
    for placed in turns:
        placed.check()
    dialogue = [placed for placed in turns if placed.turn.role not in SYSTEM_ROLES]
    answered = 1 + max((n for n, placed in enumerate(dialogue) if placed.turn.role == "assistant"), default=-1)
    notices += _write_history(request, dialogue[:answered])
    notices += _write_inputs(request.input, dialogue[answered:])
    return [*notices, *_write_system(request, turns), *_names_left_out(turns)]


def _write_history(request: pb.Request, turns: Sequence[Placed]) -> list[Notice]:
    if not turns:
        return []
    opaque = _newest_opaque(turns)
    if opaque.conversation_id:
        request.metadata.conversation_id = opaque.conversation_id
    task = request.task_context.tasks.add(id=opaque.task_id or _derived_id(turns))
    return write_log(task, turns)


def _newest_opaque(turns: Sequence[Placed]) -> Opaque:
    """The last thing the backend said about the conversation: each turn starts where the one before ended."""
    for placed in reversed(turns):
        for extra in (*(call.extra for call in reversed(placed.turn.calls)), placed.turn.extra):
            opaque = read_opaque(extra)
            if opaque.conversation_id:
                return opaque
    return Opaque()


def _derived_id(turns: Sequence[Placed]) -> str:
    """An id that grows from how the conversation begins: never random, and not the same for every conversation."""
    opening = turns[0].turn
    return "task-" + hashlib.sha256(f"{opening.role}\n{opening.text}".encode()).hexdigest()[:16]


def _write_inputs(target: pb.Input, turns: Sequence[Placed]) -> list[Notice]:
    """Results and questions, in order. With neither, the model is asked to go on where its answer ended."""
    notices: list[Notice] = []
    inputs = target.user_inputs.inputs
    for placed in turns:
        for result in placed.turn.results:
            written = inputs.add().tool_call_result
            written.tool_call_id = result.call_id
            notices += write_result(written.call_mcp_tool, result, placed.index)
        if placed.asks:
            write_query(inputs.add().user_query, placed.turn.text)
        if placed.shows:
            write_images(target.context, placed)
    if not inputs:
        target.resume_conversation.SetInParent()
    return notices


def _write_system(request: pb.Request, turns: Sequence[Placed]) -> list[Notice]:
    """Put the system text beside the newest question, on every request, also on one that brings only results."""
    system = [n for n, placed in enumerate(turns) if placed.turn.role in SYSTEM_ROLES]
    text = "\n\n".join(filter(None, (turns[n].turn.text for n in system)))
    if text:
        attach_system(request, text)
    return [_moved(turns[n]) for rank, n in enumerate(system) if n != rank]


def _names_left_out(turns: Sequence[Placed]) -> list[Notice]:
    detail = "the log has no place for the name of the speaker"
    return [
        Notice("encode", "dropped", "TURN_NAME_NOT_SENT", detail, placed.index, level="debug")
        for placed in turns
        if placed.turn.name is not None
    ]


def _moved(placed: Placed) -> Notice:
    detail = f"the {placed.turn.role} message stands with the other system text, beside the newest question"
    return Notice("encode", "moved", "SYSTEM_MOVED", detail, placed.index)
