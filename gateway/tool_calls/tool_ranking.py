"""Ranks functions by how well they fit the words of a search, without a model: the same words give the same list.

The score is BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009) over the
words of a function's name, its description and the names of its parameters.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from gateway.core.conversation import ToolSpec

# The usual constants of BM25: how soon further occurrences of a word count less, and how far long texts count less.
_SATURATION: Final = 1.2
_LENGTH: Final = 0.75
# A name says in few words what a description says in many.
_NAME_WEIGHT: Final = 3
# What is read of a query and of a description.
_MOST_QUERY: Final = 1_000
_MOST_DESCRIPTION: Final = 4_000
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_a-zA-Z]+")
_NAME: Final = re.compile(r"[\w.:/-]+")
# A shorter word loses its meaning with its last letter.
_SHORTEST_PLURAL: Final = 4


def rank_tools(tools: Sequence[ToolSpec], query: str, most: int) -> tuple[ToolSpec, ...]:
    """Returns at most so many of the functions that fit the query, the best first: those that it names in full, in its
    order, then the others by their score. Of equal scores the first in the list is better. A function with none of the
    words is left out."""
    query = query[:_MOST_QUERY]
    by_name = {tool.name: tool for tool in tools}
    named = [by_name[name] for name in dict.fromkeys(_NAME.findall(query)) if name in by_name]
    scores = _scores(tools, [*dict.fromkeys(_words(query))])
    ranked = sorted(range(len(tools)), key=lambda at: (-scores[at], at))
    fitting = [tools[at] for at in ranked if scores[at] > 0 and tools[at] not in named]
    return tuple([*named, *fitting][:most])


def _scores(tools: Sequence[ToolSpec], query: Sequence[str]) -> list[float]:
    counts = [_counts(tool) for tool in tools]
    lengths = [sum(count.values()) for count in counts]
    mean = sum(lengths) / max(len(lengths), 1) or 1
    found = [0.0] * len(tools)
    for word in query:
        having = sum(1 for count in counts if word in count)
        if not having:
            continue
        rarity = math.log(1 + (len(tools) - having + 0.5) / (having + 0.5))
        for at, (count, length) in enumerate(zip(counts, lengths, strict=True)):
            if occurrences := count.get(word, 0):
                damped = occurrences + _SATURATION * (1 - _LENGTH + _LENGTH * length / mean)
                found[at] += rarity * occurrences * (_SATURATION + 1) / damped
    return found


def _counts(tool: ToolSpec) -> Mapping[str, int]:
    counts = Counter(_words(tool.description[:_MOST_DESCRIPTION]))
    for word in _words(tool.name):
        counts[word] += _NAME_WEIGHT
    properties = tool.parameters.get("properties")
    if isinstance(properties, Mapping):
        counts.update(word for name in properties for word in _words(str(name)))
    return counts


def _words(text: str) -> Iterator[str]:
    """Yields the words of a text in lower case, those inside `camelCase` and `snake_case` too, without the `s` of a
    plural."""
    for found in _WORD.findall(text):
        word = found.lower()
        yield word[:-1] if len(word) >= _SHORTEST_PLURAL and word.endswith("s") else word
