"""Writes the fields by which a client says what of its prompt to cache in the words of the backend, or reports them.

A mark ends a prefix of the prompt: `cache_control` in the Messages API, and in chat completions of some providers;
`prompt_cache_breakpoint` in both APIs of OpenAI. `gateway.providers.cache_rules` says which of them a provider has. A
mark that the backend's API has itself stays as it is. docs/prompt-caches.md has the table of all directions.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeVar

import msgspec
from msgspec import UNSET

from gateway.adapter import Capabilities
from gateway.core.conversation import (
    Block,
    Conversation,
    Image,
    Json,
    JsonObject,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
)
from gateway.core.notices import Notice
from gateway.core.policy import Policy
from gateway.providers.cache_rules import LIFETIMES, MARKS, REQUEST_FIELDS, CacheMark, CacheRules

MARK_NAMES: Final = frozenset(MARKS)
FIELD_NAMES: Final = frozenset(REQUEST_FIELDS)
KEY: Final = "prompt_cache_key"
_OPTIONS: Final = "prompt_cache_options"
_OTHER: Final[Mapping[CacheMark, CacheMark]] = dict(zip(MARKS, reversed(MARKS), strict=True))
_KEY_LENGTH: Final = 32
_Marked = TypeVar("_Marked", bound=Text | Image | ToolCall)


def has_cache(capabilities: Capabilities) -> bool:
    """Returns whether requests to some models of a backend may have marks."""
    return capabilities.cache is not None or capabilities.request_rules


def cache_rules(capabilities: Capabilities, policy: Policy, model: str) -> CacheRules | None:
    """Returns the marks that a model takes; None: it takes none. `model` is its name at the backend."""
    rules = capabilities.cache
    if rules is None and capabilities.request_rules and policy.profile.request_rules is not None:
        rules = policy.profile.request_rules.cache
    return rules if rules is not None and rules.govern(policy.base_model or model) else None


def translate_marks(conversation: Conversation, rules: CacheRules | None) -> tuple[Conversation, list[Notice]]:
    """Returns the conversation with the marks and fields that the backend accepts (`rules` None: none), and with no
    other, and the notices. Where it accepts none, `dropped_fields` tells of the marks.

    All marks that are translated get one lifetime, the longest that is asked for: Anthropic refuses a mark that ends
    sooner before one that ends later. Of more marks than the backend accepts, the latest are sent, as OpenAI does it.
    """
    translation = _Translation(conversation, rules)
    tools = tuple([translation.tool(tool) for tool in conversation.tools])
    turns = tuple([translation.turn(turn) for turn in conversation.turns])
    params = _params(conversation, rules, translation.lifetime, notices := translation.notices())
    kept = msgspec.structs.replace(conversation, tools=tools, turns=turns, params=params, marked=translation.kept > 0)
    return kept, notices


def with_cache_key(conversation: Conversation) -> tuple[Conversation, list[Notice]]:
    """Returns the conversation with a `prompt_cache_key` made of the client's word for its user or session, which is
    `metadata.user_id` in the Messages API, unless the client has set a key."""
    user = conversation.params.get("user")
    if not isinstance(user, str) or not user or conversation.params.get(KEY) is not None:
        return conversation, []
    key = hashlib.sha256(user.encode("utf-8", "surrogatepass")).hexdigest()[:_KEY_LENGTH]
    params = {**conversation.params, KEY: key}
    detail = f"{KEY} is made of {conversation.paths.param('user')}"
    added = Notice("encode", "added", "CACHE_KEY_ADDED", detail, level="debug")
    return msgspec.structs.replace(conversation, params=params), [added]


class _Translation:
    """The marks of one request: each is sent, or counted with the reason why it is not."""

    def __init__(self, conversation: Conversation, rules: CacheRules | None) -> None:
        self._rules = rules
        marks = [
            (name, extra[name])
            for place, extra in (_places(conversation) if rules is not None else ())
            for name in MARKS
            if name in extra and _takes(rules, place)
        ]
        other = None if rules is None else _OTHER[rules.mark]
        foreign = [value for name, value in marks if name == other and value is not None]
        self._asked = _longest([*foreign, conversation.params.get(_OPTIONS)] if other == MARKS[1] else foreign)
        automatic = rules is not None and rules.request in conversation.params and rules.request in MARK_NAMES
        # Of the other API's marks, the first ones beyond what the backend accepts.
        self._beyond = max(0, len(marks) + automatic - rules.most) if rules is not None and foreign else 0
        self._sent = self._surplus = 0
        # Marks of both names that are sent.
        self.kept = 0
        # Marks of the backend's own name with a lifetime that it has not, by what is asked for.
        self._other_lifetimes: Counter[str] = Counter()
        self._unplaced: dict[CacheMark, Counter[str]] = {}

    @property
    def lifetime(self) -> str | None:
        """The lifetime of all translated marks that the backend accepts; None: that of a mark without one."""
        return None if self._rules is None or self._asked is None else self._rules.nearest(self._asked)

    def tool(self, tool: ToolSpec) -> ToolSpec:
        """Returns a tool with the mark that the backend accepts, which stands beside its function."""
        marked = [extra for extra in _of_tool(tool) if not MARK_NAMES.isdisjoint(extra)]
        if not marked:
            return tool
        mark = self._mark(marked[0], "tools")
        inner = tool.extra.get("function")
        function = {"function": _bare(inner)} if isinstance(inner, Mapping) else {}
        return msgspec.structs.replace(tool, extra={**_bare(tool.extra), **function, **mark})

    def turn(self, turn: Turn) -> Turn:
        """Returns a turn with the marks that the backend accepts in it."""
        blocks = tuple([self._block(block, turn.role) for block in turn.blocks])
        if any([new is not old for new, old in zip(blocks, turn.blocks, strict=True)]):
            turn = turn.changed(*blocks)
        if MARK_NAMES.isdisjoint(turn.extra):
            return turn
        mark = self._mark(turn.extra, turn.role)
        bare = msgspec.structs.replace(turn, extra=_bare(turn.extra))
        if self._rules is not None and self._rules.places == "parts":
            return _with_last_marked(bare, mark) if mark else bare
        return msgspec.structs.replace(bare, extra={**bare.extra, **mark})

    def notices(self) -> list[Notice]:
        """Returns what was changed of marks; nothing where the backend has no field for them at all."""
        told: list[Notice] = []
        if self._rules is None:
            return told
        if self._sent:
            own, other = self._rules.mark, _OTHER[self._rules.mark]
            detail = f"{other} ({self._sent}) is sent as {own}{_for(self.lifetime, self._asked)}"
            told.append(_changed(detail, other, self.lifetime, self._asked))
        for asked, count in sorted(self._other_lifetimes.items()):
            told.append(_other_lifetime(f"{self._rules.mark} ({count})", self._rules, asked))
        if self._surplus:
            other = _OTHER[self._rules.mark]
            detail = f"{other} ({self._surplus}) is not sent: the backend takes {self._rules.most}"
            told.append(_dropped(other, detail))
        for name, places in sorted(self._unplaced.items()):
            where = ", ".join(places)
            detail = f"{name} ({places.total()}) is not sent: the backend has no mark for its place ({where})"
            told.append(_dropped(name, detail))
        return told

    def _block(self, block: Block, role: str) -> Block:
        match block:
            case Text() | Image():
                return self._marked(block, role)
            case ToolCall():
                return self._marked(block, "calls")
            case ToolResult():
                content = tuple(
                    [self._marked(part, role) if isinstance(part, Text | Image) else part for part in block.content]
                )
                same = all([new is old for new, old in zip(content, block.content, strict=True)])
                return block if same else msgspec.structs.replace(block, content=content)
            case _:
                return block

    def _marked(self, block: _Marked, place: str) -> _Marked:
        if not block.extra or MARK_NAMES.isdisjoint(block.extra):
            return block
        return msgspec.structs.replace(block, extra={**_bare(block.extra), **self._mark(block.extra, place)})

    def _mark(self, extra: JsonObject, place: str) -> dict[str, Json]:
        """Returns the backend's mark for the client's at this place; empty: it has none."""
        rules = self._rules
        if rules is None or not _takes(rules, place):
            for name in MARKS:
                if extra.get(name) is not None:
                    self._unplaced.setdefault(name, Counter())[place] += 1
            return {}
        if rules.mark in extra:
            self.kept += 1
            if (asked := _refused_lifetime(extra[rules.mark], rules)) is not None:
                self._other_lifetimes[asked] += 1
            return {rules.mark: _accepted(extra[rules.mark], rules)}
        if extra[_OTHER[rules.mark]] is None:
            return {}
        if self._beyond:
            self._beyond -= 1
            self._surplus += 1
            return {}
        self._sent += 1
        self.kept += 1
        return rules.new_mark(self.lifetime)


def _takes(rules: CacheRules | None, place: str) -> bool:
    return rules is not None and (rules.places == "blocks" or place in rules.roles)


def _params(
    conversation: Conversation, rules: CacheRules | None, lifetime: str | None, notices: list[Notice]
) -> JsonObject:
    """Returns the parameters with the field that the backend accepts, and adds the notices."""
    params = conversation.params
    if FIELD_NAMES.isdisjoint(params):
        return params
    kept = {name: value for name, value in params.items() if name not in FIELD_NAMES}
    automatic, options = params.get(MARKS[0]), params.get(_OPTIONS)
    own = None if rules is None else rules.request
    for name, value in ((MARKS[0], automatic), (_OPTIONS, options)):
        if value is not None and own is None:
            detail = f"the backend has no field for {conversation.paths.param(name)!r}"
            notices.append(_dropped(name, detail))
    if rules is None or own is None:
        return kept
    if own == _OPTIONS:
        written = _options(options, rules, notices) if options is not None else _implicit(automatic, rules, notices)
    elif automatic is not None:
        written = _accepted(automatic, rules)
        if (asked := _refused_lifetime(automatic, rules)) is not None:
            notices.append(_other_lifetime(conversation.paths.param(MARKS[0]), rules, asked))
    else:
        written = _automatic(options, rules, notices)
    return kept if written is None else {**kept, own: written}


def _options(options: Json, rules: CacheRules, notices: list[Notice]) -> Json:
    """Returns OpenAI's options as the API of the backend has them."""
    if not isinstance(options, Mapping):
        return options
    kept = {name: value for name, value in options.items() if name == "ttl" or name in rules.options}
    asked = _longest([options])
    if asked is not None and (nearest := rules.nearest(asked)) != asked:
        kept["ttl"] = nearest
        notices.append(_changed(f"{_OPTIONS} is sent{_for(nearest, asked)}", _OPTIONS, nearest, asked))
    notices += _left_out(options, frozenset(kept))
    return kept


def _implicit(automatic: Json, rules: CacheRules, notices: list[Notice]) -> Json:
    """Returns OpenAI's options for the mark of a whole request, which is the breakpoint that it makes by itself."""
    asked = _longest([automatic])
    nearest = None if asked is None else rules.nearest(asked)
    if nearest is None or nearest == rules.lifetimes[0]:
        detail = f"{MARKS[0]} is not sent: the backend marks the end of a prompt by itself{_for(nearest, asked)}"
        notices.append(_dropped(MARKS[0] if _is_shorter(nearest, asked) else None, detail))
        return None
    notices.append(_changed(f"{MARKS[0]} is sent as {_OPTIONS}{_for(nearest, asked)}", MARKS[0], nearest, asked))
    return {"ttl": nearest}


def _automatic(options: Json, rules: CacheRules, notices: list[Notice]) -> Json:
    """Returns the mark of a whole request for OpenAI's options: its implicit breakpoint, unless they turn it off."""
    if not isinstance(options, Mapping):
        return None
    mark: Json = None
    asked = _longest([options])
    nearest = None if asked is None else rules.nearest(asked)
    if options.get("mode") != "explicit":
        mark = rules.new_mark(nearest)[rules.mark]
        notices.append(_changed(f"{_OPTIONS} is sent as {rules.mark}{_for(nearest, asked)}", _OPTIONS, nearest, asked))
    notices += _left_out(options, frozenset({"mode", "ttl"}))
    return mark


def _left_out(options: JsonObject, kept: frozenset[str]) -> Iterator[Notice]:
    names = ", ".join([name[:40] for name in sorted(options) if name not in kept and options[name] is not None])
    if names:
        yield _dropped(_OPTIONS, f"{_OPTIONS} ({names}) is not sent: the backend has no field for it")


def _accepted(mark: Json, rules: CacheRules) -> Json:
    """Returns a mark of the backend's own name with a lifetime that the backend has."""
    asked = _refused_lifetime(mark, rules)
    return {**mark, "ttl": rules.nearest(asked)} if asked is not None and isinstance(mark, Mapping) else mark


def _refused_lifetime(mark: Json, rules: CacheRules) -> str | None:
    """Returns the lifetime that a mark asks for and the backend has not; None: it has it, or the mark asks for none."""
    asked = _longest([mark])
    return None if asked in rules.lifetimes else asked


def _longest(marks: Sequence[Json]) -> str | None:
    """Returns the longest lifetime that marks or options ask for; None: they ask for none that is known."""
    asked = [one["ttl"] for one in marks if isinstance(one, Mapping) and isinstance(one.get("ttl"), str)]
    return max([one for one in asked if one in LIFETIMES], key=LIFETIMES.__getitem__, default=None)


def _for(lifetime: str | None, asked: str | None) -> str:
    return "" if lifetime is None or lifetime == asked else f" for {lifetime}, the nearest to {asked}"


def _is_shorter(lifetime: str | None, asked: str | None) -> bool:
    return lifetime is not None and asked is not None and LIFETIMES[lifetime] < LIFETIMES[asked]


def _with_last_marked(turn: Turn, mark: JsonObject) -> Turn:
    """Returns the turn with a mark on its last part that may have one, also of a result."""
    for position in range(len(turn.blocks) - 1, -1, -1):
        block = turn.blocks[position]
        marked: Block | None = None
        if isinstance(block, Text | Image):
            marked = msgspec.structs.replace(block, extra={**block.extra, **mark})
        elif isinstance(block, ToolResult) and block.content and isinstance(part := block.content[-1], Text | Image):
            last = msgspec.structs.replace(part, extra={**part.extra, **mark})
            marked = msgspec.structs.replace(block, content=(*block.content[:-1], last))
        if marked is not None:
            return turn.changed(*turn.blocks[:position], marked, *turn.blocks[position + 1 :])
    return turn


def _places(conversation: Conversation) -> Iterator[tuple[str, JsonObject]]:
    """Yields the further fields of all that may have a mark, in the order of the prompt, behind the name of their
    place: `tools`, `calls` or a role."""
    for tool in conversation.tools:
        yield from [("tools", extra) for extra in _of_tool(tool)]
    for turn in conversation.turns:
        for block in turn.blocks:
            if isinstance(block, Text | Image):
                yield turn.role, block.extra
            elif isinstance(block, ToolCall):
                yield "calls", block.extra
            elif isinstance(block, ToolResult):
                yield from [(turn.role, part.extra) for part in block.content if isinstance(part, Text | Image)]
        yield turn.role, turn.extra


def _of_tool(tool: ToolSpec) -> Iterator[JsonObject]:
    """Yields the fields of a tool and of its function, where some clients of chat completions write a mark."""
    yield tool.extra
    if isinstance(inner := tool.extra.get("function"), Mapping):
        yield inner


def _bare(extra: JsonObject) -> JsonObject:
    return {name: value for name, value in extra.items() if name not in MARK_NAMES}


def _other_lifetime(what: str, rules: CacheRules, asked: str) -> Notice:
    nearest = rules.nearest(asked)
    return _changed(f"{what} is sent{_for(nearest, asked)}", rules.mark, nearest, asked)


def _changed(detail: str, name: str, lifetime: str | None, asked: str | None) -> Notice:
    """Returns the notice of marks or a field that are sent in other words. Something of it is lost where it is kept for
    a shorter time than is asked for."""
    fields = (name,) if _is_shorter(lifetime, asked) else UNSET
    return Notice("encode", "changed", "CACHE_MARKS_CHANGED", detail, level="debug", fields=fields)


def _dropped(name: str | None, detail: str) -> Notice:
    """Returns the notice of a mark or a field that is not sent; `name` None: the backend does by itself what it asks
    for."""
    fields = UNSET if name is None else (name,)
    return Notice("encode", "dropped", "FIELD_NOT_SENT", detail, level="debug", fields=fields)
