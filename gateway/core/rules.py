"""Defines the rules of the message protocol (each code's sentence, its advice and its repair), and the error that names
the violations of them."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from gateway.core.conversation import Json, Violation
from gateway.core.errors import InvalidRequest
from gateway.core.field_paths import CANONICAL_PATHS, FieldPaths
from gateway.core.notices import Action, Notice

RuleCode: TypeAlias = Literal[
    "MESSAGES_EMPTY",
    "NOT_OBJECT",
    "ROLE_TYPE",
    "ROLE_UNKNOWN",
    "CONTENT_MISSING",
    "CONTENT_TYPE",
    "CONTENT_EMPTY_ARRAY",
    "PART_TYPE",
    "TEXT_UNICODE",
    "CALLS_TYPE",
    "CALLS_EMPTY",
    "CALL_TYPE",
    "CALL_FORMS_MIXED",
    "CALL_ID_MISSING",
    "CALL_NAME",
    "CALL_ARGS_TYPE",
    "TOOL_ID_MISSING",
    "TOOLS_COUNT",
    "TOOLS_NAME",
    "CALL_ID_DUPLICATE",
    "TOOL_ORPHAN",
    "TOOL_ID_UNKNOWN",
    "TOOL_ID_DUPLICATE",
    "CALLS_UNANSWERED",
    "FIRST_TURN_ROLE",
    "FOREIGN_FORM",
    "THINKING_UNSIGNED",
    "TEXT_BLANK",
    "CALL_ID_SHAPE",
]


class Rule(msgspec.Struct, frozen=True):
    """One rule. `sentence` says what is wrong behind the path of the faulty value, `advice` how the client corrects it.

    Both are templates for the client's terms (`FieldPaths.worded`).

    `repair` is the action of the notice about the repaired fault; None: a bug in the client, not a damaged history,
    which no repair can correct; the request is refused in every mode. `code` is that of the error object.
    """

    sentence: str
    advice: str
    repair: Action | None = "changed"
    code: str = "invalid_value"


RULES: Final[Mapping[str, Rule]] = {
    "MESSAGES_EMPTY": Rule(
        "is empty.",
        "Send at least one message.",
        repair=None,
        code="empty_array",
    ),
    "NOT_OBJECT": Rule(
        "is not an object.",
        'Write it as an object with a role and a content, like {{"role": "user", "content": "Hello"}}.',
        repair=None,
        code="invalid_type",
    ),
    "ROLE_TYPE": Rule(
        "is missing or not text.",
        "Use system, developer, user, assistant or tool.",
        repair=None,
        code="invalid_type",
    ),
    "ROLE_UNKNOWN": Rule(
        "is not a role of the message protocol.",
        "Use system, developer, user, assistant or tool.",
    ),
    "CONTENT_MISSING": Rule(
        "is missing or null.",
        'Send text; only an assistant message with {calls} may leave it out. Empty text is "".',
    ),
    "CONTENT_TYPE": Rule(
        "is neither text nor an array of parts.",
        "Send text or an array of content parts; encode other values as JSON text.",
    ),
    "CONTENT_EMPTY_ARRAY": Rule(
        "is an array without parts.",
        'Send at least one part, or the text "".',
    ),
    "PART_TYPE": Rule(
        "is not a valid content part.",
        'Send an object with a type, like {{"type": "text", "text": "Hello"}}.',
    ),
    "TEXT_UNICODE": Rule(
        "contains half of a surrogate pair, which is not valid text.",
        "Cut text between characters: an emoji is two units of UTF-16, and half of it is an invalid escape.",
    ),
    "CALLS_TYPE": Rule(
        "is not an array of calls.",
        "Send tool_calls as an array of objects, or leave the field out.",
    ),
    "CALLS_EMPTY": Rule(
        "is an array without calls.",
        "Leave tool_calls out when the message makes no call.",
    ),
    "CALL_TYPE": Rule(
        "is not a function call.",
        'Send an object like {{"id": ..., "type": "function", "function": {{"name": ..., "arguments": ...}}}}.',
    ),
    "CALL_FORMS_MIXED": Rule(
        "is set although tool_calls contains the calls of the message.",
        "Send every call in tool_calls; function_call is deprecated.",
    ),
    "CALL_ID_MISSING": Rule(
        "is missing or empty.",
        "Send the call back with its original id; store {calls} unchanged.",
    ),
    "CALL_NAME": Rule(
        "is missing, empty or not a function name.",
        "Send the name of the called function: letters, digits, _ and -, at most 64 characters.",
    ),
    "CALL_ARGS_TYPE": Rule(
        "is not text.",
        "Send the arguments exactly as the response contained them.",
    ),
    "TOOL_ID_MISSING": Rule(
        "is missing or empty.",
        "Copy the id of the call that this message answers.",
    ),
    "TOOLS_COUNT": Rule(
        "has more functions than the protocol allows.",
        "Send at most 128 functions.",
        repair="seen",
    ),
    "TOOLS_NAME": Rule(
        "is not a function name.",
        "Use letters, digits, _ and -, at most 64 characters.",
        repair="seen",
    ),
    "CALL_ID_DUPLICATE": Rule(
        "is also the id of another call.",
        "Give every call of a conversation a unique id.",
    ),
    "TOOL_ORPHAN": Rule(
        "is a {result} that does not follow an assistant message with {calls}.",
        "Put {results} directly after the assistant message whose {calls} they answer, and store that "
        "message with its {calls}.",
    ),
    "TOOL_ID_UNKNOWN": Rule(
        "is not the id of any call that the message answers.",
        "Copy the id from the assistant message's {calls}.",
    ),
    "TOOL_ID_DUPLICATE": Rule(
        "answers a call that already has a {result}.",
        "Send exactly one {result} for each call.",
        repair="dropped",
    ),
    "CALLS_UNANSWERED": Rule(
        "contains calls without a {result} directly after the message.",
        'Send one {result} for each call; for a skipped call, too, with a text like "Error: skipped by user".',
        repair="added",
    ),
    "FIRST_TURN_ROLE": Rule(
        "is not a user message, and the provider requires the first message to be one.",
        "Begin with a user message; when old messages are dropped, drop all messages before a user message.",
        repair="added",
    ),
    "FOREIGN_FORM": Rule(
        "has the form of another API.",
        "Write it in the form of chat completions, or send the request to the route of the other API.",
    ),
    "THINKING_UNSIGNED": Rule(
        "is thinking without a signature, which Anthropic refuses.",
        "Leave the block out when the conversation goes on at another provider than the one that wrote it.",
        repair="seen",
    ),
    "TEXT_BLANK": Rule(
        "is text with nothing but blanks, which the provider refuses.",
        "Leave the block out, and a message that has no other one.",
        repair="seen",
    ),
    "CALL_ID_SHAPE": Rule(
        "is an id that the provider refuses.",
        "Rename the call and its {result} alike: Anthropic takes letters, digits, _ and -.",
        repair="seen",
    ),
}


def violation(
    rule: RuleCode,
    index: int,
    *,
    param: str,
    detail: str = "",
    tool_call_id: str | None = None,
    paths: FieldPaths = CANONICAL_PATHS,
) -> Violation:
    """Returns a violation at `param` (`messages[3].tool_call_id`), with the rule's own sentence unless `detail` is set.

    `index` is that of the turn, -1 for the request as a whole.
    """
    entry = RULES[rule]
    sentence = detail or f"{param} {paths.worded(entry.sentence)}"
    return Violation(rule, index, sentence, param, tool_call_id=tool_call_id, advice=paths.worded(entry.advice))


LISTED: Final = 50


def violation_error(violations: Sequence[Violation], paths: FieldPaths = CANONICAL_PATHS) -> InvalidRequest:
    """Returns the error for a refused conversation: the first violation in words, and all of them as fields.

    The fields hold the first 50 of a long list. `param` is the path of the first faulty value, `code` the first rule's.
    """
    first = violations[0]
    where = "The request" if first.index < 0 else paths.turn.format(turn=first.index)
    call = f" (tool call id {first.tool_call_id!r})" if first.tool_call_id else ""
    more = _more(len(violations) - 1)
    listed: list[Json] = [_entry(found) for found in violations[:LISTED]]
    return InvalidRequest(
        f"{where}{call} breaks the rule {first.rule}: {first.detail.rstrip('.')}. {first.advice}{more}",
        code=RULES[first.rule].code if first.rule in RULES else None,
        param=first.param,
        extra={**_entry(first), "violations": listed, "violation_count": len(violations)},
        notices=[_notice(found) for found in violations[:LISTED]],
    )


def _more(count: int) -> str:
    if count < 2:
        return " One more violation is listed in `violations`." if count else ""
    listed = f"; the first {LISTED - 1} of them are" if count >= LISTED else ", which are"
    return f" There are {count} more violations{listed} listed in `violations`."


def _entry(found: Violation) -> dict[str, Json]:
    return {
        "rule": found.rule,
        "index": found.index,
        "tool_call_id": found.tool_call_id,
        "param": found.param,
        "detail": found.detail,
        "advice": found.advice,
    }


def _notice(found: Violation) -> Notice:
    index = found.index if found.index >= 0 else None
    return Notice(
        "validate", "failed", found.rule, found.detail, index=index, tool_call_id=found.tool_call_id, level="warning"
    )
