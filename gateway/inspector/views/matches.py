"""Finds what two sequences of texts have in common, as lines, words or messages, in a time that grows with them."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final, TypeAlias

# How texts of the earlier sequence became others of the later one (as in `difflib.SequenceMatcher.get_opcodes`), and
# from where to where they stand in both.
Block: TypeAlias = tuple[str, int, int, int, int]
# Where equal texts begin in the earlier sequence and in the later one, and how many there are.
_Match: TypeAlias = tuple[int, int, int]
# No more texts than so many are searched for equal ones at once.
_MOST_MATCHED: Final = 500


def common_size(old: Sequence[str], new: Sequence[str]) -> int:
    """Returns how many texts, or characters of two texts, both begin with."""
    most = min(len(old), len(new))
    return next((at for at in range(most) if old[at] != new[at]), most)


def blocks_of(old: Sequence[str], new: Sequence[str]) -> Iterator[Block]:
    """Yields what is equal and what is not, in turn."""
    at, place = 0, 0
    for start, begin, size in [*_joined(_matches(old, new)), (len(old), len(new), 0)]:
        if start > at or begin > place:
            yield "insert" if start == at else "delete" if begin == place else "replace", at, start, place, begin
        at, place = start + size, begin + size
        if size:
            yield "equal", start, at, begin, place


def _joined(matches: Iterable[_Match]) -> Iterator[_Match]:
    """Yields matches, those that follow each other as one."""
    first = (0, 0, 0)
    for start, begin, size in matches:
        if (start, begin) == (first[0] + first[2], first[1] + first[2]):
            first = (first[0], first[1], first[2] + size)
            continue
        if first[2]:
            yield first
        first = (start, begin, size)
    if first[2]:
        yield first


def _matches(old: Sequence[str], new: Sequence[str]) -> Iterator[_Match]:
    """Yields what both have, in order. The common beginning and end, which are most of it, are not searched, and long
    sequences only between the texts that stand once in each: the search takes the square of what it searches."""
    most = min(len(old), len(new))
    start = common_size(old, new)
    end = next((at for at in range(most - start) if old[-1 - at] != new[-1 - at]), most - start)
    yield 0, 0, start
    at, place = start, start
    stop, last = len(old) - end, len(new) - end
    fixed = _anchors(old[start:stop], new[start:last]) if max(stop, last) - start > _MOST_MATCHED else []
    for found, there, same in [*((start + one, start + other, 1) for one, other in fixed), (stop, last, end)]:
        between = old[at:found], new[place:there]
        if max(map(len, between)) <= _MOST_MATCHED:
            for one, other, size in SequenceMatcher(None, *between, autojunk=False).get_matching_blocks():
                yield at + one, place + other, size
        yield found, there, same
        at, place = found + same, there + same


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Returns where the texts that stand once in each do so: the most of them that have one order in both."""
    places = _single(new)
    pairs = [(at, places[text]) for text, at in _single(old).items() if text in places]
    # Of the rows of each length, the one that ends first is known by its end, and each pair by the one before it.
    ends: list[int] = []
    last_of: list[int] = []
    before: list[int] = []
    for number, (_, place) in enumerate(pairs):
        size = bisect_left(ends, place)
        before.append(last_of[size - 1] if size else -1)
        ends[size : size + 1] = [place]
        last_of[size : size + 1] = [number]
    found: list[tuple[int, int]] = []
    number = last_of[-1] if last_of else -1
    while number >= 0:
        found.append(pairs[number])
        number = before[number]
    return found[::-1]


def _single(texts: Sequence[str]) -> dict[str, int]:
    """Returns where each text stands that does so once."""
    counts = Counter(texts)
    return {text: at for at, text in enumerate(texts) if counts[text] == 1}
