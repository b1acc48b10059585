"""Encodes turns as the system prompt and the messages of a request; a message of the same API passes unchanged.

What the API refuses is left out or changed with a Notice. Sources: Anthropic, API reference, `POST /v1/messages`;
extended thinking; the errors that the API returns.
"""

from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Final, assert_never

import msgspec

from adapters.anthropic_messages import DIALECT, PROVIDER
from adapters.anthropic_messages.messages import MessageMerger, content_blocks, encode_content, encode_message
from gateway.core.call_arguments import read_object
from gateway.core.conversation import (
    EMPTY,
    Block,
    Conversation,
    File,
    Image,
    Json,
    JsonObject,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    Turn,
    have_derived,
    is_system,
    item_of,
    kept,
)
from gateway.core.data_url import is_data_url, read_image
from gateway.core.notices import Action, Level, Notice, NoticeRule
from gateway.core.provider_state import each_state, is_unsigned, provider_state, with_provider_state
from gateway.core.thoughts import Thought, with_thoughts
from gateway.providers.messages_rules import MessagesRules

# The fields of a block that the API has as well.
_KEPT: Final = frozenset({"cache_control"})
# The types of blocks that a provider may refuse for what they hold; a foreign type may be no text.
_REFUSABLE: Final = ("text", "thinking", "redacted_thinking")
_UNSIGNED: Final = "reasoning without the provider's signature is not sent"


class EncodedTurns(msgspec.Struct, frozen=True):
    """The system prompt, as its client wrote it or as blocks (empty: there is none), and the messages.

    `thinks`: every call since the last question stands behind thinking that the API knows again.
    """

    system: Json
    messages: list[JsonObject]
    thinks: bool


def encode_turns(conversation: Conversation, rules: MessagesRules, notices: list[Notice]) -> EncodedTurns:
    """Encodes all turns as the provider accepts them, and add the notices. Neighbouring messages of one role are one,
    unless a client of this API wrote them apart: results stand before what the user says to them. Raises InvalidRequest
    for an image that the API cannot read."""
    system: list[Json] = []
    merged = MessageMerger()
    thinks = True
    unsigned = rules.thinking == "any"
    accepts_all = unsigned and rules.blank_text == "keep"
    fitter = _Fitter(conversation, notices, unsigned)
    again, key = have_derived(conversation.turns), ("message", unsigned)
    for turn in conversation.turns:
        source = None if turn.source is None else turn.source.in_dialect(DIALECT)
        if source is not None:
            plain = accepts_all or (type(content := source.get("content")) is str and not content.isspace() and content)
            accepted = source if plain else _accepted(source, turn, rules, notices)
            if accepted is None:
                continue
            # The system prompt is no message of the client: it has no position.
            if is_system(turn) and turn.index is None:
                system.append(accepted["content"])
            else:
                merged.add(accepted, turn.index)
            continue
        if again and getattr(turn, "derived", None) is not None:
            fitting, message, told = kept(turn, key, fitter.message)
            notices += told
        else:
            fitting = fitter.turn(turn)
            message = encode_message(fitting) if fitting.blocks else None
        if is_system(turn) and not merged.runs:
            system.append(encode_content(fitting))
        elif message is not None:
            merged.add(message)
        if turn.role == "user":
            thinks = True
        elif fitting.calls:
            thinks = thinks and type(fitting.blocks[0]) is Reasoning
    whole = system[0] if len(system) == 1 else [block for content in system for block in content_blocks(content)]
    return EncodedTurns(whole, merged.messages(), thinks)


def _accepted(message: JsonObject, turn: Turn, rules: MessagesRules, notices: list[Notice]) -> JsonObject | None:
    """Returns a message of the API's own client without what the provider refuses; None where nothing is left of it."""
    content = message.get("content")
    blank = rules.blank_text == "drop"
    if isinstance(content, list):
        signed = rules.thinking != "any"
        kept = [
            one
            for one in content
            if not (isinstance(one, dict) and one.get("type") in _REFUSABLE and _is_refused(one, signed, blank))
        ]
        if len(kept) == len(content):
            return message
        notices += _left_out(content, rules, turn)
        if kept:
            return {**message, "content": kept}
    elif not (blank and isinstance(content, str) and not content.strip()):
        return message
    notices.append(_notice("dropped", "EMPTY_TURN_NOT_SENT", "a message without content is not sent", turn))
    return None


def _is_refused(block: JsonObject, signed: bool, blank: bool) -> bool:
    if block.get("type") == "text":
        return blank and isinstance(text := block.get("text"), str) and not text.strip()
    return signed and is_unsigned(block)


def _left_out(content: list[Json], rules: MessagesRules, turn: Turn) -> Iterator[Notice]:
    if rules.thinking != "any" and any(isinstance(block, dict) and is_unsigned(block) for block in content):
        yield _notice("dropped", "REASONING_NOT_SENT", _UNSIGNED, turn)
    if rules.blank_text == "drop" and any(
        isinstance(block, dict) and _is_refused(block, False, True) for block in content
    ):
        yield _notice("dropped", "BLANK_TEXT_NOT_SENT", "blank text of a message is not sent", turn)


class _Fitter(msgspec.Struct):
    """Fits the blocks of turns of another dialect to the API. `unsigned`: the provider accepts thinking that has no
    signature."""

    conversation: Conversation
    notices: list[Notice]
    unsigned: bool

    def message(self, turn: Turn) -> tuple[Turn, JsonObject | None, list[Notice]]:
        """Returns the turn with blocks that the API accepts, its message (None: it has no blocks), and the notices: of
        a turn of which all of this is kept."""
        of_turn = msgspec.structs.replace(self, notices=[])
        fitting = of_turn.turn(turn)
        return fitting, encode_message(fitting) if fitting.blocks else None, of_turn.notices

    def turn(self, turn: Turn) -> Turn:
        """Returns the turn with blocks that the API accepts, which may be none."""
        if turn.extra:
            turn = _with_state(turn)
        # A result has the name of its call.
        if turn.name is not None and turn.role != "tool":
            self.notices.append(_notice("dropped", "TURN_NAME_NOT_SENT", "the name of a message is not sent", turn))
        blocks: list[Block] = []
        for place, block in enumerate(turn.blocks):
            blocks += self._block(block, place, turn)
        if not blocks and not is_system(turn):
            self.notices.append(
                _notice("dropped", "EMPTY_TURN_NOT_SENT", "a message without content is not sent", turn)
            )
        return msgspec.structs.replace(turn, blocks=tuple(blocks), extra=_kept(turn.extra), name=None)

    def _block(self, block: Block, place: int, turn: Turn) -> Iterable[Block]:
        match block:
            case ToolCall():
                return (self._call(block, turn),)
            case ToolResult():
                return (self._result(block, turn, item_of(block, place)),)
            case Text():
                return self._text(block, turn)
            case Image():
                return (self._image(block, turn, self.conversation.paths.part, item_of(block, place)),)
            case File():
                return (block,)
            case Reasoning():
                return self._reasoning(block, turn)
            case _:
                assert_never(block)

    def _text(self, block: Text, turn: Turn) -> tuple[Text, ...]:
        if block.text and not block.text.isspace():
            return (Text(block.text, _kept(block.extra)) if block.extra else block,)
        if block.text:
            self.notices.append(_notice("dropped", "BLANK_TEXT_NOT_SENT", "blank text of a message is not sent", turn))
        return ()

    def _image(self, block: Image, turn: Turn, template: str, item: int, inner: int = 0) -> Image:
        if is_data_url(block.url):
            read_image(block.url, template.format(turn=turn.index, item=item, part=inner))
        return Image(block.url, _kept(block.extra))

    def _reasoning(self, block: Reasoning, turn: Turn) -> Iterator[Reasoning]:
        """Yields the reasoning that the API has signed; most providers refuse any other."""
        state = provider_state(block.extra, PROVIDER)
        if state.get("data"):
            yield Reasoning("", extra=with_provider_state(PROVIDER, {"data": state["data"]}))
        if state.get("signature"):
            yield Reasoning(block.text, extra=with_provider_state(PROVIDER, {"signature": state["signature"]}))
        elif block.text and self.unsigned:
            yield Reasoning(block.text)
        elif block.text:
            self.notices.append(_notice("dropped", "REASONING_NOT_SENT", _UNSIGNED, turn))

    def _call(self, block: ToolCall, turn: Turn) -> ToolCall:
        if read_object(block.arguments) is None:
            detail = "arguments that are not a JSON object are sent as text inside an object"
            self.notices.append(_notice("changed", "ARGUMENTS_AS_TEXT", detail, turn, block.id, "warning"))
        return ToolCall(block.id, block.name, block.arguments, _kept(block.extra)) if block.extra else block

    def _result(self, block: ToolResult, turn: Turn, item: int) -> ToolResult:
        parts: list[Text | Image | File] = []
        for inner, part in enumerate(block.content):
            if isinstance(part, Text):
                parts += self._text(part, turn)
            elif isinstance(part, Image):
                parts.append(self._image(part, turn, self.conversation.paths.result_part, item, inner))
            else:
                parts.append(part)
        return ToolResult(block.call_id, tuple(parts), block.is_error)


def _with_state(turn: Turn) -> Turn:
    """Returns the turn with the states that its client keeps beside the message, each in a piece of its reasoning and
    at the place that the model gave it. The text is empty where the API has shown none or the client has changed it."""
    states = each_state(provider_state(turn.extra, PROVIDER))
    thoughts = [block for block in turn.blocks if type(block) is Reasoning]
    if not states or any(provider_state(block.extra, PROVIDER) for block in thoughts):
        return turn
    # Some clients keep the same reasoning in two fields.
    text = thoughts[0].text if thoughts else ""
    others = [block for block in turn.blocks if not (type(block) is Reasoning and block.text == text)]
    lengths = [size if isinstance(size := state.get("length"), int) and size >= 0 else 0 for state in states]
    if "length" not in states[0]:
        # The first one is as long as the others leave of it.
        lengths[0] = max(0, len(text) - sum(lengths))
    ends = [0, *accumulate(lengths)]
    signed = [
        Thought(
            text[begin:end] if ends[-1] == len(text) else "", {**with_provider_state(PROVIDER, state)}, *_place(state)
        )
        for state, begin, end in zip(states, ends, ends[1:], strict=False)
    ]
    unsigned = [block for block in others if type(block) is Reasoning]
    return turn.changed(*with_thoughts(turn.changed(*others), signed), *unsigned)


def _place(state: JsonObject) -> tuple[int, bool]:
    """Returns behind how many calls a piece of reasoning stands, and whether behind text."""
    calls = state.get("calls")
    return (calls if isinstance(calls, int) else 0, state.get("behind_text") is True)


def _kept(extra: JsonObject) -> JsonObject:
    return {name: value for name, value in extra.items() if name in _KEPT} if extra else EMPTY


def _notice(
    action: Action, rule: NoticeRule, detail: str, turn: Turn, call_id: str | None = None, level: Level = "debug"
) -> Notice:
    return Notice("encode", action, rule, detail, index=turn.index, tool_call_id=call_id, level=level)
