"""Makes the turns that a hidden round adds to a conversation: what the model said, and the results of its calls."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from gateway.capabilities.held_tools import QUERY, SEARCH, HeldTools, line_of
from gateway.core.answer import Answer, AnswerCall, AnswerReasoning, AnswerText
from gateway.core.conversation import EMPTY, Block, Reasoning, Text, ToolCall, ToolResult, ToolSpec, Turn
from gateway.core.events import ReasoningEnd
from gateway.tool_calls.tool_ranking import rank_tools

# What a call of the search consists of, beside the words that it searches for.
SEARCH_WORDS: Final = frozenset({SEARCH, QUERY})
# What one search loads at most.
_MOST_FOUND: Final = 5
# A model that repeats itself may write thousands of searches in one answer.
_MOST_SEARCHES: Final = 8


def answer_turns(
    answer: Answer,
    held: HeldTools | None,
    removed: Mapping[str, int],
    known: Sequence[Turn],
    *,
    number: int,
    last: bool,
) -> tuple[list[Turn], list[ToolSpec]]:
    """Returns the turns for an answer whose calls are searches in `held` or calls of a `removed` function, and the
    functions that the searches found. `known` are the turns before them, `number` is that of the round. `last`: the
    next round may not search."""
    ids = _free_ids(answer, known, number)
    findable = [] if held is None else [tool for tool in held.tools if tool.name not in removed]
    found: dict[str, ToolSpec] = {}
    results: list[Turn] = []
    searches = 0
    for call in answer.calls:
        refused = call.start.name in removed
        if refused:
            said = f"The tool `{call.start.name}` is no longer available, and this call was not run."
        elif searches == _MOST_SEARCHES:
            said = f"Only the first {_MOST_SEARCHES} searches of an answer are made."
        else:
            searches += 1
            fitting = rank_tools(findable, query_of(call.arguments), _MOST_FOUND)
            said = _result(fitting, {*found})
            found |= {tool.name: tool for tool in fitting}
        results.append(Turn("tool", (ToolResult(ids[call.start.id], (Text(said),), is_error=refused),)))
    if last and searches:
        results[-1] = _with_last_word(results[-1])
    return [Turn("assistant", _blocks(answer, ids)), *results], [*found.values()]


def _free_ids(answer: Answer, known: Sequence[Turn], number: int) -> Mapping[str, str]:
    """Returns an id for each call that no call before it has; some backends count from 0 in every answer."""
    taken = {call.id for turn in known for call in turn.calls}
    ids: dict[str, str] = {}
    for call in answer.calls:
        identity = call.start.id
        while identity in taken:
            identity = f"{identity}_{number}"
        taken.add(identity)
        ids[call.start.id] = identity
    return ids


def query_of(arguments: str) -> str:
    """Returns the words of a search: its query, else every text in its arguments, which may be no valid JSON."""
    try:
        fields = msgspec.json.decode(arguments)
    except msgspec.DecodeError:
        return arguments.replace(f'"{QUERY}"', "")
    if not isinstance(fields, dict):
        return arguments
    query = fields.get(QUERY)
    return query if isinstance(query, str) else " ".join(value for value in fields.values() if isinstance(value, str))


def _blocks(answer: Answer, ids: Mapping[str, str]) -> tuple[Block, ...]:
    """Returns what the model said as the blocks of a turn."""
    blocks: list[Block] = []
    for part in answer.parts:
        if type(part) is AnswerText:
            blocks.append(Text(part.text))
        elif type(part) is AnswerReasoning:
            blocks.append(Reasoning(part.text, part.field))
        elif type(part) is ReasoningEnd:
            before = blocks[-1] if blocks else None
            if type(before) is Reasoning and not before.extra:
                blocks[-1] = msgspec.structs.replace(before, extra=part.extra)
            else:
                blocks.append(Reasoning("", extra=part.extra))
        elif type(part) is AnswerCall:
            blocks.append(_call(part, ids[part.start.id]))
    return tuple(blocks)


def _call(call: AnswerCall, identity: str) -> ToolCall:
    # The arguments of a call in a history are an object; what the model wrote is searched for in any case.
    block = call.block
    words = {QUERY: query_of(block.arguments)} if block.arguments.strip() else {}
    try:
        is_object = isinstance(msgspec.json.decode(block.arguments), dict)
    except msgspec.DecodeError:
        is_object = False
    arguments = block.arguments if is_object else msgspec.json.encode(words).decode()
    return msgspec.structs.replace(block, id=identity, arguments=arguments, extra={**block.extra, **call.end} or EMPTY)


def _result(found: Sequence[ToolSpec], shown: set[str]) -> str:
    """Returns the result of a search: each function that it found, with its schema unless a search beside it has
    `shown` that."""
    said = ["These tools are loaded and can be called now:"] if found else ["No further tool fits. Use other words."]
    for tool in found:
        said.append(line_of(tool))
        if tool.name not in shown:
            said.append(f"  parameters: {msgspec.json.encode(tool.parameters).decode()}")
    return "\n".join(said)


def _with_last_word(turn: Turn) -> Turn:
    (result,) = turn.results
    said = f"{result.text}\nThis was the last search: go on with the tools that are loaded."
    return turn.changed(msgspec.structs.replace(result, content=(Text(said),)))
