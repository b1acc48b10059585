"""A model that has an agent run one command after another, and sees whether anything is lost on the way."""

from collections.abc import Callable
from typing import Final

import msgspec

from gateway.demo.scripted_model.dialogue import Dialogue, OfferedTool, PlannedCall, Reply
from gateway.demo.scripted_model.reply import reply

# What the user says once, and what stands in the arguments of an early call: both are looked for at the end.
WORDS: Final = "marlin-4711"
ARGUMENT: Final = "harpoon-0815"
FACTS: Final = (WORDS, ARGUMENT)
_PLANTED_AT: Final = 3
TASK: Final = f"The codename of this job is {WORDS}. Run the commands of the list, one by one, and tell the codename."
END: Final = "The job has ended:"
# The words that a command prints: as many tokens, by the count of the demo backends.
_PRINTED: Final = 300
# By these an agent asks for a summary of its history, which replaces it: Codex 0.169.0, Claude Code 2.1.330.
# They stand in no other request.
_COMPACTION: Final = (b"CONTEXT CHECKPOINT COMPACTION", b"Please provide your summary based on the conversation so far")
_COMMANDS: Final = {"exec_command": "cmd", "Bash": "command"}


class Round(msgspec.Struct, frozen=True):
    """A request to the backend that got a call: the bytes of its body, and how many compactions came before it."""

    size: int
    compactions: int


class LongJob:
    """Replies to the dialogue of a demo backend. `body` returns the body of the request that is being answered.

    Each round asks for a command whose output no argument contains: the next request must have it, or the one for a
    summary before that. `lost` are the rounds whose output did not come, `compactions` the rounds behind which a
    summary was asked for, `others` the questions without tools, and `last` what the last request had of the facts.
    """

    def __init__(self, rounds: int, body: Callable[[], bytes]) -> None:
        self.rounds: list[Round] = []
        self.compactions: list[int] = []
        self.lost: list[int] = []
        self.others: list[str] = []
        self.last: tuple[str, ...] = ()
        self.ended = 0
        self._owed = 0
        self._wanted = rounds
        self._body = body

    def reply(self, dialogue: Dialogue) -> Reply:
        """Returns the next command, the end of the job, or the summary that the agent asks for."""
        body = self._body()
        kept = tuple(fact for fact in FACTS if fact.encode() in body)
        if _output(len(self.rounds)).encode() in body:
            self._owed = 0
        if any(mark in body for mark in _COMPACTION):
            self.compactions.append(len(self.rounds))
            said = f"The job goes on. {len(self.rounds)} commands were run. To be kept: {' '.join(kept)}."
            return Reply(text=f"<summary>{said}</summary>")
        tool = next((tool for tool in dialogue.tools if tool.name in _COMMANDS), None)
        if tool is None:
            # Titles and the like.
            self.others.append(dialogue.question)
            return reply(dialogue)
        # Claude Code leaves the newest output out of what is summarised, and sends it behind the summary.
        self.lost += [self._owed] if self._owed else []
        if len(self.rounds) == self._wanted:
            self.ended += 1
            self.last = kept
            return Reply(text=f"{END} {' '.join(kept)}.")
        self.rounds.append(Round(len(body), len(self.compactions)))
        self._owed = len(self.rounds)
        return Reply(calls=(_command(tool, self._owed),))


def _command(tool: OfferedTool, number: int) -> PlannedCall:
    planted = f" # {ARGUMENT}" if number == _PLANTED_AT else ""
    line = f"echo output-$((10000 + {number})) && seq -s ' ' {_PRINTED}{planted}"
    arguments = {_COMMANDS[tool.name]: line}
    if tool.name == "Bash":
        arguments["description"] = f"Command {number}"
    return PlannedCall(f"call_{number:016}", tool.name, arguments)


def _output(number: int) -> str:
    return f"output-{10000 + number}"
