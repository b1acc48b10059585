"""Judges one run of a client: what the laboratory has seen, and how the client ended, become one verdict."""

import re
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from gateway.demo.lab.event import LabEvent
from gateway.demo.lab.model import CUT_NOTES_WORD, FIRST_WORD, LAST_WORD, NOTES_WORD
from gateway.demo.lab.request import Seen
from gateway.demo.lab.run_client import FOLDER_PREFIX, Ran

# From the best to the worst.
# - `survived`: the whole answer is shown, with the exit status 0.
# - `reported`: it could not be had, and the client says in words that something is wrong.
# - `gave up`: the client says so, too, but nothing was lost, or whoever asks again gets the answer.
# - `silent`: it is not, the exit status is no 0, and no word says why.
# - `accepted`: it is not, no word says so, and the exit status is 0; or half of a call was run.
# - `hung`: the client was still running at the time limit.
# - `not met`: the client made no request that the event could strike.
Verdict: TypeAlias = Literal["survived", "reported", "gave up", "silent", "accepted", "hung", "not met"]
BAD: Final[tuple[Verdict, ...]] = ("hung", "accepted", "silent")

_WORDS: Final = re.compile(
    r"error|fail|exceed|invalid|denied|refus|unable|cannot|could ?n.t|can't|not found|unauthori|forbidden|overload"
    r"|unavailab|time[d -]*out|abort|interrupt|incomplete|truncat|limit|quota|retr(?:y|ied)|terminat|closed|reset|broke"
    r"|block|filter|too (?:long|large|big)|reconnect|malformed|unexpected|exception|traceback|safety|max.?tokens"
    r"|(?:status|code|http)\W{1,3}[345]\d\d|^[45]\d\d\b|no (?:visible |text )?(?:output|response|answer|content)"
    r"|empty response|\bexpected\b|went wrong|problem|panic|warning|issue with|not exist"
    # The words that a demo backend sends with a status.
    r"|was asked to answer",
    re.I,
)
# What differs between two runs: names of folders, ports, times, ids.
_VARYING: Final = re.compile(rf"{FOLDER_PREFIX}\w+|[0-9a-f-]{{8,}}|\d+")
# Colours and other sequences for a terminal, which shall not reach that of the reader.
_CONTROL: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x1f\x7f-\x9f]")
_EVIDENCE: Final = 160


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of one event. `again`: how often the client asked again for the answer that was struck. `detail` is
    one sentence where there is more to say, and `evidence` the client's own words."""

    event: str
    about: str
    verdict: Verdict
    again: int = 0
    detail: str = ""
    evidence: str = ""

    @property
    def shown(self) -> str:
        """The verdict with the number of tries."""
        tries = f"asked again {'once' if self.again == 1 else f'{self.again} times'}, " if self.again else ""
        return f"{tries}{self.verdict}"


def judge(event: LabEvent, seen: Sequence[Seen], ran: Ran, regular: str, *, reads: bool = False) -> Outcome:
    """Returns the outcome of a run; `regular` is what the client prints where nothing strikes, and `reads` whether it
    then reads the file."""
    # What strikes each time strikes requests beside the conversation, too.
    struck = next((one for own in (True, False) for one in seen if one.struck and one.own == own), None)
    if struck is None:
        return Outcome(event.name, event.about, "not met", 0, *_failure(ran, regular))
    again = sum(one.own == struck.own and one.rounds == struck.rounds for one in seen[seen.index(struck) + 1 :])
    verdict, detail, evidence = _verdict(event, seen, ran, regular)
    if reads and event.reads and verdict == "survived" and not had_file(seen):
        detail = "no result of its calls has the words of the file"
    refused = next((one.refused for one in seen if one.refused), "")
    if refused:
        detail = "; ".join(filter(None, (detail, f"it sent what the API refuses: {refused}")))
    return Outcome(event.name, event.about, verdict, again, detail, evidence)


def had_file(seen: Sequence[Seen]) -> bool:
    """Returns whether a client has sent back what the file says."""
    return any(NOTES_WORD in result for one in seen for result in one.results)


def _verdict(event: LabEvent, seen: Sequence[Seen], ran: Ran, regular: str) -> tuple[Verdict, str, str]:
    if any(CUT_NOTES_WORD in result for one in seen for result in one.results):
        return "accepted", "it completed the arguments of the call, and ran that", ""
    whole = LAST_WORD in ran.printed
    if ran.status is None:
        return "hung", "it had shown the whole answer" if whole else "", ""
    if whole and ran.status == 0:
        return "survived", "", ""
    new = _new_lines(ran.printed, regular)
    if words := next((line for line in new if _WORDS.search(line)), ""):
        return ("reported" if event.demand == "words" else "gave up"), ending(ran), _shortened(words)
    if ran.status != 0:
        return "silent", ending(ran), _shortened(next(iter(new), ""))
    part = FIRST_WORD in ran.printed
    return "accepted", f"it showed {'a part of the answer' if part else 'nothing'}, with exit status 0", ""


def _failure(ran: Ran, regular: str) -> tuple[str, str]:
    """Returns a detail and the client's last words for a run that failed though nothing struck; else nothing."""
    if ran.status == 0 and LAST_WORD in ran.printed:
        return "", ""
    new = _new_lines(ran.printed, regular)
    return f"it showed no whole answer, though nothing struck: {ending(ran)}", _shortened(next(iter(new), ""))


def ending(ran: Ran) -> str:
    """Says how a run ended."""
    match ran.status:
        case None:
            return "still running at the time limit"
        case int(status) if status < 0:
            return f"ended by signal {-status}"
        case status:
            return f"exit status {status}"


def _new_lines(printed: str, regular: str) -> list[str]:
    """Returns the lines that the client does not always print, the last first."""
    known = {_VARYING.sub("", _CONTROL.sub("", line).strip()) for line in regular.splitlines()}
    lines = (_CONTROL.sub("", line).strip() for line in reversed(printed.splitlines()))
    return [line for line in lines if _VARYING.sub("", line) not in known]


def _shortened(line: str) -> str:
    return line if len(line) <= _EVIDENCE else f"{line[: _EVIDENCE - 1]}…"
