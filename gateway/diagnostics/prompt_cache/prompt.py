"""Turns an exchange into what is kept of its prompt to compare it with the next one: digests, and no words.

A prompt is a sequence of units, of each of which a hash of 8 bytes is kept: the tools, the blocks of the leading
system text, the messages, in the order in which caches read them (`gateway.providers.prefix_rules`). The marks of
caches (`cache_control`) are no part of a unit, since clients move them with each request.
"""

from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from gateway.core.conversation import Conversation, Image, Json, Turn
from gateway.core.notices import NO_CHANGE, Notice
from gateway.core.tokens import prompt_tokens
from gateway.exchange import Exchange
from gateway.history.classify import system_prefix
from gateway.providers.cache_rules import MARKS
from gateway.providers.prefix_rules import IMAGES, PARTS, SERVER_TOOLS, Part, PrefixRules, prefix_rules

DIGEST_BYTES: Final = 8
# In place of the index of a message: the gateway wrote it, and it is a summary.
ADDED: Final = -(2**31)
SUMMARY: Final = ADDED + 1
_MARK_BYTES: Final = tuple(mark.encode() for mark in MARKS)
# Fields of a client's request that may decide on a field that a cache depends on.
_ASKED: Final = (
    "reasoning_effort",
    "reasoning",
    "thinking",
    "output_config",
    "response_format",
    "text",
    "tool_choice",
    "speed",
    "prompt_cache_key",
)
# So many indexes of a rule are kept, to find the one that is about a message.
_MOST_INDEXES: Final = 16


class Units(msgspec.Struct, frozen=True):
    """The digests of a prompt's units by part, and for each message its index in the client's request."""

    tools: bytes
    system: bytes
    messages: bytes
    indexes: "array[int]"

    def of(self, part: Part) -> list[bytes]:
        """Returns the digests of a part."""
        joined: bytes = getattr(self, part)
        return [joined[at : at + DIGEST_BYTES] for at in range(0, len(joined), DIGEST_BYTES)]

    @property
    def all(self) -> list[bytes]:
        """All digests, in order."""
        return [digest for part in PARTS for digest in self.of(part)]

    def start(self, part: Part) -> int:
        """Returns the position of the first unit of a part among all."""
        return sum(len(getattr(self, before)) for before in PARTS[: PARTS.index(part)]) // DIGEST_BYTES

    def index_at(self, message: int) -> int:
        """Returns the index of a message; ADDED where there is none."""
        return self.indexes[message] if message < len(self.indexes) else ADDED


class RuleTrace(msgspec.Struct, frozen=True):
    """The changes by one rule: its stage, the first indexes, and a digest of all."""

    stage: str
    indexes: tuple[int | None, ...]
    digest: bytes


class Prompt(msgspec.Struct, frozen=True):
    """What is kept of one request: what was `sent` and what the `client` sent as units, the digests of the `fields`
    that the cache depends on and of those that the client `asked` for, and the rules that changed the request.
    `marked`: it says what is to be cached, or its `api` does not want that."""

    backend: str
    model: str
    sent: Units
    client: Units
    fields: Mapping[str, bytes]
    asked: bytes
    rules: Mapping[str, RuleTrace]
    marked: bool
    api: str | None

    @property
    def size(self) -> int:
        """The memory that it takes, in bytes, about."""
        units = sum(len(one) for it in (self.sent, self.client) for one in (it.tools, it.system, it.messages))
        return units * 3 // 2 + 250 * (len(self.fields) + len(self.rules)) + 1000


def prompt_of(exchange: Exchange, api: str | None, backend: str) -> Prompt:
    """Returns the prompt of an exchange. `api` is the client's dialect that the backend speaks itself, None for none,
    and `backend` the name of its entry."""
    sent, received, rules = exchange.conversation, exchange.received, prefix_rules(api)
    digests: dict[int, bytes] = {}
    body = exchange.request.body
    return Prompt(
        backend,
        sent.model,
        _units(sent, digests),
        _units(received, digests),
        {name: _digest(value) for name, value in _fields(sent, body, rules)},
        _digest(_asked(received)),
        _traces(exchange.notices),
        not rules.mark or rules.mark.encode() in body,
        api,
    )


def tokens_of(conversation: Conversation) -> Callable[[Collection[int]], int]:
    """Returns an estimate of the tokens of some units of a conversation, by their positions. Its time depends little on
    their length: long ones are estimated by samples."""

    def estimate(positions: Collection[int]) -> int:
        tools, turns = conversation.tools, _unit_turns(conversation)
        chosen = [turns[at - len(tools)] for at in positions if at >= len(tools)]
        offered = tuple(tools[at] for at in positions if at < len(tools))
        return prompt_tokens(Conversation(tuple(chosen), offered))

    return estimate


def _unit_turns(conversation: Conversation) -> list[Turn]:
    """Returns a turn for each unit that is no tool."""
    leading = system_prefix(conversation.turns)
    system = [Turn("system", (block,)) for turn in conversation.turns[:leading] for block in turn.blocks]
    return [*system, *conversation.turns[leading:]]


def _units(conversation: Conversation, known: dict[int, bytes]) -> Units:
    """Returns the units of a conversation. `known` are the digests of turns by identity: most turns are sent as they
    came."""
    leading = system_prefix(conversation.turns)
    tools = [_digest(tool) for tool in conversation.tools]
    system = [_digest(block) for turn in conversation.turns[:leading] for block in turn.blocks]
    messages: list[bytes] = []
    indexes = array("i")
    for turn in conversation.turns[leading:]:
        digest = known.get(id(turn))
        if digest is None:
            digest = known[id(turn)] = _digest((turn.role, turn.name, turn.blocks, turn.extra))
        messages.append(digest)
        indexes.append(_index(turn))
    return Units(b"".join(tools), b"".join(system), b"".join(messages), indexes)


def _index(turn: Turn) -> int:
    if turn.summary:
        return SUMMARY
    return ADDED if turn.index is None else turn.index


def _digest(value: object) -> bytes:
    """Returns the digest of a value without the marks of caches."""
    data = _ENCODE(value)
    if any([mark in data for mark in _MARK_BYTES]):
        data = _ENCODE(_unmarked(msgspec.json.decode(data)))
    # Keyed anew in each process: what is kept of a text tells nobody whether it is a text that he knows.
    return hash(data).to_bytes(DIGEST_BYTES, "little", signed=True)


_ENCODE: Final = msgspec.json.Encoder(enc_hook=dict).encode


def _unmarked(value: Json) -> Json:
    if isinstance(value, dict):
        return {name: _unmarked(inner) for name, inner in value.items() if name not in MARKS}
    return [_unmarked(inner) for inner in value] if isinstance(value, list) else value


def _fields(sent: Conversation, body: bytes, rules: PrefixRules) -> Iterator[tuple[str, object]]:
    """Yields the fields that the cache depends on, as they were sent."""
    if sent.other_tools:
        yield SERVER_TOOLS, sent.other_tools
    if IMAGES in rules.fields and _shows_images(sent):
        yield IMAGES, True
    paths = [path for path in rules.fields if path not in (IMAGES, SERVER_TOOLS)]
    found = _members(body) if paths else {}
    for path in paths:
        name, _, inner = path.partition(".")
        value = found.get(name)
        if value is not None and inner:
            value = _members(value).get(inner)
        if value is not None:
            yield path, value


def _members(data: bytes | msgspec.Raw) -> dict[str, msgspec.Raw]:
    """Returns the members of a JSON object; of anything else, none."""
    try:
        return _MEMBERS.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}


_MEMBERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


def _asked(received: Conversation) -> Mapping[str, object]:
    """Returns what the client asked for beside its prompt."""
    own = {} if received.source is None else received.source.value
    fields = {name: own.get(name, received.params.get(name)) for name in _ASKED}
    shows = _shows_images(received)
    return {**fields, "choice": received.tool_choice, SERVER_TOOLS: received.other_tools, IMAGES: shows}


def _shows_images(conversation: Conversation) -> bool:
    return any(isinstance(block, Image) for turn in conversation.turns for block in turn.blocks)


def _traces(notices: Sequence[Notice]) -> dict[str, RuleTrace]:
    """Returns the rules by which the gateway changed a request."""
    by_rule: dict[str, list[Notice]] = {}
    for notice in notices:
        if notice.action not in NO_CHANGE:
            by_rule.setdefault(notice.rule, []).append(notice)
    return {rule: _trace(found) for rule, found in by_rule.items()}


def _trace(notices: Sequence[Notice]) -> RuleTrace:
    indexes = tuple(notice.index for notice in notices[:_MOST_INDEXES])
    digest = _digest([(notice.action, notice.index, notice.detail) for notice in notices])
    return RuleTrace(notices[0].stage, indexes, digest)
