"""Compares what was sent for two requests: what they have in common from the start, which a provider's cache needs, and
what changed."""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final, Literal, TypeAlias

import msgspec

from gateway.core.conversation import Conversation, Turn
from gateway.inspector.views.alignment import same
from gateway.inspector.views.cells import text_of
from gateway.inspector.views.remade import Remade

Verdict: TypeAlias = Literal["kept", "broken", "unknown"]
_MOST_TEXT: Final = 64 * 2**10
_MOST_CHANGED: Final = 100
_WORDS: Final = re.compile(r"\w+|\s+|.", re.DOTALL)


class Pair(msgspec.Struct, frozen=True):
    """Two requests, the earlier one first."""

    old: Remade
    new: Remade


class TextSpan(msgspec.Struct, frozen=True):
    """A piece of a text: in both (`=`), only in the earlier one (`-`), only in the later one (`+`)."""

    op: Literal["=", "-", "+"]
    text: str


class ChangedMessage(msgspec.Struct, frozen=True):
    """A message that differs: its index in the later request (in the earlier one, where the later one lacks it)."""

    index: int | None
    spans: tuple[TextSpan, ...]


class CacheVerdict(msgspec.Struct, frozen=True):
    """Whether the earlier request is the beginning of the later one, as a provider's cache of prefixes needs it.
    `cached_tokens` are those that the provider reports; null: it does not."""

    verdict: Verdict
    cached_tokens: int | None
    sentence: str


class Difference(msgspec.Struct, frozen=True):
    """How what was sent differs from the request `against`: the number of equal messages from the start (`common`), the
    index of the first one that is not (null: none), and the messages that changed, without those behind the end."""

    against: str
    common: int
    first_change: int | None
    cache: CacheVerdict
    changed: tuple[ChangedMessage, ...]


def difference(captured: Pair, shown: Pair, cached: int | None) -> Difference:
    """Compares the captured requests, and words the differences as they may be shown: `shown` are the same requests,
    redacted alike."""
    old, new = captured.old.turns.sent, captured.new.turns.sent
    common = next((at for at, (one, other) in enumerate(zip(old, new, strict=False)) if not same(one, other)), None)
    if common is None:
        common = min(len(old), len(new))
    changed = _changed(old, new, shown) if _comparable(captured, shown) else ()
    first = (new if common < len(new) else old)[common].index if common < len(old) else None
    request = captured.old.interaction.request.id
    return Difference(request, common, first, _verdict(captured, common, cached), tuple(changed))


def _comparable(captured: Pair, shown: Pair) -> bool:
    """Returns whether redaction has left every message in its place."""
    return all(
        len(one.turns.sent) == len(other.turns.sent)
        for one, other in ((captured.old, shown.old), (captured.new, shown.new))
    )


def _verdict(pair: Pair, common: int, cached: int | None) -> CacheVerdict:
    verdict, sentence = _words(pair, common)
    if cached is not None:
        sentence += f" The provider read {cached} tokens of the prompt from its cache."
    return CacheVerdict(verdict, cached, sentence)


def _words(pair: Pair, common: int) -> tuple[Verdict, str]:
    old, new = _conversation(pair.old), _conversation(pair.new)
    if old is None or new is None:
        return "unknown", "One of the two requests was not sent, or cannot be made again."
    one, other = pair.old.interaction.route, pair.new.interaction.route
    if one is None or other is None or (one.backend, old.model) != (other.backend, new.model):
        return "broken", "The requests went to different models or backends, which have no cache in common."
    if old.tools != new.tools:
        return "broken", "The tools changed; providers put them before all messages, so that nothing stays cached."
    if common < len(old.turns):
        place = f"message {common + 1} of the {len(old.turns)} that were sent before"
        return "broken", f"A cache of prefixes ends before {place}, which changed or is gone."
    return "kept", "The earlier request is the beginning of this one: a cache of prefixes can serve it."


def _conversation(remade: Remade) -> Conversation | None:
    exchange = None if remade.run is None else remade.run.exchange
    return None if exchange is None else exchange.conversation


def _changed(old: Sequence[Turn], new: Sequence[Turn], shown: Pair) -> Iterator[ChangedMessage]:
    """Yields the messages that changed, with the words that may be shown."""
    before, after = shown.old.turns.sent, shown.new.turns.sent
    left = _MOST_CHANGED
    matcher = SequenceMatcher(None, [_key(turn) for turn in old], [_key(turn) for turn in new], autojunk=False)
    for op, start, stop, begin, end in matcher.get_opcodes():
        if op == "equal":
            continue
        # What stands behind the end of the earlier request is new, not changed.
        count = stop - start if stop == len(old) else max(stop - start, end - begin)
        for at in range(min(count, left)):
            was = before[start + at] if start + at < stop else None
            now = after[begin + at] if begin + at < end else None
            yield _message(was, now)
        left -= min(count, left)


def _key(turn: Turn) -> str:
    return repr((turn.role, turn.name, turn.blocks))


def _message(was: Turn | None, now: Turn | None) -> ChangedMessage:
    turn = was if now is None else now
    return ChangedMessage(None if turn is None else turn.index, tuple(_spans(_written(was), _written(now))))


def _written(turn: Turn | None) -> str:
    if turn is None:
        return ""
    calls = [f"{call.name}({call.arguments})" for call in turn.calls]
    return "\n".join([text_of(turn), *calls])[:_MOST_TEXT]


def _spans(was: str, now: str) -> Iterator[TextSpan]:
    """Yields the pieces of two texts, word by word."""
    old, new = _WORDS.findall(was), _WORDS.findall(now)
    for op, start, stop, begin, end in SequenceMatcher(None, old, new, autojunk=len(old) > 5000).get_opcodes():
        if op == "equal":
            yield TextSpan("=", "".join(new[begin:end]))
            continue
        if stop > start:
            yield TextSpan("-", "".join(old[start:stop]))
        if end > begin:
            yield TextSpan("+", "".join(new[begin:end]))
