"""Compares what was sent for two requests: what they have in common from the start, which a provider's cache needs, and
what changed."""

import re
from collections.abc import Iterator, Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from gateway.core.conversation import Turn
from gateway.diagnostics.prompt_cache.finding import CacheCounts, ProviderMiss, Unmarked, compare
from gateway.diagnostics.prompt_cache.prompt import Prompt, prompt_of, tokens_of
from gateway.diagnostics.prompt_cache.words import finding_sentence
from gateway.exchange import Exchange
from gateway.inspector.views.alignment import same
from gateway.inspector.views.cells import Cell, cell, text_of
from gateway.inspector.views.matches import Block, blocks_of
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


class NewMessage(msgspec.Struct, frozen=True):
    """A message behind the end of the earlier request, as it was sent; `index` as in ChangedMessage."""

    index: int | None
    cell: Cell


class CacheVerdict(msgspec.Struct, frozen=True):
    """Whether the earlier request is the beginning of the later one, as a provider's cache of prefixes needs it.
    `cached_tokens` are those that the provider reports; null: it does not."""

    verdict: Verdict
    cached_tokens: int | None
    sentence: str


class Difference(msgspec.Struct, frozen=True):
    """How what was sent differs from the request `against`: the number of equal messages from the start (`common`), the
    index of the first one that is not (null: none), the messages that changed, and those that are `new` behind the end
    of the earlier one."""

    against: str
    common: int
    first_change: int | None
    cache: CacheVerdict
    changed: tuple[ChangedMessage, ...]
    new: tuple[NewMessage, ...]


def difference(captured: Pair, shown: Pair, cached: int | None) -> Difference:
    """Compares the captured requests, and words the differences as they may be shown: `shown` are the same requests,
    redacted alike."""
    old, new = captured.old.turns.sent, captured.new.turns.sent
    common = next((at for at, (one, other) in enumerate(zip(old, new, strict=False)) if not same(one, other)), None)
    if common is None:
        common = min(len(old), len(new))
    comparable = _comparable(captured, shown)
    changed = _changed(old, new, shown) if comparable else ()
    added = _new(old, new, shown) if comparable else ()
    first = (new if common < len(new) else old)[common].index if common < len(old) else None
    request = captured.old.interaction.request.id
    return Difference(request, common, first, _verdict(captured, cached), tuple(changed), tuple(added))


def _comparable(captured: Pair, shown: Pair) -> bool:
    """Returns whether redaction has left every message in its place."""
    return all(
        len(one.turns.sent) == len(other.turns.sent)
        for one, other in ((captured.old, shown.old), (captured.new, shown.new))
    )


def _verdict(pair: Pair, cached: int | None) -> CacheVerdict:
    old, new = _prompt(pair.old), _prompt(pair.new)
    exchange = _exchange(pair.new)
    if old is None or new is None or exchange is None:
        return CacheVerdict("unknown", cached, "One of the two requests was not sent, or cannot be made again.")
    end = pair.new.interaction.end
    prompt = None if end is None or end.usage is None else end.usage.prompt
    found = compare(old, new, tokens_of(exchange.conversation), CacheCounts(prompt, cached))
    if found is not None:
        kept = isinstance(found.cause, ProviderMiss | Unmarked)
        return CacheVerdict("kept" if kept else "broken", cached, finding_sentence(found))
    sentence = "The earlier request is the beginning of this one: a cache of prefixes can serve it."
    if cached is not None:
        sentence += f" The provider read {cached} tokens of the prompt from its cache."
    return CacheVerdict("kept", cached, sentence)


def _prompt(remade: Remade) -> Prompt | None:
    exchange, route, adapter = _exchange(remade), remade.interaction.route, remade.adapter
    if exchange is None or route is None or adapter is None:
        return None
    return prompt_of(exchange, adapter.capabilities.passthrough, route.backend)


def _exchange(remade: Remade) -> Exchange | None:
    return None if remade.run is None else remade.run.exchange


def _changed(old: Sequence[Turn], new: Sequence[Turn], shown: Pair) -> Iterator[ChangedMessage]:
    """Yields the messages that changed, with the words that may be shown."""
    before, after = shown.old.turns.sent, shown.new.turns.sent
    left = _MOST_CHANGED
    for op, start, stop, begin, end in _blocks(old, new):
        if op == "equal":
            continue
        # What stands behind the end of the earlier request is new, not changed.
        count = stop - start if stop == len(old) else max(stop - start, end - begin)
        for at in range(min(count, left)):
            was = before[start + at] if start + at < stop else None
            now = after[begin + at] if begin + at < end else None
            yield _message(was, now)
        left -= min(count, left)


def _new(old: Sequence[Turn], new: Sequence[Turn], shown: Pair) -> Iterator[NewMessage]:
    """Yields the messages behind the end of the earlier request, with the words that may be shown."""
    op, start, stop, begin, end = next(reversed(_blocks(old, new)), ("equal", 0, 0, 0, 0))
    if op not in ("insert", "replace") or stop != len(old):
        return
    turns = shown.new.turns.sent
    for at in range(begin + stop - start, end)[:_MOST_CHANGED]:
        yield NewMessage(turns[at].index, cell(turns[at], "+", at))


def _blocks(old: Sequence[Turn], new: Sequence[Turn]) -> Sequence[Block]:
    return [*blocks_of([*map(_key, old)], [*map(_key, new)])]


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
    for op, start, stop, begin, end in blocks_of(old, new):
        if op == "equal":
            yield TextSpan("=", "".join(new[begin:end]))
            continue
        if stop > start:
            yield TextSpan("-", "".join(old[start:stop]))
        if end > begin:
            yield TextSpan("+", "".join(new[begin:end]))
