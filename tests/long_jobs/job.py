"""A model that has an agent run one command after another, and sees whether anything is lost on the way."""

from typing import Any, Final

import msgspec

from gateway.demo.scripted_model.dialogue import Dialogue, OfferedTool, PlannedCall, Reply
from gateway.demo.scripted_model.reply import reply
from gateway.demo.scripted_model.summary import summary

# What the user says once, and what stands in the arguments of an early call: both are looked for at the end.
WORDS: Final = "marlin-4711"
ARGUMENT: Final = "harpoon-0815"
FACTS: Final = (WORDS, ARGUMENT)
_PLANTED_AT: Final = 3
TASK: Final = f"The codename of this job is {WORDS}. Run the commands of the list, one by one, and tell the codename."
END: Final = "The job has ended:"
PAUSE: Final = "Half of the commands were run."
# The words that a command prints: as many tokens, by the count of the demo backends.
PRINTED: Final = 300
# By these an agent asks for a summary of its history, which replaces it: Codex 0.169.0, Claude Code 2.1.330.
# They stand in no other request.
_COMPACTION: Final = (b"CONTEXT CHECKPOINT COMPACTION", b"Please provide your summary based on the conversation so far")
_COMMANDS: Final = {"exec_command": "cmd", "Bash": "command"}
# So many calls stand in the gateway's own summary, whatever the model writes (docs/compression.md).
LEDGER: Final = 40


class Round(msgspec.Struct, frozen=True):
    """A request to the backend that got a call: the bytes of its body, and how many compactions came before it."""

    size: int
    compactions: int


class LongJob:
    """Replies to the dialogues of demo backends with the next of so many rounds (`wanted`), each of which prints
    `printed` words. `pause`: after so many rounds the model ends its turn, and the user has it go on.

    Each round asks for a command whose output no argument contains: the next request must have it, or the one for a
    summary before that. `lost` are the rounds whose output did not come, `compactions` the rounds behind which a
    summary was asked for, `others` the questions without tools, and `last` what the last request had of the facts.
    `sealed` has for each summary that the gateway asked for how many of the newest calls the next request still had.
    """

    def __init__(self, wanted: int, pause: int | None = None, printed: int = PRINTED) -> None:
        self.wanted = wanted
        self.rounds: list[Round] = []
        self.compactions: list[int] = []
        self.sealed: list[int] = []
        self.lost: list[int] = []
        self.others: list[str] = []
        self.last: tuple[str, ...] = ()
        self.ended = 0
        self._owed = 0
        self._printed = printed
        self._pause = pause
        self._is_sealed = False

    def reply(self, dialogue: Dialogue, body: bytes) -> Reply:
        """Returns the next command, the end of the job, or the summary that is asked for. `body` is that of the request
        to the backend."""
        kept = tuple(fact for fact in FACTS if fact.encode() in body)
        if _output(len(self.rounds)).encode() in body:
            self._owed = 0
        if (written := summary(dialogue.question)) is not None:
            self.compactions.append(len(self.rounds))
            self._is_sealed = True
            return Reply(text=_with_argument(written, kept))
        if any(mark in body for mark in _COMPACTION):
            self.compactions.append(len(self.rounds))
            said = f"The job goes on. {len(self.rounds)} commands were run. To be kept: {' '.join(kept)}."
            return Reply(text=f"<summary>{said}</summary>")
        tool = next((tool for tool in dialogue.tools if tool.name in _COMMANDS), None)
        if tool is None:
            # Titles and the like.
            self.others.append(dialogue.question)
            return reply(dialogue)
        if self._is_sealed:
            newest = range(max(1, len(self.rounds) - LEDGER + 1), len(self.rounds) + 1)
            self.sealed.append(sum(self._line(number).encode() in body for number in newest))
            self._is_sealed = False
        # Claude Code leaves the newest output out of what is summarised, and sends it behind the summary.
        self.lost += [self._owed] if self._owed else []
        if len(self.rounds) == self._pause:
            self._pause = None
            return Reply(text=PAUSE)
        if len(self.rounds) == self.wanted:
            self.ended += 1
            self.last = kept
            return Reply(text=f"{END} {' '.join(kept)}.")
        self.rounds.append(Round(len(body), len(self.compactions)))
        self._owed = len(self.rounds)
        return Reply(calls=(self._command(tool, self._owed),))

    def _command(self, tool: OfferedTool, number: int) -> PlannedCall:
        planted = f" # {ARGUMENT}" if number == _PLANTED_AT else ""
        arguments = {_COMMANDS[tool.name]: self._line(number) + planted}
        if tool.name == "Bash":
            arguments["description"] = f"Command {number}"
        return PlannedCall(f"call_{number:016}", tool.name, arguments)

    def _line(self, number: int) -> str:
        return f"echo output-$((10000 + {number})) && seq -s ' ' {self._printed}"


def _with_argument(written: str, kept: tuple[str, ...]) -> str:
    """Returns the summary with the argument of the early call. The user's words are not the model's to keep."""
    members: dict[str, list[dict[str, Any]]] = msgspec.json.decode(written)  # Any: JSON
    if ARGUMENT in kept:
        noted = {"text": f"An early command noted {ARGUMENT}.", "from": members["goal"][0]["from"]}
        members["facts"] = [noted, *members.get("facts", ())]
    return msgspec.json.encode(members).decode()


def _output(number: int) -> str:
    return f"output-{10000 + number}"
