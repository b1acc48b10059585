"""What the user asked for is still sent once a summary stands for it: in the user's own words, whatever the model makes
of them, and although a client writes notes in the user's role while the agent works."""

import json
import re
from typing import Any, Final

from gateway.core.conversation import Json
from tests.server.summaries.scripted import (
    Messages,
    agent_round,
    compressing_gateway,
)

SYSTEM: Final[dict[str, Json]] = {"role": "system", "content": "You are an agent."}
TASK: Final = "Port the ledger to the new schema, and never push to origin/main."
# As long as the instructions of a project that an agent sends first.
INSTRUCTIONS: Final = "# Rules of this project\n" + "Write short functions and test each of them.\n" * 500
IMAGE: Final[dict[str, Json]] = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
MEDIA: Final[dict[str, Json]] = {
    "role": "user",
    "content": [{"type": "text", "text": "Attached media from tool result:"}, IMAGE],
}


def working(rounds: int, *opening: Json, note: int | None = None, said: Json = None) -> Messages:
    """Returns the history of an agent that was asked this, and to which `said` was said in round `note`."""
    messages: Messages = [SYSTEM, *opening]
    for number in range(rounds):
        messages += agent_round(number)[:2]
        if number == note:
            messages.append(said)
    return messages


def unhelpful(lines: list[dict[str, Any]]) -> str:
    """Returns a summary that says nothing of the task."""
    calls = [(line["n"], call["arguments"]) for line in lines for call in line.get("calls", [])]
    return json.dumps({"facts": [{"text": f"A file was read: {said}", "from": [n]} for n, said in calls]})


async def sent_at_last(*opening: Json, note: int | None = None, said: Json = None) -> Messages:
    """Returns what is sent of such a history once it is summarised."""
    async with compressing_gateway() as (agent, model):
        model.counts = False
        model.summarise = unhelpful
        for rounds in range(38, 42):
            await agent.ask(working(rounds, *opening, note=note, said=said))
        assert model.summarised and "stands instead" in json.dumps(model.sent)
        return model.sent


def user(text: str) -> dict[str, Json]:
    return {"role": "user", "content": text}


async def test_the_task_of_a_running_loop_follows_its_summary_although_a_client_attaches_an_image() -> None:
    sent = await sent_at_last(user(TASK), note=3, said=MEDIA)
    assert sent[2:4] == [user(TASK), MEDIA]


async def test_what_the_user_says_while_tools_run_follows_the_task() -> None:
    sent = await sent_at_last(user(TASK), note=3, said=user("Stop, do the archive first."))
    assert sent[2:4] == [user(TASK), user("Stop, do the archive first.")]


async def test_the_task_is_sent_behind_long_instructions_that_come_first() -> None:
    sent = await sent_at_last(user(INSTRUCTIONS), user(TASK), note=3, said=MEDIA)
    assert user(TASK) in sent[2:5] and MEDIA in sent[2:5]
    assert "# Rules of this project" in json.dumps(sent[1])


async def test_the_first_task_stands_in_the_summary_after_many_others() -> None:
    history = working(4, user(INSTRUCTIONS), user(TASK))
    async with compressing_gateway() as (agent, model):
        model.counts = False
        model.summarise = unhelpful
        for number in range(40):
            history += [
                user(f"Question {number}: " + "why does it fail? " * 40),
                {"role": "assistant", "content": "So."},
            ]
            history += working(1)[1:]
            if number > 16:
                await agent.ask([*history, user("And now?")])
        assert len(model.summarised) > 1
        summary = json.dumps(model.sent[1])
        said = summary.partition("verbatim")[2]
        assert TASK in said and "# Rules of this project" in said
        assert "Question 39" in json.dumps(model.sent)
        # The newest of the others stand there as well.
        assert re.search(r"Question \d+: ", said)
