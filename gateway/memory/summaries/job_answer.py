"""Reads the model's answer to the job's request: checks it, and files each item by who said it.

A stored summary stands for turns that are not sent any more. So a doubtful answer is refused, and the turns are sent as
before. The checks stop forged turns and the promotion of what a tool returned; no check can find what the model left
out (docs/compression.md).
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal, TypeAlias, get_args

import msgspec

from gateway.core.conversation import Turn
from gateway.core.events import Reason
from gateway.core.policy import Labels
from gateway.core.secrets import without_secrets
from gateway.core.tokens import estimate_text
from gateway.framing.json_text import NotJson, decode_json
from gateway.memory.summaries.answer_checks import is_other_script, shared_identifiers
from gateway.memory.summaries.job_request import speaker
from gateway.memory.summaries.known_facts import known_of
from gateway.memory.summaries.plan import SummaryRange
from gateway.memory.summaries.summary import MAX_ITEM, Item, Kind, Known, SummaryContent, summary_text

RejectionReason: TypeAlias = Literal[
    "finish", "call", "empty", "error", "format", "turns", "marker", "identifiers", "language", "long"
]

# Fewer characters of plain text say nothing of a long conversation.
LEAST_NOTES: Final = 200
# The share of the shared identifiers that a summary must name.
IDENTIFIERS_SHARE: Final = 0.5


class SummaryRejected(Exception):
    """An answer that must not be stored. `reason` is one of a closed set; the sentence holds no content."""

    def __init__(self, reason: RejectionReason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason


class JobAnswer(msgspec.Struct, frozen=True):
    """A complete answer: its text without reasoning, why it ended (None: not known), and how many calls it makes."""

    text: str
    finish: Reason | None
    calls: int = 0


class Summary(msgspec.Struct, frozen=True):
    """A checked summary: the model's part, the gateway's own, and the text that the model behind will read."""

    content: SummaryContent
    known: Known
    text: str


def read_summary(answer: JobAnswer, turns: Sequence[Turn], summarised: SummaryRange) -> Summary:
    """Returns the summary in an answer to the request for this range.

    `turns` are the covered ones, behind the system prefix. Raises SummaryRejected for an answer that must not be
    stored.
    """
    content = _filed(_content(_complete(answer)), turns)
    known = known_of(turns, summarised.words_tokens, summarised.max_calls)
    text = summary_text(len(turns), content, known)
    if estimate_text(text) > summarised.summary_limit:
        raise SummaryRejected("long", f"the summary is longer than the {summarised.summary_limit} tokens worth storing")
    prose = "\n".join([content.notes, *(item.text for item in content.items)])
    if is_other_script(prose, "\n".join(words.text for words in known.words if words.speaker == "user")):
        raise SummaryRejected("language", "the summary is not in the script of the user's words")
    # What neither this job nor the one before has read, it cannot name.
    read_before = 0 if summarised.previous is None else summarised.previous.turns
    read = (*turns[:read_before], *turns[summarised.start :])
    _check_identifiers(read, "\n".join((prose, *_known_texts(known))))
    return Summary(content, known, text)


def _complete(answer: JobAnswer) -> str:
    if answer.calls:
        raise SummaryRejected("call", "the answer calls a tool")
    if answer.finish != "stop":
        raise SummaryRejected("finish", f"the answer ended with {answer.finish!r}, not with 'stop'")
    # Half a character could not be stored.
    text = _THINKING.sub("", answer.text).strip().encode("utf-8", "replace").decode()
    if not text:
        raise SummaryRejected("empty", "the answer is empty")
    fenced = _FENCED.fullmatch(text)
    return fenced["body"] if fenced else text


# Models without a field of their own for reasoning write it before the answer.
_THINKING: Final = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_FENCED: Final = re.compile(r"```(?:json)?\s*\n(?P<body>.*?)\n?```", re.DOTALL)
_ERROR: Final = re.compile(
    r"\W*(?:(?:error|exception)\s*[:(\d]|traceback \(|(?:http/?[\d.]* )?[45]\d\d:? (?-i:[A-Z])[a-z]+"
    r"|internal server error|(?:i['\u2019]?m )?sorry\b|i (?:can(?:no|['\u2019])t|am unable)\b|as an ai\b"
    r"|\[?(?:no )?summary (?:unavailable|failed|placeholder))",
    re.IGNORECASE,
)


def _content(text: str) -> SummaryContent:
    """Returns the items of an object, or any other text as notes. Items that cite nothing are notes, too."""
    if not text.startswith("{"):
        return SummaryContent(notes=_checked_notes(text))
    try:
        written = decode_json(text.encode(), lenient=True)
    except NotJson as error:
        raise SummaryRejected("format", f"the answer begins as a JSON object and is none: {error.reason}") from error
    members = (
        {kind: value for kind in get_args(Kind) if (value := written.get(kind))} if isinstance(written, dict) else {}
    )
    if not members:
        raise SummaryRejected("format", "the answer is a JSON object without any member of a summary")
    items: list[Item] = []
    uncited: list[str] = []
    dropped = 0
    for kind, value in members.items():
        for entry in value if isinstance(value, list) else [value]:
            match entry:
                case {"text": str(said), "from": [*cited]}:
                    items.append(Item(kind, _one_line(said), tuple(n for n in cited if type(n) is int)))
                case str(said) | {"text": str(said)}:
                    uncited.append(f"{kind}: {_one_line(said)}")
                case _:
                    dropped += 1
    notes = "\n".join(uncited)
    return SummaryContent(tuple(items), notes if items else _checked_notes(notes), dropped)


_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f]+")


def _one_line(text: str) -> str:
    line = " ".join(_CONTROL.sub(" ", text).split())
    return line if len(line) <= MAX_ITEM else f"{line[: MAX_ITEM - 1]}…"


def _checked_notes(text: str) -> str:
    if _ERROR.match(text):
        raise SummaryRejected("error", "the answer reads as an error or a refusal")
    if len(text) < LEAST_NOTES:
        raise SummaryRejected("empty", f"the answer has {len(text)} characters of plain text")
    return text


def _filed(content: SummaryContent, turns: Sequence[Turn]) -> SummaryContent:
    """Returns the items that may stay, those that only tools said marked as reported.

    An item goes that cites a turn outside the summary, or none, and one that holds what no summary may hold.
    """
    speakers = [speaker(turn) for turn in turns]
    kept = [item for item in content.items if item.text and _cites(item, len(turns))]
    if len(kept) < len(content.items) / 2:
        raise SummaryRejected("turns", "most items cite no turn that the summary covers")
    clean = [item for item in kept if not _is_forbidden(item.text)]
    if len(clean) < len(kept) / 2 or _is_forbidden(content.notes):
        raise SummaryRejected("marker", "the answer holds marks of the gateway, labels of turns or credentials")
    filed = [
        msgspec.structs.replace(item, reported=all(speakers[number - 1] == "tool" for number in item.turns))
        for item in clean
    ]
    return SummaryContent(tuple(filed), content.notes, content.dropped + len(content.items) - len(clean))


def _cites(item: Item, turns: int) -> bool:
    return bool(item.turns) and all(1 <= number <= turns for number in item.turns)


_LABELS: Final = Labels()
_FORBIDDEN: Final = re.compile(
    # What the gateway writes itself, and the beginning of a line of the job's request.
    r"\[elided: \d+ chars\]|\[The first \d+ turns of this|\[End of the summary|\{\s*\"n\"\s*:\s*\d+\s*,\s*\"role\""
    # A line that opens a turn.
    rf"|^\s*(?:{'|'.join((_LABELS.user, _LABELS.assistant, _LABELS.tool_calls))})\s*:|^\s*{_LABELS.tool_result}\s*[(:]",
    re.MULTILINE,
)


def _is_forbidden(text: str) -> bool:
    return _FORBIDDEN.search(text) is not None or without_secrets(text) != text


def _check_identifiers(turns: Sequence[Turn], written: str) -> None:
    shared = shared_identifiers(turns)
    missing = sum(identifier not in written for identifier in shared)
    if missing > (1 - IDENTIFIERS_SHARE) * len(shared):
        raise SummaryRejected("identifiers", f"{missing} of {len(shared)} identifiers of several turns are missing")


def _known_texts(known: Known) -> Iterator[str]:
    yield from (words.text for words in known.words)
    for call in known.calls:
        yield call.name
        yield call.arguments
