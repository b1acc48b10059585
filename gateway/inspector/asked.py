"""Says what a request asks, as its row in a list shows it: the first words of the newest message that a person wrote,
and the tools whose results came since the model's last turn."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import takewhile
from typing import Final

import msgspec

from gateway.core.conversation import Text, Turn
from gateway.core.errors import GatewayError
from gateway.core.secrets import without_secrets
from gateway.dialect import RequestHead
from gateway.dialects.document import read_document
from gateway.history.classify import is_said_by_user
from gateway.registry import load_dialect

# So many characters are shown. Secrets are looked for in more, so that none is cut before it is found: behind those of
# which some may be shown, where white space takes much room, too.
LONGEST: Final = 160
_SHOWN: Final = 4096
_LOOKED_AT: Final = 2 * _SHOWN
_MOST_RESULTS: Final = 16
_LONGEST_NAME: Final = 60
# What clients put before the words of their user: Claude Code a <system-reminder>, Codex an <environment_context>.
_TAG: Final = re.compile(r"\s*+<([a-z][a-z0-9_-]*+)>")
_BLANK: Final = re.compile(r"\s*+")


class Asked(msgspec.Struct, frozen=True):
    """The first `words` of the newest message of the user (empty: there is none, or no contents are kept), and the
    names of the tools whose `results` are new, one for each result."""

    words: str = ""
    results: tuple[str, ...] = ()


def client_turns(dialect: str, head: RequestHead, body: bytes) -> Sequence[Turn]:
    """Returns the turns of a client's request; none of one that its dialect cannot read."""
    with suppress(GatewayError):
        return load_dialect(dialect).decode(read_document(body), head).conversation.turns
    return ()


def asked_of(turns: Sequence[Turn], secrets: Sequence[str]) -> Asked:
    """Returns what the turns of a client ask, without secrets: those of a known shape, and these values."""
    results = tuple(without_secrets(name, secrets)[:_LONGEST_NAME] for name in _results(turns))
    return Asked(_shown(_newest(turns), secrets), tuple(map(_whole, results)))


def _newest(turns: Sequence[Turn]) -> str:
    """Returns the words of the newest message in which there is more than what a client adds in tags; of none, the
    newest message."""
    newest: Turn | None = None
    for turn in filter(is_said_by_user, reversed(turns)):
        if text := "\n".join(_untagged(turn)):
            return text
        newest = newest or turn
    return "" if newest is None else newest.text[:_LOOKED_AT]


def _untagged(turn: Turn) -> Iterator[str]:
    for block in turn.blocks:
        if type(block) is Text and (text := _behind_tags(block.text)):
            yield text


def _behind_tags(text: str) -> str:
    """Returns the beginning of a text behind the elements and the white space that it begins with."""
    start = 0
    while match := _TAG.match(text, start):
        end = text.find(closing := f"</{match[1]}>", match.end())
        if end < 0:
            break
        start = end + len(closing)
    if blank := _BLANK.match(text, start):
        start = blank.end()
    return text[start : start + _LOOKED_AT]


def _shown(text: str, secrets: Sequence[str]) -> str:
    words = " ".join(without_secrets(text[:_LOOKED_AT], secrets)[:_SHOWN].split())
    return _whole(words if len(words) <= LONGEST else f"{words[: LONGEST - 3]}...")


def _whole(text: str) -> str:
    """Returns a text without halves of surrogate pairs, which no message between workers holds."""
    return text.encode("utf-8", "replace").decode()


def _results(turns: Sequence[Turn]) -> list[str]:
    """Returns the names of the calls whose results stand behind the model's last turn."""
    behind = [*takewhile(lambda turn: turn.role != "assistant", reversed(turns))]
    if len(behind) == len(turns):
        return []
    names = {call.id: call.name for call in turns[-1 - len(behind)].calls}
    ids = [result.call_id for turn in reversed(behind) for result in turn.results]
    return [names[one] for one in ids if one in names][:_MOST_RESULTS]
