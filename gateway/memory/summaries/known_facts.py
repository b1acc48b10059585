"""Gathers what the gateway knows of the covered turns without a model: the words of the user, the calls, and the errors
that tools returned."""

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Final, Literal

import msgspec

from gateway.core.conversation import ToolResult, Turn, is_system
from gateway.core.secrets import without_secrets
from gateway.core.tokens import estimate_text
from gateway.history.trim.truncate import shortened
from gateway.memory.summaries.summary import CallEntry, ErrorLine, Known, Words

MAX_ARGUMENTS: Final = 160
# Of a longer message, a pasted log mostly, the beginning and the end are kept around a marker.
MAX_WORDS: Final = 2_000
# What is said before the model has spoken is the task, mostly behind instructions of a project. These limits are tried
# one after the other, until it takes no more than a share of the room for all words.
OPENING_LIMITS: Final = (8_000, 4_000, MAX_WORDS, 1_000, 500)
OPENING_SHARE: Final = 0.5
MAX_ERROR: Final = 200
# Of words that are limited in their number, the first ones are one in so many.
_FIRST: Final = 10
# A summary lists one error for so many calls.
CALLS_OF_AN_ERROR: Final = 4
# A line that begins as programs begin a message of an error, and not one that only has the word.
_ERROR: Final = re.compile(r"^[ \t]*\[?(?:(?i:error|fatal|panic)|[\w.]+(?:Error|Exception))\]?:? .*\S", re.MULTILINE)


def known_of(turns: Sequence[Turn], words_tokens: int, max_calls: int) -> Known:
    """Returns the words that have room in this many estimated tokens: those before the model's first turn, which hold
    the task, then the newest others. And the newest calls.

    `turns` are the covered ones, behind the system prefix. Words without room are left out with all older ones. What
    looks like a secret is not among them (`gateway.core.secrets`).
    """
    spoken = next((n for n, turn in enumerate(turns) if turn.role == "assistant"), len(turns))
    words = [*_words(turns, MAX_WORDS)]
    opening = _opening(turns[:spoken], OPENING_SHARE * words_tokens)
    later = _newest([one for one in words if one.turn > spoken], words_tokens - _size(opening))
    calls = [*_calls(turns)]
    calls_left_out = max(len(calls) - max_calls, 0)
    errors = [*_errors(turns)]
    errors_left_out = max(len(errors) - max_calls // CALLS_OF_AN_ERROR, 0)
    return Known(
        words=(*opening, *later),
        calls=tuple(calls[calls_left_out:]),
        words_left_out=len(words) - len(opening) - len(later),
        calls_left_out=calls_left_out,
        errors=tuple(errors[errors_left_out:]),
        errors_left_out=errors_left_out,
    )


def joined(earlier: Known, later: Known, spoken: int, words_tokens: int, max_calls: int) -> Known:
    """Returns what is known of turns of which the earlier ones are not there any more, within the limits of `known_of`.
    The model's first turn stood behind so many turns as `spoken` says."""
    first = [one for one in earlier.words if one.turn <= spoken]
    opening = _newest(first, OPENING_SHARE * words_tokens)
    words = [*earlier.words[len(first) :], *later.words]
    kept = _newest(words, words_tokens - _size(opening))
    calls = [*earlier.calls, *later.calls]
    errors = [*earlier.errors, *later.errors]
    calls_out = max(len(calls) - max_calls, 0)
    errors_out = max(len(errors) - max_calls // CALLS_OF_AN_ERROR, 0)
    words_out = len(first) + len(words) - len(opening) - len(kept)
    return Known(
        words=(*opening, *kept),
        calls=tuple(calls[calls_out:]),
        words_left_out=earlier.words_left_out + later.words_left_out + words_out,
        calls_left_out=earlier.calls_left_out + later.calls_left_out + calls_out,
        errors=tuple(errors[errors_out:]),
        errors_left_out=earlier.errors_left_out + later.errors_left_out + errors_out,
    )


def with_fewer_words(known: Known, most: int) -> Known:
    """Returns what is known with the words of so many messages at most: some of the first ones, and the newest."""
    out = len(known.words) - most
    if out <= 0:
        return known
    first = most // _FIRST
    words = (*known.words[:first], *known.words[first + out :])
    return msgspec.structs.replace(known, words=words, words_left_out=known.words_left_out + out)


def unsaid(turns: Iterable[Turn], words: Sequence[Words]) -> list[Turn]:
    """Returns the turns whose words are not among those that are known, which are looked through once."""
    said = {one.text for one in words}
    return [turn for turn in turns if not _is_said(without_secrets(turn.text), said)]


def _is_said(text: str, said: Set[str]) -> bool:
    return any(shortened(text, limit) in said for limit in OPENING_LIMITS)


def _opening(turns: Sequence[Turn], room: float) -> Sequence[Words]:
    """Returns the words of the turns before the model's first one: all of them, the long ones shortened alike, or the
    newest that have room so."""
    found: Sequence[Words] = ()
    for limit in OPENING_LIMITS:
        found = [*_words(turns, limit)]
        if _size(found) <= room:
            break
    return _newest(found, room)


def _words(turns: Sequence[Turn], limit: int) -> Iterator[Words]:
    """Yields the words of the user and of later system messages; a note of the gateway is neither."""
    for number, turn in enumerate(turns, 1):
        speaker: Literal["system", "user"] = "system" if is_system(turn) else "user"
        if speaker == "user" and (turn.role != "user" or turn.synthesized):
            continue
        text = shortened(without_secrets(turn.text), limit)
        if text.strip():
            yield Words(number, speaker, text)


def _newest(words: Sequence[Words], room: float) -> Sequence[Words]:
    """Returns the newest words, as many as have room."""
    for count, one in enumerate(reversed(words)):
        room -= estimate_text(one.text)
        if room < 0:
            return words[len(words) - count :]
    return words


def _size(words: Sequence[Words]) -> int:
    return sum(estimate_text(one.text) for one in words)


def _calls(turns: Sequence[Turn]) -> Iterator[CallEntry]:
    for number, turn in enumerate(turns, 1):
        if not turn.calls:
            continue
        results = {result.call_id: result for answer in _answers(turns, number) for result in answer.results}
        for call in turn.calls:
            result = results.get(call.id)
            yield CallEntry(
                number,
                without_secrets(call.name),
                _cut(without_secrets(call.arguments), MAX_ARGUMENTS),
                result is not None and result.is_error,
                0 if result is None else len(result.text),
            )


def _errors(turns: Sequence[Turn]) -> Iterator[ErrorLine]:
    """Yields the errors in results, each text once, where it stands first."""
    listed: set[str] = set()
    for number, turn in enumerate(turns, 1):
        for result in turn.results:
            line = _error_line(result)
            if line is not None and line not in listed:
                listed.add(line)
                yield ErrorLine(number, line)


def _error_line(result: ToolResult) -> str | None:
    """Returns the first line about an error; of a result that is one as a whole, its first line at least."""
    found = _ERROR.search(result.text)
    if found is None and not (result.is_error and result.text.strip()):
        return None
    line = result.text.strip().splitlines()[0] if found is None else found[0].strip()
    return _cut(without_secrets(line), MAX_ERROR)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}…"


def _answers(turns: Sequence[Turn], start: int) -> Iterator[Turn]:
    """Yields the tool turns from `start` on, up to the next turn of another role. An id may occur again behind them."""
    for position in range(start, len(turns)):
        if turns[position].role != "tool":
            return
        yield turns[position]
