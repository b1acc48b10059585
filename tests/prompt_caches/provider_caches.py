"""Models of the prompt caches of providers, which say how many tokens of a request they would have read.

A prompt is a list of blocks in the order in which the provider reads them: tools, system prompt, messages. Tokens are
a quarter of the characters of their JSON.
"""

import json
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any, Final, Protocol

import msgspec

MARKS: Final = ("cache_control", "prompt_cache_breakpoint")
# Claude Code begins its system prompt with a line of this name that differs in each request, and has its cache all the
# same: Anthropic does not count it.
BILLING: Final = "x-anthropic-billing-header:"
# Blocks that refuse a mark, by type.
UNMARKED: Final = frozenset({"thinking", "redacted_thinking"})


class Block(msgspec.Struct, frozen=True):
    """A block without its mark, as JSON."""

    text: str
    marked: bool

    @property
    def tokens(self) -> int:
        return len(self.text) // 4


def blocks(body: Any) -> list[Block]:
    """The blocks of a request of any of the four APIs."""
    return [block for value in _values(body) for block in _blocks(value) if BILLING not in block.text]


def _values(body: Any) -> Iterator[Any]:
    yield from body.get("tools") or []
    system = body.get("system") or body.get("systemInstruction") or body.get("instructions") or []
    yield from system if isinstance(system, list) else [system]
    messages = body.get("messages") or body.get("input") or body.get("contents")
    if any("input_schema" in tool for tool in body.get("tools") or []):
        # Anthropic, API reference, `messages`: a string is shorthand for a list of one block of text.
        shorthand = [one for one in messages if isinstance(one["content"], str)]
        written = {id(one): {**one, "content": [{"type": "text", "text": one["content"]}]} for one in shorthand}
        messages = [written.get(id(one), one) for one in messages]
    yield from messages


def _blocks(value: Any) -> Iterator[Block]:
    """A message has a block for each of its parts, each with what stands beside them: the role and the id of a call. A
    text is a message with one part of text."""
    if isinstance(value, str):
        yield Block(json.dumps({"text": value}), marked=False)
        return
    field = next((name for name in ("content", "output", "parts") if isinstance(value.get(name), list)), None)
    if field is None or "tool_use_id" in value:
        yield _block(value, {})
        return
    rest = {name: inner for name, inner in value.items() if name != field}
    for part in value[field]:
        yield _block(part, rest)


def _block(part: Any, rest: Any) -> Block:
    marked = any(mark in part for mark in MARKS)
    if marked:
        assert part.get("type") not in UNMARKED, "thinking refuses a mark"
        assert part.get("text", "x").strip(), "blank text refuses a mark"
    bare = {name: inner for name, inner in part.items() if name not in MARKS}
    return Block(json.dumps([rest, bare], sort_keys=True), marked)


def _digests(prompt: Sequence[Block]) -> list[str]:
    """The digest of each prefix, by the position of its last block."""
    digest = sha256()
    found = []
    for block in prompt:
        digest.update(block.text.encode())
        found.append(digest.hexdigest())
    return found


def tokens(prompt: Sequence[Block]) -> int:
    return sum(block.tokens for block in prompt)


class Cache(Protocol):
    """The cache of a provider."""

    def ask(self, body: Any) -> int:
        """Returns the tokens that this request reads from the cache."""
        ...


class AnthropicCache:
    """Writes the prefix that each mark ends, unless it is below the least size, and reads the longest one that it finds
    at a mark or in one of the 19 positions before it. More than four marks are refused.

    Source: Anthropic, "Prompt caching": "the system checks at most 20 positions per breakpoint, counting the
    breakpoint itself as the first"; at least 1024 tokens, of some models more.
    """

    def __init__(self, least: int = 1024, lookback: int = 20) -> None:
        self._least, self._lookback = least, lookback
        self._written: set[str] = set()

    def ask(self, body: Any) -> int:
        """Returns the tokens that this request reads from the cache."""
        prompt = blocks(body)
        digests = _digests(prompt)
        marks = [n for n, block in enumerate(prompt) if block.marked]
        assert len(marks) + ("cache_control" in body) <= 4, "a fifth mark is refused"
        if "cache_control" in body:
            marks.append(len(prompt) - 1)
        near = [n for mark in marks for n in range(mark, max(-1, mark - self._lookback), -1)]
        read = max([n + 1 for n in near if digests[n] in self._written], default=0)
        self._written |= {digests[mark] for mark in marks if tokens(prompt[: mark + 1]) >= self._least}
        return tokens(prompt[:read])


class OpenAICache:
    """Writes the end of the prompt, unless the options turn that off, and the latest explicit breakpoints, four in all.
    A request reads the longest prefix that was written and ends at one of its blocks.

    Source: the package openai, `prompt_cache_options`: "With `implicit`, OpenAI creates one implicit breakpoint and
    writes up to the latest three explicit breakpoints. For cache matching, OpenAI considers up to the latest 80
    breakpoints in the conversation, without a content-block lookback limit."
    """

    def __init__(self, least: int = 1024) -> None:
        self._least = least
        self._written: list[str] = []

    def ask(self, body: Any) -> int:
        """Returns the tokens that this request reads from the cache."""
        prompt = blocks(body)
        digests = _digests(prompt)
        implicit = (body.get("prompt_cache_options") or {}).get("mode") != "explicit"
        ends = [n for n, block in enumerate(prompt) if block.marked][-3 if implicit else -4 :]
        considered = set(self._written[-80:])
        read = max([n + 1 for n, digest in enumerate(digests) if digest in considered], default=0)
        ends += [len(prompt) - 1] if implicit else []
        self._written += [
            digests[end]
            for end in ends
            if digests[end] not in self._written and tokens(prompt[: end + 1]) >= self._least
        ]
        return tokens(prompt[:read])


class ImplicitCache:
    """Reads the longest common beginning of this request and an earlier one.

    Source: DeepSeek, "Context Caching"; Google, "Context caching", implicit caching.
    """

    def __init__(self, least: int = 1024) -> None:
        self._least = least
        self._written: set[str] = set()

    def ask(self, body: Any) -> int:
        """Returns the tokens that this request reads from the cache."""
        prompt = blocks(body)
        digests = _digests(prompt)
        read = 0
        while read < len(digests) and digests[read] in self._written:
            read += 1
        self._written |= {*digests}
        return found if (found := tokens(prompt[:read])) >= self._least else 0
