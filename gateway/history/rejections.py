"""Maps a provider's error text about a refused history or request field to a rule code, a place and the likely fix.

The texts are those that providers send; a changed text needs one new line here and one in its test.
"""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from gateway.core.conversation import Conversation, Turn
from gateway.core.errors import IMAGE_REFUSED, BackendError
from gateway.core.field_paths import CANONICAL_PATHS
from gateway.core.notices import Notice


class Rejection(msgspec.Struct, frozen=True):
    """A classified rejection. `advice` is a template of `FieldPaths.worded`.

    `index` counts the client's messages; None when it is unknown.
    """

    rule: str
    advice: str
    index: int | None = None
    tool_call_id: str | None = None


_ANSWER_ALL: Final = "Send exactly one {result} for each tool call, right after the assistant message."
_CALL_FIRST: Final = "Keep the assistant message with {calls} before the {results} that answer it."
_ECHO: Final = (
    "Send the reasoning of the assistant message back with it, use the profile for this provider, or enable `keeper`."
)
_UNCHANGED: Final = (
    "Send the provider's state of an answer back unchanged, in its order, and to the model that wrote it, or leave all "
    "of it out."
)

_OMIT: Final = "Omit the field for this model, or use the profile for this provider."
_SAMPLING: Final = "Omit temperature, top_p and the penalties for this model, or use the profile for this provider."
_ROLES: Final = "Use the profile for this provider; it sends each message in a role that the provider accepts."
_CHOICE: Final = "Send no tool_choice but auto or none, or switch thinking off."
_TOOL_EFFORT: Final = "Use the Responses API of this provider, or send the tools without reasoning_effort."
_EFFORT: Final = "Send an effort that this model takes, or none, or use the profile for this provider."
_THINKING: Final = "Omit the switch of thinking for this model, or use the profile for this provider."
_FORMAT: Final = "Send another response_format, or none, or use the profile for this provider."
_SCHEMA: Final = "Use the profile for this provider; it puts functions into the form that the provider requires."
_STOPS: Final = "Send fewer stop sequences, and no blank one, or use the profile for this provider."
_LIMIT: Final = "Raise the limit of the answer, or omit it."
_MARKS: Final = "Mark fewer blocks with cache_control, and no empty one."
_NO_IMAGE: Final = "Leave the image out, or set `images` to `placeholder` for this model."

# The first match wins, so specific patterns stand before general ones.
_TEXTS: Final[tuple[tuple[str, str, str], ...]] = (
    (
        r"must be followed by tool messages|did not have response messages|insufficient tool messages",
        "CALLS_UNANSWERED",
        _ANSWER_ALL,
    ),
    (
        r"No tool output found for function call|tool_use.? ids were found without",
        "CALLS_UNANSWERED",
        _ANSWER_ALL,
    ),
    (r"Did not find \d+ .?tool_result.? block", "CALLS_UNANSWERED", _ANSWER_ALL),
    (
        r"number of function response parts is equal to|Not the same number of function calls",
        "CALLS_UNANSWERED",
        _ANSWER_ALL,
    ),
    (r"assistant message with 'tool_calls' must be followed", "CALLS_UNANSWERED", _ANSWER_ALL),
    (
        r"role .?tool.? must be a response to a prece+ding message|tool call result does not follow tool call",
        "TOOL_ORPHAN",
        _CALL_FIRST,
    ),
    (r"number of toolResult blocks at .* exceeds", "TOOL_ORPHAN", _CALL_FIRST),
    (
        r"No tool call found for function call output|unexpected .?tool_use_id.? found|Unexpected tool call id",
        "TOOL_ID_UNKNOWN",
        "Copy {call_id} from the call; never invent one.",
    ),
    (
        r"Duplicate tool call id|must have a single result",
        "TOOL_ID_DUPLICATE",
        "Send exactly one {result} for each tool call.",
    ),
    (r"function call turn comes immediately after", "ROLE_ORDER", _CALL_FIRST),
    (
        r"first message must use the .user. role|must start with a user message|must be a user message, but",
        "FIRST_TURN_ROLE",
        "Begin with the user's message, or use the profile for this provider.",
    ),
    (
        r"Unexpected role '\w+' after role|roles must alternate|Expected last role|cannot be provided in the same turn"
        r"|System message must be at the beginning|support assistant message prefill"
        r"|Cannot set .?add_generation_prompt",
        "ROLE_ORDER",
        "Use the profile for this provider; it puts the roles into the order that the provider accepts.",
    ),
    (
        r"unknown variant .?developer|developer is not one of|received 'developer'|role\W+developer is not supported",
        "ROLE_UNKNOWN",
        "Use the profile for this provider; it sends messages of the developer as those of the system.",
    ),
    (
        r"(?i:unexpected (?:message )?role|unknown role|invalid role|incorrect role information|use a valid role"
        r"|roles? (?:is|are) not supported|roles are supported|role.?'? does not support|role must be one of"
        r"|role.{0,40}(?:Input should be|expected one of))",
        "ROLE_UNKNOWN",
        _ROLES,
    ),
    (r"property 'reasoning\w*' is unsupported|wrong_api_format", "REASONING_REFUSED", "Do not send reasoning back."),
    (
        r"reasoning_content\W+(?:Extra inputs are not permitted|is not supported)",
        "REASONING_REFUSED",
        "Do not send reasoning back.",
    ),
    (r"[Mm]issing .?reasoning_content|reasoning_content.? is missing", "REASONING_MISSING", _ECHO),
    (r"reasoning_content.? in the thinking mode must be passed back", "REASONING_MISSING", _ECHO),
    (r"Expected .?thinking.? or .?redacted_thinking", "REASONING_MISSING", _ECHO),
    (r"without its required .?reasoning.? item", "REASONING_MISSING", _ECHO),
    (r"(Corrupted|Invalid) thought.?signature|Thought signature is not valid", "STATE_INVALID", _UNCHANGED),
    (r"Invalid .?(signature|data).? in .?(redacted_)?thinking", "STATE_INVALID", _UNCHANGED),
    (r"thinking.? blocks in the latest assistant message cannot be modified", "STATE_INVALID", _UNCHANGED),
    (r"of type .?reasoning.? was provided without its required following item", "STATE_INVALID", _UNCHANGED),
    (r"encrypted content .*could not be (verified|decrypted|parsed)", "STATE_INVALID", _UNCHANGED),
    (
        r"missing a thought_signature",
        "SIGNATURE_MISSING",
        "Send extra_content.google.thought_signature of the tool call back unchanged, or enable `keeper`.",
    ),
    (
        r"function_response\.name: Name cannot be empty",
        "TOOL_NAME_MISSING",
        "Use the profile `gemini`; it derives the name of a {result} from its call.",
    ),
    (
        r"'?tool_calls\[\d+\]\.id'?: string too long|Tool call id was .* but must be",
        "CALL_ID_SHAPE",
        "Use the profile for this provider; it renames the ids that it refuses.",
    ),
    (
        r"'tools\[\d+\]\.function\.name'?: string does not match pattern|Invalid function name",
        "TOOL_NAME_SHAPE",
        "Use the profile for this provider; it renames the tools whose names it refuses.",
    ),
    (
        r"does not support tools|tool choice requires --enable-auto-tool-choice",
        "TOOLS_REFUSED",
        "Send no tools to this model, or switch them on at the backend.",
    ),
    (r"Invalid 'tools': array too long", "TOOLS_COUNT", "Send fewer tools."),
    (
        r"toolConfig field must be defined",
        "TOOLS_MISSING",
        "Send the tools in every request whose history has tool calls.",
    ),
    (
        r"cannot unmarshal string into Go struct field .*arguments|looks like object, but can't find closing",
        "CALL_ARGS_TYPE",
        "Use the profile `ollama`; it sends arguments as an object.",
    ),
    (
        r"content.? : value must be a string|content field at .* cannot be empty|must have a text parameter"
        r"|(?i:must (?:have|contain) (?:non-empty content|non-whitespace text)|contents is not specified)",
        "CONTENT_TYPE",
        "Send content as non-empty text.",
    ),
    (
        r"(?i:image (?:exceeds|dimensions exceed)|(?:process|decode|load|read) (?:the )?(?:input )?image"
        r"|(?:valid|invalid|unsupported|corrupt\w*) (?:base64 )?image|image (?:data|input|inputs|url)? ?(?:is|are) "
        r"(?:invalid|not (?:valid|supported))|support (?:for )?(?:image|vision|multimodal|pdf)"
        r"|unknown variant .?image_url|image_url.{0,60}(?:only|not) supported|not a multimodal model"
        r"|At most 0 image|accept images?\b|pdf pages|too much media)",
        "IMAGE_REFUSED",
        _NO_IMAGE,
    ),
    (
        r"(?i:invalid schema for (?:function|tool)|input_schema does not support|function parameters is empty"
        r"|tool names must be unique)",
        "TOOL_SCHEMA_REFUSED",
        _SCHEMA,
    ),
    (r"unknown variant .?\w+.?, expected .?function", "TOOL_KIND_REFUSED", "Send functions, and no other tools."),
    (r"cache_control (?:may|cannot|can not)|blocks with cache_control", "CACHE_MARKS_REFUSED", _MARKS),
    (
        r"(?i:stop.?sequences?\b.{0,60}(?:whitespace|not support|too long)|'stop': array too long"
        r"|support the stopSequences|more than \d+ stop sequences)",
        "STOP_REFUSED",
        _STOPS,
    ),
    (
        r"(?i:integer below minimum value|max_tokens\W+must be greater than .?thinking\.budget_tokens)",
        "LIMIT_REFUSED",
        _LIMIT,
    ),
    (
        r"(?i:response_format\S* .{0,60}(?:unavailable|not support|must be)|response mime type.{0,60}unsupported)",
        "FORMAT_REFUSED",
        _FORMAT,
    ),
    (
        r"(?i:tools? (?:with|and) .?reasoning_effort.? (?:is|are) not supported)",
        "EFFORT_REFUSED",
        _TOOL_EFFORT,
    ),
    (
        r"(?i:tool_choice.{0,80}(?:not support|incompatible|not allowed|only allowed|thinking)|invalid tool_choice type"
        r"|not support.{0,40}tool_choice|thinking.{0,40}tool_choice|tool choice.{0,60}not support)",
        "TOOL_CHOICE_REFUSED",
        _CHOICE,
    ),
    (
        r"(?i:(?:reasoning_effort|thinking level)\W.{0,60}(?:must be one of|input should be|not support)"
        r"|support the effort parameter)",
        "EFFORT_REFUSED",
        _EFFORT,
    ),
    (
        r"(?i:thinking\.type.{0,60}not support|adaptive thinking is not|enable_thinking.{0,60}(?:must|not))",
        "THINKING_REFUSED",
        _THINKING,
    ),
    (
        r"(?i:(?:temperature|top_p|top_k|presence.?penalty|frequency.?penalty)\b.{0,80}(?:not support|unsupported"
        r"|cannot both|only (?:be set|the default)|only \S+ is allowed|deprecated|out of range|should be in)"
        r"|range of temperature|not support.{0,30}(?:temperature|top_p|presence.?penalty|frequency.?penalty)"
        r"|invalid (?:temperature|top_p))",
        "SAMPLING_REFUSED",
        _SAMPLING,
    ),
    (
        r"(?i:must be verified to generate reasoning summaries)",
        "PARAM_REFUSED",
        "Verify the organization at the provider, or ask for no thoughts.",
    ),
    (
        r"(?i:unsupported (?:parameter|value)|unknown (?:parameter|field|name)|unrecognized (?:request argument|key)"
        r"|extra (?:inputs|fields) (?:are )?not permitted|property '[^']*' is unsupported|argument not supported"
        r"|does not support (?:the )?parameter|is only allowed when|extra_forbidden|\[\] is too short"
        r"|List should have at least 1 item|(?:'[\w.]+'|`[\w.]+`) is not supported|not supported with this model"
        r"|Invalid '(?:user|safety_identifier|prompt_cache_key)': string too long"
        r"|parameter is (?:only allowed|not supported)|parameter .{0,60}"
        r"(?:not supported|does not support|is restricted)"
        r"|additional properties are not allowed|cannot find field)",
        "PARAM_REFUSED",
        _OMIT,
    ),
)
# These are about a field of the request, the others about its history.
_OF_REQUEST: Final = frozenset(
    {
        "CACHE_MARKS_REFUSED",
        "EFFORT_REFUSED",
        "FORMAT_REFUSED",
        "IMAGE_REFUSED",
        "LIMIT_REFUSED",
        "PARAM_REFUSED",
        "SAMPLING_REFUSED",
        "STOP_REFUSED",
        "THINKING_REFUSED",
        "TOOL_CHOICE_REFUSED",
        "TOOL_KIND_REFUSED",
        "TOOL_SCHEMA_REFUSED",
    }
)
# A provider that finds no model for an image answers 404, which clients read as another fault.
_IMAGE_STATUSES: Final = frozenset({404, 422})
_TABLE: Final = tuple((re.compile(text, re.DOTALL), rule, advice) for text, rule, advice in _TEXTS)
_INDEX: Final = re.compile(r"messages?(?:\.\[|\[|\.| at index |\s+index\s+)(\d+)")
_FIELD: Final = re.compile(r"[.\[]")
_TOKEN: Final = re.compile(r"[\w:.-]*[\w:-]")


def classify_rejection(text: str, param: str | None, sent: Sequence[Turn]) -> Rejection | None:
    """Returns the meaning of an error text, or None for an unknown text.

    `sent` are the turns that were sent, one message each; they map the provider's index to the client's.
    """
    for pattern, rule, advice in _TABLE:
        if pattern.search(text):
            return Rejection(rule, advice, _index(f"{param or ''} {text}", sent), _call_id(text, sent))
    return None


def explained(error: BackendError, sent: Conversation) -> BackendError:
    """Returns the same error; for a known rejection with rule, index, id and advice in the error object.

    `sent` is the conversation as it was sent; its client knows the places by its own paths.
    """
    refused = 400 <= error.status < 500 and error.too_long is None
    found = classify_rejection(error.message, error.param, sent.turns) if refused else None
    error.param = client_param(error.param, sent)
    if found is not None:
        error.extra = {
            **error.extra,
            "rule": found.rule,
            "index": found.index,
            "tool_call_id": found.tool_call_id,
            "advice": sent.paths.worded(found.advice),
        }
        if found.rule == IMAGE_REFUSED and error.status in _IMAGE_STATUSES:
            error.status, error.code = 400, "invalid_value"
        of_request = found.rule in _OF_REQUEST
        notice = Notice(
            "backend",
            "failed",
            "REQUEST_REFUSED" if of_request else "HISTORY_REFUSED",
            f"the backend refused the {'request' if of_request else 'history'}: {found.rule}",
            found.index,
            found.tool_call_id,
            "error",
        )
        error.notices = (*error.notices, notice)
    return error


def client_param(param: str | None, sent: Conversation) -> str | None:
    """Returns the `param` of a backend's error as the client knows it.

    A backend names its fields by their canonical names, and a message by its position among those that were sent. A
    client with other paths gets its own turn or field; what stands inside has no common form.
    """
    if param is None or sent.paths == CANONICAL_PATHS:
        return param
    index = _index(param, sent.turns)
    if index is not None:
        return sent.paths.turn.format(turn=index)
    return sent.paths.param(_FIELD.split(param, 1)[0])


def _index(text: str, sent: Sequence[Turn]) -> int | None:
    match = _INDEX.search(text)
    if match is None or int(match[1]) >= len(sent):
        return None
    return sent[int(match[1])].index


def _call_id(text: str, sent: Sequence[Turn]) -> str | None:
    known = {call.id for turn in sent for call in turn.calls} | {
        result.call_id for turn in sent for result in turn.results
    }
    return next((token for token in _TOKEN.findall(text) if token in known), None)
