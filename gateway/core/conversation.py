"""Defines a request as one conversation of frozen values, independent of the client's dialect."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, TypeVar, final

import msgspec

from gateway.core.field_paths import CANONICAL_PATHS, FieldPaths
from gateway.core.notices import Notice, NoticeRule
from gateway.core.state_rule import ALL_STATE, HeldState, StateRule

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
JsonObject: TypeAlias = Mapping[str, Json]

Role = Literal["system", "developer", "user", "assistant", "tool"]
# The roles of text that instructs the model on behalf of the application.
SYSTEM_ROLES: Final[tuple[Role, ...]] = ("system", "developer")

EMPTY: JsonObject = {}

_V = TypeVar("_V", bound="Derivable")
_R = TypeVar("_R")


class Derivable:
    """A frozen value that several requests may have (`gateway.dialects.prefix`). `derived` holds what was made of it,
    by the names of what that is, and is no field: it is not compared, not written, and not handed on to a changed
    value. Unset as long as the value is that of one request alone, which then has nothing to keep."""

    __slots__ = ("derived",)
    derived: dict[Hashable, Any]


def derived_of(value: Derivable) -> dict[Hashable, Any] | None:
    """Returns what is kept of the value; None: nothing is to be kept."""
    return getattr(value, "derived", None)


def keep_derived(value: Derivable) -> None:
    """Lets the value keep what will be derived of it."""
    if getattr(value, "derived", None) is None:
        _set_derived(value, {})


# A frozen struct permits no other way.
_set_derived: Final = Derivable.__dict__["derived"].__set__
# One of so many first turns is the client's own, as a rule, whatever was put before them.
_FIRST: Final = 4


def have_derived(values: Sequence[Derivable]) -> bool:
    """Returns whether anything may be kept of these turns or tools: those that an earlier request had are the first."""
    return any([getattr(value, "derived", None) is not None for value in values[:_FIRST]])


def kept(value: _V, key: Hashable, make: Callable[[_V], _R]) -> _R:
    """Returns what is made of a turn, a tool or a section, and keeps it with one that several requests may have.
    Whatever else it is made of is in the `key`. It does not hold the value itself, which would then wait for the
    garbage collector."""
    known: dict[Hashable, Any] | None = getattr(value, "derived", None)
    if known is None:
        return make(value)
    if key not in known:
        known[key] = make(value)
    found: _R = known[key]
    return found


# The id of a request that is not sent to a backend.
NO_REQUEST: Final = "00000000-0000-0000-0000-000000000000"


# Whole parts of the source of a turn that no block of it holds.
UNREAD: Final = frozenset({"*"})


# Neither a client's JSON nor what is read of it has cycles, so that the garbage collector need not look at the values
# of a history, of which a request has thousands.
@final
class Source(msgspec.Struct, frozen=True, gc=False):
    """A message exactly as the client wrote it: `value`, in the words of the client's `dialect`.

    Only a reader of that dialect may send it or look into it. The other fields give every reader what the turn does not
    say: `listed`, that the content is an array of parts, however few; `unread`, the names of fields of an assistant's
    message that no block and no `extra` holds (null fields, the `index` of calls), or `UNREAD`: more than that, which a
    change of the turn would lose.
    """

    dialect: str
    value: JsonObject
    listed: bool = False
    unread: frozenset[str] = frozenset()

    def in_dialect(self, dialect: str) -> JsonObject | None:
        """Returns the message if it was written in this dialect, else None."""
        return self.value if self.dialect == dialect else None

    def with_field(self, path: str, value: Json) -> "Source":
        """Returns the source with this value in the field at a path like `output_config.effort`."""
        return msgspec.structs.replace(self, value=_put(self.value, path.split("."), value))


def _put(fields: JsonObject, path: Sequence[str], value: Json) -> dict[str, Json]:
    name, *rest = path
    inner = fields.get(name)
    return {**fields, name: _put(inner if isinstance(inner, dict) else {}, rest, value) if rest else value}


@final
class Text(msgspec.Struct, frozen=True, gc=False):
    """A piece of plain text. `extra` keeps the part's unknown fields (`cache_control`, ...)."""

    text: str
    extra: JsonObject = EMPTY


@final
class Reasoning(msgspec.Struct, frozen=True, gc=False):
    """The model's reasoning. `field` is the message field that carried it (`reasoning_content`, `reasoning`).

    `extra` is the state that must return to the provider that wrote it (a signature, encrypted content), below the
    provider's name: `{"extra_content": {"google": ...}}`.
    """

    text: str
    field: str = "reasoning_content"
    extra: JsonObject = EMPTY


@final
class Image(msgspec.Struct, frozen=True, gc=False):
    """An image by URL (`https:` or `data:`). `extra` keeps the part's other fields, `detail` among them.

    `item` as in ToolCall.
    """

    url: str
    extra: JsonObject = EMPTY
    item: int | None = None


@final
class File(msgspec.Struct, frozen=True, gc=False):
    """A file, audio or any other part that is neither text nor image, kept as the client wrote it.

    `url` (`https:` or `data:`) is that of its content and `name` that of the file, for other APIs; without a `url` only
    the client's own API can read it. An empty `part`: the content is written anew, in the words of the backend's API.
    `item` as in ToolCall.
    """

    kind: str
    part: JsonObject
    item: int | None = None
    url: str = ""
    name: str = ""


@final
class ToolCall(msgspec.Struct, frozen=True, gc=False):
    """A tool call by the model. `arguments` is the JSON text from the wire, valid or not; it is never re-typed.

    `extra` keeps unknown fields of the call (`extra_content.google.thought_signature` must return to its provider).
    `id_derived`: the client's form of a call has no id, and the dialect derived this one. `item` is the position by
    which the client knows the block, for `FieldPaths`; None: that in its turn, of a call among the calls.
    """

    id: str
    name: str
    arguments: str
    extra: JsonObject = EMPTY
    id_derived: bool = False
    item: int | None = None


@final
class ToolResult(msgspec.Struct, frozen=True, gc=False):
    """The result of one call.

    `synthesized` marks a result that the gateway, not the client, wrote. `id_derived`: the client's form of a result
    has no id, and the dialect derived this one. `item` as in ToolCall.
    """

    call_id: str
    content: tuple["Text | Image | File", ...]
    is_error: bool = False
    synthesized: bool = False
    id_derived: bool = False
    item: int | None = None

    @property
    def text(self) -> str:
        """Returns the text parts, joined by newlines."""
        if len(self.content) == 1 and type(only := self.content[0]) is Text:
            return only.text
        return "\n".join([block.text for block in self.content if type(block) is Text])


Block: TypeAlias = Text | Reasoning | Image | File | ToolCall | ToolResult


def item_of(block: Image | File | ToolCall | ToolResult, position: int) -> int:
    """Returns the position by which the client knows the block that stands at this one in its turn."""
    return position if block.item is None else block.item


class Turn(Derivable, msgspec.Struct, frozen=True, gc=False):
    """One message.

    `index` is its position in the client's request, of a turn from several items that of the first (None: the gateway
    added it; below 0: it was stored, and stands so far before the first one of the request). `source` is the message as
    the client wrote it, and None as soon as a pass has changed the turn: a turn with a source may be sent unchanged to
    a backend of the source's dialect. (The labels of opaque state are taken off in the source as well, and state of
    another backend is left out: `gateway.history.own_state`.) `extra` keeps unknown message fields. `synthesized` marks
    a user turn that no user wrote: a note that the gateway made, of a tool result without its call for instance.
    `summary` marks the one that stands for turns which are not sent, `compaction` one that holds what a provider made
    of earlier turns.
    """

    role: Role
    blocks: tuple[Block, ...]
    name: str | None = None
    index: int | None = None
    extra: JsonObject = EMPTY
    source: Source | None = None
    synthesized: bool = False
    summary: bool = False
    compaction: bool = False

    @property
    def text(self) -> str:
        """Returns the text blocks, joined by newlines (the join that chat templates use for text parts)."""
        return "\n".join([block.text for block in self.blocks if type(block) is Text])

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple([block for block in self.blocks if type(block) is ToolCall])

    @property
    def results(self) -> tuple[ToolResult, ...]:
        return tuple([block for block in self.blocks if type(block) is ToolResult])

    def changed(self, *blocks: Block) -> "Turn":
        """Returns the turn with other blocks and no source, because it then differs from the client's message."""
        return msgspec.structs.replace(self, blocks=blocks, source=None)


def is_system(turn: Turn) -> bool:
    """Returns whether the turn instructs the model on behalf of the application."""
    return turn.role in SYSTEM_ROLES


def has_parts(turn: Turn) -> bool:
    """Returns whether there is an image or a file among the blocks of the turn or in its results."""
    for block in turn.blocks:
        if type(block) is ToolResult:
            for part in block.content:
                if type(part) is not Text:
                    return True
        elif type(block) is Image or type(block) is File:
            return True
    return False


def index_of(turns: Sequence[Turn], position: int) -> int:
    """Returns the turn's index in the client's request, or its position if the client did not send it."""
    index = turns[position].index
    return position if index is None else index


class ToolSpec(Derivable, msgspec.Struct, frozen=True):
    """A function that the client offers. `parameters` is its JSON Schema.

    `extra` keeps unknown fields of the entry (`cache_control`, ...), those of the function below `function`.
    """

    name: str
    description: str = ""
    parameters: JsonObject = EMPTY
    strict: bool | None = None
    extra: JsonObject = EMPTY


class OtherTool(msgspec.Struct, frozen=True):
    """A tool that is no function, such as `web_search`; only its own provider has it. `kind` is its type."""

    kind: str


class DeferredTools(msgspec.Struct, frozen=True):
    """The functions of a request that the model gets only when a search names them: their `names`.

    `loaded` are those that the history names already, each with the index of the turn that does, in its order.
    `searches` are the kinds of the OtherTools that search for them at the client's own provider; empty: the client
    searches itself.
    """

    names: frozenset[str]
    loaded: tuple[tuple[int, str], ...] = ()
    searches: frozenset[str] = frozenset()


class NamedTool(msgspec.Struct, frozen=True):
    """A `tool_choice` that forces one function."""

    name: str


# What an answer may hold beside text. Reasoning has its state in it; `state` is the state without the reasoning.
ReadableContent: TypeAlias = Literal["reasoning", "state", "calls"]
ALL_CONTENT: frozenset[ReadableContent] = frozenset(("reasoning", "calls"))

ChoiceWord: TypeAlias = Literal["auto", "none", "required"]
ToolChoice: TypeAlias = ChoiceWord | NamedTool


class Sampling(msgspec.Struct, frozen=True):
    """The sampling parameters. None: the client did not set the parameter."""

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None


class EffortChange(msgspec.Struct, frozen=True):
    """Asks for another effort of reasoning from the message at `index` on; `effort` is a value of `reasoning_effort`.

    `waits`: where the message does not stand directly behind words of the user, the change begins with their next ones.
    """

    index: int
    effort: str
    waits: bool = False


class FormatChange(msgspec.Struct, frozen=True):
    """Asks for another form of the answers from the message at `index` on.

    `response_format` is a value of that field, None for plain text; `written` is the value in the client's own words.
    """

    index: int
    response_format: Json
    written: Json


class ToolAddition(msgspec.Struct, frozen=True):
    """Offers the function of this name from the message at `index` on. `written` is its entry as the client's list of
    tools would hold it; None: the function is declared before."""

    index: int
    name: str
    written: JsonObject | None = None


class ToolRemoval(msgspec.Struct, frozen=True):
    """Offers the function of this name no longer from the message at `index` on."""

    index: int
    name: str


class TurnScope(msgspec.Struct, frozen=True):
    """Shows the text of the message at `index` to the model only until a later message of the user or a result."""

    index: int


# What a message changes for the answers after it; `index` is that of the message, as in Turn.
Directive: TypeAlias = EffortChange | FormatChange | ToolAddition | ToolRemoval | TurnScope


class Violation(msgspec.Struct, frozen=True):
    """A broken rule of the message protocol: the rule's code, the place, and one sentence for a person.

    `index` is that of the turn, -1 for the request as a whole. `param` is the path of the faulty value as the client
    knows it (`FieldPaths`), like `messages[3].tool_call_id`. `advice` says how to correct it.
    """

    rule: NoticeRule
    index: int
    detail: str
    param: str
    tool_call_id: str | None = None
    advice: str = ""


class Conversation(msgspec.Struct, frozen=True):
    """One request: the input of an adapter's `encode`.

    `faults` are the violations of shape that the dialect found (and repaired in `turns`) while decoding.
    `paths` are those by which the client knows the places of its request.

    `notices` say what the dialect left out or changed while decoding. `source` are the fields beside the turns as the
    client wrote them, for a backend of the client's dialect; None: those are the `params`.

    `reads` says what the client reads of the answer beside its text; `object_arguments`, that it reads the arguments of
    each call, or of the calls of these functions, as an object, not as JSON text. `own_fields` are the paths of fields
    that must have an effect, which only a backend of the client's dialect gives them. `keeps` is the state of the
    answer that the gateway keeps itself: an adapter asks for it and reports it, whatever the client's dialect can hold,
    which is what `holds` says.

    `params` are the request's fields beside its turns, under their chat completions names (`response_format`,
    `reasoning_effort`, `max_tokens`, ...), also those that have a field of their own here. `dialect` is the client's.
    A dialect whose own names are the canonical ones may leave its unknown fields in `params`: they mean something only
    to a backend of the same dialect, which receives `params` unchanged. Any other dialect writes canonical names only.

    `request_id` is an id that no other request has, for a backend that declares `Capabilities.request_id`.

    `finish_optional`: the provider may end the stream of its answer without a finish reason.

    `marked`: some part has a mark for the prompt cache, so that texts are sent as parts: a message has then the same
    form in a request where it has a mark and in a later one where it has none.

    `ends_with_result`: the last message of the client is a tool result, wherever repair put it, or if it dropped it.

    `tools` are all functions that any part of the request declares. `directives` are those of all its messages, in
    their order; what they leave in force says `gateway.history.directives`.

    `deferred` are the functions that wait for a search; None: the client offers all of them at once.
    """

    turns: tuple[Turn, ...]
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice = "auto"
    parallel_tool_calls: bool = True
    model: str = ""
    sampling: Sampling = Sampling()
    stream: bool = False
    include_usage: bool = False
    faults: tuple[Violation, ...] = ()
    params: JsonObject = EMPTY
    dialect: str = ""
    other_tools: tuple[OtherTool, ...] = ()
    paths: FieldPaths = CANONICAL_PATHS
    notices: tuple[Notice, ...] = ()
    source: Source | None = None
    reads: frozenset[ReadableContent] = ALL_CONTENT
    object_arguments: bool | frozenset[str] = False
    own_fields: tuple[str, ...] = ()
    keeps: StateRule | None = None
    holds: HeldState = ALL_STATE
    ends_with_result: bool = False
    marked: bool = False
    finish_optional: bool = False
    request_id: str = NO_REQUEST
    directives: tuple[Directive, ...] = ()
    deferred: DeferredTools | None = None
