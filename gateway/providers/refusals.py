"""Lists what a provider's error about a history or a field of a request can mean: a rule code and the likely fix."""

from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from gateway.core.notices import NoticeRule


class Refusal(msgspec.Struct, frozen=True):
    """The meaning of an error text. `advice` is a template of `FieldPaths.worded`. `about` says what was refused: the
    history, or a field of the request."""

    rule: NoticeRule
    advice: str
    about: Literal["history", "request"] = "history"


_ANSWER_ALL: Final = "Send exactly one {result} for each tool call, right after the assistant message."
_CALL_FIRST: Final = "Keep the assistant message with {calls} before the {results} that answer it."
_ECHO: Final = (
    "Send the reasoning of the assistant message back with it, use the profile for this provider, or enable `keeper`."
)
_UNCHANGED: Final = (
    "Send the provider's state of an answer back unchanged, in its order, and to the model that wrote it, or leave all "
    "of it out."
)

CALLS_UNANSWERED: Final = Refusal("CALLS_UNANSWERED", _ANSWER_ALL)
TOOL_ORPHAN: Final = Refusal("TOOL_ORPHAN", _CALL_FIRST)
TOOL_ID_UNKNOWN: Final = Refusal("TOOL_ID_UNKNOWN", "Copy {call_id} from the call; never invent one.")
TOOL_ID_DUPLICATE: Final = Refusal("TOOL_ID_DUPLICATE", "Send exactly one {result} for each tool call.")
CALL_ORDER: Final = Refusal("ROLE_ORDER", _CALL_FIRST)
FIRST_TURN_ROLE: Final = Refusal(
    "FIRST_TURN_ROLE", "Begin with the user's message, or use the profile for this provider."
)
ROLE_ORDER: Final = Refusal(
    "ROLE_ORDER", "Use the profile for this provider; it puts the roles into the order that the provider accepts."
)
DEVELOPER_UNKNOWN: Final = Refusal(
    "ROLE_UNKNOWN",
    "Use the profile for this provider; it sends messages of the developer as those of the system.",
)
ROLE_UNKNOWN: Final = Refusal(
    "ROLE_UNKNOWN", "Use the profile for this provider; it sends each message in a role that the provider accepts."
)
REASONING_REFUSED: Final = Refusal("REASONING_REFUSED", "Do not send reasoning back.")
REASONING_MISSING: Final = Refusal("REASONING_MISSING", _ECHO)
STATE_INVALID: Final = Refusal("STATE_INVALID", _UNCHANGED)
SIGNATURE_MISSING: Final = Refusal(
    "SIGNATURE_MISSING",
    "Send extra_content.google.thought_signature of the tool call back unchanged, or enable `keeper`.",
)
TOOL_NAME_MISSING: Final = Refusal(
    "TOOL_NAME_MISSING", "Use the profile `gemini`; it derives the name of a {result} from its call."
)
CALL_ID_SHAPE: Final = Refusal(
    "CALL_ID_SHAPE", "Use the profile for this provider; it renames the ids that it refuses."
)
TOOL_NAME_SHAPE: Final = Refusal(
    "TOOL_NAME_SHAPE", "Use the profile for this provider; it renames the tools whose names it refuses."
)
TOOLS_REFUSED: Final = Refusal("TOOLS_REFUSED", "Send no tools to this model, or switch them on at the backend.")
TOOLS_COUNT: Final = Refusal("TOOLS_COUNT", "Send fewer tools.")
TOOLS_MISSING: Final = Refusal("TOOLS_MISSING", "Send the tools in every request whose history has tool calls.")
CALL_ARGS_TYPE: Final = Refusal("CALL_ARGS_TYPE", "Use the profile `ollama`; it sends arguments as an object.")
CONTENT_TYPE: Final = Refusal("CONTENT_TYPE", "Send content as non-empty text.")
IMAGE_REFUSED: Final = Refusal(
    "IMAGE_REFUSED", "Leave the image out, or set `images` to `placeholder` for this model.", "request"
)
TOOL_SCHEMA_REFUSED: Final = Refusal(
    "TOOL_SCHEMA_REFUSED",
    "Use the profile for this provider; it puts functions into the form that the provider requires.",
    "request",
)
TOOL_KIND_REFUSED: Final = Refusal("TOOL_KIND_REFUSED", "Send functions, and no other tools.", "request")
CACHE_MARKS_REFUSED: Final = Refusal(
    "CACHE_MARKS_REFUSED", "Mark fewer blocks with cache_control, and no empty one.", "request"
)
STOP_REFUSED: Final = Refusal(
    "STOP_REFUSED", "Send fewer stop sequences, and no blank one, or use the profile for this provider.", "request"
)
LIMIT_REFUSED: Final = Refusal("LIMIT_REFUSED", "Raise the limit of the answer, or omit it.", "request")
FORMAT_REFUSED: Final = Refusal(
    "FORMAT_REFUSED", "Send another response_format, or none, or use the profile for this provider.", "request"
)
EFFORT_BESIDE_TOOLS: Final = Refusal(
    "EFFORT_REFUSED", "Use the Responses API of this provider, or send the tools without reasoning_effort.", "request"
)
TOOL_CHOICE_REFUSED: Final = Refusal(
    "TOOL_CHOICE_REFUSED", "Send no tool_choice but auto or none, or switch thinking off.", "request"
)
EFFORT_REFUSED: Final = Refusal(
    "EFFORT_REFUSED", "Send an effort that this model takes, or none, or use the profile for this provider.", "request"
)
THINKING_REFUSED: Final = Refusal(
    "THINKING_REFUSED", "Omit the switch of thinking for this model, or use the profile for this provider.", "request"
)
SAMPLING_REFUSED: Final = Refusal(
    "SAMPLING_REFUSED",
    "Omit temperature, top_p and the penalties for this model, or use the profile for this provider.",
    "request",
)
SUMMARIES_REFUSED: Final = Refusal(
    "PARAM_REFUSED", "Verify the organization at the provider, or ask for no thoughts.", "request"
)
PARAM_REFUSED: Final = Refusal(
    "PARAM_REFUSED", "Omit the field for this model, or use the profile for this provider.", "request"
)

# A text means the first one that any of its words fits, so specific meanings stand before general ones.
REFUSALS: Final = (
    CALLS_UNANSWERED,
    TOOL_ORPHAN,
    TOOL_ID_UNKNOWN,
    TOOL_ID_DUPLICATE,
    CALL_ORDER,
    FIRST_TURN_ROLE,
    ROLE_ORDER,
    DEVELOPER_UNKNOWN,
    ROLE_UNKNOWN,
    REASONING_REFUSED,
    REASONING_MISSING,
    STATE_INVALID,
    SIGNATURE_MISSING,
    TOOL_NAME_MISSING,
    CALL_ID_SHAPE,
    TOOL_NAME_SHAPE,
    TOOLS_REFUSED,
    TOOLS_COUNT,
    TOOLS_MISSING,
    CALL_ARGS_TYPE,
    CONTENT_TYPE,
    IMAGE_REFUSED,
    TOOL_SCHEMA_REFUSED,
    TOOL_KIND_REFUSED,
    CACHE_MARKS_REFUSED,
    STOP_REFUSED,
    LIMIT_REFUSED,
    FORMAT_REFUSED,
    EFFORT_BESIDE_TOOLS,
    TOOL_CHOICE_REFUSED,
    EFFORT_REFUSED,
    THINKING_REFUSED,
    SAMPLING_REFUSED,
    SUMMARIES_REFUSED,
    PARAM_REFUSED,
)

# The words that several providers have in common, and those of providers that no file describes.
COMMON_REFUSALS: Final[Mapping[Refusal, str]] = {
    DEVELOPER_UNKNOWN: r"received 'developer'|role\W+developer is not supported",
    ROLE_UNKNOWN: (
        r"(?i:unexpected (?:message )?role|unknown role|invalid role|roles? (?:is|are) not supported"
        r"|roles are supported|role.?'? does not support|role must be one of"
        r"|role.{0,40}(?:Input should be|expected one of))"
    ),
    REASONING_REFUSED: r"reasoning_content\W+(?:Extra inputs are not permitted|is not supported)",
    IMAGE_REFUSED: (
        r"(?i:image (?:exceeds|dimensions exceed)|(?:process|decode|load|read) (?:the )?(?:input )?image"
        r"|(?:valid|invalid|unsupported|corrupt\w*) (?:base64 )?image|image (?:data|input|inputs|url)? ?(?:is|are) "
        r"(?:invalid|not (?:valid|supported))|support (?:for )?(?:image|vision|multimodal|pdf)"
        r"|image_url.{0,60}(?:only|not) supported|not a multimodal model|accept images?\b|pdf pages|too much media)"
    ),
    STOP_REFUSED: (r"(?i:stop.?sequences?\b.{0,60}(?:whitespace|not support|too long)|more than \d+ stop sequences)"),
    FORMAT_REFUSED: r"(?i:response_format\S* .{0,60}(?:unavailable|not support|must be))",
    TOOL_CHOICE_REFUSED: (
        r"(?i:tool_choice.{0,80}(?:not support|incompatible|not allowed|only allowed|thinking)"
        r"|not support.{0,40}tool_choice|thinking.{0,40}tool_choice|tool choice.{0,60}not support)"
    ),
    EFFORT_REFUSED: (
        r"(?i:(?:reasoning_effort|thinking level)\W.{0,60}(?:must be one of|input should be|not support)"
        r"|support the effort parameter)"
    ),
    SAMPLING_REFUSED: (
        r"(?i:(?:temperature|top_p|top_k|presence.?penalty|frequency.?penalty)\b.{0,80}(?:not support|unsupported"
        r"|cannot both|only (?:be set|the default)|only \S+ is allowed|deprecated|out of range|should be in)"
        r"|not support.{0,30}(?:temperature|top_p|presence.?penalty|frequency.?penalty)"
        r"|invalid (?:temperature|top_p))"
    ),
    PARAM_REFUSED: (
        r"(?i:unsupported (?:parameter|value)|unknown (?:parameter|field|name)|unrecognized (?:request argument|key)"
        r"|extra (?:inputs|fields) (?:are )?not permitted|property '[^']*' is unsupported|argument not supported"
        r"|does not support (?:the )?parameter|is only allowed when|extra_forbidden|\[\] is too short"
        r"|List should have at least 1 item|(?:'[\w.]+'|`[\w.]+`) is not supported|not supported with this model"
        r"|Invalid '(?:user|safety_identifier|prompt_cache_key)': string too long"
        r"|parameter is (?:only allowed|not supported)|parameter .{0,60}"
        r"(?:not supported|does not support|is restricted)"
        r"|additional properties are not allowed|cannot find field)"
    ),
}
