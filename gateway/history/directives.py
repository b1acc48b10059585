"""Says which functions, effort and format the directives of a conversation leave in force, and applies them.

A backend of the client's own API gets the directives as they are, in their place. For any other backend the request
asks at once for what is in force: the effort and the format in its fields, the functions in its list. What a model has
seen stays as it was, because the prompt caches of providers compare a request with the one before from its first byte:
a function that is offered no longer stays declared, and a note says at the place of the directive that it is gone. It
is left out as soon as that place is sent no more, behind a summary or a limit, which changes the beginning anyway.

Sources: Anthropic, "Mid-conversation system messages", "Per-message effort"; OpenAI, `configuration_update`.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Final, assert_never

import msgspec

from gateway.core.conversation import (
    Conversation,
    Directive,
    EffortChange,
    FormatChange,
    Json,
    NamedTool,
    Text,
    ToolAddition,
    ToolRemoval,
    Turn,
    TurnScope,
    is_system,
)
from gateway.core.errors import InvalidRequest
from gateway.core.notices import Action, Level, Notice, NoticeRule

_ASKING: Final = frozenset({"user", "tool"})
_TOOLS: Final = "tools"
_SHOWN: Final = 64


class InForce(msgspec.Struct, frozen=True):
    """What directives leave in force for the answer that is asked for.

    - `effort` and `form`: the changes that hold; None: what the request itself says.
    - `removed`: the functions that are not offered, with the index of the message that removed each.
    - `cleared`: the indexes of the messages whose text the model is not shown any more.
    """

    effort: EffortChange | None = None
    form: FormatChange | None = None
    removed: Mapping[str, int] = {}
    cleared: frozenset[int] = frozenset()


def in_force(conversation: Conversation) -> InForce:
    """Returns what the directives of the client's conversation, before any turn was left out, leave in force."""
    return _in_force(conversation.turns, conversation.directives)


def _in_force(turns: Sequence[Turn], directives: Sequence[Directive]) -> InForce:
    effort: EffortChange | None = None
    form: FormatChange | None = None
    removed: dict[str, int] = {}
    cleared: list[int] = []
    asked, words = _last(turns, _ASKING), _words(turns)
    for directive in directives:
        match directive:
            case EffortChange():
                if not directive.waits or words.have_come(directive.index):
                    effort = directive
            case FormatChange():
                form = directive
            case ToolAddition():
                removed.pop(directive.name, None)
            case ToolRemoval():
                removed[directive.name] = directive.index
            case TurnScope():
                if asked is not None and directive.index < asked:
                    cleared.append(directive.index)
            case _:
                assert_never(directive)
    return InForce(effort, form, removed, frozenset(cleared))


def each_in_force(conversation: Conversation) -> tuple[tuple[Directive, bool], ...]:
    """Returns the directives of the client's conversation, each with whether it is in force."""
    state = in_force(conversation)

    def holds(directive: Directive) -> bool:
        match directive:
            case EffortChange():
                return directive == state.effort
            case FormatChange():
                return directive == state.form
            case ToolAddition():
                return directive.name not in state.removed
            case ToolRemoval():
                return state.removed.get(directive.name) == directive.index
            case TurnScope():
                return directive.index not in state.cleared
            case _:
                assert_never(directive)

    return tuple([(directive, holds(directive)) for directive in conversation.directives])


def without_cleared(conversation: Conversation) -> Conversation:
    """Returns the client's conversation in which the text that is cleared is left out, with every turn in its place."""
    cleared = in_force(conversation).cleared if conversation.directives else frozenset()
    if not cleared:
        return conversation
    turns = [turn.changed() if is_system(turn) and turn.index in cleared else turn for turn in conversation.turns]
    return msgspec.structs.replace(conversation, turns=tuple(turns))


def _last(turns: Sequence[Turn], roles: frozenset[str]) -> int | None:
    """Returns the index of the client's last message of these roles."""
    return next((turn.index for turn in reversed(turns) if turn.role in roles and turn.index is not None), None)


class _Words(msgspec.Struct, frozen=True):
    """Where the last words of the user stand, and the first message behind them that is not of the system, by their
    indexes."""

    last: int | None = None
    behind: int | None = None

    def have_come(self, index: int) -> bool:
        """Returns whether words of the user stand directly before the message at this index, or anywhere behind it."""
        if self.last is None or index < self.last:
            return self.last is not None
        return self.behind is None or index < self.behind


def _words(turns: Sequence[Turn]) -> _Words:
    behind: int | None = None
    for turn in reversed(turns):
        if turn.index is None or is_system(turn):
            continue
        if turn.role == "user":
            return _Words(turn.index, behind)
        behind = turn.index
    return _Words()


def described(directive: Directive) -> str:
    """Returns what a directive asks for, in a few words without its index."""
    match directive:
        case EffortChange():
            return f"the effort {directive.effort}"
        case FormatChange():
            return f"the format {_kind(directive.response_format)}"
        case ToolAddition():
            defined = "" if directive.written is None else ", which it defines"
            return f"the tool {directive.name[:_SHOWN]!r} from there on{defined}"
        case ToolRemoval():
            return f"the tool {directive.name[:_SHOWN]!r} no longer"
        case TurnScope():
            return "its text only until the next message of the user"
        case _:
            assert_never(directive)


def _kind(response_format: Json) -> str:
    kind = response_format.get("type") if isinstance(response_format, dict) else None
    return kind if isinstance(kind, str) else "text"


def with_fields(conversation: Conversation, state: InForce) -> tuple[Conversation, list[Notice]]:
    """Returns the client's conversation whose fields ask for what is in force, with the directives taken out, and the
    notices. The messages and the functions are left for `with_messages`."""
    fields: dict[str, Json] = {}
    written: dict[str, Json] = {}
    if state.effort is not None:
        fields["reasoning_effort"] = written["reasoning_effort"] = state.effort.effort
    if state.form is not None:
        fields["response_format"], written["response_format"] = state.form.response_format, state.form.written
    notices = [
        _notice(
            "changed",
            "DIRECTIVE_APPLIED",
            f"the message asks for {described(one)}: it is asked for in the request",
            one,
        )
        for one in _settling(conversation.directives, state)
    ]
    return msgspec.structs.replace(_with_fields(conversation, fields, written), directives=()), notices


def _settling(directives: Sequence[Directive], state: InForce) -> list[Directive]:
    """Returns the directives that the fields of a request follow: of several of a kind the last one."""
    defined = {one.name: one for one in directives if isinstance(one, ToolAddition) and one.written is not None}
    return [one for one in (state.effort, state.form, *defined.values()) if one is not None]


def _with_fields(conversation: Conversation, fields: Mapping[str, Json], written: Mapping[str, Json]) -> Conversation:
    """Returns the conversation with these fields, null for none, also where its client wrote them."""
    if not fields:
        return conversation
    params = {name: value for name, value in {**conversation.params, **fields}.items() if value is not None}
    source = conversation.source
    if source is not None:
        for name, own in written.items():
            source = source.with_field(conversation.paths.param(name), own)
    return msgspec.structs.replace(conversation, params=params, source=source)


def with_messages(conversation: Conversation, asked: Conversation, state: InForce) -> tuple[Conversation, list[Notice]]:
    """Returns the conversation without the text that is cleared, with a note at the place of each directive about what
    the model has been offered, and with the functions that it may know. `asked` is the client's, with its directives.

    Raises InvalidRequest for a choice of functions that none of those in force meets.
    """
    _check_choice(asked, state)
    notices: list[Notice] = []
    notes = _notes(asked)
    silent = frozenset([directive.index for directive in asked.directives])
    noted: set[int] = set()
    cleared: list[int] = []
    turns: list[Turn] = []
    for turn in conversation.turns:
        if turn.index not in silent or not is_system(turn):
            turns.append(turn)
        elif turn.index in state.cleared:
            cleared.append(turn.index)
        elif turn.index in notes:
            noted.add(turn.index)
            turns.append(turn.changed(*turn.blocks, Text(notes[turn.index])))
        elif turn.blocks:
            turns.append(turn)
    if cleared:
        detail = f"text that was for one turn is not sent any more; messages: {len(cleared)}"
        notices.append(Notice("encode", "dropped", "MESSAGE_CLEARED", detail, index=cleared[0], level="debug"))
    unknown = frozenset([name for name, index in state.removed.items() if index not in noted])
    for name, index in state.removed.items():
        kept = (
            "is not declared any more" if name in unknown else "stays declared, with a note at the place of the message"
        )
        detail = f"the message removes the tool {name[:_SHOWN]!r}: it {kept}, and a call of it is refused"
        notices.append(
            Notice("encode", "dropped" if name in unknown else "changed", "TOOL_REMOVED", detail, index=index)
        )
    sent = msgspec.structs.replace(conversation, turns=tuple(turns), directives=())
    return _with_tools(sent, asked.directives, unknown), notices


def _notes(asked: Conversation) -> dict[int, str]:
    """Returns what the model is told about functions, by the index of the message. A function that was removed before
    any answer needs no words: no answer has seen it."""
    answered = next((turn.index for turn in asked.turns if turn.role == "assistant" and turn.index is not None), None)
    systems = {turn.index for turn in asked.turns if is_system(turn)}
    away: set[str] = set()
    notes: dict[int, list[str]] = {}
    for directive in asked.directives:
        if isinstance(directive, ToolAddition) and directive.name in away:
            away.discard(directive.name)
            notes.setdefault(directive.index, []).append(f"The tool `{directive.name}` is available from here on.")
        elif isinstance(directive, ToolRemoval):
            away.add(directive.name)
            if answered is not None and answered < directive.index:
                notes.setdefault(directive.index, []).append(f"The tool `{directive.name}` is no longer available.")
    return {index: "\n".join(lines) for index, lines in notes.items() if index in systems}


def _check_choice(asked: Conversation, state: InForce) -> None:
    choice, param = asked.tool_choice, asked.paths.param("tool_choice")
    if isinstance(choice, NamedTool) and choice.name in state.removed:
        place = asked.paths.turn.format(turn=state.removed[choice.name])
        raise InvalidRequest(f"{param} names a tool that {place} removes.", param=param)
    left = asked.other_tools or [tool for tool in asked.tools if tool.name not in state.removed]
    if choice == "required" and asked.tools and not left:
        raise InvalidRequest(f"{param} requires a call, but the messages remove every tool.", param=param)


def _with_tools(conversation: Conversation, directives: Sequence[Directive], left_out: frozenset[str]) -> Conversation:
    """Returns the conversation without some functions, and with those that the directives define in the client's own
    list."""
    tools = conversation.tools
    if left_out:
        tools = tuple([tool for tool in tools if tool.name not in left_out])
    defined: dict[str, Json] = {
        one.name: {**one.written} for one in directives if isinstance(one, ToolAddition) and one.written is not None
    }
    source = conversation.source
    if source is not None and (defined or left_out):
        listed = source.value.get(_TOOLS)
        entries: list[Json] = [one for one in listed if _name(one) not in left_out] if isinstance(listed, list) else []
        known = {_name(one) for one in entries}
        entries = [defined.get(_name(one), one) for one in entries]
        entries += [entry for name, entry in defined.items() if name not in known and name not in left_out]
        fields = {name: value for name, value in source.value.items() if name != _TOOLS}
        source = msgspec.structs.replace(source, value={**fields, _TOOLS: entries} if entries else fields)
    return msgspec.structs.replace(conversation, tools=tools, source=source)


def _name(entry: Json) -> str:
    name = entry.get("name") if isinstance(entry, dict) else None
    return name if isinstance(name, str) else ""


def with_unsent(conversation: Conversation, asked: Conversation) -> tuple[Conversation, list[Notice]]:
    """Returns a conversation for a backend that gets the directives themselves, whose fields ask for what those leave
    in force whose messages a summary or a limit has taken out; and the notices. `asked` is the client's."""
    kept = {turn.index for turn in conversation.turns}
    of_client = [turn.index for turn in asked.turns if turn.index is not None]
    unsent: list[Directive] = []
    sent: list[Directive] = []
    for directive in asked.directives:
        (sent if _holder(of_client, directive.index) in kept else unsent).append(directive)
    if not unsent:
        return conversation, []
    state = _in_force(asked.turns, unsent)
    changed, _ = with_fields(msgspec.structs.replace(conversation, directives=tuple(unsent)), state)
    # A directive that is sent names what the request declares.
    named = {one.name for one in sent if isinstance(one, ToolAddition | ToolRemoval)}
    changed = _with_tools(changed, unsent, frozenset(state.removed) - named)
    removals = [ToolRemoval(index, name) for name, index in state.removed.items()]
    notices = [
        _notice(
            "changed",
            "DIRECTIVE_APPLIED",
            f"the message asks for {described(one)} and is not sent: the request asks",
            one,
        )
        for one in (*_settling(unsent, state), *removals)
    ]
    return msgspec.structs.replace(changed, directives=tuple(sent)), notices


def _holder(of_client: Sequence[int], index: int) -> int:
    """Returns the index of the turn in whose source the directive of the message at this index stands: that message, or
    of an item that is no turn the one behind it. `of_client` are the indexes of all turns."""
    at = bisect_left(of_client, index)
    return of_client[min(at, len(of_client) - 1)]


def _notice(action: Action, rule: NoticeRule, detail: str, directive: Directive, level: Level = "info") -> Notice:
    return Notice("encode", action, rule, detail, index=directive.index, level=level)
