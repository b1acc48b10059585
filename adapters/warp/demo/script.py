"""Converts the scripted reply into steps of the agent wire."""

import msgspec

from adapters.warp import multi_agent_pb2 as pb
from adapters.warp.demo import actions
from adapters.warp.demo.request import AgentRequest
from adapters.warp.demo.steps import (
    BEGIN,
    COMMIT,
    NEXT_PRELUDE,
    PRELUDE,
    ScenarioState,
    Step,
    act,
    finish,
    reasoning_message,
    text_message,
    title,
)
from gateway.demo.scripted_model.dialogue import Model, PlannedCall
from gateway.demo.scripted_model.reply import reply
from gateway.demo.scripted_model.words import count


def scripted_steps(request: AgentRequest, model: Model = reply) -> tuple[Step, ...]:
    """Returns the steps of the model's reply, with the metadata events of the wire around it."""
    planned = model(request.dialogue)
    steps: list[Step] = [*(NEXT_PRELUDE if request.conversation_id else PRELUDE), BEGIN]
    if planned.reasoning and request.shows_reasoning:
        steps.append(reasoning_message(planned.reasoning))
    if planned.text:
        steps.append(text_message(planned.text))
    if planned.calls:
        steps.append(_calls(planned.calls))
    steps.append(COMMIT)
    if not request.conversation_id:
        steps.append(title(request.dialogue.question[:40]))
    arguments = sum(count(msgspec.json.encode(call.arguments).decode()) for call in planned.calls)
    spoken = count(planned.text) + count(planned.reasoning) + arguments
    return (*steps, finish(_finished(request, spoken)))


def _calls(calls: tuple[PlannedCall, ...]) -> Step:
    def build(state: ScenarioState) -> pb.ClientAction:
        task = state.ids.task
        made = (actions.mcp_call(state.new_message(), task, call.id, call.name, call.arguments) for call in calls)
        return actions.add(task, *made)

    return act(build)


def _finished(request: AgentRequest, spoken: int) -> pb.StreamFinished:
    finished = pb.StreamFinished(done=pb.StreamFinished.Done())
    finished.token_usage.add(model_id=request.model, total_input=count(request.query), output=spoken)
    return finished
